"""SampleSet.of: samples in memory with their table, matched by name or order."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from reduset.cytometry.samples import SampleSet

BAGS = {name: np.random.default_rng(k).normal(size=(5 + k, 2)) for k, name in enumerate(("a", "b", "c"))}
ROWS = {"sample_id": ["c", "a", "b"], "condition": ["x", "y", None], "age": [3, 4, 5]}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame], ids=["dict", "pandas", "polars"])
def test_rows_of_the_table_are_found_by_sample_id(make):
    found = SampleSet.of(BAGS, make(ROWS))
    assert found.names == ("a", "b", "c")
    assert found.table == {"sample_id": ("a", "b", "c"), "condition": ("y", None, "x"), "age": (4, 5, 3)}
    assert found.markers == ("x0", "x1")
    np.testing.assert_array_equal(found.sizes, [5, 6, 7])
    np.testing.assert_array_equal(found.cells[1], BAGS["b"])


def test_the_index_of_a_pandas_frame_names_samples_unless_it_counts_rows():
    frame = pd.DataFrame(ROWS).set_index("sample_id")
    assert SampleSet.of(BAGS, frame).table["age"] == (4, 5, 3)
    assert SampleSet.of(BAGS, frame.rename_axis(None)).table["age"] == (4, 5, 3)
    with pytest.raises(ValueError, match=r"samples must .*'sample_id'.*'a'"):
        SampleSet.of(BAGS, frame.reset_index(drop=True))


def test_samples_without_names_go_by_their_order():
    found = SampleSet.of(list(BAGS.values()), {"condition": ["x", "y", "z"]})
    assert found.names == ("sample 1", "sample 2", "sample 3")
    assert found.column("condition") == ("x", "y", "z")
    assert SampleSet.of(list(BAGS.values()), ROWS).names == ("c", "a", "b")
    with pytest.raises(ValueError, match=r"samples .*got 2"):
        SampleSet.of(list(BAGS.values()), {"condition": ["x", "y"]})


def test_frames_give_the_names_of_markers_and_a_long_table_its_samples():
    long = pd.concat([pd.DataFrame(part, columns=["CD3", "CD4"]).assign(who=name) for name, part in BAGS.items()])
    found = SampleSet.of(long, pd.DataFrame({"who": ["b", "a", "c"], "age": [1, 2, 3]}), sample="who")
    assert (found.names, found.markers, found.table["age"]) == (("a", "b", "c"), ("CD3", "CD4"), (2, 1, 3))
    assert SampleSet.of(BAGS, markers=["p", "q"]).markers == ("p", "q")
    assert SampleSet.of({3: BAGS["a"], 4: BAGS["b"]}, {"sample_id": [4.0, 3.0], "v": ["p", "q"]}).table["v"] == ("q", "p")


def test_whole_numbers_become_floats_and_samples_of_the_table_without_cells_are_told():
    found = SampleSet.of({"a": np.arange(6).reshape(3, 2)}, ROWS)
    assert found.cells[0].dtype == np.float64
    assert found.left_out == dict.fromkeys(("c", "b"), "is in the table of samples, but has no cells")


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ({"sample_id": ["a", "b"]}, "samples .*got none for c"),
        ({"sample_id": ["a", "b", "c", "a"]}, "samples .*got 'a' twice"),
        ({"sample_id": ["a", "b", None]}, "must have an entry of 'sample_id' in every row, got none in row 3"),
        ({"condition": ["a", "b", "c"]}, "must have a column 'sample_id'"),
        ({"sample_id": []}, "must hold at least one row"),
    ],
)
def test_tables_that_do_not_fit_are_refused(samples, message):
    with pytest.raises(ValueError, match=message):
        SampleSet.of(BAGS, samples)


def test_names_must_differ_and_markers_must_fit():
    with pytest.raises(ValueError, match=r"bags .*got '1' twice"):
        SampleSet.of({1: BAGS["a"], "1": BAGS["b"]})
    with pytest.raises(ValueError, match=r"markers .*got \['p'\]"):
        SampleSet.of(BAGS, markers=["p"])
    with pytest.raises(ValueError, match="got 'p' twice"):
        SampleSet.of(BAGS, markers=["p", "p"])


def test_a_column_that_is_not_there_is_named_with_those_that_are():
    found = SampleSet.of(BAGS, {"sample_id": ["a", "b", "c"], "age": ["3", "4", "5"]})
    with pytest.raises(ValueError, match="has no column 'Age'; it has sample_id, age"):
        found.column("Age")
