"""The parts of k-means: seeds, sums over clusters, and sums by label.

**Seeds** by k-means++ (Arthur & Vassilvitskii 2007). Each is drawn by weight times the squared distance to the nearest seed so far.
O(n·m·d) time, O(n) memory beyond the points.

**Sums over clusters** for sweeps of Lloyd's algorithm: the mass of each cluster and the sum of the offsets from its centre. Offsets
keep the digits of data far from 0. Points are added in their order, so that the same points give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.compiled import compiled
from reduset._engine.cuda.arrays import on_device
from reduset._engine.device import goes_to_card
from reduset._engine.distances import SQUARED
from reduset._engine.leaves import Leaves
from reduset._engine.neighbours import nearest
from reduset._engine.passes import add, over_blocks
from reduset._engine.profile import Frame
from reduset._engine.threads import blocks
from reduset._types import Floats


@compiled()
def draw_seeds(Z, weights, luck, seeds):
    """Fill ``seeds`` with rows of the points Z (n, d), one for each uniform draw ``luck``; return how many there are.

    Fewer than asked for where every place has its seed.
    """
    n, d = Z.shape
    columns = np.ascontiguousarray(Z.T)
    distance = np.ones(n)
    fresh = np.empty(n)
    for k in range(len(luck)):
        total = 0.0
        for i in range(n):
            total += weights[i] * distance[i]
        if not total > 0:
            return k
        target = luck[k] * total
        so_far = 0.0
        chosen = n - 1
        for i in range(n):
            so_far += weights[i] * distance[i]
            if so_far > target:
                chosen = i
                break
        seeds[k] = chosen
        fresh[:] = 0
        for j in range(d):
            column = columns[j]
            place = column[chosen]
            for i in range(n):
                apart = column[i] - place
                fresh[i] += apart * apart
        for i in range(n):
            distance[i] = fresh[i] if k == 0 else min(distance[i], fresh[i])
    return len(luck)


COLUMNS_A_STEP = 16


@over_blocks(add)
def cluster_sums(
    points: Floats, weights: Any, centres: NDArray[np.float64], frame: Frame, leaves: Leaves | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(m,) Σ w and (m, d) Σ w (x − c) over the points nearest to each centre c."""
    if goes_to_card(points, centres):
        from reduset._engine.cuda.cells import cluster_sums as on_card

        return on_card(points, weights, centres, frame)
    owner, _ = nearest(points, centres, frame, SQUARED, leaves)
    order = np.argsort(owner, kind="stable")
    occupied, starts = np.unique(owner[order], return_index=True)
    masses, pulls = np.zeros(len(centres)), np.zeros(centres.shape)
    masses[occupied] = np.add.reduceat(weights[order], starts)
    owner, share = owner[order], weights[order, None]
    for a, b in blocks(centres.shape[1], COLUMNS_A_STEP):
        pulls[occupied, a:b] = np.add.reduceat((points[order, a:b] - centres[owner, a:b]) * share, starts)
    return masses, pulls


THREADS = 256


class LabelSums:
    """Labels 0, 1, … of rows, which many columns of numbers are added up by.

    On the processor by one pass a column. On a GPU rows are put in the order of their labels once, and each label's are added in
    the same order every time: the same bits from run to run, which sums by atomic additions have not.

    Parameters
    ----------
    labels : (n,) of NumPy or CuPy
    count : how many there may be
    """

    def __init__(self, labels: Any, count: int) -> None:
        self._labels, self._count, self._there = labels, count, on_device(labels)
        if self._there:
            import cupy

            with labels.device:
                self._order = cupy.argsort(labels).astype(cupy.int64)  # a radix sort, which is stable
                ends = cupy.arange(count + 1, dtype=labels.dtype)
                self._starts = cupy.searchsorted(labels[self._order], ends).astype(cupy.int64)

    def of(self, values: Any) -> NDArray[np.float64]:
        """(count,) the sums of numbers (n,) that lie where the labels do."""
        if not self._there:
            return np.asarray(np.bincount(self._labels, values, self._count), np.float64)
        import cupy

        from reduset._engine.cuda.kernels import kernel

        with self._labels.device:
            sums = cupy.empty(self._count)
            values = cupy.ascontiguousarray(values, cupy.float64)
            kernel("labels", "label_sums", THREADS=THREADS)((self._count,), (THREADS,), (values, self._order, self._starts, sums))
            return np.asarray(sums.get())
