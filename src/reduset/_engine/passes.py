"""Passes over rows that are not in one array: rows in blocks, in files or on other machines.

A pass is a function of one block of rows, with the matching entries of per-row vectors. `BlockRows.reduce` combines the results
pairwise in a fixed tree, so that the result depends only on the blocks. `BlockRows.map_rows` returns one entry a row. A back end
implements `run`: call a function on some blocks and return the results in order.

A primitive decorated with `over_blocks` computes each block like an array, and combines the results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, wraps
from itertools import pairwise
from typing import Any, NoReturn, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from reduset._engine.cached import cached_property
from reduset._engine.cuda.arrays import on_device

LOADED_ENTRIES = 1 << 25  # largest number of entries in a selection of rows that is loaded
CACHED_SLICE_ROWS = 1 << 13  # largest number of rows in a slice that is cached

P = ParamSpec("P")
R = TypeVar("R")


class BlockRows(ABC):
    """An (n, d) table of finite numbers in blocks of rows.

    Indexing fetches the rows and returns an array. The table is never converted as a whole.

    Attributes
    ----------
    shape, dtype, ndim, size : as for an array
    starts : (blocks + 1,) the number of rows before each block, and the total
    columns : names of columns, or None
    weights : (n,) weights stored with the rows, or None
    notes : messages about what reading changed
    in_one_unit : whether all columns have one unit
    """

    ndim = 2
    columns: list[Any] | None = None
    weights: NDArray[np.float64] | None = None
    notes: tuple[str, ...] = ()
    in_one_unit: bool = False

    def __init__(self, lengths: Sequence[int], dimension: int, dtype: Any) -> None:
        self.starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        self.shape = (int(self.starts[-1]), dimension)
        self.size = self.shape[0] * dimension
        self.dtype = np.dtype(dtype)
        self._slices: dict[tuple[int, int, int], NDArray[Any]] = {}

    @abstractmethod
    def run(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], blocks: Sequence[int]) -> Iterable[Any]:
        """The results of ``function(rows, *arguments[k])`` for the k-th of some blocks, in order; rows are a C-ordered array."""

    # -- passes -------------------------------------------------------------------------------------------------------------

    def results(self, function: Callable[..., Any], *vectors: Any) -> Iterator[tuple[int, int, Any]]:
        """(start, stop, result) of every block with rows; ``vectors`` have one entry a row."""
        filled = [k for k in range(len(self.starts) - 1) if self.starts[k] < self.starts[k + 1]]
        bounds = [(int(self.starts[k]), int(self.starts[k + 1])) for k in filled]
        arguments = [tuple(None if vector is None else vector[a:b] for vector in vectors) for a, b in bounds]
        for (a, b), result in zip(bounds, self.run(function, arguments, filled), strict=True):
            yield a, b, result

    def reduce(self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *vectors: Any) -> Any:
        """The results of all blocks, combined in a binary tree."""
        waiting: list[tuple[int, Any]] = []  # (level in the tree, result)
        for _, _, result in self.results(function, *vectors):
            level = 0
            while waiting and waiting[-1][0] == level:
                result = combine(waiting.pop()[1], result)
                level += 1
            waiting.append((level, result))
        total = waiting.pop()[1]
        while waiting:
            total = combine(waiting.pop()[1], total)
        return total

    def map_rows(self, function: Callable[..., Any], *vectors: Any) -> NDArray[Any]:
        """(n, …) the results of a function for the rows of each block, concatenated."""
        return np.concatenate([result for _, _, result in self.results(function, *vectors)])

    # -- array interface --------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def itemsize(self) -> int:
        """Bytes of a number."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all rows as an array."""
        return self.size * self.dtype.itemsize

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        if isinstance(rows, tuple):
            which, columns = rows
            if isinstance(which, slice) and which == slice(None):
                return self.map_rows(partial(_columns, columns))
            return self[which][:, columns]
        if isinstance(rows, int | np.integer):
            row = int(rows) + (len(self) if rows < 0 else 0)
            return cast(NDArray[Any], self[row : row + 1][0])
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            wanted = np.arange(start, stop, step)
            if len(wanted) > CACHED_SLICE_ROWS:
                return self._fetched(wanted)
            if (start, stop, step) not in self._slices:
                self._slices[start, stop, step] = self._fetched(wanted)
            return self._slices[start, stop, step]
        numbers = np.asarray(rows)
        return self._fetched(np.flatnonzero(numbers) if numbers.dtype == bool else numbers.astype(np.int64, copy=False))

    def _fetched(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """(…, d) rows by number, in any order, from their blocks."""
        wanted, positions = np.unique(np.where(rows < 0, rows + len(self), rows), return_inverse=True)
        if len(wanted) and not 0 <= wanted[0] <= wanted[-1] < len(self):
            raise IndexError(f"row numbers must be from 0 to {len(self) - 1}, got {int(rows.min())} to {int(rows.max())}")
        ends = np.searchsorted(wanted, self.starts)
        needed = [k for k, (a, b) in enumerate(pairwise(ends)) if a < b]
        local = [(wanted[ends[k] : ends[k + 1]] - self.starts[k],) for k in needed]
        parts = [np.empty((0, self.shape[1]), self.dtype), *self.run(_selected, local, needed)]
        return np.concatenate(parts)[positions.reshape(rows.shape)]

    def among(self, rows: Any) -> Any:
        """A selection of rows: in blocks if they are many and ascending, otherwise loaded."""
        if isinstance(rows, slice):
            rows = np.arange(len(self))[rows]
        rows = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows, np.int64)
        if len(rows) * self.shape[1] <= LOADED_ENTRIES or (np.diff(rows) <= 0).any():
            return self._fetched(rows)
        return SelectedRows(self, rows)

    @cached_property
    def _box(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The minimum and the maximum of each column."""
        return cast(tuple[NDArray[Any], NDArray[Any]], self.reduce(box_of, joined_boxes))

    def min(self, axis: int | None = None) -> Any:
        """The minimum of all numbers, or of each column."""
        return self._box[0].min() if axis is None else self._box[0]

    def max(self, axis: int | None = None) -> Any:
        """The maximum of all numbers, or of each column."""
        return self._box[1].max() if axis is None else self._box[1]

    def __truediv__(self, units: NDArray[np.float64]) -> BlockRows:
        return MappedRows(self, np.diag(1 / units))

    def __matmul__(self, matrix: NDArray[np.float64]) -> BlockRows:
        return MappedRows(self, matrix)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            f"X is {len(self):,} rows outside of main memory, but this function needs all of them in memory; load them "
            "(reduset.io.read, or collection.compute()), or use the defaults"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]:,} by {self.shape[1]}, {self.dtype}, {len(self.starts) - 1} blocks)"


class SelectedRows(BlockRows):
    """A selection of rows of another table, ascending."""

    def __init__(self, rows: BlockRows, numbers: NDArray[np.int64]) -> None:
        ends = np.searchsorted(numbers, rows.starts)
        super().__init__(np.diff(ends).tolist(), rows.shape[1], rows.dtype)
        self._rows = rows
        self._local = [numbers[a:b] - start for (a, b), start in zip(pairwise(ends), rows.starts, strict=False)]

    def run(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], blocks: Sequence[int]) -> Iterable[Any]:
        selected = [(self._local[k], *block_arguments) for k, block_arguments in zip(blocks, arguments, strict=True)]
        return self._rows.run(partial(_of_selected, function), selected, blocks)


class MappedRows(BlockRows):
    """The images of rows under a linear map."""

    def __init__(self, rows: BlockRows, matrix: NDArray[np.float64]) -> None:
        super().__init__(np.diff(rows.starts).tolist(), matrix.shape[1], np.float64)
        self._rows, self._matrix = rows, matrix

    def run(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], blocks: Sequence[int]) -> Iterable[Any]:
        return self._rows.run(partial(_of_image, function, self._matrix), arguments, blocks)


def over_blocks(combine: Callable[[Any, Any], Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a primitive f(points, weights, …) accept `BlockRows`: f of each block with its weights, combined two at a time."""

    def decorate(primitive: Callable[P, R]) -> Callable[P, R]:
        @wraps(primitive)
        def dispatched(*positional: P.args, **keywords: P.kwargs) -> R:
            points = positional[0]
            if not isinstance(points, BlockRows):
                return primitive(*positional, **keywords)
            call = partial(_call, dispatched, positional[2:], keywords)
            return cast(R, points.reduce(call, combine, positional[1]))

        return dispatched

    return decorate


def in_blocks(points: Any) -> bool:
    """Whether rows are in blocks outside of main memory."""
    return isinstance(points, BlockRows)


def in_memory(points: Any) -> bool:
    """Whether rows are an array in main memory, or a mapped file."""
    return not (isinstance(points, BlockRows) or on_device(points))


def held_rows(points: Any, rows: NDArray[np.integer]) -> tuple[Any, NDArray[np.integer]]:
    """An array with some rows, and their positions in it, for rows that are needed repeatedly. An array is returned unchanged."""
    if not isinstance(points, BlockRows):
        return points, rows
    wanted, positions = np.unique(rows, return_inverse=True)
    return points[wanted], positions.reshape(rows.shape)


def map_rows(points: Any, function: Callable[..., NDArray[Any]], *vectors: Any) -> NDArray[Any]:
    """(n, …) the results of a function of rows and their entries of vectors, called once per block, or once for an array."""
    return points.map_rows(function, *vectors) if isinstance(points, BlockRows) else function(points, *vectors)


def each_column(points: Any) -> Iterator[NDArray[Any]]:
    """The columns (n,), one after the other. For rows in blocks, one pass fetches several."""
    d = points.shape[1]
    width = max(1, LOADED_ENTRIES // len(points)) if isinstance(points, BlockRows) else d
    for a in range(0, d, width):
        part = points[:, a : a + width] if isinstance(points, BlockRows) else points
        yield from (part[:, k] for k in range(part.shape[1]))


def add(one: Any, other: Any) -> Any:
    """The sum of two results, or of each of their parts."""
    return tuple(a + b for a, b in zip(one, other, strict=True)) if isinstance(one, tuple) else one + other


def box_of(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The minimum and the maximum of each column."""
    return rows.min(axis=0), rows.max(axis=0)


def joined_boxes(one: Any, other: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The smallest box that contains two boxes."""
    return np.minimum(one[0], other[0]), np.maximum(one[1], other[1])


# Functions of a block at module level, so that other processes can import them.


def _call(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any], rows: Any, weights: Any) -> Any:
    return function(rows, weights, *arguments, **keywords)


def _selected(rows: NDArray[Any], which: NDArray[np.int64]) -> NDArray[Any]:
    return rows[which]


def _columns(columns: Any, rows: NDArray[Any]) -> NDArray[Any]:
    return np.array(rows[:, columns])


def _of_image(function: Callable[..., Any], matrix: NDArray[np.float64], rows: NDArray[Any], *arguments: Any) -> Any:
    return function(rows.astype(np.float64) @ matrix, *arguments)


def _of_selected(function: Callable[..., Any], rows: NDArray[Any], which: NDArray[np.int64], *arguments: Any) -> Any:
    return function(rows[which], *arguments)
