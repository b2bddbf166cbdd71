"""The report of a sketch: its histograms are counted rows, its table is that of the sketch, and no name is run."""

import numpy as np
import pandas as pd
import pytest

from lab_files import write_sample
from reduset import io, sketch
from reduset.cli.entry import run
from reduset.report import write_sketch
from report_cases import HOSTILE, QUOTED, Page, embedded, people, sketched


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    small, frame = sketched()
    path = tmp_path_factory.mktemp("sketch") / "r.html"
    write_sketch(path, small, frame)
    data = embedded(path)
    columns = dict(zip(frame.columns, data["columns"], strict=True))
    return small, frame, columns, Page(path).text(), data


def test_histograms_are_counts_of_all_rows_and_of_the_weighted_sketch(made):
    small, frame, columns, _, _ = made
    for name in ("income", "age"):
        edges, values = np.array(columns[name]["edges"]), frame[name].to_numpy()
        np.testing.assert_allclose(columns[name]["before"][1:-1], np.histogram(values, edges)[0] / len(values))
        after = np.histogram(values[small.indices], edges, weights=small.weights)[0]
        np.testing.assert_allclose(columns[name]["after"][1:-1], after, atol=1e-12)
        for part in ("before", "after"):
            assert sum(columns[name][part]) == pytest.approx(1)
    assert columns["age"]["edges"][0] == -0.5  # bars are around whole numbers, the first of them 0
    assert columns["income"]["edges"][0] == frame["income"].min()
    assert columns["income"]["before"][-1] > 0  # the long tail


def test_columns_of_two_values_are_bars(made):
    small, frame, columns, _, _ = made
    flag = columns[HOSTILE]
    assert flag["labels"] == ["0", "1"]
    mean = frame[HOSTILE].mean()
    np.testing.assert_allclose(flag["before"], [1 - mean, mean])
    after = small.weights @ frame[HOSTILE].to_numpy()[small.indices]
    np.testing.assert_allclose(flag["after"], [1 - after, after])


def test_encoded_categories_are_one_picture_of_their_column(made):
    small, frame, columns, text, data = made
    assert len(data["columns"]) == len(frame.columns)
    city = columns["city"]
    assert city["labels"] == ["Berlin", "Oslo", QUOTED, HOSTILE]  # the most frequent first
    shares = frame["city"].value_counts(normalize=True)
    np.testing.assert_allclose(city["before"], shares[city["labels"]])
    kept = frame["city"].to_numpy()[small.indices]
    np.testing.assert_allclose(city["after"], [small.weights[kept == name].sum() for name in city["labels"]], atol=1e-12)
    assert "proportion of Oslo" in text
    assert "city=Oslo" not in text


def test_dates_are_dates(made):
    _, frame, columns, text, _ = made
    assert columns["joined"]["date"] is True
    first = frame["joined"].min()
    assert columns["joined"]["edges"][0] == first.toordinal() - pd.Timestamp(0).toordinal() - 0.5
    assert str(first.date()) in text


def test_the_table_has_every_statistic_with_that_of_random_rows(made):
    small, frame, _, text, _ = made
    assert text.count("quantile") >= 5 * 4
    for word in (
        "mean",
        "standard deviation",
        "minimum",
        "maximum",
        "5% quantile",
        "95% quantile",
        "proportion of 1",
        "random rows",
    ):
        assert word in text
    income = next(each for each in small.columns if each.column == "income" and each.statistic == "75% quantile")
    assert f"{income.all_rows:,.0f}" in text
    assert f"{income.difference:+.4f}".replace("-", "−") in text
    assert f"{income.random_rows:.4f}" in text
    assert f"120 of {len(frame):,} rows were kept unchanged" in text


def test_the_radius_the_weights_and_the_error_with_its_bandwidth_are_told(made):
    small, _, _, text, data = made
    assert f"{small.radius:.3g}" in text
    assert f"at bandwidth {small.resolution:.3g}" in text
    relative = small.weights * small.size
    plain = relative[~small.covering]
    assert f"Weights are {plain.min():.2g} to {plain.max():.2g} times the average" in text
    assert sum(data["weights"]["strata"]) + sum(data["weights"]["covering"]) == small.size
    assert data["profile"]["bandwidths"] == small.profile.bandwidths.tolist()
    assert data["profile"]["sizes"][0]["finest"] == small.resolution


@pytest.mark.parametrize(("coverage", "begin"), [(0.2, "4 rows with rare or extreme values"), (0.05, "1 row with rare or")])
def test_rows_with_rare_values_are_described_as_in_print(coverage, begin, tmp_path):
    X = np.random.default_rng(0).normal(size=(400, 2))
    small = sketch(X, 20, coverage=coverage, rng=0)
    write_sketch(tmp_path / "r.html", small, X)
    text, covers = Page(tmp_path / "r.html").text(), (small.weights * small.size)[small.covering]
    assert begin in str(small)
    assert begin in text
    verb = "has a weight of" if len(covers) == 1 else f"have weights of {covers.min():.2g} to"
    assert f"rare or extreme values {verb} {covers.max():.2g} times the average" in text
    assert "no other row of the sketch is near" not in text


def test_identifiers_are_as_they_were_given_to_the_sketch(tmp_path):
    frame = people().assign(id=lambda rows: np.arange(len(rows)))
    small = sketch(frame, 100, identifiers="keep", rng=0)
    write_sketch(tmp_path / "r.html", small, frame, identifiers="keep")
    text = Page(tmp_path / "r.html").text()
    assert all(note in text for note in small.notes)
    with pytest.raises(ValueError, match="give the same encode and identifiers as to sketch"):
        write_sketch(tmp_path / "r.html", small, frame)


def test_weights_of_a_table_count(tmp_path):
    X = np.random.default_rng(0).normal(size=(400, 2))
    table = io.Table(X, ("a", "b"), weights=np.where(X[:, 0] > 0, 3.0, 1.0))
    write_sketch(tmp_path / "r.html", sketch(table, 40, rng=0), table)
    column = embedded(tmp_path / "r.html")["columns"][0]
    plain = np.histogram(X[:, 0], column["edges"], weights=table.weights)[0] / table.weights.sum()
    np.testing.assert_allclose(column["before"][1:-1], plain)


def test_weights_of_rows_count(tmp_path):
    rows = np.arange(400.0) % 2
    weights = np.where(rows == 1, 3.0, 1.0)
    X = np.column_stack([rows, np.random.default_rng(0).normal(size=400)])
    write_sketch(tmp_path / "r.html", sketch(X, 40, sample_weight=weights, rng=0), X, sample_weight=weights)
    assert embedded(tmp_path / "r.html")["columns"][0]["before"] == pytest.approx([0.25, 0.75])


def test_many_columns_come_in_the_order_of_their_changes(tmp_path):
    X = np.random.default_rng(0).normal(size=(800, 60))
    small = sketch(X, 30, rng=0)
    write_sketch(tmp_path / "r.html", small, X)
    page = Page(tmp_path / "r.html")
    largest = small.columns.largest.column
    assert next(text for text in page.texts if text.strip().startswith("x") and text.strip()[1:].isdigit()).strip() == largest
    assert "48 more columns" in page.text()
    assert "60 columns: x0, x1, x2" in page.text()


def test_constant_columns_and_few_rows_have_a_report(tmp_path):
    X = np.column_stack([np.full(5, 3.0), np.arange(5.0)])
    write_sketch(tmp_path / "r.html", sketch(X, 5, rng=0), X)
    assert embedded(tmp_path / "r.html")["columns"][0]["labels"] == ["3"]


def test_what_cannot_be_reported_is_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    small = sketch(X, 10, rng=0)
    with pytest.raises(TypeError, match=r"sketch .*got ndarray"):
        write_sketch(tmp_path / "r.html", X, X)
    with pytest.raises(ValueError, match=r"data .*got shape \(59, 2\)"):
        write_sketch(tmp_path / "r.html", small, X[1:])
    assert not (tmp_path / "r.html").exists()


def test_the_command_writes_it_with_the_rows(tmp_path, capsys):
    people(600).to_csv(tmp_path / "rows.csv", index=False)
    few, page = tmp_path / "few.csv", tmp_path / "r.html"
    assert run(["sketch", str(tmp_path / "rows.csv"), "-m", "80", "-o", str(few), "--report", str(page)]) == 0
    assert str(page) in capsys.readouterr().out
    text = Page(page).text()
    assert "6 columns: income, age, visits" in text
    assert "city as 4 columns of 0 and 1" in text
    assert "each column is divided by its scale: income by" in text


def test_cells_have_no_such_report(tmp_path, capsys):
    (tmp_path / "cells.h5ad").touch()
    words = ["sketch", str(tmp_path / "cells.h5ad"), "-o", str(tmp_path / "few.h5ad"), "--report", str(tmp_path / "r.html")]
    assert run(words) == 2
    assert "--report shows the columns of rows" in capsys.readouterr().err


def test_transformed_channels_are_named_as_such(tmp_path):
    path = write_sample(tmp_path / "events.fcs")
    page = tmp_path / "r.html"
    assert run(["sketch", str(path), "-m", "40", "-o", str(tmp_path / "few.csv"), "--report", str(page), "-q"]) == 0
    text = Page(page).text()
    assert "Values of all columns are transformed (logicle). Rows of the sketch are written with the values of the file." in text
    assert "Distances are in the units of the transformed values." in text
    scaled = io.read(path, transform="auto").values[:, 0]
    first = embedded(page)["columns"][0]
    assert first["edges"][0] == pytest.approx(scaled.min(), rel=1e-6)
