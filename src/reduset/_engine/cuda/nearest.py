"""The nearest atom of every row on a GPU (`nearest_by_block` of the engine), and sums over clusters.

In few columns, distances come from differences in registers, ranked in single precision. In many columns, matrix products rank
them. Rows with close decisions are repeated in double precision. The returned distance comes from differences in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.centre_distances import Ranks
from reduset._engine.cuda.chunks import chunks, frame_coordinates, on_gpu, uploaded_weights
from reduset._engine.cuda.guard import with_fitting_blocks
from reduset._engine.cuda.kernels import TYPES, kernel
from reduset._engine.distances import SQUARED
from reduset._engine.profile import MAX_REGISTER_COLUMNS, Frame
from reduset._engine.threads import blocks
from reduset._types import Floats

THREADS = 128
ENTRIES = 1 << 26
REGISTERS = 64
MAX_TILE_ATOMS, SHARED_BYTES = 128, 1 << 15

Find = Callable[[Any], tuple[Any, Any]]  # maps rows on the device to indices of nearest atoms and distances, also there


def nearest_by_block(points: Any, atoms: Floats, frame: Frame, metric: int, use: Callable[[int, int, Any, Any], None]) -> None:
    """Call ``use(start, stop, index, distance)`` with arrays on the device for each block of points."""
    with on_gpu(points, atoms):
        find = nearest_search(points, atoms, frame, metric)

        def work(length: int) -> None:
            for a, b, values in chunks(points, length):
                use(a, b, *find(values))

        work(max(THREADS, ENTRIES // points.shape[1]))


def nearest_search(points: Any, atoms: Floats, frame: Frame, metric: int) -> Find:
    """A function that finds the nearest atoms of rows, on the current device."""
    import cupy

    d, (sized, unit) = points.shape[1], frame.sized(points)
    A = cupy.asarray(frame.apply(atoms))
    if d <= MAX_REGISTER_COLUMNS:
        return _by_differences(A, atoms, sized, frame, metric)
    if metric != SQUARED:
        raise ValueError(
            f"X must have at most {MAX_REGISTER_COLUMNS} columns for city-block distances on a GPU, got {d}; copy X to main memory"
        )
    return _by_products(A, frame, unit)


def _by_differences(A: Any, atoms: Floats, sized: Frame, frame: Frame, metric: int) -> Find:
    import cupy

    d = A.shape[1]
    with np.errstate(over="ignore"):  # atoms beyond the range of float32 are never nearest
        ranked = cupy.asarray(sized.apply(atoms).astype(np.float32))
    rows_per_thread, tile = max(1, min(4, REGISTERS // d)), min(MAX_TILE_ATOMS, SHARED_BYTES // (4 * d))
    program = kernel("nearest", D=d, R=rows_per_thread, TILE=tile, METRIC=metric, THREADS=THREADS)

    def find(values: Any) -> tuple[Any, Any]:
        Z = frame_coordinates(values, frame, np.float64)
        single = Z.astype(cupy.float32) if sized is frame else frame_coordinates(values, sized, np.float32)
        index, distance = cupy.empty(len(Z), cupy.int32), cupy.empty(len(Z))
        grid = (len(Z) + THREADS * rows_per_thread - 1) // (THREADS * rows_per_thread)
        program((grid,), (THREADS,), (Z, single, np.int64(len(Z)), A, ranked, np.int32(len(A)), index, distance))
        return index, distance

    return find


def _by_products(A: Any, frame: Frame, unit: float) -> Find:
    import cupy

    ranks = Ranks.of(A, unit)

    def find(values: Any) -> tuple[Any, Any]:
        index, distance = cupy.empty(len(values), cupy.int32), cupy.empty(len(values))

        def work(length: int) -> None:
            for a, b in blocks(len(values), length):
                index[a:b], distance[a:b] = ranks.nearest(frame_coordinates(values[a:b], frame, np.float64))

        with_fitting_blocks(work, max(1, ENTRIES // max(len(A), A.shape[1])), 1)
        return index, distance

    return find


def cluster_sums(points: Any, weights: Any, centres: NDArray[np.float64], frame: Frame) -> tuple[Any, Any]:
    """(m,) Σ w and (m, d) Σ w (x − c) over the rows nearest to each centre c.

    Results have the same bits in every run.
    """
    import cupy

    m, d = centres.shape
    with on_gpu(points, centres) as (uploaded, bring_back):
        find = nearest_search(points, centres, frame, SQUARED)

        def work(length: int) -> Any:
            sums = cupy.zeros((m, 1 + d))
            for a, b, values in chunks(points, length):
                assignments, _ = find(values)
                order = cupy.argsort(assignments)  # a radix sort, which is stable
                starts = cupy.searchsorted(assignments[order], cupy.arange(m + 1, dtype=assignments.dtype)).astype(cupy.int64)
                values, w = cupy.ascontiguousarray(values), uploaded_weights(weights, a, b, 1.0, np.float64)
                arguments = values, w, order, starts, uploaded.values, np.int32(d), sums
                kernel("cells", TYPE=TYPES[values.dtype.name], THREADS=THREADS)((m * (1 + d),), (THREADS,), arguments)
            return sums

        sums = bring_back(with_fitting_blocks(work, max(THREADS, ENTRIES // d)))
    return sums[:, 0], np.ascontiguousarray(sums[:, 1:])
