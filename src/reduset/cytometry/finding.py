"""Populations of the cells of many samples: atoms that represent all cells, merged by mode.

1. The cells of all samples are sketched, with the same weight for every sample except very small ones. Every cell has an atom
   nearby, also a rare one. The atoms with the cells they represent are the finest populations. All counts are sums over atoms, and
   every cell is counted. 2. Atoms without a valley between them are merged (`merging`), up to a depth of valleys, or a number of
   populations. More than a thousand atoms are first grouped by a sketch of the atoms. Sample-specific clusters are joined with a
   population (`populations`).

Cost: that of the sketch, O(n·m·d) at most, about ten thousand dips on a few lines each, and one pass for medians.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine import single_threaded_blas
from reduset._messages import warn
from reduset._progress import Progress
from reduset._types import Array, Floats, Indices, ProgressLike, SeedLike
from reduset._validate import seeded
from reduset.cytometry.merging import CellGroup, MergeTree, merge_by_mode
from reduset.cytometry.populations import Populations, Stray, border, join_strays, short_names, signs
from reduset.kernels import Gaussian
from reduset.sketching import Sketch, sketch

COVERAGE = 0.3  # of the atoms are farthest-first cells, so that rare populations have several
MAX_ATOMS, CELLS_PER_ATOM, MIN_ATOMS = 1000, 50, 20  # by default
MAX_GROUPS = 1000  # of atoms before merging
DIP = 0.5
FULL_WEIGHT_SHARE = 0.1  # of the median sample size; smaller samples have less weight: fifty cells must not outweigh a million
MAX_SAMPLED_CELLS = 200_000  # for borders and medians
MAX_MARKERS = 2000  # that define populations: a (d, d) covariance is kept for every group of cells
TAIL_PERCENTS = (0.1, 2.5)
MAX_VALUE = 1e15  # beyond it, squares lose all other cells to rounding
OUTLIER_RANGES = 5.0  # inner ranges beyond the inner range, outside of which values are clipped


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
    cells : of each sample (n, d)
    markers : (d,) names of the columns; "x0", "x1", … by default
    defining : the columns that define populations, all by default, at most 2,000; the others are only described
    scales : (d,) divisors that bring columns to one unit; none by default
    n_atoms : the number of atoms; by default 1,000, or one for 50 cells if that is less
    n_populations : the number of populations; by default all with valleys around them
    dip : float between 0 and 1
        A valley separates two populations if its floor is at most this fraction of the lower peak.
    rng : None, seed or Generator
    progress : bool, or a function of (stage, done, total)

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
    each = _samples(cells)
    sizes = np.array([len(sample) for sample in each])
    pooled = np.concatenate(each) if len(each) > 1 else each[0]
    d = pooled.shape[1]
    named = tuple(f"x{j}" for j in range(d)) if markers is None else tuple(map(str, markers))
    if len(named) != d:
        raise ValueError(f"markers must name each of the {d} columns, got {len(named)} names")
    columns = np.arange(d) if defining is None else _columns(defining, d)
    check_markers(len(columns))
    dip = _validate.between(dip, "dip", 0.0, 1.0)
    many = min(len(pooled), MAX_ATOMS, max(MIN_ATOMS, len(pooled) // CELLS_PER_ATOM))
    size = many if n_atoms is None else _validate.whole(n_atoms, "n_atoms", 1, len(pooled), "it is a number of cells")
    if n_populations is not None:
        n_populations = _validate.whole(n_populations, "n_populations", 1, size, "a population has an atom at least")
    atoms_rng, groups_rng, merges_rng, medians_rng = _validate.generator(rng).spawn(4)
    shown = Progress(progress)
    try:
        by_sample = np.repeat(_weights(sizes), sizes)
        used = pooled if len(columns) == d else np.ascontiguousarray(pooled[:, columns])
        if scales is not None:
            used = used / _units(scales, d).astype(used.dtype)[columns]
        small = sketch(
            used,
            size,
            kernel=Gaussian(),
            coverage=COVERAGE,
            calibrate=False,
            sample_weight=by_sample,
            rng=atoms_rng,
            progress=progress,
        )
        with single_threaded_blas():
            groups = max(MAX_GROUPS, n_populations or 0)
            group_of_atom, tree = _merged(used, by_sample, small, groups, groups_rng, merges_rng, shown)
        if n_populations is not None and n_populations > tree.size:
            warn(f"n_populations is {n_populations}, and there are only {tree.size} places with cells: that many are found")
        shown.stage("describing populations")(0, 1)
        return _described(pooled, sizes, named, columns, small, group_of_atom, tree, dip, n_populations, medians_rng)
    finally:
        shown.close()


def check_markers(count: int) -> None:
    """Raise an error if too many markers define populations."""
    if count > MAX_MARKERS:
        raise ValueError(
            f"at most {MAX_MARKERS:,} markers may define populations, got {count:,}: a covariance of all of them is kept for every "
            "group of cells; choose fewer markers, or pass principal components. CohortMap takes more"
        )


def _samples(cells: Sequence[Floats]) -> list[Floats]:
    """The samples as finite numbers with the same columns."""
    if len(cells) == 0:
        raise ValueError("cells must hold at least one sample, got none")
    first = _validate.points(cells[0], "cells[0]")
    every = [first, *(_validate.points(sample, f"cells[{k}]", first.shape[1]) for k, sample in enumerate(cells[1:], 1))]
    for k, sample in enumerate(every):
        largest = max(abs(float(sample.max())), abs(float(sample.min())))
        if largest > MAX_VALUE:
            raise ValueError(
                f"cells[{k}] must stay below {MAX_VALUE:g} in size, got {largest:g}; leave such events out, or rescale"
            )
    return every


def _units(scales: Array, count: int) -> Array:
    units = np.asarray(scales, np.float64)
    if units.shape != (count,) or not (np.isfinite(units) & (units > 0)).all():
        raise ValueError(f"scales must be {count} finite numbers above 0, one a column, got {scales!r}")
    return units


def _weights(sizes: NDArray[np.int64]) -> Array:
    """(N,) the weight of a cell of each sample, of mean one: all samples have the same weight, except very small ones."""
    weights = 1 / np.maximum(sizes, FULL_WEIGHT_SHARE * np.median(sizes))
    return np.asarray(weights * (sizes.sum() / (weights @ sizes)))


def _columns(defining: Sequence[int], count: int) -> Indices:
    columns = np.asarray(defining, np.int64)
    if columns.ndim != 1 or not columns.size or columns.min() < 0 or columns.max() >= count:
        raise ValueError(f"defining must hold one or more numbers of columns, each from 0 to {count - 1}; got {list(defining)}")
    return columns


def _merged(
    cells: Floats,
    weights: Array,
    small: Sketch,
    size: int,
    groups_rng: np.random.Generator,
    rng: np.random.Generator,
    shown: Progress,
) -> tuple[Indices, MergeTree]:
    """The group of each atom, and the tree in which groups merge."""
    atoms, group_of_atom = np.unique(np.asarray(cells[small.indices], np.float64), axis=0, return_inverse=True)
    if size < len(atoms):
        masses = np.bincount(group_of_atom[small.assignments], weights, len(atoms))
        fewer = sketch(atoms, size, kernel=Gaussian(), coverage=COVERAGE, calibrate=False, sample_weight=masses, rng=groups_rng)
        group_of_atom = fewer.assignments[group_of_atom]
    group = group_of_atom[small.assignments]
    order = np.argsort(group, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(group))[:-1])
    fences = _fences(cells)
    groups = [CellGroup.of(cells, rows, weights, rng, fences) for rows in parts]
    return group_of_atom, merge_by_mode(groups, shown.stage("merging"))


def _fences(cells: Floats) -> Array:
    """(2, d) limits to which values are clipped, so that a few events far away do not determine the spread."""
    some = cells[:: 1 + len(cells) // MAX_SAMPLED_CELLS]
    low, high = np.percentile(some, [0, 100], axis=0)
    for tail in TAIL_PERCENTS:  # nearly all cells have one value of a marker that is rarely positive
        inner = np.percentile(some, [tail, 100 - tail], axis=0)
        low, high = np.where(inner[1] > inner[0], inner, [low, high])
    wide = OUTLIER_RANGES * (high - low)
    return np.stack([low - wide, high + wide])


def _described(
    cells: Floats,
    sizes: NDArray[np.int64],
    markers: tuple[str, ...],
    columns: Indices,
    small: Sketch,
    group_of_atom: Indices,
    tree: MergeTree,
    dip: float,
    size: int | None,
    rng: np.random.Generator,
) -> Populations:
    """The populations in decreasing size, with counts, medians and names."""
    m = small.size
    sample = np.repeat(np.arange(len(sizes)), sizes)
    atom_counts = np.bincount(sample * m + small.assignments, minlength=len(sizes) * m).reshape(len(sizes), m)
    shares = atom_counts / sizes[:, None]
    of_atom, strays = tree.cut(None if size is not None else dip, size)[group_of_atom], list[Stray]()
    if size is None:
        of_atom, strays = join_strays(of_atom, np.asarray(small.mean.atoms, np.float64), shares)
    place = np.argsort(np.argsort(-np.bincount(of_atom, shares.mean(axis=0)), kind="stable"))
    of_atom = place[of_atom]
    masses = np.bincount(of_atom, shares.mean(axis=0))
    k, d = len(masses), len(markers)
    some = np.arange(len(cells))
    if len(cells) > MAX_SAMPLED_CELLS:  # the same number from each population, so that rare ones are represented
        some = _some_of_each(of_atom[small.assignments], MAX_SAMPLED_CELLS // k, rng)
    owner, rows = of_atom[small.assignments[some]], np.asarray(cells[some], np.float64)
    weight = masses[owner] / np.bincount(owner, minlength=k)[owner]
    medians, above, separations = np.empty((k, d)), np.empty((k, d)), np.empty((k, d))
    fences = _fences(rows)
    for j in range(d):
        column, within = rows[:, j], np.clip(rows[:, j], *fences[:, j])
        edge = border(within, weight)
        spread = float(np.sqrt(np.average((within - np.average(within, weights=weight)) ** 2, weights=weight)))
        for own in range(k):
            mine = owner == own
            medians[own, j] = np.median(column[mine])
            above[own, j] = np.mean(column[mine] > edge)
            rest = _weighted_median(column[~mine], weight[~mine]) if k > 1 else medians[own, j]
            separations[own, j] = (medians[own, j] - rest) / spread if spread > 0 else 0.0
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
        dips=_dips(tree, group_of_atom, of_atom),
        tree=tree,
        group_of_atom=group_of_atom,
        sketch=small,
        strays=tuple(stray._replace(population=int(place[stray.population])) for stray in strays),
    )


def _some_of_each(owner: Indices, most: int, rng: np.random.Generator) -> Indices:
    """At most ``most`` random rows of each owner, ascending."""
    order = rng.permutation(len(owner))
    ranked = order[np.argsort(owner[order], kind="stable")]
    counts = np.bincount(owner)
    starts = np.cumsum(counts) - counts
    within = np.arange(len(owner)) - np.repeat(starts, counts)
    return np.sort(ranked[within < most])


def _weighted_median(values: Array, weights: Array) -> float:
    order = np.argsort(values)
    mass = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(mass, mass[-1] / 2)]])


def _dips(tree: MergeTree, group_of_atom: Indices, of_atom: Indices) -> Array:
    """(k,) the shallowest valley around each population, across which it would be merged next."""
    of_group = np.empty(tree.size, np.int64)
    of_group[group_of_atom] = of_atom
    found = np.full(of_atom.max() + 1, np.nan)
    for each in tree.merges:
        one, other = of_group[each.into], of_group[each.gone]
        for side in (one, other):
            if one != other and np.isnan(found[side]):
                found[side] = each.dip
    return found
