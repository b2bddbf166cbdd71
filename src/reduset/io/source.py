"""An open file as columns: what there is to choose from, and blocks of rows of what was chosen. One reader a format.

Numbers come as one array a column, NaN where one is missing; labels as codes into categories, −1 where one is missing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset.io.table import listed

SINGLE = "single"  # numbers in single or half precision
NUMBER = "number"  # all others
FLAG = "true or false"  # numbers where they are asked for
TEXT = "text"
NUMERIC = (SINGLE, NUMBER)

Numbers = NDArray[Any]


@dataclass(frozen=True)
class Labels:
    """(k,) codes into categories, text or whole numbers; −1 where a label is missing."""

    codes: NDArray[np.int64]
    categories: list[Any]


Block = tuple[list[Numbers], Labels | None]


class Source(ABC):
    """An open file.

    Attributes
    ----------
    path : its name as given.
    format : what it is, in words.
    kinds : what each column holds: SINGLE, NUMBER, FLAG, TEXT or another word.
    aside : the same of columns that are no part of the points, but may be weights or groups.
    rows : how many, or None where that is not known before reading.
    notes : what there is to say of it.
    aliases : other names of columns.
    upright : columns that a transform of all columns leaves alone.
    """

    format: str

    def __init__(self, path: str, kinds: dict[str, str], rows: int | None) -> None:
        self.path = path
        self.kinds = kinds
        self.rows = rows
        self.aside: dict[str, str] = {}
        self.notes: list[str] = []
        self.aliases: dict[str, str] = {}
        self.upright: frozenset[str] = frozenset()

    @abstractmethod
    def blocks(self, names: Sequence[str], label: str | None, rows: int) -> Iterator[Block]:
        """The columns of these names, and the labels of another, about ``rows`` rows at a time."""

    def blocks_from(self, names: Sequence[str], label: str | None, rows: int, start: int) -> Iterator[tuple[int, Block]]:
        """The same blocks with the number of rows before each, without those that end before row ``start`` (counted from 0).

        Blocks are cut where they would be cut from the first row on: what is computed of a block must not depend on where
        reading began. Readers that can skip rows have their own way; this one reads blocks and leaves them out.
        """
        first = 0
        for block in self.blocks(names, label, rows):
            count = len(block[0][0])
            if first + count > start:
                yield first, block
            first += count


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


def encode(values: Numbers) -> Labels:
    """Labels from an array: whole numbers stay numbers, everything else becomes text."""
    values = np.asarray(values)
    if values.dtype.kind == "f":
        there = ~np.isnan(values)
        whole = bool((values[there] == np.rint(values[there])).all() and (np.abs(values[there]) < 2.0**63).all())
        kept = values[there].astype(np.int64) if whole else values[there].astype(str)
    elif values.dtype.kind == "O":
        there = np.array([value is not None and value == value for value in values.tolist()], bool)
        kept = np.array([_text(value) for value in values[there].tolist()], str)
    else:
        there = np.ones(len(values), bool)
        kept = values.astype(np.int64) if values.dtype.kind in "iu" else values if values.dtype.kind == "U" else _texts(values)
    categories, codes = np.unique(kept, return_inverse=True)
    out = np.full(len(values), -1, np.int64)
    out[there] = codes
    return Labels(out, categories.tolist())


def _texts(values: Numbers) -> Numbers:
    return np.array([_text(value) for value in values.tolist()], str)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class LabelBook:
    """Labels of several blocks, with one code for each category."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}
        self._parts: list[NDArray[np.int32]] = []

    def add(self, labels: Labels) -> None:
        """Take those of one more block, none of them missing."""
        places = [self._codes.setdefault(category, len(self._codes)) for category in labels.categories]
        self._parts.append(np.asarray(places, np.int32)[labels.codes] if places else np.empty(0, np.int32))

    def array(self) -> Numbers:
        """All labels so far: whole numbers where all are, else text."""
        categories = list(self._codes)
        whole = bool(categories) and all(isinstance(category, int) for category in categories)
        table = np.array(categories, np.int64) if whole else np.array([str(category) for category in categories], str)
        return table[np.concatenate([np.empty(0, np.int32), *self._parts])]


def left_out(kinds: dict[str, str], chosen: Sequence[str], besides: Sequence[str | None]) -> list[str]:
    """A note on the columns that hold no numbers."""
    names = [name for name, kind in kinds.items() if kind not in NUMERIC and name not in chosen and name not in besides]
    return [f"left out, for they hold no numbers: {listed(names)}"] if names else []
