"""`reduset watch`: files of rows, in the order of their names, until their distribution differs from a reference.

A checkpoint is written after every file, and the same command resumes with the files that are new. Files are identified by name,
size and time of change. A watched file must not change, but may be removed. With --go-on, the monitor starts again after an alarm
with the next file. Rows are numbered through all files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reduset._describe import counted, shortened
from reduset._messages import printable
from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import DONE, DRIFT, command
from reduset.cli.drift import Reference, Referring, reference_of
from reduset.cli.streaming import as_options, check_same_run, identities

if TYPE_CHECKING:
    from reduset.drift import DriftMonitor
    from reduset.report import Alarm, WatchedFile

LONGEST_NAME = 40
COMMAND = "reduset watch"


@command("reference.npz incoming/ --checkpoint state.npz --fail", "reduset.drift:DriftMonitor")
class WatchCommand(Referring):
    """Watch files in the order of their names, with an alarm when the distribution of their rows has changed.

    Without a change, --ert is the mean number of rows between false alarms, for any number of files.

    Parameters
    ----------
    go_on : Continue after an alarm with the next file. By default, the first alarm ends the command.
    checkpoint : The file from which the same command resumes with new files.
    """

    reference: Path
    data: o.Data
    ert: float = 10_000
    thin: int = 1
    go_on: bool = False
    checkpoint: Path | None = None
    report: o.Report = None

    def run(self) -> int:
        """Run it; the exit code."""
        from reduset import io, report

        inputs = [self.reference, *self.data]
        written = targets.check_all((self.report, targets.HTML, inputs), (self.checkpoint, targets.MODEL, inputs))
        # part-2 before part-10
        names = sorted(io.files_of(list(self.data)), key=lambda name: [io.counted_order(part) for part in Path(name).parts])
        watch = Watch.begun(self, reference_of(self), names)
        width = max(len(_short(name)) for name in names)
        for file, alarm in watch.files(names):
            if not self.silent:
                raised = "" if alarm is None else f"  ALARM at row {alarm.row - file.first:,}"
                statistic = max(file.highest, 0.0)
                print(
                    printable(f"{_short(file.name):<{width}}  {file.rows:>9,} rows  statistic up to {statistic:5.2f} of 1{raised}")
                )
                sys.stdout.flush()
        if self.report is not None:
            about = messages.origin([str(self.reference), *(file.name for file in watch.seen)], watch.notes)
            report.write_watch(self.report, watch.monitor, watch.seen, alarms=watch.alarms, history=watch.history(), about=about)
        positions = [None if alarm.since is None else watch.position(alarm.since[0]) for alarm in watch.alarms]
        alarms = [vars(alarm) | {"where": position} for alarm, position in zip(watch.alarms, positions, strict=True)]
        facts = {"alarm": bool(alarms), "alarms": alarms, "rows": watch.rows, "ert": watch.monitor.ert}
        messages.answer(self, "\n".join(watch.verdict()), watch.notes, written, **facts, files=[vars(file) for file in watch.seen])
        return DRIFT if self.fail and watch.alarms else DONE


class Watch:
    """A monitor, and the files that it has read.

    Attributes
    ----------
    monitor : DriftMonitor
    seen : The files so far.
    alarms : All alarms, with rows numbered through all files.
    notes : Notes on reading.
    """

    def __init__(self, request: WatchCommand, reference: Reference, monitor: DriftMonitor) -> None:
        self.monitor, self._request, self._reference = monitor, request, reference
        self.seen: list[WatchedFile] = []
        self.alarms: list[Alarm] = []
        self.notes: list[str] = [f"{request.reference}: {text}" for text in reference.notes]
        self._identities: dict[str, list[Any]] = {}  # by path
        self._before = 0  # rows before the monitor last started
        self._past: dict[str, list[float]] = {"row": [], "statistic": []}

    @classmethod
    def begun(cls, request: WatchCommand, reference: Reference, names: Sequence[str]) -> Watch:
        """A new watch, or the one of the checkpoint."""
        from reduset.drift import DriftMonitor

        path = request.checkpoint
        if path is None or not path.exists():
            settings: dict[str, Any] = {"ert": request.ert, "thin": request.thin, "random_state": request.seed}
            return cls(request, reference, DriftMonitor(reference.test, progress=request.shows_progress, **settings))
        watch = cls(request, reference, DriftMonitor.resume(path))
        watch._resume(path, names)
        messages.note(f"resumed after {watch.rows:,} rows from {path}", request.silent)
        return watch

    @property
    def rows(self) -> int:
        """Number of rows so far."""
        return self._before + self.monitor.n_seen_

    def files(self, names: Sequence[str]) -> Iterator[tuple[WatchedFile, Alarm | None]]:
        """Watch the new files. An alarm ends the watch, unless --go-on is set."""
        for name in names:
            if os.path.abspath(name) in self._identities:
                continue
            if self.alarms and not self._request.go_on:
                return
            if self.monitor.alarm_:
                self._past, self._before = self.history(), self.rows
                self.monitor.reset()
            count = len(self.alarms)
            self._watch(name)
            self._keep()
            yield self.seen[-1], self.alarms[count] if len(self.alarms) > count else None

    def history(self) -> dict[str, list[float]]:
        """The statistic over all rows, including those before the monitor last started."""
        history = self.monitor.history_
        rows = [self._before + int(row) for row in history["row"]]
        return {"row": self._past["row"] + rows, "statistic": self._past["statistic"] + history["statistic"].tolist()}

    def position(self, row: int) -> dict[str, Any]:
        """The file of a row, and its number there, from 0."""
        file = next((file for file in reversed(self.seen) if file.first <= row), self.seen[0])
        return {"file": file.name, "row": row - file.first}

    def verdict(self) -> list[str]:
        """A line for each alarm, or one if there is none."""
        if not self.alarms:
            return [
                f"No drift detected in {counted(self.rows, 'row')} (one false alarm in {self.monitor.ert:,.0f} rows on average)"
            ]
        lines = []
        for alarm in self.alarms:
            if alarm.since is None:
                lines.append(f"Drift detected at row {alarm.row:,}")
                continue
            row, low, high = alarm.since
            position = self.position(row)
            where = f"row {position['row']:,} of {printable(position['file'])}"
            lines.append(f"Drift detected since row {row:,} (95 % CI {low:,}-{high:,}): {where}")
        return lines

    def _watch(self, name: str) -> None:
        """All rows of a file, batch by batch."""
        from reduset import io
        from reduset.report import Alarm, WatchedFile

        identity = identities([name])[0]
        first, dropped = self.rows, 0
        batches = io.batches([name], **self._reference.reading_of([Path(name)]))
        try:
            for table in batches:
                had_alarm = self.monitor.alarm_
                self.monitor.update(self._reference.rows(table))
                dropped += table.dropped
                if self.monitor.alarm_ and not had_alarm:
                    since, row = self.monitor.since_, self._before + int(self.monitor.alarmed_at_ or 0)
                    shifted = None if since is None else tuple(self._before + int(number) for number in since)
                    self.alarms.append(Alarm(row, shifted))  # type: ignore[arg-type]
                if self.alarms and not self._request.go_on:
                    break
        finally:
            batches.close()
        self.notes += [f"{name}: {text}" for text in batches.notes(dropped)]
        history = self.history()
        within = [value for row, value in zip(history["row"], history["statistic"], strict=True) if row >= first]
        self.seen.append(WatchedFile(name, first, self.rows - first, max(within, default=0.0)))
        self._identities[identity[0]] = identity

    def _keep(self) -> None:
        if self._request.checkpoint is None:
            return
        about = {
            "command": COMMAND,
            "asked": _settings(self._request),
            "files": list(self._identities.values()),
            "seen": [vars(file) for file in self.seen],
            "alarms": [vars(alarm) for alarm in self.alarms],
            "before": self._before,
        }
        self.monitor.checkpoint(self._request.checkpoint, about)

    def _resume(self, path: Path, names: Sequence[str]) -> None:
        """Load the files and alarms of a checkpoint. A checkpoint of another run raises an error."""
        from reduset.report import Alarm, WatchedFile

        about = self.monitor.about_
        check_same_run(path, about, COMMAND, _settings(self._request), "before")
        try:
            self._identities = {str(identity[0]): list(identity) for identity in about["files"]}
            self.seen = [WatchedFile(**file) for file in about["seen"]]
            self.alarms = [Alarm(int(alarm["row"]), alarm["since"] and tuple(alarm["since"])) for alarm in about["alarms"]]
            self._before = about["before"]
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ValueError(f"{path} lacks the files of its run; remove it to start again") from error
        for identity in identities(names):
            if self._identities.get(identity[0], identity) != identity:
                raise ValueError(f"{identity[0]} was changed after it was watched; remove {path} to start again")


def _settings(request: WatchCommand) -> dict[str, Any]:
    """All settings that an alarm depends on, as plain values by the names of options."""
    watching = {name: getattr(request, name) for name in ("ert", "thin", "seed", "scales")}
    return {"REFERENCE": identities([str(request.reference)])[0]} | as_options(watching | request.reading())


def _short(name: str) -> str:
    return shortened(printable(Path(name).name), LONGEST_NAME)
