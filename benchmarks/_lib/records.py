"""Recorded figures: one JSON file for each benchmark, and whether the code that it measures has changed since.

A record holds the figures, the date, the commit, the machine with versions, and a digest of each source file that the benchmark
names in ``SOURCES``. A digest is of the code alone: comments, docstrings and line breaks do not change it.
"""

from __future__ import annotations

import ast
import datetime
import hashlib
import json
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks._lib import BENCHMARKS, ROOT, machine

PACKAGE = ROOT / "src" / "reduset"


@dataclass(frozen=True)
class Record:
    """What one run of a benchmark found."""

    figures: dict[str, Any]
    date: str
    commit: str
    machine: str
    sources: dict[str, str]

    def stale(self, names: Iterable[str]) -> list[str]:
        """The source files that changed, came or went since."""
        now = digests(names)
        return sorted(file for file in now.keys() | self.sources.keys() if now.get(file) != self.sources.get(file))


def file_of(name: str) -> Path:
    folder, stem = name.split("/")
    return BENCHMARKS / folder / "results" / f"{stem}.json"


def load(name: str) -> Record | None:
    path = file_of(name)
    return Record(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def store(name: str, figures: dict[str, Any], sources: Iterable[str]) -> Record:
    record = Record(figures, datetime.date.today().isoformat(), _commit(), machine(), digests(sources))
    path = file_of(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(asdict(record), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return record


def digests(names: Iterable[str]) -> dict[str, str]:
    """A digest of each Python file in packages and files of ``src/reduset``."""
    found = {}
    for name in names:
        paths = sorted((PACKAGE / name).rglob("*.py")) if (PACKAGE / name).is_dir() else [PACKAGE / name]
        for path in paths:
            found[path.relative_to(PACKAGE).as_posix()] = digest(path.read_text(encoding="utf-8"))
    return found


def digest(code: str) -> str:
    tree = ast.parse(code)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            node.body = body[1:]  # type: ignore[attr-defined]  # a docstring
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:12]


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT, check=False)
    return found.stdout.strip() or "unknown"
