"""Rows on a GPU for a lazy traversal (`lazy_cover`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from reduset._engine.cuda.guard import cuda_errors
from reduset._engine.cuda.kernels import TYPES, kernel, multiprocessors
from reduset._engine.lazy_cover import UNIT, update_bounds_by_products
from reduset._engine.threads import blocks
from reduset._types import Indices

THREADS, WARP = 128, 32
CENTRES_PER_BLOCK = 64  # centres per block
MAX_DIRECT_COLUMNS = 64  # largest number of columns in the registers of a thread
REAL_32F, REAL_16F = 0, 2  # type numbers of cuBLAS
COMPUTE_32F, DEFAULT_ALGORITHM = 68, -1


class DeviceRows:
    """Rows of a CuPy array of any floating type."""

    max_memory: float = np.inf
    loaded = 0
    entries = 1 << 28
    candidates = 4096
    first_rows = 1 << 18
    max_full_update = 1 << 35

    def __init__(self, values: Any) -> None:
        import cupy

        self.arrays: Any = cupy
        self.values = values
        self.count, self.dimension = values.shape

    @contextmanager
    def at_work(self) -> Iterator[None]:
        with cuda_errors(), self.values.device:
            yield

    def take(self, rows: Any) -> Any:
        return self.values[rows]

    def among(self, rows: Indices) -> DeviceRows:
        return DeviceRows(self.take(self.arrays.asarray(rows)))

    def parts(self, length: int) -> Iterator[tuple[int, int, Any]]:
        return ((a, b, self.values[a:b]) for a, b in blocks(self.count, length))

    def update_bounds(self, rows: Any, centres: Any, cosine: bool, bounds: Any) -> None:
        if self.dimension > MAX_DIRECT_COLUMNS:
            update_bounds_by_products(self, rows, centres, cosine, bounds)
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
        chosen = np.uint64(0) if rows is None else rows  # a null pointer selects all rows
        program = kernel("show", D=self.dimension, TYPE=TYPES[self.values.dtype.name])
        program(((count + THREADS - 1) // THREADS,), (THREADS,), (self.values, chosen, np.int64(count), single, *numbers, bounds))

    def leading_scores(self, rows: Any, centres: Any, squares: Any, cosine: bool) -> tuple[Any, Any, Any]:
        weighting = (1 / np.sqrt(squares), None) if cosine else (None, squares / 2)  # of CuPy
        best, positions, second = best_scores(self.products(rows, centres), *weighting)
        return positions.astype(self.arrays.int64), best, second

    def pair_squares(self, ones: Any, others: Any, cosine: bool) -> Any:
        """Squared distances of pairs of rows by the definition."""
        squares = self.arrays.empty(len(ones))
        if len(ones):
            program = kernel("pair_squares", TYPE=TYPES[self.values.dtype.name])
            numbers = np.int64(len(ones)), np.int32(self.dimension), np.int32(cosine)
            program(((len(ones) + THREADS - 1) // THREADS,), (THREADS,), (self.values, ones, others, *numbers, squares))
        return squares

    def products(self, rows: Any, centres: Any) -> Any:
        xp = self.arrays
        if rows.dtype == centres.dtype == np.float16:
            return half_products(rows, centres)
        return rows.astype(xp.float32, copy=False) @ centres.astype(xp.float32, copy=False).T

    def distances(self, candidates: Any, centres: Any) -> Any:
        d, k = candidates.shape
        nearest = self.arrays.full(k, np.inf)
        grid = (k + THREADS - 1) // THREADS, (len(centres) + CENTRES_PER_BLOCK - 1) // CENTRES_PER_BLOCK
        numbers = map(np.int32, (k, d, len(centres), CENTRES_PER_BLOCK))
        kernel("least_gaps")(grid, (THREADS,), (candidates, centres, *numbers, nearest))
        return nearest

    def choose(self, candidates: Any, distances: Any, floor: float, limit: int) -> tuple[Any, Any, float]:
        xp = self.arrays
        d, k = candidates.shape
        warps = min(multiprocessors(candidates.device.id), (k + WARP - 1) // WARP)
        chosen, at = xp.empty(max(limit, 1), xp.int64), xp.empty(max(limit, 1))
        work = xp.empty(2 * warps), xp.empty(2 * warps, xp.int32), xp.zeros(1, xp.uint32), xp.empty(2)
        single = candidates.astype(xp.float32)
        is_single = bool((single == candidates).all())
        arguments = (
            single if is_single else candidates,
            distances,
            np.int32(k),
            np.int32(d),
            np.float64(floor),
            np.int32(limit),
            chosen,
            at,
            *work,
        )
        kernel("choose", cooperative=True, TYPE="float" if is_single else "double")((warps,), (WARP,), arguments)
        done, left = work[-1].get().tolist()
        return chosen[: int(done)], at[: int(done)], left


def best_scores(products: Any, scale: Any, offset: Any) -> tuple[Any, Any, Any]:
    """(q,) the largest score of each row of products, its first position, and the second largest score."""
    import cupy

    (q, t), missing = products.shape, np.uint64(0)
    best, second, positions = cupy.empty(q, cupy.float32), cupy.empty(q, cupy.float32), cupy.empty(q, cupy.int32)
    vectors = missing if scale is None else scale, missing if offset is None else offset
    if q:
        kernel("best_scores")((q,), (256,), (products, *vectors, np.int32(t), best, second, positions))
    return best, positions, second


def half_products(rows: Any, centres: Any, factor: float = 1.0, added: Any = None) -> Any:
    """Inner products of half-precision rows on the tensor cores, times a factor and added to others, in single precision."""
    import cupy as xp
    from cupy.cuda import cublas, device

    rows, centres = xp.ascontiguousarray(rows), xp.ascontiguousarray(centres)
    (k, d), c = rows.shape, len(centres)
    out = xp.empty((k, c), xp.float32) if added is None else added
    one, zero = np.full(1, factor, np.float32), np.full(1, added is not None, np.float32)
    # In column-major order, as cuBLAS expects: outᵀ (c, k) = centres (c, d) · rowsᵀ (d, k).
    cublas.gemmEx(
        device.get_cublas_handle(), cublas.CUBLAS_OP_T, cublas.CUBLAS_OP_N, c, k, d, one.ctypes.data, centres.data.ptr, REAL_16F, d,
        rows.data.ptr, REAL_16F, d, zero.ctypes.data, out.data.ptr, REAL_32F, c, COMPUTE_32F, DEFAULT_ALGORITHM,
    )  # fmt: skip
    return out
