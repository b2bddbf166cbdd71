"""The nearest atom of every row on a GPU: `nearest_by_block` of the engine there.

In few columns gaps come from differences in registers, ranked in single precision; in many, products of matrices rank them, and
rows for which their rounding may decide are looked at again in double. The distance is taken from the differences, in double.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reduset._engine.centre_distances import Ranks
from reduset._engine.cuda.chunks import chunks, placed
from reduset._engine.cuda.guard import in_room
from reduset._engine.cuda.kernels import kernel
from reduset._engine.cuda.place import on_card
from reduset._engine.distances import SQUARED
from reduset._engine.profile import FEW_COLUMNS, Frame
from reduset._engine.threads import blocks
from reduset._types import Floats

THREADS = 128
ENTRIES = 1 << 26
REGISTERS = 64
MOST_ATOMS, SHARED = 128, 1 << 15

Find = Callable[[Any], tuple[Any, Any]]  # of rows on the device the index of the nearest atom and how far it is, there


def nearest_by_block(points: Any, atoms: Floats, frame: Frame, metric: int, use: Callable[[int, int, Any, Any], None]) -> None:
    """Call ``use(start, stop, index, distance)`` with arrays of the device for each block of points."""
    with on_card(points, atoms):
        find = finder(points, atoms, frame, metric)

        def work(length: int) -> None:
            for a, b, values in chunks(points, length):
                use(a, b, *find(values))

        work(max(THREADS, ENTRIES // points.shape[1]))


def finder(points: Any, atoms: Floats, frame: Frame, metric: int) -> Find:
    """What finds the nearest of the atoms to rows of the points; on the device that is current."""
    import cupy

    d, (sized, unit) = points.shape[1], frame.sized(points)
    A = cupy.asarray(frame.apply(atoms))
    if d <= FEW_COLUMNS:
        return _by_differences(A, atoms, sized, frame, metric)
    if metric != SQUARED:
        raise ValueError(
            f"nearest atoms in city-block distance on a GPU are of at most {FEW_COLUMNS} columns, got {d}; bring X over"
        )
    return _by_products(A, frame, unit)


def _by_differences(A: Any, atoms: Floats, sized: Frame, frame: Frame, metric: int) -> Find:
    import cupy

    d = A.shape[1]
    with np.errstate(over="ignore"):  # an atom that float32 cannot hold is nobody's nearest
        ranked = cupy.asarray(sized.apply(atoms).astype(np.float32))
    each, tile = max(1, min(4, REGISTERS // d)), min(MOST_ATOMS, SHARED // (4 * d))
    program = kernel("nearest", D=d, R=each, TILE=tile, METRIC=metric, THREADS=THREADS)

    def find(values: Any) -> tuple[Any, Any]:
        Z = placed(values, frame, np.float64)
        single = Z.astype(cupy.float32) if sized is frame else placed(values, sized, np.float32)
        index, distance = cupy.empty(len(Z), cupy.int32), cupy.empty(len(Z))
        grid = (len(Z) + THREADS * each - 1) // (THREADS * each)
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
                index[a:b], distance[a:b] = ranks.nearest(placed(values[a:b], frame, np.float64))

        in_room(work, max(1, ENTRIES // max(len(A), A.shape[1])), 1)
        return index, distance

    return find
