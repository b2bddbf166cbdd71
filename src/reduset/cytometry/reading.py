"""read_cohort: the samples of a study from a folder of files, a panel and a table of samples.

The channels of all files are read first, which determines markers and samples. Then each file is read, cleaned and gated while the
next one is being read. Cells are in single precision, 4·n·d bytes. Scales are the same in all samples. They are given by name, or
estimated at the end from all samples together. They are applied in place, so that no file is read twice. O(n·C).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reduset._engine import run_all
from reduset._progress import Progress
from reduset._types import Array, Indices, ProgressLike
from reduset._validate import flag, one_of
from reduset.cytometry.cleaning import STEPS
from reduset.cytometry.cleaning import clean as clean_events
from reduset.cytometry.events import FileChannels, FileEvents, read_channels, read_events
from reduset.cytometry.lab_tables import lab_table, loose, sheet_of
from reduset.cytometry.markers import COMMON, SAME, DifferentFile, StudyMarkers, read_panel, study_markers
from reduset.cytometry.samples import NamedSamples, SampleSet, by_file, by_table, study_files
from reduset.io import (
    AUTO,
    FLUORESCENCE,
    MASS,
    NONE,
    PLAIN,
    FileError,
    Transform,
    ahead,
    automatic_scale,
    check_room,
    gathered_notes,
    listed,
    nearest,
    parse_transform,
    pooled,
    scale_of,
)

MIN_CELLS = 2  # of a sample
REFUSE, DROP = "refuse", "drop"
BLOCK = 32768  # events of a task
MAX_TOP_RATIO = 4  # of the ranges of files; a larger ratio causes a note


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
    """Read the files of a study, one per sample. Events are compensated, cleaned, gated and put on scales that all samples share.

    Parameters
    ----------
    folder_or_files : a folder with FCS files (or only CSV or Parquet files), or a list of files.
    panel : the marker of each channel. It is CATALYST's table (`fcs_colname`, `antigen`, `marker_class`, and optionally
        `transform` and `cofactor`) as CSV, Excel (`panel.xlsx#Sheet`), Parquet, a dict of columns or a frame. By default all dyes
        are read. They are named by their labels ($PnS) or, without labels, by their channels.
    samples : the table of samples (`file_name`, `sample_id`, `condition`, `patient_id`, …), in the same formats. By default every
        file is a sample with the name of the file. Files that the table does not name are omitted.
    transform : a scale, or a dict of markers to scales. By default ("auto" or None) mass cytometry has asinh:5, other FCS files
        have logicle estimated from all samples, and other formats none. Scales are "asinh:150", "logicle",
        "logicle:T=262144,W=0.5" or "none". The panel's scale of a channel takes precedence over one scale for all.
    compensate : whether to remove spillover by the matrix that a file has.
    channels : "common" uses the markers that all files have, with a note on the others. "same" raises an error if files differ.
    clean : the steps of cleaning, from "non-finite", "margin", "doublets" and "time"; () for none.
    gate : a file of gates, or (file, population). Only cells inside the gate are kept.
    keep_going : whether to omit files that cannot be read, have no cells left or share no marker with the others. The reason is
        recorded. Without it, such files raise an error.
    missing : "drop" omits events without a number in a marker after cleaning. "refuse" raises an error.
    progress : True for a line on the terminal, or a function of (stage, done, total).

    Raises
    ------
    FileError : in one line, for a file or a table that cannot be used.
    """
    flag(compensate, "compensate")
    flag(keep_going, "keep_going")
    one_of(channels, "channels", (COMMON, SAME))
    one_of(missing, "missing", (REFUSE, DROP))
    steps = [one_of(step, "clean", STEPS) for step in ([clean] if isinstance(clean, str) else clean)]
    report = Progress(progress)
    omitted = _Omitted(keep_going)
    study_panel = None if panel is None else read_panel(panel)
    tables = [str(path) for path in (panel, samples, gate) if isinstance(path, str | os.PathLike)]
    paths = study_files(folder_or_files, [(sheet_of(path) or (path, None))[0] for path in tables])
    named = by_file(paths) if samples is None else by_table(lab_table(samples, "samples"), paths)
    for name, reason in named.absent.items():
        omitted.add(name, reason)
    heads: dict[str, FileChannels] = {}
    for name, path in named.files.items():
        try:
            heads[name] = read_channels(path, compensate)
        except FileError as error:
            omitted.add(name, error)
    omitted.require(heads)
    while True:
        try:
            markers = study_markers(list(heads.values()), study_panel, channels)
            break
        except DifferentFile as error:
            name = next(name for name, head in heads.items() if head.path == error.path)
            omitted.add(name, error)
            del heads[name]
            omitted.require(heads)
    wanted = asked_scales(markers.names, transform, markers.transforms)
    gates, done = _gates(gate), report.stage("reading")
    known = sum(head.rows or 0 for head in heads.values())
    room = 4.0 * known * len(markers.names)
    check_room(next(iter(heads.values())).path, room, "the cells of all files", "name fewer markers in a panel")
    kept: dict[str, _Kept] = {}
    try:
        for number, (name, events) in enumerate(ahead(_opened(heads, compensate, "margin" in steps)), 1):
            try:
                kept[name] = _kept(events, markers, steps, gates, missing)
            except FileError as error:
                omitted.add(name, error)
            done(number, len(heads))
    finally:
        report.close()
    omitted.require(kept)
    heads = {name: heads[name] for name in kept}
    scales, scale_notes = _scales(wanted, kept, list(heads.values()), markers)
    for name, file in kept.items():
        put_on_scales(file.cells, scales, heads[name].path, markers.names, file.events + 1)
    steps = list(next(iter(kept.values())).counts)
    return SampleSet(
        names=tuple(kept),
        cells=tuple(each.cells for each in kept.values()),
        markers=markers.names,
        table=named.rows(list(kept)),
        state=markers.state,
        counted={step: np.array([each.counts[step] for each in kept.values()], np.int64) for step in steps},
        left_out=omitted.reasons,
        notes=(*_unnamed_files(named), *markers.notes, *scale_notes, *_file_notes(kept, heads, compensate)),
        sources=tuple(head.path for head in heads.values()),
        events=tuple(each.events for each in kept.values()),
        channels=tuple(tuple(head.names[k] for k in markers.positions[head.path]) for head in heads.values()),
        compensated=compensate,
        scales={name: scale.name for name, scale in zip(markers.names, scales, strict=True) if scale is not None},
    )


def _gates(gate: Any) -> Any:
    if gate is None or hasattr(gate, "inside"):
        return gate
    from reduset.cytometry.gates import open_gates  # its library is an extra

    path, population = gate if isinstance(gate, tuple) else (gate, None)
    return open_gates(path, population)


class _Omitted:
    """Samples that cannot be used. Each raises an error, or with ``keep_going`` is omitted with the reason."""

    def __init__(self, keep_going: bool) -> None:
        self._keep_going = keep_going
        self.reasons: dict[str, str] = {}

    def add(self, name: str, error: str | FileError) -> None:
        """Omit a sample, or raise an error."""
        if not self._keep_going:
            way_out = "correct the table, or omit the sample (keep_going=True)"
            raise error if isinstance(error, FileError) else FileError(f"sample {name!r} has {error}; {way_out}")
        self.reasons[name] = str(error)

    def require(self, remaining: Collection[str]) -> None:
        """Raise an error if no sample remains."""
        if not remaining:
            name, reason = next(iter(self.reasons.items()))
            raise FileError(f"all {len(self.reasons)} samples were omitted; {name}: {reason}")


class _Kept(NamedTuple):
    """The kept cells of a file, (n, d) on a linear scale, the numbers of their events, removed events by step, and notes."""

    cells: NDArray[np.float32]
    events: Indices
    counts: dict[str, int]
    notes: list[str]


def _opened(heads: dict[str, FileChannels], compensate: bool, measured: bool) -> Iterator[tuple[str, FileEvents | FileError]]:
    """The events of each file, or the error of reading it."""
    for name, head in heads.items():
        try:
            yield name, read_events(head.path, compensate, measured)
        except FileError as error:
            yield name, error


def _kept(events: FileEvents | FileError, markers: StudyMarkers, steps: Sequence[str], gates: Any, missing: str) -> _Kept:
    """Clean and gate the events of a file; raises the error of reading it."""
    if isinstance(events, FileError):
        raise events
    cleaned = clean_events(events, steps)
    keep, counts = cleaned.keep, {"events": len(events.values), **cleaned.counted}
    if gates is not None:
        inside = np.asarray(gates.inside(events), bool)
        counts["gate"] = int((keep & ~inside).sum())
        keep = keep & inside
    kept = np.flatnonzero(keep)
    cells = np.asarray(events.values[np.ix_(kept, np.array(markers.positions[events.path], np.int64))], np.float32)
    lacking = np.asarray(~np.isfinite(cells).all(axis=1))
    if lacking.any() and missing == REFUSE:
        row = cells[lacking][0]
        position = int(np.flatnonzero(~np.isfinite(row))[0])
        name = markers.names[position]
        if not np.isfinite(cells[:, position]).any():
            raise FileError(f"{events.path}: {name!r} has no number in any event; omit the marker by a panel, or the file")
        raise FileError(
            f"{events.path}: {name!r} has no number in row {kept[lacking][0] + 1}, got {row[position]}; omit such events "
            "(clean='non-finite', or missing='drop')"
        )
    if missing == DROP:
        counts["missing"] = int(lacking.sum())
        cells, kept = cells[~lacking], kept[~lacking]
    if len(kept) < MIN_CELLS:
        removed = [f"{step} removed {count:,}" for step, count in counts.items() if step != "events" and count]
        left = f"{len(kept) or 'none'} of its {counts['events']:,} events {'is' if len(kept) == 1 else 'are'} left"
        raise FileError(f"{events.path}: {left}: {', '.join(removed) or 'the file has no more'}")
    return _Kept(cells, kept, counts, cleaned.notes)


def _unnamed_files(named: NamedSamples) -> list[str]:
    if not named.unnamed:
        return []
    names = listed((Path(path).name for path in named.unnamed), 4)
    return [f"{'files' if len(named.unnamed) > 1 else 'a file'} omitted, not in the table of samples: {names}"]


def _file_notes(kept: dict[str, _Kept], heads: dict[str, FileChannels], compensate: bool) -> list[str]:
    """Notes on files. A note that all files have is written once."""
    notes = []
    for name, head in heads.items():
        bare = compensate and head.is_fcs and not head.is_mass and not any("ompensate" in note for note in head.notes)
        notes.append((name, [*head.notes, *["no spillover matrix: not compensated"] * bare, *kept[name].notes]))
    return gathered_notes(notes, "samples")


# -- scales -------------------------------------------------------------------------------------------------------------------


def asked_scales(markers: Sequence[str], transform: Any, by_panel: Mapping[str, str]) -> dict[str, str]:
    """The scale of each marker: its name, "auto" or "none". A dict overrides the panel, which overrides one scale for all."""
    wanted = dict.fromkeys(markers, AUTO if transform is None or isinstance(transform, Mapping) else _scale_name(transform))
    wanted |= {marker: _scale_name(text) for marker, text in by_panel.items() if marker in wanted}
    for name, text in transform.items() if isinstance(transform, Mapping) else ():
        matches = [marker for marker in markers if marker == name] or [m for m in markers if loose(m) == loose(str(name))]
        if not matches:
            raise ValueError(
                f"transform names {name!r}, which is no marker{nearest(str(name), markers)}; there are {', '.join(markers)}"
            )
        wanted[matches[0]] = AUTO if text is None else _scale_name(text)
    return wanted


def _scale_name(text: Any) -> str:
    name = text.strip() if isinstance(text, str) else text
    if name == AUTO:
        return AUTO
    return NONE if name in PLAIN else parse_transform(name).name


def _scales(
    wanted: dict[str, str], kept: dict[str, _Kept], files: list[FileChannels], markers: StudyMarkers
) -> tuple[list[Transform | None], list[str]]:
    """The scale of each marker, and a note if the ranges of files differ."""
    automatic = automatic_scale([MASS if file.is_mass else FLUORESCENCE if file.is_fcs else NONE for file in files])
    tops = np.array([file.tops[markers.positions[file.path]] for file in files])
    sample = pooled([each.cells for each in kept.values()])
    scales = [
        scale_of(wanted[name], automatic, sample[:, k].astype(np.float64), float(tops[:, k].max()))
        for k, name in enumerate(markers.names)
    ]
    names = [Path(file.path).name for file in files]
    return scales, range_notes(markers.names, tops, names) if automatic == FLUORESCENCE else []


def put_on_scales(
    cells: NDArray[np.float32], scales: Sequence[Transform | None], path: str, markers: Sequence[str], rows: Any
) -> None:
    """Transform the events of one file in place; ``rows`` are their numbers in the file, for messages."""

    def put(start: int) -> None:
        block = cells[start : start + BLOCK]
        for k, scale in enumerate(scales):
            if scale is not None:
                block[:, k] = scale.apply(path, markers[k], block[:, k], rows[start : start + BLOCK])

    run_all([partial(put, start) for start in range(0, len(cells), BLOCK)])


def range_notes(markers: Sequence[str], tops: Array, files: Sequence[str]) -> list[str]:
    """A note on markers with different ranges in different files, from (files, markers) tops."""
    low, high = tops.min(axis=0), tops.max(axis=0)
    different = np.flatnonzero(np.isfinite(high) & (high > MAX_TOP_RATIO * low))
    if not len(different):
        return []
    first = different[0]
    smallest, largest = (files[int(k)] for k in (tops[:, first].argmin(), tops[:, first].argmax()))
    return [
        f"{len(different)} of {len(markers)} markers have different ranges in different files ({markers[first]} {low[first]:,.0f} "
        f"in {smallest}, {high[first]:,.0f} in {largest}): check that they were measured with the same settings. Each has one scale"
    ]
