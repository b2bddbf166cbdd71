"""`reduset watch`: files of rows one after the other, in the order of their names, until their law has changed.

With a checkpoint the same command goes on with the files that came since: those that were watched are known by name, size and time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reduset._messages import printable
from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import DONE, DRIFT, command
from reduset.cli.checkpoints import files_told
from reduset.cli.drift import Fail, ReferenceFile, Scales
from reduset.cli.references import Reference, reference_of
from reduset.cli.request import origin

if TYPE_CHECKING:
    from reduset.drift import DriftMonitor

COMMAND = "reduset watch"
LONGEST = 40  # letters of a file's name in a line


@dataclass
class Watched:
    """A file that was watched: which rows of all it has, and where the monitor stood after it."""

    name: str
    first: int
    rows: int
    statistic: float
    alarm: bool


@command("reference.npz incoming/ --checkpoint state.npz --fail")
class WatchCommand(o.Reading, o.Seeded, o.Telling):
    """Go through files in the order of their names, and raise the alarm when their rows are no longer like the reference.

    The number of rows until a false alarm is kept to --ert on average, however often one looks.
    """

    reference: ReferenceFile
    data: o.Data
    ert: Annotated[float, typer.Option("--ert", help="Rows until a false alarm, on average, as long as nothing changes.")] = 10_000
    go_on: Annotated[bool, typer.Option("--go-on", help="Go through all files; without it the first alarm is the end.")] = False
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", help="The file by which the same command goes on with the files that came since."),
    ] = None
    report: o.Report = None
    fail: Fail = False
    scales: Scales = None
    alpha = None
    no_rows = False

    def run(self) -> int:
        """Run it; the exit code."""
        from reduset.io.folders import counted_order, files_of

        inputs = [self.reference, *self.data]
        written = targets.check_all((self.report, targets.HTML, inputs), (self.checkpoint, targets.MODEL, inputs))
        names = sorted(files_of(self.data), key=lambda name: [counted_order(part) for part in Path(name).parts])
        with messages.progress(self.silent) as shown:
            known = reference_of(self)
            monitor, watched = self._begun(known, names, shown)
        notes: list[str] = []
        width = max(len(_short(name)) for name in names)
        for name in self._left(names, monitor):
            if monitor.alarm_ and not self.go_on:
                break
            watched.append(self._watch(name, known, monitor, notes))
            self._say(_line(watched[-1], monitor, width))
            self._keep(monitor, names, watched)
        return self._end(monitor, watched, notes, written)

    def _begun(self, known: Reference, names: list[str], shown: Any) -> tuple[DriftMonitor, list[Watched]]:
        """A new monitor, or the one of the checkpoint with what it has seen."""
        from reduset.drift import DriftMonitor

        if self.checkpoint is None or not self.checkpoint.exists():
            return DriftMonitor(known.test, ert=self.ert, random_state=self.seed, progress=shown), []
        monitor = DriftMonitor.resume(self.checkpoint)
        about = monitor.about_
        if about.get("command") != COMMAND or not isinstance(about.get("asked"), dict):
            raise ValueError(f"{self.checkpoint} is a checkpoint that `{COMMAND}` did not write; give --checkpoint another name")
        for option, value in self._asked().items():
            if about["asked"].get(option) != value:
                raise ValueError(
                    f"{self.checkpoint} is the checkpoint of another run, whose {option} was {about['asked'].get(option)}, and is "
                    f"now {value}; run it as it was to go on, or remove the file to begin anew"
                )
        before = {told[0]: told for told in about["files"]}
        for told in files_told(names):
            if told[0] in before and before[told[0]] != told:
                raise ValueError(f"{told[0]} was changed after it was watched; remove {self.checkpoint} to begin anew")
        messages.note(f"going on after {monitor.n_seen_:,} rows, as {self.checkpoint} says", self.silent)
        return monitor, [Watched(**each) for each in about["watched"]]

    def _left(self, names: list[str], monitor: DriftMonitor) -> Iterator[str]:
        """Files that were not watched yet."""
        done = {told[0] for told in monitor.about_.get("files", ())}
        return (name for name in names if os.path.abspath(name) not in done)

    def _watch(self, name: str, known: Reference, monitor: DriftMonitor, notes: list[str]) -> Watched:
        """All rows of a file, batch by batch."""
        from reduset import io

        before, dropped = monitor.n_seen_, 0
        batches = io.batches([name], **known.reading_of([Path(name)]))
        try:
            for table in batches:
                monitor.update(known.rows(table))
                dropped += table.dropped
                if monitor.alarm_ and not self.go_on:
                    break
        finally:
            batches.close()
        notes += [f"{name}: {text}" for text in batches.notes(dropped)]
        return Watched(name, before, monitor.n_seen_ - before, float(monitor.state_.statistic), monitor.alarm_)

    def _keep(self, monitor: DriftMonitor, names: list[str], watched: list[Watched]) -> None:
        if self.checkpoint is None:
            return
        done = {os.path.abspath(each.name) for each in watched}
        told = {each[0]: each for each in [*monitor.about_.get("files", ()), *files_told(names)] if each[0] in done}
        about = {"command": COMMAND, "asked": self._asked(), "files": list(told.values())}
        monitor.checkpoint(self.checkpoint, about | {"watched": [vars(each) for each in watched]})

    def _asked(self) -> dict[str, Any]:
        """All that an alarm depends on, by the names of the options."""
        reading = {f"--{name.replace('_', '-')}": value for name, value in self.reading().items()}
        return {"REFERENCE": files_told([str(self.reference)])[0], "--ert": self.ert, "--seed": self.seed, **reading}

    def _say(self, line: str) -> None:
        """A line at once: whoever watches does not wait for the end."""
        if not self.silent:
            print(printable(line))
            sys.stdout.flush()

    def _end(self, monitor: DriftMonitor, watched: list[Watched], notes: list[str], written: list[Path]) -> int:
        if self.report is not None:
            from reduset.report import write_watch

            write_watch(self.report, monitor, watched, about=origin([str(self.reference), *(each.name for each in watched)], notes))
        since = None if monitor.since_ is None else list(map(int, monitor.since_))
        facts = {
            "alarm": monitor.alarm_,
            "since": since,
            "where": None if since is None else _place(since[0], watched),
            "rows": monitor.n_seen_,
            "ert": self.ert,
            "files": [vars(each) for each in watched],
            "notes": notes,
            "written": written,
        }
        ending = messages.ending(notes, written)[: None if written else -1]
        messages.answer(self, facts, _verdict(monitor, watched, self.ert), *ending)
        return DRIFT if self.fail and monitor.alarm_ else DONE


def _line(each: Watched, monitor: DriftMonitor, width: int) -> str:
    """One line a file."""
    text = f"{_short(each.name):<{width}}  {each.rows:>9,} rows  {each.statistic:6.2f} of 1"
    seen = monitor.alarmed_at_
    return text + ("  ALARM" if seen is not None and each.first <= seen < each.first + each.rows else "")


def _verdict(monitor: DriftMonitor, watched: list[Watched], ert: float) -> str:
    """What there is to say in the end."""
    if not monitor.alarm_:
        return f"no drift in {monitor.n_seen_:,} rows; a false alarm comes once in {ert:,.0f} rows on average"
    if monitor.since_ is None:
        return f"DRIFT in {monitor.n_seen_:,} rows"
    row, low, high = monitor.since_
    name, place = _place(row, watched).values()
    return f"DRIFT since row {row:,}, between {low:,} and {high:,} with 95 % confidence: row {place:,} of {name}"


def _place(row: int, watched: list[Watched]) -> dict[str, Any]:
    """The file that has a row, and which of its rows that is, from 0."""
    holder = next((each for each in reversed(watched) if each.first <= row), watched[0])
    return {"file": holder.name, "row": row - holder.first}


def _short(name: str) -> str:
    text = printable(os.path.basename(name))
    return text if len(text) <= LONGEST else "…" + text[1 - LONGEST :]
