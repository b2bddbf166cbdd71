"""The header of an FCS file (2.0 to 3.2): its keywords, the bytes of its events, and its channels.

HEADER states the bytes of TEXT and of the events, in fields of eight characters that may be blank. TEXT is a separator followed by
keywords and values. By the standard, a doubled separator is one inside a value. Many files write empty values so instead; if
channels lack names otherwise, it is read so. What can be read in only one way is read, with a note; the rest raises an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import BinaryIO

from reduset.io.reader import unique_names
from reduset.io.table import FileError

MAX_CHANNELS = 100_000
REQUIRED = ("par", "datatype", "byteord")
FLOATING = {"F": 32, "D": 64}  # bits
AT_SINGLE, AT_EACH = r"(?<=[^{0}]){0}(?!{0})", "{0}"  # where to cut TEXT: at separators that are not doubled, or at all


@dataclass(frozen=True)
class Channel:
    """One $Pn: name $PnN, label $PnS, type of number, bits $PnB, range $PnR, decades and least value $PnE, gain $PnG.

    The type is $DATATYPE, or $PnDATATYPE of FCS 3.2, which also fixes the bits of floating-point numbers.
    """

    name: str
    label: str
    kind: str
    bits: int
    range: float
    decades: float
    least: float
    gain: float

    @property
    def is_time(self) -> bool:
        """Whether it counts ticks of the clock."""
        return self.name.lower() == "time"


@dataclass(frozen=True)
class FcsHead:
    """Everything before the events; ``start`` and ``stop`` are their first byte and the one after the last."""

    text: dict[str, str]
    channels: list[Channel]
    start: int
    stop: int
    notes: list[str]


def read_head(path: str, number: int = 1) -> FcsHead:
    """The header of a data set, counted from 1."""
    with open(path, "rb") as stream:
        size, begin = stream.seek(0, 2), 0
        for before in range(1, number):
            step = _whole(_keywords(path, stream, begin, size)[0], "nextdata")
            if not step or begin + step >= size:
                raise FileError(f"{path}: has {before} data set{'s' if before > 1 else ''}, and none of number {number}")
            begin += step
        text, header = _keywords(path, stream, begin, size)
    notes = []
    if number == 1 and 0 < (_whole(text, "nextdata") or 0) < size:
        notes.append("it holds several data sets; the first was read, key='2' reads the next")
    count = int(text["par"])
    names, renamed = unique_names([text.get(f"p{n}n", f"P{n}").strip() for n in range(1, count + 1)])
    channels = [_channel(path, text, n, name) for n, name in enumerate(names, 1)]
    total = _whole(text, "tot")
    expected = None if total is None else total * sum(channel.bits for channel in channels) // 8
    start, stop, event_notes = _event_bytes(path, text, header, size - begin, expected)
    return FcsHead(text, channels, begin + start, begin + stop, [*notes, *event_notes, *renamed])


Header = tuple[str, int | None, int | None]  # version, first and last byte of the events


def _keywords(path: str, stream: BinaryIO, begin: int, size: int) -> tuple[dict[str, str], Header]:
    """The keywords of the data set at a byte, and its HEADER."""
    stream.seek(begin)
    head = stream.read(58)
    if not head.startswith(b"FCS") or len(head) < 42:
        raise FileError(f"{path}: cut short or damaged: no header of a data set is at byte {begin:,}")
    version = head[3:6].decode("latin-1")
    fields = [head[at : at + 8] for at in (10, 18, 26, 34)]  # may be blank
    first, last, start, stop = (int(field) if re.fullmatch(rb"\s*[0-9]+\s*", field) else None for field in fields)
    if first is None or last is None or not 0 < first <= last:
        raise FileError(f"{path}: its header must state where its text is, got {head[10:26].decode('latin-1')!r}")
    if begin + last >= size:
        raise FileError(f"{path}: cut short: its text should end at byte {begin + last:,}, and the file has {size:,}")
    required = REQUIRED if version >= "3.2" else (*REQUIRED, "mode")  # list mode is the only one of 3.2
    text = _pairs(stream, begin + first, begin + last, AT_SINGLE)
    if any(key not in text for key in required):
        text |= _pairs(stream, begin + first, begin + last, AT_EACH)
    for key in required:
        if not text.get(key, "").strip():
            raise FileError(f"{path}: lacks the keyword ${key.upper()}, which an FCS file must have")
    count = _whole(text, "par")
    if count is None or not 0 < count <= MAX_CHANNELS:
        raise FileError(f"{path}: states {text['par'].strip()} channels ($PAR); it is damaged")
    first_more, last_more = (_whole(text, name) or 0 for name in ("beginstext", "endstext"))
    if 0 < first_more < last_more < size - begin and first_more != first:
        text = _pairs(stream, begin + first_more, begin + last_more, AT_EACH) | text
    if any(f"p{n}n" not in text for n in range(1, count + 1)):
        text |= _pairs(stream, begin + first, begin + last, AT_EACH)
    return text, (version, start, stop)


def _whole(text: dict[str, str], key: str) -> int | None:
    """The integer of a keyword; None if it is missing or no integer."""
    value = text.get(key, "").strip()
    return int(value) if re.fullmatch(r"[+-]?[0-9]{1,18}", value) else None


def _pairs(stream: BinaryIO, first: int, last: int, pattern: str) -> dict[str, str]:
    """Keywords and values of a segment, cut where the pattern matches."""
    stream.seek(first)
    raw = stream.read(last - first + 1)
    try:
        segment = raw.decode()
    except UnicodeDecodeError:
        segment = raw.decode("latin-1")
    mark = segment[:1]
    cells = re.split(pattern.format(re.escape(mark)), segment[1:].removesuffix(mark)) if mark else []
    pairs = zip(cells[::2], cells[1::2], strict=False)
    return {name.strip().lower().removeprefix("$"): value.replace(2 * mark, mark) for name, value in pairs}


def _channel(path: str, text: dict[str, str], n: int, name: str) -> Channel:
    def number(key: str, default: float) -> float:
        value = text.get(f"p{n}{key}", "").strip()
        try:
            return float(value) if value else default
        except ValueError:
            raise FileError(f"{path}: $P{n}{key.upper()} must be a number, got {value!r}") from None

    try:
        decades, least = map(float, text.get(f"p{n}e", "0,0").split(","))
    except ValueError:
        raise FileError(f"{path}: $P{n}E must be two numbers, got {text[f'p{n}e']!r}") from None
    bits = text.get(f"p{n}b", "0").strip()
    if not re.fullmatch(r"[0-9]{1,9}|\*", bits):
        raise FileError(f"{path}: $P{n}B must be a number of bits, got {bits!r}")
    kind = (text.get(f"p{n}datatype", "").strip() or text["datatype"].strip()).upper()
    if kind in FLOATING and bits not in ("*", "0", str(FLOATING[kind])):
        raise FileError(
            f"{path}: $P{n}B must be {FLOATING[kind]} for $DATATYPE {kind}, got {bits} (F has 32 bits, D has 64); export it again"
        )
    return Channel(
        name=name,
        label=text.get(f"p{n}s", "").strip(),
        kind=kind,
        bits=FLOATING.get(kind, 0 if bits == "*" else int(bits)),
        range=number("r", 0.0),
        decades=decades,
        least=least or 1.0,  # by the standard, 0 means 1
        gain=number("g", 1.0) or 1.0,
    )


def _event_bytes(path: str, text: dict[str, str], header: Header, size: int, expected: int | None) -> tuple[int, int, list[str]]:
    """The bytes of the events, and a note if HEADER and TEXT differ.

    TEXT has priority in 3.x, because HEADER has only eight digits; HEADER has priority in 2.0. The other is used if the first is
    missing, or if only the other has room for all events.
    """
    version, header_first, header_last = header
    statements: list[tuple[str, int | None, int | None]] = [
        ("text", _whole(text, "begindata"), _whole(text, "enddata")),
        ("header", header_first, header_last),
    ]
    if version == "2.0":
        statements.reverse()
    stated = [(name, first, last) for name, first, last in statements if first and last]
    if not stated:
        raise FileError(f"{path}: does not say where its events are (in its header, or by $BEGINDATA and $ENDDATA)")
    inside = [span for span in stated if 0 < span[1] <= span[2] <= size]  # some writers state the byte after the last one
    fitting = [span for span in inside if expected is not None and expected <= span[2] - span[1] + 1 <= expected + 1]
    name, start, last = (fitting or inside or stated)[0]
    if not 0 < start <= last:
        raise FileError(f"{path}: states events in bytes {start:,} to {last:,}; it holds none, or is damaged")
    if last > size:
        raise FileError(f"{path}: cut short: its events should end at byte {last:,}, and the file has {size:,}")
    notes = [
        f"its {other} states events in bytes {first:,} to {end:,}, its {name} {start:,} to {last:,}, which was used"
        for other, first, end in stated
        if first != start or abs(end - last) > 1
    ]
    return start, min(last + 1, size), notes
