"""Histograms of the distances from each query to the points: one pass over the data serves every bandwidth.

A radial kernel depends on distances only. So Σᵢ wᵢ φ(|xᵢ − q|/h) for any number of bandwidths is a sum over a histogram. Its bins
follow the floating-point format, 2⁵ per octave, so that a shift of bits finds a bin without a logarithm. A point's weight is split
between the two ends of its bin. Every function that is linear within the bins is therefore exact. The relative error of exp(−t) is
at most (t/2⁵)²/8 up to t = 24, and its logarithm is off by at most 2⁻⁵ everywhere. O(n·q·d) time, O(q · bins) memory.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST
from reduset._engine.compiled import compiled, for_loops, row
from reduset._engine.distances import distances_at, to_distances
from reduset._engine.passes import add, over_blocks
from reduset._engine.profile import Frame
from reduset._engine.threads import blocks, run_all
from reduset._types import Floats

BITS = 5  # of the mantissa, as part of the bin index
SHIFT = 23 - BITS
OCTAVES = 30  # on both sides of 1
FIRST_BIN = (127 - OCTAVES) << BITS  # bin of the least distance, from its bits as float32
BINS = (2 * OCTAVES) << BITS
POINTS_PER_BLOCK = 1 << 11  # points
QUERIES_TASK = 32


def distance_nodes() -> NDArray[np.float64]:
    """The distances at the ends of the bins, (BINS + 1,)."""
    return ((FIRST_BIN + np.arange(BINS + 1)) << SHIFT).astype(np.int32).view(np.float32).astype(np.float64)


@over_blocks(add)
def distance_histograms(points: Floats, weights: Floats, queries: Floats, frame: Frame, metric: int) -> NDArray[np.float64]:
    """The weight at each of the `distance_nodes` for each query, (q, BINS + 1). Distances out of range are clipped."""
    out = np.zeros((len(queries), BINS + 1))
    Q = frame.apply(queries)
    distances = distances_at(metric, np.float64)
    for a, b in blocks(len(points), 1 << 16):
        Z = np.ascontiguousarray(frame.apply(points[a:b]).T)
        w = for_loops(weights[a:b])
        run_all([partial(_count, Z, w, Q[c:e], distances, out[c:e]) for c, e in blocks(len(Q), QUERIES_TASK)])
    return out


@compiled(fastmath=FAST)
def _count(Z, weights, Q, distances, out):
    n = Z.shape[1]
    low = np.float32(2.0**-OCTAVES)
    high = np.float32(2.0**OCTAVES * (1 - 2.0**-20))
    unit = np.float64(1.0 / (1 << SHIFT))
    mask = (1 << SHIFT) - 1
    distance = np.empty(POINTS_PER_BLOCK)
    clipped = np.empty(POINTS_PER_BLOCK, np.float32)
    bits = clipped.view(np.int32)
    for a in range(0, n, POINTS_PER_BLOCK):
        b = min(n, a + POINTS_PER_BLOCK)
        for k in range(len(Q)):
            to_distances(distances, Z, a, n, b - a, row(Q, k), distance)
            for i in range(b - a):
                clipped[i] = min(max(np.float32(distance[i]), low), high)
            counts = row(out, k)
            for i in range(b - a):
                index = (bits[i] >> SHIFT) - FIRST_BIN
                upper = weights[a + i] * ((bits[i] & mask) * unit)
                counts[index] += weights[a + i] - upper
                counts[index + 1] += upper
