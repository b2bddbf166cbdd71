"""Gates from files, which select the events of a population by its name or path.

A population is named by its path, `Cells/Singlets/CD3+`, or by the end of a path if that is unique. Three kinds of files are read:

- FlowJo workspaces (.wsp, from version 10 on) and GatingML 2.0 (.xml, .gml), evaluated by FlowKit. FlowKit reads the FCS file
  itself and takes compensation and scales from the document, because a gate is only valid on these. A document type (DOCTYPE) could
  expand entities and read other files, and no gate needs one. It raises an error before FlowKit parses the document. FlowKit's
  parser does not use the network.
- A table of membership in any format that `reduset.io` reads, with a row per event and a column of true and false per population.
  One more column has the sample or file of each row. Optionally another column numbers its event from 0. Without numbers, rows are
  in the order of the events. Every event needs a row.

Events that were exported from a gate need no gates: the exported file is read like any other.
"""

from __future__ import annotations

import io
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from reduset._types import Indices
from reduset.cytometry.events import FileEvents, Flags
from reduset.io import (
    FLAG,
    NUMERIC,
    FileError,
    ReadOptions,
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
WORKSPACE = ".wsp"
DOCUMENTS = (WORKSPACE, ".xml", ".gml")


class Gates(ABC):
    """Gates of some files.

    Attributes
    ----------
    path : Path of the file.
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


class TableGates(Gates):
    """A table of membership."""

    def __init__(self, path: str, population: str | None) -> None:
        source = open_file(path, ReadOptions())
        kinds = source.kinds
        by_name = {name.casefold(): name for name in kinds}
        self._sample = next((by_name[name] for name in SAMPLE if name in by_name), None)
        self._event = next((by_name[name] for name in EVENT if name in by_name and kinds[by_name[name]] != FLAG), None)
        names = [name for name, kind in kinds.items() if kind in NUMERIC and name not in (self._sample, self._event)]
        columns = {_without_root(name): name for name in names}
        super().__init__(path, columns, population)
        self._column = columns[self.population]
        if self._sample is None:
            raise FileError(f"{path}: must have a column {SAMPLE[0]!r} with the file of each row; it has {listed(kinds)}")
        known: dict[str, int] = {}
        values, codes = [], list[Indices]()
        for block in source.blocks([self._column, *([self._event] if self._event else [])], [self._sample], BLOCK_ROWS):
            values.append(np.column_stack([np.asarray(column, np.float64) for column in block.columns]))
            numbers = [known.setdefault(str(label), len(known)) for label in block.labels[0].categories]
            codes.append(np.asarray([*numbers, -1], np.int64)[block.labels[0].codes])
        self._values, self._codes, self._labels = np.concatenate(values), np.concatenate(codes), list(known)

    def inside(self, events: FileEvents) -> Flags:
        values = self._values[np.isin(self._codes, self._of_file(events.path))]
        self.check_count(events, len(values), "has rows for")
        valid = np.isin(values[:, 0], (0.0, 1.0))
        if not valid.all():
            raise FileError(
                f"{self.path}: column {self._column!r} must hold true and false, or 1 and 0, for every event; got "
                f"{values[~valid, 0][0]:g}"
            )
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

    def _of_file(self, path: str) -> list[int]:
        """The codes of the labels that name a file, with or without its suffix."""
        name = Path(path).name
        for spelling in (name, Path(name).stem):
            codes = [code for code, label in enumerate(self._labels) if spelling in (Path(label).name, Path(label).stem)]
            if codes:
                return codes
        raise FileError(
            f"{self.path}: column {self._sample!r} has no rows of {name}{nearest(name, self._labels)}; it has "
            f"{listed(self._labels)}"
        )


class DocumentGates(Gates):
    """A FlowJo workspace, with a tree of gates for each file, or GatingML, with one tree for all files.

    The samples of a workspace are matched by the names of their files.
    """

    def __init__(self, path: str, population: str | None) -> None:
        self._is_workspace = suffix_of(path)[0] == WORKSPACE
        what = "a FlowJo workspace" if self._is_workspace else "GatingML 2.0"
        self._flowkit, text = _opened(path, what)
        self._names: dict[str, list[str]] = {}  # of each sample: its own, then that of its file
        with _by_flowkit(path, what):
            if self._is_workspace:
                workspace = self._flowkit.Workspace(text, load_missing_file_data=True)
                for sample in workspace.get_sample_ids(loaded_only=False):
                    self._names[sample] = [sample, (workspace.get_keywords(sample) or {}).get("$FIL", "")]
                self._strategies = {sample: workspace.get_gating_strategy(sample) for sample in self._names}
            else:
                self._strategies = {"": self._flowkit.parse_gating_xml(text)}
            self._gates = {sample: _gates_by_path(self._flowkit, strategy) for sample, strategy in self._strategies.items()}
        super().__init__(path, dict.fromkeys(gate for gates in self._gates.values() for gate in gates), population)

    def inside(self, events: FileEvents) -> Flags:
        sample = self._sample_of(events.path) if self._is_workspace else ""
        gates = self._gates[sample]
        if self.population not in gates:
            has = f"it has {listed(gates, 40)}" if gates else "no gate was drawn on it"
            raise FileError(f"{self.path}: its sample {sample!r} has no population {self.population!r}; {has}")
        name = os.path.basename(events.path)
        with _by_flowkit(events.path, "an FCS file"):
            measured = self._flowkit.Sample(events.path, sample_id=sample or name, use_flowjo_labels=self._is_workspace)
        self.check_count(events, measured.event_count, "gates")
        with _by_flowkit(self.path, f"gates for {name}"):
            flags: Flags = self._strategies[sample].gate_sample(measured).get_gate_membership(*gates[self.population])
        return flags.astype(bool)

    def _sample_of(self, path: str) -> str:
        """The sample of a file: of its name, with or without the suffix, or with its name as the keyword $FIL."""
        name = Path(path).name
        for spelling in (name.casefold(), Path(name).stem.casefold()):
            for k in (0, 1):
                own = {sample: names[k].casefold() for sample, names in self._names.items()}
                matches = [sample for sample, text in own.items() if spelling in (text, Path(text).stem)]
                if len(matches) > 1:
                    raise FileError(f"{self.path}: {listed(matches)} are all samples of the file {name}; rename all but one")
                if matches:
                    return matches[0]
        raise FileError(f"{self.path}: has no sample of the file {name}; its samples are {listed(self._names, 40)}")


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


def open_gates(path: Any, population: str | None = None) -> Gates:
    """Open the gates of a file or folder.

    Parameters
    ----------
    path : a FlowJo workspace (.wsp), GatingML 2.0 (.xml, .gml), or a table of membership.
        A table has a column of true and false, or 1 and 0, for each population, a column ``file_name`` or ``sample``, and
        optionally ``event``, the number of the event from 0.
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
    return (DocumentGates if suffix_of(path)[0] in DOCUMENTS else TableGates)(path, population)
