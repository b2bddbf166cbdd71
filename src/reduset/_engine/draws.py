"""Draws by weight, by the inverse of the running sum of the weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array


def rows_by_weight(weights: Array, chance: Array) -> NDArray[np.int64]:
    """A row for each number of [0, 1) in ``chance``, with chances proportional to the weights, as often as it comes."""
    ends = np.cumsum(weights)
    return np.minimum(np.searchsorted(ends, chance * ends[-1], side="right"), len(ends) - 1)
