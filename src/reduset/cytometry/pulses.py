"""What a channel measures, by its name: the clock, scattered light or a dye, and of a pulse its area, height or width.

Names are as makers write them: `FSC-A`, `FSC-Area`, `FSC A`, `FS-A`, `FSCA`; Beckman's `FS INT LIN` is an area, `FS PEAK LIN` a
height, `FS TOF LIN` (time of flight) a width. A name that does not say which is a height: instruments that measure one number of
a pulse measure that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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


def is_clock(name: str) -> bool:
    """Whether a channel tells when its event came."""
    return _CLOCK.match(name) is not None


def clock_of(channels: Sequence[str], labels: Sequence[str]) -> int | None:
    """The place of the channel of time, by its name or else by its label; None where there is none."""
    for names in (channels, labels):
        for place, name in enumerate(names):
            if is_clock(name):
                return place
    return None


def lights(channels: Sequence[str]) -> list[int]:
    """The places of all channels of scattered light and dyes: all but the clock and running numbers of events."""
    return [place for place, name in enumerate(channels) if not is_clock(name) and _COUNTED.match(name) is None]


def is_width(name: str) -> bool:
    """Whether a channel is the width of a pulse."""
    return _WIDTH.fullmatch(name) is not None


def scatter_parts(channels: Sequence[str], direction: str) -> dict[str, int]:
    """The places of area, height and width of light scattered in a direction, of the detector that has most of them."""
    detectors: dict[str, dict[str, int]] = {}
    for place, name in enumerate(channels):
        found = _PART.fullmatch(name.strip())
        if found is None or _LIGHT[direction].search(name) is None:
            continue
        part = AREA if found[2] else WIDTH if found[4] else HEIGHT
        detectors.setdefault(found[1].lower(), {}).setdefault(part, place)
    return max(detectors.values(), key=len, default={})
