"""Draws of rows: by weight, by the inverse of the running sum of the weights, and all alike, each row once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array

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
