"""Files larger than memory: tables of a fixed number of rows, one after another. The next one is read while one is in use.

Memory holds two batches and a block of rows of a reader. It does not grow with the files.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from reduset._validate import whole
from reduset.io.building import Chunk
from reduset.io.reader import ROWS, options_of
from reduset.io.reading import FilePlan, ReadPlan, notes_of, plan_of
from reduset.io.table import FileError, Table

Item = TypeVar("Item")
END: Any = object()
MAX_NUMBERS = 1 << 22  # in a batch by default
SHARD_NUMBERS = 1 << 22  # in a part of a file, unless one row group has more


class Batches(Iterator[Table]):
    """Tables of a fixed number of rows, one after another, and their common attributes.

    Attributes
    ----------
    columns : names.
    sources : the files.
    scales : transform of each transformed column.
    encoding : encoding of categories and dates, as in `Table`.
    rows : number of rows of every batch but the last.
    total : number of rows of all files; None if unknown (CSV, TSV, Arrow streams).
    position : number of rows of the files before the next batch, dropped rows included. Another iterator with ``start=position``
        continues here with bitwise equal values.
    """

    def __init__(self, plan: ReadPlan, rows: int | None, start: int) -> None:
        self.columns, self.scales, self.encoding = plan.first.choice.titles, plan.first.scales, plan.first.encoding
        self.rows = _default_rows(len(self.columns)) if rows is None else rows
        self.sources = tuple(file.path for file in plan.files)
        self.total = plan.rows
        if self.total is not None and start > self.total:
            raise ValueError(f"start must be at most {self.total:,}, the number of rows; got {start:,}")
        self.position = start
        self._files = plan.files
        self._tables = ahead(_tables(plan, self.rows, start))

    def __next__(self) -> Table:
        position, table = next(self._tables)
        self.position = position
        if table is None:  # the last rows all lack a value
            raise StopIteration
        return table

    def notes(self, dropped: int = 0) -> tuple[str, ...]:
        """The notes on the files, and the given number of dropped rows."""
        return notes_of(self._files, dropped)

    def close(self) -> None:
        """Stop reading."""
        self._tables.close()


class TableFiles:
    """Files with the same columns as one table on disk, which is read in blocks of rows, or row by row number.

    Rows are numbered from 0 over all files in their order, rows with missing values included. Every pass opens the files anew, so
    passes may run one after another or at the same time. `scales`, `encoding` and `in_one_unit` are those of `Table`.
    """

    def __init__(self, plan: ReadPlan) -> None:
        self._plan = plan
        self.columns, self.scales, self.encoding = plan.first.choice.titles, plan.first.scales, plan.first.encoding
        self.sources = tuple(file.path for file in plan.files)
        self.rows = plan.rows  # None for CSV, TSV and Arrow streams until a pass has counted them
        self.in_one_unit = plan.in_one_unit

    def blocks(self, rows: int | None = None, start: int = 0) -> Iterator[Table]:
        """Tables of ``rows`` rows each, the last one shorter, from row ``start`` on.

        A block covers ``len(block) + block.dropped`` rows of the files. ``block.weights`` and ``block.groups`` are its own.
        """
        size = _default_rows(len(self.columns)) if rows is None else rows
        return (table for _, table in _tables(self._plan, size, start) if table is not None)

    def shards(self) -> list[FileShard]:
        """The files in parts of whole row groups, which other processes can read. A file of unknown length is one part."""
        size, shards = max(1, SHARD_NUMBERS // len(self.columns)), []
        for file in self._plan.files:
            plan = ReadPlan([file], self._plan.options)
            cuts: list[Any] = [0]
            for cut in file.cuts or range(size, file.rows or 0, size):
                if cut - cuts[-1] >= size and cut < (file.rows or 0):
                    cuts.append(cut)
            shards += [FileShard(plan, start, stop) for start, stop in pairwise([*cuts, file.rows])]
        return shards

    def take(self, rows: Any) -> Table:
        """The table of the rows with these numbers, which must be ascending. Blocks without such rows are skipped if possible."""
        numbers = np.asarray(rows, np.int64)
        builder, before, at = self._plan.builder(len(numbers)), 0, 0
        for file in self._plan.files:
            end = -1
            while at < len(numbers) and before + end < numbers[at] and (file.rows is None or numbers[at] < before + file.rows):
                end = 0
                for chunk in self._plan.chunks(file, start=0 if file.rows is None else int(numbers[at] - before)):
                    end, last = chunk.end, int(np.searchsorted(numbers, before + chunk.end))
                    wanted = np.isin(chunk.numbers - 1, numbers[at:last] - before, assume_unique=True)
                    builder.add(file.path, chunk.rows(wanted))
                    at = last
                    if at == len(numbers) or (file.rows is not None and numbers[at] - before >= end + ROWS):
                        break  # the rows up to the next one may be skipped
                if file.rows is None:
                    break
            before += file.rows if file.rows is not None else max(end, 0)
        if at < len(numbers):
            raise FileError(f"{self.sources[-1]}: has no row {numbers[at]:,}; all files together have {before:,}")
        return self._plan.table(builder, self._plan.files, len(numbers))

    def notes(self, dropped: int = 0) -> tuple[str, ...]:
        """The notes on the files, and the given number of dropped rows."""
        return notes_of(self._plan.files, dropped)


class FileShard:
    """The rows of a file from ``start`` to ``stop``, or to its end. They are read anew each time."""

    def __init__(self, plan: ReadPlan, start: int, stop: int | None) -> None:
        self._plan, self._start, self._stop = plan, start, stop

    @property
    def name(self) -> str:
        """The file, and the numbers of the first and the last row."""
        rows = "" if self._stop is None else f" (rows {self._start:,} to {self._stop - 1:,})"
        return f"{self._plan.first.path}{rows}"

    def read(self) -> Table:
        """The table of these rows, which may be empty."""
        builder, end = self._plan.builder(None), self._start
        for chunk in self._plan.chunks(self._plan.first, start=self._start):
            stop = chunk.end if self._stop is None else min(chunk.end, self._stop)
            builder.add(self._plan.first.path, chunk.rows((chunk.numbers > self._start) & (chunk.numbers <= stop)))
            end = stop
            if stop == self._stop:
                break
        return self._plan.table(builder, self._plan.files, end - self._start, may_be_empty=True)


def open_files(paths: Any, **options: Any) -> TableFiles:
    """Files with the same columns, opened for several passes; ``options`` are the other arguments of ``read``."""
    return TableFiles(plan_of(paths, options_of(**options), reopens=True))


def _default_rows(columns: int) -> int:
    return max(1, min(ROWS, MAX_NUMBERS // columns))


def batches(paths: Any, *, rows: int | None = None, start: int = 0, **same: Any) -> Batches:
    """Read files in batches of rows, in memory that does not grow with the files.

    A thread reads the next batch while one is in use. It ends with the iterator.

    Parameters
    ----------
    paths : path or list of paths, or a folder, as in ``read``. A batch may span two files.
    rows : rows of all batches but the last; by default 65,536, or fewer for more than 64 columns.
    start : number of rows to skip. Whole files, row groups of Parquet and rows of NPY and FCS are skipped without reading.
    same : other arguments of ``read``.
    """
    if rows is not None:
        whole(rows, "rows", 1)
    whole(start, "start", 0)
    return Batches(plan_of(paths, options_of(**same)), rows, start)


def ahead(items: Iterator[Item]) -> Generator[Item, None, None]:
    """The same items, each computed in another thread while the previous one is in use. Its exceptions are raised here."""
    with ThreadPoolExecutor(1, "reduset-read") as reader:
        coming = reader.submit(next, items, END)
        while (item := coming.result()) is not END:
            coming = reader.submit(next, items, END)
            yield item


def _tables(plan: ReadPlan, size: int, start: int) -> Iterator[tuple[int, Table | None]]:
    """Batches of ``size`` rows, each with the number of rows of the files up to its end, which is ``start`` for the next one.

    A batch is yielded when a further row arrives. So the last batch is known to be the last, and incomplete rows after it count
    towards it. If all rows after ``start`` are incomplete, the batch is None.
    """
    begin = end = last = start  # rows of the files before the batch, up to its last row, and read so far
    builder, files, room = plan.builder(size), list[FilePlan](), size
    for file, chunk in _complete_rows(plan, size, start):
        while len(chunk):
            if not room:
                yield end, plan.table(builder, files, end - begin)
                builder, files, room, begin = plan.builder(size), [], size, end
            added, chunk = chunk.rows(slice(room)), chunk.rows(slice(room, None))
            builder.add(file.path, added)
            room, end = room - len(added), int(added.numbers[-1])
            if file not in files[-1:]:
                files.append(file)
        last = max(last, chunk.end)
    if room < size or not begin:  # an empty table raises an error
        yield last, plan.table(builder, files, last - begin)
    elif last > start:
        yield last, None


def _complete_rows(plan: ReadPlan, size: int, start: int) -> Iterator[tuple[FilePlan, Chunk]]:
    """Complete rows after the first ``start`` ones, file by file, numbered over all files."""
    before = 0  # rows of earlier files
    for file in plan.files:
        count = file.rows
        if count is None or before + count > start:
            skipped = 0 if count is None else max(0, start - before)  # files with unknown length are read from their first row
            end = before
            for chunk in plan.chunks(file, size, skipped):
                chunk = replace(chunk, numbers=chunk.numbers + before, end=chunk.end + before)
                end = chunk.end
                yield file, chunk.after(start)
            count = end - before if count is None else count
        before += count
