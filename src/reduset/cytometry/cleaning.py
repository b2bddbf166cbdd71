"""Cleaning of one file's events, step by step: what is no measurement, what is no single cell, what was measured otherwise.

A step takes events out of those that the steps before it left, so that every event is counted once. It says in words what it
could not do: a file without heights has no doublets that could be told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from reduset._validate import one_of
from reduset.cytometry.doublets import doublets
from reduset.cytometry.file_events import FileEvents
from reduset.cytometry.margins import margins
from reduset.cytometry.non_finite import non_finite
from reduset.cytometry.taken import Flags, Taken
from reduset.cytometry.time_drift import time_drift

_STEPS: dict[str, Callable[[FileEvents, Flags], Taken]] = {
    "non-finite": non_finite,
    "margin": margins,
    "doublets": doublets,
    "time": time_drift,
}
STEPS = tuple(_STEPS)


@dataclass(frozen=True)
class Cleaned:
    """What cleaning left of a file.

    Attributes
    ----------
    keep : (n,) which events are kept
    counted : how many events each step took, in the order of the steps; an event counts at the first that takes it
    notes : what could not be done, and why
    """

    keep: Flags = field(repr=False)
    counted: dict[str, int]
    notes: list[str]


def clean(events: FileEvents, steps: Sequence[str] = STEPS) -> Cleaned:
    """Find the events that are worth looking at.

    Parameters
    ----------
    events : of one file, all channels
    steps : some of `STEPS`, taken in this order
    """
    if isinstance(steps, str):
        raise TypeError(f"steps must be a list of names, some of {', '.join(STEPS)}; got the text {steps!r}, write [{steps!r}]")
    asked = [one_of(step, "steps", STEPS) for step in steps]
    keep, counted, notes = np.ones(len(events.values), bool), {}, list[str]()
    for name in dict.fromkeys(asked):
        taken = _STEPS[name](events, keep)
        counted[name] = int((taken.events & keep).sum())
        keep &= ~taken.events
        notes += taken.notes
    return Cleaned(keep, counted, notes)
