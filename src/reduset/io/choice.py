"""Which columns are read: those asked for, found by name or alias and checked to hold numbers; or all that hold numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reduset.io.source import FLAG, NUMERIC, SINGLE, Source, left_out
from reduset.io.table import FileError, listed, nearest


@dataclass(frozen=True)
class Choice:
    """What is read of a file: its own names of the columns, and how they are called in the table; weights and groups."""

    names: tuple[str, ...]
    titles: tuple[str, ...]
    weight: str | None
    group: str | None
    single: bool
    notes: tuple[str, ...]


def asked(columns: Any) -> list[str] | None:
    """The names asked for, as a list without repetition."""
    if columns is None:
        return None
    names = [columns] if isinstance(columns, str) else list(columns)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"columns must be names, got {name!r}; the columns of plain arrays are called x0, x1, …")
    twice = [name for name in names if names.count(name) > 1]
    if twice or not names:
        raise ValueError(
            f"columns must be at least one name, each once; got {twice[0]!r} twice" if twice else "columns must not be empty"
        )
    return names


def choose(source: Source, columns: list[str] | None, weight: str | None, group: str | None) -> Choice:
    """The columns of a file that are to be read."""
    weight, group = _beside(source, weight, "weight_column"), _beside(source, group, "group_column")
    if weight is not None:
        check_numbers(source, weight)
    notes: list[str] = []
    if columns is None:
        names = [name for name, kind in source.kinds.items() if kind in NUMERIC and name not in (weight, group)]
        titles = names
        notes = left_out(source.kinds, names, (weight, group))
        if not names:
            held = [f"{name} ({kind})" for name, kind in source.kinds.items()]
            raise FileError(f"{source.path}: holds no column of numbers to read; it has {listed(held) or 'none'}")
    else:
        titles = columns
        names = [_found(source, name) for name in columns]
        for name in names:
            check_numbers(source, name)
        for title, name in zip(titles, names, strict=True):
            if names.count(name) > 1:
                raise FileError(f"{source.path}: {title!r} is another name of column {name!r}, which is read already; leave it out")
    single = all(source.kinds[name] == SINGLE for name in names)
    return Choice(tuple(names), tuple(titles), weight, group, single, tuple(notes))


def choose_alike(source: Source, first: Choice, first_path: str, columns: list[str] | None) -> Choice:
    """The same columns of another file; where none were asked for, it must have the same ones."""
    if columns is not None:
        return choose(source, columns, first.weight, first.group)
    mine = choose(source, None, first.weight, first.group)
    for name in first.names:
        if name not in mine.names:
            seen = f"holds {source.kinds[name]} in column {name!r}" if name in source.kinds else f"has no column {name!r}"
            raise FileError(f"{source.path}: {seen}, unlike {first_path}; name the columns that all files have (columns=)")
    more = [name for name in mine.names if name not in first.names]
    if more:
        raise FileError(f"{source.path}: has the column {more[0]!r}, unlike {first_path}; name the columns to read (columns=)")
    return Choice(first.names, first.titles, mine.weight, mine.group, mine.single, mine.notes)


def _found(source: Source, name: str) -> str:
    if name in source.kinds:
        return name
    if name in source.aliases:
        return source.aliases[name]
    if name in source.aside:
        raise FileError(f"{source.path}: {name!r} is no column of the points; it may be the weight_column or group_column")
    known: Sequence[str] = [*source.kinds, *source.aliases]
    raise FileError(f"{source.path}: no column {name!r}{nearest(name, known)}; it has {listed(known)}")


def _beside(source: Source, name: Any, parameter: str) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str):
        raise TypeError(f"{parameter} must be a column's name, got {name!r}")
    if name in source.aside or name in source.kinds:
        return name
    if name in source.aliases:
        return source.aliases[name]
    known: Sequence[str] = [*source.kinds, *source.aliases, *source.aside]
    raise FileError(f"{source.path}: no column {name!r} for {parameter}{nearest(name, known)}; it has {listed(known)}")


def check_numbers(source: Source, name: str) -> None:
    """Refuse a column that holds no numbers, with the first entry that is none."""
    kind = (source.kinds | source.aside)[name]
    if kind in NUMERIC or kind == FLAG:
        return
    row = 0
    for _, labels in source.blocks([], name, 65536):
        if labels is not None:
            there = (code for code in enumerate(labels.codes) if code[1] >= 0)
            for place, code in there:
                entry = str(labels.categories[code])[:40]
                raise FileError(
                    f"{source.path}: column {name!r} must hold numbers, got {entry!r} in row {row + place + 1}; "
                    "encode it, or choose other columns"
                )
            row += len(labels.codes)
    raise FileError(f"{source.path}: column {name!r} must hold numbers, and holds {kind} without any entry; choose other columns")
