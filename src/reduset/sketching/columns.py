"""Statistics of each column: all rows compared with the weighted sketch.

A difference is in units of the column's standard deviation. The expected difference of m random rows without replacement is printed
next to it. It is √(2/π) times the standard error:

- 1/√m for a mean,
- √((κ − 1)/4m) for a standard deviation,
- √(p(1 − p)/m) for a proportion,
- for a quantile, the distance to the quantiles at p ± √(p(1 − p)/m).

O(m·d·log m) for m rows of the sketch.
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
    """One statistic of one column. ``difference`` and ``random_rows`` are in standard deviations of the column."""

    column: str
    statistic: str
    all_rows: float
    sketch: float
    difference: float
    random_rows: float

    @property
    def kept(self) -> bool:
        """Whether the sketch has a row with this extreme, or rows with both values of a binary column."""
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
        """The statistic with the largest difference, without extremes; None if every column is constant."""
        changes = (change for change in self.changes if change.statistic not in (MINIMUM, MAXIMUM))
        return max(changes, key=lambda change: abs(change.difference), default=None)

    @property
    def extremes(self) -> tuple[Change, ...]:
        """The minima and maxima of columns with more than two values."""
        return tuple(change for change in self.changes if change.statistic in (MINIMUM, MAXIMUM))

    @property
    def proportions(self) -> tuple[Change, ...]:
        """The proportions of columns with two values, such as encoded categories."""
        return tuple(change for change in self.changes if change.statistic.startswith(PROPORTION))

    def renamed(self, names: Sequence[str]) -> ColumnTable:
        """The table with other names of columns, given in their order."""
        titles = dict(zip(dict.fromkeys(change.column for change in self.changes), map(str, names), strict=True))
        return ColumnTable(tuple(replace(change, column=titles[change.column]) for change in self.changes))

    def to_dict(self) -> dict[str, list[Any]]:
        """The table as a dictionary of columns for `pandas.DataFrame`, with one row for each statistic."""
        names = ("column", "statistic", "all_rows", "sketch", "difference", "random_rows")
        return {name: [getattr(change, name) for change in self.changes] for name in names}

    def __str__(self) -> str:
        head = ("column", "statistic", "all rows", "sketch", "difference", "random rows")
        body = [
            (
                printable(change.column),
                change.statistic,
                f"{change.all_rows:.6g}",
                f"{change.sketch:.6g}",
                f"{change.difference:+.4f}",
                "" if np.isnan(change.random_rows) else f"{change.random_rows:.4f}",
            )
            for change in self.changes
        ]
        widths = [max(map(len, entries)) for entries in zip(head, *body, strict=True)]
        lines = [
            "  ".join(f"{text:<{w}}" if k < 2 else f"{text:>{w}}" for k, (text, w) in enumerate(zip(line, widths, strict=True)))
            for line in (head, *body)
        ]
        return "\n".join(line.rstrip() for line in lines)


def compare_columns(names: Sequence[str], before: Summary, rows: Array, weights: Array, n: int) -> ColumnTable:
    """Compare all rows, with the summary ``before``, with the rows (m, d) and weights of the sketch."""
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
    """Name, value for all rows, value for the sketch, and standard error of random rows, in standard deviations."""
    count, spread = len(rows), float(before.spreads[j])
    if before.binary[j] and spread > 0:
        width = float(before.maxima[j] - before.minima[j])
        old, new = ((float(summary.means[j]) - float(before.minima[j])) / width for summary in (before, after))
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
