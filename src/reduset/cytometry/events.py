"""The channels and events of one file, and the channel that matches a name.

Events of FCS files are compensated and on a linear scale. In other files, every numeric column is a channel, without any change.
Events are in single precision, 4·n·C bytes at a time.

Channels by name. A name matches the channel with that $PnN or $PnS. If there is none, case and punctuation are ignored, and then
`FITC` also matches `FITC-A`. Two channels that match equally well raise an error. `$P7` (or `$P7N`) is the seventh channel, for
files with ambiguous names.

Time, scatter and the part of a pulse (area, height or width) follow from the names that manufacturers write: `FSC-A`, `FSC-Area`,
`FSC A`, `FS-A`, `FSCA`. In Beckman's files `FS INT LIN` is an area, `FS PEAK LIN` a height and `FS TOF LIN` (time of flight) a
width. A name without a part is a height, because instruments that measure one number of a pulse measure its height.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array, Floats
from reduset.cytometry.lab_tables import loose
from reduset.io import (
    LABELS_NOTE,
    NUMERIC,
    PULSES,
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
AREA, HEIGHT, WIDTH = "area", "height", "width"
FORWARD, SIDE = "forward scatter", "side scatter"
Flags = NDArray[np.bool_]

_CLOCK = re.compile(r"\s*(time|hdr-t)(?![a-z])", re.IGNORECASE)
_COUNTER = re.compile(r"\s*(event([ _-]?(#|id|number|count|num))?\s*$|hdr-)", re.IGNORECASE)
_SCATTER = {
    FORWARD: re.compile(r"fsc|forward|(?<![a-z])fs[ahw]?(?![a-z])", re.IGNORECASE),
    SIDE: re.compile(r"ssc|side.?scatter|(?<![a-z])ss[ahw]?(?![a-z])", re.IGNORECASE),
}
_PART = re.compile(
    r"(.*?)[^a-z0-9]*(?:(area|a|integral|int)|(height|h|peak)|(width|w|tof))?(?:[^a-z0-9]+(?:lin|log))?", re.IGNORECASE
)
_WIDTH = re.compile(r"(.*[^a-z0-9](w|width|tof)([^a-z0-9]+(lin|log))?|[fs]sc?w)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class FileEvents:
    """All events of a file.

    Attributes
    ----------
    path : Path of the file.
    channels : Names of its channels ($PnN).
    labels : Labels of its channels ($PnS), "" for none.
    values : Events, (n, C).
    tops : Largest possible value of each channel, (C,); infinite if the file does not state it.
    measured : Values before compensation, (n, C), which show saturated detectors; None if they are equal to ``values``.
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
    path : Path of the file.
    names : Names of its channels ($PnN).
    labels : Labels of its channels ($PnS), "" for none.
    tops : Largest possible value of each channel, (C,).
    dyes : Indices of the channels that seem to measure a marker.
    rows : Number of events; None if it is not known before reading.
    is_fcs : Whether it is an FCS file.
    notes : Remarks of the reader.
    """

    path: str
    names: tuple[str, ...]
    labels: tuple[str, ...]
    tops: Array = field(repr=False)
    dyes: tuple[int, ...]
    rows: int | None
    is_fcs: bool
    notes: tuple[str, ...] = ()

    @property
    def is_mass(self) -> bool:
        """Whether the file is from mass cytometry."""
        return self.is_fcs and are_mass_channels(self.names, self.labels)

    def has_own_label(self, position: int) -> bool:
        """Whether a channel has a label other than its name."""
        label = loose(self.labels[position])
        return bool(label) and label != loose(self.names[position])


def read_channels(path: str, compensate: bool) -> FileChannels:
    """The channels of a file."""
    source, names, labels, tops = _opened(path, compensate)
    if not names:
        raise FileError(f"{path}: holds no column of numbers; it has {listed(source.kinds) or 'none'}")
    is_fcs = isinstance(source, FcsReader)
    others = [name for name in source.kinds if name not in names]
    notes = [note for note in source.notes if not (is_fcs and note.startswith(LABELS_NOTE))]
    notes += [f"omitted, without numbers: {listed(others)}"] if others else []
    dyes = tuple(position for position, name in enumerate(names) if not (is_fcs and no_dye(name)))
    return FileChannels(path, names, labels, tops, dyes, source.rows, is_fcs, tuple(notes))


def read_events(path: str, compensate: bool, measured: bool = False) -> FileEvents:
    """All events of a file; with ``measured`` also their values before compensation."""
    source, names, labels, tops = _opened(path, compensate)
    raw = None
    if measured and isinstance(source, FcsReader) and source.compensated:
        raw = _values(open_file(path, ReadOptions(compensate=False)), names)
    return FileEvents(path, names, labels, _values(source, names), tops, raw)


def _opened(path: str, compensate: bool) -> tuple[FileReader, tuple[str, ...], tuple[str, ...], Array]:
    """The reader of a file, and names, labels and ranges of its numeric columns."""
    source = open_file(path, ReadOptions(compensate=compensate))
    names = tuple(name for name, kind in source.kinds.items() if kind in NUMERIC)
    if isinstance(source, FcsReader):
        return source, names, source.labels, source.tops
    return source, names, ("",) * len(names), np.full(len(names), np.inf)


def _values(source: FileReader, names: tuple[str, ...]) -> NDArray[np.float32]:
    """(n, C) in one array, allocated once if the number of rows is known."""
    rows, parts, filled = source.rows, [], 0
    values = None
    if rows is not None:
        check_room(source.path, 4.0 * rows * len(names), "its events", "omit the file, or some of its channels")
        values = np.empty((rows, len(names)), np.float32)
    with np.errstate(over="ignore"):  # numbers beyond single precision become infinite and are removed later
        for block in source.blocks(names, [], ROWS):
            count = block.end - block.first
            part = np.empty((count, len(names)), np.float32) if values is None else values[filled : filled + count]
            if len(part) < count:
                raise FileError(f"{source.path}: holds more rows than it states; it is damaged")
            for position, column in enumerate(block.columns):
                part[:, position] = column
            filled += count
            if values is None:
                parts.append(part)
    if not filled:
        raise FileError(f"{source.path}: holds no events")
    return np.concatenate(parts) if values is None else values[:filled]


# -- channels by name ---------------------------------------------------------------------------------------------------------


def find_channel(file: FileChannels, name: str) -> int | None:
    """The index of the channel that matches a name; None if there is none."""
    number = re.fullmatch(r"\$P([1-9][0-9]{0,5})[NS]?", name.strip(), re.IGNORECASE)
    if number is not None:
        return int(number[1]) - 1 if int(number[1]) <= len(file.names) else None
    spellings: list[tuple[str, Callable[[str], str]]] = [(name.strip(), str), (loose(name), loose), (loose(name), _without_pulse)]
    for wanted, spelled in spellings:
        pairs = enumerate(zip(file.names, file.labels, strict=True))
        matches = [k for k, (channel, label) in pairs if wanted == spelled(channel) or (label and wanted == spelled(label))]
        if len(matches) > 1:
            first, second = (_described(file, position) for position in matches[:2])
            raise FileError(f"{file.path}: {name!r} fits {first} and {second}; name its $PnN or its number ($P7) in the panel")
        if matches:
            return matches[0]
    return None


def _without_pulse(name: str) -> str:
    """`FITC-A` as `FITC`, without case and punctuation."""
    return loose(name[:-2] if name[-2:].replace("_", "-").replace(" ", "-").upper() in PULSES else name)


def _described(file: FileChannels, position: int) -> str:
    name, label = file.names[position], file.labels[position]
    return f"channel {position + 1}, {name}" + (f" (labelled {label})" if label and label != name else "")


def clock_of(channels: Sequence[str], labels: Sequence[str]) -> int | None:
    """The index of the time channel, by its name, otherwise by its label; None if there is none."""
    positions = [k for names in (channels, labels) for k, name in enumerate(names) if _CLOCK.match(name)]
    return positions[0] if positions else None


def lights(channels: Sequence[str]) -> list[int]:
    """The indices of all scatter and dye channels: all but time and event counters."""
    return [position for position, name in enumerate(channels) if not _CLOCK.match(name) and not _COUNTER.match(name)]


def is_width(name: str) -> bool:
    """Whether a channel is the width of a pulse."""
    return _WIDTH.fullmatch(name) is not None


def scatter_parts(channels: Sequence[str], direction: str) -> dict[str, int]:
    """The channels of area, height and width of scattered light, for the detector with most of these parts."""
    detectors: dict[str, dict[str, int]] = {}
    for position, name in enumerate(channels):
        match = _PART.fullmatch(name.strip())
        if match is not None and _SCATTER[direction].search(name) is not None:
            part = AREA if match[2] else WIDTH if match[4] else HEIGHT
            detectors.setdefault(match[1].lower(), {}).setdefault(part, position)
    return max(detectors.values(), key=len, default={})
