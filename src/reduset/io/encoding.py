"""Categories and dates as numbers, and back.

A column of k categories becomes k columns of 0 and 1 ("onehot"), or its positions 0, 1, … in a meaningful order ("ordinal"). Dates
become days since 1970-01-01 ("days"). An unknown category is an error, the default of scikit-learn. A row of zeros would be
closer to every category than two categories are to each other. Missing entries of a one-hot column are a category of their own,
also as in scikit-learn, unless rows with missing values are dropped.

Categories that are not given are found in a first pass over their columns, so that all blocks have the same columns. The order of
ordered categories (pandas) is kept. Labels arrive as integer codes, so each block is encoded by one lookup in a table of
categories, without an array of objects.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._messages import did_you_mean
from reduset.io.reader import (
    AUTO,
    CATEGORIES,
    NUMBER,
    NUMERIC,
    ROWS,
    TEXT,
    Block,
    CodedLabels,
    FileReader,
    Numbers,
    ReadOptions,
    can_encode,
    is_date,
)
from reduset.io.table import FileError, listed, nearest

ONEHOT, ORDINAL, DAYS = "onehot", "ordinal", "days"
WAYS = (
    "'auto', 'city=onehot,grade=ordinal:low:mid:high,when=days', or a dict of columns to 'onehot', 'ordinal', 'days' or "
    "{'onehot': [...]}"
)
PAIR = re.compile(rf"(.+?)=({ONEHOT}|{ORDINAL}|{DAYS})((?::[^:]*)*)", re.DOTALL)
MAX_CATEGORIES = 1000
MAX_AUTOMATIC = 50  # categories of a column that encode="auto" encodes
NOTED = 12  # categories in a note
UNKNOWN, ABSENT = -2, -1
MISSING = "(missing)"  # the category of missing entries

Opener = Callable[[], FileReader]


@dataclass(frozen=True)
class Encoder:
    """The encoding of a column. Its categories, text or integers, are None until they are found in the files."""

    column: str
    way: str
    categories: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        if self.categories is None:
            return
        texts = [str(category) for category in self.categories]
        are_valid = all(isinstance(category, str | int) and not isinstance(category, bool) for category in self.categories)
        if self.way == DAYS or not texts or not are_valid or len(set(texts)) < len(texts):
            raise ValueError(f"encode must be {WAYS}, categories being texts or whole numbers, each once; got {texts[:6]}")

    @property
    def known(self) -> tuple[Any, ...]:
        """The categories; none for dates."""
        return self.categories or ()

    @property
    def titles(self) -> tuple[str, ...]:
        """The names of the encoded columns."""
        return tuple(f"{self.column}={category}" for category in self.known) if self.way == ONEHOT else (self.column,)

    @property
    def plain(self) -> Any:
        """The encoding as an entry of ``encode``, as models store it."""
        return self.way if self.categories is None else {self.way: list(self.categories)}

    @property
    def note(self) -> str:
        """A description of the encoding."""
        if self.way == DAYS:
            return f"{self.column} as days since 1970-01-01"
        if self.way == ONEHOT:
            return f"{self.column} as {len(self.known)} columns of 0 and 1: {listed(self.known)}"
        more = " < …" if len(self.known) > NOTED else ""
        return f"{self.column} as 0 to {len(self.known) - 1}: {' < '.join(map(str, self.known[:NOTED]))}{more}"

    def encode(self, path: str, labels: CodedLabels, first: int) -> dict[str, Numbers]:
        """The encoded columns by name, NaN for missing labels; ``first`` is the number of the first row."""
        positions = {str(category): position for position, category in enumerate(self.known)}
        missing = positions.get(MISSING, ABSENT)
        table = np.array([*(positions.get(str(category), UNKNOWN) for category in labels.categories), missing])
        codes = table[labels.codes]
        if (codes == UNKNOWN).any():
            row = int(np.argmax(codes == UNKNOWN))
            label = str(labels.categories[labels.codes[row]])
            raise FileError(
                f"{path}: column {self.column!r} must hold categories that its encoding has ({listed(self.known, 6)}), "
                f"got {label[:40]!r} in row {first + row}; drop such rows, or encode again with all of them"
            )
        if self.way != ONEHOT:
            return {self.column: np.where(codes == ABSENT, np.nan, codes)}
        return {title: np.where(codes == ABSENT, np.nan, codes == position) for position, title in enumerate(self.titles)}

    def decode(self, values: NDArray[Any]) -> Any:
        """The column of (m, titles) encoded values; None for values between categories."""
        if self.way == DAYS:
            are_whole = bool((values == np.rint(values)).all())
            steps = values[:, 0] if are_whole else values[:, 0] * 86_400e6
            return np.rint(steps).astype(np.int64).astype("datetime64[D]" if are_whole else "datetime64[us]")
        codes = values.argmax(axis=1) if self.way == ONEHOT else values[:, 0]
        exact = np.eye(len(self.known))[codes] if self.way == ONEHOT else np.clip(np.rint(values), 0, len(self.known) - 1)
        return [self.known[int(code)] for code in codes] if np.array_equal(exact, values) else None


def parse_encoding(encode: Any) -> tuple[bool, dict[str, Encoder]]:
    """Whether all other columns are encoded too, and the encoders of named columns."""
    if encode is None:
        return False, {}
    encoders = {}
    if isinstance(encode, str):
        parts = [part.strip() for part in encode.split(",")]
        for part in parts:
            pair = PAIR.fullmatch(part)
            if part == AUTO:
                continue
            if pair is None:
                _, sign, way = part.partition("=")
                hint = did_you_mean(way.partition(":")[0], (ONEHOT, ORDINAL, DAYS)) if sign else did_you_mean(part, (AUTO,))
                raise ValueError(f"encode must be {WAYS}; got {part!r}{hint}")
            if pair[1] in encoders:
                raise ValueError(f"encode must name each column once, got {encode!r}")
            encoders[pair[1]] = Encoder(pair[1], pair[2], tuple(pair[3].split(":")[1:]) or None)
        return AUTO in parts, encoders
    if not isinstance(encode, Mapping):
        raise TypeError(f"encode must be {WAYS}; got {encode!r}")
    for column, way in encode.items():
        categories: Any = None
        if isinstance(way, Mapping) and len(way) == 1:
            ((way, categories),) = way.items()
        if not isinstance(column, str) or way not in (ONEHOT, ORDINAL, DAYS) or isinstance(categories, str):
            raise ValueError(f"encode must be {WAYS}; got {way!r} for {column!r}{did_you_mean(way, (ONEHOT, ORDINAL, DAYS))}")
        encoders[column] = Encoder(column, way, None if categories is None else tuple(categories))
    return False, encoders


def decoded(encoding: Mapping[str, Any], titles: Sequence[str], values: NDArray[Any]) -> tuple[dict[str, Any], list[str]]:
    """Decoded columns by name, and the names of columns that cannot be decoded and stay encoded."""
    positions = {title: position for position, title in enumerate(titles)}
    columns: dict[str, Any] = {}
    origin: dict[str, str] = {}
    failed = []
    for name, encoder in parse_encoding(encoding)[1].items():
        if all(title in positions for title in encoder.titles):
            column = encoder.decode(values[:, [positions[title] for title in encoder.titles]])
            if column is None:
                failed.append(name)
            else:
                columns[name] = column
                origin |= dict.fromkeys(encoder.titles, name)
    ordered: dict[str, Any] = {}
    for title, position in positions.items():
        name = origin.get(title, title)
        ordered.setdefault(name, columns[name] if title in origin else values[:, position])
    return ordered, failed


class EncodedReader(FileReader):
    """A file with some of its columns encoded."""

    def __init__(self, inner: FileReader, encoders: Mapping[str, Encoder]) -> None:
        kinds: dict[str, str] = {}
        for name, kind in inner.kinds.items():
            for title in encoders[name].titles if name in encoders else (name,):
                if title in kinds:
                    raise FileError(f"{inner.path}: a column is named {title!r} already, like an encoded one; rename it")
                kinds[title] = NUMBER if name in encoders else kind
        super().__init__(inner.path, kinds, inner.rows)
        self._inner, self._encoders = inner, encoders
        self._origin = {title: name for name, encoder in encoders.items() for title in encoder.titles}
        self.title, self.may_number_rows = inner.title, inner.may_number_rows
        self.first_row, self.drop_rows = inner.first_row, inner.drop_rows
        self.aside, self.aliases, self.unnoted = inner.aside, inner.aliases, inner.unnoted
        self.unasked = {name: reason for name, reason in inner.unasked.items() if name not in encoders}
        self.upright = inner.upright | frozenset(self._origin)
        self.notes = [*inner.notes, *(encoder.note for encoder in encoders.values())]
        self.encoding = {name: encoder.plain for name, encoder in encoders.items()}
        self.automatic, self.highest, self.cuts = inner.automatic, inner.highest, inner.cuts

    def stored_name(self, name: str) -> str:
        return self._inner.stored_name(self._origin.get(name, name))

    def merged(self, name: str, values: Numbers) -> tuple[int, int] | None:
        return None if name in self._origin else self._inner.merged(name, values)

    def _blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int) -> Iterator[Block]:
        origins = dict.fromkeys(self._origin[name] for name in names if name in self._origin)
        coded = [name for name in origins if self._encoders[name].way != DAYS]
        plain = [name for name in names if self._origin.get(name, name) not in coded]
        for block in self._inner.blocks(plain, [*coded, *labels], rows, start):
            columns = dict(zip(plain, block.columns, strict=True))
            for name, column in zip(coded, block.labels, strict=False):
                columns |= self._encoders[name].encode(self.path, column, block.first + self.first_row)
            yield Block(block.first, [columns[name] for name in names], block.labels[len(coded) :])


def encoded(opener: Opener, encoders: Mapping[str, Encoder]) -> FileReader:
    """An opened file with some of its columns encoded."""
    source = opener()
    for encoder in encoders.values():
        _check_kind(source, encoder)
    return EncodedReader(source, encoders) if encoders else source


def encoding_of(openers: Sequence[Opener], options: ReadOptions) -> tuple[dict[str, Encoder], ReadOptions]:
    """The encoders of all files with their categories, and the options for the encoded files."""
    others, asked = parse_encoding(options.encode)
    if not others and not asked:
        return {}, options
    first = openers[0]()
    for encoder in asked.values():
        _check_asked(first, encoder, options)
    encoders = dict(asked)
    if others:
        encoders |= {name: Encoder(name, way) for name, way in _automatic(first, options, asked)}
    unknown = [name for name, encoder in encoders.items() if encoder.categories is None and encoder.way != DAYS]
    ranked = {name for name in unknown if encoders[name].way == ORDINAL and name in first.ordered}
    categories, unique, incomplete = _categories(openers, unknown, ranked)
    unused = {}
    for name, known in categories.items():
        known = known if name in ranked else _in_order(known)
        count = f"{len(known):,}" if len(known) <= MAX_CATEGORIES else f"more than {MAX_CATEGORIES:,}"
        if name not in asked and not (options.columns and name in options.columns) and not 0 < len(known) <= MAX_AUTOMATIC:
            del encoders[name]  # names and free text
            if known:
                exceeded = f" (more than {MAX_AUTOMATIC})" if len(known) <= MAX_CATEGORIES else ""
                unused[name] = "looks like an identifier" if name in unique else f"has {count} categories{exceeded}"
            continue
        limit = MAX_CATEGORIES if name in asked else MAX_AUTOMATIC
        if encoders[name].way == ONEHOT and len(known) > limit:
            way_out = "choose other columns" if name in asked else f"choose columns without it, or encode='{AUTO},{name}=onehot'"
            raise FileError(
                f"{first.path}: column {name!r} must have at most {limit:,} categories to be encoded, got {count}; {way_out}"
            )
        if not known:
            raise FileError(
                f"{first.path}: column {name!r} must hold categories to be encoded, and has no entry; choose other columns"
            )
        if name in incomplete and encoders[name].way == ONEHOT and options.missing != "drop" and MISSING not in known:
            known = [*known, MISSING]
        encoders[name] = replace(encoders[name], categories=tuple(known))
    options = replace(options, unused=unused)
    if options.columns is None:
        return encoders, options
    titles = [title for name in options.columns for title in (encoders[name].titles if name in encoders else (name,))]
    return encoders, replace(options, columns=titles)


def _in_order(categories: Iterable[Any]) -> list[Any]:
    """Categories sorted as numbers if possible, otherwise as text."""
    known = list(categories)
    try:
        are_numbers = all(math.isfinite(float(category)) for category in known)
    except ValueError:
        are_numbers = False
    return sorted(known, key=float if are_numbers else str)


def _check_asked(source: FileReader, encoder: Encoder, options: ReadOptions) -> None:
    """Check the encoder of a named column."""
    name = encoder.column
    if name in (options.weight_column, options.group_column):
        raise FileError(f"{source.path}: encode names {name!r}, which is the column of weights or groups; leave it out of one")
    if not _is_wanted(name, options):
        raise FileError(
            f"{source.path}: encode names {name!r}, which was not read{nearest(name, options.columns)}; add it to columns"
        )
    _check_kind(source, encoder)


def _is_wanted(name: str, options: ReadOptions) -> bool:
    """Whether a column is asked for, by its own name or an encoded one."""
    return options.columns is None or any(asked == name or asked.startswith(f"{name}=") for asked in options.columns)


def _check_kind(source: FileReader, encoder: Encoder) -> None:
    """Check that a column exists and can be encoded in this way."""
    name = encoder.column
    if name not in source.kinds:
        raise FileError(f"{source.path}: encode names {name!r}, and it has no such column of points{nearest(name, source.kinds)}")
    kind = source.kinds[name]
    if encoder.way == DAYS and not is_date(kind):
        entry = next((f"{text[:40]!r} in row {row}" for row, text in enumerate(source.texts(name), 1) if text), "no entry")
        raise FileError(
            f"{source.path}: column {name!r} must hold dates to be encoded as days, got {entry}; in text, write them as 2026-11-17"
        )
    if encoder.way != DAYS and kind not in NUMERIC and not can_encode(kind):
        raise FileError(
            f"{source.path}: column {name!r} must hold categories to be encoded, and holds {kind}; choose other columns"
        )


def _automatic(source: FileReader, options: ReadOptions, asked: Mapping[str, Encoder]) -> Iterator[tuple[str, str]]:
    """Columns that encode="auto" encodes, and how."""
    for name, kind in source.kinds.items():
        is_chosen = name not in source.unasked if options.columns is None else _is_wanted(name, options)
        if not is_chosen or kind in NUMERIC or name in (options.weight_column, options.group_column, *asked):
            continue
        if is_date(kind):
            yield name, DAYS
        elif kind in (TEXT, CATEGORIES):
            yield name, ORDINAL if name in source.ordered else ONEHOT


def _categories(
    openers: Sequence[Opener], names: Sequence[str], ranked: Collection[str]
) -> tuple[dict[str, list[Any]], set[str], set[str]]:
    """The categories of columns in all files, the columns in which every entry is unique, and those with missing entries.

    These are the categories that occur, or all of an ordered dictionary (``ranked``). Counting stops after `MAX_CATEGORIES`.
    """
    categories: dict[str, dict[str, Any]] = {name: {} for name in names}
    entries, incomplete = dict.fromkeys(names, 0), set()
    for opener in openers if names else ():
        source = opener()
        for name in names:
            _check_kind(source, Encoder(name, ONEHOT))
        for block in source.blocks([], names, ROWS):
            for name, labels in zip(names, block.labels, strict=True):
                if (labels.codes < 0).any():
                    incomplete.add(name)
                if name in ranked:
                    added = {str(category): category for category in labels.categories}
                    categories[name] = _merged(source.path, name, categories[name], added)
                elif len(categories[name]) <= MAX_CATEGORIES:
                    counts = np.bincount(labels.codes[labels.codes >= 0], minlength=len(labels.categories))
                    categories[name] |= {str(labels.categories[code]): labels.categories[code] for code in np.flatnonzero(counts)}
                    entries[name] += int(counts.sum())
    unique = {name for name in names if len(categories[name]) == entries[name]}
    return {name: list(known.values()) for name, known in categories.items()}, unique, incomplete


def _merged(path: str, name: str, known: dict[str, Any], added: dict[str, Any]) -> dict[str, Any]:
    """The larger of two ordered dictionaries, which must contain the smaller one in the same order."""
    small, large = sorted((known, added), key=len)
    if [category for category in large if category in small] != list(small):
        raise FileError(
            f"{path}: the categories of column {name!r} must be in one order all through; give it as "
            f"encode={{{name!r}: {{'ordinal': [...]}}}}"
        )
    return large
