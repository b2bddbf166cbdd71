"""Populations of the cells of many samples: atoms that represent all cells, merged by mode, with markers and names.

1. The cells of all samples are sketched, with the same weight for every sample except very small ones. Every cell has an atom
   nearby, including rare cells. The atoms with the cells they represent are the smallest groups. All counts are sums over atoms,
   and every cell is counted.
2. Atoms without a valley between them are merged (`merging`), up to a depth of valleys, or a number of populations. More than a
   thousand atoms are first grouped by a sketch of the atoms. Sample-specific clusters are joined with a population.

Names. A marker is high or low in a population if three quarters of its cells lie above or below the border of the marker. The
border separates two classes by the largest variance between them (Otsu 1979). A name consists of a few signs that distinguish the
population from all others. If there are fewer than three, markers are added in which the population is high and which separate it:
"CD3+ CD4+ CD8−".

Cost: the sketch, O(n·m·d) at most, about ten thousand dips on a few lines each, and one pass for medians.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from reduset import _validate
from reduset._engine import cached_property, single_threaded_blas
from reduset._messages import warn
from reduset._progress import Progress
from reduset._types import Array, Floats, Indices, ProgressLike, SeedLike
from reduset._validate import seeded
from reduset.cytometry.merging import CellGroup, SampleCluster, join_sample_clusters, merge_by_mode, weighted_median
from reduset.kernels import Gaussian
from reduset.sketching import Sketch, sketch

COVERAGE = 0.3  # of the atoms are farthest-first cells, so that rare populations have several
MAX_ATOMS, CELLS_PER_ATOM, MIN_ATOMS = 1000, 50, 20  # by default
MAX_GROUPS = 1000  # of atoms before merging
DIP = 0.5
# Smaller samples have less weight, so that fifty cells count less than a million.
FULL_WEIGHT_SHARE = 0.1  # of the median sample size
MAX_SAMPLED_CELLS = 200_000  # for borders and medians
MAX_MARKERS = 2000  # that define populations; a (d, d) covariance is kept for every group of cells
TAIL_PERCENTS = (0.1, 2.5)
MAX_VALUE = 1e15  # rounding errors of larger squares exceed the values of other cells
OUTLIER_RANGES = 5.0  # values farther from the inner range than this multiple of it are clipped
MIN_SEPARATION = 0.5  # standard deviations from the other cells
HISTOGRAM_BINS = 256
MAJORITY = 0.75  # of a population's cells
SIGNS = {1: "+", -1: "−", 0: "±"}
USUAL_SIGNS, MAX_SIGNS = 3, 5


@dataclass(frozen=True)
class Populations:
    """Populations of cells of N samples, from the largest to the smallest.

    Attributes
    ----------
    names : Names of the k populations, made of their markers.
    markers : Names of the d columns.
    atoms : Cells that represent all others, (m, d).
    of_atom : Population of each atom, (m,).
    atom_counts : Number of cells of each sample that each atom represents, (N, m).
    medians : Median of each marker over the cells of a population, (k, d), with the same weight for every sample.
    signs : Signs of the markers, (k, d), 1 for high in a population, −1 for low, 0 for neither.
    separations : Difference of the medians of a population and of all other cells, (k, d), in standard deviations of the marker.
    sketch : Sketch of the cells of all samples, in their order, with its error. The atoms are its rows.
    sample_specific : Sample-specific clusters that were joined with a population.
    """

    names: tuple[str, ...]
    markers: tuple[str, ...]
    atoms: Array = field(repr=False)
    of_atom: Indices = field(repr=False)
    atom_counts: NDArray[np.int64] = field(repr=False)
    medians: Array = field(repr=False)
    signs: NDArray[np.int64] = field(repr=False)
    separations: Array = field(repr=False)
    sketch: Sketch = field(repr=False)
    sample_specific: tuple[SampleCluster, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """(N, k) cells of each sample in each population."""
        member = self.of_atom[:, None] == np.arange(len(self))
        return self.atom_counts @ member.astype(np.int64)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(N,) cells of each sample."""
        return np.asarray(self.atom_counts.sum(axis=1))

    @property
    def shares(self) -> Array:
        """(N, k) the proportion of each population in each sample."""
        return self.counts / self.sizes[:, None]

    @property
    def mean_shares(self) -> Array:
        """(k,) the proportion of each population, with the same weight for every sample."""
        return np.asarray(self.shares.mean(axis=0))

    @property
    def atom_shares(self) -> Array:
        """(N, m) the proportion of each atom in each sample."""
        return self.atom_counts / self.sizes[:, None]

    def intervals(self, confidence: float = 0.95) -> Array:
        """(N, k, 2) confidence limits of each proportion, for cells drawn at random (Clopper & Pearson 1934)."""
        x, n, tail = self.counts.astype(float), self.sizes[:, None].astype(float), (1 - confidence) / 2
        low = np.where(x > 0, betaincinv(np.maximum(x, 1), n - x + 1, tail), 0.0)
        high = np.where(x < n, betaincinv(x + 1, np.maximum(n - x, 1), 1 - tail), 1.0)
        return np.stack([low, high], axis=-1)

    def assignments(self) -> Indices:
        """The population of every cell, in the order of the samples."""
        return self.of_atom[self.sketch.assignments]

    def marked(self, k: int, most: int = 4) -> list[str]:
        """The markers that separate a population best from the other cells, with signs; at most ``most``."""
        separations = self.separations[k]
        order = np.argsort(-np.abs(separations))[:most]
        return [f"{self.markers[m]}{'+' if separations[m] > 0 else '−'}" for m in order if abs(separations[m]) >= MIN_SEPARATION]

    def __str__(self) -> str:
        m, n = len(self.atoms), int(self.sizes.sum())
        lines = [f"{len(self)} populations of {n:,} cells in {len(self.sizes)} samples, on {m:,} atoms"]
        shares = self.mean_shares
        lines += [f"{100 * shares[k]:>7.3g} %  {name}" for k, name in enumerate(self.names)]
        return "\n  ".join(lines)


@seeded
def find_populations(
    cells: Sequence[Floats],
    markers: Sequence[str] | None = None,
    *,
    defining: Sequence[int] | None = None,
    scales: Array | None = None,
    n_atoms: int | None = None,
    n_populations: int | None = None,
    dip: float = DIP,
    rng: SeedLike = None,
    progress: ProgressLike = False,
) -> Populations:
    """Find the populations of the cells of many samples.

    Parameters
    ----------
    cells : Cells of each sample, (n, d).
    markers : Names of the d columns; "x0", "x1", … by default.
    defining : Columns that define populations, at most 2,000; all by default. The others are only described.
    scales : Divisors that give the d columns one unit; none by default.
    n_atoms : Number of atoms; by default 1,000, or one for 50 cells if that is less.
    n_populations : Number of populations; by default all that are separated by valleys.
    dip : Float between 0 and 1. A valley separates two populations if its floor is at most this fraction of the lower peak.
    rng : None, seed or Generator.
    progress : bool, or a function of (stage, done, total).

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.cytometry import find_populations
    >>> rng = np.random.default_rng(0)
    >>> samples = [np.concatenate([rng.normal(0, 1, (900, 3)), rng.normal(6, 1, (100, 3))]) for _ in range(4)]
    >>> found = find_populations(samples, ["CD3", "CD4", "CD8"], rng=0)
    >>> found.counts.tolist()
    [[900, 100], [900, 100], [900, 100], [900, 100]]
    """
    samples = _samples(cells)
    sizes = np.array([len(sample) for sample in samples])
    pooled = np.concatenate(samples) if len(samples) > 1 else samples[0]
    n, d = pooled.shape
    names = tuple(f"x{j}" for j in range(d)) if markers is None else tuple(map(str, markers))
    if len(names) != d:
        raise ValueError(f"markers must name each of the {d} columns, got {len(names)} names")
    columns = np.arange(d) if defining is None else np.asarray(defining, np.int64)
    if columns.ndim != 1 or not columns.size or columns.min() < 0 or columns.max() >= d:
        raise ValueError(f"defining must hold one or more numbers of columns, from 0 to {d - 1}; got {defining}")
    if len(columns) > MAX_MARKERS:
        raise ValueError(
            f"at most {MAX_MARKERS:,} markers may define populations, got {len(columns):,}, because a covariance of all of them is "
            "kept for every group of cells; choose fewer markers, or pass principal components. CohortMap supports more"
        )
    dip = _validate.between(dip, "dip", 0.0, 1.0)
    default = min(n, MAX_ATOMS, max(MIN_ATOMS, n // CELLS_PER_ATOM))
    size = default if n_atoms is None else _validate.whole(n_atoms, "n_atoms", 1, n, "it is a number of cells")
    if n_populations is not None:
        n_populations = _validate.whole(n_populations, "n_populations", 1, size, "a population has at least one atom")
    atoms_rng, groups_rng, merges_rng, medians_rng = _validate.generator(rng).spawn(4)
    shown = Progress(progress)
    try:
        weights = np.repeat(_weights(sizes), sizes)
        used = pooled if len(columns) == d else np.ascontiguousarray(pooled[:, columns])
        if scales is not None:
            used = used / units_of(scales, d).astype(used.dtype)[columns]
        options: dict[str, Any] = {"kernel": Gaussian(), "coverage": COVERAGE, "calibrate": False}
        small = sketch(used, size, sample_weight=weights, rng=atoms_rng, progress=progress, **options)
        atoms, group_of_atom = np.unique(np.asarray(used[small.indices], np.float64), axis=0, return_inverse=True)
        with single_threaded_blas():
            n_groups = max(MAX_GROUPS, n_populations or 0)
            if n_groups < len(atoms):
                masses = np.bincount(group_of_atom[small.assignments], weights, len(atoms))
                group_of_atom = sketch(atoms, n_groups, sample_weight=masses, rng=groups_rng, **options).assignments[group_of_atom]
            groups = _groups(used, weights, group_of_atom[small.assignments], merges_rng)
            tree = merge_by_mode(groups, shown.stage("merging"))
        if n_populations is not None and n_populations > tree.size:
            warn(f"n_populations is {n_populations}, but only {tree.size} cells are distinct; that number of populations is found")
        shown.stage("describing populations")(0, 1)
        of_atom = tree.cut(None if n_populations is not None else dip, n_populations)[group_of_atom]
        return _described(pooled, sizes, names, columns, small, of_atom, n_populations is None, medians_rng)
    finally:
        shown.close()


def units_of(scales: Array, count: int) -> Array:
    """(d,) the divisors of markers."""
    units = np.asarray(scales, np.float64)
    if units.shape != (count,) or not (np.isfinite(units) & (units > 0)).all():
        raise ValueError(f"scales must be {count} finite numbers above 0, one per marker, got {scales!r}")
    return units


def _samples(cells: Sequence[Floats]) -> list[Floats]:
    """The samples as finite numbers with the same columns."""
    if len(cells) == 0:
        raise ValueError("cells must hold at least one sample, got none")
    first = _validate.points(cells[0], "cells[0]")
    samples = [first, *(_validate.points(sample, f"cells[{k}]", first.shape[1]) for k, sample in enumerate(cells[1:], 1))]
    for k, sample in enumerate(samples):
        largest = max(abs(float(sample.max())), abs(float(sample.min())))
        if largest > MAX_VALUE:
            raise ValueError(f"cells[{k}] must be below {MAX_VALUE:g} in size, got {largest:g}; omit such events, or rescale")
    return samples


def _weights(sizes: NDArray[np.int64]) -> Array:
    """(N,) the weight of a cell of each sample, of mean one: all samples have the same weight, except very small ones."""
    weights = 1 / np.maximum(sizes, FULL_WEIGHT_SHARE * np.median(sizes))
    return np.asarray(weights * (sizes.sum() / (weights @ sizes)))


def _groups(cells: Floats, weights: Array, group: Indices, rng: np.random.Generator) -> list[CellGroup]:
    """The groups of cells before merging."""
    order = np.argsort(group, kind="stable")
    fences = _fences(cells)
    return [CellGroup.of(cells, rows, weights, rng, fences) for rows in np.split(order, np.cumsum(np.bincount(group))[:-1])]


def _fences(cells: Floats) -> Array:
    """(2, d) limits to which values are clipped, so that outliers do not determine the spread."""
    sample = cells[:: 1 + len(cells) // MAX_SAMPLED_CELLS]
    low, high = np.percentile(sample, [0, 100], axis=0)
    for tail in TAIL_PERCENTS:  # the inner range is empty if nearly all cells have one value of a marker
        inner = np.percentile(sample, [tail, 100 - tail], axis=0)
        low, high = np.where(inner[1] > inner[0], inner, [low, high])
    margin = OUTLIER_RANGES * (high - low)
    return np.stack([low - margin, high + margin])


def _described(
    cells: Floats,
    sizes: NDArray[np.int64],
    markers: tuple[str, ...],
    columns: Indices,
    small: Sketch,
    of_atom: Indices,
    joins: bool,
    rng: np.random.Generator,
) -> Populations:
    """The populations in decreasing size, with counts, medians and names; ``joins`` if sample-specific clusters are joined."""
    m = small.size
    sample = np.repeat(np.arange(len(sizes)), sizes)
    atom_counts = np.bincount(sample * m + small.assignments, minlength=len(sizes) * m).reshape(len(sizes), m)
    shares = atom_counts / sizes[:, None]
    clusters = list[SampleCluster]()
    if joins:
        of_atom, clusters = join_sample_clusters(of_atom, np.asarray(small.mean.atoms, np.float64), shares)
    rank = np.argsort(np.argsort(-np.bincount(of_atom, shares.mean(axis=0)), kind="stable"))
    of_atom = rank[of_atom]
    masses = np.bincount(of_atom, shares.mean(axis=0))
    k, d = len(masses), len(markers)
    chosen = np.arange(len(cells))
    if len(cells) > MAX_SAMPLED_CELLS:  # the same number from each population, so that rare ones are represented
        chosen = _balanced_sample(of_atom[small.assignments], MAX_SAMPLED_CELLS // k, rng)
    population, rows = of_atom[small.assignments[chosen]], np.asarray(cells[chosen], np.float64)
    weight = masses[population] / np.bincount(population, minlength=k)[population]
    medians, above, separations = np.empty((k, d)), np.empty((k, d)), np.empty((k, d))
    fences = _fences(rows)
    for j in range(d):
        column, clipped = rows[:, j], np.clip(rows[:, j], *fences[:, j])
        marker_border = border(clipped, weight)
        spread = float(np.sqrt(np.average((clipped - np.average(clipped, weights=weight)) ** 2, weights=weight)))
        for p in range(k):
            inside = population == p
            medians[p, j] = np.median(column[inside])
            above[p, j] = np.mean(column[inside] > marker_border)
            others = weighted_median(column[~inside], weight[~inside]) if k > 1 else medians[p, j]
            separations[p, j] = (medians[p, j] - others) / spread if spread > 0 else 0.0
    codes = signs(above)
    return Populations(
        names=tuple(short_names(codes[:, columns], separations[:, columns], [markers[j] for j in columns])),
        markers=markers,
        atoms=np.asarray(cells[small.indices], np.float64),
        of_atom=of_atom,
        atom_counts=atom_counts,
        medians=medians,
        signs=codes,
        separations=separations,
        sketch=small,
        sample_specific=tuple(cluster._replace(population=int(rank[cluster.population])) for cluster in clusters),
    )


def _balanced_sample(population: Indices, count: int, rng: np.random.Generator) -> Indices:
    """At most ``count`` random rows of each population, ascending."""
    order = rng.permutation(len(population))
    ranked = order[np.argsort(population[order], kind="stable")]
    counts = np.bincount(population)
    within = np.arange(len(population)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(ranked[within < count])


# -- names --------------------------------------------------------------------------------------------------------------------


def border(values: Floats, weights: Array) -> float:
    """Otsu's border of a marker, with the largest variance between the two classes."""
    low, high = np.percentile(values, [0.1, 99.9])
    if not high > low:
        return float(low)
    counts, edges = np.histogram(np.clip(values, low, high), HISTOGRAM_BINS, (low, high), weights=weights)
    centres = (edges[:-1] + edges[1:]) / 2
    below = np.cumsum(counts)[:-1]
    above = below[-1] + counts[-1] - below
    sums = np.cumsum(counts * centres)
    with np.errstate(invalid="ignore", divide="ignore"):
        between = below * above * (sums[:-1] / below - (sums[-1] - sums[:-1]) / above) ** 2
    best = np.flatnonzero(between == np.nanmax(between))  # several bins if an interval has no cells: the border is its middle
    return float((edges[best[0] + 1] + edges[best[-1] + 1]) / 2)


def signs(above: Array) -> NDArray[np.int64]:
    """Signs 1, −1 or 0 from the proportions of a population's cells above the border of a marker."""
    return np.where(above >= MAJORITY, 1, np.where(above <= 1 - MAJORITY, -1, 0))


def short_names(codes: NDArray[np.int64], separations: Array, markers: Sequence[str]) -> list[str]:
    """Names of populations, from (k, d) signs and separations; equal names are numbered."""
    names = [_short_name(k, codes, separations, markers) for k in range(len(codes))]
    return [f"{name} ({names[: k + 1].count(name)})" if names.count(name) > 1 else name for k, name in enumerate(names)]


def _short_name(k: int, codes: NDArray[np.int64], separations: Array, markers: Sequence[str]) -> str:
    """The signs that distinguish one population: in each step the sign that excludes most others, high before low."""
    others = [j for j in range(len(codes)) if j != k]
    chosen: list[int] = []
    while others and len(chosen) < MAX_SIGNS:
        free = [m for m in range(len(markers)) if m not in chosen]
        excluded = {m: sum(codes[j, m] != codes[k, m] for j in others) for m in free}
        best = max(free, key=lambda m: (excluded[m], codes[k, m], -m), default=None)
        if best is None or excluded[best] == 0:
            break
        chosen.append(best)
        others = [j for j in others if codes[j, best] == codes[k, best]]
    high = [m for m in range(len(markers)) if codes[k, m] == 1 and m not in chosen]
    chosen += sorted(high, key=lambda m: -separations[k, m])[: max(0, USUAL_SIGNS - len(chosen))]
    ordered = sorted(chosen, key=lambda m: (-codes[k, m], m))
    return " ".join(f"{markers[m]}{SIGNS[int(codes[k, m])]}" for m in ordered) or "all cells"
