"""Events as an FCS file: 3.1, list mode, single precision, as instruments and gating programs take them.

HEADER, TEXT, DATA, and the eight zeros of a checksum that was not computed. The separator of TEXT is one that occurs in no keyword
and no value, so that nothing in them has to be doubled: readers disagree on doubled ones at the beginning or end of a value.
$BEGINDATA and $ENDDATA have a fixed width, so that the length of TEXT does not depend on them; HEADER has eight digits for the same
places, and says 0 where they do not suffice, as the standard has it. Written in blocks, in memory that does not grow with the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from reduset._types import PointsLike, WeightsLike
from reduset._validate import weights as checked_weights
from reduset.io.paths import path_text, write_file

SEPARATORS = "/|\\\f\x1e!#~`"
FIRST = 58  # byte of TEXT, after HEADER
WIDTH = 15  # digits of a place in TEXT
MOST = 99_999_999  # what HEADER has digits for
BLOCK = 1 << 16  # rows
OWN = re.compile(r"(begin|end)(data|stext|analysis)|byteord|datatype|mode|nextdata|par|tot|p[0-9]+([bensg]|datatype)")
RANGE = re.compile(r"p([0-9]+)r")


def write_fcs(
    path: Any,
    values: PointsLike,
    channels: Sequence[str],
    labels: Sequence[str] | None = None,
    keywords: Mapping[str, Any] | None = None,
    weights: WeightsLike = None,
) -> None:
    """Write events as an FCS 3.1 file; it appears whole or not at all.

    Parameters
    ----------
    path : where to.
    values : (n, d) numbers, which are written in single precision and not scaled in any way.
    channels : d names ($PnN), all different, without commas, for a spillover matrix separates them so.
    labels : d names of markers ($PnS), "" for none; None for none at all.
    keywords : further keywords with their values, such as ``{"$CYT": "Aurora", "$SPILLOVER": "2,…", "SOURCE": "a.fcs"}``; those
        without a value are left out, for the standard has no empty values. $PnR is taken from here if it is given; else it is the
        next whole number above all events of the channel.
    weights : (n,) of either sign, as a further channel named "weight", or "sample_weight" where that is taken.
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
    _check_names(names)
    text = _keywords(names, titles, len(events), _ranges(events, mass, names), _further(keywords or {}, len(names)))
    head = _head(text, 4 * len(events) * len(names))
    write_file(name, lambda stream: _fill(stream, head, events, mass))


def _fill(stream: BinaryIO, head: bytes, events: NDArray[Any], mass: NDArray[Any] | None) -> None:
    stream.write(head)
    for block in _blocks(events, mass):
        stream.write(block.data)
    stream.write(b"00000000")


def _blocks(events: NDArray[Any], mass: NDArray[Any] | None) -> Iterator[NDArray[np.float32]]:
    """The events as they are stored, some rows at a time."""
    for start in range(0, len(events), BLOCK):
        rows = slice(start, start + BLOCK)
        block = events[rows] if mass is None else np.column_stack([events[rows], mass[rows]])
        with np.errstate(over="ignore"):  # what is too large becomes infinite, which is refused
            yield np.ascontiguousarray(block, "<f4")


def _ranges(events: NDArray[Any], mass: NDArray[Any] | None, names: list[str]) -> list[int]:
    """A whole number well above all events of each channel; all must be finite in single precision."""
    tops = np.full(len(names), 0.0)
    for block in _blocks(events, mass):
        lost = ~np.isfinite(block).all(axis=0)
        if lost.any():
            place = int(np.flatnonzero(lost)[0])
            seen = block[:, place][~np.isfinite(block[:, place])][0]
            raise ValueError(
                f"values must be finite in single precision, got {seen} in channel {names[place]!r}; leave such rows out"
            )
        tops = np.maximum(tops, block.max(axis=0))
    return [int(np.floor(1.001 * top)) + 2 for top in tops]  # readers take a value at the end of the range for a saturated one


def _texts(given: Sequence[str], name: str, count: int) -> list[str]:
    if isinstance(given, str) or len(given) != count or not all(isinstance(text, str) for text in given):
        raise ValueError(f"{name} must be {count} texts, one for each column of values; got {given!r}")
    return [text.strip() for text in given]


def _check_names(names: list[str]) -> None:
    for channel in names:
        if not channel or "," in channel:
            raise ValueError(f"channels must be names without commas, not empty, got {channel!r}; a label may have any text")
        if names.count(channel) > 1:
            raise ValueError(f"channels must be different names, got {channel!r} twice")


def _further(keywords: Mapping[str, Any], count: int) -> dict[str, str]:
    """What else there is to say, by keyword; refused is what a file says of itself."""
    found: dict[str, str] = {}
    for keyword, value in keywords.items():
        plain = keyword.strip().lower().removeprefix("$") if isinstance(keyword, str) else ""
        said = "" if value is None else str(value).strip()
        if not plain or not plain.isascii() or not plain.isprintable():
            raise ValueError(f"keywords must be names of plain letters, got {keyword!r}")
        if OWN.fullmatch(plain):
            raise ValueError(f"keywords must not have {keyword!r}, which follows from values, channels and labels; leave it out")
        if plain in {key.lower().removeprefix("$") for key in found}:
            raise ValueError(f"keywords must be different, in capitals or not; got {keyword!r} twice")
        top = RANGE.fullmatch(plain)
        if top and (not 1 <= int(top[1]) <= count or not re.fullmatch(r"[0-9]*\.?[0-9]+", said) or not float(said)):
            raise ValueError(f"keywords: {keyword!r} must be a number above 0, for one of {count} channels; got {value!r}")
        if said:
            found[f"$P{top[1]}R" if top else keyword.strip()] = said
    return found


def _keywords(names: list[str], titles: list[str], count: int, tops: list[int], further: dict[str, str]) -> dict[str, str]:
    """All keywords but the places of the events."""
    text = {"$BYTEORD": "1,2,3,4", "$DATATYPE": "F", "$MODE": "L", "$PAR": str(len(names)), "$TOT": str(count)}
    text |= dict.fromkeys(("$BEGINANALYSIS", "$ENDANALYSIS", "$BEGINSTEXT", "$ENDSTEXT", "$NEXTDATA"), "0")
    for n, (name, title, top) in enumerate(zip(names, titles, tops, strict=True), 1):
        text |= {f"$P{n}N": name, f"$P{n}B": "32", f"$P{n}E": "0,0", f"$P{n}R": str(top)}
        text |= {f"$P{n}S": title} if title else {}
    return text | further


def _head(text: dict[str, str], size: int) -> bytes:
    """HEADER and TEXT before so many bytes of events."""
    try:
        segment = _segment(text, 0, 0)
        start = FIRST + len(segment)
        segment = _segment(text, start, start + size - 1)
    except UnicodeEncodeError as error:
        raise ValueError(
            f"channels, labels and keywords must be text that can be written as UTF-8, got {error.object!r:.60}"
        ) from None
    if start > MOST:
        raise ValueError(f"keywords must be fewer: with channels and labels they take {start:,} bytes, and {MOST:,} are allowed")
    told = (start, start + size - 1) if start + size - 1 <= MOST else (0, 0)
    return "".join(["FCS3.1    ", *(f"{place:8d}" for place in (FIRST, start - 1, *told, 0, 0))]).encode() + segment


def _segment(text: dict[str, str], first: int, last: int) -> bytes:
    every = {"$BEGINDATA": f"{first:0{WIDTH}d}", "$ENDDATA": f"{last:0{WIDTH}d}", **text}
    cells = [cell for pair in every.items() for cell in pair]
    mark = next((mark for mark in SEPARATORS if not any(mark in cell for cell in cells)), None)
    if mark is None:
        raise ValueError(
            f"labels and keywords must leave one of {SEPARATORS!r} to separate them by, and have all of them; drop one"
        )
    return (mark + mark.join(cells) + mark).encode()
