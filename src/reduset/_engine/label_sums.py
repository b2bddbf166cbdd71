"""Sums of numbers by label, where the labels lie."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.cuda.arrays import on_device

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
