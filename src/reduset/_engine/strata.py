"""Strata of equal mass: the rows cut in two at a weighted quantile of their principal direction, again and again.

A part that is to become k strata is cut where it leaves ⌊k/2⌋ of them on one side, so that every stratum ends with 1/m of the mass,
up to half a row, and any number m will do. The direction is the leading eigenvector of the covariance of some rows of the part, by
power iteration. Rows with equal projections may fall on either side: a value that many rows have fills strata of its own.

O(n·d) a level, O(n·d·log m) in all; memory for one float32 copy of the rows.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST
from reduset._engine.compiled import compiled, inner
from reduset._engine.passes import map_rows
from reduset._engine.profile import Frame
from reduset._engine.threads import row_blocks, run_all
from reduset._types import Array, Floats

DIRECTION_ROWS = 512  # of a part, from which its direction is estimated
ITERATIONS = 8
LEAST_PART = 0.25  # of the strata of a part go to each side
PARTS_AT_ONCE = 64  # from here on each part is cut to the end by one task


def equal_mass_strata(
    points: Floats, weights: Array, size: int, frame: Frame, finer: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows in the order of their strata (n,), and where in it each stratum starts, with the end of the last (size + 1,).

    Parameters
    ----------
    points : (n, d); weights : (n,) positive, none above the mass of a stratum; size : number of strata
    frame : the coordinates in which directions and projections are taken
    finer : each stratum is cut into so many cells of equal mass, whose starts are given instead, (size·finer + 1,)
        There must be at least size·finer rows.
    """
    n = len(points)
    keys = map_rows(points, partial(_keys, frame.sized(points)[0]))
    order, mass = np.arange(n), np.ascontiguousarray(weights, np.float64).copy()
    starts = np.zeros(size + 1, np.int64)
    starts[size] = n
    begun = np.zeros(size + 1)  # the mass before each stratum
    total = float(mass.sum())
    begun[size] = total
    parts = [(0, size)] if size > 1 else []
    while parts and len(parts) < PARTS_AT_ONCE:
        middles = [0] * len(parts)

        def halve(p: int, middles: list[int] = middles, parts: list[tuple[int, int]] = parts) -> None:
            middles[p] = _cut(keys, order, mass, starts, begun, *parts[p])

        run_all([partial(halve, p) for p in range(len(parts))])
        halves = [half for (first, last), m in zip(parts, middles, strict=True) for half in ((first, m), (m, last))]
        parts = [(first, last) for first, last in halves if last - first > 1]
    run_all([partial(_cut_fully, keys, order, mass, starts, begun, first, last) for first, last in parts])
    if finer > 1:
        coarse, before = starts, begun
        starts, begun = np.zeros(size * finer + 1, np.int64), np.zeros(size * finer + 1)
        starts[::finer], begun[::finer] = coarse, before
        cells = range(0, size * finer, finer)
        run_all([partial(_cut_fully, keys, order, mass, starts, begun, first, first + finer) for first in cells])
    return order, starts


def _keys(frame: Frame, points: Floats) -> NDArray[np.float32]:
    """(n, d) coordinates in single precision."""
    keys = np.empty(points.shape, np.float32)

    def fill(a: int, b: int) -> None:
        keys[a:b] = frame.apply(points[a:b])

    run_all([partial(fill, a, b) for a, b in row_blocks(points, points.shape[1])])
    return keys


@compiled()
def _cut_fully(keys, order, mass, starts, begun, first, last):
    """Cut the strata first:last apart."""
    ends = np.empty(64, np.int64)
    ends[0] = last
    waiting = 1
    a = first
    while waiting > 0:
        b = ends[waiting - 1]
        if b - a <= 1:
            waiting -= 1
            a = b
            continue
        ends[waiting] = _cut(keys, order, mass, starts, begun, a, b)
        waiting += 1


@compiled()
def _cut(keys, order, mass, starts, begun, first, last):
    """Part the rows of the strata first:last at the one in the middle; note where it starts, and the mass before it."""
    start = starts[first]
    stop = starts[last]
    along = np.empty(stop - start, np.float32)
    share = _project(keys, mass, start, stop, along)
    k = last - first
    middle = first + min(max(np.int64(np.rint(share * k)), max(np.int64(LEAST_PART * k), 1)), k - max(np.int64(LEAST_PART * k), 1))
    goal = begun[len(begun) - 1] * middle / (len(begun) - 1) - begun[first]
    some = np.empty(stop - start, np.float32)
    masses = np.empty(stop - start)
    for i in range(stop - start):
        some[i] = along[i]
        masses[i] = mass[start + i]
    pivot = _quantile(some, masses, goal)
    below, equal = _part(keys, order, mass, along, start, stop, pivot)
    taken = 0.0
    for i in range(start, start + below):
        taken += mass[i]
    cut = start + below
    while cut < start + below + equal and taken + 0.5 * mass[cut] <= goal:
        taken += mass[cut]
        cut += 1
    fewest = start + middle - first  # each stratum has a row at least
    most = stop - (last - middle)
    if cut < fewest or cut > most:
        cut = min(max(cut, fewest), most)
        for i in range(stop - start):
            some[i] = along[i]
            masses[i] = 1.0
        pivot = _quantile(some, masses, cut - start)
        _part(keys, order, mass, along, start, stop, pivot)
        taken = 0.0
        for i in range(start, cut):
            taken += mass[i]
    starts[middle] = cut
    begun[middle] = begun[first] + taken
    return middle


@inner(fastmath=FAST)
def _project(keys, mass, start, stop, along):
    """Project the rows on their principal direction; the proportion of the mass below the cut with the least variance within."""
    d = keys.shape[1]
    count = min(DIRECTION_ROWS, stop - start)
    rows = np.empty((count, d), np.float32)
    centre = np.zeros(d, np.float32)
    for i in range(count):
        place = start + (stop - start) * i // count
        for j in range(d):
            rows[i, j] = keys[place, j]
            centre[j] += keys[place, j]
    for j in range(d):
        centre[j] /= np.float32(count)
    spread = np.zeros(d, np.float32)
    for i in range(count):
        for j in range(d):
            rows[i, j] -= centre[j]
            spread[j] += rows[i, j] * rows[i, j]
    widest = np.int64(0)
    for j in range(1, d):
        if spread[j] > spread[widest]:
            widest = j
    direction = np.zeros(d, np.float32)
    direction[widest] = np.float32(1)
    image = np.empty(d, np.float32)
    for _ in range(ITERATIONS if spread[widest] > 0 else 0):
        for j in range(d):
            image[j] = np.float32(0)
        for i in range(count):
            length = np.float32(0)
            for j in range(d):
                length += rows[i, j] * direction[j]
            for j in range(d):
                image[j] += length * rows[i, j]
        largest = np.float32(0)
        for j in range(d):
            largest = max(largest, abs(image[j]))
        if not largest > 0:
            break
        for j in range(d):
            direction[j] = image[j] / largest
    for i in range(start, stop):
        length = np.float32(0)
        for j in range(d):
            length += keys[i, j] * direction[j]
        along[i - start] = length
    values = np.empty(count, np.float32)
    masses = np.empty(count)
    for i in range(count):
        place = (stop - start) * i // count
        values[i] = along[place]
        masses[i] = mass[start + place]
    return _best_cut(values, masses)


@inner()
def _best_cut(values, masses):
    """The proportion of the mass below the cut that leaves the least variance on both sides (Ward's criterion on a line)."""
    gap = len(values) // 2
    while gap > 0:  # Shell's sort: `np.argsort` would take seconds to compile
        for i in range(gap, len(values)):
            value = values[i]
            weight = masses[i]
            j = i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                masses[j] = masses[j - gap]
                j -= gap
            values[j] = value
            masses[j] = weight
        gap = 1 if gap == 2 else gap * 5 // 11
    total = 0.0
    moment = 0.0
    for i in range(len(values)):
        total += masses[i]
        moment += masses[i] * (values[i] - values[0])
    best = 0.5
    most = 0.0
    below = 0.0
    part = 0.0
    for i in range(len(values) - 1):
        below += masses[i]
        part += masses[i] * (values[i] - values[0])
        if values[i] < values[i + 1] and below >= LEAST_PART * total and below <= (1 - LEAST_PART) * total:
            between = part * total - moment * below
            between *= between / (below * (total - below))
            if between > most:
                most = between
                best = below / total
    return best


@inner()
def _quantile(values, masses, goal):
    """The value at which the running mass of the sorted values passes the goal; both arrays are permuted."""
    low = np.int64(0)
    high = len(values)
    left = goal
    while high - low > 1:
        a = values[low]
        b = values[(low + high) // 2]
        c = values[high - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        i = low  # values[low:i] < pivot, values[i:k] == pivot, values[k:high] > pivot at the end
        j = low
        k = high
        lighter = 0.0
        same = 0.0
        while j < k:
            value = values[j]
            if value < pivot:
                lighter += masses[j]
                values[i], values[j] = values[j], values[i]
                masses[i], masses[j] = masses[j], masses[i]
                i += 1
                j += 1
            elif value > pivot:
                k -= 1
                values[k], values[j] = values[j], values[k]
                masses[k], masses[j] = masses[j], masses[k]
            else:
                same += masses[j]
                j += 1
        if left < lighter and i > low:
            high = i
        elif left < lighter + same or k == high:
            return pivot
        else:
            left -= lighter + same
            low = k
    return values[low]


@inner()
def _part(keys, order, mass, along, start, stop, pivot):
    """Put the rows before the pivot first, those at it next and the others last; how many are before it, and at it."""
    i = start
    j = start
    k = stop
    while j < k:
        value = along[j - start]
        if value < pivot:
            if i != j:
                _swap(keys, order, mass, along, start, i, j)
            i += 1
            j += 1
        elif value > pivot:
            k -= 1
            if k != j:
                _swap(keys, order, mass, along, start, k, j)
        else:
            j += 1
    return i - start, k - i


@njit(inline="always")
def _swap(keys, order, mass, along, start, a, b):
    for j in range(keys.shape[1]):
        keys[a, j], keys[b, j] = keys[b, j], keys[a, j]
    order[a], order[b] = order[b], order[a]
    mass[a], mass[b] = mass[b], mass[a]
    along[a - start], along[b - start] = along[b - start], along[a - start]
