"""The columns to read: those asked for, by name or alias, or all that hold numbers; and those that look like identifiers.

A column looks like an identifier if it holds integers that rise, or fall, from each row to the next in the first rows. A clock or a
sorted amount looks the same, so it is read with a note, or omitted with a note by identifiers="omit". That option also finds
permutations: integers without gaps, each once. It costs another pass over columns with unique first rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reduset.io.reader import NUMERIC, ROWS, SINGLE, FileReader, Numbers, ReadOptions, can_encode, is_date
from reduset.io.table import FileError, listed, nearest

MAX_NAMED = 12  # columns of text that notes list one by one
MIN_ROWS = 20  # fewer rows may be sorted by chance
MIN_PERMUTED = 100  # rows; ranks and page numbers of fewer are common
CHECKED_ROWS = 4096
MAX_EXACT = 1 << 53  # float64 represents all smaller integers


@dataclass(frozen=True)
class ColumnChoice:
    """The columns to read: their names in the file and in the table, the columns of weights and groups, and notes."""

    names: tuple[str, ...]
    titles: tuple[str, ...]
    weight: str | None
    group: str | None
    single: bool
    notes: tuple[str, ...]


def choose(source: FileReader, options: ReadOptions) -> ColumnChoice:
    """The columns of a file to read."""
    weight = _extra_column(source, options.weight_column, "weight_column")
    group = _extra_column(source, options.group_column, "group_column")
    if weight is not None:
        check_numbers(source, weight)
    notes: list[str] = []
    if options.columns is not None:
        names = _asked_for(source, options.columns)
    else:
        numeric = [name for name, kind in source.kinds.items() if kind in NUMERIC and name not in (weight, group)]
        names = [name for name in numeric if name not in source.unasked]
        if numeric and not names:
            reasons = " and ".join(dict.fromkeys(source.unasked[name] for name in numeric))
            raise FileError(
                f"{source.path}: holds nothing but {reasons}; to read it name its columns (columns=): {listed(numeric)}"
            )
        if not names:
            held = [f"{name} ({kind})" for name, kind in source.kinds.items()]
            raise FileError(f"{source.path}: holds no column of numbers to read; it has {listed(held) or 'none'}")
        unnoted = (weight, group, *options.unused, *source.unnoted)
        others = [name for name, kind in source.kinds.items() if kind not in NUMERIC and name not in unnoted]
        notes = [f"columns without numbers are omitted: {listed(others)}"] if others else []
        by_reason: dict[str, list[str]] = {}
        for name in numeric:
            if name in source.unasked and name not in source.unnoted:
                by_reason.setdefault(source.unasked[name], []).append(name)
        for reason, some in by_reason.items():
            notes.append(f"omitted by default, {reason}: {listed(some)}")
    notes += [f"{name} {reason} and is not used" for name, reason in list(options.unused.items())[:MAX_NAMED]]
    if len(options.unused) > MAX_NAMED:
        notes.append(f"{len(options.unused) - MAX_NAMED} more columns of text have too many categories and are not used")
    single = all(source.kinds[name] == SINGLE for name in names)
    return ColumnChoice(tuple(names), tuple(options.columns or names), weight, group, single, tuple(notes))


def choose_alike(source: FileReader, options: ReadOptions, first: ColumnChoice, first_path: str) -> ColumnChoice:
    """The same columns of another file. If none were asked for, both files must have the same ones."""
    choice = choose(source, replace(options, weight_column=first.weight, group_column=first.group))
    if options.columns is not None:
        return choice
    for name in first.names:
        if name not in choice.names:
            fault = f"holds {source.kinds[name]} in column {name!r}" if name in source.kinds else f"has no column {name!r}"
            raise FileError(f"{source.path}: {fault}, unlike {first_path}; name the columns that all files have (columns=)")
    more = [name for name in choice.names if name not in first.names]
    if more:
        raise FileError(f"{source.path}: has the column {more[0]!r}, unlike {first_path}; name the columns to read (columns=)")
    return replace(choice, names=first.names, titles=first.titles)


def _asked_for(source: FileReader, columns: Sequence[str]) -> list[str]:
    """The file's names of columns, which must hold numbers and be distinct."""
    for name in columns:
        if name in source.aside and name not in source.kinds and name not in source.aliases:
            raise FileError(f"{source.path}: {name!r} is no column of the points; it may be the weight_column or group_column")
    names = [_stored_name(source, name, [*source.kinds]) for name in columns]
    for title, name in zip(columns, names, strict=True):
        check_numbers(source, name)
        if names.count(name) > 1:
            raise FileError(f"{source.path}: {title!r} is another name of column {name!r}, which is read already; leave it out")
    return names


def _extra_column(source: FileReader, name: Any, parameter: str) -> str | None:
    """The file's name of the column of weights or groups."""
    if name is not None and not isinstance(name, str):
        raise TypeError(f"{parameter} must be a column's name, got {name!r}")
    return None if name is None else _stored_name(source, name, [*source.kinds, *source.aside], f" for {parameter}")


def _stored_name(source: FileReader, name: str, columns: list[str], purpose: str = "") -> str:
    if name in columns:
        return name
    if name in source.aliases:
        return source.aliases[name]
    known = [*columns, *source.aliases]
    raise FileError(f"{source.path}: no column {name!r}{purpose}{nearest(name, known)}; it has {listed(known)}")


def check_numbers(source: FileReader, name: str) -> None:
    """Raise an error for a column without numbers, with its first entry."""
    kind = (source.kinds | source.aside)[name]
    if kind in NUMERIC:
        return
    for row, entry in enumerate(source.texts(name), 1):
        if entry:
            way = f"{name}={'days' if is_date(kind) else 'onehot'}"
            way_out = f"encode it (encode={way!r}), or choose other columns" if can_encode(kind) else "choose other columns"
            raise FileError(f"{source.path}: column {name!r} must hold numbers, got {entry[:40]!r} in row {row}; {way_out}")
    raise FileError(f"{source.path}: column {name!r} must hold numbers, and holds {kind} without any entry; choose other columns")


def without_identifiers(source: FileReader, choice: ColumnChoice, omit: bool) -> ColumnChoice:
    """The choice with a note on identifiers, and without them if ``omit``."""
    identifiers = _identifiers(source, choice, omit)
    if not identifiers:
        return choice
    one = len(identifiers) == 1
    looks = f"{listed(identifiers)} {'looks like an identifier' if one else 'look like identifiers'}"
    kept = [(name, title) for name, title in zip(choice.names, choice.titles, strict=True) if title not in identifiers]
    if not omit or not kept:
        note = f"{looks} (whole numbers that go on from row to row); choose columns without {'it' if one else 'them'}"
        return replace(choice, notes=(*choice.notes, note))
    names, titles = zip(*kept, strict=True)
    single = all(source.kinds[name] == SINGLE for name in names)
    note = f"{looks} and {'is' if one else 'are'} not used; identifiers='keep' uses {'it' if one else 'them'}"
    return replace(choice, names=names, titles=titles, single=single, notes=(*choice.notes, note))


def _identifiers(source: FileReader, choice: ColumnChoice, permuted: bool) -> list[str]:
    """Titles of columns that look like identifiers in the first rows; with ``permuted``, also permutations of integers."""
    titles = {name: title for name, title in zip(choice.names, choice.titles, strict=True) if name not in source.upright}
    first = next(source.blocks(list(titles), [], CHECKED_ROWS), None) if titles and source.may_number_rows else None
    if first is None:
        return []
    heads = {name: np.asarray(column)[:CHECKED_ROWS] for name, column in zip(titles, first.columns, strict=True)}
    names = {name for name, head in heads.items() if len(head) >= MIN_ROWS and _is_whole(head) and _is_sorted(head)}
    if permuted:
        unique = [
            name
            for name, head in heads.items()
            if name not in names
            and len(head) >= MIN_PERMUTED
            and _is_within(head, source.rows)
            and len(np.unique(head)) == len(head)
        ]
        names |= _permutations(source, unique)
    return [title for name, title in titles.items() if name in names]


def _is_sorted(column: Numbers) -> bool:
    return bool((column[1:] > column[:-1]).all() or (column[1:] < column[:-1]).all())


def _is_whole(column: Numbers) -> bool:
    return column.dtype.kind in "iuf" and bool(np.isfinite(column).all() and (column == np.rint(column)).all())


def _is_within(column: Numbers, rows: int | None) -> bool:
    """Whether all are integers with a range below the number of rows."""
    width = MAX_EXACT if rows is None else rows
    return _is_whole(column) and float(column.max()) - float(column.min()) < width and float(np.abs(column).max()) < MAX_EXACT


def _permutations(source: FileReader, names: Sequence[str]) -> set[str]:
    """The columns that hold all integers of their range, each once."""
    sums: dict[str, PowerSums] = {}
    candidates = set(names)
    for block in source.blocks(names, [], ROWS) if names else ():
        for name, values in zip(names, block.columns, strict=True):
            column = np.asarray(values)
            if name in candidates and _is_within(column, source.rows):
                sums.setdefault(name, PowerSums(int(column[0]))).add(column)
            else:
                candidates.discard(name)
        if not candidates:
            break
    return {name for name in candidates if name in sums and sums[name].is_permutation}


class PowerSums:
    """Count, range and the first three power sums of integers minus ``first``. Sums are modulo 2⁶⁴."""

    def __init__(self, first: int) -> None:
        self._first, self._count = first, 0
        self._low = self._high = 0
        self._sums = np.zeros(3, np.uint64)

    def add(self, column: Numbers) -> None:
        """Add integers."""
        shifted = column.astype(np.int64) - self._first
        self._count += len(shifted)
        self._low, self._high = min(self._low, int(shifted.min())), max(self._high, int(shifted.max()))
        self._sums += np.power.outer(shifted.astype(np.uint64), np.arange(1, 4, dtype=np.uint64)).sum(axis=0)

    @property
    def is_permutation(self) -> bool:
        """Whether the sums equal the sums of all integers of the range."""
        if self._high - self._low + 1 != self._count:
            return False
        expected = [(high - low) % (1 << 64) for high, low in zip(_sums_to(self._high), _sums_to(self._low - 1), strict=True)]
        return expected == self._sums.tolist()


def _sums_to(n: int) -> tuple[int, int, int]:
    """Σ k, Σ k² and Σ k³ for k = 1 … n, as polynomials, which also hold for negative n."""
    triangular = n * (n + 1) // 2
    return triangular, n * (n + 1) * (2 * n + 1) // 6, triangular**2
