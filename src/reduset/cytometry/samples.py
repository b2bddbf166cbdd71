"""Samples of a study: the cells of each sample on named markers, and the table of samples.

Samples come from files (`reduset.cytometry.read_cohort`), or from arrays and frames in memory (`SampleSet.of`). The table of
samples is a dict of columns, or a frame of pandas, polars or Arrow.

Files are given by name, or as a folder of FCS files. The folder may also hold a panel, a table of samples, or notes. FCS files are
recognised by their suffix or first bytes. If a folder has none, its subfolders are searched. A folder without any FCS file needs
files of one other format, such as CSV or Parquet, one per sample.

A table of samples for files is CATALYST's. Its columns are `file_name`, `sample_id`, `condition`, `patient_id` and others, all as
text. A file is found by its name, with or without folder and suffix. Case is ignored if only one file matches then.
Without a table each file is a sample.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._types import BagsLike, Floats, Indices
from reduset.cytometry.lab_tables import SAMPLE_ID, Cells, Columns, LabTable, as_text, columns_of, repeated
from reduset.io import FileError, counted_order, format_by_suffix, listed, nearest, one_line, path_text, stems_of, usual_suffixes

MAX_NAMES = 5  # in a message
FILE = ("file_name", "filename", "file", "fcs_file", "path")
IDENTIFIER = (SAMPLE_ID, "sample", "sample_name")
FCS = "FCS"


@dataclass(frozen=True)
class SampleSet:
    """The samples of a cohort.

    Attributes
    ----------
    names : Unique names of the N samples.
    cells : Cells of each sample, (n, d), with one column per marker, on the scale of the distances.
    markers : Names of the d columns.
    table : Table of samples by column. Each column has N entries, text or numbers, None for a missing one.
    state : Markers that describe cells and do not define their population.
    counted : Number of removed events by step of reading and cleaning, (N,). The first entry, "events", is the size of the file.
    left_out : Samples that were requested and are missing, with the reason.
    notes : Remarks on the files.
    sources : File of each sample, if samples came from files.
    events : Numbers of the cells of each sample among the events of its file, (n,), ascending; () without files.
    channels : Channels of the d markers in the file of each sample.
    compensated : Whether spillover was removed by the matrix of each file.
    scales : Transform of the values, by marker.
    """

    names: tuple[str, ...]
    cells: tuple[Floats, ...] = field(repr=False)
    markers: tuple[str, ...]
    table: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, repr=False)
    state: frozenset[str] = frozenset()
    counted: Mapping[str, NDArray[np.int64]] = field(default_factory=dict, repr=False)
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = field(default=(), repr=False)
    sources: tuple[str, ...] = field(default=(), repr=False)
    events: tuple[Indices, ...] = field(default=(), repr=False)
    channels: tuple[tuple[str, ...], ...] = field(default=(), repr=False)
    compensated: bool = False
    scales: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(N,) the number of cells of each sample."""
        return np.array([len(cells) for cells in self.cells], np.int64)

    def column(self, name: str) -> tuple[Any, ...]:
        """A column of the table of samples."""
        if name not in self.table:
            raise ValueError(f"the table of samples has no column {name!r}; it has {', '.join(self.table) or 'none'}")
        return self.table[name]

    @classmethod
    def of(cls, bags: BagsLike, samples: Any = None, markers: Sequence[str] | None = None, *, sample: Any = None) -> SampleSet:
        """Samples from arrays or frames in memory, without transform or cleaning.

        Parameters
        ----------
        bags : A list of (n, d) arrays or frames, a mapping of names to them, or one long table with ``sample``.
        samples : Table of samples, a dict of columns or a frame. Rows are matched by the column `sample_id`, the column named
            ``sample``, or the index of a pandas frame. If the samples have no names, rows are matched by their order.
        markers : Names of the d columns; by default the names of the columns of the frames, or x0, x1, …
        sample : Column of a long table with the sample of each row, or one label per row.
        """
        bag_names, cells, columns = _validate.bags(bags, sample)
        if markers is None:
            titles = tuple(map(str, columns)) if columns is not None else tuple(f"x{k}" for k in range(cells[0].shape[1]))
        elif isinstance(markers, str) or not all(isinstance(name, str) for name in markers) or len(markers) != cells[0].shape[1]:
            raise ValueError(f"markers must be {cells[0].shape[1]} names, one per column; got {markers!r}")
        else:
            titles = tuple(markers)
            _check_unique(titles, "markers must have different names")
        nameless = sample is None and not isinstance(bags, Mapping)
        names = [f"sample {k + 1}" for k in range(len(bag_names))] if nameless else [as_text(name) for name in bag_names]
        _check_unique(names, "bags must have names that differ as text")
        table: Columns = {}
        left_out: dict[str, str] = {}
        if samples is not None:
            table, names, left_out = _matched(columns_of(samples), names, nameless, sample)
        floats = tuple(bag if bag.dtype.kind == "f" else bag.astype(np.float64) for bag in cells)
        return cls(tuple(names), floats, titles, table, left_out=left_out)


def _check_unique(names: Sequence[str], rule: str) -> None:
    twice = repeated(names)
    if twice:
        raise ValueError(f"{rule}, got {names[twice[0]]!r} twice")


def _matched(table: Columns, names: list[str], nameless: bool, sample: Any) -> tuple[Columns, list[str], dict[str, str]]:
    """The rows of the table in the order of the samples, the names of the samples, and samples of the table without cells."""
    key = next((key for key in table if key.lower() == SAMPLE_ID), sample if isinstance(sample, str) and sample in table else None)
    count = len(next(iter(table.values())))
    if key is None and not nameless:
        raise ValueError(f"samples must have a column {SAMPLE_ID!r} to be matched with {names[0]!r}; it has {', '.join(table)}")
    if nameless and count != len(names):
        raise ValueError(f"samples must have a row for each of the {len(names)} samples, in their order; got {count}")
    if key is None:
        return table, names, {}
    ids = ["" if entry is None else as_text(entry) for entry in table[key]]
    if "" in ids:
        raise ValueError(f"samples must have an entry of {key!r} in every row, got none in row {ids.index('') + 1}")
    _check_unique(ids, f"samples must have another {key!r} in each row")
    if nameless:
        return table, ids, {}
    absent = [name for name in names if name not in ids]
    if absent:
        raise ValueError(
            f"samples must have a row for every sample, got none for {listed(absent, MAX_NAMES)}; "
            f"{key!r} has {listed(ids, MAX_NAMES)}"
        )
    rows = [ids.index(name) for name in names]
    others = {name: "is in the table of samples, but has no cells" for name in ids if name not in names}
    return {name: tuple(column[row] for row in rows) for name, column in table.items()}, names, others


# -- files --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NamedSamples:
    """Samples by name.

    Attributes
    ----------
    files : Path of each sample, in the order of the table.
    table : Rows of these samples by column, in the same order.
    absent : Samples of the table without a file, with the reason.
    unnamed : Files that the table does not name.
    """

    files: dict[str, str]
    table: dict[str, Cells] = field(repr=False)
    absent: dict[str, str]
    unnamed: tuple[str, ...]

    def rows(self, names: Sequence[str]) -> dict[str, Cells]:
        """The rows of the table for these samples, in their order."""
        positions = [list(self.files).index(name) for name in names]
        return {column: tuple(cells[k] for k in positions) for column, cells in self.table.items()}


def by_file(paths: Sequence[str]) -> NamedSamples:
    """Samples without a table, named by their files."""
    return NamedSamples(dict(zip(stems_of(list(paths)), paths, strict=True)), {}, {}, ())


def by_table(table: LabTable, paths: Sequence[str]) -> NamedSamples:
    """The samples of a table, each with its file."""
    column = table.need(FILE)
    entries = []
    for row, entry in enumerate(table.columns[column], 1):
        if entry is None:
            raise FileError(f"{table.source}: row {row} has no {column}; fill it, or omit the row")
        entries.append(entry.replace("\\", "/"))
    files = [_matching_file(table.source, entry, paths) for entry in entries]
    keys = [path or entry for entry, path in zip(entries, files, strict=True)]
    if twice := repeated(keys):
        first, second = (entries[k] for k in twice)
        raise FileError(f"{table.source}: {column} must name each file once, got {first!r} and {second!r}; omit one")
    names = [name or stem for name, stem in zip(table.cells(IDENTIFIER), stems_of(keys), strict=True)]
    if twice := repeated(names):
        rows, title = f"rows {twice[0] + 1} and {twice[1] + 1}", table.find(IDENTIFIER) or SAMPLE_ID
        raise FileError(f"{table.source}: {title} must differ between samples, got {names[twice[0]]!r} in {rows}")
    base_names = [Path(path).name for path in paths]
    if not any(files):
        raise FileError(
            f"{table.source}: names none of the files; {column} is {listed(entries, 3)}, the files are {listed(base_names, 3)}"
        )
    absent = {
        name: f"no file {entry!r}, which {table.source} names{nearest(entry, base_names)}"
        for name, entry, path in zip(names, entries, files, strict=True)
        if path is None
    }
    present = [row for row, path in enumerate(files) if path is not None]
    columns = {name: tuple(cells[row] for row in present) for name, cells in table.columns.items()}
    unnamed = tuple(path for path in paths if path not in files)
    return NamedSamples({names[row]: str(files[row]) for row in present}, columns, absent, unnamed)


def _matching_file(source: str, entry: str, paths: Sequence[str]) -> str | None:
    """The file that matches an entry by its whole path, its name, its name without case, or without suffix."""
    parts = PurePosixPath(entry).parts
    name = parts[-1] if parts else entry
    for fits in (
        lambda path: path.parts[-len(parts) :] == parts,
        lambda path: path.name == name,
        lambda path: path.name.casefold() == name.casefold(),
        lambda path: stems_of([str(path)])[0].casefold() == name.casefold(),
    ):
        matches = [path for path in paths if fits(Path(path))]
        if len(matches) > 1:
            raise FileError(f"{source}: {entry!r} fits {matches[0]} and {matches[1]}; write it with its folder and suffix")
        if matches:
            return matches[0]
    return None


def study_files(folder_or_files: Any, tables: Iterable[str] = ()) -> list[str]:
    """The paths of all files, ordered by the numbers in their names; ``tables`` in the same folder are excluded."""
    several = isinstance(folder_or_files, Sequence) and not isinstance(folder_or_files, str)
    given = [path_text(path) for path in (folder_or_files if several else [folder_or_files])]
    if not given:
        raise FileError("no files were named")
    excluded = {os.path.realpath(path) for path in tables}
    files = [file for path in given for file in (_data_files(path, excluded) if os.path.isdir(path) else [path])]
    if twice := repeated([os.path.realpath(file) for file in files]):
        raise FileError(f"{files[twice[1]]}: is named twice; each file is one sample")
    return files


def _data_files(folder: str, excluded: set[str]) -> list[str]:
    """The FCS files of a folder, or of its subfolders; otherwise its files of another format."""
    by_format: dict[str, list[str]] = {}
    below = list[str]()
    for parent, paths in _folders(folder):
        for path in paths:
            kind = _format(path)
            if parent != folder:
                below += [path] if kind == FCS else []
            elif kind is not None and os.path.realpath(path) not in excluded:
                by_format.setdefault(kind, []).append(path)
        if FCS in by_format:
            return by_format[FCS]
    if below:
        return below
    if len(by_format) > 1:
        raise FileError(f"{folder}: holds files of several formats, {listed(by_format)}, and no FCS files; name the files to read")
    if not by_format:
        raise FileError(f"{folder}: is a folder without FCS files or other data ({usual_suffixes()} and so on); name some")
    return next(iter(by_format.values()))


def _folders(folder: str) -> Iterator[tuple[str, list[str]]]:
    """A folder and its subfolders with the paths of their files, except names that begin with a dot or an underscore."""

    def fail(error: OSError) -> None:
        raise FileError(f"{error.filename}: cannot be listed ({one_line(error)})") from error

    for parent, folders, names in os.walk(folder, onerror=fail):
        folders[:], files = (
            sorted((name for name in found if not name.startswith((".", "_"))), key=counted_order) for found in (folders, names)
        )
        yield parent, [os.path.join(parent, name) for name in files if os.path.isfile(os.path.join(parent, name))]


def _format(path: str) -> str | None:
    """The format of a file by its suffix; FCS by its first bytes if the suffix is unknown."""
    by_suffix = format_by_suffix(path)
    if by_suffix is not None:
        return by_suffix.title
    if Path(path).suffix.lower() in (".wsp", ".xml"):
        return None
    try:
        with open(path, "rb") as stream:
            return FCS if stream.read(3) == FCS.encode() else None
    except OSError:
        return None
