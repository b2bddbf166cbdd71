"""Whether recorded figures still hold, though the code has changed since.

There are two ways to find out:

- the code is the same but for places, comments and names (``sources.changed``);
- the quick version of the benchmark returns the same figures with the code of the record's commit and with today's. Figures that
  differ between two runs of today's code are times or depend on them, and are not compared.

Times have to be measured again, unless the first way holds.
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

from benchmarks._lib import BENCHMARKS, ROOT, sources

RELATIVE, ABSOLUTE = 1e-6, 1e-12  # allowed differences of figures
LIMIT = 900.0  # seconds for one run
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
MAIN = "summary.0.1"  # the first figure that RESULTS.md shows


class Differs(Exception):
    """Why a record is not confirmed."""


class OldSources:
    """Folders with the library's code at earlier commits."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()

    def at(self, commit: str) -> Path:
        folder = Path(self._folder.name) / commit
        if not folder.exists():
            found = subprocess.run(["git", "archive", commit, "src"], capture_output=True, cwd=ROOT, check=False)
            if found.returncode:
                raise Differs(f"the code of commit {commit} is not in this repository")
            with tarfile.open(fileobj=BytesIO(found.stdout)) as archive:
                archive.extractall(folder, filter="data")
        return folder / "src"


def check(name: str, names: tuple[str, ...], old: Path, timed: bool) -> str:
    """How the record of this commit is confirmed; ``Differs`` if it is not."""
    new = ROOT / "src"
    changed = sources.changed(new / "reduset", names, old / "reduset")
    if not changed:
        return "same code but for places and names"
    if timed:
        raise Differs(f"times must be measured again, {len(changed)} definitions changed, first {changed[0]}")
    before, now = _figures(name, old), _figures(name, new)
    differing = [key for key, value in now.items() if key not in before or not _equal(value, before[key])]
    again = _figures(name, new) if differing else now
    for key in differing:
        if key in again and _equal(now[key], again[key]):
            raise Differs(f"{key} was {before.get(key, 'not measured')}, is {now[key]}")
    if MAIN in differing:
        raise Differs(f"its main figure depends on time: {now[MAIN]}, then {again[MAIN]}")
    equal = sum(isinstance(value, float) and key not in differing for key, value in now.items())
    return f"{equal} figures of the quick version equal those of the old code"


def _figures(name: str, source: Path) -> dict[str, Any]:
    """The figures of the quick version by their place, measured with the code in a folder."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        paths = [str(source), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        command = [sys.executable, str(BENCHMARKS / "run.py"), name, "--quick", "--figures", str(out)]
        try:
            found = subprocess.run(
                command, env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}, capture_output=True, text=True,
                timeout=LIMIT, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Differs(f"a quick run took over {LIMIT:g} s") from None
        if found.returncode:
            which = "today's code" if source == ROOT / "src" else "the code of that commit"
            raise Differs(f"{which} cannot run it: {(found.stderr.strip() or '?').splitlines()[-1][:200]}")
        return dict(_leaves(json.loads(out.read_text(encoding="utf-8"))))


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Numbers, those in texts and tables included, and short texts."""
    if isinstance(value, Mapping | list):
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, part in pairs:
            yield from _leaves(part, f"{place}.{key}".lstrip("."))
    elif isinstance(value, bool | int | float):
        yield place, float(value)
    elif isinstance(value, str):
        for n, line in enumerate(value.splitlines()):
            yield from ((f"{place}, line {n + 1}, number {k + 1}", float(text)) for k, text in enumerate(NUMBER.findall(line)))
        if "\n" not in value:
            yield place, value


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)
