"""Atoms that cover: farthest-first, as many as bring every row nearly as close as farthest-first atoms alone would.

    max_x min_{c ∈ cover} |x − c| ≤ 1.25 · r_m,      r_m ≤ 2 · the least radius that any m atoms have (Gonzalez 1985)

In d dimensions radii fall as m^(−1/d), so that it takes some 60 % of m atoms in two columns, 40 % in seven, less in more. The rest
is free to go where rows are many: to the centres of k-means, with those that cover kept in their places (`centres_beside`).

Of very many rows of many columns a sample is covered first, and then, in one pass, the rows that it leaves farther away: every row
is then as near as is said, by some more atoms, in a third of the time and without a copy of all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset import _validate
from reduset._engine import SQUARED, LeafCover, costs, nearest, rows_by_weight
from reduset._types import Array, Floats, Indices, Report
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean
from reduset.select.contract import Traversal, support
from reduset.select.kcenter import KCenter
from reduset.select.kmeans import coordinates_of, leaves_of, rows_looked_at, sweep
from reduset.weights.counts import with_nearest_atoms

REACH = 1.25  # times the covering radius of as many farthest-first atoms
ROWS = 1 << 15  # that centres are fitted to, at most: sixteen for each, at least
SWEEPS = 2  # of Lloyd's algorithm: enough for cells from which rows are drawn
SAMPLED, LEAST_SAMPLED = 32, 1 << 17  # rows of a sample for each atom, and in all
SAME = 1 + 1e-9  # times a radius: the row that it is the distance of may be found a little farther by another sum


def checked_coverage(coverage: float | None) -> float | None:
    """A share of the atoms, or None."""
    if coverage is None:
        return None
    share = _validate.positive(coverage, "coverage", "it is a share of the atoms, 0.5 for half of them")
    if share > 1:
        raise ValueError(f"coverage must be at most 1, it is a share of the atoms; got {coverage!r}")
    return share


class Covering:
    """Farthest-first rows of a mean, of which the first cover."""

    def __init__(self, mean: KernelMean, coverage: float | None, rng: np.random.Generator) -> None:
        self._mean, self._coverage, self._rng = mean, coverage, rng
        self._traversal: Traversal | None = None
        self._rows: Indices = np.empty(0, np.int64)
        self._radii: Array = np.empty(0)

    def rows(self, size: int, report: Report | None = None) -> Indices:
        """The rows that cover, for ``size`` atoms in all; all places, where there are fewer."""
        found = self._by_sample(size, report) if self._is_dear(size) else None
        if found is not None:
            self._rows, self._radii = found
            return self._rows
        if self._traversal is None:
            self._traversal = KCenter().begin(self._mean, self._rng)
        self._rows, self._radii = _farthest(self._traversal, size, report)
        return self._rows[: self._count(self._radii, size)]

    def _count(self, radii: Array, size: int) -> int:
        """How many of ``size`` farthest-first rows cover."""
        if len(radii) < size:
            return len(radii)
        if self._coverage is not None:
            return max(1, round(self._coverage * size))
        if not isinstance(self._mean.kernel, RadialKernel):  # whose distances, those of bumps, end at √2 and tell nothing beyond
            return -(-size // 2)
        return int(np.argmax(radii <= REACH * radii[-1])) + 1

    def reach(self, count: int) -> float:
        """How far any row is from the nearest of the first so many, at most, in the kernel's coordinates."""
        return float(self._radii[count - 1])

    def farthest(self, count: int) -> Indices:
        """The first so many of the rows that were chosen last, those that cover before others."""
        return self._rows[:count]

    def beyond(self, places: Array, radius: float, most: int) -> Indices | None:
        """Farthest-first rows of those farther than a radius from all places, until none is; None where it takes more than that."""
        left, gaps = _farther(self._mean, places, radius)
        if not len(left) or not most:
            return None if len(left) else left
        first = int(np.argmax(gaps))
        found, radii = _farthest(KCenter(first).begin(_part(self._mean, left), self._rng), min(most, len(left)), None)
        near = np.flatnonzero(radii <= SAME * radius)
        return left[found[: near[0] + 1]] if len(near) else None

    @property
    def leaves(self) -> LeafCover | None:
        """The points in leaves, where the traversal has them."""
        return None if self._traversal is None else self._traversal.cover

    def _is_dear(self, size: int) -> bool:
        """Whether farthest-first rows of all rows would take most of the time, and as much memory as these."""
        mean = self._mean
        by_products = isinstance(mean.kernel, RadialKernel) and mean.kernel.product(mean.dimension).profile.ranking == SQUARED
        return by_products and mean.dimension >= costs.MANY and mean.size > 2 * max(SAMPLED * size, LEAST_SAMPLED)

    def _by_sample(self, size: int, report: Report | None) -> tuple[Indices, Array] | None:
        """Farthest-first rows of a sample, and of the rows that these leave beyond their reach, and the radii; None if too many."""
        mean = self._mean
        able = np.flatnonzero(mean.weights)
        drawn = np.sort(self._rng.choice(able, min(len(able), max(SAMPLED * size, LEAST_SAMPLED)), replace=False))
        found, radii = _farthest(KCenter().begin(_part(mean, drawn), self._rng), size, report)
        count = self._count(radii, size)
        rows = drawn[found[:count]]
        more = self.beyond(np.asarray(mean.atoms[rows], np.float64), float(radii[count - 1]), size - count)
        if more is None:
            return None
        return np.concatenate([rows, more]), np.concatenate([radii[:count], np.full(len(more), radii[count - 1])])


def _farthest(traversal: Traversal, size: int, report: Report | None) -> tuple[Indices, Array]:
    """The first rows of a traversal, and the covering radius after each."""
    traversal.extend(size, report)
    radii = traversal.radii()
    if radii is None:
        raise TypeError("a cover needs a traversal that knows its radii")
    return np.asarray(traversal.indices)[:size], radii[:size]


def _part(mean: KernelMean, rows: Indices) -> KernelMean:
    return KernelMean(mean.atoms[rows], mean.weights[rows], mean.kernel)


def _farther(mean: KernelMean, places: Array, radius: float) -> tuple[Indices, Array]:
    """The rows of some weight that are farther than a radius from all places, and how far."""
    gaps = np.empty(mean.size)

    def note(_: int, which: Any, __: Any, ___: Array, distance: Array) -> None:
        gaps[which] = distance

    with_nearest_atoms(mean, places, None, note)
    rows = np.flatnonzero((gaps > SAME * radius) & (mean.weights != 0))
    return rows, gaps[rows]


def centres_beside(mean: KernelMean, cover: Indices, count: int, rng: np.random.Generator) -> Array:
    """(count, d) centres of k-means beside rows that keep their places; fewer where there are fewer places."""
    fixed = np.asarray(mean.atoms[cover], np.float64)
    if count == 0:
        return fixed[:0]
    frame, _ = coordinates_of(mean)
    points, weights = _some_rows(mean, len(cover) + count, rng)
    leaves = leaves_of(points, frame)
    _, apart = nearest(points, fixed, frame, SQUARED, leaves)
    seeds = _drawn(weights * apart**2, count, rng)
    centres = np.concatenate([fixed, np.asarray(points[seeds], np.float64)])
    for _ in range(SWEEPS):
        moved, occupied = sweep(points, weights, centres, frame, leaves)
        centres[len(fixed) :] = moved[len(fixed) :]
    return np.asarray(centres[occupied[occupied >= len(fixed)]])


def _some_rows(mean: KernelMean, size: int, rng: np.random.Generator) -> tuple[Floats, Array]:
    """Rows of some weight and |w|: all, or so many drawn by weight."""
    points, able = support(mean)
    weights = mean.magnitudes if able is None else mean.magnitudes[able]
    most = rows_looked_at(len(points), size, points.shape[1], ROWS)
    if most >= len(points):
        return points, weights
    drawn = np.sort(rows_by_weight(weights, rng.random(most)))
    return points[drawn], np.ones(most)


def _drawn(weights: Array, count: int, rng: np.random.Generator) -> Indices:
    """Up to ``count`` distinct places drawn by weight, none of weight 0 (Efraimidis & Spirakis 2006)."""
    able = np.flatnonzero(weights > 0)
    if len(able) <= count:
        return able
    rings = rng.exponential(size=len(able)) / weights[able]
    return np.asarray(np.sort(able[np.argpartition(rings, count)[:count]]))
