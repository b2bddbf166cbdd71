"""Flow cytometry: events of FCS 2.0 to 3.2, list mode, as whole numbers of any width in bytes, single or double precision.

Values are on a linear scale, as flowio's ``as_array`` gives them: x → 10^(decades · x / range) · least where $PnE says that whole
numbers were amplified logarithmically, x → x / gain by $PnG, and steps of the clock become seconds by $TIMESTEP. Floating-point
events are linear by the standard, whatever their $PnE says. ``key="events"`` gives the numbers as they are stored instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from reduset.io.fcs_channels import are_mass_channels, no_dye, omitted
from reduset.io.fcs_text import Channel, FcsHead, read_head
from reduset.io.reader import NUMBER, SINGLE, Block, FileReader, Format, Numbers, ReadOptions, block_of
from reduset.io.scale_estimates import FLUORESCENCE, MASS
from reduset.io.spillover import spillover_of
from reduset.io.table import FileError, listed

LABELS_NOTE = "labels"  # how the note on labels begins

FEW_BITS = 1 << 16


class FcsReader(FileReader):
    """An FCS file."""

    def __init__(self, path: str, options: ReadOptions) -> None:
        key = re.fullmatch(r"(?:([1-9][0-9]{0,3})(?:/|$))?(events)?", options.key or "")
        if key is None or options.key == "":
            way_out = "leave it out, or 'events' for the numbers as stored, '2' for the second data set, '2/events'"
            raise FileError(f"{path}: key={options.key!r} is no part of an FCS file; {way_out}")
        head = read_head(path, int(key[1] or 1))
        self._record = _EventBytes(path, head)
        self._stored = key[2] is not None
        names = [channel.name for channel in head.channels]
        kinds = {channel.name: SINGLE if channel.kind == "F" else NUMBER for channel in head.channels}
        super().__init__(path, kinds, self._record.rows)
        self._channels, (self._step, unclear) = head.channels, _step(head)
        self._places = {name: place for place, name in enumerate(names)}
        self.aliases = _labels(head.channels)
        self.unasked = omitted(names, self.labels)
        self.upright = frozenset(name for name in names if no_dye(name))
        if not self._stored:
            self.automatic = MASS if are_mass_channels(names, self.labels) else FLUORESCENCE
            self.highest = dict(zip(names, self.tops.tolist(), strict=True))
        self.notes += [*head.notes, *self._record.notes, *unclear]
        named = [f"{name} is {label}" for label, name in self.aliases.items()]
        self.notes += [f"{LABELS_NOTE}: {listed(named, 40)}"] if named else []
        self._spillover = None
        if options.compensate and not self._stored:
            self._spillover, note = spillover_of(path, head.text, names, [channel.label for channel in head.channels])
            self.notes += [note] if note else []

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of all channels ($PnS) in their order, "" for none."""
        return tuple(channel.label for channel in self._channels)

    @property
    def tops(self) -> Numbers:
        """(C,) the largest value that each channel can hold, on the scale of what is read; infinite where the file does not say."""
        return np.array([self._top(channel) for channel in self._channels])

    @property
    def compensated(self) -> bool:
        """Whether spillover is taken out."""
        return self._spillover is not None

    def _top(self, channel: Channel) -> float:
        if not 1 < channel.range < np.inf:
            return np.inf
        # numbers of a converter of few bits end at the range less one, also where they are written as floating point
        stored = np.array([channel.range - 1 if channel.kind == "I" or channel.range < FEW_BITS else channel.range])
        return float(stored[0] if self._stored else _linear(stored, channel, self._step)[0])

    def _blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int) -> Iterator[Block]:
        wanted = {self._places[name] for name in (*names, *labels)}
        for first in range(start // rows * rows, self._record.rows, rows):
            columns = self._columns(first, min(first + rows, self._record.rows), wanted)
            yield block_of(first, columns.__getitem__, names, labels)

    def _columns(self, start: int, stop: int, places: set[int]) -> dict[str, Numbers]:
        """Columns of some events by name, compensated."""
        mixed = self._spillover.places if self._spillover is not None else []
        needed = {*places, *(mixed if set(mixed) & places else [])}
        cells = self._record.cells(start, stop)
        columns = {place: self._column(cells, place) for place in needed}
        if self._spillover is not None and set(mixed) <= needed:
            pure = self._spillover.take_out(np.column_stack([columns[place] for place in mixed]))
            columns |= dict(zip(mixed, pure.T, strict=True))
        return {self._channels[place].name: column for place, column in columns.items()}

    def _column(self, cells: Numbers, place: int) -> Numbers:
        stored = self._record.column(cells, place)
        return stored if self._stored else _linear(stored, self._channels[place], self._step)


def _linear(stored: Numbers, channel: Channel, step: float) -> Numbers:
    scale = step if channel.is_time else 1.0 / channel.gain
    if channel.kind == "I" and channel.decades > 0 and channel.range > 0:
        return 10.0 ** (channel.decades * stored.astype(np.float64) / channel.range) * (channel.least * scale)
    return stored if scale == 1.0 else stored.astype(np.float64) * scale


def _step(head: FcsHead) -> tuple[float, list[str]]:
    """The seconds of a step of the clock; 1, with a note, where they cannot be read."""
    value = head.text.get("timestep", "").strip()
    try:
        step = float(value or 1.0)
    except ValueError:
        step = 0.0
    if 0 < step < np.inf or not any(channel.is_time for channel in head.channels):
        return step or 1.0, []
    return 1.0, [f"its $TIMESTEP must be a number of seconds, got {value[:40]!r}: Time is in steps of its clock"]


def _labels(channels: list[Channel]) -> dict[str, str]:
    """Labels that say more than the names, and mean one channel."""
    names = {channel.name for channel in channels}
    labels = [channel.label for channel in channels]
    return {
        channel.label: channel.name
        for channel in channels
        if channel.label and channel.label not in names and labels.count(channel.label) == 1
    }


class _EventBytes:
    """Where each number of an event lies: the file as (events, bytes of an event)."""

    def __init__(self, path: str, head: FcsHead) -> None:
        text, channels = head.text, head.channels
        mode = text.get("mode", "").strip().upper() or "L"
        if mode != "L":
            raise FileError(f"{path}: holds histograms ($MODE {mode}), not events; export it in list mode")
        for n, channel in enumerate(channels, 1):
            _check_stored(path, n, channel)
        self._kinds = [channel.kind for channel in channels]
        widths = [channel.bits // 8 for channel in channels]
        self._ends = np.cumsum([0, *widths]).tolist()
        self._order = _byte_order(path, text["byteord"])
        self._masks = [_mask(channel) for channel in channels]
        row = self._ends[-1]
        self.rows = (head.stop - head.start) // row
        if not self.rows:
            raise FileError(f"{path}: holds no events")
        self._map = partial(np.memmap, path, np.uint8, "r", head.start, (self.rows, row))
        self._map()  # is it all there?
        self.notes: list[str] = []
        tot = text.get("tot", "").strip()
        said = int(tot) if re.fullmatch(r"[0-9]{1,18}", tot) else self.rows
        if tot and not tot.isdecimal():
            self.notes.append(f"its number of events ($TOT) cannot be read, got {tot[:40]!r}; it holds {self.rows:,}")
        if said > self.rows and (head.stop - head.start) % row:
            raise FileError(f"{path}: cut short: it should hold {said:,} events, and ends within number {self.rows + 1:,}")
        if said != self.rows:
            self.notes.append(f"it says it has {said:,} events ($TOT), and holds {self.rows:,}")
        logged = [channel.name for channel in channels if channel.decades > 0 and channel.kind != "I"]
        if logged:
            self.notes.append(f"$PnE of floating-point channels has no meaning and was not applied: {listed(logged)}")

    def cells(self, start: int, stop: int) -> Numbers:
        """(events, bytes) of some events; mapped anew, so that what was read before does not stay in memory."""
        return np.asarray(self._map()[start:stop])

    def column(self, cells: Numbers, place: int) -> Numbers:
        """The numbers of one channel as they are stored."""
        cells = np.ascontiguousarray(cells[:, self._ends[place] : self._ends[place + 1]])
        width = cells.shape[1]
        if self._kinds[place] != "I":
            return cells.view(f"{self._order}f{width}")[:, 0].astype(f"f{width}", copy=False)
        if width in (1, 2, 4, 8):
            numbers = cells.view(f"{self._order}u{width}")[:, 0].astype(np.uint64)
        else:
            numbers = np.zeros(len(cells), np.uint64)
            for byte in cells.T if self._order == ">" else cells.T[::-1]:
                numbers = (numbers << np.uint64(8)) | byte
        mask = self._masks[place]
        return numbers if mask is None else numbers & np.uint64(mask)


def _check_stored(path: str, n: int, channel: Channel) -> None:
    if channel.kind not in ("I", "F", "D"):
        raise FileError(f"{path}: holds events as text ($DATATYPE {channel.kind}), which is not read; export it as numbers")
    if channel.bits % 8 or not 8 <= channel.bits <= 64:
        raise FileError(f"{path}: $P{n}B must be whole bytes, at most 8 of them; got {channel.bits} bits")


def _byte_order(path: str, text: str) -> str:
    places = [part.strip() for part in text.split(",")]
    if places == sorted(places):
        return "<"
    if places == sorted(places, reverse=True):
        return ">"
    raise FileError(f"{path}: its bytes lie in the order {text} ($BYTEORD), which is not read; export it anew")


def _mask(channel: Channel) -> int | None:
    """Bits above the range mean nothing; a range that is no power of two counts as the next one."""
    top = int(channel.range)
    bits = (top - 1).bit_length() if top > 0 else channel.bits
    return (1 << bits) - 1 if bits < channel.bits else None


FORMATS = (Format("FCS", (".fcs", ".lmd"), FcsReader, magic=(b"FCS",), keyed=True),)
