"""Two guarantees at once: some atoms cover every row, the others lose least given those.

The first atoms are farthest-first, until the covering radius is at most 1.25 times that of as many farthest-first atoms
(`covering`): no row, however rare, is farther from all atoms. The others are tried in ways that `auto` tries, each beside those:
centres of k-means, and greedily by energy; of rows alone, strata (`stratified`) in place of centres. What explains most of ‖f‖² is
kept, by one pass for κ and one factor each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset._types import Array, Indices, Report
from reduset.mean import KernelMean
from reduset.select.auto import BUDGET, KMEANS_ROWS, Contest, of_greedy, of_kmeans
from reduset.select.contract import Selector, Traversal
from reduset.select.covering import Covering, centres_beside, checked_coverage
from reduset.select.greedy import Greedy
from reduset.select.stratified import Stratified
from reduset.weights.counts import owners


@dataclass(frozen=True)
class Balanced(Selector):
    """Atoms that cover all rows, and atoms that lose least given those.

    Parameters
    ----------
    coverage : float or None
        The share of the atoms that cover, in [0, 1]. None for as many as it takes for a covering radius of at most 1.25 times that
        of farthest-first atoms alone: some 60 % of them in two columns, fewer in more.
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

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _Beside(mean, self, rng)


class _Beside(Traversal):
    nested = False

    def __init__(self, mean: KernelMean, options: Balanced, rng: np.random.Generator) -> None:
        self._mean, self._options = mean, options
        first, *self._rest = rng.spawn(3)
        self._covering = Covering(mean, options.coverage, first)
        self._contest: Contest | None = None
        self._radius: float | None = None
        self._remark = ""

    def extend(self, size: int, report: Report | None = None) -> None:
        cover = self._covering.rows(size, report)
        self._radius = self._covering.radius(len(cover))
        others: Selector = _Centres(cover)
        if self._options.rows:
            others = Stratified(len(cover) / size)
        tried = ((others, of_kmeans), (Greedy(after=tuple(cover.tolist())), of_greedy))
        self._contest = Contest(self._mean, tried, BUDGET, self._rest)
        self._contest.extend(size, report)
        self._remark = f"{len(cover):,} atoms cover all rows, the others: {self._contest.remark()}"

    @property
    def _found(self) -> Contest:
        if self._contest is None:
            raise RuntimeError("nothing has been chosen yet")
        return self._contest

    @property
    def indices(self) -> Indices | None:
        return self._found.indices

    @property
    def points(self) -> Array:
        return self._found.points

    @property
    def kappa(self) -> Array:
        return self._found.kappa

    def radius(self) -> float | None:
        return self._radius

    def weights(self) -> Array:
        """What the rows nearest to each weigh."""
        return np.bincount(self.owners(), self._mean.weights, len(self.points)).astype(np.float64)

    def owners(self) -> Indices:
        return owners(self._mean, self.points)

    def remark(self) -> str:
        return self._remark


@dataclass(frozen=True)
class _Centres(Selector):
    """Rows that cover, and centres of k-means beside them."""

    cover: Indices

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _CoverAndCentres(mean, self.cover, rng)

    def __str__(self) -> str:
        return "KMeans"


class _CoverAndCentres(Traversal):
    nested = False
    indices = None

    def __init__(self, mean: KernelMean, cover: Indices, rng: np.random.Generator) -> None:
        self._mean, self._cover, self._rng = mean, cover, rng
        self._centres: Array = np.empty((0, mean.dimension))

    def extend(self, size: int, report: Report | None = None) -> None:
        self._centres = centres_beside(self._mean, self._cover, size - len(self._cover), self._rng, KMEANS_ROWS)

    @property
    def points(self) -> Array:
        return np.concatenate([np.asarray(self._mean.atoms[self._cover], np.float64), self._centres])
