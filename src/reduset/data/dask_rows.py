"""Rows of Dask collections: a pass runs one task for each partition, on the cluster of the client in use or in Dask's threads.

A collection is a Dask array, a Dask data frame, or a list of delayed arrays or frames. Partitions may be empty, of unknown length,
and of several types. Tasks check them when the collection is opened. Each pass computes every partition again, so persist
collections that are expensive to compute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
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

MIN_BATCH = 32  # partitions in one call of dask.compute
BATCH_PER_THREAD = 4  # partitions per thread of a cluster in one call
ENCODE = "encode such columns equally in all partitions (dask.dataframe.get_dummies(collection.categorize())), or drop them"


class PartitionFault(NamedTuple):
    """An error of the input checks, returned by a task. An exception raised in a task would show the traceback of the worker."""

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
    notes : empty; only files have notes
    """

    def __init__(self, parts: Sequence[Any], facts: Sequence[PartitionFacts], weight_column: str | None = None) -> None:
        self._parts, self._weight_column = list(parts), weight_column
        filled = [part for part in facts if part.length]
        if not filled:
            raise ValueError("X must hold at least one row, but all partitions of the collection are empty")
        self.columns = filled[0].columns
        for k, part in enumerate(facts):
            if part.length and part.dimension != filled[0].dimension:
                raise ValueError(f"all partitions must have {filled[0].dimension} columns, got {part.dimension} in partition {k}")
            if part.length and part.columns is not None:
                _validate.same_columns(part.columns, self.columns, f"partition {k}", "the first partition")
        super().__init__([part.length for part in facts], filled[0].dimension, np.result_type(*(part.dtype for part in filled)))
        if filled[0].weights is not None:
            self.weights = np.concatenate([part.weights for part in filled if part.weights is not None])

    @classmethod
    def of_partitions(cls, parts: Sequence[Any], weight_column: str | None) -> DaskRows:
        """The rows of all partitions, checked in one pass."""
        names = [f"partition {k}" for k in range(len(parts))]
        return cls(parts, _inspected(parts, names, weight_column, ENCODE), weight_column)

    @classmethod
    def of_tables(cls, tables: Sequence[Any], names: Sequence[str]) -> list[DaskRows]:
        """Each table as one block, all of them checked in one pass. The partitions of a table are concatenated on one worker."""
        facts = _inspected(tables, names, None, None)
        return [cls([table], [fact]) for table, fact in zip(tables, facts, strict=True)]

    @property
    def is_one_block(self) -> bool:
        """Whether one task computes all rows."""
        return len(self._parts) == 1

    def run(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], blocks: Sequence[int]) -> Iterable[Any]:
        task = partial(_on_partition, function, self.dtype, self._weight_column)
        return _computed(task, [self._parts[k] for k in blocks], [tuple(map(_Sent, given)) for given in arguments])


def on_each_table(function: Callable[..., Any], tables: Sequence[DaskRows], arguments: Sequence[tuple[Any, ...]]) -> Iterable[Any]:
    """The results of a function of all rows of each table and its arguments, in order; the tables have one block each."""
    typed = [(table.dtype, values) for table, values in zip(tables, arguments, strict=True)]
    return _computed(partial(_on_table, function), [table._parts[0] for table in tables], typed)


def dask_rows(collection: Any, weight_column: str | None = None) -> DaskRows:
    """The rows of a collection."""
    if hasattr(collection, "chunks") and hasattr(collection, "rechunk"):
        if collection.ndim != 2:
            hint = "; use X.reshape(-1, 1) for points on a line" if collection.ndim == 1 else ""
            raise ValueError(f"X must have two dimensions (rows, columns), got {collection.ndim}{hint}")
        whole_rows = collection if collection.numblocks[1] == 1 else collection.rechunk({1: -1})
        return DaskRows.of_partitions(whole_rows.to_delayed().reshape(-1), weight_column)
    if hasattr(collection, "npartitions") and hasattr(collection, "columns"):
        return DaskRows.of_partitions(collection.to_delayed(), weight_column)
    parts = [collection] if isinstance(collection, Delayed) else collection
    if not isinstance(parts, list | tuple):
        raise TypeError(f"X must be a Dask array, a Dask data frame or delayed partitions, got {type(collection).__name__}")
    parts = [part if isinstance(part, Delayed) else delayed(part, traverse=False) for part in parts]
    return DaskRows.of_partitions(parts, weight_column)


def gathered(vector: Any) -> NDArray[Any]:
    """The (n,) entries of a Dask array or series, or of a list of delayed arrays."""
    if not isinstance(vector, list | tuple):
        (vector,) = compute(vector)
        return np.asarray(vector)
    parts = [np.asarray(part) for part in compute(*vector)]
    return np.concatenate(parts) if parts[0].ndim else np.asarray(parts)


class _Sent:
    """An argument of a task. An array that stores one value for all entries is sent as this value and its length."""

    def __init__(self, value: Any) -> None:
        self._repeated = isinstance(value, np.ndarray) and value.ndim == 1 and value.strides == (0,) and len(value) > 1
        self._value, self._length = (value[0], len(value)) if self._repeated else (value, 0)

    def received(self) -> Any:
        """The argument."""
        return np.broadcast_to(self._value, self._length) if self._repeated else self._value


def _computed(function: Callable[..., Any], parts: Sequence[Any], arguments: Sequence[tuple[Any, ...]]) -> Iterable[Any]:
    """The results of a function of each partition and its arguments, in order."""
    shared, size = delayed(function, traverse=False, pure=False), _batch_size()
    for a in range(0, len(parts), size):
        pairs = zip(parts[a : a + size], arguments[a : a + size], strict=True)
        yield from compute(*(_task(shared, part, given) for part, given in pairs))


@partial(delayed, pure=False, traverse=False)
def _task(function: Callable[..., Any], part: Any, given: tuple[Any, ...]) -> Any:
    """A function of one partition, in one thread, because the tasks of a worker share its cores."""
    with thread_limit(1), single_threaded_blas():
        return function(part, *given)


def _batch_size() -> int:
    """The number of partitions in one call of dask.compute."""
    if "distributed" in sys.modules:
        from distributed import get_client

        try:
            return max(MIN_BATCH, BATCH_PER_THREAD * sum(get_client().nthreads().values()))
        except ValueError:  # no client
            return MIN_BATCH
    return MIN_BATCH


def _values(part: Any, weight_column: str | None) -> Any:
    """A partition without its weights, as a frame or an array."""
    part = framed(part)
    return part if weight_column is None else part[[name for name in part.columns if name != weight_column]]


def _inspected(parts: Sequence[Any], names: Sequence[str], weight_column: str | None, way_out: str | None) -> list[PartitionFacts]:
    """The properties of all partitions or tables. The first failed check raises its error here, in the process of the caller."""
    facts: list[PartitionFacts] = []
    for result in _computed(_checked, parts, [(name, weight_column, way_out) for name in names]):
        if isinstance(result, PartitionFault):
            raise result.kind(result.message)
        facts.append(result)
    return facts


def _checked(part: Any, name: str, weight_column: str | None, way_out: str | None) -> PartitionFacts | PartitionFault:
    try:
        return _facts(part, name, weight_column, way_out)
    except (TypeError, ValueError) as error:
        return PartitionFault(TypeError if isinstance(error, TypeError) else ValueError, str(error))


def _facts(part: Any, name: str, weight_column: str | None, way_out: str | None) -> PartitionFacts:
    """The properties of a partition or table, with its rows checked.

    Partitions may be empty, and ``way_out`` ends their errors about text. Tables have no ``way_out`` and are checked like arrays.
    """
    part = framed(part)
    if weight_column is not None and weight_column not in getattr(part, "columns", []):
        raise ValueError(
            f"sample_weight must be an array or the name of a column, got {weight_column!r}, which {name} does not have"
        )
    values = _values(part, weight_column)
    columns = list(values.columns) if hasattr(values, "columns") else None
    if way_out is not None:
        if len(np.shape(values)) == 2 and np.shape(values)[0] == 0:
            return PartitionFacts(0, np.shape(values)[1], columns, np.dtype(np.float64), None)
        odd = odd_column(values)
        if odd is not None:
            raise TypeError(f"{name} must hold numbers, column {odd[0]!r} holds {odd[1]!r}; {way_out}")
    points = _validate.points(values, name)
    weights = None if weight_column is None else np.asarray(part[weight_column], np.float64)
    return PartitionFacts(len(points), points.shape[1], columns, points.dtype, weights)


def _on_partition(
    function: Callable[..., Any], dtype: np.dtype[Any], weight_column: str | None, part: Any, *arguments: _Sent
) -> Any:
    """A function of the rows of a partition as an array."""
    rows = np.ascontiguousarray(_validate.as_numbers(_values(part, weight_column), "X"), dtype)
    return function(rows, *(argument.received() for argument in arguments))


def _on_table(function: Callable[..., Any], table: Any, dtype: np.dtype[Any], arguments: tuple[Any, ...]) -> Any:
    """A function of all rows of a table. Its arguments are copied, because Dask may run a task again with the same objects."""
    rows = np.ascontiguousarray(_validate.as_numbers(framed(table), "X"), dtype)
    return function(rows, *deepcopy(arguments))
