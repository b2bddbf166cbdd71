"""Histograms of columns: bars of counted rows, never smoothed.

A column of few values has a bar for each, one of whole numbers bars of equally many of them, any other bars of equal width from its
smallest value to its largest. A long tail ends the bars near its 0.5 % or 99.5 % quantile, and all rows beyond are counted in one
more bar. Bars are placed by up to 10⁵ rows, evenly spread, and by the extremes of all. Rows are counted block by block:
O(n·log b) a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from reduset._engine import blocks, run_all
from reduset._types import Array, Floats

BARS = 40
FEW_VALUES = 12  # which have a bar each
MOST_WHOLE = 100  # whole numbers that have a bar each
LOOKED_AT = 100_000  # rows
BLOCK = 1 << 16  # rows
ENDS = (0.005, 0.995)  # quantiles
LARGEST = 2.0**50  # whole numbers up to which floating point has halves
LEAST = 0.001  # of the range of few values: how wide their bars are at least
LONG = 0.25  # a tail is cut if it is longer than this part of the distance between the two quantiles


@dataclass(frozen=True)
class ColumnBars:
    """Where the bars of a column are.

    Attributes
    ----------
    edges : (b + 1,) the ends of bars next to each other; None for a column of few values
    values : (b,) these values; None for other columns
    """

    edges: Array | None
    values: Array | None

    @classmethod
    def of(cls, some: Array, low: float, high: float) -> ColumnBars:
        """By some values of a column, and its smallest and largest."""
        distinct = np.unique(some)
        if len(distinct) <= FEW_VALUES and low >= distinct[0] and high <= distinct[-1]:
            return cls(None, distinct)
        first, last = np.quantile(some, ENDS)
        if last > first:
            low = low if first - low <= LONG * (last - first) else float(first)
            high = high if high - last <= LONG * (last - first) else float(last)
        if (distinct == np.rint(distinct)).all() and max(abs(low), abs(high)) < LARGEST:
            low, high = float(np.floor(low)), float(np.ceil(high))
            step = 1.0 if high - low < MOST_WHOLE else float(np.ceil((high - low + 1) / BARS))
            return cls(np.asarray(low - 0.5 + step * np.arange(int(np.ceil((high - low + 1) / step)) + 1), np.float64), None)
        edges = low + (high - low) * np.linspace(0, 1, BARS + 1)
        edges[-1] = np.nextafter(high, np.inf)  # the largest value lies below it
        return cls(np.unique(edges), None)  # which rounding may have made equal

    @property
    def count(self) -> int:
        """How many bars there are, those beyond the ends not counted."""
        return len(self.values) if self.values is not None else len(_known(self.edges)) - 1

    @property
    def ends(self) -> Array:
        """(b, 2) where each bar begins and ends; of few values, about half of their smallest distance to either side."""
        if self.values is None:
            edges = _known(self.edges)
            return np.column_stack([edges[:-1], edges[1:]])
        half = float(max(np.diff(self.values).min(), LEAST * np.ptp(self.values))) / 2 if len(self.values) > 1 else 0.5
        half = max(half, 4 * float(np.spacing(np.abs(self.values).max())))  # so that a bar has some width after rounding
        return np.column_stack([self.values - half, self.values + half])

    def counted(self, column: Floats, weights: Array | None) -> Array:
        """(b + 2,) the weight of rows below the bars, in each, and above them; of few values, the last is that of all others."""
        sums = np.zeros(self.count + 2)
        for start, stop in blocks(len(column), BLOCK):
            x = np.asarray(column[start:stop], np.float64)
            if self.values is None:
                bar = np.searchsorted(_known(self.edges), x, side="right")
            else:
                bar = np.searchsorted(self.values, x)
                there = self.values[np.minimum(bar, len(self.values) - 1)] == x
                bar = np.where(there, bar + 1, self.count + 1)
            sums += np.bincount(bar, None if weights is None else weights[start:stop], len(sums))
        return sums


def _known(edges: Array | None) -> Array:
    if edges is None:
        raise ValueError("a column of few values has no edges")
    return edges


def histograms(rows: Floats, weights: Array | None, columns: Sequence[int]) -> list[tuple[ColumnBars, Array]]:
    """The bars of some columns of rows (n, d), and the weight (b + 2,) in them; of equal rows where ``weights`` is None."""
    found: list[tuple[ColumnBars, Array]] = [(ColumnBars(None, np.empty(0)), np.empty(0))] * len(columns)
    step = max(1, len(rows) // LOOKED_AT)

    def fill(k: int, j: int) -> None:
        column = rows[:, j]
        bars = ColumnBars.of(np.asarray(column[::step], np.float64), float(column.min()), float(column.max()))
        found[k] = bars, bars.counted(column, weights)

    run_all([partial(fill, k, j) for k, j in enumerate(columns)])
    return found
