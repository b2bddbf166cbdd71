"""Repetitions of a study's benchmarks, kept as lines of a CSV file: what was measured is not measured again.

A line has the names of what was varied (its key) and what was found; all of it is text or numbers.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

Row = dict[str, Any]


class Kept:
    """The lines of a CSV file with these columns, the first ``keys`` of which say what a line is of."""

    def __init__(self, path: Path, columns: Sequence[str], keys: int) -> None:
        self.path, self.columns, self._keys = path, list(columns), keys
        self.rows: list[Row] = []
        if path.exists():
            with open(path, newline="", encoding="utf-8") as stream:
                self.rows = [{name: _number(text) for name, text in row.items()} for row in csv.DictReader(stream)]

    def has(self, *key: Any) -> bool:
        return any(tuple(row[name] for name in self.columns[: self._keys]) == key for row in self.rows)

    def add(self, row: Row) -> None:
        """Write it at once: a run that is stopped has lost nothing."""
        first = not self.path.exists()
        with open(self.path, "a", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, self.columns, restval="", lineterminator="\n")
            if first:
                writer.writeheader()
            writer.writerow({name: _short(value) for name, value in row.items()})
        self.rows.append({name: _number(str(_short(row.get(name, "")))) for name in self.columns})

    def where(self, **key: Any) -> list[Row]:
        return [row for row in self.rows if all(row[name] == value for name, value in key.items())]


def column(rows: Iterable[Row], name: str) -> np.ndarray:
    """What lines say of one thing, those that say nothing left out."""
    return np.array([row[name] for row in rows if row[name] != ""], np.float64)


def interval(count: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """Between which limits a share lies of which ``count`` were seen (Clopper & Pearson 1934)."""
    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, count, of - count + 1)) if count else 0.0
    return low, float(beta.ppf(1 - tail, count + 1, of - count)) if count < of else 1.0


def told(rows: Sequence[Row], name: str) -> str:
    """A share with its interval: 93 % (86 to 97)."""
    values = column(rows, name) > 0
    if not len(values):
        return ""
    low, high = interval(int(values.sum()), len(values))
    return f"{values.mean():.0%} ({100 * low:.0f} to {100 * high:.0f})"


def _number(text: str) -> Any:
    try:
        return float(text) if any(sign in text for sign in ".en") else int(text)
    except ValueError:
        return text


def _short(value: Any) -> Any:
    return (
        f"{float(value):.6g}"
        if isinstance(value, float | np.floating)
        else int(value)
        if isinstance(value, bool | np.bool_)
        else value
    )
