"""Columns of a study as scanpy plots them and files hold them: texts as categories, numbers as numbers, names that are keys.

A key of HDF5 has no "/", is neither "" nor ".", and "_index" is AnnData's own: such names are changed, and a record says which.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from reduset._types import Indices
from reduset.cytometry.sample_columns import as_text
from reduset.io.guard import need

WHOLE = 1 << 53  # up to which doubles are exact
PLAIN_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)?(\.[0-9]+)?(?<=[0-9])")


def pandas() -> Any:
    """The library of frames that comes with anndata."""
    return need("reduset.anndata", "pandas", "anndata")


class KeyNames:
    """Names as keys of a file, each once; ``record`` has what was changed."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._changed: dict[str, str] = {}

    def key(self, name: str) -> str:
        """The key of a name, one that no other has."""
        plain = name.replace("/", "_").replace("\x00", "")
        plain = "" if plain in (".", "_index") else plain
        key, number = plain or "column " + name.replace("/", "_").replace("\x00", ""), 2
        while key in self._taken:
            key, number = f"{plain} ({number})", number + 1
        self._taken.add(key)
        if key != name:
            self._changed[key] = name
        return key

    def keys(self, names: Iterable[str]) -> list[str]:
        """The keys of several names."""
        return [self.key(name) for name in names]

    def record(self) -> dict[str, Any]:
        """What was changed: keys, and the names that they had."""
        return {"key": texts(self._changed), "name": texts(self._changed.values())} if self._changed else {}


def texts(values: Iterable[str]) -> Any:
    """Texts as an array that files of AnnData hold."""
    return np.array(list(values), object)


def frame(columns: Mapping[str, Any], names: Sequence[str]) -> Any:
    """A frame of columns, its rows called by names."""
    return pandas().DataFrame(dict(columns), index=pandas().Index(list(names), dtype=object))


def categories(codes: Indices, names: Sequence[str]) -> Any:
    """A column of categories by their numbers; those without a row are kept, so that colours stay theirs."""
    return pandas().Categorical.from_codes(codes, texts(names))


def column_of_entries(entries: Sequence[Any], as_numbers: bool = False) -> Any:
    """A column of the table of samples: flags, numbers (nan where one is missing), or categories of texts.

    ``as_numbers`` also takes texts as numbers where all of them are.
    """
    there = [entry for entry in entries if entry is not None]
    if there and all(isinstance(entry, bool | np.bool_) for entry in there) and len(there) == len(entries):
        return np.array(entries, bool)
    numbers = _numbers(entries, as_numbers)
    if numbers is not None:
        whole = len(there) == len(entries) and all(_is_whole(entry) for entry in there)
        return numbers.astype(np.int64) if whole and np.abs(numbers).max(initial=0) < WHOLE else numbers
    return pandas().Categorical([None if entry is None else as_text(entry) for entry in entries])


def _is_whole(entry: Any) -> bool:
    return isinstance(entry, int | np.integer) or (isinstance(entry, str) and entry.lstrip("-").isdigit())


def are_measured(entries: Sequence[Any]) -> bool:
    """Whether entries are texts of plain numbers, those of ages and counts; "007" is a name."""
    there = [entry for entry in entries if entry is not None]
    return bool(there) and all(isinstance(entry, str) and PLAIN_NUMBER.fullmatch(entry) for entry in there)


def _numbers(entries: Sequence[Any], as_numbers: bool) -> Any:
    """Entries as numbers, where all that are there are some."""
    if any(isinstance(entry, bool | np.bool_) for entry in entries):
        return None
    kinds = (int, float, np.integer, np.floating, *((str,) if as_numbers else ()))
    if not all(entry is None or isinstance(entry, kinds) for entry in entries):
        return None
    try:
        return np.array([math.nan if entry is None else float(entry) for entry in entries])
    except (ValueError, OverflowError):
        return None
