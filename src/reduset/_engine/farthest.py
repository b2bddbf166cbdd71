"""Exact farthest-first traversal, lazily (Gonzalez 1985; the k-centre step of Cruz Cortés & Scott 2017, Fig. 1).

The definition updates every point's distance to the chosen after each choice: O(n·d) a step, and all of the data through
memory. But a distance only ever shrinks, so an old one is an upper bound. Each leaf keeps the largest distance it last
knew and how many atoms it has seen; a step refreshes only the leaf on top until the one on top is up to date. A refresh
applies all the atoms that a leaf has missed while its points are in cache, and skips those that are farther from its box than its
largest distance.

Distances are float32 within leaves, and a choice is made only when rounding cannot have swayed it: candidates closer together than
the rounding are decided in float64 from the original coordinates, the lowest row first, as the definition does. Where the
remaining distances come near the resolution of float32, the leaves are grown again in float64, of rows that coincide with no atom.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST
from reduset._engine.compiled import compiled, inner, row, strip
from reduset._engine.distances import CITYBLOCK, SQUARED, distances_at, to_distances
from reduset._engine.leaves import box_distance, build_leaves, copy_point, longer
from reduset._engine.profile import Frame, sums_are_exact
from reduset._engine.rows import rows_not_among
from reduset._engine.threads import blocks, run_all
from reduset._types import Floats, Report

STEPS_A_CALL = 64
GROUP = 128
LEAVES_A_TASK = 128
WORTH_SHARING = 1 << 18  # coordinates; below, starting threads costs more than they save
BOX_TEST_UP_TO = 64  # dimensions; above, no atom is ever far enough from a box
RESOLVED = 2.0**10  # distances must stand this many times above the rounding, or the leaves are grown in float64

CHOSEN, TIED, DONE, COARSE = range(4)


class TraversalState(NamedTuple):
    """A farthest-first traversal as the loops see it: points in leaves, and what each leaf knows of the atoms.

    The invariant: ``distance`` holds the distance of each point to the nearest of the first seen[leaf] atoms, and top[leaf] is the
    largest of them in the leaf. More atoms only lower distances, so that top is an upper bound however many atoms a leaf has
    missed; and once the leaf on top has seen them all, its farthest point is the farthest of all.
    """

    columns: Floats  # these five as in `Leaves`
    starts: NDArray[np.int64]
    low: Floats
    high: Floats
    order: NDArray[np.int32]
    longest: int  # the most points of a leaf
    metric: int
    distances: int  # the address of its loop
    distance: Floats  # (n,) by place
    top: Floats  # (leaves,)
    seen: NDArray[np.int64]  # (leaves,) how many atoms
    atoms: Floats  # (room, d), of which the first are chosen
    relative: float  # how wrong a distance may be,
    absolute: float  # and how much more by the rounding of the coordinates
    resolution: float  # the distance below which that is too much


class FarthestFirst:
    """A traversal that can be continued: ``extend(size)`` chooses atoms until there are ``size``.

    Parameters
    ----------
    points : (n, d) array, kept by reference.
    frame : the coordinates in which distance is Euclidean (or city-block).
    first : the row to begin with.

    Attributes
    ----------
    leaves : the points in leaves, or those that coincide with no atom; their frame may be the one given, rescaled
    unit : from distances in the leaves' frame to those in the frame given
    """

    def __init__(self, points: Floats, frame: Frame, first: int, metric: int = SQUARED) -> None:
        self.points = points
        self.frame, self.unit = frame.sized(points)
        self.metric = metric
        self._exact = sums_are_exact(points, frame, metric)
        if self._exact:
            self.frame = Frame(np.rint(Frame.around(points, 1.0).centre), 1.0)
        self._indices = [int(first)]
        self._radii: list[float] = []  # the distance at which each next atom was chosen, rounded up
        self._exhausted = False  # every point coincides with an atom
        self._caught_up = 0  # atoms that there were when leaves were refreshed in parallel
        self._places: NDArray[np.float64] = np.empty((0, points.shape[1]))  # the atoms so far, as the definition has them
        self._prepare(np.float32, None)

    def _prepare(self, dtype: type, rows: NDArray[np.int32] | None) -> None:
        """Grow leaves of all rows or some in this precision, for the atoms so far."""
        self.leaves = leaves = build_leaves(self.points, self.frame, dtype, rows)
        count = len(leaves.low)
        boxes = leaves.columns, leaves.starts, leaves.low, leaves.high, leaves.order, int(np.diff(leaves.starts).max())
        distance: Floats = np.full(len(leaves.order), np.inf, dtype)
        top: Floats = np.full(count, np.inf, dtype)
        seen = np.zeros(count, np.int64)
        atoms: Floats = np.empty((64, leaves.dimension), dtype)
        self._state = TraversalState(
            *boxes, self.metric, distances_at(self.metric, dtype), distance, top, seen, atoms, *self._rounding(dtype)
        )
        self._reserve(self._count)
        for k, index in enumerate(self._indices):
            self._place(k, index)
        # every point must see the first atom: the one pass over all the data that the lazy scheme makes, and it is shared out
        every = np.arange(count)
        run_all([partial(_refresh_some, self._state, 1, every[a:b]) for a, b in blocks(count, 256)])

    def _reserve(self, count: int) -> None:
        """Have room for so many atoms."""
        while len(self._state.atoms) < count:
            self._state = self._state._replace(atoms=np.concatenate([self._state.atoms, np.empty_like(self._state.atoms)]))

    def _place(self, k: int, index: int) -> None:
        self._state.atoms[k] = self.frame.apply(self.points[index : index + 1])[0]

    @property
    def _count(self) -> int:
        return len(self._indices)

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
        self._reserve(target)
        self._catch_up()
        chosen, radii = np.empty(target - self._count, np.int64), np.empty(target - self._count)
        status, done = _choose(self._state, self._count, target, _group_tops(self._state.top), chosen, radii)
        self._indices += chosen[:done].tolist()
        self._radii += [self._rounded_up(radius) for radius in radii[:done].tolist()]
        if status == COARSE:
            return self._look_closer()
        return self._decide() if status == TIED else int(status)

    def _look_closer(self) -> int:
        """Grow leaves in float64 of the rows that coincide with no atom; DONE where there are none."""
        rest = rows_not_among(self.points, self.points[self._indices])
        if not len(rest):
            return DONE
        del self.leaves, self._state  # not both at a time
        self._prepare(np.float64, rest if len(rest) < len(self.points) - self._count else None)
        return CHOSEN

    @property
    def complete(self) -> bool:
        """Whether all points are in the leaves."""
        return len(self.leaves.order) == len(self.points)

    def _catch_up(self) -> None:
        """Refresh in parallel the leaves that the next steps will most likely ask for, one by one, anyway.

        They are those above where the radius will be if it falls once more as it fell in the last steps.
        """
        count, state = self._count, self._state
        if count < max(2 * STEPS_A_CALL, self._caught_up + STEPS_A_CALL) or self.points.size < WORTH_SHARING:
            return
        self._caught_up = count
        now, before = self._radii[-1], self._radii[-STEPS_A_CALL]
        expected = now * now / before
        stale = np.flatnonzero((state.top >= (expected if self.metric == CITYBLOCK else expected**2)) & (state.seen < count))
        run_all([partial(_refresh_some, state, count, stale[a:b]) for a, b in blocks(len(stale), LEAVES_A_TASK)])

    def _rounding(self, dtype: type) -> tuple[float, float, float]:
        """How wrong a distance may be, relative and absolute, and the distance below which that is too much."""
        if self._exact:
            return 0.0, 0.0, 0.0
        d = self.leaves.dimension
        absolute = 2 * (d if self.metric == CITYBLOCK else float(np.sqrt(d))) * self.leaves.slack
        # sums of d terms, or of d/4 sums of four squares (`distances`), of which a distance is the root: with a factor 2 to be safe
        terms = d + 4 if self.metric == CITYBLOCK else d / 8 + 3
        return terms * float(np.finfo(dtype).eps), absolute, 0.0 if dtype is np.float64 else RESOLVED * absolute

    def _rounded_up(self, distance: float) -> float:
        return distance * (1 + self._state.relative) + self._state.absolute

    def _decide(self) -> int:
        """Choose among candidates that rounding cannot tell apart, by the definition in float64."""
        rows = np.sort(self.leaves.order[_candidates(self._state)])
        self._places = np.concatenate([self._places, self._defining(self._indices[len(self._places) :])])
        atoms = self._places
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
        self._place(self._count, best)
        self._indices.append(best)
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
        value = float(_settle(self._state, self._count, _group_tops(self._state.top)))
        last = value if self.metric == CITYBLOCK else float(np.sqrt(value))
        return self.unit * np.append(self._radii, self._rounded_up(last))


@compiled()
def _definition(candidates, atoms, metric):
    """The least distance of each candidate to the atoms, summed coordinate by coordinate."""
    out = np.full(len(candidates), np.inf)
    for i in range(len(candidates)):
        for k in range(len(atoms)):
            t = 0.0
            for j in range(candidates.shape[1]):
                u = candidates[i, j] - atoms[k, j]
                t += abs(u) if metric == CITYBLOCK else u * u
            out[i] = min(out[i], t)
    return out


@inner(fastmath=FAST)
def _refresh(state, count, leaf, buffer):
    """Show a leaf the atoms it has missed of the first ``count``, but for those that are farther from its box than its top."""
    d = state.low.shape[1]
    start = state.starts[leaf]
    points = state.starts[leaf + 1] - start
    mine = strip(state.distance, start, points)
    low = row(state.low, leaf)
    high = row(state.high, leaf)
    largest = state.top[leaf]
    for k in range(state.seen[leaf], count):
        # a margin for the rounding of the box test; a skipped atom then cannot matter
        atom = row(state.atoms, k)
        if d <= BOX_TEST_UP_TO and box_distance(state.metric, low, high, atom) > largest * mine.dtype.type(1.00001):
            continue
        to_distances(state.distances, state.columns, start * d, points, points, atom, buffer)
        for i in range(points):
            mine[i] = min(mine[i], buffer[i])
        largest = _largest(mine)
    state.top[leaf] = largest
    state.seen[leaf] = count


@compiled()
def _refresh_some(state, count, which):
    buffer = np.empty(state.longest, state.distance.dtype)
    for leaf in which:
        _refresh(state, count, leaf, buffer)


@inner(fastmath=FAST)
def _largest(values):
    """The maximum, in vector lanes."""
    largest = values[0]
    for i in range(1, len(values)):
        largest = max(largest, values[i])
    return largest


@inner(fastmath=FAST)
def _highest(values):
    """argmax; the maximum first, then its place."""
    largest = _largest(values)
    for i in range(len(values)):
        if values[i] == largest:
            return i
    return 0


def _group_tops(top: Floats) -> Floats:
    """The largest of each run of GROUP leaves: two short searches find the top leaf instead of a long one."""
    return np.maximum.reduceat(top, np.arange(0, len(top), GROUP))


@njit(inline="always")  # for whoever calls it would be compiled with all that is below it once more
def _raise_top(state, count, groups, buffer):
    """Refresh until the leaf on top is up to date; that leaf. Its largest distance is the largest of all."""
    while True:
        g = _highest(groups)
        mine = state.top[g * GROUP : (g + 1) * GROUP]
        leaf = g * GROUP + _highest(mine)
        if state.seen[leaf] == count:
            return leaf
        _refresh(state, count, leaf, buffer)
        groups[g] = _largest(mine)


@compiled()
def _settle(state, count, groups):
    """The largest distance of any point to the atoms."""
    buffer = np.empty(state.longest, state.distance.dtype)
    return state.top[_raise_top(state, count, groups, buffer)]


@njit(inline="always")
def _threshold(state, largest):
    """The distance below which a point cannot be the farthest, given what rounding may have done to both."""
    if state.relative == 0.0:
        return np.float64(largest)
    distance = np.float64(largest) if state.metric == CITYBLOCK else np.sqrt(np.float64(largest))
    distance = max(distance * (1 - 2 * state.relative) - 2 * state.absolute, 0.0)
    return distance if state.metric == CITYBLOCK else distance * distance


@compiled()
def _candidates(state):
    """Places of all points that may be the farthest (every leaf that could hold one is up to date)."""
    least = _threshold(state, _largest(state.top))
    out = np.empty(64, np.int64)
    count = 0
    for leaf in range(len(state.top)):
        if state.top[leaf] >= least:
            for i in range(state.starts[leaf], state.starts[leaf + 1]):
                if state.distance[i] >= least:
                    if count == len(out):
                        out = longer(out)
                    out[count] = i
                    count += 1
    return out[:count]


@njit(inline="always")
def _lowest_candidate(state, count, least, groups, buffer):
    """Of the points whose distance is at least ``least``, the place of the lowest row; and how many there are.

    Only leaves whose top reaches that far are looked into, after they have seen all atoms.
    """
    place = -1
    rivals = 0
    for g in range(len(groups)):
        if groups[g] < least:
            continue
        for leaf in range(g * GROUP, min((g + 1) * GROUP, len(state.top))):
            if state.top[leaf] >= least and state.seen[leaf] < count:
                _refresh(state, count, leaf, buffer)
            if state.top[leaf] < least:
                continue
            for i in range(state.starts[leaf], state.starts[leaf + 1]):
                if state.distance[i] >= least:
                    rivals += 1
                    if place < 0 or state.order[i] < state.order[place]:
                        place = i
    return place, rivals


@njit(inline="always")
def _leaf_of(starts, place):
    """The last leaf that starts at this place or before it."""
    first = 0
    last = len(starts) - 1
    while last - first > 1:
        middle = (first + last) // 2
        if starts[middle] <= place:
            first = middle
        else:
            last = middle
    return first


@compiled()
def _choose(state, count, target, groups, chosen, radii):
    """Choose atoms count..target; stop early where a choice is beyond this precision. (status, how many were chosen)"""
    buffer = np.empty(state.longest, state.distance.dtype)
    for done in range(target - count):
        now = count + done
        largest = np.float64(state.top[_raise_top(state, now, groups, buffer)])
        radius = largest if state.metric == CITYBLOCK else np.sqrt(largest)
        if radius < state.resolution:
            return COARSE, done
        if largest == 0.0 and state.relative == 0.0:
            return DONE, done
        least = _threshold(state, largest)
        place, rivals = _lowest_candidate(state, now, least, groups, buffer)
        if (rivals > 1 or largest == 0.0) and state.relative > 0.0:  # a single row is left, and may be an atom
            return TIED, done
        # where sums are exact, equal distances are ties in truth, and the lowest row has been kept
        home = _leaf_of(state.starts, place)
        copy_point(state.columns, state.starts, home, place, state.atoms[now])
        chosen[done] = state.order[place]
        radii[done] = radius
    return CHOSEN, target - count
