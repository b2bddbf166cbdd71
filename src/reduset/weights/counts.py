"""The nearest-atom pass: assign each row to its nearest atom, and sum the weights of the rows assigned to each atom.

Distances are those of the kernel. One pass over the data, O(n·m·d) at worst.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine import LeafCover, blocks, nearest_by_block, to_numpy
from reduset._types import Array
from reduset.kernels import RadialKernel
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

        nearest_by_block(mean.atoms, atoms, frame, metric, leaves, found, there)
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
    """(m,) the total weight of the points nearest to each atom."""
    if not mean.is_uniform:
        return np.bincount(owners(mean, atoms, cover), mean.weights, len(atoms)).astype(np.float64)
    rows, one_at_a_time = np.zeros(len(atoms), np.int64), allocate_lock()

    def add(_: int, __: Any, index: NDArray[np.integer], *___: Array) -> None:
        part = to_numpy(np.bincount(index, minlength=len(atoms)))
        with one_at_a_time:
            np.add(rows, part, out=rows)

    with_nearest_atoms(mean, atoms, cover, add, products=False, there=True)
    return np.asarray(rows * float(mean.weights[0]), np.float64)
