"""A CSV file of results that grows row by row, so that a measurement of hours can be stopped and continued.

The first line states the machine and a digest of the measured sources. If these changed since, our own rows are measured again;
those of the peers, whose versions are pinned, are kept.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks._lib import machine, records

OURS = "reduset"  # all our methods start with it
Row = dict[str, Any]


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def measured_on(path: Path) -> str:
    """The machine of the measurements."""
    return _first_line(path).removeprefix("# ").split("; sources ")[0]


def _first_line(path: Path) -> str:
    return path.read_text(encoding="utf-8").split("\n", 1)[0] if path.exists() else ""


def _header(path: Path, sources: Sequence[str]) -> str:
    first, now, digest = _first_line(path), machine(), records.digest(sources)
    if first.endswith(f"; sources {digest}"):
        return first
    peers = measured_on(path).split("; reduset: ")[0].removeprefix("peers: ") if first else now
    return f"# {now if peers == now else f'peers: {peers}; reduset: {now}'}; sources {digest}"


class ResultTable:
    """Results by key. Failed runs are tried again; of rows with the same key the last one counts."""

    def __init__(
        self, path: Path, columns: Sequence[str], key: Sequence[str], sources: Sequence[str], shown: Callable[[Row], str]
    ) -> None:
        self._path, self._columns, self._key, self._shown = path, columns, key, shown
        self.done: set[tuple[str, ...]] = set()
        known, header = read(path) if path.exists() else [], _header(path, sources)
        if header != _first_line(path):
            known = [row for row in known if not row["method"].startswith(OURS)]
        known = [row for row in known if row.get("status")]  # the last row is incomplete if a run was stopped while it was written
        path.parent.mkdir(exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            file.write(f"{header}\n")
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(known)
        for row in known:
            self.note(row)

    def key_of(self, row: Row) -> tuple[str, ...]:
        return tuple(str(row[column]) for column in self._key)

    def __contains__(self, row: Row) -> bool:
        """Whether the key of this row was measured."""
        return self.key_of(row) in self.done

    def note(self, row: Row) -> None:
        if not row["status"].startswith("failed"):
            self.done.add(self.key_of(row))

    def add(self, row: Row) -> None:
        rounded = {key: f"{value:.10g}" if isinstance(value, float) else value for key, value in row.items()}
        with self._path.open("a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, self._columns, lineterminator="\n").writerow(rounded)
        self.note(row)
        print(" ".join(self.key_of(row)), self._shown(row) if row["status"] == "ok" else row["status"], flush=True)
