"""What a step of cleaning says: which events it takes out, and what it could not look at."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]


class Taken(NamedTuple):
    """The events (n,) that a step takes out of those kept so far, and short sentences on what it could not do, and why."""

    events: Flags
    notes: list[str]


def nothing(count: int, *notes: str) -> Taken:
    """None of so many events."""
    return Taken(np.zeros(count, bool), list(notes))
