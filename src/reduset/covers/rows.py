"""The rows of a cover: arrays where they are, mapped files, columns of lists in tables, and rows in blocks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine import (
    DevicePoints,
    DeviceRows,
    FetchedRows,
    HostRows,
    LazyCover,
    blocks,
    defining,
    in_blocks,
    on_device,
    rows_in_place,
    sent_rows,
    to_numpy,
    uses_gpu,
)
from reduset.covers.files import MAPPED, array_of, expanded
from reduset.covers.memory import limited, loadable, memory_of, of_reader, require_no_limit
from reduset.covers.parts import RowParts, scratch
from reduset.data import opened
from reduset.io import FileError

METRICS = ("euclidean", "cosine")
MIN_NORM = 1e-15  # rows with a smaller largest entry have no direction in single precision
BLOCK_VALUES, DEVICE_ROWS = 1 << 19, 1 << 16  # values of a block of a pass over the rows, and rows on a GPU
MAX_RADIUS, MAX_ULPS = 1e150, 8
MAX_ABS, MIN_ABS = 1e15, 1e-15  # limits of the largest absolute value: its square fits into single precision


def open_rows(data: Any, column: str | None = None, cosine: bool = False, max_memory: Any = None) -> Any:
    """Checked rows as a `HostRows`, as `FetchedRows` if they are in blocks, or as `DeviceRows` on a GPU, where they may be sent."""
    limit = memory_of(max_memory)
    if isinstance(data, HostRows | DeviceRows | FetchedRows):
        return data if max_memory is None else limited(copy(data), limit, data.loaded)
    with _naming_file(data):
        rows = _rows_of(expanded(data), column, limit)
        if cosine:
            _require_directions(rows)
    return rows


def _rows_of(data: Any, column: str | None, limit: float) -> Any:
    if on_device(data):
        return limited(DeviceRows(require_range(DevicePoints.checked(data, "data"), "data").values), limit)
    values = array_of(data, column, loadable(limit))
    is_mapped = isinstance(values, RowParts | np.memmap)
    loaded = 0 if values is None or is_mapped else values.nbytes
    values = opened(data) if values is None else values
    if isinstance(values, np.memmap) and values.ndim == 2 and values.dtype in MAPPED:
        values = RowParts([values])  # which reads rows in the order of the file
    if in_blocks(values):
        return limited(rows_in_place(require_range(values, "data")), limit)
    if (bits := _bfloat16_bits(values)) is not None:
        values = RowParts([bits], bfloat16=True)
    if _can_be_sent(values) and uses_gpu(values, values):
        require_no_limit(limit)
        rows, largest = sent_rows(values)
        if np.isfinite(largest):
            _check_range(largest, "data")
            return rows
    if is_mapped or isinstance(values, RowParts) or (isinstance(values, np.ndarray) and values.dtype == np.float16):
        if isinstance(values, RowParts) or values.dtype in MAPPED:  # `_validate.points` would copy them
            return limited(HostRows(require_range(_checked(values), "data")), limit, loaded)
        if 8 * values.size > loadable(limit):
            raise ValueError(f"data must hold floating-point numbers where they exceed max_memory, got {values.dtype}")
        loaded = 8 * values.size
    array = _validate.points(values, "data")
    return limited(HostRows(require_range(array if array.dtype.kind == "f" else array.astype(np.float64), "data")), limit, loaded)


def _can_be_sent(values: Any) -> bool:
    return isinstance(values, np.ndarray | RowParts) and values.ndim == 2 and values.dtype.kind == "f" and all(values.shape)


def _bfloat16_bits(values: Any) -> NDArray[np.uint16] | None:
    """The bits of a bfloat16 array of ml_dtypes or torch, not copied."""
    kind = str(getattr(values, "dtype", ""))
    if kind == "torch.bfloat16":
        return np.from_dlpack(values.detach().view(sys.modules["torch"].int16)).view(np.uint16)
    return values.view(np.uint16) if kind == "bfloat16" else None


def held(rows: Any) -> Any:
    """Rows that can be taken in any order. Those in blocks elsewhere are loaded, or copied into a temporary file."""
    if not isinstance(rows, FetchedRows):
        return rows
    limit = rows.max_memory
    values = scratch(rows.rows.shape, rows.rows.dtype, loadable(limit))
    for a, b, part in rows.rows.results(np.array):
        values[a:b] = part
    loaded = 0 if isinstance(values, np.memmap) else values.nbytes
    return limited(HostRows(values if loaded else RowParts([values])), limit, of_reader(rows) + loaded)


def joined(rows: Any, more: Any) -> Any:
    """The rows of two stores, one after the other."""
    values = [to_numpy(each.values) if on_device(each.values) else each.values for each in (rows, more)]
    both = limited(HostRows(RowParts(values)), min(rows.max_memory, more.max_memory))
    both.loaded = rows.loaded + more.loaded
    return both


@contextmanager
def _naming_file(data: Any) -> Iterator[None]:
    """Begin errors about the rows of a file with the name of the file."""
    try:
        yield
    except FileError:
        raise
    except (TypeError, ValueError) as error:
        if not isinstance(data, str | os.PathLike):
            raise
        raise FileError(f"{os.fspath(data)}: {error}") from error


def _checked(array: Any) -> Any:
    """Check rows without copying them: two dimensions, finite values."""
    _validate.points(np.broadcast_to(np.float32(0), array.shape), "data")  # checks the shape
    for a, b in _blocks(array):
        part = array[a:b]
        bad = np.argwhere(~np.isfinite(part))
        if len(bad):
            row, column = bad[0].tolist()
            raise ValueError(
                f"data must be finite, got {part[row, column]} in row {a + row}, column {column}; drop or impute such rows"
            )
    return array


def _blocks(array: Any) -> list[tuple[int, int]]:
    return blocks(len(array), max(1, BLOCK_VALUES // array.shape[1]))


def require_range(array: Any, name: str) -> Any:
    """Raise an error if squares of the values overflow or underflow in single precision."""
    if on_device(array) or in_blocks(array):
        largest = max(-float(array.min()), float(array.max()))
    else:
        largest = max(float(abs(array[a:b]).max()) for a, b in _blocks(array))
    _check_range(largest, name)
    return array


def _check_range(largest: float, name: str) -> None:
    if largest > MAX_ABS or 0 < largest < MIN_ABS:
        raise ValueError(
            f"the largest absolute value of {name} must be between {MIN_ABS:g} and {MAX_ABS:g}, got {largest:g}; rescale {name}"
        )


def row_near_mean(traversal: LazyCover) -> int:
    """The row nearest to the mean of all rows; the lowest row number among ties."""
    rows, cosine = traversal.place, traversal.cosine
    with rows.at_work():
        mean = sum(total for _, total in _in_parts(rows, partial(_sum_of, cosine))) / rows.count
        nearest = [(least, a + k) for a, (least, k) in _in_parts(rows, partial(_nearest_to, mean, cosine))]
    return min(nearest)[1]


def _in_parts(rows: Any, function: Callable[[Any], Any]) -> Iterator[tuple[int, Any]]:
    """The first row of each part of the rows, and the result of a function of the part."""
    if isinstance(rows, FetchedRows):
        yield from ((a, result) for a, _, result in rows.rows.results(function))
        return
    length = max(1, BLOCK_VALUES // rows.dimension) if rows.arrays is np else DEVICE_ROWS
    for a, _, part in rows.parts(length):
        yield a, function(part)


def _sum_of(cosine: bool, rows: Any) -> Any:
    return defining(rows, cosine).sum(axis=0)


def _nearest_to(mean: Any, cosine: bool, rows: Any) -> tuple[float, int]:
    """The smallest squared distance to the mean, and its row."""
    squares = np.square(defining(rows, cosine) - mean).sum(axis=1)
    k = int(squares.argmin())
    return float(squares[k]), k


def _zeros_of(rows: Any) -> tuple[int, int]:
    """The number of rows of zeros, and the first of them."""
    is_zero = abs(rows).max(axis=1) < MIN_NORM
    return int(is_zero.sum()), int(is_zero.argmax())


def _require_directions(rows: Any) -> None:
    """Raise an error for rows of zeros. They have no direction, so their cosine is undefined."""
    found = [(count, a + k) for a, (count, k) in _in_parts(rows, _zeros_of) if count]
    if found:
        zeros, first = sum(count for count, _ in found), found[0][1]
        raise ValueError(
            f"data must not contain rows of zeros with metric='cosine', since they have no direction; {zeros:,} rows do, the first "
            f"is row {first}. Remove them, or use metric='euclidean'"
        )


def start_of(rows: Any, cosine: bool, start: Any) -> Any:
    """(s,) row numbers, or (s, d) points."""
    centres = np.asarray(start.get() if hasattr(start, "get") else start)
    if not centres.size or (centres.ndim == 1 and centres.dtype.kind in "iu"):
        if not centres.size or centres.min() < 0 or centres.max() >= rows.count:
            raise ValueError(f"start must hold row numbers from 0 to {rows.count - 1}, at least one; got {centres.tolist()[:5]}")
        return centres.astype(np.int64)
    points = _validate.points(centres, "start")
    if points.shape[1] != rows.dimension:
        raise ValueError(f"start must have {rows.dimension} columns like the data, or hold row numbers; got shape {points.shape}")
    require_range(points, "start")
    if cosine and (np.abs(points).max(axis=1) < MIN_NORM).any():
        raise ValueError("start must not contain a row of zeros with metric='cosine', since it has no direction; remove it")
    return points.astype(np.float64)


def radius_of(radius: Any) -> float:
    """The checked radius."""
    if isinstance(radius, bool) or not isinstance(radius, Real) or not 0 <= float(radius) < np.inf:
        raise ValueError(f"radius must be a finite distance of at least 0, got {radius!r}")
    return float(radius)


def squared(radius: float, cosine: bool) -> float:
    """The largest squared Euclidean distance that `in_metric` still converts to at most the radius."""
    square = 2.0 * radius if cosine else min(float(radius), MAX_RADIUS) ** 2
    for _ in range(MAX_ULPS):
        larger = float(np.nextafter(square, np.inf))
        if in_metric(np.sqrt(larger), cosine) > radius:
            break
        square = larger
    return square


def in_metric(distance: Any, cosine: bool) -> Any:
    """Convert Euclidean distances to the metric: on the unit sphere ‖x − y‖² = 2(1 − cos)."""
    return np.square(distance) / 2 if cosine else distance
