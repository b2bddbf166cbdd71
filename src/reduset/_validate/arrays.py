"""Arrays, tables, bags, weights and covariances in main memory: shapes, finite values, matching lengths."""

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

ENTRY = 60  # letters of an entry in a message
INTEGERS = ("int64", "uint64", "int128", "uint128", "object")  # types of columns of large integers, in small letters


def as_numbers(value: Any, name: str) -> NDArray[Any]:
    """A plain numeric array: float32, float64 and integers as they are (no copy), everything else refused or converted."""
    require_cpu(value, name)
    if is_sparse(value):
        raise TypeError(
            f"{name} must be dense, got a sparse matrix of shape {value.shape}; pass {name}.toarray() if it fits in memory, or few "
            f"columns of it: sklearn.decomposition.TruncatedSVD(50).fit_transform({name})"
        )
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} must not be a masked array; fill it ({name}.filled(...)) or drop the masked rows first")
    value = framed(value)
    is_frame = hasattr(value, "to_numpy") and not isinstance(value, np.ndarray)  # pandas, polars, Arrow
    if is_frame:
        _require_numbers(value, name)
        _require_distinct_columns(value, name)
        value = _values(value)
    _require_array_like(value, name)
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
            raise TypeError(
                f"{name} must hold numbers, got objects that are none ({error}); encode or drop such columns"
            ) from error
        if objects.ndim == 2 and not is_frame:
            _require_distinct(objects, name)
    if array.dtype.kind == "b":
        array = array.astype(np.float64)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold numbers, got dtype {array.dtype}; encode or drop such columns")
    if array.dtype.kind == "f" and array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    return array


def _require_numbers(frame: Any, name: str) -> None:
    """Raise an error that names the first column of a frame that holds text, dates, lists or the like."""
    odd = odd_column(frame)
    if odd is not None:
        entry = " ".join(repr(odd[1]).split())
        raise TypeError(
            f"{name} must hold numbers, column {odd[0]!r} holds {entry if len(entry) <= ENTRY else entry[: ENTRY - 1] + '…'}; "
            f"encode or drop such columns: table = reduset.io.as_table({name}, encode='auto'), and "
            "as_table(other, encode=table.encoding) for later frames"
        )


def _values(frame: Any) -> Any:
    """The values of a frame; missing ones of pandas' nullable columns as NaN."""
    values = frame.to_numpy()
    if values.dtype.kind == "O" and any(type(item).__name__ == "NAType" for item in values.flat):
        return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _require_distinct_columns(frame: Any, name: str) -> None:
    """Check the columns of 64-bit integers one by one: next to others, a frame itself makes them float64."""
    kinds = getattr(frame, "dtypes", None)
    if kinds is None and hasattr(frame, "schema"):  # Arrow
        kinds = frame.schema.values()
    if kinds is not None and hasattr(frame, "columns"):
        for title, kind in zip(frame.columns, kinds, strict=True):
            if str(kind).lower().startswith(INTEGERS):
                for column in np.atleast_2d(np.asarray(frame[title].to_numpy()).T):
                    require_distinct(column, name, title)


def _require_convertible(value: Any, name: str) -> None:
    """Check what scikit-learn makes float64 itself: frames, arrays and lists."""
    value = framed(value)
    if hasattr(value, "to_numpy") and not isinstance(value, np.ndarray):
        _require_numbers(value, name)  # of durations, scikit-learn makes numbers
        _require_distinct_columns(value, name)
        return
    try:
        array = np.asarray(value)
    except ValueError:  # rows of several lengths
        return
    if array.ndim == 2:
        _require_distinct(array, name)


def _require_distinct(array: NDArray[Any], name: str) -> None:
    if array.dtype.kind == "O" or (array.dtype.kind in "iu" and array.dtype.itemsize == 8):
        for k in range(array.shape[1]):
            require_distinct(array[:, k], name, k)


def _require_array_like(value: Any, name: str) -> None:
    """Refuse an object that NumPy would ask for one row after the other, only to find that it cannot make numbers of them."""
    known = isinstance(value, numbers.Number | str | bytes | Sequence | memoryview) or value is None
    if known or any(hasattr(value, part) for part in ("__array__", "__array_interface__", "__array_struct__", "__buffer__")):
        return
    try:
        memoryview(value)
    except TypeError:
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        way_out = "pass the array or the frame that it holds"
        raise TypeError(f"{name} must be an array, a frame or a table, got {kind}; {way_out}") from None


def known(value: Any, name: str = "X") -> Any:
    """What scikit-learn can check in its turn: an AnnData or a table of ours as an array, and no object that is neither.

    Text and dates in frames, and integers that float64 merges, raise an error here, which names the column.
    """
    if table_weights(value) is not None:
        raise ValueError(f"{name} is a table with weights, which are not taken here; pass {name}.values to leave them out")
    if is_annotated(value) or is_table(value):
        return framed(value).to_numpy()
    if not hasattr(value, "to_numpy") and not hasattr(value, "toarray"):
        _require_array_like(framed(value), name)
    if not hasattr(value, "toarray"):
        _require_convertible(value, name)
    return value


def points(value: Any, name: str = "X", dimension: int | None = None) -> Floats:
    """An (n, d) array of finite numbers, n, d ≥ 1. Not copied where it is numeric already."""
    value = framed(value)
    array = as_numbers(value, name)
    if array.ndim == 1:
        raise ValueError(
            f"{name} must have two dimensions (rows, columns), got shape {array.shape}; "
            f"use {name}.reshape(-1, 1) for points on a line, or {name}.reshape(1, -1) for a single point"
        )
    if array.ndim != 2:
        raise ValueError(f"{name} must have two dimensions (rows, columns), got shape {array.shape}")
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise ValueError(f"{name} must hold at least one row and one column, got shape {array.shape}")
    if dimension is not None and array.shape[1] != dimension:
        raise ValueError(f"{name} must have {dimension} columns like the atoms, got shape {array.shape}")
    _require_distinct(array, name)
    if array.dtype.kind == "f":
        require_finite(array, name, names_of(value))
    return array


def require_finite(array: NDArray[Any], name: str, columns: list[Any] | None) -> None:
    """Raise an error for NaN, infinite and huge numbers; it has the row and the column, by name where columns have names."""
    for a, b in row_blocks(array, array.shape[1]):
        finite = np.isfinite(array[a:b])
        if not finite.all():
            row, column = (int(i) for i in np.argwhere(~finite)[0])
            which = column if columns is None else repr(printable(columns[column]))
            bad = array[a + row, column]
            raise ValueError(f"{name} must be finite, got {bad} in row {a + row}, column {which}; drop or impute such rows")
        # squares of what passes here cannot overflow
        if array.dtype == np.float64 and np.abs(array[a:b]).max() > 1e150:
            raise ValueError(f"{name} must stay below 1e150 in size, so that squared distances are finite; rescale it")


def sparse_points(value: Any, name: str = "X", dimension: int | None = None) -> Any:
    """A sparse (n, d) matrix of finite numbers, by rows; for what takes its rows as they are, or dense a block at a time."""
    if len(value.shape) != 2 or value.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be real numbers in two dimensions, got {value.dtype} of shape {value.shape}")
    rows = value.tocsr()
    points(np.broadcast_to(0, rows.shape), name, dimension)  # its shape
    bad = np.flatnonzero(~np.isfinite(rows.data))
    if len(bad):
        row = int(np.searchsorted(rows.indptr, bad[0], "right")) - 1
        raise ValueError(f"{name} must be finite, got {rows.data[bad[0]]} in row {row}; drop or impute such rows")
    return rows


MOST_ROWS = 20
COLUMNS = 50  # times the square of the rows


def warn_if_lying(value: Any, name: str = "X") -> None:
    """Say so where an array looks like (d, n)."""
    if not isinstance(value, np.ndarray) or value.ndim != 2:
        return
    rows, columns = value.shape
    if 2 <= rows <= MOST_ROWS and columns >= COLUMNS * rows**2:
        warn(
            f"{name} has {rows} rows and {columns:,} columns: rows are observations here, and this looks like the (d, n) of "
            f"scipy.stats.gaussian_kde; pass {name}.T, or a frame if it is meant so"
        )


LARGEST_EXACT = 2**53  # up to which float64 holds every whole number
LARGEST = 10**300
SUBTRACT = "subtract the smallest value first, while they are integers"


def merged_integers(column: Any) -> tuple[int, int] | None:
    """Two values of (n,) integers that are one number in float64; None where all stay distinct, or are no integers of 64 bits.

    Of a column of Python objects, the whole numbers among them.
    """
    values = np.asarray(column)
    if values.dtype.kind == "O":
        values = _whole_numbers(values)
    elif values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return None
    if not values.size or (values.min() >= -LARGEST_EXACT and values.max() <= LARGEST_EXACT):
        return None
    ordered = np.unique(values)
    merged = np.flatnonzero(np.diff(ordered.astype(np.float64)) == 0)
    return (int(ordered[merged[0]]), int(ordered[merged[0] + 1])) if len(merged) else None


def _whole_numbers(values: Any) -> Any:
    """(k,) the integers among Python objects that float64 can hold, as objects."""
    kept = [int(each) for each in values.ravel().tolist() if type(each) is int or isinstance(each, np.integer)]
    return np.array([each for each in kept if abs(each) < LARGEST], dtype=object)


def require_distinct(column: Any, name: str, title: Any) -> None:
    """Raise an error where float64 merges integers of a column."""
    merged = merged_integers(column)
    if merged is not None:
        raise ValueError(
            f"{name} must hold integers that float64 keeps apart, column {title!r} has {merged[0]} and {merged[1]}, which become "
            f"one number; {SUBTRACT}"
        )
