"""Columns that count rows rather than measure something: a note names them, for distances along them mean nothing.

A column is named where the first rows of a file hold whole numbers in it that rise, or fall, from each row to the next: they are
then unique too. It is read all the same, since a clock or a sorted amount looks alike.
"""

from __future__ import annotations

import numpy as np

from reduset.io.choice import ColumnChoice
from reduset.io.source import Numbers, Source
from reduset.io.table import listed

FEWEST = 20  # rows: fewer may well lie in order by chance
LOOKED_AT = 4096  # rows


def identifiers(source: Source, choice: ColumnChoice) -> list[str]:
    """The columns among those chosen that look like identifiers, by the first rows."""
    if not source.may_number_rows:
        return []
    numbers = [(name, title) for name, title in zip(choice.names, choice.titles, strict=True) if name not in source.upright]
    first = next(source.blocks([name for name, _ in numbers], [], LOOKED_AT), None) if numbers else None
    if first is None:
        return []
    found = zip(numbers, first.columns, strict=True)
    return [title for (_, title), column in found if _counts(np.asarray(column)[:LOOKED_AT])]


def _counts(column: Numbers) -> bool:
    if len(column) < FEWEST or column.dtype.kind not in "iuf" or not np.isfinite(column).all():
        return False
    rising, falling = column[1:] > column[:-1], column[1:] < column[:-1]
    return bool((rising.all() or falling.all()) and (column == np.rint(column)).all())


def told_identifiers(source: Source, choice: ColumnChoice) -> tuple[str, ...]:
    """A note on columns that look like identifiers, where there are some."""
    found = identifiers(source, choice)
    if not found:
        return ()
    seen, it = ("looks like an identifier", "it") if len(found) == 1 else ("look like identifiers", "them")
    return (f"{listed(found)} {seen} (whole numbers that go on from row to row); choose columns without {it}",)
