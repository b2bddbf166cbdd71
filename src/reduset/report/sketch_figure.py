"""The numbers of the pictures of a sketch: every column before and after, from counted rows; weights; the error at every scale.

Columns of 0 and 1 that encode a column of categories are one picture of that column. Both histograms of a column have the same
bars, as proportions of the weight. Rows are counted block by block, so memory does not grow beyond the table that is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset._types import Array, Floats
from reduset.io import DAYS, ONEHOT, ORDINAL, Encoder, parse_encoding
from reduset.model.histograms import histograms
from reduset.sketching import Change, Sketch
from reduset.sketching.columns import MAXIMUM, MEAN, MINIMUM, PROPORTION, SPREAD

BARS = 30  # of weights
DAY = 86_400_000  # milliseconds


@dataclass(frozen=True)
class SketchColumn:
    """One column before and after, as proportions of the weight.

    Attributes
    ----------
    name : of the column of the table
    labels : of bars that stand apart, for categories and for few values; None for a histogram
    edges : (b + 1,) the ends of a histogram's bars; None for bars that stand apart
    before, after : (b,) of all rows and of the sketch; of a histogram (b + 2,) with what lies below and above all bars
    is_date : whether ``edges`` are days since 1970-01-01
    scale : the transform of its values, "" for none
    changes : its statistics
    """

    name: str
    labels: tuple[str, ...] | None
    edges: Array | None
    before: Array
    after: Array
    is_date: bool
    scale: str
    changes: tuple[Change, ...]

    @property
    def largest(self) -> Change | None:
        """The statistic that differs most, extremes aside."""
        able = [each for each in self.changes if each.statistic not in (MINIMUM, MAXIMUM)]
        return max(able, key=lambda each: abs(each.difference), default=None)

    def statistic(self, change: Change) -> str:
        """What a statistic is: that of a column of 0 and 1 is the proportion of its category."""
        if change.column != self.name and change.column.startswith(f"{self.name}="):
            return f"{PROPORTION} of {change.column.removeprefix(f'{self.name}=')}"
        return change.statistic

    def told(self, change: Change, value: float) -> str:
        """A statistic's value: proportions as percentages, dates as dates."""
        if self.statistic(change).startswith(PROPORTION):
            return f"{100 * value:.4g} %"
        if self.is_date and change.statistic != SPREAD:
            return date_of(value)
        return f"{float(f'{value:.6g}'):,.6g}" if abs(value) < 1000 or abs(value) >= 1e12 else f"{value:,.0f}"


def date_of(days: float) -> str:
    """A date, with the time of day unless it is midnight."""
    try:
        moment = np.datetime64(round(days * 86_400), "s")
        text = str(moment)
    except (OverflowError, ValueError):  # beyond the calendar
        return f"{days:g} days"
    return text.removesuffix("T00:00:00").replace("T", " ")


def sketch_columns(
    sketch: Sketch,
    rows: Floats,
    weights: Array | None,
    names: Sequence[str],
    encoding: Mapping[str, Any],
    scales: Mapping[str, str],
) -> list[SketchColumn]:
    """Every column of the table, in its order; categories that are columns of 0 and 1 as one."""
    encoders = parse_encoding(dict(encoding) or None)[1]
    homes = {title: each for each in encoders.values() if each.way == ONEHOT for title in each.titles}
    changes: dict[str, list[Change]] = {name: [] for name in names}
    for change in sketch.columns:
        changes[change.column].append(change)
    plain = [j for j, name in enumerate(names) if name not in homes]
    drawn = dict(zip(plain, histograms(rows, weights, plain), strict=True))
    total = float(len(rows) if weights is None else weights.sum())
    found: dict[str, SketchColumn] = {}
    for j, name in enumerate(names):
        if name in homes:
            home = homes[name]
            if home.column not in found:
                found[home.column] = _categories(home, changes)
            continue
        bars, before = drawn[j]
        after = bars.counted(np.asarray(rows[sketch.indices, j], np.float64), sketch.weights)
        encoder = encoders.get(name)
        is_date = encoder is not None and encoder.way == DAYS
        known = encoder.known if encoder is not None and encoder.way == ORDINAL else None
        each = (before / total, after / float(sketch.weights.sum()))
        labels = None if bars.values is None else _labels(bars.values, is_date, known)
        if labels is not None:  # the last is that of values that no bar has
            others = any(part[-1] > 0 for part in each)
            labels, each = (
                (*labels, *(["other"] * others)),
                (each[0][1 : None if others else -1], each[1][1 : None if others else -1]),
            )
        found[name] = SketchColumn(name, labels, bars.edges, *each, is_date, scales.get(name, ""), tuple(changes[name]))
    return list(found.values())


def _labels(values: Array, is_date: bool, known: Sequence[Any] | None) -> tuple[str, ...]:
    """What bars of few values are called."""
    if known is not None:
        return tuple(str(known[int(value)]) for value in values)
    return tuple(date_of(value) if is_date else f"{value:.6g}" for value in values)


def _categories(encoder: Encoder, changes: Mapping[str, list[Change]]) -> SketchColumn:
    """A column of categories, the most frequent first; the mean of a column of 0 and 1 is a proportion."""
    pairs = [(str(label), changes[title]) for label, title in zip(encoder.known, encoder.titles, strict=True)]
    means = [next(each for each in mine if each.statistic.startswith((PROPORTION, MEAN))) for _, mine in pairs]
    order = sorted(range(len(means)), key=lambda k: -means[k].all_rows)
    return SketchColumn(
        encoder.column,
        tuple(pairs[k][0] for k in order),
        None,
        np.array([means[k].all_rows for k in order]),
        np.array([means[k].sketch for k in order]),
        False,
        "",
        tuple(means[k] for k in order),
    )


@dataclass(frozen=True)
class WeightsFigure:
    """Weights as multiples of the average: (b + 1,) edges, and (b,) how many rows of the strata, and how many covering ones."""

    edges: Array
    strata: Array
    covering: Array


def weights_figure(sketch: Sketch) -> WeightsFigure:
    """Of all rows of a sketch."""
    relative = sketch.weights * (sketch.size / sketch.weights.sum())
    edges = np.linspace(0.0, float(relative.max()) * (1 + 1e-9), BARS + 1)
    strata, covering = (np.histogram(relative[which], edges)[0] for which in (~sketch.covering, sketch.covering))
    return WeightsFigure(edges, strata, covering)
