"""Homogeneous distances between densities by an explicit feature map (Fuglede 2005; Sutherland, Oliva, Póczos & Schneider 2016).

    d²(p, q) = ∫ κ(p(x), q(x)) dx,   κ(a, b) = ∫ |a^(½+iλ) − b^(½+iλ)|² dμ(λ),   λ ≥ 0

    "js"         Jensen–Shannon    ½ a log 2a/(a+b) + ½ b log 2b/(a+b)    μ = dλ/(cosh(πλ)(1+4λ²)),  Z = μ([0,∞)) = ½ log 2
    "hellinger"  squared Hellinger ½ (√a − √b)²                          μ = ½ at λ = 0,            Z = ½
    "tv"         total variation   |a − b|                               μ = (4/π) dλ/(1+4λ²),      Z = 1
    "chi2"       χ²                ½ (a − b)²/(a + b)                    μ = dλ/cosh(πλ),           Z = ½
    "l2"         (a − b)²: the map is the density itself

Table 1 of the paper prints other constants for "js" and "tv", for which κ(a, 0) = Z·a does not hold. "chi2" is due to Vedaldi &
Zisserman 2010. Its Φ below is 1/(2 cosh(t/2)).

M frequencies λ with weights approximate μ. Let Φ(t) = ∫ cos(λt) dμ, with the log ratio t = log a/b. Then κ(a, b) = Z(a + b) −
2√(ab) Φ(t). Here √(ab) equals e^(−|t|/2) times the larger value. Optimal frequencies (``frequencies="placed"``) minimise the mean
square error of κ over t. The largest errors of five frequencies, relative to the larger value, are:

    frequencies                  "js"    "chi2"   "tv", where κ has an edge
    optimal                      3e-5    3e-4     0.09
    drawn from μ (the paper)     0.03    0.06     0.4
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import least_squares

from reduset._types import Array

DISTANCES = ("chi2", "hellinger", "js", "l2", "tv")
TOTALS = {"chi2": 0.5, "js": 0.5 * np.log(2.0), "hellinger": 0.5, "tv": 1.0}
MAX_OPTIMAL_FREQUENCIES = 20
MAX_FREQUENCY = 8.0  # Larger frequencies have less than 1e-12 of the measure of "js".


@dataclass(frozen=True)
class DistanceFrequencies:
    """A quadrature rule for μ: frequencies λ ≥ 0 and their weights, which sum to Z."""

    values: Array
    weights: Array


def kappa(a: Array, b: Array, distance: str) -> Array:
    """κ(a, b) of density values, in closed form."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if distance == "tv":
        return np.abs(a - b)
    if distance == "l2":
        return (a - b) ** 2
    if distance == "hellinger":
        return 0.5 * (np.sqrt(a) - np.sqrt(b)) ** 2
    half = np.where(a + b > 0, a + b, 1.0) / 2
    if distance == "chi2":
        return (a - b) ** 2 / (4 * half)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = [np.where(r > 0, 0.5 * r * np.log(r / half), 0.0) for r in (a, b)]
    return np.maximum(parts[0] + parts[1], 0.0)


def measure(values: Array, distance: str) -> Array:
    """The density of μ at frequencies λ, for "chi2", "js" and "tv"."""
    if distance == "chi2":
        return 1.0 / np.cosh(np.pi * values)
    if distance == "js":
        return 1.0 / (np.cosh(np.pi * values) * (1 + 4 * values**2))
    return 4 / np.pi / (1 + 4 * values**2)


def correlation(t: Array, distance: str) -> Array:
    """Φ(t) = ∫ cos(λt) dμ(λ)."""
    if distance == "tv":
        return np.exp(-np.abs(t) / 2)
    t = np.abs(t)
    if distance == "chi2":
        return np.exp(-t / 2) / (1 + np.exp(-t))
    # This is κ at a = e^(t/2), b = e^(−t/2), without cancellation for large t.
    return 0.25 * (np.exp(t / 2) * np.log1p(np.exp(-t)) + np.exp(-t / 2) * (t + np.log1p(np.exp(-t))))


@cache
def optimal_frequencies(distance: str, count: int) -> DistanceFrequencies:
    """The ``count`` frequencies that approximate μ best. The start is the solution with one fewer. "hellinger" needs only λ = 0."""
    if distance == "hellinger":
        return DistanceFrequencies(np.zeros(1), np.array([0.5]))
    total = TOTALS[distance]
    if count == 1:
        return _fit_frequencies(distance, np.array([0.4]), np.array([total]))
    fewer = optimal_frequencies(distance, count - 1)
    # The new frequency starts 1.05 times the last spacing above the last one. From a larger distance it would not converge.
    new = fewer.values[-1] + 1.05 * np.diff(fewer.values, prepend=0.0)[-1]
    values = np.append(fewer.values * count / (count + 0.5), new)
    return _fit_frequencies(distance, values, np.append(fewer.weights, 0.5 * fewer.weights[-1]))


def random_frequencies(distance: str, count: int, rng: np.random.Generator) -> DistanceFrequencies:
    """``count`` frequencies drawn from μ, with equal weights."""
    if distance == "hellinger":
        return optimal_frequencies(distance, 1)
    uniform = rng.uniform(size=count)
    if distance == "tv":
        values = np.tan(np.pi / 2 * uniform) / 2
    elif distance == "chi2":
        values = np.arctanh(np.tan(np.pi / 4 * uniform)) * 2 / np.pi
    else:
        grid = np.linspace(0.0, MAX_FREQUENCY, 1 << 16)
        densities = measure(grid, distance)
        cumulative = np.append(0.0, np.cumsum(densities[1:] + densities[:-1]))
        values = np.interp(uniform, cumulative / cumulative[-1], grid)
    return DistanceFrequencies(values, np.full(count, TOTALS[distance] / count))


def _fit_frequencies(distance: str, values: Array, weights: Array) -> DistanceFrequencies:
    """Frequencies and weights that minimise the squared error of Φ(t) e^(−t/2). The weights always sum to Z."""
    count, total = len(values), TOTALS[distance]
    t = 40.0 * np.linspace(0.0, 1.0, 800) ** 2  # The grid is densest at the edge of "tv".
    scale = np.exp(-t / 2) * np.sqrt(np.gradient(t))
    target = scale * correlation(t, distance)

    def unpack(v: Array) -> tuple[Array, Array, Array]:
        steps, proportions = np.exp(v[:count]), np.exp(v[count:] - v[count:].max())
        return steps, np.cumsum(steps), total * proportions / proportions.sum()

    def residual(v: Array) -> Array:
        _, values, weights = unpack(v)
        return np.asarray(scale * (np.cos(np.outer(t, values)) @ weights) - target)

    def jacobian(v: Array) -> Array:
        steps, values, weights = unpack(v)
        angles = np.outer(t, values)
        scaled = scale[:, None] * np.cos(angles)
        by_value = np.sin(angles) * (-scale[:, None] * t[:, None]) * weights
        by_step = np.cumsum(by_value[:, ::-1], axis=1)[:, ::-1] * steps
        return np.hstack([by_step, (scaled - (scaled @ weights / total)[:, None]) * weights])

    start = np.concatenate([np.log(np.diff(values, prepend=0.0)), np.log(weights)])
    result = least_squares(residual, start, jacobian, method="lm", xtol=1e-14, ftol=1e-14, gtol=1e-14, max_nfev=300)
    _, values, weights = unpack(result.x)
    return DistanceFrequencies(values, weights)


def feature_map(p: Array, distance: str, frequencies: DistanceFrequencies | None) -> Array:
    """(…, F) feature map of densities p ≥ 0, with squared distances κ. F is 2M, or 1 if the only λ is 0."""
    if distance == "l2" or frequencies is None:
        return p[..., None]
    roots = np.sqrt(frequencies.weights)
    root = np.sqrt(p)
    if not frequencies.values.any():
        return root[..., None] * roots
    logs = np.log(np.maximum(p, np.finfo(np.float64).tiny))
    # The functions are the first axis in memory, for long loops over p. They are the last axis of the result.
    out = np.empty((2, len(roots), *p.shape))
    angles = np.multiply.outer(frequencies.values, logs)
    np.cos(angles, out=out[0])
    np.sin(angles, out=out[1])
    out *= np.multiply.outer(roots, root)
    return np.moveaxis(out.reshape(-1, *p.shape), 0, -1)
