"""A reference made small once, for tests that cost one pass over the new rows: what is kept of it takes some megabytes at most.

Some rows shape the coordinates (atoms, scales, axes) and are then left aside, since a mean looks nearer than it is from places that
were chosen by its own rows. Of all others the mean is kept, the covariance (of a fair sample), the shares of cells and columns, and a
fair sample itself, from which small samples are drawn to see what chance does; without it (``keep_rows=False``) there is no row in
the reference, and chance is taken for normal. O(n·m) time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reduset import bandwidth
from reduset._types import Array, Floats
from reduset.drift.columns import ColumnBins
from reduset.drift.feature_map import FeatureMap, median_distance
from reduset.drift.null_law import square_root
from reduset.drift.regions import CellSums, without_rows
from reduset.drift.sample import Sample
from reduset.kernels import Gaussian
from reduset.mean import KernelMean
from reduset.select import KMeans

SHAPING_SHARE, SHAPING_ROWS = 0.25, 8192
KEPT_ROWS, KEPT_BYTES = 8192, 2_000_000
COVARIANCE_ROWS = 16_384


@dataclass(frozen=True)
class StoredReference:
    """What is kept.

    Attributes
    ----------
    features : the coordinates
    mean : (p,); covariance : (p, p) of a single row
    rows : how many rows the mean is of, effective ones where they have weights
    cells, bins, shares : by place and by column
    sample : (s, d) rows, each as probable as any other; (0, d) where none is kept
    names, named : of the columns, and whether they are the user's
    n_samples : how many rows the reference had
    """

    features: FeatureMap
    mean: Array
    covariance: Array
    rows: float
    cells: CellSums
    bins: ColumnBins
    shares: tuple[Array, ...]
    sample: Floats
    names: tuple[str, ...]
    named: bool
    n_samples: int

    @classmethod
    def of(cls, sample: Sample, size: int, scales: str | None, keep_rows: bool, rng: np.random.Generator) -> StoredReference:
        """Of rows at hand."""
        order = sample.drawn(min(int(SHAPING_SHARE * sample.size), SHAPING_ROWS), rng)
        shaping = np.asarray(sample.rows[order], np.float64)
        units = np.ones(len(sample.names)) if scales is None else bandwidth.column_scales(shaping, rule=scales)
        width = median_distance(shaping, units)
        seen = KernelMean.from_samples(shaping, kernel=Gaussian(width, scales=units))
        atoms = KMeans().select(seen, min(size, len(shaping)), rng).atoms
        features = FeatureMap.shaped(shaping, atoms, units, width).stored()
        weights = np.array(sample.weights)
        weights[order] = 0.0
        if not weights.any():
            raise ValueError("sample_weight leaves no rows but those that the places are chosen by; give more rows of weight")
        left = weights > 0
        rest = Sample(sample.rows[left], weights[left] / weights[left].sum(), sample.names, sample.named)
        chosen = rest.rows[rest.drawn(COVARIANCE_ROWS, rng)]
        coordinates = features.rows(chosen)
        kept = min(KEPT_ROWS, KEPT_BYTES // (chosen.itemsize * chosen.shape[1])) if keep_rows else 0
        bins = ColumnBins.of(shaping)
        return cls(
            features,
            features.mean(rest.rows, rest.weights),
            np.cov(coordinates, rowvar=False, bias=True).reshape(features.size, features.size).astype(np.float32).astype(np.float64),
            rest.effective,
            without_rows(CellSums.of(features, rest.rows, rest.weights)),
            bins,
            bins.shares(rest.rows, rest.weights),
            np.array(rng.permutation(chosen)[:kept]),
            sample.names,
            sample.named,
            sample.size,
        )

    @cached_property
    def coordinates(self) -> Array:
        """(s, p) of the fair sample."""
        return self.features.rows(self.sample) if len(self.sample) else np.empty((0, self.features.size))

    @cached_property
    def root(self) -> Array:
        """(p, p) a factor of the covariance."""
        return square_root(self.covariance)
