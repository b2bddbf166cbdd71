"""Arrays, tables, bags, weights and covariances in main memory: shapes, finite values, matching lengths."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._columns import from_column
from reduset._engine import require_cpu, row_blocks
from reduset._frames import AnnotatedRows, framed, is_annotated, is_sparse, is_table, names_of, odd_column, table_weights
from reduset._messages import did_you_mean, printable
from reduset._types import Array, Floats
from reduset._validate.integers import require_distinct

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
        _require_finite(array, name, names_of(value))
    return array


def _require_finite(array: NDArray[Any], name: str, columns: list[Any] | None) -> None:
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
        _require_finite(array, "bags", list(table.columns))
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


def weights(value: Any, count: int, name: str = "sample_weight", *, signed: bool = False, zero: bool = False) -> Array:
    """(count,) finite weights; non-negative unless ``signed``, and not all zero unless ``zero``."""
    array = as_numbers(value, name).astype(np.float64, copy=False)
    if array.shape != (count,):
        raise ValueError(f"{name} must have shape ({count},), one weight a point; got {array.shape}")
    given, array = array, array[:1] if array.strides == (0,) else array  # one number is looked at once
    if not np.isfinite(array).all():
        where = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite, got {array[where]} at position {where}")
    if not signed and (array < 0).any():
        where = int(np.flatnonzero(array < 0)[0])
        raise ValueError(
            f"{name} must not be negative, got {array[where]} at position {where}; "
            "for signed weights build KernelMean(atoms, weights, kernel)"
        )
    if not zero and not array.any():
        raise ValueError(f"{name} must not be all zero" + ("" if signed else "; leave it out to weigh every point alike"))
    return given


LIGHTEST, HEAVIEST = 1e-140, 1e140  # weights whose squares can be summed


def squares_summable(weight: float, rule: str, seen: str) -> None:
    """Refuse weights whose squares leave the range of floating point, by the sum of their sizes or the largest of them."""
    if not LIGHTEST < weight < HEAVIEST:
        raise ValueError(f"{rule} between {LIGHTEST:g} and {HEAVIEST:g}, for their squares to be finite; {seen}")


def labelled(y: Any, sample_weight: Any, count: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64], NDArray[np.float64]]:
    """(count,) labels, the classes (k,) in order, the number of each label's class, and (count,) weights, the largest 1."""
    if y is None:
        raise ValueError("y must hold one label a row, got None; class proportions are learnt from labelled rows")
    labels = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (count,):
        raise ValueError(f"y must have shape ({count},), one label a row of X; got {labels.shape}")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        where = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise ValueError(f"y must hold no missing labels, got {labels[where]} in row {where}; drop such rows")
    if labels.dtype.kind == "f" and (labels != np.rint(labels)).any():
        raise ValueError("y must hold classes, got a continuous quantity (Unknown label type); bin it, or use whole numbers")
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise TypeError(f"y must hold labels of one type that can be sorted: {error}; convert them, y.astype(str)") from error
    if len(classes) < 2:
        raise ValueError(f"y must hold at least two classes, got only one class, {classes[0]!s}; a mixture of one is all of it")
    mass = np.broadcast_to(1.0, count)
    if sample_weight is not None:
        mass = weights(sample_weight, count)
        mass = mass / mass.max()  # so that sums are finite
    empty = np.flatnonzero(np.bincount(codes, mass, len(classes)) == 0)
    if len(empty):
        raise ValueError(
            f"sample_weight must leave some weight to every class, class {classes[empty[0]]!s} has none; drop its rows from X and y"
        )
    return labels, classes, np.asarray(codes, np.int64), np.asarray(mass, np.float64)


def covariance(value: Any, name: str = "covariance") -> NDArray[np.float64]:
    """A (d, d) symmetric positive definite matrix, or the (d,) variances of a diagonal one."""
    array = as_numbers(value, name).astype(np.float64)
    if array.ndim not in (1, 2) or array.shape[0] != array.shape[-1] or not len(array):
        raise ValueError(f"{name} must be a square matrix (d, d) or a vector of variances (d,), got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    if not np.allclose(array, array.T, rtol=1e-8, atol=1e-12 * float(np.abs(array).max())):
        raise ValueError(f"{name} must be symmetric; use ({name} + {name}.T) / 2 if the difference is rounding")
    array = (array + array.T) / 2
    eigenvalues = np.sort(array) if array.ndim == 1 else np.linalg.eigvalsh(array)
    if eigenvalues[0] <= 1e-14 * eigenvalues[-1]:
        raise ValueError(
            f"{name} must be positive definite, its least eigenvalue is {eigenvalues[0]:.3g}; "
            "drop constant or repeated columns, or add a small diagonal"
        )
    return array


def covariances(value: Any, count: int, dimension: int, name: str = "covariances") -> NDArray[np.float64]:
    """(count, d, d) symmetric positive definite matrices, (count, d) or (count,) positive variances; the first at fault is named.

    Repeated views (of one covariance for all) stay as they are.
    """
    array = as_numbers(value, name)
    array = array if array.dtype == np.float64 else array.astype(np.float64)
    shapes = ((count,), (count, dimension), (count, dimension, dimension))
    if array.shape not in shapes:
        raise ValueError(
            f"{name} must have shape {shapes[0]} (spherical: one variance a component), {shapes[1]} (diagonal) or {shapes[2]} "
            f"(full) for {count} means in {dimension} dimensions, got {array.shape}"
        )
    once = array[:1] if array.strides[0] == 0 else array
    if not np.isfinite(once).all():
        where = int(np.flatnonzero(~np.isfinite(once.reshape(len(once), -1)).all(axis=1))[0])
        raise ValueError(f"{name} must be finite, number {where} is not")
    if array.ndim < 3:
        if not (once > 0).all():
            where = int(np.flatnonzero(~(once.reshape(len(once), -1) > 0).all(axis=1))[0])
            raise ValueError(
                f"{name} must be variances above 0, number {where} has {np.min(once[where]):.3g}; leave out such components"
            )
        return array
    gap = np.abs(once - once.transpose(0, 2, 1)).max(axis=(1, 2))
    largest = np.abs(once).max(axis=(1, 2))
    if (gap > 1e-8 * largest).any():
        where = int(np.argmax(gap > 1e-8 * largest))
        raise ValueError(
            f"{name} must be symmetric, number {where} differs from its transpose by {gap[where]:.3g}; "
            f"use ({name} + {name}.transpose(0, 2, 1)) / 2 if that is rounding"
        )
    diagonal = np.diagonal(once, axis1=1, axis2=2)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))  # the units of the columns are the user's own business
    least, most = np.linalg.eigvalsh(once / (scale[:, :, None] * scale[:, None, :]))[:, [0, -1]].T
    if (least <= 1e-14 * most).any():
        where = int(np.argmax(least <= 1e-14 * most))
        raise ValueError(
            f"{name} must be positive definite, number {where} has the eigenvalue {least[where]:.3g} beside {most[where]:.3g} "
            "(as a correlation); leave out such components, or add a small diagonal"
        )
    if gap.any():
        once = (once + once.transpose(0, 2, 1)) / 2
        return np.broadcast_to(once, array.shape) if array.strides[0] == 0 else once
    return array
