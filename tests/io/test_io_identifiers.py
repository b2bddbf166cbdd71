"""Columns that number rows, in order or shuffled, and columns of text: what is not used, and the note that reports it."""

import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from reduset import io
from reduset.io.choice import PowerSums

RNG = np.random.default_rng(0)


def omitted(frame, **options):
    return io.as_table(frame, identifiers="omit", **options)


def numbers(n, **columns):
    return pd.DataFrame(columns | {"x": RNG.normal(size=n)})


@pytest.mark.parametrize("first", [0, 1, -70, 2**40])
@pytest.mark.parametrize("n", [100, 9000])
def test_shuffled_numbers_of_rows_are_identifiers(first, n):
    frame = numbers(n, id=RNG.permutation(n) + first)
    for kind in (frame, frame.astype({"id": float}), pl.from_pandas(frame)):
        table = omitted(kind)
        assert table.columns == ("x",)
        assert table.notes == ("id looks like an identifier and is not used; identifiers='keep' uses it",)
    assert io.as_table(frame).columns == ("id", "x")
    assert io.as_table(frame).notes == ()


@pytest.mark.parametrize("n", [150, 9000])
def test_other_whole_numbers_are_used(n):
    shuffled = RNG.permutation(n)
    gap = np.where(shuffled == 5, n, shuffled)  # one number is missing
    twice = np.where(shuffled == 5, 6, shuffled)  # one occurs twice
    balanced = shuffled.copy()  # the same count, range, and sum
    balanced[np.isin(shuffled, [10, 13])] = [11, 12]
    frame = numbers(n, gap=gap, twice=twice, balanced=balanced, age=RNG.integers(18, 95, n), half=shuffled / 2)
    assert omitted(frame).columns == tuple(frame)


def test_ranks_and_pages_of_small_frames_are_used():
    frame = numbers(99, rank=RNG.permutation(99) + 1, page=RNG.permutation(99) * 2)
    assert omitted(frame).columns == ("rank", "page", "x")


def test_shuffled_numbers_of_files_are_found(tmp_path):
    frame = numbers(6000, id=RNG.permutation(6000), page=RNG.permutation(6000) % 3000)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet", index=False)
    for name in ("rows.csv", "rows.parquet"):
        assert io.read(tmp_path / name, identifiers="omit").columns == ("page", "x")
        assert io.read(tmp_path / name, columns=["id"], identifiers="omit").columns == ("id",)


def test_power_sums_are_those_of_all_numbers_of_a_range():
    for low, high in ((1, 200), (-40, 90), (-300, -100), (0, 150)):
        values = RNG.permutation(np.arange(low, high + 1))
        sums = PowerSums(int(values[0]))
        for part in np.array_split(values, 3):
            sums.add(part)
        assert sums.is_permutation


def test_text_that_never_repeats_looks_like_an_identifier(tmp_path):
    n = 1500
    frame = numbers(
        n,
        cell=[f"cell_{k:05d}" for k in range(n)],
        code=[str(uuid.UUID(int=k * 7919)) for k in RNG.permutation(n)],
        town=[f"town {k % 312}" for k in range(n)],
        street=[f"street {k % 1400}" for k in range(n)],
        city=np.where(np.arange(n) % 3, "Bonn", "Graz"),
    )
    expected = (
        "city as 2 columns of 0 and 1: Bonn, Graz",
        "cell looks like an identifier and is not used",
        "code looks like an identifier and is not used",
        "town has 312 categories (more than 50) and is not used",
        "street has more than 1,000 categories and is not used",
    )
    frame.to_csv(tmp_path / "rows.csv", index=False)
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    for table in (
        io.as_table(frame, encode="auto"),
        io.as_table(arrow, encode="auto"),
        io.read(tmp_path / "rows.csv", encode="auto"),
    ):
        assert table.notes == expected
        assert table.columns == ("city=Bonn", "city=Graz", "x")
    frame[:700].to_csv(tmp_path / "a.csv", index=False)
    frame[700:].to_csv(tmp_path / "b.csv", index=False)
    both = io.read([tmp_path / "a.csv", tmp_path / "b.csv"], encode="auto", identifiers="omit")
    assert both.notes == expected


def test_many_columns_of_text_are_not_listed_one_by_one():
    frame = numbers(60, **{f"t{k}": [f"{k} {row}" for row in range(60)] for k in range(20)})
    notes = io.as_table(frame, encode="auto").notes
    assert len(notes) == 13
    assert notes[-1] == "8 more columns of text have too many categories and are not used"


def test_text_without_an_entry_and_text_that_is_not_encoded_hold_no_numbers():
    frame = numbers(60, empty=pd.Series([None] * 60, dtype="string"), city=["Bonn"] * 60)
    assert io.as_table(frame, encode="city=onehot").notes[1:] == ("columns without numbers are omitted: empty",)
    assert io.as_table(frame).notes == ("columns without numbers are omitted: empty, city",)


@pytest.mark.parametrize("missing", ["grade", "x"])
def test_a_missing_value_is_reported_by_the_column_of_the_file(missing, tmp_path):
    frame = numbers(60, city=["Bonn", "Graz"] * 30, grade=["low", "high"] * 30).astype({"x": object})
    frame.loc[7, missing] = None
    frame.to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(io.FileError, match=f"column '{missing}' has no value in row 8;"):
        io.read(tmp_path / "rows.csv", encode="auto,grade=ordinal:low:high")
    with pytest.raises(io.FileError, match=f"column '{missing}' has no value in row 7;"):
        io.as_table(frame.astype({"x": float}), encode="auto,grade=ordinal:low:high")


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(np.ones((9, 3)), columns=["a", "b", "a"]),
        pd.DataFrame(np.ones((9, 2)), columns=["a", "a"]),
        pa.table([[1.0], [2.0]], names=["a", "a"]),
        pa.RecordBatch.from_arrays([pa.array([1.0]), pa.array([2.0])], ["a", "a"]),
    ],
    ids=["pandas, three", "pandas, two", "arrow", "batch"],
)
def test_columns_of_one_name_are_refused_by_name(frame):
    with pytest.raises(ValueError, match="two columns are named 'a'; rename one of them"):
        io.as_table(frame)
    with pytest.raises(ValueError, match="two columns are named '1'; rename one of them"):
        io.as_table(pd.DataFrame(np.ones((9, 2)), columns=[1, "1"]))


def test_the_index_of_a_frame_in_memory_is_no_note():
    frame = numbers(60, a=np.arange(60) % 7)
    for odd in (frame.sort_values("x"), frame.sample(frac=1, random_state=0), frame.set_index(pd.Index(list("ab") * 30, name="k"))):
        table = io.as_table(odd)
        assert (table.columns, table.notes) == (("a", "x"), ())
    named = frame.rename_axis("cell").sample(frac=1, random_state=0)
    assert io.as_table(named, columns=["a", "cell"]).values[:, 1].tolist() == named.index.tolist()
    assert io.as_table(named, weight_column="cell").columns == ("a", "x")
