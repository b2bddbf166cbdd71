"""Rows in main memory, in a mapped file, or in blocks elsewhere, for a lazy traversal (`lazy_cover`)."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST
from reduset._engine.compiled import compiled, inner
from reduset._engine.cuda.arrays import on_device
from reduset._engine.lazy_cover import LazyCover, RowStore, update_bounds_by_products
from reduset._engine.passes import LOADED_ENTRIES, BlockRows, SelectedRows
from reduset._engine.profile import Frame
from reduset._engine.radius_search import HostNearRows, NearRows
from reduset._engine.threads import blocks, run_all
from reduset._types import Array, Indices

CANDIDATES_TASK = 256
ROWS_TASK = 1024
LEADING_TASK, CENTRES_TASK = 256, 2048  # rows and centres of a tile
LEAST = np.float32(-3e38)
CHUNK = 64  # products whose largest is compared at once


def rows_in_place(points: Any, frame: Frame | None = None) -> RowStore:
    """Prepare points for a lazy traversal without moving them, in a frame's coordinates or their own."""
    if isinstance(points, BlockRows):
        return FetchedRows(points, frame)
    if not on_device(points):
        return HostRows(points if frame is None else frame.apply(points))
    from reduset._engine.cuda.chunks import frame_coordinates
    from reduset._engine.cuda.device_rows import DeviceRows

    return DeviceRows(points.values if frame is None else frame_coordinates(points.values, frame, np.float64))


def near_rows(store: RowStore, cosine: bool, squared_radius: float) -> NearRows:
    """The rows of a store, sorted for searches within a radius where they are."""
    if store.arrays is np:
        return HostNearRows(store, cosine, squared_radius)
    from reduset._engine.cuda.radius_search import DeviceNearRows

    return DeviceNearRows(store, cosine, squared_radius)


class HostRows:
    """Rows of a NumPy array, or a mapped file, of any floating type."""

    arrays: Any = np
    entries = 1 << 24
    first_rows = 1 << 14
    max_full_update = 1 << 27

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values
        self.count, self.dimension = values.shape

    def at_work(self) -> AbstractContextManager[None]:
        return nullcontext()

    def take(self, rows: Any) -> NDArray[Any]:
        return np.asarray(self.values[rows])

    def update_bounds(self, rows: Any, centres: NDArray[Any], cosine: bool, bounds: NDArray[np.float32]) -> None:
        update_bounds_by_products(self, rows, centres, cosine, bounds)

    def products(self, rows: NDArray[Any], centres: NDArray[Any]) -> NDArray[np.float32]:
        out = np.empty((len(rows), len(centres)), np.float32)
        single = np.ascontiguousarray(centres.astype(np.float32, copy=False).T)
        parts = blocks(len(rows), ROWS_TASK)
        run_all([partial(_multiply, rows[a:b], single, out[a:b]) for a, b in parts], blas=True)
        return out

    def leading_scores(
        self, rows: NDArray[Any], centres: NDArray[Any], squares: NDArray[np.float32], cosine: bool
    ) -> tuple[Indices, NDArray[np.float32], NDArray[np.float32]]:
        """(k,) the centre with the largest score (`lazy_cover`), this score, and the second largest one, tile by tile."""
        single, halves = centres.astype(np.float32, copy=False), 0 * squares if cosine else squares / 2
        if cosine:
            single = (single / np.sqrt(squares)[:, None]).astype(np.float32, copy=False)
        nearest = np.zeros(len(rows), np.int64)
        best, second = np.full((2, len(rows)), LEAST, np.float32)

        def task(a: int, b: int) -> None:
            part, inner = rows[a:b].astype(np.float32, copy=False), np.empty((b - a, CENTRES_TASK), np.float32)
            for c, e in blocks(len(single), CENTRES_TASK):
                _multiply(part, single[c:e].T, inner[:, : e - c])
                _lead(inner[:, : e - c], halves[c:e], c, nearest[a:b], best[a:b], second[a:b])

        run_all([partial(task, a, b) for a, b in blocks(len(rows), LEADING_TASK)], blas=True)
        return nearest, best, second

    def distances(self, candidates: Array, centres: Array) -> Array:
        out = np.full(candidates.shape[1], np.inf)
        parts = blocks(len(out), CANDIDATES_TASK)
        run_all([partial(_least_distances, np.ascontiguousarray(candidates[:, a:b]), centres, out[a:b]) for a, b in parts])
        return out

    def choose(self, candidates: Array, distances: Array, floor: float, limit: int) -> tuple[Indices, Array, float]:
        chosen, at = np.empty(limit, np.int64), np.empty(limit)
        count, largest = _choose(candidates, distances, floor, chosen, at)
        return chosen[:count], at[:count], float(largest)


class FetchedRows(HostRows):
    """Rows in blocks elsewhere. Rows that may be the farthest are fetched and kept until other rows are needed."""

    max_full_update = 1 << 62  # multiplications cost less than another pass over the rows

    def __init__(self, rows: BlockRows, frame: Frame | None) -> None:
        self.rows, self.frame = rows, frame
        self.count, self.dimension = rows.shape
        self._numbers, self._values = np.empty(0, np.int64), np.empty((0, self.dimension))

    def take(self, rows: Any) -> NDArray[Any]:
        numbers = np.arange(self.count)[rows] if isinstance(rows, slice) else np.asarray(rows)
        positions = np.searchsorted(self._numbers, numbers)
        if not len(self._numbers) or not np.array_equal(self._numbers[positions.clip(max=len(self._numbers) - 1)], numbers):
            self._numbers, positions = np.unique(numbers, return_inverse=True)
            self._values = _in_frame(self.rows[self._numbers], self.frame)
        return np.asarray(self._values[positions])

    def update_bounds(self, rows: Any, centres: NDArray[Any], cosine: bool, bounds: NDArray[np.float32]) -> None:
        if rows is not None and len(rows) * self.dimension <= LOADED_ENTRIES:
            self.take(rows)
            update_bounds_by_products(self, rows, centres, cosine, bounds)
            return
        numbers = np.arange(self.count) if rows is None else np.asarray(rows)
        source = self.rows if rows is None else SelectedRows(self.rows, numbers)
        for a, b, lower in source.results(partial(_updated_bounds, self.frame, centres, cosine), bounds[numbers]):
            bounds[numbers[a:b]] = lower

    def assignments(self, cover: LazyCover) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """(n,) the nearest centre of every row, and its distance."""
        centres = copy(cover)
        centres.forget_rows()
        parts = [result for _, _, result in self.rows.results(partial(_assignments_of_block, centres, self.frame))]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _in_frame(rows: NDArray[Any], frame: Frame | None) -> NDArray[Any]:
    return rows if frame is None else frame.apply(rows)


def _updated_bounds(
    frame: Frame | None, centres: NDArray[Any], cosine: bool, rows: NDArray[Any], bounds: NDArray[np.float32]
) -> NDArray[np.float32]:
    lower = bounds.copy()
    HostRows(_in_frame(rows, frame)).update_bounds(None, centres, cosine, lower)
    return lower


def _assignments_of_block(
    centres: LazyCover, frame: Frame | None, rows: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    cover = copy(centres)
    cover.place = HostRows(_in_frame(rows, frame))
    return cover.assignments()


def _multiply(rows: NDArray[Any], centres: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    with np.errstate(invalid="ignore"):  # BLAS may read values beyond the last row and warn about them
        np.matmul(rows.astype(np.float32, copy=False), centres, out=out)


@compiled(fastmath=FAST)
def _lead(inner, halves, first, nearest, best, second):
    """Update the largest and the second largest value of each row with those of more centres."""
    for i in range(len(inner)):
        row = inner[i]
        for s in range(0, len(halves), CHUNK):
            end = min(s + CHUNK, len(halves))
            top = row[s] - halves[s]
            for j in range(s, end):
                top = max(top, row[j] - halves[j])
            if top > second[i]:
                for j in range(s, end):
                    value = row[j] - halves[j]
                    if value > best[i]:
                        second[i] = best[i]
                        best[i] = value
                        nearest[i] = first + j
                    elif value > second[i]:
                        second[i] = value


@compiled()
def _least_distances(candidates, centres, out):
    """The least squared distance of each candidate, (d, k), to the centres, with coordinates summed in order."""
    total = np.empty(len(out))
    for c in range(len(centres)):
        _distances_to(candidates, centres[c], total)
        for i in range(len(out)):
            out[i] = min(out[i], total[i])


@inner()
def _distances_to(candidates, centre, total):
    total[:] = 0.0
    for j in range(len(candidates)):
        column = candidates[j]
        for i in range(len(total)):
            u = column[i] - centre[j]
            total[i] += u * u


@compiled()
def _choose(candidates, distances, floor, chosen, at):
    total = np.empty(len(distances))
    centre = np.empty(len(candidates))
    for done in range(len(chosen) + 1):
        best = 0
        for i in range(1, len(distances)):
            if distances[i] > distances[best]:
                best = i
        if done == len(chosen) or distances[best] < floor:
            return done, distances[best]
        chosen[done] = best
        at[done] = distances[best]
        for j in range(len(candidates)):
            centre[j] = candidates[j, best]
        _distances_to(candidates, centre, total)
        for i in range(len(distances)):
            distances[i] = min(distances[i], total[i])
    return len(chosen), 0.0
