"""Which channel of a file a name means: by $PnN or $PnS, as it is spelled; else without regard to case and punctuation; else `FITC`
for `FITC-A`. The first of these ways in which something fits counts, and where two channels fit the clash is told.

`$P7` (or `$P7N`) means the seventh channel, where names alone cannot say which.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from reduset.cytometry.lab_tables import loose
from reduset.cytometry.opening import FileChannels
from reduset.io.fcs_channels import PULSES
from reduset.io.table import FileError

WAY_OUT = "say in the panel which is meant, by its $PnN or its number ($P7)"


def find_channel(file: FileChannels, name: str, among: Iterable[int] | None = None) -> int | None:
    """The place of the channel that a name means among some of a file's; None where there is none."""
    places = list(range(len(file.names)) if among is None else among)
    number = re.fullmatch(r"\$P([1-9][0-9]{0,5})[NS]?", name.strip(), re.IGNORECASE)
    if number is not None:
        place = int(number[1]) - 1
        return place if place in places else None
    for spelled in (str, loose, _pulseless):
        fitting = [place for place in places if _fits(file, place, name, spelled)]
        if len(fitting) > 1:
            raise FileError(f"{file.path}: {name!r} fits {_told(file, fitting[0])} and {_told(file, fitting[1])}; {WAY_OUT}")
        if fitting:
            return fitting[0]
    return None


def _fits(file: FileChannels, place: int, name: str, spelled: Callable[[str], str]) -> bool:
    own, label = file.names[place], file.labels[place]
    wanted = loose(name) if spelled is _pulseless else spelled(name.strip())
    return wanted == spelled(own) or (bool(label) and wanted == spelled(label))


def _pulseless(name: str) -> str:
    """`FITC-A` as `FITC`, loosely spelled."""
    return loose(name[:-2] if name[-2:].replace("_", "-").replace(" ", "-").upper() in PULSES else name)


def _told(file: FileChannels, place: int) -> str:
    label = file.labels[place]
    return f"channel {place + 1}, {file.names[place]}" + (f" (labelled {label})" if label and label != file.names[place] else "")


def says_something(file: FileChannels, place: int) -> bool:
    """Whether a channel's label says more than its name."""
    label = file.labels[place]
    return bool(loose(label)) and loose(label) != loose(file.names[place])
