"""Strata of equal mass: rows are cut recursively at a weighted quantile of their principal direction.

A part that will become k strata is cut so that each side gets a whole number of them. Every stratum ends with 1/m of the mass, up
to half a row, for any number m. The direction is the leading eigenvector of the covariance of a sample of the part, by power
iteration. Rows with equal projections may fall on either side. A frequent value therefore fills strata by itself.

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
from reduset._types import Array, Floats, Indices

DIRECTION_ROWS = 512  # rows of a part that determine its direction
ITERATIONS = 8
MIN_PROPORTION = 0.25  # least proportion of a part's strata on each side
MIN_PARTS = 64  # number of parts from which one task finishes each part


def equal_mass_strata(points: Floats, weights: Array, size: int, frame: Frame, finer: int = 1) -> tuple[Indices, Indices]:
    """The rows in the order of their strata (n,), and the start of each stratum in it, with the end of the last (size + 1,).

    Parameters
    ----------
    points : (n, d)
    weights : (n,) positive, none above the mass of a stratum
    size : number of strata
    frame : the coordinates for directions and projections
    finer : number of cells of equal mass in each stratum; the starts of cells are then returned, (size·finer + 1,)
        There must be at least size·finer rows.
    """
    n = len(points)
    keys = map_rows(points, partial(_keys, frame.sized(points)[0]))
    order, mass = np.arange(n), np.ascontiguousarray(weights, np.float64).copy()
    starts = np.zeros(size + 1, np.int64)
    starts[size] = n
    mass_before = np.zeros(size + 1)  # the mass before each stratum
    total = float(mass.sum())
    mass_before[size] = total
    parts = [(0, size)] if size > 1 else []
    while parts and len(parts) < MIN_PARTS:
        middles = [0] * len(parts)

        def halve(p: int, middles: list[int] = middles, parts: list[tuple[int, int]] = parts) -> None:
            middles[p] = _cut(keys, order, mass, starts, mass_before, *parts[p])

        run_all([partial(halve, p) for p in range(len(parts))])
        halves = [half for (first, last), m in zip(parts, middles, strict=True) for half in ((first, m), (m, last))]
        parts = [(first, last) for first, last in halves if last - first > 1]
    run_all([partial(_cut_fully, keys, order, mass, starts, mass_before, first, last) for first, last in parts])
    if finer > 1:
        coarse, before = starts, mass_before
        starts, mass_before = np.zeros(size * finer + 1, np.int64), np.zeros(size * finer + 1)
        starts[::finer], mass_before[::finer] = coarse, before
        cells = range(0, size * finer, finer)
        run_all([partial(_cut_fully, keys, order, mass, starts, mass_before, first, first + finer) for first in cells])
    return order, starts


def _keys(frame: Frame, points: Floats) -> NDArray[np.float32]:
    """(n, d) coordinates in single precision."""
    keys = np.empty(points.shape, np.float32)

    def fill(a: int, b: int) -> None:
        keys[a:b] = frame.apply(points[a:b])

    run_all([partial(fill, a, b) for a, b in row_blocks(points, points.shape[1])])
    return keys


@compiled()
def _cut_fully(keys, order, mass, starts, mass_before, first, last):
    """Cut strata first:last apart."""
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
        ends[waiting] = _cut(keys, order, mass, starts, mass_before, a, b)
        waiting += 1


@compiled()
def _cut(keys, order, mass, starts, mass_before, first, last):
    """Cut the rows of strata first:last in two. Store the start of the middle stratum and the mass before it, and return its
    number."""
    start = starts[first]
    stop = starts[last]
    projections = np.empty(stop - start, np.float32)
    proportion = _project(keys, mass, start, stop, projections)
    k = last - first
    middle = first + min(
        max(np.int64(np.rint(proportion * k)), max(np.int64(MIN_PROPORTION * k), 1)), k - max(np.int64(MIN_PROPORTION * k), 1)
    )
    goal = mass_before[len(mass_before) - 1] * middle / (len(mass_before) - 1) - mass_before[first]
    values = np.empty(stop - start, np.float32)
    masses = np.empty(stop - start)
    for i in range(stop - start):
        values[i] = projections[i]
        masses[i] = mass[start + i]
    pivot = _quantile(values, masses, goal)
    below, equal = _partition(keys, order, mass, projections, start, stop, pivot)
    mass_below = 0.0
    for i in range(start, start + below):
        mass_below += mass[i]
    cut = start + below
    while cut < start + below + equal and mass_below + 0.5 * mass[cut] <= goal:
        mass_below += mass[cut]
        cut += 1
    lowest = start + middle - first  # each stratum has at least one row
    highest = stop - (last - middle)
    if cut < lowest or cut > highest:
        cut = min(max(cut, lowest), highest)
        for i in range(stop - start):
            values[i] = projections[i]
            masses[i] = 1.0
        pivot = _quantile(values, masses, cut - start)
        _partition(keys, order, mass, projections, start, stop, pivot)
        mass_below = 0.0
        for i in range(start, cut):
            mass_below += mass[i]
    starts[middle] = cut
    mass_before[middle] = mass_before[first] + mass_below
    return middle


@inner(fastmath=FAST)
def _project(keys, mass, start, stop, projections):
    """Project the rows on their principal direction. Return the proportion of the mass below the cut of least variance within
    parts."""
    d = keys.shape[1]
    count = min(DIRECTION_ROWS, stop - start)
    rows = np.empty((count, d), np.float32)
    centre = np.zeros(d, np.float32)
    for i in range(count):
        row = start + (stop - start) * i // count
        for j in range(d):
            rows[i, j] = keys[row, j]
            centre[j] += keys[row, j]
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
        projections[i - start] = length
    values = np.empty(count, np.float32)
    masses = np.empty(count)
    for i in range(count):
        row = (stop - start) * i // count
        values[i] = projections[row]
        masses[i] = mass[start + row]
    return _best_cut(values, masses)


@inner()
def _best_cut(values, masses):
    """The proportion of the mass below the cut that leaves the least variance on both sides (Ward's criterion on a line)."""
    gap = len(values) // 2
    while gap > 0:  # Shell sort, since `np.argsort` would take seconds to compile
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
    largest = 0.0
    below = 0.0
    part = 0.0
    for i in range(len(values) - 1):
        below += masses[i]
        part += masses[i] * (values[i] - values[0])
        if values[i] < values[i + 1] and below >= MIN_PROPORTION * total and below <= (1 - MIN_PROPORTION) * total:
            between = part * total - moment * below
            between *= between / (below * (total - below))
            if between > largest:
                largest = between
                best = below / total
    return best


@inner()
def _quantile(values, masses, goal):
    """The value at which the cumulative mass of the sorted values passes the goal; both arrays are permuted."""
    low = np.int64(0)
    high = len(values)
    left = goal
    while high - low > 1:
        a = values[low]
        b = values[(low + high) // 2]
        c = values[high - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        i = low  # at the end: values[low:i] < pivot, values[i:k] == pivot, values[k:high] > pivot
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
def _partition(keys, order, mass, projections, start, stop, pivot):
    """Put rows below the pivot first, equal ones next and the others last. Return the numbers below and equal."""
    i = start
    j = start
    k = stop
    while j < k:
        value = projections[j - start]
        if value < pivot:
            if i != j:
                _swap(keys, order, mass, projections, start, i, j)
            i += 1
            j += 1
        elif value > pivot:
            k -= 1
            if k != j:
                _swap(keys, order, mass, projections, start, k, j)
        else:
            j += 1
    return i - start, k - i


@njit(inline="always")
def _swap(keys, order, mass, projections, start, a, b):
    for j in range(keys.shape[1]):
        keys[a, j], keys[b, j] = keys[b, j], keys[a, j]
    order[a], order[b] = order[b], order[a]
    mass[a], mass[b] = mass[b], mass[a]
    projections[a - start], projections[b - start] = projections[b - start], projections[a - start]
