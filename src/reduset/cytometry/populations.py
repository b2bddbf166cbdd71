"""What was found of populations: which atoms make each, how many cells of every sample it has, and what its markers are."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from reduset._engine import cached_property
from reduset._types import Array, Indices
from reduset.cytometry.merging import MergeTree
from reduset.cytometry.strays import Stray
from reduset.sketching import Sketch

STANDS_OUT = 0.5  # standard deviations from the other cells


@dataclass(frozen=True)
class Populations:
    """Populations of cells of N samples, from the largest to the smallest.

    Attributes
    ----------
    names : of the k populations, by their markers
    markers : of the d columns
    atoms : (m, d) the cells that stand for all others, the finest populations
    of_atom : (m,) the population of each atom
    atom_counts : (N, m) how many cells of each sample each atom stands for
    medians : (k, d) of each population's cells, every sample counting the same
    signs : (k, d) 1 where a population is high in a marker, −1 where it is low, 0 between
    separations : (k, d) how far the median is from that of all other cells, in standard deviations of the marker
    dips : (k,) how deep the shallowest valley around it is, as a share of the lower peak; nan for the only one
    tree : of all merges; `group_of_atom` says from which group of it an atom is
    sketch : the atoms as rows of all samples' cells, one after the other, with what they lose
    strays : cells that a few samples have beside those of the others, which they lack: joined with them
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
        """(N, k) how many cells of each sample belong to each population."""
        member = self.of_atom[:, None] == np.arange(len(self))
        return self.atom_counts @ member.astype(np.int64)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(N,) how many cells each sample has."""
        return np.asarray(self.atom_counts.sum(axis=1))

    @property
    def shares(self) -> Array:
        """(N, k) the share of each population in each sample."""
        return self.counts / self.sizes[:, None]

    @property
    def mean_shares(self) -> Array:
        """(k,) the share of each population, every sample counting the same."""
        return np.asarray(self.shares.mean(axis=0))

    def intervals(self, confidence: float = 0.95) -> Array:
        """(N, k, 2) between which limits each share lies, as far as the sample's cells are a draw (Clopper & Pearson 1934)."""
        x, n, tail = self.counts.astype(float), self.sizes[:, None].astype(float), (1 - confidence) / 2
        low = np.where(x > 0, betaincinv(np.maximum(x, 1), n - x + 1, tail), 0.0)
        high = np.where(x < n, betaincinv(x + 1, np.maximum(n - x, 1), 1 - tail), 1.0)
        return np.stack([low, high], axis=-1)

    def owners(self) -> Indices:
        """The population of every cell, of one sample after the other."""
        return self.of_atom[self.sketch.assignments]

    def marked(self, k: int, most: int = 4) -> list[str]:
        """The markers that tell a population from the other cells, with signs, those first that tell most."""
        found = self.separations[k]
        order = np.argsort(-np.abs(found))[:most]
        return [f"{self.markers[m]}{'+' if found[m] > 0 else '−'}" for m in order if abs(found[m]) >= STANDS_OUT]

    def __str__(self) -> str:
        m, n = len(self.atoms), int(self.sizes.sum())
        lines = [f"{len(self)} populations of {n:,} cells in {len(self.sizes)} samples, on {m:,} atoms"]
        shares = self.mean_shares
        lines += [f"{100 * shares[k]:>7.3g} %  {name}" for k, name in enumerate(self.names)]
        return "\n  ".join(lines)
