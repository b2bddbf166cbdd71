"""The report of a sketch: what was done, every column before and after, the weights, the radius and the error at every scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reduset import _archive, _validate
from reduset._frames import table_weights
from reduset._types import PointsLike, WeightsLike
from reduset.certificate.certificate import percent as error_percent
from reduset.report import words
from reduset.report.compression import finite, profile_of_size
from reduset.report.figures import ProfileFigure, drawn_profile
from reduset.report.page import LONG, Markup, cards, choice, controls, file, joined, markup, named, origin, write
from reduset.report.page import names as listed
from reduset.report.sketch_figure import SketchColumn, sketch_columns, weights_figure
from reduset.report.words import Card, count, percent, plain, shortened
from reduset.sketching import Sketch
from reduset.sketching.columns import MAXIMUM, MINIMUM
from reduset.sketching.tables import TableRows

PICTURED, UNFOLDED = 60, 12  # columns that have a picture, and that are drawn at once
LISTED = 2000  # statistics in the table
MOST_BARS = 30  # categories of a picture, the most frequent
NAMED = 8  # columns in the head
DIVIDED = 6  # columns whose scale is named
ROUNDING = 1e-9  # standard deviations
SHOWN = 5e-5  # standard deviations, of four digits
CLEARLY = 2.0  # times the expected difference of random rows: differences above it are red


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
    if len(columns) > UNFOLDED:
        columns.sort(key=lambda each: -abs(each.largest.difference) if each.largest is not None else 0.0)
    shown = _profile(sketch)
    told = dict(about or {})
    told.setdefault("notes", list(sketch.notes or table.notes))
    title = f"{count(sketch.n_samples, 'row')} → {count(sketch.size, 'weighted row')}"
    write(
        path,
        title,
        _body(sketch, columns, titles, shown, told),
        contents(sketch, columns, shown),
        ["common.js", "profile.js", "sketch.js"],
    )


def _profile(sketch: Sketch) -> ProfileFigure | None:
    """The error at every scale; None for kernels without a scale."""
    if sketch.profile is None:
        return None
    width = float(getattr(sketch.mean.kernel, "width", np.nan)) if sketch.resolution is None else np.nan
    return drawn_profile(sketch.profile, sketch.size, sketch.tol, width, "sketch row")


def contents(sketch: Sketch, columns: Sequence[SketchColumn], profile: ProfileFigure | None) -> dict[str, Any]:
    """What the scripts of the page read."""
    weights = weights_figure(sketch)
    return {
        "piece": "sketch row",
        "columns": [_column(each) for each in columns[:PICTURED]],
        "weights": {name: each.tolist() for name, each in vars(weights).items()},
        "profile": None
        if profile is None
        else {
            "bandwidths": finite(profile.bandwidths),
            "noise": finite(profile.noise),
            "confidence": profile.confidence,
            "tol": profile.tol,
            "steps": [0],
            "sizes": [profile_of_size(profile)],
        },
    }


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


def _body(
    sketch: Sketch,
    columns: Sequence[SketchColumn],
    names: Sequence[str],
    profile: ProfileFigure | None,
    about: Mapping[str, Any],
) -> Markup:
    sources = about.get("sources") or []
    head = f"{len(names)} columns: " if len(names) > 1 else "One column: "
    many = len(columns) > UNFOLDED
    settings = {"Kernel": repr(sketch.mean.kernel), "Seconds": sketch.timings, "Groups": _groups(sketch)}
    return markup(
        file("sketch.html"),
        n=count(sketch.n_samples),
        rows="row" if sketch.n_samples == 1 else "rows",
        m=count(sketch.size),
        sources=plain(sources) if sources else "",
        columns=markup("$head$names", head=head, names=listed(names, NAMED)),
        done=_done(sketch, columns),
        cards=cards(_cards(sketch, columns)),
        notes=_notes(about.get("notes") or []),
        order="Columns that changed most come first." if many else "",
        pictures=_pictures(columns),
        values=_values(columns),
        controls=controls([choice("order", "Order", [("column", "by column"), ("change", "largest change first")])], "The table"),
        table=_table(columns),
        weights=_weights(sketch),
        fine=markup(file("sketch-profile.html")) if profile is not None else Markup(""),
        measured=_measured(sketch, profile),
        origin=origin(
            {name: value for name, value in about.items() if name != "notes"},
            {name: each for name, each in settings.items() if each},
        ),
    )


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


def _notes(notes: Sequence[str]) -> Markup:
    if not notes:
        return Markup("")
    return markup('<ul class="notes">$rows</ul>', rows=joined(markup("<li>$text</li>", text=text) for text in notes))


def _pictures(columns: Sequence[SketchColumn]) -> Markup:
    """A place for each column; beyond the first dozen they are drawn when they are asked for."""
    place = (
        '<figure><figcaption>$short <span class="aside">$aside</span></figcaption><div class="plot small" id="column-$k" '
        'role="img" aria-label="$name: proportions of all rows and of the weighted sketch"></div></figure>'
    )
    places = [
        markup(place, k=k, name=each.name, short=named(each.name), aside=_aside(each)) for k, each in enumerate(columns[:PICTURED])
    ]
    parts = [markup('<div class="grid three">$first</div>', first=joined(places[:UNFOLDED]))]
    if len(places) > UNFOLDED:
        fold = '<details id="more"><summary>$count more columns</summary><div class="grid three">$rest</div></details>'
        parts.append(markup(fold, count=len(places) - UNFOLDED, rest=joined(places[UNFOLDED:])))
    if len(columns) > PICTURED:
        parts.append(markup('<p class="aside">Pictures of $some columns of $all.</p>', some=PICTURED, all=len(columns)))
    return joined(parts)


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


def _table(columns: Sequence[SketchColumn]) -> Markup:
    """All statistics, one a row, by column."""
    row = (
        '<tr data-order="$k" data-change="$size"><th scope="row">$name</th><td>$statistic</td><td>$before</td><td>$after</td>'
        "<td$over>$difference</td><td>$random</td></tr>\n"
    )
    every = [(each, change) for each in columns for change in each.changes]
    body = []
    for k, (each, change) in enumerate(every[:LISTED]):
        extreme = change.statistic in (MINIMUM, MAXIMUM)
        over = not extreme and abs(change.difference) > max(CLEARLY * change.random_rows, SHOWN)
        body.append(
            markup(
                row,
                k=k,
                size=0.0 if extreme else abs(change.difference),
                name=named(each.name, LONG),
                statistic=named(each.statistic(change), LONG),
                before=each.told(change, change.all_rows),
                after=each.told(change, change.sketch),
                over=Markup(' class="over"') if over else Markup(""),
                difference=f"{change.difference:+.4f}" if abs(change.difference) >= SHOWN else "0.0000",
                random="" if extreme or not np.isfinite(change.random_rows) else f"{change.random_rows:.4f}",
            )
        )
    head = joined(
        markup('<th scope="col">$name</th>', name=name)
        for name in ("column", "statistic", "all rows", "sketch", "difference", "random rows")
    )
    caption = f"{count(len(columns), 'column')}, {count(len(every), 'statistic')}"
    caption += f", of which the first {LISTED:,}" if len(every) > LISTED else ""
    return markup(
        '<div class="wide high" id="changes" tabindex="0" role="region" aria-label="$caption"><table><caption>$caption</caption>'
        "<thead><tr>$head</tr></thead><tbody>$body</tbody></table></div>",
        caption=caption,
        head=head,
        body=joined(body),
    )


def _weights(sketch: Sketch) -> str:
    """The range of the weights, of covering rows apart, and the covering radius."""
    relative = sketch.weights * (sketch.size / sketch.weights.sum())
    strata, covers = relative[~sketch.covering], relative[sketch.covering]
    text = f"Weights are {strata.min():.2g} to {strata.max():.2g} times the average. " if len(strata) else ""
    if len(covers):
        verb = "has a weight of" if len(covers) == 1 else "have weights of"
        text += f"{count(len(covers), 'row')} with rare or extreme values {verb} {_range(covers)} times the average. "
    if sketch.radius is not None:
        text += f"No row is farther than {sketch.radius:.3g} from its nearest row of the sketch."
    return text


def _range(values: Any) -> str:
    low, high = f"{values.min():.2g}", f"{values.max():.2g}"
    return low if low == high else f"{low} to {high}"


def _measured(sketch: Sketch, profile: ProfileFigure | None) -> Markup:
    """The error at every scale in words; the script writes the same."""
    if profile is None:
        return Markup("")
    return markup(
        '<span id="fine-told">$told</span> $noise', told=words.fine(profile), noise=words.noise(profile, sketch.n_samples)
    )


def _groups(sketch: Sketch) -> str:
    return "" if sketch.groups is None else f"{len(np.unique(sketch.groups)):,}, sketched separately; their proportions are exact"
