"""Calls of same_digits.py, continued: tables, models, reports, the command; and files that one tree writes and another reads."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import h5py
import matplotlib
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from matplotlib import pyplot as plt
from scipy.sparse import csc_array, csr_array

import reduset
from reduset import Gaussian, KernelMean, Laplacian, Mixture, Model, Student, compress, io, report
from reduset.cohort import CohortMap
from reduset.modes import segment
from reduset.stream import StreamCompressor
from reduset.svm import CompressedOneClassSVM, CompressedSVC, CompressedSVR
from same_digits_calls import COVARIANCES, add, bags, cloud, shares
from same_digits_learning import MACHINES, machine, svm_values, task
from same_digits_uses import flow, mixture, picture

matplotlib.use("Agg")


# -- tables -----------------------------------------------------------------------------------------------------------------


def table(n: int = 200) -> pa.Table:
    X, kind = cloud(n, 3), np.where(np.arange(n) % 3 > 0, "north", "south")
    return pa.table({"x": X[:, 0], "kind": kind, "y": X[:, 1].astype(np.float32), "z": X[:, 2] * 100, "share": shares(n)})


def write_fcs(path: str, kind: str, order: str) -> None:
    """Three channels by the standard: a label, a gain, a logarithmic amplifier, spillover."""
    events = (cloud(80, 3) * 100 + 500).clip(0, 1023)
    events = events.astype(int) if kind == "I" else events
    data = b"".join(struct.pack(order + {"I": "H", "F": "f", "D": "d"}[kind], value) for value in events.ravel().tolist())
    width = str(8 * len(data) // events.size)
    text = {"$BYTEORD": "1,2,3,4" if order == "<" else "4,3,2,1", "$DATATYPE": kind, "$MODE": "L", "$NEXTDATA": "0", "$PAR": "3"}
    for k, name in enumerate(("FSC-A", "FL1-A", "FL2-A"), 1):
        text |= {f"$P{k}N": name, f"$P{k}B": width, f"$P{k}R": "1024", f"$P{k}E": "4,1" if k == 3 and kind == "I" else "0,0"}
    text |= {"$TOT": "80", "$P2S": "CD4", "$P2G": "2.0", "$SPILLOVER": "2,FL1-A,FL2-A,1,0.1,0.02,1"}

    def segment(start: int) -> bytes:
        places = {"$BEGINDATA": f"{start:08d}", "$ENDDATA": f"{start + len(data) - 1:08d}"}
        return ("|" + "|".join(f"{key}|{value}" for key, value in (places | text).items()) + "|").encode()

    start = 58 + len(segment(0))
    header = f"FCS3.1    {58:8d}{start - 1:8d}{start:8d}{start + len(data) - 1:8d}{0:8d}{0:8d}".encode()
    Path(path).write_bytes(header + segment(start) + data)


def write_tables() -> None:
    rows, X = table(), cloud(200, 3)
    frame = rows.to_pandas()
    frame.to_csv("rows.csv", index=False)
    frame.to_csv("comma.csv", index=False, sep=";", decimal=",")
    frame.to_csv("rows.tsv.gz", index=False, sep="\t")
    frame.assign(x=frame["x"].mask(frame.index % 7 == 3)).to_csv("gaps.csv", index=False)
    pa.parquet.write_table(rows, "rows.parquet", row_group_size=60)
    pa.feather.write_feather(rows, "rows.feather")
    with pa.ipc.new_stream("rows.arrows", rows.schema) as stream:
        stream.write_table(rows, max_chunksize=70)
    np.save("rows.npy", X)
    np.save("columns.npy", np.asfortranarray(X.astype(np.float32)))
    np.savez("rows.npz", X=X, share=shares(200), other=X[:5])
    with h5py.File("rows.h5ad", "w") as file:
        file["X"], file["obsm/X_pca"] = X, X[:, :2]
        for name, index in (("obs", [f"cell{k}" for k in range(200)]), ("var", ["a", "b", "c"])):
            file.create_group(name).attrs["_index"] = "names"
            file[name]["names"] = np.array(index, dtype=h5py.string_dtype())
        file["obs/share"] = shares(200)
        kinds = file.create_group("obs/kind")
        kinds.attrs["encoding-type"] = "categorical"
        kinds["codes"], kinds["categories"] = np.arange(200) % 2, np.array(["north", "south"], dtype=h5py.string_dtype())
        for kind, sparse in (("csr", csr_array(X * (X > 0))), ("csc", csc_array(X * (X > 0)))):
            layer = file.create_group(f"layers/{kind}")
            layer.attrs["encoding-type"], layer.attrs["shape"] = f"{kind}_matrix", np.array(X.shape)
            layer["data"], layer["indices"], layer["indptr"] = sparse.data, sparse.indices, sparse.indptr
    for kind, order in product("IFD", "<>"):
        write_fcs(f"{kind}{'little' if order == '<' else 'big'}.fcs", kind, order)
    io.write_image("picture.png", picture())
    np.savetxt("numbers.txt", X, delimiter="\t")
    np.save("fields.npy", np.rec.fromarrays(X.T, names="a,b,c"))
    Path("folder").mkdir()
    for k in (2, 10):
        np.save(f"folder/part-{k}.npy", X[k : k + 80])


READ: dict[str, dict[str, Any]] = {
    "rows.csv": {"weight_column": "share", "group_column": "kind"}, "comma.csv": {}, "rows.tsv.gz": {"columns": ["z", "x"]},
    "rows.parquet": {"group_column": "kind"}, "rows.feather": {"columns": ["y"]}, "rows.arrows": {"weight_column": "share"},
    "gaps.csv": {"missing": "drop"}, "rows.npy": {}, "columns.npy": {}, "rows.npz": {"key": "X", "weight_column": "share"},
    "rows.h5ad": {"key": "obsm/X_pca", "weight_column": "share"}, "picture.png": {},
    **{f"{kind}{order}.fcs": {} for kind, order in product("IFD", ("little", "big"))},
}  # fmt: skip
TRANSFORMS = {
    "asinh:150": "asinh:150", "asinh": "asinh", "logicle": "logicle", "logicle of four": "logicle:T=1000,W=1,M=4,A=0.5",
    "by column": {"z": "asinh:5", "x": "logicle"}, "log": {"share": "log"},
}  # fmt: skip
FRAMES: dict[str, Callable[[Any], Any]] = {
    "pandas": pa.Table.to_pandas,
    "polars": pl.from_arrow,
    "lazy": lambda rows: pl.from_arrow(rows).lazy(),
    "arrow": lambda rows: rows,
}


def tabled(path: str, **options: Any) -> Any:
    write_tables()
    parts = io.batches(path, rows=45, **options)
    told, some = (parts.columns, parts.total), [(each, parts.position) for each in parts]
    return io.read(path, **options), told, some, list(io.batches(path, rows=45, start=60, **options))


def read(path: Any, **options: Any) -> Any:
    write_tables()
    return io.read(path, **options)


def framed(name: str) -> Any:
    frame = FRAMES[name](table())
    columns = {"weight_column": "share", "group_column": "kind", "transform": {"z": "asinh:5"}}
    return io.as_table(frame, **columns), compress(FRAMES[name](table().select(["x", "z"])), size=9, rng=0)


def written(suffix: str) -> Any:
    io.write_rows(f"out{suffix}", ["a", "b"], cloud(50), shares(50), {"kind": table(50)["kind"].to_pylist()})
    plain = Path(f"out{suffix}").read_bytes() if suffix in (".csv", ".tsv") else None
    return io.read(f"out{suffix}", weight_column="weight", group_column="kind"), plain


def pictured() -> Any:
    write_tables()
    io.write_image("again.png", picture(grey=True))
    Path("labels.csv").write_text("name,group\na,1\nb,2\n", encoding="utf-8")
    return io.read_image("picture.png"), io.read_image("again.png"), io.read_labels("labels.csv")


def bagged() -> Any:
    write_tables()
    return io.read_bags("rows.csv", group_column="kind"), io.read_bags(["rows.npy", "columns.npy"])


for path, options in READ.items():
    add(f"io/{path}", tabled, path, **options)
for name, transform in TRANSFORMS.items():
    add(f"io/transform/{name}", read, "rows.parquet", columns=["x", "z", "share"], transform=transform)
    if isinstance(transform, str):
        add(f"io/transform/{name}/fcs", read, "Flittle.fcs", transform=transform)
add("io/not compensated", read, "Flittle.fcs", compensate=False, columns=["CD4", "FSC-A"])
add("io/events", read, "Ilittle.fcs", key="events")
for kind in ("csr", "csc"):
    add(f"io/rows.h5ad/{kind}", read, "rows.h5ad", key=f"layers/{kind}", columns=["c", "a"], group_column="kind")
add("io/rows.h5ad/all", read, "rows.h5ad", weight_column="share", group_column="kind")
for path in ("numbers.txt", "fields.npy", "folder"):
    add(f"io/{path}", tabled, path)
add("io/several", read, ["rows.csv", "rows.parquet"])
add("io/bags", bagged)
add("io/pictures", pictured)
for suffix in (".csv", ".tsv", ".parquet", ".feather"):
    add(f"io/written{suffix}", written, suffix)
for name in FRAMES:
    add(f"io/as_table/{name}", framed, name)

# -- models, reports --------------------------------------------------------------------------------------------------------


def model(n: int = 600, d: int = 3, kernel: Any = None, **options: Any) -> Model:
    full = KernelMean.from_samples(cloud(n, d), kernel or Gaussian(0.8))
    small = compress(full, **{"size": 30, "select": "kcenter", "rng": 0} | options)
    return Model.of(full, small, [f"c{k}" for k in range(d)], {"sources": ["a.csv"], "timings": {}, "versions": {"a": "1"}})


def kept(**options: Any) -> Any:
    made = model(**options)
    made.save("model.npz")
    again = Model.load("model.npz")
    errors = again.subsample_errors(np.array([1, 10, 100]))
    return made, again, again.at(3), again.size, errors, KernelMean.load("model.npz"), Path("model.npz").read_bytes()


def page(write: Callable[..., None], *given: Any, **options: Any) -> str:
    write("page.html", *given, **options)
    return Path("page.html").read_text(encoding="utf-8").replace(reduset.__version__, "VERSION")


def mapped(given: Any) -> CohortMap:
    return CohortMap(layout="mds", size=12, random_state=0).fit(given)


def cohort_page(**options: Any) -> str:
    return page(report.write_cohort, mapped({f"bag {k}": bag for k, bag in enumerate(bags())}), **options)


def image_page(grey: bool) -> str:
    return page(report.write_segmentation, picture(grey), segment(picture(grey), bandwidth=0.15, size=40, random_state=0))


def displays() -> Iterator[tuple[Any, dict[str, Any]]]:
    made, groups, found = model(), ["a", "b", None] * 2, mapped(bags())
    yield report.PathDisplay.from_model(made), {}
    yield report.DensityDisplay.from_model(made, "c1"), {}
    for kind in ("full", "small", "difference"):
        yield report.DensityDisplay.from_model(made, ["c0", "c2"], step=3), {"kind": kind}
    yield report.AtomsDisplay.from_model(made), {}
    full = KernelMean.from_samples(cloud(), Gaussian(0.8))
    small = compress(full, size=20, rng=0)
    yield report.PathDisplay.from_compression(small), {}
    yield report.DensityDisplay.from_means(full, small.mean, 0), {}
    yield report.AtomsDisplay.from_mean(small.mean), {}
    for kind in ("map", "distances"):
        yield report.CohortDisplay.from_estimator(found, groups), {"kind": kind}
    yield report.EmbeddingDisplay.from_array(cloud(50), values=shares(50)), {}


def shown(display: Any, **options: Any) -> Any:
    """The numbers of a display, and its picture."""
    canvas = display.plot(**options).figure_.canvas
    canvas.draw()
    pixels = np.array(canvas.buffer_rgba())
    plt.close(display.figure_)
    return getattr(display, "figure", None) or [display.places, display.values], pixels


for name, options in {
    "gaussian": {}, "student": {"kernel": Student(0.8)}, "cityblock": {"kernel": Laplacian(0.8, metric="cityblock")},
    "oblique": {"d": 2, "kernel": Gaussian(0.8, COVARIANCES["oblique"], normalized=True)}, "simplex": {"weights": "simplex"},
    "one column": {"d": 1}, "seven columns": {"d": 7, "kernel": Gaussian(2.0)}, "many rows": {"n": 52_000, "d": 2},
}.items():  # fmt: skip
    add(f"model/{name}", kept, **options)
    add(f"report/{name}", lambda options: page(report.write_compression, model(**options)), options)
add("report/cohort", cohort_page, groups=["a", "b"] * 3)
add("report/cohort without groups", cohort_page, about={"command": "reduset cohort"})
add("report/colours", image_page, grey=False)
add("report/grey", image_page, grey=True)
add(
    "report/floats",
    lambda: page(report.write_segmentation, picture() / 255, segment(picture() / 255, bandwidth=0.15, size=40, random_state=0)),
)
add("report/displays", lambda: [shown(display, **options) for display, options in displays()])

# -- the command ------------------------------------------------------------------------------------------------------------


def run(line: str) -> Any:
    """A command in a process of its own, from the same tree: its code, its output or the object that it printed, its errors."""
    around = os.environ | {"PYTHONPATH": str(Path(reduset.__file__).parents[1]), "COLUMNS": "100"}
    done = subprocess.run([sys.executable, "-m", "reduset", *line.split()], env=around, capture_output=True, text=True)
    out = json.loads(done.stdout) if "--json" in line and done.returncode in (0, 3) else re.sub(r"time  .*", "", done.stdout)
    return done.returncode, out, done.stderr


def data_of(path: str) -> Any:
    """What the scripts of a report read."""
    found = re.search(r'id="data">(.*?)</script>', Path(path).read_text(encoding="utf-8"), re.DOTALL)
    return json.loads(found[1]) if found else None


def commands(*given: str, table: str | None = None, page: str | None = None) -> Any:
    write_tables()
    for k, bag in enumerate(bags()):
        np.save(f"bag{k}.npy", bag)
    told = [run(line) for line in given]
    return told, None if table is None else io.read(table), None if page is None else data_of(page)


FIRST = "compress rows.csv --columns x,y,z --bandwidth 30 --tol 0.1 -o small.npz --json --report small.html"
BAGS = " ".join(f"bag{k}.npy" for k in range(6))
REFUSED = ("compress rows.csv --size 0 -o s.npz", "compress none.csv -o s.npz", "info rows.npy", "compress rows.csv -c q -o s.npz")
EVERY = ("compress", "cohort", "segment", "info", "evaluate", "distance", "report", "demo")
AFTER = ("info small.npz --json", "info small.npz", "evaluate small.npz rows.parquet -o scores.csv --json")
PAIRED = ("distance small.npz rows.tsv.gz --json", "distance small.npz small.npz --json", "report small.npz -o again.html")
add("command/model", commands, FIRST, *AFTER, *PAIRED, table="scores.csv", page="again.html")
for name, line, more in (
    ("rows", "sketch rows.parquet --columns x,y,z --size 20 --sample-key kind -o few.csv --json", {"table": "few.csv"}),
    ("groups of atoms", "compress rows.parquet --size 20 --group-column kind --whiten -o few.npz --json", {}),
    ("options", "compress rows.csv --size 12 --kernel laplacian --select kmeans --weights simplex --refine -o s.npz --json", {}),
    ("plateau", "compress rows.csv --plateau 1e-3 --weight-column share --seed 3 -o s.npz --json", {}),
    ("fcs", "compress Flittle.fcs --transform asinh:150 --size 12 -o s.npz --json", {}),
    ("not reached", "compress rows.csv --columns x,y --bandwidth 0.01 --tol 0.01 --max-size 5 -o s.npz --json", {}),
    ("folder", "compress folder --stream --size 20 --bandwidth scott --whiten -o s.npz --json", {}),
    ("stream", "compress rows.npy --stream --size 20 --checkpoint kept -o s.npz --report s.html --json", {"page": "s.html"}),
    ("cohort", f"cohort {BAGS} --layout mds --size 20 -o d.csv --report c.html --json", {"table": "d.csv", "page": "c.html"}),
    ("groups", "cohort rows.csv --columns x,y --group-column kind --layout mds -o d.csv --json", {"table": "d.csv"}),
    (
        "segment",
        "segment picture.png -o s.png --bandwidth 0.15 --size 40 --report s.html --json",
        {"table": "s.png", "page": "s.html"},
    ),
):
    add(f"command/{name}", commands, line, **more)
add("command/refusals", commands, *REFUSED)
add("command/help", commands, "--help", *(f"{each} --help" for each in EVERY))

# -- files that another tree reads ------------------------------------------------------------------------------------------

SHAPES = ("full", "diag", "spherical")
SVMS = {
    "classes": ("four classes", CompressedSVC),
    "values": ("regression", CompressedSVR),
    "odd": ("outliers", CompressedOneClassSVM),
}


def write_files(folder: Path) -> None:
    """One of each kind, or more."""
    kernel = Student(0.8, COVARIANCES["oblique"], exponent=2.0, space="l2")
    KernelMean.from_samples(cloud(), kernel, shares()).save(folder / "mean.npz")
    model().save(folder / "model.npz")
    for shape in SHAPES:
        mixture(shape).save(folder / f"{shape}.npz")
    for name, (task_of, _) in SVMS.items():
        machine(task_of, size=9, method="mixture", polish=5)[0].save(folder / f"{name}.npz")
    flow(kernel=Gaussian("median"), weights="simplex").checkpoint(folder / "stream.kept", about={"rows": 6000})
    flow(cloud(100)).checkpoint(folder / "waiting.kept")


def mean_file(path: Path, home: Any = KernelMean) -> Any:
    f = home.load(path)
    return f, f(cloud(30, f.dimension)), f.norm()


def model_file(path: Path) -> Any:
    found = Model.load(path)
    return found, found.at(3), page(report.write_compression, found)


def machine_file(path: Path, task_of: str, home: Any) -> Any:
    small = home.load(path)
    return small, svm_values(small, task(MACHINES[task_of][1])[0][:40])


def checkpoint_file(path: Path) -> Any:
    stream = StreamCompressor.resume(path)
    told = stream.about_, stream.n_samples_seen_, stream.result(), stream.sample()
    return told, stream.partial_fit(cloud(900, seed=7)).result()


def by_command(path: Path) -> Any:
    shutil.copy(path, "model.npz")
    np.save("rows.npy", cloud(40, 3))
    return (
        run("info model.npz --json"),
        run("evaluate model.npz rows.npy -o scores.csv --json"),
        run("report model.npz -o page.html"),
    )


def reading(folder: Path) -> dict[str, Callable[[], Any]]:
    """What there is to read in a folder, by name."""
    return {
        "mean": partial(mean_file, folder / "mean.npz"),
        "model": partial(model_file, folder / "model.npz"),
        "mean of the model": partial(mean_file, folder / "model.npz"),
        "model by the command": partial(by_command, folder / "model.npz"),
        **{f"mixture/{shape}": partial(mean_file, folder / f"{shape}.npz", Mixture) for shape in SHAPES},
        **{f"svm/{name}": partial(machine_file, folder / f"{name}.npz", *kind) for name, kind in SVMS.items()},
        **{f"stream/{name}": partial(checkpoint_file, folder / f"{name}.kept") for name in ("stream", "waiting")},
    }
