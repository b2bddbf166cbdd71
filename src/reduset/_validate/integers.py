"""Integers beyond 2⁵³ that float64 merges: different values that become one number. O(n log n) if a column has such values."""

from __future__ import annotations

from typing import Any

import numpy as np

EXACT = 2**53  # up to which float64 holds every whole number
LARGEST = 10**300
SUBTRACT = "subtract the smallest value first, while they are integers"


def merged_integers(column: Any) -> tuple[int, int] | None:
    """Two values of (n,) integers that are one number in float64; None where all stay distinct, or are no integers of 64 bits.

    Of a column of Python objects, the whole numbers among them.
    """
    values = np.asarray(column)
    if values.dtype.kind == "O":
        values = _whole_numbers(values)
    elif values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return None
    if not values.size or (values.min() >= -EXACT and values.max() <= EXACT):
        return None
    ordered = np.unique(values)
    merged = np.flatnonzero(np.diff(ordered.astype(np.float64)) == 0)
    return (int(ordered[merged[0]]), int(ordered[merged[0] + 1])) if len(merged) else None


def _whole_numbers(values: Any) -> Any:
    """(k,) the integers among Python objects that float64 can hold, as objects."""
    kept = [int(each) for each in values.ravel().tolist() if type(each) is int or isinstance(each, np.integer)]
    return np.array([each for each in kept if abs(each) < LARGEST], dtype=object)


def require_distinct(column: Any, name: str, title: Any) -> None:
    """Raise an error where float64 merges integers of a column."""
    merged = merged_integers(column)
    if merged is not None:
        raise ValueError(
            f"{name} must hold integers that float64 keeps apart, column {title!r} has {merged[0]} and {merged[1]}, which become "
            f"one number; {SUBTRACT}"
        )
