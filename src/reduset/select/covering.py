"""Atoms that cover: farthest-first, as many as bring every row nearly as close as farthest-first atoms alone would.

    max_x min_{c ∈ cover} |x − c| ≤ 1.25 · r_m,      r_m ≤ 2 · the least radius that any m atoms have (Gonzalez 1985)

In d dimensions radii fall as m^(−1/d), so that it takes some 60 % of m atoms in two columns, 40 % in seven, less in more. The rest
is free to go where rows are many: to the centres of k-means, with those that cover kept in their places (`centres_beside`).
"""

from __future__ import annotations

import numpy as np

from reduset import _validate
from reduset._engine import SQUARED, Cover, nearest, rows_by_weight
from reduset._types import Array, Floats, Indices, Report
from reduset.mean import KernelMean
from reduset.select.contract import support
from reduset.select.kcenter import KCenter
from reduset.select.kmeans import coordinates_of, leaves_of, rows_looked_at, sweep

REACH = 1.25  # times the covering radius of as many farthest-first atoms
ROWS = 1 << 15  # that centres are fitted to, at most: sixteen for each, at least
SWEEPS = 3


def checked_coverage(coverage: float | None) -> float | None:
    """A share of the atoms, or None."""
    return None if coverage is None else _validate.between(coverage, "coverage", 0.0, 1.0)


class Covering:
    """Farthest-first rows of a mean, of which the first cover."""

    def __init__(self, mean: KernelMean, coverage: float | None, rng: np.random.Generator) -> None:
        self._coverage, self._traversal = coverage, KCenter().begin(mean, rng)

    def rows(self, size: int, report: Report | None = None) -> Indices:
        """The rows that cover, for ``size`` atoms in all; all places, where there are fewer."""
        self._traversal.extend(size, report)
        found = self.farthest(size)
        return found if len(found) < size else found[: self._count(size)]

    def _count(self, size: int) -> int:
        if self._coverage is not None:
            return max(1, round(self._coverage * size))
        radii = self._radii
        return int(np.argmax(radii[:size] <= REACH * radii[size - 1])) + 1

    def farthest(self, count: int) -> Indices:
        """The first so many farthest-first rows, of those that were chosen."""
        return np.asarray(self._traversal.indices)[:count]

    @property
    def _radii(self) -> Array:
        radii = self._traversal.radii()
        if radii is None:
            raise TypeError("a cover needs a traversal that knows its radii")
        return radii

    def radius(self, count: int) -> float:
        """How far any row is from the nearest of the first so many, at most, in the kernel's coordinates."""
        return float(self._radii[count - 1])

    @property
    def leaves(self) -> Cover | None:
        """The points in leaves, where the traversal has them."""
        return self._traversal.cover


def centres_beside(mean: KernelMean, cover: Indices, count: int, rng: np.random.Generator, rows: int = ROWS) -> Array:
    """(count, d) centres of k-means beside rows that keep their places; fewer where there are fewer places.

    Parameters
    ----------
    rows : that they are fitted to, at most (16 for each, at least)
    """
    fixed = np.asarray(mean.atoms[cover], np.float64)
    if count == 0:
        return fixed[:0]
    frame, _ = coordinates_of(mean)
    points, weights = _some_rows(mean, len(cover) + count, rows, rng)
    leaves = leaves_of(points, frame)
    _, apart = nearest(points, fixed, frame, SQUARED, leaves)
    seeds = _drawn(weights * apart**2, count, rng)
    centres = np.concatenate([fixed, np.asarray(points[seeds], np.float64)])
    for _ in range(SWEEPS):
        centres[len(fixed) :] = sweep(points, weights, centres, frame, leaves)[len(fixed) :]
    owner, _ = nearest(points, centres, frame, SQUARED, leaves)
    occupied = np.unique(owner)
    return np.asarray(centres[occupied[occupied >= len(fixed)]])


def _some_rows(mean: KernelMean, size: int, rows: int, rng: np.random.Generator) -> tuple[Floats, Array]:
    """Rows of some weight and |w|: all, or so many drawn by weight."""
    points, able = support(mean)
    weights = mean.magnitudes if able is None else mean.magnitudes[able]
    most = rows_looked_at(len(points), size, points.shape[1], rows)
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
