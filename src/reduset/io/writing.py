"""Tables and weighted rows as files: columns, and weights next to them for any estimator with ``sample_weight``."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reduset._types import PointsLike, WeightsLike
from reduset._validate import weights as checked_weights
from reduset.io.encoding import decoded
from reduset.io.guard import need, path_text, suffix_of, write_file
from reduset.io.registry import format_by_suffix, written_suffixes
from reduset.io.table import FileError, Table

SEPARATORS = {".csv": ",", ".tsv": "\t"}


def write_rows(
    path: Any,
    columns: Table | Sequence[str],
    values: PointsLike,
    weights: WeightsLike = None,
    labels: Mapping[str, Any] | None = None,
    encoding: Mapping[str, Any] | None = None,
) -> list[str]:
    """Write rows, optionally with weights, as Parquet, Feather, CSV or TSV by the suffix, atomically.

    Parameters
    ----------
    path : target.
    columns : d names, or a table that has them.
    values : (m, d) rows.
    weights : (m,) weights, possibly negative; the column is called "weight", or "sample_weight" if that name is used.
    labels : further columns by name, texts or whole numbers, which come first.
    encoding : encoding of the columns, which are decoded; by default the encoding of the table
        Values between categories, such as centres of several rows, cannot be decoded. Such columns stay encoded, and their names
        are returned.
    """
    name = path_text(path)
    names = list(columns.columns if isinstance(columns, Table) else columns)
    rows = np.asarray(values)
    if rows.ndim != 2 or rows.dtype.kind not in "fiu" or rows.shape[1] != len(names):
        raise ValueError(f"values must be a 2-D array of numbers with {len(names)} columns, got {rows.dtype} of shape {rows.shape}")
    if encoding is None:
        encoding = columns.encoding if isinstance(columns, Table) else {}
    written, still_encoded = decoded(encoding, names, rows)
    content = {**(labels or {}), **written}
    if len(set(names)) < len(names) or len(content) < len(written) + len(labels or {}):
        raise ValueError(f"columns must be different names, got {[*(labels or {}), *names]}")
    if weights is not None:
        title = next(title for title in ("weight", "sample_weight", "_weight") if title not in content)
        content[title] = checked_weights(weights, len(rows), "weights", signed=True)
    arrow = need("writing rows", "pyarrow", "tables")
    arrays = [np.ascontiguousarray(value) if isinstance(value, np.ndarray) else arrow.array(value) for value in content.values()]
    write_table(name, arrow.table(arrays, names=list(content)))
    return still_encoded


def write_table(path: str, table: Any) -> None:
    """Write an Arrow table in the format of the suffix, atomically."""
    suffix, packed = suffix_of(path)
    known = format_by_suffix(path)
    if known is None or known.write is None:
        offered = written_suffixes()
        gzipped = ", ".join(suffix for suffix, other in offered.items() if other.gzipped)
        way_out = f"use {', '.join(offered)} ({gzipped} also with .gz)"
        raise FileError(f"{path}: rows cannot be written as {suffix or 'a file without suffix'}; {way_out}")
    write = known.write

    def fill(stream: Any) -> None:
        if not packed:
            write(stream, table)
            return
        arrow = need("writing rows", "pyarrow", "tables")
        # a duplicate, because pyarrow closes the file that it writes to
        with open(os.dup(stream.fileno()), "wb") as duplicate, arrow.CompressedOutputStream(duplicate, "gzip") as compressed:
            write(compressed, table)

    write_file(path, fill)


def write_text(path: str, table: Any, suffix: str) -> None:
    """Write columns of text as CSV or TSV, atomically, with quotes only where necessary."""

    def fill(stream: Any) -> None:
        text = io.TextIOWrapper(stream, "utf-8", newline="")
        lines = csv.writer(text, delimiter=SEPARATORS[suffix], lineterminator="\n")
        lines.writerow(table.column_names)
        for batch in table.to_batches():
            lines.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        text.flush()
        text.detach()

    write_file(path, fill)
