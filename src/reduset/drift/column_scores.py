"""Scores of single columns as further coordinates of a row, so that the joint test detects a change of one column among many.

    u(x) = F(x) − 1/2,    v(x) = u(x)² − E u²,    T₁ = max δ_u²/σ_u²,    T₂ = max (δ_u²/σ_u² + δ_v²/σ_v²)    over columns

F is the distribution function of a column by its bins (`ColumnBins`), with ties at their mid-rank. The mean of u is Wilcoxon's
statistic of shift, and the mean of v is Mood's statistic of spread. δ is the difference of the means of both samples. Kernel
statistics add up all columns, so that noise of the other columns hides a change of one column. The largest standardised score
detects it. Scores are bounded, so that p-values beyond the draws follow from Bernstein's inequality. O(n·d) time. Means need only
the proportions of the bins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset._types import Array, Floats
from reduset.drift.columns import ColumnBins

MAX_COLUMNS = 100  # wider tables have no scores, because the covariance of all coordinates would be too large
KINDS = 2  # shift and spread
VARIANCES = (1 / 12, 1 / 180)  # of the scores of a continuous column
ROUNDING = 1e-6  # smaller differences count as 0, because draws are in single precision and equal samples must be ties
RIDGE = 0.012  # this part of VARIANCES is added to each variance, so that rare discrete values do not dominate the maximum


@dataclass(frozen=True)
class ColumnScores:
    """Scores of the bins of every column, fixed before samples are compared.

    Attributes
    ----------
    values : d arrays (2, bins) of shift and spread scores.
    variances : (2·d,) variances of the scores, all shifts before all spreads. 0 for constant columns.
    """

    values: tuple[Array, ...]
    variances: Array

    @classmethod
    def of(cls, shares: tuple[Array, ...]) -> ColumnScores | None:
        """From the proportions of the bins; None for more than ``MAX_COLUMNS`` columns."""
        if len(shares) > MAX_COLUMNS:
            return None
        values = tuple(_scores(proportions) for proportions in shares)
        return cls(values, _by_kind([np.square(scores) @ weights for scores, weights in zip(values, shares, strict=True)]))

    @property
    def size(self) -> int:
        """The number 2·d of coordinates."""
        return KINDS * len(self.values)

    def mean(self, shares: tuple[Array, ...]) -> Array:
        """(2·d,) means of the scores of rows with these proportions of the bins."""
        return _by_kind([scores @ weights for scores, weights in zip(self.values, shares, strict=True)])

    def rows(self, bins: ColumnBins, rows: Floats) -> Array:
        """(n, 2·d) the scores of every row."""
        scores = [values[:, bins.positions(rows, k)] for k, values in enumerate(self.values)]
        return np.asarray(np.stack(scores, axis=1).reshape(self.size, len(rows)).T)

    def statistics(self, differences: Array) -> Array:
        """(…, 2) T₁ and T₂ of differences (…, 2·d)."""
        ridges = RIDGE * np.repeat(VARIANCES, len(self.values))
        factors = np.where(self.variances > 0, 1 / (self.variances + ridges), 0.0)
        exact = np.where(np.abs(differences) > ROUNDING, differences, 0.0)
        ratios = (np.square(exact) * factors).reshape(*differences.shape[:-1], KINDS, -1)
        return np.stack([ratios[..., 0, :].max(axis=-1), ratios.sum(axis=-2).max(axis=-1)], axis=-1)

    def beyond_draws(self, differences: Array, variances: Array, rows: float) -> Array:
        """(2,) bounds on the p-values of the largest shift and of the largest score (Bernstein; Bonferroni over columns).

        Parameters
        ----------
        differences : (2·d,) observed differences.
        variances : (2·d,) variances of the differences under the null hypothesis.
        rows : Size of the smaller sample.
        """
        sizes = np.abs(differences)
        exponents = np.square(sizes) / (2 * (np.maximum(variances, 1e-300) + sizes / (3 * rows)))
        bounds = np.where(self.variances > 0, 2 * np.exp(-exponents), 1.0).reshape(KINDS, -1)
        return np.minimum([bounds.shape[1] * bounds[0].min(), bounds.size * bounds.min()], 1.0)


def _scores(shares: Array) -> Array:
    """(2, bins) shift and spread scores of bins with these proportions."""
    shares = shares / shares.sum()
    shift = np.cumsum(shares) - shares / 2 - 0.5
    spread = np.square(shift)
    scores = np.stack([shift, spread - spread @ shares])
    return scores.astype(np.float32).astype(np.float64)  # a file stores single precision


def _by_kind(pairs: list[Array]) -> Array:
    """(2·d,) from a shift and a spread for every column: all shifts, then all spreads."""
    return np.stack(pairs, axis=1).ravel()
