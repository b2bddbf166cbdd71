"""Rows on a GPU within a radius of each other (`_engine.radius_search`), by matrix products of coordinates on the tensor cores.

Rows are turned to their principal directions, and the leading coordinates with the length of the rest are held in half precision.
Distances of coordinates never exceed those of the rows, and rounding errors are added to the limit, so that no pair is missed. The
fewer coordinates, the faster a product; their number is chosen by the pairs of a sample that remain. Remaining pairs are confirmed
in double precision. Only then are all columns read, so that the rows may be in main memory.

Rows are sorted by the nearest of some pivots, selected farthest first. Two groups are skipped if their pivots are farther apart
than the radius and the radii of both groups. So nothing is compared across clusters that are far apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.cuda.device_rows import DeviceRows, best_scores, half_products
from reduset._engine.cuda.guard import DeviceError, cuda_errors, free_memory
from reduset._engine.cuda.kernels import kernel
from reduset._engine.lazy_cover import UNIT, LazyCover, defining
from reduset._engine.radius_search import SAMPLED, NearRows, net_of_pairs
from reduset._engine.threads import blocks
from reduset._types import Array, Indices

# coordinates, queries of a block of threads, and panels of targets in its shared memory (`near_pairs.cu`)
WIDTHS = {64: (256, 3), 128: (256, 3), 256: (128, 3), 512: (128, 3), 768: (128, 2)}
TARGETS, PER_BLOCK, PANEL_BYTES, OWN_BYTES = 128, 256, 128, 2048
QUERIES = 1 << 17  # rows that are compared at once with all targets
CAPACITY = 1 << 24  # pairs of one launch
PAIRS = 1 << 22  # pairs confirmed at a time
PIVOTS, GROUP = 2048, 256  # most groups, and least rows of a group on average
ENTRIES, COPIES = 1 << 27, 4  # coordinates are held at most four times: as they come, sorted, of queries and of targets
# Seconds for a coordinate of a product, and for a column of a confirmed pair. Squared distances of coordinates are multiplied by
# 1 + MARGIN, so that errors of half precision can be bounded by the lengths of the rows.
TERM_TIME, COLUMN_TIME, MARGIN = 6.7e-15, 5e-12, 2.0**-6
# Median length of the rows of a sample, largest coordinate in half precision, and a square above those of all distances
MIDDLE, LARGEST, FARTHEST = 64.0, 6e4, 1e30


class DeviceNearRows(NearRows):
    """Rows of a CuPy array, or in main memory (`DeviceRows` and `SentRows`)."""

    base = 1 << 15

    def _prepare(self) -> None:
        store = self.store
        with store.at_work():
            coordinates = self._coordinates()
            self._group(coordinates)

    def _coordinates(self) -> Any:
        """(n, width) coordinates in half precision; sets the limit of their squared distances."""
        store, xp, n, d = self.store, self.store.arrays, self.store.count, self.store.dimension
        sample = defining(store.take(xp.arange(0, n, max(1, n // SAMPLED))), self.cosine)
        centre = sample.mean(axis=0)
        sample -= centre
        axes = xp.linalg.eigh(sample.T @ sample)[1][:, ::-1]
        width = self._chosen_width(sample @ axes)
        axes = xp.ascontiguousarray(axes[:, : _leading(d, width)])
        reduced, _ = _reduced(sample @ axes, sample, width)
        shift = reduced.mean(axis=0)
        lengths = xp.sqrt(xp.square(reduced - shift).sum(axis=1))
        lengths = lengths[lengths > 0]
        scale = 2.0 ** np.floor(np.log2(MIDDLE / float(xp.median(lengths)))) if len(lengths) else 1.0
        coordinates, reach = xp.zeros((n, width), xp.float16), xp.zeros(())
        for a, b, values in store.parts(max(1, ENTRIES // d)):
            rows = defining(values, self.cosine)
            rows -= centre
            reduced, squares = _reduced(rows @ axes, rows, width)
            reduced -= shift
            reduced *= scale
            coordinates[a:b, : reduced.shape[1]] = xp.clip(reduced, -LARGEST, LARGEST)  # never increases a distance
            reach = xp.maximum(reach, squares.max())
        reach = float(xp.sqrt(reach))
        self.squared_radius = min(self.squared_radius, 9 * reach**2)  # no two rows are farther apart than twice the reach
        error = 2 * np.sqrt(width) * 2.0**-25 + 2 * np.sqrt(4 * d * 2.0**-53) * reach * scale
        limit = (1 + MARGIN) * (np.sqrt(self.squared_radius) * scale * (1 + 1e-6) + error) ** 2
        self._limit = min(limit, FARTHEST)
        self._relative = _relative(width)
        self.width = width
        return coordinates

    def _chosen_width(self, turned: Any) -> int:
        """The number of coordinates for which products and confirmations of a sample of pairs take the least time."""
        xp, (n, d) = self.store.arrays, turned.shape
        rows, costs = turned[:: max(1, n // SAMPLED)], {}
        for width in _fitting_widths():
            reduced, _ = _reduced(rows[:, : _leading(d, width)], rows, width)
            reduced = reduced - reduced.mean(axis=0)
            squares = xp.square(reduced).sum(axis=1)
            sums = squares[:, None] + squares
            near = sums - 2 * reduced @ reduced.T <= (1 + MARGIN) * self.squared_radius + _relative(width) * sums
            fraction = (float(near.sum()) - len(rows)) / len(rows) ** 2  # without each row and itself
            costs[width] = TERM_TIME * width + COLUMN_TIME * d * max(fraction, 0.0)
            if width >= d or COPIES * 4 * width * self.store.count > free_memory():  # of the next width
                break
        return min(costs, key=lambda width: costs[width])

    def _group(self, coordinates: Any) -> None:
        """Sort the rows by the nearest pivot, and count the pairs of groups that are not too far apart."""
        xp, n = self.store.arrays, self.store.count
        pivots = LazyCover(DeviceRows(coordinates))
        pivots.add_rows(np.zeros(1, np.int64))
        pivots.extend(max(0, min(PIVOTS, n // GROUP) - 1))
        chosen = coordinates[xp.asarray([0, *pivots.indices])]
        centres = chosen.astype(xp.float64)
        squares = xp.square(centres).sum(axis=1)
        halves = (squares / 2).astype(xp.float32)
        groups, radii = xp.empty(n, xp.int32), xp.zeros(len(chosen), xp.float32)
        self._squares = xp.empty(n, xp.float32)
        for a, b in blocks(n, max(1, ENTRIES // max(len(chosen), self.width))):
            part = coordinates[a:b]
            single = part.astype(xp.float32)
            self._squares[a:b] = xp.einsum("ij,ij->i", single, single)
            best, groups[a:b], _ = best_scores(half_products(part, chosen), None, halves)
            bound = self._relative * (self._squares[a:b] + halves.max() * 2)
            xp.maximum.at(radii, groups[a:b], xp.sqrt(xp.maximum(self._squares[a:b] - 2 * best + bound, 0)))
        order = xp.argsort(groups)
        gaps = xp.sqrt(xp.maximum(squares[:, None] + squares - 2 * centres @ centres.T, 0))
        farthest = np.sqrt(self._limit + 2 * self._relative * float(self._squares.max()))
        slack = 1e-6 * (float(xp.sqrt(squares.max())) + float(radii.max()))
        joined = gaps <= (radii[:, None] + radii).astype(xp.float64) * (1 + 1e-6) + farthest + slack
        self._joined = xp.zeros((len(chosen) + 1, len(chosen) + 1), xp.int32)
        self._joined[1:, 1:] = xp.cumsum(xp.cumsum(joined, axis=0, dtype=xp.int32), axis=1, dtype=xp.int32)
        position = xp.empty(n, xp.int64)
        position[order] = xp.arange(n)
        self.order, self.position = order.get(), position.get()
        self._rows, self._groups = order, groups[order]
        self._squares, self._points = self._squares[order], coordinates[order]

    # -- pairs --------------------------------------------------------------------------------------------------------------------

    def _candidates(self, queries: Any, targets: Any) -> Iterator[tuple[Any, Any]]:
        """Pairs (number of the query, number of the target) that may be near, for sorted positions."""
        others = self._of(targets)
        parts = [(a, b, 0, len(targets)) for a, b in reversed(blocks(len(queries), QUERIES))]
        while parts:
            a, b, c, e = parts.pop()
            one, other, count = self._launch(self._of(queries[a:b]), [values[c:e] for values in others])
            if count <= CAPACITY:
                yield a + one, c + other
            elif b - a >= e - c:
                parts += [((a + b) // 2, b, c, e), (a, (a + b) // 2, c, e)]
            else:
                parts += [(a, b, (c + e) // 2, e), (a, b, c, (c + e) // 2)]

    def _of(self, positions: Any) -> list[Any]:
        """Coordinates, squared lengths and groups of rows."""
        return [values[positions] for values in (self._points, self._squares, self._groups)]

    def _launch(self, queries: list[Any], targets: list[Any]) -> tuple[Any, Any, int]:
        """Numbers of the queries and targets of up to `CAPACITY` pairs, and how many pairs there are."""
        xp, (rows, stages) = self.store.arrays, WIDTHS[self.width]
        (x, x_squares, x_groups), (y, y_squares, y_groups) = queries, targets
        program = kernel("near_pairs", WIDTH=self.width, ROWS=rows, STAGES=stages)
        shared = _shared_bytes(self.width)
        program.max_dynamic_shared_size_bytes = shared
        pairs, count = xp.empty((CAPACITY, 2), xp.uint32), xp.zeros(1, xp.uint64)
        factor = xp.float32((1 - self._relative) / 2)
        halves = x_squares * factor - xp.float32(self._limit / 2), y_squares * factor
        sizes = np.int32(len(x)), np.int32(len(y))
        groups = self._joined, np.int32(len(self._joined) - 1)
        grid = -(-len(x) // rows), -(-len(y) // (TARGETS * PER_BLOCK))
        arguments = x, y, *halves, x_groups, y_groups, *sizes, *groups, np.uint64(CAPACITY), pairs, count
        program(grid, (PER_BLOCK,), arguments, shared_mem=shared)
        total = int(count[0])
        found = pairs[: min(total, CAPACITY)].astype(xp.int64)
        return found[:, 0], found[:, 1], total

    def _near_pairs(self, queries: Any, targets: Any) -> Iterator[tuple[Any, Any, Any]]:
        """Pairs of numbers of sorted positions within the radius, with squared distances."""
        for one, other in self._candidates(queries, targets):
            for a, b in blocks(len(one), PAIRS):
                rows = self._rows[queries[one[a:b]]], self._rows[targets[other[a:b]]]
                squares = self.store.pair_squares(*rows, self.cosine)  # type: ignore[attr-defined]
                near = squares <= self.squared_radius
                yield one[a:b][near], other[a:b][near], squares[near]

    def _mark_near(self, queries: Indices, targets: Indices, near: NDArray[np.bool_]) -> None:
        near[:] = self._are_near(queries, targets)

    def _are_near(self, queries: Indices, targets: Indices) -> NDArray[np.bool_]:
        if not len(queries) or not len(targets):
            return np.zeros(len(queries), np.bool_)
        xp = self.store.arrays
        with cuda_errors(), self.store.at_work():
            given = xp.asarray(queries)
            order, near = xp.argsort(given), xp.zeros(len(given), bool)
            for one, _, _ in self._near_pairs(given[order], xp.sort(xp.asarray(targets))):
                near[order[one]] = True
            return np.asarray(near.get())

    def _confirmed(self, queries: Indices, targets: Indices) -> Iterator[tuple[Indices, Indices, Array]]:
        xp = self.store.arrays
        with cuda_errors(), self.store.at_work():
            for one, other, squares in self._near_pairs(xp.asarray(queries), xp.asarray(targets)):
                yield queries[one.get()], targets[other.get()], squares.get()

    def _resolve(self, positions: Indices) -> Indices:
        if not len(positions):
            return positions
        xp = self.store.arrays
        with cuda_errors(), self.store.at_work():
            given = xp.asarray(positions)
            order = xp.argsort(given)
            part = self._of(given[order])
            one, other, count = self._launch(part, part)
            if count <= PAIRS:
                one, other = order[one], order[other]
                one, other = one[one < other], other[one < other]
                squares = self.store.pair_squares(  # type: ignore[attr-defined]
                    self._rows[given[one]], self._rows[given[other]], self.cosine
                )
                keys = xp.sort((one * len(given) + other)[squares <= self.squared_radius]).get()
                return positions[net_of_pairs(len(positions), *np.divmod(keys, len(positions)))]
        first = self._resolve(positions[: len(positions) // 2])
        second = positions[len(positions) // 2 :]
        return np.concatenate([first, self._resolve(second[~self._are_near(second, first)])])


def _shared_bytes(width: int) -> int:
    """The shared memory of a block of threads that is requested at its launch."""
    rows, stages = WIDTHS[width]
    return rows * width * 2 + stages * TARGETS * PANEL_BYTES


def _fitting_widths() -> list[int]:
    """The numbers of coordinates for which the shared memory of the current GPU suffices."""
    import cupy

    available = cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"] - OWN_BYTES
    widths = [width for width in WIDTHS if _shared_bytes(width) <= available]
    if not widths:
        raise DeviceError(
            "a search within a radius needs a GPU of compute capability 8.0 or later (Ampere, 2020); copy the rows to the processor"
        )
    return widths


def _leading(d: int, width: int) -> int:
    """The number of leading coordinates; the length of the rest is one more, unless these are all."""
    return d if d <= width else width - 1


def _reduced(leading: Any, rows: Any, width: int) -> tuple[Any, Any]:
    """Leading coordinates with the length of the rest, and the squared lengths of all."""
    import cupy

    squares = cupy.einsum("ij,ij->i", rows, rows)
    if rows.shape[1] <= width:
        return leading, squares
    rest = cupy.sqrt(cupy.maximum(squares - cupy.einsum("ij,ij->i", leading, leading), 0))
    return cupy.concatenate([leading, rest[:, None]], axis=1), squares


def _relative(width: int) -> float:
    """Errors of half precision, and of products in single precision, relative to |x|² + |y|²."""
    return 2 * (1 + 1 / MARGIN) * (1.01 * 2.0**-11) ** 2 + (width + 32) * 8 * UNIT
