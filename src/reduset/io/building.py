"""Blocks of a file into one array: filled column by column, checked for missing values, put on their scales, gathered.

Peak memory is the table and one block where the number of rows is known beforehand; else the table and what of its blocks has not
been copied yet. Rows are counted from 1 in messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reduset._types import Indices
from reduset._validate import SUBTRACT
from reduset.io.choice import ColumnChoice
from reduset.io.guard import Work, check_room
from reduset.io.reader import Block, CodedLabels, FileReader, LabelDictionary, Numbers, ReadOptions
from reduset.io.table import FileError
from reduset.io.transforms import Transform, chosen


@dataclass(frozen=True)
class Chunk:
    """Some rows: (k, d) values, (k,) weights, k labels, (k,) which rows of the file they are, counted from 1; and the row after all
    that were looked at for it, counted from 0: rows that lacked something are not in it."""

    values: Numbers
    weights: Numbers | None
    labels: CodedLabels | None
    numbers: Indices
    end: int

    def __len__(self) -> int:
        return len(self.values)

    def rows(self, which: Any) -> Chunk:
        """Some of its rows."""
        weights = None if self.weights is None else self.weights[which]
        labels = None if self.labels is None else self.labels.rows(which)
        return Chunk(self.values[which], weights, labels, self.numbers[which], self.end)

    def counted_from(self, before: int) -> Chunk:
        """The same, where so many rows of other files lie before those of this one."""
        return replace(self, numbers=self.numbers + before, end=self.end + before)

    def after(self, row: int) -> Chunk:
        """Its rows after the first so many."""
        return self.rows(slice(int(np.searchsorted(self.numbers, row, "right")), None))


def scales_of(transform: Any, source: FileReader, choice: ColumnChoice) -> tuple[dict[str, Transform], list[str]]:
    """The scale of each column that has one, and notes."""
    upright = frozenset(title for title, name in zip(choice.titles, choice.names, strict=True) if name in source.upright)
    return chosen(transform, source.path, choice.titles, upright)


def chunks(
    source: FileReader, choice: ColumnChoice, options: ReadOptions, single: bool, rows: int, start: int = 0
) -> Iterator[Chunk]:
    """The rows of a file that lack nothing, or all of them, on their scales; from the block with row ``start`` on (from 0)."""
    scales, _ = scales_of(options.transform, source, choice)
    names = [*choice.names, *([] if choice.weight is None else [choice.weight])]
    for block in source.blocks(names, [] if choice.group is None else [choice.group], rows, start):
        chunk = _stacked(source, block, choice, single)
        there = _complete(chunk)
        if not there.all():
            _refuse(source, choice, chunk.rows(~there), options.missing)
            chunk = chunk.rows(there)
        for place, title in enumerate(choice.titles):
            if title in scales:
                chunk.values[:, place] = scales[title].apply(
                    source.path, title, chunk.values[:, place], chunk.numbers - 1 + source.first_row
                )
        yield chunk


def _stacked(source: FileReader, block: Block, choice: ColumnChoice, single: bool) -> Chunk:
    """Columns beside each other; the last is that of weights, where there are weights."""
    numbers = np.arange(block.first + 1, block.end + 1)
    values = np.empty((len(numbers), len(choice.names)), np.float32 if single else np.float64)
    for place in range(values.shape[1]):
        merged = source.merged(choice.names[place], block.columns[place])
        if merged is not None:
            raise FileError(
                f"{source.path}: column {choice.titles[place]!r} has the integers {merged[0]} and {merged[1]}, which float64 makes "
                f"one number; {SUBTRACT}"
            )
        values[:, place] = block.columns[place]
    weights = None if choice.weight is None else np.asarray(block.columns[-1], np.float64)
    return Chunk(values, weights, block.labels[0] if block.labels else None, numbers, block.end)


def _complete(chunk: Chunk) -> Numbers:
    """Which rows lack nothing."""
    there = np.asarray(np.isfinite(chunk.values).all(axis=1))
    if chunk.weights is not None:
        there &= np.isfinite(chunk.weights)
    if chunk.labels is not None:
        there &= chunk.labels.codes >= 0
    return there


def _refuse(source: FileReader, choice: ColumnChoice, chunk: Chunk, missing: str) -> None:
    """Refuse infinite values in rows that are not complete, and missing ones unless they are to be dropped."""
    titles = [*choice.titles, *([] if choice.weight is None else [choice.weight])]
    cells = chunk.values if chunk.weights is None else np.column_stack([chunk.values, chunk.weights])
    infinite, numbers = np.argwhere(np.isinf(cells)), chunk.numbers - 1 + source.first_row
    if len(infinite):
        row, column = infinite[0]
        raise FileError(
            f"{source.path}: column {titles[column]!r} must be finite, got {cells[row, column]} in row {numbers[row]}; "
            "correct it, or leave the row out of the file"
        )
    if missing == "refuse":
        lacking = np.flatnonzero(np.isnan(cells[0]))
        name = choice.group if not len(lacking) else source.stored_name(titles[lacking[0]])
        raise FileError(
            f"{source.path}: column {name!r} has no value in row {numbers[0]}; fill it, or leave such rows out ({source.drop_rows})"
        )


class TableBuilder:
    """Chunks into one table: in place where the number of rows is known, else kept and copied at the end.

    A table that has no room beside what is done with it is refused before it is made, or as soon as so many rows have come.
    """

    def __init__(self, path: str, rows: int | None, choice: ColumnChoice, single: bool, work: Work) -> None:
        self._dtype = np.dtype(np.float32 if single else np.float64)
        self._shape = (len(choice.titles), choice.weight is not None)
        self._work = work
        self._row = self._shape[0] * self._dtype.itemsize + 8 * self._shape[1] + work.beside(self._shape[0])
        self._values: Numbers | None = None
        self._weights: Numbers | None = None
        if rows is not None:
            self._check(path, rows)
            self._values, self._weights = self._space(rows)
        self._kept: list[Chunk] = []
        self._labels = None if choice.group is None else LabelDictionary()
        self.rows = 0

    def _space(self, rows: int) -> tuple[Numbers, Numbers | None]:
        width, weighted = self._shape
        return np.empty((rows, width), self._dtype), np.empty(rows) if weighted else None

    def _check(self, path: str, rows: int) -> None:
        check_room(path, float(rows) * self._row, self._work.what, self._work.way_out)

    def add(self, path: str, chunk: Chunk) -> None:
        """Take one more chunk."""
        if self._labels is not None and chunk.labels is not None:
            self._labels.add(chunk.labels)
        end = self.rows + len(chunk)
        if self._values is None:
            self._check(path, end)
            self._kept.append(chunk)
        elif end > len(self._values):
            raise FileError(f"{path}: holds more rows than it says; it is damaged")
        else:
            _copy(chunk, self._values, self._weights, self.rows)
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
                chunk = self._kept.pop()
                end -= len(chunk)
                _copy(chunk, values, weights, end)
        groups = None if self._labels is None else self._labels.array()
        return values[: self.rows], None if weights is None else weights[: self.rows], groups


def _copy(chunk: Chunk, values: Numbers, weights: Numbers | None, start: int) -> None:
    values[start : start + len(chunk)] = chunk.values
    if weights is not None:
        weights[start : start + len(chunk)] = chunk.weights
