"""The results of a study as CSV files (`write_tables`), and its sketched cells as FCS files (`write_sketch_fcs`) for FlowJo.

Tables. Numbers have all digits, and missing values are empty cells. Texts are written without change, so that names match in all
tables. A spreadsheet may interpret a text that begins with "=", "+", "-" or "@" as a formula.

FCS files. Events have all channels that the files share, linear and compensated as gating programs need them. Further channels are
the weight, the population and the sample. Each file is read once more for its sketched events. A marker is the channel that the
study used, even if its name differs between files. Other channels need the same name and label in all files. The markers are
transformed again and compared with the study, so a file that was changed since raises an error. A study from memory has only its
markers.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reduset import _archive
from reduset._types import Array, Floats, Indices
from reduset.cytometry.events import FileChannels, read_channels, read_events
from reduset.cytometry.lab_tables import SAMPLE_ID, as_text
from reduset.cytometry.populations import SIGNS
from reduset.cytometry.samples import SampleSet
from reduset.cytometry.study import CohortStudy, check_study
from reduset.io import (
    FileError,
    format_by_suffix,
    one_line,
    parse_transform,
    path_text,
    suffix_of,
    unique_names,
    write_fcs,
    write_file,
)

FCS = ".fcs"
MAX_FILE_NAME = 100  # letters
VALUE_TOLERANCE = 1e-3  # of a marker's largest number, for single precision

Rows = Iterable[Sequence[Any]]
Key = int | tuple[str, str]  # the number of a marker; the name and label of another channel


def write_tables(folder: Any, study: CohortStudy) -> list[Path]:
    """Write the tables of a study as CSV files into a folder, all or none; the folder is created if it does not exist.

    Parameters
    ----------
    folder : the folder. Tables of the same names are replaced, other files are unchanged.
    study : CohortStudy, fitted

    Returns
    -------
    the files written:

    populations.csv : One row per population with its mean proportion, its best markers, and median and sign of each marker.
    shares.csv, counts.csv : One row per sample with its table entries, its number of cells, and the proportions or counts.
    intervals.csv : One row per sample and population with the count, the proportion and its confidence limits.
    map.csv, distances.csv, errors.csv : Coordinates on the map, distances, and by how much each can be too small.
    differences.csv, whole.csv : With groups, the populations by p-value, and the test of all at once.
    clusters.csv : The clusters of any size that differ, if there are any.
    batches.csv, controls.csv : With runs, their contribution to the distances.
    cleaning.csv : If samples came from files, the number of events that each step removed, and the number kept.
    left_out.csv : Samples that were omitted, with the reason.
    """
    check_study(study)
    tables = {f"{name}.csv": as_csv(columns, rows) for name, (columns, rows) in _tables(study).items()}
    with results_folder(path_text(folder)) as directory:
        written = [directory / name for name in tables]
        _check_sources(written, study)
        for path, content in zip(written, tables.values(), strict=True):
            write_file(str(path), methodcaller("write", content))
    return written


def as_csv(columns: Sequence[str], rows: Rows) -> bytes:
    """The lines of a table: numbers with all digits, empty cells for missing values, and other values as text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(unique_names(columns)[0])
    writer.writerows([_cell(value) for value in row] for row in rows)
    try:
        return text.getvalue().encode()
    except UnicodeEncodeError as error:
        part = text.getvalue()[max(0, error.start - 20) : error.end]
        raise ValueError(f"names must be text that can be written as UTF-8, got {part!r}; rename the file or column") from None


def _cell(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    if value is None or isinstance(value, str | int | np.integer):
        return value
    if isinstance(value, float | np.floating):
        return None if np.isnan(value) else float(value)
    return as_text(value)


def _tables(study: CohortStudy) -> dict[str, tuple[Sequence[str], Rows]]:
    """Columns and rows of each table."""
    samples, populations, map_ = study.samples_, study.populations_, study.map_
    differences, whole, batches, names = study.differences_, study.whole_, study.batches_, samples.names
    table = {name: column for name, column in samples.table.items() if name.lower() != SAMPLE_ID}
    by_sample = [SAMPLE_ID, *table, "cells", *populations.names]
    shares, limits, counts = populations.shares, populations.intervals(study.confidence), populations.counts
    marked = [" ".join(populations.marked(k)) for k in range(len(populations))]
    signs = [[SIGNS[int(sign)] for sign in row] for row in populations.signs]

    def rows(*columns: Any) -> Rows:
        return [[cell for part in row for cell in (part if np.ndim(part) else [part])] for row in zip(*columns, strict=True)]

    described = [f"{what} {marker}" for what in ("median", "sign") for marker in populations.markers]
    each_sample = (names, *table.values(), samples.sizes)
    of_pair = [(sample, population) for sample in names for population in populations.names]
    tables: dict[str, tuple[Sequence[str], Rows]] = {
        "populations": (
            ["population", "mean_share", "marked", *described],
            rows(populations.names, populations.mean_shares, marked, populations.medians, signs),
        ),
        "shares": (by_sample, rows(*each_sample, shares)),
        "counts": (by_sample, rows(*each_sample, counts)),
        "intervals": (
            [SAMPLE_ID, "population", "cells", "share", "low", "high"],
            rows(of_pair, counts.ravel(), shares.ravel(), limits.reshape(-1, 2)),
        ),
        "map": ([SAMPLE_ID, *"xyz"[: map_.embedding_.shape[1]]], rows(names, map_.embedding_)),
        "distances": ([SAMPLE_ID, *names], rows(names, map_.distances_)),
        "errors": ([SAMPLE_ID, *names], rows(names, map_.errors_)),
    }
    if differences is not None:
        any_p = dict(zip(differences.names, differences.any_p_values, strict=True))
        found = [row | {"any_p": any_p[row["population"]]} for row in differences.rows()]
        tables["differences"] = list(found[0]), [list(row.values()) for row in found]
    if study.clusters_ is not None and study.clusters_.differences is not None:
        found = study.clusters_.differences.rows()
        tables["clusters"] = list(found[0]), [list(row.values()) for row in found]
    if whole is not None:
        row = [whole.name, whole.share, *whole.interval, whole.expected, whole.statistic, whole.p_value, whole.labellings]
        tables["whole"] = ["test", "share", "low", "high", "expected", "statistic", "p", "labellings"], [row]
    if batches is not None:
        tested, between = batches.whole, list[Any]([None] * 5)
        if tested is not None:
            between = [tested.share, *tested.interval, tested.expected, tested.p_value]
        row = [batches.name, len({*batches.runs} - {""}), *between, batches.confounded, batches.usual, batches.control_share]
        titles = ["batch", "runs", "share", "low", "high", "expected", "p", "confounded", "usual", "control_share", "notes"]
        tables["batches"] = titles, [[*row, "; ".join(batches.notes)]]
        if batches.controls:
            pairs = [[pair.kind, *pair.samples, *pair.runs, pair.distance] for pair in batches.controls]
            tables["controls"] = ["control", "first", "second", "first_run", "second_run", "distance"], pairs
    if samples.counted:
        tables["cleaning"] = [SAMPLE_ID, *samples.counted, "kept"], rows(names, *samples.counted.values(), samples.sizes)
    if samples.left_out:
        tables["left_out"] = [SAMPLE_ID, "reason"], list(samples.left_out.items())
    return tables


# -- folders ------------------------------------------------------------------------------------------------------------------


@contextmanager
def results_folder(folder: str) -> Iterator[Path]:
    """A folder in which files written inside appear together; a new folder is removed if that fails."""
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise FileError(f"{folder}: is a file, but a folder is needed; choose another name")
    is_new = not path.exists()
    try:
        path.mkdir(exist_ok=True)
    except FileNotFoundError as error:
        raise FileError(f"{folder}: cannot be created, because folder {path.parent} does not exist") from error
    except OSError as error:
        raise FileError(f"{folder}: cannot be created ({one_line(error)})") from error
    try:
        with _archive.together():
            yield path
    except BaseException:
        if is_new and not any(path.iterdir()):
            path.rmdir()
        raise


def _check_sources(targets: Sequence[Path], study: CohortStudy) -> None:
    """Raise an error if a file that the study was read from would be overwritten."""
    sources = {os.path.realpath(source) for source in study.samples_.sources}
    for target in targets:
        if os.path.realpath(target) in sources:
            raise FileError(f"{target}: is an input file of the study and would be overwritten; choose another folder")


# -- FCS files ----------------------------------------------------------------------------------------------------------------


def write_sketch_fcs(path: Any, study: CohortStudy) -> list[Path]:
    """Write the sketched cells of a study as FCS files.

    Parameters
    ----------
    path : a name that ends in .fcs, for one file of all samples, or a folder for one file per sample. The folder is created if
        needed. If an error occurs, no file is written.
    study : CohortStudy, fitted. If its samples came from files, these are read once more for all channels that they share. Values
        are linear, and compensated if the study was. Without files, channels are the markers without change.

    Returns
    -------
    the files written

    Notes
    -----
    Further channels are ``weight``, the number of cells that an event represents, and ``population`` and ``sample``, numbers from
    1 on. Their names are keywords: POPULATION1, SAMPLE1 and so on. ``sample`` is the sample of the cell itself. In one file of all
    samples, weights sum to the number of all cells. The file of a sample has the sketched cells, from any sample, that represent
    at least one of its cells. Its weights are the numbers of these cells. They sum to the cells of that sample and give its
    proportions. The keyword VALUES states the scale of the channels. SCALE1 and so on are the scales of the comparison.
    """
    check_study(study)
    name = path_text(path)
    atom_counts = study.populations_.atom_counts
    if suffix_of(name) == (FCS, False) and not Path(name).is_dir():
        _check_sources([Path(name)], study)
        _write(Path(name), study, _sketched_events(study), atom_counts.sum(axis=0), {})
        return [Path(name)]
    if format_by_suffix(name) is not None and not Path(name).is_dir():
        raise FileError(f"{name}: must end in .fcs, for one file, or be a folder, for one file per sample")
    names = study.samples_.names
    with results_folder(name) as folder:
        written = [folder / f"{stem}{FCS}" for stem in _stems(names)]
        _check_sources(written, study)
        events = _sketched_events(study)
        for target, counts, sample in zip(written, atom_counts, names, strict=True):
            _write(target, study, events, counts, {"$SMNO": sample})
    return written


def _stems(names: tuple[str, ...]) -> list[str]:
    """Names of samples as names of files, unique even without case."""
    stems: list[str] = []
    for name in names:
        plain = re.sub(r"[^\w.+ -]", "_", name)[:MAX_FILE_NAME].strip(" .") or "sample"
        stem, number = plain, 2
        while stem.casefold() in map(str.casefold, stems):
            stem, number = f"{plain} ({number})", number + 1
        stems.append(stem)
    return stems


class _SketchedEvents(NamedTuple):
    """The sketched cells, (m, C), with names, labels and largest values of the channels, and the channel of each marker."""

    values: Floats
    channels: Sequence[str]
    labels: Sequence[str]
    tops: Array
    markers: Sequence[int]


def _write(path: Path, study: CohortStudy, events: _SketchedEvents, weights: Indices, keywords: dict[str, str]) -> None:
    """Write the cells with a weight above 0."""
    samples, populations = study.samples_, study.populations_
    values = np.column_stack([events.values, weights, populations.of_atom + 1, _sample_of_atom(study) + 1])[weights > 0]
    channels = unique_names([*(name.replace(",", ";").strip() for name in events.channels), "weight", "population", "sample"])[0]
    labels = ["" if label == channel else label for label, channel in zip(events.labels, channels, strict=False)]
    linear = f"linear, spillover {'removed if a file has a matrix' if samples.compensated else 'not removed'}"
    markers = zip(events.markers, samples.markers, strict=True)
    keywords = {
        "CREATOR": "reduset",
        "VALUES": linear if samples.events else "markers as they were compared",
        **{f"SCALE{channel + 1}": samples.scales[marker] for channel, marker in markers if marker in samples.scales},
        **{f"POPULATION{n}": name for n, name in enumerate(populations.names, 1)},
        **{f"SAMPLE{n}": name for n, name in enumerate(samples.names, 1)},
        **keywords,
    }
    for n, (top, largest) in enumerate(zip(events.tops.tolist(), values.max(axis=0).tolist(), strict=False), 1):
        if largest < top < np.inf:  # so that programs draw the same axes
            keywords[f"$P{n}R"] = str(int(np.ceil(top)))
    write_fcs(str(path), values, channels, [*labels, "", "", ""], keywords)


def _sample_of_atom(study: CohortStudy) -> Indices:
    """(m,) the sample of each sketched cell."""
    ends = np.cumsum(study.samples_.sizes)
    return np.searchsorted(ends, study.populations_.sketch.indices, side="right")


def _sketched_events(study: CohortStudy) -> _SketchedEvents:
    """The sketched cells, from the files of the study if it has any."""
    samples, rows = study.samples_, study.populations_.sketch.indices
    count = len(samples.markers)
    if not samples.events:
        tops = np.full(count, np.inf)
        return _SketchedEvents(study.populations_.atoms, samples.markers, samples.markers, tops, range(count))
    heads = [read_channels(source, samples.compensated) for source in samples.sources]
    positions = [_positions(samples.channels[number], head) for number, head in enumerate(heads)]
    common = [key for key in positions[0] if all(key in other for other in positions)]
    columns = [[known[key] for key in common] for known in positions]
    sample, starts = _sample_of_atom(study), np.cumsum(samples.sizes) - samples.sizes
    values = np.empty((len(rows), len(common)), np.float32)
    for number, head in enumerate(heads):
        atoms = np.flatnonzero(sample == number)
        if len(atoms):
            events = samples.events[number][rows[atoms] - starts[number]]
            values[atoms] = _read(head, events, columns[number], samples.compensated)
    markers = [common.index(j) for j in range(count)]
    _check_unchanged(study, sample, values[:, markers])
    tops = np.max([head.tops[chosen] for head, chosen in zip(heads, columns, strict=True)], axis=0)
    titles = [key if isinstance(key, tuple) else (_channel_name(samples, key), samples.markers[key]) for key in common]
    return _SketchedEvents(values, [name for name, _ in titles], [label for _, label in titles], tops, markers)


def _positions(markers: tuple[str, ...], head: FileChannels) -> dict[Key, int]:
    """The markers and the other channels of a file, in its order, with their indices."""
    absent = [channel for channel in markers if channel not in head.names]
    if absent:
        raise FileError(f"{head.path}: no longer has channel {absent[0]!r}; it changed since the study was made, make it again")
    return {
        markers.index(name) if name in markers else (name, label): position
        for position, (name, label) in enumerate(zip(head.names, head.labels, strict=True))
    }


def _channel_name(samples: SampleSet, marker: int) -> str:
    """The channel of a marker; the name of the marker if files have it in different channels."""
    names = {channels[marker] for channels in samples.channels}
    return names.pop() if len(names) == 1 else samples.markers[marker]


def _read(head: FileChannels, events: Indices, columns: list[int], compensated: bool) -> NDArray[np.float32]:
    """The given events of a file."""
    present = read_events(head.path, compensated).values
    if int(events[-1]) >= len(present):
        raise FileError(
            f"{head.path}: has {len(present):,} events, but the study used number {int(events[-1]) + 1:,}; the file has changed, "
            "make the study again"
        )
    values = np.asarray(present[np.ix_(events, np.array(columns))], np.float32)
    lacking = ~np.isfinite(values)
    if lacking.any():
        row, column = np.argwhere(lacking)[0]
        raise FileError(
            f"{head.path}: {head.names[columns[column]]!r} has no number in row {int(events[row]) + 1}, which FCS files cannot "
            "hold; read the study with clean='non-finite'"
        )
    return values


def _check_unchanged(study: CohortStudy, sample: Indices, linear: NDArray[np.float32]) -> None:
    """Raise an error for files with other events than the study used."""
    samples, atoms = study.samples_, study.populations_.atoms
    for j, marker in enumerate(samples.markers):
        scale = samples.scales.get(marker)
        values = linear[:, j].astype(np.float64) if scale is None else parse_transform(scale).scale(linear[:, j])
        differs = ~(np.abs(values - atoms[:, j]) <= VALUE_TOLERANCE * np.abs(atoms[:, j]).max(initial=1e-30))
        if differs.any():
            path = samples.sources[int(sample[int(np.argmax(differs))])]
            raise FileError(f"{path}: has other values of {marker!r} than the study; the file has changed, make the study again")
