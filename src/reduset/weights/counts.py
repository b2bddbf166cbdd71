"""Counts: each row belongs to its nearest atom, and an atom weighs what its rows weigh.

Sums of such weights over a part of the data are what that part weighs, but for the rows at its rim: the weights for proportions,
and for everything that takes a ``sample_weight``. They are not the best for the kernel's norm. Nearest is meant in the kernel's own
distance, in which the rows' bumps differ least. One pass over the data, O(n·m·d) at worst.

The first atoms of some have no counts of their own without another pass. What the others weigh is handed down instead: from each
to the nearest of those before it, from the last to the first.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine import LeafCover, blocks, each_nearest, to_numpy
from reduset._types import Array
from reduset.kernels import Kernel, RadialKernel
from reduset.mean import KernelMean

PAIRS = 1 << 20

# (block, rows, their nearest atoms, g/C of these products, distances to them in the coordinates of the product)
UseNearest = Callable[[int, Any, NDArray[np.integer], Array, Array], None]


def with_nearest_atoms(
    mean: KernelMean, atoms: Array, cover: LeafCover | None, use: UseNearest, products: bool = True, there: bool = False
) -> None:
    """Call ``use(block, rows, index, g/C with that atom, its distance)`` for all blocks of points, from several threads.

    Without ``products`` these are left out, and nobody waits for them. With ``there`` arrays of points on a GPU are left on it.
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

        def found(block: int, rows: Any, index: NDArray[np.int32], distance: Array) -> None:
            use(block, rows, index, kernel.product_at(scale * distance, d) if products else distance[:0], scale * distance)

        each_nearest(mean.atoms, atoms, frame, metric, leaves, found, there)
        return
    for k, (a, b) in enumerate(blocks(mean.size, max(1, PAIRS // len(atoms)))):
        values = kernel.product_gram(mean.atoms[a:b], atoms)
        index = values.argmax(axis=1)
        largest = np.clip(values[np.arange(b - a), index], -1.0, 1.0)
        use(k, slice(a, b), index, largest, np.sqrt(2 - 2 * largest))


def owners(mean: KernelMean, atoms: Array, cover: LeafCover | None = None) -> NDArray[np.int64]:
    """(n,) the nearest atom of each point."""
    found = np.empty(mean.size, np.int64)

    def note(_: int, rows: Any, index: NDArray[np.integer], *__: Array) -> None:
        found[rows] = index

    with_nearest_atoms(mean, atoms, cover, note, products=False)
    return found


def counts(mean: KernelMean, atoms: Array, cover: LeafCover | None = None) -> Array:
    """(m,) what the points nearest to each atom weigh."""
    if not mean.is_uniform:
        return np.bincount(owners(mean, atoms, cover), mean.weights, len(atoms)).astype(np.float64)
    rows, one_at_a_time = np.zeros(len(atoms), np.int64), allocate_lock()

    def add(_: int, __: Any, index: NDArray[np.integer], *___: Array) -> None:
        part = to_numpy(np.bincount(index, minlength=len(atoms)))
        with one_at_a_time:
            np.add(rows, part, out=rows)

    with_nearest_atoms(mean, atoms, cover, add, products=False, there=True)
    return np.asarray(rows * float(mean.weights[0]), np.float64)


def heirs(kernel: Kernel, atoms: Array) -> NDArray[np.int64]:
    """(m,) for each atom the nearest of those before it; 0 for the first."""
    found = np.zeros(len(atoms), np.int64)
    for a, b in blocks(len(atoms), max(1, PAIRS // len(atoms))):
        products = kernel.product_gram(atoms[a:b], atoms[:b])
        products[np.arange(b) >= np.arange(a, b)[:, None]] = -np.inf
        found[a:b] = products.argmax(axis=1)
    return found


def handed_down(weights: Array, to: NDArray[np.int64], size: int) -> Array:
    """The weights of the first ``size`` atoms when the others' have been handed down to them."""
    left = weights.copy()
    for k in range(len(left) - 1, size - 1, -1):
        left[to[k]] += left[k]
    return left[:size]
