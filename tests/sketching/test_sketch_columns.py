"""The before/after table, and rows in the type that came in."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from reduset import Gaussian, sketch
from reduset.sketching.columns import compare_columns
from reduset.sketching.summaries import summarise

FRAME = pd.DataFrame(
    {
        "age": np.random.default_rng(0).normal(45, 12, 4000),
        "visits": np.random.default_rng(1).poisson(3, 4000),
        "member": (np.random.default_rng(2).random(4000) < 0.3).astype(float),
    },
    index=[f"p{i}" for i in range(4000)],
)


def sketched(data, **options):
    return sketch(data, 300, kernel=Gaussian(scales="robust"), rng=0, **options)


def test_it_compares_all_rows_with_the_weighted_sketch():
    small = sketched(FRAME)
    rows, w = FRAME.to_numpy()[small.indices], small.weights
    table = {(each.column, each.statistic): each for each in small.columns}
    assert len(table) == len(small.columns) == 9 + 9 + 1
    age = FRAME["age"]
    mean = table["age", "mean"]
    assert mean.all_rows == pytest.approx(age.mean())
    assert mean.sketch == pytest.approx(w @ rows[:, 0])
    spread = table["age", "standard deviation"]
    assert spread.sketch == pytest.approx(np.sqrt(w @ (rows[:, 0] - mean.sketch) ** 2))
    assert (table["age", "minimum"].all_rows, table["age", "maximum"].sketch) == (age.min(), rows[:, 0].max())
    for level in (5, 25, 50, 75, 95):
        quantile = table["age", f"{level}% quantile"]
        assert quantile.all_rows == np.quantile(age, level / 100, method="inverted_cdf")
        assert quantile.difference == pytest.approx((quantile.sketch - quantile.all_rows) / age.std(ddof=0))
    member = table["member", "proportion of 1"]
    assert member.all_rows == pytest.approx(FRAME["member"].mean())
    assert member.sketch == pytest.approx(w[rows[:, 2] == 1].sum())


def test_random_rows_are_as_far_off_as_expected():
    X = np.random.default_rng(0).normal(size=(20_000, 1))
    table = {each.statistic: each for each in sketch(X, 400, rng=0).columns}
    rng, off = np.random.default_rng(1), {name: [] for name in table if name not in ("minimum", "maximum")}
    for _ in range(400):
        some = rng.choice(X[:, 0], 400, replace=False)
        for name, found in off.items():
            value = (
                some.mean()
                if name == "mean"
                else some.std()
                if "deviation" in name
                else np.quantile(some, float(name.split("%")[0]) / 100)
            )
            found.append(abs(value - table[name].all_rows) / X.std())
    for name, found in off.items():
        assert table[name].random_rows == pytest.approx(np.mean(found), rel=0.35), name
    assert np.isnan(table["minimum"].random_rows)


def test_print_shows_the_table_and_its_largest_change():
    small = sketched(FRAME)
    text = str(small.columns).splitlines()
    assert text[0].split() == ["column", "statistic", "all", "rows", "sketch", "difference", "random", "rows"]
    assert len(text) == 1 + len(small.columns)
    largest = small.columns.largest
    assert abs(largest.difference) == max(abs(each.difference) for each in small.columns if "imum" not in each.statistic)
    assert f"{largest.statistic} of column {largest.column} (300 random rows:" in str(small)
    assert pd.DataFrame(small.columns.to_dict()).shape == (len(small.columns), 6)
    other = small.columns.renamed(["a", "b", "c"])
    assert [each.column for each in other] == [{"age": "a", "visits": "b", "member": "c"}[each.column] for each in small.columns]


def test_calibration_leaves_nothing_to_see_in_means_and_spreads():
    for each in sketched(FRAME).columns:
        if each.statistic in ("mean", "standard deviation") or each.statistic.startswith("proportion"):
            assert abs(each.difference) < 1e-9


def test_frames_come_back_in_their_own_type():
    small = sketched(FRAME)
    frame = small.to_frame()
    pd.testing.assert_frame_equal(frame.drop(columns="weight"), FRAME.iloc[small.indices])
    assert frame["weight"].sum() == pytest.approx(4000)
    assert small.to_frame("w").columns.tolist() == [*FRAME.columns, "w"]
    polars = sketched(pl.from_pandas(FRAME))
    assert np.array_equal(polars.indices, small.indices)
    assert isinstance(polars.to_frame(), pl.DataFrame)
    assert polars.to_frame()["age"].to_list() == frame["age"].tolist()
    arrow = sketched(pa.Table.from_pandas(FRAME, preserve_index=False)).to_frame()
    assert isinstance(arrow, pa.Table)
    assert np.allclose(arrow["weight"].to_numpy(), frame["weight"])
    array = sketched(FRAME.to_numpy()).to_frame()
    assert array.columns.tolist() == ["x0", "x1", "x2", "weight"]
    assert np.array_equal(array.to_numpy()[:, :3], FRAME.to_numpy()[small.indices])
    with pytest.raises(ValueError, match="weight must be a name that no column has"):
        small.to_frame("age")


def test_constant_columns_do_not_change():
    X = np.column_stack([np.random.default_rng(0).normal(size=1000), np.full(1000, 3.0)])
    small = sketch(X, 100, kernel=Gaussian(), rng=0)
    constant = [each for each in small.columns if each.column == "x1"]
    assert all(each.difference == 0 for each in constant)


def test_the_expected_difference_of_random_rows_has_the_finite_population_correction():
    X = np.random.default_rng(4).normal(size=(1000, 1))
    table = compare_columns(["x"], summarise(X, np.ones(1000)), X[:900], np.ones(900), 1000)
    mean = next(change for change in table.changes if change.statistic == "mean")
    assert mean.random_rows == pytest.approx(np.sqrt(2 / np.pi) * np.sqrt(1 - 0.9) / np.sqrt(900))
