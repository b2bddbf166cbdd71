"""Blocks of a file as parts of one array: stacked column by column, checked for missing values, transformed, gathered.

Peak memory is the table and one block if the number of rows is known, otherwise the table and the blocks not copied yet.
Rows are counted from 1 in messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
    """Complete rows of a file: (k, d) values, (k,) weights, k labels, and (k,) row numbers counted from 1.

    ``end`` is the number of rows of the file up to the end of the block, incomplete rows included.
    """

    values: Numbers
    weights: Numbers | None
    labels: CodedLabels | None
    numbers: Indices
    end: int

    def __len__(self) -> int:
        return len(self.values)

    def rows(self, rows: Any) -> Chunk:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        labels = None if self.labels is None else self.labels.rows(rows)
        return Chunk(self.values[rows], weights, labels, self.numbers[rows], self.end)

    def after(self, row: int) -> Chunk:
        """The rows with larger numbers."""
        return self.rows(slice(int(np.searchsorted(self.numbers, row, "right")), None))


def scales_of(transform: Any, source: FileReader, choice: ColumnChoice) -> tuple[dict[str, Transform], list[str]]:
    """The transform of each transformed column, and notes."""
    upright = frozenset(title for title, name in zip(choice.titles, choice.names, strict=True) if name in source.upright)
    return chosen(transform, source.path, choice.titles, upright)


def chunks(
    source: FileReader, choice: ColumnChoice, options: ReadOptions, single: bool, rows: int, start: int = 0
) -> Iterator[Chunk]:
    """The complete, transformed rows of a file, from the block with row ``start`` (counted from 0) on."""
    scales, _ = scales_of(options.transform, source, choice)
    names = [*choice.names, *([] if choice.weight is None else [choice.weight])]
    for block in source.blocks(names, [] if choice.group is None else [choice.group], rows, start):
        chunk = _stacked(source, block, choice, single)
        complete = np.asarray(np.isfinite(chunk.values).all(axis=1))
        if chunk.weights is not None:
            complete &= np.isfinite(chunk.weights)
        if chunk.labels is not None:
            complete &= chunk.labels.codes >= 0
        if not complete.all():
            _check_incomplete(source, choice, chunk.rows(~complete), options.missing)
            chunk = chunk.rows(complete)
        for position, title in enumerate(choice.titles):
            if title in scales:
                chunk.values[:, position] = scales[title].apply(
                    source.path, title, chunk.values[:, position], chunk.numbers - 1 + source.first_row
                )
        yield chunk


def _stacked(source: FileReader, block: Block, choice: ColumnChoice, single: bool) -> Chunk:
    """A block as one array; its last column has the weights, if there are any."""
    numbers = np.arange(block.first + 1, block.end + 1)
    values = np.empty((len(numbers), len(choice.names)), np.float32 if single else np.float64)
    for position, (name, title) in enumerate(zip(choice.names, choice.titles, strict=True)):
        merged = source.merged(name, block.columns[position])
        if merged is not None:
            raise FileError(
                f"{source.path}: column {title!r} has the integers {merged[0]} and {merged[1]}, which float64 makes one number; "
                f"{SUBTRACT}"
            )
        values[:, position] = block.columns[position]
    weights = None if choice.weight is None else np.asarray(block.columns[-1], np.float64)
    return Chunk(values, weights, block.labels[0] if block.labels else None, numbers, block.end)


def _check_incomplete(source: FileReader, choice: ColumnChoice, chunk: Chunk, missing: str) -> None:
    """Raise an error for infinite values in incomplete rows, and for missing ones unless such rows are dropped."""
    titles = [*choice.titles, *([] if choice.weight is None else [choice.weight])]
    cells = chunk.values if chunk.weights is None else np.column_stack([chunk.values, chunk.weights])
    infinite, numbers = np.argwhere(np.isinf(cells)), chunk.numbers - 1 + source.first_row
    if len(infinite):
        row, column = infinite[0]
        raise FileError(
            f"{source.path}: column {titles[column]!r} must be finite, got {cells[row, column]} in row {numbers[row]}; "
            "correct it, or delete the row from the file"
        )
    if missing == "refuse":
        lacking = np.flatnonzero(np.isnan(cells[0]))
        name = source.stored_name(titles[lacking[0]]) if len(lacking) else choice.group
        raise FileError(
            f"{source.path}: column {name!r} has no value in row {numbers[0]}; fill it, or leave such rows out ({source.drop_rows})"
        )


class TableBuilder:
    """Chunks into one table: filled directly if the number of rows is known, otherwise copied at the end.

    If the table and the work on it do not fit in memory, an error is raised before allocation, or as soon as the rows exceed it.
    """

    def __init__(self, path: str, rows: int | None, choice: ColumnChoice, single: bool, work: Work) -> None:
        self._dtype = np.dtype(np.float32 if single else np.float64)
        self._width, self._is_weighted = len(choice.titles), choice.weight is not None
        self._work = work
        self._row_size = self._width * (self._dtype.itemsize + work.number) + 8 * self._is_weighted + work.row
        self._values: Numbers | None = None
        self._weights: Numbers | None = None
        if rows is not None:
            self._check_room(path, rows)
            self._allocate(rows)
        self._kept: list[Chunk] = []
        self._labels = None if choice.group is None else LabelDictionary()
        self.rows = 0

    def _allocate(self, rows: int) -> None:
        self._values = np.empty((rows, self._width), self._dtype)
        self._weights = np.empty(rows) if self._is_weighted else None

    def _check_room(self, path: str, rows: int) -> None:
        check_room(path, float(rows) * self._row_size, self._work.what, self._work.way_out)

    def add(self, path: str, chunk: Chunk) -> None:
        """Add a chunk."""
        if self._labels is not None and chunk.labels is not None:
            self._labels.add(chunk.labels)
        end = self.rows + len(chunk)
        if self._values is None:
            self._check_room(path, end)
            self._kept.append(chunk)
        elif end > len(self._values):
            raise FileError(f"{path}: holds more rows than it says; it is damaged")
        else:
            self._copy(chunk, self.rows)
        self.rows = end

    def _copy(self, chunk: Chunk, start: int) -> None:
        if self._values is not None:
            self._values[start : start + len(chunk)] = chunk.values
        if self._weights is not None:
            self._weights[start : start + len(chunk)] = chunk.weights

    def finish(self, path: str, may_be_empty: bool = False) -> tuple[Numbers, Numbers | None, Numbers | None]:
        """Values, weights and groups of all rows."""
        if not self.rows and not may_be_empty:
            raise FileError(f"{path}: has no rows to read")
        if self._values is None:
            self._allocate(self.rows)
        end = self.rows
        while self._kept:  # each chunk is freed once it is copied
            chunk = self._kept.pop()
            end -= len(chunk)
            self._copy(chunk, end)
        groups = None if self._labels is None else self._labels.array()
        weights = None if self._weights is None else self._weights[: self.rows]
        return np.asarray(self._values)[: self.rows], weights, groups
