"""Files that are larger than the memory: tables of so many rows, one after the other, the next read while this one is at work.

Memory holds two batches and what a reader needs for a block of rows, whatever the number and the size of the files.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from reduset._validate import whole
from reduset.io.building import Chunk
from reduset.io.plans import ROWS, FilePlan, ReadPlan, notes_of, plan_of
from reduset.io.reader import options_of
from reduset.io.table import FileError, Table

Item = TypeVar("Item")
END: Any = object()
MOST = 1 << 22  # numbers in a batch, if nothing else is said


class Batches(Iterator[Table]):
    """Tables of so many rows, one after the other, and what is known of all of them.

    Attributes
    ----------
    columns : names.
    sources : the files.
    scales : the transform of each column that has one.
    encoding : how columns of categories and dates became numbers, as in `Table`.
    rows : of every batch but the last.
    total : rows of all files, or None where some file does not say (CSV, TSV, Arrow streams).
    position : how many rows of the files lie before the next batch, those left out for missing values included. ``start=position``
        of another iterator goes on from here, with the same numbers to the last bit.
    """

    def __init__(self, plan: ReadPlan, rows: int | None, start: int) -> None:
        self.columns, self.scales, self.encoding = plan.first.choice.titles, plan.first.scales, plan.first.encoding
        self.rows = default_rows(len(self.columns)) if rows is None else rows
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
        if table is None:  # rows at the end that all lack a value
            raise StopIteration
        return table

    def notes(self, dropped: int = 0) -> tuple[str, ...]:
        """What was done in reading, in words, with so many rows left out."""
        return notes_of(self._files, dropped)

    def close(self) -> None:
        """Read no further."""
        self._tables.close()


class TableFiles:
    """Files with the same columns as one table on disk, which is read in blocks of rows, or row by row number.

    Rows are numbered from 0 over all files in their order, rows with missing values included. Every pass opens the files anew, so
    passes may run one after another or at the same time.

    Attributes
    ----------
    columns : names of the d columns.
    sources : the files.
    rows : number of rows of all files; None for CSV, TSV and Arrow streams, whose rows are known after a pass.
    scales, encoding, in_one_unit : as in `Table`.
    """

    def __init__(self, plan: ReadPlan) -> None:
        self._plan = plan
        self.columns, self.scales, self.encoding = plan.first.choice.titles, plan.first.scales, plan.first.encoding
        self.sources = tuple(file.path for file in plan.files)
        self.rows = plan.rows
        self.in_one_unit = plan.in_one_unit

    def blocks(self, rows: int | None = None, start: int = 0) -> Iterator[Table]:
        """Tables of ``rows`` rows each, the last one shorter, from row ``start`` on.

        A block covers ``len(block) + block.dropped`` rows of the files. ``block.weights`` and ``block.groups`` are its own.
        """
        size = default_rows(len(self.columns)) if rows is None else rows
        return (table for _, table in _tables(self._plan, size, start) if table is not None)

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
        """What was done while reading, with this number of omitted rows."""
        return notes_of(self._plan.files, dropped)


def open_files(paths: Any, **options: Any) -> TableFiles:
    """Files with the same columns, opened for several passes; ``options`` are the other arguments of ``read``."""
    return TableFiles(plan_of(paths, options_of(**options)))


def default_rows(columns: int) -> int:
    """The rows of a block whose size is not given."""
    return max(1, min(ROWS, MOST // columns))


def batches(paths: Any, *, rows: int | None = None, start: int = 0, **same: Any) -> Batches:
    """Read files so many rows at a time that memory does not grow with them.

    Parameters
    ----------
    paths : one path or several, or a folder, as in ``read``. A batch may hold the end of one file and the beginning of the next:
        all have ``rows`` rows but the last.
    rows : of a batch; 65,536 if not given, fewer of more than 64 columns.
    start : rows of the files to begin after: whole files, groups of rows of Parquet and rows of NPY and FCS are skipped, others are
        read and left out.
    same : other arguments are those of ``read``.

    A thread reads the next batch while this one is at work; it ends with the iterator.
    """
    if rows is not None:
        whole(rows, "rows", 1)
    whole(start, "start", 0)
    return Batches(plan_of(paths, options_of(**same)), rows, start)


def ahead(items: Iterator[Item]) -> Generator[Item, None, None]:
    """The same items, each made in another thread while the one before is at work; what goes wrong there is raised here."""
    with ThreadPoolExecutor(1, "reduset-read") as reader:
        coming = reader.submit(next, items, END)
        while (item := coming.result()) is not END:
            coming = reader.submit(next, items, END)
            yield item


class _Batch:
    """A batch in the making. Rows are counted through all files: ``begin`` lie before it, ``end`` up to its last row."""

    def __init__(self, plan: ReadPlan, size: int, begin: int) -> None:
        self.begin = self.end = begin
        self._plan, self._builder = plan, plan.builder(size)
        self._files: list[FilePlan] = []
        self.room = size

    def take(self, file: FilePlan, chunk: Chunk) -> Chunk:
        """Take as many rows of a chunk as there is room for; the others."""
        taken, left = chunk.rows(slice(self.room)), chunk.rows(slice(self.room, None))
        self._builder.add(file.path, taken)
        self.room -= len(taken)
        self.end = int(taken.numbers[-1])
        if file not in self._files[-1:]:
            self._files.append(file)
        return left

    def table(self, end: int) -> Table:
        """The table of all rows up to ``end``; those that are not in it lacked a value."""
        return self._plan.table(self._builder, self._files, end - self.begin)


def _tables(plan: ReadPlan, size: int, start: int) -> Iterator[tuple[int, Table | None]]:
    """Batches of so many rows, each with the number of rows of the files up to its end: what ``start`` must be to go on after it.

    A batch is given away when a row comes that has no room in it. So the last one is known to be the last, and rows after it that
    lack a value are counted with it. Where nothing but such rows follows ``start`` there is None in place of a batch.
    """
    batch, last = _Batch(plan, size, start), start
    for file, chunk in _complete_rows(plan, size, start):
        while len(chunk):
            if not batch.room:
                yield batch.end, batch.table(batch.end)
                batch = _Batch(plan, size, batch.end)
            chunk = batch.take(file, chunk)
        last = max(last, chunk.end)
    if batch.room < size or not batch.begin:  # refused by the table where there is none, not even before it
        yield last, batch.table(last)
    elif last > start:
        yield last, None


def _complete_rows(plan: ReadPlan, size: int, start: int) -> Iterator[tuple[FilePlan, Chunk]]:
    """Rows that lack nothing, file by file, counted through all files, without the first ``start``."""
    before = 0  # rows of the files before this one
    for file in plan.files:
        count = file.rows
        if count is None or before + count > start:
            # what a file does not say must be counted: then it is read from its first row
            skipped = 0 if count is None else max(0, start - before)
            end = before
            for chunk in plan.chunks(file, size, skipped):
                chunk = chunk.counted_from(before)
                end = chunk.end
                yield file, chunk.after(start)
            count = end - before if count is None else count
        before += count
