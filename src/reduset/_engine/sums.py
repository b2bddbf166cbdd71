"""Weighted kernel sums: f(q) = Σᵢ wᵢ φ(xᵢ, q) for many queries q, without storing the n × m matrix.

The loops of `tiles` process one block of points at a time. From `BLAS_FROM` dimensions, distances come from a matrix product. Cost
O(n·m·d) time, O(block) memory.

Single precision is used where it is safe. This requires weights of one sign, moderate coordinates in a block, and a result that is
not deep in a tail. Blocks that fail the second test are computed in double precision. Queries that fail the last test are computed
again in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from reduset._engine.device import uses_gpu
from reduset._engine.distances import SQUARED, pulls_at
from reduset._engine.passes import add, in_blocks, over_blocks
from reduset._engine.profile import (
    BLAS_REACH,
    MAX_REGISTER_COLUMNS,
    SINGLE_FLOOR,
    SINGLE_REACH,
    Frame,
    Profile,
    extent,
    takes_single,
)
from reduset._engine.threads import blocks, row_blocks, run_all
from reduset._engine.tiles import (
    gradient_tiles,
    gram_rows,
    log_tiles,
    pack_rows,
    pull_rows,
    squared_distance_rows,
    value_rows,
    value_tiles,
)
from reduset._types import Array, Floats, Precision

QUERIES_BLOCK = 1 << 12
QUERIES_TASK = 1 << 9
PART_ENTRIES = 1 << 22  # largest number of partial sums held at once
BLAS_FROM = 40
BLAS_ROWS = 256
MIN_PARALLEL_ENTRIES = 1 << 18  # entries of a matrix, below which starting threads costs more than it saves

_Tile = Callable[..., None]


@dataclass(frozen=True)
class _Queries:
    """Queries in each precision that a block may choose, and their largest coordinate and length."""

    values: dict[type, Floats]  # (q, d)
    squares: dict[type, Floats]  # (q,) squared lengths
    largest: float  # |coordinate|
    longest: float  # squared length

    @staticmethod
    def of(Q: Array, dtypes: tuple[type, ...]) -> _Queries:
        largest = float(np.abs(Q).max())
        if largest > SINGLE_REACH and np.float64 in dtypes:
            dtypes = (np.float64,)  # every block would choose float64, and float32 might overflow
        values: dict[type, Floats] = {dtype: Q.astype(dtype) for dtype in dtypes}
        squares = {dtype: np.einsum("ij,ij->i", rows, rows) for dtype, rows in values.items()}
        return _Queries(values, squares, largest, max(float(rows.max()) for rows in squares.values()))


def _precision_of(chosen: type | None, Z: Floats, queries: _Queries, profile: Profile) -> type:
    """The precision of a block: the given one, or the lowest that its coordinates allow."""
    if chosen is not None:
        return chosen
    largest = max(float(np.abs(Z).max()), queries.largest)
    roundings = np.sqrt(max(1.0, Z.shape[1] / 16))  # rounding errors add up over the coordinates
    return np.float32 if largest * profile.steepness * roundings <= SINGLE_REACH else np.float64


def _tile_task(tile, points, w, unit, queries, frame, profile, chosen, out):
    Z = frame.apply(points)
    dtype = _precision_of(chosen, Z, queries, profile)
    loops = profile.slope_arguments(dtype) if tile is gradient_tiles else profile.value_arguments(dtype)
    tile(np.ascontiguousarray(Z.T, dtype=dtype), (w / unit).astype(dtype), queries.values[dtype], *loops, out)


def _rows_of(points: Floats, frame: Frame, dtype: type) -> tuple[Floats, Floats]:
    """Coordinates in C order, and their squared lengths."""
    if isinstance(frame.matrix, float) and points.flags.c_contiguous and points.dtype.kind == "f":
        Z: Floats = np.empty(points.shape, dtype)
        zz: Floats = np.empty(len(points), dtype)
        pack_rows(points, frame.centre, frame.matrix, Z, zz)
        return Z, zz
    with np.errstate(over="ignore"):  # infinite lengths fail the test, so that another precision is used
        Z = frame.apply(points).astype(dtype, copy=False)
        return Z, np.einsum("ij,ij->i", Z, Z)


def _blas_task(tile, points, w, unit, queries, frame, profile, chosen, out):
    for a, b in blocks(len(points), BLAS_ROWS):
        for dtype, Q in queries.values.items():  # lower precision first
            Z, zz = _rows_of(points[a:b], frame, dtype)
            if max(float(zz.max()), queries.longest) * profile.slope <= BLAS_REACH[dtype]:
                weights = (w[a:b] / unit).astype(dtype)
                G = Q @ Z.T
                squared_distance_rows(G, Z, zz, Q, queries.squares[dtype], profile.family)
                if tile is value_tiles:
                    value_rows(G, weights, *profile.exponent_arguments(dtype), out)
                else:
                    pull_rows(G, weights, pulls_at(profile.family, dtype), *profile.exponent_arguments(dtype), out)
                    out[:, 1:] += G @ Z - G.sum(axis=1)[:, None] * Q
                break
        else:
            _tile_task(tile, points[a:b], w[a:b], unit, queries, frame, profile, chosen, out)


def _sums(
    points: Floats,
    weights: Floats,
    queries: Floats,
    frame: Frame,
    profile: Profile,
    tile: _Tile,
    width: int,
    chosen: type | None = np.float64,
    unit: float = 1.0,
) -> Array:
    """Sums of one kind over all points, (q, width), for weights in units of ``unit``. If ``chosen`` is None, each block chooses
    its precision."""
    merged = np.empty((len(queries), width))
    rows = row_blocks(points, points.shape[1])
    by_blas = tile is not log_tiles and profile.metric == SQUARED and points.shape[1] >= BLAS_FROM
    task: Any = _blas_task if by_blas else _tile_task
    for q0, q1 in blocks(len(queries), max(1, min(QUERIES_BLOCK, PART_ENTRIES // (len(rows) * width)))):
        Q = frame.apply(queries[q0:q1])
        part = np.zeros((len(rows), q1 - q0, width))
        tasks = []
        for c, e in blocks(q1 - q0, QUERIES_TASK):
            task_queries = _Queries.of(Q[c:e], (np.float32, np.float64) if chosen is None else (chosen,))
            for k, (a, b) in enumerate(rows):
                tasks.append(
                    partial(task, tile, points[a:b], weights[a:b], unit, task_queries, frame, profile, chosen, part[k, c:e])
                )
        run_all(tasks, blas=by_blas)
        merged[q0:q1] = _merge_logs(part) if tile is log_tiles else part.sum(axis=0)
    return merged


def _merge_logs(part: Array) -> Array:
    least = part[:, :, 0].min(axis=0)
    total = (part[:, :, 1] * np.exp(np.where(np.isinf(least), 0.0, least) - part[:, :, 0])).sum(axis=0)
    return np.stack([least, total], axis=1)


def _fits_gpu(points: Floats, profile: Profile) -> bool:
    """Whether the GPU supports it: few columns by differences, or any number by matrix products."""
    return points.shape[1] <= MAX_REGISTER_COLUMNS or profile.metric == SQUARED


@over_blocks(add)
def kernel_sums(
    points: Floats, weights: Floats, queries: Floats, frame: Frame, profile: Profile, precision: Precision = "double"
) -> Array:
    """Σᵢ wᵢ φ(xᵢ, q) for each query, φ(0) = 1.

    Parameters
    ----------
    points : (n, d); weights : (n,); queries : (m, d)
    precision : "single" or "double" set the precision; "auto" uses single where it is accurate to 1e-5 and faster.
    """
    if uses_gpu(points, queries, _fits_gpu(points, profile)):
        from reduset._engine.cuda import sums as on_gpu

        return on_gpu.kernel_sums(points, weights, queries, frame, profile, precision)
    low, high = extent(weights)
    single = profile.in_single if precision == "single" else takes_single(points, weights, queries, profile)
    if precision == "double" or not single:
        return _sums(points, weights, queries, frame, profile, value_tiles, 1)[:, 0]
    unit = max(-low, high) or 1.0  # small weights would underflow in float32
    chosen = np.float32 if precision == "single" else None
    sums = unit * _sums(points, weights, queries, frame, profile, value_tiles, 1, chosen, unit)[:, 0]
    if precision == "auto":
        faint = np.flatnonzero(np.abs(sums) < SINGLE_FLOOR * abs(float(weights.sum())))
        if len(faint):
            sums[faint] = _sums(points, weights, queries[faint], frame, profile, value_tiles, 1)[:, 0]
    return sums


@over_blocks(add)
def gradient_sums(
    points: Floats, weights: Floats, queries: Floats, frame: Frame, profile: Profile, precision: Precision = "double"
) -> tuple[Array, Array]:
    """Σᵢ wᵢ φ(xᵢ, q), (m,), and Σᵢ wᵢ ∇φ(xᵢ, q) in the frame's coordinates, (m, d), in one pass."""
    if uses_gpu(points, queries, points.shape[1] <= MAX_REGISTER_COLUMNS):
        from reduset._engine.cuda import sums as on_gpu

        return on_gpu.gradient_sums(points, weights, queries, frame, profile, precision)
    chosen = np.float64 if precision == "double" or not profile.in_single else None if precision == "auto" else np.float32
    unit = 1.0 if chosen is np.float64 else float(np.abs(weights).max()) or 1.0
    both = unit * _sums(points, weights, queries, frame, profile, gradient_tiles, 1 + points.shape[1], chosen, unit)
    return both[:, 0], both[:, 1:]


def log_sums(
    points: Floats, weights: Floats, queries: Floats, frame: Frame, profile: Profile, precision: Precision = "double"
) -> Array:
    """log Σᵢ wᵢ φ(xᵢ, q), finite at any distance of the query; −∞ if the sum is 0, NaN if it is negative.

    ``precision`` "auto" uses single where it is accurate to 1e-5 and faster, and double otherwise, for example in a tail.
    """
    if in_blocks(points) and weights.min() < 0:  # logarithms of blocks exist only for weights of one sign
        up, down = (_log_sums(points, np.maximum(sign * weights, 0.0), queries, frame, profile) for sign in (1, -1))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(up + np.log1p(-np.exp(down - up)))
    return _log_sums(points, weights, queries, frame, profile, precision)


@over_blocks(np.logaddexp)
def _log_sums(
    points: Floats, weights: Floats, queries: Floats, frame: Frame, profile: Profile, precision: Precision = "double"
) -> Array:
    if uses_gpu(points, queries, _fits_gpu(points, profile)):
        from reduset._engine.cuda import sums as on_gpu

        return on_gpu.log_sums(points, weights, queries, frame, profile, precision)
    low, unit = extent(weights)
    if precision != "double" and low >= 0 < unit and takes_single(points, weights, queries, profile):
        logs = _sums(points, weights, queries, frame, profile, value_tiles, 1, None, unit)[:, 0]
        faint = np.flatnonzero(~(logs >= SINGLE_FLOOR * float(weights.sum()) / unit))
        with np.errstate(divide="ignore", invalid="ignore"):
            np.log(logs, out=logs)
        logs += np.log(unit)
        if len(faint):
            logs[faint] = log_sums(points, weights, queries[faint], frame, profile)
        return logs
    present = weights != 0  # points without weight must not set the scale
    if not present.all():
        points, weights = points[present], weights[present]
    if not len(points):
        return np.full(len(queries), -np.inf)
    least, total = _sums(points, weights, queries, frame, profile, log_tiles, 2).T
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(total) - least


def gram(points: Floats, others: Floats, frame: Frame, profile: Profile) -> Array:
    """The matrix φ(xᵢ, yⱼ), (n, m), in float64. It is for atoms, not for the data."""
    if uses_gpu(points, others, points.shape[1] <= MAX_REGISTER_COLUMNS):
        from reduset._engine.cuda import sums as on_gpu

        return on_gpu.gram(points, others, frame, profile)
    out = np.empty((len(points), len(others)))
    Z = np.ascontiguousarray(frame.apply(others).T)
    loops = profile.value_arguments(np.float64)
    if out.size <= MIN_PARALLEL_ENTRIES:
        gram_rows(frame.apply(points), Z, *loops, out)
        return out
    run_all([partial(gram_rows, frame.apply(points[a:b]), Z, *loops, out[a:b]) for a, b in blocks(len(points), 64)])
    return out


def gram_by_rows(points: Floats, frame: Frame, profile: Profile) -> Callable[[int], Array]:
    """A function that returns row k of φ(xᵢ, xⱼ). The points are transposed once."""
    Z = np.ascontiguousarray(frame.apply(points).T)

    def row(k: int) -> Array:
        out = np.empty((1, Z.shape[1]))
        gram_rows(np.ascontiguousarray(Z[:, k])[None], Z, *profile.value_arguments(np.float64), out)
        return out[0]

    return row
