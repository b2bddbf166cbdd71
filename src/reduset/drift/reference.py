"""A reference as a small summary, for tests that cost one pass over the new rows: some megabytes at most.

Some rows shape the coordinates (atoms, scales, axes) and are then left out, since a mean looks nearer than it is from centres that
were chosen by its own rows. Of all others the summary keeps the mean, the covariance (of a fair sample), the shares of cells and
columns, and a fair sample itself, from which small samples are drawn under the null hypothesis. With ``keep_rows=False`` the
reference has no row, and the null distribution is normal. O(n·m) time.

The rows of a compression are gone, but the error of its mean is certified at every scale. The difference to new rows is shortened
by that error, ‖δ‖ − e, so that no approximation error looks like drift. Only the plain statistics are used, since whitened ones
cannot be corrected. Single rows are drawn from the atoms by weight, or from the components. Scales finer than the bandwidth of the
compression are left out. By cell and by column, the reference counts as so many rows as it has atoms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reduset._engine import Frame, add, cached_property, nearest, over_blocks, rows_by_weight
from reduset._types import Array, Floats
from reduset.certificate.by_scale import ErrorProfile
from reduset.drift.columns import ColumnBins
from reduset.drift.feature_map import FeatureMap, column_units, median_distance
from reduset.drift.null_distribution import normal, square_root
from reduset.drift.regions import CellSums
from reduset.drift.sample import Sample, names_of
from reduset.kernels import Gaussian
from reduset.mean import KernelMean
from reduset.mixture import ComponentMean
from reduset.select import KMeans

SHAPING_SHARE, SHAPING_ROWS = 0.25, 8192
KEPT_ROWS, KEPT_BYTES = 8192, 2_000_000
COVARIANCE_ROWS = 16_384
FEWEST_PRIVATE = 500
TOGETHER = 10  # rows at least that any number stands for where no row is kept
MAKE_ONE = "fit the test on the rows themselves: DriftTest().fit(X), or reduset drift ROWS TODAY -o reference.npz"


@dataclass(frozen=True)
class Places:
    """Where rows are looked at: coordinates, and bins of the columns."""

    features: FeatureMap
    bins: ColumnBins

    @classmethod
    def of(cls, rows: Floats, size: int, scales: str | None, rng: np.random.Generator, fewest: int = 1) -> Places:
        """By these rows (N, d), with ``size`` atoms; each atom and each edge of a bin stands for ``fewest`` of them at least."""
        shaping = np.asarray(rows, np.float64)
        units = column_units(shaping, scales)
        width = median_distance(shaping, units)
        seen = KernelMean.from_samples(shaping, kernel=Gaussian(width, scales=units))
        atoms = KMeans().select(seen, max(min(size, len(shaping) // (2 * fewest - 1)), 1), rng).atoms
        if fewest > 1:
            atoms = _centres_of_many(shaping, atoms, seen.kernel.plain_frame(shaping), fewest)  # type: ignore[attr-defined]
        bins = ColumnBins.of(shaping, fewest)
        shares = bins.shares(shaping, np.full(len(shaping), 1 / len(shaping)))
        return cls(FeatureMap.shaped(shaping, atoms, units, width).stored().with_columns(bins, shares), bins)


def _centres_of_many(rows: Array, atoms: Array, frame: Frame, fewest: int) -> Array:
    """Means of the rows nearest to each atom, without the atoms of fewer rows than that."""
    while True:
        owner, _ = nearest(rows, atoms, frame)
        counts = np.bincount(owner, minlength=len(atoms))
        if counts.min() >= fewest or len(atoms) == 1:
            return np.stack([np.bincount(owner, column, len(atoms)) for column in rows.T], axis=1) / counts[:, None]
        atoms = atoms[counts > max(counts.min(), fewest // 2 - 1)]


@dataclass(frozen=True)
class ReferenceSums:
    """Sums over rows, which add up: Σw, Σw², Σ wφ, and those of cells and columns.

    Attributes
    ----------
    mass, squares : of the weights
    features : (p,); cells : (m, 1 + 2d) Σw, Σwx, Σwx² by cell; columns : Σw by bin, of each column
    """

    mass: float
    squares: float
    features: Array
    cells: Array
    columns: tuple[Array, ...]

    @classmethod
    def of(cls, places: Places, rows: Floats, weights: Array) -> ReferenceSums:
        """Of rows (n, d) with weights (n,)."""
        return _sums_of(rows, weights, places)

    @classmethod
    def of_block(cls, rows: Floats, weights: Array, places: Places) -> ReferenceSums:
        """Of rows in one array."""
        found = CellSums.of(places.features, rows, weights)
        cells = np.concatenate([found.shares[:, None], found.sums, found.squares], axis=1)
        shares = places.bins.shares(rows, weights)
        means = places.features.mean(rows, weights, shares)
        return cls(float(weights.sum()), float(weights @ weights), means, cells, shares)

    def __add__(self, other: ReferenceSums) -> ReferenceSums:
        columns = tuple(one + two for one, two in zip(self.columns, other.columns, strict=True))
        features, cells = self.features + other.features, self.cells + other.cells
        return ReferenceSums(self.mass + other.mass, self.squares + other.squares, features, cells, columns)

    @property
    def effective(self) -> float:
        """How many rows of equal weight would have as much noise."""
        return self.mass**2 / self.squares


@over_blocks(add)
def _sums_of(rows: Floats, weights: Array, places: Places) -> ReferenceSums:
    return ReferenceSums.of_block(rows, weights, places)


@dataclass(frozen=True)
class StoredReference:
    """What is kept.

    Attributes
    ----------
    places : where rows are looked at
    mean : (p,); covariance : (p, p) of a single row
    rows : how many rows the mean is of, effective ones where they have weights
    known_rows : how many rows the shares by cell and column are as good as
    cells, shares : by place and by column
    sample : (s, d) rows, each as probable as any other; (0, d) where none is kept
    names, named : of the columns, and whether they are the user's
    n_samples : how many rows the reference had
    errors : (S,) what the mean may be off by at each scale, where it is that of a compression; else 0
    """

    places: Places
    mean: Array
    covariance: Array
    rows: float
    cells: CellSums
    shares: tuple[Array, ...]
    sample: Floats
    names: tuple[str, ...]
    named: bool
    n_samples: int
    errors: Array

    @classmethod
    def of(cls, sample: Sample, size: int, scales: str | None, keep_rows: bool, rng: np.random.Generator) -> StoredReference:
        """Of rows at hand."""
        order = sample.drawn(max(min(int(SHAPING_SHARE * sample.size), SHAPING_ROWS), 1), rng)
        places = Places.of(sample.rows[order], size, scales, rng, 1 if keep_rows else TOGETHER)
        if not keep_rows and sample.size < FEWEST_PRIVATE:
            raise ValueError(
                f"keep_rows=False needs a reference of at least {FEWEST_PRIVATE:,} rows, as every number stands for ten of them; "
                f"got {sample.size:,}, keep them or give more"
            )
        others = np.ones(sample.size, np.bool_)
        others[order] = False
        left = np.flatnonzero(others)
        if not len(left):
            raise ValueError(
                "sample_weight must leave weight to more rows than those that say where to look; its weight lies on "
                f"{len(np.unique(order)):,} rows, use these alone"
            )
        weights = np.zeros(
            sample.size
        )  # those that say where to look weigh nothing: a copy of the others would take as much room again
        weights[left] = sample.weights[left]
        sums = ReferenceSums.of(places, sample.rows, weights)
        fair = sample.rows[rng.permutation(sample.drawn(COVARIANCE_ROWS, rng, left))]
        return cls.put_together(places, sums, fair, keep_rows, sample.names, sample.named, sample.size)

    @classmethod
    def put_together(
        cls, places: Places, sums: ReferenceSums, fair: Floats, keep_rows: bool, names: tuple[str, ...], named: bool, n_samples: int
    ) -> StoredReference:
        """From sums over all rows, but those that chose the places where that can be, and a fair sample in random order."""
        features, d = places.features, len(names)
        kept = min(KEPT_ROWS, KEPT_BYTES // (fair.itemsize * d)) if keep_rows else 0
        covariance = features.covariance(fair)
        shares, first, second = np.split(sums.cells / sums.mass, [1, 1 + d], axis=1)
        if not keep_rows:  # the sums of few rows would tell what they are
            lone = shares[:, 0] * sums.effective < TOGETHER
            first[lone], second[lone] = shares[lone] * features.atoms[lone], shares[lone] * np.square(features.atoms[lone])
        return cls(
            places,
            sums.features / sums.mass,
            covariance.astype(np.float32).astype(np.float64),  # as a file keeps it
            sums.effective,
            CellSums.without_rows(sums.effective, shares[:, 0], first, second),
            tuple(each / sums.mass for each in sums.columns),
            np.array(fair[:kept]),
            names,
            named,
            n_samples,
            np.zeros(len(features.octaves)),
        )

    @property
    def features(self) -> FeatureMap:
        """The coordinates."""
        return self.places.features

    @property
    def own_rows(self) -> Floats:
        """The rows of the sample, where they are rows of the reference and not draws of a compression."""
        return self.sample[:0] if self.errors.any() else self.sample

    @cached_property
    def coordinates(self) -> Array:
        """(s, p) of the fair sample."""
        return self.features.rows(self.sample) if len(self.sample) else np.empty((0, self.features.size))

    def unit_noise(self, draws: int, seed: int) -> Array:
        """(draws, p) of N(0, covariance), the same for the same seed and kept for the next test: they do not depend on new rows."""
        known: dict[tuple[int, int], Array] = self.__dict__.setdefault("_noise", {})
        if (draws, seed) not in known:
            known.clear()
            known[draws, seed] = normal(self.root, draws, np.random.default_rng(seed))
        return known[draws, seed]

    @cached_property
    def root(self) -> Array:
        """(p, p) a factor of the covariance."""
        return square_root(self.covariance)


def is_compression(value: Any) -> bool:
    """Whether it is a `Compression` or a `Model`: a mean that knows what it lost."""
    return all(hasattr(value, part) for part in ("mean", "n_samples", "certificate", "profile"))


def of_compression(small: Any, size: int, keep_rows: bool, rng: np.random.Generator) -> StoredReference:
    """The reference that a `Compression` or a `Model` is."""
    mean, kernel = small.mean, small.mean.kernel
    if not isinstance(kernel, Gaussian) or kernel.covariance is not None:
        raise ValueError(
            f"a reference that is compressed must have a Gaussian kernel without a covariance, got {kernel!r}; {MAKE_ONE}"
        )
    if float(mean.weights.min()) < 0:
        raise ValueError(
            "a reference that is compressed must have no negative weights, they are no shares; compress with weights='simplex', or "
            + MAKE_ONE
        )
    try:
        profile: ErrorProfile = small.profile()
    except ValueError as error:
        raise ValueError(
            f"a reference that is compressed must know its error at every scale, and this one does not; {MAKE_ONE}"
        ) from error
    names = names_of(getattr(small, "columns", None), mean.dimension)
    points, weights = (mean.means if isinstance(mean, ComponentMean) else mean.atoms), mean.weights / mean.weights.sum()
    drawn = _rows(mean, COVARIANCE_ROWS, rng)
    units = np.ones(mean.dimension) if kernel.units is None else np.asarray(kernel.units)
    order = rng.permutation(len(points))[:size]
    width = median_distance(drawn, units)
    wider = np.sqrt(2) if kernel.space == "l2" else 1.0  # bumps of width h have products of width √2·h there
    features = FeatureMap.shaped(drawn[:KEPT_ROWS], np.unique(points[order], axis=0), units, width)
    features = features.down_to(wider * kernel.width).plain().stored()
    places = Places(features, ColumnBins.of(drawn))
    # a component is looked at by its draws; atoms as they are
    rows, masses = (drawn, np.full(len(drawn), 1 / len(drawn))) if isinstance(mean, ComponentMean) else (points, weights)
    found = StoredReference.put_together(
        places, ReferenceSums.of(places, rows, masses), drawn, keep_rows, names, hasattr(small, "columns"), small.n_samples
    )
    drawn_noise = 1 / len(drawn) if isinstance(mean, ComponentMean) else 0.0  # of a mean that is known by draws
    known = 1.0 / float(weights @ weights)
    norms = np.asarray([float(np.linalg.norm(found.mean[part])) for part in features.parts])
    return replace(
        found,
        rows=1 / (1 / small.n_samples + drawn_noise),
        cells=replace(found.cells, rows=known),
        errors=norms * _upper_errors(wider * profile.bandwidths, profile.intervals[:, 1], features.bandwidths),
    )


def _rows(mean: Any, count: int, rng: np.random.Generator) -> Array:
    """Draws from the law of the rows: atoms by weight, or the components without the kernel's own width."""
    if not isinstance(mean, ComponentMean):
        return np.asarray(mean.atoms[mean.draw_rows(count, rng)], np.float64)
    which = rows_by_weight(mean.weights, rng.random(count))
    lengths, directions = np.linalg.eigh(mean.pieces.spreads)  # a law may be flat
    drawn = rng.standard_normal((count, mean.dimension)) * np.sqrt(np.maximum(lengths, 0.0))[which]
    return np.asarray(mean.means[which] + np.einsum("nij,nj->ni", directions[which], drawn))


def _upper_errors(known: Array, errors: Array, bandwidths: Array) -> Array:
    """(S,) upper ends of the relative errors at these bandwidths: that of the next finer scale which is known."""
    at = [min(int((known > width * (1 + 1e-9)).sum()), len(known) - 1) for width in bandwidths]
    return np.nan_to_num(errors[at], nan=1.0)
