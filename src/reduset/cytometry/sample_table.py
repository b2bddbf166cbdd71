"""The table of samples: which file is which sample, and what is known of it (condition, patient, run).

CATALYST's table as it is: `file_name`, `sample_id`, `condition`, `patient_id` and any further columns, all kept as text. A file is
found by its name with or without folder and suffix, and in other letters where only one fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from reduset.cytometry.lab_tables import Cells, LabTable
from reduset.cytometry.sample_columns import SAMPLE_ID
from reduset.io.reading import stems_of
from reduset.io.table import FileError, listed, nearest

FILE = ("file_name", "filename", "file", "fcs_file", "path")
IDENTIFIER = (SAMPLE_ID, "sample", "sample_name")


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
