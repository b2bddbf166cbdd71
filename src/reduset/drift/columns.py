"""Tests of every column for changes of shift, spread and tails.

The reference cuts each column into bins: at quantiles, which are closer together in the tails, or at its values if a column has few
values. Ties are therefore handled exactly. Every statistic is a mean of scores of bins. The scores are ranks (shift), squares of
centred ranks (spread), and indicators beyond eleven points from the lowest 1 % to the highest 1 % (tails). Each statistic is
transformed to a normal scale. Proportions use the arcsine, which is close to normal for small samples too. The largest statistic is
compared with draws from their joint normal distribution. Holm's correction covers all columns.

**Scores of single columns** are further coordinates of a row, so that the joint test detects a change of one column among many:

    u(x) = F(x) − 1/2,    v(x) = u(x)² − E u²,    T₁ = max δ_u²/σ_u²,    T₂ = max (δ_u²/σ_u² + δ_v²/σ_v²)    over columns

F is the distribution function of a column by its bins (`ColumnBins`), with ties at their mid-rank. The mean of u is Wilcoxon's
statistic of shift, and the mean of v is Mood's statistic of spread. δ is the difference of the means of both samples. Kernel
statistics add up all columns, so that noise of the other columns hides a change of one column. The largest standardised score
detects it. Scores are bounded, so that p-values beyond the draws follow from Bernstein's inequality. O(n·d) time. Means need only
the proportions of the bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from reduset._engine import LabelSums, column_of, device_of, to_device_of
from reduset._types import Array, Floats

MAX_DISTINCT = 64  # columns with at most this number of distinct values are cut at these values
INNER = np.linspace(0.02, 0.98, 97)
OUTER = np.array([0.0005, 0.001, 0.0025, 0.005, 0.01])
CUTS = np.concatenate([OUTER, INNER, 1 - OUTER[::-1]])
BEYOND = (0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99)
MIN_EXPECTED = 5.0  # rows on both sides of a point, in both samples, for a test of the proportion beyond it
DRAWS = 9999

MAX_COLUMNS = 100  # wider tables have no scores, because the covariance of all coordinates would be too large
KINDS = 2  # shift and spread
VARIANCES = (1 / 12, 1 / 180)  # of the scores of a continuous column
ROUNDING = 1e-6  # smaller differences count as 0, because draws are in single precision and equal samples must be ties
RIDGE = 0.012  # this part of VARIANCES is added to each variance, so that rare discrete values do not dominate the maximum


@dataclass(frozen=True)
class ColumnBins:
    """The bins of each column: d arrays of edges, or of values if ``listed``."""

    edges: tuple[Array, ...]
    listed: tuple[bool, ...]

    @classmethod
    def of(cls, rows: Floats, fewest: int = 1) -> ColumnBins:
        """By the quantiles of these rows, or by their values. Each edge represents at least ``fewest`` rows."""
        edges, listed = [], []
        for k in range(rows.shape[1]):
            column = np.sort(rows[:, k].astype(np.float64))
            values, counts = np.unique(column, return_counts=True)
            listed.append(len(values) <= MAX_DISTINCT and bool((counts >= fewest).any()))
            edges.append(values[counts >= fewest] if listed[-1] else _cuts(column, fewest))
        return cls(tuple(edges), tuple(listed))

    def shares(self, rows: Floats, weights: Array) -> tuple[Array, ...]:
        """The proportion of the weight (n,) in every bin of each column. e edges have 2e + 1 bins: below, at and between edges."""
        sums = []
        with device_of(rows):
            for k, edges in enumerate(self.edges):
                positions = self.positions(rows, k)
                sums.append(LabelSums(positions, 2 * len(edges) + 1).of(to_device_of(positions, weights)))
        return tuple(sums)

    def positions(self, rows: Floats, k: int) -> Any:
        """(n,) the bin of every row in column k, on the device of the rows."""
        column = column_of(rows, k)
        cuts = to_device_of(column, self.edges[k])
        below = np.searchsorted(cuts, column, side="left")
        at = below < len(cuts)
        at[at] = cuts[below[at]] == column[at]
        return 2 * below + at

    def quantile(self, k: int, shares: Array, q: float) -> float:
        """The quantile of column k: an edge, or linear interpolation between two edges."""
        edges, ends = self.edges[k], np.cumsum(shares)
        b = int(np.searchsorted(ends, q * ends[-1] * (1 - 1e-12)))
        if b % 2:
            return float(edges[b // 2])
        low, high = edges[max(b // 2 - 1, 0)], edges[min(b // 2, len(edges) - 1)]
        fraction = (q * ends[-1] - (ends[b] - shares[b])) / max(float(shares[b]), 1e-300)
        return float(low + (high - low) * np.clip(fraction, 0.0, 1.0))


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
        values = tuple(_ranks(proportions) for proportions in shares)
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


def _ranks(shares: Array) -> Array:
    """(2, bins) shift and spread scores of bins with these proportions."""
    shares = shares / shares.sum()
    shift = np.cumsum(shares) - shares / 2 - 0.5
    spread = np.square(shift)
    scores = np.stack([shift, spread - spread @ shares])
    return scores.astype(np.float32).astype(np.float64)  # a file stores single precision


def _by_kind(pairs: list[Array]) -> Array:
    """(2·d,) from a shift and a spread for every column: all shifts, then all spreads."""
    return np.stack(pairs, axis=1).ravel()


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """The difference of one column from the reference.

    Attributes
    ----------
    name, position : str and int
        Name and index of the column.
    p_value, p_alone : float
        The p-value adjusted for the number of columns (Holm), and the p-value of this column alone.
    kind : str
        The most significant of "shift", "spread" and "tails". "none" for constant columns.
    direction : str
        The change in words, such as "higher".
    median, middle : pairs of float
        The median and the interquartile range, before and after.
    """

    name: str
    position: int
    p_value: float
    p_alone: float
    kind: str
    direction: str
    median: tuple[float, float]
    middle: tuple[float, float]

    def __str__(self) -> str:
        medians = f"median {self.median[0]:.4g} before, {self.median[1]:.4g} now"
        middles = f"middle half {self.middle[0]:.4g} wide before, {self.middle[1]:.4g} now"
        return f"{self.name}: {self.direction} (p = {self.p_value:.2g}); {medians}; {middles}"


def changed_columns(
    bins: ColumnBins,
    before: tuple[Array, ...],
    after: tuple[Array, ...],
    rows: tuple[float, float],
    names: tuple[str, ...],
    rng: np.random.Generator,
    shift_alone: bool = False,
) -> list[ColumnChange]:
    """A test of every column, the most significant first.

    Parameters
    ----------
    before, after : Proportions of the bins of each column.
    rows : Sizes of both samples; effective sizes for weighted rows.
    shift_alone : Test shifts only, for a reference of atoms, because their spread differs from the spread of the rows.
    """
    tests = [_tested(b, a, rows, rng, shift_alone) for b, a in zip(before, after, strict=True)]
    alone = np.asarray([p for p, _, _ in tests])
    adjusted = _holm(alone)
    changes = []
    for k, (p, kind, direction) in enumerate(tests):
        medians = tuple(bins.quantile(k, shares[k], 0.5) for shares in (before, after))
        middles = tuple(bins.quantile(k, shares[k], 0.75) - bins.quantile(k, shares[k], 0.25) for shares in (before, after))
        changes.append(ColumnChange(names[k], k, float(adjusted[k]), p, kind, direction, medians, middles))  # type: ignore[arg-type]
    return sorted(changes, key=lambda change: (change.p_value, change.p_alone))


def _cuts(column: Array, fewest: int) -> Array:
    """Quantiles of a sorted column. Each is the mean of ``fewest`` values around it."""
    n, wide = len(column), min(fewest, len(column))
    first = np.clip((CUTS * n).astype(np.int64) - wide // 2, 0, n - wide)
    sums = np.concatenate([[0.0], np.cumsum(column - column[0])])
    return np.unique((sums[first + wide] - sums[first]) / wide + column[0] if wide > 1 else column[first])


def _tested(
    before: Array, after: Array, rows: tuple[float, float], rng: np.random.Generator, shift_alone: bool
) -> tuple[float, str, str]:
    """The p-value of one column, and the kind and direction of its largest change."""
    n, new = rows
    both = (n * before + new * after) / (n + new)
    scores, kinds = _scores(both, min(n, new))
    if shift_alone:
        scores, kinds = scores[:1], kinds[:1]
    if not len(scores):
        return 1.0, "none", "has one value"
    noise = np.sqrt(1 / n + 1 / new)
    centred = scores - (scores @ both)[:, None]
    deviations = np.sqrt(np.square(centred) @ both)
    z = (scores @ (after - before)) / (deviations * noise)
    is_proportion = np.asarray([kind == "tails" for kind in kinds])
    angles = 2 * (np.arcsin(np.sqrt(np.clip(scores @ after, 0, 1))) - np.arcsin(np.sqrt(np.clip(scores @ before, 0, 1)))) / noise
    z = np.where(is_proportion, angles, z)
    correlation = (centred * both) @ centred.T / np.outer(deviations, deviations)
    lengths, directions = np.linalg.eigh(correlation)
    drawn = rng.standard_normal((DRAWS, len(lengths))) @ (directions * np.sqrt(np.maximum(lengths, 0.0))).T
    largest = float(np.abs(z).max())
    above = int((np.abs(drawn).max(axis=1) >= largest).sum())
    p = (1 + above) / (1 + DRAWS)
    if not above:  # beyond all draws, use a bound that holds for any correlation
        p = min(p, 2 * len(z) * float(ndtr(-largest)))
    best = int(np.abs(z).argmax())
    return p, *_kind_and_direction(best, z, kinds, scores, both)


def _scores(shares: Array, fewest: float) -> tuple[Array, list[str]]:
    """(K, bins) the scores of each statistic for each bin, and the kinds of the statistics; empty for a constant column."""
    occupied = shares > 0
    if occupied.sum() < 2:
        return np.empty((0, len(shares))), []
    ends = np.cumsum(shares)
    middle = (ends - shares / 2) / ends[-1] - 0.5
    scores, kinds = [middle], ["shift"]
    spread = np.square(middle)
    if np.ptp(spread[occupied]) > 1e-12:
        scores.append(spread)
        kinds.append("spread")
    used = set()
    for q in BEYOND:
        b = int(np.searchsorted(ends, q * ends[-1] * (1 - 1e-9)))
        beyond = float(ends[b] / ends[-1])
        if b in used or min(beyond, 1 - beyond) * fewest < MIN_EXPECTED:
            continue
        used.add(b)
        scores.append((np.arange(len(shares)) <= b).astype(np.float64))
        kinds.append("tails")
    return np.asarray(scores), kinds


def _kind_and_direction(best: int, z: Array, kinds: list[str], scores: Array, shares: Array) -> tuple[str, str]:
    """The kind and direction of the largest statistic. A change of a proportion near the middle counts as a shift."""
    up = z[best] > 0
    if kinds[best] == "shift":
        return "shift", "higher" if up else "lower"
    if kinds[best] == "spread":
        return "spread", "wider spread" if up else "narrower spread"
    below = float(scores[best] @ shares)
    if 0.15 < below < 0.85:
        return "shift", "lower" if up else "higher"
    if below <= 0.15:
        return "tails", "more low values" if up else "fewer low values"
    return "tails", "fewer high values" if up else "more high values"


def _holm(p_values: Array) -> Array:
    """P-values adjusted for their number (Holm 1979)."""
    order, count = np.argsort(p_values), len(p_values)
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(np.maximum.accumulate((count - np.arange(count)) * p_values[order]), 1.0)
    return adjusted
