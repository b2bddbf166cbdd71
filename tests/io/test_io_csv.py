"""CSV as people have it: separators, decimal commas, encodings, headers, and words among numbers."""

import gzip

import numpy as np
import pytest

from reduset import io

TABLE = [[1.5, -2.0], [3.25, 1e-3]]


def read(tmp_path, text, name="t.csv", encoding="utf-8", **options):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return io.read(path, **options)


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1.5,-2\n3.25,1e-3\n",
        "a;b\n1.5;-2\n3.25;1e-3",
        "a;b\r\n1,5;-2\r\n3,25;1e-3\r\n",
        "a\tb\n1.5\t-2\n3.25\t1e-3\n",
        "a|b\n1.5|-2\n3.25|1e-3\n",
        '"a","b"\n"1.5","-2"\n3.25,1e-3\n',
        "\n\na,b\n1.5,-2\n\n3.25,1e-3\n\n",
        " a , b \n 1.5, -2\n3.25 ,1e-3\n",
        "\ufeffa,b\n1.5,-2\n3.25,1e-3\n",
    ],
    ids=["commas", "semicolons", "decimal commas", "tabs", "bars", "quotes", "blank lines", "blanks", "mark"],
)
def test_separators_are_found_out(tmp_path, text):
    table = read(tmp_path, text)
    assert table.columns == ("a", "b")
    np.testing.assert_array_equal(table.values, TABLE)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_encodings_are_found_out(tmp_path, encoding):
    table = read(tmp_path, "größe,ort\n1.5,Köln\n2.5,Bär\n", encoding=encoding, group_column="ort")
    assert table.columns == ("größe",)
    assert table.groups.tolist() == ["Köln", "Bär"]
    assert bool([note for note in table.notes if "Latin-1" in note]) == (encoding == "latin-1")


def test_a_letter_cut_by_the_end_of_the_first_look_is_no_other_encoding(tmp_path, monkeypatch):
    monkeypatch.setattr("reduset.io.delimited.HEAD", 7)  # between the two bytes of é
    table = read(tmp_path, "a,o\n1,é\n", group_column="o")
    assert table.groups.tolist() == ["é"]
    assert table.notes == ()


def test_a_first_line_of_numbers_is_data(tmp_path):
    table = read(tmp_path, "1.5,-2\n3.25,1e-3\n")
    assert table.columns == ("column 1", "column 2")
    np.testing.assert_array_equal(table.values, TABLE)
    assert "its first line holds numbers" in table.notes[0]


def test_columns_named_twice_or_not_at_all_get_names(tmp_path):
    table = read(tmp_path, "a,a,,a (2)\n1,2,3,4\n")
    assert table.columns == ("a", "a (3)", "column 3", "a (2)")
    assert table.notes == ("another column named 'a' is called 'a (3)'",)


def test_names_may_hold_separators_quotes_and_line_breaks(tmp_path):
    table = read(tmp_path, '"a,1","say ""b""","c\nd"\n1,2,3\n4,5,6\n')
    assert table.columns == ("a,1", 'say "b"', "c\nd")
    np.testing.assert_array_equal(table.values, [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize("word", ["", "NA", "NaN", "nan", "null", "N/A", "None"])
def test_marks_of_missing_values_are_known(tmp_path, word):
    with pytest.raises(io.FileError, match="column 'b' has no value in row 2"):
        read(tmp_path, f"a,b\n1,2\n3,{word}\n5,6\n")
    table = read(tmp_path, f"a,b\n1,2\n3,{word}\n5,6\n", missing="drop")
    np.testing.assert_array_equal(table.values, [[1, 2], [5, 6]])


@pytest.mark.covering_cases
@pytest.mark.parametrize("row", [1, 2, 999, 300_000])
@pytest.mark.parametrize("columns", [None, ["b"]])
def test_a_word_among_numbers_is_named_with_its_column_and_row(tmp_path, row, columns):
    lines = ["1.5,2"] * 300_000
    lines[row - 1] = "1.5,oops"
    with pytest.raises(io.FileError, match=f"t.csv: column 'b' .*got 'oops' in row {row}"):
        read(tmp_path, "\n".join(["a,b", *lines]), columns=columns)


def test_whole_numbers_may_become_fractions_late_in_the_file(tmp_path):
    table = read(tmp_path, "a\n" + "1\n" * 3_000_000 + "1.5\n")
    assert table.values[-1] == 1.5
    assert len(table) == 3_000_001


def test_columns_of_words_are_left_out_but_refused_where_they_are_asked_for(tmp_path):
    text = "a,ort,tag\n1,Köln,2020-01-01\n2,Bonn,2020-01-02\n"
    assert read(tmp_path, text).columns == ("a",)
    with pytest.raises(io.FileError, match=r"column 'ort' .*got 'Köln' in row 1"):
        read(tmp_path, text, columns=["a", "ort"])
    with pytest.raises(io.FileError, match=r"column 'tag' .*got '2020-01-01"):
        read(tmp_path, text, columns=["tag"])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "a,b\n1,2\n3\n", "row 2 has 1 cells where the first line has 2"),
        ("t.csv", "a,b\n", "has a line of names and no rows"),
        ("t.csv", "\n\n", "holds blank lines"),
        ("t.csv", "a,b\n1,inf\n", "column 'b' .*got inf in row 1"),
        ("t.csv", "x,y\nu,v\n", r"holds no column of numbers to read; it has x \(text\), y \(text\)"),
        ("t.csv", "a\x00b\n1\n", r"holds binary data \(a zero byte at 1\)"),
        ("t.csv", "a" * 5_000_000, "its first line is longer than 1 MiB"),
        ("t.csv", "a\n1\n" + "2" * 12_000_000, "a line is longer than 1 MiB"),
    ],
    ids=["ragged", "no rows", "blank", "infinite", "no numbers", "binary", "long first line", "long line"],
)
def test_what_is_no_table_is_refused(tmp_path, name, text, message):
    with pytest.raises(io.FileError, match=message) as caught:
        read(tmp_path, text, name=name)
    assert "\n" not in str(caught.value)


def test_gzip_that_is_cut_short_is_refused(tmp_path):
    text = "a\n" + "\n".join(map(str, np.random.default_rng(0).random(200_000)))
    whole = gzip.compress(text.encode(), 1)
    for part in (whole[: len(whole) // 2], whole[:12]):
        (tmp_path / "t.csv.gz").write_bytes(part)
        with pytest.raises(io.FileError, match=r"t\.csv\.gz: cannot be read"):
            io.read(tmp_path / "t.csv.gz")


def test_a_message_is_one_line_whatever_names_hold(tmp_path):
    with pytest.raises(io.FileError) as caught:
        read(tmp_path, '"a\nb",c\n1,2\n', columns=["a\rb"])
    assert len(str(caught.value).splitlines()) == 1


def test_a_separator_at_the_end_of_every_line_makes_no_column(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,\n1,2,\n3,4,\n")
    table = io.read(tmp_path / "t.csv")
    assert table.columns == ("a", "b")
    assert table.notes == ("columns without numbers are omitted: column 3",)
    (tmp_path / "t.csv").write_text("a,b,\n1,2,5\n3,4,6\n")
    assert io.read(tmp_path / "t.csv").columns == ("a", "b", "column 3")
