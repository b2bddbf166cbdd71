"""The report of a watch: the statistic of a monitor over the rows, the alarms, and the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reduset import _archive
from reduset.report.blocks import Markup, hero, named, plot, sentence, table, verdict
from reduset.report.page import Section, write_page
from reduset.report.words import Card, count, shortened

LISTED = 400  # files in the table
NAMED = 60  # letters of a file's name


@dataclass(frozen=True)
class Alarm:
    """An alarm: the row at which it was raised, and (row, low, high) where the change began, or None."""

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
    files : the files it has seen, in order; may be omitted
    alarms : all alarms, if the monitor was reset after some; by default its own
    history : "row" and "statistic" over all rows, if the monitor was reset; by default its own
    about : plain values to show with it: "command", "sources", "notes", "versions", and any others
    """
    own = [] if monitor.alarmed_at_ is None else [Alarm(int(monitor.alarmed_at_), monitor.since_)]
    raised = own if alarms is None else list(alarms)
    seen = monitor.history_ if history is None else history
    rows = files[-1].first + files[-1].rows if files else monitor.n_seen_
    result, among = "Drift" if raised else "No drift", f"in {count(rows, 'row')}"
    highest, windows = max(seen["statistic"], default=0.0), monitor.windows
    shown = _cards(monitor, rows, files, raised, highest)
    write_page(
        path,
        f"{result} {among}",
        hero(verdict(result, bool(raised), among), ["", count(len(files), "file") if files else ""], shown),
        [
            _over_time(monitor, seen, files, raised),
            Section("alarms", "Alarms", [_alarms(raised)]),
            Section("files", "File by file", [_files(files)]),
        ],
        ["watch.js"],
        about=about,
        settings={"Windows": f"{windows[0]:,} to {windows[-1]:,} rows", "Run length without drift": f"{count(monitor.ert)} rows"},
    )


def _over_time(
    monitor: Any, history: Mapping[str, Sequence[float]], files: Sequence[WatchedFile], alarms: Sequence[Alarm]
) -> Section:
    data = {
        "rows": [int(row) for row in history["row"]],
        "statistics": [float(each) for each in history["statistic"]],
        "files": [{"name": each.name, "first": int(each.first)} for each in files],
        "alarms": [
            {"row": int(each.row), "since": None if each.since is None else [int(row) for row in each.since]} for each in alarms
        ],
    }
    text = (
        "The largest difference of all windows of rows from the reference, after each row. At 1 there is an alarm. As long as "
        f"nothing changes, an alarm comes once in {count(monitor.ert)} rows on average."
    )
    return Section("time", "As the rows came", [text, plot("time", "The statistic over the rows, with the threshold")], data)


def _cards(monitor: Any, rows: int, files: Sequence[WatchedFile], alarms: list[Alarm], highest: float) -> list[Card]:
    seen = Card("Watched", count(rows), "Rows, in the order in which they came.")
    level = Card("Highest", f"{highest:.2f}", "At 1 there is an alarm.")
    if not alarms:
        return [seen, level, Card("False alarms", f"1 in {count(monitor.ert)}", "Rows, on average, as long as nothing changes.")]
    first = alarms[0]
    many = Card("Alarms", count(len(alarms)), "The first one is described here.") if len(alarms) > 1 else level
    if first.since is None:
        return [seen, Card("At row", f"{first.row:,}", "When the change began is unknown."), many]
    row, low, high = first.since
    inside = [each for each in files if each.first <= row]
    where = f"Row {row - inside[-1].first:,} of {shortened(inside[-1].name, NAMED)}. " if inside else ""
    return [
        seen,
        Card("Since row", f"{row:,}", f"{where}Most likely between {low:,} and {high:,}."),
        Card("Noticed after", count(max(first.row - row + 1, 0)), "Rows that had changed, the one of the alarm included."),
        many,
    ]


def _alarms(alarms: Sequence[Alarm]) -> Markup:
    if not alarms:
        return sentence("There was none.")
    rows = [
        [f"{each.row:,}", *(["—"] * 3 if each.since is None else [f"{row:,}" for row in each.since])] for each in alarms[:LISTED]
    ]
    head = ["at row", "since row", "not before", "not after"]
    return table(head, rows, "Alarms, and since when; most likely within these ends")


def _files(files: Sequence[WatchedFile]) -> Markup:
    if not files:
        return sentence("The rows came from no files.")
    rows = [
        [named(each.name, NAMED), f"{each.first:,}", f"{each.rows:,}", f"{max(each.highest, 0.0):.2f}"] for each in files[:LISTED]
    ]
    return table(["file", "first row", "rows", "highest"], rows, "Files in the order in which they were watched")
