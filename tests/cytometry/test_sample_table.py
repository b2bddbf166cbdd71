"""Tables of samples and the files that they name."""

import pytest

from reduset.cytometry.lab_tables import lab_table
from reduset.cytometry.samples import by_file, by_table
from reduset.io import FileError

PATHS = ["in/run1/a.fcs", "in/run1/B.v2.fcs", "in/run2/c.fcs"]


def named(files, paths=PATHS, **columns):
    return by_table(lab_table({"file_name": files, **columns}, "samples"), paths)


@pytest.mark.parametrize("entry", ["a.fcs", "run1/a.fcs", "in/run1/a.fcs", "a", "A.FCS", "/elsewhere/a.fcs", r"C:\data\a.fcs"])
def test_a_file_is_found_with_or_without_folder_and_suffix_in_any_letters(entry):
    assert named([entry], sample_id=["x"]).files == {"x": "in/run1/a.fcs"}


def test_rows_keep_their_order_and_all_columns_as_text():
    found = named(["c", "b.v2"], sample_id=["s1", "s2"], condition=["ref", None], age=[3, 4.5])
    assert found.files == {"s1": "in/run2/c.fcs", "s2": "in/run1/B.v2.fcs"}
    assert found.table == {"file_name": ("c", "b.v2"), "sample_id": ("s1", "s2"), "condition": ("ref", None), "age": ("3", "4.5")}
    assert found.rows(["s2"])["age"] == ("4.5",)
    assert found.unnamed == ("in/run1/a.fcs",)
    assert found.absent == {}


def test_without_sample_id_samples_are_called_by_their_files():
    assert list(named(["c", "b.v2"]).files) == ["c", "B.v2"]
    assert list(named(["c", "a"], sample_id=["s1", None]).files) == ["s1", "a"]
    assert list(by_file(PATHS).files) == ["a", "B.v2", "c"]


def test_a_name_that_fits_one_file_exactly_means_that_one():
    paths = ["in/a.fcs", "in/A.fcs"]
    assert list(named(["A.fcs", "a.fcs"], paths).files.values()) == ["in/A.fcs", "in/a.fcs"]
    with pytest.raises(FileError, match=r"'a' fits in/a\.fcs and in/A\.fcs; write it with its folder and suffix"):
        named(["a"], paths)


def test_a_file_that_is_not_there_is_told_with_the_nearest():
    found = named(["a", "d.fcs"], sample_id=["x", "y"])
    assert list(found.files) == ["x"]
    assert found.absent["y"].startswith("no file 'd.fcs', which samples names")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"file_name": ["a", "c"], "sample_id": ["x", "x"]}, "sample_id .*got 'x' in rows 1 and 2"),
        ({"file_name": ["a.fcs", "a.fcs"]}, "file_name .*got 'a.fcs' and 'a.fcs'"),
        ({"file_name": ["a.fcs", "A"]}, "file_name .*got 'a.fcs' and 'A'"),
        ({"file_name": ["zz", "zz"]}, "must name each file once"),
        ({"sample": ["a"]}, r"needs a column 'file_name' \(or filename, .*\); it has sample"),
        ({"file_name": ["a", None], "x": ["1", "2"]}, "row 2 has no file_name; fill it"),
        ({"file_name": ["x", "y"]}, "names none of the files; file_name is x, y, the files are a.fcs, B.v2.fcs"),
    ],
)
def test_tables_that_cannot_be_followed_are_refused(columns, message):
    with pytest.raises(FileError, match=message):
        by_table(lab_table(columns, "samples"), PATHS)
