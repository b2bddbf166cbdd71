"""read_cohort: a folder of files, a panel and a table of samples become the samples of a study.

The channels of all files are read first, which determines markers and samples. Then each file is read, cleaned and gated while the
next one is being read. The cells of all samples are in one array in single precision, 4·n·d bytes. Scales are estimated last, from
all samples together, and applied in place, so that no file is read twice. O(n·C).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from reduset._progress import Progress
from reduset._types import Indices, ProgressLike
from reduset._validate import flag, one_of
from reduset.cytometry.cleaning import STEPS
from reduset.cytometry.cleaning import clean as clean_events
from reduset.cytometry.events import FileChannels, FileEvents, read_channels, read_events
from reduset.cytometry.lab_tables import lab_table, sheet_of
from reduset.cytometry.markers import COMMON, SAME, Panel, StrangeFile, StudyMarkers, read_panel, study_markers
from reduset.cytometry.sample_files import NamedSamples, by_file, by_table, study_files
from reduset.cytometry.samples import SampleSet
from reduset.cytometry.scaling import asked_scales, put_on_scales, told_tops
from reduset.io import (
    FLUORESCENCE,
    MASS,
    NONE,
    FileError,
    Transform,
    ahead,
    automatic_scale,
    check_room,
    gathered_notes,
    listed,
    pooled,
    scale_of,
)

FEWEST = 2  # cells of a sample
REFUSE, DROP = "refuse", "drop"

Result = TypeVar("Result")


def read_cohort(
    folder_or_files: Any,
    *,
    panel: Any = None,
    samples: Any = None,
    transform: Any = "auto",
    compensate: bool = True,
    channels: str = COMMON,
    clean: Sequence[str] = STEPS,
    gate: Any = None,
    keep_going: bool = False,
    missing: str = REFUSE,
    progress: ProgressLike = False,
) -> SampleSet:
    """Read the files of a study, one a sample: channels by name, compensated, cleaned, gated, and on scales that all samples share.

    Parameters
    ----------
    folder_or_files : a folder, whose FCS files are read (or its CSV or Parquet files, where there are none), or a list of files.
    panel : which channel is which marker: CATALYST's table (`fcs_colname`, `antigen`, `marker_class`, and if there are such
        columns `transform` and `cofactor`) as CSV, Excel (`panel.xlsx#Sheet`), Parquet, a dict of columns or a frame. None takes
        all dyes, called by their labels ($PnS) where they have some.
    samples : the table of samples (`file_name`, `sample_id`, `condition`, `patient_id`, …), likewise. None takes every file as a
        sample called by its name. Files that it does not name are left out.
    transform : "auto" (or None): asinh:5 for mass cytometry, for other FCS files logicle estimated from all samples, none for other
        formats; or "asinh:150", "logicle", "logicle:T=262144,W=0.5", "none"; or a dict of markers to these. What the panel says of
        a channel counts more than one text for all.
    compensate : whether to take out spillover by the matrix that a file carries.
    channels : "common" takes the markers that all files have, with a note on the others; "same" refuses files that differ.
    clean : the steps of cleaning, of "non-finite", "margin", "doublets" and "time"; () for none.
    gate : a file of gates, or (file, population): only cells within are kept.
    keep_going : whether files that cannot be read, have no cells left or no marker in common with the others are left out with
        the reason; else they are refused.
    missing : what to do with events that lack a number in a marker after cleaning: "refuse" or "drop" them.
    progress : True for a line on the terminal, or a function of (stage, done, total).

    Raises
    ------
    FileError : in one line, for whatever is wrong with a file or a table.
    """
    flag(compensate, "compensate")
    flag(keep_going, "keep_going")
    one_of(channels, "channels", (COMMON, SAME))
    one_of(missing, "missing", (REFUSE, DROP))
    steps = [one_of(step, "clean", STEPS) for step in ([clean] if isinstance(clean, str) else clean)]
    report = Progress(progress)
    told = _Going(keep_going)
    known_panel = None if panel is None else read_panel(panel)
    named = _samples(folder_or_files, panel, samples, gate)
    for name, reason in named.absent.items():
        told.lacks(name, reason)
    heads = told.each(named.files, lambda name: read_channels(named.files[name], compensate))
    markers = _markers(heads, known_panel, channels, told)
    wanted = asked_scales(markers.names, transform, markers.transforms)
    asked = _Asked(markers, compensate, steps, _gates(gate), missing)
    try:
        cells = _read(heads, asked, told, report)
    finally:
        report.close()
    scales, tops = _scales(wanted, cells, {name: heads[name] for name in cells.names}, markers)
    for name, events, kept in zip(cells.names, cells.slices(), cells.events, strict=True):
        put_on_scales(events, scales, heads[name].path, markers.names, kept + 1)
    return SampleSet(
        names=tuple(cells.names),
        cells=tuple(cells.slices()),
        markers=markers.names,
        table=named.rows(cells.names),
        state=markers.state,
        counted=cells.counted(),
        left_out=told.left_out,
        notes=(*_of_table(named), *markers.notes, *tops, *_of_files(cells, heads, compensate)),
        sources=tuple(heads[name].path for name in cells.names),
        events=tuple(cells.events),
        channels=tuple(_channels(heads[name], markers) for name in cells.names),
        compensated=compensate,
        scales={name: scale.name for name, scale in zip(markers.names, scales, strict=True) if scale is not None},
    )


def _samples(folder_or_files: Any, panel: Any, samples: Any, gate: Any) -> NamedSamples:
    """The samples by name, with their files."""
    tables = [str(each) for each in (panel, samples, gate) if isinstance(each, str | os.PathLike)]
    paths = study_files(folder_or_files, [(sheet_of(each) or (each, None))[0] for each in tables])
    return by_file(paths) if samples is None else by_table(lab_table(samples, "samples"), paths)


def _markers(heads: dict[str, FileChannels], panel: Panel | None, rule: str, told: _Going) -> StudyMarkers:
    """The markers of the files, less those files that have none of the others'."""
    while True:
        try:
            return study_markers(list(heads.values()), panel, rule)
        except StrangeFile as error:
            name = next(name for name, head in heads.items() if head.path == error.path)
            told.lacks(name, error)
            del heads[name]
            told.require(heads)


def _channels(head: FileChannels, markers: StudyMarkers) -> tuple[str, ...]:
    return tuple(head.names[place] for place in markers.places[head.path])


def _gates(gate: Any) -> Any:
    if gate is None or hasattr(gate, "inside"):
        return gate
    from reduset.cytometry.gates import open_gates  # its library is an extra

    path, population = gate if isinstance(gate, tuple) else (gate, None)
    return open_gates(path, population)


class _Going:
    """What happens to a sample that cannot be had: it is refused, or left out with the reason while the others go on."""

    def __init__(self, keep_going: bool) -> None:
        self._keep_going = keep_going
        self.left_out: dict[str, str] = {}

    def lacks(self, name: str, error: str | FileError) -> None:
        """Leave a sample out, or raise why."""
        if not self._keep_going:
            way_out = "correct the table, or go on without it (keep_going=True)"
            raise error if isinstance(error, FileError) else FileError(f"sample {name!r} has {error}; {way_out}")
        self.left_out[name] = str(error)

    def each(self, names: Any, make: Callable[[str], Result]) -> dict[str, Result]:
        """What a function makes of each sample for which it can."""
        made = {}
        for name in names:
            try:
                made[name] = make(name)
            except FileError as error:
                self.lacks(name, error)
        self.require(made)
        return made

    def require(self, there: Any) -> None:
        """Refuse a study of which no sample is left."""
        if not there:
            name, reason = next(iter(self.left_out.items()))
            raise FileError(f"no sample is left of {len(self.left_out)}; {name}: {reason}")


@dataclass(frozen=True)
class _Asked:
    """What is asked of every file."""

    markers: StudyMarkers
    compensate: bool
    steps: list[str]
    gates: Any
    missing: str


@dataclass
class _StudyCells:
    """The cells of all samples so far: one array, how many each has, and how they came about."""

    values: NDArray[np.float32]
    names: list[str] = field(default_factory=list)
    ends: list[int] = field(default_factory=lambda: [0])
    events: list[Indices] = field(default_factory=list)
    counts: list[dict[str, int]] = field(default_factory=list)
    notes: list[list[str]] = field(default_factory=list)

    def add(self, name: str, columns: NDArray[np.float32], kept: Indices, counts: dict[str, int], notes: list[str]) -> None:
        """Take those of one more sample."""
        end = self.ends[-1] + len(columns)
        if end > len(self.values):  # of files that do not say beforehand how many rows they have
            self.values = np.concatenate([self.values[: self.ends[-1]], np.empty((end, columns.shape[1]), np.float32)])
        self.values[self.ends[-1] : end] = columns
        self.names.append(name)
        self.ends.append(end)
        self.events.append(kept)
        self.counts.append(counts)
        self.notes.append(notes)

    def slices(self) -> list[NDArray[np.float32]]:
        """(n, d) of each sample."""
        return [self.values[a:b] for a, b in zip(self.ends[:-1], self.ends[1:], strict=True)]

    def counted(self) -> dict[str, NDArray[np.int64]]:
        """By step, (N,) how many events it took."""
        return {step: np.array([counts[step] for counts in self.counts], np.int64) for step in self.counts[0]}


def _read(heads: dict[str, FileChannels], asked: _Asked, told: _Going, report: Progress) -> _StudyCells:
    """The cells of all files, linear."""
    known = sum(head.rows or 0 for head in heads.values())
    width = len(asked.markers.names)
    check_room(next(iter(heads.values())).path, 4.0 * known * width, "the cells of all files", "name fewer markers in a panel")
    cells = _StudyCells(np.empty((known, width), np.float32))
    done = report.stage("reading")
    for number, (name, events) in enumerate(ahead(_opened(heads, asked)), 1):
        try:
            if isinstance(events, FileError):
                raise events
            cells.add(name, *_taken(events, asked))
        except FileError as error:
            told.lacks(name, error)
        done(number, len(heads))
    told.require(cells.names)
    cells.values = cells.values[: cells.ends[-1]]
    return cells


def _opened(heads: dict[str, FileChannels], asked: _Asked) -> Iterator[tuple[str, FileEvents | FileError]]:
    """The events of each file, or what is wrong with it."""
    for name, head in heads.items():
        try:
            events: FileEvents | FileError = read_events(head.path, asked.compensate, "margin" in asked.steps)
        except FileError as error:
            events = error
        yield name, events


def _taken(events: FileEvents, asked: _Asked) -> tuple[NDArray[np.float32], Indices, dict[str, int], list[str]]:
    """The marker columns of the events that are kept, their numbers, how many each step took, and notes."""
    cleaned = clean_events(events, asked.steps)
    keep, counts = cleaned.keep, {"events": len(events.values), **cleaned.counted}
    if asked.gates is not None:
        inside = np.asarray(asked.gates.inside(events), bool)
        counts["gate"] = int((keep & ~inside).sum())
        keep = keep & inside
    kept = np.flatnonzero(keep)
    places = np.array(asked.markers.places[events.path], np.int64)
    columns = np.asarray(events.values[np.ix_(kept, places)], np.float32)
    lacking = np.asarray(~np.isfinite(columns).all(axis=1))
    if lacking.any() and asked.missing == REFUSE:
        raise FileError(f"{events.path}: {_first_lacking(columns, lacking, kept, asked)}")
    if asked.missing == DROP:
        counts["missing"] = int(lacking.sum())
        columns, kept = columns[~lacking], kept[~lacking]
    if len(kept) < FEWEST:
        raise FileError(f"{events.path}: {_emptied(counts, len(kept))}")
    return columns, kept, counts, list(cleaned.notes)


def _first_lacking(columns: NDArray[np.float32], lacking: NDArray[np.bool_], kept: Indices, asked: _Asked) -> str:
    """What the first event lacks that has no number in some marker."""
    row = columns[lacking][0]
    place = int(np.flatnonzero(~np.isfinite(row))[0])
    name = asked.markers.names[place]
    if not np.isfinite(columns[:, place]).any():
        return f"{name!r} has no number in any event; leave the marker out by a panel, or the file"
    way_out = "leave such events out (clean='non-finite', or missing='drop')"
    return f"{name!r} has no number in row {kept[lacking][0] + 1}, got {row[place]}; {way_out}"


def _emptied(counts: dict[str, int], left: int) -> str:
    taken = [f"{step} took {count:,}" for step, count in counts.items() if step != "events" and count]
    few = f"{left or 'none'} of its {counts['events']:,} events {'is' if left == 1 else 'are'} left"
    return f"{few}: {', '.join(taken) or 'it has no more'}"


def _scales(
    wanted: dict[str, str], cells: _StudyCells, heads: dict[str, FileChannels], markers: StudyMarkers
) -> tuple[list[Transform | None], list[str]]:
    """The scale of each marker, and a note where the ranges of files differ."""
    files = list(heads.values())
    automatic = automatic_scale([MASS if file.is_mass else FLUORESCENCE if file.is_fcs else NONE for file in files])
    tops = np.array([file.tops[markers.places[file.path]] for file in files])
    some = pooled(cells.slices())
    scales = []
    for place, name in enumerate(markers.names):
        values = some[:, place].astype(np.float64)
        scales.append(scale_of(wanted[name], automatic, values, float(tops[:, place].max())))
    names = [Path(file.path).name for file in files]
    return scales, told_tops(markers.names, tops, names) if automatic == FLUORESCENCE else []


def _of_table(named: NamedSamples) -> list[str]:
    if not named.unnamed:
        return []
    count = len(named.unnamed)
    which = listed((Path(path).name for path in named.unnamed), 4)
    return [f"{'files' if count > 1 else 'a file'} left out that the table of samples does not name: {which}"]


def _of_files(cells: _StudyCells, heads: dict[str, FileChannels], compensate: bool) -> list[str]:
    """What there is to say of files, once where it is the same of all."""
    said = []
    for name, notes in zip(cells.names, cells.notes, strict=True):
        head = heads[name]
        bare = compensate and head.is_fcs and not head.is_mass and not any("ompensate" in note for note in head.notes)
        said.append((name, [*head.notes, *(["no spillover matrix: not compensated"] if bare else []), *notes]))
    return gathered_notes(said, "samples")
