"""The files of a study, and the sample of each file.

The files are those named, or the FCS files of a folder, which may also hold a panel, a table of samples, or notes. FCS files are
recognised by their suffix or first bytes. If a folder has none, its subfolders are searched. A folder without any FCS file has one
file a sample of another format, such as CSV or Parquet.

The table of samples is CATALYST's: `file_name`, `sample_id`, `condition`, `patient_id` and any further columns, all as text. A file
is found by its name, with or without folder and suffix, and without case if only one file fits. Without a table each file is a
sample.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from reduset.cytometry.lab_tables import Cells, LabTable
from reduset.cytometry.samples import SAMPLE_ID
from reduset.io import FileError, counted_order, format_by_suffix, listed, nearest, one_line, path_text, stems_of, usual_suffixes

FILE = ("file_name", "filename", "file", "fcs_file", "path")
IDENTIFIER = (SAMPLE_ID, "sample", "sample_name")
FCS = "FCS"


@dataclass(frozen=True)
class NamedSamples:
    """Samples by name.

    Attributes
    ----------
    files : the path of each, in the order of the table
    table : the rows of these by column, in the same order
    absent : samples of the table whose file is not there, with the reason
    unnamed : files that the table does not name
    """

    files: dict[str, str]
    table: dict[str, Cells] = field(repr=False)
    absent: dict[str, str]
    unnamed: tuple[str, ...]

    def rows(self, names: Sequence[str]) -> dict[str, Cells]:
        """The table of some of the samples, in their order."""
        places = [list(self.files).index(name) for name in names]
        return {column: tuple(cells[place] for place in places) for column, cells in self.table.items()}


def by_file(paths: Sequence[str]) -> NamedSamples:
    """Samples without a table, called by their files."""
    return NamedSamples(dict(zip(stems_of(list(paths)), paths, strict=True)), {}, {}, ())


def by_table(table: LabTable, paths: Sequence[str]) -> NamedSamples:
    """The samples of a table, each with its file among those that there are."""
    column = table.need(FILE)
    entries = [_filled(table, column, row, entry) for row, entry in enumerate(table.columns[column], 1)]
    found = [_fitting(table.source, entry, paths) for entry in entries]
    _refuse_twice(table.source, column, entries, found)
    names = _names(table, entries, found)
    if not any(found):
        raise FileError(
            f"{table.source}: names none of the files; {column} is {listed(entries, 3)}, the files are "
            f"{listed((Path(path).name for path in paths), 3)}"
        )
    reasons = {
        name: f"no file {entry!r}, which {table.source} names{nearest(entry, [Path(path).name for path in paths])}"
        for name, entry, path in zip(names, entries, found, strict=True)
        if path is None
    }
    there = [row for row, path in enumerate(found) if path is not None]
    columns = {name: tuple(cells[row] for row in there) for name, cells in table.columns.items()}
    files = {names[row]: path for row in there if (path := found[row]) is not None}
    return NamedSamples(files, columns, reasons, tuple(path for path in paths if path not in found))


def _filled(table: LabTable, column: str, row: int, entry: str | None) -> str:
    if entry is None:
        raise FileError(f"{table.source}: row {row} has no {column}; fill it, or leave the row out")
    return entry.replace("\\", "/")


def _fitting(source: str, entry: str, paths: Sequence[str]) -> str | None:
    """The file that an entry means: by its whole path, its name, its name in other letters, or without suffix."""
    parts = PurePosixPath(entry).parts
    name = parts[-1] if parts else entry
    for fits in (
        lambda path: path.parts[-len(parts) :] == parts,
        lambda path: path.name == name,
        lambda path: path.name.casefold() == name.casefold(),
        lambda path: stems_of([str(path)])[0].casefold() == name.casefold(),
    ):
        fitting = [path for path in paths if fits(Path(path))]
        if len(fitting) > 1:
            raise FileError(f"{source}: {entry!r} fits {fitting[0]} and {fitting[1]}; write it with its folder and suffix")
        if fitting:
            return fitting[0]
    return None


def _refuse_twice(source: str, column: str, entries: list[str], found: list[str | None]) -> None:
    seen: dict[str, str] = {}
    for entry, path in zip(entries, found, strict=True):
        key = path or entry
        if key in seen:
            raise FileError(f"{source}: {column} must name each file once, got {seen[key]!r} and {entry!r}; leave one out")
        seen[key] = entry


def _names(table: LabTable, entries: list[str], found: list[str | None]) -> list[str]:
    """The names of samples: `sample_id`, or that of the file."""
    column = table.find(IDENTIFIER)
    given = table.columns[column] if column is not None else (None,) * len(entries)
    stems = stems_of([path or entry for path, entry in zip(found, entries, strict=True)])
    names = [name or stem for name, stem in zip(given, stems, strict=True)]
    for row, name in enumerate(names):
        if name in names[:row]:
            rows = f"rows {names.index(name) + 1} and {row + 1}"
            raise FileError(f"{table.source}: {column or SAMPLE_ID} must differ between samples, got {name!r} in {rows}")
    return names


def study_files(folder_or_files: Any, besides: Iterable[str] = ()) -> list[str]:
    """The paths of all files, in the order in which people count; ``besides`` are tables that may lie in the same folder."""
    several = isinstance(folder_or_files, Sequence) and not isinstance(folder_or_files, str)
    given = [path_text(path) for path in (folder_or_files if several else [folder_or_files])]
    if not given:
        raise FileError("no files were named")
    others = {os.path.realpath(path) for path in besides}
    found = [name for path in given for name in (_inside(path, others) if os.path.isdir(path) else [path])]
    if len({os.path.realpath(name) for name in found}) < len(found):
        twice = next(name for place, name in enumerate(found) if name in found[:place] or found.count(name) > 1)
        raise FileError(f"{twice}: is named twice; each file is one sample")
    return found


def _inside(folder: str, others: set[str]) -> list[str]:
    by_format: dict[str, list[str]] = {}
    for path in _files(folder):
        kind = _format(path)
        if kind is not None and os.path.realpath(path) not in others:
            by_format.setdefault(kind, []).append(path)
    if FCS not in by_format:
        deeper = [path for path in _deeper(folder) if _format(path) == FCS]
        by_format |= {FCS: deeper} if deeper else {}
    if FCS in by_format:
        return by_format[FCS]
    if len(by_format) > 1:
        raise FileError(f"{folder}: holds files of several formats, {listed(by_format)}, and no FCS files; name those to read")
    if not by_format:
        raise FileError(f"{folder}: is a folder without FCS files or others of data ({usual_suffixes()} and so on); name some")
    return next(iter(by_format.values()))


def _files(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_file() and not entry.name.startswith((".", "_"))]
    except OSError as error:
        raise FileError(f"{folder}: cannot be looked into ({one_line(error)})") from error
    return [os.path.join(folder, name) for name in sorted(names, key=counted_order)]


def _deeper(folder: str) -> Iterator[str]:
    """The files of all folders inside, whose names do not begin with a dot or an underscore."""
    for where, folders, _ in os.walk(folder):
        folders[:] = sorted((name for name in folders if not name.startswith((".", "_"))), key=counted_order)
        if where != folder:
            yield from _files(where)


def _format(path: str) -> str | None:
    """The format that a file's suffix says; FCS by its first bytes where that says nothing."""
    said = format_by_suffix(path)
    if said is not None:
        return said.title
    if Path(path).suffix.lower() in (".wsp", ".xml"):
        return None
    try:
        with open(path, "rb") as stream:
            return FCS if stream.read(3) == FCS.encode() else None
    except OSError:
        return None
