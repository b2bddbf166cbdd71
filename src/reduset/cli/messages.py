"""What a command tells: progress with the time left on a terminal, a few lines at the end, or one JSON object."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reduset._messages import printable
from reduset.cli.options import Answering

if TYPE_CHECKING:
    from reduset.io import Table

NARROW = 60  # columns of a terminal
AS_OPTIONS = {  # ways out that the library words for Python
    "(clean='non-finite', or missing='drop')": "(--clean non-finite, or --missing drop)",
    "missing='drop'": "--missing drop",
    "(columns=)": "(--columns)",
    "with key=": "with --key",
    "pass compensate=False": "pass --no-compensate",
    "for weight_column": "for --weight-column",
    "for group_column": "for --group-column",
    "use sketch(data, size)": "use reduset sketch",
    "pieces='components'": "--pieces components",
    "pieces='atoms'": "--pieces atoms",
    "(keep_going=True)": "(--keep-going)",
    "identifiers='keep' uses it": "name it in --columns to use it",
    "identifiers='keep' uses them": "name them in --columns to use them",
}

ShowProgress = Callable[[str, int, int | None], None]


@contextmanager
def progress(quiet: bool = False, counted: str | None = None) -> Iterator[ShowProgress | bool]:
    """A function of (stage, done, total) that draws bars on the terminal's error stream; False where there is no terminal.

    A total may be None, not known; with ``counted`` it is told how many of these are done in a second. While loops are compiled,
    as on first use, a bar says so.
    """
    if quiet or not sys.stderr.isatty():
        yield False
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from reduset._engine import report_compilation

    console = Console(stderr=True)
    parts: list[ProgressColumn] = [
        TextColumn("{task.description:<14}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    ]
    if console.width < NARROW:  # the time left rather than a bar and parts of times
        parts = [parts[0], *parts[4:]]
    bars = Progress(*parts, console=console, transient=True)
    tasks: dict[str, Any] = {}

    def report(stage: str, done: int, total: int | None) -> None:
        most = None if total is None else max(total, 1)
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=most, count="")
        count = f"{done:,}" + ("" if total is None else f"/{total:,}")
        speed = bars.tasks[tasks[stage]].speed
        if counted is not None and speed:
            count += f" {counted}, {speed:,.0f} a second"
        bars.update(tasks[stage], completed=done, total=most, count=count)

    compiling = bars.add_task("compiling", total=None, count="first use only", visible=False)
    with bars, report_compilation(lambda begins: bars.update(compiling, visible=begins, refresh=begins)):
        yield report


def as_options(text: str) -> str:
    """A message of the library with its ways out as options of the command."""
    for python, option in AS_OPTIONS.items():
        text = text.replace(python, option)
    return text


def answer(request: Answering, facts: Mapping[str, Any], *lines: str) -> None:
    """What a command found: one JSON object for machines, or lines for people."""
    if request.json:
        print(as_json(facts))  # which escapes by itself
    elif not request.quiet:
        print(*(printable(text, lines=True) for text in lines), sep="\n")


def ending(notes: Sequence[str], written: Sequence[Path]) -> list[str]:
    """The last lines: what there is to note, and what was written."""
    return [*(f"  note       {printable(text)}" for text in notes), f"  written    {printable(', '.join(map(str, written)))}"]


def note(text: str, quiet: bool = False) -> None:
    """A remark, on the error stream, which machines do not read."""
    if not quiet:
        print(printable(f"reduset: {text}"), file=sys.stderr)


def notes_of(tables: Mapping[str, Table]) -> list[str]:
    """What was done in reading some tables: once where it is the same of all, else with the name of the table."""
    notes = {name: table.notes for name, table in tables.items()}
    if len(set(notes.values())) == 1:
        return list(next(iter(notes.values())))
    return [f"{name}: {text}" for name, texts in notes.items() for text in texts]


def as_json(value: Mapping[str, Any]) -> str:
    """One JSON object, in letters that every stream can take; numbers that JSON has no way to write become null."""
    return json.dumps(plain(dict(value)))


def plain(value: Any) -> Any:
    """Numbers, texts, lists and objects alone."""
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
