"""Gates from files: FlowJo workspaces and GatingML 2.0 by FlowKit, or tables of membership.

Events that were exported from a gate need none of this: they are a file like any other.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from reduset.cytometry.gate_documents import DocumentGates, WorkspaceGates
from reduset.cytometry.gate_set import Gates
from reduset.cytometry.gate_tables import FolderGates, TableGates
from reduset.io.paths import named, suffix_of

DRAWN: dict[str, Callable[[str, str | None], Gates]] = {".wsp": WorkspaceGates, ".xml": DocumentGates, ".gml": DocumentGates}


def open_gates(path: Any, population: str | None = None) -> Gates:
    """Open gates, whatever they were saved as.

    Parameters
    ----------
    path : a FlowJo workspace (.wsp), GatingML 2.0 (.xml, .gml); or a table with a row an event and a column of true and false, or 1
        and 0, for each population: one for each FCS file, called as it is, in a folder, or a long one of all with a column
        ``file_name`` or ``sample``, and perhaps ``event``, the number of an event from 0 on
    population : name or path of a gate, ``"CD3+"`` or ``"Cells/Singlets/CD3+"``; None takes the innermost one where there is but
        one chain of gates

    Returns
    -------
    Gates : ``populations`` and ``inside(events)``, (n,) bool, all False where the gate is empty

    Raises
    ------
    FileError : in one line, for whatever is wrong with a file.
    """
    path = named(path)
    if population is not None and not isinstance(population, str):
        raise TypeError(f"population must be the name or path of a gate, got {population!r}")
    if os.path.isdir(path):
        return FolderGates(path, population)
    return DRAWN.get(suffix_of(path)[0], TableGates)(path, population)
