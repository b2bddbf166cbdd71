"""Files that are larger than the memory: tables of so many rows, one after the other, the next read while this one is at work.

Memory holds two batches and what a reader needs for a block of rows, whatever the number and the size of the files.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from reduset._validate import whole
from reduset.io.gathering import Gathering, Part, parts
from reduset.io.plans import ROWS, Options, Plan, notes_of, options_of, plans_of, total_rows
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
    rows : of every batch but the last.
    total : rows of all files, or None where some file does not say (CSV, TSV, Arrow streams).
    position : how many rows of the files lie before the next batch, those left out for missing values included. ``start=position``
        of another iterator goes on from here, with the same numbers to the last bit.
    """

    def __init__(self, plans: list[Plan], options: Options, rows: int | None, start: int) -> None:
        first = plans[0]
        self.rows = max(1, min(ROWS, MOST // len(first.choice.titles))) if rows is None else rows
        self.columns, self.scales = first.choice.titles, first.scales
        self.sources = tuple(plan.path for plan in plans)
        self.total = total_rows(plans)
        if self.total is not None and start > self.total:
            raise ValueError(f"start must be at most {self.total:,}, the number of rows; got {start:,}")
        self.position = start
        self._plans = plans
        self._tables = ahead(_tables(plans, options, self.rows, start))

    def __next__(self) -> Table:
        position, table = next(self._tables)
        self.position = position
        if table is None:  # rows at the end that all lack a value
            raise StopIteration
        return table

    def notes(self, dropped: int = 0) -> tuple[str, ...]:
        """What was done in reading, in words, with so many rows left out."""
        return notes_of(self._plans, dropped)

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
    options = options_of(**same)
    return Batches(plans_of(paths, options), options, rows, start)


def ahead(items: Iterator[Item]) -> Generator[Item, None, None]:
    """The same items, each made in another thread while the one before is at work; what goes wrong there is raised here."""
    with ThreadPoolExecutor(1, "reduset-read") as reader:
        coming = reader.submit(next, items, END)
        while (item := coming.result()) is not END:
            coming = reader.submit(next, items, END)
            yield item


@dataclass
class _Pending:
    """A batch in the making."""

    gathering: Gathering
    plans: list[Plan] = field(default_factory=list)


def _tables(plans: list[Plan], options: Options, rows: int, start: int) -> Iterator[tuple[int, Table | None]]:
    """Batches, each with the number of rows of the files up to its end; None in place of an empty one where some came before."""
    choice, single = plans[0].choice, all(plan.choice.single for plan in plans)
    position, begun = start, start > 0  # rows up to the end of the last batch

    def fresh() -> _Pending:
        return _Pending(Gathering(rows, choice, single))

    def table(made: _Pending, end: int) -> Table:
        values, weights, groups = made.gathering.finish(plans[0].path)
        dropped = end - position - len(values)
        sources = tuple(plan.path for plan in made.plans)
        return Table(values, choice.titles, weights, groups, sources, notes_of(made.plans, dropped), dropped, plans[0].scales)

    pending, before, reached = fresh(), 0, start  # rows in the files before this one; rows up to which all is in a batch
    for plan in plans:
        if plan.rows is not None and before + plan.rows <= start:
            before += plan.rows
            continue
        end, skipped = 0, max(0, start - before)
        for part in _parts_of(plan, options, single, rows, skipped):
            here = int(np.searchsorted(part.numbers, skipped, "right"))
            while here < len(part.values):
                if pending.gathering.rows == rows:
                    yield reached, table(pending, reached)
                    position, begun, pending = reached, True, fresh()
                stop = min(len(part.values), here + rows - pending.gathering.rows)
                pending.gathering.add(plan.path, part.rows(slice(here, stop)))
                if plan not in pending.plans[-1:]:
                    pending.plans.append(plan)
                here, reached = stop, before + int(part.numbers[stop - 1])
            end = part.end
        before += end if plan.rows is None else plan.rows
    last = max(before, start)
    if pending.gathering.rows or not begun:
        if not pending.gathering.rows and last:
            raise FileError(f"{plans[0].path}: no rows are left, for each lacks a value; choose fewer columns")
        yield last, table(pending, last)
    elif last > position:
        yield last, None


def _parts_of(plan: Plan, options: Options, single: bool, rows: int, skipped: int) -> Iterator[Part]:
    block = min(rows, plan.block_rows)
    start = 0 if plan.rows is None else skipped  # the rows of a file that does not say how many it has must be counted
    return parts(plan.open(), plan.choice, options.transform, options.missing, single, block, start)
