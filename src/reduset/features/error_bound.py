"""A probability bound on the error of the kernel of `DensityFeatures` (after Sutherland, Oliva, Póczos & Schneider 2016, Theory).

Let p and q be two densities of a class. The kernel is K = exp(−d²(p, q)/(2σ²)). Its estimate z(Â(p̂))·z(Â(q̂)) uses n points of
each density. The steps from the kernel to the estimate are

    d²(p, q) → Σ of M frequencies → sums over nodes → projection on the basis → density estimates for p and q → random features

The error of each step is bounded separately, in units of the kernel. |e^(−a/2σ²) − e^(−b/2σ²)| is at most |a − b|/(2σ²), and at
most |√a − √b|/(σ√e). The first three steps concern the densities, which are assumed to be smooth. The density estimates need no
such assumption, while the paper assumes that these are smooth. docs/mathematics.md has the derivation.

Densities of a class have lower ≤ p ≤ upper and |∇p| ≤ gradient. Their second derivatives are at most curvature in every direction.
Let s = ½ + iλ, with weights w of the frequencies λ. Let S = Σ w |s|² and S₄ = Σ w |s|⁴. The map ψ(p) = (√w p^s) satisfies

    |∂ψ(p)|² = S |∂p|²/p,   |∂²ψ(p)| ≤ √S |∂²p|/√p + √S₄ |∂p|²/p^(3/2),   |ψ(a) − ψ(b)|² ≤ 4S (√a − √b)²

Quadrature errors of a rule on [0, 1] are integrals of its Peano kernels against derivatives. On a tensor grid, the errors of the
axes add. The cost is O(G·N) for G nodes along an axis and N points of the integrals over the kernel's centre. Sums over the grid
cost O(Gᵈ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import e, inf, log, pi, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import zeta

from reduset import _validate
from reduset._types import Array
from reduset.features.homogeneous_distances import TOTALS, DistanceFrequencies, correlation, kappa
from reduset.features.projection import VALUES, Grid, axis_functions

if TYPE_CHECKING:
    from reduset.features.density_features import DensityFeatures

RATIO_STEPS, MAX_LOG_RATIO = 20_000, 40.0  # Errors at larger ratios are at most 4Z e^(−20).
CENTRES_PER_BANDWIDTH, MIN_CENTRES = 8.0, 256
FLOOR_FRACTION = 0.1  # Fraction of the probability of the density term that bounds the smallest ratio p̂/p.
DISTANCE_STEPS, MAX_DISTANCE = 400, 12.0  # Kernel widths. Covariances of orthogonal features are below 1e-15 at larger distances.

NAMES = {
    "density": "density estimates",
    "quadrature": "quadrature",
    "truncation": "basis truncation",
    "frequencies": "frequencies",
    "random_features": "random features",
}


@dataclass(frozen=True)
class ErrorBound:
    """A bound on the error |K(p, q) − z(p̂)·z(q̂)| of the kernel, as a sum over the approximations.

    The error is at most ``total`` with probability ``confidence`` or more. The probability is over the points of the two bags and
    the random features. Kernel values lie between 0 and 1, so a total of 1 or more carries no information.

    Attributes
    ----------
    density : float
        Error of the density estimates. It includes the bias and the sampling error of both bags.
    quadrature : float
        Error of the quadrature. Sums over nodes replace integrals.
    truncation : float
        Error of the omitted basis functions.
    frequencies : float
        Error of the frequencies. The M frequencies replace the measure μ.
    random_features : float
        Error of the random features. There are ``n_components`` random Fourier features.
    confidence : float
        Probability of the bound.
    """

    density: float
    quadrature: float
    truncation: float
    frequencies: float
    random_features: float
    confidence: float

    @property
    def total(self) -> float:
        """The sum of the five terms."""
        return self.density + self.quadrature + self.truncation + self.frequencies + self.random_features

    def __str__(self) -> str:
        terms = sorted(NAMES, key=lambda name: -getattr(self, name))
        parts = [f"  {NAMES[name]:<18} {getattr(self, name):.2g}" for name in terms]
        head = f"ErrorBound: kernel values are within {self.total:.2g} of the truth with probability {self.confidence:g}"
        if self.total >= 1:
            head += " (no information: kernel values lie between 0 and 1)"
        return "\n".join([head, *parts])


@dataclass(frozen=True)
class DensityClass:
    """The class of densities of a bound: limits of their values and derivatives, in units of the cube."""

    lower: float
    upper: float
    gradient: float
    curvature: float

    def largest_square(self, distance: str) -> float:
        """The largest d²(p, q). κ is convex and homogeneous, so the maximum is at the values lower and upper."""
        corner = float(kappa(np.array(self.upper), np.array(self.lower), distance))
        by_ratio = 2 * corner / (self.upper + self.lower)
        by_mass = 2 * corner * (1 - self.lower) / (self.upper - self.lower) if self.upper > self.lower else 0.0
        return min(by_ratio, by_mass)


@dataclass(frozen=True)
class Slopes:
    """Bounds on f = ψ(p) − ψ(q) and its derivatives along an axis, for p and q of a class."""

    value: float
    first: float
    second: float

    @classmethod
    def of(cls, densities: DensityClass, frequencies: DistanceFrequencies) -> Slopes:
        low, first, second = densities.lower, densities.gradient, densities.curvature
        square = slope_total(frequencies)
        fourth = float(frequencies.weights @ (0.25 + frequencies.values**2) ** 2)
        value = 2 * sqrt(square) * (sqrt(densities.upper) - sqrt(low))
        bend = sqrt(square / low) * second + sqrt(fourth) * first**2 / low**1.5
        return cls(value, 2 * sqrt(square / low) * first, 2 * bend)


def slope_total(frequencies: DistanceFrequencies) -> float:
    """S = Σ w (¼ + λ²)."""
    return float(frequencies.weights @ (0.25 + frequencies.values**2))


def frequency_error(distance: str, frequencies: DistanceFrequencies, largest: float) -> float:
    """The largest error of κ from M frequencies, relative to the larger value, for log ratios up to ``largest``.

    The error is 2 |Φ_M(t) − Φ(t)| e^(−t/2). It is evaluated on a grid of t. A bound on its second derivative covers the points
    between the grid points.
    """
    if distance == "hellinger":
        return 0.0
    end = min(largest, MAX_LOG_RATIO)
    t = np.linspace(0.0, end, RATIO_STEPS + 1)
    approximation = np.zeros(len(t))
    for value, weight in zip(frequencies.values, frequencies.weights, strict=True):
        approximation += weight * np.cos(value * t)
    error = 2 * np.abs(approximation - correlation(t, distance)) * np.exp(-t / 2)
    first, second = (float(frequencies.weights @ frequencies.values**power) for power in (1, 2))
    bend = 2 * (second + 0.25 + first + 0.5 + 0.5 * TOTALS[distance])  # |Φ'| ≤ ½ and |Φ''| ≤ ¼ for every distance.
    tail = 4 * TOTALS[distance] * np.exp(-end / 2) if largest > end else 0.0
    return max(float(error.max()) + bend * (end / RATIO_STEPS) ** 2 / 8, float(tail))


@dataclass(frozen=True)
class PeanoConstants:
    """Peano constants of a quadrature rule on [0, 1] that is exact for straight lines.

    Attributes
    ----------
    discrepancy : float
        The value sup |K₁|. It is the largest error for ∫|g'| ≤ 1.
    first : float
        The value ∫|K₁|. It is the largest error for |g'| ≤ 1.
    second : float
        An upper bound of ∫|K₂|. The error for |g''| ≤ 1 is at most this.
    """

    discrepancy: float
    first: float
    second: float

    @classmethod
    def of(cls, nodes: Array, weights: Array) -> PeanoConstants:
        """The constants of a rule. K₁(t) = Σ_{x ≤ t} w − t is linear between nodes, and K₂ is its integral.

        ∫K₂² is exact. Cauchy–Schwarz bounds ∫|K₂| by it.
        """
        ends = np.concatenate([[0.0], nodes, [1.0]])
        left, right = ends[:-1], ends[1:]
        level = np.append(0.0, np.cumsum(weights))
        root = np.clip(level, left, right)
        first = float(np.sum((level - left) * (root - left) - (root - left) ** 2 / 2))
        first += float(np.sum((right - root) * ((right + root) / 2 - level)))
        x, w = np.polynomial.legendre.leggauss(3)
        inner = left + np.multiply.outer((x + 1) / 2, right - left)
        beyond = np.maximum(nodes[None, None, :] - inner[:, :, None], 0.0) @ weights
        squares = np.einsum("i,ij->j", w / 2, ((1 - inner) ** 2 / 2 - beyond) ** 2) * (right - left)
        second = float(np.sum(np.sqrt(squares * (right - left))))
        return cls(float(np.max(np.maximum(np.abs(level - left), np.abs(level - right)))), first, second)

    def error(self, first: float, second: float) -> float:
        """The largest error for |g'| ≤ first and |g''| ≤ second."""
        return min(self.first * first, self.second * second if second < inf else inf)


def projection_tail(slopes: Slopes, n_basis: int, kind: str, discrepancy: float) -> float:
    """The largest Σ w |r|² at the nodes of an axis. Here r is the part of f outside the span of the basis.

    ∫|r|² and ∫|r'|² follow from the coefficients of f'. The sum over nodes differs from ∫|r|² by at most 2·discrepancy·‖r‖·‖r'‖.
    """
    if kind == VALUES:
        return 0.0
    if kind == "cosine":
        norm, slope = slopes.first / (pi * n_basis), slopes.first
        if slopes.second < inf:
            size = sqrt(2) * (2 * slopes.first + slopes.second)
            norm = min(norm, size * sqrt(float(zeta(4, n_basis))) / pi**2)
            slope = min(slope, size * sqrt(float(zeta(2, n_basis))) / pi)
    else:
        order = 2 * pi * ((n_basis + 1) // 2)
        norm = min(slopes.first / order, slopes.second / order**2)
        slope = min(slopes.first, slopes.second / order)
    return norm**2 + 2 * discrepancy * norm * slope


def gram_range(nodes: Grid) -> tuple[float, float]:
    """The extreme eigenvalues of the Gram matrix of the basis on the nodes. Both are 1 if its integrals are exact."""
    if nodes.kind == VALUES:
        return 1.0, 1.0
    u, w = nodes.axis
    functions = axis_functions(u, nodes.n_basis, nodes.kind)
    values = np.linalg.eigvalsh((functions * w[:, None]).T @ functions)
    low, high = max(float(values[0]), 0.0), float(values[-1])
    return low**nodes.dimension, high**nodes.dimension


class KernelMoments:
    """Integrals of the density estimate's kernel w(u, x), and of its square, over the centre x ∈ [0, 1]ᵈ at the nodes u."""

    def __init__(self, nodes: Grid, bandwidth: Array) -> None:
        u, weights = nodes.axis
        self.weights = nodes.roots**2
        axes = []
        for width in bandwidth:
            count = max(MIN_CENTRES, int(np.ceil(CENTRES_PER_BANDWIDTH / width)))
            x, dx = np.polynomial.legendre.leggauss(count)
            x, dx = np.concatenate([[0.0], (x + 1) / 2, [1.0]]), np.concatenate([[0.0], dx / 2, [0.0]])
            values = np.exp(-0.5 * ((u[:, None] - x) / width) ** 2)
            values /= weights @ values
            differences = x - u[:, None]
            tables = [[(factor * differences**power) @ dx for power in (0, 1, 2)] for factor in (values, values**2)]
            axes.append((tables, float((weights @ values**2).max())))
        self.mean = self._products([tables[0] for tables, _ in axes])
        self.square = self._products([tables[1] for tables, _ in axes])
        self.peak = float(np.prod([top for _, top in axes]))  # The largest Σ over nodes of weight · w(u, x)².

    @staticmethod
    def _products(axes: list[list[Array]]) -> tuple[Array, Array, Array]:
        """∫w, |∫(x − u) w| and ∫|x − u|² w over the grid, from the tables of its axes."""

        def outer(powers: list[int]) -> Array:
            out = np.ones(1)
            for table, power in zip(axes, powers, strict=True):
                out = np.multiply.outer(out, table[power]).ravel()
            return out

        d = len(axes)
        single = np.eye(d, dtype=int)
        first = np.sqrt(sum((outer(list(row)) ** 2 for row in single), np.zeros(1)))
        return outer([0] * d), first, sum((outer(list(2 * row)) for row in single), np.zeros(1))

    @staticmethod
    def change(moments: tuple[Array, Array, Array], densities: DensityClass) -> Array:
        """The largest |∫ (p(x) − p(u)) w(u, x) dx| at each node."""
        zero, first, second = moments
        out = densities.gradient * np.sqrt(zero * second)
        return np.minimum(out, densities.gradient * first + densities.curvature / 2 * second) if densities.curvature < inf else out


def density_distance(
    moments: KernelMoments, densities: DensityClass, n: int, probability: float, mass: float
) -> tuple[float, float]:
    """Bounds on √Σ (p̂ − p)²/p over the nodes, and on the smallest p̂/p at a node.

    The probability that either bound fails is at most ``probability``. The bias follows from the smoothness of p. Bousquet's
    inequality for norms of means of n independent elements bounds the deviation from the mean. The variance in any direction is at
    most sup Ep̂/p. Bernstein's inequality at every node bounds the smallest ratio.
    """
    low, weights = densities.lower, moments.weights
    zero, square = moments.mean[0], moments.square[0]
    shift = moments.change(moments.mean, densities)
    bias = sqrt(float(weights @ np.maximum(*((p * np.abs(zero - 1) + shift) ** 2 / p for p in (low, densities.upper)))))
    second_moments = np.minimum(square + moments.change(moments.square, densities) / low, square * densities.upper / low)
    spread = sqrt(max(float(weights @ second_moments) - 1 / mass, 0.0) / n)
    weak_variance = float(np.max(zero + shift / low))
    largest = sqrt(moments.peak / low) + sqrt(weak_variance)
    x = log(1 / ((1 - FLOOR_FRACTION) * probability))
    deviation = spread + sqrt(2 * x * (weak_variance + 2 * largest * spread) / n) + largest * x / (3 * n)
    x = log(len(weights) / (FLOOR_FRACTION * probability))
    floor = float(np.min(zero - shift / low - np.sqrt(2 * x * second_moments / (low * n))))
    return bias + deviation, max(floor, 0.0)


def random_feature_error(length: int, count: int, orthogonal: bool, max_distance: float, probability: float) -> float:
    """A bound on the error of ``count`` random Fourier features of a Gaussian up to a distance.

    The error exceeds the bound with at most this probability. It is the minimum of Hoeffding's, Bernstein's and Chebyshev's bounds
    over independent blocks of features. A block is a single feature, or ``length`` orthogonal features. The variance is exact, for
    vectors of m numbers and a distance of r kernel widths. A feature has the variance ½(1 − e^(−r²))². Two orthogonal features have
    the covariance ₁F₁(m; m/2; −r²/2) − e^(−r²).
    """
    block = min(length, count) if orthogonal else 1
    sizes = np.array([block] * (count // block) + [count % block])
    r = np.linspace(0.0, min(max_distance, MAX_DISTANCE), DISTANCE_STEPS + 1)
    single = 0.5 * (1 - np.exp(-(r**2))) ** 2
    single = np.append(single[1:], 0.5 if max_distance > MAX_DISTANCE else single[-1])
    joint = orthogonal_covariance(length, r) if block > 1 else np.zeros(len(r))
    joint = np.maximum(joint, np.append(joint[1:], joint[-1]))
    variance = float(np.max(count * single + float(np.sum(sizes * (sizes - 1))) * joint)) / count**2
    x = log(2 / probability)
    hoeffding = sqrt(2 * x * float(np.sum(sizes**2))) / count
    bernstein = sqrt(2 * x * variance) + 2 * x * block / (3 * count)
    return min(hoeffding, bernstein, sqrt(variance / probability))


def orthogonal_covariance(length: int, r: Array) -> Array:
    """The covariance of cos(ω·a) and cos(ω'·a) for orthogonal ω and ω' with lengths as of normal vectors, and |a| = r.

    It is e^(−r²/2) ₁F₁(−m/2; m/2; r²/2) − e^(−r²).
    """
    x = r**2 / 2
    total, term, k = np.ones_like(x), np.ones_like(x), 0
    while np.max(np.abs(term)) > 1e-18 and (k < length or k < 4 * np.max(x) + 40):
        term = term * (-length / 2 + k) / (length / 2 + k) * x / (k + 1)
        total = total + term
        k += 1
    return np.asarray(np.exp(-x) * total - np.exp(-2 * x))


def error_bound(features: DensityFeatures, n_samples: Any, densities: DensityClass, confidence: float) -> ErrorBound:
    """The bound for fitted features with one density on a grid, and bags of ``n_samples`` points."""
    counts = tuple(n_samples) if isinstance(n_samples, Sequence) else (n_samples, n_samples)
    if len(counts) != 2:
        raise ValueError(f"n_samples must be one or two numbers of points, got {n_samples!r}; use (500, 800)")
    counts = tuple(_validate.whole(n, "n_samples", 2) for n in counts)
    nodes = _grid(features)
    distance, frequencies, width = features.distance, features.frequencies_, features.kernel_width_
    if frequencies is None:
        raise ValueError(
            "distance must be 'js', 'hellinger', 'tv' or 'chi2' for an error bound, got 'l2', which is not homogeneous"
        )
    d, rule = nodes.dimension, PeanoConstants.of(*nodes.axis)
    slopes = Slopes.of(densities, frequencies)
    low, high = gram_range(nodes)

    def kernel_change(change: float) -> float:
        """The change of the kernel for a change of the squared distance."""
        return min(change / (2 * width**2), sqrt(change) / (width * sqrt(e)), 1.0)

    log_ratio = log(densities.upper / densities.lower)  # the largest log p(x)/q(x)
    largest_union = min(2.0 - densities.lower, densities.upper)  # the largest ∫ max(p, q) = 2 − ∫ min(p, q)
    by_frequencies = frequency_error(distance, frequencies, log_ratio) * largest_union
    bend = 2 * slopes.first**2 + 2 * slopes.value * slopes.second if slopes.second < inf else inf
    by_nodes = d * rule.error(2 * slopes.value * slopes.first, bend)
    largest = densities.largest_square(distance) + by_frequencies + by_nodes
    by_nodes += max(high - 1, 1 - low, 0.0) * largest
    by_basis = d * projection_tail(slopes, nodes.n_basis, nodes.kind, rule.discrepancy)

    mass = 1 + d * rule.error(densities.gradient, densities.curvature)
    moments = KernelMoments(nodes, features.views_[0].bandwidth)
    probability = (1 - confidence) / 2
    density_change = 0.0
    for n in counts:
        root, floor = density_distance(moments, densities, n, probability / 2, mass)
        square = 4 * slope_total(frequencies) * (root / (1 + sqrt(floor))) ** 2
        if distance == "tv":  # κ_M is at most |a − b| plus its own error.
            square = min(square, root * sqrt(mass) + frequency_error(distance, frequencies, inf) * (1 + mass))
        density_change += sqrt(high * square)
    max_distance = sqrt(high * largest) + density_change
    return ErrorBound(
        density=min(density_change / (width * sqrt(e)), kernel_change(density_change * (2 * max_distance - density_change)), 1.0),
        quadrature=kernel_change(by_nodes),
        truncation=kernel_change(by_basis),
        frequencies=kernel_change(by_frequencies),
        random_features=random_feature_error(
            features._length, features.n_components // 2, features.orthogonal, max_distance / width, probability
        ),
        confidence=confidence,
    )


def _grid(features: DensityFeatures) -> Grid:
    """The grid of the fitted features. Other kinds of features raise `ValueError`, because they have no bound."""
    if features.output == "distance":
        raise ValueError("output must be 'features' for an error bound, got 'distance', which has no kernel width")
    if len(features.views_) > 1:
        raise ValueError("marginals must be False for an error bound, got True; fit each column separately")
    nodes = features.views_[0].nodes
    if not isinstance(nodes, Grid):
        raise ValueError(
            f"integration must be 'grid' for an error bound, got {features.integration!r} with {nodes.dimension} columns; use at "
            "most three columns and integration='grid'"
        )
    return nodes
