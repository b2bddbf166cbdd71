"""The report of a watch: the statistic of a monitor over the rows, file by file, and since when there is drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from reduset import _archive
from reduset.report.page import Markup, cards, file, markup, origin, table, write
from reduset.report.words import Card, count, shortened

LISTED = 400  # files in the table
NAMED = 60  # letters of a file's name


class WatchedFile(Protocol):
    """A file whose rows a monitor has seen: how many, the number of the first among all, and the statistic after the last."""

    name: str
    first: int
    rows: int
    statistic: float


def write_watch(
    path: _archive.Path_, monitor: Any, files: Sequence[WatchedFile] = (), *, about: Mapping[str, Any] | None = None
) -> None:
    """Write the report of a watch: one HTML file that opens offline.

    Parameters
    ----------
    path : where to, usually with the ending .html
    monitor : DriftMonitor
    files : what it has seen, in order: objects with ``name``, ``first`` (the number of the first row, from 0), ``rows`` and
        ``statistic``; may be left out
    about : plain values to show beside it: "command", "sources", "notes", "versions", and any others
    """
    title = f"{'Drift' if monitor.alarm_ else 'No drift'} in {count(monitor.n_seen_, 'row')}"
    write(path, title, _body(monitor, files, about), contents(monitor, files), ["common.js", "watch.js"])


def contents(monitor: Any, files: Sequence[WatchedFile]) -> dict[str, Any]:
    """What the scripts of the page read."""
    history = monitor.history_
    return {
        "rows": [int(row) for row in history["row"]],
        "statistics": [float(each) for each in history["statistic"]],
        "files": [{"name": each.name, "first": int(each.first)} for each in files],
        "since": None if monitor.since_ is None else [int(row) for row in monitor.since_],
        "alarmed": None if monitor.alarmed_at_ is None else int(monitor.alarmed_at_),
    }


def _body(monitor: Any, files: Sequence[WatchedFile], about: Mapping[str, Any] | None) -> Markup:
    held = f"{count(len(files), 'file')}" if files else ""
    windows = monitor.windows
    return markup(
        file("watch.html"),
        verdict=markup('<span class="accent">Drift</span>') if monitor.alarm_ else "No drift",
        rows=f"in {count(monitor.n_seen_, 'row')}",
        sources=held,
        cards=cards(_cards(monitor, files)),
        ert=count(monitor.ert),
        files=_files(files),
        origin=origin(
            about, {"Windows": f"{windows[0]:,} to {windows[-1]:,} rows", "Run length without drift": count(monitor.ert)}
        ),
    )


def _cards(monitor: Any, files: Sequence[WatchedFile]) -> list[Card]:
    highest = max(monitor.history_["statistic"], default=0.0)
    seen = Card("Watched", count(monitor.n_seen_), "Rows, in the order in which they came.")
    level = Card("Highest", f"{highest:.2f}", "At 1 there is an alarm.")
    if monitor.since_ is None:
        return [seen, level, Card("False alarms", f"1 in {count(monitor.ert)}", "Rows, on average, as long as nothing changes.")]
    row, low, high = monitor.since_
    inside = [each for each in files if each.first <= row]
    place = f"Row {row - inside[-1].first:,} of {shortened(inside[-1].name, NAMED)}. " if inside else ""
    late = int(monitor.alarmed_at_) - int(row)
    return [
        seen,
        Card("Since row", f"{row:,}", f"{place}Between {low:,} and {high:,} with 95 % confidence."),
        Card("Noticed after", count(max(late, 0)), "Rows that had changed, before the alarm."),
        level,
    ]


def _files(files: Sequence[WatchedFile]) -> Markup:
    if not files:
        return Markup("")
    rows = [[shortened(each.name, NAMED), f"{each.first:,}", f"{each.rows:,}", f"{each.statistic:.2f}"] for each in files[:LISTED]]
    told = table(["file", "first row", "rows", "after it"], rows, "Files in the order in which they were watched")
    return markup("<details><summary>File by file</summary>$told</details>", told=told)
