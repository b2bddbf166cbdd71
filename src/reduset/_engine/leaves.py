"""Points in leaves: a partition of the data into small boxes, each stored by columns.

This is a k-d tree that keeps only its leaves. A range is cut at the (sampled) median of its widest coordinate until it is short.
The number of leaves is bounded, so that building is linear in n. In many dimensions, the cuts use the `KEYS` coordinates of largest
spread and the distance to the centre. In high dimension this distance separates points best.

Memory: one float32 copy of the data and one int32 index.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST
from reduset._engine.compiled import compiled, inner
from reduset._engine.distances import CITYBLOCK
from reduset._engine.profile import Frame
from reduset._engine.threads import blocks, row_blocks, run_all
from reduset._types import Floats, Indices

LEAF, LEAF_MANY_COLUMNS = 128, 64  # points per leaf; in many dimensions fewer points fit in the cache
MAX_LEAVES = 1 << 12
KEYS = 16
SAMPLED = 65


@dataclass(frozen=True)
class Leaves:
    """The partition. Leaf l holds points starts[l]:starts[l + 1] of ``order``, and their coordinates by columns."""

    order: NDArray[np.int32]  # (n,) row number at each position, for all rows or the selected ones
    starts: Indices  # (leaves + 1,)
    columns: Floats  # (n·d,) leaf l from starts[l]·d on, one coordinate after the other
    low: Floats  # (leaves, d) boxes
    high: Floats
    frame: Frame
    slack: float  # largest rounding error of a coordinate in ``columns``

    @property
    def dimension(self) -> int:
        return int(self.low.shape[1])


def build_leaves(
    points: Floats, frame: Frame, dtype: type = np.float32, rows: NDArray[np.int32] | None = None, length: int | None = None
) -> Leaves:
    """Sort the points, or some rows of them, into leaves, in the coordinates of ``frame``.

    ``length`` is the largest number of points in a leaf. By default it depends on the columns, and the number of leaves is bounded.
    """
    d = points.shape[1]
    order = np.arange(len(points), dtype=np.int32) if rows is None else rows.copy()
    n = len(order)
    keys = _keys(points, rows, frame, dtype)
    if length is None:
        length = max(LEAF if d <= KEYS else LEAF_MANY_COLUMNS, -(-n // MAX_LEAVES))
    starts = _cut(keys, order, length)
    count = len(starts) - 1
    columns = keys.reshape(-1) if d <= KEYS else np.empty(n * d, dtype)
    low: Floats = np.empty((count, d), dtype)
    high: Floats = np.empty((count, d), dtype)
    if d <= KEYS:
        run_all([partial(_transpose_leaves, columns, starts, d, low, high, a, b) for a, b in blocks(count, 512)])
    else:
        del keys
        run_all([partial(_gather_leaves, points, frame, order, columns, starts, low, high, a, b) for a, b in blocks(count, 64)])
    reach = float(max(-low.min(), high.max(), 0.0))
    return Leaves(order, starts, columns, low, high, frame, reach * float(np.finfo(dtype).eps) / 2)


def leaf_order(points: Floats, frame: Frame, length: int) -> tuple[NDArray[np.int32], Indices]:
    """Sort rows into boxes of at most ``length`` points. Return their order and the start of each box in it, with the end of the
    last."""
    order = np.arange(len(points), dtype=np.int32)
    return order, _cut(_keys(points, None, frame, np.float32), order, length)


def _keys(points: Floats, rows: NDArray[np.int32] | None, frame: Frame, dtype: type) -> Floats:
    """(n, min(d, KEYS)) keys for the cuts: the coordinates, or a few of them with the distance to the centre."""
    d = points.shape[1]
    n = len(points) if rows is None else len(rows)

    def selected(which: slice) -> Floats:
        return points[which] if rows is None else points[rows[which]]

    if d <= KEYS:
        keys: Floats = np.empty((n, d), dtype)

        def fill(a: int, b: int) -> None:
            keys[a:b] = frame.apply(selected(slice(a, b)))
    else:
        sample = frame.apply(selected(slice(None, None, max(1, n // 2000))))
        widest = np.sort(np.argsort(-sample.var(axis=0), kind="stable")[: KEYS - 1])
        middle = sample.mean(axis=0)
        keys = np.empty((n, KEYS), dtype)

        def fill(a: int, b: int) -> None:
            for c in range(a, b, 256):
                z = frame.apply(selected(slice(c, min(b, c + 256))))
                keys[c : c + len(z), 1:] = z[:, widest]
                z -= middle
                keys[c : c + len(z), 0] = np.sqrt(np.einsum("ij,ij->i", z, z))

    run_all([partial(fill, a, b) for a, b in row_blocks(keys, d)])
    return keys


def _cut(keys: Floats, order: NDArray[np.int32], length: int) -> Indices:
    """Permute keys and order in place; return the start of each leaf."""
    n = len(order)
    parts = [(0, n)]
    while len(parts) < 16 and parts[0][1] - parts[0][0] > 4 * length:  # the top of the tree, one task per part
        middles = [0] * len(parts)

        def halve(k: int, middles: list[int] = middles, parts: list[tuple[int, int]] = parts) -> None:
            middles[k] = _split(keys, order, *parts[k])

        run_all([partial(halve, k) for k in range(len(parts))])
        parts = [half for (a, b), m in zip(parts, middles, strict=True) for half in ((a, m), (m, b)) if half[1] > half[0]]
        parts.sort()
        if max(b - a for a, b in parts) <= length:
            break
    starts: list[Indices] = [np.empty(0, np.int64)] * len(parts)

    def finish(k: int) -> None:
        starts[k] = _cut_fully(keys, order, parts[k][0], parts[k][1], length)

    run_all([partial(finish, k) for k in range(len(parts))])
    return np.concatenate([*starts, [n]])


@compiled()
def _split(keys, order, start, stop):
    """Partition keys[start:stop] at the median of the widest key, both from a sample. Return the start of the second half."""
    width = keys.shape[1]
    count = min(SAMPLED, stop - start)
    sample = np.empty((width, count), keys.dtype)
    for i in range(count):
        for j in range(width):
            sample[j, i] = keys[start + (stop - start) * i // count, j]
    widest = np.int64(0)
    extent = keys.dtype.type(-1)
    for j in range(width):
        low = sample[j, 0]
        high = sample[j, 0]
        for i in range(1, count):
            low = min(low, sample[j, i])
            high = max(high, sample[j, i])
        if high - low > extent:
            widest = j
            extent = high - low
    if extent == 0:
        return _split_all(keys, order, start, stop)
    values = sample[widest]
    for i in range(1, count):  # insertion sort, since `np.sort` would take seconds to compile
        value = values[i]
        j = i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
    middle = count // 2
    while middle < count - 1 and values[middle] == values[0]:  # ties at the bottom, but both halves need a point
        middle += 1
    return _partition(keys, order, start, stop, widest, values[middle])


@njit(inline="always")
def _split_all(keys, order, start, stop):
    """The sample was constant: use every point. If these are equal too, cut in the middle."""
    width = keys.shape[1]
    low = keys[start].copy()
    high = keys[start].copy()
    for i in range(start + 1, stop):
        for j in range(width):
            low[j] = min(low[j], keys[i, j])
            high[j] = max(high[j], keys[i, j])
    j = np.int64(0)
    for k in range(1, width):
        if high[k] - low[k] > high[j] - low[j]:
            j = k
    if high[j] == low[j]:
        return (start + stop) // 2
    pivot = low[j] + (high[j] - low[j]) / 2
    return _partition(keys, order, start, stop, j, pivot if pivot > low[j] else high[j])


@inner()
def _partition(keys, order, start, stop, j, pivot):
    """Move the points with key j below the pivot to the front; return the end of that part."""
    width = keys.shape[1]
    a = start
    b = stop - 1
    while True:
        while keys[a, j] < pivot:
            a += 1
        while keys[b, j] >= pivot:
            b -= 1
        if a > b:
            return a
        for c in range(width):
            keys[a, c], keys[b, c] = keys[b, c], keys[a, c]
        order[a], order[b] = order[b], order[a]
        a += 1
        b -= 1


@compiled()
def _cut_fully(keys, order, start, stop, length):
    starts = np.empty(16 + (stop - start) // max(1, length // 16), np.int64)
    ends = np.empty(64, np.int64)  # ends of the pending parts, the next one last; the next part starts at ``a``
    count = 0
    waiting = 1
    ends[0] = stop
    a = start
    while waiting > 0:
        b = ends[waiting - 1]
        if b - a <= length:
            if count == len(starts):
                starts = longer(starts)
            starts[count] = a
            count += 1
            waiting -= 1
            a = b
            continue
        if waiting == len(ends):
            ends = longer(ends)
        ends[waiting] = _split(keys, order, a, b)
        waiting += 1
    return starts[:count].copy()


@inner()
def longer(values):
    """A copy with twice the length."""
    longer = np.empty(2 * len(values), values.dtype)
    for i in range(len(values)):
        longer[i] = values[i]
    return longer


@compiled(fastmath=FAST)
def _transpose_leaves(columns, starts, d, low, high, first, last):
    """Turn each leaf's rows into columns, in place, and store its box."""
    buffer = np.empty(0, columns.dtype)
    for leaf in range(first, last):
        count = starts[leaf + 1] - starts[leaf]
        if len(buffer) < count * d:
            buffer = np.empty(count * d, columns.dtype)
        leaf_entries = columns[starts[leaf] * d : starts[leaf + 1] * d]
        for i in range(count * d):
            buffer[i] = leaf_entries[i]
        for j in range(d):
            lo = buffer[j]
            hi = buffer[j]
            for i in range(count):
                value = buffer[i * d + j]
                leaf_entries[j * count + i] = value
                lo = min(lo, value)
                hi = max(hi, value)
            low[leaf, j] = lo
            high[leaf, j] = hi


def _gather_leaves(points, frame, order, columns, starts, low, high, first, last):
    d = points.shape[1]
    for leaf in range(first, last):
        a, b = starts[leaf], starts[leaf + 1]
        z = frame.apply(points[order[a:b]])
        columns[a * d : b * d].reshape(d, b - a)[:] = z.T
        low[leaf], high[leaf] = z.min(axis=0), z.max(axis=0)


@njit(inline="always")
def copy_point(columns, starts, leaf, position, out):
    """Copy the coordinates of the point at this position of the order, which belongs to the leaf."""
    a = starts[leaf]
    for j in range(len(out)):
        out[j] = columns[a * len(out) + j * (starts[leaf + 1] - a) + position - a]


@njit(inline="always")
def box_distance(metric, low, high, point):
    """A lower bound on the distance of a point to any point of the box."""
    t = low.dtype.type(0)
    for j in range(len(point)):
        u = max(low[j] - point[j], point[j] - high[j], low.dtype.type(0))
        t += u if metric == CITYBLOCK else u * u
    return t
