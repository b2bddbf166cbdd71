"""Rows in partitions: a pass runs one task for each partition, on an engine.

Partitions are arrays, frames, Arrow tables or parts of files, or an engine's handles of such. They may be empty, of unknown length,
and of several types. Tasks check them when they are opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from reduset import _validate
from reduset._engine import BlockRows
from reduset._frames import framed, odd_column
from reduset._types import Array
from reduset.data.engine import Engine
from reduset.io import FileError, FileShard, TableFiles


class PartitionFault(NamedTuple):
    """An error of the input checks, returned by a task. An exception raised in a task would show the traceback of the worker."""

    kind: type[Exception]
    message: str


class PartitionFacts(NamedTuple):
    """Length, number and names of columns, type and weights of a partition, and its number of omitted rows."""

    length: int
    dimension: int
    columns: list[Any] | None
    dtype: np.dtype[Any]
    weights: Array | None
    dropped: int = 0


class PartitionRows(BlockRows):
    """The rows of partitions of an engine.

    Attributes
    ----------
    columns : d names, or None
    weights : (n,) from the weight column, or None
    notes : messages about reading files
    files : the files of the rows, or None
    """

    files: TableFiles | None = None

    def __init__(
        self, engine: Engine, parts: Sequence[Any], facts: Sequence[PartitionFacts], weight_column: str | None = None
    ) -> None:
        self._engine, self._parts, self._weight_column = engine, list(parts), weight_column
        filled = [part for part in facts if part.length]
        if not filled:
            raise ValueError("X must hold at least one row, but all partitions are empty")
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
    def of_data(cls, engine: Engine, data: Any, weight_column: str | None = None) -> PartitionRows:
        """The rows of all partitions of the data, checked in one pass."""
        parts = engine.parts(data)
        names = [f"partition {k}" for k in range(len(parts))]
        return cls(engine, parts, _inspected(engine, parts, names, weight_column, engine.encode), weight_column)

    @classmethod
    def of_files(cls, engine: Engine, files: TableFiles) -> PartitionRows:
        """The rows of files, which the tasks read. Partitions do not depend on the engine."""
        shards = files.shards()
        names = [f"partition {k}" for k in range(len(shards))]
        parts = [engine.stored(shard) for shard in shards]
        facts = _inspected(engine, parts, names, None, engine.encode)
        rows = cls(engine, parts, facts)
        rows.files = files
        rows.columns, rows.in_one_unit = list(files.columns), files.in_one_unit
        rows.notes = files.notes(sum(part.dropped for part in facts))
        return rows

    @classmethod
    def of_tables(cls, engine: Engine, tables: Sequence[Any], names: Sequence[str]) -> list[PartitionRows]:
        """Each table as one block, all of them checked in one pass. The partitions of a table are joined on one worker."""
        parts = [engine.whole(table) for table in tables]
        facts = _inspected(engine, parts, names, None, None)
        return [cls(engine, [part], [fact]) for part, fact in zip(parts, facts, strict=True)]

    @property
    def is_one_block(self) -> bool:
        """Whether one task computes all rows."""
        return len(self._parts) == 1

    def run(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], blocks: Sequence[int]) -> Iterable[Any]:
        task = partial(_on_partition, function, self.dtype, self._weight_column)
        sent = [(int(self.starts[k + 1] - self.starts[k]), *map(_Sent, given)) for k, given in zip(blocks, arguments, strict=True)]
        return self._engine.each(task, [self._parts[k] for k in blocks], sent)


def on_each_table(
    function: Callable[..., Any], tables: Sequence[PartitionRows], arguments: Sequence[tuple[Any, ...]]
) -> Iterator[Any]:
    """The results of a function of all rows of each table and its arguments, in order; the tables have one block each."""
    for engine, group in groupby(zip(tables, arguments, strict=True), key=lambda pair: pair[0]._engine):
        pairs = list(group)
        typed = [(table.dtype, values) for table, values in pairs]
        yield from engine.each(partial(_on_table, function), [table._parts[0] for table, _ in pairs], typed)


class _Sent:
    """An argument of a task. An array that stores one value for all entries is sent as this value and its length."""

    def __init__(self, value: Any) -> None:
        self._repeated = isinstance(value, np.ndarray) and value.ndim == 1 and value.strides == (0,) and len(value) > 1
        self._value, self._length = (value[0], len(value)) if self._repeated else (value, 0)

    def received(self) -> Any:
        """The argument."""
        return np.broadcast_to(self._value, self._length) if self._repeated else self._value


def _values(part: Any, weight_column: str | None) -> Any:
    """A partition without its weights, as a frame or an array."""
    if isinstance(part, FileShard):
        return part.read().values
    part = framed(part)
    return part if weight_column is None else part[[name for name in part.columns if name != weight_column]]


def _inspected(
    engine: Engine, parts: Sequence[Any], names: Sequence[str], weight_column: str | None, encode: str | None
) -> list[PartitionFacts]:
    """The properties of all partitions or tables. The first failed check raises its error here, in the process of the caller."""
    facts: list[PartitionFacts] = []
    for result in engine.each(_checked, parts, [(name, weight_column, encode) for name in names]):
        if isinstance(result, PartitionFault):
            raise result.kind(result.message)
        facts.append(result)
    return facts


def _checked(part: Any, name: str, weight_column: str | None, encode: str | None) -> PartitionFacts | PartitionFault:
    try:
        return _facts_of_file(part, name) if isinstance(part, FileShard) else _facts(part, name, weight_column, encode)
    except FileError as error:
        return PartitionFault(FileError, f"{name}, {error}")
    except (TypeError, ValueError) as error:
        return PartitionFault(TypeError if isinstance(error, TypeError) else ValueError, str(error))


def _facts_of_file(shard: FileShard, name: str) -> PartitionFacts:
    """The properties of a part of a file, with its rows checked."""
    table = shard.read()
    if len(table):
        _validate.points(table.values, f"{name}, {shard.name},")
    return PartitionFacts(len(table), len(table.columns), None, table.values.dtype, table.weights, table.dropped)


def _facts(part: Any, name: str, weight_column: str | None, encode: str | None) -> PartitionFacts:
    """The properties of a partition or table, with its rows checked.

    Partitions may be empty, and ``encode`` ends their errors about text. Tables have no ``encode`` and are checked like arrays.
    """
    part = framed(part)
    if weight_column is not None and weight_column not in getattr(part, "columns", []):
        raise ValueError(
            f"sample_weight must be an array or the name of a column, got {weight_column!r}, which {name} does not have"
        )
    values = _values(part, weight_column)
    columns = list(values.columns) if hasattr(values, "columns") else None
    if encode is not None:
        if len(np.shape(values)) == 2 and np.shape(values)[0] == 0:
            return PartitionFacts(0, np.shape(values)[1], columns, np.dtype(np.float64), None)
        odd = odd_column(values)
        if odd is not None:
            raise TypeError(f"{name} must hold numbers, column {odd[0]!r} holds {odd[1]!r}; {encode}")
    points = _validate.points(values, name)
    weights = None if weight_column is None else np.asarray(part[weight_column], np.float64)
    return PartitionFacts(len(points), points.shape[1], columns, points.dtype, weights)


def _on_partition(
    function: Callable[..., Any], dtype: np.dtype[Any], weight_column: str | None, part: Any, length: int, *arguments: _Sent
) -> Any:
    """A function of the rows of a partition as an array."""
    rows = _array(part, weight_column, dtype)
    if len(rows) != length:
        name = part.name if isinstance(part, FileShard) else "a partition"
        raise FileError(f"{name}: has {len(rows):,} rows, and had {length:,} when it was opened; open it again")
    return function(rows, *(argument.received() for argument in arguments))


def _on_table(function: Callable[..., Any], table: Any, dtype: np.dtype[Any], arguments: tuple[Any, ...]) -> Any:
    """A function of all rows of a table. Its arguments are copied, because an engine may run a task again with the same objects."""
    return function(_array(table, None, dtype), *deepcopy(arguments))


def _array(part: Any, weight_column: str | None, dtype: np.dtype[Any]) -> Any:
    """The rows of a partition as an array, which is writable like arrays in memory, so that loops are not compiled again."""
    return np.require(_validate.as_numbers(_values(part, weight_column), "X"), dtype, ["C", "W"])
