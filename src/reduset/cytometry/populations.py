"""The populations of a study: their atoms, cells in every sample, markers and names; and sample-specific clusters.

Names. A marker is high or low in a population if three quarters of its cells lie above or below the border of the marker, which
separates two classes by the largest variance between them (Otsu 1979). A name has the fewest signs that distinguish the population
from all others. If these are few, markers follow in which it is high and which separate it best, up to three in all:
"CD3+ CD4+ CD8−".

Sample-specific clusters. A sample that was stained differently has a population of its own next to the common one: a valley
separates them, but not within any sample. Counted separately, that sample would seem to lack the common population, and the others
the new one. So a population is joined with the nearest one if few samples hold nine tenths of it, no other population is nearer to
that one, and these samples have less than half as much of it as the others. Differences between groups of samples are not joined: a
study looks for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from reduset._engine import cached_property
from reduset._types import Array, Floats, Indices
from reduset.cytometry.merging import MergeTree
from reduset.sketching import Sketch

MIN_SEPARATION = 0.5  # standard deviations from the other cells
HISTOGRAM_BINS = 256
MAJORITY = 0.75  # of a population's cells
SIGNS = {1: "+", -1: "−", 0: "±"}
USUAL_SIGNS, MAX_SIGNS = 3, 5
SAMPLES_PER_STRAY = 8  # at most one sample in so many holds a sample-specific cluster
CONCENTRATION = 0.9  # of a population, in few samples
MAX_REMAINDER = 0.5  # of the nearest population, relative to the other samples


@dataclass(frozen=True)
class Populations:
    """Populations of cells of N samples, from the largest to the smallest.

    Attributes
    ----------
    names : of the k populations, by their markers
    markers : of the d columns
    atoms : (m, d) the cells that represent all others, the finest populations
    of_atom : (m,) the population of each atom
    atom_counts : (N, m) the cells of each sample that each atom represents
    medians : (k, d) of each population's cells, with the same weight for every sample
    signs : (k, d) 1 for a marker that is high in a population, −1 for low, 0 for neither
    separations : (k, d) the distance of the median from that of all other cells, in standard deviations of the marker
    dips : (k,) the floor of the shallowest valley around each, relative to the lower peak; nan for a single population
    tree : of all merges of groups of atoms
    group_of_atom : (m,) the group of each atom in the tree
    sketch : the atoms as rows of the cells of all samples, in their order, with the error
    strays : sample-specific clusters that were joined with a population
    """

    names: tuple[str, ...]
    markers: tuple[str, ...]
    atoms: Array = field(repr=False)
    of_atom: Indices = field(repr=False)
    atom_counts: NDArray[np.int64] = field(repr=False)
    medians: Array = field(repr=False)
    signs: NDArray[np.int64] = field(repr=False)
    separations: Array = field(repr=False)
    dips: Array = field(repr=False)
    tree: MergeTree = field(repr=False)
    group_of_atom: Indices = field(repr=False)
    sketch: Sketch = field(repr=False)
    strays: tuple[Stray, ...] = ()

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

    def intervals(self, confidence: float = 0.95) -> Array:
        """(N, k, 2) confidence limits of each proportion, for cells drawn at random (Clopper & Pearson 1934)."""
        x, n, tail = self.counts.astype(float), self.sizes[:, None].astype(float), (1 - confidence) / 2
        low = np.where(x > 0, betaincinv(np.maximum(x, 1), n - x + 1, tail), 0.0)
        high = np.where(x < n, betaincinv(x + 1, np.maximum(n - x, 1), 1 - tail), 1.0)
        return np.stack([low, high], axis=-1)

    def owners(self) -> Indices:
        """The population of every cell, in the order of the samples."""
        return self.of_atom[self.sketch.assignments]

    def marked(self, k: int, most: int = 4) -> list[str]:
        """The markers that separate a population from the other cells best, with signs."""
        found = self.separations[k]
        order = np.argsort(-np.abs(found))[:most]
        return [f"{self.markers[m]}{'+' if found[m] > 0 else '−'}" for m in order if abs(found[m]) >= MIN_SEPARATION]

    def __str__(self) -> str:
        m, n = len(self.atoms), int(self.sizes.sum())
        lines = [f"{len(self)} populations of {n:,} cells in {len(self.sizes)} samples, on {m:,} atoms"]
        shares = self.mean_shares
        lines += [f"{100 * shares[k]:>7.3g} %  {name}" for k, name in enumerate(self.names)]
        return "\n  ".join(lines)


def border(values: Floats, weights: Array) -> float:
    """Otsu's border of a marker: the largest variance between two classes."""
    low, high = np.percentile(values, [0.1, 99.9])
    if not high > low:
        return float(low)
    counts, edges = np.histogram(np.clip(values, low, high), HISTOGRAM_BINS, (low, high), weights=weights)
    places = (edges[:-1] + edges[1:]) / 2
    below = np.cumsum(counts)[:-1]
    above = below[-1] + counts[-1] - below
    sums = np.cumsum(counts * places)
    with np.errstate(invalid="ignore", divide="ignore"):
        between = below * above * (sums[:-1] / below - (sums[-1] - sums[:-1]) / above) ** 2
    best = np.flatnonzero(between == np.nanmax(between))  # it is constant over a gap without cells, of which this is the middle
    return float((edges[best[0] + 1] + edges[best[-1] + 1]) / 2)


def signs(above: Array) -> NDArray[np.int64]:
    """1, −1 or 0 from the proportions of a population's cells above the border of a marker."""
    return np.where(above >= MAJORITY, 1, np.where(above <= 1 - MAJORITY, -1, 0))


def short_names(codes: NDArray[np.int64], separations: Array, markers: Sequence[str]) -> list[str]:
    """The names of populations, from (k, d) signs and separations; equal names are numbered."""
    names = [_short_name(k, codes, separations, markers) for k in range(len(codes))]
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(f"{name} ({seen[name]})" if names.count(name) > 1 else name)
    return unique


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


class Stray(NamedTuple):
    """A cluster of few samples that was joined with the nearest population.

    Attributes
    ----------
    population : the population it was joined with
    samples : the samples of its cells, in ascending order
    share : mean proportion of its cells in these samples
    """

    population: int
    samples: tuple[int, ...]
    share: float


def join_strays(of_atom: Indices, atoms: Array, shares: Array) -> tuple[Indices, list[Stray]]:
    """Join sample-specific clusters: the population of each atom, (m,), and the clusters.

    Parameters
    ----------
    of_atom : (m,) the population of each atom
    atoms : (m, d)
    shares : (N, m) the proportion of each atom in each sample
    """
    of_atom, joined = of_atom.copy(), []
    while (found := _first(of_atom, atoms, shares)) is not None:
        stray, nearest, samples = found
        own = of_atom == stray
        share = float(shares[np.ix_(samples, own)].sum(axis=1).mean())
        joined.append((int(np.flatnonzero(own)[0]), Stray(-1, tuple(samples.tolist()), share)))
        of_atom[own] = nearest
    of_atom = np.unique(of_atom, return_inverse=True)[1].astype(np.int64)
    return of_atom, [stray._replace(population=int(of_atom[atom])) for atom, stray in joined]


def _first(of_atom: Indices, atoms: Array, shares: Array) -> tuple[int, int, Indices] | None:
    """The smallest sample-specific cluster, the nearest population, and the samples that have it."""
    few, names = len(shares) // SAMPLES_PER_STRAY, np.unique(of_atom)
    if not few or len(names) < 2:
        return None
    member = of_atom[:, None] == names
    masses = shares @ member  # (N, k)
    centres = (shares.mean(axis=0)[:, None] * member).T @ atoms / masses.mean(axis=0)[:, None]
    gaps = np.square(centres[:, None] - centres).sum(axis=2)
    np.fill_diagonal(gaps, np.inf)
    for k in np.argsort(masses.mean(axis=0), kind="stable"):
        order = np.argsort(-masses[:, k], kind="stable")
        count = int(np.searchsorted(np.cumsum(masses[order, k]), CONCENTRATION * masses[:, k].sum())) + 1
        near = int(np.argmin(gaps[k]))
        theirs, others = masses[order[:count], near], masses[order[count:], near]
        if count <= few and gaps[k, near] == gaps[near].min() and np.median(theirs) < MAX_REMAINDER * np.median(others):
            return int(names[k]), int(names[near]), np.sort(order[:count])
    return None
