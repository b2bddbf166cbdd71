"""Bags of points: lists of arrays, mappings by name, columns of lists, and long tables with a label per row.

In a column of lists (Arrow, pandas, polars) an entry is a bag, a list of points. A point is a list of numbers or a struct. All
points of an Arrow column lie in one buffer, which the offsets of its lists cut into bags. Only objects of pandas need a loop over
points. Missing bags, points and numbers raise an error with the number of the bag.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sized
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from reduset._frames import AnnotatedRows, framed, is_table, table_weights
from reduset._messages import did_you_mean
from reduset._types import Floats
from reduset._validate.arrays import as_numbers, points, require_finite

Column = tuple[list[Any], list[str] | None]


def bags(
    value: Any,
    sample: Any = None,
    fewest: int = 1,
    dimension: int | None = None,
    columns: list[Any] | None = None,
    by: str = "sample",
    check: Callable[[Any, str], Floats] = points,
) -> tuple[list[Any], list[Floats], list[Any] | None]:
    """The names and the points of each bag, and the columns of bags that are frames.

    Parameters
    ----------
    value : List, mapping by name, column of lists, or a long table with ``sample``. All bags are (n, d), n ≥ 2, with the same d.
    sample : Label of each row of a table, or the name of its column.
    fewest : Minimum number of bags.
    dimension, columns : Values of earlier bags. Columns must be the same for all frames, in the same order.
    by : Name of ``sample`` in messages.
    check : Function that validates the points of a bag.
    """
    known = None if columns is None else "the bags that were fitted"
    value = framed(value)
    frame_columns = None
    if sample is not None:
        names, parts, frame_columns = _split(value, sample, by)
        titles = [f"sample {name!r}" for name in names]
    elif isinstance(value, Mapping):
        names, parts = list(value), list(value.values())
        titles = [f"bags[{name!r}]" for name in names]
    else:
        parts, frame_columns = _from_column(value) or (listed(value, by), None)
        names = list(range(len(parts)))
        titles = [f"bags[{k}]" for k in names]
    if frame_columns is not None:
        columns, known = same_columns(frame_columns, columns, "bags", known)
    if len(parts) < fewest:
        raise ValueError(f"bags must hold at least {fewest} of them, got {len(parts)}")
    checked: list[Floats] = []
    for title, part in zip(titles, parts, strict=True):
        if table_weights(part) is not None:
            raise ValueError(f"{title} is a table with weights, which bags do not have; pass its values to omit them")
        part = framed(part)
        array = check(part, title)
        if len(array) < 2:
            raise ValueError(f"{title} must hold at least 2 points, got {len(array)}; omit it")
        first = f"like {titles[0]}" if dimension is None else "like the bags that were fitted"
        width = dimension if dimension is not None else checked[0].shape[1] if checked else array.shape[1]
        if array.shape[1] != width:
            raise ValueError(f"{title} must have {width} columns {first}, got shape {array.shape}")
        if getattr(part, "columns", None) is not None:
            columns, known = same_columns(list(part.columns), columns, title, known)
        checked.append(array)
    return names, checked, columns


def same_columns(own: list[Any], columns: list[Any] | None, title: str, known: str | None) -> tuple[list[Any], str | None]:
    """The common columns of all frames so far, and where they come from. Another order raises an error, too."""
    if columns is not None and own != columns:
        way_out = "take them in that order" if sorted(map(repr, own)) == sorted(map(repr, columns)) else "rename or select them"
        raise ValueError(f"{title} must have the columns {shortened(columns)} like {known}, got {shortened(own)}; {way_out}")
    return own, known or title


def shortened(values: list[Any], limit: int = 12) -> str:
    """A list for a message, cut after ``limit`` entries."""
    return f"[{', '.join(map(repr, values[:limit]))}{', …' if len(values) > limit else ''}]"


def listed(value: Any, by: str) -> list[Any]:
    """The bags of a list. A single table raises an error."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"bags must be a list of (n, d) arrays, a mapping of names to them, or a table with {by}=; got {value!r}")
    if hasattr(value, "columns") or (isinstance(value, np.ndarray) and value.ndim != 3):
        raise ValueError(
            f"bags is one table, of shape {getattr(value, 'shape', '?')}; give the sample of each row: "
            f"{by}= the name of a column, or a label for each row. A single bag X is the list [X]"
        )
    return list(value)


def missing(label: Any) -> bool:
    """Whether a label is missing: None, NaN, or pandas' NA and NaT."""
    return label is None or type(label).__name__ in ("NAType", "NaTType") or bool(label != label)


def _split(table: Any, sample: Any, by: str) -> tuple[list[Any], list[NDArray[Any]], list[Any] | None]:
    """The rows of a long table by their labels, in order of appearance, and the columns of a frame."""
    is_frame = hasattr(table, "columns")
    # a tuple may be the name of a column, or hold a label per row
    is_name = isinstance(sample, Hashable) and (not isinstance(sample, Sized) or (is_frame and sample in list(table.columns)))
    labels = sample
    if isinstance(sample, str) or (is_frame and is_name):
        if not is_frame:
            raise ValueError(f"{by}={sample!r} names a column, but bags has none; pass an array with a label for every row")
        if is_table(table):
            raise ValueError(f"{by}={sample!r} names a column, but a table has only numbers; use read_bags for a bag per label")
        labelled = table.obs if isinstance(table, AnnotatedRows) else table  # the columns of AnnData are genes
        names = list(labelled.columns)
        if sample not in names:
            hint = did_you_mean(sample, [name for name in names if isinstance(name, str)])
            raise ValueError(f"{by}={sample!r} must be one of the columns {shortened(names)}{hint}")
        labels = labelled[sample]
        table = table if labelled is not table else table[[column for column in table.columns if column != sample]]
    labels = np.asarray(labels.to_numpy() if hasattr(labels, "to_numpy") else labels)
    array = as_numbers(table, "bags")
    if is_frame and array.ndim == 2 and array.dtype.kind == "f":
        require_finite(array, "bags", list(table.columns))
    if labels.shape != array.shape[:1]:
        raise ValueError(f"{by} must hold a label for each of the {len(array)} rows, got shape {labels.shape}")
    numbers: dict[Any, int] = {}
    codes = np.fromiter((numbers.setdefault(label, len(numbers)) for label in labels.tolist()), np.int64, len(labels))
    for label in numbers:
        if missing(label):
            row = int(np.flatnonzero(codes == numbers[label])[0])
            raise ValueError(f"{by} must not be missing, got {label!r} in row {row}; drop such rows")
    order = np.argsort(codes, kind="stable")
    parts = np.split(array[order], np.cumsum(np.bincount(codes))[:-1])
    return list(numbers), parts, list(table.columns) if is_frame else None


def _from_column(value: Any) -> Column | None:
    """The bags of a column of lists, and the fields of points that are structs; None for other types."""
    library = type(value).__module__.split(".")[0]
    if library == "pandas" and hasattr(value, "array"):
        if not hasattr(value.dtype, "pyarrow_dtype"):
            return _from_objects(value)
        value = value.array.__arrow_array__()
    elif library == "polars" and hasattr(value, "dtype"):
        if not str(value.dtype).startswith(("Array(", "List(")):
            return None
        value = value.to_arrow()
    elif library != "pyarrow" or not hasattr(value, "type"):
        return None
    return _from_chunks((list(value.chunks) or [value.combine_chunks()]) if hasattr(value, "chunks") else [value])


def _is_list(kind: Any) -> bool:
    return str(kind).startswith(("list<", "large_list<", "fixed_size_list<"))


def _from_chunks(chunks: list[Any]) -> Column:
    """The bags of Arrow arrays of lists."""
    if not _is_list(chunks[0].type):
        raise TypeError(f"bags must be a column of lists of points, got the Arrow type {chunks[0].type}")
    parts: list[Any] = []
    columns = None
    for chunk in chunks:
        first = len(parts)
        _no_nulls(chunk, np.arange(len(chunk) + 1), first, "be missing (null)")
        starts = np.append(0, np.cumsum(_lengths(chunk)))
        rows = chunk.flatten()
        _no_nulls(rows, starts, first, "hold missing points (null)")
        if str(rows.type).startswith("struct<"):
            columns = [rows.type.field(k).name for k in range(rows.type.num_fields)]
            fields = rows.flatten()
            for field in fields:
                _no_nulls(field, starts, first, "hold missing numbers (null)")
            table = np.column_stack([_values(field) for field in fields]) if fields else np.empty((len(rows), 0))
            parts.extend(np.split(table, starts[1:-1]) if len(chunk) else [])
        elif _is_list(rows.type):
            widths = _lengths(rows)
            flat = rows.flatten()
            _no_nulls(flat, np.append(0, np.cumsum(widths))[starts], first, "hold missing numbers (null)")
            parts.extend(_cut(_values(flat), widths, starts, first))
        else:
            raise TypeError(f"bags must hold lists of points, a list or struct of numbers each; got the Arrow type {chunk.type}")
    return parts, columns


def _lengths(lists: Any) -> NDArray[np.int64]:
    return np.asarray(_values(lists.value_lengths()), np.int64)


def _values(flat: Any) -> NDArray[Any]:
    return np.asarray(flat.to_numpy(zero_copy_only=False))


def _cut(flat: NDArray[Any], widths: NDArray[np.int64], starts: NDArray[np.int64], first: int) -> list[NDArray[Any]]:
    """(n, d) bags from all numbers in a row, the length of each point, and the points where bags start."""
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


def _no_nulls(array: Any, starts: NDArray[np.int64], first: int, fault: str) -> None:
    """Raise an error for nulls with the number of the bag: its entries lie between two of the ``starts``."""
    if array.null_count:
        entry = int(np.argmax(_values(array.is_null())))
        _raise_null(first + int(np.searchsorted(starts, entry, side="right")) - 1, fault)


def _raise_null(bag: int, fault: str) -> NoReturn:
    raise ValueError(f"bags[{bag}] must not {fault}; drop or fill such entries first")


def _from_objects(cells: Any) -> Column:
    """Bags that pandas holds as arrays of arrays or of dicts; others unchanged."""
    parts: list[Any] = []
    columns: list[str] | None = None
    for k, cell in enumerate(cells):
        if cell is None or type(cell).__name__ == "NAType" or (isinstance(cell, float) and cell != cell):
            _raise_null(k, "be missing (null)")
        if not (isinstance(cell, np.ndarray) and cell.dtype == object and cell.ndim == 1 and len(cell)):
            is_empty = isinstance(cell, np.ndarray) and cell.shape == (0,)
            parts.append(cell.reshape(0, 0) if is_empty else cell)
            continue
        if any(point is None for point in cell):
            _raise_null(k, "hold missing points (null)")
        if isinstance(cell[0], dict):
            columns = list(cell[0]) if columns is None else columns
            if any(list(point) != columns for point in cell):
                raise ValueError(f"bags[{k}] must hold points with the fields {columns}, in that order; got others")
            cell = np.array([list(point.values()) for point in cell])
        else:
            widths = np.array([len(point) for point in cell])
            cell = _cut(np.concatenate(list(cell)), widths, np.array([0, len(cell)]), k)[0]
        parts.append(cell)
    return parts, columns
