"""Small tables that labs keep of their panel and their samples: cells of text by column, None where one is empty.

From CSV with any separator, TSV, Parquet and Feather by the readers of `reduset.io`; from Excel (`excel`), dicts and frames.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reduset.cytometry.excel import sheet_of, sheet_rows
from reduset.cytometry.sample_columns import as_text, columns_of
from reduset.io.delimited import DelimitedSource
from reduset.io.paths import named
from reduset.io.registry import open_source
from reduset.io.source import NUMBER, ReadOptions, Source, unique_names
from reduset.io.table import FileError, listed, refusing

NO_ENTRY = ("", "na", "n/a", "#n/a", "nan", "null", ".")  # in small letters; "none" is an answer

Cells = tuple[str | None, ...]


def loose(name: str) -> str:
    """A name without regard to case and to the punctuation in which spellings differ."""
    return re.sub(r"[-_./\s()]+", "", name).casefold()


@dataclass(frozen=True)
class LabTable:
    """A table of text.

    Attributes
    ----------
    source : the file it is from, or what it is where it came from memory
    columns : by name, each with as many cells as there are rows
    """

    source: str
    columns: dict[str, Cells] = field(repr=False)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def find(self, spellings: Sequence[str]) -> str | None:
        """The name of the column that is spelled in one of these ways, the first of which counts most; None where there is none."""
        for spelling in spellings:
            fitting = [name for name in self.columns if loose(name) == loose(spelling)]
            if len(fitting) > 1:
                raise FileError(f"{self.source}: the columns {fitting[0]!r} and {fitting[1]!r} mean the same; leave one out")
            if fitting:
                return fitting[0]
        return None

    def need(self, spellings: Sequence[str]) -> str:
        """The same, refused where there is none."""
        found = self.find(spellings)
        if found is None:
            raise FileError(
                f"{self.source}: needs a column {spellings[0]!r} (or {', '.join(spellings[1:])}); it has {listed(self.columns)}"
            )
        return found


def lab_table(value: Any, what: str) -> LabTable:
    """A table from a file, a dict of columns or a frame; ``what`` it is called where it has no file."""
    if isinstance(value, LabTable):
        return value
    if not isinstance(value, str | os.PathLike):
        texts = {
            name: [as_text(cell) if cell is not None else "" for cell in cells] for name, cells in columns_of(value, what).items()
        }
        return _trimmed(what, list(texts), list(zip(*texts.values(), strict=True)))
    path = named(value)
    sheet = sheet_of(path)
    if sheet is not None:
        rows = sheet_rows(*sheet)
        if not rows:
            raise FileError(f"{path}: holds nothing")
        return _trimmed(path, unique_names(rows[0])[0], rows[1:])
    source = open_source(path, ReadOptions())
    with refusing(path, source.title):
        return _trimmed(path, list(source.kinds), list(zip(*(_texts(source, name) for name in source.kinds), strict=True)))


def _texts(source: Source, name: str) -> list[str]:
    """A column as it is written, but for decimal commas."""
    if not isinstance(source, DelimitedSource):
        return list(source.texts(name))
    cells = [cell for batch in source.text_batches() for cell in batch.column(batch.schema.get_field_index(name)).to_pylist()]
    commas = source.decimal == "," and source.kinds[name] == NUMBER
    return [cell.replace(",", ".") for cell in cells] if commas else cells


def _trimmed(source: str, names: list[str], rows: Sequence[Sequence[str]]) -> LabTable:
    """Cells without blanks around them, None for those that are empty, and no blank rows or columns without a name."""
    cells = [[_entry(cell) for cell in row] for row in rows]
    cells = [row for row in cells if any(cell is not None for cell in row)]
    if not cells:
        raise FileError(f"{source}: has no rows below the names of its columns")
    columns = dict(zip(names, zip(*cells, strict=True), strict=True))
    kept = {name: column for name, column in columns.items() if any(column) or not re.fullmatch(r"column \d+", name)}
    return LabTable(source, kept)


def _entry(cell: str) -> str | None:
    text = cell.strip()
    return None if text.casefold() in NO_ENTRY else text
