"""Histograms of columns: bars of counted rows, without smoothing.

There are three kinds of columns:

- A column with few distinct values has one bar per value.
- For whole numbers, every bar covers the same number of integers.
- Other columns have bars of equal width from the smallest value to the largest.

If a tail is long, the bars end near its 0.5 % or 99.5 % quantile, and one more bar counts the rows outside. The bars are computed
from up to 10⁵ evenly spaced rows, and from the smallest and largest value of all rows. Rows are counted block by block, in
O(n·log b) per column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from reduset._engine import blocks, run_all
from reduset._types import Array, Floats

BARS = 40
MAX_VALUES = 12  # the largest number of distinct values with one bar per value
MAX_WHOLE = 100  # the largest range of whole numbers with one bar per number
SAMPLED_ROWS = 100_000
BLOCK_ROWS = 1 << 16
TAILS = (0.005, 0.995)  # quantiles
LONG_TAIL = 0.25  # a tail is cut if it is longer than this proportion of the distance between the two quantiles
LARGEST_WHOLE = 2.0**50  # float64 represents halves up to this number
MIN_WIDTH = 0.001  # of bars of few values, relative to their range


@dataclass(frozen=True)
class ColumnBars:
    """The bars of a column.

    Attributes
    ----------
    edges : (b + 1,) edges of adjacent bars; None for a column with few values
    values : (b,) the distinct values of a column with few values; None for other columns
    """

    edges: Array | None
    values: Array | None

    @classmethod
    def of(cls, sample: Array, low: float, high: float) -> ColumnBars:
        """From a sample of the values of a column, and its smallest and largest value."""
        distinct = np.unique(sample)
        if len(distinct) <= MAX_VALUES and low >= distinct[0] and high <= distinct[-1]:
            return cls(None, distinct)
        first, last = np.quantile(sample, TAILS)
        if last > first:
            low = low if first - low <= LONG_TAIL * (last - first) else float(first)
            high = high if high - last <= LONG_TAIL * (last - first) else float(last)
        if (distinct == np.rint(distinct)).all() and max(abs(low), abs(high)) < LARGEST_WHOLE:
            low, high = float(np.floor(low)), float(np.ceil(high))
            step = 1.0 if high - low < MAX_WHOLE else float(np.ceil((high - low + 1) / BARS))
            return cls(np.asarray(low - 0.5 + step * np.arange(int(np.ceil((high - low + 1) / step)) + 1), np.float64), None)
        edges = low + (high - low) * np.linspace(0, 1, BARS + 1)
        edges[-1] = np.nextafter(high, np.inf)  # the last bar includes the largest value
        return cls(np.unique(edges), None)  # rounding may make edges equal

    @property
    def ends(self) -> Array:
        """(b, 2) start and end of each bar. For few values, the width is about the smallest distance between two values."""
        if self.edges is not None:
            return np.column_stack([self.edges[:-1], self.edges[1:]])
        values = cast(Array, self.values)
        half = float(max(np.diff(values).min(), MIN_WIDTH * np.ptp(values))) / 2 if len(values) > 1 else 0.5
        half = max(half, 4 * float(np.spacing(np.abs(values).max())))  # larger than rounding errors
        return np.column_stack([values - half, values + half])

    def counted(self, column: Floats, weights: Array | None) -> Array:
        """(b + 2,) the weight of the rows below the bars, in each bar, and above. For few values, the last counts other values."""
        sums = np.zeros(len(self.ends) + 2)
        for start, stop in blocks(len(column), BLOCK_ROWS):
            x = np.asarray(column[start:stop], np.float64)
            if self.edges is not None:
                bar = np.searchsorted(self.edges, x, side="right")
            else:
                values = cast(Array, self.values)
                bar = np.searchsorted(values, x)
                bar = np.where(values[np.minimum(bar, len(values) - 1)] == x, bar + 1, len(values) + 1)
            sums += np.bincount(bar, None if weights is None else weights[start:stop], len(sums))
        return sums


def histograms(rows: Floats, weights: Array | None, columns: Sequence[int]) -> list[tuple[ColumnBars, Array]]:
    """The bars of some columns of rows (n, d), and the weight (b + 2,) in them. None stands for equal weights."""
    counted: dict[int, tuple[ColumnBars, Array]] = {}
    step = max(1, len(rows) // SAMPLED_ROWS)

    def fill(j: int) -> None:
        column = rows[:, j]
        bars = ColumnBars.of(np.asarray(column[::step], np.float64), float(column.min()), float(column.max()))
        counted[j] = bars, bars.counted(column, weights)

    run_all([partial(fill, j) for j in columns])
    return [counted[j] for j in columns]
