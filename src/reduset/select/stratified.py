"""A row of each stratum: rows that cover all others, and one drawn from every cell of the rest, which it then stands for.

Farthest-first rows come near every row, however rare, and say nothing of how many there are (`covering`). The others are drawn from
the cells of k-means with those kept in their places, one row from each: a stratified sample, whose sums with the cells' masses for
weights are right on average whatever is summed, also what the kernel does not see. The row nearest to the centre would not do: it
is never one of those at the rim of its cell, and where rows pile up on an edge (a detection limit, a zero) all of these go to
others. Of eight rows drawn from each cell the one is taken with which the sketch as a whole has the waves of all rows, at three
scales (`_engine.exchanging`): a quarter of the error at the coarse ones.

O(n·m·d) at worst for the covering and once more for the cells; the sweeps of k-means look at some of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset import bandwidth
from reduset._engine import SQUARED, costs, exchange, likely_nearest, wave_sums
from reduset._types import Array, Indices, Report
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean
from reduset.select.contract import Selector, Traversal, support
from reduset.select.covering import Covering, centres_beside, checked_coverage
from reduset.select.kmeans import coordinates_of
from reduset.weights.counts import owners

DRAWN, EXCHANGES = 8, 2  # rows of each cell, of which one is chosen, in so many sweeps
LADDERS, RUNGS = 256, 3  # frequencies, from the median distance to a quarter of it
MANY_CELLS = 1024  # of many columns: the nearest place of every point is not sought at any price
SOME = 2000  # rows by which that distance is told


@dataclass(frozen=True)
class Stratified(Selector):
    """Rows that cover all rows, and rows drawn from cells of the others; their own weights are what the rows of each weigh.

    Parameters
    ----------
    coverage : float or None
        The share of the rows that cover, above 0 and up to 1; None for as many as it takes for a covering radius of at most 1.25
        times that of farthest-first rows alone.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.select.stratified import Stratified
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(5000, 2)), rng.normal(size=(5, 2)) + 12])  # five rows in a thousandth of the data
    >>> chosen = Stratified().select(KernelMean.from_samples(X, kernel=Gaussian(1.0)), 50, rng=0)
    >>> rare = chosen.indices >= 5000
    >>> bool(rare.any()), float(chosen.weights[rare].sum().round(6)) == round(5 / 5005, 6)
    (True, True)
    """

    coverage: float | None = None
    weighs = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "coverage", checked_coverage(self.coverage))

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _Strata(mean, self.coverage, rng)


class _Strata(Traversal):
    nested = False

    def __init__(self, mean: KernelMean, coverage: float | None, rng: np.random.Generator) -> None:
        self._mean, self._rng = mean, rng
        self._covering = Covering(mean, coverage, rng)
        self._points, self._support = support(mean)
        self._rows: Indices = np.empty(0, np.int64)
        self._owner: Indices = np.empty(0, np.int64)  # of the points of the support
        self._radius: float | None = None
        self._covers = 0

    def extend(self, size: int, report: Report | None = None) -> None:
        cover = self._covering.rows(size, report)
        self._radius = self._covering.reach(len(cover))
        centres = centres_beside(self._mean, cover, size - len(cover), self._rng)
        # where there are fewer places than cells were asked for, the next that cover take their part
        cover = self._covering.farthest(size - len(centres))
        places = np.concatenate([np.asarray(self._mean.atoms[cover], np.float64), centres])
        self._owner = self._cells(places)
        self._owner[self._places_of(cover)] = np.arange(len(cover))  # each stands for itself, whatever a near place may say
        self._rows, self._covers = self._drawn(cover, len(places), size), len(cover)

    def _places_of(self, rows: Any) -> Any:
        """Where the points of the support have rows of the mean."""
        return rows if self._support is None else np.searchsorted(self._support, rows)

    @property
    def _weights(self) -> Array:
        return self._mean.weights if self._support is None else self._mean.weights[self._support]

    def _cells(self, places: Array) -> Indices:
        """(n,) which place each point belongs to: the nearest, or in many columns one that is near and most often the nearest."""
        part = self._mean if self._support is None else KernelMean(self._points, self._weights, self._mean.kernel)
        shape = part.kernel.product(part.dimension) if isinstance(part.kernel, RadialKernel) else None
        if shape is not None and shape.profile.ranking == SQUARED and part.dimension >= costs.MANY and len(places) >= MANY_CELLS:
            return likely_nearest(part.atoms, places, coordinates_of(part)[0])
        return owners(part, places, self._covering.leaves)

    def _drawn(self, cover: Indices, cells: int, size: int) -> Indices:
        """A row of each cell: the one that covers, or one of those drawn from it; a cell without rows is given up."""
        candidates, masses = self._candidates(cells), np.bincount(self._owner, self._weights, cells).astype(np.float64)
        rows = np.concatenate([cover, self._best(cover, candidates[len(cover) :], masses), np.full(size - cells, -1)])
        self._fill(rows, candidates, masses)
        kept = rows >= 0
        if not kept.all():
            self._owner = (np.cumsum(kept) - 1)[self._owner]
        return rows[kept]

    def _candidates(self, cells: int) -> Indices:
        """(cells, DRAWN) rows drawn from each cell by weight, in the order of the draw; −1 after the last."""
        luck = self._rng.exponential(size=len(self._owner)) / np.abs(self._weights)
        order = np.lexsort((luck, self._owner))
        starts = np.searchsorted(self._owner[order], np.arange(cells + 1))
        drawn = starts[:-1, None] + np.arange(DRAWN)
        found = np.where(drawn < starts[1:, None], order[np.minimum(drawn, len(order) - 1)], -1)
        return found if self._support is None else np.where(found >= 0, self._support[found], -1)

    def _fill(self, rows: Indices, candidates: Indices, masses: Array) -> None:
        """Give cells without rows a second one of the heaviest, which stands for itself alone, where these have other places."""
        empty = np.flatnonzero(rows < 0).tolist()
        atoms, full = self._mean.atoms, np.flatnonzero(rows >= 0)
        for cell in full[np.argsort(-np.abs(masses[full]), kind="stable")] if empty else ():
            others = [row for row in candidates[cell].tolist() if row >= 0 and (atoms[row] != atoms[rows[cell]]).any()]
            if others and empty:
                rows[empty[0]] = others[0]
                self._owner[self._places_of(others[0])] = empty.pop(0)

    def _best(self, cover: Indices, candidates: Indices, masses: Array) -> Indices:
        """(k,) the candidates whose waves, with those of the rows that cover, add up to those of all rows, or nearly so."""
        mean, first = self._mean, candidates[:, 0]
        if not len(candidates) or not isinstance(mean.kernel, RadialKernel):
            return first
        frame, _ = coordinates_of(mean)
        able = first >= 0
        rows, weights = np.concatenate([cover, first[able]]), masses[np.concatenate([np.full(len(cover), True), able])]
        some = frame.apply(self._points[:: max(1, len(self._points) // SOME)])
        if (some == some[0]).all():  # nearly all rows are one place: then by those that are not
            some = frame.apply(mean.atoms[rows])
        frequencies, moves = np.zeros((LADDERS, mean.dimension)), (some != some[0]).any(axis=0)
        frequencies[:, moves] = self._rng.standard_normal((LADDERS, moves.sum())) / bandwidth.median(some)
        left = wave_sums(mean.atoms, mean.weights, frequencies, frame, RUNGS)
        left -= wave_sums(mean.atoms[rows], weights, frequencies, frame, RUNGS)
        chosen = exchange(mean.atoms, candidates, masses[len(cover) :], frequencies, frame, left, EXCHANGES)
        return np.asarray(candidates[np.arange(len(candidates)), chosen])

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
        return (
            f"{self._covers:,} are there to cover all others, {len(self._rows) - self._covers:,} are drawn from strata of the rest"
        )
