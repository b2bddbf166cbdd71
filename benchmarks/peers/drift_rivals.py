"""Two-sample tests of the comparison in `drift_power`: (X, Y, seed) → p-value, each with a few matrix products.

A permutation assigns m of the m + n rows to X. With a its indicator, K without its diagonal and r = K 1, one product K a gives all
terms of the unbiased MMD²: Sxx = aᵀKa, Sxy = aᵀr − Sxx, Syy = 1ᵀr − 2 aᵀr + Sxx. B permutations are one matrix product, in
O((m + n)² B).

- The full test at one bandwidth (Gretton et al. 2012), a Gaussian whose width is a multiple of the median of the pooled distances.
  It is computed at all widths of the ladder; the best one is known only afterwards.
- MMDAgg (Schrab et al., JMLR 2023): Laplace and Gaussian at 10 widths each, geometrically from half the least to twice the
  greatest distance, with equal weights. Its p-value is the proportion of a second set of permutations whose smallest p-value over
  the kernels is as small; these p-values come from a first set. It rejects exactly where the paper's bisection does.
- MMD-FUSE (Biggs, Schrab and Gretton 2023): Laplace and Gaussian at 10 widths each, evenly from half the 5 % quantile of the
  distances to twice the 95 % one; the statistic is the log of the mean of exp(λ MMD² / √N), N the mean square of the kernel. The
  paper sets λ = √(n (n − 1)); its published code sets n (n − 1), nearly the maximum. Both are here.
- The Kolmogorov-Smirnov test of every column: the smallest p-value times the number of columns, as Holm's procedure rejects any.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from scipy.stats import ks_2samp

LADDER = tuple(2.0 ** np.arange(-5, 2.5, 0.5))  # widths of the full test, relative to the median distance
PERMUTATIONS = 500
WITHIN = 1000  # permutations for MMDAgg's p-values of the kernels
WIDTHS = 10

Test = Callable[[np.ndarray, np.ndarray, int], float]


def labellings(m: int, n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Indicators of X as columns: the true one, then ``count`` random ones."""
    order = rng.random((count + 1, m + n)).argsort(axis=1)
    order[0] = np.arange(m + n)
    return np.ascontiguousarray((order < m).T.astype(np.float32))


def squares(K: np.ndarray, chosen: np.ndarray, m: int) -> np.ndarray:
    """The unbiased MMD² of each labelling; K is overwritten. Its mean is subtracted, which changes only the rounding."""
    n = len(K) - m
    np.fill_diagonal(K, 0)
    K -= K.sum(dtype=np.float64) / (len(K) * (len(K) - 1))
    np.fill_diagonal(K, 0)
    sums = K.sum(axis=1)
    within = np.einsum("ij,ij->j", chosen, K @ chosen)
    margin = sums @ chosen
    return within / (m * (m - 1)) + (sums.sum() - 2 * margin + within) / (n * (n - 1)) - 2 * (margin - within) / (m * n)


def p_value(values: np.ndarray) -> float:
    """The p-value of the first value among all."""
    return float(np.mean(values >= values[0]))


def distances(X: np.ndarray, Y: np.ndarray, metric: str) -> np.ndarray:
    Z = np.concatenate([X, Y])
    return cdist(Z, Z, metric).astype(np.float32)


def at_widths(X: np.ndarray, Y: np.ndarray, seed: int, factors: tuple[float, ...] = LADDER) -> list[float]:
    """p-values of the full test at every width of the ladder, without a correction for their number."""
    apart = distances(X, Y, "sqeuclidean")
    median = np.sqrt(np.median(apart[np.triu_indices(len(apart), 1)]))
    chosen = labellings(len(X), len(Y), PERMUTATIONS, np.random.default_rng(seed))
    return [p_value(squares(np.exp(apart / (-2 * (factor * median) ** 2)), chosen, len(X))) for factor in factors]


def at_width(factor: float) -> Test:
    return lambda X, Y, seed: at_widths(X, Y, seed, (factor,))[0]


def mmdagg(X: np.ndarray, Y: np.ndarray, seed: int) -> float:
    m, rows = len(X), []
    chosen = labellings(m, len(Y), WITHIN + PERMUTATIONS, np.random.default_rng(seed))
    for metric, power in (("cityblock", 1), ("euclidean", 2)):
        apart = distances(X, Y, metric)
        between = np.sort(apart[: min(m, 500), m : m + 500], axis=None)
        least = between[0] if between[0] >= 0.1 else max(between[int(0.05 * between.size)], 0.1)
        for width in np.geomspace(least / 2, max(between[-1], 0.3) * 2, WIDTHS):
            rows.append(squares(np.exp(-((apart / width) ** power)), chosen, m))
    found = np.array(rows)
    first = np.sort(found[:, : WITHIN + 1], axis=1)
    second = np.column_stack([found[:, 0], found[:, WITHIN + 1 :]])
    below = np.array([np.searchsorted(own, values, side="left") for own, values in zip(first, second, strict=True)])
    smallest = ((WITHIN + 1 - below) / (WITHIN + 1)).min(axis=0)
    return p_value(-smallest)


def fused(X: np.ndarray, Y: np.ndarray, seed: int) -> tuple[float, float]:
    """p-values of MMD-FUSE with the λ of the paper, and with that of its code."""
    m, fewer, rows = len(X), min(len(X), len(Y)), []
    chosen = labellings(m, len(Y), PERMUTATIONS, np.random.default_rng(seed))
    for metric in ("cityblock", "euclidean"):
        apart = distances(X, Y, metric)
        pairs = apart[np.triu_indices(len(apart))]
        pairs[pairs == 0] = np.median(pairs)
        at = [int(0.05 * pairs.size), int(0.95 * pairs.size)]
        low, high = np.partition(pairs, at)[at]
        for width in np.linspace(low / 2, high * 2, WIDTHS):
            K = np.exp(apart * (-np.sqrt(2) / width)) if metric == "cityblock" else np.exp((apart / width) ** 2 / -2)
            pairs_square = (np.vdot(K, K) - len(K)) / (fewer * (fewer - 1))
            rows.append(squares(K, chosen, m) / np.sqrt(pairs_square))
    most = fewer * (fewer - 1)
    paper, code = (p_value(logsumexp(scale * np.array(rows), axis=0)) for scale in (np.sqrt(most), most))
    return paper, code


def mmdfuse(X: np.ndarray, Y: np.ndarray, seed: int) -> float:
    return fused(X, Y, seed)[0]


def mmdfuse_code(X: np.ndarray, Y: np.ndarray, seed: int) -> float:
    return fused(X, Y, seed)[1]


def columns_ks(X: np.ndarray, Y: np.ndarray, seed: int) -> float:
    return min(1.0, X.shape[1] * min(ks_2samp(x, y, method="asymp").pvalue for x, y in zip(X.T, Y.T, strict=True)))


RIVALS: dict[str, Test] = {
    **{f"full, {factor:.3g} medians": at_width(factor) for factor in LADDER},
    "MMDAgg": mmdagg,
    "MMD-FUSE": mmdfuse,
    "MMD-FUSE, λ of its code": mmdfuse_code,
    "KS, Holm": columns_ks,
}


def p_values(X: np.ndarray, Y: np.ndarray, seed: int) -> dict[str, float]:
    """p-values of all tests but ctt, which is in another environment."""
    names = list(RIVALS)
    paper, code = fused(X, Y, seed)
    values = [*at_widths(X, Y, seed), mmdagg(X, Y, seed), paper, code, columns_ks(X, Y, seed)]
    return dict(zip(names, values, strict=True))
