"""The report of a sketch: every column before and after, the statistics, the weights, the radius and the error at every scale.

Columns of 0 and 1 that encode categories have one figure for the original column. Both histograms of a column have the same bars,
as proportions of the weight. Rows are counted block by block, so the additional memory is small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset import _archive, _validate
from reduset._describe import percent as error_percent
from reduset._describe import shortened, significant
from reduset._frames import table_weights
from reduset._types import Array, Floats, PointsLike, WeightsLike
from reduset.certificate import at_bandwidth
from reduset.io import DAYS, ONEHOT, ORDINAL, Encoder, parse_encoding
from reduset.model import histograms
from reduset.report.compression import error_by_bandwidth, profile_data
from reduset.report.figures import drawn_profile
from reduset.report.page import (
    DRAWN_AT_ONCE,
    LONG,
    Cell,
    Markup,
    Section,
    choice,
    columns_of,
    controls,
    grid,
    hero,
    listed,
    markup,
    named,
    pictures,
    plot,
    reduced,
    small,
    table,
    write_page,
)
from reduset.report.words import Card, count, one_in, percent, plain
from reduset.sketching import MAXIMUM, MEAN, MINIMUM, PROPORTION, SPREAD, Change, Sketch, TableRows

PICTURED = 60  # columns with a figure
LISTED = 2000  # statistics in the table
MAX_BARS = 30  # the most frequent categories of a figure
WEIGHT_BARS = 30
NAMED = 8  # columns in a sentence
SCALED = 6  # columns with a printed scale
ROUNDING = 1e-9  # standard deviations
SHOWN = 5e-5  # standard deviations, with four digits
RED_RATIO = 2.0  # differences above this multiple of the expected difference of random rows are red


def write_sketch(
    path: _archive.Path_,
    sketch: Sketch,
    data: PointsLike,
    *,
    encode: Any = "auto",
    identifiers: str = "omit",
    sample_weight: WeightsLike = None,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write the report of a sketch: one HTML file that opens offline.

    Parameters
    ----------
    path : The HTML file.
    sketch : Sketch of `reduset.sketch`.
    data : (n, d) array, frame or `reduset.io.Table`
        The data of the sketch. The file has counts of its rows, but not the rows.
    encode, identifiers : Arguments of `reduset.sketch`, for frames.
    sample_weight : Argument of `reduset.sketch`.
    about : Plain values to show: "command", "sources", "notes", "versions", and any others.
    """
    if not isinstance(sketch, Sketch):
        raise TypeError(f"sketch must be a Sketch, got {type(sketch).__name__}; give the result of reduset.sketch")
    table = TableRows.of(data, encode, identifiers)
    rows = np.asarray(table.values)
    shape = (sketch.n_samples, sketch.mean.dimension)
    if rows.shape != shape:
        raise ValueError(
            f"data must be the data of the sketch, {shape[0]:,} rows of {shape[1]} columns; got shape {rows.shape}. For a "
            "frame, give the same encode and identifiers as to sketch"
        )
    sample_weight = table_weights(data) if sample_weight is None else sample_weight
    weights = None if sample_weight is None else _validate.weights(sample_weight, len(rows))
    names = tuple(dict.fromkeys(each.column for each in sketch.columns))
    columns = sketch_columns(sketch, rows, weights, names, table.encoding, table.scales)
    titles = [each.name for each in columns]
    if len(columns) > DRAWN_AT_ONCE:
        columns.sort(key=lambda each: -abs(each.largest.difference) if each.largest is not None else 0.0)
    given = dict(about or {})
    notes = given.pop("notes", sketch.notes or table.notes) or []
    notes = [notes] if isinstance(notes, str) else list(notes)
    if sketch.groups is not None:
        groups = count(len(np.unique(sketch.groups)), "group")
        notes.insert(0, f"{groups}, each sketched separately: the weights keep the proportion of every group exactly")
    write_page(
        path,
        f"{count(sketch.n_samples, 'row')} → {count(sketch.size, 'weighted row')}",
        hero(
            reduced(sketch.n_samples, "row", sketch.size, "weighted row"),
            [plain(given.get("sources") or []), columns_of(titles)],
            _cards(sketch, columns),
            listed(notes),
            lead=_lead(sketch, columns),
        ),
        [_pictures(columns), _table(sketch, columns), _weights(sketch)],
        ["profile.js", "sketch.js"],
        about=given,
        settings={"Kernel": repr(sketch.mean.kernel), "Time (s)": sketch.timings},
        data={"piece": "sketch row"},
    )


@dataclass(frozen=True)
class SketchColumn:
    """One column before and after, as proportions of the weight.

    Attributes
    ----------
    name : Name of the column in the table.
    labels : Labels of separate bars, for categories and for columns with few values; None for a histogram.
    edges : (b + 1,) the ends of a histogram's bars; None for separate bars
    before, after : Proportions (b,) of all rows and of the sketch.
        A histogram has (b + 2,), including the proportions below and above all bars.
    is_date : Whether ``edges`` are days since 1970-01-01.
    scale : Transform of the values, "" for none.
    changes : Statistics of the column.
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
        """The statistic with the largest difference, without minimum and maximum."""
        others = [each for each in self.changes if each.statistic not in (MINIMUM, MAXIMUM)]
        return max(others, key=lambda each: abs(each.difference), default=None)

    def statistic(self, change: Change) -> str:
        """The name of a statistic. For a column of 0 and 1, it is the proportion of the category."""
        if change.column != self.name and change.column.startswith(f"{self.name}="):
            return f"{PROPORTION} of {change.column.removeprefix(f'{self.name}=')}"
        return change.statistic

    def text(self, change: Change, value: float) -> str:
        """The value of a statistic: proportions as percentages, dates as dates."""
        if self.statistic(change).startswith(PROPORTION):
            return f"{100 * value:.4g} %"
        if self.is_date and change.statistic != SPREAD:
            return date_of(value)
        text = f"{float(f'{value:.6g}'):,.6g}" if abs(value) < 1000 or abs(value) >= 1e12 else f"{value:,.0f}"
        return f"{text} days" if self.is_date else text

    def data(self) -> dict[str, Any]:
        """The values of its figure, for a script."""
        labels, before, after = self.labels, self.before, self.after
        if labels is not None and len(labels) > MAX_BARS:
            labels = (*labels[:MAX_BARS], f"{len(labels) - MAX_BARS} others")
            before, after = (np.append(part[:MAX_BARS], part[MAX_BARS:].sum()) for part in (before, after))
        return {
            "labels": None if labels is None else list(labels),
            "edges": self.edges,
            "before": before,
            "after": after,
            "date": self.is_date,
        }


def date_of(days: float) -> str:
    """A date, with the time of day unless it is midnight."""
    try:
        text = str(np.datetime64(round(days * 86_400), "s"))
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
    """Every column of the table, in order. The columns of 0 and 1 of a categorical column are one column here."""
    encoders = parse_encoding(dict(encoding) or None)[1]
    homes = {title: each for each in encoders.values() if each.way == ONEHOT for title in each.titles}
    changes: dict[str, list[Change]] = {name: [] for name in names}
    for change in sketch.columns:
        changes[change.column].append(change)
    numeric = [j for j, name in enumerate(names) if name not in homes]
    counted = dict(zip(numeric, histograms(rows, weights, numeric), strict=True))
    total = float(len(rows) if weights is None else weights.sum())
    columns: dict[str, SketchColumn] = {}
    for j, name in enumerate(names):
        if name in homes:
            home = homes[name]
            if home.column not in columns:
                columns[home.column] = _categories(home, changes)
            continue
        bars, before = counted[j]
        after = bars.counted(np.asarray(rows[sketch.indices, j], np.float64), sketch.weights)
        encoder, parts = encoders.get(name), (before / total, after / float(sketch.weights.sum()))
        is_date, labels = encoder is not None and encoder.way == DAYS, None
        if bars.values is not None:
            if encoder is not None and encoder.way == ORDINAL:
                labels = tuple(str(encoder.known[int(value)]) for value in bars.values)
            else:
                labels = tuple(date_of(value) if is_date else f"{value:.6g}" for value in bars.values)
            others = any(part[-1] > 0 for part in parts)  # rows of other values
            labels = (*labels, "other") if others else labels
            last = None if others else -1
            parts = parts[0][1:last], parts[1][1:last]
        columns[name] = SketchColumn(name, labels, bars.edges, *parts, is_date, scales.get(name, ""), tuple(changes[name]))
    return list(columns.values())


def _categories(encoder: Encoder, changes: Mapping[str, list[Change]]) -> SketchColumn:
    """A column of categories, the most frequent first. The mean of a column of 0 and 1 is a proportion."""
    labels = [str(label) for label in encoder.known]
    means = [next(each for each in changes[title] if each.statistic.startswith((PROPORTION, MEAN))) for title in encoder.titles]
    order = sorted(range(len(means)), key=lambda k: -means[k].all_rows)
    before, after = (np.array([getattr(means[k], name) for k in order]) for name in ("all_rows", "sketch"))
    return SketchColumn(
        encoder.column, tuple(labels[k] for k in order), None, before, after, False, "", tuple(means[k] for k in order)
    )


def _lead(sketch: Sketch, columns: Sequence[SketchColumn]) -> str:
    """The reduction, and the units of distances."""
    n, m = count(sketch.n_samples, "row"), count(sketch.size)
    text = f"{m} of {n} were kept unchanged. Each has the weight of the rows that it represents."
    units = getattr(sketch.mean.kernel, "units", None)
    if units is None:
        return f"{text} Distances are in the units of the {'transformed values' if _transformed(columns) else 'columns'}."
    names = list(dict.fromkeys(each.column for each in sketch.columns))
    scales = [f"{shortened(name)} by {significant(unit)}" for name, unit in zip(names, units[:SCALED], strict=False)]
    more = f" and {len(names) - SCALED} more" if len(names) > SCALED else ""
    return f"{text} For distances and bandwidths, each column is divided by its scale: {', '.join(scales)}{more}."


def _cards(sketch: Sketch, columns: Sequence[SketchColumn]) -> list[Card]:
    n, m = sketch.n_samples, sketch.size
    shown = [Card("Kept", "all" if m >= n else one_in(n / m), f"{percent(m / n)} of the rows, each with a weight.")]
    changes = [(each, each.largest) for each in columns if each.largest is not None]
    if changes:
        column, change = max(changes, key=lambda pair: abs(pair[1].difference) if pair[1] is not None else 0.0)
        if change is not None:
            text = f"standard deviations: the {column.statistic(change)} of {shortened(column.name)}."
            text += f" Expected for {m:,} random rows: {change.random_rows:.2g}." if np.isfinite(change.random_rows) else ""
            if sketch.exact:
                *first, last = sketch.exact
                text += f" Exact with the weights: {' and '.join(filter(None, [', '.join(first), last]))}."
            shown.append(Card("Largest change", f"{abs(change.difference):.2g}", text))
    shown.append(Card("Error", error_percent(sketch.error).replace(" ", "\N{NO-BREAK SPACE}"), _error(sketch)))
    if sketch.radius is not None:
        is_scaled = getattr(sketch.mean.kernel, "unit_covariance", None) is not None
        text = "The largest distance of a row to its nearest row of the sketch"
        text += ", in units of the columns' scales." if is_scaled else "."
        shown.append(Card("Radius", f"{significant(sketch.radius)}", text))
    return shown


def _error(sketch: Sketch) -> str:
    """The error with its bandwidth and interval."""
    width = getattr(sketch.mean.kernel, "width", None) if sketch.resolution is None else sketch.resolution
    certificate, text = sketch.certificate, f"Of the kernel density{at_bandwidth(width)}"
    if certificate.method != "exact":
        low, high = certificate.interval
        text += f", {percent(certificate.confidence)} confidence interval {percent(low)} to {percent(high)}"
    return f"{text}." if sketch.resolution is None else f"{text}. At most {percent(sketch.tol)} at all larger bandwidths."


def _pictures(columns: Sequence[SketchColumn]) -> Section:
    """Every column before and after."""
    drawn = [
        plot(
            f"column-{k}",
            f"{each.name}: proportions of all rows and of the weighted sketch",
            "small",
            named(each.name),
            small(_caption(each)),
        )
        for k, each in enumerate(columns[:PICTURED])
    ]
    rest = f"Figures of {PICTURED} columns of {len(columns)}." if len(columns) > PICTURED else ""
    text = "Proportions of all rows (grey) and of the weighted sketch (red). sd is the standard deviation of the column. "
    text += "Columns that changed most come first. " if len(columns) > DRAWN_AT_ONCE else ""
    text += "A hatched bar at an end has all rows beyond the axis."
    return Section("columns", "Columns", [text, pictures(drawn, rest)], {"columns": [each.data() for each in columns[:PICTURED]]})


def _caption(each: SketchColumn) -> str:
    """The transform and the largest change of a column."""
    scale = f"{each.scale.partition(':')[0]} scale, " if each.scale else ""
    if each.largest is None or abs(each.largest.difference) < ROUNDING:
        return scale + ("proportions equal" if each.edges is None else "mean and quantiles equal")
    return f"{scale}largest change {abs(each.largest.difference):.2g} sd"


def _transformed(columns: Sequence[SketchColumn]) -> str:
    """The columns with transformed values, as a sentence; empty for none."""
    scaled = [each for each in columns if each.scale]
    if not scaled:
        return ""
    which = "all columns" if len(scaled) == len(columns) else ", ".join(shortened(each.name) for each in scaled[:NAMED])
    scales = ", ".join(dict.fromkeys(each.scale.partition(":")[0] for each in scaled))
    return f" Values of {which} are transformed ({scales}). Rows of the sketch are written with the values of the file."


def _table(sketch: Sketch, columns: Sequence[SketchColumn]) -> Section:
    """All statistics by column, with one in each row."""
    every = [(each, change) for each in columns for change in each.changes]
    rows, orders = [], []
    for k, (each, change) in enumerate(every[:LISTED]):
        is_extreme = change.statistic in (MINIMUM, MAXIMUM)
        is_large = not is_extreme and abs(change.difference) > max(RED_RATIO * change.random_rows, SHOWN)
        difference = f"{change.difference:+.4f}".replace("-", "−") if abs(change.difference) >= SHOWN else "0.0000"
        rows.append(
            [
                named(each.name, LONG),
                named(each.statistic(change), LONG),
                each.text(change, change.all_rows),
                each.text(change, change.sketch),
                Cell(markup('<td class="over">$text</td>', text=difference)) if is_large else difference,
                "" if is_extreme or not np.isfinite(change.random_rows) else f"{change.random_rows:.4f}",
            ]
        )
        orders.append({"order": k, "change": 0.0 if is_extreme else abs(change.difference)})
    caption = f"{count(len(columns), 'column')}, {count(len(every), 'statistic')}"
    caption += f"; the table has the first {LISTED:,}" if len(every) > LISTED else ""
    head = ("column", "statistic", "all rows", "sketch", "difference", "random rows")
    text = (
        f"All rows compared with the weighted sketch.{_transformed(columns)} Differences are in standard deviations of the column. "
        f"“Random rows” is the expected difference of {count(sketch.size)} random rows. Differences above twice this value are "
        "red. Minimum and maximum have no such comparison."
    )
    boxes = controls([choice("order", "Order", [("column", "by column"), ("change", "largest change first")])], "The table")
    return Section("table", "Statistics", [text, boxes, table(head, rows, caption, True, "changes", orders)])


def _weights(sketch: Sketch) -> Section:
    """The weights (of covering rows separately), the covering radius, and the error at every scale."""
    relative = sketch.weights * (sketch.size / sketch.weights.sum())
    strata, covering = relative[~sketch.covering], relative[sketch.covering]
    text = f"Weights are {_range(strata)} times the average. " if len(strata) else ""
    if len(covering):
        verb = "has a weight of" if len(covering) == 1 else "have weights of"
        text += f"{count(len(covering), 'row')} with rare or extreme values {verb} {_range(covering)} times the average. "
    if sketch.radius is not None:
        text += f"The largest distance of a row to its nearest row of the sketch is {significant(sketch.radius)}."
    label = "Number of rows of the sketch by weight, as a multiple of the average"
    drawn = [plot("weights", label, "", "Weights", small("1 is the average"))]
    edges = np.linspace(0.0, float(relative.max()) * (1 + 1e-9), WEIGHT_BARS + 1)
    strata_counts, covering_counts = (np.histogram(part, edges)[0].tolist() for part in (strata, covering))
    data: dict[str, Any] = {
        "weights": {"edges": edges.tolist(), "strata": strata_counts, "covering": covering_counts},
        "profile": None,
    }
    measured = Markup("")
    if sketch.profile is not None:  # a kernel without a scale has no profile
        width = float(getattr(sketch.mean.kernel, "width", np.nan)) if sketch.resolution is None else np.nan
        shown = drawn_profile(sketch.profile, sketch.size, sketch.tol, width, "sketch row")
        data["profile"] = profile_data([shown], [0], sketch.mean.kernel)
        label = "Relative error of the kernel density by bandwidth, with random rows and the sampling error of all rows"
        drawn.append(plot("fine", label, "", "Error by bandwidth", small("of the kernel density")))
        measured = error_by_bandwidth(shown, sketch.n_samples, "aside")
    return Section("weights", "Weights and error", [text, grid(drawn), measured], data)


def _range(values: Array) -> str:
    low, high = f"{values.min():.2g}", f"{values.max():.2g}"
    return low if low == high else f"{low} to {high}"
