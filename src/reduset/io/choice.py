"""Which columns are read: those asked for, found by name or alias and checked to hold numbers; or all that hold numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from reduset.io.reader import NUMERIC, SINGLE, FileReader, ReadOptions, can_encode, is_date
from reduset.io.table import FileError, listed, nearest

MOST_NAMED = 12  # columns of text, each in a note


@dataclass(frozen=True)
class ColumnChoice:
    """The columns read of a file: its own names of them, and how they are called in the table; weights and groups."""

    names: tuple[str, ...]
    titles: tuple[str, ...]
    weight: str | None
    group: str | None
    single: bool
    notes: tuple[str, ...]


def choose(source: FileReader, options: ReadOptions) -> ColumnChoice:
    """The columns of a file that are to be read."""
    weight = _beside(source, options.weight_column, "weight_column")
    group = _beside(source, options.group_column, "group_column")
    if weight is not None:
        check_numbers(source, weight)
    notes: list[str] = []
    if options.columns is not None:
        names = _asked_for(source, options.columns)
    else:
        numbers = [name for name, kind in source.kinds.items() if kind in NUMERIC and name not in (weight, group)]
        names = [name for name in numbers if name not in source.unasked]
        if numbers and not names:
            whats = " and ".join(dict.fromkeys(source.unasked[name] for name in numbers))
            raise FileError(f"{source.path}: holds nothing but {whats}; to read it name its columns (columns=): {listed(numbers)}")
        if not names:
            held = [f"{name} ({kind})" for name, kind in source.kinds.items()]
            raise FileError(f"{source.path}: holds no column of numbers to read; it has {listed(held) or 'none'}")
        unnoted = (weight, group, *options.unused, *source.unnoted)
        others = [name for name, kind in source.kinds.items() if kind not in NUMERIC and name not in unnoted]
        notes = [f"left out, for they hold no numbers: {listed(others)}"] if others else []
        unasked = [name for name in numbers if name in source.unasked and name not in source.unnoted]
        for what in dict.fromkeys(source.unasked[name] for name in unasked):
            some = [name for name in unasked if source.unasked[name] == what]
            notes.append(f"left out unless named, for {'it is' if len(some) == 1 else 'they are'} {what}: {listed(some)}")
    notes += [f"{name} {why} and is not used" for name, why in list(options.unused.items())[:MOST_NAMED]]
    if len(options.unused) > MOST_NAMED:
        notes.append(f"{len(options.unused) - MOST_NAMED} more columns of text have too many categories and are not used")
    single = all(source.kinds[name] == SINGLE for name in names)
    return ColumnChoice(tuple(names), tuple(options.columns or names), weight, group, single, tuple(notes))


def choose_alike(source: FileReader, options: ReadOptions, first: ColumnChoice, first_path: str) -> ColumnChoice:
    """The same columns of another file; where none were asked for, it must have the same ones."""
    mine = choose(source, replace(options, weight_column=first.weight, group_column=first.group))
    if options.columns is not None:
        return mine
    for name in first.names:
        if name not in mine.names:
            seen = f"holds {source.kinds[name]} in column {name!r}" if name in source.kinds else f"has no column {name!r}"
            raise FileError(f"{source.path}: {seen}, unlike {first_path}; name the columns that all files have (columns=)")
    more = [name for name in mine.names if name not in first.names]
    if more:
        raise FileError(f"{source.path}: has the column {more[0]!r}, unlike {first_path}; name the columns to read (columns=)")
    return replace(mine, names=first.names, titles=first.titles)


def _asked_for(source: FileReader, columns: Sequence[str]) -> list[str]:
    """The file's own names of columns, each of numbers and named once."""
    for name in columns:
        if name in source.aside and name not in source.kinds and name not in source.aliases:
            raise FileError(f"{source.path}: {name!r} is no column of the points; it may be the weight_column or group_column")
    names = [_own_name(source, name, [*source.kinds]) for name in columns]
    for name in names:
        check_numbers(source, name)
    for title, name in zip(columns, names, strict=True):
        if names.count(name) > 1:
            raise FileError(f"{source.path}: {title!r} is another name of column {name!r}, which is read already; leave it out")
    return names


def _beside(source: FileReader, name: Any, parameter: str) -> str | None:
    """The file's own name of the column of weights or groups."""
    if name is not None and not isinstance(name, str):
        raise TypeError(f"{parameter} must be a column's name, got {name!r}")
    return None if name is None else _own_name(source, name, [*source.kinds, *source.aside], f" for {parameter}")


def _own_name(source: FileReader, name: str, columns: list[str], purpose: str = "") -> str:
    """A column by its name or alias."""
    if name in columns:
        return name
    if name in source.aliases:
        return source.aliases[name]
    known = [*columns, *source.aliases]
    raise FileError(f"{source.path}: no column {name!r}{purpose}{nearest(name, known)}; it has {listed(known)}")


def check_numbers(source: FileReader, name: str) -> None:
    """Refuse a column that holds no numbers, with the first entry that is none."""
    kind = (source.kinds | source.aside)[name]
    if kind in NUMERIC:
        return
    for row, entry in enumerate(source.texts(name), 1):
        if entry:
            way = f"{name}={'days' if is_date(kind) else 'onehot'}"
            way_out = f"encode it (encode={way!r}), or choose other columns" if can_encode(kind) else "choose other columns"
            raise FileError(f"{source.path}: column {name!r} must hold numbers, got {entry[:40]!r} in row {row}; {way_out}")
    raise FileError(f"{source.path}: column {name!r} must hold numbers, and holds {kind} without any entry; choose other columns")
