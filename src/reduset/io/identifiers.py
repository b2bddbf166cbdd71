"""Identifier columns, which number rows instead of measuring something: distances along them have no meaning.

A column is named where the first rows of a file hold whole numbers in it that rise, or fall, from each row to the next: they are
then unique too. Since a clock or a sorted amount looks the same, it is read with a note, or omitted with a note if asked for.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reduset.io.choice import ColumnChoice
from reduset.io.source import SINGLE, Numbers, Source
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


def without_identifiers(source: Source, choice: ColumnChoice, omit: bool) -> ColumnChoice:
    """The choice with a note on columns that look like identifiers, and without them if they are to be omitted."""
    found = identifiers(source, choice)
    if not found:
        return choice
    seen, it = ("looks like an identifier", "it") if len(found) == 1 else ("look like identifiers", "them")
    kept = [(name, title) for name, title in zip(choice.names, choice.titles, strict=True) if title not in found]
    if not omit or not kept:
        note = f"{listed(found)} {seen} (whole numbers that go on from row to row); choose columns without {it}"
        return replace(choice, notes=(*choice.notes, note))
    names, titles = zip(*kept, strict=True)
    single = all(source.kinds[name] == SINGLE for name in names)
    note = f"{listed(found)} {seen} and {'is' if len(found) == 1 else 'are'} not used; name the columns to use {it}"
    return replace(choice, names=names, titles=titles, single=single, notes=(*choice.notes, note))
