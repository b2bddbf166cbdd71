"""What is read of each file, settled before any of it is: the columns, their scales, and how many rows there are.

Files are opened one after the other to be looked at, and closed: of thousands only what was seen is kept. A single one stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from reduset._validate import flag, one_of
from reduset.io.arrays import NpySource, NpzSource
from reduset.io.arrow import FeatherSource, ParquetSource
from reduset.io.choice import Choice, asked, choose, choose_alike
from reduset.io.delimited import DelimitedSource
from reduset.io.fcs import FcsSource
from reduset.io.folders import files_of
from reduset.io.formats import format_of
from reduset.io.gathering import scales_of
from reduset.io.h5ad import H5adSource
from reduset.io.images import ImageSource
from reduset.io.source import Source
from reduset.io.table import FileError

ROWS = 65536
BLOCK = 1 << 19  # bytes of a block of rows, about
FEW = 3  # files that are named with a note of theirs


@dataclass(frozen=True)
class Options:
    """What was asked for."""

    columns: list[str] | None
    weight: str | None
    group: str | None
    transform: Any
    compensate: bool
    missing: str
    key: str | None


DEFAULTS = {
    "columns": None,
    "weight_column": None,
    "group_column": None,
    "transform": None,
    "compensate": True,
    "missing": "refuse",
    "key": None,
}


def options_of(**given: Any) -> Options:
    """What was asked for, checked as far as it can be without a file."""
    for name in given:
        if name not in DEFAULTS:
            raise TypeError(f"unexpected argument {name!r}; there are {', '.join(DEFAULTS)}")
    columns, weight, group, transform, compensate, missing, key = (DEFAULTS | given).values()
    one_of(missing, "missing", ("refuse", "drop"))
    if key is not None and not isinstance(key, str):
        raise TypeError(f"key must be the name of an array in the file, got {key!r}")
    return Options(asked(columns), weight, group, transform, flag(compensate, "compensate"), missing, key)


@dataclass(frozen=True)
class Plan:
    """What is read of one file."""

    path: str
    choice: Choice
    rows: int | None
    scales: dict[str, str]
    notes: tuple[str, ...]
    open: Callable[[], Source]

    @classmethod
    def of(cls, source: Source, choice: Choice, options: Options, reopen: Callable[[], Source] | None = None) -> Plan:
        """What is read of an open file, which stays open unless there is a way to open it again."""
        scales, told = scales_of(options.transform, source, choice)
        return cls(
            source.path,
            choice,
            source.rows,
            {title: one.name for title, one in scales.items()},
            (*source.notes, *choice.notes, *told),
            (lambda: source) if reopen is None else reopen,
        )

    @property
    def block_rows(self) -> int:
        """How many rows are read at a time: a block stays in the cache."""
        return max(1024, min(ROWS, BLOCK // (8 * len(self.choice.titles))))


def open_source(path: str, key: str | None = None, compensate: bool = True) -> Source:
    """A file, opened by the reader of its format."""
    kind, packed = format_of(path)
    if kind == "npz":
        return NpzSource(path, key)
    if kind == "h5ad":
        return H5adSource(path, key)
    if kind == "fcs":
        return FcsSource(path, key, compensate)
    if key is not None:
        raise FileError(f"{path}: key={key!r} is for files of several arrays (.npz, .h5ad); leave it out")
    if kind in ("csv", "tsv"):
        return DelimitedSource(path, "\t" if kind == "tsv" else None, packed)
    readers: dict[str, Callable[[str], Source]] = {
        "parquet": ParquetSource,
        "arrow": FeatherSource,
        "npy": NpySource,
        "image": ImageSource,
    }
    return readers[kind](path)


def plans_of(paths: Any, options: Options) -> list[Plan]:
    """What is read of all files: the same columns of each."""
    names = files_of(paths)
    plans: list[Plan] = []
    for name in names:
        reopen = partial(open_source, name, options.key, options.compensate)
        source = reopen()
        if not plans:
            choice = choose(source, options.columns, options.weight, options.group)
        else:
            choice = choose_alike(source, plans[0].choice, names[0], options.columns)
        plans.append(Plan.of(source, choice, options, reopen if len(names) > 1 else None))
        if plans[-1].scales != plans[0].scales:  # scatter and time of FCS files are left alone
            raise FileError(f"{name}: transform takes other columns than in {names[0]}; say it for each column by name")
    return plans


def total_rows(plans: Iterable[Plan]) -> int | None:
    """The rows of all files together; None where some file does not say."""
    total = 0
    for plan in plans:
        if plan.rows is None:
            return None
        total += plan.rows
    return total


def notes_of(plans: list[Plan], dropped: int) -> tuple[str, ...]:
    """What there is to say of files: once where it is the same of all, else with the names of those it is said of."""
    told: dict[str, list[str]] = {}
    for plan in plans:
        for note in dict.fromkeys(plan.notes):
            told.setdefault(note, []).append(plan.path)
    notes = []
    for note, paths in told.items():
        if len(paths) == len(plans):
            notes.append(note)
        elif len(paths) <= FEW:
            notes += [f"{path}: {note}" for path in paths]
        else:
            notes.append(f"{paths[0]} and {len(paths) - 1:,} other files: {note}")
    if dropped:
        notes.append(f"{dropped:,} row{'s' if dropped > 1 else ''} with missing values left out")
    return tuple(notes)
