"""The events of one file with all its channels, before any is left out: what cleaning and gates look at."""

from __future__ import annotations

from dataclasses import dataclass, field

from reduset._types import Array, Floats


@dataclass(frozen=True)
class FileEvents:
    """All events of an FCS file, compensated, on a linear scale.

    Attributes
    ----------
    path : of the file
    channels : the names of its channels ($PnN)
    labels : their labels ($PnS), "" for none
    values : (n, C)
    tops : (C,) the largest value that a channel can hold, infinite where the file does not say
    measured : (n, C) the values before spillover was taken out, which tell whether a detector was at its top; None where they are
        those above
    """

    path: str
    channels: tuple[str, ...]
    labels: tuple[str, ...]
    values: Floats = field(repr=False)
    tops: Array = field(repr=False)
    measured: Floats | None = field(default=None, repr=False)
