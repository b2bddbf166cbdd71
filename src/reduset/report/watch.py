"""The report of a watch: the statistic of a monitor over the rows, file by file, and since when there is drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reduset import _archive
from reduset.report.page import Markup, cards, file, markup, named, origin, table, write
from reduset.report.words import Card, count, shortened

LISTED = 400  # files in the table
NAMED = 60  # letters of a file's name


@dataclass(frozen=True)
class Alarm:
    """An alarm: the row that it was raised at, and (row, low, high) where the change began, or None."""

    row: int
    since: tuple[int, int, int] | None


@dataclass(frozen=True)
class WatchedFile:
    """A file whose rows a monitor has seen: the number of the first among all rows, how many, and the highest statistic."""

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
    """Write the report of a watch: one HTML file that opens offline.

    Parameters
    ----------
    path : where to, usually with the ending .html
    monitor : DriftMonitor
    files : what it has seen, in order; may be left out
    alarms : all of them, where the monitor was reset after some; its own if not given
    history : "row" and "statistic" over all rows, where the monitor was reset; its own if not given
    about : plain values to show beside it: "command", "sources", "notes", "versions", and any others
    """
    own = [] if monitor.alarmed_at_ is None else [Alarm(int(monitor.alarmed_at_), monitor.since_)]
    raised = own if alarms is None else list(alarms)
    seen = monitor.history_ if history is None else history
    rows = files[-1].first + files[-1].rows if files else monitor.n_seen_
    title = f"{'Drift' if raised else 'No drift'} in {count(rows, 'row')}"
    body = _body(monitor, rows, files, raised, max(seen["statistic"], default=0.0), about)
    write(path, title, body, contents(files, raised, seen), ["common.js", "watch.js"])


def contents(files: Sequence[WatchedFile], alarms: Sequence[Alarm], history: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """What the scripts of the page read."""
    return {
        "rows": [int(row) for row in history["row"]],
        "statistics": [float(each) for each in history["statistic"]],
        "files": [{"name": each.name, "first": int(each.first)} for each in files],
        "alarms": [
            {"row": int(each.row), "since": None if each.since is None else [int(row) for row in each.since]} for each in alarms
        ],
    }


def _body(
    monitor: Any, rows: int, files: Sequence[WatchedFile], alarms: list[Alarm], highest: float, about: Mapping[str, Any] | None
) -> Markup:
    windows = monitor.windows
    settings = {"Windows": f"{windows[0]:,} to {windows[-1]:,} rows", "Run length without drift": f"{count(monitor.ert)} rows"}
    return markup(
        file("watch.html"),
        verdict=markup('<span class="accent">Drift</span>') if alarms else "No drift",
        rows=f"in {count(rows, 'row')}",
        sources=f"{count(len(files), 'file')}" if files else "",
        cards=cards(_cards(monitor, rows, files, alarms, highest)),
        ert=count(monitor.ert),
        alarms=_alarms(alarms),
        files=_files(files),
        origin=origin(about, settings),
    )


def _cards(monitor: Any, rows: int, files: Sequence[WatchedFile], alarms: list[Alarm], highest: float) -> list[Card]:
    seen = Card("Watched", count(rows), "Rows, in the order in which they came.")
    level = Card("Highest", f"{highest:.2f}", "At 1 there is an alarm.")
    if not alarms:
        return [seen, level, Card("False alarms", f"1 in {count(monitor.ert)}", "Rows, on average, as long as nothing changes.")]
    first = alarms[0]
    many = Card("Alarms", count(len(alarms)), "The first one is told here.") if len(alarms) > 1 else level
    if first.since is None:
        return [seen, Card("At row", f"{first.row:,}", "When it began cannot be told."), many]
    row, low, high = first.since
    inside = [each for each in files if each.first <= row]
    place = f"Row {row - inside[-1].first:,} of {shortened(inside[-1].name, NAMED)}. " if inside else ""
    return [
        seen,
        Card("Since row", f"{row:,}", f"{place}Most likely between {low:,} and {high:,}."),
        Card("Noticed after", count(max(first.row - row + 1, 0)), "Rows that had changed, the one of the alarm included."),
        many,
    ]


def _alarms(alarms: Sequence[Alarm]) -> Markup:
    if not alarms:
        return Markup("<p>There was none.</p>")
    rows = [
        [f"{each.row:,}", *(["—"] * 3 if each.since is None else [f"{row:,}" for row in each.since])] for each in alarms[:LISTED]
    ]
    return table(["at row", "since row", "not before", "not after"], rows, "Alarms, and since when; most likely within these ends")


def _files(files: Sequence[WatchedFile]) -> Markup:
    if not files:
        return Markup("<p>The rows came from no files.</p>")
    rows = [
        [named(each.name, NAMED), f"{each.first:,}", f"{each.rows:,}", f"{max(each.highest, 0.0):.2f}"] for each in files[:LISTED]
    ]
    return table(["file", "first row", "rows", "highest"], rows, "Files in the order in which they were watched")
