"""Scores of single columns among the coordinates of a row, so that a change of one column of many is part of the joint test.

    u(x) = F(x) − 1/2,    v(x) = u(x)² − E u²,    T₁ = max δ_u²/σ_u²,    T₂ = max (δ_u²/σ_u² + δ_v²/σ_v²)    over columns

F is the distribution function of a column by its bins (`ColumnBins`), ties at their mid-rank. The mean of u is Wilcoxon's statistic
of shift, that of v Mood's statistic of spread, and δ is the difference of the means of both samples. The kernel statistics add up
all columns, and a change of one column is lost in the noise of the others; the largest standardised score keeps it. Scores are
bounded, so that p-values beyond the draws follow from Bernstein's inequality. O(n·d) time; means need the shares of the bins alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reduset._types import Array, Floats
from reduset.drift.columns import ColumnBins
from reduset.drift.statistic import Statistic

if TYPE_CHECKING:
    from reduset.drift.feature_map import FeatureMap

MAX_COLUMNS = 100  # of wider tables no scores are kept: the covariance of all coordinates would outgrow the rest
WEIGHTS = (1.0, 0.5)  # of T₁ and T₂ in the joint statistic, as in `kernel_statistics.FORMS`
KINDS = 2  # shift and spread
VARIANCES = (1 / 12, 1 / 180)  # of the scores of a continuous column
ROUNDING = 1e-6  # draws are in single precision: smaller differences are 0, so that equal samples are ties
RIDGE = 0.012  # of these, added to each variance, so that rare values of discrete columns do not dominate the maximum


@dataclass(frozen=True)
class ColumnScores:
    """Scores of the bins of every column, fixed before samples are compared.

    Attributes
    ----------
    bins : where columns are cut
    values : d arrays (2, bins) of shift and spread scores
    variances : (2·d,) of the scores, all shifts before all spreads; 0 for constant columns
    """

    bins: ColumnBins
    values: tuple[Array, ...]
    variances: Array

    @classmethod
    def of(cls, bins: ColumnBins, shares: tuple[Array, ...]) -> ColumnScores | None:
        """From the shares of the bins; None for more than ``MAX_COLUMNS`` columns."""
        if len(shares) > MAX_COLUMNS:
            return None
        values = tuple(_scores(each) for each in shares)
        return cls(bins, values, _by_kind([np.square(scores) @ each for scores, each in zip(values, shares, strict=True)]))

    @property
    def size(self) -> int:
        """The number 2·d of coordinates."""
        return KINDS * len(self.values)

    def mean(self, shares: tuple[Array, ...]) -> Array:
        """(2·d,) means of the scores of rows with these shares of the bins."""
        return _by_kind([scores @ each for scores, each in zip(self.values, shares, strict=True)])

    def rows(self, rows: Floats) -> Array:
        """(n, 2·d) the scores of every row."""
        found = [scores[:, self.bins.positions(rows, k)] for k, scores in enumerate(self.values)]
        return np.asarray(np.stack(found, axis=1).reshape(self.size, len(rows)).T)

    def statistics(self, differences: Array) -> Array:
        """(…, 2) T₁ and T₂ of differences (…, 2·d)."""
        ridges = RIDGE * np.repeat(VARIANCES, len(self.values))
        factors = np.where(self.variances > 0, 1 / (self.variances + ridges), 0.0)
        exact = np.where(np.abs(differences) > ROUNDING, differences, 0.0)
        ratios = (np.square(exact) * factors).reshape(*differences.shape[:-1], KINDS, -1)
        return np.stack([ratios[..., 0, :].max(axis=-1), ratios.sum(axis=-2).max(axis=-1)], axis=-1)

    def beyond_draws(self, differences: Array, variances: Array, rows: float) -> Array:
        """(2,) bounds of the p-values of the largest shift and of the largest score (Bernstein; Bonferroni over columns).

        Parameters
        ----------
        differences : (2·d,); variances : (2·d,) of these under the null hypothesis
        rows : of the smaller sample
        """
        far = np.abs(differences)
        exponents = np.square(far) / (2 * (np.maximum(variances, 1e-300) + far / (3 * rows)))
        bounds = np.where(self.variances > 0, 2 * np.exp(-exponents), 1.0).reshape(KINDS, -1)
        return np.minimum([bounds.shape[1] * bounds[0].min(), bounds.size * bounds.min()], 1.0)


class ColumnStatistics(Statistic):
    """T₁ and T₂, if there are scores of columns."""

    def weights(self, features: FeatureMap) -> Array:
        return np.asarray(WEIGHTS if features.scores is not None else ())

    def values(self, features: FeatureMap, differences: Array) -> Array:
        if features.scores is None:
            return np.empty((*differences.shape[:-1], 0))
        return features.scores.statistics(differences[..., features.column_part])

    def p_values_beyond_draws(self, features: FeatureMap, difference: Array, covariance: Array, rows: tuple[float, float]) -> Array:
        if features.scores is None:
            return np.empty(0)
        part = features.column_part
        return features.scores.beyond_draws(difference[part], np.diag(covariance)[part], min(rows))


def _scores(shares: Array) -> Array:
    """(2, bins) shift and spread scores of bins with these shares."""
    shares = shares / shares.sum()
    shift = np.cumsum(shares) - shares / 2 - 0.5
    spread = np.square(shift)
    found = np.stack([shift, spread - spread @ shares])
    return found.astype(np.float32).astype(np.float64)  # as a file keeps it


def _by_kind(pairs: list[Array]) -> Array:
    """(2·d,) from a shift and a spread of every column: all shifts, then all spreads."""
    return np.stack(pairs, axis=1).ravel()
