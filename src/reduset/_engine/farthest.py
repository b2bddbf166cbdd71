"""Exact farthest-first traversal, lazily (Gonzalez 1985; the k-centre step of Cruz Cortés & Scott 2017, Fig. 1).

The definition updates the distances of all points after each choice. That costs O(n·d) a step and reads all data from memory. But a
distance only shrinks, so that an old one is an upper bound. Each leaf stores its largest distance and the number of atoms applied
to it. A step refreshes the leaf with the largest bound, until the top leaf is up to date. A refresh applies all missing atoms to a
leaf while its points are in cache. It skips atoms that are farther from the box than the largest distance.

Distances are float32 within leaves. A choice is made only if rounding cannot change it. Candidates closer together than the
rounding error are compared in float64 in the original coordinates; the lowest row wins a tie, as in the definition. If the
remaining distances approach the resolution of float32, the leaves are rebuilt in float64 from the rows that coincide with no atom.
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
from reduset._types import Array, Floats, Indices, Report

STEPS_PER_CALL = 64
LEAVES_PER_GROUP = 128
LEAVES_PER_TASK = 128
MIN_PARALLEL_ENTRIES = 1 << 18  # coordinates, below which starting threads costs more than it saves
BOX_TEST_COLUMNS = 64  # largest dimension for box tests; in more dimensions boxes exclude no atoms
MIN_RESOLVED = 2.0**10  # least ratio of distances to rounding errors, below which leaves are rebuilt in float64

CHOSEN, TIED, DONE, COARSE = range(4)


class TraversalState(NamedTuple):
    """The state of a farthest-first traversal for the compiled loops: points in leaves, and the atoms applied to each leaf.

    Invariant: ``distance`` holds the distance of each point to the nearest of the first applied[leaf] atoms. top[leaf] is their
    maximum in the leaf. More atoms only lower distances, so that top is an upper bound for any number of missing atoms. Once the
    top leaf is up to date, its farthest point is the farthest of all.
    """

    columns: Floats  # the first five as in `Leaves`
    starts: Indices
    low: Floats
    high: Floats
    order: NDArray[np.int32]
    longest: int  # largest number of points in a leaf
    metric: int
    distances: int  # address of the loop for the metric
    distance: Floats  # (n,) by position in the leaves
    top: Floats  # (leaves,)
    applied: Indices  # (leaves,) number of atoms applied
    atoms: Floats  # (capacity, d), filled from the front
    relative: float  # relative error of a distance,
    absolute: float  # and its absolute error from the rounding of the coordinates
    resolution: float  # the distance below which these errors are too large


class FarthestFirst:
    """A traversal that can be continued: ``extend(size)`` chooses atoms until there are ``size``.

    Parameters
    ----------
    points : (n, d) array, kept by reference.
    frame : the coordinates in which distance is Euclidean (or city-block).
    first : the row number of the first atom.

    Attributes
    ----------
    leaves : the points in leaves, or those that coincide with no atom; their frame may be a rescaled one
    unit : factor from distances in the leaves' frame to those in the given frame
    """

    def __init__(self, points: Floats, frame: Frame, first: int, metric: int = SQUARED) -> None:
        self.points = points
        self.frame, self.unit = frame.sized(points)
        self.metric = metric
        self._exact = sums_are_exact(points, frame, metric)
        if self._exact:
            self.frame = Frame(np.rint(Frame.around(points, 1.0).centre), 1.0)
        self._indices = [int(first)]
        self._radii: list[float] = []  # the distance of each later atom when it was chosen, rounded up
        self._exhausted = False  # whether every point coincides with an atom
        self._refreshed_at = 0  # number of atoms at the last parallel refresh
        self._exact_atoms: Array = np.empty((0, points.shape[1]))  # the atoms in the coordinates of the definition
        self._prepare(np.float32, None)

    def _prepare(self, dtype: type, rows: NDArray[np.int32] | None) -> None:
        """Build leaves in this precision from all rows or some, and apply the atoms so far."""
        self.leaves = leaves = build_leaves(self.points, self.frame, dtype, rows)
        count = len(leaves.low)
        boxes = leaves.columns, leaves.starts, leaves.low, leaves.high, leaves.order, int(np.diff(leaves.starts).max())
        distance: Floats = np.full(len(leaves.order), np.inf, dtype)
        top: Floats = np.full(count, np.inf, dtype)
        applied = np.zeros(count, np.int64)
        atoms: Floats = np.empty((64, leaves.dimension), dtype)
        self._state = TraversalState(
            *boxes, self.metric, distances_at(self.metric, dtype), distance, top, applied, atoms, *self._rounding(dtype)
        )
        self._reserve(self._count)
        for k, index in enumerate(self._indices):
            self._store_atom(k, index)
        # The first atom is applied to every point. This is the only full pass over the data, and it runs in parallel.
        all_leaves = np.arange(count)
        run_all([partial(_refresh_some, self._state, 1, all_leaves[a:b]) for a, b in blocks(count, 256)])

    def _reserve(self, count: int) -> None:
        """Ensure capacity for ``count`` atoms."""
        while len(self._state.atoms) < count:
            self._state = self._state._replace(atoms=np.concatenate([self._state.atoms, np.empty_like(self._state.atoms)]))

    def _store_atom(self, k: int, index: int) -> None:
        self._state.atoms[k] = self.frame.apply(self.points[index : index + 1])[0]

    @property
    def _count(self) -> int:
        return len(self._indices)

    @property
    def indices(self) -> Indices:
        return np.array(self._indices, dtype=np.int64)

    def extend(self, size: int, report: Report | None = None) -> None:
        """Choose until there are ``size`` atoms, or every point coincides with one."""
        size = min(size, len(self.points))
        while self._count < size:
            if report is not None:
                report(self._count, size)
            status = self._advance(min(size, self._count + STEPS_PER_CALL))
            if status == DONE:
                self._exhausted = True
                return
        if report is not None:
            report(self._count, size)

    def _advance(self, target: int) -> int:
        """Choose up to ``target`` atoms in all; return DONE if no point is left."""
        self._reserve(target)
        self._refresh_stale()
        chosen, radii = np.empty(target - self._count, np.int64), np.empty(target - self._count)
        status, done = _choose(self._state, self._count, target, _group_tops(self._state.top), chosen, radii)
        self._indices += chosen[:done].tolist()
        self._radii += [self._rounded_up(radius) for radius in radii[:done].tolist()]
        if status == COARSE:
            return self._rebuild_in_double()
        return self._decide() if status == TIED else int(status)

    def _rebuild_in_double(self) -> int:
        """Rebuild the leaves in float64 from the rows that coincide with no atom; return DONE if there are none."""
        remaining = rows_not_among(self.points, self.points[self._indices])
        if not len(remaining):
            return DONE
        del self.leaves, self._state  # avoid holding both in memory
        self._prepare(np.float64, remaining if len(remaining) < len(self.points) - self._count else None)
        return CHOSEN

    @property
    def complete(self) -> bool:
        """Whether the leaves contain all points."""
        return len(self.leaves.order) == len(self.points)

    def _refresh_stale(self) -> None:
        """Refresh in parallel the leaves that the next steps will probably need.

        These have a bound above the expected radius, which assumes that the radius falls as much as in the last steps.
        """
        count, state = self._count, self._state
        if count < max(2 * STEPS_PER_CALL, self._refreshed_at + STEPS_PER_CALL) or self.points.size < MIN_PARALLEL_ENTRIES:
            return
        self._refreshed_at = count
        now, before = self._radii[-1], self._radii[-STEPS_PER_CALL]
        expected = now * now / before
        stale = np.flatnonzero((state.top >= (expected if self.metric == CITYBLOCK else expected**2)) & (state.applied < count))
        run_all([partial(_refresh_some, state, count, stale[a:b]) for a, b in blocks(len(stale), LEAVES_PER_TASK)])

    def _rounding(self, dtype: type) -> tuple[float, float, float]:
        """The relative and absolute error of a distance, and the distance below which they are too large."""
        if self._exact:
            return 0.0, 0.0, 0.0
        d = self.leaves.dimension
        absolute = 2 * (d if self.metric == CITYBLOCK else float(np.sqrt(d))) * self.leaves.slack
        # Sums of d terms, or of d/4 sums of four squares (`distances`), followed by a square root. A factor of 2 adds safety.
        terms = d + 4 if self.metric == CITYBLOCK else d / 8 + 3
        return terms * float(np.finfo(dtype).eps), absolute, 0.0 if dtype is np.float64 else MIN_RESOLVED * absolute

    def _rounded_up(self, distance: float) -> float:
        return distance * (1 + self._state.relative) + self._state.absolute

    def _decide(self) -> int:
        """Choose among candidates within the rounding error, by the definition in float64."""
        rows = np.sort(self.leaves.order[_candidates(self._state)])
        self._exact_atoms = np.concatenate([self._exact_atoms, self._defining(self._indices[len(self._exact_atoms) :])])
        atoms = self._exact_atoms
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
        self._store_atom(self._count, best)
        self._indices.append(best)
        return CHOSEN

    def _defining(self, rows: Any) -> Array:
        """Coordinates of the definition: the original ones, so that ties agree with it, unless a matrix mixes columns."""
        if isinstance(self.frame.matrix, float):
            return np.asarray(self.points[rows], np.float64)
        return self.frame.apply(self.points[rows])

    def covering_radii(self) -> Array:
        """(atoms,) after each atom the largest distance of any point to the atoms so far, in the frame, rounded up."""
        if self._exhausted or self._count == len(self.points):
            return self.unit * np.append(self._radii, 0.0)
        value = float(_largest_distance(self._state, self._count, _group_tops(self._state.top)))
        last = value if self.metric == CITYBLOCK else float(np.sqrt(value))
        return self.unit * np.append(self._radii, self._rounded_up(last))


@compiled()
def _definition(candidates, atoms, metric):
    """The least distance of each candidate to the atoms, with coordinates summed in order."""
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
    """Apply the missing atoms among the first ``count`` to a leaf. Skip atoms farther from its box than its largest distance."""
    d = state.low.shape[1]
    start = state.starts[leaf]
    points = state.starts[leaf + 1] - start
    nearest = strip(state.distance, start, points)
    low = row(state.low, leaf)
    high = row(state.high, leaf)
    largest = state.top[leaf]
    for k in range(state.applied[leaf], count):
        # The margin covers the rounding of the box test, so that a skipped atom cannot matter.
        atom = row(state.atoms, k)
        if d <= BOX_TEST_COLUMNS and box_distance(state.metric, low, high, atom) > largest * nearest.dtype.type(1.00001):
            continue
        to_distances(state.distances, state.columns, start * d, points, points, atom, buffer)
        for i in range(points):
            nearest[i] = min(nearest[i], buffer[i])
        largest = _largest(nearest)
    state.top[leaf] = largest
    state.applied[leaf] = count


@compiled()
def _refresh_some(state, count, which):
    buffer = np.empty(state.longest, state.distance.dtype)
    for leaf in which:
        _refresh(state, count, leaf, buffer)


@inner(fastmath=FAST)
def _largest(values):
    """The maximum, vectorised."""
    largest = values[0]
    for i in range(1, len(values)):
        largest = max(largest, values[i])
    return largest


@inner(fastmath=FAST)
def _highest(values):
    """argmax, by computing the maximum first."""
    largest = _largest(values)
    for i in range(len(values)):
        if values[i] == largest:
            return i
    return 0


def _group_tops(top: Floats) -> Floats:
    """The maximum of each group of leaves. Two short searches then find the top leaf instead of a long one."""
    return np.maximum.reduceat(top, np.arange(0, len(top), LEAVES_PER_GROUP))


@njit(inline="always")  # inlined, since otherwise each caller would compile all functions below it again
def _raise_top(state, count, groups, buffer):
    """Refresh leaves until the top leaf is up to date, and return it. Its largest distance is the largest of all."""
    while True:
        g = _highest(groups)
        tops = state.top[g * LEAVES_PER_GROUP : (g + 1) * LEAVES_PER_GROUP]
        leaf = g * LEAVES_PER_GROUP + _highest(tops)
        if state.applied[leaf] == count:
            return leaf
        _refresh(state, count, leaf, buffer)
        groups[g] = _largest(tops)


@compiled()
def _largest_distance(state, count, groups):
    """The largest distance of any point to the atoms."""
    buffer = np.empty(state.longest, state.distance.dtype)
    return state.top[_raise_top(state, count, groups, buffer)]


@njit(inline="always")
def _threshold(state, largest):
    """The distance below which a point cannot be the farthest, given the rounding errors of both distances."""
    if state.relative == 0.0:
        return np.float64(largest)
    distance = np.float64(largest) if state.metric == CITYBLOCK else np.sqrt(np.float64(largest))
    distance = max(distance * (1 - 2 * state.relative) - 2 * state.absolute, 0.0)
    return distance if state.metric == CITYBLOCK else distance * distance


@compiled()
def _candidates(state):
    """Positions of all points that may be the farthest. Every leaf that could hold one must be up to date."""
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
    """Among the points at a distance of at least ``least``: the position of the lowest row, and the number of points.

    Only leaves with a large enough bound are examined, after a refresh.
    """
    position = -1
    ties = 0
    for g in range(len(groups)):
        if groups[g] < least:
            continue
        for leaf in range(g * LEAVES_PER_GROUP, min((g + 1) * LEAVES_PER_GROUP, len(state.top))):
            if state.top[leaf] >= least and state.applied[leaf] < count:
                _refresh(state, count, leaf, buffer)
            if state.top[leaf] < least:
                continue
            for i in range(state.starts[leaf], state.starts[leaf + 1]):
                if state.distance[i] >= least:
                    ties += 1
                    if position < 0 or state.order[i] < state.order[position]:
                        position = i
    return position, ties


@njit(inline="always")
def _leaf_of(starts, position):
    """The leaf that contains this position: the last one that starts at or before it."""
    first = 0
    last = len(starts) - 1
    while last - first > 1:
        middle = (first + last) // 2
        if starts[middle] <= position:
            first = middle
        else:
            last = middle
    return first


@compiled()
def _choose(state, count, target, groups, chosen, radii):
    """Choose atoms count..target. Return early if a choice needs more precision. Returns (status, number chosen)."""
    buffer = np.empty(state.longest, state.distance.dtype)
    for done in range(target - count):
        n_atoms = count + done
        largest = np.float64(state.top[_raise_top(state, n_atoms, groups, buffer)])
        radius = largest if state.metric == CITYBLOCK else np.sqrt(largest)
        if radius < state.resolution:
            return COARSE, done
        if largest == 0.0 and state.relative == 0.0:
            return DONE, done
        least = _threshold(state, largest)
        position, ties = _lowest_candidate(state, n_atoms, least, groups, buffer)
        if (ties > 1 or largest == 0.0) and state.relative > 0.0:  # a single row may coincide with an atom
            return TIED, done
        # If sums are exact, equal distances are true ties, and the lowest row was chosen.
        leaf = _leaf_of(state.starts, position)
        copy_point(state.columns, state.starts, leaf, position, state.atoms[n_atoms])
        chosen[done] = state.order[position]
        radii[done] = radius
    return CHOSEN, target - count
