"""Row numbers: drawn by weight, drawn without replacement, and of the rows that equal none of some given points.

Where rows repeat, few rows differ from the atoms, and finding them must not copy the data. Given points are looked up by a hash of
the bits of their coordinates and then compared in full. If two of them have the same hash, rows equal to one may be returned. That
costs time and changes no result. O(n·(d + log m)) time, one byte per row and blocks of memory.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.passes import BlockRows
from reduset._engine.threads import row_blocks, run_all
from reduset._types import Array, Floats

MANY_TIMES = 50  # as many rows as are drawn: from there on these are drawn one by one


def rows_by_weight(weights: Array, chance: Array) -> NDArray[np.int64]:
    """A row for each number of [0, 1) in ``chance``, with chances proportional to the weights, as often as it comes."""
    ends = np.cumsum(weights)
    return np.minimum(np.searchsorted(ends, chance * ends[-1], side="right"), len(ends) - 1)


def random_rows(count: int, most: int, rng: np.random.Generator) -> NDArray[np.integer]:
    """The first ``most`` of a random order of range(count), without the order itself where these are few."""
    if count > MANY_TIMES * most:
        return rng.choice(count, most, replace=False)
    numbers = np.int32 if count <= np.iinfo(np.int32).max else np.int64  # half the memory, and the same draws
    return rng.permutation(np.arange(count, dtype=numbers))[:most]


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
