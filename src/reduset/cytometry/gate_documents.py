"""Gates that were drawn: FlowJo workspaces (.wsp, from version 10 on) and GatingML 2.0 (.xml, .gml), evaluated by FlowKit.

FlowKit reads the FCS file by itself, and takes compensation and scales from the document, as it must: a gate means nothing on
other ones. Documents come from strangers. What declares a document type (DOCTYPE), through which entities could be expanded and
other files read, is refused before FlowKit sees it; no gate needs one. FlowKit's parser looks nothing up on a network.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.parsers import expat

from reduset.cytometry.file_events import FileEvents
from reduset.cytometry.gate_set import ROOT, Gates, check_count
from reduset.cytometry.taken import Flags
from reduset.io.guard import need
from reduset.io.paths import head_of
from reduset.io.table import FileError, listed, one_line

WORKSPACE = "a FlowJo workspace"
GATING_ML = "GatingML 2.0"


class DocumentGates(Gates):
    """One tree of gates for all files: GatingML."""

    def __init__(self, path: str, population: str | None) -> None:
        self._flowkit, text = _opened(path, GATING_ML)
        with _by_flowkit(path, GATING_ML):
            self._strategy = self._flowkit.parse_gating_xml(text)
        self._places = _places(self._flowkit, self._strategy)
        super().__init__(path, self._places, population)

    def inside(self, events: FileEvents) -> Flags:
        return _inside(self, self._flowkit, self._strategy, self._places[self.population], events, os.path.basename(events.path))


class WorkspaceGates(Gates):
    """A tree of gates for each file: a FlowJo workspace, whose samples are found by the names of their files."""

    def __init__(self, path: str, population: str | None) -> None:
        self._flowkit, text = _opened(path, WORKSPACE)
        with _by_flowkit(path, WORKSPACE):
            self._workspace = self._flowkit.Workspace(text, load_missing_file_data=True)
            self._samples = self._workspace.get_sample_ids(loaded_only=False)
            trees = [_places(self._flowkit, self._workspace.get_gating_strategy(sample)) for sample in self._samples]
        super().__init__(path, dict.fromkeys(each for tree in trees for each in tree), population)

    def inside(self, events: FileEvents) -> Flags:
        sample = self._sample_of(events.path)
        strategy = self._workspace.get_gating_strategy(sample)
        places = _places(self._flowkit, strategy)
        if self.population not in places:
            has = f"it has {listed(places, 40)}" if places else "no gate was drawn on it"
            raise FileError(f"{self.path}: its sample {sample!r} has no population {self.population!r}; {has}")
        return _inside(self, self._flowkit, strategy, places[self.population], events, sample)

    def _sample_of(self, path: str) -> str:
        """The sample of a file: called as the file is, with or without its suffix, or said to be of a file of that name ($FIL)."""
        name = Path(path).name
        for called in (name.casefold(), Path(name).stem.casefold()):
            found = [sample for sample in self._samples if called in (sample.casefold(), Path(sample).stem.casefold())]
            if not found:
                files = {sample: (self._workspace.get_keywords(sample) or {}).get("$FIL", "") for sample in self._samples}
                found = [sample for sample, file in files.items() if called in (file.casefold(), Path(file).stem.casefold())]
            if len(found) == 1:
                return str(found[0])
            if found:
                raise FileError(f"{self.path}: {listed(found)} are all samples of the file {name}; rename all but one")
        raise FileError(f"{self.path}: has no sample of the file {name}; its samples are {listed(self._samples, 40)}")


def _opened(path: str, what: str) -> tuple[Any, io.BytesIO]:
    """FlowKit, and a document that declares no type."""
    head_of(path)
    with open(path, "rb") as stream:
        text = stream.read()
    refuse_document_type(path, text)
    return need(f"{path}: {what}", "flowkit", "gates"), io.BytesIO(text)


def refuse_document_type(path: str, text: bytes) -> None:
    """Refuse XML that declares a document type, which comes before the first element if at all; in whatever encoding it is."""

    def refused(*_: Any) -> None:
        raise FileError(f"{path}: declares a document type (DOCTYPE), which no gates need and which is not followed; leave it out")

    def begun(*_: Any) -> None:
        raise StopIteration

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refused
    parser.StartElementHandler = begun
    try:
        parser.Parse(text, True)
    except StopIteration:
        return
    except expat.ExpatError as error:
        raise FileError(f"{path}: is no XML, as gates of FlowJo and GatingML are ({error})") from error


def _places(flowkit: Any, strategy: Any) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Name and ancestors of every population by its path. A quadrant gate is none: its quadrants are."""
    found = {}
    for name, ancestors in strategy.get_gate_ids():
        try:
            if isinstance(strategy.get_gate(name, ancestors), flowkit.gates.QuadrantGate):
                continue
        except flowkit.exceptions.QuadrantReferenceError:
            pass  # one of its quadrants
        found["/".join([*(each for each in ancestors if each != ROOT), name])] = (name, ancestors)
    return found


def _inside(
    gates: Gates, flowkit: Any, strategy: Any, place: tuple[str, tuple[str, ...]], events: FileEvents, sample: str
) -> Flags:
    """The events of a file in one population."""
    with _by_flowkit(events.path, "an FCS file"):
        measured = flowkit.Sample(events.path, sample_id=sample, use_flowjo_labels=isinstance(gates, WorkspaceGates))
    check_count(gates.path, events, measured.event_count, "gates")
    with _by_flowkit(gates.path, f"gates for {os.path.basename(events.path)}"):
        flags: Flags = strategy.gate_sample(measured).get_gate_membership(*place)
    return flags.astype(bool)


@contextmanager
def _by_flowkit(path: str, what: str) -> Iterator[None]:
    """Whatever FlowKit raises is refused in one line; what it warns of (deprecations, samples that are not at hand) is its own."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except FileError:
        raise
    except Exception as error:
        raise FileError(f"{path}: FlowKit does not take it as {what} ({one_line(error)})") from error
