"""Categories and dates as numbers: in every format that has them, by what is asked for, and back again when rows are written."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

from io_cases import write_h5ad
from reduset import io

CITIES, GRADES = np.array(["Paris", "Rome", "Oslo"]), ["low", "mid", "high"]
N = 60
TITLES = ("age", "city=Oslo", "city=Paris", "city=Rome", "grade", "when")


def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.normal(40.0, 10.0, N).round(1),
            "city": CITIES[rng.integers(0, 3, N)],
            "grade": pd.Categorical.from_codes(rng.integers(0, 2, N) * 2, GRADES, ordered=True),  # nobody is "mid"
            "when": pd.Timestamp("1969-12-31") + pd.to_timedelta(np.arange(N) * 1.5, unit="D"),
        }
    )


def numbers():
    rows = frame()
    onehot = [rows["city"].eq(name) for name in sorted(CITIES)]
    days = (rows["when"] - pd.Timestamp("1970-01-01")) / pd.Timedelta("1D")
    return np.column_stack([rows["age"], *onehot, rows["grade"].cat.codes, days]).astype(float)


def written(folder, suffix, rows=None):
    rows, path = frame() if rows is None else rows, folder / f"rows{suffix}"
    if suffix == ".csv":
        rows.to_csv(path, index=False)
    elif suffix == ".parquet":
        rows.to_parquet(path, row_group_size=25)
    elif suffix == ".feather":
        rows.to_feather(path)
    else:
        pyarrow.orc.write_table(pa.Table.from_pandas(rows.astype({"grade": str})), path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather", ".orc"])
def test_categories_and_dates_are_encoded_in_every_format(suffix, tmp_path):
    asked = "auto" if suffix in (".parquet", ".feather") else "auto,grade=ordinal:low:mid:high"  # which these do not keep
    table = io.read(written(tmp_path, suffix), encode=asked)
    assert table.columns == TITLES
    np.testing.assert_allclose(table.values, numbers(), rtol=0, atol=1e-9)
    assert table.encoding == {
        "city": {"onehot": ["Oslo", "Paris", "Rome"]},
        "grade": {"ordinal": GRADES},
        "when": "days",
    }
    assert set(table.notes) == {
        "city as 3 columns of 0 and 1: Oslo, Paris, Rome",
        "grade as 0 to 2: low < mid < high",
        "when as days since 1970-01-01",
    }


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "arrow"])
def test_frames_in_memory_are_encoded(kind):
    rows = frame()
    if kind != "pandas":
        rows = pl.from_pandas(rows.astype({"grade": str})).with_columns(pl.col("grade").cast(pl.Enum(GRADES)))
        rows = {"polars": rows, "lazy": rows.lazy(), "arrow": rows.to_arrow()}[kind]
    table = io.as_table(rows, encode="auto")
    assert table.columns == TITLES
    np.testing.assert_allclose(table.values, numbers(), rtol=0, atol=1e-9)
    some = io.as_table(rows, columns=["grade", "age"], encode={"grade": "onehot"})
    assert some.columns == ("grade=high", "grade=low", "age")  # "mid" does not occur


def test_observations_of_annotated_data_are_encoded(tmp_path):
    groups = {"kind": (np.arange(30) % 3, ["T", "B", "NK"])}
    path = write_h5ad(tmp_path / "t.h5ad", np.ones((30, 2), np.float32), ["a", "b"], {"depth": np.arange(30.0)}, categories=groups)
    table = io.read(path, key="obs", encode="auto")
    assert sorted(table.columns) == ["depth", "kind=B", "kind=NK", "kind=T"]
    np.testing.assert_array_equal(table.values[:, table.columns.index("kind=NK")], np.arange(30) % 3 == 2)
    with pytest.raises(io.FileError, match="encode names 'kind', and it has no such column of points"):
        io.read(path, encode="kind=onehot")


def test_dates_of_numpy_are_days(tmp_path):
    rows = np.zeros(3, [("x", float), ("when", "datetime64[h]")])
    rows["when"] = ["1970-01-02T12", "NaT", "1969-12-31T00"]
    np.save(tmp_path / "t.npy", rows)
    table = io.read(tmp_path / "t.npy", encode="when=days", missing="drop")
    np.testing.assert_array_equal(table.values, [[0.0, 1.5], [0.0, -1.0]])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_batches_have_the_columns_of_all_rows_from_the_first_on(suffix, tmp_path):
    late = frame().sort_values("city").reset_index(drop=True)
    path = written(tmp_path, suffix, late)
    batches = io.batches(path, rows=7, encode="city=onehot")
    assert batches.columns == TITLES[:4]
    assert batches.encoding == {"city": {"onehot": ["Oslo", "Paris", "Rome"]}}
    np.testing.assert_array_equal(np.concatenate([each.values for each in batches]), io.read(path, encode="city=onehot").values)


def test_several_files_have_the_categories_of_all(tmp_path):
    pd.DataFrame({"x": [1.0, 2.0], "city": ["b", "c"]}).to_csv(tmp_path / "1.csv", index=False)
    pd.DataFrame({"x": [3.0], "city": ["a"]}).to_csv(tmp_path / "2.csv", index=False)
    table = io.read(tmp_path, encode="auto")
    assert table.columns == ("x", "city=a", "city=b", "city=c")
    np.testing.assert_array_equal(table.values, [[1, 0, 1, 0], [2, 0, 0, 1], [3, 1, 0, 0]])
    assert io.read_bags(tmp_path, encode="auto")["2"].values.tolist() == [[3, 1, 0, 0]]


def test_another_file_is_encoded_the_same_way_and_a_new_category_is_refused(tmp_path):
    table = io.read(written(tmp_path, ".csv"), encode="auto")
    one = frame()[frame()["city"].eq("Rome")]
    other = io.read(written(tmp_path, ".csv", one), columns=table.columns, encode=table.encoding)
    assert other.columns == table.columns
    with pytest.raises(io.FileError, match=r"column 'city' .*got 'Bonn' in row 3"):
        io.read(written(tmp_path, ".csv", frame().replace({"city": {frame()["city"][2]: "Bonn"}})), encode=table.encoding)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_missing_entries_of_a_one_hot_column_are_a_category(tmp_path, suffix):
    rows = frame()
    rows.loc[[4, 9], "city"] = None
    path = written(tmp_path, suffix, rows)
    table = io.read(path, encode="auto")
    assert len(table) == N
    np.testing.assert_array_equal(np.flatnonzero(table.values[:, table.columns.index("city=(missing)")]), [4, 9])
    cities = table.values[:, [column.startswith("city=") for column in table.columns]]
    np.testing.assert_array_equal(cities.sum(axis=1), 1)
    again = io.read(path, columns=table.columns, encode=table.encoding)
    np.testing.assert_array_equal(again.values, table.values)
    dropped = io.read(path, encode="auto", missing="drop")
    assert len(dropped) == N - 2
    assert "city=(missing)" not in dropped.columns


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_missing_dates_and_ordered_categories_are_missing_values(tmp_path, suffix):
    rows = frame()
    rows.loc[6, "grade"] = None
    rows.loc[8, "when"] = None
    path = written(tmp_path, suffix, rows)
    with pytest.raises(io.FileError, match=r"has no value in row [79]"):
        io.read(path, encode="auto,grade=ordinal:low:mid:high")
    assert len(io.read(path, encode="auto,grade=ordinal:low:mid:high", missing="drop")) == N - 2


def test_whole_numbers_are_categories_where_they_are_named(tmp_path):
    pd.DataFrame({"x": [0.5, 1.5, 2.5], "zip": [10, 9, 10]}).to_parquet(tmp_path / "t.parquet")
    assert io.read(tmp_path / "t.parquet", encode="auto").columns == ("x", "zip")
    table = io.read(tmp_path / "t.parquet", encode="zip=onehot")
    assert table.columns == ("x", "zip=9", "zip=10")
    assert io.read(tmp_path / "t.parquet", encode={"zip": "ordinal"}).values[:, 1].tolist() == [1, 0, 1]


def test_one_of_the_columns_of_a_category_may_be_left_out(tmp_path):
    table = io.read(written(tmp_path, ".csv"), columns=["age", "city=Oslo", "city=Rome"], encode="auto")
    np.testing.assert_array_equal(table.values, numbers()[:, [0, 1, 3]])


def test_encoded_columns_are_no_identifiers_and_have_no_scale(tmp_path):
    rows = pd.DataFrame({"x": np.random.default_rng(0).normal(size=N), "when": pd.date_range("2020-01-01", periods=N)})
    table = io.read(written(tmp_path, ".csv", rows), encode="auto", transform="asinh:5")
    assert table.values[:2, 1].tolist() == [18262, 18263]
    assert not any("identifier" in note for note in table.notes)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_are_written_as_they_were(suffix, tmp_path):
    table = io.read(written(tmp_path, ".parquet"), encode="auto")
    assert io.write_rows(tmp_path / f"some{suffix}", table, table.values[5:9], np.ones(4)) == []
    back = (
        pd.read_csv(tmp_path / "some.csv", parse_dates=["when"]) if suffix == ".csv" else pd.read_parquet(tmp_path / "some.parquet")
    )
    wanted = frame()[5:9].astype({"grade": str}).reset_index(drop=True)
    assert list(back) == ["age", "city", "grade", "when", "weight"]
    assert back["city"].tolist() == wanted["city"].tolist()
    assert back["grade"].tolist() == wanted["grade"].tolist()
    assert back["when"].tolist() == wanted["when"].tolist()


def test_what_lies_between_categories_is_written_encoded(tmp_path):
    table = io.read(written(tmp_path, ".parquet"), columns=["age", "city"], encode="auto")
    assert io.write_rows(tmp_path / "some.csv", table, table.values[:2].mean(0, keepdims=True) + 0.1) == ["city"]
    assert list(pd.read_csv(tmp_path / "some.csv")) == ["age", "city=Oslo", "city=Paris", "city=Rome"]


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        ("name=onehot", None),
        (
            "when=days",
            "column 'when' .*got '17/11/2026' in row 1",
        ),
        ("city=onehot", r"encode names 'city', and it has no such column"),
    ],
)
def test_what_cannot_be_encoded_is_refused_by_name(asked, seen, tmp_path):
    rows = pd.DataFrame({"x": np.arange(60) / 7, "name": [f"n{k}" for k in range(60)], "when": ["17/11/2026"] * 60})
    path = written(tmp_path, ".csv", rows)
    if seen is None:
        assert io.read(path, encode=asked).values.shape == (60, 61)
        return
    with pytest.raises(io.FileError, match=seen):
        io.read(path, encode=asked)


@pytest.mark.parametrize(
    "asked",
    [
        "city",
        "city=hot",
        "city=onehot:a:a",
        "city=onehot,city=ordinal",
        {"city": "hot"},
        {"city": {"onehot": [1.5]}},
        7,
        {1: "days"},
    ],
)
def test_what_is_asked_in_another_way_is_refused(asked, tmp_path):
    with pytest.raises((ValueError, TypeError), match="encode must"):
        io.read(written(tmp_path, ".csv"), encode=asked)


def test_weights_groups_and_columns_not_read_are_not_encoded(tmp_path):
    path = written(tmp_path, ".csv")
    assert io.read(path, group_column="city", encode="auto").columns[:2] == ("age", "grade=high")
    with pytest.raises(io.FileError, match="'city', which is the column of weights or groups"):
        io.read(path, group_column="city", encode="city=onehot")
    with pytest.raises(io.FileError, match="'city', which was not read"):
        io.read(path, columns=["age"], encode="city=onehot")


def test_orders_that_differ_are_refused(tmp_path):
    for name, order in (("1", ["low", "high"]), ("2", ["high", "low"])):
        rows = pd.DataFrame({"grade": pd.Categorical(["low", "high"], order, ordered=True)})
        rows.to_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(io.FileError, match="categories of column 'grade' must be in one order all through"):
        io.read(tmp_path, encode="auto")
    told = io.read(tmp_path, encode="grade=ordinal:low:high")
    assert told.values[:, 0].tolist() == [0, 1, 0, 1]


def test_auto_omits_text_with_many_categories_unless_it_is_named(tmp_path):
    names = [f"n{k}" for k in range(60)]
    rows = pd.DataFrame({"x": np.arange(60) / 7, "name": names, "city": ["a", "b"] * 30})
    path = written(tmp_path, ".csv", rows)
    table = io.read(path, encode="auto")
    assert table.columns == ("x", "city=a", "city=b")
    assert any("name" in note for note in table.notes)
    with pytest.raises(io.FileError, match=r"column 'name' .*got 60"):
        io.read(path, columns=["x", "name"], encode="auto")


def test_identifiers_are_omitted_if_asked_for_in_every_file(tmp_path):
    for k in range(2):
        pd.DataFrame({"id": np.arange(40) + 40 * k, "x": np.sin(np.arange(40))}).to_csv(tmp_path / f"part{k}.csv", index=False)
    table = io.read(tmp_path, identifiers="omit")
    assert table.columns == ("x",)
    assert len(table) == 80
    assert any(note.startswith("id looks like an identifier and is not used") for note in table.notes)
    assert io.read(tmp_path, identifiers="keep").columns == ("id", "x")
    assert io.read(tmp_path, columns=["id"], identifiers="omit").columns == ("id",)
    frame = pd.DataFrame({"id": np.arange(40), "x": np.sin(np.arange(40))})
    assert io.as_table(frame, identifiers="omit").columns == ("x",)
    assert io.as_table(frame[["id"]], identifiers="omit").columns == ("id",)  # nothing else to use
