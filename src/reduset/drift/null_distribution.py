"""The difference of two means under the null hypothesis: draws of it, and the p-value of an observed difference.

- `permuted`: the labels of all rows are permuted. Exact for any distribution.
- `resampled`: rows are drawn from a random sample of the reference. For small samples, because their means are not normal.
- `normal`: N(0, Σ), the limit for large samples. It is also used if no rows are kept.
- `signed`: each row's contribution gets a random sign, for rows of unequal weight (the wild bootstrap).

All statistics are combined. Their p-values among the draws are joined by a weighted harmonic mean (Wilson 2019). The same
draws give its distribution, so that no correction for the number of statistics is needed and equal statistics cost no power.

Beyond the draws, the tail of a weighted sum of squares Σⱼ λⱼ χ²₁ is the saddlepoint approximation (Kuonen 1999). With
K(ζ) = −½ Σ log(1 − 2λⱼζ), K'(ζ) = q, w = sign(ζ)√(2(ζq − K)) and v = ζ√K'':  P(Q > q) ≈ 1 − Φ(w + log(v/w)/w). Its relative error
stays below 10 % far into the tail, where simulation has no draws.
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

INTERPOLATED = 1e-4  # relative distance from the mean in which the formula is 0/0, so that values are interpolated
BLOCK_DRAWS = 64
TIE_TOLERANCE = 1e-4  # statistics within this relative distance count as ties, since they may differ by rounding only
BLOCKS_AT_ONCE = 64  # of draws
GATHER_RATIO = 32  # if at most one in this number of rows is drawn, drawn rows are gathered instead of multiplied


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
    if abs(q - centre) < INTERPOLATED * centre:
        below, above = centre * (1 - INTERPOLATED), centre * (1 + INTERPOLATED)
        fraction = (q - below) / (above - below)
        return (1 - fraction) * _tail(below, used) + fraction * _tail(above, used)
    return _tail(q, used)


def _tail(q: float, used: Array) -> float:
    def slope(zeta: float) -> float:
        return float((used / (1 - 2 * used * zeta)).sum()) - q

    high = 0.5 - 1e-12
    low = -0.5 * len(used) / q - 1.0  # K'(low) < q, because each term is below 1 / (2|ζ|)
    if slope(high) <= 0:
        return 0.0
    zeta = float(brentq(slope, low, high, xtol=1e-15, rtol=8.9e-16, maxiter=200))
    terms = 1 - 2 * used * zeta
    exponent = zeta * q + 0.5 * float(np.log(terms).sum())
    w = np.sign(zeta) * np.sqrt(max(2 * exponent, 0.0))
    v = zeta * np.sqrt(float(2 * np.square(used / terms).sum()))
    if w == 0 or v / w <= 0:
        return 0.5
    return float(norm.sf(w + np.log(v / w) / w))


def permuted(rows: Array, count: int, draws: int, rng: np.random.Generator) -> Array:
    """(draws, p) differences of means if ``count`` of the rows (n, p) are labelled new at random."""
    n, total = len(rows), rows.sum(axis=0)
    labels = np.zeros((BLOCK_DRAWS, n), np.float32)
    labels[:, :count] = 1.0
    sums = _products((rng.permuted(labels[: b - a], axis=1) for a, b in blocks(draws, BLOCK_DRAWS)), rows)
    return np.asarray(sums / count - (total - sums) / (n - count))


def resampled(rows: Array, weights: Array, draws: int, rng: np.random.Generator) -> Array:
    """(draws, p) Σ wᵢ (xᵢ − mean of all rows) for rows xᵢ drawn with replacement from the rows (n, p), one for each weight."""
    n, count, centred = len(rows), len(weights), rows - rows.mean(axis=0)
    if count * GATHER_RATIO <= n:
        drawn = rng.integers(n, size=(draws, count))
        return np.asarray([(weights[:, None] * centred[positions]).sum(axis=0) for positions in drawn])
    repeated = np.tile(weights, BLOCK_DRAWS)

    def factors(size: int) -> NDArray[np.float32]:
        """(size, n) the weight of every row in each draw."""
        drawn = rng.integers(n, size=(size, count)) + n * np.arange(size)[:, None]
        return np.bincount(drawn.ravel(), repeated[: drawn.size], n * size).reshape(size, n).astype(np.float32)

    return _products((factors(b - a) for a, b in blocks(draws, BLOCK_DRAWS)), centred)


def normal(factor: Array, draws: int, rng: np.random.Generator) -> Array:
    """(draws, p) draws of N(0, A Aᵀ) for a factor A (p, r)."""
    with single_threaded_blas():
        return np.asarray(rng.standard_normal((draws, factor.shape[1])) @ factor.T)


def square_root(covariance: Array) -> Array:
    """(p, p) a factor A of the covariance A Aᵀ."""
    lengths, directions = eigh(covariance)
    return np.asarray(directions * np.sqrt(np.maximum(lengths, 0.0)))


def signed(parts: Array, draws: int, rng: np.random.Generator) -> Array:
    """(draws, p) sums of the parts (n, p), each with a sign drawn at random."""
    signs = (
        rng.integers(0, 2, (b - a, len(parts)), dtype=np.int8).astype(np.float32) * 2 - 1 for a, b in blocks(draws, BLOCK_DRAWS)
    )
    return _products(signs, parts)


def _products(factors: Iterable[NDArray[np.float32]], rows: Array) -> Array:
    """Blocks of factors (b, n), drawn in turn, times the rows (n, p), by several threads."""
    values, products = rows.astype(np.float32), list[Array]()
    rest = iter(factors)
    while drawn := list(islice(rest, BLOCKS_AT_ONCE)):  # all blocks together would take draws · n numbers
        parts: list[Array] = [np.empty(0)] * len(drawn)
        run_all([partial(_multiply, parts, k, drawn[k], values) for k in range(len(drawn))], blas=True)
        products += parts
    return np.concatenate(products)


def _multiply(parts: list[Array], k: int, factors: NDArray[np.float32], rows: NDArray[np.float32]) -> None:
    parts[k] = (factors @ rows).astype(np.float64)


def joined(observed: Array, drawn: Array, counts: Array) -> tuple[Array, Array]:
    """The p-value of all statistics together, (q,), and the p-value of each, (q, K), for every observation.

    The p-value of a value is the proportion of the observation and the draws that are at least as large.

    Parameters
    ----------
    observed : (q, K) observed statistics.
    drawn : (B, K) statistics under the null hypothesis.
    counts : (K,) weights of the statistics.
    """
    bounds, ordered, size = drawn * (1 - TIE_TOLERANCE), np.sort(drawn, axis=0), len(drawn) + 1
    columns = range(drawn.shape[1])
    above = np.stack([len(drawn) - np.searchsorted(ordered[:, k], bounds[:, k]) for k in columns], axis=1)
    below = np.stack([np.searchsorted(ordered[:, k], observed[:, k] * (1 - TIE_TOLERANCE)) for k in columns], axis=1)
    each = (size - below) / size
    limits = (counts / each).sum(axis=1) * (1 - 1e-12)
    evidence = ((counts / ((above + (values >= bounds)) / size)).sum(axis=1) for values in observed)
    return np.asarray([(1 + (sums >= limit).sum()) / size for sums, limit in zip(evidence, limits, strict=True)]), each


def quadratic_p_values(observed: Array, forms: Array, covariance: Array) -> Array:
    """(K,) p-values of quadratic forms of a normal difference.

    Parameters
    ----------
    observed : (K,) values of the forms.
    forms : (K, p) coefficients of the forms.
    covariance : (p, p) covariance of the difference under the null hypothesis.
    """
    p_values = np.empty(len(forms))
    for k, (value, form) in enumerate(zip(observed, forms, strict=True)):
        used = form > 0
        root = np.sqrt(form[used])
        coefficients = np.linalg.eigvalsh(root[:, None] * covariance[np.ix_(used, used)] * root)
        p_values[k] = upper_tail(float(value), np.maximum(coefficients, 0.0))
    return p_values
