"""Gates from files, which select the events of a population by its name or path.

A population is named by its path, `Cells/Singlets/CD3+`, or by the end of a path if that is unique. Three kinds of files are read:

- FlowJo workspaces (.wsp, from version 10 on) and GatingML 2.0 (.xml, .gml), evaluated by FlowKit. FlowKit reads the FCS file
  itself and takes compensation and scales from the document, because a gate is only valid on these. A document type (DOCTYPE) could
  expand entities and read other files, and no gate needs one. It raises an error before FlowKit parses the document. FlowKit's
  parser does not use the network.
- Tables of membership in any format that `reduset.io` reads, with a row per event and a column of true and false per population.
  There is either one table per file, or one long table. The table of one file has the stem of its FCS file as name, usually in a
  folder. A long table has a column with the sample or file of each row. Optionally another column numbers its event from 0.
  Without numbers, rows are in the order of the events. Every event needs a row.

Events that were exported from a gate need no gates: the exported file is read like any other.
"""

from __future__ import annotations

import io
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from reduset._engine import cached_property
from reduset._types import Array, Indices
from reduset.cytometry.events import FileEvents, Flags
from reduset.io import (
    FLAG,
    NUMERIC,
    FileError,
    ReadOptions,
    files_of,
    head_of,
    listed,
    nearest,
    need,
    one_line,
    open_file,
    path_text,
    suffix_of,
)

ROOT = "root"  # FlowKit's name for the population of all events
SAMPLE = ("file_name", "file", "sample", "sample_id")
EVENT = ("event", "event_id")
BLOCK_ROWS = 1 << 18
WORKSPACE = "a FlowJo workspace"
GATING_ML = "GatingML 2.0"


class Gates(ABC):
    """Gates of some files.

    Attributes
    ----------
    path : Path of the file or folder.
    populations : Paths of all populations.
    population : Path of the chosen population.
    """

    def __init__(self, path: str, populations: Iterable[str], population: str | None) -> None:
        self.path = path
        self.populations = list(populations)
        self.population = _chosen(path, self.populations, population)

    @abstractmethod
    def inside(self, events: FileEvents) -> Flags:
        """(n,) which events of a file are in the population."""

    def check_count(self, events: FileEvents, count: int, what: str) -> None:
        """Raise an error if the number of gated events differs from the number that was read."""
        if count != len(events.values):
            raise FileError(
                f"{self.path}: {what} {count:,} events of {events.path}, which was read with {len(events.values):,}; gate the "
                "same file"
            )


def _chosen(path: str, populations: list[str], population: str | None) -> str:
    """The population of that name; without a name the innermost one, if all are nested."""
    if not populations:
        raise FileError(f"{path}: holds no gate; draw one, or omit the gates")
    if population is None:
        chain = sorted(populations, key=len)
        if all(inner.startswith(f"{outer}/") for outer, inner in pairwise(chain)):
            return chain[-1]
        raise FileError(f"{path}: holds several populations, choose one (population=): {listed(populations, 40)}")
    name = _without_root(population)
    if name in populations:
        return name
    ends = [path_of_gates for path_of_gates in populations if path_of_gates.endswith(f"/{name}")]
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise FileError(f"{path}: population={population!r} is the end of several, choose one: {listed(ends, 40)}")
    hint = nearest(name, populations)
    raise FileError(f"{path}: has no population {population!r}{hint}; it has {listed(populations, 40)}")


def _without_root(population: str) -> str:
    """A path of gates without the name of the population of all events and without a slash before it."""
    return population.strip("/").removeprefix(f"{ROOT}/")


# -- tables of membership -----------------------------------------------------------------------------------------------------


class TableGates(Gates):
    """One long table, or the table of one file."""

    def __init__(self, path: str, population: str | None) -> None:
        self._source = open_file(path, ReadOptions())
        kinds = self._source.kinds
        by_name = {name.casefold(): name for name in kinds}
        self._sample = next((by_name[name] for name in SAMPLE if name in by_name), None)
        self._event = next((by_name[name] for name in EVENT if name in by_name and kinds[by_name[name]] != FLAG), None)
        names = [name for name, kind in kinds.items() if kind in NUMERIC and name not in (self._sample, self._event)]
        self._columns = {_without_root(name): name for name in names}
        super().__init__(path, self._columns, population)

    def inside(self, events: FileEvents) -> Flags:
        values, codes, labels = self._rows
        if self._sample is not None:
            values = values[np.isin(codes, self._of_file(labels, events.path))]
        elif Path(self.path).stem.casefold() != Path(events.path).stem.casefold():
            raise FileError(
                f"{self.path}: must have a column {SAMPLE[0]!r} with the file of each row, or the name of its one file, "
                f"which {events.path} is not"
            )
        self.check_count(events, len(values), "has rows for")
        column = self._columns[self.population]
        valid = np.isin(values[:, 0], (0.0, 1.0))
        if not valid.all():
            wrong = values[~valid, 0][0]
            raise FileError(f"{self.path}: column {column!r} must hold true and false, or 1 and 0, for every event; got {wrong:g}")
        member: Flags = values[:, 0] == 1
        if self._event is None:
            return member
        order = np.argsort(values[:, 1], kind="stable")
        numbers, expected = values[order, 1], np.arange(len(values))
        if not np.array_equal(numbers, expected):
            raise FileError(
                f"{self.path}: column {self._event!r} must number each of the {len(numbers):,} events of {events.path} once, "
                f"from 0 on; got {numbers[numbers != expected][0]:g} out of turn"
            )
        return member[order]

    @cached_property
    def _rows(self) -> tuple[Array, Indices, list[str]]:
        """Membership and event number of all rows, and the code of each label; read once for all files."""
        columns = [self._columns[self.population], *([self._event] if self._event else [])]
        known: dict[str, int] = {}
        values, codes = [], [np.empty(0, np.int64)]
        for block in self._source.blocks(columns, [self._sample] if self._sample else [], BLOCK_ROWS):
            values.append(np.column_stack([np.asarray(column, np.float64) for column in block.columns]))
            for labels in block.labels:
                numbers = [known.setdefault(str(label), len(known)) for label in labels.categories]
                codes.append(np.asarray([*numbers, -1], np.int64)[labels.codes])
        return np.concatenate(values), np.concatenate(codes), list(known)

    def _of_file(self, labels: list[str], path: str) -> list[int]:
        """The codes of the labels that name a file, with or without its suffix."""
        name = Path(path).name
        for spelling in (name, Path(name).stem):
            codes = [code for code, label in enumerate(labels) if spelling in (Path(label).name, Path(label).stem)]
            if codes:
                return codes
        raise FileError(
            f"{self.path}: column {self._sample!r} has no rows of {name}{nearest(name, labels)}; it has {listed(labels)}"
        )


class FolderGates(Gates):
    """A folder of tables, one for each file."""

    def __init__(self, path: str, population: str | None) -> None:
        self._files = {Path(file).stem.casefold(): file for file in files_of(path)}
        self._given = population
        first = TableGates(next(iter(self._files.values())), population)
        super().__init__(path, first.populations, population)

    def inside(self, events: FileEvents) -> Flags:
        stem = Path(events.path).stem
        file = self._files.get(stem.casefold())
        if file is None:
            names = [os.path.basename(name) for name in self._files.values()]
            raise FileError(f"{self.path}: has no table for {events.path}, expected {stem}; it has {listed(names)}")
        return TableGates(file, self._given or self.population).inside(events)


# -- documents ----------------------------------------------------------------------------------------------------------------


class DocumentGates(Gates):
    """One tree of gates for all files: GatingML."""

    def __init__(self, path: str, population: str | None) -> None:
        self._flowkit, text = _opened(path, GATING_ML)
        with _by_flowkit(path, GATING_ML):
            self._strategy = self._flowkit.parse_gating_xml(text)
        self._gates = _gates_by_path(self._flowkit, self._strategy)
        super().__init__(path, self._gates, population)

    def inside(self, events: FileEvents) -> Flags:
        sample = os.path.basename(events.path)
        return _inside(self, self._flowkit, self._strategy, self._gates[self.population], events, sample)


class WorkspaceGates(Gates):
    """A tree of gates for each file: a FlowJo workspace, with samples that are matched by the names of their files."""

    def __init__(self, path: str, population: str | None) -> None:
        self._flowkit, text = _opened(path, WORKSPACE)
        with _by_flowkit(path, WORKSPACE):
            self._workspace = self._flowkit.Workspace(text, load_missing_file_data=True)
            self._samples = self._workspace.get_sample_ids(loaded_only=False)
            trees = [_gates_by_path(self._flowkit, self._workspace.get_gating_strategy(sample)) for sample in self._samples]
        super().__init__(path, dict.fromkeys(gate for tree in trees for gate in tree), population)

    def inside(self, events: FileEvents) -> Flags:
        sample = self._sample_of(events.path)
        strategy = self._workspace.get_gating_strategy(sample)
        gates = _gates_by_path(self._flowkit, strategy)
        if self.population not in gates:
            has = f"it has {listed(gates, 40)}" if gates else "no gate was drawn on it"
            raise FileError(f"{self.path}: its sample {sample!r} has no population {self.population!r}; {has}")
        return _inside(self, self._flowkit, strategy, gates[self.population], events, sample)

    @cached_property
    def _file_names(self) -> dict[str, str]:
        return {sample: (self._workspace.get_keywords(sample) or {}).get("$FIL", "") for sample in self._samples}

    def _sample_of(self, path: str) -> str:
        """The sample of a file: of its name, with or without the suffix, or with its name as the keyword $FIL."""
        name = Path(path).name
        for spelling in (name.casefold(), Path(name).stem.casefold()):
            matches = [sample for sample in self._samples if spelling in (sample.casefold(), Path(sample).stem.casefold())]
            if not matches:
                files = self._file_names
                matches = [sample for sample, file in files.items() if spelling in (file.casefold(), Path(file).stem.casefold())]
            if len(matches) > 1:
                raise FileError(f"{self.path}: {listed(matches)} are all samples of the file {name}; rename all but one")
            if matches:
                return str(matches[0])
        raise FileError(f"{self.path}: has no sample of the file {name}; its samples are {listed(self._samples, 40)}")


def _opened(path: str, what: str) -> tuple[Any, io.BytesIO]:
    """FlowKit, and a document without a document type."""
    head_of(path)
    with open(path, "rb") as stream:
        text = stream.read()
    _check_document_type(path, text)
    return need(f"{path}: {what}", "flowkit", "gates"), io.BytesIO(text)


def _check_document_type(path: str, text: bytes) -> None:
    """Raise an error for XML with a document type, which precedes the first element, in any encoding."""

    def doctype(*_: Any) -> None:
        raise FileError(f"{path}: declares a document type (DOCTYPE), which is not supported; remove it")

    def element(*_: Any) -> None:
        raise StopIteration

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = doctype
    parser.StartElementHandler = element
    try:
        parser.Parse(text, True)
    except StopIteration:
        return
    except expat.ExpatError as error:
        raise FileError(f"{path}: is not XML, the format of FlowJo workspaces and GatingML ({error})") from error


def _gates_by_path(flowkit: Any, strategy: Any) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Name and ancestors of every population by its path; the quadrants of a quadrant gate are populations, the gate is not."""
    gates = {}
    for name, ancestors in strategy.get_gate_ids():
        try:
            if isinstance(strategy.get_gate(name, ancestors), flowkit.gates.QuadrantGate):
                continue
        except flowkit.exceptions.QuadrantReferenceError:
            pass  # one of its quadrants
        gates["/".join([*(ancestor for ancestor in ancestors if ancestor != ROOT), name])] = (name, ancestors)
    return gates


def _inside(gates: Gates, flowkit: Any, strategy: Any, gate: tuple[str, tuple[str, ...]], events: FileEvents, sample: str) -> Flags:
    """The events of a file in one population."""
    with _by_flowkit(events.path, "an FCS file"):
        measured = flowkit.Sample(events.path, sample_id=sample, use_flowjo_labels=isinstance(gates, WorkspaceGates))
    gates.check_count(events, measured.event_count, "gates")
    with _by_flowkit(gates.path, f"gates for {os.path.basename(events.path)}"):
        flags: Flags = strategy.gate_sample(measured).get_gate_membership(*gate)
    return flags.astype(bool)


@contextmanager
def _by_flowkit(path: str, what: str) -> Iterator[None]:
    """Turn FlowKit's exceptions into errors of one line, and ignore its warnings (deprecations, samples that are not available)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except FileError:
        raise
    except Exception as error:
        raise FileError(f"{path}: FlowKit does not accept it as {what} ({one_line(error)})") from error


DOCUMENTS: dict[str, Callable[[str, str | None], Gates]] = {".wsp": WorkspaceGates, ".xml": DocumentGates, ".gml": DocumentGates}


def open_gates(path: Any, population: str | None = None) -> Gates:
    """Open the gates of a file or folder.

    Parameters
    ----------
    path : a FlowJo workspace (.wsp), GatingML 2.0 (.xml, .gml), or tables of membership.
        Tables have a column of true and false, or 1 and 0, for each population. A folder has a table for each FCS file, with the
        same name. One table of all files has a column ``file_name`` or ``sample``, and optionally ``event``, the number of the
        event from 0.
    population : name or path of a gate, ``"CD3+"`` or ``"Cells/Singlets/CD3+"``.
        None selects the innermost gate if all gates are nested.

    Returns
    -------
    Gates : ``populations`` and ``inside(events)``, (n,) bool

    Raises
    ------
    FileError : if a file is not valid.
    """
    path = path_text(path)
    if population is not None and not isinstance(population, str):
        raise TypeError(f"population must be the name or path of a gate, got {population!r}")
    if os.path.isdir(path):
        return FolderGates(path, population)
    return DOCUMENTS.get(suffix_of(path)[0], TableGates)(path, population)
