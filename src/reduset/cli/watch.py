"""`reduset watch`: files of rows one after the other, in the order of their names, until their law has changed.

With a checkpoint the same command goes on with the files that came since (`watching.py`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reduset._messages import printable
from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import DONE, DRIFT, command
from reduset.cli.drift import Fail, ReferenceFile, Scales
from reduset.cli.references import reference_of
from reduset.cli.request import origin

if TYPE_CHECKING:
    from reduset.cli.watching import Watch
    from reduset.report.watch import Alarm, WatchedFile

LONGEST = 40  # letters of a file's name in a line


@command("reference.npz incoming/ --checkpoint state.npz --fail")
class WatchCommand(o.Reading, o.Seeded, o.Telling):
    """Go through files in the order of their names, and raise the alarm when their rows are no longer like the reference.

    A false alarm comes once in --ert rows on average, however many files these are in.
    """

    reference: ReferenceFile
    data: o.Data
    ert: Annotated[float, typer.Option("--ert", help="Rows until a false alarm, on average, as long as nothing changes.")] = 10_000
    thin: Annotated[
        int, typer.Option("--thin", help="Take in every so many-th row alone, where rows depend on those before them.")
    ] = 1
    go_on: Annotated[
        bool, typer.Option("--go-on", help="Go on after an alarm, anew with the next file; without it the first one is the end.")
    ] = False
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", help="The file by which the same command goes on with the files that came since."),
    ] = None
    report: o.Report = None
    fail: Fail = False
    scales: Scales = None

    def run(self) -> int:
        """Run it; the exit code."""
        from reduset.cli.watching import Watch, in_order

        inputs = [self.reference, *self.data]
        written = targets.check_all((self.report, targets.HTML, inputs), (self.checkpoint, targets.MODEL, inputs))
        names = in_order(self.data)
        with messages.progress(self.silent) as shown:
            watch = Watch.begun(self, reference_of(self), names, shown)
        width = max(len(_short(name)) for name in names)
        for seen, alarm in watch.files(names):
            self._say(_line(seen, alarm, width))
        if self.report is not None:
            from reduset.report import write_watch

            about = origin([str(self.reference), *(each.name for each in watch.seen)], watch.notes)
            write_watch(self.report, watch.monitor, watch.seen, alarms=watch.alarms, history=watch.history(), about=about)
        ending = messages.ending(watch.notes, written)[: None if written else -1]
        messages.answer(self, _facts(watch, written), *_verdict(watch), *ending)
        return DRIFT if self.fail and watch.alarms else DONE

    def _say(self, line: str) -> None:
        """A line at once: whoever watches does not wait for the end."""
        if not self.silent:
            print(printable(line))
            sys.stdout.flush()


def _line(seen: WatchedFile, alarm: Alarm | None, width: int) -> str:
    """One line a file."""
    text = f"{_short(seen.name):<{width}}  {seen.rows:>9,} rows  up to {max(seen.highest, 0.0):5.2f} of 1"
    return text if alarm is None else f"{text}  ALARM at row {alarm.row - seen.first:,}"


def _verdict(watch: Watch) -> list[str]:
    """What there is to say in the end."""
    if not watch.alarms:
        return [f"no drift in {watch.rows:,} rows; as long as there is none an alarm comes once in {watch.monitor.ert:,.0f} rows"]
    return [_began(alarm, watch) for alarm in watch.alarms]


def _began(alarm: Alarm, watch: Watch) -> str:
    if alarm.since is None:
        return f"DRIFT, noticed at row {alarm.row:,}"
    row, low, high = alarm.since
    place = watch.place(row)
    where = f": row {place['row']:,} of {printable(place['file'])}"
    return f"DRIFT since row {row:,}, most likely between {low:,} and {high:,}{where}"


def _facts(watch: Watch, written: list[Path]) -> dict[str, Any]:
    """All that was seen, in plain values."""
    alarms = [vars(each) | {"where": None if each.since is None else watch.place(each.since[0])} for each in watch.alarms]
    return {
        "alarm": bool(watch.alarms),
        "alarms": alarms,
        "rows": watch.rows,
        "ert": watch.monitor.ert,
        "files": [vars(each) for each in watch.seen],
        "notes": watch.notes,
        "written": written,
    }


def _short(name: str) -> str:
    text = printable(Path(name).name)
    return text if len(text) <= LONGEST else "…" + text[1 - LONGEST :]
