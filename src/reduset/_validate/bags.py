"""Bags: lists of arrays, mappings by name, columns of lists, and long tables with a label per row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._columns import from_column
from reduset._frames import AnnotatedRows, framed, is_table, table_weights
from reduset._messages import did_you_mean
from reduset._types import Floats
from reduset._validate.arrays import as_numbers, points, require_finite


def bags(
    value: Any,
    sample: Any = None,
    fewest: int = 1,
    dimension: int | None = None,
    columns: list[Any] | None = None,
    by: str = "sample",
    check: Callable[[Any, str], Floats] = points,
) -> tuple[list[Any], list[Floats], list[Any] | None]:
    """The names and the points of each bag, (n, d) with n ≥ 2 and the same d: from a list, a mapping by name, or a long table.

    A column of lists of points (Arrow, pandas, polars) is a list too.
    A table, frame or (n, d) array, comes with ``sample``: the column that says which bag a row belongs to, or a label a row. Last
    come the columns of the bags that are frames, which must be the same for all of these, in the same order; ``dimension`` and
    ``columns`` are those of bags seen before; ``by`` is what the caller's users know ``sample`` as, and
    ``check`` looks at the points of each.
    """
    known = None if columns is None else "the bags that were fitted"
    value = framed(value)
    if sample is not None:
        names, parts, named = _split(value, sample, by)
        if named is not None:
            columns, known = same_columns(named, columns, "bags", known)
        titles = [f"sample {name!r}" for name in names]
    elif isinstance(value, Mapping):
        names, parts = list(value), list(value.values())
        titles = [f"bags[{name!r}]" for name in names]
    else:
        column = from_column(value)
        parts, named = (listed(value, by), None) if column is None else column
        names = list(range(len(parts)))
        if named is not None:
            columns, known = same_columns(named, columns, "bags", known)
        titles = [f"bags[{k}]" for k in names]
    if len(parts) < fewest:
        raise ValueError(f"bags must hold at least {fewest} of them, got {len(parts)}")
    checked: list[Floats] = []
    for title, part in zip(titles, parts, strict=True):
        if table_weights(part) is not None:
            raise ValueError(f"{title} is a table with weights, which bags do not have; pass its values to leave them out")
        part = framed(part)
        array = check(part, title)
        if len(array) < 2:
            raise ValueError(f"{title} must hold at least 2 points, got {len(array)}; leave out what is no sample")
        first = f"like {titles[0]}" if dimension is None else "like the bags that were fitted"
        wanted = dimension if dimension is not None else checked[0].shape[1] if checked else array.shape[1]
        if array.shape[1] != wanted:
            raise ValueError(f"{title} must have {wanted} columns {first}, got shape {array.shape}")
        if hasattr(part, "columns"):
            columns, known = same_columns(list(part.columns), columns, title, known)
        checked.append(array)
    return names, checked, columns


def same_columns(mine: list[Any], columns: list[Any] | None, title: str, known: str | None) -> tuple[list[Any], str | None]:
    """The columns of all frames so far, and whose they were: equal columns in another order would be mixed up without a word."""
    if columns is not None and mine != columns:
        way_out = "take them in that order" if sorted(map(repr, mine)) == sorted(map(repr, columns)) else "rename or select them"
        raise ValueError(f"{title} must have the columns {shortened(columns)} like {known}, got {shortened(mine)}; {way_out}")
    return mine, known or title


def shortened(values: list[Any], most: int = 12) -> str:
    """A list for a message, cut where it is long."""
    return f"[{', '.join(map(repr, values[:most]))}{', …' if len(values) > most else ''}]"


def listed(value: Any, by: str) -> list[Any]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"bags must be a list of (n, d) arrays, a mapping of names to them, or a table with {by}=; got {value!r}")
    if hasattr(value, "columns") or (isinstance(value, np.ndarray) and value.ndim != 3):
        raise ValueError(
            f"bags is one table, of shape {getattr(value, 'shape', '?')}; say which sample each row belongs to: "
            f"{by}= a column's name or a label a row. A single bag X is the list [X]"
        )
    return list(value)


def _split(table: Any, sample: Any, by: str) -> tuple[list[Any], list[NDArray[Any]], list[Any] | None]:
    """The rows of a long table by their labels, in the order in which these appear; and its columns, of a frame."""
    framed = hasattr(table, "columns")
    # a tuple may name a column as well as hold a label a row
    named = isinstance(sample, Hashable) and (not isinstance(sample, Sized) or (framed and sample in list(table.columns)))
    if isinstance(sample, str) or (framed and named):
        if not framed:
            raise ValueError(f"{by}={sample!r} names a column, but bags has none; pass an array with a label for every row")
        if is_table(table):
            raise ValueError(f"{by}={sample!r} names a column, but a table has but numbers; read_bags reads a bag a label")
        known = table.obs if isinstance(table, AnnotatedRows) else table  # whose columns are genes
        if sample not in list(known.columns):
            names = list(known.columns)
            hint = did_you_mean(sample, [name for name in names if isinstance(name, str)])
            raise ValueError(f"{by}={sample!r} must be one of the columns {shortened(names)}{hint}")
        labels = known[sample]
        table = table if known is not table else table[[column for column in table.columns if column != sample]]
    else:
        labels = sample
    labels = np.asarray(labels.to_numpy() if hasattr(labels, "to_numpy") else labels)
    array = as_numbers(table, "bags")
    if framed and array.ndim == 2 and array.dtype.kind == "f":
        require_finite(array, "bags", list(table.columns))
    if labels.shape != array.shape[:1]:
        raise ValueError(f"{by} must hold a label for each of the {len(array)} rows, got shape {labels.shape}")
    seen: dict[Any, int] = {}
    codes = np.fromiter((seen.setdefault(label, len(seen)) for label in labels.tolist()), np.int64, len(labels))
    for label in seen:
        if missing(label):
            row = int(np.flatnonzero(codes == seen[label])[0])
            raise ValueError(f"{by} must not be missing, got {label!r} in row {row}; drop such rows")
    order = np.argsort(codes, kind="stable")
    return list(seen), np.split(array[order], np.cumsum(np.bincount(codes))[:-1]), list(table.columns) if framed else None


def missing(label: Any) -> bool:
    """Whether a label is none: None, NaN, or one of pandas' own marks, which neither equal themselves nor differ."""
    return label is None or type(label).__name__ in ("NAType", "NaTType") or bool(label != label)
