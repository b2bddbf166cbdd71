"""Exact farthest-first traversal, lazily (Gonzalez 1985; the k-centre step of Cruz Cortés & Scott 2017, Fig. 1).

The definition updates every point's distance to the chosen after each choice: O(n·d) a step, and all of the data through
memory. But a distance only ever shrinks, so an old one is an upper bound. Each leaf keeps the largest distance it last
knew and how many atoms it has seen; a step refreshes only the leaf on top until the one on top is up to date. A refresh
applies all the atoms that a leaf has missed while its points are in cache, and skips those that are farther from its box than its
largest distance.

Distances are float32 within leaves, and a choice is made only when rounding cannot have swayed it: candidates closer together than
the rounding are decided in float64 from the original coordinates, the lowest row first, as the definition does. Where the
remaining distances come near the resolution of float32, the leaves are grown again in float64.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST
from reduset._engine.compiled import compiled
from reduset._engine.leaves import Leaves, grow
from reduset._engine.profile import CITYBLOCK, SQUARED, Frame, gaps
from reduset._engine.threads import blocks, row_blocks, run_all
from reduset._types import Floats, Report

STEPS_A_CALL = 64
GROUP = 128
LEAVES_A_TASK = 128
WORTH_SHARING = 1 << 18  # coordinates; below, starting threads costs more than they save
BOX_TEST_UP_TO = 64  # dimensions; above, no atom is ever far enough from a box
RESOLVED = 2.0**10  # distances must stand this many times above the rounding, or the leaves are grown in float64

CHOSEN, TIED, DONE, COARSE = range(4)


class FarthestFirst:
    """A traversal that can be continued: ``extend(size)`` chooses atoms until there are ``size``.

    Parameters
    ----------
    points : (n, d) array, kept by reference.
    frame : the coordinates in which distance is Euclidean (or city-block).
    first : the row to begin with.

    Attributes
    ----------
    leaves : the points in leaves; their frame may be the one given, rescaled
    unit : from distances in the leaves' frame to those in the frame given
    """

    def __init__(self, points: Floats, frame: Frame, first: int, metric: int = SQUARED) -> None:
        self.points = points
        self.frame, self.unit = frame.sized(points)
        self.metric = metric
        self._exact = _sums_are_exact(points, frame, metric)
        if self._exact:
            self.frame = Frame(np.rint(Frame.around(points, 1.0).centre), 1.0)
        self._indices = [int(first)]
        self._radii: list[float] = []  # the distance at which each next atom was chosen, rounded up
        self._exhausted = False  # every point coincides with an atom
        self._prepare(np.float32)

    def _prepare(self, dtype: type) -> None:
        n, d = self.points.shape
        self.leaves: Leaves = grow(self.points, self.frame, dtype)
        count = len(self.leaves.starts) - 1
        self._distance: Floats = np.full(n, np.inf, dtype)
        self._top: Floats = np.full(count, np.inf, dtype)
        self._seen = np.zeros(count, np.int64)
        self._atoms: Floats = np.empty((64, d), dtype)
        self._count = 0
        for index in self._indices:
            self._append(index)
        # every point must see the first atom: the one pass over all the data that the lazy scheme makes, and it is shared out
        every = np.arange(count)
        run_all([partial(_refresh_some, *self._state(), 1, every[a:b]) for a, b in blocks(count, 256)])

    def _append(self, index: int) -> None:
        if self._count == len(self._atoms):
            self._atoms = np.concatenate([self._atoms, np.empty_like(self._atoms)])
        self._atoms[self._count] = self.frame.apply(self.points[index : index + 1])[0]
        self._count += 1

    def _state(self) -> tuple:
        leaves = self.leaves
        return (
            leaves.columns,
            leaves.starts,
            leaves.low,
            leaves.high,
            self.metric,
            self._distance,
            self._top,
            self._seen,
            self._atoms,
        )

    @property
    def indices(self) -> NDArray[np.int64]:
        return np.array(self._indices, dtype=np.int64)

    def extend(self, size: int, report: Report | None = None) -> None:
        """Choose until there are ``size`` atoms, or every point coincides with one."""
        size = min(size, len(self.points))
        while self._count < size:
            if report is not None:
                report(self._count, size)
            status = self._advance(min(size, self._count + STEPS_A_CALL))
            if status == DONE:
                self._exhausted = True
                return
        if report is not None:
            report(self._count, size)

    def _advance(self, target: int) -> int:
        """Choose up to ``target``; DONE where nothing is left to choose."""
        leaves = self.leaves
        relative, absolute = self._rounding()
        room = target - self._count
        chosen = np.empty(room, np.int64)
        radii = np.empty(room)
        while len(self._atoms) < target:
            self._atoms = np.concatenate([self._atoms, np.empty_like(self._atoms)])
        self._catch_up()
        status, done = _choose(
            *self._state(), leaves.order, self._count, target, relative, absolute, self._resolution(), chosen, radii
        )
        for index, radius in zip(chosen[:done].tolist(), radii[:done].tolist(), strict=True):
            self._indices.append(index)
            self._radii.append(radius * (1 + relative) + absolute)
            self._count += 1
        if status == COARSE:
            self._prepare(np.float64)
            return CHOSEN
        if status == TIED:
            return self._decide(relative, absolute)
        return int(status)

    def _catch_up(self) -> None:
        """Refresh in parallel the leaves that the next steps will most likely ask for, one by one, anyway.

        They are those above where the radius will be if it falls once more as it fell in the last steps.
        """
        if self._count < 2 * STEPS_A_CALL or self.points.size < WORTH_SHARING:
            return
        now, before = self._radii[-1], self._radii[-STEPS_A_CALL]
        expected = now * now / before
        stale = np.flatnonzero((self._top >= (expected if self.metric == CITYBLOCK else expected**2)) & (self._seen < self._count))
        run_all([partial(_refresh_some, *self._state(), self._count, stale[a:b]) for a, b in blocks(len(stale), LEAVES_A_TASK)])

    def _rounding(self) -> tuple[float, float]:
        """How wrong a distance may be: relative, and absolute from the rounding of the coordinates."""
        if self._exact:
            return 0.0, 0.0
        d = self.leaves.dimension
        eps = float(np.finfo(self._atoms.dtype).eps)
        spread = d if self.metric == CITYBLOCK else np.sqrt(d)
        return (d + 4) * eps, 2 * spread * self.leaves.slack

    def _resolution(self) -> float:
        if self._exact or self._atoms.dtype == np.float64:
            return 0.0
        return RESOLVED * self._rounding()[1]

    def _decide(self, relative: float, absolute: float) -> int:
        """Choose among candidates that rounding cannot tell apart, by the definition in float64."""
        places = _candidates(self.leaves.starts, self._distance, self._top, self.metric, relative, absolute)
        rows = np.sort(self.leaves.order[places])
        atoms = self._defining(self._indices)
        best, farthest = -1, 0.0
        for a, b in blocks(len(rows), 4096):
            value = _definition(self._defining(rows[a:b]), atoms, self.metric)
            k = int(np.argmax(value))
            if value[k] > farthest:
                best, farthest = int(rows[a + k]), float(value[k])
        if best < 0:
            return DONE
        distance = farthest if self.metric == CITYBLOCK else float(np.sqrt(farthest))
        if isinstance(self.frame.matrix, float):
            distance *= self.frame.matrix
        self._radii.append(distance * (1 + (self.leaves.dimension + 4) * float(np.finfo(np.float64).eps)))
        self._indices.append(best)
        self._append(best)
        return CHOSEN

    def _defining(self, rows: Any) -> NDArray[np.float64]:
        """Coordinates for the definition: the data's own, so that ties fall as they do there, unless a matrix mixes them."""
        if isinstance(self.frame.matrix, float):
            return np.asarray(self.points[rows], np.float64)
        return self.frame.apply(self.points[rows])

    def covering_radii(self) -> NDArray[np.float64]:
        """After each atom the largest distance of any point to the atoms so far, in the frame, rounded up: (atoms,)."""
        if self._exhausted or self._count == len(self.points):
            return self.unit * np.append(self._radii, 0.0)
        relative, absolute = self._rounding()
        value = float(_settle(*self._state(), self._count))
        last = value if self.metric == CITYBLOCK else float(np.sqrt(value))
        return self.unit * np.append(self._radii, last * (1 + relative) + absolute)


def _sums_are_exact(points: Floats, frame: Frame, metric: int) -> bool:
    """Whether float32 holds every distance exactly: whole numbers with small enough squares, as in images."""
    if metric != SQUARED or not isinstance(frame.matrix, float) or frame.matrix != 1.0:
        return False
    # the first block of data that are not whole numbers says so, and costs nothing
    if points.dtype.kind not in "iu" and not all(
        bool(np.all(points[a:b] == np.rint(points[a:b]))) for a, b in row_blocks(points, points.shape[1])
    ):
        return False
    widths = np.max(points, axis=0).astype(np.float64) - np.min(points, axis=0).astype(np.float64)
    return float(widths @ widths) < 2**24


@compiled()
def _definition(candidates, atoms, metric):
    """The least gap of each candidate to the atoms, summed coordinate by coordinate."""
    out = np.full(len(candidates), np.inf)
    for i in range(len(candidates)):
        for k in range(len(atoms)):
            t = 0.0
            for j in range(candidates.shape[1]):
                u = candidates[i, j] - atoms[k, j]
                t += abs(u) if metric == CITYBLOCK else u * u
            out[i] = min(out[i], t)
    return out


@njit(inline="always")
def _box_gap(metric, low, high, atom):
    """A lower bound on the gap of the atom to any point of the box."""
    t = low.dtype.type(0)
    for j in range(len(atom)):
        u = max(low[j] - atom[j], atom[j] - high[j], low.dtype.type(0))
        t += u if metric == CITYBLOCK else u * u
    return t


@compiled(fastmath=FAST)
def _refresh(columns, starts, low, high, metric, distance, top, seen, atoms, count, leaf, buffer):
    """Show a leaf the atoms it has missed."""
    d = low.shape[1]
    a = starts[leaf]
    b = starts[leaf + 1]
    Z = columns[a * d : b * d].reshape(d, b - a)
    mine = distance[a:b]
    largest = top[leaf]
    for k in range(seen[leaf], count):
        # a margin for the rounding of the box test; a skipped atom then cannot matter
        if d <= BOX_TEST_UP_TO and _box_gap(metric, low[leaf], high[leaf], atoms[k]) > largest * mine.dtype.type(1.00001):
            continue
        gaps(metric, Z, 0, b - a, atoms[k], buffer)
        for i in range(len(mine)):
            mine[i] = min(mine[i], buffer[i])
        largest = mine[0]
        for i in range(1, len(mine)):
            largest = max(largest, mine[i])
    top[leaf] = largest
    seen[leaf] = count


@compiled()
def _longest(starts):
    longest = 0
    for leaf in range(len(starts) - 1):
        longest = max(longest, starts[leaf + 1] - starts[leaf])
    return longest


@compiled()
def _refresh_some(columns, starts, low, high, metric, distance, top, seen, atoms, count, which):
    buffer = np.empty(_longest(starts), distance.dtype)
    for leaf in which:
        _refresh(columns, starts, low, high, metric, distance, top, seen, atoms, count, leaf, buffer)


@njit(inline="always")
def _highest(values):
    """argmax; the maximum first, in vector lanes, then its place."""
    largest = values[0]
    for i in range(1, len(values)):
        largest = max(largest, values[i])
    for i in range(len(values)):
        if values[i] == largest:
            return i
    return 0


@compiled(fastmath=FAST)
def _group_tops(top):
    """The largest of each run of GROUP leaves: two short searches find the top leaf instead of a long one."""
    groups = np.empty((len(top) + GROUP - 1) // GROUP, top.dtype)
    for g in range(len(groups)):
        groups[g] = np.max(top[g * GROUP : (g + 1) * GROUP])
    return groups


@compiled(fastmath=FAST)
def _raise_top(columns, starts, low, high, metric, distance, top, seen, atoms, count, groups, buffer):
    """Refresh until the leaf on top is up to date; that leaf. Its largest gap is the largest of all."""
    while True:
        g = _highest(groups)
        mine = top[g * GROUP : (g + 1) * GROUP]
        leaf = g * GROUP + _highest(mine)
        if seen[leaf] == count:
            return leaf
        _refresh(columns, starts, low, high, metric, distance, top, seen, atoms, count, leaf, buffer)
        largest = mine[0]
        for i in range(1, len(mine)):
            largest = max(largest, mine[i])
        groups[g] = largest


@compiled()
def _settle(columns, starts, low, high, metric, distance, top, seen, atoms, count):
    """The largest gap of any point to the atoms."""
    buffer = np.empty(_longest(starts), distance.dtype)
    groups = _group_tops(top)
    return top[_raise_top(columns, starts, low, high, metric, distance, top, seen, atoms, count, groups, buffer)]


@njit(inline="always")
def _threshold(metric, largest, relative, absolute):
    """The gap below which a point cannot be the farthest, given what rounding may have done to both."""
    if relative == 0.0:
        return np.float64(largest)
    distance = np.float64(largest) if metric == CITYBLOCK else np.sqrt(np.float64(largest))
    distance = max(distance * (1 - 2 * relative) - 2 * absolute, 0.0)
    return distance if metric == CITYBLOCK else distance * distance


@compiled()
def _candidates(starts, distance, top, metric, relative, absolute):
    """Places of all points that may be the farthest (every leaf that could hold one is up to date)."""
    least = _threshold(metric, np.max(top), relative, absolute)
    out = [np.int64(0) for _ in range(0)]
    for leaf in range(len(top)):
        if top[leaf] >= least:
            for i in range(starts[leaf], starts[leaf + 1]):
                if distance[i] >= least:
                    out.append(i)
    return np.array(out)


@compiled()
def _choose(
    columns,
    starts,
    low,
    high,
    metric,
    distance,
    top,
    seen,
    atoms,
    order,
    count,
    target,
    relative,
    absolute,
    resolution,
    chosen,
    radii,
):
    """Choose atoms count..target; stop early where a choice is beyond this precision. (status, how many were chosen)"""
    buffer = np.empty(_longest(starts), distance.dtype)
    groups = _group_tops(top)
    d = low.shape[1]
    done = 0
    while count < target:
        leaf = _raise_top(columns, starts, low, high, metric, distance, top, seen, atoms, count, groups, buffer)
        largest = np.float64(top[leaf])
        radius = largest if metric == CITYBLOCK else np.sqrt(largest)
        if radius < resolution:
            return COARSE, done
        if largest == 0.0 and relative == 0.0:
            return DONE, done
        least = _threshold(metric, largest, relative, absolute)
        place = -1
        rivals = 0
        for g in range(len(groups)):
            if groups[g] < least:
                continue
            for rival in range(g * GROUP, min((g + 1) * GROUP, len(top))):
                if top[rival] >= least and seen[rival] < count:
                    _refresh(columns, starts, low, high, metric, distance, top, seen, atoms, count, rival, buffer)
                if top[rival] < least:
                    continue
                for i in range(starts[rival], starts[rival + 1]):
                    if distance[i] >= least:
                        rivals += 1
                        if place < 0 or order[i] < order[place]:
                            place = i
        if rivals > 1 and relative > 0.0:
            return TIED, done
        # where sums are exact, equal distances are ties in truth, and the lowest row has been kept
        home = np.searchsorted(starts, place, side="right") - 1
        size = starts[home + 1] - starts[home]
        for j in range(d):
            atoms[count, j] = columns[starts[home] * d + j * size + place - starts[home]]
        chosen[done] = order[place]
        radii[done] = radius
        done += 1
        count += 1
    return CHOSEN, done
