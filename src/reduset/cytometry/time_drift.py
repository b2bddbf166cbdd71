"""Time: segments of a file that were measured otherwise than the rest of it, by the test of columns of `reduset.drift`.

Events in the order of time are cut into up to forty segments of equally many, and each is compared with the others on asinh
scales. A segment is taken out only if both hold:

- it matters: in some channel its quantiles (5 % to 95 %) lie, on average, a quarter of the channel's spread or more from those of
  the typical segment. That is a Wasserstein distance, cut at the ends: the shift where all values shift, and small where a few
  cells more or less are positive, at which a median may jump;
- it is no chance: the test of drift finds such a channel different from what it is in the segments in which nothing matters, at a
  level of 5 % for all segments and channels together (Bonferroni).

With a million events trivial changes are no chance either, and stay. The first is looked at first, as it costs a sort, so that
files without drift are not tested: O(n) to find the order, and what is compared is bounded (a thousand events a segment). Of the
tests of drift it is that of columns, since what matters is a channel: of a shift of one dye among forty by half a spread, planted
in a tenth of 60,000 events, it finds 93 %, the test of all columns together 66 %. Widths are left out: they take few values, and
nobody looks at them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reduset._messages import printable
from reduset._types import Array, Indices
from reduset.cytometry.file_events import FileEvents
from reduset.cytometry.pulses import clock_of, is_width, lights
from reduset.cytometry.taken import Flags, Taken, nothing
from reduset.drift.columns import ColumnBins, changed_columns

SEGMENTS, FEWEST_SEGMENTS = 40, 10
SMALLEST, LOOKED_AT = 500, 1000  # events of a segment
MATTERS = 0.25  # of a channel's spread
LEVEL = 0.05  # of all segments and channels together
MOST = 0.30  # of the events that may go
SELDOM = 0.01  # steps back of the clock, up to which the file is in the order of its events
ENDS = 3.0  # spreads from the median, beyond which values count as there: a pile far away would make much of a few events
LEVELS = np.linspace(0.05, 0.95, 19)


def time_drift(events: FileEvents, kept: Flags) -> Taken:
    """Take segments of time in which the events differ from those of the rest, by enough to matter."""
    clock = clock_of(events.channels, events.labels)
    if clock is None:
        return nothing(len(kept), "drift in time not looked for: no channel of time")
    rows = np.flatnonzero(kept)
    if len(rows) < FEWEST_SEGMENTS * SMALLEST:
        return nothing(len(kept))
    order = _in_time(rows, events.values[rows, clock])
    if order is None:
        return nothing(len(kept), f"drift in time not looked for: {printable(events.channels[clock])} does not run")
    segments = np.array_split(order, min(SEGMENTS, len(order) // SMALLEST))
    seen = _seen(events, segments)
    if seen is None:
        return nothing(len(kept))
    odd = _different(seen)
    share = sum(len(segments[k]) for k in odd) / len(rows)
    if share > MOST:
        most = [seen.names[j] for j in np.unique(seen.moved[odd].argmax(axis=1))]
        told = f"the signal drifts throughout ({printable(', '.join(most[:4]))}): {share:.0%} of the events differ from the rest"
        return nothing(len(kept), f"{told}, and were kept")
    found = np.zeros(len(kept), bool)
    for k in odd:
        found[segments[k]] = True
    return Taken(found, [])


def _in_time(rows: Indices, times: Array) -> Indices | None:
    """Rows in the order of time: that of the file, where its clock goes back seldom (files joined, steps that interlace)."""
    steps = np.diff(times)
    if not np.any(steps != 0):
        return None
    if float((steps < 0).mean()) <= SELDOM:
        return rows
    return np.asarray(rows[np.argsort(times, kind="stable")])


class _Seen(NamedTuple):
    """Some events of every segment, (S, L, C) in units of the channels' spreads; how far each segment moved, (S, C); names."""

    values: Array
    moved: Array
    names: list[str]


def _seen(events: FileEvents, segments: list[Indices]) -> _Seen | None:
    """What is looked at of the segments; None where no channel varies."""
    count = min(min(map(len, segments)), LOOKED_AT)
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
    values = np.clip(values, middle - ENDS, middle + ENDS).reshape(len(segments), count, -1)
    quantiles = np.quantile(values, LEVELS, axis=1)
    moved = np.abs(quantiles - np.median(quantiles, axis=1, keepdims=True)).mean(axis=0)
    return _Seen(values, moved, [name for name, does in zip(names, varies, strict=True) if does])


def _spreads(values: Array) -> Array:
    """(C,) robust standard deviations, by the middle half; plain ones where that is a single value."""
    low, high = np.quantile(values, (0.25, 0.75), axis=0)
    return np.where(high > low, (high - low) / 1.349, values.std(axis=0))


def _different(seen: _Seen) -> list[int]:
    """Segments in which some channel's change matters and is no chance."""
    matters = seen.moved > MATTERS
    calm: Flags = ~np.asarray(matters.any(axis=1))
    level = LEVEL / matters.size
    return [int(k) for k in np.flatnonzero(~calm) if _least_p(seen.values, calm, int(k), np.flatnonzero(matters[k])) <= level]


def _least_p(values: Array, calm: Flags, segment: int, columns: Indices) -> float:
    """The least p-value of some columns of a segment, against the calm segments, or all others where half of them are not."""
    others: Flags = calm if 2 * int(calm.sum()) >= len(calm) else np.arange(len(calm)) != segment
    before, after = values[others][:, :, columns].reshape(-1, len(columns)), values[segment][:, columns]
    bins = ColumnBins.of(before)
    old, new = (bins.shares(rows, np.full(len(rows), 1 / len(rows))) for rows in (before, after))
    names = tuple(map(str, columns))
    changes = changed_columns(bins, old, new, (len(before), len(after)), names, np.random.default_rng(0))
    return min(change.p_alone for change in changes)
