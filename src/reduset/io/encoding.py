"""Categories and dates as numbers: how that is asked for, and the encoder of one column, which can also be undone.

A column of k categories becomes k columns of 0 and 1 (onehot), equally far from each other; or one of their places 0, 1, … in an
order that means something (ordinal). Dates become days since 1970-01-01. A category that an encoder does not know is an error, as
scikit-learn's encoders have it unless they are told otherwise: a row of zeros would lie nearer to every category than any two do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._messages import did_you_mean
from reduset.io.reader import CodedLabels, Numbers
from reduset.io.table import FileError, listed

ONEHOT, ORDINAL, DAYS, AUTO = "onehot", "ordinal", "days", "auto"
WAYS = (
    "'auto', 'city=onehot,grade=ordinal:low:mid:high,when=days', or a dict of columns to 'onehot', 'ordinal', 'days' or "
    "{'onehot': [...]}"
)
PAIR = re.compile(rf"(.+?)=({ONEHOT}|{ORDINAL}|{DAYS})((?::[^:]*)*)", re.DOTALL)
MOST = 1000  # categories: more columns than that are no table
SHOWN = 12  # categories in a note
UNKNOWN, ABSENT = -2, -1


@dataclass(frozen=True)
class Encoder:
    """How one column becomes numbers; its categories, text or whole numbers, are None until the files have been looked at."""

    column: str
    way: str
    categories: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        if self.categories is None:
            return
        texts = [str(each) for each in self.categories]
        odd = next((each for each in self.categories if not isinstance(each, str | int) or isinstance(each, bool)), None)
        if self.way == DAYS or not texts or odd is not None or len(set(texts)) < len(texts):
            raise ValueError(f"encode must be {WAYS}, categories being texts or whole numbers, each once; got {texts[:6]}")

    @property
    def known(self) -> tuple[Any, ...]:
        """The categories, of which dates have none."""
        return self.categories or ()

    @property
    def titles(self) -> tuple[str, ...]:
        """What its columns are called."""
        return tuple(f"{self.column}={each}" for each in self.known) if self.way == ONEHOT else (self.column,)

    @property
    def plain(self) -> Any:
        """The same, as it is asked for and kept with models."""
        return self.way if self.categories is None else {self.way: list(self.categories)}

    @property
    def note(self) -> str:
        """What it does, in words."""
        if self.way == DAYS:
            return f"{self.column} as days since 1970-01-01"
        if self.way == ONEHOT:
            return f"{self.column} as {len(self.known)} columns of 0 and 1: {listed(self.known)}"
        more = " < …" if len(self.known) > SHOWN else ""
        return f"{self.column} as 0 to {len(self.known) - 1}: {' < '.join(map(str, self.known[:SHOWN]))}{more}"

    def codes(self, path: str, labels: CodedLabels, first: int) -> Numbers:
        """The place of each label among the categories, NaN where one is missing; ``first`` is the number of the first row."""
        places = {str(each): place for place, each in enumerate(self.known)}
        table = np.array([*(places.get(str(each), UNKNOWN) for each in labels.categories), ABSENT])
        codes = table[labels.codes]
        if (codes == UNKNOWN).any():
            row = int(np.argmax(codes == UNKNOWN))
            seen = labels.categories[labels.codes[row]]
            raise FileError(
                f"{path}: column {self.column!r} must hold categories that its encoding has ({listed(self.known, 6)}), "
                f"got {str(seen)[:40]!r} in row {first + row}; leave such rows out, or encode anew with all of them"
            )
        return np.where(codes == ABSENT, np.nan, codes)

    def columns(self, codes: Numbers) -> dict[str, Numbers]:
        """Its columns by title."""
        if self.way != ONEHOT:
            return {self.column: codes}
        return {title: np.where(np.isnan(codes), np.nan, codes == place) for place, title in enumerate(self.titles)}

    def undone(self, values: NDArray[Any]) -> Any:
        """The column that (m, titles) numbers were made from; None where they lie between categories."""
        if self.way == DAYS:
            whole = bool((values == np.rint(values)).all())
            steps = values[:, 0] if whole else values[:, 0] * 86_400e6
            return np.rint(steps).astype(np.int64).astype("datetime64[D]" if whole else "datetime64[us]")
        codes = values.argmax(axis=1) if self.way == ONEHOT else values[:, 0]
        exact = np.eye(len(self.known))[codes] if self.way == ONEHOT else np.clip(np.rint(values), 0, len(self.known) - 1)
        if not np.array_equal(exact, values):
            return None
        return [self.known[int(code)] for code in codes]


def parse_encoding(encode: Any) -> tuple[bool, dict[str, Encoder]]:
    """Whether all other columns are to be encoded too, as befits each; and the encoders of those that are named."""
    if encode is None:
        return False, {}
    if isinstance(encode, str):
        parts = [part.strip() for part in encode.split(",")]
        pairs = [(part, PAIR.fullmatch(part)) for part in parts if part != AUTO]
        for part, pair in pairs:
            if pair is None:
                raise ValueError(f"encode must be {WAYS}; got {part!r}{_suggested(part)}")
        named = [(pair[1], pair[2], pair[3].split(":")[1:] or None) for _, pair in pairs if pair is not None]
        if len({column for column, *_ in named}) < len(named):
            raise ValueError(f"encode must name each column once, got {encode!r}")
        return AUTO in parts, {column: encoder(column, way, given) for column, way, given in named}
    if not isinstance(encode, Mapping):
        raise TypeError(f"encode must be {WAYS}; got {encode!r}")
    found = {}
    for column, way in encode.items():
        given: Any = None
        if isinstance(way, Mapping) and len(way) == 1:
            ((way, given),) = way.items()
        if not isinstance(column, str) or way not in (ONEHOT, ORDINAL, DAYS) or isinstance(given, str):
            raise ValueError(f"encode must be {WAYS}; got {way!r} for {column!r}{did_you_mean(way, (ONEHOT, ORDINAL, DAYS))}")
        found[column] = encoder(column, way, given)
    return False, found


def _suggested(part: str) -> str:
    """The closest name of a way: of a part "column=way", or of one that names no column."""
    _, sign, way = part.partition("=")
    return did_you_mean(way.partition(":")[0], (ONEHOT, ORDINAL, DAYS)) if sign else did_you_mean(part, (AUTO,))


def encoder(column: str, way: str, categories: Iterable[Any] | None) -> Encoder:
    """An encoder by its categories, where they are given."""
    return Encoder(column, way, None if categories is None else tuple(categories))


def in_order(categories: Iterable[Any]) -> list[Any]:
    """Categories sorted: as numbers where all are, else as text."""
    found = list(categories)
    try:
        sizes = [float(each) for each in found]
    except ValueError:
        sizes = [math.nan]
    return sorted(found, key=float if all(map(math.isfinite, sizes)) else str)


def undo(encoding: Mapping[str, Any], titles: Sequence[str], values: NDArray[Any]) -> tuple[dict[str, Any], list[str]]:
    """Columns by name, encoded ones as they were before where that can be told; and which ones could not be."""
    seat = {title: place for place, title in enumerate(titles)}
    raw: dict[str, Any] = {}
    home: dict[str, str] = {}
    for column, each in parse_encoding(encoding)[1].items():
        if all(title in seat for title in each.titles):
            raw[column] = each.undone(values[:, [seat[title] for title in each.titles]])
            home |= dict.fromkeys(each.titles if raw[column] is not None else (), column)
    found: dict[str, Any] = {}
    for title, place in seat.items():
        found.setdefault(home.get(title, title), raw[home[title]] if title in home else values[:, place])
    return found, [column for column, told in raw.items() if told is None]
