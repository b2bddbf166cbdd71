"""What an installed reduset can do, tried in the environment that runs this: `python -I wheel_doors.py extra extra`.

Every public name is imported. Then every extra's door is tried: where what the extra brings is installed it must open, and those of
the extras named must; where it is not, one sentence must name the extra. Run by `scripts/wheel.py`; it needs nothing but reduset.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import reduset
from reduset import Gaussian, KernelMean, Model, compress, io

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
PIXELS = np.arange(192, dtype=np.uint8).reshape(8, 8, 3)


def model() -> Model:
    """A small compression, as a report takes it."""
    small = compress(X, kernel=Gaussian(1.0), size=10, rng=0)
    return Model.of(KernelMean.from_samples(X, small.mean.kernel), small, ["a", "b"], {})


def command() -> None:
    """The command answers."""
    told = subprocess.run([sys.executable, "-I", "-m", "reduset", "--version"], capture_output=True, text=True)
    if told.returncode:
        raise ImportError(told.stderr.strip())
    if told.stdout.strip() != f"reduset {reduset.__version__}":
        raise RuntimeError(f"reduset --version printed {told.stdout!r}")


def tables() -> None:
    """Rows are written and read as Parquet and CSV."""
    for name in ("rows.parquet", "rows.csv"):
        io.write_rows(name, ["a", "b"], X)
        np.testing.assert_allclose(io.read(name).values, X)


def fcs() -> None:
    """FCS files are written and read, without a library."""
    io.write_fcs("cells.fcs", X, ["FL1", "FL2"])
    np.testing.assert_allclose(io.read("cells.fcs").values, X, rtol=1e-6)


def excel() -> None:
    """An Excel file is opened; that this one is empty is said by the library that reads it."""
    from reduset.cytometry import read_panel

    Path("panel.xlsx").write_bytes(b"PK\x05\x06" + bytes(18))
    refused(lambda: read_panel("panel.xlsx"))


def gates() -> None:
    """A document with gates is opened; that this one has none is said by the library that reads it."""
    from reduset.cytometry import read_cohort

    fcs()
    Path("gates.gml").write_text("<nothing/>")
    refused(lambda: read_cohort(["cells.fcs"], gate="gates.gml"))


def refused(read: Callable[[], object]) -> None:
    """Read a file that is there and holds nothing: an error, which is passed on only where a library is missing."""
    try:
        read()
    except io.FileError as error:
        if "pip install" in str(error):
            raise


def h5ad() -> None:
    """AnnData's files are read as tables."""
    path = Path("cells.h5ad")
    path.write_bytes(b"\x89HDF\r\n\x1a\n")
    if installed("h5ad"):
        h5py = importlib.import_module("h5py")
        text = h5py.string_dtype()
        with h5py.File(path, "w") as file:
            file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
            file["X"] = X
            file["X"].attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
            for part, count in (("obs", len(X)), ("var", 2)):
                group = file.create_group(part)
                group.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"})
                group.attrs["column-order"] = np.array([], dtype=text)
                group["_index"] = np.array([f"{part}{i}" for i in range(count)], dtype=text)
    np.testing.assert_array_equal(io.read(path).values, X)


def anndata() -> None:
    """Cells are sketched where they are."""
    cells = importlib.import_module("anndata").AnnData(X.astype(np.float32)) if installed("anndata") else X
    importlib.import_module("reduset.anndata").sketch(cells, size=20, use_rep="X")
    if cells.obs["sketch"].sum() != 20:
        raise RuntimeError("reduset.anndata.sketch: not 20 cells")


def images() -> None:
    """Pictures are written and read."""
    io.write_image("picture.png", PIXELS)
    np.testing.assert_array_equal(io.read_image("picture.png"), PIXELS)


def report() -> None:
    """A report is written, with its script inside."""
    importlib.import_module("reduset.report").write_compression("report.html", model())
    if Path("report.html").stat().st_size < 1 << 20:
        raise RuntimeError("the report does not hold plotly.js")


def plots() -> None:
    """A display draws."""
    os.environ["MPLBACKEND"] = "Agg"
    importlib.import_module("reduset.report").PathDisplay.from_model(model()).plot()


def onnx() -> None:
    """An SVM becomes an ONNX graph."""
    from sklearn.svm import SVC

    from reduset.svm import compress_svm

    if len(compress_svm(SVC(gamma=0.5).fit(X, X[:, 0] > 0), size=10, rng=0).to_onnx().graph.node) == 0:
        raise RuntimeError("to_onnx: no nodes")


def safetensors() -> None:
    """A cover reads a matrix of a file."""
    path = Path("rows.safetensors")
    path.write_bytes(bytes(8))
    if installed("safetensors"):
        importlib.import_module("safetensors.numpy").save_file({"rows": X}, path)
    if reduset.cover(path, 3).size != 3:
        raise RuntimeError("cover: not 3 rows of a safetensors file")


def dask() -> None:
    """Partitions are compressed in Dask's threads."""
    _compress_on("dask")


def ray() -> None:
    """Partitions are compressed on Ray, which writes no token to the home folder and reports nothing."""
    os.environ |= {"RAY_AUTH_TOKEN": secrets.token_hex(), "RAY_USAGE_STATS_ENABLED": "0"}
    _compress_on("ray")


def _compress_on(engine: str) -> None:
    rows = importlib.import_module("reduset.data").partitions([X[: len(X) // 2], X[len(X) // 2 :]], engine)
    if reduset.compress(rows, reduset.Gaussian(1.0), size=5, rng=0).size != 5:
        raise RuntimeError(f"compress: not 5 atoms from partitions on {engine}")


def gpu() -> None:
    """A CUDA device is asked for; that there is none is no fault of an installation."""
    try:
        reduset.set_device("cuda")
    except RuntimeError as error:
        if installed("gpu"):
            print(f"     gpu: {error}")
        else:
            raise


DOORS = {
    door.__name__: door
    for door in (command, tables, fcs, excel, gates, h5ad, anndata, images, report, plots, onnx, safetensors, dask, ray, gpu)
}


def requirements(extra: str) -> list[str]:
    """The names of what an extra brings, as the installed metadata say it."""
    listed = [each.partition(";") for each in importlib.metadata.requires("reduset") or []]
    return [re.split(r"[\s\[<>=!~(]", asked)[0] for asked, _, when in listed if re.search(rf"extra == ['\"]{extra}['\"]", when)]


def installed(extra: str) -> bool:
    """Whether all that an extra brings is there."""
    there = {re.sub(r"[-_.]+", "-", found.name).lower() for found in importlib.metadata.distributions() if found.name}
    return {re.sub(r"[-_.]+", "-", name).lower() for name in requirements(extra)} <= there


def fault_of_import(package: str) -> str | None:
    """What is wrong with a public package: nothing if all its names are there, or if one sentence says which extra brings them."""
    try:
        module = importlib.import_module(f"reduset.{package}" if package else "reduset")
        missing = [name for name in getattr(module, "__all__", ()) if not hasattr(module, name)]
    except ImportError as error:
        extra = named(str(error))
        return None if extra and not installed(extra) else f"reduset.{package}: {error!r}"
    return f"reduset.{package}: no {', '.join(missing)}" if missing else None


def named(message: str) -> str | None:
    """The extra that one sentence names, None where it is no such sentence."""
    found = re.findall(r"pip install ['\"]reduset\[(\w+)\]['\"]", message)
    return found[0] if len(found) == 1 and len(message.splitlines()) == 1 else None


def fault_of_door(extra: str, required: bool) -> str | None:
    """What is wrong with an extra's door."""
    there = installed(extra)
    if required and not there:
        return f"{extra}: asked for, and not all of {', '.join(requirements(extra))} is installed"
    try:
        DOORS[extra]()
    except Exception as error:
        if there:
            return f"{extra}: installed, and {error!r}"
        return None if named(str(error)) == extra else f"{extra}: absent, and the error does not name it in one sentence: {error!r}"
    return None if there else f"{extra}: absent, and its door opened"


def main(asked: list[str]) -> int:
    """Try everything; the number of faults."""
    packages = ["", *(name for name in dir(reduset) if name not in reduset.__all__ and not name.startswith("_"))]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        faults = [fault_of_import(package) for package in packages] + [fault_of_door(extra, extra in asked) for extra in DOORS]
        os.chdir(Path(folder).parent)
    opened = [extra for extra in DOORS if installed(extra)]
    print(f"{reduset.__file__}: {len(packages)} packages imported; open: {', '.join(opened)}")
    for fault in filter(None, faults):
        print(f"FAULT {fault}")
    return sum(fault is not None for fault in faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
