"""The sketched cells of a study with all channels of their files: linear and compensated, as gating programs want them.

Each file is read once more for the few events that are taken of it. Channels are those that all files have: a marker where the
study found it, whatever its channel is called there, and of the others those of one name and label everywhere. The markers are put
on the study's scales again and compared, so that a file that has changed since is refused. A study from memory has markers alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array, Floats, Indices
from reduset.cytometry.opening import FileChannels, look_at, read_events
from reduset.cytometry.sample_set import SampleSet
from reduset.cytometry.study import CohortStudy
from reduset.io.source import unique_names
from reduset.io.table import FileError
from reduset.io.transforms import parse

NEAR = 1e-3  # of a marker's largest number, to which single precision keeps what was put on a scale

Key = int | tuple[str, str]  # the number of a marker; the name and label of another channel


@dataclass(frozen=True)
class SketchedEvents:
    """The sketched cells of a study.

    Attributes
    ----------
    values : (m, C)
    channels : their names
    labels : what they measure, "" where the name says it
    tops : (C,) the largest value that each can hold, infinite where nothing is known
    markers : the channel of each marker
    linear : whether values are those of the files; else they are on the scales of the study
    """

    values: Floats = field(repr=False)
    channels: tuple[str, ...]
    labels: tuple[str, ...]
    tops: Array = field(repr=False)
    markers: tuple[int, ...]
    linear: bool


def sketched_events(study: CohortStudy) -> SketchedEvents:
    """The sketched cells, from their files where there are some."""
    samples = study.samples_
    if samples.sources and samples.channels and samples.events is not None:
        return _of_files(study)
    names = _free_of_commas(samples.markers)
    labels = tuple(marker if marker != name else "" for marker, name in zip(samples.markers, names, strict=True))
    tops = np.full(len(names), np.inf)
    return SketchedEvents(study.populations_.atoms, names, labels, tops, tuple(range(len(names))), False)


def sample_of_atom(study: CohortStudy) -> Indices:
    """(m,) the sample that each sketched cell is of."""
    ends = np.cumsum(study.samples_.sizes)
    return np.searchsorted(ends, study.populations_.sketch.indices, side="right")


def _of_files(study: CohortStudy) -> SketchedEvents:
    samples, rows = study.samples_, study.populations_.sketch.indices
    heads = [look_at(source, samples.compensated) for source in samples.sources]
    keys = [_keys(samples, number, head) for number, head in enumerate(heads)]
    common = [key for key in keys[0] if all(key in each for each in keys)]
    sample, starts = sample_of_atom(study), np.cumsum(samples.sizes) - samples.sizes
    values = np.empty((len(rows), len(common)), np.float32)
    for number, head in enumerate(heads):
        mine = np.flatnonzero(sample == number)
        if len(mine):
            values[mine] = _read(samples, number, rows[mine] - starts[number], [keys[number][key] for key in common], head)
    _check_same(study, sample, values[:, [common.index(j) for j in range(len(samples.markers))]])
    tops = np.max([head.tops[[places[key] for key in common]] for head, places in zip(heads, keys, strict=True)], axis=0)
    names, labels = _titles(samples, common)
    return SketchedEvents(values, names, labels, tops, tuple(common.index(j) for j in range(len(samples.markers))), True)


def _keys(samples: SampleSet, number: int, head: FileChannels) -> dict[Key, int]:
    """What the channels of a file are, with their places, in their order."""
    mine = samples.channels[number]
    lost = [channel for channel in mine if channel not in head.names]
    if lost:
        raise FileError(f"{head.path}: has no channel {lost[0]!r} any more; it has changed since the study was made, make it anew")
    return {
        mine.index(name) if name in mine else (name, label): place
        for place, (name, label) in enumerate(zip(head.names, head.labels, strict=True))
    }


def _read(samples: SampleSet, number: int, cells: Indices, places: list[int], head: FileChannels) -> NDArray[np.float32]:
    """Some cells of a sample from its file."""
    kept = None if samples.events is None else samples.events[number]
    events = cells if kept is None else kept[cells]
    found = read_events(head.path, samples.compensated).values
    if int(events[-1]) >= len(found):
        raise FileError(
            f"{head.path}: has {len(found):,} events, and the study took number {int(events[-1]) + 1:,}; it has changed since, "
            "make the study anew"
        )
    values = np.asarray(found[np.ix_(events, np.array(places))], np.float32)
    lacking = ~np.isfinite(values)
    if lacking.any():
        row, column = np.argwhere(lacking)[0]
        raise FileError(
            f"{head.path}: {head.names[places[column]]!r} has no number in row {int(events[row]) + 1}, and FCS files have no place "
            "for that; read the study with clean='non-finite'"
        )
    return values


def _check_same(study: CohortStudy, sample: Indices, linear: NDArray[np.float32]) -> None:
    """Refuse files whose events are not those that the study saw."""
    samples, atoms = study.samples_, study.populations_.atoms
    for j, marker in enumerate(samples.markers):
        scale = samples.scales.get(marker)
        again = linear[:, j].astype(np.float64) if scale is None else parse(scale).scale(linear[:, j])
        off = ~(np.abs(again - atoms[:, j]) <= NEAR * np.abs(atoms[:, j]).max(initial=1e-30))
        if off.any():
            path = samples.sources[int(sample[int(np.argmax(off))])]
            raise FileError(f"{path}: holds other numbers of {marker!r} than the study saw; it has changed since, make it anew")


def _titles(samples: SampleSet, common: list[Key]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and labels of channels; a marker that lies in different channels is called by its own name."""
    names, labels = [], []
    for key in common:
        if isinstance(key, tuple):
            name, label = key
        else:
            label = samples.markers[key]
            found = {channels[key] for channels in samples.channels}
            name = found.pop() if len(found) == 1 else label
        names.append(name)
        labels.append("" if label == name else label)
    return _free_of_commas(names), tuple(labels)


def _free_of_commas(names: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """Names that an FCS file can have: without commas, none twice."""
    return tuple(unique_names([name.replace(",", ";").strip() for name in names])[0])
