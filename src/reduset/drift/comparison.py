"""The comparison of two samples: the difference of their means, its null distribution, and sums by cell and column.

- `pooled`: both samples are available. The coordinates are fitted to the shuffled rows of both. Labels are permuted, and the test
  is exact at any sample size.
- `stored`: one sample is a stored reference. The coordinates were fitted to other rows. Null differences are drawn from the random
  sample in the reference, or from a normal distribution if many rows are tested or no rows were kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset._types import Array, Floats
from reduset.drift.columns import ColumnBins
from reduset.drift.feature_map import FeatureMap, column_units, median_distance
from reduset.drift.null_distribution import normal, permuted, resampled, signed, square_root
from reduset.drift.reference import StoredReference
from reduset.drift.regions import Cells
from reduset.drift.sample import Sample
from reduset.drift.statistics import JointStatistic, Statistic

MAX_PERMUTED = 12_288  # rows of both samples, up to which all rows are permuted
FITTED_ROWS = 4096  # for the coordinates
SAMPLED_ROWS = 8192  # random rows that represent larger samples
MIN_WEIGHTED = 200  # effective rows, from which on weighted rows determine their own covariance
MAX_RESAMPLED = 2000  # rows of the smaller sample, up to which its mean is not taken as normal


@dataclass(frozen=True)
class DriftComparison:
    """The ingredients of a test.

    Attributes
    ----------
    features : The coordinates.
    before, after : (p,) means of the coordinates in the reference and in the new rows.
    drawn : (B, p) differences drawn under the null hypothesis.
    covariance : (p, p) covariance of the difference under the null hypothesis.
    exact : True if the draws are permutations. No p-value is then below 1 / (B + 1).
    rows : Sizes of both samples; effective sizes for weighted rows.
    cells, shares : Sums by cell, and proportions of the bins of the columns, before and after.
    sample : (s, d) random rows of both samples.
    names : Names of the columns.
    errors : (S,) bound on the error of the reference at each scale. The difference is shortened by it.
    n_reference : Number of rows of the reference, including the rows that determined the coordinates.
    joint : The statistics of the test at these coordinates.
    """

    features: FeatureMap
    before: Array
    after: Array
    drawn: Array
    covariance: Array
    exact: bool
    rows: tuple[float, float]
    cells: tuple[Cells, Cells]
    shares: tuple[tuple[Array, ...], tuple[Array, ...]]
    sample: Floats
    names: tuple[str, ...]
    errors: Array
    n_reference: float
    joint: JointStatistic

    @property
    def difference(self) -> Array:
        """(p,) after minus before, shortened by the error of the reference."""
        return self.features.less(self.after - self.before, self.errors)


def pooled(
    old: Sample,
    new: Sample,
    size: int,
    scales: str | None,
    draws: int,
    statistics: tuple[Statistic, ...],
    rng: np.random.Generator,
) -> DriftComparison:
    """The comparison of two samples that are both available."""
    old, new = old.loaded(), new.loaded()
    rows = np.concatenate([old.rows, new.rows])
    shuffled = rng.permutation(len(rows))[:FITTED_ROWS]  # so that the coordinates do not depend on the labels
    fitted = np.asarray(rows[shuffled], np.float64)
    units = column_units(rows, scales)
    atoms = np.unique(fitted[:size], axis=0)
    bins = ColumnBins.of(rows)
    features = FeatureMap.fitted(fitted, atoms, units, median_distance(rows, units), bins)
    del fitted
    weights = np.concatenate([old.weights, new.weights])
    n, count = old.effective, new.effective
    shares = [bins.shares(sample.rows, sample.weights) for sample in (old, new)]
    features = features.with_scores(tuple((n * b + count * a) / (n + count) for b, a in zip(*shares, strict=True)))
    before, after = (
        features.mean(part.rows, part.weights, bin_shares) for part, bin_shares in zip((old, new), shares, strict=True)
    )
    noise = 1 / n + 1 / count
    exact = old.is_uniform and new.is_uniform and len(rows) <= MAX_PERMUTED
    sample = rows if len(rows) <= MAX_PERMUTED else rows[np.sort(rng.choice(len(rows), SAMPLED_ROWS, replace=False))]
    coordinates = features.rows(sample)
    centre = coordinates.mean(axis=0)
    covariance = noise * np.cov(coordinates, rowvar=False, bias=True).reshape(features.size, features.size)
    if exact:
        drawn = permuted(coordinates, new.size, draws, rng)
    elif old.is_uniform and new.is_uniform:
        single = normal(square_root(covariance / noise), draws, rng)
        drawn = _mean_differences(coordinates, single, min(n, count), max(n, count), rng)
    elif len(rows) <= MAX_PERMUTED:
        parts = weights[:, None] * (coordinates - centre)
        drawn, covariance = signed(parts, draws, rng), parts.T @ parts
    else:
        centre = (n * before + count * after) / (n + count)
        covariance = weighted_covariance(features, old, centre) + weighted_covariance(features, new, centre)
        drawn = normal(square_root(covariance), draws, rng)
    old_rows, new_rows = np.split(rows, [old.size])
    return DriftComparison(
        features,
        before,
        after,
        drawn,
        covariance,
        exact,
        (n, count),
        (Cells.of(features, old_rows, old.weights), Cells.of(features, new_rows, new.weights)),
        (shares[0], shares[1]),
        sample,
        old.names,
        np.zeros(len(features.octaves)),
        n,
        JointStatistic(features, statistics),
    )


def stored(reference: StoredReference, new: Sample, draws: int, statistics: tuple[Statistic, ...], seed: int) -> DriftComparison:
    """The comparison of new rows with a stored reference, which keeps a random sample of its rows, or no rows."""
    features, n, count = reference.features, reference.rows, new.effective
    shares = features.bins.shares(new.rows, new.weights)
    after = features.mean(new.rows, new.weights, shares)
    covariance = reference.covariance * (1 / n + 1 / count)
    if not new.is_uniform:
        if count >= MIN_WEIGHTED:  # enough rows to estimate their own covariance, which may depend on the weights
            covariance = reference.covariance / n + weighted_covariance(features, new, reference.mean)
        drawn = normal(square_root(covariance), draws, np.random.default_rng(seed))
        if count < MIN_WEIGHTED and len(reference.sample) and new.size <= MAX_PERMUTED:
            noise = reference.unit_noise(draws, seed) / np.sqrt(n)
            drawn = resampled(reference.coordinates, new.weights, draws, np.random.default_rng([seed, 1])) + noise
    else:
        coordinates = reference.coordinates if count <= MAX_RESAMPLED else np.empty((0, features.size))
        drawn = _mean_differences(coordinates, reference.unit_noise(draws, seed), count, n, np.random.default_rng([seed, 1]))
    return DriftComparison(
        features,
        reference.mean,
        after,
        drawn,
        covariance,
        False,
        (n, count),
        (reference.cells, Cells.of(features, new.rows, new.weights)),
        (reference.shares, shares),
        reference.sample,
        reference.names,
        reference.errors,
        float(reference.n_samples),
        JointStatistic(features, statistics),
    )


def _mean_differences(coordinates: Array, noise: Array, smaller: float, larger: float, rng: np.random.Generator) -> Array:
    """Differences of the means of a smaller and a larger sample. The smaller mean is resampled if coordinates are available.

    ``noise`` (draws, p) are normal draws with the covariance of a single row.
    """
    if smaller > MAX_RESAMPLED or not len(coordinates):
        return noise * np.sqrt(1 / smaller + 1 / larger)
    count = round(smaller)
    return resampled(coordinates, np.ones(count), len(noise), rng) / count + noise / np.sqrt(larger)


def weighted_covariance(features: FeatureMap, sample: Sample, centre: Array) -> Array:
    """(p, p) covariance of the mean of weighted rows: Σ w² (φ − centre)(φ − centre)ᵀ, about the mean of both samples."""
    total = np.zeros((features.size, features.size))
    for a, b, block in features.by_block(sample.rows):
        part = sample.weights[a:b, None] * (block - centre)
        total += part.T @ part
    return total
