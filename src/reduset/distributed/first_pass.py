"""What pass one keeps of a partition: how much there is, a fair sample, and a small mean; each can be merged with another's.

The small mean of a partition is a compression of a larger sample of its rows, with the best weights. Means of several partitions
are put side by side, and compressed again where they have too many atoms. Cost of a partition: one number and one comparison a
row, and a compression of at most `LOCAL_ROWS` rows; of a merger, one of a few thousand atoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from reduset._types import Array
from reduset.distributed.partitions import PartitionRows
from reduset.kernels import Kernel, RadialKernel
from reduset.mean import KernelMean
from reduset.select import KMeans
from reduset.stream.reservoir import Reservoir
from reduset.weights import span_of

SAMPLE_ROWS = 4096
LOCAL_ROWS = 1 << 14
ROWS_AN_ATOM = 8
SHRINKING = {
    "scott": 4,
    "silverman": 4,
    "mode_clustering": 6,
    "isj": 4,
}  # rules that fall with the number of rows to the −1/(d + this)


@dataclass(frozen=True)
class SmallMean:
    """A mean of few atoms near that of many rows.

    Attributes
    ----------
    atoms : (m, d); weights : (m,) the best ones, which sum to about the rows' mass
    masses : (m,) of the rows around each atom: no good weights, but not negative, as clusters of clusters need them
    """

    atoms: Array
    weights: Array
    masses: Array

    @classmethod
    def side_by_side(cls, means: Sequence[SmallMean]) -> SmallMean:
        """One with all the atoms of several."""
        return cls(*(np.concatenate([getattr(each, name) for each in means]) for name in ("atoms", "weights", "masses")))

    def fewer(self, kernel: Kernel, size: int, rng: np.random.Generator) -> SmallMean:
        """``size`` atoms, where there are more."""
        if len(self.atoms) <= size:
            return self
        centres = KMeans(rows=None).select(KernelMean(self.atoms, self.masses, kernel), size, rng)
        if centres.weights is None:
            raise RuntimeError("clusters have masses")
        span = span_of(kernel, centres.atoms, kernel.product_sums(self.atoms, self.weights, centres.atoms))
        weights = span.weights("free", float(self.weights.sum()), span.size)
        return SmallMean(span.atoms, weights, centres.weights[span.kept])


@dataclass(frozen=True)
class PartitionSketch:
    """A mergeable sketch of some partitions: how much there is, a sample of it, and a small mean.

    Attributes
    ----------
    count : of rows; mass, squares : Σw and Σw²
    first : the number of the first partition with rows in it
    columns : names, where the rows are of a frame
    sample : empty where there is no row of weight; small : None there, and where none was asked for
    """

    count: int
    mass: float
    squares: float
    first: int
    columns: tuple[object, ...] | None
    sample: Reservoir
    small: SmallMean | None = None

    @property
    def is_empty(self) -> bool:
        return not len(self.sample.points)

    def require_rows(self) -> None:
        """An error where there is no row of weight."""
        if self.is_empty:
            seen = "all its partitions are empty" if not self.count else "all weights are zero"
            raise ValueError(f"collection must hold at least one row of weight, but {seen}")

    def _weighted_sample(self) -> tuple[Array, Array]:
        """Points of the sample and what each stands for; equal weights as one number, by which rules know that rows count alike."""
        points, weights = self.sample.points, self.sample.weights
        return points, np.broadcast_to(1.0, len(points)) if (weights == weights[0]).all() else self.sample.shares

    def mean(self, kernel: RadialKernel) -> KernelMean:
        """The sample as a mean of mass 1 that stands for all rows."""
        rows, weights = self._weighted_sample()
        alike = np.broadcast_to(1 / len(rows), len(rows))
        return KernelMean(rows, alike if weights.strides == (0,) else weights / weights.sum(), kernel)

    def resolved(self, kernel: RadialKernel) -> RadialKernel:
        """The kernel with its bandwidth a number: the rule's for the sample, shrunk where it depends on the number of rows.

        Of weights, nₑ = (Σw)²/Σw² rows are left.
        """
        rows, weights = self._weighted_sample()
        found = kernel.resolve(rows, weights)
        power = SHRINKING.get(str(kernel.bandwidth))
        if power is None or (rows == rows[0]).all():
            return found
        here = len(rows) if weights.strides == (0,) else float(weights.sum() ** 2 / (weights @ weights))
        everywhere = self.mass * (self.mass / self.squares)
        return replace(found, bandwidth=found.width * (everywhere / here) ** (-1 / (rows.shape[1] + power)))


# -- tasks ----------------------------------------------------------------------------------------------------------------


def look_at(rows: PartitionRows, seed: int) -> PartitionSketch:
    """The sketch of one partition, without a small mean."""
    return _sampled(rows, seed, SAMPLE_ROWS)[0]


def sketch_of(rows: PartitionRows, seed: int, kernel: RadialKernel, size: int) -> PartitionSketch:
    """The sketch of one partition, its small mean from a larger sample of its rows than is kept."""
    sketch, local = _sampled(rows, seed, max(SAMPLE_ROWS, 2 * size, min(LOCAL_ROWS, ROWS_AN_ATOM * size)))
    if sketch.is_empty:
        return sketch
    masses = sketch.mass * local.shares
    return replace(sketch, small=SmallMean(local.points, masses, masses).fewer(kernel, size, _seeded(seed, 1, rows.number)))


def _sampled(rows: PartitionRows, seed: int, most: int) -> tuple[PartitionSketch, Reservoir]:
    """The sketch of one partition without a small mean, and a sample that may be larger than its own."""
    weights, local = rows.weights, Reservoir.empty(rows.points.shape[1], most)
    if len(rows.points):
        local = local.absorb(rows.points, weights, _seeded(seed, 0, rows.number))
    mass, squares = float(weights.sum()), float(weights @ weights)
    return PartitionSketch(rows.count, mass, squares, rows.number, rows.columns, local.first(SAMPLE_ROWS)), local


def join_sketches(sketches: Sequence[PartitionSketch]) -> PartitionSketch:
    """One sketch of all their partitions, which must be alike, with all the atoms of their small means."""
    some = [each for each in sketches if not each.is_empty] or [sketches[0]]
    for other in some[1:]:
        _require_alike(some[0], other)
    means = [each.small for each in some if each.small is not None]
    return PartitionSketch(
        count=sum(each.count for each in sketches),
        mass=float(sum(each.mass for each in some)),
        squares=float(sum(each.squares for each in some)),
        first=some[0].first,
        columns=some[0].columns,
        sample=reduce(Reservoir.merge, [each.sample for each in some]),
        small=SmallMean.side_by_side(means) if means else None,
    )


def _require_alike(one: PartitionSketch, other: PartitionSketch) -> None:
    wanted, seen = one.sample.points.shape[1], other.sample.points.shape[1]
    if wanted != seen:
        raise ValueError(f"partition {other.first} must have {wanted} columns like partition {one.first}, got {seen}")
    if one.columns is not None and other.columns is not None and one.columns != other.columns:
        raise ValueError(
            f"partition {other.first} must have the columns {list(one.columns)} like partition {one.first}, "
            f"got {list(other.columns)}; select or rename them"
        )


def merge_sketches(
    kernel: RadialKernel, size: int, seed: int, level: int, place: int, sketches: Sequence[PartitionSketch]
) -> PartitionSketch:
    """One sketch of all their partitions, its small mean of ``size`` atoms, with the chance numbers of that place in the tree."""
    joined = join_sketches(sketches)
    if joined.small is None:
        return joined
    return replace(joined, small=joined.small.fewer(kernel, size, _seeded(seed, 2, level, place)))


def _seeded(seed: int, *place: int) -> np.random.Generator:
    """Chance numbers of a place in the work, the same whoever does it and when."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=place))
