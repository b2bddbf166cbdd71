"""The contract of readers: options, an open file as columns and blocks of rows, and the record of a format.

Each column of numbers is an array, with NaN for missing values. Dates are days since 1970-01-01. Labels are codes into categories,
-1 for a missing label.
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

SINGLE = "single"  # float16 and float32
NUMBER = "number"  # all other numbers
FLAG = "true or false"  # read as 1 and 0
TEXT = "text"
CATEGORIES = "categories"
NUMERIC = (SINGLE, NUMBER, FLAG)
AUTO, NONE = "auto", "none"
PLAIN = (NONE, "linear")  # transforms that leave values unchanged
ROWS = 65536  # of a block by default

Numbers = NDArray[Any]


@dataclass
class ReadOptions:
    """The arguments of ``read``, validated as far as possible without a file.

    ``automatic`` estimates scales of channels of FCS files that ``transform`` does not name; transform="auto" sets it. ``linear``
    also stops later steps from transforming them; transform="none" sets it. ``unused`` has the reasons why encode="auto" omits
    text columns.
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
    """Options from keyword arguments."""
    known = [option.name for option in fields(ReadOptions)]
    for name in given:
        if name not in known:
            raise TypeError(f"unexpected argument {name!r}; the arguments are {', '.join(known)}")
    return ReadOptions(**given)


def _names(columns: Any) -> list[str] | None:
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
    """Dictionary-encoded labels: (k,) codes into categories, which are text or whole numbers; -1 for a missing label."""

    codes: Indices
    categories: list[Any]

    def rows(self, rows: Any) -> CodedLabels:
        """The labels of some rows."""
        return CodedLabels(self.codes[rows], self.categories)


class Block(NamedTuple):
    """Consecutive rows of a file: the number of rows before them, columns of numbers, and columns of labels."""

    first: int
    columns: list[Numbers]
    labels: list[CodedLabels]

    @property
    def end(self) -> int:
        """The number of rows up to the last one."""
        return self.first + len(self.labels[0].codes if self.labels else self.columns[0])


class FileReader(ABC):
    """An open file. A subclass sets those attributes that differ from the defaults."""

    title = "a table"  # name of the format
    may_number_rows = False  # whether a column may hold row numbers
    in_one_unit = False  # whether all columns have one unit, such as pixels
    first_row = 1  # number of the first row in messages: 1 in files, 0 in frames
    drop_rows = "missing='drop'"  # the option that omits incomplete rows, in messages

    def __init__(self, path: str, kinds: dict[str, str], rows: int | None) -> None:
        self.path = path  # name of the file as given
        self.kinds = kinds  # type of each column: SINGLE, NUMBER, FLAG, TEXT or another word
        self.rows = rows  # number of rows; None if unknown before reading
        self.cuts: tuple[int, ...] = ()  # rows at which row groups begin, except the first; empty if reading may begin anywhere
        self.aside: dict[str, str] = {}  # types of columns that are not coordinates but may be weights or groups
        self.notes: list[str] = []  # remarks on the file, for messages
        self.aliases: dict[str, str] = {}  # column of each other name
        self.upright: frozenset[str] = frozenset()  # columns that a transform of all columns does not change
        self.unasked: dict[str, str] = {}  # columns of numbers that are read only if named, with the reason
        self.unnoted: frozenset[str] = frozenset()  # columns of `unasked` that no note mentions
        self.ordered: frozenset[str] = frozenset()  # columns of ordered categories
        self.encoding: dict[str, Any] = {}  # encoding of the columns, as for `read`; empty for all readers of files
        self.automatic = NONE  # scale of the columns with transform="auto", except those in `upright`; "none" except for FCS files
        self.highest: dict[str, float] = {}  # largest possible value of each column; empty if the file does not state it
        self._compared: set[str] = set()  # columns with large integers that have been compared

    def blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int = 0) -> Iterator[Block]:
        """Blocks of about ``rows`` rows with columns ``names`` and labels ``labels``; no block is empty.

        Blocks that end before row ``start`` (from 0) are skipped. All others have the same bounds as without ``start``, so results
        per block do not depend on it.
        """
        with refusing(self.path, self.title):
            for block in self._blocks(names, labels, rows, start):
                if block.end > max(start, block.first):
                    yield block

    def texts(self, name: str) -> Iterator[str]:
        """The entries of a column as text, "" for missing ones."""
        for block in self.blocks([], [name], ROWS):
            labels = block.labels[0]
            yield from (str(labels.categories[code]) if code >= 0 else "" for code in labels.codes)

    def stored_name(self, name: str) -> str:
        """The column that an encoded column was made from; other names unchanged."""
        return name

    def merged(self, name: str, values: Numbers) -> tuple[int, int] | None:
        """Two different integers of a column that are equal in float64, or None.

        ``values`` come from a block. If they are floats already, the column is read again, once.
        """
        if values.dtype.kind != "f":
            return merged_integers(values)
        if values.dtype.itemsize < 8 or name in self._compared or not np.fmax.reduce(np.abs(values), initial=0.0) > LARGEST_EXACT:
            return None
        self._compared.add(name)
        with refusing(self.path, self.title):
            return next(filter(None, map(merged_integers, self._integers(name))), None)

    def _integers(self, name: str) -> Iterator[Numbers]:
        """The integers of a column that blocks hold as floats, in parts."""
        return iter(())

    @abstractmethod
    def _blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int) -> Iterator[Block]:
        """As `blocks`; blocks before ``start`` may be included."""


@dataclass(frozen=True)
class Format:
    """A file format."""

    title: str  # name in messages
    suffixes: tuple[str, ...]  # in small letters, the usual one first
    open: Callable[[str, ReadOptions], FileReader]  # an exception counts as a damaged file
    magic: tuple[bytes, ...] = ()  # possible first bytes; empty for text
    sure: bool = True  # whether these bytes identify the format; otherwise the suffix decides, and other bytes are possible
    needs: tuple[str, str] = ("numpy", "")  # the library that reads it, and the extra that installs it
    keyed: bool = False  # whether `key` selects an array of the file
    gzipped: bool = False  # whether gzip-compressed files are read and written too
    nested: bool = False  # whether folders of such files are searched recursively
    write: Callable[[Any, Any], None] | None = None  # writes an Arrow table to a stream
    remote: bool = False  # whether files are read from object stores
    written: tuple[str, ...] = ()  # suffixes offered for writing


def block_of(first: int, column: Callable[[str], Numbers], names: Sequence[str], labels: Sequence[str]) -> Block:
    """A block from a function that returns the array of a column."""
    return Block(first, [_without_dates(column(name)) for name in names], [encode(column(name)) for name in labels])


def _without_dates(values: Numbers) -> Numbers:
    if values.dtype.kind != "M":
        return values
    return np.where(np.isnat(values), np.nan, (values - np.datetime64(0, "D")) / np.timedelta64(1, "D"))


def is_date(kind: str) -> bool:
    """Whether a column of this type holds dates or times."""
    return kind.startswith(("date", "timestamp", "datetime", "<M8", ">M8"))


def can_encode(kind: str) -> bool:
    """Whether a column of this type can be encoded as numbers."""
    return kind in (TEXT, CATEGORIES) or is_date(kind)


def kind_of_dtype(dtype: np.dtype[Any]) -> str:
    """The type of a column of a NumPy type."""
    if dtype.kind == "f":
        return SINGLE if dtype.itemsize <= 4 else NUMBER
    return {"i": NUMBER, "u": NUMBER, "b": FLAG, "U": TEXT, "S": TEXT, "O": TEXT}.get(dtype.kind, str(dtype))


def unique_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Distinct, non-empty names, and notes on changed ones."""
    unique: dict[str, None] = {}
    given, notes = set(names), []
    for position, name in enumerate(names, 1):
        base = name or f"column {position}"
        new, number = base, 2
        while new in unique or (new != name and new in given):
            new, number = f"{base} ({number})", number + 1
        if name and new != name:
            notes.append(f"another column named {name!r} is called {new!r}")
        unique[new] = None
    return list(unique), notes


def encode(values: Numbers) -> CodedLabels:
    """Labels from an array: whole numbers stay numbers, all other values become text."""
    values = np.asarray(values)
    present = np.ones(len(values), bool)
    if values.dtype.kind == "f":
        present = ~np.isnan(values)
        kept = values[present]
        are_whole = bool((kept == np.rint(kept)).all() and (np.abs(kept) < 2.0**63).all())
        kept = kept.astype(np.int64 if are_whole else str)
    elif values.dtype.kind in "iu":
        kept = values.astype(np.int64)
    else:
        if values.dtype.kind == "O":
            present = np.array([value is not None and value == value for value in values.tolist()], bool)
        kept = values if values.dtype.kind == "U" else np.array([text_of(value) for value in values[present].tolist()], str)
    categories, codes = np.unique(kept, return_inverse=True)
    all_codes = np.full(len(values), -1, np.int64)
    all_codes[present] = codes
    return CodedLabels(all_codes, categories.tolist())


def text_of(value: Any) -> str:
    """A value as text; bytes are decoded."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class LabelDictionary:
    """Dictionary encoding of labels that arrive in blocks."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}
        self._parts: list[NDArray[np.int32]] = []

    def add(self, labels: CodedLabels) -> None:
        """Add the labels of a block, which has no missing ones."""
        codes = [self._codes.setdefault(category, len(self._codes)) for category in labels.categories]
        self._parts.append(np.asarray(codes, np.int32)[labels.codes] if codes else np.empty(0, np.int32))

    def array(self) -> Numbers:
        """All labels: integers if all categories are, otherwise text."""
        categories = list(self._codes)
        are_whole = bool(categories) and all(isinstance(category, int) for category in categories)
        table = np.array(categories, np.int64) if are_whole else np.array([str(category) for category in categories], str)
        return table[np.concatenate([np.empty(0, np.int32), *self._parts])]
