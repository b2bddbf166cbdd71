"""Events as an FCS 3.1 file: list mode, float32.

The file has HEADER, TEXT, DATA, and eight zeros for a checksum that is not computed. The separator of TEXT occurs in no keyword and
no value, because readers disagree on doubled separators at the ends of a value. The keywords $BEGINDATA and $ENDDATA have a fixed
width, so that the length of TEXT does not depend on them. HEADER has eight digits for the same positions, and zeros if that is too
few. Events are written in blocks, so memory does not grow with the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from reduset._types import PointsLike, WeightsLike
from reduset._validate import weights as checked_weights
from reduset.io.guard import path_text, write_file

SEPARATORS = "/|\\\f\x1e!#~`"
HEADER_SIZE = 58
POSITION_WIDTH = 15  # digits in TEXT
MAX_POSITION = 99_999_999  # in HEADER
BLOCK = 1 << 16  # rows
DERIVED = re.compile(r"(begin|end)(data|stext|analysis)|byteord|datatype|mode|nextdata|par|tot|p[0-9]+([bensg]|datatype)")
RANGE = re.compile(r"p([0-9]+)r")


def write_fcs(
    path: Any,
    values: PointsLike,
    channels: Sequence[str],
    labels: Sequence[str] | None = None,
    keywords: Mapping[str, Any] | None = None,
    weights: WeightsLike = None,
) -> None:
    """Write events as an FCS 3.1 file, atomically.

    Parameters
    ----------
    path : target.
    values : (n, d) numbers, written as float32 without any scaling.
    channels : d distinct names ($PnN) without commas, which separate names in a spillover matrix.
    labels : d names of markers ($PnS), "" or None for none.
    keywords : further keywords with their values, such as ``{"$CYT": "Aurora", "$SPILLOVER": "2,…", "SOURCE": "a.fcs"}``
        Keywords without a value are omitted, because the standard has no empty values. The default of $PnR is an integer above all
        events of the channel.
    weights : (n,) weights, possibly negative, as a further channel "weight", or "sample_weight" if that name is used.
    """
    name = path_text(path)
    events = np.asarray(values)
    if events.ndim != 2 or events.dtype.kind not in "fiu" or not events.size:
        raise ValueError(f"values must be a 2-D array of numbers, not empty; got {events.dtype} of shape {events.shape}")
    names = _texts(channels, "channels", events.shape[1])
    titles = [""] * len(names) if labels is None else _texts(labels, "labels", events.shape[1])
    mass = None
    if weights is not None:
        mass = checked_weights(weights, len(events), "weights", signed=True)
        names.append(next(title for title in ("weight", "sample_weight", "_weight") if title not in names))
        titles.append("")
    for channel in names:
        if not channel or "," in channel:
            raise ValueError(f"channels must be names without commas, not empty, got {channel!r}; a label may have any text")
        if names.count(channel) > 1:
            raise ValueError(f"channels must be different names, got {channel!r} twice")
    text = {"$BYTEORD": "1,2,3,4", "$DATATYPE": "F", "$MODE": "L", "$PAR": str(len(names)), "$TOT": str(len(events))}
    text |= dict.fromkeys(("$BEGINANALYSIS", "$ENDANALYSIS", "$BEGINSTEXT", "$ENDSTEXT", "$NEXTDATA"), "0")
    for n, (channel, title, top) in enumerate(zip(names, titles, _ranges(events, mass, names), strict=True), 1):
        text |= {f"$P{n}N": channel, f"$P{n}B": "32", f"$P{n}E": "0,0", f"$P{n}R": str(top)}
        text |= {f"$P{n}S": title} if title else {}
    head = _head(text | _checked_keywords(keywords or {}, len(names)), 4 * len(events) * len(names))

    def fill(stream: BinaryIO) -> None:
        stream.write(head)
        for block in _blocks(events, mass):
            stream.write(block.data)
        stream.write(b"00000000")

    write_file(name, fill)


def _blocks(events: NDArray[Any], mass: NDArray[Any] | None) -> Iterator[NDArray[np.float32]]:
    """The events as stored, block by block."""
    for start in range(0, len(events), BLOCK):
        rows = slice(start, start + BLOCK)
        block = events[rows] if mass is None else np.column_stack([events[rows], mass[rows]])
        with np.errstate(over="ignore"):  # large values become infinite, which raises an error
            yield np.ascontiguousarray(block, "<f4")


def _ranges(events: NDArray[Any], mass: NDArray[Any] | None, names: list[str]) -> list[int]:
    """An integer well above all events of each channel, which must be finite in single precision."""
    tops = np.zeros(len(names))
    for block in _blocks(events, mass):
        if not np.isfinite(block).all():
            row, position = np.argwhere(~np.isfinite(block))[0]
            raise ValueError(
                f"values must be finite in single precision, got {block[row, position]} in channel {names[position]!r}; "
                "drop such rows"
            )
        tops = np.maximum(tops, block.max(axis=0))
    return [int(np.floor(1.001 * top)) + 2 for top in tops]  # readers take a value at the end of the range for a saturated one


def _texts(given: Sequence[str], name: str, count: int) -> list[str]:
    if isinstance(given, str) or len(given) != count or not all(isinstance(text, str) for text in given):
        raise ValueError(f"{name} must be {count} texts, one for each column of values; got {given!r}")
    return [text.strip() for text in given]


def _checked_keywords(keywords: Mapping[str, Any], count: int) -> dict[str, str]:
    """Further keywords with a value. Those that follow from the other arguments raise an error."""
    checked: dict[str, str] = {}
    for keyword, value in keywords.items():
        plain = keyword.strip().lower().removeprefix("$") if isinstance(keyword, str) else ""
        text = "" if value is None else str(value).strip()
        if not plain or not plain.isascii() or not plain.isprintable():
            raise ValueError(f"keywords must be names of plain letters, got {keyword!r}")
        if DERIVED.fullmatch(plain):
            raise ValueError(f"keywords must not have {keyword!r}, which follows from values, channels and labels; leave it out")
        if plain in {key.lower().removeprefix("$") for key in checked}:
            raise ValueError(f"keywords must be different, in capitals or not; got {keyword!r} twice")
        top = RANGE.fullmatch(plain)
        if top and (not 1 <= int(top[1]) <= count or not re.fullmatch(r"[0-9]*\.?[0-9]+", text) or not float(text)):
            raise ValueError(f"keywords: {keyword!r} must be a number above 0, for one of {count} channels; got {value!r}")
        if text:
            checked[f"$P{top[1]}R" if top else keyword.strip()] = text
    return checked


def _head(text: dict[str, str], size: int) -> bytes:
    """HEADER and TEXT before ``size`` bytes of events."""
    try:
        start = HEADER_SIZE + len(_segment(text, 0, 0))
        segment = _segment(text, start, start + size - 1)
    except UnicodeEncodeError as error:
        raise ValueError(
            f"channels, labels and keywords must be text that can be written as UTF-8, got {error.object!r:.60}"
        ) from None
    if start > MAX_POSITION:
        raise ValueError(
            f"keywords must be fewer: with channels and labels they take {start:,} bytes, and {MAX_POSITION:,} are allowed"
        )
    first, last = (start, start + size - 1) if start + size - 1 <= MAX_POSITION else (0, 0)
    positions = (HEADER_SIZE, start - 1, first, last, 0, 0)
    return "".join(["FCS3.1    ", *(f"{position:8d}" for position in positions)]).encode() + segment


def _segment(text: dict[str, str], first: int, last: int) -> bytes:
    pairs = {"$BEGINDATA": f"{first:0{POSITION_WIDTH}d}", "$ENDDATA": f"{last:0{POSITION_WIDTH}d}", **text}
    cells = [cell for pair in pairs.items() for cell in pair]
    mark = next((mark for mark in SEPARATORS if not any(mark in cell for cell in cells)), None)
    if mark is None:
        raise ValueError(f"labels and keywords must leave one of {SEPARATORS!r} unused as a separator, and use all; drop one")
    return (mark + mark.join(cells) + mark).encode()
