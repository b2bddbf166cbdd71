"""Flow cytometry: events of FCS 2.0 to 3.2, list mode, as integers of any number of bytes, float32 or float64.

Values are on a linear scale, as in flowio's ``as_array``. Integers with logarithmic amplification ($PnE) become
10^(decades · x / range) · least. The gain $PnG divides, and $TIMESTEP converts ticks of the clock to seconds. By the standard,
floating-point events ignore $PnE. ``key="events"`` returns the stored numbers instead.

Compensation is events · S⁻¹ with the spillover matrix S of the file: S[i, j] is the signal of dye i in channel j as a proportion of
its signal in channel i. The keyword is $SPILLOVER in FCS 3.1, SPILL before, and $COMP in 3.0. Channels are named by $PnN, in some
files by their labels ($PnS) or numbers. The percentages $DFCiTOj of 2.0 are not applied, since no file states whether its
instrument has done so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from reduset._types import Array
from reduset.io.channels import FLUORESCENCE, MASS, are_mass_channels, no_dye, omitted
from reduset.io.fcs_text import Channel, FcsHead, read_head
from reduset.io.reader import NUMBER, SINGLE, Block, FileReader, Format, Numbers, ReadOptions, block_of
from reduset.io.table import FileError, listed

LABELS_NOTE = "labels"  # first word of the note on labels
SMALL_RANGE = 1 << 16
MAX_CONDITION = 1e12


class FcsReader(FileReader):
    """An FCS file."""

    def __init__(self, path: str, options: ReadOptions) -> None:
        key = re.fullmatch(r"(?:([1-9][0-9]{0,3})(?:/|$))?(events)?", options.key or "")
        if key is None or options.key == "":
            way_out = "leave it out, or 'events' for the numbers as stored, '2' for the second data set, '2/events'"
            raise FileError(f"{path}: key={options.key!r} is no part of an FCS file; {way_out}")
        head = read_head(path, int(key[1] or 1))
        self._events = _EventBytes(path, head)
        self._as_stored = key[2] is not None
        names = [channel.name for channel in head.channels]
        kinds = {channel.name: SINGLE if channel.kind == "F" else NUMBER for channel in head.channels}
        super().__init__(path, kinds, self._events.rows)
        self._channels, (self._time_step, step_notes) = head.channels, _time_step(head)
        self._positions = {name: position for position, name in enumerate(names)}
        self.aliases = _aliases(head.channels)
        self.unasked = omitted(names, self.labels)
        self.upright = frozenset(name for name in names if no_dye(name))
        if not self._as_stored:
            self.automatic = MASS if are_mass_channels(names, self.labels) else FLUORESCENCE
            self.highest = dict(zip(names, self.tops.tolist(), strict=True))
        self.notes += [*head.notes, *self._events.notes, *step_notes]
        labelled = [f"{name} is {label}" for label, name in self.aliases.items()]
        self.notes += [f"{LABELS_NOTE}: {listed(labelled, 40)}"] if labelled else []
        self._spillover = None
        if options.compensate and not self._as_stored:
            self._spillover, note = _spillover_of(path, head)
            self.notes += [note] if note else []

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of all channels ($PnS), "" for none."""
        return tuple(channel.label for channel in self._channels)

    @property
    def tops(self) -> Array:
        """(C,) the largest possible value of each channel as read; infinite if the file does not state it."""
        return np.array([self._top(channel) for channel in self._channels])

    @property
    def compensated(self) -> bool:
        """Whether events are compensated."""
        return self._spillover is not None

    def _top(self, channel: Channel) -> float:
        if not 1 < channel.range < np.inf:
            return np.inf
        # values of converters with few bits end at the range minus 1, also if stored as floating point
        top = channel.range - 1 if channel.kind == "I" or channel.range < SMALL_RANGE else channel.range
        return float(top if self._as_stored else _linear(np.array([top]), channel, self._time_step)[0])

    def _blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int) -> Iterator[Block]:
        wanted = {self._positions[name] for name in (*names, *labels)}
        for first in range(start // rows * rows, self._events.rows, rows):
            columns = self._columns(first, min(first + rows, self._events.rows), wanted)
            yield block_of(first, columns.__getitem__, names, labels)

    def _columns(self, start: int, stop: int, positions: set[int]) -> dict[str, Numbers]:
        """Compensated columns of some events by name."""
        mixed = self._spillover.positions if self._spillover is not None else []
        cells = self._events.cells(start, stop)
        columns = {}
        for position in {*positions, *(mixed if set(mixed) & positions else [])}:
            stored = self._events.column(cells, position)
            columns[position] = stored if self._as_stored else _linear(stored, self._channels[position], self._time_step)
        if self._spillover is not None and set(mixed) <= columns.keys():
            spilled = np.column_stack([columns[position] for position in mixed]).T.astype(np.float64)
            columns |= dict(zip(mixed, np.linalg.solve(self._spillover.matrix.T, spilled), strict=True))
        return {self._channels[position].name: column for position, column in columns.items()}


def _linear(stored: Numbers, channel: Channel, time_step: float) -> Numbers:
    scale = time_step if channel.is_time else 1.0 / channel.gain
    if channel.kind == "I" and channel.decades > 0 and channel.range > 0:
        return 10.0 ** (channel.decades * stored.astype(np.float64) / channel.range) * (channel.least * scale)
    return stored if scale == 1.0 else stored.astype(np.float64) * scale


def _time_step(head: FcsHead) -> tuple[float, list[str]]:
    """Seconds per tick of the clock; 1 and a note if the keyword cannot be read."""
    value = head.text.get("timestep", "").strip()
    try:
        step = float(value or 1.0)
    except ValueError:
        step = 0.0
    if 0 < step < np.inf or not any(channel.is_time for channel in head.channels):
        return step or 1.0, []
    return 1.0, [f"its $TIMESTEP must be a number of seconds, got {value[:40]!r}: Time is in ticks of its clock"]


def _aliases(channels: list[Channel]) -> dict[str, str]:
    """Channels by their labels, if a label is unique and no channel's name."""
    names = {channel.name for channel in channels}
    labels = [channel.label for channel in channels]
    return {
        channel.label: channel.name
        for channel in channels
        if channel.label and channel.label not in names and labels.count(channel.label) == 1
    }


class _EventBytes:
    """The events of a file as an array of bytes, (events, bytes of an event), and the position of each number in it."""

    def __init__(self, path: str, head: FcsHead) -> None:
        mode = head.text.get("mode", "").strip().upper() or "L"
        if mode != "L":
            raise FileError(f"{path}: holds histograms ($MODE {mode}), not events; export it in list mode")
        for n, channel in enumerate(head.channels, 1):
            if channel.kind not in ("I", "F", "D"):
                raise FileError(f"{path}: holds events as text ($DATATYPE {channel.kind}), which is not read; export it as numbers")
            if channel.bits % 8 or not 8 <= channel.bits <= 64:
                raise FileError(f"{path}: $P{n}B must be whole bytes, at most 8 of them; got {channel.bits} bits")
        self._kinds = [channel.kind for channel in head.channels]
        self._ends = np.cumsum([0, *(channel.bits // 8 for channel in head.channels)]).tolist()
        self._order = _byte_order(path, head.text["byteord"])
        self._masks = [_mask(channel) for channel in head.channels]
        size = self._ends[-1]
        self.rows = (head.stop - head.start) // size
        if not self.rows:
            raise FileError(f"{path}: holds no events")
        self._map = partial(np.memmap, path, np.uint8, "r", head.start, (self.rows, size))
        self._map()  # raises an error if the file is too short
        self.notes: list[str] = []
        total = head.text.get("tot", "").strip()
        stated = int(total) if re.fullmatch(r"[0-9]{1,18}", total) else self.rows
        if total and not total.isdecimal():
            self.notes.append(f"its number of events ($TOT) cannot be read, got {total[:40]!r}; it holds {self.rows:,}")
        if stated > self.rows and (head.stop - head.start) % size:
            raise FileError(f"{path}: cut short: it should hold {stated:,} events, and ends within number {self.rows + 1:,}")
        if stated != self.rows:
            self.notes.append(f"it states {stated:,} events ($TOT), and holds {self.rows:,}")
        logarithmic = [channel.name for channel in head.channels if channel.decades > 0 and channel.kind != "I"]
        if logarithmic:
            self.notes.append(f"$PnE of floating-point channels has no meaning and was not applied: {listed(logarithmic)}")

    def cells(self, start: int, stop: int) -> Numbers:
        """(events, bytes) of some events, mapped anew, so that events read earlier do not stay in memory."""
        return np.asarray(self._map()[start:stop])

    def column(self, cells: Numbers, position: int) -> Numbers:
        """The stored numbers of a channel."""
        cells = np.ascontiguousarray(cells[:, self._ends[position] : self._ends[position + 1]])
        width = cells.shape[1]
        if self._kinds[position] != "I":
            return cells.view(f"{self._order}f{width}")[:, 0].astype(f"f{width}", copy=False)
        if width in (1, 2, 4, 8):
            numbers = cells.view(f"{self._order}u{width}")[:, 0].astype(np.uint64)
        else:
            numbers = np.zeros(len(cells), np.uint64)
            for byte in cells.T if self._order == ">" else cells.T[::-1]:
                numbers = (numbers << np.uint64(8)) | byte
        mask = self._masks[position]
        return numbers if mask is None else numbers & np.uint64(mask)


def _byte_order(path: str, text: str) -> str:
    order = [part.strip() for part in text.split(",")]
    if order == sorted(order):
        return "<"
    if order == sorted(order, reverse=True):
        return ">"
    raise FileError(f"{path}: its bytes are in the order {text} ($BYTEORD), which is not read; export it again")


def _mask(channel: Channel) -> int | None:
    """Bits above the range have no meaning; a range that is no power of two counts as the next one."""
    top = int(channel.range)
    bits = (top - 1).bit_length() if top > 0 else channel.bits
    return (1 << bits) - 1 if bits < channel.bits else None


@dataclass(frozen=True)
class Spillover:
    """The matrix (k, k) and the positions of its k channels."""

    matrix: Array
    positions: list[int]


def _spillover_of(path: str, head: FcsHead) -> tuple[Spillover | None, str | None]:
    """The spillover matrix of a file if it has one, and a note."""
    for key in ("spillover", "spill", "comp"):
        if head.text.get(key, "").strip():
            return _parsed_spillover(path, key, head.text[key], head.channels)
    percentages = [value for key, value in head.text.items() if re.fullmatch(r"dfc[0-9]+to[0-9]+", key)]
    if any(_is_number(value) and float(value) for value in percentages):
        return None, "its percentages of spillover ($DFCiTOj) may have been applied by the instrument: not compensated"
    return None, None


def _is_number(cell: str) -> bool:
    try:
        return bool(np.isfinite(float(cell)))
    except ValueError:
        return False


def _parsed_spillover(path: str, key: str, value: str, channels: list[Channel]) -> tuple[Spillover | None, str | None]:
    cells = [cell.strip() for cell in value.split(",")]
    names = [channel.name for channel in channels]
    title, way_out = "SPILL" if key == "spill" else f"${key.upper()}", "pass compensate=False"
    if not any(_is_number(cell) for cell in cells[1:]) and cells[0] != "0":  # a matrix that was never filled in
        return None, f"its spillover matrix ({title}) holds no numbers, got {value[:60]!r}: not compensated"
    try:
        count = int(cells[0])
        is_nameless = key == "comp" and len(cells) == 1 + count * count
        mixed = names[:count] if is_nameless else cells[1 : 1 + count]
        matrix = np.array(cells[1:] if is_nameless else cells[1 + count :], float).reshape(count, count)
    except ValueError as error:
        raise FileError(f"{path}: its spillover matrix ({title}) cannot be read: {value[:60]!r}; {way_out}") from error
    if not count or np.array_equal(matrix, np.eye(count)):
        return None, f"its spillover matrix ({title}) is the identity: nothing to compensate"
    if is_nameless and (count != len(names) or (matrix < 0).any()):
        return None, f"its {title} names no channels and is no spillover matrix of all of them: not compensated"
    mixed, by = _by_name(mixed, channels)
    absent = [name for name in mixed if name not in names]
    if len(absent) == count:
        return None, f"none of the channels of its spillover matrix ({title}) is there: not compensated"
    if absent:
        raise FileError(f"{path}: its spillover matrix ({title}) names {listed(absent)}, which it does not hold; {way_out}")
    if len(set(mixed)) < count or not np.isfinite(matrix).all() or np.linalg.cond(matrix) > MAX_CONDITION:
        raise FileError(f"{path}: its spillover matrix ({title}) cannot be inverted; {way_out}")
    note = f"compensated by its spillover matrix ({count} channels{by})"
    return Spillover(matrix, [names.index(name) for name in mixed]), note


def _by_name(mixed: list[str], channels: list[Channel]) -> tuple[list[str], str]:
    """The names of channels that all have unique labels or all have numbers instead, and a phrase on that."""
    names, labels = [channel.name for channel in channels], [channel.label for channel in channels]
    if any(channel in names for channel in mixed):
        return mixed, ""
    if all(labels.count(channel) == 1 for channel in mixed):
        return [names[labels.index(channel)] for channel in mixed], ", named by labels"
    if all(re.fullmatch("[1-9][0-9]{0,5}", channel) and int(channel) <= len(names) for channel in mixed):
        return [names[int(channel) - 1] for channel in mixed], ", named by numbers"
    return mixed, ""


FORMATS = (Format("FCS", (".fcs", ".lmd"), FcsReader, magic=(b"FCS",), keyed=True),)
