"""Two guarantees at once: some atoms cover every row, the others lose least given those.

The first atoms are farthest-first, until the covering radius is at most 1.25 times that of as many farthest-first atoms
(`covering`): no row, however rare, is farther from all atoms. The others are tried in ways that `auto` tries, each beside those:
centres of k-means (or the rows nearest to these), and greedily by energy. What explains most of ‖f‖² is kept, by one pass for κ and
one factor each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset import _validate
from reduset._engine import rows_apart
from reduset._types import Array, Indices, Report
from reduset.mean import KernelMean
from reduset.select.auto import BUDGET, KMEANS_ROWS, Contest, Cost, of_greedy, of_kmeans
from reduset.select.contract import Selector, Traversal
from reduset.select.covering import SPARE, Covering, centres_beside, checked_coverage
from reduset.select.greedy import Greedy
from reduset.weights.counts import owners, with_nearest_atoms

SWEEPS = 8  # of k-means, whose centres stay atoms


@dataclass(frozen=True)
class Balanced(Selector):
    """Atoms that cover all rows, and atoms that lose least given those.

    Parameters
    ----------
    coverage : float or None
        The share of the atoms that cover, above 0 and up to 1. None for as many as it takes for a covering radius of at most 1.25
        times that of farthest-first atoms alone: some 60 % of them in two columns, fewer in more.
    rows : bool
        Whether all atoms are rows of the data; if not, the others may be centres of k-means, which lose less.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, compress
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> least, widest = (compress(X, Gaussian(1.0), size=50, select=each, rng=0).certificate for each in ("kcenter", "balanced"))
    >>> widest.radius <= 1.3 * least.radius, widest.relative_error < least.relative_error
    (True, True)
    """

    coverage: float | None = None
    rows: bool = False
    weighs = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "coverage", checked_coverage(self.coverage))
        object.__setattr__(self, "rows", _validate.flag(self.rows, "rows"))

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _Beside(mean, self, rng)


class _Placed(Traversal):
    """Atoms as places, and as rows where they are such."""

    nested = False
    _places: Array
    _rows: Indices | None = None

    @property
    def indices(self) -> Indices | None:
        return self._rows

    @property
    def points(self) -> Array:
        return self._places


class _Beside(_Placed):
    cuttable = False  # the atoms that cover may be its last

    def __init__(self, mean: KernelMean, options: Balanced, rng: np.random.Generator) -> None:
        self._mean, self._options = mean, options
        first, *self._rest = rng.spawn(4)
        self._covering = Covering(mean, options.coverage, first)
        self._places = np.empty((0, mean.dimension))
        self._owners: Indices | None = None
        self._radius: float | None = None
        self._remark = ""

    def extend(self, size: int, report: Report | None = None) -> None:
        mean, covering = self._mean, self._covering
        self._owners = None
        cover = covering.rows(size, report)
        self._radius = covering.reach(len(cover))
        fewer = covering.fewer(len(cover), centres_beside(mean, cover, size - len(cover), self._rest[2]), size)
        if fewer is not None:
            self._choose(fewer, size - math.ceil(SPARE * size), report)
            left = covering.beyond(self._places, self._radius, size - len(self._places))
            if left is not None:
                self._add(left)
                next_ones = covering.farthest(size)
                others = next_ones[rows_apart(mean.atoms[next_ones], self._places)]
                self._add(others[: size - len(self._places)])
                return
        self._choose(cover, size, report)

    def _add(self, rows: Indices) -> None:
        self._places = np.concatenate([self._places, np.asarray(self._mean.atoms[rows], np.float64)])
        self._rows = None if self._rows is None else np.concatenate([self._rows, rows])

    def _choose(self, cover: Indices, size: int, report: Report | None) -> None:
        """The best of the ways to go on from those that cover."""
        tried: list[tuple[Selector, Cost]] = [(Greedy(after=tuple(cover.tolist())), of_greedy)]
        if len(cover) < size:
            tried.insert(0, (_Centres(cover, self._options.rows), of_kmeans))
        contest = Contest(self._mean, tried, BUDGET, self._rest[: len(tried)])
        contest.extend(size, report)
        self._rows, self._places = contest.indices, contest.points
        self._remark = f"{len(cover):,} atoms cover all rows, the others: {contest.remark()}"

    def radius(self) -> float | None:
        return self._radius

    def weights(self) -> Array:
        """What the rows nearest to each weigh."""
        of = self.owners()
        return np.bincount(of[of >= 0], self._mean.weights[of >= 0], len(self.points)).astype(np.float64)

    def owners(self) -> Indices:
        if self._owners is None:
            self._owners = np.where(self._mean.weights != 0, owners(self._mean, self._places), -1)
        return self._owners

    def remark(self) -> str:
        return self._remark


@dataclass(frozen=True)
class _Centres(Selector):
    """Rows that cover, and centres of k-means beside them, or the rows nearest to these."""

    cover: Indices
    rows: bool

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _CoverAndCentres(mean, self, rng)

    def __str__(self) -> str:
        return "KMeans"


class _CoverAndCentres(_Placed):
    def __init__(self, mean: KernelMean, options: _Centres, rng: np.random.Generator) -> None:
        self._mean, self._options, self._rng = mean, options, rng
        self._places = np.empty((0, mean.dimension))

    def extend(self, size: int, report: Report | None = None) -> None:
        mean, cover = self._mean, self._options.cover
        centres = centres_beside(mean, cover, size - len(cover), self._rng, KMEANS_ROWS, SWEEPS)
        self._places = np.concatenate([np.asarray(mean.atoms[cover], np.float64), centres])
        if self._options.rows:
            near = _nearest_rows(mean, self._places)[len(cover) :]
            self._rows = np.concatenate([cover, near[near >= 0]])
            self._places = np.asarray(mean.atoms[self._rows], np.float64)


def _nearest_rows(mean: KernelMean, places: Array) -> Indices:
    """(m,) of the rows of some weight that are nearest to each place, the one that is nearest to it; −1 where there are none."""
    owner, gap = np.empty(mean.size, np.int64), np.full(mean.size, np.inf)

    def note(_: int, rows: Any, index: Any, __: Array, distance: Array) -> None:
        owner[rows], gap[rows] = index, distance

    with_nearest_atoms(mean, places, None, note)
    gap[mean.weights == 0] = np.inf
    order = np.lexsort((gap, owner))
    occupied, first = np.unique(owner[order], return_index=True)
    found = np.full(len(places), -1)
    found[occupied] = np.where(np.isfinite(gap[order[first]]), order[first], -1)
    return found
