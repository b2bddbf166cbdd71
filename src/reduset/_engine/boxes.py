"""Integrals of sums of kernel functions over boxes.

**Products over columns**, Σᵢ wᵢ Πⱼ P(lⱼ ≤ xᵢⱼ + sⱼT ≤ hⱼ). T has a symmetric distribution on the real line with the survival
function U. Of the limits and their mirror image, those farther right are used,

    P(a ≤ T ≤ b) = U(max(a, −b)) − U(max(b, −a)),

so that tails are never computed as 1 minus a number, and a box at thirty deviations keeps its digits. The error is 1e-16 over the
length of the box in units of s. A kernel function that mixes normal distributions of scales τ with proportions p is Σₖ pₖ of such
products. O(n·q·d) for q boxes, times the number of scales.

**Normal distributions with full covariances**, Σᵢ wᵢ P(l ≤ N(tᵢ, Hᵢ) ≤ h). In two columns by Owen's T function (Owen 1956), with an
error of 1e-15 of the weights:

    P(X ≤ h, Y ≤ k) = ½Φ(h) + ½Φ(k) − T(h, (k − ρh)/(h√(1 − ρ²))) − T(k, (h − ρk)/(k√(1 − ρ²))) − ½ [h and k differ in sign]

In more columns, each column is drawn within its limits given the columns before it (Genz 1992). With H = LLᵀ the probability is the
mean over u in the unit cube of Πⱼ eⱼ(u). A lattice rule with eight random shifts estimates it. Each distribution has a separate
shift, so that errors of many distributions cancel. The spread of the eight sums gives the standard error. A mixture of scales adds
one coordinate to the cube. O(m·d) for each lattice point.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import ndtr, ndtri, owens_t

from reduset._engine.threads import blocks, run_all
from reduset._types import Array, Floats

TILE = 1 << 14  # entries of an array; a few such arrays fit into the cache
CHUNK = 1 << 16  # least number of rows per task
PARTIALS = 1 << 22  # largest number of partial sums held at once

Tail = Callable[[Array], Array]
Scales = tuple[Array, Array] | None  # the scales τ of a mixture and their proportions p
ScaleQuantile = Callable[[Array], Array] | None  # the quantile function of τ


def normal_tail(t: Array) -> Array:
    """P(T > t) of the standard normal distribution."""
    return np.asarray(ndtr(-t))


def between(a: Array, b: Array, tail: Tail) -> Array:
    """P(a ≤ T ≤ b) of a symmetric distribution with this tail, a ≤ b."""
    return tail(np.maximum(a, -b)) - tail(np.maximum(b, -a))


def box_sums(
    points: Floats,
    weights: Array,
    low: Array,
    high: Array,
    units: float | Array,
    tail: Tail = normal_tail,
    scales: Scales = None,
) -> Array:
    """The integrals (q,) over the boxes from ``low`` to ``high``, (q, d) each; limits may be infinite.

    ``units`` is s: a number, (d,), or with one scale per point (n, 1) or (n, d). ``scales`` are τ and p of a mixture.
    """
    n, q = len(points), len(low)
    unbounded = [(bool(np.isneginf(low[:, j]).all()), bool(np.isposinf(high[:, j]).all())) for j in range(low.shape[1])]
    columns = [(j, below_all) for j, (below_all, above_all) in enumerate(unbounded) if not (below_all and above_all)]
    chunks = blocks(n, max(CHUNK, -(-n * q // PARTIALS)))
    sums = np.zeros((len(chunks), q))

    def add(k: int, c: int, e: int) -> None:
        rows = max(1, TILE // (e - c))
        for a, b in blocks(chunks[k][1] - chunks[k][0], rows):
            a, b = a + chunks[k][0], b + chunks[k][0]
            x = np.asarray(points[a:b], np.float64)
            s = np.broadcast_to(units[a:b] if np.ndim(units) == 2 else units, x.shape)  # type: ignore[index]
            sums[k, c:e] += _box_probabilities(x, s, low[c:e], high[c:e], columns, tail, scales) @ weights[a:b]

    run_all([partial(add, k, c, e) for k in range(len(chunks)) for c, e in blocks(q, 64)], blas=True)
    return np.asarray(sums.sum(axis=0))


def _box_probabilities(
    x: Array,
    s: Array,
    low: Array,
    high: Array,
    columns: list[tuple[int, bool]],
    tail: Tail,
    scales: Scales,
) -> Array:
    """(q, n) the integral of each kernel function over each box."""
    limits = []
    with np.errstate(over="ignore"):  # overflow to infinity gives the correct limit
        for j, unbounded_below in columns:
            upper = (high[:, j, None] - x[:, j]) / s[:, j]
            limits.append((None if unbounded_below else (low[:, j, None] - x[:, j]) / s[:, j], upper))

    def product(scale: float) -> Array:
        result = np.ones((len(low), len(x)))
        for lower, upper in limits:
            result *= tail(-upper / scale) if lower is None else between(lower / scale, upper / scale, tail)
        return result

    if scales is None:
        return product(1.0)
    total = np.zeros((len(low), len(x)))
    for scale, proportion in zip(*scales, strict=True):
        total += proportion * product(scale)
    return total


REPEATS = 8
FIRST_POINTS, MAX_POINTS = 1 << 12, 1 << 27  # lattice points times distributions: at first, and in total
RECTANGLE_COMPONENTS = 1 << 15  # distributions per task in two columns
MAX_DEVIATIONS = 40.0  # in standard deviations, beyond which the normal tail underflows


def oblique_box_sums(
    points: Floats,
    weights: Array,
    low: Array,
    high: Array,
    covariances: Array,
    tol: float,
    scale_at: ScaleQuantile = None,
) -> tuple[Array, Array]:
    """The integrals (q,) over boxes, with limits (q, d) each, and their standard errors.

    ``tol`` is the target error, relative to Σ|w|. ``covariances`` are (m, d, d), or (1, d, d) if shared. ``scale_at`` is the
    quantile function of τ.
    """
    d = low.shape[1]
    sums, errors = np.zeros(len(low)), np.zeros(len(low))
    target = tol * float(np.abs(weights).sum())
    roots = np.asarray(np.linalg.cholesky(covariances), np.float64) if d > 2 or scale_at is not None else covariances
    for k in range(len(low)):
        if scale_at is None and d == 2:
            sums[k] = _in_rectangle(points, weights, low[k], high[k], covariances)
        else:
            sums[k], errors[k] = _in_box(points, weights, low[k], high[k], roots, target, scale_at)
    return sums, errors


def _in_rectangle(points: Floats, weights: Array, low: Array, high: Array, covariances: Array) -> float:
    parts = blocks(len(points), RECTANGLE_COMPONENTS)
    sums = np.zeros(len(parts))

    def add(k: int) -> None:
        a, b = parts[k]
        H = covariances if len(covariances) == 1 else covariances[a:b]
        s = np.sqrt(H[:, [0, 1], [0, 1]])
        rho = np.clip(H[:, 0, 1] / (s[:, 0] * s[:, 1]), -1.0, 1.0)
        x = np.asarray(points[a:b], np.float64)
        lower, upper = (low - x) / s, (high - x) / s
        probability = _corner(upper[:, 0], upper[:, 1], rho) - _corner(lower[:, 0], upper[:, 1], rho)
        probability -= _corner(upper[:, 0], lower[:, 1], rho) - _corner(lower[:, 0], lower[:, 1], rho)
        sums[k] = np.maximum(probability, 0.0) @ weights[a:b]

    run_all([partial(add, k) for k in range(len(parts))], blas=True)
    return float(sums.sum())


def _corner(h: Array, k: Array, rho: Array) -> Array:
    """P(X ≤ h, Y ≤ k) of two standard normal variables with correlation rho."""
    if np.isneginf(h).all() or np.isneginf(k).all():
        return np.zeros(len(h))
    if np.isposinf(h).all() or np.isposinf(k).all():
        return np.asarray(ndtr(np.minimum(h, k)))
    rest = np.sqrt((1 - rho) * (1 + rho))
    with np.errstate(divide="ignore", invalid="ignore"):
        # At h = 0 the slope has the sign of k (and vice versa), and T(0, ±∞) = ±¼.
        first = np.where(h == 0, np.inf * np.sign(k), (k - rho * h) / (h * rest))
        second = np.where(k == 0, np.inf * np.sign(h), (h - rho * k) / (k * rest))
    first[np.isnan(first)] = second[np.isnan(second)] = 0.0  # infinite limits, or h = k = 0
    opposite = (h * k < 0) | ((h * k == 0) & (h + k < 0))
    value = 0.5 * (ndtr(h) + ndtr(k)) - owens_t(h, first) - owens_t(k, second) - 0.5 * opposite
    return np.where((h == 0) & (k == 0), 0.25 + np.arcsin(rho) / (2 * np.pi), value)


def _in_box(
    points: Floats,
    weights: Array,
    low: Array,
    high: Array,
    roots: Array,
    target: float,
    scale_at: ScaleQuantile,
) -> tuple[float, float]:
    """The sum and its standard error. Lattice points are added until the error is at most ``target``, or up to `MAX_POINTS`."""
    m, count, used = len(points), max(2, FIRST_POINTS // (REPEATS * len(points))), 0
    while True:
        sums = _repeats(points, weights, low, high, roots, count, scale_at)
        error = float(sums.std(ddof=1) / np.sqrt(REPEATS))
        used += m * count * REPEATS
        growth = 2 if error < 3 * target else 8  # the error falls almost in proportion to 1/points
        if error <= target or used + growth * m * count * REPEATS > MAX_POINTS:
            return float(sums.mean()), error
        count *= growth


def _repeats(points: Floats, weights: Array, low: Array, high: Array, roots: Array, count: int, scale_at: ScaleQuantile) -> Array:
    """(REPEATS,) the sum for each of the shifted lattices."""
    d = len(low)
    step = np.sqrt(_primes(d - (scale_at is None)))  # Richtmyer's lattice works for any number of points in any dimension
    parts = blocks(len(points), max(1, TILE // min(count, TILE)))
    sums = np.zeros((len(parts), REPEATS))

    def add(k: int) -> None:
        a, b = parts[k]
        x = np.asarray(points[a:b], np.float64)
        L = roots if len(roots) == 1 else roots[a:b]
        shifts = np.random.default_rng([count, k]).random((REPEATS, len(step), b - a, 1))
        for r in range(REPEATS):
            for c, e in blocks(count, TILE):
                u = np.arange(c, e) * step[:, None, None] + shifts[r]
                u = np.abs(2 * (u % 1.0) - 1.0)  # folding makes the integrand periodic
                sums[k, r] += weights[a:b] @ _sampled_probabilities(low - x, high - x, L, u, scale_at).sum(axis=1) / count

    run_all([partial(add, k) for k in range(len(parts))], blas=True)
    return np.asarray(sums.sum(axis=0))


def _sampled_probabilities(low: Array, high: Array, L: Array, u: Array, scale_at: ScaleQuantile) -> Array:
    """(n, count) Πⱼ of the probability that column j is within its limits, given the columns before it."""
    n, d = low.shape
    scale: float | Array = 1.0
    if scale_at is not None:
        scale, u = scale_at(u[-1]), u[:-1]
    result = np.ones((n, u.shape[2] if len(u) else np.shape(scale)[1]))
    y = np.zeros((d, *result.shape))
    for j in range(d):
        along = np.einsum("ni,inq->nq", np.broadcast_to(L[:, j, :j], (n, j)), y[:j])
        a, b = ((limit[:, j, None] / scale - along) / L[:, j, j, None] for limit in (low, high))
        probability = between(a, b, normal_tail)
        result *= probability
        if j + 1 < d:
            right = a > 0  # use the mirrored tail, which keeps its digits
            start = ndtr(np.where(right, -b, a))
            inner = ndtri(np.clip(start + np.where(right, 1 - u[j], u[j]) * probability, 1e-320, 1.0))
            y[j] = np.clip(np.where(right, -inner, inner), -MAX_DEVIATIONS, MAX_DEVIATIONS)
    return result


def _primes(count: int) -> Array:
    primes: list[int] = []
    candidate = 2
    while len(primes) < count:
        if all(candidate % prime for prime in primes):
            primes.append(candidate)
        candidate += 1
    return np.array(primes, np.float64)
