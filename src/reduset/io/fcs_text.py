"""The head of an FCS file (2.0, 3.0, 3.1): its keywords, where its events lie, and its channels.

HEADER and TEXT are read by flowio. What it leaves out is added here: a supplemental TEXT segment, and files that write empty
values, where a doubled separator is an empty value and not, as the standard has it, a separator inside a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reduset.io.guard import need
from reduset.io.source import unique_names
from reduset.io.table import FileError

MOST_CHANNELS = 100_000


@dataclass(frozen=True)
class Channel:
    """One $Pn: name $PnN, label $PnS, bits $PnB, range $PnR, decades and least value $PnE, gain $PnG."""

    name: str
    label: str
    bits: int
    range: float
    decades: float
    least: float
    gain: float

    @property
    def is_time(self) -> bool:
        """Whether it counts the steps of a clock."""
        return self.name.lower() == "time"


@dataclass(frozen=True)
class FcsHead:
    """What an FCS file says before its events; ``start`` and ``stop`` are the first byte of them and the one past the last."""

    text: dict[str, str]
    channels: list[Channel]
    start: int
    stop: int
    notes: list[str]


def read_head(path: str) -> FcsHead:
    """The head of the first data set of a file."""
    flowio = need("reading FCS", "flowio", "fcs")
    with open(path, "rb") as stream:
        try:
            # 0 is the first data set, also of a file that has several
            data = flowio.FlowData(
                stream, only_text=True, nextdata_offset=0, ignore_offset_discrepancy=True, ignore_offset_error=True
            )
        except KeyError as error:
            raise FileError(f"{path}: lacks the keyword ${str(error.args[0]).upper()}, which an FCS file must have") from error
    text, header, notes = dict(data.text), data.header, []
    count = int(text["par"])
    if not 0 < count <= MOST_CHANNELS:
        raise FileError(f"{path}: says it has {count:,} channels ($PAR); it is damaged")
    _add_supplement(path, text)
    if any(f"p{n}n" not in text for n in range(1, count + 1)):
        text |= _with_empty_values(path, header["text_start"], header["text_stop"])
    if int(text.get("nextdata", "0")) != 0:
        notes.append("it holds several data sets; the first was read")
    names, renamed = unique_names([text.get(f"p{n}n", f"P{n}").strip() for n in range(1, count + 1)])
    channels = [_channel(path, text, n, name) for n, name in enumerate(names, 1)]
    start, stop = _where(path, text, header, data.file_size)
    return FcsHead(text, channels, start, stop, notes + renamed)


def _add_supplement(path: str, text: dict[str, str]) -> None:
    first, last = (int(text.get(name, "0").strip() or 0) for name in ("beginstext", "endstext"))
    if 0 < first < last:
        for name, value in _with_empty_values(path, first, last).items():
            text.setdefault(name, value)


def _with_empty_values(path: str, first: int, last: int) -> dict[str, str]:
    """Keywords and values of a segment, where every separator separates."""
    with open(path, "rb") as stream:
        stream.seek(first)
        raw = stream.read(last - first + 1)
    try:
        segment = raw.decode()
    except UnicodeDecodeError:
        segment = raw.decode("latin-1")
    cells = segment[1:].split(segment[:1]) if segment else []
    return {name.strip().lower().removeprefix("$"): value for name, value in zip(cells[::2], cells[1::2], strict=False)}


def _channel(path: str, text: dict[str, str], n: int, name: str) -> Channel:
    def number(key: str, default: float) -> float:
        value = text.get(f"p{n}{key}", "").strip()
        try:
            return float(value) if value else default
        except ValueError:
            raise FileError(f"{path}: $P{n}{key.upper()} must be a number, got {value!r}") from None

    amplification = text.get(f"p{n}e", "0,0").split(",")
    try:
        decades, least = (float(part) for part in amplification)
    except ValueError:
        raise FileError(f"{path}: $P{n}E must be two numbers, got {text[f'p{n}e']!r}") from None
    bits = text.get(f"p{n}b", "0").strip()
    if not bits.isdigit() and bits != "*":
        raise FileError(f"{path}: $P{n}B must be a number of bits, got {bits!r}")
    return Channel(
        name=name,
        label=text.get(f"p{n}s", "").strip(),
        bits=0 if bits == "*" else int(bits),
        range=number("r", 0.0),
        decades=decades,
        least=least or 1.0,  # the standard's word for a 0 that cannot be meant
        gain=number("g", 1.0) or 1.0,
    )


def _where(path: str, text: dict[str, str], header: dict[str, Any], size: int) -> tuple[int, int]:
    """The bytes of the events: HEADER says in 2.0; TEXT says in 3.x, for HEADER has but eight digits."""
    start, last = header["data_start"], header["data_stop"]
    if header["version"] != "2.0":
        try:
            start, last = int(text["begindata"]) or start, int(text["enddata"]) or last
        except (KeyError, ValueError) as error:
            raise FileError(f"{path}: does not say where its events are ($BEGINDATA, $ENDDATA)") from error
    if not 0 < start <= last:
        raise FileError(f"{path}: says its events lie in bytes {start:,} to {last:,}; it holds none, or is damaged")
    if last > size:  # some writers name the byte after the last one
        raise FileError(f"{path}: cut short: its events should end at byte {last:,}, and the file has {size:,}")
    return start, min(last + 1, size)
