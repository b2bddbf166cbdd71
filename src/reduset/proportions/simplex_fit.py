"""The mixture of k means nearest to another mean, with intervals and a goodness-of-fit test (Cruz Cortés & Scott 2017, VI-B).

Minimise ‖f₀ − Σ πᵢ fᵢ‖² over the simplex, given the k × k products G of the means and b = ⟨fᵢ, f₀⟩. On the simplex only differences
of means matter, so the means are centred first. Their common part would cost digits. Without the bounds πᵢ ≥ 0 the solution is
linear in b, π̃ = c + D b with D the inverse of the centred G. This is the paper's linear system. If a mean is a mixture of the
others up to rounding, the difference has length zero and is omitted from D. No sample provides information about it, and equal
proportions are returned. Classes in such a difference are named `blurred` and have the interval [0, 1].

* **Interval.** The noise of π̃ is D times the noise of b. It comes from the rows of f₀, through their values v = (f₁(x), …, f_k(x)),
  and from the rows of the class means. To first order, cov π̃ = D cov(v) D / n₀ + Σ πᵢ² D covᵢ(v) D / nᵢ (the delta method). The
  interval is π̃ ± z·deviation, clipped to [0, 1] and extended to include π̂. The true value is in [0, 1], so clipping keeps it.
* **Fit.** Let Q be the projection orthogonal to all differences of means. If f₀ is a mixture, Q(f₀ − Σ πᵢ fᵢ) is pure noise. Its
  squared length has the mean Σ (πᵢ/n₀ + πᵢ²/nᵢ)·tr(Q Cᵢ), where Cᵢ is the covariance of class i. The distribution is nearly a
  scaled χ². Its degrees of freedom are the effective rank of the covariance, tr² over tr of the square (Satterthwaite). This gives
  the p-value. The root of the excess over the mean is divided by the distance of one class mean from all mixtures of the others
  (1/√Dᵢᵢ). The result estimates the proportion of foreign rows.

O(k³) per solution, and O(n₀ k²) for the interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.linalg import helmert, solve_triangular

from reduset._engine import cached_property
from reduset._types import Array
from reduset.weights import project_onto_simplex, weights_from

FLOOR = 1e-12  # relative to the sum of the squared norms of the means: shorter differences are rounding
TINY = 1e-200  # products of unit kernel functions below this are zero, because all rows are far from all atoms
BLURRED = 1e-6  # squared coefficient of a class in zero-length differences, above which its proportion is undetermined
SOLVERS = ("simplex", "projection")


@dataclass(frozen=True)
class SimplexFit:
    """Least squares on the simplex, for means with products G, (k, k)."""

    products: Array

    @cached_property
    def _centred(self) -> Array:
        """⟨fᵢ − f̄, fⱼ − f̄⟩, where f̄ is the unweighted average."""
        across = self.products.mean(axis=1)
        return self.products - across[:, None] - across + across.mean()

    @cached_property
    def _spectrum(self) -> tuple[Array, Array, float]:
        """Squared lengths (k − 1,) of orthogonal differences of means, their coefficients (k, k − 1), and the limit for zero."""
        across = helmert(len(self.products))  # an orthonormal basis of the vectors with sum 0, (k − 1, k)
        values, vectors = np.linalg.eigh(across @ self._centred @ across.T)
        return values, across.T @ vectors, FLOOR * max(float(np.trace(self.products)), TINY)

    @cached_property
    def _differences(self) -> Array:
        """Coefficients of the differences with positive length, (k, up to k − 1)."""
        values, vectors, floor = self._spectrum
        return np.asarray(vectors[:, values > floor])

    @cached_property
    def blurred(self) -> NDArray[np.bool_]:
        """(k,) True for classes that equal a mixture of others, so that their proportions cannot be determined."""
        values, vectors, floor = self._spectrum
        return np.asarray(np.square(vectors[:, values <= floor]).sum(axis=1) > BLURRED)

    @cached_property
    def inverse(self) -> Array:
        """D, (k, k), the derivative of π̃ with respect to b. Its rows sum to 0."""
        values, _, floor = self._spectrum
        return np.asarray((self._differences / values[values > floor]) @ self._differences.T)

    @cached_property
    def separation(self) -> float:
        """The average distance of a class mean from all mixtures of the others, over the classes that are not blurred."""
        squares = np.diagonal(self.inverse)
        if not squares.any():  # If all means are equal, their length is the scale.
            return float(np.sqrt(max(np.diagonal(self.products).mean(), TINY)))
        # If all classes are blurred, the classes that differ from some other class are used.
        known = squares[squares > BLURRED * squares.max()] if self.blurred.all() else squares[~self.blurred]
        return float(np.mean(1.0 / np.sqrt(known)))

    @cached_property
    def _factor(self) -> tuple[Array, float]:
        """The Cholesky factor of the centred products, and their scale. A constant, equal for all mixtures, makes it regular."""
        values, vectors, floor = self._spectrum
        values = np.maximum(values, floor)
        scale = float(values.sum()) / len(self.products)
        regular = (vectors * (values / scale)) @ vectors.T + 1.0
        regular[np.diag_indices(len(regular))] += FLOOR
        return np.asarray(np.linalg.cholesky(regular), np.float64), scale

    def _right_sides(self, b: Array) -> Array:
        """⟨fᵢ − f̄, f₀ − f̄⟩ for each row of b, (t, k), projected onto differences with positive length."""
        across = self.products.mean(axis=1)
        right = b - b.mean(axis=-1, keepdims=True) - across + across.mean()
        return np.asarray((right @ self._differences) @ self._differences.T)

    def unbounded(self, b: Array) -> Array:
        """π̃, the least-squares solution with sum 1, for each row of b (t, k)."""
        return 1.0 / len(self.products) + self._right_sides(b) @ self.inverse

    def solve(self, b: Array, solver: str = "simplex") -> Array:
        """π̂ for each row of b (t, k): the minimum on the simplex, or π̃ projected onto it."""
        solutions = self.unbounded(b)
        outside = np.flatnonzero((solutions < 0).any(axis=1))
        for t, right in zip(outside, self._right_sides(b[outside]), strict=True):
            if solver == "projection":
                solutions[t] = project_onto_simplex(solutions[t])
            else:
                L, scale = self._factor
                y = solve_triangular(L, right / scale + 1.0, lower=True, check_finite=False)
                solutions[t] = weights_from(L, y, "simplex", 1.0)
        return solutions

    def square(self, pi: Array, b: Array, energy: float) -> float:
        """‖f₀ − Σ πᵢ fᵢ‖² with energy = ‖f₀‖²."""
        return max(float(energy - 2 * b @ pi + pi @ self.products @ pi), 0.0)


@dataclass(frozen=True)
class ClassScatter:
    """The scatter of the rows of each class around its mean. Q projects orthogonally to all differences of means."""

    sizes: Array  # (k,) effective numbers of rows
    scatter: Array  # (k, k, k) covariance of the values (f₁(x), …, f_k(x)) over the rows x of each class
    across: Array  # (k,) tr(Q Cᵢ) = E‖Q(φ(x) − fᵢ)‖² over the rows of each class
    square: float  # tr (Q C̄)², where C̄ is the average of the class covariances


def proportions(means: SimplexFit, within: ClassScatter, values: Array, solver: str, confidence: float) -> tuple[Array, Array]:
    """π̂ (k,) and its interval (k, 2) from the values (f₁(x), …, f_k(x)) of a sample's rows, (n₀, k)."""
    count, k = values.shape
    b = values.mean(axis=0)
    centre, pi = means.unbounded(b[None])[0], means.solve(b[None], solver)[0]
    D = means.inverse
    sample = np.cov(values.T, ddof=1).reshape(k, k) if count > 1 else np.einsum("i,ijl->jl", pi, within.scatter)
    spread = sample / count + np.einsum("i,ijl->jl", pi**2 / within.sizes, within.scatter)
    deviation = np.sqrt(np.maximum(np.einsum("ij,jl,il->i", D, spread, D), 0.0))
    half_width = special.ndtri(0.5 + confidence / 2) * deviation
    low, high = np.clip(centre - half_width, 0.0, 1.0), np.clip(centre + half_width, 0.0, 1.0)
    low, high = np.where(means.blurred, 0.0, low), np.where(means.blurred, 1.0, high)
    return pi, np.stack([np.minimum(low, pi), np.maximum(high, pi)], axis=1)


class GoodnessOfFit(NamedTuple):
    """The distance of f₀ from the mixture, compared with its expected value from sampling."""

    residual: float
    expected: float
    p_value: float
    foreign: float


def goodness_of_fit(means: SimplexFit, within: ClassScatter, values: Array, energy: float, pi: Array) -> GoodnessOfFit:
    """Test whether a sample is a mixture, from the values of its rows (n₀, k), ‖f₀‖² and its proportions."""
    b = values.mean(axis=0)
    across = np.maximum(within.across, FLOOR)
    expected = float((pi / len(values) + pi**2 / within.sizes) @ across)
    max_rank = max(float(within.sizes.sum()), 1.0)  # n rows span at most n directions
    rank = min(max(float(across.mean()) ** 2 / max(within.square, TINY), 1.0), max_rank)
    # Proportions may be negative here, because the distribution of this distance is known.
    observed = means.square(means.unbounded(b[None])[0], b, energy)
    p_value = float(special.chdtrc(rank, rank * observed / expected))
    foreign = min(float(np.sqrt(max(observed - expected, 0.0))) / means.separation, 1.0)
    return GoodnessOfFit(float(np.sqrt(means.square(pi, b, energy))), float(np.sqrt(expected)), p_value, foreign)
