"""Channels by name: which channel of a file a name means, and what a channel measures.

A name means the channel with that $PnN or $PnS. If there is none, case and punctuation are ignored, and then `FITC` also means
`FITC-A`. Two channels of the same fit are an error. `$P7` (or `$P7N`) is the seventh channel, for files whose names are ambiguous.

Time, scatter and the part of a pulse (area, height or width) follow from the names that manufacturers write: `FSC-A`, `FSC-Area`,
`FSC A`, `FS-A`, `FSCA`. In Beckman's files `FS INT LIN` is an area, `FS PEAK LIN` a height and `FS TOF LIN` (time of flight) a
width. A name without a part is a height, because instruments that measure one number of a pulse measure its height.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from reduset.cytometry.events import FileChannels
from reduset.cytometry.lab_tables import loose
from reduset.io import PULSES, FileError

WAY_OUT = "say in the panel which is meant, by its $PnN or its number ($P7)"
AREA, HEIGHT, WIDTH = "area", "height", "width"
FORWARD, SIDE = "forward scatter", "side scatter"

_CLOCK = re.compile(r"\s*(time|hdr-t)(?![a-z])", re.IGNORECASE)
_COUNTED = re.compile(r"\s*(event([ _-]?(#|id|number|count|num))?\s*$|hdr-)", re.IGNORECASE)
_LIGHT = {
    FORWARD: re.compile(r"fsc|forward|(?<![a-z])fs[ahw]?(?![a-z])", re.IGNORECASE),
    SIDE: re.compile(r"ssc|side.?scatter|(?<![a-z])ss[ahw]?(?![a-z])", re.IGNORECASE),
}
_PART = re.compile(
    r"(.*?)[^a-z0-9]*(?:(area|a|integral|int)|(height|h|peak)|(width|w|tof))?(?:[^a-z0-9]+(?:lin|log))?", re.IGNORECASE
)

_WIDTH = re.compile(r"(.*[^a-z0-9](w|width|tof)([^a-z0-9]+(lin|log))?|[fs]sc?w)\s*", re.IGNORECASE)


def find_channel(file: FileChannels, name: str, among: Iterable[int] | None = None) -> int | None:
    """The position of the channel that a name means, among some of a file's channels; None if there is none."""
    places = list(range(len(file.names)) if among is None else among)
    number = re.fullmatch(r"\$P([1-9][0-9]{0,5})[NS]?", name.strip(), re.IGNORECASE)
    if number is not None:
        place = int(number[1]) - 1
        return place if place in places else None
    for spelled in (str, loose, _pulseless):
        fitting = [place for place in places if _fits(file, place, name, spelled)]
        if len(fitting) > 1:
            raise FileError(f"{file.path}: {name!r} fits {_told(file, fitting[0])} and {_told(file, fitting[1])}; {WAY_OUT}")
        if fitting:
            return fitting[0]
    return None


def _fits(file: FileChannels, place: int, name: str, spelled: Callable[[str], str]) -> bool:
    own, label = file.names[place], file.labels[place]
    wanted = loose(name) if spelled is _pulseless else spelled(name.strip())
    return wanted == spelled(own) or (bool(label) and wanted == spelled(label))


def _pulseless(name: str) -> str:
    """`FITC-A` as `FITC`, without case and punctuation."""
    return loose(name[:-2] if name[-2:].replace("_", "-").replace(" ", "-").upper() in PULSES else name)


def _told(file: FileChannels, place: int) -> str:
    label = file.labels[place]
    return f"channel {place + 1}, {file.names[place]}" + (f" (labelled {label})" if label and label != file.names[place] else "")


def has_own_label(file: FileChannels, place: int) -> bool:
    """Whether a channel has a label other than its name."""
    label = file.labels[place]
    return bool(loose(label)) and loose(label) != loose(file.names[place])


def clock_of(channels: Sequence[str], labels: Sequence[str]) -> int | None:
    """The position of the time channel, by its name or else by its label; None if there is none."""
    for names in (channels, labels):
        for place, name in enumerate(names):
            if _CLOCK.match(name):
                return place
    return None


def lights(channels: Sequence[str]) -> list[int]:
    """The positions of all scatter and dye channels: all but time and event counters."""
    return [place for place, name in enumerate(channels) if not _CLOCK.match(name) and not _COUNTED.match(name)]


def is_width(name: str) -> bool:
    """Whether a channel is the width of a pulse."""
    return _WIDTH.fullmatch(name) is not None


def scatter_parts(channels: Sequence[str], direction: str) -> dict[str, int]:
    """The positions of area, height and width of scattered light, of the detector with most of these parts."""
    detectors: dict[str, dict[str, int]] = {}
    for place, name in enumerate(channels):
        found = _PART.fullmatch(name.strip())
        if found is None or _LIGHT[direction].search(name) is None:
            continue
        part = AREA if found[2] else WIDTH if found[4] else HEIGHT
        detectors.setdefault(found[1].lower(), {}).setdefault(part, place)
    return max(detectors.values(), key=len, default={})
