"""write_tables: the results of a study as CSV files, for colleagues and other programs.

Numbers have all digits, and missing values are empty cells. Texts are written without change, so that names match those of other
tables. A spreadsheet may take a text that begins with "=", "+", "-" or "@" for a formula.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _archive
from reduset.cytometry.lab_tables import SAMPLE_ID, as_text
from reduset.cytometry.populations import SIGNS
from reduset.cytometry.study import CohortStudy, check_study
from reduset.io import FileError, one_line, path_text, unique_names, write_file


@dataclass(frozen=True)
class StudyTable:
    """A table: names of columns, and rows of texts and numbers."""

    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]

    def csv(self) -> bytes:
        """Its lines."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(unique_names(self.columns)[0])
        writer.writerows([_cell(value) for value in row] for row in self.rows)
        try:
            return text.getvalue().encode()
        except UnicodeEncodeError as error:
            part = text.getvalue()[max(0, error.start - 20) : error.end]
            raise ValueError(f"names must be text that can be written as UTF-8, got {part!r}; rename the file or column") from None


def write_tables(folder: Any, study: CohortStudy) -> list[Path]:
    """Write the tables of a study as CSV files into a folder, all or none; the folder is made where it is not there.

    Parameters
    ----------
    folder : where to. Tables of the same names there are replaced; others are left alone.
    study : CohortStudy, fitted

    Returns
    -------
    the files written:

    populations.csv : a row a population: its mean share, the markers that tell it, and of each marker median and sign
    shares.csv, counts.csv : a row a sample: the table of samples, its number of cells, and the share (the cells) of each population
    intervals.csv : a row for each sample and population: cells, share, and the limits between which it lies
    map.csv, distances.csv, errors.csv : places on the map, distances, and by how much each can be too small
    differences.csv, whole.csv : where groups were compared, the populations, the surest first, and the test of all at once
    batches.csv, controls.csv : where runs were looked at
    cleaning.csv : where samples came from files, how many events each step took, and how many are kept
    left_out.csv : samples that are not there, and why
    """
    check_study(study)
    tables = {f"{name}.csv": table for name, table in _tables(study).items() if table is not None}
    with results_folder(path_text(folder)) as place:
        written = [place / name for name in tables]
        refuse_sources(written, study.samples_.sources)
        for path, table in zip(written, tables.values(), strict=True):
            write_file(str(path), methodcaller("write", table.csv()))
    return written


def _cell(value: Any) -> Any:
    """A number with all digits, nothing for what is missing, and all else as text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return None if np.isnan(value) else repr(float(value))
    return as_text(value)


def _tables(study: CohortStudy) -> dict[str, StudyTable | None]:
    found, names = study.populations_, study.samples_.names
    return {
        "populations": _populations(study),
        "shares": _by_sample(study, found.shares),
        "counts": _by_sample(study, found.counts),
        "intervals": _intervals(study),
        "map": StudyTable((SAMPLE_ID, *"xyz"[: study.map_.embedding_.shape[1]]), _named(names, study.map_.embedding_)),
        "distances": StudyTable((SAMPLE_ID, *names), _named(names, study.map_.distances_)),
        "errors": StudyTable((SAMPLE_ID, *names), _named(names, study.map_.errors_)),
        "differences": _differences(study),
        "whole": _whole(study),
        "batches": _batches(study),
        "controls": _controls(study),
        "cleaning": _cleaning(study),
        "left_out": _left_out(study),
    }


def _named(names: Sequence[str], values: Any) -> list[list[Any]]:
    return [[name, *row] for name, row in zip(names, np.asarray(values).tolist(), strict=True)]


def _populations(study: CohortStudy) -> StudyTable:
    found = study.populations_
    columns = ["population", "mean_share", "marked", *(f"median {each}" for each in found.markers)]
    columns += [f"sign {each}" for each in found.markers]
    shares = found.mean_shares
    rows = [
        [name, shares[k], " ".join(found.marked(k)), *found.medians[k], *(SIGNS[int(sign)] for sign in found.signs[k])]
        for k, name in enumerate(found.names)
    ]
    return StudyTable(columns, rows)


def _by_sample(study: CohortStudy, values: NDArray[Any]) -> StudyTable:
    """The table of samples, its names first, and a column a population."""
    samples = study.samples_
    table = {name: column for name, column in samples.table.items() if name.lower() != SAMPLE_ID}
    columns = [SAMPLE_ID, *table, "cells", *study.populations_.names]
    rows = [
        [name, *(column[i] for column in table.values()), samples.sizes[i], *values[i].tolist()]
        for i, name in enumerate(samples.names)
    ]
    return StudyTable(columns, rows)


def _intervals(study: CohortStudy) -> StudyTable:
    found = study.populations_
    counts, shares, ends = found.counts, found.shares, found.intervals(study.confidence)
    rows = [
        [sample, population, counts[i, k], shares[i, k], *ends[i, k]]
        for i, sample in enumerate(study.samples_.names)
        for k, population in enumerate(found.names)
    ]
    return StudyTable([SAMPLE_ID, "population", "cells", "share", "low", "high"], rows)


def _differences(study: CohortStudy) -> StudyTable | None:
    found = study.differences_
    if found is None:
        return None
    any_p = dict(zip(found.names, found.any_p_values, strict=True))
    rows = [row | {"any_p": any_p[row["population"]]} for row in found.rows()]
    return StudyTable(list(rows[0]), [list(row.values()) for row in rows])


def _whole(study: CohortStudy) -> StudyTable | None:
    found = study.whole_
    if found is None:
        return None
    row = [found.name, found.share, *found.interval, found.expected, found.statistic, found.p_value, found.labellings]
    return StudyTable(["test", "share", "low", "high", "expected", "statistic", "p", "labellings"], [row])


def _batches(study: CohortStudy) -> StudyTable | None:
    found = study.batches_
    if found is None:
        return None
    whole = found.whole
    between = [None] * 5 if whole is None else [whole.share, *whole.interval, whole.expected, whole.p_value]
    runs, notes = len({*found.runs} - {""}), "; ".join(found.notes)
    row = [found.name, runs, *between, found.confounded, found.usual, found.control_share, notes]
    columns = ["batch", "runs", "share", "low", "high", "expected", "p", "confounded", "usual", "control_share", "notes"]
    return StudyTable(columns, [row])


def _controls(study: CohortStudy) -> StudyTable | None:
    pairs = () if study.batches_ is None else study.batches_.controls
    columns = ["control", "first", "second", "first_run", "second_run", "distance"]
    return StudyTable(columns, [[pair.kind, *pair.samples, *pair.runs, pair.distance] for pair in pairs]) if pairs else None


def _cleaning(study: CohortStudy) -> StudyTable | None:
    samples = study.samples_
    if not samples.counted:
        return None
    counts = np.column_stack([*samples.counted.values(), samples.sizes])
    return StudyTable([SAMPLE_ID, *samples.counted, "kept"], _named(samples.names, counts))


def _left_out(study: CohortStudy) -> StudyTable | None:
    left_out = study.samples_.left_out
    return StudyTable([SAMPLE_ID, "reason"], list(left_out.items())) if left_out else None


@contextmanager
def results_folder(folder: str) -> Iterator[Path]:
    """The folder, in which files that are written inside appear together; one that was made goes again where that fails."""
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise FileError(f"{folder}: is a file, and a folder is needed; give another name")
    made = not place.exists()
    try:
        place.mkdir(exist_ok=True)
    except FileNotFoundError as error:
        raise FileError(f"{folder}: cannot be made, for there is no folder {place.parent}") from error
    except OSError as error:
        raise FileError(f"{folder}: cannot be made ({one_line(error)})") from error
    try:
        with _archive.together():
            yield place
    except BaseException:
        if made and not any(place.iterdir()):
            place.rmdir()
        raise


def refuse_sources(targets: Sequence[Path], sources: Sequence[str]) -> None:
    """Refuse to write over a file that the study was read from."""
    read = {os.path.realpath(source) for source in sources}
    for target in targets:
        if os.path.realpath(target) in read:
            raise FileError(f"{target}: is a file of the study itself, and would be lost; give another folder")
