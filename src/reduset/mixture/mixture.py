"""The Gaussian mixture f = Σᵢ wᵢ N(·; tᵢ, Hᵢ), in which each component has a covariance (Zhang & Kwok 2010, Section II).

    ⟨f, g⟩ = Σᵢⱼ wᵢ vⱼ N(tᵢ; xⱼ, Hᵢ + Cⱼ),        ‖f − g‖² = ⟨f, f⟩ − 2⟨f, g⟩ + ⟨g, g⟩        in L2, in closed form

In a kernel density estimate all components share one covariance. An SVM is a mixture with signed weights. Evaluation
costs O(m·d²) per query. An inner product costs O(m·n·d³), or O(m·n·d²) if the components of one mixture share a covariance. With
diagonal covariances it costs O(m·n·d).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from reduset import _archive, _validate
from reduset._engine import (
    Components,
    as_diagonal,
    as_full,
    box_sums,
    component_logs,
    component_sums,
    is_shared,
    log_peaks,
    oblique_box_sums,
    row_blocks,
)
from reduset._types import Array, PointsLike, SeedLike
from reduset._validate import seeded
from reduset.kernels import Gaussian, exponential, warn_if_imprecise
from reduset.mean import KernelMean, LinearCombination
from reduset.mixture.conditioning import as_columns, known_columns, weights_where
from reduset.mixture.covariances import NDIM, inverses, widened

MIXTURE = _archive.Kind(
    "reduset.Mixture",
    "mixture",
    {
        "weights": _archive.fields.Numbers(("m",)),
        "means": _archive.fields.Numbers(("m", "d")),
        "covariances": _archive.fields.Numbers(("m", "...")),
    },
)
SHAPES = {ndim: shape for shape, ndim in NDIM.items()}
DRAWS = 10_000
MAX_LOG_INTEGRAL = 600.0  # |log| of an integral that the weights can hold in floating point


def _height(kernel: Gaussian, dimension: int) -> float:
    """The integral of the kernel function: its peak relative to the peak of the density of the same shape."""
    log = kernel.log_peak(dimension) - kernel.density_log_peak(dimension)
    if abs(log) > MAX_LOG_INTEGRAL:
        raise ValueError(
            f"kernel must have an integral within floating point, {kernel!r} has e^{log:.0f} in {dimension} dimensions; "
            "use normalized=True"
        )
    return exponential(log)


class DivergenceEstimate(NamedTuple):
    """A divergence estimated by sampling, and its standard error."""

    value: float
    error: float


@dataclass(frozen=True, eq=False)
class Mixture(LinearCombination):
    """A weighted sum of Gaussian densities.

    Parameters
    ----------
    weights : (m,) array
        Signed, never renormalised.
    means : (m, d) array
    covariances : (m, d, d), (m, d) or (m,) array
        Full, diagonal (variances), or spherical (one variance per component).

    Arrays of float64 are kept by reference and not copied, so do not change them afterwards.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Mixture
    >>> f = Mixture([0.5, 0.5], [[0.0], [3.0]], [1.0, 4.0])
    >>> f([[0.0]]).round(4)
    array([0.2319])
    >>> g = Mixture([1.0], [[1.5]], [4.75])
    >>> round(f.distance(g), 4)
    0.1268
    """

    weights: Array
    means: Array
    covariances: Array
    _called = "mixture"

    def __post_init__(self) -> None:
        means = np.asarray(_validate.points(self.means, "means"), np.float64)
        weights = _validate.weights(self.weights, len(means), "weights", signed=True)
        covariances = _validate.covariances(self.covariances, *means.shape)
        self._freeze(means=means, weights=weights, covariances=covariances)

    # -- from and to --------------------------------------------------------------------------------------------------------

    @classmethod
    def from_mean(cls, mean: KernelMean) -> Mixture:
        """A Gaussian kernel mean as a mixture: the kernel sets all covariances, and its integral scales the weights."""
        if not isinstance(mean, KernelMean):
            raise TypeError(f"mean must be a KernelMean, got {type(mean).__name__}; use KernelMean.from_samples(X, Gaussian(h))")
        kernel = mean.kernel
        if not isinstance(kernel, Gaussian):
            raise TypeError(f"only a Gaussian kernel mean is a mixture, got {kernel!r}; use Gaussian(h)")
        n, d = mean.size, mean.dimension
        if kernel.units is not None:
            covariances = np.broadcast_to(np.square(kernel.width * kernel.units), (n, d))
        elif kernel.covariance is None:
            covariances = np.broadcast_to(kernel.width**2, n)
        else:
            covariances = np.broadcast_to(kernel.width**2 * np.asarray(kernel.covariance, np.float64), (n, d, d))
        return cls(mean.weights * _height(kernel, d), np.asarray(mean.atoms, np.float64), covariances)

    def to_mean(self, kernel: Gaussian | None = None) -> KernelMean:
        """This mixture as a kernel mean with a normalized kernel; all components must have one covariance.

        A given ``kernel`` must have that covariance. It may be normalized or not.
        """
        if not is_shared(self.covariances):
            raise ValueError(
                "only a mixture whose components all have one covariance is a kernel mean; "
                "compress samples of it: compress(mixture.sample(100_000), ...)"
            )
        if kernel is None:
            if self.covariances.ndim == 1:
                kernel = Gaussian(float(np.sqrt(self.covariances[0])), normalized=True, space="l2")
            elif self.covariances.ndim == 2:
                kernel = Gaussian(1.0, scales=np.sqrt(self.covariances[0]), normalized=True, space="l2")
            else:
                kernel = Gaussian(1.0, covariance=as_full(self.covariances[:1], self.dimension)[0], normalized=True, space="l2")
            return KernelMean(self.means, self.weights, kernel)
        if not isinstance(kernel, Gaussian):
            raise TypeError(f"kernel must be a Gaussian, got {kernel!r}; omit it to derive it from the components")
        if not self._has_covariance_of(kernel):
            raise ValueError(f"kernel must have the covariance that the components have, {kernel!r} has another; omit it")
        return KernelMean(self.means, self.weights / _height(kernel, self.dimension), kernel)

    def _has_covariance_of(self, kernel: Gaussian) -> bool:
        """True if the components and the kernel have the same covariance."""
        actual, units, d = self.covariances[0], kernel.column_units, self.dimension
        if np.ndim(actual) < 2 and np.ndim(kernel.covariance) < 2:
            actual, expected = np.broadcast_to(actual, d), np.square(kernel.width * (np.ones(d) if units is None else units))
        else:
            shape = kernel.unit_covariance
            actual, expected = as_full(self.covariances[:1], d)[0], kernel.width**2 * (np.eye(d) if shape is None else shape)
        return expected.shape == actual.shape and bool(np.abs(expected - actual).max() <= 1e-9 * np.abs(actual).max())

    @classmethod
    def from_sklearn(cls, fitted: Any) -> Mixture:
        """The mixture that a fitted `sklearn.mixture.GaussianMixture` (or `BayesianGaussianMixture`) holds."""
        if not hasattr(fitted, "covariance_type"):
            raise TypeError(f"fitted must be a GaussianMixture of scikit-learn, got {type(fitted).__name__}")
        if not hasattr(fitted, "covariances_"):
            raise ValueError(f"fitted must be fitted: call {type(fitted).__name__}.fit(X) first")
        covariances = np.asarray(fitted.covariances_, np.float64)
        if fitted.covariance_type == "tied":
            covariances = np.broadcast_to(covariances, (len(fitted.means_), *covariances.shape))
        return cls(fitted.weights_, fitted.means_, covariances)

    def to_sklearn(self) -> Any:
        """A fitted `sklearn.mixture.GaussianMixture` of these components; weights are scaled to sum to 1."""
        from sklearn.mixture import GaussianMixture  # importing it takes half a second, so only this method does

        self._require_density("a GaussianMixture")
        fitted = GaussianMixture(self.size, covariance_type=self.shape)
        fitted.weights_ = self.weights / self.mass
        fitted.means_ = np.array(self.means)
        fitted.covariances_ = np.array(self.covariances)
        if self.shape == "full":
            roots = inverses(np.linalg.cholesky(fitted.covariances_)).transpose(0, 2, 1)
            fitted.precisions_cholesky_ = roots
            fitted.precisions_ = roots @ roots.transpose(0, 2, 1)
        else:
            fitted.precisions_cholesky_ = 1 / np.sqrt(fitted.covariances_)
            fitted.precisions_ = 1 / fitted.covariances_
        fitted.n_features_in_ = self.dimension
        fitted.converged_, fitted.n_iter_, fitted.lower_bound_ = True, 0, np.nan
        return fitted

    # -- size ---------------------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The number of components."""
        return len(self.weights)

    @property
    def dimension(self) -> int:
        return int(self.means.shape[1])

    @property
    def mass(self) -> float:
        """The sum of the weights, which is the integral."""
        return float(self.weights.sum())

    @property
    def shape(self) -> str:
        """The shape of the covariances: "full", "diag" or "spherical"."""
        return SHAPES[self.covariances.ndim]

    @property
    def is_density(self) -> bool:
        """True if no weight is negative; the mass may differ from 1."""
        return bool(self.weights.min() >= 0)

    def _require_density(self, what: str) -> None:
        if not self.is_density:
            raise ValueError(f"{what} needs weights that are not negative, got one of {self.weights.min():.3g}")

    def mean(self) -> Array:
        """(d,) expectation, with weights scaled to sum to 1."""
        if not abs(self.mass) > 1e-12 * float(np.abs(self.weights).sum()):
            raise ValueError(f"weights must not sum to zero for this, got a sum of {self.mass:.3g}; split them by sign first")
        proportions = self.weights / self.mass
        return np.asarray(proportions @ (self.means - self.means[0]) + self.means[0])

    def covariance(self) -> Array:
        """(d, d) covariance of the whole mixture, with weights scaled to sum to 1."""
        differences = self.means - self.mean()
        proportions = self.weights / self.mass
        if self.covariances.ndim == 3:
            within = np.tensordot(proportions, self.covariances, 1)
        else:
            within = np.diag(proportions @ as_diagonal(self.covariances, self.dimension))
        return np.asarray((differences * proportions[:, None]).T @ differences + within)

    # -- evaluation ---------------------------------------------------------------------------------------------------------

    def __call__(self, Q: PointsLike) -> Array:
        """f at each row of Q."""
        out, unit = self._sums_at(Q, 0)
        return np.asarray(out[0] * exponential(unit))

    def gradient(self, Q: PointsLike) -> Array:
        """∇f at each row of Q, (q, d)."""
        out, unit = self._sums_at(Q, 1)
        return np.asarray(out[1:].T * exponential(unit))

    def _sums_at(self, Q: PointsLike, order: int) -> tuple[Array, float]:
        queries = _validate.points(Q, "Q", self.dimension)
        return component_sums(queries, self.weights, self.means, self.covariances, order)

    def log_density(self, Q: PointsLike) -> Array:
        """log f at each row of Q, without underflow; −inf if f is 0, NaN if signed weights make it negative."""
        return component_logs(_validate.points(Q, "Q", self.dimension), self.weights, self.means, self.covariances)

    def _in_boxes(self, low: Array, high: Array, tol: float) -> Array:
        if self.covariances.ndim == 3 and self.dimension > 1:
            shared = self.covariances[:1] if is_shared(self.covariances) else self.covariances
            sums, errors = oblique_box_sums(self.means, self.weights, low, high, shared, tol)
            warn_if_imprecise(errors, tol, self.weights)
            return sums
        variances = self.covariances.reshape(self.size, -1)  # one per component, or one per component and column
        return box_sums(self.means, self.weights, low, high, np.sqrt(variances))

    def _extent(self, reach: float) -> tuple[Array, Array]:
        rows = np.flatnonzero(self.weights)
        variances = (
            self.covariances.diagonal(axis1=1, axis2=2)
            if self.covariances.ndim == 3
            else as_diagonal(self.covariances, self.dimension)
        )
        margin = reach * np.sqrt(variances[rows])
        return (self.means[rows] - margin).min(axis=0), (self.means[rows] + margin).max(axis=0)

    # -- geometry -----------------------------------------------------------------------------------------------------------

    def components(self, full: bool = False) -> Components:
        """The components laid out for sums against a few others; ``full`` if those may have full covariances."""
        return Components(self.weights, self.means, self.covariances, full)

    def inner(self, other: Mixture) -> float:
        """⟨f, other⟩ in L2."""
        self._require_comparable(other)
        value, log_unit = self._inner(other)
        return value * exponential(log_unit)

    def _inner(self, other: Mixture) -> tuple[float, float]:
        """⟨f, other⟩ in some unit, and the logarithm of this unit."""
        larger, smaller = (self, other) if self.size >= other.size else (other, self)
        laid_out = larger.components(smaller.covariances.ndim == 3)
        return float(smaller.weights @ laid_out.totals(smaller.means, smaller.covariances)), laid_out.log_unit

    def norm(self) -> float:
        """‖f‖ in L2."""
        square, log_unit = self._inner(self)
        return float(np.sqrt(max(square, 0.0))) * exponential(log_unit / 2)  # finite where the square overflows

    def distance(self, other: Mixture) -> float:
        """‖f − other‖ in L2. Differences below about 1e-8 of the norms are lost in rounding."""
        self._require_comparable(other)
        if other is self:
            return 0.0
        # three separate products, so that each can use a shared covariance
        parts = (self._inner(self), self._inner(other), other._inner(other))
        unit = max(log_unit for _, log_unit in parts)
        self_product, cross_product, other_product = (value * np.exp(log_unit - unit) for value, log_unit in parts)
        return float(np.sqrt(max(self_product - 2 * cross_product + other_product, 0.0))) * exponential(unit / 2)

    @seeded
    def kl(self, other: Mixture, count: int = DRAWS, rng: SeedLike = None) -> DivergenceEstimate:
        """KL(f ‖ other) of the two as densities, estimated from ``count`` draws of f, with its standard error."""
        self._require_comparable(other)
        count = _validate.whole(count, "count", 2)
        other._require_density("a divergence")
        draws = self.sample(count, rng)
        log_ratios = (self.log_density(draws) - np.log(self.mass)) - (other.log_density(draws) - np.log(other.mass))
        return DivergenceEstimate(float(log_ratios.mean()), float(log_ratios.std(ddof=1) / np.sqrt(count)))

    @seeded
    def sample(self, count: int, rng: SeedLike = None) -> Array:
        """``count`` draws from f scaled to a density; the weights must not be negative."""
        count = _validate.whole(count, "count", 0)
        rng = _validate.generator(rng)
        self._require_density("sampling")
        rows = rng.choice(self.size, count, p=self.weights / self.mass)
        noise = rng.standard_normal((count, self.dimension))
        if self.covariances.ndim < 3:
            return np.asarray(self.means[rows] + noise * np.sqrt(as_diagonal(self.covariances, self.dimension)[rows]))
        roots = np.linalg.cholesky(self.covariances[:1] if is_shared(self.covariances) else self.covariances)
        if len(roots) == 1:
            return np.asarray(self.means[rows] + noise @ roots[0].T)
        draws = np.empty_like(noise)
        for a, b in row_blocks(draws, self.dimension**2):  # each draw needs a root, so they are gathered by blocks
            draws[a:b] = self.means[rows[a:b]] + np.einsum("nij,nj->ni", roots[rows[a:b]], noise[a:b])
        return draws

    # -- slices -------------------------------------------------------------------------------------------------------------

    def marginal(self, columns: Sequence[int]) -> Mixture:
        """The marginal mixture of these columns, in the order given; the others are integrated out."""
        kept = as_columns(columns, self.dimension)
        covariances = self.covariances
        if covariances.ndim == 2:
            covariances = covariances[:, kept]
        elif covariances.ndim == 3:
            covariances = covariances[:, kept][:, :, kept]
        return Mixture(self.weights, self.means[:, kept], covariances)

    def conditional(self, columns: Sequence[int], values: ArrayLike) -> Mixture:
        """The conditional density of the other columns, given the values of these; its weights sum to 1."""
        known, other, point = known_columns(columns, values, self.dimension)
        known_part = self.marginal(known)
        differences = point - known_part.means
        if self.covariances.ndim < 3:
            means = self.means[:, other]
            covariances = self.covariances if self.covariances.ndim == 1 else self.covariances[:, other]
            exponents = 0.5 * (differences**2 / as_diagonal(known_part.covariances, len(known))).sum(axis=1)
        else:
            cross = self.covariances[:, known][:, :, other]
            solved = np.linalg.solve(known_part.covariances, np.concatenate([cross, differences[:, :, None]], axis=2))
            slope, solved_differences = solved[:, :, :-1], solved[:, :, -1]
            means = self.means[:, other] + np.einsum("mbo,mb->mo", slope, differences)
            covariances = self.covariances[:, other][:, :, other] - cross.transpose(0, 2, 1) @ slope
            covariances = (covariances + covariances.transpose(0, 2, 1)) / 2
            exponents = 0.5 * np.einsum("mb,mb->m", differences, solved_differences)
        exponents -= log_peaks(known_part.covariances, len(known))
        return Mixture(weights_where(self.weights, exponents), means, covariances)

    # -- algebra ------------------------------------------------------------------------------------------------------------

    def _require_comparable(self, other: Mixture) -> None:
        if not isinstance(other, Mixture):
            raise TypeError(f"other must be a Mixture, got {type(other).__name__}; use Mixture.from_mean for a KernelMean")
        if other.dimension != self.dimension:
            raise ValueError(f"both mixtures must have the same dimension, got {self.dimension} and {other.dimension}")

    def __add__(self, other: Mixture) -> Mixture:
        if not isinstance(other, Mixture):
            return NotImplemented
        self._require_comparable(other)
        ndim = max(self.covariances.ndim, other.covariances.ndim)
        parts = [widened(mixture.covariances, ndim, self.dimension) for mixture in (self, other)]
        weights, means = np.concatenate([self.weights, other.weights]), np.concatenate([self.means, other.means])
        return Mixture(weights, means, np.concatenate(parts))

    # -- files --------------------------------------------------------------------------------------------------------------

    def save(self, path: _archive.Path_) -> None:
        """Write an .npz with a JSON header, atomically. Nothing in it is ever executed."""
        _archive.write(path, MIXTURE, vars(self))

    @classmethod
    def load(cls, path: _archive.Path_) -> Mixture:
        """Read a file of `save`, or the mixture in a larger file.

        Raises `ValueError` if the file is damaged, edited, newer or foreign.
        """
        return _archive.read(path, {MIXTURE: lambda values: cls(**values)})

    def __repr__(self) -> str:
        return f"Mixture({self.size:,} components in {self.dimension} dimensions, {self.shape} covariances)"


def as_mixture(value: Any) -> Mixture:
    """A mixture from an argument: a mixture, or a Gaussian kernel mean."""
    if not isinstance(value, Mixture | KernelMean):
        raise TypeError(
            f"mixture must be a Mixture or a Gaussian KernelMean, got {type(value).__name__}; use Mixture.from_sklearn for a "
            "GaussianMixture, KernelMean.from_samples(X, Gaussian(h)) for points, and the .mean of a Compression"
        )
    return value if isinstance(value, Mixture) else Mixture.from_mean(value)
