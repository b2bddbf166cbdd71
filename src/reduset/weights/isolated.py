"""Groups of atoms that stand apart keep the mass of their rows.

Weights of a given sum have a price, the same for all atoms: what the dense part of the data cannot take is handed to atoms that
stand alone, where it costs least, and a rare group may so end with twice its mass. For the norm that is right, and for whoever
counts the group it is wrong. Groups that the kernel tells from all others,

    α_GᵀK α_rest ≤ ¼ · α_GᵀK α_G,

can be given the mass of their rows, or nearly so, whatever the others do: the error grows by no more than their own small part.

They are looked for among the components of the atoms linked up to some distances, the widest first. O(m²) a distance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from reduset._engine import blocks
from reduset._types import Array

ROWS_A_STEP = 256
LINKED = (0.05, 0.2, 0.4, 0.6, 0.8)  # products of bumps of norm 1, from which on two atoms belong together
APART = 0.25  # of a group's own energy: what it may share with all others
OFF = 0.1  # of its mass, that a group may be off


def isolated_groups(K: Array, weights: Array) -> NDArray[np.int64]:
    """(m,) the number of each atom's group, −1 for those in none, from the matrix of products and weights of one sign."""
    groups, found = np.full(len(K), -1, np.int64), 0
    shared = weights * (K @ weights)
    for product in LINKED:
        count, part = connected_components(csr_array(product <= K), directed=False)
        inside = np.bincount(part, weights * _within(K, weights, part), count)
        apart = np.bincount(part, shared, count) - inside <= APART * inside
        apart &= np.bincount(part, groups >= 0, count) == 0
        for k in np.flatnonzero(apart):
            groups[part == k] = found
            found += 1
    return groups


def with_masses_of_groups(weights: Array, groups: NDArray[np.int64], masses: Array) -> Array:
    """The weights, groups that are off their mass by more than a tenth drawn up to there; what has no weight at all gets none."""
    count = int(groups.max(initial=-1)) + 2
    now, then = (np.bincount(groups + 1, each, count) for each in (weights, masses))
    wanted = np.clip(now, (1 - OFF) * then, (1 + OFF) * then)
    wanted[0] = now[0]
    factors = np.divide(wanted, now, out=np.ones(count), where=now > 0)
    if (factors == 1).all():
        return weights
    scaled = weights * factors[groups + 1]
    return np.asarray(scaled * (masses.sum() / scaled.sum()))


def _within(K: Array, weights: Array, part: NDArray[np.int32]) -> Array:
    """(m,) the sum over the atoms of the same part, at each."""
    sums = np.empty(len(K))
    for a, b in blocks(len(K), ROWS_A_STEP):
        sums[a:b] = np.where(part == part[a:b, None], K[a:b], 0.0) @ weights
    return sums
