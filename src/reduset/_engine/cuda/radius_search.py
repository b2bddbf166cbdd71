"""Rows on a GPU within a radius of each other (`_engine.radius_search`), by matrix products on the tensor cores.

Rows are sorted by the nearest of some pivots, selected farthest first. Two groups are skipped if their pivots are farther apart
than the radius and the radii of both groups. So nothing is compared across clusters that are far apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.cuda.guard import cuda_errors
from reduset._engine.cuda.kernels import TYPES, kernel
from reduset._engine.lazy_cover import UNIT, LazyCover
from reduset._engine.radius_search import NearRows, net_of_pairs
from reduset._engine.threads import blocks
from reduset._types import Array, Indices

QUERIES, TARGETS = 1 << 14, 1 << 14  # rows of a matrix product
PIVOTS, GROUP = 2048, 256  # most groups, and least rows of a group on average
WHOLE = 0.9  # share of the targets above which all are compared
THREADS = 128
PAIRS = 1 << 22  # pairs confirmed at a time


class DeviceNearRows(NearRows):
    """Rows of a CuPy array."""

    base = 1 << 13

    def _prepare(self) -> None:
        store, xp, n = self.store, self.store.arrays, self.store.count
        with store.at_work():
            pivots = LazyCover(store, self.cosine)
            pivots.add_rows(np.zeros(1, np.int64))
            pivots.extend(max(0, min(PIVOTS, n // GROUP) - 1))
            group, distance = pivots.assignments()
            centres = pivots.centres
            radii = np.zeros(len(centres))
            np.maximum.at(radii, group, distance)
            squares = (centres * centres).sum(axis=1)
            gaps = xp.sqrt(xp.maximum(squares[:, None] + squares - 2 * centres @ centres.T, 0)).get()
            reach = radii * (1 + 1e-6)
            slack = 1e-6 * (float(xp.sqrt(squares.max())) + float(reach.max()))
            self._joined = xp.asarray(gaps <= reach[:, None] + reach + np.sqrt(self.squared_radius) + slack)
            self.order = np.argsort(group, kind="stable")
            self.position = np.empty(n, np.int64)
            self.position[self.order] = np.arange(n)
            self._rows, self._groups = xp.asarray(self.order), xp.asarray(group[self.order])
            self._squares = xp.empty(n, xp.float32)
            for a, b in blocks(n, TARGETS):
                part = store.take(self._rows[a:b]).astype(xp.float32)
                self._squares[a:b] = xp.einsum("ij,ij->i", part, part)
            largest = 1.0 if self.cosine else float(self._squares.max())
            self.squared_radius = min(self.squared_radius, 9 * largest)  # no squared distance of two rows is above 4 · largest
            self._slack = (store.dimension + 16) * 4 * UNIT * 2 * largest

    # The score of a query x and a target t is x·t / |t| for cosines, x·t − |t|²/2 otherwise. The squared distance is
    # 2 − 2·score / |x|, or |x|² − 2·score.

    def _scores(self, queries: Any, targets: Any) -> Any:
        """(q, t) scores."""
        products, squares = self._products(queries, targets), self._squares[targets]
        if self.cosine:
            products /= self.store.arrays.sqrt(squares)
        else:
            products -= squares / 2
        return products

    def _largest(self, products: Any, targets: Any) -> Any:
        """(q,) the largest score of each query."""
        xp, squares = self.store.arrays, self._squares[targets]
        factor = 1 / xp.sqrt(squares) if self.cosine else squares / 2
        largest, missing = xp.empty(len(products), xp.float32), np.uint64(0)
        vectors = (factor, missing) if self.cosine else (missing, factor)
        kernel("largest_scores")((len(products),), (256,), (products, *vectors, np.int64(len(factor)), largest))
        return largest

    def _lengths(self, queries: Any) -> tuple[Any, Any]:
        """(q,) offset and factor: the squared distance is offset − factor · score."""
        xp, squares = self.store.arrays, self._squares[queries]
        return (xp.full_like(squares, 2), 2 / xp.sqrt(squares)) if self.cosine else (squares, xp.full_like(squares, 2))

    def _near_targets(self, queries: Any, targets: Any) -> Any:
        """The targets in groups that are not too far from all groups of the queries."""
        xp = self.store.arrays
        joined = self._joined[xp.unique(self._groups[queries])].any(axis=0)[self._groups[targets]]
        return targets if float(joined.mean()) > WHOLE else targets[joined]

    def _products(self, queries: Any, targets: Any) -> Any:
        return self.store.products(self.store.take(self._rows[queries]), self.store.take(self._rows[targets]))

    def _mark_near(self, queries: Indices, targets: Indices, near: NDArray[np.bool_]) -> None:
        xp = self.store.arrays
        with cuda_errors(), self.store.at_work():
            every = xp.asarray(targets)
            for a, b in blocks(len(queries), QUERIES):
                part = xp.asarray(queries[a:b])
                found, offset_factor = xp.zeros(b - a, bool), self._lengths(part)
                chosen = self._near_targets(part, every)
                for c, e in blocks(len(chosen), TARGETS):
                    self._mark_part(part, chosen[c:e], offset_factor, found)
                near[a:b] = found.get()

    def _mark_part(self, queries: Any, targets: Any, offset_factor: tuple[Any, Any], found: Any) -> None:
        xp = self.store.arrays
        products = self._products(queries, targets)
        offset, scale = offset_factor
        least = offset - scale * self._largest(products, targets)
        found |= least <= self.squared_radius - self._slack
        unsure = xp.flatnonzero((least <= self.squared_radius + self._slack) & ~found)
        squares_of_targets = self._squares[targets]
        for a, b in blocks(len(unsure), QUERIES):
            some = unsure[a:b]
            scores = products[some] / xp.sqrt(squares_of_targets) if self.cosine else products[some] - squares_of_targets / 2
            squares = offset[some, None] - scale[some, None] * scores
            one, other = xp.nonzero(squares <= self.squared_radius + self._slack)
            for c, e in blocks(len(one), PAIRS):
                pairs = some[one[c:e]], other[c:e]
                exact = self._exact(queries[pairs[0]], targets[pairs[1]])
                found[pairs[0][exact <= self.squared_radius]] = True

    def _exact(self, queries: Any, targets: Any) -> Any:
        """Squared distances of pairs of positions by the definition."""
        xp, store = self.store.arrays, self.store
        squares = xp.empty(len(queries))
        if len(queries):
            values = store.values  # type: ignore[attr-defined]
            program = kernel("pair_squares", TYPE=TYPES[values.dtype.name])
            arguments = values, self._rows[queries], self._rows[targets], np.int64(len(queries)), np.int32(store.dimension)
            program(((len(queries) + THREADS - 1) // THREADS,), (THREADS,), (*arguments, np.int32(self.cosine), squares))
        return squares

    def _possible(self, queries: Any, targets: Any) -> Iterator[tuple[Any, Any, Any]]:
        """Pairs of positions within the radius, with squared distances, on the device."""
        xp = self.store.arrays
        offset, scale = self._lengths(queries)
        squares = offset[:, None] - scale[:, None] * self._scores(queries, targets)
        one, other = xp.nonzero(squares <= self.squared_radius + self._slack)
        for a, b in blocks(len(one), PAIRS):
            pairs = queries[one[a:b]], targets[other[a:b]]
            squares = self._exact(*pairs)
            near = squares <= self.squared_radius
            yield pairs[0][near], pairs[1][near], squares[near]

    def _confirmed(self, queries: Indices, targets: Indices) -> Iterator[tuple[Indices, Indices, Array]]:
        xp = self.store.arrays
        with cuda_errors(), self.store.at_work():
            every = xp.asarray(targets)
            for a, b in blocks(len(queries), QUERIES):
                part = xp.asarray(queries[a:b])
                chosen = self._near_targets(part, every)
                for c, e in blocks(len(chosen), TARGETS):
                    for found in self._possible(part, chosen[c:e]):
                        one, other, squares = (column.get() for column in found)
                        yield one, other, squares

    def _resolve(self, positions: Indices) -> Indices:
        if not len(positions):
            return positions
        xp = self.store.arrays
        with cuda_errors(), self.store.at_work():
            part = xp.asarray(positions)
            ones, others = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
            for one, other, _ in self._possible(part, part):
                ones.append(one.get())
                others.append(other.get())
        order = np.argsort(positions)
        one = order[np.searchsorted(positions[order], np.concatenate(ones))]
        other = order[np.searchsorted(positions[order], np.concatenate(others))]
        return positions[net_of_pairs(len(positions), one, other)]
