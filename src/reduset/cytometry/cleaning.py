"""Cleaning of one file's events in steps: invalid numbers, saturated detectors, doublets, and drift during the measurement.

A step flags some of the events that earlier steps kept, so each event is counted once. A note states what a step could not do. For
example, doublets cannot be found in a file without pulse heights. Each step costs O(n).

Margin events
    Signals above the range of a detector are recorded at the top of the range. Only the top counts: values at the floor, or below
    zero after compensation, are cells without that dye. A saturated detector gives one value, so margin events form a pile. If more
    events lie beyond the pile than in it, the stated range is not in the units of the values, and no event is flagged.
    Floating-point files often repeat the range of an older instrument. Compensation moves the pile, so the values before it are
    used where they are known. A large pile is a population that was not resolved, such as bright or large cells. It is kept, with a
    note, because removing it would change the composition of the sample.

Doublets
    Two cells that passed the laser as one have the height of one pulse and the area of both:

        r = log(area / height),    z = (r − median of r at that height) / s,    s = 1.4826 · median |r − its median|

    An event with z > 4 is a doublet. The ratio of single cells grows with their size, so the median is taken at their height, in
    twenty bins with linear interpolation. Of planted doublets (the areas of two real events added, the larger height) this finds
    62 % instead of 38 % in a file of mixed sizes, and all of them either way in files of one size. Two equal cells have twice the
    area of one, so r separates them only if 4 s < log 2. Otherwise side scatter is used, and if that fails, no event is flagged.
    Without heights, the width takes the place of area over height. Events without area or height are debris, and are kept.

Drift is found by `time_drift`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from reduset._messages import printable
from reduset._types import Array, Floats
from reduset._validate import one_of
from reduset.cytometry.channels import AREA, FORWARD, HEIGHT, SIDE, WIDTH, lights, scatter_parts
from reduset.cytometry.events import FileEvents, Flagged, Flags
from reduset.cytometry.time_drift import time_drift
from reduset.io import listed

MAX_MARGIN_SHARE = 0.05
NOTED_SHARE = 0.001  # of the events, from which values beyond the stated range are worth a note
TOP_TOLERANCE = 2e-5  # relative: of 65,536 or more values, some files give range and others range − 1 as the last one
MAX_Z = 4.0
MAX_DOUBLET_SHARE = 0.25  # more are another kind of cell, or wrong settings
MIN_EVENTS = 200
MIN_POSITIVE_SHARE = 0.9  # of the events, which need a positive area and height
HEIGHT_BINS = 20
MAX_SAMPLE = 50_000
AREA_OF_TWO = float(np.log(2.0))


@dataclass(frozen=True)
class Cleaned:
    """The result of cleaning a file.

    Attributes
    ----------
    keep : (n,) which events are kept
    counted : the number of events that each step removed, in the order of the steps
    notes : what could not be done, and why
    """

    keep: Flags = field(repr=False)
    counted: dict[str, int]
    notes: list[str]


def clean(events: FileEvents, steps: Sequence[str] | None = None) -> Cleaned:
    """Find the events of a file that are measurements of single cells.

    Parameters
    ----------
    events : of one file, with all channels
    steps : some of `STEPS`, in the order in which they are applied; all by default
    """
    if isinstance(steps, str):
        raise TypeError(f"steps must be a list of names, some of {', '.join(STEPS)}; got the text {steps!r}, write [{steps!r}]")
    names = STEPS if steps is None else [one_of(step, "steps", STEPS) for step in steps]
    keep, counted, notes = np.ones(len(events.values), bool), {}, list[str]()
    for name in dict.fromkeys(names):
        flagged = _STEPS[name](events, keep)
        counted[name] = int((flagged.events & keep).sum())
        keep &= ~flagged.events
        notes += flagged.notes
    return Cleaned(keep, counted, notes)


def non_finite(events: FileEvents, kept: Flags) -> Flagged:
    """Flag events with NaN or infinite values; channels without any number were not measured, and are ignored."""
    finite = np.isfinite(events.values)
    if finite.all():
        return Flagged.none(len(kept))
    empty: Flags = ~np.asarray(finite.any(axis=0))
    named = [name for name, nothing in zip(events.channels, empty, strict=True) if nothing]
    notes = [f"no numbers in {printable(listed(named))}, which was not looked at"] if named else []
    return Flagged(kept & ~finite[:, ~empty].all(axis=1), notes)


def margins(events: FileEvents, kept: Flags) -> Flagged:
    """Flag events at the top of the range of a scatter or dye channel."""
    at_top, resolved = np.zeros(len(kept), bool), np.ones(len(kept), bool)
    crowded, beyond = list[str](), list[str]()
    total = max(int(kept.sum()), 1)
    measured = events.values if events.measured is None else events.measured
    for place in lights(events.channels):
        top = float(events.tops[place])
        if not np.isfinite(top) or top <= 0:
            continue
        column = measured[:, place]
        with np.errstate(invalid="ignore"):
            high = kept & (column >= top * (1 - TOP_TOLERANCE))
        count = int(high.sum())
        if not count:
            continue
        if 2 * int((column[high] <= top * (1 + TOP_TOLERANCE)).sum()) < count:
            beyond += [events.channels[place]] if count > NOTED_SHARE * total else []
        elif count > MAX_MARGIN_SHARE * total:
            crowded.append(f"{events.channels[place]} ({count / total:.1%})")
            resolved &= ~high
        else:
            at_top |= high
    notes = []
    if crowded:
        notes.append(f"kept although at the top of the range, for they are many: {printable(listed(crowded))} of the events")
    if beyond:
        notes.append(f"values beyond the stated range, which therefore tells no margin: {printable(listed(beyond))}")
    return Flagged(at_top & resolved, notes)


def doublets(events: FileEvents, kept: Flags) -> Flagged:
    """Flag events with more area than their height explains."""
    count = int(kept.sum())
    if count < MIN_EVENTS:
        return Flagged.none(len(kept))
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
        if share > MAX_DOUBLET_SHARE:
            return Flagged.none(
                len(kept), f"doublets kept: {share:.0%} of the events have more area of {direction} than their height says"
            )
        return Flagged(found, [])
    return Flagged.none(len(kept), f"doublets not looked for: {'; '.join(why)}")


def _pulse(values: Floats, parts: dict[str, int]) -> tuple[Array, Array] | None:
    """The logarithms of area over height and of height, NaN for missing ones; None if the detector lacks one of the two."""

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
    """Which of the kept events have too large a ratio for their height; None if the ratio cannot separate them."""
    rows = np.flatnonzero(kept & np.isfinite(ratio) & np.isfinite(height))
    if len(rows) < max(MIN_POSITIVE_SHARE * int(kept.sum()), MIN_EVENTS):
        return None
    some = rows[:: -(-len(rows) // MAX_SAMPLE)]
    at, middle = _medians(ratio[some], height[some])
    rest = ratio[some] - np.interp(height[some], at, middle)
    spread = 1.4826 * float(np.median(np.abs(rest)))
    if not 0 < MAX_Z * spread < AREA_OF_TWO:
        return None
    found = np.zeros(len(kept), bool)
    found[rows] = ratio[rows] - np.interp(height[rows], at, middle) > MAX_Z * spread
    return found


def _medians(ratio: Array, height: Array) -> tuple[Array, Array]:
    """The median height and ratio in bins of about equally many events; equal heights are in one bin."""
    count = max(min(HEIGHT_BINS, len(height) // MIN_EVENTS), 1)
    edges = np.unique(np.quantile(height, np.arange(1, count) / count))
    bins = np.searchsorted(edges, height, side="left")
    order = np.argsort(bins, kind="stable")
    parts = [rows for rows in np.split(order, np.searchsorted(bins[order], np.arange(1, len(edges) + 1))) if len(rows)]
    return np.asarray([np.median(height[rows]) for rows in parts]), np.asarray([np.median(ratio[rows]) for rows in parts])


_STEPS: dict[str, Callable[[FileEvents, Flags], Flagged]] = {
    "non-finite": non_finite,
    "margin": margins,
    "doublets": doublets,
    "time": time_drift,
}
STEPS = tuple(_STEPS)
