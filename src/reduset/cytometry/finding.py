"""Populations of many samples: atoms that cover all cells, merged by mode.

1. A sketch of the cells of all samples, every sample with the same mass but for the tiniest: atoms near every cell, so that rare
   ones have their own, each with the cells it stands for. These are the finest populations, and all counts are sums of theirs: no
   cell is left out.
2. Atoms merged where no valley lies between them (`merging`), down to the depth of valleys asked for, or to a number. More than a
   thousand atoms are gathered into groups first, as a sketch of the atoms again. Cells of a sample that was stained otherwise go
   with those of the others (`strays`).

Cost: that of the sketch, O(n·m·d) at worst; some ten thousand dips on a few lines each; one pass for medians.
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
from reduset._validate.seeds import seeded
from reduset.cytometry.groups_of_cells import CellGroup
from reduset.cytometry.merging import MergeTree, merge_by_mode
from reduset.cytometry.naming import border, short_names, signs
from reduset.cytometry.populations import Populations
from reduset.cytometry.strays import Stray, join_strays
from reduset.kernels import Gaussian
from reduset.sketching import Sketch, sketch

COVERAGE = 0.3  # of the atoms are farthest-first cells, so that rare populations have several
ATOMS, CELLS_AN_ATOM, FEWEST_ATOMS = 1000, 50, 20
GROUPS = 1000  # of atoms at most, from which merging begins
DIP = 0.5  # of the lower peak, below which a valley parts two populations
SPEAKS = 0.1  # of the median sample's cells, from which a sample counts in full: fifty cells are not to outweigh a million
MOST_CELLS = 200_000  # from which borders and medians are taken
MAX_MARKERS = 2000  # that define populations: a (d, d) covariance is kept for every group of cells
OUTER = (0.1, 2.5)  # percent of the cells beyond either end of what has most of them
LARGEST = 1e15  # squares of what is more are no use beside others
FAR = 5.0  # such ranges beyond it, from where on places are not told apart


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
    defining : the columns by which populations are told apart, all by default, at most 2,000; the others are only described
    scales : (d,) what columns are divided by, so that all count alike; they are in one unit by default
    n_atoms : the finest populations; by default 1,000, or one for 50 cells where there are fewer
    n_populations : how many there should be; by default as many as have valleys around them
    dip : float between 0 and 1
        A valley parts two populations where its floor is at most this share of the lower peak.
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
    many = min(len(pooled), ATOMS, max(FEWEST_ATOMS, len(pooled) // CELLS_AN_ATOM))
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
            groups = max(GROUPS, n_populations or 0)
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
    """Each sample as finite numbers, all with the same columns."""
    if len(cells) == 0:
        raise ValueError("cells must hold at least one sample, got none")
    first = _validate.points(cells[0], "cells[0]")
    every = [first, *(_validate.points(sample, f"cells[{k}]", first.shape[1]) for k, sample in enumerate(cells[1:], 1))]
    for k, sample in enumerate(every):
        largest = max(abs(float(sample.max())), abs(float(sample.min())))
        if largest > LARGEST:
            raise ValueError(f"cells[{k}] must stay below {LARGEST:g} in size, got {largest:g}; leave such events out, or rescale")
    return every


def _units(scales: Array, count: int) -> Array:
    units = np.asarray(scales, np.float64)
    if units.shape != (count,) or not (np.isfinite(units) & (units > 0)).all():
        raise ValueError(f"scales must be {count} finite numbers above 0, one a column, got {scales!r}")
    return units


def _weights(sizes: NDArray[np.int64]) -> Array:
    """What a cell of each sample weighs, one on average: samples count alike, but for those too small to speak for as many."""
    weights = 1 / np.maximum(sizes, SPEAKS * np.median(sizes))
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
    """The group of each atom, its own if they are few, and how groups merge."""
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
    """(2, d) beyond which a cell counts as lying there: some events far out are not to say how wide everything is."""
    some = cells[:: 1 + len(cells) // MOST_CELLS]
    low, high = np.percentile(some, [0, 100], axis=0)
    for tail in OUTER:  # of a marker that hardly any cell has, nearly all are at one value
        inner = np.percentile(some, [tail, 100 - tail], axis=0)
        low, high = np.where(inner[1] > inner[0], inner, [low, high])
    wide = FAR * (high - low)
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
    """The populations from the largest on, with counts, medians and names."""
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
    if len(cells) > MOST_CELLS:  # of each population, so that rare ones have their own
        some = _some_of_each(of_atom[small.assignments], MOST_CELLS // k, rng)
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
    """Not more than so many rows of each owner, ascending."""
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
    """(k,) the shallowest valley around each population: that across which it would be merged next."""
    of_group = np.empty(tree.size, np.int64)
    of_group[group_of_atom] = of_atom
    found = np.full(of_atom.max() + 1, np.nan)
    for each in tree.merges:
        one, other = of_group[each.into], of_group[each.gone]
        for side in (one, other):
            if one != other and np.isnan(found[side]):
                found[side] = each.dip
    return found
