"""Gates as tables of membership: a row an event, a column of true and false a population, in any format that is read.

Either one table a file, called by the stem of its FCS file, as a rule in a folder with others; or one long table with a column that
names the sample or file of each row, and perhaps one that numbers its event from 0, without which rows are in the order of the
events. Every event has a row: what is left out of a table is no gate but a mistake.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from reduset._engine import cached_property
from reduset._types import Array, Indices
from reduset.cytometry.file_events import FileEvents
from reduset.cytometry.gate_set import Gates, check_count, without_root
from reduset.cytometry.taken import Flags
from reduset.io.folders import files_of
from reduset.io.registry import open_source
from reduset.io.source import FLAG, NUMERIC, ReadOptions
from reduset.io.table import FileError, listed, nearest

SAMPLE = ("file_name", "file", "sample", "sample_id")
EVENT = ("event", "event_id")
ROWS_A_BLOCK = 1 << 18


class TableGates(Gates):
    """One long table, or the table of one file."""

    def __init__(self, path: str, population: str | None) -> None:
        self._source = open_source(path, ReadOptions())
        kinds = self._source.kinds
        by_name = {name.casefold(): name for name in kinds}
        self._sample = next((by_name[name] for name in SAMPLE if name in by_name), None)
        self._event = next((by_name[name] for name in EVENT if name in by_name and kinds[by_name[name]] != FLAG), None)
        named = [name for name, kind in kinds.items() if kind in NUMERIC and name not in (self._sample, self._event)]
        self._columns = {without_root(name): name for name in named}
        super().__init__(path, self._columns, population)

    def inside(self, events: FileEvents) -> Flags:
        values, codes, labels = self._rows
        if self._sample is not None:
            values = values[np.isin(codes, self._of_file(labels, events.path))]
        elif Path(self.path).stem.casefold() != Path(events.path).stem.casefold():
            must = f"a column {SAMPLE[0]!r} that says of which file each row is, or the name of the one file"
            raise FileError(f"{self.path}: must have {must}, which {events.path} is not")
        check_count(self.path, events, len(values), "has rows for")
        told = np.isin(values[:, 0], (0.0, 1.0))
        if not told.all():
            must = f"column {self._columns[self.population]!r} must hold true and false, or 1 and 0"
            raise FileError(f"{self.path}: {must}, for every event; got {values[~told, 0][0]:g}")
        member: Flags = values[:, 0] == 1
        return member if self._event is None else self._by_number(member, values[:, 1], events)

    @cached_property
    def _rows(self) -> tuple[Array, Indices, list[str]]:
        """Membership and number of all rows, and the label of each as a code: read once, as a long table is asked of many files."""
        columns = [self._columns[self.population], *([self._event] if self._event else [])]
        known: dict[str, int] = {}
        values, codes = [], []
        for block in self._source.blocks(columns, [self._sample] if self._sample else [], ROWS_A_BLOCK):
            values.append(np.column_stack([np.asarray(column, np.float64) for column in block.columns]))
            for labels in block.labels:
                mine = [known.setdefault(str(label), len(known)) for label in labels.categories]
                codes.append(np.asarray([*mine, -1], np.int64)[labels.codes])
        return np.concatenate(values), np.concatenate([*codes, np.empty(0, np.int64)]), list(known)

    def _of_file(self, labels: list[str], path: str) -> list[int]:
        """The codes of a file's labels, which are its name with or without its suffix."""
        name = Path(path).name
        for mine in (name, Path(name).stem):
            found = [code for code, label in enumerate(labels) if mine in (Path(label).name, Path(label).stem)]
            if found:
                return found
        raise FileError(
            f"{self.path}: column {self._sample!r} has no rows of {name}{nearest(name, labels)}; it has {listed(labels)}"
        )

    def _by_number(self, member: Flags, numbers: Array, events: FileEvents) -> Flags:
        """In the order of the events."""
        order = np.argsort(numbers, kind="stable")
        if not np.array_equal(numbers[order], np.arange(len(numbers))):
            wrong = numbers[order][numbers[order] != np.arange(len(numbers))][0]
            raise FileError(
                f"{self.path}: column {self._event!r} must number each of the {len(numbers):,} events of {events.path} once, "
                f"from 0 on; got {wrong:g} out of turn"
            )
        return member[order]


class FolderGates(Gates):
    """A folder of tables, one for each file."""

    def __init__(self, path: str, population: str | None) -> None:
        self._files = {Path(file).stem.casefold(): file for file in files_of(path)}
        self._asked = population
        first = TableGates(next(iter(self._files.values())), population)
        super().__init__(path, first.populations, population)

    def inside(self, events: FileEvents) -> Flags:
        stem = Path(events.path).stem
        file = self._files.get(stem.casefold())
        if file is None:
            names = [os.path.basename(each) for each in self._files.values()]
            raise FileError(f"{self.path}: has no table for {events.path}, which would be called {stem}; it has {listed(names)}")
        return TableGates(file, self._asked or self.population).inside(events)
