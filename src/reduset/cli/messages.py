"""The output of a command: progress on a terminal, a few lines or one JSON object, notes, and the origin of a result."""

from __future__ import annotations

import json
import math
import platform
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reduset._describe import WIDTH, Description, Row, significant
from reduset._messages import printable
from reduset.cli.options import Answering

if TYPE_CHECKING:
    from reduset.io import Table

LISTED_UNITS = 4  # columns with a printed scale
WAYS_OUT = {  # Python in messages of the library, and the equivalent options
    "use sketch(data, size)": "use reduset sketch",
    "identifiers='keep' uses it": "name it in --columns to use it",
    "identifiers='keep' uses them": "name them in --columns to use them",
    "for weight_column": "for --weight-column",
    "for group_column": "for --group-column",
    "(columns=)": "(--columns)",
    "with key=": "with --key",
    "compensate=False": "--no-compensate",
    "keep_going=True": "--keep-going",
}


def as_options(text: str) -> str:
    """A message of the library, with Python arguments replaced by options."""
    for python, option in WAYS_OUT.items():
        text = text.replace(python, option)
    return re.sub(r"\b(clean|missing|pieces)='([\w-]+)'", r"--\1 \2", text)


def answer(
    request: Answering, result: Description | str, notes: Sequence[str] = (), written: Sequence[Path] = (), **facts: Any
) -> None:
    """Print a result with its notes and the files that were written: one JSON object with --json, lines otherwise."""
    if request.json:
        known = result.facts() if isinstance(result, Description) else {}
        print(as_json(known | facts | {"notes": notes, "written": written}))
    elif not request.quiet:
        rows = [*(("note", text) for text in notes), *([("written", ", ".join(map(str, written)))] if written else [])]
        lines = [printable(f"  {label:<{WIDTH}}{text}") for label, text in rows]
        print(printable(str(result), lines=True), *lines, sep="\n")


def note(text: str, quiet: bool = False) -> None:
    """A line on the error stream."""
    if not quiet:
        print(printable(f"reduset: {text}"), file=sys.stderr)


def notes_of(tables: Mapping[str, Table]) -> list[str]:
    """The notes of tables. Different notes begin with the name of the table."""
    notes = {name: table.notes for name, table in tables.items()}
    if len(set(notes.values())) == 1:
        return list(next(iter(notes.values())))
    return [f"{name}: {text}" for name, texts in notes.items() for text in texts]


def as_json(value: Mapping[str, Any]) -> str:
    """One JSON object in ASCII; numbers that are not finite become null."""
    return json.dumps(plain(dict(value)))


def plain(value: Any) -> Any:
    """Numbers, texts, lists and dicts."""
    if isinstance(value, dict):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def origin(sources: Sequence[str], notes: Sequence[str]) -> dict[str, Any]:
    """The command, versions, sources and notes of a result, as plain values for models and reports."""
    from importlib.metadata import version

    packages = {name: version(name) for name in ("reduset", "numpy", "scipy", "scikit-learn", "numba")}
    return {
        "command": shlex.join(["reduset", *sys.argv[1:]]),
        "versions": {**packages, "python": platform.python_version()},
        "sources": list(sources),
        "notes": list(notes),
    }


def with_scales(result: Description, kernel: Any, columns: Sequence[str], *rows: Row) -> Description:
    """The description with the scales of the first columns, and further rows."""
    units = getattr(kernel, "units", None)
    scales = None if units is None else dict(zip(columns, units.tolist(), strict=True))
    texts = [f"{name} / {significant(scale)}" for name, scale in list((scales or {}).items())[:LISTED_UNITS]]
    text = ", ".join(texts) + ", …" * (len(texts) < len(scales or ()))
    return Description(result.title, (*result.rows, Row("scales", text, facts={"scales": scales}), *rows))


def dominated_columns(values: Any, columns: Sequence[str]) -> list[str]:
    """A note if one column dominates all distances."""
    from reduset.bandwidth import dominated_column

    dominated = dominated_column(values)
    if dominated is None:
        return []
    wide, narrow, ratio = dominated
    return [
        f"distances are dominated by column {columns[wide]!r}, whose spread is {ratio:,.0f} times that of {columns[narrow]!r}; use "
        "--scales robust, --whiten or --transform, or choose --columns of one scale"
    ]
