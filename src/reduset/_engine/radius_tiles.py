"""Coordinates in tiles: which pairs of two sets of points may be within a radius, and the net of a few points.

A tile has `TILE` points, stored by coordinates. A point is compared with a tile some coordinates at a time, until all squared
distances exceed the limit. Tiles with a box farther away are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST
from reduset._engine.compiled import compiled, inner
from reduset._types import Floats, Indices

TILE = 64  # points that are compared with a point at once
STEP = 8  # coordinates between two comparisons with the limit
CANDIDATES = 1 << 14  # pairs between two confirmations
FAR = np.float32(1e18)  # coordinate of missing points of a tile


def tiles_of(points: Floats) -> NDArray[np.float32]:
    """(tiles, columns, TILE) coordinates by columns, tile by tile."""
    n, width = points.shape
    tiles = np.full((-(-n // TILE), width, TILE), FAR, np.float32)
    full = n // TILE
    tiles[:full] = points[: full * TILE].reshape(full, TILE, width).transpose(0, 2, 1)
    if full < len(tiles):
        tiles[full, :, : n - full * TILE] = points[full * TILE :].T
    return tiles


def candidates(
    points: Floats, tiles: Floats, low: Floats, high: Floats, limit: Any, near: NDArray[np.bool_]
) -> Iterator[tuple[Indices, Indices]]:
    """Pairs (point, number of the target) that may be near, some thousand at a time. Points marked ``near`` are omitted."""
    ones, others = np.empty(CANDIDATES, np.int64), np.empty(CANDIDATES, np.int64)
    at = np.zeros(2, np.int64)  # tile and point where the search continues
    while at[0] < len(tiles):
        count = _search(points, tiles, low, high, limit, near, at, ones, others)
        if count:
            yield ones[:count].copy(), others[:count].copy()


@compiled(fastmath=FAST)
def _search(points, tiles, low, high, limit, near, at, ones, others):
    sums = np.empty(TILE, np.float32)
    box_low = low[0].copy()
    box_high = low[0].copy()
    boxed = low.shape[1]
    for c in range(boxed):
        box_low[c] = points[0, c]
        box_high[c] = points[0, c]
        for i in range(len(points)):
            box_low[c] = min(box_low[c], points[i, c])
            box_high[c] = max(box_high[c], points[i, c])
    count = 0
    for t in range(at[0], len(tiles)):
        gap = np.float32(0)
        for c in range(boxed):
            g = max(max(low[t, c] - box_high[c], box_low[c] - high[t, c]), np.float32(0))
            gap += g * g
        first = at[1]
        at[1] = np.int64(0)
        if gap > limit:
            continue
        tile = tiles[t]
        for i in range(first, len(points)):
            if near[i]:
                continue
            point = points[i]
            gap = np.float32(0)
            for c in range(boxed):
                g = max(max(low[t, c] - point[c], point[c] - high[t, c]), np.float32(0))
                gap += g * g
            if gap > limit:
                continue
            if count + TILE > len(ones):
                at[0] = t
                at[1] = i
                return count
            if _add_steps(tile, point, limit, sums) > limit:
                continue
            for k in range(TILE):
                if sums[k] <= limit:
                    ones[count] = i
                    others[count] = t * TILE + k
                    count += 1
    at[0] = len(tiles)
    return count


@inner(fastmath=FAST)
def _add_steps(tile, point, limit, sums):
    """Add squared differences, some coordinates at a time, until all sums are above the limit; return the least sum."""
    for k in range(TILE):
        sums[k] = np.float32(0)
    least = np.float32(0)
    for c in range(0, len(tile), STEP):
        least = _add_step(tile, c, point, sums)
        if least > limit:
            break
    return least


@inner(fastmath=FAST)
def _add_step(tile, c, point, sums):
    a, b, e, f = tile[c], tile[c + 1], tile[c + 2], tile[c + 3]
    g, h, m, n = tile[c + 4], tile[c + 5], tile[c + 6], tile[c + 7]
    p0, p1, p2, p3 = point[c], point[c + 1], point[c + 2], point[c + 3]
    p4, p5, p6, p7 = point[c + 4], point[c + 5], point[c + 6], point[c + 7]
    for k in range(TILE):
        u0, u1, u2, u3 = a[k] - p0, b[k] - p1, e[k] - p2, f[k] - p3
        u4, u5, u6, u7 = g[k] - p4, h[k] - p5, m[k] - p6, n[k] - p7
        sums[k] += ((u0 * u0 + u1 * u1) + (u2 * u2 + u3 * u3)) + ((u4 * u4 + u5 * u5) + (u6 * u6 + u7 * u7))
    least = sums[0]
    for k in range(TILE):
        least = min(least, sums[k])
    return least


@compiled(fastmath=FAST)
def sample_search(points, tiles, limit):
    """The number of steps for each pair, added up, and the number of pairs that may be near."""
    sums = np.empty(TILE, np.float32)
    steps = 0
    near = 0
    for t in range(len(tiles)):
        for i in range(len(points)):
            for k in range(TILE):
                sums[k] = np.float32(0)
            for c in range(0, tiles.shape[1], STEP):
                steps += TILE
                least = _add_step(tiles[t], c, points[i], sums)
                if least > limit:
                    break
            for k in range(TILE):
                near += least <= limit and sums[k] <= limit
    return steps, near


@inner()
def is_near(one, other, squared_radius):
    total = 0.0
    for j in range(len(one)):
        u = one[j] - other[j]
        total += u * u
        if total > squared_radius:
            return False
    return True


@compiled(fastmath=FAST)
def net_of_tiles(points, tiles, exact, limit, squared_radius, alive):
    sums = np.empty(TILE, np.float32)
    for i in range(len(points)):
        if not alive[i]:
            continue
        for t in range(i // TILE, len(tiles)):
            if _add_steps(tiles[t], points[i], limit, sums) > limit:
                continue
            for k in range(TILE):
                j = t * TILE + k
                if j > i and j < len(points) and sums[k] <= limit and alive[j] and is_near(exact[i], exact[j], squared_radius):
                    alive[j] = False
