"""Points in main memory: arrays, frames, tables and sparse matrices of finite numbers, and integers that float64 merges."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine import require_cpu, row_blocks
from reduset._frames import framed, is_annotated, is_sparse, is_table, names_of, odd_column, table_weights
from reduset._messages import printable, warn
from reduset._types import Floats

MAX_ENTRY = 60  # characters of an entry in a message
MAX_COORDINATE = 1e150  # squares of smaller coordinates are finite
MAX_ROWS, MIN_COLUMNS = 20, 50  # of an array that looks transposed; columns per squared row
LARGEST_EXACT = 2**53  # float64 represents all smaller integers
LARGEST = 10**300
INTEGERS = ("int64", "uint64", "int128", "uint128", "object")  # types of columns with large integers, in small letters
SUBTRACT = "subtract the smallest value first, while they are integers"
WAY_OUT = "encode or drop such columns"


def as_numbers(value: Any, name: str) -> NDArray[Any]:
    """A numeric array. float32, float64 and integers are not copied; other types are converted or raise an error."""
    require_cpu(value, name)
    value, is_frame = (value, False) if type(value) is np.ndarray else _unpacked(value, name)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array of numbers: {error}") from error
    if array.dtype.kind == "c":
        raise TypeError(f"{name} must be real, got {array.dtype}; pass its real and imaginary parts as columns")
    if array.dtype.kind == "O":
        try:
            if any(isinstance(item, str | bytes) for item in array.flat):
                raise TypeError("text")
            objects, array = array, array.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise TypeError(f"{name} must hold numbers, got other objects ({error}); {WAY_OUT}") from error
        if objects.ndim == 2 and not is_frame:
            _require_distinct(objects, name)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold numbers, got dtype {array.dtype}; {WAY_OUT}")
    if array.dtype.kind in "fb" and array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    return array


def _unpacked(value: Any, name: str) -> tuple[Any, bool]:
    """The values of a frame, or another object that NumPy can read, and whether it was a frame."""
    if is_sparse(value):
        raise TypeError(
            f"{name} must be dense, got a sparse matrix of shape {value.shape}; pass {name}.toarray() if it fits in memory, or few "
            f"columns of it: sklearn.decomposition.TruncatedSVD(50).fit_transform({name})"
        )
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} must not be a masked array; fill it ({name}.filled(...)) or drop the masked rows first")
    value = framed(value)
    if _is_frame(value):
        _require_numbers(value, name)
        _require_distinct_columns(value, name)
        return _values(value), True
    _require_array_like(value, name)
    return value, False


def _is_frame(value: Any) -> bool:
    return hasattr(value, "to_numpy") and not isinstance(value, np.ndarray)


def _require_numbers(frame: Any, name: str) -> None:
    """Raise an error that names the first column of a frame with text, dates, lists or the like."""
    odd = odd_column(frame)
    if odd is not None:
        entry = " ".join(repr(odd[1]).split())
        entry = entry if len(entry) <= MAX_ENTRY else entry[: MAX_ENTRY - 1] + "…"
        raise TypeError(
            f"{name} must hold numbers, column {odd[0]!r} holds {entry}; {WAY_OUT}: "
            f"table = reduset.io.as_table({name}, encode='auto'), and as_table(other, encode=table.encoding) for later frames"
        )


def _values(frame: Any) -> Any:
    """The values of a frame, NaN for missing ones of pandas' nullable columns."""
    values = frame.to_numpy()
    if values.dtype.kind == "O" and any(type(item).__name__ == "NAType" for item in values.flat):
        return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _require_array_like(value: Any, name: str) -> None:
    """Raise an error for an object that NumPy would read row by row without success."""
    is_known = isinstance(value, numbers.Number | str | bytes | Sequence | memoryview) or value is None
    if is_known or any(hasattr(value, part) for part in ("__array__", "__array_interface__", "__array_struct__", "__buffer__")):
        return
    try:
        memoryview(value)
    except TypeError:
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        raise TypeError(
            f"{name} must be an array, a frame or a table, got {kind}; pass the array or the frame that it holds"
        ) from None


def known(value: Any, name: str = "X") -> Any:
    """Input for the checks of scikit-learn: AnnData and tables as arrays, and only array-like objects.

    Text and dates in frames, and integers that float64 merges, raise an error that names the column.
    """
    if table_weights(value) is not None:
        raise ValueError(f"{name} is a table with weights, which are not supported here; pass {name}.values to omit them")
    if is_annotated(value) or is_table(value):
        return framed(value).to_numpy()
    if hasattr(value, "toarray"):
        return value
    frame = framed(value)
    if _is_frame(frame):
        _require_numbers(frame, name)  # scikit-learn would convert durations to numbers
        _require_distinct_columns(frame, name)
        return value
    _require_array_like(frame, name)
    try:
        array = np.asarray(frame)
    except ValueError:  # rows of several lengths
        return value
    if array.ndim == 2:
        _require_distinct(array, name)
    return value


def points(value: Any, name: str = "X", dimension: int | None = None) -> Floats:
    """An (n, d) array of finite numbers, n, d ≥ 1. It is not copied if numeric."""
    value = framed(value)
    array = as_numbers(value, name)
    if array.ndim != 2:
        way_out = f"; use {name}.reshape(-1, 1) for points on a line, or {name}.reshape(1, -1) for a single point"
        raise ValueError(
            f"{name} must have two dimensions (rows, columns), got shape {array.shape}{way_out if array.ndim == 1 else ''}"
        )
    if not array.size:
        raise ValueError(f"{name} must hold at least one row and one column, got shape {array.shape}")
    if dimension is not None and array.shape[1] != dimension:
        raise ValueError(f"{name} must have {dimension} columns like the atoms, got shape {array.shape}")
    if array.dtype.kind != "f":
        _require_distinct(array, name)
    else:
        require_finite(array, name, names_of(value))
    return array


def require_finite(array: NDArray[Any], name: str, columns: list[Any] | None) -> None:
    """Raise an error with row and column for NaN, infinite and huge numbers."""
    for a, b in row_blocks(array, array.shape[1]):
        finite = np.isfinite(array[a:b])
        if not finite.all():
            row, column = (int(i) for i in np.argwhere(~finite)[0])
            title = column if columns is None else repr(printable(columns[column]))
            raise ValueError(
                f"{name} must be finite, got {array[a + row, column]} in row {a + row}, column {title}; drop or impute such rows"
            )
        if array.dtype == np.float64 and np.abs(array[a:b]).max() > MAX_COORDINATE:
            raise ValueError(f"{name} must stay below 1e150 in size, so that squared distances are finite; rescale it")


def sparse_points(value: Any, name: str = "X", dimension: int | None = None) -> Any:
    """A sparse (n, d) matrix of finite numbers by rows."""
    if len(value.shape) != 2 or value.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be real numbers in two dimensions, got {value.dtype} of shape {value.shape}")
    rows = value.tocsr()
    points(np.broadcast_to(0, rows.shape), name, dimension)  # checks its shape
    bad = np.flatnonzero(~np.isfinite(rows.data))
    if len(bad):
        row = int(np.searchsorted(rows.indptr, bad[0], "right")) - 1
        raise ValueError(f"{name} must be finite, got {rows.data[bad[0]]} in row {row}; drop or impute such rows")
    return rows


def warn_if_lying(value: Any, name: str = "X") -> None:
    """Warn if an array looks like (d, n)."""
    if not isinstance(value, np.ndarray) or value.ndim != 2:
        return
    rows, columns = value.shape
    if 2 <= rows <= MAX_ROWS and columns >= MIN_COLUMNS * rows**2:
        warn(
            f"{name} has {rows} rows and {columns:,} columns: rows are observations here, and this looks like the (d, n) of "
            f"scipy.stats.gaussian_kde; pass {name}.T, or a frame if the rows are observations"
        )


def merged_integers(column: Any) -> tuple[int, int] | None:
    """Two different values of (n,) 64-bit integers that are equal in float64, or None. Objects that are no integers are ignored."""
    values = np.asarray(column)
    if values.dtype.kind == "O":
        integers = [int(item) for item in values.ravel().tolist() if type(item) is int or isinstance(item, np.integer)]
        values = np.array([item for item in integers if abs(item) < LARGEST], dtype=object)
    elif values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return None
    if not values.size or (values.min() >= -LARGEST_EXACT and values.max() <= LARGEST_EXACT):
        return None
    ordered = np.unique(values)
    merged = np.flatnonzero(np.diff(ordered.astype(np.float64)) == 0)
    return (int(ordered[merged[0]]), int(ordered[merged[0] + 1])) if len(merged) else None


def _require_distinct(array: NDArray[Any], name: str) -> None:
    if array.dtype.kind == "O" or (array.dtype.kind in "iu" and array.dtype.itemsize == 8):
        for k in range(array.shape[1]):
            _require_distinct_column(array[:, k], name, k)


def _require_distinct_columns(frame: Any, name: str) -> None:
    """Check the columns of 64-bit integers one by one, because a frame with other columns makes all of them float64."""
    kinds = getattr(frame, "dtypes", None)
    if kinds is None and hasattr(frame, "schema"):  # Arrow
        kinds = frame.schema.values()
    if kinds is not None and hasattr(frame, "columns"):
        for title, kind in zip(frame.columns, kinds, strict=True):
            if str(kind).lower().startswith(INTEGERS):
                for column in np.atleast_2d(np.asarray(frame[title].to_numpy()).T):
                    _require_distinct_column(column, name, title)


def _require_distinct_column(column: Any, name: str, title: Any) -> None:
    merged = merged_integers(column)
    if merged is not None:
        raise ValueError(
            f"{name} must hold integers that are distinct in float64, column {title!r} has {merged[0]} and {merged[1]}, which "
            f"become one number; {SUBTRACT}"
        )
