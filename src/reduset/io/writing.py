"""Weighted rows as a file that any estimator with ``sample_weight`` can take: the columns, and the weights beside them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import RawIOBase
from typing import Any

import numpy as np

from reduset._types import PointsLike, WeightsLike
from reduset._validate import weights as checked_weights
from reduset.io.encoding import undo
from reduset.io.guard import need
from reduset.io.paths import path_text, suffix_of, write_file
from reduset.io.registry import format_by_suffix, written_suffixes
from reduset.io.table import FileError, Table


def write_rows(
    path: Any,
    columns: Table | Sequence[str],
    values: PointsLike,
    weights: WeightsLike = None,
    labels: Mapping[str, Any] | None = None,
    encoding: Mapping[str, Any] | None = None,
) -> list[str]:
    """Write rows, with weights or without, as Parquet, Feather, CSV or TSV, by the suffix; it appears whole or not at all.

    Parameters
    ----------
    path : where to.
    columns : d names, or a table that has them.
    values : (m, d) rows.
    weights : (m,), of either sign; the column is called "weight", or "sample_weight" where that is taken.
    labels : further columns by name, texts or whole numbers, which come first.
    encoding : how columns were encoded, that of the table if nothing is said. They are written as they were before, rows being
        rows; where numbers lie between categories, as centres of several rows do, the encoded columns are written, and returned
        is what was encoded so.
    """
    name = path_text(path)
    names = list(columns.columns if isinstance(columns, Table) else columns)
    rows = np.asarray(values)
    if rows.ndim != 2 or rows.dtype.kind not in "fiu" or rows.shape[1] != len(names):
        raise ValueError(f"values must be a 2-D array of numbers with {len(names)} columns, got {rows.dtype} of shape {rows.shape}")
    if encoding is None:
        encoding = columns.encoding if isinstance(columns, Table) else {}
    written, encoded = undo(encoding, names, rows)
    found = {**(labels or {}), **written}
    if len(set(names)) < len(names) or len(found) < len(written) + len(labels or {}):
        raise ValueError(f"columns must be different names, got {[*(labels or {}), *names]}")
    if weights is not None:
        mass = next(title for title in ("weight", "sample_weight", "_weight") if title not in found)
        found[mass] = checked_weights(weights, len(rows), "weights", signed=True)
    arrow = need("writing rows", "pyarrow", "tables")
    arrays = [np.ascontiguousarray(value) if isinstance(value, np.ndarray) else arrow.array(value) for value in found.values()]
    write_table(name, arrow.table(arrays, names=list(found)))
    return encoded


def write_table(path: str, table: Any) -> None:
    """Write an Arrow table in the format of the suffix."""
    suffix, packed = suffix_of(path)
    kind = format_by_suffix(path)
    if kind is None or kind.write is None:
        offered = written_suffixes()
        gzipped = ", ".join(suffix for suffix, each in offered.items() if each.gzipped)
        way_out = f"use {', '.join(offered)} ({gzipped} also with .gz)"
        raise FileError(f"{path}: rows cannot be written as {suffix or 'a file without suffix'}; {way_out}")
    fill = partial(_packed, kind.write) if packed else kind.write
    write_file(path, lambda stream: fill(stream, table))


def _packed(fill: Callable[[Any, Any], None], stream: Any, table: Any) -> None:
    squeezed = _Squeezed(stream)
    fill(squeezed, table)
    squeezed.finish()


class _Squeezed(RawIOBase):
    """A stream packed by gzip, without a time, so that the same rows give the same bytes.

    Python's own GzipFile keeps bytes that a full disk did not take, and from Python 3.14 on complains on the terminal when it is
    collected.
    """

    def __init__(self, stream: Any) -> None:
        self._stream, self._packer = stream, zlib.compressobj(level=9, wbits=zlib.MAX_WBITS | 16)

    def writable(self) -> bool:
        return True

    def write(self, block: Any) -> int:
        self._stream.write(self._packer.compress(block))
        return len(block)

    def finish(self) -> None:
        """Write what is left, once all is said."""
        self._stream.write(self._packer.flush())
