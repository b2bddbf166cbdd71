"""Groups of cells merged by mode: in each step, the two neighbouring groups with the shallowest valley between them.

The results are the modes of the cells' density, as far as one-dimensional projections show them. The merges form a tree. It is cut
at a depth of valleys, relative to the lower peak, or at a number of populations. Groups with too few cells to show a valley are
merged first, with the nearest group.

Valleys. The density of two groups is projected on lines that separate them, and the dip between them is measured. Let Δ be the
difference of the means of the groups. There are three kinds of lines. Fisher's lines are u = S̄⁻¹Δ, once with the covariance S̄
within the two groups, and once with the covariance within all groups before any merging. The second kind is Δ itself. The third
are up to four single markers in which the means differ by half a standard deviation. On a line, f is the density of both groups
together, with the bandwidth of Silverman's rule, and the dip is

    min_t f(t) / min(max_{s ≤ t} f(s), max_{s ≥ t} f(s)).

It is 1 or more without a valley, and 0 if the density between the peaks falls to 0. The deepest dip counts. The floor of the valley
is raised and the lower peak lowered by one standard error each, so that dips within the sampling error count as shallow. (The count
of a cell that represents six has the variance 6².) Events piled up at the floor of a detector are no separate population. Therefore
the bandwidth is at least a tenth of the standard deviation of all cells, and at least the step of a marker with few values.

Density estimates in 10 or 30 dimensions would need far more cells than there are. On a line they do not. A unimodal density that
was cut in two shows no valley, because marginals of a log-concave density are log-concave (Prékopa 1973).

Cost: O(cells·d) a line, O(k·NEIGHBOURS) dips for k groups, about NEIGHBOURS more for each merge, and O(k²) memory.

Sample-specific clusters. In a sample that was stained differently, the cells of a common population form a separate cluster next to
it. A valley separates the two, but not within any sample. Counted separately, that sample would seem to lack the common population,
and the others the new one. So a population is joined with the nearest one under three conditions. Nine tenths of it are in a small
number of samples. No other population is nearer to the nearest one. These samples have less than half the proportion of the nearest
population that the others have. Differences between groups of samples are not joined, because a study tests for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from reduset._engine import valley_depths
from reduset._types import Array, Floats, Indices, Report

MAX_SAMPLE = 300  # cells of a group before merging
RIDGE = 0.05  # of the mean variance; without it, Fisher's direction follows the sampling error of small groups
MIN_BANDWIDTH = 0.1  # standard deviations of all cells on a line
MIN_SEPARATION = 0.5  # standard deviations of all cells
MAX_SINGLE_MARKERS = 4
MIN_COARSE_VALUES = 4  # a marker with fewer values has classes, without steps between them
NEIGHBOURS = 8
MIN_CELLS = 25  # of a group that may show a valley
SAMPLES_PER_CLUSTER = 8  # at most one sample in eight has a sample-specific cluster
CONCENTRATION = 0.9  # proportion of a cluster in these samples
MAX_REMAINDER = 0.5  # proportion of the nearest population in these samples, relative to the other samples


@dataclass(frozen=True)
class CellGroup:
    """A group of cells: its weight, mean and covariance, and a sample of its cells.

    The sample has a few hundred cells of every initial group, or all of a small group. Joined groups keep both samples, so the
    sparse margins of a large group, where valleys lie, stay as well sampled as its centre.

    Attributes
    ----------
    count : Weight, in cells.
    centre : Mean, (d,).
    covariance : Covariance, (d, d).
    cells : Sample of its cells, (s, d).
    represents : Number of cells that each sampled cell represents, (s,).
    """

    count: float
    centre: Array
    covariance: Array = field(repr=False)
    cells: Floats = field(repr=False)
    represents: Array = field(repr=False)

    @classmethod
    def of(cls, cells: Floats, rows: Indices, weights: Array, rng: np.random.Generator, fences: Array | None = None) -> CellGroup:
        """The group of these rows, with weights. Values are clipped to the limits ``fences``, (2, d), if given."""
        represents = weights[rows]
        count = float(represents.sum())
        if len(rows) > MAX_SAMPLE:
            rows = np.sort(rng.choice(rows, MAX_SAMPLE, replace=False, p=represents / count))
            represents = np.full(MAX_SAMPLE, count / MAX_SAMPLE)
        sample = np.asarray(cells[rows], np.float64)
        if fences is not None:
            np.clip(sample, *fences, out=sample)
        centre = np.average(sample, axis=0, weights=represents)
        off = sample - centre
        return cls(count, centre, (off * (represents / count)[:, None]).T @ off, sample, represents)

    def joined(self, other: CellGroup) -> CellGroup:
        """The union of two groups."""
        count = self.count + other.count
        weight, step = self.count / count, other.centre - self.centre
        covariance = weight * self.covariance + (1 - weight) * other.covariance + weight * (1 - weight) * np.outer(step, step)
        represents = np.concatenate([self.represents, other.represents])
        cells = np.concatenate([self.cells, other.cells])
        return CellGroup(count, self.centre + (1 - weight) * step, covariance, cells, represents)


@dataclass(frozen=True)
class Valleys:
    """The scales on which dips are measured.

    Attributes
    ----------
    total : Covariance of all cells, (d, d).
    within : Covariance within the groups before any merging, (d, d).
    steps : Step between the values of each marker, (d,).
    """

    total: Array
    within: Array
    steps: Array

    @classmethod
    def among(cls, groups: Sequence[CellGroup]) -> Valleys:
        """The scales of these groups."""
        counts = np.array([group.count for group in groups])
        weights = counts / counts.sum()
        centres = np.stack([group.centre for group in groups])
        off = centres - weights @ centres
        within = np.tensordot(weights, np.stack([group.covariance for group in groups]), 1)
        cells, represents = (np.concatenate([getattr(group, name) for group in groups]) for name in ("cells", "represents"))
        steps = np.array([_step(column, represents) for column in cells.T])
        return cls(within + (off * weights[:, None]).T @ off, _ridged(within, RIDGE), steps)

    def dip(self, a: CellGroup, b: CellGroup) -> float:
        """The floor of the valley between two groups, relative to the lower peak."""
        lines = self._lines(a, b)
        if not lines.size:
            return np.inf
        finest = MIN_BANDWIDTH * np.sqrt(np.einsum("dl,dl->l", lines, self.total @ lines))
        finest = np.maximum(finest, np.sqrt(np.square(self.steps) @ np.square(lines)))
        return float(valley_depths(lines.T @ a.cells.T, lines.T @ b.cells.T, a.represents, b.represents, finest).min())

    def _lines(self, a: CellGroup, b: CellGroup) -> Array:
        """(d, l) directions of projection."""
        difference = b.centre - a.centre
        if not difference.any():
            return np.empty((len(difference), 0))
        d, smaller = len(difference), min(a.count, b.count)
        both = (a.count * a.covariance + b.count * b.covariance) / (a.count + b.count)
        fisher = [
            cho_solve(cho_factor(covariance, check_finite=False), difference, check_finite=False)
            for covariance in (_ridged(both, max(RIDGE, min(1.0, d / smaller))), self.within)
        ]
        spreads = np.sqrt(np.maximum(self.total.diagonal(), np.finfo(float).tiny))
        separations = np.abs(difference) / spreads
        order = np.argsort(-separations, kind="stable")[:MAX_SINGLE_MARKERS]
        single = [j for j in order if separations[j] > MIN_SEPARATION]
        return np.column_stack([*fisher, difference, np.eye(d)[:, single]])


def _step(values: Array, weights: Array) -> float:
    """The weighted median step between neighbouring values; 0 for two or three values, which are classes."""
    levels, of_value = np.unique(values, return_inverse=True)
    if len(levels) < MIN_COARSE_VALUES:
        return 0.0
    steps = np.diff(levels)
    wider = np.maximum(np.append(steps, 0.0), np.append(0.0, steps))
    return weighted_median(wider, np.bincount(of_value, weights))


def weighted_median(values: Floats, weights: NDArray[Any]) -> float:
    """The smallest value that at least half of the weight does not exceed."""
    order = np.argsort(values)
    mass = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(mass, mass[-1] / 2)]])


def _ridged(covariance: Array, ridge: float) -> Array:
    mean = np.trace(covariance) / len(covariance)
    return covariance + np.eye(len(covariance)) * (mean * ridge if mean > 0 else 1.0)  # the variance of coincident cells is 0


class Merge(NamedTuple):
    """Group ``gone`` was merged into group ``into`` across this dip; infinite for a group of too few cells."""

    into: int
    gone: int
    dip: float


@dataclass(frozen=True)
class MergeTree:
    """All merges of k groups, the shallowest dip first."""

    size: int
    merges: tuple[Merge, ...]

    def cut(self, dip: float | None = None, size: int | None = None) -> Indices:
        """(k,) the population of each group, with valleys deeper than ``dip`` between populations, or with ``size`` populations."""
        root = np.arange(self.size)
        for step, merge in enumerate(self.merges):
            if (size is not None and self.size - step <= size) or (dip is not None and merge.dip < dip):
                break
            root[root == merge.gone] = merge.into
        return np.unique(root, return_inverse=True)[1].astype(np.int64)


def merge_by_mode(groups: list[CellGroup], report: Report) -> MergeTree:
    """Merge until one group remains."""
    alive, valleys, neighbours = dict(enumerate(groups)), Valleys.among(groups), _Neighbours(groups)
    dips = np.full((len(groups), len(groups)), np.nan)
    merges: list[Merge] = []
    while len(alive) > 1:
        report(len(merges), len(groups) - 1)
        smallest = min(alive, key=lambda name: (len(alive[name].cells), alive[name].count))
        if len(alive[smallest].cells) < MIN_CELLS:
            pair, dip = (neighbours.nearest(smallest), smallest), np.inf
        else:
            low, high = neighbours.pairs()
            for k in np.flatnonzero(np.isnan(dips[low, high])):
                dips[low[k], high[k]] = valleys.dip(alive[int(low[k])], alive[int(high[k])])
            best = int(np.argmax(dips[low, high]))
            pair, dip = (int(low[best]), int(high[best])), float(dips[low[best], high[best]])
        into, gone = sorted(pair, key=lambda name: -alive[name].count)
        alive[into] = alive[into].joined(alive.pop(gone))
        neighbours.join(into, gone, alive[into].centre)
        dips[into], dips[:, into] = np.nan, np.nan
        merges.append(Merge(into, gone, dip))
    return MergeTree(len(groups), tuple(merges))


class _Neighbours:
    """The nearest groups of each group, kept up to date during merging."""

    def __init__(self, groups: list[CellGroup]) -> None:
        self._centres = np.stack([group.centre for group in groups])
        self._alive = np.ones(len(groups), bool)
        self._squares = np.square(self._centres[:, None] - self._centres).sum(axis=2)
        np.fill_diagonal(self._squares, np.inf)
        self._nearest = np.empty((len(groups), 0), np.int64)

    def nearest(self, group: int) -> int:
        return int(np.argmin(self._squares[group]))

    def join(self, into: int, gone: int, centre: Array) -> None:
        """Replace two groups by their union, with its centre."""
        self._alive[gone], self._centres[into] = False, centre
        new = np.where(self._alive, np.square(self._centres - centre).sum(axis=1), np.inf)
        new[into] = np.inf
        self._squares[gone], self._squares[:, gone] = np.inf, np.inf
        self._squares[into], self._squares[:, into] = new, new
        if self._nearest.size:
            farthest = np.take_along_axis(self._squares, self._nearest, axis=1).max(axis=1)
            stale = ((self._nearest == into) | (self._nearest == gone)).any(axis=1) | (new < farthest)
            stale[into] = True
            self._update(np.flatnonzero(stale & self._alive))

    def pairs(self) -> tuple[Indices, Indices]:
        """(pairs,) each group with its nearest ones, every pair once, the lower number first."""
        names = np.flatnonzero(self._alive)
        if self._nearest.shape[1] != min(NEIGHBOURS, len(names) - 1):
            self._nearest = np.zeros((len(self._alive), min(NEIGHBOURS, len(names) - 1)), np.int64)
            self._update(names)
        one, other = np.repeat(names, self._nearest.shape[1]), self._nearest[names].ravel()
        codes = np.unique(np.minimum(one, other) * len(self._alive) + np.maximum(one, other))
        return codes // len(self._alive), codes % len(self._alive)

    def _update(self, names: Indices) -> None:
        count = self._nearest.shape[1]
        if count <= self._alive.sum() - 1:  # otherwise `pairs` computes all again
            self._nearest[names] = np.argpartition(self._squares[names], count - 1, axis=1)[:, :count]


# -- sample-specific clusters -------------------------------------------------------------------------------------------------


class SampleCluster(NamedTuple):
    """A sample-specific cluster that was joined with the nearest population.

    Attributes
    ----------
    population : Population that it was joined with.
    samples : Samples of its cells, in ascending order.
    share : Mean proportion of its cells in these samples.
    """

    population: int
    samples: tuple[int, ...]
    share: float


def join_sample_clusters(of_atom: Indices, atoms: Array, shares: Array) -> tuple[Indices, list[SampleCluster]]:
    """Join sample-specific clusters: the population of each atom, (m,), and the clusters.

    Parameters
    ----------
    of_atom : Population of each atom, (m,).
    atoms : Coordinates of the atoms, (m, d).
    shares : Proportion of each atom in each sample, (N, m).
    """
    of_atom, joined = of_atom.copy(), []
    while (cluster := _first_cluster(of_atom, atoms, shares)) is not None:
        population, nearest, samples = cluster
        members = of_atom == population
        share = float(shares[np.ix_(samples, members)].sum(axis=1).mean())
        joined.append((int(np.flatnonzero(members)[0]), tuple(samples.tolist()), share))
        of_atom[members] = nearest
    of_atom = np.unique(of_atom, return_inverse=True)[1].astype(np.int64)
    return of_atom, [SampleCluster(int(of_atom[atom]), samples, share) for atom, samples, share in joined]


def _first_cluster(of_atom: Indices, atoms: Array, shares: Array) -> tuple[int, int, Indices] | None:
    """The smallest sample-specific cluster, the nearest population, and the samples that have it."""
    max_samples, names = len(shares) // SAMPLES_PER_CLUSTER, np.unique(of_atom)
    if not max_samples or len(names) < 2:
        return None
    member = of_atom[:, None] == names
    proportions = shares @ member  # (N, k)
    sizes = proportions.mean(axis=0)
    centres = (shares.mean(axis=0)[:, None] * member).T @ atoms / sizes[:, None]
    squares = np.square(centres[:, None] - centres).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    for k in np.argsort(sizes, kind="stable"):
        order = np.argsort(-proportions[:, k], kind="stable")
        count = int(np.searchsorted(np.cumsum(proportions[order, k]), CONCENTRATION * proportions[:, k].sum())) + 1
        near = int(np.argmin(squares[k]))
        if count > max_samples or squares[k, near] > squares[near].min():
            continue
        inside, outside = np.median(proportions[order[:count], near]), np.median(proportions[order[count:], near])
        if inside < MAX_REMAINDER * outside:
            return int(names[k]), int(names[near]), np.sort(order[:count])
    return None
