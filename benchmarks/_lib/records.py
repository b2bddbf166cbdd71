"""Recorded figures: one JSON file for each benchmark, and whether the code that it measures has changed since.

A record holds the figures, the date, the commit, the machine with versions, and a digest of the definitions in the files of
``SOURCES`` (``sources.py``). If the code changed, but not the figures, the record is confirmed: the digest becomes today's, and
``confirmed`` gets the date, the commit and the reason.
"""

from __future__ import annotations

import datetime
import json
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks._lib import BENCHMARKS, ROOT, machine, sources

PACKAGE = ROOT / "src" / "reduset"


@dataclass(frozen=True)
class Record:
    """What one run of a benchmark found."""

    figures: dict[str, Any]
    date: str
    commit: str
    machine: str
    digest: str
    confirmed: str = ""

    def stale(self, names: Iterable[str]) -> bool:
        """Whether the code in these files changed since."""
        return digest(names) != self.digest

    def dates(self) -> str:
        return f"{self.date}, confirmed {self.confirmed.split(',')[0]}" if self.confirmed else self.date


def file_of(name: str) -> Path:
    folder, stem = name.split("/")
    return BENCHMARKS / folder / "results" / f"{stem}.json"


def load(name: str) -> Record | None:
    path = file_of(name)
    return Record(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def store(name: str, figures: dict[str, Any], names: Iterable[str]) -> None:
    _write(name, Record(figures, _today(), commit(), machine(), digest(names)))


def confirm(name: str, record: Record, names: Iterable[str], reason: str) -> None:
    _write(name, replace(record, digest=digest(names), confirmed=f"{_today()}, commit {commit()}: {reason}"))


def digest(names: Iterable[str]) -> str:
    """A digest of the definitions in these files of the library."""
    return sources.digest(PACKAGE, names)


def commit() -> str:
    """The commit that changed the library last; later ones change its tests and pages alone."""
    command = ["git", "log", "-1", "--format=%h", "--", "src"]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    return found.stdout.strip() or "unknown"


def _today() -> str:
    return datetime.date.today().isoformat()


def _write(name: str, record: Record) -> None:
    path = file_of(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(asdict(record), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
