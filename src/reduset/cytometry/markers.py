"""The markers of a study: those of the panel, or all dyes of the files; and the channel of each in every file.

Where files differ, the markers that all of them have, with a note on the others; or an error, by choice. Without a panel a marker
is called by the label of its channel where that says something, and files without the label are matched by the channel's name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reduset.cytometry.channels import find_channel, says_something
from reduset.cytometry.lab_tables import loose
from reduset.cytometry.opening import FileChannels
from reduset.cytometry.panel import STATE, Panel, PanelMarker
from reduset.io.fcs_channels import isotopes, redundant
from reduset.io.table import FileError, listed, nearest

COMMON, SAME = "common", "same"
SHOWN = 3  # files in a note

Places = list[int | None]  # of one marker, a file each


class StrangeFile(FileError):
    """A file that cannot be in one study with the others, for its channels; ``path`` says which."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


@dataclass(frozen=True)
class StudyMarkers:
    """The markers of a study.

    Attributes
    ----------
    names : of the d markers
    places : by path of a file, the places of the d markers among its channels
    state : those that do not define a population
    transforms : the scales that the panel asks for, by marker
    notes : what was left out, and why
    """

    names: tuple[str, ...]
    places: dict[str, list[int]] = field(repr=False)
    state: frozenset[str] = frozenset()
    transforms: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def study_markers(files: Sequence[FileChannels], panel: Panel | None, rule: str) -> StudyMarkers:
    """The markers that all files have; where ``rule`` is "same" they must have all."""
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
    """How often a file has a marker together with another file, and how many markers it has."""
    own = [len(places) - places.count(None) - 1 for places in found.values() if places[file] is not None]
    return sum(own), len(own)


def _lacking(name: str, files: Sequence[FileChannels], places: Places) -> str:
    without = [Path(file.path).name for file, place in zip(files, places, strict=True) if place is None]
    return f"{name} (not in {listed(without, SHOWN)})"


def _refuse_shared(files: Sequence[FileChannels], by_path: dict[str, list[int]], names: list[str]) -> None:
    """Refuse two markers that are one channel."""
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
    """The channel of a marker in each file: by what the panel calls the channel, else by what it calls the marker."""
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
    """The channels that measure markers: in mass cytometry those of isotopes, else dyes by one number a pulse."""
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
    """What markers are called, by place: the label of the channel if it says something and of no other, else its name."""
    texts = Counter(loose(text) for place in dyes for text in {file.names[place], file.labels[place]})
    alone = {place: says_something(file, place) and texts[loose(file.labels[place])] == 1 for place in dyes}
    return {place: file.labels[place] if alone[place] else file.names[place] for place in dyes}


def _same(file: FileChannels, titles: dict[int, str], title: str, channel: str) -> int | None:
    """The channel of a marker in another file: of the same title, or of the same name where one of both files has no label."""
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
    """Each marker once: the same channels under a name and a label are called by the label."""
    by_places: dict[tuple[int | None, ...], str] = {}
    for title, places in found.items():
        first = by_places.setdefault(tuple(places), title)
        if any(first == file.names[place] for file, place in zip(files, places, strict=True) if place is not None):
            by_places[tuple(places)] = title
    whole = [set(enumerate(places)) for places in by_places if None not in places]
    return {
        title: list(places)
        for places, title in by_places.items()
        # what some files call by a label and others by name is there already
        if None not in places or not any({(k, p) for k, p in enumerate(places) if p is not None} <= each for each in whole)
    }


def _without_clashes(files: Sequence[FileChannels], found: dict[str, Places]) -> tuple[dict[str, Places], list[str]]:
    """Markers without channels that files label differently, and notes on these."""
    clean, notes = {}, []
    for title, places in found.items():
        labels: dict[str, tuple[str, str]] = {}
        for file, place in zip(files, places, strict=True):
            if place is not None and says_something(file, place):
                labels.setdefault(loose(file.labels[place]), (file.labels[place], Path(file.path).name))
        if len(labels) < 2 or loose(title) in labels:
            clean[title] = places
        else:
            (one, first), (other, second) = list(labels.values())[:2]
            notes.append(f"{title} is {one} in {first} and {other} in {second}")
    return clean, notes
