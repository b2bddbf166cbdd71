"""The report of a sketch: what was done, every column before and after, the weights, the radius and the error at every scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reduset import _archive, _validate
from reduset._describe import percent as error_percent
from reduset._frames import table_weights
from reduset._types import PointsLike, WeightsLike
from reduset.report import words
from reduset.report.blocks import (
    DRAWN_AT_ONCE,
    LONG,
    Markup,
    choice,
    columns_of,
    controls,
    grid,
    hero,
    listed,
    named,
    pictures,
    plot,
    red,
    reduced,
    small,
    table,
)
from reduset.report.compression import error_by_bandwidth, profile_data
from reduset.report.figures import drawn_profile
from reduset.report.page import Section, write_page
from reduset.report.sketch_figure import SketchColumn, sketch_columns, weights_figure
from reduset.report.words import Card, count, percent, plain, shortened
from reduset.sketching import Sketch
from reduset.sketching.columns import MAXIMUM, MINIMUM
from reduset.sketching.tables import TableRows

PICTURED = 60  # columns that have a picture
LISTED = 2000  # statistics in the table
MOST_BARS = 30  # categories of a picture, the most frequent
NAMED = 8  # columns in a sentence
DIVIDED = 6  # columns whose scale is named
ROUNDING = 1e-9  # standard deviations
SHOWN = 5e-5  # standard deviations, of four digits
CLEARLY = 2.0  # differences above this multiple of random rows' are red


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
    path : where to, usually with the ending .html
    sketch : Sketch, of `reduset.sketch`
    data : (n, d) array, frame or `reduset.io.Table`
        What was sketched. Its rows are counted, and are not in the file.
    encode, identifiers : as they were given to `reduset.sketch`, for frames
    sample_weight : as it was given to `reduset.sketch`
    about : plain values to show with it: "command", "sources", "notes", "versions", and any others
    """
    if not isinstance(sketch, Sketch):
        raise TypeError(f"sketch must be a Sketch, got {type(sketch).__name__}; it is what reduset.sketch returns")
    table = TableRows.of(data, encode, identifiers)
    rows = np.asarray(table.values)
    shape = (sketch.n_samples, sketch.mean.dimension)
    if rows.shape != shape:
        raise ValueError(
            f"data must be what was sketched, {shape[0]:,} rows of {shape[1]} columns; got shape {rows.shape}; of a frame, give "
            "the encode and identifiers that sketch was given"
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
    write_page(
        path,
        f"{count(sketch.n_samples, 'row')} → {count(sketch.size, 'weighted row')}",
        hero(
            reduced(sketch.n_samples, "row", sketch.size, "weighted row"),
            [plain(given.get("sources") or []), columns_of(titles)],
            _cards(sketch, columns),
            listed(notes),
            lead=_done(sketch, columns),
        ),
        [_pictures(columns), _table(sketch, columns), _weights(sketch)],
        ["profile.js", "sketch.js"],
        about=given,
        settings={"Kernel": repr(sketch.mean.kernel), "Seconds": sketch.timings} | _groups(sketch),
        data={"piece": "sketch row"},
    )


def _column(each: SketchColumn) -> dict[str, Any]:
    labels, before, after = each.labels, each.before, each.after
    if labels is not None and len(labels) > MOST_BARS:
        rest = len(labels) - MOST_BARS
        labels = (*labels[:MOST_BARS], f"{rest} others")
        before, after = (np.append(part[:MOST_BARS], part[MOST_BARS:].sum()) for part in (before, after))
    return {
        "labels": None if labels is None else list(labels),
        "edges": None if each.edges is None else each.edges.tolist(),
        "before": before.tolist(),
        "after": after.tolist(),
        "date": each.is_date,
    }


def _done(sketch: Sketch, columns: Sequence[SketchColumn]) -> str:
    """What was done, in plain sentences."""
    n, m = count(sketch.n_samples, "row"), count(sketch.size)
    text = f"{m} of {n} were kept as they are. Each has the weight of the rows that it represents."
    units = getattr(sketch.mean.kernel, "units", None)
    if units is None:
        return f"{text} Distances are in the units of the {'transformed values' if _scaled(columns) else 'columns'}."
    names = list(dict.fromkeys(each.column for each in sketch.columns))
    told = [f"{shortened(name)} by {words.figures(unit)}" for name, unit in zip(names, units[:DIVIDED], strict=False)]
    return f"{text} For distances, columns were divided: {', '.join(told)}{' and so on' if len(names) > DIVIDED else ''}."


def _cards(sketch: Sketch, columns: Sequence[SketchColumn]) -> list[Card]:
    n, m = sketch.n_samples, sketch.size
    found = [
        Card("Kept", "all" if m >= n else f"1 in {words.roughly(n / m)}", f"{percent(m / n)} of the rows, each with a weight.")
    ]
    able = [(each, each.largest) for each in columns if each.largest is not None]
    if able:
        column, change = max(able, key=lambda pair: abs(pair[1].difference) if pair[1] is not None else 0.0)
        if change is not None:
            what = f"standard deviations: the {column.statistic(change)} of {shortened(column.name)}"
            random = f"{m:,} random rows: {change.random_rows:.2g} on average." if np.isfinite(change.random_rows) else ""
            exact = f" Exact with the weights: {_and(sketch.exact)}." if sketch.exact else ""
            found.append(Card("Largest change", f"{abs(change.difference):.2g}", f"{what}. {random}{exact}"))
    found.append(Card("Error", error_percent(sketch.error).replace(" ", "\N{NO-BREAK SPACE}"), _error(sketch)))
    if sketch.radius is not None:
        scaled = getattr(sketch.mean.kernel, "unit_covariance", None) is not None
        units = "in units of the columns' scales: the" if scaled else "The"
        meaning = f"{units} largest distance of a row to its nearest row of the sketch."
        found.append(Card("Radius", f"{sketch.radius:.3g}", meaning[0].upper() + meaning[1:]))
    return found


def _error(sketch: Sketch) -> str:
    """The error with its bandwidth and interval."""
    width = getattr(sketch.mean.kernel, "width", None) if sketch.resolution is None else sketch.resolution
    text = "Of the kernel density" + (f" at bandwidth {width:.3g}" if width is not None else "")
    low, high = sketch.certificate.interval
    if sketch.certificate.method != "exact":
        text += f", between {percent(low)} and {percent(high)} with {words.confidence(sketch.certificate)} confidence"
    return f"{text}." if sketch.resolution is None else f"{text}. At most {percent(sketch.tol)} at all larger bandwidths."


def _and(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _pictures(columns: Sequence[SketchColumn]) -> Section:
    """Every column before and after."""
    drawn = [
        plot(
            f"column-{k}",
            f"{each.name}: proportions of all rows and of the weighted sketch",
            "small",
            named(each.name),
            small(_aside(each)),
        )
        for k, each in enumerate(columns[:PICTURED])
    ]
    rest = f"Pictures of {PICTURED} columns of {len(columns)}." if len(columns) > PICTURED else ""
    text = "Grey bars are all rows, red is the weighted sketch, counted in the same bars. Nothing is smoothed. "
    text += "Columns that changed most come first. " if len(columns) > DRAWN_AT_ONCE else ""
    text += "A hatched bar at an end holds all rows beyond it."
    data = {"columns": [_column(each) for each in columns[:PICTURED]]}
    return Section("columns", "Column by column", [text, pictures(drawn, rest)], data)


def _aside(each: SketchColumn) -> str:
    scale = f"{each.scale.partition(':')[0]} scale, " if each.scale else ""
    return f"{scale}{_change(each)}"


def _change(each: SketchColumn) -> str:
    largest = each.largest
    if largest is None or abs(largest.difference) < ROUNDING:
        return "proportions equal" if each.edges is None else "mean and quantiles equal"
    return f"largest change {abs(largest.difference):.2g} sd"


def _values(columns: Sequence[SketchColumn]) -> str:
    """Which values the table describes."""
    scaled = _scaled(columns)
    if not scaled:
        return "All rows compared with the weighted sketch."
    which = "all columns" if len(scaled) == len(columns) else ", ".join(shortened(each.name) for each in scaled[:NAMED])
    return (
        f"All rows compared with the weighted sketch. Values of {which} are transformed ({_scales(scaled)}); rows of the sketch "
        "are written with the values of the file."
    )


def _scaled(columns: Sequence[SketchColumn]) -> list[SketchColumn]:
    return [each for each in columns if each.scale]


def _scales(columns: Sequence[SketchColumn]) -> str:
    return ", ".join(dict.fromkeys(each.scale.partition(":")[0] for each in columns))


def _table(sketch: Sketch, columns: Sequence[SketchColumn]) -> Section:
    """All statistics, one a row, by column."""
    every = [(each, change) for each in columns for change in each.changes]
    rows, orders = [], []
    for k, (each, change) in enumerate(every[:LISTED]):
        extreme = change.statistic in (MINIMUM, MAXIMUM)
        over = not extreme and abs(change.difference) > max(CLEARLY * change.random_rows, SHOWN)
        difference = f"{change.difference:+.4f}" if abs(change.difference) >= SHOWN else "0.0000"
        rows.append(
            [
                named(each.name, LONG),
                named(each.statistic(change), LONG),
                each.told(change, change.all_rows),
                each.told(change, change.sketch),
                red(difference) if over else difference,
                "" if extreme or not np.isfinite(change.random_rows) else f"{change.random_rows:.4f}",
            ]
        )
        orders.append({"order": k, "change": 0.0 if extreme else abs(change.difference)})
    caption = f"{count(len(columns), 'column')}, {count(len(every), 'statistic')}"
    caption += f", of which the first {LISTED:,}" if len(every) > LISTED else ""
    head = ("column", "statistic", "all rows", "sketch", "difference", "random rows")
    text = (
        f"{_values(columns)} Differences are in standard deviations of the column. “Random rows” is the expected size of the "
        f"difference for {count(sketch.size)} random rows. Differences of more than twice that are red. Minimum and maximum have "
        "no such comparison."
    )
    boxes = controls([choice("order", "Order", [("column", "by column"), ("change", "largest change first")])], "The table")
    return Section("table", "Before and after", [text, boxes, table(head, rows, caption, True, "changes", orders)])


def _weights(sketch: Sketch) -> Section:
    """The weights, of covering rows separately, the covering radius, and the error at every scale."""
    relative = sketch.weights * (sketch.size / sketch.weights.sum())
    strata, covers = relative[~sketch.covering], relative[sketch.covering]
    text = f"Weights are {strata.min():.2g} to {strata.max():.2g} times the average. " if len(strata) else ""
    if len(covers):
        verb = "has a weight of" if len(covers) == 1 else "have weights of"
        text += f"{count(len(covers), 'row')} with rare or extreme values {verb} {_range(covers)} times the average. "
    if sketch.radius is not None:
        text += f"No row is farther than {sketch.radius:.3g} from its nearest row of the sketch."
    label = "How many rows of the sketch have each weight, as a multiple of the average"
    drawn = [plot("weights", label, "", "Weights", small("1 is the average"))]
    data: dict[str, Any] = {"weights": {name: each.tolist() for name, each in vars(weights_figure(sketch)).items()}}
    measured = Markup("")
    if sketch.profile is None:  # kernels without a scale
        data["profile"] = None
    else:
        width = float(getattr(sketch.mean.kernel, "width", np.nan)) if sketch.resolution is None else np.nan
        shown = drawn_profile(sketch.profile, sketch.size, sketch.tol, width, "sketch row")
        data["profile"] = profile_data([shown], [0])
        label = "Relative error of the kernel density against its bandwidth, with random rows and the sampling error of all rows"
        drawn.append(plot("fine", label, "", "Error by bandwidth", small("of the kernel density")))
        measured = error_by_bandwidth(shown, sketch.n_samples, "aside")
    return Section("weights", "Weights and distances", [text, grid(drawn), measured], data)


def _range(values: Any) -> str:
    low, high = f"{values.min():.2g}", f"{values.max():.2g}"
    return low if low == high else f"{low} to {high}"


def _groups(sketch: Sketch) -> dict[str, str]:
    if sketch.groups is None:
        return {}
    return {"Groups": f"{len(np.unique(sketch.groups)):,}, sketched separately; their proportions are exact"}
