"""Rows on a GPU, as a lazy traversal looks at them (`lazy_cover`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from reduset._engine.cuda.guard import told
from reduset._engine.cuda.kernels import TYPES, kernel, processors
from reduset._engine.lazy_cover import UNIT, show_by_products

THREADS = 128
SHARE = 64  # centres of a block
DIRECT_UP_TO = 64  # columns that a thread has registers for
REAL_32F, REAL_16F = 0, 2  # what cuBLAS calls its types
COMPUTE_32F, USUAL = 68, -1


class DeviceRows:
    """Rows of a CuPy array of any floating type."""

    entries = 1 << 28
    first_look = 1 << 18
    at_once = 1 << 35

    def __init__(self, values: Any) -> None:
        import cupy

        self.arrays: Any = cupy
        self.values = values
        self.count, self.dimension = values.shape

    @contextmanager
    def at_work(self) -> Iterator[None]:
        with told(), self.values.device:
            yield

    def take(self, rows: Any) -> Any:
        return self.values[rows]

    def show(self, rows: Any, centres: Any, cosine: bool, bounds: Any) -> None:
        if self.dimension > DIRECT_UP_TO:
            show_by_products(self, rows, centres, cosine, bounds)
            return
        xp = self.arrays
        single = xp.ascontiguousarray(centres, xp.float32)
        lengths = xp.sqrt((single * single).sum(axis=1))
        if cosine:
            single = single / lengths[:, None]
        count = self.count if rows is None else len(rows)
        if not count:
            return
        relative, coarse = (self.dimension + 8) * 2 * UNIT, 2 * UNIT * (self.values.dtype == np.float64)
        numbers = (
            np.int32(len(single)),
            np.int32(cosine),
            np.float32(relative),
            np.float32(coarse),
            np.float32(float(lengths.max())),
        )
        chosen = np.uint64(0) if rows is None else rows  # null for all
        show = kernel("show", D=self.dimension, TYPE=TYPES[self.values.dtype.name])
        show(((count + THREADS - 1) // THREADS,), (THREADS,), (self.values, chosen, np.int64(count), single, *numbers, bounds))

    def products(self, rows: Any, centres: Any) -> Any:
        xp = self.arrays
        if rows.dtype == centres.dtype == np.float16:
            return half_products(rows, centres)
        return rows.astype(xp.float32, copy=False) @ centres.astype(xp.float32, copy=False).T

    def distances(self, candidates: Any, centres: Any) -> Any:
        d, k = candidates.shape
        least = self.arrays.full(k, np.inf)
        grid = (k + THREADS - 1) // THREADS, (len(centres) + SHARE - 1) // SHARE
        numbers = map(np.int32, (k, d, len(centres), SHARE))
        kernel("least_gaps")(grid, (THREADS,), (candidates, centres, *numbers, least))
        return least

    def choose(self, candidates: Any, gaps: Any, floor: float, most: int) -> tuple[Any, Any, float]:
        xp = self.arrays
        d, k = candidates.shape
        blocks = min(processors(candidates.device.id), (k + THREADS - 1) // THREADS)
        chosen, at = xp.empty(max(most, 1), xp.int64), xp.empty(max(most, 1))
        work = xp.empty(2 * blocks), xp.empty(2 * blocks, xp.int32), xp.zeros(1, xp.uint32), xp.empty(2)
        given = candidates, gaps, np.int32(k), np.int32(d), np.float64(floor), np.int32(most), chosen, at, *work
        kernel("choose", waits=True)((blocks,), (THREADS,), given, shared_mem=12 * THREADS)
        done, left = work[-1].get().tolist()
        return chosen[: int(done)], at[: int(done)], left


def half_products(rows: Any, centres: Any, factor: float = 1.0, added: Any = None) -> Any:
    """Products of half-precision rows on the tensor cores, times a factor and added to others, in single precision."""
    import cupy as xp
    from cupy.cuda import cublas, device

    rows, centres = xp.ascontiguousarray(rows), xp.ascontiguousarray(centres)
    (k, d), c = rows.shape, len(centres)
    out = xp.empty((k, c), xp.float32) if added is None else added
    one, zero = np.full(1, factor, np.float32), np.full(1, added is not None, np.float32)
    # by columns, as cuBLAS counts: outᵀ (c, k) = centres (c, d) · rowsᵀ (d, k)
    cublas.gemmEx(
        device.get_cublas_handle(), cublas.CUBLAS_OP_T, cublas.CUBLAS_OP_N, c, k, d, one.ctypes.data, centres.data.ptr, REAL_16F, d,
        rows.data.ptr, REAL_16F, d, zero.ctypes.data, out.data.ptr, REAL_32F, c, COMPUTE_32F, USUAL,
    )  # fmt: skip
    return out
