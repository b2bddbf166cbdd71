"""Dips of the density of two groups of points on lines: how deep the valley between them is.

On each line both groups are counted in bins, smoothed by a Gaussian, raised and cut by their standard errors, and the dip is the
least floor over the lower of the highest peaks on either side. `populations.valleys` says what that is for.
O(s + bins²) a line of s points.
"""

from __future__ import annotations

import numpy as np

from reduset._engine.arithmetic import FAST
from reduset._engine.compiled import compiled, for_loops, inner
from reduset._types import Array

BINS = 128
TAIL, ENOUGH = 0.005, 4000  # share of a group beyond either end of what is looked at, and points by which these are found
SILVERMAN = 1.06
BEYOND = 3.0  # bandwidths that a line goes on beyond the tails
NEGLIGIBLE = 8.0  # bandwidths from which nothing is smoothed to; of errors the root counts
FINEST_BINS = 0.5  # bandwidth in bins


def valley_depths(a: Array, b: Array, stands_a: Array, stands_b: Array, finest: Array) -> Array:
    """(l,) the dips of two groups, from their places on each line, (l, s), and how many points each of these stands for, (s,).

    Nothing finer than ``finest`` is seen, (l,).
    """
    ends = _ends(a), _ends(b)
    return np.asarray(_line_dips(*map(for_loops, (a, b, stands_a, stands_b, finest, *ends))))


def _ends(places: Array) -> Array:
    """(2, l) between what most of a group lies on each line, of some thousand of its points where it has more."""
    some = places[:, :: 1 + places.shape[1] // ENOUGH]
    last = some.shape[1] - 1
    low, high = int(TAIL * last), last - int(TAIL * last)
    return np.partition(some, (low, high), axis=1)[:, [low, high]].T


@inner(fastmath=FAST)
def _count(places, stands, begin, step, cells, squares):
    """Add what lies in each bin, and the squares of it; what lies beyond the ends is left out, for a pile there would be a peak."""
    for i in range(len(places)):
        place = (places[i] - begin) / step
        if 0 <= place < BINS:
            cells[int(place)] += stands[i]
            squares[int(place)] += stands[i] * stands[i]


@inner(fastmath=FAST)
def _smoothed(density, width):
    """Smoothed by a Gaussian of a width in bins."""
    reach = min(BINS - 1, int(np.ceil(NEGLIGIBLE * width)))
    bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    bell /= bell.sum()
    padded = np.zeros(BINS + 2 * reach)
    for t in range(BINS):
        padded[reach + t] = density[t]
    found = np.empty(BINS)
    for t in range(BINS):
        total = 0.0
        for s in range(2 * reach + 1):
            total += padded[t + s] * bell[s]
        found[t] = total
    return found


@inner()
def _least_dip(floor, error, missed):
    """The least floor, raised by its error and one point that may have been missed, over the lower peak, cut by its error."""
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
def _line_dips(a, b, stands_a, stands_b, finest, ends_a, ends_b):
    missed = min(stands_a.mean(), stands_b.mean())
    few = min(a.shape[1], b.shape[1])
    dips = np.empty(len(a))
    for k in range(len(a)):
        low, high = min(ends_a[0, k], ends_b[0, k]), max(ends_a[1, k], ends_b[1, k])
        spread_a, spread_b = a[k].std(), b[k].std()
        width = max(SILVERMAN * min(spread_a, spread_b) * few**-0.2, finest[k])
        if not width > 1e-9 * (high - low):  # one group is a single place: a valley lies before it unless the other holds it
            if spread_a <= spread_b:
                dips[k] = 1.0 if ends_b[0, k] <= a[k, 0] <= ends_b[1, k] else 0.0
            else:
                dips[k] = 1.0 if ends_a[0, k] <= b[k, 0] <= ends_a[1, k] else 0.0
            continue
        step = (high - low + 2 * BEYOND * width) / BINS
        begin = low - BEYOND * width
        cells, squares = np.zeros(BINS), np.zeros(BINS)
        _count(a[k], stands_a, begin, step, cells, squares)
        _count(b[k], stands_b, begin, step, cells, squares)
        smoothing = max(width / step, FINEST_BINS)
        window = max(2 * np.sqrt(np.pi) * width / step, 1.0)  # bins that the smoothing looks at
        floor, error = window * _smoothed(cells, smoothing), np.sqrt(window * _smoothed(squares, smoothing))
        dips[k] = _least_dip(floor, error, missed)
    return dips
