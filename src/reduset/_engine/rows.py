"""Row numbers: drawn by weight, drawn without replacement, or of rows that differ from all given points.

If rows repeat, few rows differ from the atoms, and finding them must not copy the data. Given points are looked up by a hash of the
bits of their coordinates and then compared in full. If two given points have the same hash, rows equal to one may be returned. That
costs time and changes no result. O(n·(d + log m)) time, one byte per row and blocks of memory.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.passes import BlockRows
from reduset._engine.threads import row_blocks, run_all
from reduset._types import Array, Floats, Indices

MIN_RATIO = 50  # ratio of rows to drawn rows from which they are drawn one by one


def rows_by_weight(weights: Array, uniforms: Array) -> Indices:
    """A row for each uniform number in [0, 1), with replacement and with probabilities proportional to the weights."""
    ends = np.cumsum(weights)
    return np.minimum(np.searchsorted(ends, uniforms * ends[-1], side="right"), len(ends) - 1)


def random_rows(count: int, size: int, rng: np.random.Generator) -> NDArray[np.integer]:
    """The first ``size`` entries of a random permutation of range(count), without the permutation if these are few."""
    if count > MIN_RATIO * size:
        return rng.choice(count, size, replace=False)
    dtype = np.int32 if count <= np.iinfo(np.int32).max else np.int64  # half the memory, and the same random draws
    return rng.permutation(np.arange(count, dtype=dtype))[:size]


SEED = 0x9E3779B97F4A7C15


def rows_not_among(points: Floats, others: Floats) -> NDArray[np.int32]:
    """The rows of (n, d) points that differ from all (m, d) others, m ≥ 1, in their order."""
    is_kept = points.map_rows(partial(_equal_none, others)) if isinstance(points, BlockRows) else _equal_none(others, points)
    dtype: Any = np.int32 if len(points) <= np.iinfo(np.int32).max else np.int64
    return np.flatnonzero(is_kept).astype(dtype)


def _equal_none(others: Floats, points: Floats) -> NDArray[np.bool_]:
    sorted_others = _comparable(others)
    multipliers: NDArray[np.uint64] = np.random.default_rng(SEED).integers(1 << 63, size=(sorted_others.shape[1],), dtype=np.uint64)
    multipliers += multipliers + np.uint64(1)
    hashes = _hashes(sorted_others, multipliers)
    order = np.argsort(hashes, kind="stable")
    sorted_others, hashes = sorted_others[order], hashes[order]
    differs = np.empty(len(points), bool)

    def compare(a: int, b: int) -> None:
        rows = _comparable(points[a:b])
        positions = np.searchsorted(hashes, _hashes(rows, multipliers)).clip(max=len(hashes) - 1)
        np.any(rows != sorted_others[positions], axis=1, out=differs[a:b])

    run_all([partial(compare, a, b) for a, b in row_blocks(points, points.shape[1])])
    return differs


def _comparable(points: Floats) -> Array:
    """Coordinates with equal bits for equal values: adding 0 turns −0 into 0."""
    return np.add(points, 0.0, dtype=np.float64, order="C")


def _hashes(points: Array, multipliers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """(n,) hashes of (n, d). The low bits of integers are all 0, so that the high bits are mixed in first."""
    bits = points.view(np.uint64)
    bits = bits ^ (bits >> np.uint64(32))
    bits *= multipliers
    return np.bitwise_xor.reduce(bits ^ (bits >> np.uint64(29)), axis=1)
