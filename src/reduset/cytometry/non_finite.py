"""Events with a number that is none (NaN or infinite) in some channel."""

from __future__ import annotations

import numpy as np

from reduset._messages import printable
from reduset.cytometry.file_events import FileEvents
from reduset.cytometry.taken import Flags, Taken
from reduset.io.table import listed


def non_finite(events: FileEvents, kept: Flags) -> Taken:
    """Take events with a NaN or an infinity. A channel that holds nothing else is no reason: it was not measured."""
    finite = np.isfinite(events.values)
    if finite.all():
        return Taken(np.zeros(len(kept), bool), [])
    empty: Flags = ~np.asarray(finite.any(axis=0))
    named = [name for name, nothing in zip(events.channels, empty, strict=True) if nothing]
    notes = [f"no numbers in {printable(listed(named))}, which was not looked at"] if named else []
    return Taken(kept & ~finite[:, ~empty].all(axis=1), notes)
