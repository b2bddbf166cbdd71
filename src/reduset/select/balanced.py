"""Rare and right: some atoms cover every row, the others stand for what there is most of, and each row belongs to one of them.

Farthest-first atoms (`kcenter`) come near every row, however rare, and say nothing of how many there are; centres of k-means lie
where rows are many, and miss the few. Here the first atoms are farthest-first, as many as bring the covering radius to `REACH`
times that of farthest-first atoms alone,

    max_x min_{c ∈ cover} |x − c| ≤ 1.25 · r_m,      r_m ≤ 2 · the least radius that any m atoms have (Gonzalez 1985),

and the others are drawn from the cells of k-means with those kept in their places, one row from each: a stratified sample, of which
the sums with the cells' masses for weights are right on average whatever is summed, also what the kernel does not see. The row
nearest to the centre would not do: it is never one of those at the rim of its cell, and where rows pile up on an edge (a detection
limit, a zero) all of these go to others.

O(n·m·d) at worst for the covering and once more for the cells; the sweeps of k-means look at some of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset import _validate
from reduset._engine import SQUARED, nearest, rows_by_weight
from reduset._types import Array, Floats, Indices, Report
from reduset.mean import KernelMean
from reduset.select.contract import Selector, Traversal, support
from reduset.select.kcenter import KCenter
from reduset.select.kmeans import coordinates_of, leaves_of, rows_looked_at, sweep
from reduset.weights.counts import owners

REACH = 1.25  # times the covering radius of as many farthest-first atoms
ROWS = 1 << 15  # that the cells are fitted to, at most: sixteen for each, at least
SWEEPS = 3


@dataclass(frozen=True)
class Balanced(Selector):
    """Rows that cover all rows, and rows drawn from cells of the others; their own weights are what the rows of each weigh.

    Parameters
    ----------
    coverage : float or None
        The share of the atoms that cover, in [0, 1]. None for as many as it takes for a covering radius of at most 1.25 times that
        of farthest-first atoms alone: about half of them in few columns, fewer in many.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.select import Balanced
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(5000, 2)), rng.normal(size=(5, 2)) + 12])  # five rows in a thousandth of the data
    >>> chosen = Balanced().select(KernelMean.from_samples(X, kernel=Gaussian(1.0)), 50, rng=0)
    >>> rare = chosen.indices >= 5000
    >>> bool(rare.any()), float(chosen.weights[rare].sum().round(6)) == round(5 / 5005, 6)
    (True, True)
    """

    coverage: float | None = None
    weighs = True

    def __post_init__(self) -> None:
        if self.coverage is not None:
            object.__setattr__(self, "coverage", _validate.between(self.coverage, "coverage", 0.0, 1.0))

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _Strata(mean, self.coverage, rng)


class _Strata(Traversal):
    nested = False

    def __init__(self, mean: KernelMean, coverage: float | None, rng: np.random.Generator) -> None:
        self._mean, self._coverage, self._rng = mean, coverage, rng
        self._covering = KCenter().begin(mean, rng)
        self._points, self._support = support(mean)
        self._rows: Indices = np.empty(0, np.int64)
        self._owner: Indices = np.empty(0, np.int64)  # of the points of the support
        self._radius: float | None = None
        self._remark = ""

    def extend(self, size: int, report: Report | None = None) -> None:
        covering = self._covering
        covering.extend(size, report)
        cover = np.asarray(covering.indices)[:size]
        count = len(cover) if len(cover) < size else self._covers(size)
        centres = self._centres(cover[:count], size - count)
        # where there are fewer places than cells were asked for, the next that cover take their part
        cover = cover[: size - len(centres)]
        places = np.concatenate([np.asarray(self._mean.atoms[cover], np.float64), centres])
        part = self._mean if self._support is None else KernelMean(self._points, self._weights, self._mean.kernel)
        self._owner = owners(part, places, covering.cover)
        self._rows = self._drawn(cover, len(places))
        radii = covering.radii()
        self._radius = None if radii is None else float(radii[len(cover) - 1])
        self._remark = f"{len(cover):,} atoms cover all rows, {len(centres):,} are drawn from cells"

    def _covers(self, size: int) -> int:
        """How many of ``size`` atoms cover."""
        if self._coverage is not None:
            return max(1, round(self._coverage * size))
        radii = self._covering.radii()
        if radii is None:
            raise TypeError("a cover needs a traversal that knows its radii")
        return int(np.argmax(radii[:size] <= REACH * radii[size - 1])) + 1

    @property
    def _weights(self) -> Array:
        return self._mean.weights if self._support is None else self._mean.weights[self._support]

    def _centres(self, cover: Indices, count: int) -> Array:
        """(count, d) centres of k-means beside those that cover, which keep their places; fewer where there are fewer places."""
        fixed = np.asarray(self._mean.atoms[cover], np.float64)
        if count == 0:
            return fixed[:0]
        frame, _ = coordinates_of(self._mean)
        points, weights = self._some_rows(len(cover) + count)
        leaves = leaves_of(points, frame)
        _, apart = nearest(points, fixed, frame, SQUARED, leaves)
        seeds = _draw(weights * apart**2, count, self._rng)
        centres = np.concatenate([fixed, np.asarray(points[seeds], np.float64)])
        for _ in range(SWEEPS):
            centres[len(fixed) :] = sweep(points, weights, centres, frame, leaves)[len(fixed) :]
        owner, _ = nearest(points, centres, frame, SQUARED, leaves)
        occupied = np.unique(owner)
        return centres[occupied[occupied >= len(fixed)]]

    def _some_rows(self, size: int) -> tuple[Floats, Array]:
        """Rows that the cells are fitted to, and their weights: all, or so many drawn by weight."""
        points, weights = self._points, np.abs(self._weights)
        most = rows_looked_at(len(points), size, points.shape[1], ROWS)
        if most >= len(points):
            return points, weights
        drawn = np.sort(rows_by_weight(weights, self._rng.random(most)))
        return points[drawn], np.ones(most)

    def _drawn(self, cover: Indices, size: int) -> Indices:
        """A row of each cell: the one that covers, or one drawn by weight; a cell without rows is given up."""
        rows = np.full(size, -1)
        luck = self._rng.exponential(size=len(self._owner)) / np.abs(self._weights)
        first = np.full(size, np.inf)
        np.minimum.at(first, self._owner, luck)
        winners = np.flatnonzero(luck == first[self._owner])
        rows[self._owner[winners]] = winners if self._support is None else self._support[winners]
        rows[: len(cover)] = cover
        kept = rows >= 0
        if not kept.all():
            self._owner = (np.cumsum(kept) - 1)[self._owner]
        return rows[kept]

    @property
    def indices(self) -> Indices:
        return self._rows

    def radius(self) -> float | None:
        """That of the atoms that cover; the others can only lower it."""
        return self._radius

    def weights(self) -> Array:
        return np.bincount(self._owner, self._weights, len(self._rows)).astype(np.float64)

    def owners(self) -> Indices:
        if self._support is None:
            return self._owner
        found = np.full(self._mean.size, -1)
        found[self._support] = self._owner
        return found

    def remark(self) -> str:
        return self._remark


def _draw(weights: Array, count: int, rng: np.random.Generator) -> Indices:
    """Up to ``count`` distinct places drawn by weight, none of weight 0 (Efraimidis & Spirakis 2006)."""
    able = np.flatnonzero(weights > 0)
    if len(able) <= count:
        return able
    rings = rng.exponential(size=len(able)) / weights[able]
    return np.asarray(np.sort(able[np.argpartition(rings, count)[:count]]))
