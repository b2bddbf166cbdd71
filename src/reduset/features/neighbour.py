"""NeighbourKLKernel: a kernel matrix of bags from k-nearest-neighbour divergences (Póczos, Xiong, Sutherland & Schneider 2012).

    K(p, q) = exp(−D(p, q)/(2σ²)),   D(p, q) = max(0, ½ D(p‖q) + ½ D(q‖p))

The divergence replaces a squared distance, as in Sutherland et al. 2016. N² pairs of bags cost O(N²·n·log n + N³). The cost of
features of bags is linear in N instead. The memory is O(N²) and the points, which are needed to compare later bags.

**Divergences** (Wang, Kulkarni & Verdú 2009; Póczos & Schneider 2011). Let the points xᵢ, i = 1, …, n, be drawn from p in d
dimensions, and the points yⱼ, j = 1, …, m, from q. The distance ρᵢ is from xᵢ to its k-th neighbour among the other x. The distance
νᵢ is to its k-th neighbour among the y. The expected number of points in the ball of radius ρᵢ is (n−1)·c·ρᵢᵈ·p(xᵢ), with the
volume c of the unit ball. At the k-th neighbour this is a Γ(k) variable for large n, and so is m·c·νᵢᵈ·q(xᵢ). In the mean of
log(νᵈ/ρᵈ), the two logarithms of Γ variables cancel. In the mean of a power, they leave a known factor:

    "kl"        ∫ p log p/q  ≈  d/n Σ log νᵢ/ρᵢ + log m/(n−1)
    affinity    ∫ pᵅ q¹⁻ᵅ    ≈  B/n Σ ((n−1) ρᵢᵈ/(m νᵢᵈ))¹⁻ᵅ,   B = Γ(k)²/(Γ(k−α+1) Γ(k+α−1)),   0 < α < k + 1
    "renyi"     log(affinity)/(α − 1)
    "hellinger" 1 − affinity of α = ½, the squared distance ½∫(√p − √q)²

Each sample has one k-d tree. A pair costs O(n log m) in few dimensions, and up to O(n·m) in many.

**Correction.** K = U Λ Uᵀ is indefinite. P = U M Uᵀ with M = 1 if λ > 0, and 0 otherwise, makes P K the nearest positive
semidefinite matrix (Chen et al. 2009). A row k of similarities of a new object to the training objects becomes P k. A training
object therefore gets its fitted row of P K. The cost is O(N³) once, and O(N²) a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.spatial import cKDTree
from scipy.special import gammaln

from reduset import _validate
from reduset._engine import single_threaded_blas
from reduset._messages import warn
from reduset._progress import Progress
from reduset._types import Array, BagsLike, BandwidthLike, Floats, Report
from reduset.features.embedding import BagTransformer, bag_blocks, median_of, run_in_rounds

DIVERGENCES = ("hellinger", "kl", "renyi")
RULES = ("clip",)


@dataclass(frozen=True)
class NeighbourIndex:
    """A k-d tree of a bag, with the distances of its points to their k-th neighbours.

    Attributes
    ----------
    points : (n, d)
        Points in a canonical order.
    tree : cKDTree
    log_radii : (n,)
        Values log ρ for a fixed k.
    smallest : float
        Smallest positive ρ. It replaces distances of 0.
    replaced : int
        Number of distances ρ that were 0.
    key : bytes
        Hash of the points.
    """

    points: Array
    tree: cKDTree
    log_radii: Array
    smallest: float
    replaced: int
    key: bytes

    @classmethod
    def of(cls, bag: Floats, k: int, title: str) -> NeighbourIndex:
        """Build the tree. A bag with fewer than k + 1 different points raises ValueError."""
        points = bag.astype(np.float64) + 0.0  # −0 and 0 are equal, but their bytes differ.
        points = np.ascontiguousarray(points[np.lexsort(points.T[::-1])])
        distinct = np.append(True, (np.diff(points, axis=0) != 0).any(axis=1))
        if distinct.sum() <= k:
            raise ValueError(
                f"{title} must hold at least {k + 1} different points for n_neighbors={k}, got {int(distinct.sum())}; use a "
                "smaller n_neighbors, or omit the bag"
            )
        tree = cKDTree(points)
        radii = kth_distances(tree, points, k + 1)  # The first neighbour is the point itself.
        zero = radii == 0
        unique = points[distinct]
        smallest = float((kth_distances(cKDTree(unique), unique, k + 1) if zero.all() else radii[~zero]).min())
        key = hashlib.blake2b(points.tobytes()).digest()
        return cls(points, tree, np.log(np.where(zero, smallest, radii)), smallest, int(zero.sum()), key)


def kth_distances(tree: cKDTree, points: Array, k: int) -> Array:
    """(n,) distances to the k-th nearest point of the tree."""
    return np.asarray(tree.query(points, k=[k])[0])[:, 0]


@dataclass(frozen=True)
class DivergenceEstimator:
    """A k-nearest-neighbour estimator of a divergence. ``alpha`` is the order of "renyi"."""

    divergence: str
    k: int
    alpha: float = 0.5

    def directed(
        self, first: Sequence[NeighbourIndex], second: Sequence[NeighbourIndex], report: Report, threads: int | None = None
    ) -> tuple[Array, NDArray[np.int32]]:
        """(M, N) divergences of the first bags from the second, and the numbers of zero distances between two bags."""
        points = np.concatenate([sample.points for sample in first])
        log_radii = np.concatenate([sample.log_radii for sample in first])
        sizes = np.array([len(sample.points) for sample in first])
        starts = np.append(0, np.cumsum(sizes))
        cuts = bag_blocks(sizes.tolist(), len(sizes))
        divergences = np.empty((len(second), len(first)))
        zeros = np.zeros((len(second), len(first)), np.int32)

        def query(j: int) -> None:
            for a, b in cuts:
                rows = slice(starts[a], starts[b])
                radii = kth_distances(second[j].tree, points[rows], self.k)
                firsts = starts[a:b] - starts[a]
                zero = radii == 0
                if zero.any():
                    zeros[j, a:b] = np.add.reduceat(zero.astype(np.int32), firsts)
                    radii[zero] = second[j].smallest
                ratios = points.shape[1] * (log_radii[rows] - np.log(radii))
                divergences[j, a:b] = self._from_ratios(ratios, firsts, sizes[a:b], len(second[j].points))

        run_in_rounds([partial(query, j) for j in range(len(second))], range(1, len(second) + 1), report, threads)
        return divergences.T, zeros.T

    def _from_ratios(self, ratios: Array, firsts: NDArray[np.int64], sizes: NDArray[np.int64], m: int) -> Array:
        """Divergences from the values d·log ρ/ν of the points. The bags start at ``firsts`` and have these ``sizes``."""
        balance = np.log((sizes - 1) / m)
        if self.divergence == "kl":
            return np.asarray(-np.add.reduceat(ratios, firsts) / sizes - balance)
        alpha = 0.5 if self.divergence == "hellinger" else self.alpha
        powers = (1 - alpha) * ratios
        largest = np.maximum.reduceat(powers, firsts)
        total = np.add.reduceat(np.exp(powers - np.repeat(largest, sizes)), firsts)
        affinity = correction(self.k, alpha) + (1 - alpha) * balance + largest + np.log(total / sizes)
        return np.asarray(-np.expm1(affinity) if self.divergence == "hellinger" else affinity / (alpha - 1))


def correction(k: int, alpha: float) -> float:
    """The logarithm of the factor B."""
    return float(2 * gammaln(k) - gammaln(k - alpha + 1) - gammaln(k + alpha - 1))


def symmetric_divergences(
    estimate: DivergenceEstimator,
    first: Sequence[NeighbourIndex],
    second: Sequence[NeighbourIndex],
    stage: Callable[[str], Report],
    threads: int | None = None,
) -> tuple[Array, int]:
    """(M, N) non-negative means of both directions, and the number of zero distances.

    Equal bags have divergence 0.
    """
    codes: dict[bytes, int] = {}
    rows, columns = ([codes.setdefault(sample.key, len(codes)) for sample in samples] for samples in (first, second))
    equal = np.equal.outer(rows, columns)
    forward, zeros = estimate.directed(first, second, stage("divergences"), threads)
    backward, backward_zeros = forward, zeros
    if first is not second:
        backward, backward_zeros = estimate.directed(second, first, stage("and back"), threads)
    # Negative estimates are noise, which the other direction may balance. So the sum is clipped, not its terms.
    means = np.maximum((forward + backward.T) / 2, 0.0)
    means[equal] = 0.0
    repetitions = 2 if first is second else 1  # Each pair occurs twice.
    return means, int((zeros + backward_zeros.T)[~equal].sum()) // repetitions


def clipping(K: Array) -> tuple[Array | None, float]:
    """The matrix P for the symmetric (N, N) similarities of the training objects, and their smallest eigenvalue.

    P is None if no eigenvalue is negative.
    """
    with single_threaded_blas():  # The result must not depend on the number of threads.
        values, vectors = eigh(K)
        smallest = float(values[0])
        if smallest >= -len(K) * np.finfo(np.float64).eps * abs(float(values[-1])):
            return None, smallest
        kept = vectors[:, values > 0]
        return kept @ kept.T, smallest


@dataclass(eq=False, repr=False, kw_only=True)
class NeighbourKLKernel(BagTransformer):
    """Rows of a kernel matrix between bags, for estimators with ``kernel="precomputed"``.

    ``fit_transform`` returns the (N, N) matrix of the training bags. ``transform`` returns the (M, N) kernel values of other bags
    with the training bags. Bags with equal points have divergence 0. By default, all threads of `reduset.set_threads` are used.

    Parameters
    ----------
    divergence : "kl", "renyi" or "hellinger"
        Kullback–Leibler, Rényi of order ``alpha``, or the squared Hellinger distance. It is the mean of both directions, clipped
        at 0.
    alpha : float
        Order of "renyi", between 0 and ``n_neighbors`` + 1. An order of 1 raises `ValueError`, because it equals "kl".
    n_neighbors : int
        Number k of the neighbour. Each bag must have more than k different points.
    kernel_width : float or "median"
        Width σ of the kernel. "median" uses the median of √D over the pairs of training bags. Use it as the start of a search.
        Divergences of few or small bags are noisy. A kernel several times as wide then learns better.
    psd : "clip" or None
        "clip" makes the matrix of the training bags positive semidefinite: it sets negative eigenvalues to 0. None makes no change.
        Later rows go through the same linear map.
    group, n_jobs, progress
        As in `DensityFeatures`.

    Attributes
    ----------
    divergences_ : (N, N)
        Symmetric divergences of the training bags.
    kernel_width_ : float
    least_eigenvalue_ : float
        Smallest eigenvalue of the matrix before the correction. It is NaN for ``psd=None``.
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
        """Compute the divergences of all pairs of bags, and fit the correction.

        Parameters
        ----------
        bags : list of (n, d) arrays, or another input of `BagTransformer`
            Training bags.
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
        self._estimator = self._divergence_estimator()
        width = self.kernel_width
        if isinstance(width, str):
            _validate.one_of(width, "kernel_width", ("median",))
        else:
            width = _validate.positive(width, "kernel_width", "'median' uses the median of √D of the bags")
        names, parts = self._validated(bags, reset=True)
        self._samples = self._indexed(names, parts)
        self.divergences_ = self._compare(self._samples)
        upper = self.divergences_[np.triu_indices(len(self.divergences_), 1)]
        self.kernel_width_ = median_of(np.sqrt(upper)) if isinstance(width, str) else width
        kernel = self._gaussian(self.divergences_)
        self._projection, self.least_eigenvalue_ = (None, float("nan")) if self.psd is None else clipping(kernel)
        rows = self._projected(kernel)
        return (rows + rows.T) / 2

    def _divergence_estimator(self) -> DivergenceEstimator:
        divergence = _validate.one_of(self.divergence, "divergence", DIVERGENCES)
        k = _validate.whole(self.n_neighbors, "n_neighbors", 1)
        alpha = _validate.between(self.alpha, "alpha", 0.0, k + 1.0)
        if alpha == 1 and divergence == "renyi":
            raise ValueError("alpha must not be 1, since Rényi's divergence of order 1 is Kullback–Leibler's; use divergence='kl'")
        return DivergenceEstimator(divergence, k, alpha)

    def _indexed(self, names: list[Any], parts: list[Floats]) -> list[NeighbourIndex]:
        return [NeighbourIndex.of(part, self._estimator.k, f"bags[{name!r}]") for name, part in zip(names, parts, strict=True)]

    def _compare(self, first: list[NeighbourIndex]) -> Array:
        """The divergences of bags from the fitted bags."""
        with closing(Progress(self.progress)) as progress:
            divergences, between = symmetric_divergences(self._estimator, first, self._samples, progress.stage, self._threads())
        within = sum(sample.replaced for sample in first)
        if within or between:
            warn(
                f"{within:,} distances of points to their neighbour number {self._estimator.k} within their bag are 0, and "
                f"{between:,} to neighbours in another bag, because points coincide. The smallest positive distance within the bag "
                "replaces them. If values were rounded, add noise of the size of the rounding",
            )
        return divergences

    def _gaussian(self, divergences: Array) -> Array:
        return np.exp(-divergences / (2 * self.kernel_width_**2))

    def _projected(self, kernel: Array) -> Array:
        if self._projection is None:
            return kernel
        with single_threaded_blas():
            return kernel @ self._projection

    def divergences_to_fitted(self, bags: BagsLike) -> Array:
        """(M, N) divergences of bags from the fitted bags: the mean of both directions, clipped at 0."""
        return self._compare(self._indexed(*self._validated(bags)))

    def transform(self, bags: BagsLike) -> Array:
        """(M, N) kernel values between bags and the fitted bags."""
        return self._projected(self._gaussian(self.divergences_to_fitted(bags)))
