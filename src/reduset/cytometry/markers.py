"""The markers of a study: those of the panel, or all dyes of the files, and the channel of each marker in every file.

A panel is CATALYST's table: `fcs_colname`, `antigen`, `marker_class` (type, state or none), in the usual spellings. Markers of
class type define populations, those of class state only describe them. A column `transform` ("asinh:150", "logicle", "none") or
`cofactor` sets the scale of a channel.

If files differ, the study has the markers that all of them have, with a note on the others, or raises an error, by choice. Without
a panel a marker has the label of its channel, if that differs from the channel's name. Files without the label are matched by the
name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reduset.cytometry.channels import find_channel, has_own_label
from reduset.cytometry.events import FileChannels
from reduset.cytometry.lab_tables import Cells, LabTable, lab_table, loose
from reduset.io import NONE, PLAIN, FileError, isotopes, listed, nearest, parse_transform, redundant

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
COMMON, SAME = "common", "same"
MAX_NAMED_FILES = 3  # in a note

Places = list[int | None]  # the position of one marker in each file


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
    """Type, state, or None for a channel that is not used, as in an empty cell."""
    if cell is None:
        return None
    if cell.casefold() not in CLASSES:
        known = listed(CLASSES)
        raise FileError(f"{source}: marker_class must be one of {known}, got {cell!r} in row {row}{nearest(cell, CLASSES)}")
    return CLASSES[cell.casefold()]


def _scale(source: str, row: int, transform: str | None, cofactor: str | None) -> str | None:
    """The scale of a row, None for that of all."""
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


def _refuse_twice(source: str, what: str, names: list[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if loose(name) in seen:
            both = f"{name!r} twice" if name == seen[loose(name)] else f"{seen[loose(name)]!r} and {name!r}"
            raise FileError(f"{source}: each {what} must be there once, got {both}; say none in marker_class of the other")
        seen[loose(name)] = name


class StrangeFile(FileError):
    """A file whose channels do not fit those of the other files; ``path`` is its path."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


@dataclass(frozen=True)
class StudyMarkers:
    """The markers of a study.

    Attributes
    ----------
    names : of the d markers
    places : by path of a file, the positions of the d markers among its channels
    state : markers that do not define a population
    transforms : the scales of the panel, by marker
    notes : what was omitted, and why
    """

    names: tuple[str, ...]
    places: dict[str, list[int]] = field(repr=False)
    state: frozenset[str] = frozenset()
    transforms: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def study_markers(files: Sequence[FileChannels], panel: Panel | None, rule: str) -> StudyMarkers:
    """The markers that all files have; with the rule "same", each file must have all markers."""
    if panel is not None:
        found, notes = {marker.name: _by_panel(files, panel, marker) for marker in panel.markers}, _mixed_up(files, panel)
    else:
        found, notes = _by_file(files, rule)
    for name, places in found.items():
        if None in places and rule == SAME:
            lacking, having = (
                next(file for file, place in zip(files, places, strict=True) if (place is None) == no) for no in (1, 0)
            )
            raise FileError(
                f"{lacking.path}: has no channel of {name!r}, unlike {having.path}; channels='common' leaves such markers out"
            )
    common = {name: [place for place in places if place is not None] for name, places in found.items() if None not in places}
    if not common:
        stranger = min(range(len(files)), key=lambda k: _shared(found, k))
        path = files[stranger].path
        raise StrangeFile(
            f"{path}: no marker is in all files, and it shares the fewest of {listed(found, 6)}; are they of one panel?", path
        )
    lacking_some = [_lacking(name, files, places) for name, places in found.items() if None in places]
    notes += [f"left out, for not every file has them: {listed(lacking_some, 6)}"] if lacking_some else []
    by_path = {file.path: [places[number] for places in common.values()] for number, file in enumerate(files)}
    _refuse_shared(files, by_path, list(common))
    markers = panel.markers if panel is not None else ()
    return StudyMarkers(
        tuple(common),
        by_path,
        frozenset(marker.name for marker in markers if marker.kind == STATE and marker.name in common),
        {marker.name: marker.transform for marker in markers if marker.transform is not None},
        tuple(notes),
    )


def _shared(found: dict[str, Places], file: int) -> tuple[int, int]:
    """The number of (marker, other file) pairs that a file shares, and its number of markers."""
    own = [len(places) - places.count(None) - 1 for places in found.values() if places[file] is not None]
    return sum(own), len(own)


def _lacking(name: str, files: Sequence[FileChannels], places: Places) -> str:
    without = [Path(file.path).name for file, place in zip(files, places, strict=True) if place is None]
    return f"{name} (not in {listed(without, MAX_NAMED_FILES)})"


def _refuse_shared(files: Sequence[FileChannels], by_path: dict[str, list[int]], names: list[str]) -> None:
    """Raise an error if two markers are the same channel."""
    for file in files:
        places = by_path[file.path]
        for number, place in enumerate(places):
            if place in places[:number]:
                first = names[places.index(place)]
                raise FileError(
                    f"{file.path}: {first!r} and {names[number]!r} are both channel {place + 1}, {file.names[place]}; "
                    "say in a panel which marker it is"
                )


def _by_panel(files: Sequence[FileChannels], panel: Panel, marker: PanelMarker) -> Places:
    """The channel of a marker in each file: by the panel's name of the channel, else by that of the marker."""
    places: Places = []
    for file in files:
        place = find_channel(file, marker.channel)
        places.append(find_channel(file, marker.name) if place is None else place)
    if not any(place is not None for place in places):
        known = [*files[0].names, *filter(None, files[0].labels)]
        raise FileError(
            f"{panel.source}: the channel {marker.channel!r} is in none of the files{nearest(marker.channel, known)}; "
            f"say none in its marker_class to leave it out; {Path(files[0].path).name} has {listed(known)}"
        )
    return places


def _mixed_up(files: Sequence[FileChannels], panel: Panel) -> list[str]:
    """A note on channels whose label is another marker of the panel."""
    names = {loose(marker.name): marker.name for marker in panel.markers}
    odd: dict[str, str] = {}
    for file in files:
        for marker in panel.markers:
            place = find_channel(file, marker.channel)
            label = names.get(loose(file.labels[place])) if place is not None else None
            if label is not None and label != marker.name:
                odd.setdefault(f"{marker.channel} is {marker.name} by the panel and {label} by its label", Path(file.path).name)
    return [f"{words} in {name}; the panel was followed" for words, name in odd.items()]


def _by_file(files: Sequence[FileChannels], rule: str) -> tuple[dict[str, Places], list[str]]:
    """The markers of files without a panel."""
    titles = [_titles(file, _dyes(file)) for file in files]
    found: dict[str, Places] = {}
    for file, mine in zip(files, titles, strict=True):
        for place, title in mine.items():
            if title not in found:
                found[title] = [_same(other, theirs, title, file.names[place]) for other, theirs in zip(files, titles, strict=True)]
    found, clashes = _without_clashes(files, _once(found, files))
    if clashes and rule == SAME:
        raise FileError(f"{files[0].path}: a marker must be the same in all files, and {clashes[0]}; say in a panel what it is")
    spare = list(
        dict.fromkeys(file.names[place] for file in files for place in redundant(file.names, file.dyes) if not file.is_mass)
    )
    notes = [f"left out unless a panel names them, for the same pulse is measured by another: {listed(spare)}"] if spare else []
    return found, notes + [f"left out, for {clash}" for clash in clashes]


def _dyes(file: FileChannels) -> list[int]:
    """The channels that measure markers: isotopes in mass cytometry, else one channel for each dye."""
    left_out = (
        set(range(len(file.names))) - set(isotopes(file.names, file.labels)) if file.is_mass else redundant(file.names, file.dyes)
    )
    dyes = [place for place in file.dyes if place not in left_out]
    if not dyes:
        raise StrangeFile(
            f"{file.path}: holds no channel of a dye; name those to read in a panel, it has {listed(file.names)}", file.path
        )
    return dyes


def _titles(file: FileChannels, dyes: Sequence[int]) -> dict[int, str]:
    """Names of markers by position: the label of the channel if it is unique and differs from its name, else its name."""
    texts = Counter(loose(text) for place in dyes for text in {file.names[place], file.labels[place]})
    alone = {place: has_own_label(file, place) and texts[loose(file.labels[place])] == 1 for place in dyes}
    return {place: file.labels[place] if alone[place] else file.names[place] for place in dyes}


def _same(file: FileChannels, titles: dict[int, str], title: str, channel: str) -> int | None:
    """The channel of a marker in another file: of the same title, or of the same name if one of the files has no label."""
    for fits in (
        lambda place: titles[place] == title,
        lambda place: loose(titles[place]) == loose(title),
        lambda place: loose(file.names[place]) == loose(channel) and (title == channel or titles[place] == file.names[place]),
    ):
        fitting = [place for place in titles if fits(place)]
        if len(fitting) == 1:
            return fitting[0]
    return None


def _once(found: dict[str, Places], files: Sequence[FileChannels]) -> dict[str, Places]:
    """Each marker once: channels known by both a name and a label have the label."""
    by_places: dict[tuple[int | None, ...], str] = {}
    for title, places in found.items():
        first = by_places.setdefault(tuple(places), title)
        if any(first == file.names[place] for file, place in zip(files, places, strict=True) if place is not None):
            by_places[tuple(places)] = title
    whole = [set(enumerate(places)) for places in by_places if None not in places]
    return {
        title: list(places)
        for places, title in by_places.items()
        # a marker of some files that is part of a marker of all files, under its other name, is not a marker of its own
        if None not in places or not any({(k, p) for k, p in enumerate(places) if p is not None} <= each for each in whole)
    }


def _without_clashes(files: Sequence[FileChannels], found: dict[str, Places]) -> tuple[dict[str, Places], list[str]]:
    """Markers without those that files label differently, and notes on the latter."""
    clean, notes = {}, []
    for title, places in found.items():
        labels: dict[str, tuple[str, str]] = {}
        for file, place in zip(files, places, strict=True):
            if place is not None and has_own_label(file, place):
                labels.setdefault(loose(file.labels[place]), (file.labels[place], Path(file.path).name))
        if len(labels) < 2 or loose(title) in labels:
            clean[title] = places
        else:
            (one, first), (other, second) = list(labels.values())[:2]
            notes.append(f"{title} is {one} in {first} and {other} in {second}")
    return clean, notes
