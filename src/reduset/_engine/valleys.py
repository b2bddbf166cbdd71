"""Depth of the valley between two groups of points in one-dimensional projections.

On each line, the counts of both groups in bins are smoothed by a Gaussian. The dip is the smallest density between two peaks, over
the lower of them. Densities are raised, and peaks lowered, by their standard errors. `cytometry.merging` explains its use.
O(s + bins²) a line of s points.
"""

from __future__ import annotations

import numpy as np

from reduset._engine.arithmetic import FAST
from reduset._engine.compiled import compiled, for_loops, inner
from reduset._types import Array

BINS = 128
# proportion of a group beyond each end of the central range, and the sample size for these quantiles
TAIL, TAIL_SAMPLE = 0.005, 4000
SILVERMAN = 1.06
MARGIN = 3.0  # length of a line beyond the tails, in bandwidths
REACH = 8.0  # range of the smoothing in bandwidths; errors are square roots and need a wide range
MIN_WIDTH = 0.5  # smallest bandwidth in bins


def valley_depths(a: Array, b: Array, weights_a: Array, weights_b: Array, finest: Array) -> Array:
    """(l,) the dips of two groups, from their projections on each line, (l, s), and the weights of the points, (s,).

    ``finest`` is the smallest bandwidth on each line, (l,).
    """
    ends = _ends(a), _ends(b)
    return np.asarray(_line_dips(*map(for_loops, (a, b, weights_a, weights_b, finest, *ends))))


def _ends(projections: Array) -> Array:
    """(2, l) the ends of the central range of a group on each line, from a sample of a few thousand points."""
    sample = projections[:, :: 1 + projections.shape[1] // TAIL_SAMPLE]
    last = sample.shape[1] - 1
    low, high = int(TAIL * last), last - int(TAIL * last)
    return np.partition(sample, (low, high), axis=1)[:, [low, high]].T


@inner(fastmath=FAST)
def _count(projections, weights, begin, step, counts, squares):
    """Add the weights in each bin, and their squares. Points beyond the ends are omitted, since a pile there would form a peak."""
    for i in range(len(projections)):
        position = (projections[i] - begin) / step
        if 0 <= position < BINS:
            counts[int(position)] += weights[i]
            squares[int(position)] += weights[i] * weights[i]


@inner(fastmath=FAST)
def _smoothed(density, width):
    """Smooth by a Gaussian; its width is in bins."""
    reach = min(BINS - 1, int(np.ceil(REACH * width)))
    bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    bell /= bell.sum()
    padded = np.zeros(BINS + 2 * reach)
    for t in range(BINS):
        padded[reach + t] = density[t]
    result = np.empty(BINS)
    for t in range(BINS):
        total = 0.0
        for s in range(2 * reach + 1):
            total += padded[t + s] * bell[s]
        result[t] = total
    return result


@inner()
def _least_dip(floor, error, missed):
    """The least ratio of density to the lower peak. The density is raised by its error and one missed point, peaks are lowered."""
    left = np.empty(BINS)
    best = -np.inf
    for t in range(BINS):
        best = max(best, floor[t] - error[t])
        left[t] = best
    dip, best = np.inf, -np.inf
    for t in range(BINS - 1, -1, -1):
        best = max(best, floor[t] - error[t])
        peak = min(left[t], best)
        if peak > 0:
            dip = min(dip, (floor[t] + error[t] + missed) / peak)
    return dip


@compiled()
def _line_dips(a, b, weights_a, weights_b, finest, ends_a, ends_b):
    missed = min(weights_a.mean(), weights_b.mean())
    size = min(a.shape[1], b.shape[1])
    dips = np.empty(len(a))
    for k in range(len(a)):
        low, high = min(ends_a[0, k], ends_b[0, k]), max(ends_a[1, k], ends_b[1, k])
        spread_a, spread_b = a[k].std(), b[k].std()
        width = max(SILVERMAN * min(spread_a, spread_b) * size**-0.2, finest[k])
        # one group is a single value, with a valley next to it unless the other group contains it
        if not width > 1e-9 * (high - low):
            if spread_a <= spread_b:
                dips[k] = 1.0 if ends_b[0, k] <= a[k, 0] <= ends_b[1, k] else 0.0
            else:
                dips[k] = 1.0 if ends_a[0, k] <= b[k, 0] <= ends_a[1, k] else 0.0
            continue
        step = (high - low + 2 * MARGIN * width) / BINS
        begin = low - MARGIN * width
        counts, squares = np.zeros(BINS), np.zeros(BINS)
        _count(a[k], weights_a, begin, step, counts, squares)
        _count(b[k], weights_b, begin, step, counts, squares)
        smoothing = max(width / step, MIN_WIDTH)
        window = max(2 * np.sqrt(np.pi) * width / step, 1.0)  # effective number of bins in the smoothing
        floor, error = window * _smoothed(counts, smoothing), np.sqrt(window * _smoothed(squares, smoothing))
        dips[k] = _least_dip(floor, error, missed)
    return dips
