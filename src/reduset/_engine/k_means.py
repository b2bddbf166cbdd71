"""Building blocks of k-means: seeds, sums over clusters, and sums by label.

**Seeds** by k-means++ (Arthur & Vassilvitskii 2007). Each is drawn by weight times the squared distance to the nearest seed so far.
O(n·m·d) time, O(n) memory beyond the points.

**Sums over clusters** for sweeps of Lloyd's algorithm: the mass of each cluster and the sum of the offsets from its centre. Offsets
keep the digits of data far from 0. Points are added in their order, so that the same points give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset._engine.compiled import compiled
from reduset._engine.cuda.arrays import on_device
from reduset._engine.device import uses_gpu
from reduset._engine.distances import SQUARED
from reduset._engine.leaves import Leaves
from reduset._engine.neighbours import nearest
from reduset._engine.passes import add, over_blocks
from reduset._engine.profile import Frame
from reduset._engine.threads import blocks
from reduset._types import Array, Floats


@compiled()
def draw_seeds(Z, weights, uniforms, seeds):
    """Fill ``seeds`` with rows of the points Z (n, d), one for each uniform draw; return the number of seeds.

    There are fewer if every distinct point is a seed.
    """
    n, d = Z.shape
    columns = np.ascontiguousarray(Z.T)
    distance = np.ones(n)
    squares = np.empty(n)
    for k in range(len(uniforms)):
        total = 0.0
        for i in range(n):
            total += weights[i] * distance[i]
        if not total > 0:
            return k
        target = uniforms[k] * total
        cumulative = 0.0
        chosen = n - 1
        for i in range(n):
            cumulative += weights[i] * distance[i]
            if cumulative > target:
                chosen = i
                break
        seeds[k] = chosen
        squares[:] = 0
        for j in range(d):
            column = columns[j]
            value = column[chosen]
            for i in range(n):
                difference = column[i] - value
                squares[i] += difference * difference
        for i in range(n):
            distance[i] = squares[i] if k == 0 else min(distance[i], squares[i])
    return len(uniforms)


COLUMNS_A_STEP = 16


@over_blocks(add)
def cluster_sums(points: Floats, weights: Any, centres: Array, frame: Frame, leaves: Leaves | None = None) -> tuple[Array, Array]:
    """(m,) Σ w and (m, d) Σ w (x − c) over the points nearest to each centre c."""
    if uses_gpu(points, centres):
        from reduset._engine.cuda.nearest import cluster_sums as on_gpu

        return on_gpu(points, weights, centres, frame)
    assignments, _ = nearest(points, centres, frame, SQUARED, leaves)
    order = np.argsort(assignments, kind="stable")
    occupied, starts = np.unique(assignments[order], return_index=True)
    masses, pulls = np.zeros(len(centres)), np.zeros(centres.shape)
    masses[occupied] = np.add.reduceat(weights[order], starts)
    assignments, row_weights = assignments[order], weights[order, None]
    for a, b in blocks(centres.shape[1], COLUMNS_A_STEP):
        pulls[occupied, a:b] = np.add.reduceat((points[order, a:b] - centres[assignments, a:b]) * row_weights, starts)
    return masses, pulls


THREADS = 256


class LabelSums:
    """Sums of many columns of numbers by the labels 0, 1, … of rows.

    On the processor, each column takes one pass. On a GPU, rows are sorted by label once. Each label's rows are then added in a
    fixed order, so that results have the same bits in every run. Atomic additions would not guarantee this.

    Parameters
    ----------
    labels : (n,) NumPy or CuPy array
    count : the number of labels
    """

    def __init__(self, labels: Any, count: int) -> None:
        self._labels, self._count, self._on_device = labels, count, on_device(labels)
        if self._on_device:
            import cupy

            with labels.device:
                self._order = cupy.argsort(labels).astype(cupy.int64)  # a radix sort, which is stable
                ends = cupy.arange(count + 1, dtype=labels.dtype)
                self._starts = cupy.searchsorted(labels[self._order], ends).astype(cupy.int64)

    def of(self, values: Any) -> Array:
        """(count,) the sums of numbers (n,), on the device of the labels."""
        if not self._on_device:
            return np.asarray(np.bincount(self._labels, values, self._count), np.float64)
        import cupy

        from reduset._engine.cuda.kernels import kernel

        with self._labels.device:
            sums = cupy.empty(self._count)
            values = cupy.ascontiguousarray(values, cupy.float64)
            kernel("labels", "label_sums", THREADS=THREADS)((self._count,), (THREADS,), (values, self._order, self._starts, sums))
            return np.asarray(sums.get())
