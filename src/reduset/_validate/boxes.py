"""Limits of boxes with sides along the axes: numbers or infinite, the lower ones not above the upper ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array
from reduset._validate.checks import as_numbers


def limits(value: Any, name: str, dimension: int) -> tuple[Array, bool]:
    """(q, d) limits, and whether they were given for a single box: d numbers, or one number where there is one column."""
    array = np.asarray(as_numbers(value, name), np.float64)
    single = array.ndim < 2
    if array.ndim == 0 and dimension == 1:
        array = array.reshape(1, 1)
    if single and array.shape == (dimension,):
        array = array[None]
    if array.ndim != 2 or array.shape[1] != dimension or not len(array):
        rows = f"; use {name}.reshape(-1, 1) for a box a number" if dimension == 1 and array.ndim == 1 else ""
        raise ValueError(
            f"{name} must be {dimension} limits, one a column, or a row of these for every box, got shape {np.shape(value)}{rows}"
        )
    if np.isnan(array).any():
        raise ValueError(f"{name} must hold numbers, or infinity where there is no limit, got NaN in row {_first(np.isnan(array))}")
    return array, single


def box(low: Any, high: Any, dimension: int) -> tuple[Array, Array, bool]:
    """(q, d) lower and upper limits, one of them given once for all boxes if it is; and whether it is a single box."""
    (lower, one), (upper, other) = limits(low, "low", dimension), limits(high, "high", dimension)
    if len(lower) != len(upper) and 1 not in (len(lower), len(upper)):
        raise ValueError(f"low and high must have a row for every box, got {len(lower)} and {len(upper)} rows")
    lower, upper = np.broadcast_arrays(lower, upper)
    if (lower > upper).any():
        row = _first(lower > upper)
        raise ValueError(
            f"low must not exceed high, got {lower[row].tolist()} and {upper[row].tolist()} for box {row}; exchange them"
        )
    return lower, upper, one and other


def _first(mask: NDArray[np.bool_]) -> int:
    return int(np.argwhere(mask)[0][0])
