"""The nearest atom of every point, and its distance.

There are three methods. With points in leaves, each leaf compares only the atoms whose distance to its box is below the largest
distance of its points so far. Up to 1,024 atoms, comparing all of them is faster than building leaves. In many dimensions a matrix
product ranks the atoms (`Ranks`). The returned distance is always computed from differences in
float64. O(n·m·d) at worst, O(block) memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST
from reduset._engine.centre_distances import Ranks
from reduset._engine.compiled import compiled, row, strip
from reduset._engine.device import goes_to_card
from reduset._engine.distances import CITYBLOCK, SQUARED, distances_at, to_distances
from reduset._engine.leaves import Leaves, build_leaves
from reduset._engine.passes import BlockRows, in_memory
from reduset._engine.profile import FEW_COLUMNS, Frame
from reduset._engine.threads import blocks, row_blocks, run_all
from reduset._types import Floats

BLAS_FROM = 40
BLAS_ROWS = 512
LEAVES_A_TASK = 128
ROWS_A_TASK = 1 << 16  # of answers from a GPU
TILE = 512
FEW = 1024  # atoms, up to which looking at each takes less time than growing leaves


@dataclass(frozen=True)
class LeafCover:
    """Points in leaves, as a selector has them at hand, for whoever needs distances to the atoms next."""

    leaves: Leaves
    metric: int
    scale: float  # from distances in the leaves' frame to those in the kernel's


Use = Callable[[int, Any, NDArray[np.int32], NDArray[np.float64]], None]


def nearest_by_block(
    points: Floats, atoms: Floats, frame: Frame, metric: int, leaves: Leaves | None, use: Use, there: bool = False
) -> None:
    """Call ``use(block, rows, index, distance)`` for each block of points, numbered by rising numbers, from several threads.

    ``rows`` are an array or a slice, ``index`` is the nearest atom of each of them and ``distance`` how far it is, in the frame's
    coordinates. Among atoms whose distances differ by no more than rounding any may be given, with its own distance.

    Parameters
    ----------
    points : (n, d); atoms : (m, d)
    leaves : the points in leaves, where the caller has them already.
    there : whether ``use`` takes arrays on the GPU, where they are found there; else they are brought here
    """
    if isinstance(points, BlockRows):
        for k, (start, stop, (index, distance)) in enumerate(points.results(partial(_nearest_of_block, atoms, frame, metric))):
            use(k, slice(start, stop), index, distance)
        return
    doubly = leaves is not None and leaves.columns.dtype == np.float64  # whose grower knows that single precision does not do
    if goes_to_card(points, atoms, not doubly and (points.shape[1] <= FEW_COLUMNS or metric == SQUARED)):
        _on_card(points, atoms, frame, metric, use, there)
        return
    A = frame.apply(atoms)
    if points.shape[1] >= BLAS_FROM and metric == SQUARED:
        ranks = Ranks.of(A, frame.sized(points)[1])
        parts = enumerate(blocks(len(points), BLAS_ROWS))
        run_all([partial(_blas_task, points, A, ranks, frame, use, k, a, b) for k, (a, b) in parts], blas=True)
        return
    if leaves is None and len(atoms) <= FEW:
        sized, _ = frame.sized(points)
        with np.errstate(over="ignore"):  # an atom that float32 cannot hold is nobody's nearest
            shrunk = sized.apply(atoms).astype(np.float32)
        parts = enumerate(row_blocks(points, points.shape[1]))
        run_all([partial(_plain_task, points, A, shrunk, frame, sized, metric, use, k, a, b) for k, (a, b) in parts])
        return
    leaves = leaves or build_leaves(points, frame)
    shrunk = A.astype(leaves.columns.dtype)
    parts = enumerate(blocks(len(leaves.low), LEAVES_A_TASK))
    run_all([partial(_leaf_task, points, A, shrunk, frame, metric, leaves, use, k, a, b) for k, (a, b) in parts])


def _nearest_of_block(atoms: Floats, frame: Frame, metric: int, rows: Floats) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    return nearest(rows, atoms, frame, metric)


def _on_card(points: Floats, atoms: Floats, frame: Frame, metric: int, use: Use, there: bool) -> None:
    """The same on a GPU, whose answers stay there, or are brought here block by block and handed on by several threads."""
    from reduset._engine.cuda.nearest import nearest_by_block as on_card

    def hand_on(start: int, stop: int, index: Any, distance: Any) -> None:
        if there:
            use(start, slice(start, stop), index, distance)
            return
        near, far, parts = index.get(), distance.get(), blocks(stop - start, ROWS_A_TASK)
        run_all([partial(use, start + a, slice(start + a, start + b), near[a:b], far[a:b]) for a, b in parts])

    on_card(points, atoms, frame, metric, hand_on)


def leaves_for(points: Floats, frame: Frame, atoms: int) -> Leaves | None:
    """The points in leaves, for several searches of nearest atoms; None for few atoms, many columns, and rows outside of memory."""
    return build_leaves(points, frame) if points.shape[1] < BLAS_FROM and atoms > FEW and in_memory(points) else None


def nearest(
    points: Floats, atoms: Floats, frame: Frame, metric: int = SQUARED, leaves: Leaves | None = None
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """For each point the index of its nearest atom and their distance, as `nearest_by_block` finds them."""
    index = np.empty(len(points), np.int32)
    distance = np.empty(len(points))

    def fill(_, rows, its_index, its_distance):
        index[rows], distance[rows] = its_index, its_distance

    nearest_by_block(points, atoms, frame, metric, leaves, fill)
    return index, distance


def _blas_task(points, A, ranks, frame, use, block, a, b):
    use(block, np.arange(a, b), *ranks.nearest(frame.apply(points[a:b])))


def _plain_task(points, A, shrunk, frame, sized, metric, use, block, a, b):
    Z = frame.apply(points[a:b])
    columns = np.ascontiguousarray((Z if sized is frame else sized.apply(points[a:b])).T, np.float32)
    index = np.empty(b - a, np.int32)
    _assign_tiles(columns, shrunk, distances_at(metric, np.float32), index)
    Z -= A[index]
    use(block, np.arange(a, b), index, _lengths(Z, metric))


def _leaf_task(points, A, shrunk, frame, metric, leaves, use, block, first, last):
    start, stop = leaves.starts[first], leaves.starts[last]
    index = np.empty(stop - start, np.int32)
    boxes = leaves.columns, leaves.starts, leaves.low, leaves.high
    distances = distances_at(metric, leaves.columns.dtype.type)
    _assign_leaves(*boxes, shrunk, np.ascontiguousarray(shrunk.T), metric, distances, index, first, last)
    rows = leaves.order[start:stop]
    use(block, rows, index, _lengths(frame.apply(points[rows]) - A[index], metric))


def _lengths(difference, metric):
    if metric == CITYBLOCK:
        return np.abs(difference).sum(axis=1)
    return np.sqrt(np.einsum("ij,ij->i", difference, difference))


@compiled(fastmath=FAST)
def _assign_tiles(columns, A, distances, index):
    n = columns.shape[1]
    distance = np.empty(TILE, np.float32)
    best = np.empty(TILE, np.float32)
    for start in range(0, n, TILE):
        count = min(TILE, n - start)
        which = strip(index, start, count)
        for i in range(count):
            best[i] = np.float32(np.inf)
            which[i] = 0  # kept where every distance is beyond single precision
        for k in range(len(A)):
            to_distances(distances, columns, start, n, count, row(A, k), distance)
            for i in range(count):
                closer = distance[i] < best[i]
                best[i] = distance[i] if closer else best[i]
                which[i] = np.int32(k) if closer else which[i]


@compiled(fastmath=FAST)
def _assign_leaves(columns, starts, low, high, A, columns_of_A, metric, distances, index, first, last):
    m, d = A.shape
    zero = columns.dtype.type(0)
    margin = columns.dtype.type(1.00001)  # for the rounding of the box distances
    closest = np.empty(m, columns.dtype)  # a lower bound on the distance of each atom to the leaf's points
    reached = np.empty(m, columns.dtype)  # an upper bound
    longest = np.int64(0)
    for leaf in range(first, last):
        longest = max(longest, starts[leaf + 1] - starts[leaf])
    t = np.empty(longest, columns.dtype)
    best = np.empty(longest, columns.dtype)
    for leaf in range(first, last):
        a = starts[leaf]
        count = starts[leaf + 1] - a
        which = strip(index, a - starts[first], count)
        for k in range(m):
            closest[k] = zero
            reached[k] = zero
        for j in range(d):
            atoms = row(columns_of_A, j)
            lo = low[leaf, j]
            hi = high[leaf, j]
            for k in range(m):
                below = lo - atoms[k]
                above = atoms[k] - hi
                u = max(max(below, above), zero)
                v = max(max(-below, -above), u)
                closest[k] += u if metric == CITYBLOCK else u * u
                reached[k] += v if metric == CITYBLOCK else v * v
        likely = np.int64(0)
        for k in range(1, m):
            if reached[k] < reached[likely]:
                likely = k
        to_distances(distances, columns, a * d, count, count, row(A, likely), t)
        worst = zero
        for i in range(count):
            best[i] = t[i]
            which[i] = np.int32(likely)
            worst = max(worst, t[i])
        # the atoms whose box distance is small come first: they bring down what the others must stay below
        limit = reached[likely] * columns.dtype.type(0.2)
        for sweep in range(2):
            for k in range(m):
                if closest[k] > worst * margin or (closest[k] <= limit) != (sweep == 0) or k == likely:
                    continue
                to_distances(distances, columns, a * d, count, count, row(A, k), t)
                worst = zero
                for i in range(count):
                    closer = t[i] < best[i]
                    best[i] = t[i] if closer else best[i]
                    which[i] = np.int32(k) if closer else which[i]
                    worst = max(worst, best[i])
