"""Which mixture of k means is nearest to another mean, how sure that is, and whether any is near (Cruz Cortés & Scott 2017, VI-B).

Minimise ‖f₀ − Σ πᵢ fᵢ‖² over the simplex, from the k × k products G of the means and b = ⟨fᵢ, f₀⟩ alone. On the simplex only
differences of means count, so they are centred first: what the means have in common would cost digits. Without the bounds πᵢ ≥ 0
the answer is linear in b, π̃ = c + D b with D the inverse of the centred G; that is the paper's linear system. Where a mean is a
mixture of the others to rounding, the difference has no length and is left out of D: no sample says anything about it, equal shares
are as good as any, and the classes that it is between are named `blurred`, with the interval [0, 1].

* **Interval.** The noise of π̃ is D times that of b: of the rows of f₀, seen in their values v = (f₁(x), …, f_k(x)), and of those of
  the class means, to first order: cov π̃ = D cov(v) D / n₀ + Σ πᵢ² D covᵢ(v) D / nᵢ (the delta method). The interval is
  π̃ ± z·deviation, cut to [0, 1], and never without π̂. The truth is not outside [0, 1], so cutting cannot lose it.
* **Fit.** Q(f₀ − Σ πᵢ fᵢ), Q orthogonal to all differences of means, is pure noise where f₀ is a mixture: its squared length has
  the mean Σ (πᵢ/n₀ + πᵢ²/nᵢ)·tr(Q Cᵢ), Cᵢ the covariance of class i, and nearly the law of a scaled χ² with the effective rank of
  the covariance, tr² over tr of the square, as degrees of freedom (Satterthwaite). That is the p-value. What is beyond the mean, as
  a share of the distance of one class mean from all mixtures of the others (1/√Dᵢᵢ), is about the share of rows of another kind.

O(k³) a solution, and O(n₀ k²) for the interval.
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

FLOOR = 1e-12  # of the means' squared norms together: a difference as short as that is rounding
NOTHING = 1e-200  # products of unit bumps this small are none: the atoms see no row at all
BLURRED = 1e-6  # the share of a class in differences without length from which on its own proportion is open
SOLVERS = ("simplex", "projection")


@dataclass(frozen=True)
class SimplexFit:
    """Least squares on the simplex: means that are mixed, by their products G, (k, k)."""

    products: Array

    @cached_property
    def _centred(self) -> Array:
        """⟨fᵢ − f̄, fⱼ − f̄⟩, f̄ the plain average."""
        across = self.products.mean(axis=1)
        return self.products - across[:, None] - across + across.mean()

    @cached_property
    def _spectrum(self) -> tuple[Array, Array, float]:
        """Squared lengths (k − 1,) of orthogonal differences of means, their coefficients (k, k − 1), and what counts as none."""
        across = helmert(len(self.products))  # an orthonormal basis of what sums to 0, (k − 1, k)
        values, vectors = np.linalg.eigh(across @ self._centred @ across.T)
        return values, across.T @ vectors, FLOOR * max(float(np.trace(self.products)), NOTHING)

    @cached_property
    def _told(self) -> Array:
        """The differences that have a length, (k, up to k − 1)."""
        values, vectors, floor = self._spectrum
        return np.asarray(vectors[:, values > floor])

    @cached_property
    def blurred(self) -> NDArray[np.bool_]:
        """(k,) the classes that some mixture of others equals, so that their own proportions cannot be told."""
        values, vectors, floor = self._spectrum
        return np.asarray(np.square(vectors[:, values <= floor]).sum(axis=1) > BLURRED)

    @cached_property
    def inverse(self) -> Array:
        """D: what b moves π̃ by, (k, k); its rows sum to 0."""
        values, _, floor = self._spectrum
        return np.asarray((self._told / values[values > floor]) @ self._told.T)

    @cached_property
    def apart(self) -> float:
        """How far a class mean is from all mixtures of the others, on average over the classes that can be told."""
        squares = np.diagonal(self.inverse)
        if not squares.any():  # all means are one: what is apart from it is so by about its length
            return float(np.sqrt(max(np.diagonal(self.products).mean(), NOTHING)))
        # where every class has its like, those that some other class differs from
        known = squares[squares > BLURRED * squares.max()] if self.blurred.all() else squares[~self.blurred]
        return float(np.mean(1.0 / np.sqrt(known)))

    @cached_property
    def _factor(self) -> tuple[Array, float]:
        """The Cholesky factor of the centred products, made regular by a constant that no mixture notices; and the scale."""
        values, vectors, floor = self._spectrum
        values = np.maximum(values, floor)
        scale = float(values.sum()) / len(self.products)
        regular = (vectors * (values / scale)) @ vectors.T + 1.0
        regular[np.diag_indices(len(regular))] += FLOOR
        return np.asarray(np.linalg.cholesky(regular), np.float64), scale

    def _right_sides(self, b: Array) -> Array:
        """⟨fᵢ − f̄, f₀ − f̄⟩ for each row of b, (t, k), as far as differences have a length."""
        across = self.products.mean(axis=1)
        right = b - b.mean(axis=-1, keepdims=True) - across + across.mean()
        return np.asarray((right @ self._told) @ self._told.T)

    def unbounded(self, b: Array) -> Array:
        """π̃, the best that sums to 1, for each row of b (t, k)."""
        return 1.0 / len(self.products) + self._right_sides(b) @ self.inverse

    def solve(self, b: Array, solver: str = "simplex") -> Array:
        """π̂ for each row of b (t, k): the best on the simplex, or π̃ projected onto it."""
        found = self.unbounded(b)
        outside = np.flatnonzero((found < 0).any(axis=1))
        for t, right in zip(outside, self._right_sides(b[outside]), strict=True):
            if solver == "projection":
                found[t] = project_onto_simplex(found[t])
            else:
                L, scale = self._factor
                y = solve_triangular(L, right / scale + 1.0, lower=True, check_finite=False)
                found[t] = weights_from(L, y, "simplex", 1.0)
        return found

    def square(self, pi: Array, b: Array, energy: float) -> float:
        """‖f₀ − Σ πᵢ fᵢ‖², energy = ‖f₀‖²."""
        return max(float(energy - 2 * b @ pi + pi @ self.products @ pi), 0.0)


@dataclass(frozen=True)
class ClassScatter:
    """The scatter within classes: how the rows of each vary around its mean; Q is orthogonal to all differences of means."""

    sizes: Array  # (k,) effective numbers of rows
    scatter: Array  # (k, k, k) covariance of the values (f₁(x), …, f_k(x)) over the rows x of each class
    across: Array  # (k,) tr(Q Cᵢ) = E‖Q(φ(x) − fᵢ)‖² over the rows of each class
    square: float  # tr (Q C̄)², C̄ the average of the classes' covariances


def proportions(means: SimplexFit, within: ClassScatter, values: Array, solver: str, confidence: float) -> tuple[Array, Array]:
    """π̂ (k,) and its interval (k, 2) from the values (f₁(x), …, f_k(x)) of a sample's rows, (n₀, k)."""
    count, k = values.shape
    b = values.mean(axis=0)
    loose, pi = means.unbounded(b[None])[0], means.solve(b[None], solver)[0]
    D = means.inverse
    own = np.cov(values.T, ddof=1).reshape(k, k) if count > 1 else np.einsum("i,ijl->jl", pi, within.scatter)
    spread = own / count + np.einsum("i,ijl->jl", pi**2 / within.sizes, within.scatter)
    deviation = np.sqrt(np.maximum(np.einsum("ij,jl,il->i", D, spread, D), 0.0))
    reach = special.ndtri(0.5 + confidence / 2) * deviation
    low, high = np.clip(loose - reach, 0.0, 1.0), np.clip(loose + reach, 0.0, 1.0)
    low, high = np.where(means.blurred, 0.0, low), np.where(means.blurred, 1.0, high)
    return pi, np.stack([np.minimum(low, pi), np.maximum(high, pi)], axis=1)


class GoodnessOfFit(NamedTuple):
    """How far f₀ is from the mixture, beside what sampling explains."""

    residual: float
    expected: float
    p_value: float
    foreign: float


def goodness_of_fit(means: SimplexFit, within: ClassScatter, values: Array, energy: float, pi: Array) -> GoodnessOfFit:
    """Whether a sample is a mixture at all, from the values of its rows (n₀, k), ‖f₀‖², and its proportions."""
    b = values.mean(axis=0)
    across = np.maximum(within.across, FLOOR)
    expected = float((pi / len(values) + pi**2 / within.sizes) @ across)
    most = max(float(within.sizes.sum()), 1.0)  # rows span no more directions than they are
    rank = min(max(float(across.mean()) ** 2 / max(within.square, NOTHING), 1.0), most)
    beyond = means.square(means.unbounded(b[None])[0], b, energy)  # from mixtures with negative shares too: its law is known
    p_value = float(special.chdtrc(rank, rank * beyond / expected))
    foreign = min(float(np.sqrt(max(beyond - expected, 0.0))) / means.apart, 1.0)
    return GoodnessOfFit(float(np.sqrt(means.square(pi, b, energy))), float(np.sqrt(expected)), p_value, foreign)
