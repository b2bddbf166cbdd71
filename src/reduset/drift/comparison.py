"""Two samples side by side: the difference of their means, what chance alone makes of it, and what is known of both by place.

With both samples at hand everything is shaped by their rows together, in an order that does not tell which is which, and which of
them are new is permuted: exact at any size (`pooled`). Against a stored reference everything was shaped by rows that are in neither
(`stored`), and chance is drawn from its fair sample, or from a normal law where many rows are tested or no row was kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset._engine import cached_property
from reduset._types import Array, Floats
from reduset.drift.columns import ColumnBins
from reduset.drift.feature_map import FeatureMap, column_units, median_distance
from reduset.drift.null_distribution import normal, permuted, resampled, reweighed, signed, square_root
from reduset.drift.reference import StoredReference
from reduset.drift.regions import CellRows, Cells, CellSums
from reduset.drift.sample import Sample
from reduset.drift.statistic import JointStatistic, Statistic

PERMUTED_ROWS = 12_288  # of both samples, up to which all rows are permuted
SHAPING_ROWS = 4096
FAIR_ROWS = 8192  # that stand for all where there are more
WEIGHTED_ROWS = 200  # effective ones
FEW_ROWS = 2000  # of the smaller sample, up to which its means are not taken for normal


@dataclass(frozen=True)
class SideBySide:
    """What a test is made of.

    Attributes
    ----------
    features : the coordinates
    before, after : (p,) their means in the reference and in the new rows
    drawn : (B, p) differences under chance alone
    covariance : (p, p) of the difference under chance alone
    exact : whether the draws are permutations, so that no p-value is below 1 / (B + 1)
    rows : how many rows each side has, effective ones where they have weights
    n_reference : how many rows the reference has, those among them that chose where to look
    cells, bins, shares : by place and by column, before and after
    fair : (s, d) some rows of both
    statistics : of the test
    errors : (S,) what the reference may be off by at each scale, by which the difference is taken shorter
    """

    features: FeatureMap
    before: Array
    after: Array
    drawn: Array
    covariance: Array
    exact: bool
    rows: tuple[float, float]
    cells: tuple[Cells, Cells]
    bins: ColumnBins
    shares: tuple[tuple[Array, ...], tuple[Array, ...]]
    fair: Floats
    names: tuple[str, ...]
    errors: Array
    n_reference: float
    statistics: tuple[Statistic, ...]

    @cached_property
    def joint(self) -> JointStatistic:
        """The statistics of the test at these coordinates."""
        return JointStatistic(self.features, self.statistics)

    @property
    def difference(self) -> Array:
        """(p,) after less before, and less what the reference may be off by."""
        return self.features.less(self.after - self.before, self.errors)


def pooled(
    old: Sample,
    new: Sample,
    size: int,
    scales: str | None,
    draws: int,
    statistics: tuple[Statistic, ...],
    rng: np.random.Generator,
) -> SideBySide:
    """Both samples at hand."""
    old, new = old.here(), new.here()
    rows = np.concatenate([old.rows, new.rows])
    shuffled = rng.permutation(len(rows))[:SHAPING_ROWS]  # so that their order tells nothing
    shaping = np.asarray(rows[shuffled], np.float64)
    units = column_units(rows, scales)
    atoms = np.unique(shaping[:size], axis=0)
    features = FeatureMap.shaped(shaping, atoms, units, median_distance(rows, units))
    del shaping
    weights = np.concatenate([old.weights, new.weights])
    n, count = old.effective, new.effective
    bins = ColumnBins.of(rows)
    shares = [bins.shares(each.rows, each.weights) for each in (old, new)]
    features = features.with_columns(bins, tuple((n * b + count * a) / (n + count) for b, a in zip(*shares, strict=True)))
    before, after = (features.mean(each.rows, each.weights, own) for each, own in zip((old, new), shares, strict=True))
    noise = 1 / n + 1 / count
    exact = old.is_uniform and new.is_uniform and len(rows) <= PERMUTED_ROWS
    fair = rows if len(rows) <= PERMUTED_ROWS else rows[np.sort(rng.choice(len(rows), FAIR_ROWS, replace=False))]
    coordinates = features.rows(fair)
    centre = coordinates.mean(axis=0)
    covariance = noise * np.cov(coordinates, rowvar=False, bias=True).reshape(features.size, features.size)
    if exact:
        drawn = permuted(coordinates, new.size, draws, rng)
    elif old.is_uniform and new.is_uniform:
        single = normal(square_root(covariance / noise), draws, rng)
        drawn = _limit(coordinates, single, min(n, count), max(n, count), rng)
    elif len(rows) <= PERMUTED_ROWS:
        parts = weights[:, None] * (coordinates - centre)
        drawn, covariance = signed(parts, draws, rng), parts.T @ parts
    else:
        centre = (n * before + count * after) / (n + count)
        covariance = weighted_covariance(features, old, centre) + weighted_covariance(features, new, centre)
        drawn = normal(square_root(covariance), draws, rng)
    ours, theirs = np.split(rows, [old.size])
    cells = CellRows.of if fair is rows else CellSums.of  # rows that are not kept are summed now
    return SideBySide(
        features,
        before,
        after,
        drawn,
        covariance,
        exact,
        (n, count),
        (cells(features, ours, old.weights), cells(features, theirs, new.weights)),
        bins,
        (shares[0], shares[1]),
        fair,
        old.names,
        np.zeros(len(features.octaves)),
        n,
        statistics,
    )


def stored(reference: StoredReference, new: Sample, draws: int, statistics: tuple[Statistic, ...], seed: int) -> SideBySide:
    """Against a reference whose rows are gone but for a fair sample, or all gone."""
    features, n, count = reference.features, reference.rows, new.effective
    shares = reference.places.bins.shares(new.rows, new.weights)
    after = features.mean(new.rows, new.weights, shares)
    covariance = reference.covariance * (1 / n + 1 / count)
    if not new.is_uniform:
        if count >= WEIGHTED_ROWS:  # enough to tell their own noise, which weights may have to do with
            covariance = reference.covariance / n + weighted_covariance(features, new, reference.mean)
        drawn = normal(square_root(covariance), draws, np.random.default_rng(seed))
        if count < WEIGHTED_ROWS and len(reference.sample) and new.size <= PERMUTED_ROWS:
            noise = reference.unit_noise(draws, seed) / np.sqrt(n)
            drawn = reweighed(reference.coordinates, new.weights, draws, np.random.default_rng([seed, 1])) + noise
    else:
        few = reference.coordinates if count <= FEW_ROWS else np.empty((0, features.size))
        drawn = _limit(few, reference.unit_noise(draws, seed), count, n, np.random.default_rng([seed, 1]))
    return SideBySide(
        features,
        reference.mean,
        after,
        drawn,
        covariance,
        False,
        (n, count),
        (reference.cells, CellSums.of(features, new.rows, new.weights)),
        reference.places.bins,
        (reference.shares, shares),
        reference.sample,
        reference.names,
        reference.errors,
        float(reference.n_samples),
        statistics,
    )


def _limit(coordinates: Array, noise: Array, few: float, many: float, rng: np.random.Generator) -> Array:
    """Differences of a mean of few rows and one of many: the first by drawing rows where there are coordinates of some.

    ``noise`` (draws, p) is that of a single row, taken for normal.
    """
    if few > FEW_ROWS or not len(coordinates):
        return noise * np.sqrt(1 / few + 1 / many)
    return resampled(coordinates, round(few), len(noise), rng) + noise / np.sqrt(many)


def weighted_covariance(features: FeatureMap, sample: Sample, centre: Array) -> Array:
    """(p, p) of the mean of rows of unequal weight: Σ w² (φ − centre)(φ − centre)ᵀ, about the mean of both samples."""
    total = np.zeros((features.size, features.size))
    for a, b, block in features.by_block(sample.rows):
        part = sample.weights[a:b, None] * (block - centre)
        total += part.T @ part
    return total
