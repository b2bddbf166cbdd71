"""Sheets of Excel and LibreOffice (.xlsx, .xls, .ods) as rows of text, by python-calamine.

A sheet is the first of its file, or that of `path.xlsx#Sheet name`. Numbers are told as the sheet shows them: 3, not 3.0.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from reduset.cohort.sample_columns import as_text
from reduset.io.guard import check_bomb, need
from reduset.io.paths import head_of
from reduset.io.table import FileError, listed, nearest, refusing

SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


def sheet_of(path: str) -> tuple[str, str | None] | None:
    """The file and the sheet that a path names; None for what is no such file."""
    if Path(path).suffix.lower() in SUFFIXES:
        return path, None
    file, mark, sheet = path.rpartition("#")
    return (file, sheet) if mark and Path(file).suffix.lower() in SUFFIXES and not os.path.exists(path) else None


def sheet_rows(path: str, sheet: str | None) -> list[list[str]]:
    """The cells of a sheet, row by row, each as long as the first that is not blank."""
    head_of(path)
    library = need(f"{path}: reading Excel", "python_calamine", "excel")
    with refusing(path, "a workbook"):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                for member in packed.infolist():
                    check_bomb(path, member.compress_size, member.file_size, member.filename)
        with library.load_workbook(path) as book:
            names = list(book.sheet_names)
            if not names:
                raise FileError(f"{path}: holds no sheet")
            if sheet is not None and sheet not in names:
                raise FileError(f"{path}: has no sheet {sheet!r}{nearest(sheet, names)}; it has {listed(names)}")
            rows = book.get_sheet_by_name(names[0] if sheet is None else sheet).to_python()
    texts = [[as_text(cell) for cell in row] for row in rows]
    return [row for row in texts if any(row)]
