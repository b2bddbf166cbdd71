"""The same rows in every format, for tests of the command."""

from __future__ import annotations

from pathlib import Path

import flowio
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet
from PIL import Image

N = 2000

# what each needs beside its name
TABLES: dict[str, list[str]] = {
    "rows.csv": ["--columns", "x,y,z"],
    "rows.tsv": ["--columns", "x,y,z"],
    "rows.parquet": ["--columns", "x", "--columns", "y", "--columns", "z"],
    "rows.feather": ["--columns", "x,y,z"],
    "rows.orc": ["--columns", "x,y,z"],
    "rows.npy": [],
    "rows.npz": ["--key", "X"],
    "rows.fcs": ["--transform", "none"],
    "rows.h5ad": ["--key", "obsm/X_pca"],
}


def rows() -> tuple[np.ndarray, np.ndarray]:
    """(n, 3) points and a label each."""
    rng = np.random.default_rng(0)
    kind = np.where(rng.uniform(size=N) < 0.3, "a", "b")
    return rng.normal(size=(N, 3)) + np.where(kind == "a", 3.0, 0.0)[:, None], kind


def write_all(folder: Path) -> Path:
    """Write every file of `TABLES`, bags and a picture."""
    X, kind = rows()
    table = pa.table({"x": X[:, 0], "kind": kind, "y": X[:, 1], "z": X[:, 2], "z2": X[:, 2] ** 2})
    pa.csv.write_csv(table, folder / "rows.csv")
    pa.csv.write_csv(table, folder / "rows.tsv", pa.csv.WriteOptions(delimiter="\t"))
    pa.parquet.write_table(table, folder / "rows.parquet", row_group_size=300)
    pa.feather.write_feather(table, folder / "rows.feather")
    pa.orc.write_table(table, str(folder / "rows.orc"))
    np.save(folder / "rows.npy", X)
    np.savez(folder / "rows.npz", X=X, other=X[:5])
    with (folder / "rows.fcs").open("wb") as stream:
        flowio.create_fcs(stream, X.astype(np.float32).ravel().tolist(), ["x", "y", "z"])
    with h5py.File(folder / "rows.h5ad", "w") as file:
        file.attrs["encoding-type"] = "anndata"
        file.create_dataset("obsm/X_pca", data=X)
        obs = file.create_group("obs")
        obs.attrs["_index"] = "name"
        obs.attrs["column-order"] = np.array([], dtype=h5py.string_dtype())
        obs.create_dataset("name", data=[f"cell {k}" for k in range(N)])
    (folder / "bags").mkdir()
    rng = np.random.default_rng(1)
    for name, shift in (("a", 0.0), ("b", 0.5), ("c", 3.0)):
        bag = pa.table({key: rng.normal(shift, 1, 300) for key in ("u", "v")})
        pa.csv.write_csv(bag, folder / "bags" / f"{name}.csv")
    picture = np.full((40, 60, 3), (200, 40, 40), np.uint8)
    picture[:, 30:] = (30, 60, 220)
    Image.fromarray(picture).save(folder / "picture.png")
    return folder
