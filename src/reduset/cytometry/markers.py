"""The markers of a study, from its panel or from all dyes of the files, and the channel of each marker in every file.

A panel is CATALYST's table: `fcs_colname`, `antigen`, `marker_class` (type, state or none), in the usual spellings. Markers of
class type define populations; markers of class state only describe them. A column `transform` ("asinh:150", "logicle", "none") or
`cofactor` sets the scale of a channel.

If files differ, the study has the markers of all files, with a note on the others. The rule "same" raises an error instead. Without
a panel, a marker has the label of its channel, if the label differs from the channel's name. Files without the label are matched by
the name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reduset.cytometry.events import FileChannels, find_channel
from reduset.cytometry.lab_tables import lab_table, loose, repeated
from reduset.io import NONE, PLAIN, FileError, isotopes, listed, nearest, parse_transform, redundant

CHANNEL = ("fcs_colname", "channel", "channel_name", "fcs_name", "name")
MARKER = ("antigen", "marker", "marker_name", "desc", "target")
CLASS = ("marker_class", "class")

TYPE, STATE = "type", "state"
CLASSES: dict[str, str | None] = {
    **dict.fromkeys(("type", "lineage"), TYPE),
    **dict.fromkeys(("state", "functional"), STATE),
    **dict.fromkeys(("none", "unused"), None),
}
COMMON, SAME = "common", "same"
MAX_NAMED_FILES = 3  # in a note

Positions = list[int | None]  # of one marker in each file


@dataclass(frozen=True)
class PanelMarker:
    """A marker of a panel: its name, its channel, its class (type or state), and its scale, None for the scale of all."""

    name: str
    channel: str
    kind: str
    transform: str | None = None


@dataclass(frozen=True)
class Panel:
    """The markers of a study in the order of the panel, and the file of the panel."""

    source: str
    markers: tuple[PanelMarker, ...]


def read_panel(value: Any) -> Panel:
    """A panel from a file, a dict of columns or a frame."""
    if isinstance(value, Panel):
        return value
    table = lab_table(value, "panel")
    table.need(CHANNEL)
    columns = (table.cells(spellings) for spellings in (CHANNEL, MARKER, CLASS, ("transform",), ("cofactor", "cofactors")))
    has_classes = table.find(CLASS) is not None
    markers: list[PanelMarker] = []
    for row, (channel, name, marker_class, transform, cofactor) in enumerate(zip(*columns, strict=True), 1):
        kind = _kind(table.source, row, marker_class) if has_classes else TYPE
        if kind is None:
            continue
        if channel is None and name is None:
            raise FileError(f"{table.source}: row {row} names neither a channel nor a marker; fill it, or omit it")
        scale = _scale(table.source, row, transform, cofactor)
        markers.append(PanelMarker(name or channel or "", channel or name or "", kind, scale))
    if not markers:
        raise FileError(f"{table.source}: no channel is used; set marker_class to type or state")
    for what, names in (
        ("channel", [marker.channel for marker in markers]),
        ("marker", [marker.name for marker in markers]),
    ):
        if twice := repeated([loose(name) for name in names]):
            first, second = (names[k] for k in twice)
            both = f"{first!r} twice" if first == second else f"{first!r} and {second!r}"
            raise FileError(f"{table.source}: each {what} must occur once, got {both}; set the marker_class of one to none")
    return Panel(table.source, tuple(markers))


def _kind(source: str, row: int, cell: str | None) -> str | None:
    """Type, state, or None for a channel that is not used, as in an empty cell."""
    if cell is None:
        return None
    if cell.casefold() not in CLASSES:
        known = listed(CLASSES)
        raise FileError(f"{source}: marker_class must be one of {known}, got {cell!r} in row {row}{nearest(cell, CLASSES)}")
    return CLASSES[cell.casefold()]


def _scale(source: str, row: int, transform: str | None, cofactor: str | None) -> str | None:
    """The scale of a row, None for the scale of all."""
    if cofactor is not None and (transform is None or transform.casefold() in ("asinh", "arcsinh")):
        transform = f"asinh:{cofactor}"
    if transform is None or transform.casefold() == "auto":
        return None
    if transform.casefold() in PLAIN:
        return NONE
    try:
        parse_transform(transform)
    except (TypeError, ValueError) as error:
        raise FileError(f"{source}: row {row}: {error}") from error
    return transform


class DifferentFile(FileError):
    """A file with other channels than the rest of the files; ``path`` is its path."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path


@dataclass(frozen=True)
class StudyMarkers:
    """The markers of a study.

    Attributes
    ----------
    names : Names of the d markers.
    positions : Channel indices of the d markers, by path of the file.
    state : Markers that do not define populations.
    transforms : Scales from the panel, by marker.
    notes : Omitted channels, with the reason.
    """

    names: tuple[str, ...]
    positions: dict[str, list[int]] = field(repr=False)
    state: frozenset[str] = frozenset()
    transforms: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def study_markers(files: Sequence[FileChannels], panel: Panel | None, rule: str) -> StudyMarkers:
    """The markers that all files have; with the rule "same", each file must have all markers."""
    if panel is not None:
        markers, notes = {marker.name: _by_panel(files, panel, marker) for marker in panel.markers}, _mislabelled(files, panel)
    else:
        markers, notes = _by_file(files, rule)
    common: dict[str, list[int]] = {}
    partial = []
    for name, positions in markers.items():
        present = [position for position in positions if position is not None]
        if len(present) == len(files):
            common[name] = present
            continue
        without = [file for file, position in zip(files, positions, strict=True) if position is None]
        if rule == SAME:
            having = next(file for file, position in zip(files, positions, strict=True) if position is not None)
            raise FileError(
                f"{without[0].path}: has no channel of {name!r}, unlike {having.path}; channels='common' omits such markers"
            )
        partial.append(f"{name} (not in {listed((Path(file.path).name for file in without), MAX_NAMED_FILES)})")
    if not common:
        shared = []  # by file: the number of (marker, other file) pairs, and the number of markers
        for k in range(len(files)):
            others = [len(positions) - positions.count(None) - 1 for positions in markers.values() if positions[k] is not None]
            shared.append((sum(others), len(others)))
        path = files[shared.index(min(shared))].path
        raise DifferentFile(
            f"no marker is in all files, and it shares the fewest of {listed(markers, 6)}; do all files have one panel?", path
        )
    notes += [f"omitted, not in all files: {listed(partial, 6)}"] if partial else []
    names = list(common)
    by_path = {file.path: [positions[number] for positions in common.values()] for number, file in enumerate(files)}
    for file in files:
        if twice := repeated(by_path[file.path]):
            position, (first, second) = by_path[file.path][twice[0]], (names[k] for k in twice)
            raise FileError(
                f"{file.path}: {first!r} and {second!r} are both channel {position + 1}, {file.names[position]}; name the marker "
                "in a panel"
            )
    in_panel = panel.markers if panel is not None else ()
    return StudyMarkers(
        tuple(names),
        by_path,
        frozenset(marker.name for marker in in_panel if marker.kind == STATE and marker.name in common),
        {marker.name: marker.transform for marker in in_panel if marker.transform is not None},
        tuple(notes),
    )


# -- with a panel -------------------------------------------------------------------------------------------------------------


def _by_panel(files: Sequence[FileChannels], panel: Panel, marker: PanelMarker) -> Positions:
    """The channel of a marker in each file: by the panel's name of the channel, otherwise by the name of the marker."""
    positions: Positions = []
    for file in files:
        position = find_channel(file, marker.channel)
        positions.append(find_channel(file, marker.name) if position is None else position)
    if positions.count(None) == len(files):
        known = [*files[0].names, *filter(None, files[0].labels)]
        raise FileError(
            f"{panel.source}: the channel {marker.channel!r} is in none of the files{nearest(marker.channel, known)}; "
            f"set its marker_class to none to omit it; {Path(files[0].path).name} has {listed(known)}"
        )
    return positions


def _mislabelled(files: Sequence[FileChannels], panel: Panel) -> list[str]:
    """A note on channels with the label of another marker of the panel."""
    names = {loose(marker.name): marker.name for marker in panel.markers}
    conflicts: dict[str, str] = {}
    for file in files:
        for marker in panel.markers:
            position = find_channel(file, marker.channel)
            label = names.get(loose(file.labels[position])) if position is not None else None
            if label is not None and label != marker.name:
                conflict = f"{marker.channel} is {marker.name} by the panel and {label} by its label"
                conflicts.setdefault(conflict, Path(file.path).name)
    return [f"{conflict} in {name}; the panel was followed" for conflict, name in conflicts.items()]


# -- without a panel ----------------------------------------------------------------------------------------------------------


def _by_file(files: Sequence[FileChannels], rule: str) -> tuple[dict[str, Positions], list[str]]:
    """The markers of files without a panel. A channel without a label has the label that other files give to its name."""
    titles = [_titles(file) for file in files]
    labels: dict[str, dict[str, str]] = {}  # by name of the channel: each label, with a file that has it
    for file, own in zip(files, titles, strict=True):
        for k, title in own.items():
            if title != file.names[k]:
                known = labels.setdefault(loose(file.names[k]), {})
                if loose(title) not in map(loose, known):
                    known[title] = Path(file.path).name
    markers: dict[str, tuple[str, Positions]] = {}
    conflicts: dict[str, None] = {}
    for number, (file, own) in enumerate(zip(files, titles, strict=True)):
        for k, title in own.items():
            known = labels.get(loose(title), {}) if title == file.names[k] else {}
            if len(known) > 1:
                (label, first), (other, second) = list(known.items())[:2]
                conflicts[f"{title} is {label} in {first} and {other} in {second}"] = None
                continue
            label = next((label for label in known if label not in own.values()), title)
            key = loose(label)
            if key in markers and markers[key][1][number] is not None:
                key = label
            markers.setdefault(key, (label, [None] * len(files)))[1][number] = k
    if conflicts and rule == SAME:
        conflict = next(iter(conflicts))
        raise FileError(f"{files[0].path}: a marker must be the same in all files, and {conflict}; name it in a panel")
    spare = dict.fromkeys(file.names[k] for file in files for k in redundant(file.names, file.dyes) if not file.is_mass)
    because = "omitted unless a panel names them, because another channel measures the same pulse"
    notes = [f"{because}: {listed(spare)}"] if spare else []
    return dict(markers.values()), notes + [f"omitted, because {conflict}" for conflict in conflicts]


def _titles(file: FileChannels) -> dict[int, str]:
    """Names of markers by channel index: the label if it is unique and differs from the channel's name, otherwise the name.

    Channels of markers are isotopes in mass cytometry, otherwise one channel for each dye.
    """
    channels = set(range(len(file.names)))
    omitted = channels - set(isotopes(file.names, file.labels)) if file.is_mass else redundant(file.names, file.dyes)
    dyes = [position for position in file.dyes if position not in omitted]
    if not dyes:
        raise DifferentFile(
            f"holds no channel of a dye; name the channels to read in a panel, it has {listed(file.names)}", file.path
        )
    counts = Counter(loose(text) for k in dyes for text in {file.names[k], file.labels[k]})
    labelled = {k for k in dyes if file.has_own_label(k) and counts[loose(file.labels[k])] == 1}
    return {k: file.labels[k] if k in labelled else file.names[k] for k in dyes}
