"""Weighted rows as a file that any estimator with ``sample_weight`` can take: the columns, and the weights beside them."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from reduset._validate import points
from reduset._validate import weights as checked_weights
from reduset.archive import write_whole
from reduset.io.formats import SUFFIXES, named
from reduset.io.guard import need
from reduset.io.table import FileError, Table, one_line

WRITTEN = ".parquet, .feather, .arrow, .csv, .tsv (the last two also with .gz)"


def write_rows(path: Any, table_or_columns: Table | Sequence[str], values: Any, weights: Any) -> None:
    """Write rows and weights as Parquet, Feather, CSV or TSV, by the suffix; the file appears whole or not at all.

    Args:
        path: where to.
        table_or_columns: d names, or a table that has them.
        values: (m, d) rows.
        weights: (m,), of either sign; the column is called "weight", or "sample_weight" where that is taken.
    """
    name = named(path)
    columns = list(table_or_columns.columns if isinstance(table_or_columns, Table) else table_or_columns)
    rows = points(values, "values", None)
    masses = checked_weights(weights, len(rows), "weights", signed=True)
    if len(columns) != rows.shape[1] or len(set(columns)) < len(columns):
        raise ValueError(f"columns must be {rows.shape[1]} different names, one a column of values; got {columns}")
    arrow = need("pyarrow", "writing rows")
    mass = next(title for title in ("weight", "sample_weight", "_weight") if title not in columns)
    table = arrow.table([np.ascontiguousarray(column) for column in rows.T] + [masses], names=[*columns, mass])
    write_table(name, table)


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
