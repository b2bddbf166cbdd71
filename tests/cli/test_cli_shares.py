"""What a table of weighted rows keeps: shares of groups, rows that all count; and what chance explains of a distance."""

import json

import numpy as np
import pytest

from cli_processes import in_this_process
from reduset import Gaussian, KernelMean, io


def table(folder, n=3000, groups=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.uniform(size=n) < 0.03, 0, 1 + rng.integers(groups - 1, size=n))
    X = rng.normal(size=(n, 3)) + 0.5 * (y == 0)[:, None]
    io.write_rows(folder / "rows.parquet", ["a", "b", "c"], X, None, {"class": [f"class {k}" for k in y]})
    return y


@pytest.mark.parametrize(
    "way", [["--size", 60], ["--tol", 0.05], ["--size", 60, "--weights", "free"], ["--size", 60, "--select", "kcenter"]]
)
def test_every_group_has_its_exact_share_in_the_rows_and_in_what_is_told(way, tmp_path):
    y = table(tmp_path)
    words = ["compress", "rows.parquet", "--group-column", "class", *way, "-o", "few.csv"]
    facts = json.loads(in_this_process(*words, "--json", folder=tmp_path).stdout)
    few = io.read(tmp_path / "few.csv", group_column="class", weight_column="weight")
    for k in (0, 1):
        share = np.mean(y == k)
        assert few.weights[few.groups == f"class {k}"].sum() == pytest.approx(share, abs=1e-9)
        assert facts["shares"][f"class {k}"] == pytest.approx(share, abs=1e-9)
    assert len(few.values) == facts["carrying_weight"]
    told = in_this_process(*words, folder=tmp_path).stdout
    assert f"shares     class: class 1 {100 * np.mean(y == 1):.3g} % (" in told


def test_fewer_rows_than_groups_are_refused_and_nothing_is_written(tmp_path):
    table(tmp_path, groups=25)
    words = ["compress", "rows.parquet", "--group-column", "class", "--size", 10, "-o", "few.csv"]
    assert "number of groups, 25" in in_this_process(*words, folder=tmp_path, code=2).stderr
    assert not (tmp_path / "few.csv").exists()


@pytest.mark.parametrize("weights", [[], ["--weights", "simplex"], ["--weights", "counts"]])
def test_every_row_that_is_written_counts(weights, tmp_path):
    table(tmp_path)
    words = ["compress", "rows.parquet", "-c", "a,b,c", "--size", 400, *weights, "-o", "few.csv", "--json"]
    facts = json.loads(in_this_process(*words, folder=tmp_path).stdout)
    few = io.read(tmp_path / "few.csv", weight_column="weight")
    assert (few.weights > 0).all()
    assert len(few.weights) == facts["carrying_weight"] == facts["size"]
    assert few.weights.sum() == pytest.approx(1.0)
    if not weights:
        assert facts["weights"] == "counts"
        assert facts["size"] == 400


def test_weights_of_both_signs_are_told(tmp_path):
    table(tmp_path)
    words = ["compress", "rows.parquet", "-c", "a,b,c", "--size", 200, "--bandwidth", "median", "-o", "small.npz"]
    facts = json.loads(in_this_process(*words, "--json", folder=tmp_path).stdout)
    assert facts["negative_mass"] > 0
    assert "so that sums over a part of the rows are not its share" in in_this_process(*words, folder=tmp_path).stdout


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_a_distance_is_told_beside_what_chance_explains(shift, tmp_path):
    """Of two samples of one law the root of the mean square is what is said, and few are farther apart than is said."""
    rng = np.random.default_rng(0)
    kernel, distances, told = Gaussian(1.5), [], None
    for k in range(60):
        X, Y = rng.normal(size=(300, 2)), rng.normal(size=(200, 2)) + shift
        distances.append(KernelMean.from_samples(X, kernel).distance(KernelMean.from_samples(Y, kernel)))
        if k == 0:
            io.write_rows(tmp_path / "x.parquet", ["a", "b"], X)
            io.write_rows(tmp_path / "y.parquet", ["a", "b"], Y)
            words = ["distance", "x.parquet", "y.parquet", "-b", 1.5, "--scales", "none"]
            told = json.loads(in_this_process(*words, "--json", folder=tmp_path).stdout)
            sentence = in_this_process(*words, folder=tmp_path).stdout
    assert told["rows"] == pytest.approx([300, 200])
    if shift:
        assert np.mean(np.array(distances) > told["by_chance_95"]) > 0.9
        assert ", more than chance explains" in sentence
    else:
        assert np.sqrt(np.mean(np.square(distances))) == pytest.approx(told["by_chance"], rel=0.15)
        assert np.mean(np.array(distances) > told["by_chance_95"]) <= 0.05
        assert "two samples of 300 and 200 rows of one law are" in sentence
