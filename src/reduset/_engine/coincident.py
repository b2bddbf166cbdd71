"""Rows that coincide with none of a few places.

Where rows repeat themselves, everything that is left to look at is often little or nothing, and finding that out must not take a
copy of the data. Places are looked up by a hash of their coordinates' bits and then compared in full. Two places with one hash hide
each other, and their rows are given as apart: whoever asks looks at them in vain, and nothing else happens.
O(n·(d + log m)) time, a byte a row and blocks of memory.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.passes import BlockRows
from reduset._engine.threads import row_blocks, run_all
from reduset._types import Floats

SEED = 0x9E3779B97F4A7C15


def rows_not_among(points: Floats, places: Floats) -> NDArray[np.int32]:
    """The rows of (n, d) points that equal none of (m, d) places, m ≥ 1, in their order."""
    apart = points.map_rows(partial(_are_apart, places)) if isinstance(points, BlockRows) else _are_apart(places, points)
    numbers: Any = np.int32 if len(points) <= np.iinfo(np.int32).max else np.int64
    return np.flatnonzero(apart).astype(numbers)


def _are_apart(places: Floats, points: Floats) -> NDArray[np.bool_]:
    known = _comparable(places)
    odd: NDArray[np.uint64] = np.random.default_rng(SEED).integers(1 << 63, size=(known.shape[1],), dtype=np.uint64)
    odd += odd + np.uint64(1)
    hashes = _hashes(known, odd)
    order = np.argsort(hashes, kind="stable")
    known, hashes = known[order], hashes[order]
    apart = np.empty(len(points), bool)

    def look(a: int, b: int) -> None:
        rows = _comparable(points[a:b])
        at = np.searchsorted(hashes, _hashes(rows, odd)).clip(max=len(hashes) - 1)
        np.any(rows != known[at], axis=1, out=apart[a:b])

    run_all([partial(look, a, b) for a, b in row_blocks(points, points.shape[1])])
    return apart


def _comparable(points: Floats) -> NDArray[np.float64]:
    """Coordinates of which equal ones have equal bits: adding 0 turns −0 into 0."""
    return np.add(points, 0.0, dtype=np.float64, order="C")


def _hashes(points: NDArray[np.float64], odd: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """(n,) of (n, d); the low bits of whole numbers are all 0, so that the high ones are mixed in first."""
    bits = points.view(np.uint64)
    bits = bits ^ (bits >> np.uint64(32))
    bits *= odd
    return np.bitwise_xor.reduce(bits ^ (bits >> np.uint64(29)), axis=1)
