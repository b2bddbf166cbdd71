"""The difference of two means under the null hypothesis: draws of it, and the p-value of an observed difference.

    permuted    the labels of all rows are permuted: exact for any distribution
    resampled   rows drawn from a fair sample of the reference: for few rows, whose sums are not normal yet
    normal      N(0, Σ): the limit for many rows, and all that is needed where no row is kept
    signed      each row's part with a random sign, for rows of unequal weight (the wild bootstrap)

All statistics are combined. Their p-values among the draws are joined by a weighted harmonic mean (Wilson 2019), whose distribution
is that of the same draws: no correction for their number is needed, and equal statistics cost nothing.

Beyond the draws, the tail of a weighted sum of squares Σⱼ λⱼ χ²₁ is the saddlepoint approximation (Kuonen 1999). With
K(ζ) = −½ Σ log(1 − 2λⱼζ), K'(ζ) = q, w = sign(ζ)√(2(ζq − K)) and v = ζ√K'':  P(Q > q) ≈ 1 − Φ(w + log(v/w)/w). Its relative error
stays within a tenth far into the tail, where simulation has no draws.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.stats import norm

from reduset._engine import blocks, run_all, single_threaded_blas
from reduset._types import Array

NEAR = 1e-4  # of the mean: there the formula is 0/0, and both sides of it are joined
A_TIME = 64  # draws
TIED = 1e-4  # of a statistic: what differs by no more is the same but for rounding, and counts as being as large
BLOCKS_AT_ONCE = 64  # of draws
FEW_OF = 32  # where fewer than one in so many rows is drawn, they are looked up one by one


def upper_tail(value: float, coefficients: Array) -> float:
    """P(Σ λⱼ χ²₁ > value) for coefficients λ ≥ 0."""
    used = np.asarray(coefficients, np.float64)
    used = used[used > 1e-12 * max(float(used.max(initial=0.0)), 0.0)]
    if not len(used):
        return 1.0 if value <= 0 else 0.0
    if value <= 0:
        return 1.0
    used, q = used / used.max(), float(value) / float(used.max())
    centre = float(used.sum())
    if abs(q - centre) < NEAR * centre:
        below, above = centre * (1 - NEAR), centre * (1 + NEAR)
        share = (q - below) / (above - below)
        return (1 - share) * _tail(below, used) + share * _tail(above, used)
    return _tail(q, used)


def _tail(q: float, used: Array) -> float:
    def slope(zeta: float) -> float:
        return float((used / (1 - 2 * used * zeta)).sum()) - q

    most = 0.5 - 1e-12
    low = -0.5 * len(used) / q - 1.0  # K'(ζ) < q there: each term is below 1 / (2|ζ|)
    if slope(most) <= 0:
        return 0.0
    zeta = float(brentq(slope, low, most, xtol=1e-15, rtol=8.9e-16, maxiter=200))
    terms = 1 - 2 * used * zeta
    exponent = zeta * q + 0.5 * float(np.log(terms).sum())
    w = np.sign(zeta) * np.sqrt(max(2 * exponent, 0.0))
    v = zeta * np.sqrt(float(2 * np.square(used / terms).sum()))
    if w == 0 or v / w <= 0:
        return 0.5
    return float(norm.sf(w + np.log(v / w) / w))


def permuted(rows: Array, count: int, draws: int, rng: np.random.Generator) -> Array:
    """(draws, p) differences of means, ``count`` of the rows (n, p) called new at random."""
    n, total = len(rows), rows.sum(axis=0)
    called = np.zeros((A_TIME, n), np.float32)
    called[:, :count] = 1.0
    sums = _products((rng.permuted(called[: b - a], axis=1) for a, b in blocks(draws, A_TIME)), rows)
    return np.asarray(sums / count - (total - sums) / (n - count))


def resampled(rows: Array, count: int, draws: int, rng: np.random.Generator) -> Array:
    """(draws, p) means of ``count`` of the rows (n, p), drawn with replacement, less the mean of all."""
    n, centred = len(rows), rows - rows.mean(axis=0)
    if count * FEW_OF <= n:
        drawn = rng.integers(n, size=(draws, count))
        return np.asarray([centred[each].mean(axis=0) for each in drawn])
    return _products((_times(n, count, b - a, rng) for a, b in blocks(draws, A_TIME)), centred) / count


def reweighed(rows: Array, weights: Array, draws: int, rng: np.random.Generator) -> Array:
    """(draws, p) sums of rows (n, p) drawn with replacement, one for each weight (which sum to 1) and times it, less the mean."""
    n, heavy = len(rows), np.tile(weights, A_TIME)

    def factors(a: int, b: int) -> NDArray[np.float32]:
        drawn = rng.integers(n, size=(b - a, len(weights))) + n * np.arange(b - a)[:, None]
        return np.bincount(drawn.ravel(), heavy[: drawn.size], n * (b - a)).reshape(b - a, n).astype(np.float32)

    return _products((factors(a, b) for a, b in blocks(draws, A_TIME)), rows - rows.mean(axis=0))


def normal(factor: Array, draws: int, rng: np.random.Generator) -> Array:
    """(draws, p) of N(0, A Aᵀ), A the factor (p, r)."""
    with single_threaded_blas():
        return np.asarray(rng.standard_normal((draws, factor.shape[1])) @ factor.T)


def square_root(covariance: Array) -> Array:
    """(p, p) a factor A with A Aᵀ the covariance."""
    lengths, directions = eigh(covariance)
    return np.asarray(directions * np.sqrt(np.maximum(lengths, 0.0)))


def signed(parts: Array, draws: int, rng: np.random.Generator) -> Array:
    """(draws, p) sums of the parts (n, p), each with a sign drawn at random."""
    signs = (rng.integers(0, 2, (b - a, len(parts)), dtype=np.int8).astype(np.float32) * 2 - 1 for a, b in blocks(draws, A_TIME))
    return _products(signs, parts)


def _times(n: int, count: int, draws: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """(draws, n) how often each of n rows is drawn."""
    drawn = rng.integers(n, size=(draws, count)) + n * np.arange(draws)[:, None]
    return np.bincount(drawn.ravel(), minlength=n * draws).reshape(draws, n).astype(np.float32)


def _products(factors: Iterable[NDArray[np.float32]], rows: Array) -> Array:
    """The factors, each some draws (b, n) drawn in turn, times the rows (n, p), by several threads."""
    kept, found = rows.astype(np.float32), list[Array]()
    rest = iter(factors)
    while drawn := list(islice(rest, BLOCKS_AT_ONCE)):  # all of them would take draws · n numbers
        parts: list[Array] = [np.empty(0)] * len(drawn)
        run_all([partial(_multiply, parts, k, drawn[k], kept) for k in range(len(drawn))], blas=True)
        found += parts
    return np.concatenate(found)


def _multiply(parts: list[Array], k: int, factors: NDArray[np.float32], rows: NDArray[np.float32]) -> None:
    parts[k] = (factors @ rows).astype(np.float64)


def joined(observed: Array, drawn: Array, counts: Array) -> tuple[float, Array]:
    """The p-value of all statistics together, and of each.

    Parameters
    ----------
    observed : (K,); drawn : (B, K) under chance alone
    counts : (K,) how much each counts
    """
    every = np.concatenate([observed[None], drawn])
    shares = _shares_above(every)
    evidence = (counts / shares).sum(axis=1)
    return float((evidence >= evidence[0] * (1 - 1e-12)).mean()), shares[0]


def joined_each(observed: Array, drawn: Array, counts: Array) -> Array:
    """(q,) the p-values that `joined` returns, of (q, K) observations one by one, with the draws sorted once."""
    bounds, ordered = drawn * (1 - TIED), np.sort(drawn, axis=0)
    size, above = len(drawn) + 1, np.empty_like(drawn)
    for k, column in enumerate(ordered.T):
        above[:, k] = len(column) - np.searchsorted(column, bounds[:, k], side="left")
    found = np.empty(len(observed))
    for i, values in enumerate(observed):
        own = 1 + len(drawn) - np.array([np.searchsorted(ordered[:, k], v * (1 - TIED)) for k, v in enumerate(values)])
        least = (counts / (own / size)).sum() * (1 - 1e-12)
        evidence = (counts / ((above + (values >= bounds)) / size)).sum(axis=1)
        found[i] = (1 + (evidence >= least).sum()) / size
    return found


def _shares_above(values: Array) -> Array:
    """(B + 1, K) the share of the values of each column that are at least as large as each of them."""
    found = np.empty_like(values)
    for k, column in enumerate(values.T):
        ordered = np.sort(column)
        found[:, k] = (len(column) - np.searchsorted(ordered, column * (1 - TIED), side="left")) / len(column)
    return found


def quadratic_p_values(observed: Array, forms: Array, covariance: Array) -> Array:
    """(K,) p-values of quadratic forms of a normal difference.

    Parameters
    ----------
    observed : (K,); forms : (K, p)
    covariance : (p, p) of the difference under the null hypothesis
    """
    found = np.empty(len(forms))
    for k, (value, form) in enumerate(zip(observed, forms, strict=True)):
        used = form > 0
        root = np.sqrt(form[used])
        coefficients = np.linalg.eigvalsh(root[:, None] * covariance[np.ix_(used, used)] * root)
        found[k] = upper_tail(float(value), np.maximum(coefficients, 0.0))
    return found
