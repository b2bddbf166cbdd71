"""Strays: cells that one sample has where no other has any, and that are missing where the others have theirs.

A sample that was stained otherwise has a population of its own beside the common one: a valley lies between them, but in no sample.
Counted apart, that sample would seem to lack the common population, and the others to lack the new one. So a population nine tenths
of which lie in few samples is joined with the nearest one if that is no farther away than from any other, and those samples have
less than half as much of it as the others do. What sets whole groups of samples apart is left alone: it is what a study looks for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reduset._types import Array, Indices

FEW = 8  # of so many samples one
MOST = 0.9  # of a population, that few samples hold
LACK = 0.5  # of what the other samples have


class Stray(NamedTuple):
    """Cells of a few samples that were joined with what lies beside them.

    Attributes
    ----------
    population : with which
    samples : whose cells, in ascending order
    share : of all cells of these samples, on average
    """

    population: int
    samples: tuple[int, ...]
    share: float


def join_strays(of_atom: Indices, atoms: Array, shares: Array) -> tuple[Indices, list[Stray]]:
    """(m,) the population of each atom once strays are joined, and the strays.

    Parameters
    ----------
    of_atom : (m,) the population of each atom; atoms : (m, d) their places
    shares : (N, m) those of the atoms in each sample
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
    """The smallest population that is a stray, the nearest one, and the samples that have it."""
    few, names = len(shares) // FEW, np.unique(of_atom)
    if not few or len(names) < 2:
        return None
    member = of_atom[:, None] == names
    masses = shares @ member  # (N, k)
    centres = (shares.mean(axis=0)[:, None] * member).T @ atoms / masses.mean(axis=0)[:, None]
    gaps = np.square(centres[:, None] - centres).sum(axis=2)
    np.fill_diagonal(gaps, np.inf)
    for k in np.argsort(masses.mean(axis=0), kind="stable"):
        order = np.argsort(-masses[:, k], kind="stable")
        count = int(np.searchsorted(np.cumsum(masses[order, k]), MOST * masses[:, k].sum())) + 1
        near = int(np.argmin(gaps[k]))
        theirs, others = masses[order[:count], near], masses[order[count:], near]
        if count <= few and gaps[k, near] == gaps[near].min() and np.median(theirs) < LACK * np.median(others):
            return int(names[k]), int(names[near]), np.sort(order[:count])
    return None
