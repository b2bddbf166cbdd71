"""Small tables of text: the same cells from every format, blank ones None, and the column that a spelling means."""

import sys
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from lab_files import write_ods_sheet
from reduset.cytometry.lab_tables import lab_table
from reduset.io import FileError

CELLS = {"file_name": ("a.fcs", "b.fcs", "c.fcs"), "dose": ("3", "2.5", None), "condition": ("none", None, "007")}
LINES = ["file_name,dose,condition", " a.fcs ,3,none", ",,", "b.fcs,2.5,NA", "c.fcs,,007"]


def write_sheets(path, sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


ROWS = [["file_name", "dose", "condition"], [" a.fcs ", 3.0, "none"], [None] * 3, ["b.fcs", 2.5, "NA"], ["c.fcs", None, "007"]]


def write_kind(kind, folder):
    path = folder / f"t.{kind.split('#')[0]}"
    columns = {name: list(cells) for name, cells in CELLS.items()}
    writers = {
        "csv": lambda: path.write_text("\n".join(LINES)),
        "tsv": lambda: path.write_text("\n".join(LINES).replace(",", "\t")),
        "txt": lambda: path.write_bytes(("\ufeff" + "\r\n".join(LINES).replace(",", ";")).encode()),
        "parquet": lambda: pq.write_table(pa.table(columns), path),
        "feather": lambda: pa.feather.write_feather(pa.table(columns), str(path)),
        "xlsx": lambda: write_sheets(path, {"first": ROWS, "other": [["x"], ["y"]]}),
        "xlsx#the second": lambda: write_sheets(path, {"first": [["x"], ["y"]], "the second": ROWS}),
    }
    writers[kind]()
    return f"{path}#{kind.split('#')[1]}" if "#" in kind else path


@pytest.mark.parametrize("kind", ["csv", "tsv", "txt", "parquet", "feather", "xlsx", "xlsx#the second"])
def test_every_format_gives_the_same_cells(tmp_path, kind):
    assert lab_table(write_kind(kind, tmp_path), "samples").columns == CELLS


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table], ids=["dict", "pandas", "polars", "arrow"])
def test_dicts_and_frames_give_the_same_cells(make):
    columns = {"file_name": ["a.fcs", "b.fcs", "c.fcs"], "dose": [3.0, 2.5, None], "condition": ["none", None, "007"]}
    assert lab_table(make(columns), "samples").columns == CELLS


def test_decimal_commas_become_points_in_columns_of_numbers_alone(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("file;dose;word\na;2,5;x,y\nb;3,25;z\n")
    assert lab_table(path, "samples").columns == {"file": ("a", "b"), "dose": ("2.5", "3.25"), "word": ("x,y", "z")}


def test_columns_are_found_in_any_spelling_and_two_that_mean_the_same_are_a_clash():
    table = lab_table({"File Name": ["a"], "x": ["1"]}, "samples")
    assert table.find(("file_name", "file")) == "File Name"
    assert table.find(("path",)) is None
    with pytest.raises(FileError, match=r"samples: needs a column 'path' \(or folder\); it has File Name, x"):
        table.need(("path", "folder"))
    with pytest.raises(FileError, match="the columns 'file_name' and 'FileName' mean the same"):
        lab_table({"file_name": ["a"], "FileName": ["b"]}, "samples").find(("file_name",))


def test_sheets_of_libreoffice_are_read_as_those_of_excel(tmp_path):
    path = write_ods_sheet(tmp_path / "t.ods", [[cell or "" for cell in row] for row in ROWS])
    assert lab_table(path, "samples").columns == CELLS


def test_a_sheet_of_libreoffice_whose_elements_do_not_end_is_refused(tmp_path):
    path = write_ods_sheet(tmp_path / "t.ods", ROWS)
    with zipfile.ZipFile(path) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in members.items():
            packed.writestr(name, content.replace(b"</table:table>", b"</table:tabl>"))
    with pytest.raises(FileError, match=r"t\.ods: cannot be read as a workbook; it is damaged"):
        lab_table(path, "samples")


def test_dates_and_flags_of_a_sheet_are_told_as_text(tmp_path):
    day = np.datetime64("2024-03-05").astype(object)
    path = write_sheets(tmp_path / "t.xlsx", {"s": [["when", "ok", "n"], [day, True, 12345678.0]]})
    assert lab_table(path, "samples").columns == {"when": ("2024-03-05",), "ok": ("True",), "n": ("12345678",)}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"file_name,sample_id\n", "has a line of names and no rows"),
        ("t.csv", b"file_name,sample_id\n,\n", "has no rows below the names of its columns"),
        ("t.csv", b"", "is empty"),
        ("t.xlsx", b"PK\x03\x04 and no more", "cannot be read as a workbook; it is damaged"),
        ("t.xlsx", b"", "is empty"),
        ("t.pkl", b"\x80\x04N.", "pickles can run code"),
    ],
)
def test_tables_that_hold_nothing_are_refused_in_one_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FileError, match=message) as refused:
        lab_table(path, "samples")
    assert str(refused.value).startswith(str(path))


def test_a_sheet_that_is_not_there_is_named_with_those_that_are(tmp_path):
    path = write_sheets(tmp_path / "t.xlsx", {"panel": ROWS, "empty": []})
    with pytest.raises(FileError, match=r"has no sheet 'Panel' \(did you mean 'panel'\?\); it has panel, empty"):
        lab_table(f"{path}#Panel", "panel")
    with pytest.raises(FileError, match="is empty"):
        lab_table(f"{path}#empty", "panel")
    with pytest.raises(FileError, match="no such file"):
        lab_table(tmp_path / "other.xlsx", "panel")


def test_without_the_library_of_excel_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    path = write_sheets(tmp_path / "t.xlsx", {"s": ROWS})
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(FileError, match=r"needs python-calamine, which is not installed: pip install 'reduset\[excel\]'"):
        lab_table(path, "samples")


def test_what_is_no_table_is_refused():
    with pytest.raises(TypeError, match=r"samples .*got int"):
        lab_table(3, "samples")
    with pytest.raises(TypeError, match=r"panel\['a'\] .*got 'text'"):
        lab_table({"a": "text"}, "panel")
    with pytest.raises(ValueError, match="columns of one length"):
        lab_table({"a": [1], "b": [1, 2]}, "panel")


def write_ods(path, rows):
    """A minimal OpenDocument sheet of these XML rows."""
    spaces = " ".join(f'xmlns:{part}="urn:oasis:names:tc:opendocument:xmlns:{part}:1.0"' for part in ("office", "table", "text"))
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        packed.writestr("META-INF/manifest.xml", "<manifest/>")
        packed.writestr(
            "content.xml",
            f"<office:document-content {spaces}><office:body><office:spreadsheet><table:table table:name='S'>{rows}</table:table>"
            "</office:spreadsheet></office:body></office:document-content>",
        )
    return path


def ods_cell(text):
    return f"<table:table-cell office:value-type='string'><text:p>{text}</text:p></table:table-cell>"


def test_a_cell_in_the_far_corner_is_named_before_memory_is_allocated(tmp_path):
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = "channel", 1
    book.save(tmp_path / "corner.xlsx")
    far = "<table:table-row table:number-rows-repeated='1048574'><table:table-cell/></table:table-row>"
    last = f"<table:table-row><table:table-cell table:number-columns-repeated='16382'/>{ods_cell('x')}</table:table-row>"
    write_ods(tmp_path / "corner.ods", f"<table:table-row>{ods_cell('channel')}</table:table-row>{far}{last}")
    for name, cells in {"corner.xlsx": "17,179,869,184", "corner.ods": "17,178,820,608"}.items():
        with pytest.raises(FileError, match=f"{name}: .* spans {cells} cells"):
            lab_table(tmp_path / name, "panel")


def test_a_sheet_under_another_name_in_the_archive_is_checked_too(tmp_path):
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = "channel", 1
    book.save(tmp_path / "plain.xlsx")
    with zipfile.ZipFile(tmp_path / "plain.xlsx") as given, zipfile.ZipFile(tmp_path / "hidden.xlsx", "w") as changed:
        for member in given.namelist():
            content = given.read(member).replace(b"worksheets/sheet1.xml", b"worksheets/data.bin")
            changed.writestr(member.replace("sheet1.xml", "data.bin"), content)
    with pytest.raises(FileError, match=r"data\.bin spans 17,179,869,184 cells"):
        lab_table(tmp_path / "hidden.xlsx", "panel")


def with_rows(path, rows):
    """A workbook whose first sheet has these XML rows."""
    write_sheets(path.with_name("plain.xlsx"), {"s": [["channel"]]})
    with zipfile.ZipFile(path.with_name("plain.xlsx")) as given, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as changed:
        for member in given.namelist():
            content = given.read(member)
            if member.endswith("sheet1.xml"):
                head, tail = content.split(b"<sheetData>")[0], content.split(b"</sheetData>")[1]
                content = head + b"<sheetData>" + rows.encode() + b"</sheetData>" + tail
            changed.writestr(member, content)
    return path


def test_cells_without_a_position_follow_the_one_before(tmp_path):
    first, cells = '<row r="1"><c r="A1"><v>1</v></c></row>', "<c><v>2</v></c>" * 400
    far = with_rows(tmp_path / "far.xlsx", f'{first}<row r="1048576">{cells}</row>')
    assert far.stat().st_size < 10_000
    with pytest.raises(FileError, match=r"far\.xlsx: .* spans 419,430,400 cells, at most 2,000,000 are read"):
        lab_table(far, "panel")
    rows = "<row><c><v>7</v></c><c><v>8</v></c></row>" * 2
    near = with_rows(tmp_path / "near.xlsx", f'<row r="1"><c r="A1"><v>1</v></c><c><v>2</v></c></row>{rows}')
    assert lab_table(near, "panel").columns == {"1": ("7", "7"), "2": ("8", "8")}


def test_an_element_of_the_other_format_does_not_hide_a_rectangle(tmp_path):
    rows = '<row r="1048576"><c r="A1048576"><v>1</v></c></row><table/><row r="1"><c r="XFD1"><v>1</v></c></row>'
    with pytest.raises(FileError, match=r"far\.xlsx: .* spans 17,179,869,184 cells"):
        lab_table(with_rows(tmp_path / "far.xlsx", rows), "panel")


def test_repeated_empty_cells_after_a_table_are_no_part_of_it(tmp_path):
    blank = "<table:table-cell table:number-columns-repeated='16382'/>"
    rows = [f"<table:table-row>{ods_cell(a)}{ods_cell(b)}{blank}</table:table-row>" for a, b in [("file", "dose"), ("a.fcs", "3")]]
    wide = "<table:table-cell table:number-columns-repeated='16384'/>"
    below = f"<table:table-row table:number-rows-repeated='1048574'>{wide}</table:table-row>"
    path = write_ods(tmp_path / "samples.ods", "".join(rows) + below)
    assert lab_table(path, "samples").columns == {"file": ("a.fcs",), "dose": ("3",)}


@pytest.mark.parametrize("suffix", [".xls", ".xlsb"])
def test_binary_workbooks_name_the_formats_to_save_them_in(tmp_path, suffix):
    (tmp_path / f"panel{suffix}").write_bytes(b"\xd0\xcf\x11\xe0")
    with pytest.raises(FileError, match=rf"panel{suffix}: {suffix} workbooks are not supported; save it as \.xlsx, \.ods or CSV"):
        lab_table(tmp_path / f"panel{suffix}", "panel")
