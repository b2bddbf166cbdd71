"""Rows of Dask collections: each pass is one task a partition, run by the Dask client in use, or else by Dask's threads.

Given are a Dask array, a Dask data frame, or a list of delayed arrays or frames. Partitions may be empty, of unknown length, and of
several types. They are checked where they are, when the collection is opened. Persist collections that are expensive to compute:
each pass computes every partition again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from dask.base import compute
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine import BlockRows, single_threaded_blas, thread_limit
from reduset._frames import framed, odd_column
from reduset._types import Array

AT_ONCE = 32  # partitions whose results are awaited together, at least
ENCODE = "encode such columns equally in all partitions (dask.dataframe.get_dummies(collection.categorize())), or drop them"
A_WORKER = 4  # the same for each thread of a cluster


class PartitionFault(NamedTuple):
    """An error of the input checks as the result of a task: a raised one would show the traceback of its worker."""

    kind: type[Exception]
    message: str


class PartitionFacts(NamedTuple):
    """Length, number and names of columns, type and weights of a partition."""

    length: int
    dimension: int
    columns: list[Any] | None
    dtype: np.dtype[Any]
    weights: Array | None


class DaskRows(BlockRows):
    """The rows of delayed partitions.

    Attributes
    ----------
    columns : d names, or None
    weights : (n,) from the weight column, or None
    notes : none
    """

    def __init__(self, parts: Sequence[Any], weight_column: str | None = None) -> None:
        self._parts, self._weight_column = list(parts), weight_column
        inspected = [(k, weight_column) for k in range(len(parts))]
        known: list[PartitionFacts] = []
        for facts in _computed(_checked, self._parts, inspected):
            if isinstance(facts, PartitionFault):
                raise facts.kind(facts.message)
            known.append(facts)
        some = [part for part in known if part.length]
        if not some:
            raise ValueError("X must hold at least one row, but all partitions of the collection are empty")
        self.columns = some[0].columns
        for k, part in enumerate(known):
            if part.length and part.dimension != some[0].dimension:
                raise ValueError(f"all partitions must have {some[0].dimension} columns, got {part.dimension} in partition {k}")
            if part.length and part.columns is not None:
                _validate.same_columns(part.columns, self.columns, f"partition {k}", "the first partition")
        super().__init__([part.length for part in known], some[0].dimension, np.result_type(*(part.dtype for part in some)))
        if some[0].weights is not None:
            self.weights = np.concatenate([part.weights for part in some if part.weights is not None])

    def run(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], blocks: Sequence[int]) -> Iterable[Any]:
        task = partial(_on_partition, function, self.dtype, self._weight_column)
        return _computed(task, [self._parts[k] for k in blocks], [tuple(map(_Sent, given)) for given in arguments])


def dask_rows(collection: Any, weight_column: str | None = None) -> DaskRows:
    """The rows of a collection."""
    if hasattr(collection, "chunks") and hasattr(collection, "rechunk"):
        if collection.ndim != 2:
            hint = "; use X.reshape(-1, 1) for points on a line" if collection.ndim == 1 else ""
            raise ValueError(f"X must have two dimensions (rows, columns), got {collection.ndim}{hint}")
        whole_rows = collection if collection.numblocks[1] == 1 else collection.rechunk({1: -1})
        return DaskRows(whole_rows.to_delayed().reshape(-1), weight_column)
    if hasattr(collection, "npartitions") and hasattr(collection, "columns"):
        return DaskRows(collection.to_delayed(), weight_column)
    parts = [collection] if isinstance(collection, Delayed) else collection
    if not isinstance(parts, list | tuple):
        raise TypeError(f"X must be a Dask array, a Dask data frame or delayed partitions, got {type(collection).__name__}")
    return DaskRows([part if isinstance(part, Delayed) else delayed(part, traverse=False) for part in parts], weight_column)


def gathered(vector: Any) -> NDArray[Any]:
    """(n,) entries of a Dask array or series, or of a list of delayed arrays, one for each row."""
    if not isinstance(vector, list | tuple):
        (vector,) = compute(vector)
        return np.asarray(vector)
    parts = [np.asarray(part) for part in compute(*vector)]
    return np.concatenate(parts) if parts[0].ndim else np.asarray(parts)


class _Sent:
    """An argument of a task; an array with one value for all entries is sent as that value."""

    def __init__(self, value: Any) -> None:
        self._repeated = isinstance(value, np.ndarray) and value.ndim == 1 and value.strides == (0,) and len(value) > 1
        self._value, self._length = (value[0], len(value)) if self._repeated else (value, 0)

    def received(self) -> Any:
        """The argument."""
        return np.broadcast_to(self._value, self._length) if self._repeated else self._value


def _computed(function: Callable[..., Any], parts: Sequence[Any], arguments: Sequence[tuple[Any, ...]]) -> Iterable[Any]:
    """The results of a function of each partition and its arguments, in order."""
    shared, together = delayed(function, traverse=False, pure=False), _at_once()
    for a in range(0, len(parts), together):
        pairs = zip(parts[a : a + together], arguments[a : a + together], strict=True)
        yield from compute(*(_task(shared, part, given) for part, given in pairs))


@partial(delayed, pure=False, traverse=False)
def _task(function: Callable[..., Any], part: Any, given: tuple[Any, ...]) -> Any:
    """A function of one partition, in the one thread that Dask gives to it."""
    with thread_limit(1), single_threaded_blas():
        return function(part, *given)


def _at_once() -> int:
    """How many partitions are worked on together."""
    if "distributed" in sys.modules:
        from distributed import get_client

        try:
            return max(AT_ONCE, A_WORKER * sum(get_client().nthreads().values()))
        except ValueError:  # no client
            return AT_ONCE
    return AT_ONCE


def _values(part: Any, weight_column: str | None) -> Any:
    """A partition without its weights, as a frame or an array."""
    part = framed(part)
    return part if weight_column is None else part[[name for name in part.columns if name != weight_column]]


def _checked(part: Any, number: int, weight_column: str | None) -> PartitionFacts | PartitionFault:
    try:
        return _inspected(part, number, weight_column)
    except (TypeError, ValueError) as error:
        return PartitionFault(TypeError if isinstance(error, TypeError) else ValueError, str(error))


def _inspected(part: Any, number: int, weight_column: str | None) -> PartitionFacts:
    """The properties of a partition after its rows were checked."""
    name, part = f"partition {number}", framed(part)
    if weight_column is not None and weight_column not in getattr(part, "columns", []):
        raise ValueError(
            f"sample_weight must be an array or the name of a column, got {weight_column!r}, which {name} does not have"
        )
    values = _values(part, weight_column)
    columns = list(values.columns) if hasattr(values, "columns") else None
    if len(np.shape(values)) == 2 and np.shape(values)[0] == 0:
        return PartitionFacts(0, np.shape(values)[1], columns, np.dtype(np.float64), None)
    odd = odd_column(values)
    if odd is not None:
        raise TypeError(f"{name} must hold numbers, column {odd[0]!r} holds {odd[1]!r}; {ENCODE}")
    points = _validate.points(values, name)
    weights = None if weight_column is None else np.asarray(part[weight_column], np.float64)
    return PartitionFacts(len(points), points.shape[1], columns, points.dtype, weights)


def _on_partition(
    function: Callable[..., Any], dtype: np.dtype[Any], weight_column: str | None, part: Any, *arguments: _Sent
) -> Any:
    """A function of the rows of a partition as an array."""
    rows = np.ascontiguousarray(_validate.as_numbers(_values(part, weight_column), "X"), dtype)
    return function(rows, *(argument.received() for argument in arguments))
