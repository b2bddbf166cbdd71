"""The mass of the rows nearest to each atom, and groups of atoms that keep the mass of their rows.

**Nearest atoms.** One pass over the data assigns each row to its nearest atom by the kernel's distance. O(n·m·d) at worst.

**Isolated groups.** The constraint on the sum of weights adds the same multiplier for all atoms. Weight that increases the error in
dense regions moves to isolated atoms, so a rare group may get twice its mass. That minimises the norm, but the weight of the group
is then wrong as a count. Consider a group G with kernel functions nearly orthogonal to all others,

    α_GᵀK α_rest ≤ ¼ · α_GᵀK α_G,

It can be given the mass of its rows. The error increases at most by the small part of the group. Candidate groups are the connected
components of the atoms linked up to some distances, the largest distance first. O(m²) for each distance.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from reduset._engine import LeafCover, blocks, nearest_by_block, to_numpy
from reduset._types import Array
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean

PAIRS = 1 << 20
ROWS_PER_STEP = 256
LINK_PRODUCTS = (0.05, 0.2, 0.4, 0.6, 0.8)  # least inner products, at norm 1, of two linked atoms
SHARED_ENERGY = 0.25  # largest inner product of a group with all other atoms, relative to the energy of the group
MASS_TOLERANCE = 0.1  # relative deviation of a group's weight from the mass of its rows

# (block, rows, their nearest atoms, g/C of these products, distances to them in the coordinates of the product)
UseNearest = Callable[[int, Any, NDArray[np.integer], Array, Array], None]


def with_nearest_atoms(
    mean: KernelMean, atoms: Array, cover: LeafCover | None, use: UseNearest, products: bool = True, there: bool = False
) -> None:
    """Call ``use(block, rows, index, g/C with that atom, its distance)`` for all blocks of points, from several threads.

    Parameters
    ----------
    products : False omits g/C, which saves its time
    there : True keeps arrays of points on the GPU
    """
    kernel, d = mean.kernel, mean.dimension
    if isinstance(kernel, RadialKernel):
        shape = kernel.product(d)
        if cover is None:
            metric = shape.profile.ranking
            frame, scale = kernel.frame(mean.atoms, shape).sized(mean.atoms)
            leaves = None
        else:
            frame, leaves, scale, metric = cover.leaves.frame, cover.leaves, cover.scale, cover.metric

        def use_block(block: int, rows: Any, index: NDArray[np.int32], distance: Array) -> None:
            use(block, rows, index, kernel.product_at(scale * distance, d) if products else distance[:0], scale * distance)

        nearest_by_block(mean.atoms, atoms, frame, metric, leaves, use_block, there)
        return
    for k, (a, b) in enumerate(blocks(mean.size, max(1, PAIRS // len(atoms)))):
        values = kernel.product_gram(mean.atoms[a:b], atoms)
        index = values.argmax(axis=1)
        largest = np.clip(values[np.arange(b - a), index], -1.0, 1.0)
        use(k, slice(a, b), index, largest, np.sqrt(2 - 2 * largest))


def assignments_to(mean: KernelMean, atoms: Array, cover: LeafCover | None = None) -> NDArray[np.int64]:
    """(n,) the nearest atom of each point."""
    assignments = np.empty(mean.size, np.int64)

    def assign(_: int, rows: Any, index: NDArray[np.integer], *__: Array) -> None:
        assignments[rows] = index

    with_nearest_atoms(mean, atoms, cover, assign, products=False)
    return assignments


def masses_of(mean: KernelMean, atoms: Array, cover: LeafCover | None = None) -> Array:
    """(m,) the total weight of the points nearest to each atom."""
    if not mean.is_uniform:
        return np.bincount(assignments_to(mean, atoms, cover), mean.weights, len(atoms)).astype(np.float64)
    counts, lock = np.zeros(len(atoms), np.int64), allocate_lock()

    def add(_: int, __: Any, index: NDArray[np.integer], *___: Array) -> None:
        part = to_numpy(np.bincount(index, minlength=len(atoms)))
        with lock:
            np.add(counts, part, out=counts)

    with_nearest_atoms(mean, atoms, cover, add, products=False, there=True)
    return np.asarray(counts * float(mean.weights[0]), np.float64)


def isolated_groups(K: Array, weights: Array) -> NDArray[np.int64]:
    """(m,) the number of each atom's isolated group, −1 for no group, from the Gram matrix and weights of one sign."""
    groups, count = np.full(len(K), -1, np.int64), 0
    shared = weights * (K @ weights)
    for product in LINK_PRODUCTS:
        parts, part = connected_components(csr_array(product <= K), directed=False)
        within = np.empty(len(K))  # Σⱼ Kᵢⱼ wⱼ over the atoms of the same part
        for a, b in blocks(len(K), ROWS_PER_STEP):
            within[a:b] = np.where(part == part[a:b, None], K[a:b], 0.0) @ weights
        inside = np.bincount(part, weights * within, parts)
        isolated = np.bincount(part, shared, parts) - inside <= SHARED_ENERGY * inside
        isolated &= np.bincount(part, groups >= 0, parts) == 0
        for k in np.flatnonzero(isolated):
            groups[part == k] = count
            count += 1
    return groups


def with_masses_of_groups(weights: Array, groups: NDArray[np.int64], masses: Array) -> Array:
    """The weights, with groups that deviate from their mass by more than 10 % rescaled to 10 %; weights of 0 stay 0."""
    count = int(groups.max(initial=-1)) + 2
    sums, targets = (np.bincount(groups + 1, values, count) for values in (weights, masses))
    wanted = np.clip(sums, (1 - MASS_TOLERANCE) * targets, (1 + MASS_TOLERANCE) * targets)
    wanted[0] = sums[0]
    factors = np.divide(wanted, sums, out=np.ones(count), where=sums > 0)
    if (factors == 1).all():
        return weights
    scaled = weights * factors[groups + 1]
    return np.asarray(scaled * (masses.sum() / scaled.sum()))
