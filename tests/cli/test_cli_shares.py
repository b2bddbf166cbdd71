"""Proportions of groups in models and sketches, signed weights, and the sampling error of a distance."""

import json
import re

import numpy as np
import pytest

from cli_processes import in_this_process
from reduset import Gaussian, KernelMean, Model, io


def table(folder, n=3000, groups=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.uniform(size=n) < 0.03, 0, 1 + rng.integers(groups - 1, size=n))
    X = rng.normal(size=(n, 3)) + 0.5 * (y == 0)[:, None]
    io.write_rows(folder / "rows.parquet", ["a", "b", "c"], X, None, {"class": [f"class {k}" for k in y]})
    return y


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", [["--size", 60], ["--tol", 0.05], ["--size", 60, "--weights", "free"], ["--size", 60, "--select", "kcenter"]]
)
def test_every_group_has_its_exact_proportion(way, tmp_path):
    y = table(tmp_path)
    words = ["compress", "rows.parquet", "--group-column", "class", *way, "-o", "small.npz"]
    facts = json.loads(in_this_process(*words, "--json", folder=tmp_path).stdout)
    for k in (0, 1):
        assert facts["shares"][f"class {k}"] == pytest.approx(np.mean(y == k), abs=1e-9)
    assert Model.load(tmp_path / "small.npz").mean.weights.sum() == pytest.approx(1.0)
    told = in_this_process(*words, folder=tmp_path).stdout
    assert f"groups      class: class 1 {100 * np.mean(y == 1):.3g} % (" in told


@pytest.mark.parametrize(
    "words", [["compress", "--group-column", "class", "-o", "few.npz"], ["sketch", "--sample-key", "class", "-o", "few.csv"]]
)
def test_a_size_below_the_number_of_groups_is_an_error(words, tmp_path):
    table(tmp_path, groups=25)
    command, *options = words
    assert (
        "number of groups, 25" in in_this_process(command, "rows.parquet", "--size", 10, *options, folder=tmp_path, code=2).stderr
    )
    assert not (tmp_path / options[-1]).exists()


def test_every_row_of_a_sketch_has_a_weight_and_every_group_its_proportion(tmp_path):
    y = table(tmp_path)
    words = ["sketch", "rows.parquet", "-c", "a,b,c", "--sample-key", "class", "--size", 60, "-o", "few.csv"]
    in_this_process(*words, folder=tmp_path)
    few = io.read(tmp_path / "few.csv", group_column="class", weight_column="weight")
    assert len(few) == 60
    assert (few.weights > 0).all()
    for k in (0, 1):
        assert few.weights[few.groups == f"class {k}"].sum() == pytest.approx(np.sum(y == k))


@pytest.mark.slow
def test_weights_of_both_signs_are_told(tmp_path):
    table(tmp_path)
    words = ["compress", "rows.parquet", "-c", "a,b,c", "--size", 200, "--bandwidth", "median", "-o", "small.npz"]
    facts = json.loads(in_this_process(*words, "--json", folder=tmp_path).stdout)
    assert facts["negative_mass"] > 0
    assert re.search(r"weights +signed, [\d.]+ % negative", in_this_process(*words, folder=tmp_path).stdout)


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
        assert ", significant at level 0.05" in sentence
    else:
        assert np.sqrt(np.mean(np.square(distances))) == pytest.approx(told["by_chance"], rel=0.15)
        assert np.mean(np.array(distances) > told["by_chance_95"]) <= 0.05
        assert "two samples of one distribution, of 300 and 200 rows: " in sentence
