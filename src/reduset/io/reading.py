"""Files into tables. A plan fixes the columns, scales and number of rows of all files; then each is read into one array.

Files are opened one after another for the plan, and closed. A single file stays open. The number of rows is known in advance except
for CSV, TSV and Arrow streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from reduset._types import PointsLike
from reduset.io.arrow import FrameReader
from reduset.io.building import Chunk, TableBuilder, chunks, scales_of
from reduset.io.channels import ChannelSample, automatic_scales
from reduset.io.choice import ColumnChoice, choose, choose_alike, without_identifiers
from reduset.io.encoding import encoded, encoding_of
from reduset.io.guard import READ, Work, path_text
from reduset.io.reader import NONE, ROWS, FileReader, ReadOptions, options_of, unique_names
from reduset.io.registry import files_of, open_file
from reduset.io.table import FileError, Table, listed

BLOCK_SIZE = 1 << 19  # bytes, so that blocks fit in the cache
MAX_NAMED = 3  # files that a note names


@dataclass(frozen=True)
class FilePlan:
    """The plan for a file."""

    path: str
    choice: ColumnChoice
    rows: int | None
    scales: dict[str, str]
    notes: tuple[str, ...]
    encoding: dict[str, Any]
    open: Callable[[], FileReader]
    channels: ChannelSample | None = None
    in_one_unit: bool = False
    has_channels: bool = False
    cuts: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, source: FileReader, choice: ColumnChoice, transform: Any, reopen: Callable[[], FileReader] | None = None
    ) -> FilePlan:
        """The plan of an open file, which stays open unless it can be reopened."""
        scales, scale_notes = scales_of(transform, source, choice)
        return cls(
            source.path,
            choice,
            source.rows,
            {title: scale.name for title, scale in scales.items()},
            (*source.notes, *choice.notes, *scale_notes),
            source.encoding,
            (lambda: source) if reopen is None else reopen,
            in_one_unit=source.in_one_unit,
            has_channels=source.automatic != NONE,
            cuts=source.cuts,
        )


class ReadPlan:
    """The plan for several files with the same columns."""

    def __init__(self, files: Sequence[FilePlan], options: ReadOptions) -> None:
        self.files = files
        self.first = files[0]
        counts = [file.rows for file in files]
        self.rows = None if None in counts else sum(count or 0 for count in counts)  # None if unknown
        self.options = options
        self._single = all(file.choice.single for file in files)
        are_transformed = set(self.first.choice.titles) <= set(self.first.scales)
        self.in_one_unit = all(file.in_one_unit or (file.has_channels and are_transformed) for file in files)

    def chunks(self, file: FilePlan, limit: int = ROWS, start: int = 0) -> Iterator[Chunk]:
        """The rows of a file from the block with row ``start`` on, at most ``limit`` at a time."""
        rows = min(limit, max(1024, min(ROWS, BLOCK_SIZE // (8 * len(self.first.choice.titles)))))
        return chunks(file.open(), file.choice, self.options, self._single, rows, start)

    def builder(self, rows: int | None, work: Work = READ) -> TableBuilder:
        """A builder for a table of ``rows`` rows and the work on it."""
        return TableBuilder(self.first.path, rows, self.first.choice, self._single, work)

    def table(self, builder: TableBuilder, files: Sequence[FilePlan], covered: int, may_be_empty: bool = False) -> Table:
        """The table in the builder, which covers ``covered`` rows of some files."""
        if covered and not builder.rows and not may_be_empty:
            raise FileError(f"{self.first.path}: no rows are left, for each lacks a value; choose fewer columns")
        values, weights, groups = builder.finish(self.first.path, may_be_empty)
        channels = [file.channels for file in files if file.channels is not None and file.channels.automatic != NONE]
        return Table(
            values,
            self.first.choice.titles,
            weights,
            groups,
            tuple(file.path for file in files),
            notes_of(files, covered - len(values)),
            covered - len(values),
            self.first.scales,
            self.first.encoding,
            tuple(channels) if len(channels) == len(files) else (),
            in_one_unit=self.in_one_unit,
        )

    def gathered(self, work: Work = READ) -> Table:
        """One table of all files, which fits in memory together with the work on it."""
        builder, covered = self.builder(self.rows, work), 0
        omitted = [np.empty(0, np.int64)]
        for file in self.files:
            before, end = builder.rows, 0
            for chunk in self.chunks(file):
                builder.add(file.path, chunk)
                if len(chunk) < chunk.end - end:
                    omitted.append(np.setdiff1d(np.arange(end, chunk.end), chunk.numbers - 1, assume_unique=True) + covered)
                end = chunk.end
            if builder.rows == before and end:
                raise FileError(f"{file.path}: no rows are left, for each lacks a value; choose fewer columns")
            covered += end
        return replace(self.table(builder, self.files, covered), omitted=np.concatenate(omitted))


def plan_of(paths: Any, options: ReadOptions, reopens: bool = False) -> ReadPlan:
    """The plan for several files. Each is opened once, and a single one stays open unless ``reopens``."""
    names = files_of(paths)
    files: list[FilePlan] = []
    identifier_notes: tuple[str, ...] = ()
    openers = [partial(open_file, name, options) for name in names]
    encoders, options = encoding_of(openers, options)
    samples: list[ChannelSample] = []
    for name, opener in zip(names, openers, strict=True):
        reopen = partial(encoded, opener, encoders)
        source = reopen()
        choice = choose_alike(source, options, files[0].choice, names[0]) if files else choose(source, options)
        if not files and options.columns is None:
            complete, choice = choice, without_identifiers(source, choice, options.identifiers == "omit")
            identifier_notes = choice.notes[len(complete.notes) :]
            if len(choice.names) < len(complete.names):
                options = replace(options, columns=list(choice.titles))
        else:
            choice = replace(choice, notes=(*choice.notes, *identifier_notes))
        files.append(FilePlan.of(source, choice, options.transform, reopen if reopens or len(names) > 1 else None))
        if files[-1].scales != files[0].scales:  # a transform of all columns does not change scatter and time of FCS files
            raise FileError(f"{name}: transform takes other columns than in {names[0]}; name the columns of each transform")
        if options.automatic:
            samples.append(ChannelSample.of(source, choice.names))
        elif options.transform is None and not options.linear:
            files[-1] = replace(files[-1], channels=ChannelSample.of(source, choice.names, with_events=False))
    scales, notes = automatic_scales(samples, files[0].choice.titles, options.transform or {}) if samples else ({}, [])
    if scales:
        files = [replace(file, scales=file.scales | scales, notes=(*file.notes, *notes)) for file in files]
        options = replace(options, transform=dict(options.transform or {}) | scales)
    return ReadPlan(files, options)


def gathered_notes(notes: Sequence[tuple[str, Sequence[str]]], noun: str) -> list[str]:
    """The notes on many files or samples: once if all have it, otherwise with their names."""
    names_by_note: dict[str, list[str]] = {}
    for name, own_notes in notes:
        for note in dict.fromkeys(own_notes):
            names_by_note.setdefault(note, []).append(name)
    gathered = []
    for note, names in names_by_note.items():
        if len(names) == len(notes):
            gathered.append(note)
        elif len(names) <= MAX_NAMED:
            gathered += [f"{name}: {note}" for name in names]
        else:
            gathered.append(f"{names[0]} and {len(names) - 1:,} other {noun}: {note}")
    return gathered


def notes_of(files: Sequence[FilePlan], dropped: int) -> tuple[str, ...]:
    """The notes on files, and the number of dropped rows."""
    notes = gathered_notes([(file.path, file.notes) for file in files], "files")
    if dropped:
        notes.append(f"{dropped:,} row{'s' if dropped > 1 else ''} with missing values left out")
    return tuple(notes)


def read(
    paths: Any,
    *,
    columns: Any = None,
    weight_column: str | None = None,
    group_column: str | None = None,
    transform: Any = None,
    compensate: bool = True,
    missing: str = "refuse",
    key: str | None = None,
    encode: Any = None,
    identifiers: str = "keep",
) -> Table:
    """Read one file, or several with the same columns, as one table.

    Parameters
    ----------
    paths : path or list of paths, or a folder
        The suffix states the format. The files of a folder must have one format and are read in the order of their names.
    columns : names; None for all numeric columns except those of weights and groups.
    weight_column : the column of weights.
    group_column : the column of labels.
    transform : None, "auto", "asinh:150", "logicle", "log", or a dict of columns to these
        "auto" transforms fluorescence channels of FCS files by a logicle scale estimated from all files together, mass channels by
        asinh:5, and nothing else. None (or "none") keeps the values of the file.
    compensate : whether to compensate FCS files by their own spillover matrix.
    missing : "refuse" raises an error that names the first row with a missing value; "drop" omits and counts such rows.
    key : array of an .npz or .h5ad file ("X", "obsm/X_pca", "obs"); "events" for the stored numbers of an FCS file.
    encode : "auto", a text such as "city=onehot,grade=ordinal:low:mid:high,when=days", or a dict of the same
        Converts categories and dates to numbers. "auto" converts all chosen columns: dates to days since 1970-01-01, ordered
        categories to 0, 1, …, other categories (at most 50) to columns of 0 and 1, `city=Paris`; text with more categories is
        omitted. The ``encoding`` of a table encodes other files the same way; an unknown category raises an error.
    identifiers : "keep" or "omit"
        Columns of integers that rise or fall from row to row. Both add a note. Columns that are named are always read.

    Raises
    ------
    FileError : one line on any fault of a file.
    """
    options = ReadOptions(columns, weight_column, group_column, transform, compensate, missing, key, encode, identifiers)
    return plan_of(paths, options).gathered()


def read_for(work: Work, paths: Any, **same: Any) -> Table:
    """As `read`, with an error before any row is read if the table and the work on it do not fit in memory."""
    return plan_of(paths, options_of(**same)).gathered(work)


def read_bags(paths: Any, *, group_column: str | None = None, **same: Any) -> dict[str, Table]:
    """Read bags by name: one per file, named by the file without its suffix, or one per label of ``group_column``.

    All files must have the same columns. Other arguments are those of ``read``.
    """
    if group_column is None:
        plan = plan_of(paths, options_of(**same))
        stems = stems_of([file.path for file in plan.files])
        return dict(zip(stems, (ReadPlan([file], plan.options).gathered() for file in plan.files), strict=True))
    table = read(paths, group_column=group_column, **same)
    labels, first, codes = np.unique(np.asarray(table.groups), return_index=True, return_inverse=True)
    bags = {}
    for code in np.argsort(first):  # in order of appearance
        rows = codes == code
        weights = None if table.weights is None else table.weights[rows]
        bags[str(labels[code])] = replace(table, values=table.values[rows], weights=weights, groups=None, omitted=None)
    return bags


def stems_of(paths: list[str]) -> list[str]:
    """Names of files without the suffixes of formats; with the folder for files of the same name."""
    stems = [Path(Path(path).name.removesuffix(".gz")).stem or Path(path).name for path in paths]
    folders = [Path(path).parent.name for path in paths]
    return unique_names(
        [f"{folder}/{stem}" if folder and stems.count(stem) > 1 else stem for folder, stem in zip(folders, stems, strict=True)]
    )[0]


def read_labels(path: Any) -> dict[str, str]:
    """The second column of a file by the first, such as the group of each sample. Further columns are not read."""
    source = open_file(path_text(path), ReadOptions())
    if len(source.kinds) < 2:
        raise FileError(f"{source.path}: must have two columns, a sample and its group in each row, got {listed(source.kinds)}")
    names, labels = (source.texts(column) for column in list(source.kinds)[:2])
    return dict(zip(names, labels, strict=True))


def as_table(
    frame: PointsLike,
    *,
    columns: Any = None,
    weight_column: str | None = None,
    group_column: str | None = None,
    transform: Any = None,
    missing: str = "refuse",
    encode: Any = None,
    identifiers: str = "keep",
) -> Table:
    """A table from a pandas frame, a polars frame (also lazy), or an Arrow table; arguments as in ``read``."""
    options = ReadOptions(columns, weight_column, group_column, transform, missing=missing, encode=encode, identifiers=identifiers)
    wanted = None
    if options.columns is not None:
        wanted = [*options.columns, *(name for name in (weight_column, group_column) if name is not None)]
    plain = FrameReader(frame, wanted)
    encoders, options = encoding_of([lambda: plain], options)
    source = encoded(lambda: plain, encoders)
    choice = choose(source, options)
    if options.columns is None:
        choice = without_identifiers(source, choice, identifiers == "omit")
    file = FilePlan.of(source, choice, options.transform)
    return replace(ReadPlan([file], options).gathered(), sources=())
