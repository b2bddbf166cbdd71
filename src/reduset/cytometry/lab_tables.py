"""Tables of panels and samples: cells of text by column, None for an empty cell.

CSV with any separator, TSV, Parquet and Feather are read by `reduset.io`. Sheets of Excel and LibreOffice (.xlsx, .xlsm, .ods) are
read by python-calamine. Dicts of columns and frames of pandas, polars or Arrow are accepted too. `path.xlsx` names the first sheet,
`path.xlsx#Sheet name` another. Numbers are formatted as in the sheet: 3, not 3.0.

calamine allocates the whole rectangle up to the last cell, so one cell in the far corner of an otherwise empty sheet exhausts the
memory. The extent of every sheet is therefore read from the XML first, which costs one pass over the file. The binary formats .xls
and .xlsb offer no such check and are not supported.
"""

from __future__ import annotations

import math
import os
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from reduset._frames import framed
from reduset._validate import missing
from reduset.io import (
    NUMBER,
    DelimitedReader,
    FileError,
    FileReader,
    ReadOptions,
    check_bomb,
    head_of,
    listed,
    nearest,
    need,
    open_file,
    path_text,
    refusing,
    unique_names,
)

Cells = tuple[str | None, ...]
Columns = dict[str, tuple[Any, ...]]

SAMPLE_ID = "sample_id"
EMPTY_CELLS = ("", "na", "n/a", "#n/a", "nan", "null", ".")  # in lower case; "none" is an answer
SUFFIXES = (".xlsx", ".xlsm", ".ods")
BINARY_SUFFIXES = (".xls", ".xlsb")
MAX_CELLS = 2_000_000
XLSX_CELLS = b"sheetData"  # the element that holds the cells of a sheet
ODS_SHEETS = "content.xml"  # the member that holds the sheets
REFERENCE = re.compile(r"([A-Za-z]{1,7})(\d{1,10})")


def loose(name: str) -> str:
    """A name in lower case and without punctuation, to compare different spellings."""
    return re.sub(r"[-_./\s()]+", "", name).casefold()


def repeated(names: Sequence[Any]) -> tuple[int, int] | None:
    """The positions of the first name that occurs twice; None if all differ."""
    for k, name in enumerate(names):
        if name in names[:k]:
            return names.index(name), k
    return None


def as_text(value: Any) -> str:
    """An entry as text: whole numbers without a decimal point, dates without midnight."""
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.15g}"
    if hasattr(value, "isoformat"):
        return str(value.isoformat()).removesuffix("T00:00:00").replace("T", " ")
    return str(value).strip()


def columns_of(samples: Any, name: str = "samples") -> Columns:
    """Columns of one length, None for a missing entry.

    The index of a pandas frame is a column too, with its name or as `sample_id`, unless it numbers the rows.
    """
    samples = framed(samples)
    if isinstance(samples, Mapping):
        columns = {str(key): _entries(value, key, name) for key, value in samples.items()}
    elif hasattr(samples, "columns") and hasattr(samples, "__getitem__"):
        columns = {str(key): _entries(samples[key].to_list(), key, name) for key in list(samples.columns)}
        index: Any = getattr(samples, "index", None)
        if len(getattr(index, "names", ())) == 1 and type(index).__name__ != "RangeIndex":
            labels = _entries(index, "index", name)
            if index.name is not None or all(isinstance(label, str) for label in labels):  # otherwise numbers of rows
                columns = {SAMPLE_ID if index.name is None else str(index.name): labels} | columns
    else:
        raise TypeError(f"{name} must be a dict of columns, or a frame; got {type(samples).__name__}")
    lengths = {key: len(column) for key, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{name} must have columns of one length, got {lengths}")
    if not columns or not next(iter(lengths.values())):
        raise ValueError(f"{name} must hold at least one row, got none; omit it if there is no table")
    return columns


def _entries(column: Any, key: Any, name: str) -> tuple[Any, ...]:
    if isinstance(column, str | bytes) or not isinstance(column, Iterable):
        raise TypeError(f"{name}[{key!r}] must hold one entry per sample, got {column!r}")
    values = column.tolist() if hasattr(column, "tolist") else list(column)
    return tuple(None if missing(value) else value for value in values)


@dataclass(frozen=True)
class LabTable:
    """A table of text.

    Attributes
    ----------
    source : The file, or a name for a table from memory.
    columns : Cells of the columns by name.
    """

    source: str
    columns: dict[str, Cells] = field(repr=False)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def find(self, spellings: Sequence[str]) -> str | None:
        """The name of the column with one of these spellings, in the order of preference; None if there is none."""
        for spelling in spellings:
            matches = [name for name in self.columns if loose(name) == loose(spelling)]
            if len(matches) > 1:
                raise FileError(f"{self.source}: the columns {matches[0]!r} and {matches[1]!r} mean the same; omit one")
            if matches:
                return matches[0]
        return None

    def need(self, spellings: Sequence[str]) -> str:
        """The name of the column; an error if there is none."""
        name = self.find(spellings)
        if name is None:
            raise FileError(
                f"{self.source}: needs a column {spellings[0]!r} (or {', '.join(spellings[1:])}); it has {listed(self.columns)}"
            )
        return name

    def cells(self, spellings: Sequence[str]) -> Cells:
        """The cells of a column; empty ones if there is no such column."""
        name = self.find(spellings)
        return self.columns[name] if name is not None else (None,) * len(self)


def lab_table(value: Any, what: str) -> LabTable:
    """A table from a file, a dict of columns or a frame; ``what`` is its name if it has no file."""
    if not isinstance(value, str | os.PathLike):
        columns = columns_of(value, what)
        texts = {name: ["" if cell is None else as_text(cell) for cell in cells] for name, cells in columns.items()}
        return _trimmed(what, list(texts), list(zip(*texts.values(), strict=True)))
    path = path_text(value)
    sheet = sheet_of(path)
    if sheet is not None:
        rows = _sheet_rows(*sheet)
        if not rows:
            raise FileError(f"{path}: is empty")
        return _trimmed(path, unique_names(rows[0])[0], rows[1:])
    source = open_file(path, ReadOptions())
    with refusing(path, source.title):
        return _trimmed(path, list(source.kinds), list(zip(*(_texts(source, name) for name in source.kinds), strict=True)))


def _texts(source: FileReader, name: str) -> list[str]:
    """The text of a column, with decimal points instead of decimal commas."""
    if not isinstance(source, DelimitedReader):
        return list(source.texts(name))
    cells = [cell for batch in source.text_batches() for cell in batch.column(batch.schema.get_field_index(name)).to_pylist()]
    commas = source.decimal == "," and source.kinds[name] == NUMBER
    return [cell.replace(",", ".") for cell in cells] if commas else cells


def _trimmed(source: str, names: list[str], rows: Sequence[Sequence[str]]) -> LabTable:
    """Cells without surrounding blanks, None for empty ones; blank rows and nameless empty columns are dropped."""
    texts = [[cell.strip() for cell in row] for row in rows]
    cells = [[None if text.casefold() in EMPTY_CELLS else text for text in row] for row in texts]
    cells = [row for row in cells if any(cell is not None for cell in row)]
    if not cells:
        raise FileError(f"{source}: has no rows below the names of its columns")
    columns = dict(zip(names, zip(*cells, strict=True), strict=True))
    kept = {name: column for name, column in columns.items() if any(column) or not re.fullmatch(r"column \d+", name)}
    return LabTable(source, kept)


# -- workbooks ----------------------------------------------------------------------------------------------------------------


def sheet_of(path: str) -> tuple[str, str | None] | None:
    """The file and the sheet that a path names; None if it names no workbook."""
    if Path(path).suffix.lower() in SUFFIXES + BINARY_SUFFIXES:
        return path, None
    file, mark, sheet = path.rpartition("#")
    is_workbook = mark and Path(file).suffix.lower() in SUFFIXES + BINARY_SUFFIXES
    return (file, sheet) if is_workbook and not os.path.exists(path) else None


def _sheet_rows(path: str, sheet: str | None) -> list[list[str]]:
    """The cells of a sheet, row by row, without blank rows."""
    head_of(path)
    suffix = Path(path).suffix.lower()
    if suffix in BINARY_SUFFIXES:
        raise FileError(f"{path}: {suffix} workbooks are not supported; save it as .xlsx, .ods or CSV")
    library = need(f"{path}: reading Excel", "python_calamine", "excel")
    with refusing(path, "a workbook"):
        _check_extents(path)
        with library.load_workbook(path) as book:
            names = list(book.sheet_names)
            if not names:
                raise FileError(f"{path}: holds no sheet")
            if sheet is not None and sheet not in names:
                raise FileError(f"{path}: has no sheet {sheet!r}{nearest(sheet, names)}; it has {listed(names)}")
            rows = book.get_sheet_by_name(names[0] if sheet is None else sheet).to_python()
    texts = [[as_text(cell) for cell in row] for row in rows]
    return [row for row in texts if any(row)]


def _check_extents(path: str) -> None:
    """Raise an error if the rectangle of cells of any sheet is too large to allocate.

    The relations of a workbook may give a sheet any name, so every member of the archive is examined.
    """
    with zipfile.ZipFile(path) as packed:
        for member in packed.infolist():
            check_bomb(path, member.compress_size, member.file_size, member.filename)
            parser = expat.ParserCreate()
            extent = _Extent(parser, has_tables=path.endswith(".ods"))
            try:
                with packed.open(member) as stream:
                    parser.ParseFile(stream)
            except expat.ExpatError:
                # a damaged sheet, in which calamine may search for the end forever; pictures and the like are not XML
                if member.filename == ODS_SHEETS or XLSX_CELLS in packed.read(member):
                    raise
            if extent.cells > MAX_CELLS:
                raise FileError(
                    f"{path}: {member.filename} spans {extent.cells:,} cells, at most {MAX_CELLS:,} are read; delete the cells far "
                    "outside the table"
                )


def _local(name: str) -> str:
    """An XML name without its namespace prefix."""
    return name.rpartition(":")[2]


class _Extent:
    """The largest rectangle of cells in an XML file of a workbook, ``cells``.

    The rectangle of an .xlsx sheet ends at the last row and column that a cell names. A row or cell without a position follows the
    one before. The rectangle of an .ods table ends at the last cell that is not empty, with repetitions.
    """

    def __init__(self, parser: expat.XMLParserType, has_tables: bool) -> None:
        self.cells = self._rows = self._columns = self._row = self._column = 0
        self._has_tables, self._in_cell = has_tables, False
        parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = self._start, self._end, self._text

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        kind, local = _local(name), {_local(key): value for key, value in attributes.items()}
        reference = local.get("r", "")
        if kind == "table" and self._has_tables:
            self._rows = self._columns = self._row = 0
        elif kind in ("row", "table-row"):
            first = int(reference[:10]) if reference.isdecimal() else self._row + 1
            self._row, self._column = first + _count(local.get("number-rows-repeated")) - 1, 0
        elif kind in ("c", "table-cell", "covered-table-cell"):
            cell = REFERENCE.fullmatch(reference)
            self._column += _count(local.get("number-columns-repeated"))
            if cell:
                self._row, self._column = int(cell[2]), 0
                for letter in cell[1].upper():
                    self._column = 26 * self._column + ord(letter) - ord("A") + 1
            self._in_cell = kind != "c"
            if kind == "c" or "value-type" in local:
                self._extend()

    def _text(self, data: str) -> None:
        if self._in_cell and data.strip():
            self._extend()

    def _end(self, name: str) -> None:
        self._in_cell = self._in_cell and not _local(name).endswith("table-cell")

    def _extend(self) -> None:
        self._rows, self._columns = max(self._rows, self._row), max(self._columns, self._column)
        self.cells = max(self.cells, self._rows * self._columns)


def _count(repeated: str | None) -> int:
    return int(repeated[:10]) if repeated and repeated.isdecimal() else 1
