"""Weighted summaries of columns: means, standard deviations, extremes, quantiles, and the mass at or below each quantile.

The p-quantile is the smallest value with at least the proportion p of the mass at or below it. So it is a value of the column. One
pass for the moments and one sort of each column take O(n·d·log n). Each thread stores one column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reduset._engine import add, each_column, in_blocks, over_blocks, row_blocks, run_all
from reduset._types import Array, Floats, Indices

LEVELS = np.array([0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95])


@dataclass(frozen=True)
class Summary:
    """Summaries (d,) of d columns. Quantiles and the mass at or below them are at `LEVELS`, (levels, d).

    Attributes
    ----------
    square_spreads : Standard deviation of ((x − mean) / spread)².
    lowest, highest : The first rows with the minimum and with the maximum.
    binary : Whether a column has at most two values.
    """

    means: Array
    spreads: Array
    square_spreads: Array
    minima: Array
    maxima: Array
    lowest: Indices
    highest: Indices
    binary: NDArray[np.bool_]
    at_levels: Array = field(repr=False)
    below_levels: Array = field(repr=False)

    def quantiles(self, levels: Array) -> Array:
        """(levels, d) quantiles, for levels among `LEVELS`."""
        return self.at_levels[_positions(levels)]

    def below(self, levels: Array) -> Array:
        """(levels, d) the proportion of the mass at or below each quantile. With ties, it is larger than the level."""
        return self.below_levels[_positions(levels)]


def _positions(levels: Array) -> Array:
    positions = np.argmin(np.abs(LEVELS - np.asarray(levels)[:, None]), axis=1)
    if not np.allclose(LEVELS[positions], levels):
        raise ValueError(f"levels must be among {LEVELS.tolist()}, got {levels!r}")
    return positions


def summarise(points: Floats, weights: Array | None) -> Summary:
    """The summary of rows (n, d) with weights (n,), or None for equal weights."""
    n, d = points.shape
    total = float(n) if weights is None else float(weights.sum())
    means, spreads, squares = _moments(points, weights, total)
    minima, maxima, binary = np.empty(d), np.empty(d), np.empty(d, bool)
    lowest, highest = np.empty(d, np.int64), np.empty(d, np.int64)
    at, below = np.empty((len(LEVELS), d)), np.empty((len(LEVELS), d))

    def column(j: int, values: Floats) -> None:
        values = np.array(values)
        weighted = values if weights is None else np.where(weights > 0, values, np.nan)
        lowest[j], highest[j] = np.nanargmin(weighted), np.nanargmax(weighted)
        if weights is None:
            values.sort()
            rows = np.maximum(np.ceil(LEVELS * n - 1e-9).astype(np.int64) - 1, 0)
            at[:, j] = values[rows]
            below[:, j] = np.searchsorted(values, values[rows], side="right") / n
        else:
            order = np.argsort(values, kind="stable")
            values, running = values[order], np.cumsum(weights[order])
            rows = np.minimum(np.searchsorted(running, LEVELS * running[-1] * (1 - 1e-12)), n - 1)
            at[:, j] = values[rows]
            below[:, j] = running[np.searchsorted(values, values[rows], side="right") - 1] / running[-1]
            values = values[weights[order] > 0]
        minima[j], maxima[j] = values[0], values[-1]
        binary[j] = bool(np.searchsorted(values, values[0], side="right") == np.searchsorted(values, values[-1], side="left"))

    if in_blocks(points):
        for j, values in enumerate(each_column(points)):
            column(j, values)
    else:
        run_all([partial(column, j, points[:, j]) for j in range(d)])
    constant = minima == maxima
    spreads[constant], means[constant] = 0.0, minima[constant]
    return Summary(means, spreads, squares, minima, maxima, lowest, highest, binary | constant, at, below)


def _moments(points: Floats, weights: Array | None, total: float) -> tuple[Array, Array, Array]:
    """Means, standard deviations, and standard deviations of the standardised squares."""
    d = points.shape[1]

    def average(function: Callable[[Array], Array]) -> Array:
        return np.asarray(_sum_of(points, weights, function) / total)

    origin = np.asarray(points[0], np.float64)
    means = origin + average(partial(_less, origin=origin))
    spreads = np.sqrt(average(partial(_power, means=means, scales=np.ones(d), exponent=2)))
    scales = np.where(spreads > 0, spreads, 1.0)
    fourth = average(partial(_power, means=means, scales=scales, exponent=4))
    return means, spreads, np.sqrt(np.maximum(fourth - 1, 0.0))


@over_blocks(add)
def _sum_of(points: Floats, weights: Array | None, function: Callable[[Array], Array]) -> Array:
    """(d,) the weighted sum of a function of the rows."""
    bounds = row_blocks(points, points.shape[1])
    parts = np.zeros((len(bounds), points.shape[1]))

    def fill(k: int, a: int, b: int) -> None:
        values = function(np.asarray(points[a:b], np.float64))
        parts[k] = values.sum(axis=0) if weights is None else weights[a:b] @ values

    run_all([partial(fill, k, a, b) for k, (a, b) in enumerate(bounds)])
    return np.asarray(parts.sum(axis=0))


def _less(values: Array, origin: Array) -> Array:
    return values - origin


def _power(values: Array, means: Array, scales: Array, exponent: int) -> Array:
    squares = np.square((values - means) / scales)
    return squares if exponent == 2 else np.square(squares)
