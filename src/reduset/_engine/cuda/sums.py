"""Kernel sums at queries that lie on a GPU, of points that do not: `kernel_sums` and `log_sums` of the engine there.

Single precision is taken by the rules of the processor (`_engine.sums`): weights of one sign, coordinates within reach, results
that are not deep in a tail; queries that fail are computed again in double.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset._engine.cuda.kernels import kernel
from reduset._engine.precision import BLAS_REACH, FEW_PAIRS, SINGLE_FLOOR, SINGLE_REACH
from reduset._engine.profile import CITYBLOCK, ROOT, SQUARED, Frame, Profile
from reduset._types import Floats, Precision

THREADS = 128
REGISTERS = 64  # numbers of queries that a thread holds
MOST_COLUMNS = 64
MOST_POINTS, SHARED = 128, 1 << 15  # of a tile, and its bytes
TYPES = {"float16": "__half", "float32": "float", "float64": "double"}
IN_DOUBLE = np.inf, -1.0, 1.0  # whatever the coordinates, gaps by differences, weights as they are
REALS: dict[Any, str] = {np.float32: "float", np.float64: "double"}


class _Sums:
    """Points that are summed over, ready for a card."""

    def __init__(self, points: Floats, weights: Floats, queries: Any, frame: Frame, profile: Profile) -> None:
        import cupy

        if profile.metric not in (SQUARED, CITYBLOCK):
            raise ValueError("sums of this kernel are not computed on a GPU; bring the queries to the processor")
        if queries.shape[1] > MOST_COLUMNS:
            raise ValueError(
                f"sums on a GPU are of at most {MOST_COLUMNS} columns, got {queries.shape[1]}; bring the queries to the processor"
            )
        self.points, self.weights, self.frame, self.profile = points, weights, frame, profile
        self.queries, self.centre, self.scale = queries, frame.centre, np.ones(queries.shape[1])
        if np.ndim(frame.matrix) == 2:  # it mixes columns: that is done once, in double
            self.queries = (queries.astype(cupy.float64) - cupy.asarray(frame.centre)) @ cupy.asarray(frame.matrix)
            self.centre = np.zeros(queries.shape[1])
        else:
            self.scale *= frame.matrix

    def into(self, name: str, real: Any, out: Any, rows: Any, *last: float, unit: float = 1.0) -> None:
        """Run one of the kernels for some of the queries or all."""
        import cupy

        profile, d = self.profile, self.queries.shape[1]
        each = max(1, min(4, REGISTERS // d)) if real is np.float32 else max(1, min(2, REGISTERS // (2 * d)))
        tile = min(MOST_POINTS, SHARED // (d * np.dtype(real).itemsize))
        defined = {"REAL": REALS[real], "TYPE": TYPES[self.queries.dtype.name], "D": d, "R": each, "TILE": tile}
        program = kernel("sums", name, **defined, METRIC=profile.metric, FAMILY=profile.family)
        count = len(self.queries) if rows is None else len(rows)
        points = cupy.asarray(self.frame.apply(self.points).astype(real))
        table = cupy.asarray(profile.table)
        given = (
            self.queries,
            np.uint64(0) if rows is None else rows,  # null for all
            np.int64(count),
            points,
            cupy.asarray((self.weights / unit).astype(real)),
            np.int32(len(points)),
            cupy.asarray(self.centre),
            cupy.asarray(self.scale),
            np.float64(profile.exponent),
            table,
            np.int32(len(table)),
            np.float64(profile.step),
            *map(np.float64, last),
            out,
        )
        program(((count + THREADS * each - 1) // (THREADS * each),), (THREADS,), given)


def kernel_sums(
    points: Floats, weights: Floats, queries: Any, frame: Frame, profile: Profile, precision: Precision = "double"
) -> Any:
    """Σᵢ wᵢ φ(xᵢ, q) for each query, (m,) on its device."""
    import cupy

    work, out = _Sums(points, weights, queries, frame, profile), cupy.empty(len(queries))
    low, high = float(weights.min()), float(weights.max())
    few, signed = len(points) * len(queries) <= FEW_PAIRS, low < 0 < high
    if precision == "double" or not profile.in_single or (precision == "auto" and (few or signed)):
        work.into("value_sums", np.float64, out, None, *IN_DOUBLE)
        return out
    unit = max(-low, high) or 1.0
    roundings = np.sqrt(max(1.0, points.shape[1] / 16))
    reach = np.inf if precision == "single" else SINGLE_REACH / (profile.steepness * roundings)
    placed = frame.apply(points)
    if float(np.abs(placed).max()) > reach:
        work.into("value_sums", np.float64, out, None, *IN_DOUBLE)
        return out
    close = BLAS_REACH[np.float32] / profile.slope
    if profile.family == ROOT or float(np.square(placed).sum(axis=1).max()) > close:
        close = -1.0  # a root magnifies what cancels
    work.into("value_sums", np.float32, out, None, reach, close, unit, unit=unit)
    if precision == "auto":
        faint = cupy.flatnonzero(~(cupy.abs(out) >= SINGLE_FLOOR * abs(float(weights.sum()))))
        if len(faint):
            work.into("value_sums", np.float64, out, faint, *IN_DOUBLE)
    return out


def log_sums(points: Floats, weights: Floats, queries: Any, frame: Frame, profile: Profile) -> Any:
    """log Σᵢ wᵢ φ(xᵢ, q), (m,) on the queries' device; −inf where the sum is 0, NaN where it is negative."""
    import cupy

    present = weights != 0
    work, out = _Sums(points[present], weights[present], queries, frame, profile), cupy.empty(len(queries))
    work.into("log_sums", np.float64, out, None)
    return out
