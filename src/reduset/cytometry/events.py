"""The events of one file: its channels first, then all events with all channels, which cleaning and gates examine.

Events of FCS files are compensated and on a linear scale. In other files, every numeric column is a channel, without any change.
Events are in single precision, 4·n·C bytes at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array, Floats
from reduset.io import (
    LABELS_NOTE,
    NUMERIC,
    FcsReader,
    FileError,
    FileReader,
    ReadOptions,
    are_mass_channels,
    check_room,
    listed,
    no_dye,
    open_file,
)

ROWS = 65536
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class FileEvents:
    """All events of a file.

    Attributes
    ----------
    path : of the file
    channels : the names of its channels ($PnN)
    labels : their labels ($PnS), "" for none
    values : (n, C)
    tops : (C,) the largest value that a channel can hold; infinite if the file does not state it
    measured : (n, C) the values before compensation, which show saturated detectors; None if they are equal to ``values``
    """

    path: str
    channels: tuple[str, ...]
    labels: tuple[str, ...]
    values: Floats = field(repr=False)
    tops: Array = field(repr=False)
    measured: Floats | None = field(default=None, repr=False)


@dataclass(frozen=True)
class FileChannels:
    """The channels of a file, known before its events are read.

    Attributes
    ----------
    path : of the file
    names : of its channels ($PnN)
    labels : of its channels ($PnS), "" for none
    tops : (C,) the largest value that each can hold
    dyes : the positions of the channels that seem to measure a marker
    rows : the number of events; None if it is not known before reading
    is_fcs : whether it is an FCS file
    compensated : whether its events are compensated
    notes : remarks of the reader
    """

    path: str
    names: tuple[str, ...]
    labels: tuple[str, ...]
    tops: Array = field(repr=False)
    dyes: tuple[int, ...]
    rows: int | None
    is_fcs: bool
    compensated: bool
    notes: tuple[str, ...] = ()

    @property
    def is_mass(self) -> bool:
        """Whether it is a file of mass cytometry."""
        return self.is_fcs and are_mass_channels(self.names, self.labels)


def read_channels(path: str, compensate: bool) -> FileChannels:
    """The channels of a file."""
    source = open_file(path, ReadOptions(compensate=compensate))
    names = _numeric(source)
    if not names:
        raise FileError(f"{path}: holds no column of numbers; it has {listed(source.kinds) or 'none'}")
    labels, tops = _labels_and_tops(source, names)
    is_fcs = isinstance(source, FcsReader)
    others = [name for name in source.kinds if name not in names]
    notes = [note for note in source.notes if not (is_fcs and note.startswith(LABELS_NOTE))]
    notes += [f"left out, for they hold no numbers: {listed(others)}"] if others else []
    dyes = tuple(place for place, name in enumerate(names) if not (is_fcs and no_dye(name)))
    compensated = isinstance(source, FcsReader) and source.compensated
    return FileChannels(path, names, labels, tops, dyes, source.rows, is_fcs, compensated, tuple(notes))


def read_events(path: str, compensate: bool, measured: bool = False) -> FileEvents:
    """All events of a file; with ``measured`` also their values before compensation."""
    source = open_file(path, ReadOptions(compensate=compensate))
    names = _numeric(source)
    labels, tops = _labels_and_tops(source, names)
    raw = None
    if measured and isinstance(source, FcsReader) and source.compensated:
        raw = _values(open_file(path, ReadOptions(compensate=False)), names)
    return FileEvents(path, names, labels, _values(source, names), tops, raw)


def _numeric(source: FileReader) -> tuple[str, ...]:
    return tuple(name for name, kind in source.kinds.items() if kind in NUMERIC)


def _labels_and_tops(source: FileReader, names: tuple[str, ...]) -> tuple[tuple[str, ...], Array]:
    if isinstance(source, FcsReader):
        return source.labels, source.tops
    return ("",) * len(names), np.full(len(names), np.inf)


def _values(source: FileReader, names: tuple[str, ...]) -> NDArray[np.float32]:
    """(n, C) in one array that is allocated once where the number of rows is known."""
    rows, parts, filled = source.rows, [], 0
    whole = None
    if rows is not None:
        check_room(source.path, 4.0 * rows * len(names), "its events", "leave the file out, or give it fewer channels")
        whole = np.empty((rows, len(names)), np.float32)
    with np.errstate(over="ignore"):  # numbers beyond single precision become infinite, and are removed as such
        for block in source.blocks(names, [], ROWS):
            count = block.end - block.first
            part = np.empty((count, len(names)), np.float32) if whole is None else whole[filled : filled + count]
            if len(part) < count:
                raise FileError(f"{source.path}: holds more rows than it says; it is damaged")
            for place, column in enumerate(block.columns):
                part[:, place] = column
            filled += count
            if whole is None:
                parts.append(part)
    if not filled:
        raise FileError(f"{source.path}: holds no events")
    return np.concatenate(parts) if whole is None else whole[:filled]


class Flagged(NamedTuple):
    """The events (n,) that a cleaning step removes, and notes on what it could not do."""

    events: Flags
    notes: list[str]

    @classmethod
    def none(cls, count: int, *notes: str) -> Flagged:
        """None of ``count`` events."""
        return cls(np.zeros(count, bool), list(notes))
