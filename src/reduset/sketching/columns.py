"""Before and after, column by column: all rows compared with the weighted sketch.

A difference is in units of the column's standard deviation. Next to it stands its expected size for as many random rows without
replacement, √(2/π) times the standard error: 1/√m for a mean, √((κ − 1)/4m) for a standard deviation, √(p(1 − p)/m) for a
proportion, and for a quantile the distance to the quantiles at p ± √(p(1 − p)/m). O(m·d·log m) for m rows of the sketch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reduset._messages import printable
from reduset._types import Array
from reduset.sketching.summaries import Summary, summarise

SHOWN_LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
MEAN, SPREAD, PROPORTION, MINIMUM, MAXIMUM = "mean", "standard deviation", "proportion", "minimum", "maximum"
QUANTILES = tuple(f"{level:.0%} quantile" for level in SHOWN_LEVELS)
EXPECTED = float(np.sqrt(2 / np.pi))  # the mean absolute value of a standard normal number


@dataclass(frozen=True, slots=True)
class Change:
    """One statistic of one column; ``difference`` and ``random_rows`` are in standard deviations of the column."""

    column: str
    statistic: str
    all_rows: float
    sketch: float
    difference: float
    random_rows: float

    @property
    def kept(self) -> bool:
        """Whether an extreme is a row of the sketch; of two values, whether both are."""
        if self.statistic in (MINIMUM, MAXIMUM):
            return self.sketch == self.all_rows
        return not self.statistic.startswith(PROPORTION) or 0 < self.sketch < 1


@dataclass(frozen=True)
class ColumnTable(Sequence[Change]):
    """The statistics of all columns: a sequence of `Change`, printed as a table."""

    changes: tuple[Change, ...]

    def __len__(self) -> int:
        return len(self.changes)

    def __getitem__(self, index: Any) -> Any:
        return self.changes[index]

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    @property
    def largest(self) -> Change | None:
        """The statistic that differs most, extremes aside; None if every column is constant."""
        able = (each for each in self.changes if each.statistic not in (MINIMUM, MAXIMUM))
        return max(able, key=lambda each: abs(each.difference), default=None)

    @property
    def extremes(self) -> tuple[Change, ...]:
        """The minima and maxima of columns of more than two values."""
        return tuple(each for each in self.changes if each.statistic in (MINIMUM, MAXIMUM))

    @property
    def proportions(self) -> tuple[Change, ...]:
        """The proportions of columns of two values, as categories become."""
        return tuple(each for each in self.changes if each.statistic.startswith(PROPORTION))

    def renamed(self, names: Sequence[str]) -> ColumnTable:
        """The same table with other names of columns, given in their order."""
        titles = dict(zip(dict.fromkeys(each.column for each in self.changes), map(str, names), strict=True))
        return ColumnTable(tuple(replace(each, column=titles[each.column]) for each in self.changes))

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of a table with one row a statistic, as `pandas.DataFrame` takes them."""
        names = ("column", "statistic", "all_rows", "sketch", "difference", "random_rows")
        return {name: [getattr(each, name) for each in self.changes] for name in names}

    def __str__(self) -> str:
        head = ("column", "statistic", "all rows", "sketch", "difference", "random rows")
        body = [
            (
                printable(each.column),
                each.statistic,
                f"{each.all_rows:.6g}",
                f"{each.sketch:.6g}",
                f"{each.difference:+.4f}",
                "" if np.isnan(each.random_rows) else f"{each.random_rows:.4f}",
            )
            for each in self.changes
        ]
        widths = [max(map(len, entries)) for entries in zip(head, *body, strict=True)]
        lines = [
            "  ".join(f"{text:<{w}}" if k < 2 else f"{text:>{w}}" for k, (text, w) in enumerate(zip(line, widths, strict=True)))
            for line in (head, *body)
        ]
        return "\n".join(line.rstrip() for line in lines)


def compare_columns(names: Sequence[str], before: Summary, rows: Array, weights: Array, n: int) -> ColumnTable:
    """All rows, of which ``before`` is the summary, compared with the sketch's rows (m, d) and their weights."""
    after = summarise(rows, weights)
    correction = EXPECTED * np.sqrt(max(1 - len(rows) / n, 0.0))
    changes = []
    for j, name in enumerate(names):
        for statistic, old, new, error in _statistics(before, after, rows, weights, j):
            unit = np.sqrt(old * (1 - old)) if statistic.startswith(PROPORTION) else before.spreads[j]
            difference = (new - old) / unit if unit > 0 else 0.0
            changes.append(Change(str(name), statistic, old, new, float(difference), float(correction * error)))
    return ColumnTable(tuple(changes))


def _statistics(before: Summary, after: Summary, rows: Array, weights: Array, j: int) -> Iterator[tuple[str, float, float, float]]:
    """Name, of all rows, of the sketch, and the standard error of as many random rows, in standard deviations."""
    count, spread = len(rows), float(before.spreads[j])
    if before.binary[j] and spread > 0:
        width = float(before.maxima[j] - before.minima[j])
        old, new = ((float(each.means[j]) - float(before.minima[j])) / width for each in (before, after))
        yield f"{PROPORTION} of {before.maxima[j]:g}", old, new, 1 / np.sqrt(count)
        return
    yield MEAN, float(before.means[j]), float(after.means[j]), 1 / np.sqrt(count)
    yield SPREAD, spread, float(after.spreads[j]), float(before.square_spreads[j]) / np.sqrt(4 * count)
    yield MINIMUM, float(before.minima[j]), float(after.minima[j]), np.nan
    yield MAXIMUM, float(before.maxima[j]), float(after.maxima[j]), np.nan
    order = np.argsort(rows[:, j], kind="stable")
    values, running = rows[order, j], np.cumsum(weights[order])
    for name, level, old, new in zip(
        QUANTILES, SHOWN_LEVELS, before.quantiles(SHOWN_LEVELS)[:, j], after.quantiles(SHOWN_LEVELS)[:, j], strict=True
    ):
        error = np.sqrt(level * (1 - level) / count)
        ends = np.searchsorted(running, np.clip([level - error, level + error], 0, 1) * running[-1] * (1 - 1e-12))
        low, high = values[np.minimum(ends, count - 1)]
        yield name, float(old), float(new), float(high - low) / 2 / spread if spread > 0 else 0.0
