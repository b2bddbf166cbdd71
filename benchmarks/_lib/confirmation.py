"""Whether recorded figures still hold, though the code has changed since.

There are three ways to find out:

- the definitions are equal up to their files, comments and names (``sources.changed``);
- other figures than times: the quick version prints the same summary with the code of the record's commit and with today's. Numbers
  may differ by 3 %. Those that differ between two runs of today's code depend on time, and are not compared;
- times: the quick version runs twice with the old and the new code, in turns. The new code may take 1.1 times as long.

The old code runs today's benchmark. If it lacks a name that this imports, it runs the benchmark of its own commit.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from benchmarks._lib import BENCHMARKS, ROOT, data_folder, sources

RELATIVE, ABSOLUTE = 0.03, 1e-12  # allowed differences of figures
SLOWER = 1.1  # allowed ratio of times
LIMIT = 900.0  # seconds for one run
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
MAIN = "summary.0.1"  # the first figure that RESULTS.md shows


class Differs(Exception):
    """Why a record is not confirmed."""


class CannotRun(Differs):
    """The code cannot run the benchmark."""


class OldSources:
    """Folders with the library's code and the benchmarks at earlier commits."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()

    def at(self, commit: str) -> Path:
        folder = Path(self._folder.name) / commit
        if not folder.exists():
            found = subprocess.run(["git", "archive", commit, "src", "benchmarks"], capture_output=True, cwd=ROOT, check=False)
            if found.returncode:
                raise Differs(f"the code of commit {commit} is not in this repository")
            with tarfile.open(fileobj=BytesIO(found.stdout)) as archive:
                archive.extractall(folder, filter="data")
        return folder / "src"


def check(name: str, names: tuple[str, ...], old: Path, timed: bool) -> str:
    """How the record of this commit is confirmed; raises ``Differs`` if it is not."""
    new = ROOT / "src"
    changed = sources.changed(new / "reduset", names, old / "reduset")
    if not changed:
        return "same code up to files and names"
    return _times_agree(name, old, new) if timed else _figures_agree(name, old, new)


def _figures_agree(name: str, old: Path, new: Path) -> str:
    """Compare the numbers of the summary, those of the old code with those of the new."""
    before, now = _summary(_quick_before(name, old)), _summary(_quick(name, new))
    differing = [key for key, value in now.items() if key not in before or not _equal(value, before[key])]
    again = _summary(_quick(name, new)) if differing else now
    for key in differing:
        if key in again and _equal(now[key], again[key]):
            raise Differs(f"{key} was {before.get(key, 'not measured')}, is {now[key]}")
    if MAIN in differing:
        raise Differs(f"its main figure depends on time: {now[MAIN]}, then {again[MAIN]}")
    equal = sum(isinstance(value, float) and key not in differing for key, value in now.items())
    return f"{equal} numbers of the quick version agree with those of the old code"


def _times_agree(name: str, old: Path, new: Path) -> str:
    """Compare the times of the whole quick version, the shorter of two runs each."""
    rounds = [(_quick_before(name, old)["seconds"], _quick(name, new)["seconds"]) for _ in range(2)]
    before, now = (min(column) for column in zip(*rounds, strict=True))
    if now > SLOWER * before:
        raise Differs(f"the quick version took {before:.2f} s with the old code, and takes {now:.2f} s")
    return f"the quick version takes {now / before:.2f} times as long as with the old code"


def _quick_before(name: str, source: Path) -> dict[str, Any]:
    """The quick version with old code: today's benchmark, or else the one of its commit."""
    try:
        return _quick(name, source)
    except CannotRun:
        benchmarks = source.parent / "benchmarks"
        if not (benchmarks / f"{name}.py").exists():
            raise
        return _quick(name, source, benchmarks)


def _quick(name: str, source: Path, benchmarks: Path = BENCHMARKS) -> dict[str, Any]:
    """Summary, figures and seconds of the quick version with the code in a folder."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        paths = [str(source), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "REDUSET_DATA": str(data_folder())}
        command = [sys.executable, str(benchmarks / "run.py"), name, "--quick", "--figures", str(out)]
        try:
            process = subprocess.run(
                command, env=os.environ | environment, capture_output=True, text=True, timeout=LIMIT, check=False
            )
        except subprocess.TimeoutExpired:
            raise Differs(f"a quick run took over {LIMIT:g} s") from None
        if process.returncode:
            which = "today's code" if source == ROOT / "src" else "the code of that commit"
            raise CannotRun(f"{which} cannot run it: {(process.stderr.strip() or '?').splitlines()[-1][:200]}")
        return dict(json.loads(out.read_text(encoding="utf-8")))


def _summary(figures: dict[str, Any]) -> dict[str, Any]:
    return dict(_leaves({"summary": figures["summary"]}))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Numbers, those in texts and tables included, and short texts."""
    if isinstance(value, Mapping | list):
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, part in pairs:
            yield from _leaves(part, f"{path}.{key}".lstrip("."))
    elif isinstance(value, bool | int | float):
        yield path, float(value)
    elif isinstance(value, str):
        for n, line in enumerate(value.splitlines()):
            yield from ((f"{path}, line {n + 1}, number {k + 1}", float(text)) for k, text in enumerate(NUMBER.findall(line)))
        if "\n" not in value:
            yield path, value


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)
