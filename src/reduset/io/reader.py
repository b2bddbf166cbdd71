"""The contract of readers: what they are asked, an open file as columns and blocks of rows, and the record of a format.

Numbers come as one array a column, NaN where one is missing; dates as numbers too, days since 1970-01-01; labels as codes into
categories, −1 where one is missing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reduset._types import Indices
from reduset._validate import LARGEST_EXACT, flag, merged_integers, one_of
from reduset.io.table import refusing

SINGLE = "single"  # numbers in single or half precision
NUMBER = "number"  # all others
FLAG = "true or false"  # the numbers 1 and 0
TEXT = "text"
CATEGORIES = "categories"
NUMERIC = (SINGLE, NUMBER, FLAG)
AUTO, NONE = "auto", "none"
PLAIN = (NONE, "linear")  # transforms that leave values as they are

Numbers = NDArray[Any]


@dataclass
class ReadOptions:
    """What is asked of files, checked as far as it can be without one; the attributes are the arguments of ``read``.

    ``automatic`` gives columns of FCS files that ``transform`` does not name a scale that is estimated; transform="auto" sets it.
    ``linear`` keeps their values as they are in what is computed, too; transform="none" sets it. ``unused`` has the text columns
    that encode="auto" omits, with the reason.
    """

    columns: Any = None
    weight_column: str | None = None
    group_column: str | None = None
    transform: Any = None
    compensate: bool = True
    missing: str = "refuse"
    key: str | None = None
    encode: Any = None
    identifiers: str = "keep"
    automatic: bool = False
    linear: bool = False
    unused: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.transform, str) and self.transform.strip() in (AUTO, *PLAIN):
            self.automatic, self.linear, self.transform = self.transform.strip() == AUTO, self.transform.strip() != AUTO, None
        self.columns = _names(self.columns)
        flag(self.compensate, "compensate")
        one_of(self.missing, "missing", ("refuse", "drop"))
        one_of(self.identifiers, "identifiers", ("keep", "omit"))
        if self.key is not None and not isinstance(self.key, str):
            raise TypeError(f"key must be the name of an array in the file, got {self.key!r}")


def options_of(**given: Any) -> ReadOptions:
    """What was asked for by name."""
    known = [each.name for each in fields(ReadOptions)]
    for name in given:
        if name not in known:
            raise TypeError(f"unexpected argument {name!r}; there are {', '.join(known)}")
    return ReadOptions(**given)


def _names(columns: Any) -> list[str] | None:
    """The names asked for, as a list without repetition."""
    if columns is None:
        return None
    names = [columns] if isinstance(columns, str) else list(columns)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"columns must be names, got {name!r}; the columns of plain arrays are called x0, x1, …")
        if names.count(name) > 1:
            raise ValueError(f"columns must be at least one name, each once; got {name!r} twice")
    if not names:
        raise ValueError("columns must not be empty")
    return names


@dataclass(frozen=True)
class CodedLabels:
    """Dictionary-encoded labels: (k,) codes into categories, text or whole numbers; −1 where a label is missing."""

    codes: Indices
    categories: list[Any]

    def rows(self, which: Any) -> CodedLabels:
        """Those of some rows."""
        return CodedLabels(self.codes[which], self.categories)


class Block(NamedTuple):
    """Some rows of a file as they are stored: the number of rows before them, columns, and the labels of other columns."""

    first: int
    columns: list[Numbers]
    labels: list[CodedLabels]

    @property
    def end(self) -> int:
        """The number of rows up to its last."""
        return self.first + len(self.labels[0].codes if self.labels else self.columns[0])


class FileReader(ABC):
    """An open file.

    Attributes
    ----------
    path : its name as given.
    title : what it is, in words.
    kinds : what each column holds: SINGLE, NUMBER, FLAG, TEXT or another word.
    aside : the same of columns that are no part of the points, but may be weights or groups.
    rows : how many, or None where that is not known before reading.
    notes : what there is to say of it.
    aliases : other names of columns.
    upright : columns that a transform of all columns leaves alone.
    unasked : columns of numbers that are read only where they are named, with what they are.
    unnoted : those of ``unasked`` that no note mentions.
    ordered : columns of categories that have an order.
    encoding : how columns that hold no numbers were made such, as ``read`` takes it; empty in what a reader opens.
    automatic : the scale of its columns with transform="auto", except of those in ``upright``; "none" for all but FCS files.
    highest : the largest value that each column can hold; empty where a file does not state it.
    in_one_unit : whether all columns have one unit, as pixels have.
    may_number_rows : whether some column may hold the numbers of its rows.
    first_row : the number of the first row in messages: 1 in files, 0 in frames.
    drop_rows : the option that leaves incomplete rows out, in messages.
    """

    title = "a table"
    may_number_rows = False
    in_one_unit = False
    first_row = 1
    drop_rows = "missing='drop'"

    def __init__(self, path: str, kinds: dict[str, str], rows: int | None) -> None:
        self.path = path
        self.kinds = kinds
        self.rows = rows
        self.aside: dict[str, str] = {}
        self.notes: list[str] = []
        self.aliases: dict[str, str] = {}
        self.upright: frozenset[str] = frozenset()
        self.unasked: dict[str, str] = {}
        self.unnoted: frozenset[str] = frozenset()
        self.ordered: frozenset[str] = frozenset()
        self.encoding: dict[str, Any] = {}
        self.automatic = NONE
        self.highest: dict[str, float] = {}
        self._compared: set[str] = set()  # columns whose large numbers were compared

    def blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int = 0) -> Iterator[Block]:
        """The columns of these names, and the labels of others, about ``rows`` rows at a time, none without a row.

        Blocks that end before row ``start`` (counted from 0) are left out. The others are cut where they would be cut from the
        first row on: what is computed of a block must not depend on where reading began.
        """
        with refusing(self.path, self.title):
            for block in self._blocks(names, labels, rows, start):
                if block.end > max(start, block.first):
                    yield block

    def texts(self, name: str) -> Iterator[str]:
        """The entries of a column as text, empty where one is missing."""
        for block in self.blocks([], [name], 65536):
            labels = block.labels[0]
            yield from (str(labels.categories[code]) if code >= 0 else "" for code in labels.codes)

    def stored_name(self, name: str) -> str:
        """The column that an encoded column was made from; other names unchanged."""
        return name

    def merged(self, name: str, values: Numbers) -> tuple[int, int] | None:
        """Two whole numbers of a column that are one in float64, or None.

        ``values`` are those of a block as they were read. If these are floats already, the column is read again, once.
        """
        if values.dtype.kind != "f":
            return merged_integers(values)
        if values.dtype.itemsize < 8 or name in self._compared or not np.fmax.reduce(np.abs(values), initial=0.0) > LARGEST_EXACT:
            return None
        self._compared.add(name)
        with refusing(self.path, self.title):
            return next(filter(None, map(merged_integers, self._integers(name))), None)

    def _integers(self, name: str) -> Iterator[Numbers]:
        """The whole numbers of a column that blocks have as floats, a part at a time."""
        return iter(())

    @abstractmethod
    def _blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int) -> Iterator[Block]:
        """The blocks by the reader of a format; those before ``start`` need not be there."""


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes
    ----------
    title : what such a file is, in messages.
    suffixes : in small letters, the usual one first.
    open : makes the source of a file. What goes wrong in it is refused as a damaged file.
    magic : how its files begin; none for text, which begins in any way.
    sure : whether the magic suffices. If not, the suffix must say so too, and the reader is asked where the magic is not there.
    needs : the library that reads it, and the extra of this package that brings it.
    keyed : whether ``key`` chooses what is read of a file.
    gzipped : whether it is also read and written packed by gzip.
    nested : whether a folder of such files is a data set, whose folders are searched too.
    write : fills a stream with an Arrow table.
    written : the suffixes that are offered for writing.
    """

    title: str
    suffixes: tuple[str, ...]
    open: Callable[[str, ReadOptions], FileReader]
    magic: tuple[bytes, ...] = ()
    sure: bool = True
    needs: tuple[str, str] = ("numpy", "")
    keyed: bool = False
    gzipped: bool = False
    nested: bool = False
    write: Callable[[Any, Any], None] | None = None
    written: tuple[str, ...] = ()


def block_of(first: int, column: Callable[[str], Numbers], names: Sequence[str], labels: Sequence[str]) -> Block:
    """A block of columns that a function gives by name."""
    return Block(first, [_undated(column(name)) for name in names], [encode(column(name)) for name in labels])


def _undated(values: Numbers) -> Numbers:
    """Dates as days, all else as it is."""
    if values.dtype.kind != "M":
        return values
    return np.where(np.isnat(values), np.nan, (values - np.datetime64(0, "D")) / np.timedelta64(1, "D"))


def is_date(kind: str) -> bool:
    """Whether a column of such a kind, as types call themselves, holds dates or moments."""
    return kind.startswith(("date", "timestamp", "datetime", "<M8", ">M8"))


def can_encode(kind: str) -> bool:
    """Whether a column that holds no numbers can become numbers."""
    return kind in (TEXT, CATEGORIES) or is_date(kind)


def kind_of_dtype(dtype: np.dtype[Any]) -> str:
    """What a column of a NumPy type holds."""
    if dtype.kind == "f":
        return SINGLE if dtype.itemsize <= 4 else NUMBER
    return {"i": NUMBER, "u": NUMBER, "b": FLAG, "U": TEXT, "S": TEXT, "O": TEXT}.get(dtype.kind, str(dtype))


def unique_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names of which none is empty and no two are equal, and notes on those that were changed."""
    taken = set(names)
    seen: set[str] = set()
    made, notes = [], []
    for place, name in enumerate(names, 1):
        new = name or f"column {place}"
        number = 2
        while new in seen or (new != name and new in taken):
            new = f"{name or f'column {place}'} ({number})"
            number += 1
        if name and new != name:
            notes.append(f"another column named {name!r} is called {new!r}")
        seen.add(new)
        made.append(new)
    return made, notes


def encode(values: Numbers) -> CodedLabels:
    """Labels from an array: whole numbers stay numbers, everything else becomes text."""
    values = np.asarray(values)
    if values.dtype.kind == "f":
        there = ~np.isnan(values)
        whole = bool((values[there] == np.rint(values[there])).all() and (np.abs(values[there]) < 2.0**63).all())
        kept = values[there].astype(np.int64) if whole else values[there].astype(str)
    elif values.dtype.kind == "O":
        there = np.array([value is not None and value == value for value in values.tolist()], bool)
        kept = _texts(values[there])
    else:
        there = np.ones(len(values), bool)
        kept = values.astype(np.int64) if values.dtype.kind in "iu" else values if values.dtype.kind == "U" else _texts(values)
    categories, codes = np.unique(kept, return_inverse=True)
    out = np.full(len(values), -1, np.int64)
    out[there] = codes
    return CodedLabels(out, categories.tolist())


def _texts(values: Numbers) -> Numbers:
    return np.array([text_of(value) for value in values.tolist()], str)


def text_of(value: Any) -> str:
    """A value as text; bytes are decoded."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class LabelDictionary:
    """A dictionary encoder of labels that come in blocks, with one code for each category."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}
        self._parts: list[NDArray[np.int32]] = []

    def add(self, labels: CodedLabels) -> None:
        """Take those of one more block, none of them missing."""
        places = [self._codes.setdefault(category, len(self._codes)) for category in labels.categories]
        self._parts.append(np.asarray(places, np.int32)[labels.codes] if places else np.empty(0, np.int32))

    def array(self) -> Numbers:
        """All labels so far: whole numbers where all are, else text."""
        categories = list(self._codes)
        whole = bool(categories) and all(isinstance(category, int) for category in categories)
        table = np.array(categories, np.int64) if whole else np.array([str(category) for category in categories], str)
        return table[np.concatenate([np.empty(0, np.int32), *self._parts])]
