"""Columns that count rows: the index of a frame is left out, and what looks like an identifier is named."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from reduset import io
from reduset.cli.entry import run

NOTE = "omitted by default, the index of a frame: __index_level_0__"


def filtered(count=3000):
    """A frame of which some rows were taken away, so that pandas saves the numbers of the others."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(count, 2)), columns=["a", "b"])
    return table[table["a"] > 0]


@pytest.fixture(params=["parquet", "feather"])
def saved(request, tmp_path):
    path = tmp_path / f"rows.{request.param}"
    table = pa.Table.from_pandas(filtered())
    assert "__index_level_0__" in table.column_names
    (pq.write_table if request.param == "parquet" else pa.feather.write_feather)(table, path)
    return path


def test_the_index_of_a_saved_frame_is_no_column(saved):
    table = io.read(saved)
    assert table.columns == ("a", "b")
    np.testing.assert_array_equal(table.values, filtered())
    assert table.notes == (NOTE,)
    assert [batch.columns for batch in io.batches(saved)] == [("a", "b")]
    assert io.read([saved, saved]).columns == ("a", "b")


def test_the_index_is_read_where_it_is_named(saved):
    table = io.read(saved, columns=["a", "__index_level_0__"])
    np.testing.assert_array_equal(table.values[:, 1], filtered().index)
    assert io.read(saved, weight_column="__index_level_0__").columns == ("a", "b")


def test_the_bandwidth_is_not_that_of_the_row_numbers(saved, tmp_path, capsys):
    assert run(["sketch", str(saved), "--size", "20", "-o", str(tmp_path / "small.csv"), "--json"]) == 0
    assert '"columns": ["a", "b"]' in capsys.readouterr().out
    assert list(pd.read_csv(tmp_path / "small.csv")) == ["a", "b", "__index_level_0__", "weight"]  # those of the file


def test_an_index_with_a_name_is_one_too(tmp_path):
    filtered().rename_axis("cell").to_parquet(tmp_path / "rows.parquet")
    assert io.read(tmp_path / "rows.parquet").columns == ("a", "b")


def test_the_index_of_a_frame_in_memory_is_no_column():
    assert io.as_table(filtered()).columns == ("a", "b")


@pytest.mark.parametrize("told", [b"{", b"[]", b"3", b'{"index_columns": 5}', b'{"index_columns": [3, {}]}', b"[" * 100000])
def test_odd_tellings_of_pandas_are_passed_over(tmp_path, told):
    table = pa.table({"a": np.random.default_rng(0).normal(size=30)}).replace_schema_metadata({"pandas": told})
    pq.write_table(table, tmp_path / "rows.parquet")
    assert io.read(tmp_path / "rows.parquet").columns == ("a",)


def numbered(**more):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"cell": np.arange(1000, 1300), "a": rng.normal(size=300), "k": rng.integers(0, 9, 300), **more})


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.npy"])
def test_columns_that_look_like_identifiers_are_named(tmp_path, name):
    table = numbered()
    if name.endswith("npy"):
        np.save(tmp_path / name, table.to_records(index=False).view(np.ndarray))
    else:
        (table.to_csv if name.endswith("csv") else table.to_parquet)(tmp_path / name, index=False)
    read = io.read(tmp_path / name)
    assert read.columns == ("cell", "a", "k")  # it may be a clock, so it stays
    assert read.notes == ("cell looks like an identifier (whole numbers that go on from row to row); choose columns without it",)
    batches = io.batches(tmp_path / name, start=100)
    assert batches.notes() == read.notes
    batches.close()
    assert io.read(tmp_path / name, columns=["cell", "a"]).notes == ()
    assert io.read([tmp_path / name, tmp_path / name]).notes == read.notes


def test_falling_numbers_count_too_and_few_rows_are_not_judged():
    both = io.as_table(numbered(back=np.arange(300)[::-1]))
    assert both.notes == (
        "cell, back look like identifiers (whole numbers that go on from row to row); choose columns without them",
    )
    assert io.as_table(numbered()[:10]).notes == ()
