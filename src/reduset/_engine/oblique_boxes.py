"""How much of normal laws with full covariances lies in a box: Σᵢ wᵢ P(l ≤ N(tᵢ, Hᵢ) ≤ h).

In two columns by Owen's T function (Owen 1956), right to 1e-15 of the weights:

    P(X ≤ h, Y ≤ k) = ½Φ(h) + ½Φ(k) − T(h, (k − ρh)/(h√(1 − ρ²))) − T(k, (h − ρk)/(k√(1 − ρ²))) − ½ [h and k differ in sign]

In more, column after column is drawn within its limits given those before it (Genz 1992): with H = LLᵀ the probability is the mean
over u in the unit cube of Πⱼ eⱼ(u), which a lattice rule takes with its points moved at random, eight times over. Each law is
moved by itself, so that errors of many laws cancel; what the eight sums differ by is the error that is told. A bump that mixes
normal laws of scales τ is one more coordinate of the cube. O(m·d) a point of the lattice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import ndtr, ndtri, owens_t

from reduset._engine.boxes import between, normal_tail
from reduset._engine.threads import blocks, run_all
from reduset._types import Array, Floats

REPEATS = 8
TILE = 1 << 14
FIRST, MOST = 1 << 12, 1 << 27  # points of the lattice in all, times laws: at the first look, and of all looks
PAIRS = 1 << 15  # laws at a time in two columns
FARTHEST = 40.0  # deviations: beyond, the normal law is 0


def oblique_box_sums(
    points: Floats,
    weights: Array,
    low: Array,
    high: Array,
    covariances: Array,
    tol: float,
    scale_at: Callable[[Array], Array] | None = None,
) -> tuple[Array, Array]:
    """(q,) of boxes, (q, d) limits each, and the standard errors of these; ``tol`` is the error aimed at, over Σ|w|.

    ``covariances`` are (m, d, d), or (1, d, d) where all share one; ``scale_at`` gives τ at shares of its law.
    """
    d = low.shape[1]
    found, errors = np.zeros(len(low)), np.zeros(len(low))
    aim = tol * float(np.abs(weights).sum())
    roots = np.asarray(np.linalg.cholesky(covariances), np.float64) if d > 2 or scale_at is not None else covariances
    for k in range(len(low)):
        if scale_at is None and d == 2:
            found[k] = _in_rectangle(points, weights, low[k], high[k], covariances)
        else:
            found[k], errors[k] = _in_box(points, weights, low[k], high[k], roots, aim, scale_at)
    return found, errors


def _in_rectangle(points: Floats, weights: Array, low: Array, high: Array, covariances: Array) -> float:
    parts = blocks(len(points), PAIRS)
    sums = np.zeros(len(parts))

    def add(k: int) -> None:
        a, b = parts[k]
        H = covariances if len(covariances) == 1 else covariances[a:b]
        s = np.sqrt(H[:, [0, 1], [0, 1]])
        rho = np.clip(H[:, 0, 1] / (s[:, 0] * s[:, 1]), -1.0, 1.0)
        x = np.asarray(points[a:b], np.float64)
        lower, upper = (low - x) / s, (high - x) / s
        share = _corner(upper[:, 0], upper[:, 1], rho) - _corner(lower[:, 0], upper[:, 1], rho)
        share -= _corner(upper[:, 0], lower[:, 1], rho) - _corner(lower[:, 0], lower[:, 1], rho)
        sums[k] = np.maximum(share, 0.0) @ weights[a:b]

    run_all([partial(add, k) for k in range(len(parts))], blas=True)
    return float(sums.sum())


def _corner(h: Array, k: Array, rho: Array) -> Array:
    """P(X ≤ h, Y ≤ k) of two standard normals of this correlation."""
    if np.isneginf(h).all() or np.isneginf(k).all():
        return np.zeros(len(h))
    if np.isposinf(h).all() or np.isposinf(k).all():
        return np.asarray(ndtr(np.minimum(h, k)))
    rest = np.sqrt((1 - rho) * (1 + rho))
    with np.errstate(divide="ignore", invalid="ignore"):
        # at 0 the slope has the sign of the other, and T(0, ±∞) = ±¼
        first = np.where(h == 0, np.inf * np.sign(k), (k - rho * h) / (h * rest))
        second = np.where(k == 0, np.inf * np.sign(h), (h - rho * k) / (k * rest))
    first[np.isnan(first)] = second[np.isnan(second)] = 0.0  # beyond all numbers, or at 0, 0
    apart = (h * k < 0) | ((h * k == 0) & (h + k < 0))
    value = 0.5 * (ndtr(h) + ndtr(k)) - owens_t(h, first) - owens_t(k, second) - 0.5 * apart
    return np.where((h == 0) & (k == 0), 0.25 + np.arcsin(rho) / (2 * np.pi), value)


def _in_box(
    points: Floats,
    weights: Array,
    low: Array,
    high: Array,
    roots: Array,
    aim: float,
    scale_at: Callable[[Array], Array] | None,
) -> tuple[float, float]:
    """The sum and its standard error: looks at more and more points of the lattice until it is small enough, or `MOST`."""
    m, looks, used = len(points), max(2, FIRST // (REPEATS * len(points))), 0
    while True:
        sums = _repeats(points, weights, low, high, roots, looks, scale_at)
        error = float(sums.std(ddof=1) / np.sqrt(REPEATS))
        used += m * looks * REPEATS
        growth = 2 if error < 3 * aim else 8  # errors fall nearly as the number grows
        if error <= aim or used + growth * m * looks * REPEATS > MOST:
            return float(sums.mean()), error
        looks *= growth


def _repeats(
    points: Floats,
    weights: Array,
    low: Array,
    high: Array,
    roots: Array,
    looks: int,
    scale_at: Callable[[Array], Array] | None,
) -> Array:
    """(REPEATS,) the sum by as many lattices, moved apart."""
    d = len(low)
    step = np.sqrt(_primes(d - (scale_at is None)))  # Richtmyer's lattice: any number of points, in any dimension
    parts = blocks(len(points), max(1, TILE // min(looks, TILE)))
    sums = np.zeros((len(parts), REPEATS))

    def add(k: int) -> None:
        a, b = parts[k]
        x = np.asarray(points[a:b], np.float64)
        L = roots if len(roots) == 1 else roots[a:b]
        shifts = np.random.default_rng([looks, k]).random((REPEATS, len(step), b - a, 1))
        for r in range(REPEATS):
            for c, e in blocks(looks, TILE):
                u = np.arange(c, e) * step[:, None, None] + shifts[r]
                u = np.abs(2 * (u % 1.0) - 1.0)  # folded, so that the ends of the cube meet
                sums[k, r] += weights[a:b] @ _given(low - x, high - x, L, u, scale_at).sum(axis=1) / looks

    run_all([partial(add, k) for k in range(len(parts))], blas=True)
    return np.asarray(sums.sum(axis=0))


def _given(low: Array, high: Array, L: Array, u: Array, scale_at: Callable[[Array], Array] | None) -> Array:
    """(n, looks) Πⱼ of the share of column j within its limits, given the columns before it."""
    n, d = low.shape
    scale: float | Array = 1.0
    if scale_at is not None:
        scale, u = scale_at(u[-1]), u[:-1]
    found = np.ones((n, u.shape[2] if len(u) else np.shape(scale)[1]))
    y = np.zeros((d, *found.shape))
    for j in range(d):
        along = np.einsum("ni,inq->nq", np.broadcast_to(L[:, j, :j], (n, j)), y[:j])
        a, b = ((limit[:, j, None] / scale - along) / L[:, j, j, None] for limit in (low, high))
        share = between(a, b, normal_tail)
        found *= share
        if j + 1 < d:
            right = a > 0  # in the mirror, where the digits are
            start = ndtr(np.where(right, -b, a))
            inner = ndtri(np.clip(start + np.where(right, 1 - u[j], u[j]) * share, 1e-320, 1.0))
            y[j] = np.clip(np.where(right, -inner, inner), -FARTHEST, FARTHEST)
    return found


def _primes(count: int) -> Array:
    found: list[int] = []
    candidate = 2
    while len(found) < count:
        if all(candidate % prime for prime in found):
            found.append(candidate)
        candidate += 1
    return np.array(found, np.float64)
