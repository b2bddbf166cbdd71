"""Runnalls' merging (2007): merge the two components with the smallest increase of a bound on KL, and repeat.

    B(i, j) = ½ [(wᵢ + wⱼ) log|Pᵢⱼ| − wᵢ log|Pᵢ| − wⱼ log|Pⱼ|],        Pᵢⱼ the covariance of the merged component

The cost of all pairs is computed once, then that of pairs with each merged component: O(n²·d³), and n searches of an n × n table.
There are three versions: in NumPy over all partners at once, compiled, and a plain double loop to check the other two.
"""

from __future__ import annotations

import numpy as np
from numba import njit


def merged(weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, size: int) -> tuple[np.ndarray, ...]:
    """In NumPy, one component against all others at once."""
    w, m, P = weights.copy(), means.copy(), covariances.copy()
    n = len(w)
    logs = np.linalg.slogdet(P)[1]

    def joined(i: int, others: np.ndarray | int) -> np.ndarray:
        share = (w[i] / (w[i] + w[others]))[..., None, None]
        gap = m[i] - m[others]
        return P[others] + share * (P[i] - P[others] + (1 - share) * (gap[..., :, None] * gap[..., None, :]))

    def prices(i: int, others: np.ndarray) -> np.ndarray:
        found = (w[i] + w[others]) * np.linalg.slogdet(joined(i, others))[1]
        return 0.5 * (found - w[i] * logs[i] - w[others] * logs[others])

    price = np.full((n, n), np.inf)
    for i in range(n - 1):
        price[i, i + 1 :] = prices(i, np.arange(i + 1, n))
    alive = np.ones(n, bool)
    for _ in range(n - size):
        i, j = divmod(int(price.argmin()), n)
        P[i] = joined(i, j)
        m[i] = m[j] + w[i] / (w[i] + w[j]) * (m[i] - m[j])
        w[i] += w[j]
        logs[i] = np.linalg.slogdet(P[i])[1]
        alive[j] = False
        price[j] = price[:, j] = np.inf
        others = np.flatnonzero(alive)
        others = others[others != i]
        now = prices(i, others)
        before = np.searchsorted(others, i)
        price[others[:before], i] = now[:before]
        price[i, others[before:]] = now[before:]
    return w[alive], m[alive], P[alive]


@njit(cache=True)
def merged_compiled(weights, means, covariances, size):
    """Compiled, one pair at a time; each component stores its cheapest later partner."""
    n, d = means.shape
    w, m, P = weights.copy(), means.copy(), covariances.copy()
    work = np.empty((d, d))
    logs = np.empty(n)
    for i in range(n):
        work[:] = P[i]
        logs[i] = _log_determinant(work)
    price = np.full((n, n), np.inf)
    for i in range(n):
        for j in range(i + 1, n):
            price[i, j] = _price(w, m, P, logs, i, j, work)
    alive = np.ones(n, np.bool_)
    partner = np.zeros(n, np.int64)
    for i in range(n):
        partner[i] = price[i].argmin()
    for _ in range(n - size):
        i = -1
        for k in range(n):
            if alive[k] and (i < 0 or price[k, partner[k]] < price[i, partner[i]]):
                i = k
        j = partner[i]
        _join(w, m, P, i, j, P[i])
        share = w[i] / (w[i] + w[j])
        m[i] = m[j] + share * (m[i] - m[j])
        w[i] += w[j]
        work[:] = P[i]
        logs[i] = _log_determinant(work)
        alive[j] = False
        price[j] = np.inf
        price[:, j] = np.inf
        for k in range(n):
            if alive[k] and k != i:
                a, b = min(i, k), max(i, k)
                price[a, b] = _price(w, m, P, logs, a, b, work)
        for k in range(n):
            if alive[k] and (k == i or partner[k] == i or partner[k] == j):
                partner[k] = price[k].argmin()
            elif k < i and alive[k] and price[k, i] < price[k, partner[k]]:
                partner[k] = i
    return w[alive], m[alive], P[alive]


@njit(cache=True)
def _join(w, m, P, i, j, out):
    share = w[i] / (w[i] + w[j])
    for r in range(len(out)):
        for c in range(r + 1):
            gap = (m[i, r] - m[j, r]) * (m[i, c] - m[j, c])
            out[r, c] = P[j, r, c] + share * (P[i, r, c] - P[j, r, c] + (1 - share) * gap)
            out[c, r] = out[r, c]


@njit(cache=True)
def _log_determinant(A):
    total = 0.0
    for c in range(len(A)):
        total += np.log(A[c, c])
        for r in range(c + 1, len(A)):
            factor = A[r, c] / A[c, c]
            for s in range(r, len(A)):
                A[s, r] -= factor * A[s, c]
    return total


@njit(cache=True)
def _price(w, m, P, logs, i, j, work):
    _join(w, m, P, i, j, work)
    return 0.5 * ((w[i] + w[j]) * _log_determinant(work) - w[i] * logs[i] - w[j] * logs[j])


def merged_plainly(weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, size: int) -> tuple[np.ndarray, ...]:
    """From the definition: all pairs are evaluated before each merge."""
    parts = list(zip(weights, means, covariances, strict=True))

    def joined(one, other):
        total = one[0] + other[0]
        mean = (one[0] * one[1] + other[0] * other[1]) / total
        spread = sum(w * (P + np.outer(m - mean, m - mean)) for w, m, P in (one, other)) / total
        return total, mean, spread

    def price(one, other) -> float:
        total, _, spread = joined(one, other)
        return 0.5 * (total * np.linalg.slogdet(spread)[1] - sum(w * np.linalg.slogdet(P)[1] for w, _, P in (one, other)))

    while len(parts) > size:
        _, i, j = min((price(parts[i], parts[j]), i, j) for i in range(len(parts)) for j in range(i + 1, len(parts)))
        parts[i] = joined(parts[i], parts.pop(j))
    return tuple(np.array(values) for values in zip(*parts, strict=True))


def check(weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, size: int) -> None:
    """Raise an error if the fast versions differ from the plain one."""
    truth = merged_plainly(weights, means, covariances, size)
    for quick in (merged, merged_compiled):
        for here, there in zip(quick(weights, means, covariances, size), truth, strict=True):
            if not np.allclose(here, there, rtol=1e-9, atol=1e-12):
                raise AssertionError(f"{quick.__name__} differs from the plain double loop by {np.abs(here - there).max():.2g}")
