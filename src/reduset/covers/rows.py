"""The rows of a cover: arrays where they are, mapped files, columns of lists in tables, and rows in blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from numbers import Real
from pathlib import Path
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
from reduset.data import has_paths, opened
from reduset.io import FileError, listed, mapped_array, need

METRICS = ("euclidean", "cosine")
BLOCK_ROWS = 1 << 16
MIN_NORM = 1e-15  # rows with a smaller largest entry have no direction in single precision
TABLES = (".parquet", ".feather", ".arrow")
BLOCK_VALUES = 1 << 26  # values checked at a time
MAX_RADIUS, MAX_ULPS = 1e150, 8
MAX_ABS, MIN_ABS = 1e15, 1e-15  # limits of the largest absolute value: its square fits into single precision


def open_rows(data: Any, column: str | None = None, cosine: bool = False) -> Any:
    """Checked rows as a `HostRows`, as `FetchedRows` if they are in blocks, or as `DeviceRows` on a GPU, where they may be sent."""
    if isinstance(data, HostRows | DeviceRows | FetchedRows):
        return data
    with _naming_file(data):
        rows = _rows_of(data, column)
        if cosine:
            _require_directions(rows)
    return rows


def _rows_of(data: Any, column: str | None) -> Any:
    if on_device(data):
        return DeviceRows(require_range(DevicePoints.checked(data, "data"), "data").values)
    paths = _paths_of_arrays(data, column)
    values = np.concatenate([_opened(path, column) for path in paths]) if len(paths) > 1 else data
    values = opened(_opened(paths[0], column) if len(paths) == 1 else values)
    if in_blocks(values):
        return rows_in_place(require_range(values, "data"))
    is_table = isinstance(values, np.ndarray) and values.ndim == 2 and values.dtype.kind == "f" and values.size > 0
    if is_table and uses_gpu(values, values):
        rows, largest = sent_rows(values)
        if np.isfinite(largest):
            _check_range(largest, "data")
            return rows
    half = isinstance(values, np.ndarray) and values.dtype == np.float16  # `_validate.points` would copy it to double precision
    array = _half_points(values) if half else _validate.points(values, "data")
    return HostRows(require_range(array if array.dtype.kind == "f" else array.astype(np.float64), "data"))


def held(rows: Any) -> Any:
    """Rows that can be taken in any order: those in blocks elsewhere are loaded."""
    return HostRows(rows.rows[np.arange(rows.count)]) if isinstance(rows, FetchedRows) else rows


def joined(rows: Any, more: Any) -> Any:
    """The rows of two stores, one after the other."""
    one, other = (to_numpy(each.values if hasattr(each, "values") else each.take(slice(0, each.count))) for each in (rows, more))
    return HostRows(np.concatenate([one, other]))


def _paths_of_arrays(data: Any, column: str | None) -> list[str]:
    """Paths to load: a single file that holds an array, or all files if they have a column of lists."""
    if not has_paths(data):
        return []
    paths = [os.fspath(path) for path in (data if isinstance(data, list | tuple) else [data])]
    if len(paths) == 1 and Path(paths[0]).suffix.lower() in (".npy", *TABLES) and not Path(paths[0]).is_dir():
        return paths
    files = [path for folder in paths for path in (sorted(map(str, Path(folder).iterdir())) if Path(folder).is_dir() else [folder])]
    files = [path for path in files if Path(path).suffix.lower() in TABLES]
    return files if files and (column is not None or _has_lists(files[0])) else []


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


def _half_points(array: NDArray[Any]) -> NDArray[Any]:
    """Check rows in half precision without copying them: two dimensions, finite values."""
    _validate.points(np.broadcast_to(np.float32(0), array.shape), "data")  # checks the shape
    for a, b in _blocks(array):
        bad = np.argwhere(~np.isfinite(array[a:b]))
        if len(bad):
            row, column = a + int(bad[0, 0]), int(bad[0, 1])
            raise ValueError(
                f"data must be finite, got {array[row, column]} in row {row}, column {column}; drop or impute such rows"
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


def _opened(path: str, column: str | None) -> NDArray[Any]:
    """The rows of a file."""
    suffix = Path(path).suffix.lower()
    return mapped_array(path) if suffix == ".npy" else _table_rows(path, suffix, column)


def _table_rows(path: str, suffix: str, column: str | None) -> NDArray[Any]:
    """Rows from a column of lists, or from all numeric columns."""
    arrow = need("reading tables", "pyarrow", "tables")
    with _naming_unreadable(path):
        if suffix == ".parquet":
            names = need("reading tables", "pyarrow.parquet", "tables").read_schema(path).names
            selected = None if column is None else _known(path, column, names)
            table = need("reading tables", "pyarrow.parquet", "tables").read_table(path, columns=selected)
        else:
            table = need("reading tables", "pyarrow.feather", "tables").read_table(path)
            table = table if column is None else table.select(_known(path, column, table.column_names))
    lists = _columns_of_lists(table.schema)
    if len(lists) == 1:
        return _lists(path, lists[0], table.column(lists[0]), arrow)
    if lists:
        raise FileError(f"{path}: has several columns of lists ({listed(lists)}); choose one with column=")
    numbers = [field.name for field in table.schema if arrow.types.is_floating(field.type)]
    numbers = numbers or [
        field.name for field in table.schema if arrow.types.is_integer(field.type)
    ]  # integers only if there are no floats, since they may be row numbers
    if not numbers:
        raise FileError(f"{path}: has neither a column of lists nor a numeric column; its columns are {listed(table.column_names)}")
    columns = [np.asarray(table.column(name).to_numpy()) for name in numbers]
    return np.column_stack([values if values.dtype.kind == "f" else values.astype(np.float64) for values in columns])


def _has_lists(path: str) -> bool:
    """Whether a table has a column of lists."""
    need("reading tables", "pyarrow", "tables")
    dataset = need("reading tables", "pyarrow.dataset", "tables")
    with _naming_unreadable(path):
        return bool(
            _columns_of_lists(dataset.dataset(path, format="parquet" if path.lower().endswith(".parquet") else "feather").schema)
        )


@contextmanager
def _naming_unreadable(path: str) -> Iterator[None]:
    arrow = need("reading tables", "pyarrow", "tables")
    try:
        yield
    except (OSError, arrow.ArrowException) as error:
        raise FileError(f"{path}: cannot be read ({str(error).splitlines()[0]})") from error


def _columns_of_lists(schema: Any) -> list[str]:
    types = need("reading tables", "pyarrow", "tables").types
    names = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    kinds = [getattr(types, name) for name in names if hasattr(types, name)]
    return [field.name for field in schema if any(is_one(field.type) for is_one in kinds)]


def _known(path: str, column: str, names: list[str]) -> list[str]:
    if column not in names:
        raise FileError(f"{path}: has no column {column!r}; its columns are {listed(names)}")
    return [column]


def _lists(path: str, name: str, column: Any, arrow: Any) -> NDArray[Any]:
    """(n, d) array from a column of lists of equal length."""
    parts = []
    for chunk in column.chunks:
        lengths = np.unique(np.asarray(arrow.compute.list_value_length(chunk).fill_null(-1)))
        if len(lengths) > 1 or (len(lengths) and lengths[0] < 1):
            raise FileError(f"{path}: the lists of {name!r} must have equal lengths, got {listed(map(str, lengths.tolist()))}")
        flat = chunk.flatten()
        if flat.null_count or not arrow.types.is_floating(flat.type):
            raise FileError(
                f"{path}: the lists of {name!r} must hold floating-point values without missing entries, got {flat.type}"
            )
        parts.append(np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(len(chunk), -1))
    widths = {part.shape[1] for part in parts if len(part)}
    if len(widths) != 1:
        raise FileError(f"{path}: the lists of {name!r} must have equal lengths, got {listed(map(str, sorted(widths))) or 'none'}")
    return np.concatenate([part for part in parts if len(part)])


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
    for a, _, part in rows.parts(BLOCK_ROWS):
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
