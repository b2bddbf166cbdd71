"""The head of an FCS file (2.0 to 3.2): its keywords, where its events lie, and its channels.

HEADER names the bytes of TEXT and of the events, in fields of eight letters that may be blank; TEXT is a separator, then keywords
and values. A doubled separator is one inside a value, as the standard has it; where channels lack their names so, it is an empty
value instead, which many files write. What can be read in one way alone is read, with a note; the rest is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import BinaryIO

from reduset.io.reader import unique_names
from reduset.io.table import FileError

MOST_CHANNELS = 100_000
NEEDED = ("par", "datatype", "byteord")
FLOATING = {"F": 32, "D": 64}  # bits


@dataclass(frozen=True)
class Channel:
    """One $Pn: name $PnN, label $PnS, kind of number, bits $PnB, range $PnR, decades and least value $PnE, gain $PnG.

    The kind is $DATATYPE, or $PnDATATYPE where a file of 3.2 has one for the channel; floating-point numbers have the bits of it.
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


def read_head(path: str, number: int = 1) -> FcsHead:
    """The head of the first data set of a file, or of another, counted from 1."""
    with open(path, "rb") as stream:
        size, begin = stream.seek(0, 2), 0
        for before in range(1, number):
            following = _whole(_keywords(path, stream, begin, size)[0], "nextdata")
            if not following or begin + following >= size:
                raise FileError(f"{path}: has {before} data set{'s' if before > 1 else ''}, and none of number {number}")
            begin += following
        text, header = _keywords(path, stream, begin, size)
    notes = []
    if number == 1 and 0 < (_whole(text, "nextdata") or 0) < size:
        notes.append("it holds several data sets; the first was read, key='2' reads the next")
    count = int(text["par"])
    names, renamed = unique_names([text.get(f"p{n}n", f"P{n}").strip() for n in range(1, count + 1)])
    channels = [_channel(path, text, n, name) for n, name in enumerate(names, 1)]
    start, stop, told = _where(path, text, header, size - begin, _expected(text, channels))
    return FcsHead(text, channels, begin + start, begin + stop, [*notes, *told, *renamed])


Header = tuple[str, int | None, int | None]  # version, first and last byte of the events


def _keywords(path: str, stream: BinaryIO, begin: int, size: int) -> tuple[dict[str, str], Header]:
    """The keywords of the data set that begins at a byte, and what its HEADER says."""
    stream.seek(begin)
    head = stream.read(58)
    if not head.startswith(b"FCS") or len(head) < 42:
        raise FileError(f"{path}: cut short or damaged: no header of a data set is at byte {begin:,}")
    version = head[3:6].decode("latin-1")
    first, last, start, stop = (_digits(head[at : at + 8]) for at in (10, 18, 26, 34))
    if first is None or last is None or not 0 < first <= last:
        raise FileError(f"{path}: its header must say where its text is, got {head[10:26].decode('latin-1')!r}")
    if begin + last >= size:
        raise FileError(f"{path}: cut short: its text should end at byte {begin + last:,}, and the file has {size:,}")
    needed = NEEDED if version >= "3.2" else (*NEEDED, "mode")  # 3.2 knows list mode alone, and need not say so
    text = _pairs(stream, begin + first, begin + last, r"(?<=[^{0}]){0}(?!{0})")
    if any(key not in text for key in needed):
        text |= _pairs(stream, begin + first, begin + last, "{0}")
    for key in needed:
        if not text.get(key, "").strip():
            raise FileError(f"{path}: lacks the keyword ${key.upper()}, which an FCS file must have")
    count = _whole(text, "par")
    if count is None or not 0 < count <= MOST_CHANNELS:
        raise FileError(f"{path}: says it has {text['par'].strip()} channels ($PAR); it is damaged")
    first_more, last_more = (_whole(text, name) or 0 for name in ("beginstext", "endstext"))
    if 0 < first_more < last_more < size - begin and first_more != first:
        text = _pairs(stream, begin + first_more, begin + last_more, "{0}") | text
    if any(f"p{n}n" not in text for n in range(1, count + 1)):
        text |= _pairs(stream, begin + first, begin + last, "{0}")
    return text, (version, start, stop)


def _digits(field: bytes) -> int | None:
    """A number of HEADER; None where it is blank, or none."""
    return int(field) if re.fullmatch(rb"\s*[0-9]+\s*", field) else None


def _whole(text: dict[str, str], key: str) -> int | None:
    """The whole number of a keyword; None where it is not there, or none."""
    value = text.get(key, "").strip()
    return int(value) if re.fullmatch(r"[+-]?[0-9]{1,18}", value) else None


def _pairs(stream: BinaryIO, first: int, last: int, between: str) -> dict[str, str]:
    """Keywords and values of a segment, cut where ``between`` finds its separator."""
    stream.seek(first)
    raw = stream.read(last - first + 1)
    try:
        segment = raw.decode()
    except UnicodeDecodeError:
        segment = raw.decode("latin-1")
    mark = segment[:1]
    cells = re.split(between.format(re.escape(mark)), segment[1:].removesuffix(mark)) if mark else []
    pairs = zip(cells[::2], cells[1::2], strict=False)
    return {name.strip().lower().removeprefix("$"): value.replace(2 * mark, mark) for name, value in pairs}


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
    if not re.fullmatch(r"[0-9]{1,9}|\*", bits):
        raise FileError(f"{path}: $P{n}B must be a number of bits, got {bits!r}")
    kind = (text.get(f"p{n}datatype", "").strip() or text["datatype"].strip()).upper()
    if kind in FLOATING and bits not in ("*", "0", str(FLOATING[kind])):
        raise FileError(
            f"{path}: $P{n}B must be {FLOATING[kind]} for $DATATYPE {kind}, got {bits} (F has 32 bits, D has 64); export it anew"
        )
    return Channel(
        name=name,
        label=text.get(f"p{n}s", "").strip(),
        kind=kind,
        bits=FLOATING.get(kind, 0 if bits == "*" else int(bits)),
        range=number("r", 0.0),
        decades=decades,
        least=least or 1.0,  # the standard's word for a 0 that cannot be meant
        gain=number("g", 1.0) or 1.0,
    )


def _expected(text: dict[str, str], channels: list[Channel]) -> int | None:
    """How many bytes the events should have, where that is said."""
    total = _whole(text, "tot")
    return None if total is None else total * sum(channel.bits for channel in channels) // 8


def _where(path: str, text: dict[str, str], header: Header, size: int, expected: int | None) -> tuple[int, int, list[str]]:
    """The bytes of the events, and a note where what is said of them differs.

    TEXT says in 3.x, for HEADER has but eight digits; HEADER says in 2.0. The other is followed where the one says nothing, or
    where of the two only the other has room for all events.
    """
    version, told_start, told_last = header
    places: list[tuple[str, int | None, int | None]] = [
        ("text", _whole(text, "begindata"), _whole(text, "enddata")),
        ("header", told_start, told_last),
    ]
    if version == "2.0":
        places.reverse()
    said = [(name, first, last) for name, first, last in places if first and last]
    if not said:
        raise FileError(f"{path}: does not say where its events are (in its header, or by $BEGINDATA and $ENDDATA)")
    inside = [place for place in said if 0 < place[1] <= place[2] <= size]  # some writers name the byte after the last one
    fitting = [place for place in inside if expected is not None and expected <= place[2] - place[1] + 1 <= expected + 1]
    name, start, last = (fitting or inside or said)[0]
    if not 0 < start <= last:
        raise FileError(f"{path}: says its events lie in bytes {start:,} to {last:,}; it holds none, or is damaged")
    if last > size:
        raise FileError(f"{path}: cut short: its events should end at byte {last:,}, and the file has {size:,}")
    notes = [
        f"its {other} says that its events lie in bytes {one:,} to {end:,}, its {name} {start:,} to {last:,}, which was followed"
        for other, one, end in said
        if one != start or abs(end - last) > 1
    ]
    return start, min(last + 1, size), notes
