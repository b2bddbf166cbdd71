"""Where rows are: an array in memory, a file that is mapped, a table of a file, or an array on a GPU."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine import DevicePoints, DeviceRows, HostRows, blocks, on_device
from reduset.io.arrays import mapped_array
from reduset.io.guard import need
from reduset.io.table import FileError, listed

TABLES = (".parquet", ".feather", ".arrow")
BLOCK = 1 << 26  # numbers at a time
LARGEST, SMALLEST = 1e15, 1e-15  # of all numbers: their squares are to have room in single precision


def row_place(E: Any, column: str | None = None) -> Any:
    """Rows, looked at by the processor or by the GPU that they are on."""
    if on_device(E):
        return DeviceRows(within(DevicePoints.checked(E, "E"), "E").values)
    values = _opened(os.fspath(E), column) if isinstance(E, str | os.PathLike) else E
    half = isinstance(values, np.ndarray) and values.dtype == np.float16  # which others would copy
    array = _half_points(values) if half else _validate.points(values, "E")
    return HostRows(within(array if array.dtype.kind == "f" else array.astype(np.float64), "E"))


def _half_points(array: NDArray[Any]) -> NDArray[Any]:
    """Rows in half precision, as they are: finite numbers in two dimensions."""
    _validate.points(np.broadcast_to(np.float32(0), array.shape), "E")  # its shape
    for a, b in _blocks(array):
        bad = np.argwhere(~np.isfinite(array[a:b]))
        if len(bad):
            row, column = a + int(bad[0, 0]), int(bad[0, 1])
            raise ValueError(f"E must be finite, got {array[row, column]} in row {row}, column {column}; drop or impute such rows")
    return array


def _blocks(array: Any) -> list[tuple[int, int]]:
    return blocks(len(array), max(1, BLOCK // array.shape[1]))


def within(array: Any, name: str) -> Any:
    """Refuse numbers whose squares single precision has no room for."""
    if on_device(array):
        largest = max(-float(array.min()), float(array.max()))
    else:
        largest = max(float(abs(array[a:b]).max()) for a, b in _blocks(array))
    if largest > LARGEST or 0 < largest < SMALLEST:
        raise ValueError(
            f"{name} must have its largest number between {SMALLEST:g} and {LARGEST:g} in size, got {largest:g}; rescale it"
        )
    return array


def _opened(path: str, column: str | None) -> NDArray[Any]:
    """The rows of a file."""
    suffix = Path(path).suffix.lower()
    if suffix == ".npy":
        return mapped_array(path)
    if suffix in TABLES:
        return _table_rows(path, suffix, column)
    raise FileError(f"{path}: must end in {listed(['.npy', *TABLES])}, got {suffix or 'no ending'}; others can be read first")


def _table_rows(path: str, suffix: str, column: str | None) -> NDArray[Any]:
    """A column of lists as rows, or all columns of numbers."""
    arrow = need("reading tables", "pyarrow", "tables")
    try:
        if suffix == ".parquet":
            names = need("reading tables", "pyarrow.parquet", "tables").read_schema(path).names
            wanted = None if column is None else _known(path, column, names)
            table = need("reading tables", "pyarrow.parquet", "tables").read_table(path, columns=wanted)
        else:
            table = need("reading tables", "pyarrow.feather", "tables").read_table(path)
            table = table if column is None else table.select(_known(path, column, table.column_names))
    except (OSError, arrow.ArrowException) as error:
        raise FileError(f"{path}: cannot be read ({str(error).splitlines()[0]})") from error
    lists = [field.name for field in table.schema if any(is_one(field.type) for is_one in _kinds_of_lists(arrow.types))]
    if len(lists) == 1:
        return _lists(path, lists[0], table.column(lists[0]), arrow)
    if lists:
        raise FileError(f"{path}: has several columns of lists, say which (column=): {listed(lists)}")
    numbers = [field.name for field in table.schema if arrow.types.is_floating(field.type)]
    numbers = numbers or [
        field.name for field in table.schema if arrow.types.is_integer(field.type)
    ]  # else they are numbers of rows
    if not numbers:
        raise FileError(f"{path}: has neither a column of lists nor of numbers; it has {listed(table.column_names)}")
    columns = [np.asarray(table.column(name).to_numpy()) for name in numbers]
    return np.column_stack([each if each.dtype.kind == "f" else each.astype(np.float64) for each in columns])


def _kinds_of_lists(types: Any) -> list[Any]:
    names = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    return [getattr(types, name) for name in names if hasattr(types, name)]


def _known(path: str, column: str, names: list[str]) -> list[str]:
    if column not in names:
        raise FileError(f"{path}: has no column {column!r}; it has {listed(names)}")
    return [column]


def _lists(path: str, name: str, column: Any, arrow: Any) -> NDArray[Any]:
    """A column of lists of one length as rows."""
    parts = []
    for chunk in column.chunks:
        lengths = np.unique(np.asarray(arrow.compute.list_value_length(chunk).fill_null(-1)))
        if len(lengths) > 1 or (len(lengths) and lengths[0] < 1):
            raise FileError(f"{path}: the lists of {name!r} must be of one length, got {listed(map(str, lengths.tolist()))}")
        flat = chunk.flatten()
        if flat.null_count or not arrow.types.is_floating(flat.type):
            raise FileError(f"{path}: the lists of {name!r} must hold floating numbers and none missing, got {flat.type}")
        parts.append(np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(len(chunk), -1))
    widths = {part.shape[1] for part in parts if len(part)}
    if len(widths) != 1:
        raise FileError(f"{path}: the lists of {name!r} must be of one length, got {listed(map(str, sorted(widths))) or 'none'}")
    return np.concatenate([part for part in parts if len(part)])
