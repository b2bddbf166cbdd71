"""The parts of the error bound of `DensityFeatures` (after Sutherland, Oliva, Póczos & Schneider 2016, Theory).

Densities p of a class have lower ≤ p ≤ upper, |∇p| ≤ gradient and second derivatives of at most curvature in every direction. With
s = ½ + iλ, weights w of the frequencies λ, S = Σ w |s|² and S₄ = Σ w |s|⁴, the map ψ(p) = (√w p^s) satisfies

    |∂ψ(p)|² = S |∂p|²/p,   |∂²ψ(p)| ≤ √S |∂²p|/√p + √S₄ |∂p|²/p^(3/2),   |ψ(a) − ψ(b)|² ≤ 4S (√a − √b)²

Quadrature errors of a rule on [0, 1] are integrals of its Peano kernels against derivatives; on a tensor grid they add over axes.
Cost: O(G·N) for G nodes along an axis and N points of the integrals over the kernel's centre, O(Gᵈ) for sums over the grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, pi, sqrt

import numpy as np
from scipy.special import zeta

from reduset._types import Array
from reduset.features.homogeneous_distances import TOTALS, DistanceFrequencies, correlation, kappa
from reduset.features.projection import VALUES, Grid, along_axis

RATIO_STEPS = 20_000
FARTHEST_RATIO = 40.0  # of log ratios; errors beyond are at most 4Z e^(−20)
CENTRES_A_BANDWIDTH = 8.0
FEWEST_CENTRES = 256
FLOOR_PART = 0.1  # of the probability of the density term, for the smallest ratio p̂/p
DISTANCE_STEPS = 400
FARTHEST_DISTANCE = 12.0  # in kernel widths: covariances of orthogonal features are below 1e-15 there


@dataclass(frozen=True)
class DensityClass:
    """The densities that a bound covers, in units of the cube: bounds on their values and on their derivatives."""

    lower: float
    upper: float
    gradient: float
    curvature: float

    @property
    def log_ratio(self) -> float:
        """The largest log p(x)/q(x)."""
        return log(self.upper / self.lower)

    @property
    def union_mass(self) -> float:
        """The largest ∫ max(p, q): 2 − ∫ min(p, q)."""
        return min(2.0 - self.lower, self.upper)

    def largest_square(self, distance: str) -> float:
        """The largest d²(p, q): κ is convex and homogeneous, so it is largest where values are lower and upper."""
        corner = float(kappa(np.array(self.upper), np.array(self.lower), distance))
        by_ratio = 2 * corner / (self.upper + self.lower)
        by_mass = 2 * corner * (1 - self.lower) / (self.upper - self.lower) if self.upper > self.lower else 0.0
        return min(by_ratio, by_mass)


@dataclass(frozen=True)
class Slopes:
    """Bounds on values and derivatives along an axis of f = ψ(p) − ψ(q), p and q of a class."""

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
    """The largest error of κ by M frequencies over the larger value, for log ratios up to ``largest``.

    2 |Φ_M(t) − Φ(t)| e^(−t/2) on a ladder of t, plus what its second derivative leaves between two steps.
    """
    if distance == "hellinger":
        return 0.0
    end = min(largest, FARTHEST_RATIO)
    t = np.linspace(0.0, end, RATIO_STEPS + 1)
    found = np.zeros(len(t))
    for value, weight in zip(frequencies.values, frequencies.weights, strict=True):
        found += weight * np.cos(value * t)
    off = 2 * np.abs(found - correlation(t, distance)) * np.exp(-t / 2)
    first, second = (float(frequencies.weights @ frequencies.values**power) for power in (1, 2))
    bend = 2 * (second + 0.25 + first + 0.5 + 0.5 * TOTALS[distance])  # |Φ'| ≤ ½ and |Φ''| ≤ ¼ for every distance
    beyond = 4 * TOTALS[distance] * np.exp(-end / 2) if largest > end else 0.0
    return max(float(off.max()) + bend * (end / RATIO_STEPS) ** 2 / 8, float(beyond))


@dataclass(frozen=True)
class PeanoConstants:
    """Of a quadrature rule on [0, 1] that is exact for straight lines.

    Attributes
    ----------
    discrepancy : sup |K₁|, the error for ∫|g'| ≤ 1
    first : ∫|K₁|, the error for |g'| ≤ 1
    second : at least ∫|K₂|, the error for |g''| ≤ 1
    """

    discrepancy: float
    first: float
    second: float

    @classmethod
    def of(cls, nodes: Array, weights: Array) -> PeanoConstants:
        """K₁(t) = Σ_{x ≤ t} w − t is linear between nodes, K₂ its integral; ∫|K₂| by Cauchy–Schwarz from ∫K₂², which is exact."""
        ends = np.concatenate([[0.0], nodes, [1.0]])
        left, right = ends[:-1], ends[1:]
        level = np.append(0.0, np.cumsum(weights))
        turn = np.clip(level, left, right)
        first = float(np.sum((level - left) * (turn - left) - (turn - left) ** 2 / 2))
        first += float(np.sum((right - turn) * ((right + turn) / 2 - level)))
        x, w = np.polynomial.legendre.leggauss(3)
        inner = left + np.multiply.outer((x + 1) / 2, right - left)
        beyond = np.maximum(nodes[None, None, :] - inner[:, :, None], 0.0) @ weights
        squares = np.einsum("i,ij->j", w / 2, ((1 - inner) ** 2 / 2 - beyond) ** 2) * (right - left)
        second = float(np.sum(np.sqrt(squares * (right - left))))
        return cls(float(np.max(np.maximum(np.abs(level - left), np.abs(level - right)))), first, second)

    def error(self, first: float, second: float) -> float:
        """For |g'| ≤ first and |g''| ≤ second."""
        return min(self.first * first, self.second * second if second < inf else inf)


def projection_tail(slopes: Slopes, n_basis: int, kind: str, discrepancy: float) -> float:
    """The largest Σ w |r|² at the nodes of an axis of r, what f has outside of the span of the basis there.

    ∫|r|² and ∫|r'|² follow from the coefficients of f', and the sum over nodes differs from ∫|r|² by at most
    2·discrepancy·‖r‖·‖r'‖.
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
    """Least and largest eigenvalue of the products of the basis, integrated on the nodes; 1 and 1 if these integrals are exact."""
    if nodes.kind == VALUES:
        return 1.0, 1.0
    u, w = nodes.axis
    functions = along_axis(u, nodes.n_basis, nodes.kind)
    values = np.linalg.eigvalsh((functions * w[:, None]).T @ functions)
    low, high = max(float(values[0]), 0.0), float(values[-1])
    return low**nodes.dimension, high**nodes.dimension


class KernelMoments:
    """Integrals over the centre x ∈ [0, 1]ᵈ of the density estimate's kernel w(u, x) at the nodes u, and of its square."""

    def __init__(self, nodes: Grid, bandwidth: Array) -> None:
        u, weights = nodes.axis
        self.weights = nodes.roots**2
        axes = []
        for width in bandwidth:
            count = max(FEWEST_CENTRES, int(np.ceil(CENTRES_A_BANDWIDTH / width)))
            x, dx = np.polynomial.legendre.leggauss(count)
            x, dx = np.concatenate([[0.0], (x + 1) / 2, [1.0]]), np.concatenate([[0.0], dx / 2, [0.0]])
            values = np.exp(-0.5 * ((u[:, None] - x) / width) ** 2)
            values /= weights @ values
            away = x - u[:, None]
            tables = [[(each * away**power) @ dx for power in (0, 1, 2)] for each in (values, values**2)]
            axes.append((tables, float((weights @ values**2).max())))
        self.mean = self._together([tables[0] for tables, _ in axes])
        self.square = self._together([tables[1] for tables, _ in axes])
        self.peak = float(np.prod([top for _, top in axes]))  # the largest Σ over nodes of weight · w(u, x)²

    @staticmethod
    def _together(axes: list[list[Array]]) -> tuple[Array, Array, Array]:
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


def density_distance(moments: KernelMoments, densities: DensityClass, n: int, chance: float, mass: float) -> tuple[float, float]:
    """√Σ (p̂ − p)²/p over the nodes, and the smallest p̂/p there, each exceeded with small probability (``chance`` together).

    Bias by the smoothness of p; the deviation from the mean by Bousquet's inequality for norms of means of n independent elements,
    whose variance in any direction is at most sup Ep̂/p. The smallest ratio is by Bernstein's inequality at every node.
    """
    low, weights = densities.lower, moments.weights
    zero, square = moments.mean[0], moments.square[0]
    shift = moments.change(moments.mean, densities)
    off = np.abs(zero - 1)
    bias = sqrt(float(weights @ np.maximum(*((p * off + shift) ** 2 / p for p in (low, densities.upper)))))
    second_moments = np.minimum(square + moments.change(moments.square, densities) / low, square * densities.upper / low)
    spread = sqrt(max(float(weights @ second_moments) - 1 / mass, 0.0) / n)
    weak = float(np.max(zero + shift / low))
    most = sqrt(moments.peak / low) + sqrt(weak)
    x = log(1 / ((1 - FLOOR_PART) * chance))
    deviation = spread + sqrt(2 * x * (weak + 2 * most * spread) / n) + most * x / (3 * n)
    x = log(len(weights) / (FLOOR_PART * chance))
    floor = float(np.min(zero - shift / low - np.sqrt(2 * x * second_moments / (low * n))))
    return bias + deviation, max(floor, 0.0)


def random_feature_error(length: int, count: int, orthogonal: bool, farthest: float, chance: float) -> float:
    """The error of ``count`` random Fourier features of a Gaussian, exceeded with probability ``chance``, up to a distance.

    The least of Hoeffding's, Bernstein's and Chebyshev's bounds, over independent blocks of features: one each, or ``length``
    orthogonal ones. The variance is exact: a feature has ½(1 − e^(−r²))², and two orthogonal ones have the covariance
    ₁F₁(m; m/2; −r²/2) − e^(−r²) for vectors of m numbers and a distance of r kernel widths.
    """
    block = min(length, count) if orthogonal else 1
    sizes = np.array([block] * (count // block) + [count % block])
    r = np.linspace(0.0, min(farthest, FARTHEST_DISTANCE), DISTANCE_STEPS + 1)
    alone = 0.5 * (1 - np.exp(-(r**2))) ** 2
    alone = np.append(alone[1:], 0.5 if farthest > FARTHEST_DISTANCE else alone[-1])
    both = orthogonal_covariance(length, r) if block > 1 else np.zeros(len(r))
    both = np.maximum(both, np.append(both[1:], both[-1]))
    variance = float(np.max(count * alone + float(np.sum(sizes * (sizes - 1))) * both)) / count**2
    x = log(2 / chance)
    hoeffding = sqrt(2 * x * float(np.sum(sizes**2))) / count
    bernstein = sqrt(2 * x * variance) + 2 * x * block / (3 * count)
    return min(hoeffding, bernstein, sqrt(variance / chance))


def orthogonal_covariance(length: int, r: Array) -> Array:
    """Of cos(ω·a) and cos(ω'·a) for orthogonal ω and ω' with normal lengths, |a| = r: e^(−r²/2) ₁F₁(−m/2; m/2; r²/2) − e^(−r²)."""
    x = r**2 / 2
    total, term, k = np.ones_like(x), np.ones_like(x), 0
    while np.max(np.abs(term)) > 1e-18 and (k < length or k < 4 * np.max(x) + 40):
        term = term * (-length / 2 + k) / (length / 2 + k) * x / (k + 1)
        total = total + term
        k += 1
    return np.asarray(np.exp(-x) * total - np.exp(-2 * x))
