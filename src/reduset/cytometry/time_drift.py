"""Drift in time: segments of a file that were measured differently from the rest, by the column test of `reduset.drift`.

The events in the order of time are cut into up to forty segments of equal size. Each segment is compared with the others on asinh
scales. It is flagged if both conditions hold:

- The change is large: in some channel, the quantiles (5 % to 95 %) of the segment differ on average by a quarter of the channel's
  spread or more from those of the typical segment. This is a truncated Wasserstein distance. It equals the shift if all values
  shift, and is small if a few cells more or less are positive, where a median may jump.
- The change is significant: the drift test rejects the hypothesis that such a channel is distributed as in the unchanged segments,
  at a level of 5 % for all segments and channels together (Bonferroni).

With a million events trivial changes are significant too, but they are not large, and stay. The size is tested first. Files without
drift need a sort and no test. Sorting costs O(n log n), and the comparison is bounded (a thousand events a segment). Of the drift
tests the one by column is used: of a shift of one dye among forty by half a spread, planted in a tenth of 60,000 events, it finds
93 %, the test of all columns together 66 %. Pulse widths are ignored: they take few values and define no population.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reduset._messages import printable
from reduset._types import Array, Indices
from reduset.cytometry.channels import clock_of, is_width, lights
from reduset.cytometry.events import FileEvents, Flagged, Flags
from reduset.drift.columns import ColumnBins, changed_columns

MAX_SEGMENTS, MIN_SEGMENTS = 40, 10
MIN_SEGMENT_EVENTS, SAMPLED_EVENTS = 500, 1000
LARGE_CHANGE = 0.25  # of a channel's spread
FAMILY_LEVEL = 0.05
MAX_FLAGGED_SHARE = 0.30
MAX_BACKWARD_STEPS = 0.01  # of all steps of the clock, up to which the file itself is in the order of time
CLIPPED_SPREADS = 3.0  # from the median; a few events far away would otherwise count for many
LEVELS = np.linspace(0.05, 0.95, 19)


def time_drift(events: FileEvents, kept: Flags) -> Flagged:
    """Flag segments of time in which the events differ from the rest by a large and significant change."""
    clock = clock_of(events.channels, events.labels)
    if clock is None:
        return Flagged.none(len(kept), "drift in time not looked for: no channel of time")
    rows = np.flatnonzero(kept)
    if len(rows) < MIN_SEGMENTS * MIN_SEGMENT_EVENTS:
        return Flagged.none(len(kept))
    order = _in_time(rows, events.values[rows, clock])
    if order is None:
        return Flagged.none(len(kept), f"drift in time not looked for: {printable(events.channels[clock])} does not run")
    segments = np.array_split(order, min(MAX_SEGMENTS, len(order) // MIN_SEGMENT_EVENTS))
    sampled = _sampled(events, segments)
    if sampled is None:
        return Flagged.none(len(kept))
    odd = _different(sampled)
    share = sum(len(segments[k]) for k in odd) / len(rows)
    if share > MAX_FLAGGED_SHARE:
        most = [sampled.names[j] for j in np.unique(sampled.moved[odd].argmax(axis=1))]
        told = f"the signal drifts throughout ({printable(', '.join(most[:4]))}): {share:.0%} of the events differ from the rest"
        return Flagged.none(len(kept), f"{told}, and were kept")
    found = np.zeros(len(kept), bool)
    for k in odd:
        found[segments[k]] = True
    return Flagged(found, [])


def _in_time(rows: Indices, times: Array) -> Indices | None:
    """Rows in the order of time. The file is in that order if its clock rarely goes back, as in joined files."""
    steps = np.diff(times)
    if not np.any(steps != 0):
        return None
    if float((steps < 0).mean()) <= MAX_BACKWARD_STEPS:
        return rows
    return np.asarray(rows[np.argsort(times, kind="stable")])


class _Segments(NamedTuple):
    """A sample of every segment, (S, L, C) in units of the channels' spreads; the shift of each segment, (S, C); channel names."""

    values: Array
    moved: Array
    names: list[str]


def _sampled(events: FileEvents, segments: list[Indices]) -> _Segments | None:
    """A sample of each segment, and how far it moved; None if no channel varies."""
    count = min(min(map(len, segments)), SAMPLED_EVENTS)
    some = np.stack([rows[np.arange(count) * len(rows) // count] for rows in segments])
    places = [place for place in lights(events.channels) if not is_width(events.channels[place])]
    values = np.asarray(events.values[some.ravel()][:, places], np.float64)
    fine: Flags = np.asarray(np.isfinite(values).all(axis=0))
    values, names = values[:, fine], [events.channels[place] for place, well in zip(places, fine, strict=True) if well]
    values = np.arcsinh(values / np.maximum(np.median(np.abs(values), axis=0), 1e-300))
    spreads = _spreads(values)
    varies = spreads > 0
    if not varies.any():
        return None
    values = values[:, varies] / spreads[varies]
    middle = np.median(values, axis=0)
    values = np.clip(values, middle - CLIPPED_SPREADS, middle + CLIPPED_SPREADS).reshape(len(segments), count, -1)
    quantiles = np.quantile(values, LEVELS, axis=1)
    moved = np.abs(quantiles - np.median(quantiles, axis=1, keepdims=True)).mean(axis=0)
    return _Segments(values, moved, [name for name, does in zip(names, varies, strict=True) if does])


def _spreads(values: Array) -> Array:
    """(C,) standard deviations from the interquartile range; plain ones if that is 0."""
    low, high = np.quantile(values, (0.25, 0.75), axis=0)
    return np.where(high > low, (high - low) / 1.349, values.std(axis=0))


def _different(sampled: _Segments) -> list[int]:
    """Segments in which some channel's change is large and significant."""
    large = sampled.moved > LARGE_CHANGE
    unchanged: Flags = ~np.asarray(large.any(axis=1))
    level = FAMILY_LEVEL / large.size
    return [
        int(k) for k in np.flatnonzero(~unchanged) if _least_p(sampled.values, unchanged, int(k), np.flatnonzero(large[k])) <= level
    ]


def _least_p(values: Array, unchanged: Flags, segment: int, columns: Indices) -> float:
    """The least p-value of some columns of a segment against the unchanged ones, or all others if these are fewer than half."""
    others: Flags = unchanged if 2 * int(unchanged.sum()) >= len(unchanged) else np.arange(len(unchanged)) != segment
    before, after = values[others][:, :, columns].reshape(-1, len(columns)), values[segment][:, columns]
    bins = ColumnBins.of(before)
    old, new = (bins.shares(rows, np.full(len(rows), 1 / len(rows))) for rows in (before, after))
    names = tuple(map(str, columns))
    changes = changed_columns(bins, old, new, (len(before), len(after)), names, np.random.default_rng(0))
    return min(change.p_alone for change in changes)
