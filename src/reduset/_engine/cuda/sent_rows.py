"""Rows in main memory or in a mapped file for a GPU: a copy there, or sent in blocks for each pass if they need too much memory.

All threads copy a block to pinned memory, while the previous block is sent and the one before is processed (`chunks`). Single rows,
such as candidates of a farthest-first traversal and pairs to confirm, are gathered by their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from reduset._engine.cuda.chunks import TASK_BYTES, chunks, copy_rows, pinned_array, sendable
from reduset._engine.cuda.device_rows import DeviceRows
from reduset._engine.cuda.guard import cuda_errors, free_memory
from reduset._engine.host_rows import ChosenRows
from reduset._engine.lazy_cover import to_numpy
from reduset._engine.threads import blocks, run_all
from reduset._types import Indices

SENT_BYTES = 1 << 28  # bytes sent at once
HELD_FRACTION = 0.4  # of the free memory of the GPU; larger arrays are sent in blocks


class SentRows(DeviceRows):
    """Rows of a NumPy array or another object with its shape, type and indexing, as for `HostRows`."""

    def __init__(self, values: Any) -> None:
        import cupy

        self.arrays: Any = cupy
        self.values = values
        self.count, self.dimension = values.shape
        self.device = cupy.cuda.Device()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        with cuda_errors(), self.device:
            yield

    def take(self, rows: Any) -> Any:
        source = self.values[rows] if isinstance(rows, slice) else ChosenRows(self.values, to_numpy(rows))
        values = self.arrays.empty(source.shape, sendable(self.values[:1]).dtype)
        if len(source):
            pinned = pinned_array(values.shape, values.dtype)
            length = max(1, TASK_BYTES * len(source) // pinned.nbytes)
            run_all([partial(copy_rows, source, a, b, pinned[a:b]) for a, b in blocks(len(source), length)])
            values.set(pinned)
        return values

    def parts(self, length: int) -> Iterator[tuple[int, int, Any]]:
        row_bytes = self.dimension * self.values.dtype.itemsize
        length = max(1, min(length, SENT_BYTES // row_bytes, free_memory() // (16 * row_bytes)))
        return chunks(self.values, length) if length < self.count else iter([(0, self.count, self.take(slice(None)))])

    def among(self, rows: Indices) -> SentRows:
        return SentRows(ChosenRows(self.values, rows))

    def update_bounds(self, rows: Any, centres: Any, cosine: bool, bounds: Any) -> None:
        if rows is not None:
            lower = bounds[rows]
            self.among(to_numpy(rows)).update_bounds(None, centres, cosine, lower)
            bounds[rows] = lower
            return
        for a, b, values in self.parts(self.count):
            DeviceRows(values).update_bounds(None, centres, cosine, bounds[a:b])

    def pair_squares(self, ones: Any, others: Any, cosine: bool) -> Any:
        xp = self.arrays
        squares = xp.empty(len(ones))
        for a, b in blocks(len(ones), max(1, self.entries // (2 * self.dimension))):
            rows, numbers = xp.unique(xp.concatenate([ones[a:b], others[a:b]]), return_inverse=True)
            squares[a:b] = DeviceRows(self.take(rows)).pair_squares(numbers[: b - a], numbers[b - a :], cosine)
        return squares


def sent_rows(values: Any) -> tuple[DeviceRows, float]:
    """Rows in main memory for computations on a GPU, and their largest absolute value, NaN if one is not finite."""
    import cupy

    store = SentRows(values)
    with store.at_work():
        is_held = store.count * store.dimension * values.dtype.itemsize <= HELD_FRACTION * free_memory()
        held = cupy.empty(values.shape, sendable(values[:1]).dtype) if is_held else None
        largest = cupy.zeros(())
        for a, b, part in store.parts(store.count):
            if held is not None:
                held[a:b] = part
            extreme = cupy.abs(part).max().astype(cupy.float64)
            largest = cupy.maximum(largest, cupy.where(cupy.isfinite(part).all(), extreme, cupy.nan))
        return store if held is None else DeviceRows(held), float(largest)
