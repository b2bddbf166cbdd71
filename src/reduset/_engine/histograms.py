"""How far the points are from each query, as a histogram: one pass over the data that serves every bandwidth.

A radial kernel sees only distances, so Σᵢ wᵢ φ(|xᵢ − q|/h) for any number of bandwidths is a sum over a histogram of the distances.
Its bins are those of floating point itself, 2⁵ to an octave, so that finding a bin takes a shift of bits and no logarithm. A
point's weight is split between the two ends of its bin, which makes every function that is linear within the bins exact: the
relative error of exp(−t) is at most (t/2⁵)²/8 up to t = 24, and that of its logarithm at most 2⁻⁵ everywhere. O(n·q·d) time, O(q ·
bins) memory.
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

BITS = 5  # of the mantissa that tell bins apart
SHIFT = 23 - BITS
OCTAVES = 30  # on either side of 1
FIRST = (127 - OCTAVES) << BITS  # the bin of the least distance, by the bits of its float32
BINS = (2 * OCTAVES) << BITS
TOGETHER = 1 << 11  # points
QUERIES_TASK = 32


def distance_nodes() -> NDArray[np.float64]:
    """The distances at the ends of the bins, (BINS + 1,)."""
    return ((FIRST + np.arange(BINS + 1)) << SHIFT).astype(np.int32).view(np.float32).astype(np.float64)


@over_blocks(add)
def distance_histograms(points: Floats, weights: Floats, queries: Floats, frame: Frame, metric: int) -> NDArray[np.float64]:
    """The weight at each of the `distance_nodes` for each query, (q, BINS + 1); distances beyond the ends count as the ends."""
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
    share = np.float64(1.0 / (1 << SHIFT))
    mask = (1 << SHIFT) - 1
    distance = np.empty(TOGETHER)
    short = np.empty(TOGETHER, np.float32)
    bits = short.view(np.int32)
    for a in range(0, n, TOGETHER):
        b = min(n, a + TOGETHER)
        for k in range(len(Q)):
            to_distances(distances, Z, a, n, b - a, row(Q, k), distance)
            for i in range(b - a):
                short[i] = min(max(np.float32(distance[i]), low), high)
            counts = row(out, k)
            for i in range(b - a):
                place = (bits[i] >> SHIFT) - FIRST
                beyond = weights[a + i] * ((bits[i] & mask) * share)
                counts[place] += weights[a + i] - beyond
                counts[place + 1] += beyond
