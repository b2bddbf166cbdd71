"""`reduset distance` compares like with like: columns by their names, never by their places."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reduset import io
from reduset.cli.entry import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same rows with their columns in two orders and under other names; and models of them."""
    folder = tmp_path_factory.mktemp("distance")
    X = np.random.default_rng(0).normal(size=(200, 2)) * [1, 5]
    io.write_rows(folder / "xy.csv", ["x", "y"], X)
    io.write_rows(folder / "yx.csv", ["y", "x"], X[:, ::-1])
    io.write_rows(folder / "pq.csv", ["p", "q"], X)
    words = ["--size", "5", "--select", "kcenter", "--bandwidth", "1", "--scales", "none", "-q"]
    for name in ("xy", "yx", "pq"):
        assert run(["compress", str(folder / f"{name}.csv"), *words, "-o", str(folder / f"{name}.npz")]) == 0
    words += ["--transform", "asinh:1"]
    assert run(["compress", str(folder / "xy.csv"), *words, "-o", str(folder / "scaled.npz")]) == 0
    return folder


def test_columns_in_another_order_are_the_same_columns(folder, capsys):
    assert run(["distance", str(folder / "xy.csv"), str(folder / "yx.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["distance"] < 1e-7


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("pq.npz", "same columns in the same order, got x, y and p, q"),
        ("yx.npz", "same columns in the same order, got x, y and y, x"),
        ("scaled.npz", "same --transform, got None and asinh:1"),
        ("pq.csv", "no column 'x'"),
    ],
)
def test_different_things_have_no_distance(other, message, folder, capsys):
    assert run(["distance", str(folder / "xy.npz"), str(folder / other)]) == 2
    assert message in capsys.readouterr().err
    assert run(["distance", str(folder / "xy.csv"), str(folder / "pq.csv")]) == 2
    assert "has no column 'x'" in capsys.readouterr().err


def test_rows_are_never_called_coarse_models(folder, capsys):
    assert run(["distance", str(folder / "xy.csv"), str(folder / "xy.csv")]) == 0
    assert "coarse" not in capsys.readouterr().out


def test_the_limit_of_chance_includes_what_the_models_are_unsure_of(folder, capsys):
    assert run(["distance", str(folder / "xy.npz"), str(folder / "xy.csv"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["uncertainty"] > 0
    assert answer["by_chance_95"] == pytest.approx(1.96 * answer["by_chance"] + answer["uncertainty"])
