"""Columns of lists as bags: an entry is a bag, a list of points; a point is a list of numbers, of fixed length or not, or a struct.

From Arrow (an array, or a chunked one), pandas and polars, without importing them: an object says itself where it comes from.
All points of a column lie in one buffer, and the offsets of its lists cut that into bags; no loop over points, except where pandas
holds Python objects. Missing bags, points and numbers are refused, with the bag's number.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]


def from_column(value: Any) -> tuple[list[Numbers], list[str] | None] | None:
    """The bags of a column of lists, and the names of the columns of points that are structs; None for what is no such column."""
    home = type(value).__module__.split(".")[0]
    if home == "pyarrow" and hasattr(value, "type"):
        return _from_chunks(_chunks(value))
    if home == "polars" and hasattr(value, "dtype"):
        return _from_polars(value)
    if home == "pandas" and hasattr(value, "array"):
        if hasattr(value.dtype, "pyarrow_dtype"):
            return _from_chunks(_chunks(value.array.__arrow_array__()))
        return _from_objects(value)
    return None


def _chunks(value: Any) -> list[Any]:
    if not hasattr(value, "chunks"):
        return [value]
    return list(value.chunks) or [value.combine_chunks()]


def _is_list(kind: Any) -> bool:
    return str(kind).startswith(("list<", "large_list<", "fixed_size_list<"))


def _from_chunks(chunks: list[Any]) -> tuple[list[Numbers], list[str] | None]:
    if not _is_list(chunks[0].type):
        raise TypeError(f"bags must be a column of lists of points, got the Arrow type {chunks[0].type}")
    parts: list[Numbers] = []
    columns = None
    for chunk in chunks:
        first = len(parts)
        _no_nulls(chunk, np.arange(len(chunk) + 1), first, "be missing (null)")
        starts = np.append(0, np.cumsum(_lengths(chunk)))
        points = chunk.flatten()
        _no_nulls(points, starts, first, "hold missing points (null)")
        if str(points.type).startswith("struct<"):
            columns = [points.type.field(k).name for k in range(points.type.num_fields)]
            fields = points.flatten()
            for field in fields:
                _no_nulls(field, starts, first, "hold missing numbers (null)")
            table = np.column_stack([_values(field) for field in fields]) if fields else np.empty((len(points), 0))
            parts.extend(np.split(table, starts[1:-1]) if len(chunk) else [])
        elif _is_list(points.type):
            lengths = _lengths(points)
            inner = np.append(0, np.cumsum(lengths))
            flat = points.flatten()
            _no_nulls(flat, inner[starts], first, "hold missing numbers (null)")
            parts.extend(_cut(_values(flat), lengths, starts, first))
        else:
            raise TypeError(f"bags must hold lists of points, a list or struct of numbers each; got the Arrow type {chunk.type}")
    return parts, columns


def _from_polars(value: Any) -> tuple[list[Numbers], list[str] | None] | None:
    kind = str(value.dtype)
    if kind.startswith("Array("):
        value = value.arr.to_list()
    elif not kind.startswith("List("):
        return None
    _no_nulls(value, np.arange(len(value) + 1), 0, "be missing (null)")
    lengths = value.list.len().to_numpy()
    starts = np.append(0, np.cumsum(lengths, dtype=np.int64))
    points = value.filter(lengths > 0).explode()  # an empty list may come out as a null
    _no_nulls(points, starts, 0, "hold missing points (null)")
    kind = str(points.dtype)
    if kind.startswith("Struct("):
        table = points.struct.unnest()
        for name in table.columns:
            _no_nulls(table[name], starts, 0, "hold missing numbers (null)")
        return np.split(table.to_numpy(), starts[1:-1]) if len(value) else [], list(table.columns)
    if kind.startswith("Array("):
        points = points.arr.to_list()
    elif not kind.startswith("List("):
        raise TypeError(f"bags must hold lists of points, a list or struct of numbers each; got the polars type {value.dtype}")
    widths = points.list.len().to_numpy().astype(np.int64)
    flat = points.filter(widths > 0).explode()
    _no_nulls(flat, np.append(0, np.cumsum(widths))[starts], 0, "hold missing numbers (null)")
    return _cut(flat.to_numpy(), widths, starts, 0), None


def _lengths(lists: Any) -> NDArray[np.int64]:
    return np.asarray(lists.value_lengths().to_numpy(zero_copy_only=False), np.int64)


def _values(flat: Any) -> Numbers:
    return np.asarray(flat.to_numpy(zero_copy_only=False))


def _cut(flat: Numbers, widths: NDArray[np.int64], starts: NDArray[np.int64], first: int) -> list[Numbers]:
    """(n, d) bags from all numbers in a row, the numbers a point, and the points where bags start."""
    if len(widths) and (widths == widths[0]).all():
        return np.split(flat.reshape(len(widths), widths[0]), starts[1:-1])
    ends = np.append(0, np.cumsum(widths))
    parts = []
    for k, (a, b) in enumerate(pairwise(starts)):
        if (widths[a:b] != widths[a:b][:1]).any():
            odd = a + int(np.argmax(widths[a:b] != widths[a]))
            raise ValueError(
                f"bags[{first + k}] must hold points of one length, "
                f"got {widths[a]} numbers in row 0 and {widths[odd]} in row {odd - a}"
            )
        parts.append(flat[ends[a] : ends[b]].reshape(b - a, widths[a] if b > a else 0))
    return parts


def _no_nulls(array: Any, starts: NDArray[np.int64], first: int, what: str) -> None:
    """Refuse nulls, naming the bag: that whose entries of the array lie between two of the ``starts``."""
    count = array.null_count
    if count() if callable(count) else count:
        missing = array.is_null().to_numpy(**({} if callable(count) else {"zero_copy_only": False}))
        _refuse_null(first + int(np.searchsorted(starts, int(np.argmax(missing)), side="right")) - 1, what)


def _refuse_null(bag: int, what: str) -> NoReturn:
    raise ValueError(f"bags[{bag}] must not {what}; drop or fill such entries first")


def _from_objects(cells: Any) -> tuple[list[Any], list[str] | None]:
    """Bags that pandas holds as arrays of arrays or of dicts; others as they are."""
    parts: list[Any] = []
    columns: list[str] | None = None
    for k, cell in enumerate(cells):
        if cell is None or type(cell).__name__ == "NAType" or (isinstance(cell, float) and cell != cell):
            _refuse_null(k, "be missing (null)")
        if not (isinstance(cell, np.ndarray) and cell.dtype == object and cell.ndim == 1 and len(cell)):
            flat_and_empty = isinstance(cell, np.ndarray) and cell.shape == (0,)
            parts.append(cell.reshape(0, 0) if flat_and_empty else cell)
            continue
        if any(point is None for point in cell):
            _refuse_null(k, "hold missing points (null)")
        if isinstance(cell[0], dict):
            columns = list(cell[0]) if columns is None else columns
            if any(list(point) != columns for point in cell):
                raise ValueError(f"bags[{k}] must hold points with the fields {columns}, in that order; got others")
            cell = np.array([list(point.values()) for point in cell])
        else:
            lengths = np.array([len(point) for point in cell])
            cell = _cut(np.concatenate(list(cell)), lengths, np.array([0, len(cell)]), k)[0]
        parts.append(cell)
    return parts, columns
