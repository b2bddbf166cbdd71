"""Samples as a study sees them: the cells of each on markers with names, the table of samples, and what was left out on the way.

Cells may come from files (`reduset.cytometry.read_cohort`), or from arrays and frames in memory (`SampleSet.of`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._types import Floats, Indices


@dataclass(frozen=True)
class SampleSet:
    """The samples of a cohort.

    Attributes
    ----------
    names : of the N samples, each once
    cells : of each sample (n, d), one column a marker, on the scale on which distances mean something
    markers : the names of the d columns
    table : the table of samples by column, each with N entries (text or numbers, None where one is missing)
    state : markers that describe cells and do not define their population
    counted : by step of reading and cleaning (N,) how many events it took away; first "events", how many there were
    left_out : samples that were asked for and are not there, with the reason
    notes : what there is to say of the files
    sources : the file of each sample, where they came from files
    events : of each sample (n,) the numbers of its cells among the events of its file, ascending; None where all are there
    scales : by marker, the transform that its numbers went through
    """

    names: tuple[str, ...]
    cells: tuple[Floats, ...] = field(repr=False)
    markers: tuple[str, ...]
    table: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, repr=False)
    state: frozenset[str] = frozenset()
    counted: Mapping[str, NDArray[np.int64]] = field(default_factory=dict, repr=False)
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = field(default=(), repr=False)
    sources: tuple[str, ...] = field(default=(), repr=False)
    events: tuple[Indices | None, ...] | None = field(default=None, repr=False)
    scales: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(N,) how many cells each sample has."""
        return np.array([len(each) for each in self.cells], np.int64)
