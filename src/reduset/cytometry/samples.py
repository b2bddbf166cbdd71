"""Samples of a study: the cells of each sample on named markers, and the table of samples.

Samples come from files (`reduset.cytometry.read_cohort`), or from arrays and frames in memory (`SampleSet.of`). The table of
samples is a dict of columns, or a frame of pandas, polars or Arrow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._frames import framed
from reduset._types import Array, BagsLike, Floats, Indices
from reduset._validate import bags as checked_bags
from reduset._validate import missing

SHOWN = 5  # names in a message
Columns = dict[str, tuple[Any, ...]]
SAMPLE_ID = "sample_id"


@dataclass(frozen=True)
class SampleSet:
    """The samples of a cohort.

    Attributes
    ----------
    names : of the N samples, each once
    cells : of each sample (n, d), one column a marker, on the scale on which distances mean something
    markers : the names of the d columns
    table : the table of samples by column, each with N entries (text or numbers, None where one is missing)
    state : markers that describe cells and do not define their population
    counted : by step of reading and cleaning (N,) how many events it took away; first "events", how many there were
    left_out : samples that were asked for and are not there, with the reason
    notes : what there is to say of the files
    sources : the file of each sample, where they came from files
    events : of each sample (n,) the numbers of its cells among the events of its file, ascending; None where all are there
    channels : of each sample the d channels of its file that the markers are
    compensated : whether spillover was taken out of files that carry a matrix of it
    scales : by marker, the transform that its numbers went through
    """

    names: tuple[str, ...]
    cells: tuple[Floats, ...] = field(repr=False)
    markers: tuple[str, ...]
    table: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, repr=False)
    state: frozenset[str] = frozenset()
    counted: Mapping[str, NDArray[np.int64]] = field(default_factory=dict, repr=False)
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = field(default=(), repr=False)
    sources: tuple[str, ...] = field(default=(), repr=False)
    events: tuple[Indices | None, ...] | None = field(default=None, repr=False)
    channels: tuple[tuple[str, ...], ...] = field(default=(), repr=False)
    compensated: bool = False
    scales: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(N,) how many cells each sample has."""
        return np.array([len(each) for each in self.cells], np.int64)

    def column(self, name: str) -> tuple[Any, ...]:
        """A column of the table of samples."""
        if name not in self.table:
            raise ValueError(f"the table of samples has no column {name!r}; it has {', '.join(self.table) or 'none'}")
        return self.table[name]

    def numbers(self, name: str) -> Array:
        """(N,) a column of the table as numbers; refused where an entry is none, or missing."""
        numbers = np.empty(len(self.names))
        for place, entry in enumerate(self.column(name)):
            try:
                numbers[place] = np.nan if entry is None or isinstance(entry, bool) else float(entry)
            except (TypeError, ValueError):
                numbers[place] = np.nan
            if not np.isfinite(numbers[place]):
                seen = "no entry" if entry is None else repr(entry)
                raise ValueError(
                    f"column {name!r} must hold numbers to be taken as such, got {seen} for sample {self.names[place]!r}"
                )
        return numbers

    @classmethod
    def of(cls, bags: BagsLike, samples: Any = None, markers: Sequence[str] | None = None, *, sample: Any = None) -> SampleSet:
        """Samples from arrays or frames in memory, as they are: no transform, no cleaning.

        Parameters
        ----------
        bags : a list of (n, d) arrays or frames, a mapping of names to them, or one long table with ``sample``
        samples : the table of samples: a dict of columns, or a frame. Its rows are found by the column `sample_id` (or that of the
            name ``sample``, or the index of a pandas frame), or by their order where the samples have no names
        markers : the names of the d columns; None takes those of the frames, or x0, x1, …
        sample : the column of a long table that says which sample a row belongs to, or a label a row
        """
        given, cells, columns = checked_bags(bags, sample)
        titles = _marker_names(markers, columns, cells[0].shape[1])
        nameless = sample is None and not isinstance(bags, Mapping)
        names = [f"sample {k + 1}" for k in range(len(given))] if nameless else [as_text(name) for name in given]
        _refuse_twice(names, "bags must have names that differ as text")
        table: Columns = {}
        left_out: dict[str, str] = {}
        if samples is not None:
            table, names, left_out = _matched(columns_of(samples), names, nameless, sample)
        floats = tuple(each if each.dtype.kind == "f" else each.astype(np.float64) for each in cells)
        return cls(tuple(names), floats, titles, table, left_out=left_out)


def _marker_names(markers: Sequence[str] | None, columns: Sequence[Any] | None, count: int) -> tuple[str, ...]:
    if markers is None:
        return tuple(map(str, columns)) if columns is not None else tuple(f"x{k}" for k in range(count))
    if isinstance(markers, str) or not all(isinstance(name, str) for name in markers) or len(markers) != count:
        raise ValueError(f"markers must be {count} names, one a column; got {markers!r}")
    _refuse_twice(markers, "markers must each have a name of its own")
    return tuple(markers)


def _refuse_twice(names: Sequence[str], rule: str) -> None:
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise ValueError(f"{rule}, got {twice!r} twice")


def _matched(table: Columns, names: list[str], nameless: bool, sample: Any) -> tuple[Columns, list[str], dict[str, str]]:
    """The rows of the table in the order of the samples, the names of these, and samples of the table that have no cells."""
    key = next((key for key in table if key.lower() == SAMPLE_ID), sample if isinstance(sample, str) and sample in table else None)
    count = len(next(iter(table.values())))
    if key is None and not nameless:
        raise ValueError(f"samples must have a column {SAMPLE_ID!r} to be matched with {names[0]!r}; it has {', '.join(table)}")
    if nameless and count != len(names):
        raise ValueError(f"samples must have a row for each of the {len(names)} samples, in their order; got {count}")
    if key is None:
        return table, names, {}
    ids = ["" if entry is None else as_text(entry) for entry in table[key]]
    if "" in ids:
        raise ValueError(f"samples must have an entry of {key!r} in every row, got none in row {ids.index('') + 1}")
    _refuse_twice(ids, f"samples must have another {key!r} in each row")
    if nameless:
        return table, ids, {}
    absent = [name for name in names if name not in ids]
    if absent:
        some = ", ".join(absent[:SHOWN]) + (f" and {len(absent) - SHOWN} more" if len(absent) > SHOWN else "")
        raise ValueError(f"samples must have a row for every sample, got none for {some}; {key!r} has {', '.join(ids[:SHOWN])}, …")
    rows = [ids.index(name) for name in names]
    others = {each: "is in the table of samples, and has no cells" for each in ids if each not in names}
    return {name: tuple(column[row] for row in rows) for name, column in table.items()}, names, others


def columns_of(samples: Any, name: str = "samples") -> Columns:
    """Columns of one length, None where an entry is missing.

    The index of a pandas frame is a column too, unless it only counts rows: under its own name, or as `sample_id`.
    """
    samples = framed(samples)
    if isinstance(samples, Mapping):
        columns = {str(key): _entries(value, key, name) for key, value in samples.items()}
    elif hasattr(samples, "columns") and hasattr(samples, "__getitem__"):
        columns = {str(key): _entries(samples[key].to_list(), key, name) for key in list(samples.columns)}
        columns = _index(samples, name) | columns
    else:
        raise TypeError(f"{name} must be a dict of columns, or a frame; got {type(samples).__name__}")
    lengths = {key: len(column) for key, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{name} must have columns of one length, got {lengths}")
    if not columns or not next(iter(lengths.values())):
        raise ValueError(f"{name} must hold at least one row, got none; leave it out where there is no table")
    return columns


def _entries(column: Any, key: Any, name: str) -> tuple[Any, ...]:
    if isinstance(column, str | bytes) or not isinstance(column, Iterable):
        raise TypeError(f"{name}[{key!r}] must hold one entry a sample, got {column!r}")
    plain = column.tolist() if hasattr(column, "tolist") else list(column)
    return tuple(None if missing(entry) else entry for entry in plain)


def _index(frame: Any, name: str) -> Columns:
    """What the index of a pandas frame says of its rows, if anything."""
    index = getattr(frame, "index", None)
    if index is None or not hasattr(index, "names") or len(index.names) != 1 or type(index).__name__ == "RangeIndex":
        return {}
    entries = _entries(index, "index", name)
    if index.name is None and not all(isinstance(entry, str) for entry in entries):
        return {}  # numbers of rows, some of which were left out
    return {SAMPLE_ID if index.name is None else str(index.name): entries}


def as_text(value: Any) -> str:
    """An entry as text, as a table shows it: whole numbers without a point, dates without midnight."""
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.15g}"
    if hasattr(value, "isoformat"):
        return str(value.isoformat()).removesuffix("T00:00:00").replace("T", " ")
    return str(value).strip()
