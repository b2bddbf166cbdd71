"""What pass one keeps of a partition: how much there is, a fair sample, and a small mean; each can be merged with another's.

The small mean of a partition is a compression of a larger sample of its rows, with the best weights. Means of several partitions
are put side by side, and compressed again where they have too many atoms. Cost of a partition: one number and one comparison a
row, and a compression of at most `LOCAL_ROWS` rows; of a merger, one of a few thousand atoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from reduset._types import Array
from reduset.kernels.base import Kernel
from reduset.mean import KernelMean
from reduset.select import KMeans
from reduset.stream.reservoir import Reservoir
from reduset.weights.span import span_of

SAMPLE_ROWS = 4096
LOCAL_ROWS = 1 << 14
ROWS_AN_ATOM = 8


@dataclass(frozen=True)
class Tally:
    """How much there is, and a sample of it.

    Attributes
    ----------
    count : of rows; mass, squares : Σw and Σw²
    first : the number of the first partition with rows in it; sample : None where there is no row of weight
    columns : names, where the rows are of a frame
    """

    count: int
    mass: float
    squares: float
    first: int
    sample: Reservoir | None
    columns: tuple[object, ...] | None

    @property
    def effective(self) -> float:
        """nₑ = (Σw)²/Σw², the number of rows that weights leave."""
        return self.mass * (self.mass / self.squares)

    def merged(self, others: Sequence[Tally]) -> Tally:
        """Of all partitions together; these must be alike."""
        some = [each for each in (self, *others) if each.sample is not None]
        count = self.count + sum(each.count for each in others)
        if not some:
            return Tally(count, 0.0, 0.0, self.first, None, None)
        for other in some[1:]:
            _require_alike(some[0], other)
        mass, squares = (float(sum(getattr(each, name) for each in some)) for name in ("mass", "squares"))
        sample = reduce(Reservoir.merge, [each.sample for each in some if each.sample is not None])
        return Tally(count, mass, squares, some[0].first, sample, some[0].columns)


def _require_alike(one: Tally, other: Tally) -> None:
    if one.sample is None or other.sample is None:
        return
    wanted, seen = one.sample.points.shape[1], other.sample.points.shape[1]
    if wanted != seen:
        raise ValueError(f"partition {other.first} must have {wanted} columns like partition {one.first}, got {seen}")
    if one.columns is not None and other.columns is not None and one.columns != other.columns:
        raise ValueError(
            f"partition {other.first} must have the columns {list(one.columns)} like partition {one.first}, "
            f"got {list(other.columns)}; select or rename them"
        )


@dataclass(frozen=True)
class Small:
    """A mean of few atoms near that of many rows.

    Attributes
    ----------
    atoms : (m, d); weights : (m,) the best ones, which sum to about the rows' mass
    masses : (m,) of the rows around each atom: no good weights, but not negative, as clusters of clusters need them
    """

    atoms: Array
    weights: Array
    masses: Array

    def fewer(self, kernel: Kernel, size: int, rng: np.random.Generator) -> Small:
        """``size`` atoms, where there are more."""
        if len(self.atoms) <= size:
            return self
        centres = KMeans(rows=None).select(KernelMean(self.atoms, self.masses, kernel), size, rng)
        if centres.weights is None:
            raise RuntimeError("clusters have masses")
        span = span_of(kernel, centres.atoms, kernel.product_sums(self.atoms, self.weights, centres.atoms))
        weights = span.weights("free", float(self.weights.sum()), span.size)
        return Small(span.atoms, weights, centres.weights[span.kept])


@dataclass(frozen=True)
class Sketch:
    """A tally of some rows, and a small mean of them; None where there are none."""

    tally: Tally
    small: Small | None

    @classmethod
    def of(cls, tally: Tally, local: Reservoir | None, kernel: Kernel, size: int, rng: np.random.Generator) -> Sketch:
        """Of one partition, from a larger sample of its rows than the tally keeps."""
        if local is None:
            return cls(tally, None)
        weights = tally.mass * local.shares
        return cls(tally, Small(local.points, weights, weights).fewer(kernel, size, rng))


def merge_sketches(kernel: Kernel, size: int, rng: np.random.Generator, sketches: Sequence[Sketch]) -> Sketch:
    """One sketch for the partitions of several."""
    whole = put_together(sketches)
    return whole if whole.small is None else Sketch(whole.tally, whole.small.fewer(kernel, size, rng))


def put_together(sketches: Sequence[Sketch]) -> Sketch:
    """One sketch with all the atoms of several."""
    tally = sketches[0].tally.merged([each.tally for each in sketches[1:]])
    some = [each.small for each in sketches if each.small is not None]
    if not some:
        return Sketch(tally, None)
    return Sketch(
        tally, Small(*(np.concatenate([getattr(each, name) for each in some]) for name in ("atoms", "weights", "masses")))
    )


def local_rows(size: int) -> int:
    """How many rows of a partition its own small mean of ``size`` atoms is made from, at most."""
    return max(SAMPLE_ROWS, 2 * size, min(LOCAL_ROWS, ROWS_AN_ATOM * size))


def seeded(seed: int, *place: int) -> np.random.Generator:
    """Chance numbers of a place in the work, the same whoever does it and when."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=place))
