"""NeighbourKLKernel: a kernel matrix of bags from k-nearest-neighbour divergences (Póczos, Xiong, Sutherland & Schneider 2012).

    K(p, q) = exp(−D(p, q)/(2σ²)),   D(p, q) = max(0, ½ D(p‖q) + ½ D(q‖p)) by `nearest`

The divergence takes the place of a squared distance, as in Sutherland et al. 2016. It costs N² pairs of bags: O(N²·n·log n + N³),
where features of bags are linear in N. Memory O(N²), and the points themselves, which later bags are compared with.

K is indefinite. A rule makes it positive semidefinite, also for later rows (Chen et al. 2009):

    K = U Λ Uᵀ,   P = U M Uᵀ,   K' = P K,   and a row k of similarities of a new object to the training ones becomes P k

    "clip"   M = 1 where λ > 0, 0 elsewhere: the nearest positive semidefinite matrix
    "flip"   M = sign λ
    "shift"  K' = K + s I with s = −min λ (0 if no λ is negative): it changes only an object's similarity with itself, so rows of
             new objects stay as they are, and s is added there to rows of training objects

A training object therefore gets the row of K' that it was fitted with. O(N³) once, O(N²) a row.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from reduset import _validate
from reduset._engine import single_threaded_blas
from reduset._messages import warn
from reduset._progress import Progress
from reduset._types import Array, BagsLike, BandwidthLike
from reduset.features.base import BagTransformer
from reduset.features.embedding import median_of
from reduset.features.nearest import DIVERGENCES, DivergenceEstimator, NeighbourIndex, symmetrised

RULES = ("clip", "flip", "shift")


@dataclass(frozen=True)
class PSDCorrection:
    """A spectrum correction (clip, flip or shift), as learnt from a training matrix.

    Attributes
    ----------
    projection : (N, N) P; None where it changes nothing
    shift : s
    least : the smallest eigenvalue that was found
    """

    projection: Array | None
    shift: float
    least: float

    @classmethod
    def learnt(cls, K: Array, rule: str) -> PSDCorrection:
        """From the symmetric (N, N) similarities of the training objects."""
        with single_threaded_blas():  # the same result whatever the number of threads
            values, vectors = eigh(K)
            least = float(values[0])
            if least >= -len(K) * np.finfo(np.float64).eps * abs(float(values[-1])):
                return cls(None, 0.0, least)
            if rule == "shift":
                return cls(None, -least, least)
            kept = values > 0
            positive = vectors[:, kept] @ vectors[:, kept].T
            if rule == "clip":
                return cls(positive, 0.0, least)
            return cls(positive - vectors[:, ~kept] @ vectors[:, ~kept].T, 0.0, least)

    def rows(self, k: Array, alike: NDArray[np.bool_]) -> Array:
        """(M, N) similarities to the training objects after the rule; ``alike``: which are the object itself (the first counts)."""
        if self.projection is not None:
            with single_threaded_blas():
                return k @ self.projection
        return k + self.shift * (alike & (np.cumsum(alike, axis=1) == 1)) if self.shift else k


@dataclass(eq=False, repr=False, kw_only=True)
class NeighbourKLKernel(BagTransformer):
    """Rows of a kernel matrix between bags, for estimators with ``kernel="precomputed"``.

    ``fit_transform`` gives the (N, N) matrix of the training bags, ``transform`` the (M, N) rows of other bags against these. Bags
    with the same points have divergence 0. Runs on all threads, see `reduset.set_threads`.

    Parameters
    ----------
    divergence : "kl", "renyi" or "hellinger"
        Kullback–Leibler, Rényi of order ``alpha``, or the squared Hellinger distance; the mean of both directions, and 0 where that
        estimate is negative.
    alpha : float
        Of "renyi", above 0, below ``n_neighbors`` + 1 and not 1, which is "kl".
    n_neighbors : int
        k; bags must hold more different points than that.
    kernel_width : float or "median"
        σ; "median" takes the median of √D of the pairs of training bags, which is a place to start a search from: where bags are
        few or small, their divergences are noisy, and a kernel several times as wide learns better.
    psd : "clip", "flip", "shift" or None
        How the matrix of the training bags becomes positive semidefinite: negative eigenvalues set to 0, turned, or moved to 0 with
        all others; None leaves it as it is. Later rows go through the same linear map, so that a training bag that is shown again
        gets the row that it was fitted with.
    group, n_jobs, progress : as of `DensityFeatures`

    Attributes
    ----------
    divergences_ : (N, N), symmetric, of the training bags
    kernel_width_ : float
    least_eigenvalue_ : float, of the matrix before it was made positive semidefinite; NaN for ``psd=None``
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from reduset.features import NeighbourKLKernel
    >>> rng = np.random.default_rng(0)
    >>> narrow = rng.uniform(size=60) < 0.5
    >>> bags = [rng.normal(0, 1.0 if small else 1.5, size=(80, 2)) for small in narrow]
    >>> model = make_pipeline(NeighbourKLKernel(), SVC(kernel="precomputed")).fit(bags[:40], narrow[:40])
    >>> bool(model.score(bags[40:], narrow[40:]) > 0.9)
    True
    """

    divergence: str = field(default="kl", kw_only=False)
    alpha: float = 0.9
    n_neighbors: int = 4
    kernel_width: BandwidthLike = "median"
    psd: str | None = "clip"

    def fit(self, bags: BagsLike, y: Any = None) -> NeighbourKLKernel:
        """Compare all pairs of bags, and learn how rows become those of a positive semidefinite matrix.

        Parameters
        ----------
        bags : list of (n, d) arrays, or what else `BagTransformer` says
        y : ignored
        """
        self._fit(bags)
        return self

    def fit_transform(self, bags: BagsLike, y: Any = None) -> Array:
        """Fit, and return the (N, N) kernel matrix of the training bags."""
        return self._fit(bags)

    def _fit(self, bags: BagsLike) -> Array:
        if self.psd is not None:
            _validate.one_of(self.psd, "psd", RULES)
        self._estimate = self._request()
        width = self.kernel_width
        if not isinstance(width, str):
            _validate.positive(width, "kernel_width", "'median' takes the median of √D of the bags")
        else:
            _validate.one_of(width, "kernel_width", ("median",))
        names, parts = self._checked(bags, reset=True)
        self._samples = [self._sample(name, part) for name, part in zip(names, parts, strict=True)]
        self.divergences_, _ = self._compare(self._samples)
        self.kernel_width_ = self._median_root() if isinstance(width, str) else float(width)
        kernel = self._gaussian(self.divergences_)
        self._definite = None if self.psd is None else PSDCorrection.learnt(kernel, self.psd)
        self.least_eigenvalue_ = float("nan") if self._definite is None else self._definite.least
        if self._definite is None:
            return kernel
        rows = self._definite.rows(kernel, np.eye(len(kernel), dtype=bool))
        return (rows + rows.T) / 2

    def _median_root(self) -> float:
        return median_of(np.sqrt(self.divergences_[np.triu_indices(len(self.divergences_), 1)]))

    def _request(self) -> DivergenceEstimator:
        divergence = _validate.one_of(self.divergence, "divergence", DIVERGENCES)
        k = _validate.whole(self.n_neighbors, "n_neighbors", 1)
        alpha = _validate.between(self.alpha, "alpha", 0.0, k + 1.0)
        if alpha == 1 and divergence == "renyi":
            raise ValueError("alpha must not be 1, where Rényi's divergence is that of Kullback and Leibler; use divergence='kl'")
        return DivergenceEstimator(divergence, k, alpha)

    def _sample(self, name: Any, part: Any) -> NeighbourIndex:
        return NeighbourIndex.of(part, self._estimate.k, f"bags[{name!r}]")

    def _compare(self, first: list[NeighbourIndex]) -> tuple[Array, Any]:
        """The divergences of bags from the fitted ones, and which of them are one of these."""
        with closing(Progress(self.progress)) as progress:
            found, alike, between = symmetrised(self._estimate, first, self._samples, progress.stage, self._threads())
        within = sum(sample.replaced for sample in first)
        if within or between:
            warn(
                f"{within:,} distances of points to their neighbour number {self._estimate.k} within their bag are 0, and "
                f"{between:,} to that in another bag: points coincide. The smallest such distance above 0 within the bag stands "
                "for them; where values were rounded, add noise of that size",
            )
        return found, alike

    def _gaussian(self, divergences: Array) -> Array:
        return np.exp(-divergences / (2 * self.kernel_width_**2))

    def _to_fitted(self, bags: BagsLike) -> tuple[Array, Any]:
        names, parts = self._checked(bags)
        return self._compare([self._sample(name, part) for name, part in zip(names, parts, strict=True)])

    def divergences_to_fitted(self, bags: BagsLike) -> Array:
        """(M, N) divergences of bags from the fitted ones, both directions' mean, not below 0."""
        return self._to_fitted(bags)[0]

    def transform(self, bags: BagsLike) -> Array:
        """(M, N) rows of the kernel of bags with the fitted ones."""
        divergences, alike = self._to_fitted(bags)
        kernel = self._gaussian(divergences)
        return kernel if self._definite is None else self._definite.rows(kernel, alike)
