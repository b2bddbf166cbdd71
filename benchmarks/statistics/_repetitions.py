"""Repetitions of a benchmark, kept as rows of a CSV file, so that a long run can be continued.

A row has its key (the varied parameters) and its results, as text or numbers, and a digest of the sources that it was measured
with. Rows of other sources are not used.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

from benchmarks._lib import records

Row = dict[str, Any]
DIGEST = "sources"


class Kept:
    """The rows of a CSV file with these columns, the first ``keys`` of which identify a row, that these sources measured.

    Rows with an empty digest are used with any sources: they were measured with other libraries.
    """

    def __init__(self, path: Path, columns: Sequence[str], keys: int, sources: Iterable[str]) -> None:
        self.path, self.columns, self._keys = path, [*columns, DIGEST], keys
        self._digest, every = records.digest(sources), read(path)
        self.rows = [row for row in every if row[DIGEST] in ("", self._digest)]
        self._new = len(self.rows) < len(every) or not path.exists()

    def has(self, *key: Any) -> bool:
        return any(tuple(row[name] for name in self.columns[: self._keys]) == key for row in self.rows)

    def add(self, row: Row) -> None:
        """Write a row at once, so that a run can be stopped; the first one removes the rows of other sources."""
        text = {DIGEST: self._digest} | {name: _short(value) for name, value in row.items()}
        with open(self.path, "w" if self._new else "a", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, self.columns, restval="", lineterminator="\n")
            if self._new:
                writer.writeheader()
                writer.writerows({name: _short(value) for name, value in each.items()} for each in self.rows)
            writer.writerow(text)
        self._new = False
        self.rows.append({name: _number(name, str(text.get(name, ""))) for name in self.columns})

    def where(self, **key: Any) -> list[Row]:
        return [row for row in self.rows if all(row[name] == value for name, value in key.items())]


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as stream:
        return [{name: _number(name, text) for name, text in row.items()} for row in csv.DictReader(stream)]


def column(rows: Iterable[Row], name: str) -> np.ndarray:
    """The values of a column, without empty entries."""
    return np.array([row[name] for row in rows if row[name] != ""], np.float64)


def interval(count: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """The confidence limits of a proportion of which ``count`` were observed (Clopper & Pearson 1934)."""
    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, count, of - count + 1)) if count else 0.0
    return low, float(beta.ppf(1 - tail, count + 1, of - count)) if count < of else 1.0


def with_limits(values: np.ndarray, digits: int = 0) -> str:
    """A proportion with its confidence limits: 93% (86 to 97)."""
    if not len(values):
        return ""
    low, high = interval(int(values.sum()), len(values))
    return f"{values.mean():.{digits}%} ({100 * low:.{digits}f} to {100 * high:.{digits}f})"


def proportion(rows: Sequence[Row], name: str) -> str:
    """The proportion of rows with a positive entry, with its confidence limits."""
    return with_limits(column(rows, name) > 0)


def _number(name: str, text: str) -> Any:
    try:
        return text if name == DIGEST else float(text) if any(sign in text for sign in ".en") else int(text)
    except ValueError:
        return text


def _short(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}"
    return int(value) if isinstance(value, bool | np.bool_) else value
