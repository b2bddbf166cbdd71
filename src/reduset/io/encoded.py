"""A file whose categories and dates are numbers: the columns that its reader gives, some of them encoded block by block.

Categories that are not given are found by reading their columns once before all others are read, so that a stream of blocks has
the same columns from its first row on. Where a dictionary has an order of its own, as pandas' ordered categories have, it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reduset.io.encoding import AUTO, DAYS, MOST, ONEHOT, ORDINAL, Encoder, in_order, parse_encoding
from reduset.io.reader import CATEGORIES, NUMBER, NUMERIC, TEXT, Block, FileReader, Numbers, ReadOptions, can_encode, is_date
from reduset.io.table import FileError, nearest

MOST_BY_ITSELF = 50  # categories that are encoded without being named
IDENTIFIER = "looks like an identifier"
ROWS = 65536

Opener = Callable[[], FileReader]


class EncodedReader(FileReader):
    """A file with some of its columns encoded."""

    def __init__(self, inner: FileReader, encoders: Mapping[str, Encoder]) -> None:
        kinds: dict[str, str] = {}
        for name, kind in inner.kinds.items():
            for title in encoders[name].titles if name in encoders else (name,):
                if title in kinds:
                    raise FileError(f"{inner.path}: a column is named {title!r} already, as encoding would name one; rename it")
                kinds[title] = NUMBER if name in encoders else kind
        super().__init__(inner.path, kinds, inner.rows)
        self._inner, self._encoders = inner, encoders
        self._home = {title: name for name, each in encoders.items() for title in each.titles}
        self.title, self.may_number_rows = inner.title, inner.may_number_rows
        self.first_row, self.drop_rows = inner.first_row, inner.drop_rows
        self.aside, self.aliases = inner.aside, inner.aliases
        self.unasked = {name: what for name, what in inner.unasked.items() if name not in encoders}
        self.unnoted = inner.unnoted
        self.upright = inner.upright | frozenset(self._home)
        self.notes = [*inner.notes, *(each.note for each in encoders.values())]
        self.encoding = {name: each.plain for name, each in encoders.items()}
        self.automatic, self.highest = inner.automatic, inner.highest

    def stored_name(self, name: str) -> str:
        return self._inner.stored_name(self._home.get(name, name))

    def merged(self, name: str, values: Numbers) -> tuple[int, int] | None:
        return None if name in self._home else self._inner.merged(name, values)

    def _blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int) -> Iterator[Block]:
        homes = dict.fromkeys(self._home[name] for name in names if name in self._home)
        coded = [name for name in homes if self._encoders[name].way != DAYS]
        plain = [name for name in names if self._home.get(name, name) not in coded]
        for block in self._inner.blocks(plain, [*coded, *labels], rows, start):
            columns = dict(zip(plain, block.columns, strict=True))
            for name, found in zip(coded, block.labels, strict=False):
                each = self._encoders[name]
                columns |= each.columns(each.codes(self.path, found, block.first + self.first_row))
            yield Block(block.first, [columns[name] for name in names], block.labels[len(coded) :])


def encoding_of(openers: Sequence[Opener], options: ReadOptions) -> tuple[dict[str, Encoder], ReadOptions]:
    """The encoders of the columns of files, all settled; and what is asked of the files once these are encoded."""
    others, asked = parse_encoding(options.encode)
    if not others and not asked:
        return {}, options
    first = openers[0]()
    encoders = {name: _checked(first, each, options) for name, each in asked.items()}
    if others:
        encoders |= {name: Encoder(name, way) for name, way in _by_itself(first, options, asked)}
    open_ended = [name for name, each in encoders.items() if each.categories is None and each.way != DAYS]
    ranked = {name for name in open_ended if encoders[name].way == ORDINAL and name in first.ordered}
    found, unique = _categories(openers, open_ended, ranked)
    unused = {}
    for name, known in found.items():
        kept = known if name in ranked else in_order(known)
        if name not in asked and not (options.columns and name in options.columns) and not 0 < len(kept) <= MOST_BY_ITSELF:
            del encoders[name]  # names and free text
            if kept:
                unused[name] = IDENTIFIER if name in unique else _too_many(len(kept))
            continue
        most = MOST if name in asked else MOST_BY_ITSELF
        if encoders[name].way == ONEHOT and len(kept) > most:
            way_out = "choose other columns" if name in asked else f"choose columns without it, or encode='{AUTO},{name}=onehot'"
            raise FileError(
                f"{first.path}: column {name!r} must have at most {most:,} categories to be encoded, got {_counted(len(kept))}; "
                f"{way_out}"
            )
        if not kept:
            raise FileError(
                f"{first.path}: column {name!r} must hold categories to be encoded, and has no entry; choose other columns"
            )
        encoders[name] = replace(encoders[name], categories=tuple(kept))
    options = replace(options, unused=unused)
    if options.columns is None:
        return encoders, options
    titles = [title for name in options.columns for title in (encoders[name].titles if name in encoders else (name,))]
    return encoders, replace(options, columns=titles)


def _counted(categories: int) -> str:
    return f"{categories:,}" if categories <= MOST else f"more than {MOST:,}"


def _too_many(categories: int) -> str:
    """The reason why so many categories are not encoded."""
    return f"has {_counted(categories)} categories" + (f" (more than {MOST_BY_ITSELF})" if categories <= MOST else "")


def encoded(opener: Opener, encoders: Mapping[str, Encoder]) -> FileReader:
    """A file, opened, with these columns of it encoded."""
    source = opener()
    if not encoders:
        return source
    for each in encoders.values():
        _check_kind(source, each)
    return EncodedReader(source, encoders)


def _checked(source: FileReader, encoder: Encoder, options: ReadOptions) -> Encoder:
    """The encoder of a column that is there, and is one of the points'."""
    name = encoder.column
    if name in (options.weight_column, options.group_column):
        raise FileError(f"{source.path}: encode names {name!r}, which is the column of weights or groups; leave it out of one")
    if not _is_wanted(name, options):
        raise FileError(
            f"{source.path}: encode names {name!r}, which was not read{nearest(name, options.columns)}; add it to columns"
        )
    _check_kind(source, encoder)
    return encoder


def _is_wanted(name: str, options: ReadOptions) -> bool:
    """Whether a column is asked for, by its own name or as what it is encoded by."""
    return options.columns is None or any(each == name or each.startswith(f"{name}=") for each in options.columns)


def _check_kind(source: FileReader, encoder: Encoder) -> None:
    """Refuse a column that is not there, or that cannot be encoded in such a way."""
    name = encoder.column
    if name not in source.kinds:
        raise FileError(f"{source.path}: encode names {name!r}, and it has no such column of points{nearest(name, source.kinds)}")
    kind = source.kinds[name]
    if encoder.way == DAYS and not is_date(kind):
        seen = next((f"{entry[:40]!r} in row {row}" for row, entry in enumerate(source.texts(name), 1) if entry), "no entry")
        raise FileError(
            f"{source.path}: column {name!r} must hold dates to be encoded as days, got {seen}; in text, write them as 2026-11-17"
        )
    if encoder.way != DAYS and kind not in NUMERIC and not can_encode(kind):
        raise FileError(
            f"{source.path}: column {name!r} must hold categories to be encoded, and holds {kind}; choose other columns"
        )


def _by_itself(source: FileReader, options: ReadOptions, asked: Mapping[str, Encoder]) -> Iterator[tuple[str, str]]:
    """Columns that hold no numbers and are to be encoded without being named, and the way that befits each."""
    for name, kind in source.kinds.items():
        chosen = name not in source.unasked if options.columns is None else _is_wanted(name, options)
        if not chosen or kind in NUMERIC or name in (options.weight_column, options.group_column, *asked):
            continue
        if is_date(kind):
            yield name, DAYS
        elif kind in (TEXT, CATEGORIES):
            yield name, ORDINAL if name in source.ordered else ONEHOT


def _categories(openers: Sequence[Opener], names: Sequence[str], ranked: Collection[str]) -> tuple[dict[str, list[Any]], set[str]]:
    """The categories of columns in all files, and the columns in which no entry occurs twice.

    The categories are those that occur, or all of a dictionary whose order counts. Entries are counted until there are more than
    `MOST` categories.
    """
    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    entries = dict.fromkeys(names, 0)
    for opener in openers if names else ():
        source = opener()
        for name in names:
            _check_kind(source, Encoder(name, ONEHOT))
        for block in source.blocks([], names, ROWS):
            for name, labels in zip(names, block.labels, strict=True):
                if name in ranked:
                    found[name] = _merged(source.path, name, found[name], {str(each): each for each in labels.categories})
                elif len(found[name]) <= MOST:
                    there = np.bincount(labels.codes[labels.codes >= 0], minlength=len(labels.categories))
                    found[name] |= {str(labels.categories[code]): labels.categories[code] for code in np.flatnonzero(there)}
                    entries[name] += int(there.sum())
    unique = {name for name in names if len(found[name]) == entries[name]}
    return {name: list(each.values()) for name, each in found.items()}, unique


def _merged(path: str, name: str, known: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The order of two dictionaries, of which one must hold the other in its order."""
    few, many = sorted((known, new), key=len)
    if [each for each in many if each in few] != list(few):
        raise FileError(
            f"{path}: the categories of column {name!r} must be in one order all through; say it: "
            f"encode={{{name!r}: {{'ordinal': [...]}}}}"
        )
    return many
