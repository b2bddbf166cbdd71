"""Integers beyond 2⁵³ that float64 merges: different values that become one number. O(n log n) where a column has such values."""

from __future__ import annotations

from typing import Any

import numpy as np

EXACT = 2**53  # up to which float64 holds every whole number
SUBTRACT = "subtract the smallest value first, while they are integers"


def merged_integers(column: Any) -> tuple[int, int] | None:
    """Two values of (n,) integers that are one number in float64; None where all stay distinct, or are no integers of 64 bits."""
    values = np.asarray(column)
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or not values.size:
        return None
    if int(values.min()) >= -EXACT and int(values.max()) <= EXACT:
        return None
    ordered = np.unique(values)
    merged = np.flatnonzero(np.diff(ordered.astype(np.float64)) == 0)
    return (int(ordered[merged[0]]), int(ordered[merged[0] + 1])) if len(merged) else None


def require_distinct(column: Any, name: str, title: Any) -> None:
    """Raise an error where float64 merges integers of a column."""
    merged = merged_integers(column)
    if merged is not None:
        raise ValueError(
            f"{name} must hold integers that float64 keeps apart, column {title!r} has {merged[0]} and {merged[1]}, which become "
            f"one number; {SUBTRACT}"
        )
