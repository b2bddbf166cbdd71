"""Weighted rows as a file that any estimator with ``sample_weight`` can take: the columns, and the weights beside them."""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reduset._archive import write_whole
from reduset._validate import weights as checked_weights
from reduset.io.formats import SUFFIXES, named
from reduset.io.guard import need
from reduset.io.table import FileError, Table, one_line

WRITTEN = ".parquet, .feather, .arrow, .csv, .tsv (the last two also with .gz)"


def write_rows(
    path: Any, columns: Table | Sequence[str], values: Any, weights: Any = None, labels: Mapping[str, Any] | None = None
) -> None:
    """Write rows, with weights or without, as Parquet, Feather, CSV or TSV, by the suffix; it appears whole or not at all.

    Parameters
    ----------
    path : where to.
    columns : d names, or a table that has them.
    values : (m, d) rows.
    weights : (m,), of either sign; the column is called "weight", or "sample_weight" where that is taken.
    labels : further columns by name, texts or whole numbers, which come first.
    """
    name = named(path)
    names = list(columns.columns if isinstance(columns, Table) else columns)
    rows = np.asarray(values)
    if rows.ndim != 2 or rows.dtype.kind not in "fiu" or rows.shape[1] != len(names):
        raise ValueError(f"values must be a 2-D array of numbers with {len(names)} columns, got {rows.dtype} of shape {rows.shape}")
    found = {**(labels or {}), **dict(zip(names, rows.T, strict=True))}
    if len(found) < len(names) + len(labels or {}):
        raise ValueError(f"columns must be different names, got {[*(labels or {}), *names]}")
    if weights is not None:
        mass = next(title for title in ("weight", "sample_weight", "_weight") if title not in found)
        found[mass] = checked_weights(weights, len(rows), "weights", signed=True)
    arrow = need("pyarrow", "writing rows")
    arrays = [np.ascontiguousarray(value) if isinstance(value, np.ndarray) else arrow.array(value) for value in found.values()]
    write_table(name, arrow.table(arrays, names=list(found)))


def write_table(path: str, table: Any) -> None:
    """Write an Arrow table in the format of the suffix."""
    packed = path.lower().endswith(".gz")
    suffix = os.path.splitext(path.lower().removesuffix(".gz"))[1]
    kind = SUFFIXES.get(suffix)
    if kind not in ("csv", "tsv", "parquet", "arrow") or (packed and kind not in ("csv", "tsv")):
        raise FileError(f"{path}: rows cannot be written as {suffix or 'a file without suffix'}; use {WRITTEN}")
    if os.path.isdir(path):
        raise FileError(f"{path}: is a folder; name a file in it")
    try:
        write_whole(path, lambda stream: _fill(stream, table, kind, packed))
    except FileNotFoundError as error:
        raise FileError(f"{path}: cannot be written, for there is no folder {os.path.dirname(path)}") from error
    except OSError as error:
        raise FileError(f"{path}: cannot be written ({one_line(error)}); nothing was left behind") from error


def _fill(stream: Any, table: Any, kind: str, packed: bool) -> None:
    arrow = need("pyarrow", "writing rows")
    if kind == "parquet":
        need("pyarrow.parquet", "writing Parquet").write_table(table, stream, compression="zstd")
    elif kind == "arrow":
        with arrow.ipc.new_file(stream, table.schema) as writer:
            writer.write_table(table)
    else:
        csv = need("pyarrow.csv", "writing CSV")
        options = csv.WriteOptions(delimiter="\t" if kind == "tsv" else ",")
        if packed:
            with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as squeezed:
                csv.write_csv(table, squeezed, options)
        else:
            csv.write_csv(table, stream, options)
