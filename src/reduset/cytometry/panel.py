"""The panel: which channel measures which marker, and whether that defines a population (type) or describes its state.

CATALYST's table as it is: `fcs_colname`, `antigen`, `marker_class` (type, state or none), in the usual spellings; and where a lab
says so the scale of a channel: `transform` ("asinh:150", "logicle", "none") or a `cofactor` of asinh.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reduset.cytometry.lab_tables import Cells, LabTable, lab_table, loose
from reduset.io.source import NONE, PLAIN
from reduset.io.table import FileError, listed, nearest
from reduset.io.transforms import parse

CHANNEL = ("fcs_colname", "channel", "channel_name", "fcs_name", "name")
MARKER = ("antigen", "marker", "marker_name", "desc", "target")
CLASS = ("marker_class", "class")
TRANSFORM = ("transform",)
COFACTOR = ("cofactor", "cofactors")

TYPE, STATE = "type", "state"
CLASSES: dict[str, str | None] = {
    **dict.fromkeys(("type", "lineage"), TYPE),
    **dict.fromkeys(("state", "functional"), STATE),
    **dict.fromkeys(("none", "unused"), None),
}


@dataclass(frozen=True)
class PanelMarker:
    """A marker of a panel: its name, the channel as the panel spells it, type or state, and its scale, None for that of all."""

    name: str
    channel: str
    kind: str
    transform: str | None = None


@dataclass(frozen=True)
class Panel:
    """The markers that are used, in the order of the panel, and where they are said."""

    source: str
    markers: tuple[PanelMarker, ...]


def read_panel(value: Any) -> Panel:
    """A panel from a file, a dict of columns or a frame."""
    if isinstance(value, Panel):
        return value
    table = lab_table(value, "panel")
    channels = table.columns[table.need(CHANNEL)]
    names, classes, transforms, cofactors = (_column(table, way) for way in (MARKER, CLASS, TRANSFORM, COFACTOR))
    has_classes = table.find(CLASS) is not None
    markers: list[PanelMarker] = []
    for row, (channel, name) in enumerate(zip(channels, names, strict=True)):
        kind = _kind(table.source, row + 1, classes[row]) if has_classes else TYPE
        if kind is None:
            continue
        if channel is None and name is None:
            raise FileError(f"{table.source}: row {row + 1} names neither a channel nor a marker; fill it, or leave it out")
        scale = _scale(table.source, row + 1, transforms[row], cofactors[row])
        markers.append(PanelMarker(name or channel or "", channel or name or "", kind, scale))
    if not markers:
        raise FileError(f"{table.source}: says of no channel that it is used (marker_class type or state)")
    _refuse_twice(table.source, "channel", [marker.channel for marker in markers])
    _refuse_twice(table.source, "marker", [marker.name for marker in markers])
    return Panel(table.source, tuple(markers))


def _column(table: LabTable, spellings: tuple[str, ...]) -> Cells:
    found = table.find(spellings)
    return table.columns[found] if found is not None else (None,) * len(table)


def _kind(source: str, row: int, cell: str | None) -> str | None:
    """Type, state, or None for a channel that is not used; an empty cell says that it is not."""
    if cell is None:
        return None
    if cell.casefold() not in CLASSES:
        known = listed(CLASSES)
        raise FileError(f"{source}: marker_class must be one of {known}, got {cell!r} in row {row}{nearest(cell, CLASSES)}")
    return CLASSES[cell.casefold()]


def _scale(source: str, row: int, transform: str | None, cofactor: str | None) -> str | None:
    """The scale that a row asks for."""
    if cofactor is not None and (transform is None or transform.casefold() in ("asinh", "arcsinh")):
        transform = f"asinh:{cofactor}"
    if transform is None or transform.casefold() == "auto":
        return None
    if transform.casefold() in PLAIN:
        return NONE
    try:
        parse(transform)
    except (TypeError, ValueError) as error:
        raise FileError(f"{source}: row {row}: {error}") from error
    return transform


def _refuse_twice(source: str, what: str, names: list[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if loose(name) in seen:
            both = f"{name!r} twice" if name == seen[loose(name)] else f"{seen[loose(name)]!r} and {name!r}"
            raise FileError(f"{source}: each {what} must be there once, got {both}; say none in marker_class of the other")
        seen[loose(name)] = name
