"""Doublets: two cells that passed the laser as one, with the height of one and the area of both.

    r = log(area / height),    z = (r − median of r at that height) / s,    s = 1.4826 · median |r − its median|

An event is a doublet where z > 4, on that side alone. The ratio of single cells grows with their size, so its median is taken at
their height (twenty bins, linear between): of planted doublets (the areas of two real events added, the larger height) that finds
62 % in place of 38 % in a file of mixed sizes, and all of them either way in files of one size. Two equal cells have twice the area
of one, so that r tells them apart only if 4 s < log 2; where it does not, side scatter is tried, and then nothing is taken.
Where there is no height, width is area over height. O(n).

Events without area or height are kept: whatever they are, mostly less than a cell, they are not two.
"""

from __future__ import annotations

import numpy as np

from reduset._types import Array, Floats
from reduset.cytometry.file_events import FileEvents
from reduset.cytometry.pulses import AREA, FORWARD, HEIGHT, SIDE, WIDTH, scatter_parts
from reduset.cytometry.taken import Flags, Taken, nothing

FAR = 4.0  # robust standard deviations
MOST = 0.25  # of the events: more are not doublets but another kind of cell, or settings gone wrong
FEWEST = 200  # events that a spread is taken of
POSITIVE = 0.9  # of the events, that must have area and height for these to be of cells
BINS, LOOKED_AT = 20, 50_000
TWICE = float(np.log(2.0))


def doublets(events: FileEvents, kept: Flags) -> Taken:
    """Take events with more area than their height says."""
    count = int(kept.sum())
    if count < FEWEST:
        return nothing(len(kept))
    why = []
    for direction in (FORWARD, SIDE):
        parts = scatter_parts(events.channels, direction)
        pulse = _pulse(events.values, parts)
        if pulse is None:
            why.append(f"{direction} has {'no ' + (HEIGHT if AREA in parts else AREA) if parts else 'no channel'}")
            continue
        found = _outside(*pulse, kept)
        if found is None:
            why.append(f"of {direction}, area and height do not go together")
            continue
        share = int(found.sum()) / count
        if share > MOST:
            return nothing(
                len(kept), f"doublets kept: {share:.0%} of the events have more area of {direction} than their height says"
            )
        return Taken(found, [])
    return nothing(len(kept), f"doublets not looked for: {'; '.join(why)}")


def _pulse(values: Floats, parts: dict[str, int]) -> tuple[Array, Array] | None:
    """The logarithms of area over height and of height, NaN where there is none; None where the detector has not both."""

    def log(part: str) -> Array:
        column = np.asarray(values[:, parts[part]], np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((column > 0) & np.isfinite(column), np.log(column), np.nan)

    if AREA in parts and HEIGHT in parts:
        area, height = log(AREA), log(HEIGHT)
        return area - height, height
    if WIDTH not in parts:
        return None
    width = log(WIDTH)
    if HEIGHT in parts:
        return width, log(HEIGHT)
    return width, log(AREA) - width if AREA in parts else np.where(np.isnan(width), np.nan, 0.0)


def _outside(ratio: Array, height: Array, kept: Flags) -> Flags | None:
    """Which of the kept events have too large a ratio for their height; None where that cannot be told."""
    known = kept & np.isfinite(ratio) & np.isfinite(height)
    rows = np.flatnonzero(known)
    if len(rows) < max(POSITIVE * int(kept.sum()), FEWEST):
        return None
    some = rows[:: -(-len(rows) // LOOKED_AT)]
    at, middle = _medians(ratio[some], height[some])
    rest = ratio[some] - np.interp(height[some], at, middle)
    spread = 1.4826 * float(np.median(np.abs(rest)))
    if not 0 < FAR * spread < TWICE:
        return None
    found = np.zeros(len(kept), bool)
    found[rows] = ratio[rows] - np.interp(height[rows], at, middle) > FAR * spread
    return found


def _medians(ratio: Array, height: Array) -> tuple[Array, Array]:
    """The median height of bins of about equally many events, equal heights in one, and the median ratio of each."""
    count = max(min(BINS, len(height) // FEWEST), 1)
    edges = np.unique(np.quantile(height, np.arange(1, count) / count))
    bins = np.searchsorted(edges, height, side="left")
    order = np.argsort(bins, kind="stable")
    parts = [rows for rows in np.split(order, np.searchsorted(bins[order], np.arange(1, len(edges) + 1))) if len(rows)]
    return np.asarray([np.median(height[rows]) for rows in parts]), np.asarray([np.median(ratio[rows]) for rows in parts])
