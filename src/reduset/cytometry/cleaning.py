"""Cleaning of one file's events in steps: invalid numbers, saturated detectors, doublets, and drift during the measurement.

A step flags events that earlier steps kept, so each event is counted once. If a step is not possible, a note states the reason.
For example, doublets cannot be found in a file without pulse heights. Each step costs O(n).

Margin events
    Signals above the range of a detector are recorded at the top of the range. Only the top counts: values at the floor, or below
    zero after compensation, are cells without that dye. A saturated detector gives one value, so margin events form a pile. If more
    events lie beyond the pile than in it, the stated range is not in the units of the values. Then no event is flagged.
    Floating-point files often repeat the range of an older instrument. Compensation moves the pile, so the values before
    compensation are used if they are known. A large pile is a population that was not resolved, such as bright or large cells. It
    is kept, with a note, because removing it would change the composition of the sample.

Doublets
    Two cells that passed the laser as one have the height of one pulse and the area of both:

        r = log(area / height),    z = (r − median of r at that height) / s,    s = 1.4826 · median |r − its median|

    An event with z > 4 is a doublet. The ratio of single cells grows with their size, so the median is taken at their height, in
    twenty bins with linear interpolation. Planted doublets combine two real events: the sum of the areas, and the larger height.
    The local median finds 62 % of them instead of 38 % in a file of mixed sizes. In files of one size both methods find all. Two
    equal cells have twice the area of one, so r separates them only if 4 s < log 2. Otherwise side scatter is used, and if that
    fails, no event is flagged. Without heights, the width replaces area over height. Events without area or height are debris and
    are kept.

Drift in time
    The events in the order of time are cut into up to forty segments of equal size. Each segment is compared with the others on
    asinh scales. It is flagged if its change is both large and significant.

    A change is large if the quantiles (5 % to 95 %) of a channel differ from the typical segment by a quarter of the channel's
    spread or more on average. This is a truncated Wasserstein distance. It equals the shift if all values shift. It is small if
    slightly more or fewer cells are positive, while a median may jump. A change is significant if the column test of
    `reduset.drift` rejects the hypothesis that the channel is distributed as in the unchanged segments. The level is 5 % for all
    segments and channels together (Bonferroni).

    With a million events, trivial changes are significant too, but they are not large, so their events are kept. The size is tested
    first. Files without drift need a sort and no test. Sorting costs O(n log n), and the comparison is bounded (a thousand events a
    segment). The test by column is more powerful: it finds 93 % of the shifts of one dye among forty by half a spread, planted in
    a tenth of 60,000 events. The test of all columns together finds 66 %. Pulse widths are ignored, because they have few values
    and define no population.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from reduset._messages import printable
from reduset._types import Array, Floats, Indices
from reduset._validate import one_of
from reduset.cytometry.events import (
    AREA,
    FORWARD,
    HEIGHT,
    SIDE,
    WIDTH,
    FileEvents,
    Flags,
    clock_of,
    is_width,
    lights,
    scatter_parts,
)
from reduset.drift import ColumnBins, changed_columns
from reduset.io import listed

MAX_MARGIN_SHARE = 0.05
NOTED_SHARE = 0.001  # proportion of events beyond the stated range that causes a note
TOP_TOLERANCE = 2e-5  # relative; the last of 65,536 or more values is the range in some files, and range − 1 in others

MAX_Z = 4.0
MAX_DOUBLET_SHARE = 0.25  # a larger proportion is another kind of cell, or wrong settings
MIN_EVENTS = 200
MIN_POSITIVE_SHARE = 0.9  # proportion of the events that need a positive area and height
HEIGHT_BINS = 20
MAX_SAMPLE = 50_000
AREA_OF_TWO = float(np.log(2.0))

MAX_SEGMENTS, MIN_SEGMENTS = 40, 10
MIN_SEGMENT_EVENTS, SAMPLED_EVENTS = 500, 1000
LARGE_CHANGE = 0.25  # of a channel's spread
FAMILY_LEVEL = 0.05
MAX_FLAGGED_SHARE = 0.30
MAX_BACKWARD_STEPS = 0.01  # of all steps of the clock; with more, the file is sorted by time
CLIPPED_SPREADS = 3.0  # from the median, so that outliers have little influence
LEVELS = np.linspace(0.05, 0.95, 19)


class Cleaned(NamedTuple):
    """The result of cleaning a file.

    Attributes
    ----------
    keep : Whether an event is kept, (n,).
    counted : Number of events that each step removed, in the order of the steps.
    notes : Steps that were not possible, with the reason.
    """

    keep: Flags
    counted: dict[str, int]
    notes: list[str]


def clean(events: FileEvents, steps: Sequence[str] | None = None) -> Cleaned:
    """Find the events of a file that are measurements of single cells.

    Parameters
    ----------
    events : The events of one file, with all channels.
    steps : Names from `STEPS`, in the order in which they are applied; all by default.
    """
    if isinstance(steps, str):
        raise TypeError(f"steps must be a list of names, some of {', '.join(STEPS)}; got the text {steps!r}, write [{steps!r}]")
    names = STEPS if steps is None else [one_of(step, "steps", STEPS) for step in steps]
    keep, counted, notes = np.ones(len(events.values), bool), {}, list[str]()
    for name in dict.fromkeys(names):
        flagged = _STEPS[name](events, keep, notes)
        counted[name] = int((flagged & keep).sum())
        keep &= ~flagged
    return Cleaned(keep, counted, notes)


def non_finite(events: FileEvents, kept: Flags, notes: list[str]) -> Flags:
    """Flag events with NaN or infinite values. Channels without any number were not measured and are ignored."""
    finite = np.isfinite(events.values)
    empty: Flags = ~np.asarray(finite.any(axis=0))
    if empty.any():
        names = [name for name, is_empty in zip(events.channels, empty, strict=True) if is_empty]
        notes.append(f"ignored, without any number: {printable(listed(names))}")
    return kept & ~finite[:, ~empty].all(axis=1)


def margins(events: FileEvents, kept: Flags, notes: list[str]) -> Flags:
    """Flag events at the top of the range of a scatter or dye channel."""
    at_top, resolved = np.zeros(len(kept), bool), np.ones(len(kept), bool)
    crowded, beyond = list[str](), list[str]()
    total = max(int(kept.sum()), 1)
    measured = events.values if events.measured is None else events.measured
    for position in lights(events.channels):
        top = float(events.tops[position])
        if not np.isfinite(top) or top <= 0:
            continue
        column = measured[:, position]
        with np.errstate(invalid="ignore"):
            high = kept & (column >= top * (1 - TOP_TOLERANCE))
        count = int(high.sum())
        if not count:
            continue
        if 2 * int((column[high] <= top * (1 + TOP_TOLERANCE)).sum()) < count:
            beyond += [events.channels[position]] if count > NOTED_SHARE * total else []
        elif count > MAX_MARGIN_SHARE * total:
            crowded.append(f"{events.channels[position]} ({count / total:.1%})")
            resolved &= ~high
        else:
            at_top |= high
    if crowded:
        notes.append(f"kept at the top of the range, because these are many events: {printable(listed(crowded))}")
    if beyond:
        notes.append(f"margin events not searched for, because values exceed the stated range: {printable(listed(beyond))}")
    return at_top & resolved


# -- doublets -----------------------------------------------------------------------------------------------------------------


def doublets(events: FileEvents, kept: Flags, notes: list[str]) -> Flags:
    """Flag events with more area than their height explains."""
    count, none, reasons = int(kept.sum()), np.zeros(len(kept), bool), list[str]()
    if count < MIN_EVENTS:
        return none
    for direction in (FORWARD, SIDE):
        parts = scatter_parts(events.channels, direction)
        pulse = _pulse(events.values, parts)
        if pulse is None:
            reasons.append(f"{direction} has {'no ' + (HEIGHT if AREA in parts else AREA) if parts else 'no channel'}")
            continue
        flagged = _outside(*pulse, kept)
        if flagged is None:
            reasons.append(f"area and height of {direction} are too weakly related")
            continue
        share = int(flagged.sum()) / count
        if share > MAX_DOUBLET_SHARE:
            notes.append(f"doublets kept: {share:.0%} of the events have more area of {direction} than expected")
            return none
        return flagged
    notes.append(f"doublets not searched for: {'; '.join(reasons)}")
    return none


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
    """Flags of kept events with too large a ratio for their height; None if the ratio cannot separate doublets."""
    rows = np.flatnonzero(kept & np.isfinite(ratio) & np.isfinite(height))
    if len(rows) < max(MIN_POSITIVE_SHARE * int(kept.sum()), MIN_EVENTS):
        return None
    sample = rows[:: -(-len(rows) // MAX_SAMPLE)]
    heights, ratios = _medians(ratio[sample], height[sample])
    rest = ratio[sample] - np.interp(height[sample], heights, ratios)
    spread = 1.4826 * float(np.median(np.abs(rest)))
    if not 0 < MAX_Z * spread < AREA_OF_TWO:
        return None
    flagged = np.zeros(len(kept), bool)
    flagged[rows] = ratio[rows] - np.interp(height[rows], heights, ratios) > MAX_Z * spread
    return flagged


def _medians(ratio: Array, height: Array) -> tuple[Array, Array]:
    """The median height and ratio in bins of about equally many events; equal heights are in one bin."""
    count = max(min(HEIGHT_BINS, len(height) // MIN_EVENTS), 1)
    edges = np.unique(np.quantile(height, np.arange(1, count) / count))
    bins = np.searchsorted(edges, height, side="left")
    order = np.argsort(bins, kind="stable")
    parts = [rows for rows in np.split(order, np.searchsorted(bins[order], np.arange(1, len(edges) + 1))) if len(rows)]
    return np.asarray([np.median(height[rows]) for rows in parts]), np.asarray([np.median(ratio[rows]) for rows in parts])


# -- drift in time ------------------------------------------------------------------------------------------------------------


def time_drift(events: FileEvents, kept: Flags, notes: list[str]) -> Flags:
    """Flag segments of time in which the events differ from the rest by a large and significant change."""
    clock, flagged, rows = clock_of(events.channels, events.labels), np.zeros(len(kept), bool), np.flatnonzero(kept)
    if clock is None:
        notes.append("drift in time not searched for: no channel of time")
    if clock is None or len(rows) < MIN_SEGMENTS * MIN_SEGMENT_EVENTS:
        return flagged
    times = events.values[rows, clock]
    steps = np.diff(times)
    if not np.any(steps != 0):
        notes.append(f"drift in time not searched for: {printable(events.channels[clock])} is constant")
        return flagged
    if float((steps < 0).mean()) > MAX_BACKWARD_STEPS:  # a few backward steps mean joined files, in the order of time
        rows = np.asarray(rows[np.argsort(times, kind="stable")])
    segments = np.array_split(rows, min(MAX_SEGMENTS, len(rows) // MIN_SEGMENT_EVENTS))
    names, values = _sampled(events, segments)
    if not names:
        return flagged
    quantiles = np.quantile(values, LEVELS, axis=1)
    shifts = np.abs(quantiles - np.median(quantiles, axis=1, keepdims=True)).mean(axis=0)  # (segments, channels)
    changed = _changed(values, shifts > LARGE_CHANGE)
    share = sum(len(segments[k]) for k in changed) / len(rows)
    if share > MAX_FLAGGED_SHARE:
        strongest = [names[j] for j in np.unique(shifts[changed].argmax(axis=1))]
        notes.append(
            f"the signal drifts throughout ({printable(', '.join(strongest[:4]))}): {share:.0%} of the events differ from the "
            "rest, and were kept"
        )
        return flagged
    for k in changed:
        flagged[segments[k]] = True
    return flagged


def _sampled(events: FileEvents, segments: list[Indices]) -> tuple[list[str], Array]:
    """The C channels that vary, and a sample of each segment, (S, L, C), in units of the channels' spreads."""
    count = min(min(map(len, segments)), SAMPLED_EVENTS)
    rows = np.concatenate([segment[np.arange(count) * len(segment) // count] for segment in segments])
    positions = np.array([position for position in lights(events.channels) if not is_width(events.channels[position])], np.int64)
    values = np.asarray(events.values[rows][:, positions], np.float64)
    finite = np.isfinite(values).all(axis=0)
    positions, values = positions[finite], values[:, finite]
    values = np.arcsinh(values / np.maximum(np.median(np.abs(values), axis=0), 1e-300))
    low, high = np.quantile(values, (0.25, 0.75), axis=0)
    spreads = np.where(high > low, (high - low) / 1.349, values.std(axis=0))
    varies = spreads > 0
    values = values[:, varies] / spreads[varies]
    middle = np.median(values, axis=0)
    values = np.clip(values, middle - CLIPPED_SPREADS, middle + CLIPPED_SPREADS)
    return [events.channels[position] for position in positions[varies]], values.reshape(len(segments), count, int(varies.sum()))


def _changed(values: Array, large: Flags) -> list[int]:
    """Segments in which the change of a channel is large and significant; ``large`` is (S, C)."""
    unchanged: Flags = ~np.asarray(large.any(axis=1))
    level = FAMILY_LEVEL / large.size
    changed = []
    for segment in np.flatnonzero(~unchanged).tolist():
        columns = np.flatnonzero(large[segment])
        others: Flags = unchanged if 2 * int(unchanged.sum()) >= len(unchanged) else np.arange(len(unchanged)) != segment
        before, after = values[others][:, :, columns].reshape(-1, len(columns)), values[segment][:, columns]
        bins = ColumnBins.of(before)
        old, new = (bins.shares(rows, np.full(len(rows), 1 / len(rows))) for rows in (before, after))
        names = tuple(map(str, columns))
        changes = changed_columns(bins, old, new, (len(before), len(after)), names, np.random.default_rng(0))
        if min(change.p_alone for change in changes) <= level:
            changed.append(segment)
    return changed


_STEPS: dict[str, Callable[[FileEvents, Flags, list[str]], Flags]] = {
    "non-finite": non_finite,
    "margin": margins,
    "doublets": doublets,
    "time": time_drift,
}
STEPS = tuple(_STEPS)
