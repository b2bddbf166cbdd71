"""A reference as a summary of a few megabytes, for tests that cost one pass over the new rows.

A part of the rows determines the coordinates (atoms, scales, axes) and is then omitted from the sums, because the distance to a
mean is underestimated at centres that were chosen from the same rows. For all other rows, the summary keeps the mean and the
proportions of cells and columns. It also keeps the covariance of a random sample, and the sample itself, from which small samples
are drawn under the null hypothesis. With ``keep_rows=False`` no rows are kept, and the null distribution is normal. O(n·m) time.

A compression has no rows, but the error of its mean is certified at every scale. The difference to new rows is shortened by that
error, ‖δ‖ − e, so that an approximation error does not look like drift. Only plain statistics are used, because whitened statistics
cannot be corrected. Single rows are drawn from the atoms by weight, or from the components. Scales below the bandwidth of the
compression are omitted. For cells and columns, the size of the reference is the effective number of its atoms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reduset._engine import Frame, add, cached_property, nearest, over_blocks, rows_by_weight
from reduset._types import Array, Floats
from reduset.certificate import ErrorProfile
from reduset.drift.columns import ColumnBins
from reduset.drift.feature_map import FeatureMap, column_units, median_distance
from reduset.drift.null_distribution import normal, square_root
from reduset.drift.regions import Cells
from reduset.drift.sample import Sample, names_of
from reduset.kernels import Gaussian
from reduset.mean import KernelMean
from reduset.mixture import ComponentMean
from reduset.select import KMeans

FITTED_RATIO, FITTED_ROWS = 0.25, 8192  # proportion and largest number of the rows that determine the coordinates
KEPT_ROWS, KEPT_BYTES = 8192, 2_000_000
COVARIANCE_ROWS = 16_384
MIN_PRIVATE = 500  # rows of a reference with ``keep_rows=False``
GROUP_ROWS = 10  # smallest number of rows that a stored number summarises with ``keep_rows=False``
HINT = "fit the test on the rows themselves: DriftTest().fit(X), or reduset drift ROWS TODAY -o reference.npz"


def fitted_features(rows: Floats, size: int, scales: str | None, rng: np.random.Generator, fewest: int = 1) -> FeatureMap:
    """Coordinates from rows (N, d), with ``size`` atoms. Each atom and each edge of a bin represents at least ``fewest`` rows."""
    points = np.asarray(rows, np.float64)
    units = column_units(points, scales)
    width = median_distance(points, units)
    mean = KernelMean.from_samples(points, kernel=Gaussian(width, scales=units))
    atoms = KMeans().select(mean, max(min(size, len(points) // (2 * fewest - 1)), 1), rng).atoms
    if fewest > 1:
        atoms = _large_centres(points, atoms, mean.kernel.plain_frame(points), fewest)  # type: ignore[attr-defined]
    bins = ColumnBins.of(points, fewest)
    shares = bins.shares(points, np.full(len(points), 1 / len(points)))
    return FeatureMap.fitted(points, atoms, units, width, bins).stored().with_scores(shares)


def _large_centres(rows: Array, atoms: Array, frame: Frame, fewest: int) -> Array:
    """Means of the rows nearest to each atom, without the atoms of fewer than ``fewest`` rows."""
    while True:
        assignments, _ = nearest(rows, atoms, frame)
        counts = np.bincount(assignments, minlength=len(atoms))
        if counts.min() >= fewest or len(atoms) == 1:
            return np.stack([np.bincount(assignments, column, len(atoms)) for column in rows.T], axis=1) / counts[:, None]
        atoms = atoms[counts > max(counts.min(), fewest // 2 - 1)]


@dataclass(frozen=True)
class ReferenceSums:
    """Additive sums over rows: Σw, Σw², Σ wφ, and sums by cell and column.

    Attributes
    ----------
    mass, squares : Σw and Σw².
    features : (p,) Σ wφ.
    cells : (m, 1 + 2d) Σw, Σwx and Σwx² by cell.
    columns : Σw by bin of each column.
    """

    mass: float
    squares: float
    features: Array
    cells: Array
    columns: tuple[Array, ...]

    def __add__(self, other: ReferenceSums) -> ReferenceSums:
        columns = tuple(one + two for one, two in zip(self.columns, other.columns, strict=True))
        features, cells = self.features + other.features, self.cells + other.cells
        return ReferenceSums(self.mass + other.mass, self.squares + other.squares, features, cells, columns)

    @property
    def effective(self) -> float:
        """The effective number of rows: rows of equal weight with the same sampling variance."""
        return self.mass**2 / self.squares


@over_blocks(add)
def reference_sums(rows: Floats, weights: Array, features: FeatureMap) -> ReferenceSums:
    """The sums over rows (n, d) with weights (n,)."""
    cells = Cells.of(features, rows, weights)
    by_cell = np.concatenate([cells.shares[:, None], *cells.by_cell()], axis=1)
    shares = features.bins.shares(rows, weights)
    return ReferenceSums(float(weights.sum()), float(weights @ weights), features.mean(rows, weights, shares), by_cell, shares)


@dataclass(frozen=True)
class StoredReference:
    """The summary of a reference.

    Attributes
    ----------
    features : The coordinates.
    mean : (p,) mean of the coordinates.
    covariance : (p, p) covariance of the coordinates of a single row.
    rows : Number of rows of the mean; the effective number for weighted rows.
    cells, shares : Sums by cell, and proportions of the bins of each column. ``cells.rows`` is their effective sample size.
    sample : (s, d) random rows, drawn in proportion to their weights; for a compression, from its atoms or components. (0, d) if
        none is kept.
    names, named : Names of the columns, and whether they are the user's names.
    n_samples : Number of all rows of the reference.
    errors : (S,) bound on the error of the mean at each scale for a compression; otherwise 0.
    """

    features: FeatureMap
    mean: Array
    covariance: Array
    rows: float
    cells: Cells
    shares: tuple[Array, ...]
    sample: Floats
    names: tuple[str, ...]
    named: bool
    n_samples: int
    errors: Array

    @classmethod
    def of(cls, sample: Sample, size: int, scales: str | None, keep_rows: bool, rng: np.random.Generator) -> StoredReference:
        """The summary of a sample that is available."""
        order = sample.drawn(max(min(int(FITTED_RATIO * sample.size), FITTED_ROWS), 1), rng)
        features = fitted_features(sample.rows[order], size, scales, rng, 1 if keep_rows else GROUP_ROWS)
        if not keep_rows and sample.size < MIN_PRIVATE:
            raise ValueError(
                f"keep_rows=False needs a reference of at least {MIN_PRIVATE:,} rows, because every stored number summarises at "
                f"least {GROUP_ROWS} rows, got {sample.size:,}; set keep_rows=True or pass more rows"
            )
        others = np.ones(sample.size, np.bool_)
        others[order] = False
        left = np.flatnonzero(others)
        if not len(left):
            raise ValueError(
                "sample_weight must have weight on more rows than the rows that determine the coordinates, got weight on "
                f"{len(np.unique(order)):,} rows; pass these rows alone"
            )
        # Rows that determine the coordinates get weight 0, because a copy of the other rows would double the memory.
        weights = np.zeros(sample.size)
        weights[left] = sample.weights[left]
        sums = reference_sums(sample.rows, weights, features)
        drawn = sample.rows[rng.permutation(sample.drawn(COVARIANCE_ROWS, rng, left))]
        return cls.from_sums(features, sums, drawn, keep_rows, sample.names, sample.named, sample.size)

    @classmethod
    def from_sums(
        cls,
        features: FeatureMap,
        sums: ReferenceSums,
        drawn: Floats,
        keep_rows: bool,
        names: tuple[str, ...],
        named: bool,
        n_samples: int,
    ) -> StoredReference:
        """From sums over the rows, and a random sample ``drawn`` in random order."""
        d = len(names)
        kept = min(KEPT_ROWS, KEPT_BYTES // (drawn.itemsize * d)) if keep_rows else 0
        covariance = features.covariance(drawn)
        shares, first, second = np.split(sums.cells / sums.mass, [1, 1 + d], axis=1)
        if not keep_rows:  # the sums of small cells would reveal their rows
            small = shares[:, 0] * sums.effective < GROUP_ROWS
            first[small], second[small] = shares[small] * features.atoms[small], shares[small] * np.square(features.atoms[small])
        return cls(
            features,
            sums.features / sums.mass,
            covariance.astype(np.float32).astype(np.float64),  # a file stores single precision
            sums.effective,
            Cells.without_rows(sums.effective, shares[:, 0], first, second),
            tuple(weights / sums.mass for weights in sums.columns),
            np.array(drawn[:kept]),
            names,
            named,
            n_samples,
            np.zeros(len(features.octaves)),
        )

    @property
    def real_rows(self) -> Floats:
        """The sample, if it has rows of the reference; empty if it was drawn from a compression."""
        return self.sample[:0] if self.errors.any() else self.sample

    @cached_property
    def coordinates(self) -> Array:
        """(s, p) coordinates of the sample."""
        return self.features.rows(self.sample) if len(self.sample) else np.empty((0, self.features.size))

    def unit_noise(self, draws: int, seed: int) -> Array:
        """(draws, p) draws of N(0, covariance). They do not depend on new rows, so they are cached for the next test."""
        cache: dict[tuple[int, int], Array] = self.__dict__.setdefault("_noise", {})
        if (draws, seed) not in cache:
            cache.clear()
            cache[draws, seed] = normal(self.root, draws, np.random.default_rng(seed))
        return cache[draws, seed]

    @cached_property
    def root(self) -> Array:
        """(p, p) a factor of the covariance."""
        return square_root(self.covariance)


def of_compression(small: Any, size: int, keep_rows: bool, rng: np.random.Generator) -> StoredReference:
    """The reference from a `Compression` or a `Model`."""
    mean, kernel = small.mean, small.mean.kernel
    if not isinstance(kernel, Gaussian) or kernel.covariance is not None:
        raise ValueError(f"a compressed reference must have a Gaussian kernel without a covariance, got {kernel!r}; {HINT}")
    if float(mean.weights.min()) < 0:
        raise ValueError(
            f"a compressed reference must have non-negative weights, got one of {float(mean.weights.min()):.3g}; compress with "
            f"weights='simplex', or {HINT}"
        )
    try:
        profile: ErrorProfile = small.profile()
    except ValueError as error:
        raise ValueError(
            f"a compressed reference must have an error profile over all scales, got a compression without one; {HINT}"
        ) from error
    names = names_of(getattr(small, "columns", None), mean.dimension)
    points, weights = (mean.means if isinstance(mean, ComponentMean) else mean.atoms), mean.weights / mean.weights.sum()
    drawn = _drawn_rows(mean, COVARIANCE_ROWS, rng)
    units = np.ones(mean.dimension) if kernel.units is None else np.asarray(kernel.units)
    order = rng.permutation(len(points))[:size]
    width = median_distance(drawn, units)
    wider = np.sqrt(2) if kernel.space == "l2" else 1.0  # in "l2", products of kernel functions have √2 times the bandwidth
    features = FeatureMap.fitted(drawn[:KEPT_ROWS], np.unique(points[order], axis=0), units, width, ColumnBins.of(drawn))
    features = features.plain_down_to(wider * kernel.width).stored()
    # Components are evaluated at rows drawn from them, atoms at the atoms themselves.
    rows, masses = (drawn, np.full(len(drawn), 1 / len(drawn))) if isinstance(mean, ComponentMean) else (points, weights)
    reference = StoredReference.from_sums(
        features, reference_sums(rows, masses, features), drawn, keep_rows, names, hasattr(small, "columns"), small.n_samples
    )
    drawn_noise = 1 / len(drawn) if isinstance(mean, ComponentMean) else 0.0  # the sampling variance of drawn rows
    effective = 1.0 / float(weights @ weights)
    norms = np.asarray([float(np.linalg.norm(reference.mean[part])) for part in features.parts])
    # the upper end of the relative error at each bandwidth, from the next smaller measured bandwidth
    measured = wider * profile.bandwidths
    positions = [min(int((measured > width * (1 + 1e-9)).sum()), len(measured) - 1) for width in features.bandwidths]
    upper_errors = np.nan_to_num(profile.intervals[:, 1][positions], nan=1.0)
    return replace(
        reference,
        rows=1 / (1 / small.n_samples + drawn_noise),
        cells=replace(reference.cells, rows=effective),
        errors=norms * upper_errors,
    )


def _drawn_rows(mean: Any, count: int, rng: np.random.Generator) -> Array:
    """Draws from the distribution of the rows: atoms by weight, or components without the width of the kernel."""
    if not isinstance(mean, ComponentMean):
        return np.asarray(mean.atoms[mean.draw_rows(count, rng)], np.float64)
    which = rows_by_weight(mean.weights, rng.random(count))
    lengths, directions = np.linalg.eigh(mean.pieces.spreads)  # a covariance may be singular
    drawn = rng.standard_normal((count, mean.dimension)) * np.sqrt(np.maximum(lengths, 0.0))[which]
    return np.asarray(mean.means[which] + np.einsum("nij,nj->ni", directions[which], drawn))
