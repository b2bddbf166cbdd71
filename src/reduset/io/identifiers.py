"""Identifier columns, which number rows instead of measuring something: distances along them have no meaning.

A column is named where the first rows of a file hold whole numbers in it that rise, or fall, from each row to the next: they are
then unique too. Since a clock or a sorted amount looks the same, it is read with a note, or omitted with a note if asked for. If
identifiers are to be omitted, columns of shuffled numbers are found too: whole numbers of which none is missing and none occurs
twice, from the smallest to the largest. That takes another pass over columns whose first rows are unique.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from reduset.io.choice import ColumnChoice
from reduset.io.reader import SINGLE, FileReader, Numbers
from reduset.io.table import listed

FEWEST = 20  # rows: fewer may well lie in order by chance
FEWEST_SHUFFLED = 100  # rows: in fewer, ranks and numbers of pages are common
LOOKED_AT = 4096  # rows
ROWS = 65536
WRAP = 1 << 64
WIDEST = 1 << 53  # numbers that floating point holds exactly


class PowerSums:
    """The count, the range and the first three power sums of whole numbers, sums modulo 2⁶⁴."""

    def __init__(self, first: int) -> None:
        self.first, self.count = first, 0
        self.low = self.high = 0
        self.powers = [0, 0, 0]

    def add(self, column: Numbers) -> None:
        """Take more of them."""
        apart = column.astype(np.int64) - self.first
        self.count += len(apart)
        self.low, self.high = min(self.low, int(apart.min())), max(self.high, int(apart.max()))
        power = np.ones(len(apart), np.uint64)
        for k in range(3):
            power = power * apart.astype(np.uint64)
            self.powers[k] = (self.powers[k] + int(power.sum())) % WRAP

    @property
    def is_permutation(self) -> bool:
        """Whether they are all whole numbers of their range, each once, in any order."""
        if self.high - self.low + 1 != self.count:
            return False
        expected = [_power_sum(self.high, k) - _power_sum(self.low - 1, k) for k in (1, 2, 3)]
        return [each % WRAP for each in expected] == self.powers


def _power_sum(n: int, power: int) -> int:
    """Σ_{k=1}^{n} k^power as a polynomial of n, which holds for negative n, too."""
    if power == 1:
        return n * (n + 1) // 2
    return n * (n + 1) * (2 * n + 1) // 6 if power == 2 else (n * (n + 1) // 2) ** 2


def identifiers(source: FileReader, choice: ColumnChoice, shuffled: bool = False) -> list[str]:
    """The columns among those chosen that look like identifiers, by the first rows; with ``shuffled``, by all rows."""
    if not source.may_number_rows:
        return []
    numbers = [(name, title) for name, title in zip(choice.names, choice.titles, strict=True) if name not in source.upright]
    first = next(source.blocks([name for name, _ in numbers], [], LOOKED_AT), None) if numbers else None
    if first is None:
        return []
    columns = {name: np.asarray(column)[:LOOKED_AT] for (name, _), column in zip(numbers, first.columns, strict=True)}
    found = {name for name, column in columns.items() if _counts(column)}
    if shuffled:
        unique = [name for name, column in columns.items() if name not in found and _is_unique(column, source.rows)]
        found |= _permutations(source, unique)
    return [title for name, title in numbers if name in found]


def _is_whole(column: Numbers) -> bool:
    if column.dtype.kind not in "iuf" or not np.isfinite(column).all():
        return False
    return bool((column == np.rint(column)).all())


def _counts(column: Numbers) -> bool:
    if len(column) < FEWEST or not _is_whole(column):
        return False
    return bool((column[1:] > column[:-1]).all() or (column[1:] < column[:-1]).all())


def _is_unique(column: Numbers, rows: int | None) -> bool:
    """Whether the first rows may be those of shuffled numbers: unique, and no farther apart than there are rows."""
    if len(column) < FEWEST_SHUFFLED or not _is_within(column, WIDEST if rows is None else rows):
        return False
    return len(np.unique(column)) == len(column)


def _is_within(column: Numbers, width: int) -> bool:
    """Whether all are whole numbers, of a range below a width."""
    return _is_whole(column) and float(column.max()) - float(column.min()) < width and float(np.abs(column).max()) < WIDEST


def _permutations(source: FileReader, names: Sequence[str]) -> set[str]:
    """The columns that hold all whole numbers of their range, each once."""
    sums: dict[str, PowerSums] = {}
    lost: set[str] = set()
    for block in source.blocks(names, [], ROWS) if names else ():
        for name, each in zip(names, block.columns, strict=True):
            column = np.asarray(each)
            if name in lost or not _is_within(column, WIDEST if source.rows is None else source.rows):
                lost.add(name)
                continue
            sums.setdefault(name, PowerSums(int(column[0]))).add(column)
        if len(lost) == len(names):
            break
    return {name for name, each in sums.items() if name not in lost and each.is_permutation}


def without_identifiers(source: FileReader, choice: ColumnChoice, omit: bool) -> ColumnChoice:
    """The choice with a note on columns that look like identifiers, and without them if they are to be omitted."""
    found = identifiers(source, choice, omit)
    if not found:
        return choice
    seen, it = ("looks like an identifier", "it") if len(found) == 1 else ("look like identifiers", "them")
    kept = [(name, title) for name, title in zip(choice.names, choice.titles, strict=True) if title not in found]
    if not omit or not kept:
        note = f"{listed(found)} {seen} (whole numbers that go on from row to row); choose columns without {it}"
        return replace(choice, notes=(*choice.notes, note))
    names, titles = zip(*kept, strict=True)
    single = all(source.kinds[name] == SINGLE for name in names)
    note = f"{listed(found)} {seen} and {'is' if len(found) == 1 else 'are'} not used; identifiers='keep' uses {it}"
    return replace(choice, names=names, titles=titles, single=single, notes=(*choice.notes, note))
