"""write_sketch_fcs: the sketched cells of a study as FCS files, for FlowJo and similar programs.

Events have all channels that the files share, linear and compensated as gating programs need them, and further channels with the
weight, the population and the sample. Each file is read once more for its few sketched events. A marker is the channel that the
study used, whatever its name in a file; other channels need the same name and label in all files. The markers are transformed again
and compared with the study, so a file that was changed since raises an error. A study from memory has only its markers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array, Floats, Indices
from reduset.cytometry.events import FileChannels, read_channels, read_events
from reduset.cytometry.samples import SampleSet
from reduset.cytometry.study import CohortStudy, check_study
from reduset.cytometry.tables import refuse_sources, results_folder
from reduset.io import FileError, format_by_suffix, parse_transform, path_text, suffix_of, unique_names, write_fcs

FCS = ".fcs"
WEIGHT, POPULATION, SAMPLE = "weight", "population", "sample"
LONGEST = 100  # letters of a name of a file
NEAR = 1e-3  # of a marker's largest number, to which single precision keeps what was put on a scale

Key = int | tuple[str, str]  # the number of a marker; the name and label of another channel


def write_sketch_fcs(path: Any, study: CohortStudy) -> list[Path]:
    """Write the sketched cells of a study as FCS files.

    Parameters
    ----------
    path : a name that ends in .fcs, for one file of all samples; or a folder, which is made where it is not there, for a file a
        sample. They appear all or none.
    study : CohortStudy, fitted. Where its samples came from files, these are read once more: channels are all that they share,
        linear, and compensated where the study was. Else channels are the markers, as they are.

    Returns
    -------
    the files written

    Notes
    -----
    Further channels are ``weight``, how many cells an event stands for; ``population`` and ``sample``, numbers from 1 on, whose
    names are keywords: POPULATION1, SAMPLE1 and so on. ``sample`` is that which the cell itself is of. In one file of all samples
    weights sum to the cells of all. In the file of a sample are those sketched cells, of whichever sample, that stand for some of
    its cells, and weights are how many of its own: they sum to the cells of that sample, and tell its shares. VALUES says on which
    scale the channels are, SCALE1 and so on the scale of channel 1 on which samples were compared.
    """
    check_study(study)
    name = path_text(path)
    found = study.populations_
    if suffix_of(name) == (FCS, False) and not Path(name).is_dir():
        refuse_sources([Path(name)], study.samples_.sources)
        _write(Path(name), study, sketched_events(study), found.atom_counts.sum(axis=0), {})
        return [Path(name)]
    if format_by_suffix(name) is not None and not Path(name).is_dir():
        raise FileError(f"{name}: must end in .fcs, for one file, or be a folder, for a file a sample")
    with results_folder(name) as folder:
        written = [folder / f"{stem}{FCS}" for stem in _stems(study.samples_.names)]
        refuse_sources(written, study.samples_.sources)
        events = sketched_events(study)
        for number, target in enumerate(written):
            _write(target, study, events, found.atom_counts[number], {"$SMNO": study.samples_.names[number]})
    return written


def _stems(names: tuple[str, ...]) -> list[str]:
    """Names of samples as names of files, no two the same in whatever letters."""
    plain = [re.sub(r"[^\w.+ -]", "_", name)[:LONGEST].strip(" .") or "sample" for name in names]
    seen: set[str] = set()
    made = []
    for stem in plain:
        new, number = stem, 2
        while new.casefold() in seen:
            new, number = f"{stem} ({number})", number + 1
        seen.add(new.casefold())
        made.append(new)
    return made


def _write(path: Path, study: CohortStudy, events: SketchedEvents, weights: Indices, more: dict[str, str]) -> None:
    """The cells of weight above 0."""
    rows = np.flatnonzero(weights)
    numbers = [weights, study.populations_.of_atom + 1, sample_of_atom(study) + 1]
    values = np.column_stack([events.values, *numbers])[rows]
    channels = unique_names([*events.channels, WEIGHT, POPULATION, SAMPLE])[0]
    keywords = _ranges(events, values) | _told(study, events) | more
    write_fcs(str(path), values, channels, [*events.labels, "", "", ""], keywords)


def _ranges(events: SketchedEvents, values: Array) -> dict[str, str]:
    """What channels can hold, as their files say, so that programs draw the axes that they drew."""
    tops = zip(events.tops.tolist(), values.max(axis=0).tolist(), strict=False)
    return {f"$P{n}R": str(int(np.ceil(top))) for n, (top, most) in enumerate(tops, 1) if most < top < np.inf}


def _told(study: CohortStudy, events: SketchedEvents) -> dict[str, str]:
    """What numbers and scales mean."""
    samples = study.samples_
    linear = f"linear, spillover {'taken out where a file has a matrix' if samples.compensated else 'not taken out'}"
    scales = zip(events.markers, samples.markers, strict=True)
    return {
        "CREATOR": "reduset",
        "VALUES": linear if events.linear else "markers as they were compared",
        **{f"SCALE{place + 1}": samples.scales[marker] for place, marker in scales if marker in samples.scales},
        **{f"POPULATION{n}": name for n, name in enumerate(study.populations_.names, 1)},
        **{f"SAMPLE{n}": name for n, name in enumerate(samples.names, 1)},
    }


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
    heads = [read_channels(source, samples.compensated) for source in samples.sources]
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
        again = linear[:, j].astype(np.float64) if scale is None else parse_transform(scale).scale(linear[:, j])
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
