"""Cleaning: events that are no measurements of single cells are taken out, step by step, and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reduset._validate import one_of
from reduset.cytometry.file_events import FileEvents

STEPS = ("non-finite", "margin", "doublets", "time")


@dataclass(frozen=True)
class Cleaned:
    """Which events are kept, how many each step took, and what there is to say."""

    keep: NDArray[np.bool_]
    counted: dict[str, int]
    notes: list[str] = field(default_factory=list)


def clean(events: FileEvents, steps: Sequence[str]) -> Cleaned:
    """Take out events by these steps."""
    for step in steps:
        one_of(step, "clean", STEPS)
    keep = np.ones(len(events.values), bool)
    if "non-finite" in steps:
        keep &= np.isfinite(events.values).all(axis=1)
    return Cleaned(keep, {step: int((~keep).sum()) if step == "non-finite" else 0 for step in steps})
