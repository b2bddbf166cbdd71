"""Rows within a radius of each other, exactly: the net of a list of rows, and all pairs.

A *net* keeps a row unless a row that was kept earlier is within the radius. Rows come in the order of their priority. The list is
halved. The net of the first half is found, and rows of the second half near it are dropped. The rest of the second half follows in
the same way. So most comparisons are between two large sets.

Two searches find the pairs of two sets that may be near. Both sort the rows along their principal directions and skip parts of the
sets with boxes farther apart than the radius.

- By coordinates: the leading principal coordinates and the length of the rest never increase a distance. Few of them rule out
  nearly all pairs if the radius is small compared with the spread of the rows.
- By products: matrix products of all columns in single precision, for large radii and structure in many columns.

Each accepted pair is confirmed by its squared distance, with the terms added in order in double precision. Errors of single
precision are bounded and added to the radius of the search, so that no pair is missed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.compiled import compiled
from reduset._engine.lazy_cover import RowStore, defining
from reduset._engine.leaves import leaf_order
from reduset._engine.profile import Frame
from reduset._engine.radius_tiles import CANDIDATES, FAR, STEP, TILE, candidates, is_near, net_of_tiles, sample_search, tiles_of
from reduset._engine.threads import blocks, run_all, single_threaded_blas
from reduset._engine.working_set import search_sizes
from reduset._types import Array, Floats, Indices, Report

BOXED = 8  # coordinates of boxes
QUERIES = 256  # rows of a task of the search by coordinates
BASE = 1024  # rows of a net that are compared with each other at once
SAMPLED = 4096
UNIT = 2.0**-24  # rounding of single precision
# nanoseconds on one core: a step for one pair; a confirmed pair, and each of its columns; a product, and each of its columns
STEP_TIME, PAIR_TIME, COLUMN_TIME, PRODUCT_TIME, TERM_TIME = 0.7, 60.0, 3.0, 1.5, 0.025


class NearRows(ABC):
    """The rows of a store, sorted for searches within a radius.

    Attributes
    ----------
    order : (n,) the row at each position
    position : (n,) the position of each row
    """

    order: Indices
    position: Indices
    base = BASE

    def __init__(self, store: RowStore, cosine: bool, squared_radius: float) -> None:
        self.store, self.cosine, self.squared_radius = store, cosine, float(squared_radius)
        self._prepare()

    @abstractmethod
    def _prepare(self) -> None:
        """Sort the rows."""

    @abstractmethod
    def _resolve(self, positions: Indices) -> Indices:
        """The net of at most ``base`` rows, in their order."""

    @abstractmethod
    def _mark_near(self, queries: Indices, targets: Indices, near: NDArray[np.bool_]) -> None:
        """Mark the queries that have a target within the radius. Positions are sorted."""

    @abstractmethod
    def _confirmed(self, queries: Indices, targets: Indices) -> Iterator[tuple[Indices, Indices, Array]]:
        """Pairs of positions within the radius, with squared distances, for sorted queries and targets."""

    def net(self, rows: Indices, report: Report | None = None) -> Indices:
        """The rows of the list that are kept: each row unless an earlier one that is kept is within the radius."""
        done = [0]

        def visit(positions: Indices) -> Indices:
            if len(positions) <= self.base:
                kept = self._resolve(positions)
                done[0] += len(positions)
                if report is not None:
                    report(done[0], len(rows))
                return kept
            first = visit(positions[: len(positions) // 2])
            second = positions[len(positions) // 2 :]
            left = second[~self._are_near(second, first)]
            done[0] += len(second) - len(left)
            return np.concatenate([first, visit(left)])

        return self.order[visit(self.position[rows])]

    def are_near(self, rows: Indices, others: Indices) -> NDArray[np.bool_]:
        """Whether one of the others is within the radius of each row."""
        return self._are_near(self.position[rows], self.position[others])

    def pairs(self, rows: Indices, others: Indices) -> tuple[Indices, Indices, Array]:
        """All pairs of a row and another within the radius, as row numbers with the squared distance; a row is not its own pair."""
        queries, targets = np.sort(self.position[rows]), np.sort(self.position[others])
        parts: list[tuple[Indices, Indices, Array]] = []
        for one, other, squares in self._confirmed(queries, targets):
            apart = one != other
            parts.append((self.order[one[apart]], self.order[other[apart]], squares[apart]))
        if not parts:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
        one, other, squares = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((other, one))
        return one[order], other[order], squares[order]

    def counts(self, n: int) -> Indices:
        """(n,) for each of the first n rows the number of others among them within the radius."""
        positions = np.sort(self.position[:n])
        totals = np.zeros(len(self.position), np.int64)
        for one, other, _ in self._confirmed(positions, positions):
            positions_of_part, counts = np.unique(one[one != other], return_counts=True)
            totals[positions_of_part] += counts
        return totals[self.position[:n]]

    def _are_near(self, queries: Indices, targets: Indices) -> NDArray[np.bool_]:
        near = np.zeros(len(queries), np.bool_)
        if len(targets) and len(queries):
            order = np.argsort(queries)
            found = np.zeros(len(queries), np.bool_)
            self._mark_near(queries[order], np.sort(targets), found)
            near[order] = found
        return near


class HostNearRows(NearRows):
    """Rows in main memory or in a mapped file."""

    def _prepare(self) -> None:
        """Sort the rows by their principal coordinates, and bound the errors of single precision."""
        store, n, d = self.store, self.store.count, self.store.dimension
        most, self.chunk, self.part, _ = search_sizes(n, d, store.max_memory)
        self.base = min(BASE, self.chunk)
        sample = defining(store.take(np.arange(0, n, -(-n // min(SAMPLED, 2 * self.chunk)))), self.cosine)
        self.centre = sample.mean(axis=0)
        sample -= self.centre
        with single_threaded_blas():
            _, axes = np.linalg.eigh(sample.T @ sample)
        self.axes = np.ascontiguousarray(axes[:, ::-1][:, : min(d, most - 1)])
        width = min(d, most - 1) + (d >= most)
        coordinates = np.zeros((n, -(-width // STEP) * STEP), np.float32)
        reach = np.zeros(len(parts := blocks(n, self.chunk)))
        run_all([partial(self._place, coordinates, reach, k, a, b) for k, (a, b) in enumerate(parts)], blas=True)
        self.reach = float(reach.max())
        keys = coordinates[:, : min(16, coordinates.shape[1])]
        self.order = leaf_order(keys, Frame(np.zeros(keys.shape[1]), 1.0), TILE)[0].astype(np.int64)
        self.position = np.empty(n, np.int64)
        self.position[self.order] = np.arange(n)
        for c in range(0, coordinates.shape[1], STEP):  # a sorted copy of all columns would need twice the memory
            coordinates[:, c : c + STEP] = coordinates[self.order, c : c + STEP]
        self.coordinates = coordinates
        error = 2 * (np.sqrt(width) * UNIT + np.sqrt(4 * d * 2.0**-53)) * self.reach
        self.squared_radius = min(self.squared_radius, 9 * self.reach**2)  # no two rows are farther apart than twice the reach
        limit = (np.sqrt(self.squared_radius) + error) ** 2 * (1 + (width + 8) * 2 * UNIT)
        self.limit = np.nextafter(np.float32(limit), np.float32(np.inf))
        self._by_products = self._products_are_faster()

    def _place(self, coordinates: Floats, reach: Array, k: int, a: int, b: int) -> None:
        exact = defining(self.store.take(slice(a, b)), self.cosine)
        exact -= self.centre
        leading = exact @ self.axes
        squares = np.einsum("ij,ij->i", exact, exact)
        width = leading.shape[1]
        coordinates[a:b, :width] = leading
        if exact.shape[1] > width:
            coordinates[a:b, width] = np.sqrt(np.maximum(squares - np.einsum("ij,ij->i", leading, leading), 0))
        reach[k] = np.sqrt(squares.max())

    def _products_are_faster(self) -> bool:
        """Compare the estimated times of the two searches on a sample of pairs."""
        n, d = len(self.order), self.store.dimension
        rows = np.arange(0, n, -(-n // SAMPLED))
        queries = self.coordinates[rows[:: max(1, len(rows) // 512)]]
        steps, near = sample_search(queries, tiles_of(self.coordinates[rows]), self.limit)
        pairs = len(queries) * len(rows)
        near -= len(queries)  # each with itself
        by_coordinates = STEP_TIME * steps / pairs + (PAIR_TIME + COLUMN_TIME * d) * max(near, 0) / pairs
        return bool(by_coordinates > PRODUCT_TIME + TERM_TIME * d)

    def _resolve(self, positions: Indices) -> Indices:
        """The net of a few rows, in their order."""
        if not len(positions):
            return positions
        exact = np.ascontiguousarray(defining(self.store.take(self.order[positions]), self.cosine))
        alive = np.ones(len(positions), np.bool_)
        if self._by_products:
            squares, slack = self._squares(positions, positions)
            _net_of_squares(squares, slack, exact, self.squared_radius, alive)
        else:
            points = self.coordinates[positions]
            net_of_tiles(points, tiles_of(points), exact, self.limit, self.squared_radius, alive)
        return positions[alive]

    def counts(self, n: int) -> Indices:
        """(n,) for each of the first n rows the number of others among them within the radius; dense pairs are not listed."""
        if not self._by_products:
            return super().counts(n)
        positions = np.sort(self.position[:n])
        totals = np.full(len(positions), -1)  # each row is within the radius of itself

        def task(a: int, b: int) -> None:
            for c, e in blocks(len(positions), self.chunk):
                if self._are_apart(positions[a:b], positions[c:e]):
                    continue
                squares, slack = self._squares(positions[a:b], positions[c:e])
                near = squares <= self.squared_radius - slack
                totals[a:b] += np.count_nonzero(near, axis=1)
                for one, other in _listed((squares <= self.squared_radius + slack) & ~near):
                    exact = self._distances(self.order[positions[a + one]], self.order[positions[c + other]])
                    totals[a:b] += np.bincount(one[exact <= self.squared_radius], minlength=b - a)

        run_all([partial(task, a, b) for a, b in blocks(len(positions), self.chunk)], blas=True)
        counts = np.empty(n, np.int64)
        counts[self.order[positions]] = totals
        return counts

    def _mark_near(self, queries: Indices, targets: Indices, near: NDArray[np.bool_]) -> None:
        (self._near_by_products if self._by_products else self._near_by_coordinates)(queries, targets, near)

    def _near_by_coordinates(self, queries: Indices, targets: Indices, near: NDArray[np.bool_]) -> None:
        def task(a: int, b: int, part: Indices, boxed: tuple[Floats, Floats, Floats]) -> None:
            points, numbers = self.coordinates[queries[a:b]], self.order[queries[a:b]]
            for one, other in candidates(points, *boxed, self.limit, near[a:b]):
                squares = self._distances(numbers[one], self.order[part[other]])
                near[a + one[squares <= self.squared_radius]] = True

        for c, e in blocks(len(targets), self.part):
            boxed = self._boxed_tiles(targets[c:e])
            run_all([partial(task, a, b, targets[c:e], boxed) for a, b in blocks(len(queries), QUERIES)])

    def _near_by_products(self, queries: Indices, targets: Indices, near: NDArray[np.bool_]) -> None:
        parts = blocks(len(targets), self.chunk)

        def task(a: int, b: int) -> None:
            for c, e in parts:
                left = np.flatnonzero(~near[a:b])
                if len(left) and not self._are_apart(queries[a:b], targets[c:e]):
                    squares, slack = self._squares(queries[a + left], targets[c:e])
                    least = squares.min(axis=1)
                    near[a + left[least <= self.squared_radius - slack]] = True
                    for i, j in _listed((squares <= self.squared_radius + slack) & ~near[a + left][:, None]):
                        exact = self._distances(self.order[queries[a + left[i]]], self.order[targets[c + j]])
                        near[a + left[i[exact <= self.squared_radius]]] = True

        run_all([partial(task, a, b) for a, b in blocks(len(queries), self.chunk)], blas=True)

    def _confirmed(self, queries: Indices, targets: Indices) -> Iterator[tuple[Indices, Indices, Array]]:
        """Pairs of positions within the radius, with squared distances, for sorted queries and targets."""
        parts = [(0, len(targets))] if self._by_products else blocks(len(targets), self.part)
        for c, e in parts:
            yield from self._confirmed_in(queries, targets[c:e])

    def _confirmed_in(self, queries: Indices, targets: Indices) -> Iterator[tuple[Indices, Indices, Array]]:
        """The pairs with a part of the targets."""
        length = self.chunk if self._by_products else QUERIES
        tiles = None if self._by_products else self._boxed_tiles(targets)
        for begin, end in blocks(len(queries), 16 * length):
            parts: dict[int, list[tuple[Indices, Indices, Array]]] = {a: [] for a, _ in blocks(end - begin, length)}

            def task(a: int, b: int, chosen: Indices, found: list[tuple[Indices, Indices, Array]]) -> None:
                for one, other in self._possible(chosen[a:b], targets, tiles):
                    squares = self._distances(self.order[one], self.order[other])
                    near = squares <= self.squared_radius
                    found.append((one[near], other[near], squares[near]))

            run_all(
                [partial(task, a, b, queries[begin:end], parts[a]) for a, b in blocks(end - begin, length)], blas=self._by_products
            )
            for found in parts.values():
                yield from found

    def _possible(self, queries: Indices, targets: Indices, tiles: Any) -> Iterator[tuple[Indices, Indices]]:
        """Pairs of positions that may be within the radius."""
        if tiles is not None:
            points = self.coordinates[queries]
            for one, other in candidates(points, tiles[0], tiles[1], tiles[2], self.limit, np.zeros(len(points), np.bool_)):
                yield queries[one], targets[other]
            return
        for a, b in blocks(len(targets), self.chunk):
            if not self._are_apart(queries, targets[a:b]):
                squares, slack = self._squares(queries, targets[a:b])
                for one, other in _listed(squares <= self.squared_radius + slack):
                    yield queries[one], targets[a + other]

    def _are_apart(self, queries: Indices, targets: Indices) -> bool:
        """Whether the boxes of two sets are farther apart than the radius."""
        one, other = self.coordinates[queries, :BOXED], self.coordinates[targets, :BOXED]
        gaps = np.maximum(np.maximum(one.min(axis=0) - other.max(axis=0), other.min(axis=0) - one.max(axis=0)), 0)
        return bool((gaps * gaps).sum() > self.limit)

    def _squares(self, queries: Indices, targets: Indices) -> tuple[NDArray[np.float32], float]:
        """(q, t) squared distances by a product in single precision, and a bound on their error."""
        one, other = self._single(queries), self._single(targets)
        squares_of_one, squares_of_other = np.einsum("ij,ij->i", one, one), np.einsum("ij,ij->i", other, other)
        with np.errstate(invalid="ignore"):  # BLAS may read values beyond the last row and warn about them
            squares = one @ other.T
        squares *= -2
        squares += squares_of_one[:, None]
        squares += squares_of_other
        largest = float(squares_of_one.max()) + float(squares_of_other.max())
        return squares, (self.store.dimension + 16) * 4 * UNIT * largest

    def _single(self, positions: Indices) -> NDArray[np.float32]:
        exact = defining(self.store.take(self.order[positions]), self.cosine)
        exact -= self.centre
        return exact.astype(np.float32)

    def _distances(self, rows: Indices, others: Indices) -> Array:
        """Squared distances of pairs of rows."""
        squares = np.empty(len(rows))
        for a, b in blocks(len(rows), max(1, 128 * self.chunk // self.store.dimension)):
            one = defining(self.store.take(rows[a:b]), self.cosine)
            _add_squares(one, defining(self.store.take(others[a:b]), self.cosine), squares[a:b])
        return squares

    def _boxed_tiles(self, targets: Indices) -> tuple[Floats, Floats, Floats]:
        """Tiles of the coordinates of sorted rows, and the boxes of these tiles."""
        tiles = tiles_of(self.coordinates[targets])
        boxed = tiles[:, :BOXED]
        low = boxed.min(axis=2)
        return tiles, low, np.where(boxed == FAR, -FAR, boxed).max(axis=2)


def _listed(marks: NDArray[np.bool_]) -> Iterator[tuple[Indices, Indices]]:
    """The positions of the marks of a matrix, some thousand at a time."""
    one, other = np.nonzero(marks)
    for a, b in blocks(len(one), CANDIDATES):
        yield one[a:b], other[a:b]


@compiled()
def _add_squares(one, other, squares):
    for i in range(len(squares)):
        total = 0.0
        for j in range(one.shape[1]):
            u = one[i, j] - other[i, j]
            total += u * u
        squares[i] = total


@compiled()
def _net_of_squares(squares, slack, exact, squared_radius, alive):
    for i in range(len(squares)):
        if not alive[i]:
            continue
        for j in range(i + 1, len(squares)):
            if squares[i, j] > squared_radius + slack or not alive[j]:
                continue
            if squares[i, j] <= squared_radius - slack or is_near(exact[i], exact[j], squared_radius):
                alive[j] = False


def net_of_pairs(count: int, ones: Indices, others: Indices) -> NDArray[np.bool_]:
    """Which of some rows are kept, given the pairs of near rows in both orders."""
    order = np.lexsort((others, ones))
    starts = np.searchsorted(ones[order], np.arange(count + 1))
    alive = np.ones(count, np.bool_)
    _drop_neighbours(starts, others[order], alive)
    return alive


@compiled()
def _drop_neighbours(starts, others, alive):
    for i in range(len(alive)):
        if alive[i]:
            for k in range(starts[i], starts[i + 1]):
                if others[k] > i:
                    alive[others[k]] = False
