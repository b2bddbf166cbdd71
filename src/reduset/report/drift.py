"""Reports of drift: tests (verdict, distance, regions, columns), and monitors (statistic over the rows, alarms, files)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset import _archive
from reduset._describe import shortened, significant
from reduset.drift import DriftResult, Region, apart, change, place, printed_p_value
from reduset.report.drift_figure import DriftFigure, drift_figure
from reduset.report.page import (
    Markup,
    Section,
    aside,
    choice,
    columns_of,
    controls,
    cut,
    described,
    folded,
    grid,
    hero,
    joined,
    named,
    packed,
    pictures,
    plot,
    small,
    table,
    verdict,
    write_page,
)
from reduset.report.words import SPACE, Card, count, p_told, percent, plain

MAX_VALUES = 100_000  # coordinates of cells in the file
PICTURED = 60  # columns with a figure
LISTED = 400  # rows of a table
NAMED, SHORT, FULL = 18, 20, 1000  # characters of a name in a box, in the table of regions, and on hover
FILE_NAME = 60  # characters
BARS = 36
NAMED_FILES = 24  # with a line in the figure of a watch
STATISTICS = (
    "Left: the distribution of the distance without drift (bars) and the distance of the new rows (line). Right: each statistic "
    "relative to its 95 % quantile without drift. The p-value combines all statistics. Circles are the maximum mean discrepancy "
    "(MMD) at a bandwidth. Diamonds are standardised: each principal component is divided by its variance plus λ times the largest "
    "variance. A small λ gives weight to directions of small variance."
)
COLUMNS = (
    "Proportions of the rows. Columns with the smallest p-values come first. Grey is the reference, red are the new rows. The bars "
    "at both ends have all rows beyond the axis."
)


def write_drift(path: _archive.Path_, result: DriftResult, *, about: Mapping[str, Any] | None = None) -> None:
    """Write the report of a test of drift: one HTML file that opens offline.

    Parameters
    ----------
    path : The HTML file.
    result : DriftResult of `DriftTest.test` or `two_sample`.
    about : Plain values to show: "command", "sources", "notes", "versions", and any others.
    """
    shown = drift_figure(result)
    answer = "Drift" if result.drift else "No drift"
    write_page(
        path,
        f"{answer} in {count(result.n_samples, 'new row')}",
        hero(
            verdict(answer, result.drift, f"in {count(result.n_samples)} new rows"),
            [plain((about or {}).get("sources") or []), columns_of(shown.names)],
            _cards(shown),
            aside(_meaning(result)),
        ),
        [
            _distance(shown),
            _regions(shown),
            _columns(shown),
            Section("numbers", "All numbers", [described(result.describe())]),
        ],
        ["two_columns.js", "drift.js"],
        about=about,
        data={"drift": result.drift},
    )


def _cards(shown: DriftFigure) -> list[Card]:
    result = shown.result
    changed = [each.change.name for each in shown.columns if each.change.p_value <= result.alpha]
    first = Markup(", ".join(named(name) for name in changed[:3]) + (", …" if len(changed) > 3 else "."))
    proportion, shift = result.detectable_share, result.detectable_shift
    power = Card("Detectable", "nothing", "Too few rows to detect any change with 80 % power; test more rows.")
    if math.isfinite(proportion):
        shifted = (
            "" if shift is None or not math.isfinite(shift) else f", or a shift of all rows by {shift:.2g} standard deviations"
        )
        power = Card("Detectable", percent(proportion), f"The smallest outlier group that is detected with 80 % power{shifted}.")
    return [
        Card("p-value", f"p{SPACE}{_p_value(result)}", f"From {_null(result)}. The significance level is {result.alpha:.2g}."),
        Card("Distance", f"{shown.seen:.2g}", f"95 % quantile without drift: {result.null_quantile:.2g}; range 0 to 1.41."),
        Card(
            "Columns changed",
            f"{len(changed)} of {len(shown.names)}",
            first if changed else "No single column changed significantly.",
        ),
        power,
    ]


def _p_value(result: DriftResult) -> str:
    """The p-value, or its upper bound if no resample exceeds the statistic."""
    return printed_p_value(result, short=True).replace("1e-06", "10⁻⁶").replace(" ", SPACE)


def _null(result: DriftResult) -> str:
    """The resamples that give the p-value."""
    return f"{len(result.comparison.drawn):,} {'permutations' if result.exact else 'resamples of the null distribution'}"


def _meaning(result: DriftResult) -> str:
    rows = f"{count(result.n_samples, 'new row')} were compared with {count(result.n_reference, 'row')} of the reference."
    if result.drift:
        return f"{rows} Without drift, a difference of this size has a probability below {percent(result.alpha)}."
    return (
        f"{rows} A difference is significant if its probability without drift is below {percent(result.alpha)}. Small changes may "
        "not be detected."
    )


def _distance(shown: DriftFigure) -> Section:
    """The distance and all statistics, compared with their distributions under the null hypothesis."""
    counts, edges = np.histogram(shown.null_distances, BARS)
    null = {
        "starts": edges[:-1],
        "width": edges[1] - edges[0],
        "shares": counts / counts.sum(),
        "seen": shown.seen,
        "usual": shown.result.null_quantile,
    }
    label = "The distance, compared with its distribution without drift"
    every = "The distance at every bandwidth, relative to its 95 % quantile without drift"
    drawn = [
        plot("null", label, "medium", "Distance", small("MMD at the median distance of rows")),
        plot("looks", every, "medium", "Every statistic", small("1 is the 95 % quantile without drift")),
    ]
    blocks = [f"Distance: {apart(shown.result)}.", grid(drawn), aside(STATISTICS)]
    return Section("null", "Distance and null distribution", blocks, {"null": null, "looks": shown.looks})


def _regions(shown: DriftFigure) -> Section:
    """The map of the cells, and the regions that gained or lost rows."""
    kept = min(len(shown.names), max(2, MAX_VALUES // len(shown.places)))
    pair = list(shown.pair) if max(shown.pair) < kept else [0, 1]
    boxes = []
    if len(shown.names) > 1:
        options = [(k, shown.names[k]) for k in range(kept)]
        boxes = [choice("across", "Across", options, pair[0], NAMED), choice("up", "Up", options, pair[1], NAMED)]
    text = "No single region changed significantly."
    if shown.regions:
        text = f"{count(len(shown.regions), 'region')} changed significantly, corrected for their number."
    text += " Each circle is a cell, a group of rows that are close to each other. Red cells gained rows, blue cells lost rows."
    text += "" if shown.regions else " These changes are within the sampling variation."
    label = "Map of the cells, coloured by the proportion of rows that they gained or lost"
    data = {
        "names": list(shown.names[:kept]),
        "pair": pair,
        "cells": {
            "places": packed(shown.places[:, :kept].T, "f8"),  # by columns
            "before": shown.before,
            "after": shown.after,
            "most": shown.most,
        },
        "regions": [
            vars(each) | {"columns": [shown.names.index(name) for name in each.columns], "told": change(each)}
            for each in shown.regions
        ],
    }
    blocks = [
        text,
        controls(boxes, "Columns of the map") if boxes else "",
        plot("map", label, "tall", "Cells that gained or lost rows", small(name="most")),
        aside(name="drawn"),
        _region_table(shown.regions, shown.names),
    ]
    return Section("where", "Regions", blocks, data)


def _region_table(regions: Sequence[Region], names: Sequence[str]) -> Markup:
    if not regions:
        return Markup("")
    rows = [
        [
            f"{k + 1}",
            f"{'+' if each.change > 0 else '−'}{percent(abs(each.change))}",
            percent(each.before),
            percent(each.after),
            p_told(each.p_value, ""),
            cut(*(place(each, names, longest).removeprefix("near ") for longest in (SHORT, FULL))),
        ]
        for k, each in enumerate(regions)
    ]
    return table(["region", "change", "before", "now", "p", "centre"], rows, "Regions that gained or lost rows, by p-value")


def _columns(shown: DriftFigure) -> Section:
    alpha, drawn = shown.result.alpha, []
    for k, each in enumerate(shown.columns[:PICTURED]):
        change = each.change
        direction = change.direction if change.p_value <= alpha else "not significant"
        caption = small(f"{direction}, {p_told(change.p_value)}")
        drawn.append(plot(f"column-{k}", f"{change.name} before and now", "small", named(change.name), caption))
    rest = f"Figures of {len(drawn)} columns of {len(shown.names)}." if len(drawn) < len(shown.names) else ""
    rows = [
        [
            change.name,
            p_told(change.p_value, ""),
            change.direction,
            *(significant(value, 4) for value in (*change.median, *change.middle)),
        ]
        for change in (each.change for each in shown.columns[:LISTED])
    ]
    head = ["column", "p", "direction", "median before", "median now", "IQR before", "IQR now"]
    every = table(
        head, rows, "Every column, with p-values corrected for their number (Holm), medians and interquartile ranges (IQR)"
    )
    return Section(
        "columns",
        "Columns",
        [COLUMNS, joined([pictures(drawn, rest), folded("As a table", every)])],
        {"columns": shown.columns[:PICTURED]},
    )


@dataclass(frozen=True)
class Alarm:
    """An alarm: the row at which it was raised, and (row, low, high) of the start of the change, or None."""

    row: int
    since: tuple[int, int, int] | None


@dataclass(frozen=True)
class WatchedFile:
    """A file that a monitor has read: the number of its first row among all rows, its number of rows, and the largest statistic."""

    name: str
    first: int
    rows: int
    highest: float


def write_watch(
    path: _archive.Path_,
    monitor: Any,
    files: Sequence[WatchedFile] = (),
    *,
    alarms: Sequence[Alarm] | None = None,
    history: Mapping[str, Sequence[float]] | None = None,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write the report of a monitor: one HTML file that opens offline.

    Parameters
    ----------
    path : The HTML file.
    monitor : DriftMonitor
    files : Optional. The files that it has read, in order.
    alarms : All alarms, needed if the monitor was reset. By default, the alarm of the monitor.
    history : "row" and "statistic" over all rows, needed if the monitor was reset
    about : Plain values to show: "command", "sources", "notes", "versions", and any others.
    """
    if alarms is None:
        alarms = [] if monitor.alarmed_at_ is None else [Alarm(int(monitor.alarmed_at_), monitor.since_)]
    history = monitor.history_ if history is None else history
    rows = files[-1].first + files[-1].rows if files else monitor.n_seen_
    answer, among, windows = "Drift" if alarms else "No drift", f"in {count(rows, 'row')}", monitor.windows
    cards = _watch_cards(monitor, rows, files, alarms, max(history["statistic"], default=0.0))
    data = {
        "rows": history["row"],
        "statistics": history["statistic"],
        "files": list(files),
        "lines": len(files) <= NAMED_FILES,
        "alarms": list(alarms),
    }
    text = (
        "The statistic is the largest difference of any window of recent rows from the reference. It raises an alarm at 1. Without "
        f"drift, one false alarm occurs in {count(monitor.ert)} rows on average."
    )
    text += " Vertical lines are the starts of files." if 1 < len(files) <= NAMED_FILES else ""
    if any(each.since is not None for each in alarms):
        text += " Dots are alarms. Dotted lines are the starts of changes, shaded areas their 95 % confidence intervals."
    write_page(
        path,
        f"{answer} {among}",
        hero(verdict(answer, bool(alarms), among), [count(len(files), "file") if files else ""], cards),
        [
            Section(
                "time", "Statistic over the rows", [text, plot("time", "The statistic over the rows, with the threshold")], data
            ),
            Section("alarms", "Alarms", [_alarm_table(alarms)]),
            Section("files", "Files", [_file_table(files)]),
        ],
        ["watch.js"],
        about=about,
        settings={"Windows": f"{windows[0]:,} to {windows[-1]:,} rows", "Run length without drift": f"{count(monitor.ert)} rows"},
    )


def _watch_cards(monitor: Any, rows: int, files: Sequence[WatchedFile], alarms: Sequence[Alarm], highest: float) -> list[Card]:
    watched = Card("Rows watched", count(rows), "In the order of their arrival.")
    level = Card("Largest statistic", f"{highest:.2f}", "An alarm is raised at 1.")
    if not alarms:
        return [watched, level, Card("False alarms", f"1 in {count(monitor.ert)}", "Rows, on average, without drift.")]
    first = alarms[0]
    third = Card("Alarms", count(len(alarms)), "The other figures are of the first alarm.") if len(alarms) > 1 else level
    if first.since is None:
        return [watched, Card("Alarm at row", f"{first.row:,}", "The start of the change is unknown."), third]
    row, low, high = first.since
    inside = [each for each in files if each.first <= row]
    where = f"Row {row - inside[-1].first:,} of {shortened(inside[-1].name, FILE_NAME)}. " if inside else ""
    return [
        watched,
        Card("Start of the change", f"row {row:,}", f"{where}95 % confidence interval {low:,} to {high:,}."),
        Card("Delay", count(max(first.row - row + 1, 0)), "Rows from the start of the change to the alarm."),
        third,
    ]


def _alarm_table(alarms: Sequence[Alarm]) -> Markup | str:
    if not alarms:
        return "No alarm was raised."
    rows = [
        [f"{row:,}" for row in (each.row, *each.since)] if each.since else [f"{each.row:,}", *"———"] for each in alarms[:LISTED]
    ]
    return table(["at row", "start", "lower end", "upper end"], rows, "Alarms, with the start of each change and its 95 % interval")


def _file_table(files: Sequence[WatchedFile]) -> Markup | str:
    if not files:
        return "The rows did not come from files."
    rows = [[named(each.name, FILE_NAME), f"{each.first:,}", f"{each.rows:,}", f"{max(each.highest, 0.0):.2f}"] for each in files]
    return table(["file", "first row", "rows", "largest statistic"], rows[:LISTED], "Files in the order in which they were watched")
