"""The nearest atom of every point, and its distance.

There are three methods. With points in leaves, each leaf compares only the atoms closer to its box than the largest distance of its
points so far. Up to 1,024 atoms, comparing all of them is faster than building leaves. In many dimensions a matrix product ranks
the atoms (`Ranks`). The returned distance is always computed from differences in float64. O(n·m·d) at worst, O(block) memory.
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
from reduset._engine.device import uses_gpu
from reduset._engine.distances import CITYBLOCK, SQUARED, distances_at, to_distances
from reduset._engine.leaves import Leaves, build_leaves
from reduset._engine.passes import BlockRows
from reduset._engine.profile import MAX_REGISTER_COLUMNS, Frame
from reduset._engine.threads import blocks, row_blocks, run_all
from reduset._types import Array, Floats

BLAS_FROM = 40
BLAS_ROWS = 512
LEAVES_PER_TASK = 128
ROWS_PER_TASK = 1 << 16  # rows of results from a GPU
TILE = 512
MAX_BRUTE_FORCE_ATOMS = 1024  # up to this many atoms, comparing all is faster than building leaves


@dataclass(frozen=True)
class LeafCover:
    """Points in leaves from a selector, for later searches of nearest atoms."""

    leaves: Leaves
    metric: int
    scale: float  # factor from distances in the leaves' frame to those in the kernel's


Use = Callable[[int, Any, NDArray[np.int32], Array], None]


def nearest_by_block(
    points: Floats, atoms: Floats, frame: Frame, metric: int, leaves: Leaves | None, use: Use, there: bool = False
) -> None:
    """Call ``use(block, rows, index, distance)`` for each block of points, with increasing block numbers, from several threads.

    ``rows`` is an array or a slice. ``index`` is the nearest atom of each row and ``distance`` its distance in the frame's
    coordinates. If several atoms are nearest up to rounding, any of them may be returned, with its distance.

    Parameters
    ----------
    points : (n, d); atoms : (m, d)
    leaves : the points in leaves, if the caller has them.
    there : whether ``use`` accepts arrays on the GPU if they are computed there; otherwise they are copied to main memory
    """
    if isinstance(points, BlockRows):
        for k, (start, stop, (index, distance)) in enumerate(points.results(partial(_nearest_of_block, atoms, frame, metric))):
            use(k, slice(start, stop), index, distance)
        return
    # float64 leaves were built because single precision does not suffice
    in_double = leaves is not None and leaves.columns.dtype == np.float64
    if uses_gpu(points, atoms, not in_double and (points.shape[1] <= MAX_REGISTER_COLUMNS or metric == SQUARED)):
        _on_gpu(points, atoms, frame, metric, use, there)
        return
    A = frame.apply(atoms)
    if points.shape[1] >= BLAS_FROM and metric == SQUARED:
        ranks = Ranks.of(A, frame.sized(points)[1])
        parts = enumerate(blocks(len(points), BLAS_ROWS))
        run_all([partial(_blas_task, points, A, ranks, frame, use, k, a, b) for k, (a, b) in parts], blas=True)
        return
    if leaves is None and len(atoms) <= MAX_BRUTE_FORCE_ATOMS:
        sized, _ = frame.sized(points)
        with np.errstate(over="ignore"):  # atoms beyond the range of float32 are never nearest
            scaled = sized.apply(atoms).astype(np.float32)
        parts = enumerate(row_blocks(points, points.shape[1]))
        run_all([partial(_plain_task, points, A, scaled, frame, sized, metric, use, k, a, b) for k, (a, b) in parts])
        return
    leaves = leaves or build_leaves(points, frame)
    scaled = A.astype(leaves.columns.dtype)
    parts = enumerate(blocks(len(leaves.low), LEAVES_PER_TASK))
    run_all([partial(_leaf_task, points, A, scaled, frame, metric, leaves, use, k, a, b) for k, (a, b) in parts])


def _nearest_of_block(atoms: Floats, frame: Frame, metric: int, rows: Floats) -> tuple[NDArray[np.int32], Array]:
    return nearest(rows, atoms, frame, metric)


def _on_gpu(points: Floats, atoms: Floats, frame: Frame, metric: int, use: Use, there: bool) -> None:
    """The same on a GPU. Results stay there, or are copied block by block and passed on by several threads."""
    from reduset._engine.cuda.nearest import nearest_by_block as on_gpu

    def pass_on(start: int, stop: int, index: Any, distance: Any) -> None:
        if there:
            use(start, slice(start, stop), index, distance)
            return
        indices, distances, parts = index.get(), distance.get(), blocks(stop - start, ROWS_PER_TASK)
        run_all([partial(use, start + a, slice(start + a, start + b), indices[a:b], distances[a:b]) for a, b in parts])

    on_gpu(points, atoms, frame, metric, pass_on)


def nearest(
    points: Floats, atoms: Floats, frame: Frame, metric: int = SQUARED, leaves: Leaves | None = None
) -> tuple[NDArray[np.int32], Array]:
    """For each point the index of its nearest atom and the distance, as in `nearest_by_block`."""
    index = np.empty(len(points), np.int32)
    distance = np.empty(len(points))

    def fill(_, rows, block_index, block_distance):
        index[rows], distance[rows] = block_index, block_distance

    nearest_by_block(points, atoms, frame, metric, leaves, fill)
    return index, distance


def _blas_task(points, A, ranks, frame, use, block, a, b):
    use(block, np.arange(a, b), *ranks.nearest(frame.apply(points[a:b])))


def _plain_task(points, A, scaled, frame, sized, metric, use, block, a, b):
    Z = frame.apply(points[a:b])
    columns = np.ascontiguousarray((Z if sized is frame else sized.apply(points[a:b])).T, np.float32)
    index = np.empty(b - a, np.int32)
    _assign_tiles(columns, scaled, distances_at(metric, np.float32), index)
    Z -= A[index]
    use(block, np.arange(a, b), index, _lengths(Z, metric))


def _leaf_task(points, A, scaled, frame, metric, leaves, use, block, first, last):
    start, stop = leaves.starts[first], leaves.starts[last]
    index = np.empty(stop - start, np.int32)
    boxes = leaves.columns, leaves.starts, leaves.low, leaves.high
    distances = distances_at(metric, leaves.columns.dtype.type)
    _assign_leaves(*boxes, scaled, np.ascontiguousarray(scaled.T), metric, distances, index, first, last)
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
            which[i] = 0  # remains if all distances exceed single precision
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
    margin = columns.dtype.type(1.00001)  # covers the rounding of the box distances
    closest = np.empty(m, columns.dtype)  # lower bounds on the distances of the atoms to the leaf's points
    reached = np.empty(m, columns.dtype)  # upper bounds
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
        # Atoms with a small box distance come first, since they lower the bound for the others.
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
