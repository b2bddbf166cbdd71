"""A small valid file of every kind that is read, by its suffix."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
from PIL import Image

from io_cases import write_fcs, write_h5ad

SUFFIXES = ("csv", "tsv", "csv.gz", "parquet", "feather", "arrows", "orc", "npy", "npz", "h5ad", "fcs", "png", "jpg", "tif")
KEYWORDS = {"$TIMESTEP": "0.1", "$SPILLOVER": "2,FL1-A,FL2-A,1,0.2,0.1,1"}


def _stream(path, table):
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=20)


def _h5ad(path, values):
    sites = {"site": ([0, 1] * (len(values) // 2), ["n", "s"])}
    write_h5ad(path, values, ["g1", "g2", "g3"], {"depth": values[:, 0]}, {"X_pca": values[:, :2]}, sites, "csr")


def write_any(path, count=40, seed=0):
    """Write a file of the kind that its name says; its path."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(count, 3))
    suffix = path.name.split(".", 1)[1]
    table = pa.table(
        {"a": values[:, 0], "b": values[:, 1].astype(np.float32), "k": rng.integers(0, 9, count), "t": ["x", "y"] * (count // 2)}
    )
    lines = "a,b,k,t\n" + "".join(f"{a!r},{b!r},{k},{t}\n" for a, b, k, t in zip(*table.to_pydict().values(), strict=True))
    pixels = Image.fromarray(rng.integers(0, 255, (12, 15, 3)).astype(np.uint8))
    writers = {
        "csv": lambda: path.write_text(lines),
        "tsv": lambda: path.write_text(lines.replace(",", "\t")),
        "csv.gz": lambda: path.write_bytes(gzip.compress(lines.encode(), mtime=0)),
        "parquet": lambda: pq.write_table(table, path, row_group_size=25),
        "feather": lambda: pa.feather.write_feather(table, str(path), chunksize=20),
        "arrows": lambda: _stream(path, table),
        "orc": lambda: pa.orc.write_table(table, str(path), stripe_size=1),
        "npy": lambda: np.save(path, values),
        "npz": lambda: np.savez(path, X=values, w=rng.random(count)),
        "h5ad": lambda: _h5ad(path, values),
        "fcs": lambda: write_fcs(path, rng.integers(0, 999, (count, 3)), ["FL1-A", "FL2-A", "Time"], extra=KEYWORDS),
        **dict.fromkeys(("png", "jpg", "tif"), lambda: pixels.save(path)),
    }
    writers[suffix]()
    return path
