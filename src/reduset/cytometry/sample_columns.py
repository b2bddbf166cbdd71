"""The table of samples as columns by name: from a dict of columns, or a frame of pandas, polars or Arrow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from reduset._frames import framed
from reduset._validate import missing

Columns = dict[str, tuple[Any, ...]]
SAMPLE_ID = "sample_id"


def columns_of(samples: Any, name: str = "samples") -> Columns:
    """Columns of one length, None where an entry is missing.

    The index of a pandas frame is a column too, unless it only counts rows: under its own name, or as `sample_id`.
    """
    samples = framed(samples)
    if isinstance(samples, Mapping):
        columns = {str(key): _entries(value, key, name) for key, value in samples.items()}
    elif hasattr(samples, "columns") and hasattr(samples, "__getitem__"):
        columns = {str(key): _entries(samples[key].to_list(), key, name) for key in list(samples.columns)}
        columns = _index(samples, name) | columns
    else:
        raise TypeError(f"{name} must be a dict of columns, or a frame; got {type(samples).__name__}")
    lengths = {key: len(column) for key, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{name} must have columns of one length, got {lengths}")
    if not columns or not next(iter(lengths.values())):
        raise ValueError(f"{name} must hold at least one row, got none; leave it out where there is no table")
    return columns


def _entries(column: Any, key: Any, name: str) -> tuple[Any, ...]:
    if isinstance(column, str | bytes) or not isinstance(column, Iterable):
        raise TypeError(f"{name}[{key!r}] must hold one entry a sample, got {column!r}")
    plain = column.tolist() if hasattr(column, "tolist") else list(column)
    return tuple(None if missing(entry) else entry for entry in plain)


def _index(frame: Any, name: str) -> Columns:
    """What the index of a pandas frame says of its rows, if anything."""
    index = getattr(frame, "index", None)
    if index is None or not hasattr(index, "names") or len(index.names) != 1 or type(index).__name__ == "RangeIndex":
        return {}
    entries = _entries(index, "index", name)
    if index.name is None and not all(isinstance(entry, str) for entry in entries):
        return {}  # numbers of rows, some of which were left out
    return {SAMPLE_ID if index.name is None else str(index.name): entries}


def as_text(value: Any) -> str:
    """An entry as text, as a table shows it: whole numbers without a point, dates without midnight."""
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.15g}"
    if hasattr(value, "isoformat"):
        return str(value.isoformat()).removesuffix("T00:00:00").replace("T", " ")
    return str(value).strip()
