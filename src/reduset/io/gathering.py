"""Blocks of a file into one array: filled column by column, checked for missing values, put on their scales, gathered.

Peak memory is the table and one block where the number of rows is known beforehand; else the table and what of its blocks has not
been copied yet. Rows are counted from 1 in messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset.io.choice import Choice
from reduset.io.guard import check_room
from reduset.io.source import LabelBook, Labels, Numbers, Source
from reduset.io.table import FileError
from reduset.io.transforms import Transform, chosen


@dataclass(frozen=True)
class Part:
    """Some rows: (k, d) values, (k,) weights, k labels, (k,) which rows of the file they are, counted from 1; and the row after all
    that were looked at for it, counted from 0: rows that lacked something are not in it."""

    values: Numbers
    weights: Numbers | None
    labels: Labels | None
    numbers: NDArray[np.int64]
    end: int

    def rows(self, which: Any) -> Part:
        """Some of its rows."""
        weights = None if self.weights is None else self.weights[which]
        labels = None if self.labels is None else Labels(self.labels.codes[which], self.labels.categories)
        return Part(self.values[which], weights, labels, self.numbers[which], self.end)


def scales_of(transform: Any, source: Source, choice: Choice) -> tuple[dict[str, Transform], list[str]]:
    """The scale of each column that has one, and notes."""
    upright = frozenset(title for title, name in zip(choice.titles, choice.names, strict=True) if name in source.upright)
    return chosen(transform, source.path, choice.titles, upright)


def parts(source: Source, choice: Choice, transform: Any, missing: str, single: bool, rows: int, start: int = 0) -> Iterator[Part]:
    """The rows of a file that lack nothing, or all of them, on their scales; from the block with row ``start`` on (from 0)."""
    scales, _ = scales_of(transform, source, choice)
    names = [*choice.names, *([] if choice.weight is None else [choice.weight])]
    width = len(choice.names)
    for first, (columns, labels) in source.blocks_from(names, choice.group, rows, start):
        count = len(columns[0])
        values = np.empty((count, width), np.float32 if single else np.float64)
        for place, column in enumerate(columns[:width]):
            values[:, place] = column
        weights = None if choice.weight is None else np.asarray(columns[-1], np.float64)
        part = Part(values, weights, labels, np.arange(first + 1, first + count + 1), first + count)
        there = _complete(part)
        if there is not None:
            _refuse(source.path, choice, part.rows(~there), missing)
            part = part.rows(there)
        for place, title in enumerate(choice.titles):
            if title in scales:
                part.values[:, place] = scales[title].apply(source.path, title, part.values[:, place], part.numbers)
        yield part


def _complete(part: Part) -> Numbers | None:
    """Which rows lack nothing; None where all do."""
    there = np.asarray(np.isfinite(part.values).all(axis=1))
    if part.weights is not None:
        there &= np.isfinite(part.weights)
    if part.labels is not None:
        there &= part.labels.codes >= 0
    return None if there.all() else there


def _refuse(path: str, choice: Choice, part: Part, missing: str) -> None:
    """Refuse infinite values in rows that are not complete, and missing ones unless they are to be dropped."""
    titles = [*choice.titles, *([] if choice.weight is None else [choice.weight])]
    cells = part.values if part.weights is None else np.column_stack([part.values, part.weights])
    infinite = np.argwhere(np.isinf(cells))
    if len(infinite):
        row, column = infinite[0]
        raise FileError(
            f"{path}: column {titles[column]!r} must be finite, got {cells[row, column]} in row {part.numbers[row]}; "
            "correct it, or leave the row out of the file"
        )
    if missing == "refuse":
        lacking = np.flatnonzero(np.isnan(cells[0]))
        name = titles[lacking[0]] if len(lacking) else choice.group
        raise FileError(
            f"{path}: column {name!r} has no value in row {part.numbers[0]}; fill it, or leave such rows out (missing='drop')"
        )


class Gathering:
    """Parts into one table: in place where the number of rows is known, else kept and copied at the end."""

    def __init__(self, rows: int | None, choice: Choice, single: bool) -> None:
        self._dtype = np.dtype(np.float32 if single else np.float64)
        self._shape = (len(choice.titles), choice.weight is not None)
        self._values: Numbers | None = None
        self._weights: Numbers | None = None
        if rows is not None:
            self._values, self._weights = self._space(rows)
        self._kept: list[Part] = []
        self._book = None if choice.group is None else LabelBook()
        self.rows = 0

    def _space(self, rows: int) -> tuple[Numbers, Numbers | None]:
        width, weighted = self._shape
        return np.empty((rows, width), self._dtype), np.empty(rows) if weighted else None

    def add(self, path: str, part: Part) -> None:
        """Take one more part."""
        if self._book is not None and part.labels is not None:
            self._book.add(part.labels)
        end = self.rows + len(part.values)
        if self._values is None:
            check_room(path, float(end) * (self._shape[0] * self._dtype.itemsize + 8 * self._shape[1]))
            self._kept.append(part)
        elif end > len(self._values):
            raise FileError(f"{path}: holds more rows than it says; it is damaged")
        else:
            _copy(part, self._values, self._weights, self.rows)
        self.rows = end

    def finish(self, path: str) -> tuple[Numbers, Numbers | None, Numbers | None]:
        """Values, weights and groups of all rows."""
        if not self.rows:
            raise FileError(f"{path}: has no rows to read")
        values, weights = self._values, self._weights
        if values is None:
            values, weights = self._space(self.rows)
            end = self.rows
            while self._kept:  # each is freed as soon as it is copied
                part = self._kept.pop()
                end -= len(part.values)
                _copy(part, values, weights, end)
        groups = None if self._book is None else self._book.array()
        return values[: self.rows], None if weights is None else weights[: self.rows], groups


def _copy(part: Part, values: Numbers, weights: Numbers | None, start: int) -> None:
    values[start : start + len(part.values)] = part.values
    if weights is not None:
        weights[start : start + len(part.values)] = part.weights
