"""When single precision will do for kernel sums, and how many columns a card has registers for: the limits, said once."""

from __future__ import annotations

from typing import Any

import numpy as np

SINGLE_REACH = 128.0  # float32 coordinates beyond this, over the steepness of the profile, no longer give 1e-5
BLAS_REACH: dict[Any, float] = {np.float32: 6.0, np.float64: 1e3}  # |z|² · slope beyond this cancels in |z|² + |q|² − 2 z·q
MIXED_REACH = 1.0  # |z|² · slope up to which products in single precision leave gaps that are right to 1e-7
MIXED_FROM = 96  # columns: below, products cost no more than what is done with them
SINGLE_FLOOR = 1e-7  # of Σ|w|: below, the depths are large and float32 rounds them too coarsely
FEW_COLUMNS = 64  # up to which a thread of a GPU holds a row
FEW_PAIRS = 1 << 22  # where double costs nothing that a person would notice


def extent(weights: Any) -> tuple[float, float]:
    """The least and the largest weight; of weights that are one number it is looked at once."""
    some = weights[:1] if weights.strides == (0,) else weights
    return float(some.min()), float(some.max())


def takes_single(points: Any, weights: Any, queries: Any, profile: Any) -> bool:
    """Whether a sum may be tried in single precision: of a profile that has it, of weights of one sign, and worth it."""
    low, high = extent(weights)
    return profile.in_single and len(points) * len(queries) > FEW_PAIRS and not low < 0 < high  # signed sums cancel
