"""Weighted kernel sums: f(q) = Σᵢ wᵢ φ(xᵢ, q) for many queries q, without ever holding the n × m matrix.

Points are packed by columns into tiles that stay in the first cache; for each query a tile gives gaps, depths and a weighted
sum of exponentials, each a loop over points that vectorises. From `BLAS_FROM` dimensions on the gaps come from a matrix
product instead. Cost O(n·m·d) time, O(block) memory. Sums inside a tile run in the working precision, across tiles in float64.

Single precision is used where it is safe: weights of one sign, coordinates within `SINGLE_REACH`, and a result that is
not deep in a tail; the queries that fail the last test are computed again in double.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST, exp_minus
from reduset._engine.profile import LINEAR, LOGARITHM, ROOT, SQUARED, Floats, Frame, Profile, depths, gaps
from reduset._engine.threads import blocks, row_blocks, run_all, single_threaded_blas

Precision = Literal["auto", "single", "double"]

TILE = 512
QUERIES_BLOCK = 1 << 12
QUERIES_TASK = 1 << 9
BLAS_FROM = 40
BLAS_ROWS = 512
SINGLE_REACH = 128.0  # float32 coordinates beyond this, over the steepness of the profile, no longer give 1e-5
BLAS_REACH = {np.float32: 8.0, np.float64: 1e3}  # |z|² · slope beyond this cancels in |z|² + |q|² − 2 z·q
CANCELLED = 0.01  # a gap below this share of |z|² + |q|² has lost digits that a root would need
SINGLE_FLOOR = 1e-7  # of Σ|w|: below, the depths are large and float32 rounds them too coarsely
FEW_PAIRS = 1 << 22  # where double costs nothing that a person would notice

_Tile = Callable[..., None]


@njit(nogil=True, cache=True, fastmath=FAST)
def _value_tiles(Z, w, Q, metric, family, exponent, table, step, out):
    n = Z.shape[1]
    t = np.empty(TILE, Z.dtype)
    zero = Z.dtype.type(0)
    for start in range(0, n, TILE):
        stop = min(n, start + TILE)
        weights = w[start:stop]
        for q in range(Q.shape[0]):
            gaps(metric, Z, start, stop, Q[q], t)
            if family != LINEAR:
                depths(family, exponent, table, step, t[: stop - start])
            total = zero
            for i in range(len(weights)):
                total += weights[i] * exp_minus(t[i])
            out[q, 0] += total


@njit(nogil=True, cache=True, fastmath=FAST)
def _gradient_tiles(Z, w, Q, metric, family, exponent, table, step, out):
    """out[q] += Σ w c(t) (z − q), with ∇φ = c(t)·(z − q); in city-block distance sign(z − q) stands for z − q."""
    d, n = Z.shape
    t = np.empty(TILE, Z.dtype)
    gap = np.empty(TILE, Z.dtype)
    for start in range(0, n, TILE):
        stop = min(n, start + TILE)
        weights = w[start:stop]
        for q in range(Q.shape[0]):
            gaps(metric, Z, start, stop, Q[q], t)
            gap[:] = t
            if family != LINEAR:
                depths(family, exponent, table, step, t[: stop - start])
            for i in range(len(weights)):
                t[i] = weights[i] * exp_minus(t[i])
            if metric != SQUARED:
                for j in range(d):
                    z = Z[j, start:stop]
                    total = 0.0
                    for i in range(len(z)):
                        total += t[i] * np.sign(z[i] - Q[q, j])
                    out[q, j] += total
                continue
            if family == LINEAR:
                for i in range(len(weights)):
                    t[i] *= 2
            elif family == LOGARITHM:
                for i in range(len(weights)):
                    t[i] *= 2 * exponent / (1 + gap[i])
            else:  # a Laplacian has a corner at its centre: its gradient there is taken as 0
                for i in range(len(weights)):
                    t[i] = t[i] / np.sqrt(gap[i]) if gap[i] > 0 else t[i] * 0
            for j in range(d):
                z = Z[j, start:stop]
                total = 0.0
                for i in range(len(z)):
                    total += t[i] * (z[i] - Q[q, j])
                out[q, j] += total


@njit(nogil=True, cache=True, fastmath=FAST)
def _log_tiles(Z, w, Q, metric, family, exponent, table, step, out):
    """out[q] = (least depth, Σ w exp(least − depth)): a sum that cannot underflow."""
    n = Z.shape[1]
    t = np.empty(TILE, Z.dtype)
    out[:, 0] = np.inf
    for start in range(0, n, TILE):
        stop = min(n, start + TILE)
        weights = w[start:stop]
        for q in range(Q.shape[0]):
            gaps(metric, Z, start, stop, Q[q], t)
            depths(family, exponent, table, step, t[: stop - start])
            least = t[0]
            for i in range(1, len(weights)):
                least = min(least, t[i])
            if least < out[q, 0]:
                if out[q, 1] != 0:
                    out[q, 1] *= np.exp(least - out[q, 0])
                out[q, 0] = least
            total = 0.0
            for i in range(len(weights)):
                total += weights[i] * exp_minus(t[i] - out[q, 0])
            out[q, 1] += total


@njit(nogil=True, cache=True, fastmath=FAST)
def _value_rows(G, Z, zz, Q, qq, w, family, exponent, table, step, out):
    """The same sums from a block G = Q @ Zᵀ (q, n) of inner products, which it overwrites with gaps."""
    zero = G.dtype.type(0)
    for q in range(G.shape[0]):
        g = G[q]
        for i in range(len(g)):
            g[i] = max(zz[i] + qq[q] - 2 * g[i], zero)
        if family == ROOT:  # the root magnifies what cancelled: take the small gaps from the differences
            for i in range(len(g)):
                if g[i] < CANCELLED * (zz[i] + qq[q]):
                    t = zero
                    for j in range(Z.shape[1]):
                        u = Z[i, j] - Q[q, j]
                        t += u * u
                    g[i] = t
        depths(family, exponent, table, step, g)
        total = zero
        for i in range(len(g)):
            total += w[i] * exp_minus(g[i])
        out[q, 0] += total


def _pack(points: Floats, frame: Frame, dtype: type) -> Floats:
    """(d, n) coordinates of the points, by columns."""
    return np.ascontiguousarray(frame.apply(points).T, dtype=dtype)


def _tile_task(tile, points, w, Q, frame, profile, dtype, out):
    tile(_pack(points, frame, dtype), w.astype(dtype), Q, *profile.arguments, out)


def _blas_task(tile, points, w, Q, frame, profile, dtype, out):
    w = w.astype(dtype)
    qq = np.einsum("ij,ij->i", Q, Q)
    for a, b in blocks(len(points), BLAS_ROWS):
        Z = frame.apply(points[a:b]).astype(dtype, copy=False)
        zz = np.einsum("ij,ij->i", Z, Z)
        if max(zz.max(), qq.max()) * profile.slope > BLAS_REACH[dtype]:
            _tile_task(tile, points[a:b], w[a:b], Q, frame, profile, dtype, out)
        else:
            _value_rows(Q @ Z.T, Z, zz, Q, qq, w[a:b], *profile.arguments[1:], out)


def _sums(
    points: Floats, weights: Floats, queries: Floats, frame: Frame, profile: Profile, dtype: type, tile: _Tile, width: int
) -> NDArray[np.float64]:
    """Sum one kind of tile over all points for all queries: (q, width), or (q, blocks of points, width) for the log tiles."""
    merged = np.empty((len(queries), width))
    rows = row_blocks(points, points.shape[1])
    for q0, q1 in blocks(len(queries), QUERIES_BLOCK):
        Q: Floats = frame.apply(queries[q0:q1]).astype(dtype)
        part = np.zeros((len(rows), q1 - q0, width))
        by_blas = tile is _value_tiles and profile.metric == SQUARED and Q.shape[1] >= BLAS_FROM
        task = _blas_task if by_blas else _tile_task
        tasks = [
            partial(task, tile, points[a:b], weights[a:b], Q[c:e], frame, profile, dtype, part[k, c:e])
            for k, (a, b) in enumerate(rows)
            for c, e in blocks(q1 - q0, QUERIES_TASK)
        ]
        if by_blas:
            with single_threaded_blas():
                run_all(tasks)
        else:
            run_all(tasks)
        merged[q0:q1] = _merge_logs(part) if tile is _log_tiles else part.sum(axis=0)
    return merged


def _merge_logs(part: NDArray[np.float64]) -> NDArray[np.float64]:
    least = part[:, :, 0].min(axis=0)
    total = (part[:, :, 1] * np.exp(least - part[:, :, 0])).sum(axis=0)
    return np.stack([least, total], axis=1)


def reach(points: Floats, frame: Frame) -> tuple[float, float]:
    """The largest |coordinate| and the largest squared length of the points in the frame."""
    if isinstance(frame.matrix, float):  # from the box alone: one pass, no copy
        low = (points.min(axis=0) - frame.centre) * frame.matrix
        high = (points.max(axis=0) - frame.centre) * frame.matrix
        far = np.maximum(np.abs(low), np.abs(high))
        if points.shape[1] < BLAS_FROM:
            return float(far.max()), float(far @ far)
    largest = longest = 0.0
    for a, b in row_blocks(points, points.shape[1]):
        z = frame.apply(points[a:b])
        largest = max(largest, float(np.abs(z).max()))
        longest = max(longest, float(np.einsum("ij,ij->i", z, z).max()))
    return largest, longest


def kernel_sums(
    points: Floats, weights: Floats, queries: Floats, frame: Frame, profile: Profile, precision: Precision = "double"
) -> NDArray[np.float64]:
    """Σᵢ wᵢ φ(xᵢ, q) for each query, φ(0) = 1.

    Parameters
    ----------
    points : (n, d); weights : (n,); queries : (m, d)
    precision : "single" and "double" are obeyed; "auto" takes single where that gives 1e-5 and is worth it.
    """
    double = partial(_sums, points, weights, frame=frame, profile=profile, dtype=np.float64, tile=_value_tiles, width=1)
    if (
        precision == "double"
        or not profile.in_single
        or (precision == "auto" and not _single_pays(points, weights, queries, frame, profile))
    ):
        return double(queries)[:, 0]
    scale = float(np.abs(weights).max()) or 1.0  # small weights would underflow in float32
    scaled = weights / scale
    sums = _sums(points, scaled, queries, frame, profile, np.float32, _value_tiles, 1)[:, 0] * scale
    if precision == "auto":
        faint = np.flatnonzero(np.abs(sums) < SINGLE_FLOOR * np.abs(weights).sum())
        if len(faint):
            sums[faint] = double(queries[faint])[:, 0]
    return sums


def _single_pays(points: Floats, weights: Floats, queries: Floats, frame: Frame, profile: Profile) -> bool:
    if len(points) * len(queries) <= FEW_PAIRS:
        return False
    if weights.min() < 0 < weights.max():  # signed sums cancel
        return False
    largest, longest = np.maximum(reach(points, frame), reach(queries, frame))
    if largest * profile.steepness > SINGLE_REACH:
        return False
    return bool(points.shape[1] < BLAS_FROM or longest * profile.slope <= BLAS_REACH[np.float32])


def gradient_sums(points: Floats, weights: Floats, queries: Floats, frame: Frame, profile: Profile) -> NDArray[np.float64]:
    """Σᵢ wᵢ ∇φ(xᵢ, q) in the frame's coordinates, (m, d)."""
    return _sums(points, weights, queries, frame, profile, np.float64, _gradient_tiles, points.shape[1])


def log_sums(points: Floats, weights: Floats, queries: Floats, frame: Frame, profile: Profile) -> NDArray[np.float64]:
    """log Σᵢ wᵢ φ(xᵢ, q), finite however far the query is; −inf where the sum is 0, NaN where it is negative."""
    present = weights != 0  # what has no weight must not set the scale
    if not present.all():
        points, weights = points[present], weights[present]
    least, total = _sums(points, weights, queries, frame, profile, np.float64, _log_tiles, 2).T
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(total) - least


def gram(points: Floats, others: Floats, frame: Frame, profile: Profile) -> NDArray[np.float64]:
    """The matrix φ(xᵢ, yⱼ), (n, m) in float64: for the atoms, never for the data."""
    out = np.empty((len(points), len(others)))
    Z = _pack(others, frame, np.float64)
    run_all([partial(_gram_rows, frame.apply(points[a:b]), Z, *profile.arguments, out[a:b]) for a, b in blocks(len(points), 64)])
    return out


@njit(nogil=True, cache=True, fastmath=FAST)
def _gram_rows(Q, Z, metric, family, exponent, table, step, out):
    for q in range(Q.shape[0]):
        t = out[q]
        gaps(metric, Z, 0, Z.shape[1], Q[q], t)
        if family != LINEAR:
            depths(family, exponent, table, step, t)
        for i in range(len(t)):
            t[i] = exp_minus(t[i])
