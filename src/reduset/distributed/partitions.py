"""What may be given: a Dask array, a Dask data frame, or a list of delayed arrays or frames; each becomes a list of partitions.

Partitions may be of unknown length, empty, and of different number types. Their rows are only ever looked at where they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed, delayed

from reduset import _validate
from reduset._frames import framed, odd_column
from reduset._types import Array, Floats

WAY_OUT = "for data in memory use reduset.compress"
ENCODE = "encode or drop such columns, alike in all partitions: dask.dataframe.get_dummies(collection.categorize())"


@dataclass(frozen=True)
class PartitionRows:
    """The rows of a partition that have a weight."""

    number: int  # of the partition
    points: Floats
    weights: Array
    count: int  # with those of no weight
    columns: tuple[object, ...] | None


@dataclass(frozen=True)
class Partitions:
    """Delayed partitions.

    Attributes
    ----------
    parts : list of Delayed, each with its weights, or None
    weight_column : the column that holds the weights, or None
    """

    parts: list[tuple[Any, Any]]
    weight_column: Any = None

    @classmethod
    def of(cls, parts: list[Any], weights: list[Any] | None = None, weight_column: Any = None) -> Partitions:
        """Those of a collection and of its weights, of which there must be as many."""
        if weights is not None and len(weights) != len(parts):
            raise ValueError(
                f"sample_weight must have as many partitions as the collection, {len(parts)}, got {len(weights)}; "
                "repartition one of them"
            )
        if not parts:
            raise ValueError(f"collection must have at least one partition, got none; {WAY_OUT}")
        return cls(list(zip(parts, weights or [None] * len(parts), strict=True)), weight_column)


def partitions(collection: Any, sample_weight: Any = None) -> Partitions:
    """The partitions of a collection."""
    if is_dask_collection(collection) and hasattr(collection, "chunks") and hasattr(collection, "rechunk"):
        return _of_array(collection, sample_weight)
    if is_dask_collection(collection) and hasattr(collection, "npartitions") and hasattr(collection, "columns"):
        return _of_frame(collection, sample_weight)
    if isinstance(collection, Delayed):
        return _of_list([collection], None if sample_weight is None else [sample_weight])
    if isinstance(collection, list | tuple) and any(isinstance(each, Delayed) for each in collection):
        return _of_list(collection, sample_weight)
    raise TypeError(
        "collection must be a Dask array, a Dask data frame or a list of delayed arrays or frames, "
        f"got {type(collection).__name__}; {WAY_OUT}"
    )


def _of_array(array: Any, sample_weight: Any) -> Partitions:
    if array.ndim != 2:
        hint = "; use X.reshape(-1, 1) for points on a line" if array.ndim == 1 else ""
        raise ValueError(f"collection must have two dimensions (rows, columns), got {array.ndim}{hint}")
    if array.numblocks[1] != 1:
        array = array.rechunk({1: -1})
    parts = list(array.to_delayed().reshape(-1))
    if sample_weight is None:
        return Partitions.of(parts)
    import dask.array as da

    weights = sample_weight
    if not is_dask_collection(weights):
        weights = da.asarray(_validate.as_numbers(weights, "sample_weight"))
    if not hasattr(weights, "chunks") or weights.ndim != 1:
        raise ValueError("sample_weight must have one dimension, one weight a row")
    known = not (np.isnan(array.shape[0]) or np.isnan(weights.shape[0]))
    if known and weights.shape[0] != array.shape[0]:
        raise ValueError(f"sample_weight must have shape ({array.shape[0]},), one weight a row; got {weights.shape}")
    if known:
        weights = weights.rechunk((array.chunks[0],))
    return Partitions.of(parts, list(weights.to_delayed().reshape(-1)))


def _of_frame(frame: Any, sample_weight: Any) -> Partitions:
    parts = list(frame.to_delayed())
    if sample_weight is None:
        return Partitions.of(parts)
    if is_dask_collection(sample_weight):
        return Partitions.of(parts, list(np.reshape(sample_weight.to_delayed(), -1)))
    if sample_weight not in list(frame.columns):
        raise ValueError(
            f"sample_weight must be one of the columns {_validate.shortened(list(frame.columns))} or a Dask array or series, "
            f"got {sample_weight!r}"
        )
    return Partitions.of(parts, weight_column=sample_weight)


def _of_list(collection: Iterable[Any], sample_weight: Any) -> Partitions:
    parts = _delayed(collection)
    if isinstance(sample_weight, str) or not isinstance(sample_weight, Iterable):  # or None
        return Partitions.of(parts, weight_column=sample_weight)
    return Partitions.of(parts, _delayed(sample_weight))


def _delayed(parts: Iterable[Any]) -> list[Any]:
    return [part if isinstance(part, Delayed) else delayed(part, traverse=False) for part in parts]


def rows_of(part: Any, weights: Any, weight_column: Any, number: int) -> PartitionRows:
    """The rows of one partition, looked over; an error names the partition."""
    name = f"partition {number}"
    part = framed(part)
    columns = list(part.columns) if hasattr(part, "columns") else None
    if weight_column is not None:
        if columns is None or weight_column not in columns:
            raise ValueError(f"{name} must have the column {weight_column!r} of sample_weight, got {columns}")
        weights, columns = part[weight_column], [column for column in columns if column != weight_column]
        part = part[columns]
    named = None if columns is None else tuple(columns)
    if len(np.shape(part)) == 2 and np.shape(part)[0] == 0:
        return PartitionRows(number, np.empty((0, 0)), np.empty(0), 0, None)
    odd = odd_column(part)
    if odd is not None:
        raise TypeError(f"{name} must hold numbers, column {odd[0]!r} holds {odd[1]!r}; {ENCODE}")
    points = np.ascontiguousarray(_validate.points(part, name))
    count = len(points)
    checked = np.broadcast_to(1.0, count) if weights is None else _weights(weights, count, f"sample_weight of {name}")
    present = checked > 0
    if not present.all():
        points, checked = points[present], checked[present]
    return PartitionRows(number, points, checked, count, named)


def _weights(value: Any, count: int, name: str) -> Array:
    """Weights that, unlike those of all the data, may be all zero."""
    array = np.asarray(_validate.as_numbers(value, name), np.float64)
    if array.shape == (count,) and not array.any():
        return array
    checked = _validate.weights(array, count, name)
    if checked.max() > 1e140:
        raise ValueError(f"{name} must stay below 1e140, so that their squares are finite, got {checked.max():g}; rescale them")
    return checked
