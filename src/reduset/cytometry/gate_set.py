"""The contract of gates: which events of a file lie inside a population, and which populations there are by name.

A population is known by its path, `Cells/Singlets/CD3+`; the end of a path will do where it is the end of one alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import pairwise

from reduset.cytometry.file_events import FileEvents
from reduset.cytometry.taken import Flags
from reduset.io.table import FileError, listed, nearest

ROOT = "root"  # what FlowKit calls the population of all events


class Gates(ABC):
    """Gates of some files.

    Attributes
    ----------
    path : where they are from
    populations : paths of all populations
    population : the one that is asked for
    """

    def __init__(self, path: str, populations: Iterable[str], population: str | None) -> None:
        self.path = path
        self.populations = list(populations)
        self.population = chosen(path, self.populations, population)

    @abstractmethod
    def inside(self, events: FileEvents) -> Flags:
        """(n,) which events of a file are in the population."""


def chosen(path: str, populations: list[str], population: str | None) -> str:
    """The population that is meant; without a name the innermost one, where all lie within each other."""
    if not populations:
        raise FileError(f"{path}: holds no gate; draw one, or leave the gates out")
    if population is None:
        chain = sorted(populations, key=len)
        if all(inner.startswith(f"{outer}/") for outer, inner in pairwise(chain)):
            return chain[-1]
        raise FileError(f"{path}: holds several populations, say which (population=): {listed(populations, 40)}")
    asked = without_root(population)
    if asked in populations:
        return asked
    ends = [each for each in populations if each.endswith(f"/{asked}")]
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise FileError(f"{path}: population={population!r} is the end of several, say which: {listed(ends, 40)}")
    there = f"it has {listed(populations, 40)}"
    raise FileError(f"{path}: has no population {population!r}{nearest(asked, populations)}; {there}")


def without_root(population: str) -> str:
    """A path of gates without the word for all events, and without a slash before it."""
    return population.strip("/").removeprefix(f"{ROOT}/")


def check_count(path: str, events: FileEvents, count: int, what: str) -> None:
    """Refuse what was gated on another number of events than were read."""
    if count != len(events.values):
        raise FileError(
            f"{path}: {what} {count:,} events of {events.path}, which was read with {len(events.values):,}; gate the same file"
        )
