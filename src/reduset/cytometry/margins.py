"""Margin events: those whose light was more than a detector could measure, so that all of them are at the top of its range.

Only the top counts. Values at the floor, and below zero where spillover was taken out, are cells without that dye. A detector
saturates at one value, so events at the top are a pile; where more lie beyond it than in it, the range that the file states is not
in the units of its values (floating-point files often repeat that of an older instrument), and tells nothing.

Compensation moves the pile, so the values before it are looked at where they are known.

Where many are at the top they are a population that was not resolved (bright cells, large ones), and taking it out would change
what the sample is made of: it is kept, and told, whatever else of it is at a top (large cells scatter much to all sides).
"""

from __future__ import annotations

import numpy as np

from reduset._messages import printable
from reduset.cytometry.file_events import FileEvents
from reduset.cytometry.pulses import lights
from reduset.cytometry.taken import Flags, Taken
from reduset.io.table import listed

POPULATION = 0.05  # of the events at the top of a channel, beyond which they are kept
WORTH_TELLING = 0.001  # of the events
NEAR = 2e-5  # of the top, by which values may miss it: of 65,536 or more, range and range − 1 are both found written as the last


def margins(events: FileEvents, kept: Flags) -> Taken:
    """Take events at the top of a channel of scatter or a dye."""
    taken, many = np.zeros(len(kept), bool), np.zeros(len(kept), bool)
    crowded, beyond = list[str](), list[str]()
    total = max(int(kept.sum()), 1)
    measured = events.values if events.measured is None else events.measured
    for place in lights(events.channels):
        top = float(events.tops[place])
        if not np.isfinite(top) or top <= 0:
            continue
        column = measured[:, place]
        with np.errstate(invalid="ignore"):
            high = kept & (column >= top * (1 - NEAR))
        count = int(high.sum())
        if not count:
            continue
        if 2 * int((column[high] <= top * (1 + NEAR)).sum()) < count:
            beyond += [events.channels[place]] if count > WORTH_TELLING * total else []
        elif count > POPULATION * total:
            crowded.append(f"{events.channels[place]} ({count / total:.1%})")
            many |= high
        else:
            taken |= high
    notes = []
    if crowded:
        notes.append(f"kept although at the top of the range, for they are many: {printable(listed(crowded))} of the events")
    if beyond:
        notes.append(f"values beyond the stated range, which therefore tells no margin: {printable(listed(beyond))}")
    return Taken(taken & ~many, notes)
