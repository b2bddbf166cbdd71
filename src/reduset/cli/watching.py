"""A watch over files: what a monitor has seen of them, and the checkpoint by which the same command goes on with those that came.

A checkpoint is written after every file. Files that were watched are known by name, size and time: one that was changed since is
refused, one that is gone was seen none the less. After an alarm that does not end the watch the monitor begins anew with the next
file, so that rows are counted here through all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reduset import io
from reduset.cli import messages
from reduset.cli.checkpoints import files_told
from reduset.cli.references import Reference
from reduset.drift import DriftMonitor
from reduset.io import counted_order
from reduset.report.watch import Alarm, WatchedFile

if TYPE_CHECKING:
    from reduset.cli.watch import WatchCommand

COMMAND = "reduset watch"


class Watch:
    """A watch on its way.

    Attributes
    ----------
    monitor : what looks at the rows
    seen : the files so far
    alarms : all of them, rows counted through all files
    notes : what was done in reading
    """

    def __init__(self, request: WatchCommand, known: Reference, monitor: DriftMonitor) -> None:
        self.monitor, self._request, self._known = monitor, request, known
        self.seen: list[WatchedFile] = []
        self.alarms: list[Alarm] = []
        self.notes: list[str] = [f"{request.reference}: {text}" for text in known.notes]
        self._told: dict[str, list[Any]] = {}  # files by their full names
        self._before = 0  # rows that were seen before the monitor began anew
        self._past: dict[str, list[float]] = {"row": [], "statistic": []}

    @classmethod
    def begun(cls, request: WatchCommand, known: Reference, names: Sequence[str], shown: Any) -> Watch:
        """A new one, or that of the checkpoint."""
        path = request.checkpoint
        if path is None or not path.exists():
            settings = {"ert": request.ert, "thin": request.thin, "random_state": request.seed, "progress": shown}
            return cls(request, known, DriftMonitor(known.test, **settings))
        watch = cls(request, known, DriftMonitor.resume(path))
        watch._take_up(path, names)
        messages.note(f"going on after {watch.rows:,} rows, as {path} says", request.silent)
        return watch

    @property
    def rows(self) -> int:
        """How many rows were seen."""
        return self._before + self.monitor.n_seen_

    def files(self, names: Sequence[str]) -> Iterator[tuple[WatchedFile, Alarm | None]]:
        """Watch the files that were not watched yet, and tell of each; an alarm is the end unless the watch goes on."""
        for name in names:
            if os.path.abspath(name) in self._told:
                continue
            if self.alarms and not self._request.go_on:
                return
            if self.monitor.alarm_:
                self._begin_anew()
            count = len(self.alarms)
            self._watch(name)
            self._keep()
            yield self.seen[-1], self.alarms[count] if len(self.alarms) > count else None

    def history(self) -> dict[str, list[float]]:
        """The statistic over all rows, those before the monitor began anew included."""
        own = self.monitor.history_
        rows = [self._before + int(row) for row in own["row"]]
        return {"row": self._past["row"] + rows, "statistic": self._past["statistic"] + own["statistic"].tolist()}

    def place(self, row: int) -> dict[str, Any]:
        """The file that has a row, and which of its rows that is, from 0."""
        holder = next((each for each in reversed(self.seen) if each.first <= row), self.seen[0])
        return {"file": holder.name, "row": row - holder.first}

    def _watch(self, name: str) -> None:
        """All rows of a file, batch by batch."""
        told = files_told([name])[0]
        first, dropped = self.rows, 0
        batches = io.batches([name], **self._known.reading_of([Path(name)]))
        try:
            for table in batches:
                was = self.monitor.alarm_
                self.monitor.update(self._known.rows(table))
                dropped += table.dropped
                if self.monitor.alarm_ and not was:
                    self._raise()
                if self.alarms and not self._request.go_on:
                    break
        finally:
            batches.close()
        self.notes += [f"{name}: {text}" for text in batches.notes(dropped)]
        history = self.history()
        within = [each for row, each in zip(history["row"], history["statistic"], strict=True) if row >= first]
        self.seen.append(WatchedFile(name, first, self.rows - first, max(within, default=0.0)))
        self._told[told[0]] = told

    def _raise(self) -> None:
        since = self.monitor.since_
        row = self._before + int(self.monitor.alarmed_at_ or 0)
        self.alarms.append(Alarm(row, None if since is None else tuple(self._before + int(each) for each in since)))  # type: ignore[arg-type]

    def _begin_anew(self) -> None:
        self._past, self._before = self.history(), self.rows
        self.monitor.reset()

    def _keep(self) -> None:
        if self._request.checkpoint is None:
            return
        about = {
            "command": COMMAND,
            "asked": _asked(self._request),
            "files": list(self._told.values()),
            "seen": [vars(each) for each in self.seen],
            "alarms": [vars(each) for each in self.alarms],
            "before": self._before,
        }
        self.monitor.checkpoint(self._request.checkpoint, about)

    def _take_up(self, path: Path, names: Sequence[str]) -> None:
        """What the checkpoint says of the files before; another run's is refused."""
        about = self.monitor.about_
        if about.get("command") != COMMAND:
            raise ValueError(f"{path} is a checkpoint that `{COMMAND}` did not write; give --checkpoint another name")
        try:
            was = dict(about["asked"])
            self._told = {str(told[0]): list(told) for told in about["files"]}
            self.seen = [WatchedFile(**each) for each in about["seen"]]
            self.alarms = [Alarm(int(each["row"]), each["since"] and tuple(each["since"])) for each in about["alarms"]]
            self._before = int(about["before"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ValueError(f"{path} does not say what was watched; remove it to begin anew") from error
        for option, value in _asked(self._request).items():
            if was.get(option) != value:
                raise ValueError(
                    f"{path} is the checkpoint of another run: {option} was {was.get(option)}, and is now {value}. Run it as it "
                    "was to go on, or remove the file to begin anew"
                )
        for told in files_told(names):
            if self._told.get(told[0], told) != told:
                raise ValueError(f"{told[0]} was changed after it was watched; remove {path} to begin anew")


def in_order(paths: Sequence[Path]) -> list[str]:
    """The files that paths stand for, in the order in which people count: part-2 before part-10."""
    return sorted(io.files_of(list(paths)), key=lambda name: [counted_order(part) for part in Path(name).parts])


def _asked(request: WatchCommand) -> dict[str, Any]:
    """All that an alarm depends on, in plain values, by the names of the options."""
    reading = {f"--{name.replace('_', '-')}": value for name, value in request.reading().items()}
    reference = files_told([str(request.reference)])[0]
    watched = {"--ert": request.ert, "--thin": request.thin, "--seed": request.seed, "--scales": request.scales}
    return {"REFERENCE": reference, **watched, **reading}
