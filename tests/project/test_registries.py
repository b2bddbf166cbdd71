"""Registries: a new selector, weighting, bandwidth rule or drift statistic is one class or function and one line.

Each is registered under a throw-away name and used from Python and from the command.
"""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from reduset import Gaussian, compress
from reduset.bandwidth import RULES
from reduset.cli.entry import app
from reduset.drift import STATISTICS, DriftTest, Statistic
from reduset.kernels.lookup import KERNELS
from reduset.select import BY_NAME, Selector
from reduset.select.contract import Traversal
from reduset.weights import WEIGHTINGS, Weighting

SIZE = 20


class FirstRows(Selector):
    """The first rows, in their order."""

    def begin(self, mean, rng):
        return _First(mean.size)


class _First(Traversal):
    def __init__(self, count):
        self._count, self._size = count, 0

    def extend(self, size, report=None):
        self._size = min(size, self._count)

    @property
    def indices(self):
        return np.arange(self._size)


EQUAL = Weighting("equal", lambda equations, mass: np.full(len(equations.ones()), mass / len(equations.ones())))


def half_deviation(X, sample_weight=None):
    """Half of the mean standard deviation."""
    return float(np.mean(np.std(np.asarray(X), axis=0)) / 2)


class SquaredDistance(Statistic):
    """The squared length of the difference."""

    def weights(self, features):
        return np.ones(1)

    def values(self, features, differences):
        return np.square(differences).sum(axis=-1, keepdims=True)


@pytest.fixture
def rows(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 2))
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", header="a,b", comments="")
    return X


def command(folder, *options, expected=(0,)):
    """The result of the command as JSON."""
    result = CliRunner().invoke(app, [option.format(folder) for option in options])
    assert result.exit_code in expected, result.output
    return json.loads(result.stdout)


def compressed(folder, *options):
    arguments = ("compress", "{}/rows.csv", "--size", str(SIZE), "--scales", "none", "--json", "-o", "{}/small.npz", *options)
    return command(folder, *arguments)


def test_a_new_selector(rows, tmp_path, monkeypatch):
    monkeypatch.setitem(BY_NAME, "firstrows", FirstRows)
    small = compress(rows, Gaussian(0.5), size=SIZE, select="firstrows")
    np.testing.assert_array_equal(np.sort(small.indices), np.arange(SIZE))
    found = compressed(tmp_path, "--bandwidth", "0.5", "--select", "firstrows")
    assert found["size"] == SIZE
    with pytest.raises(ValueError, match="'firstrows'"):
        compress(rows, Gaussian(0.5), size=SIZE, select="unknown")


@pytest.mark.parametrize("bandwidth", [None, 0.5])
def test_a_new_weighting(rows, tmp_path, monkeypatch, bandwidth):
    monkeypatch.setitem(WEIGHTINGS, "equal", EQUAL)
    small = compress(rows, Gaussian(bandwidth), size=SIZE, select="kcenter", weights="equal", rng=0)
    np.testing.assert_allclose(small.mean.weights, 1 / small.size, rtol=1e-12)
    assert "equal" in str(small)
    given = () if bandwidth is None else ("--bandwidth", str(bandwidth))
    found = compressed(tmp_path, *given, "--weights", "equal")
    assert found["weights"] == "equal"
    with pytest.raises(ValueError, match="'equal'"):
        compress(rows, Gaussian(0.5), size=SIZE, weights="unknown")


def test_a_new_bandwidth_rule(rows, tmp_path, monkeypatch):
    monkeypatch.setitem(RULES, "half_deviation", half_deviation)
    small = compress(rows, Gaussian("half_deviation"), size=SIZE, rng=0)
    assert small.mean.kernel.width == half_deviation(rows)
    found = compressed(tmp_path, "--bandwidth", "half_deviation")
    assert found["kernel"]["bandwidth"] == pytest.approx(half_deviation(rows), rel=1e-12)
    with pytest.raises(ValueError, match="half_deviation"):
        Gaussian("unknown")


def test_a_new_drift_statistic(rows, tmp_path, monkeypatch):
    monkeypatch.setitem(STATISTICS, "squared", SquaredDistance())
    np.savetxt(tmp_path / "later.csv", rows + 5.0, delimiter=",", header="a,b", comments="")
    assert DriftTest(statistics="squared", random_state=0).fit(rows).test(rows + 5.0).p_value < 0.01
    found = command(tmp_path, "drift", "{}/rows.csv", "{}/later.csv", "--statistic", "squared", "--json")
    assert found["drift"]
    with pytest.raises(ValueError, match="'squared'"):
        DriftTest(statistics="unknown").fit(rows)


def test_kernels_of_the_registry_are_those_that_files_and_options_name():
    assert all(KERNELS[name].name == name for name in KERNELS)
