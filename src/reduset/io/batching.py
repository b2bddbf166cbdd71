"""Files that are larger than the memory: tables of so many rows, one after the other, the next read while this one is at work.

Memory holds two batches and what a reader needs for a block of rows, whatever the number and the size of the files.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from reduset._validate import whole
from reduset.io.building import Chunk
from reduset.io.plans import ROWS, FilePlan, ReadPlan, notes_of, plan_of
from reduset.io.source import options_of
from reduset.io.table import Table

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
        self.rows = max(1, min(ROWS, MOST // len(self.columns))) if rows is None else rows
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
