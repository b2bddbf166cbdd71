"""Statistics of a test of drift: chosen by name, and a new one is one class and one line of the registry."""

import json

import numpy as np
import pytest

from reduset import compress
from reduset.cli.entry import run
from reduset.drift import STATISTICS, DriftTest, Statistic, two_sample

RNG = np.random.default_rng(0)
OLD, NEW = RNG.normal(size=(300, 3)), RNG.normal(loc=(0.0, 0.6, 0.0), size=(200, 3))


class LargestCoordinate(Statistic):
    """The largest coordinate of the difference."""

    def weights(self, features):
        return np.ones(1)

    def values(self, features, differences):
        return np.abs(differences).max(axis=-1, keepdims=True)


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setitem(STATISTICS, "largest", LargestCoordinate())


@pytest.mark.usefixtures("registered")
def test_a_new_statistic_is_used_from_python():
    found = two_sample(OLD, NEW, statistics="largest", n_resamples=199, rng=0)
    assert found.drift
    assert found.p_value == pytest.approx(1 / 200)
    assert not two_sample(OLD[:150], OLD[150:], statistics="largest", n_resamples=199, rng=0).drift
    assert found.comparison.joint.weights.tolist() == [1.0]
    assert two_sample(OLD, NEW, n_resamples=199, rng=0).comparison.joint.parts[-1] is STATISTICS["largest"]


@pytest.mark.usefixtures("registered")
def test_a_new_statistic_is_used_from_the_command(tmp_path, capsys):
    np.save(tmp_path / "old.npy", OLD)
    np.save(tmp_path / "new.npy", NEW)
    words = ["drift", str(tmp_path / "old.npy"), str(tmp_path / "new.npy"), "--json"]
    assert run([*words, "--statistic", "largest"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert run(words) == 0
    assert json.loads(capsys.readouterr().out)["statistic"] != alone["statistic"]
    assert alone["drift"] is True


def test_an_unknown_statistic_is_named_with_those_of_the_registry(tmp_path, capsys):
    with pytest.raises(ValueError, match="statistics must be one of 'columns', 'kernel'; got 'mean'"):
        two_sample(OLD, NEW, statistics=["kernel", "mean"], rng=0)
    with pytest.raises(ValueError, match="statistics must hold at least one of 'kernel', 'columns', got none"):
        two_sample(OLD, NEW, statistics=[], rng=0)
    assert run(["drift", "old.npy", "new.npy", "--statistic", "mean"]) != 0
    assert "--statistic must be one of 'columns', 'kernel'; got 'mean'" in capsys.readouterr().err


@pytest.mark.parametrize("kept", ["all rows", "stored"])
def test_each_statistic_alone_finds_a_shift_and_the_choice_is_saved(kept, tmp_path):
    old = OLD if kept == "all rows" else np.random.default_rng(1).normal(size=(10_000, 3))
    for names in ("kernel", ["columns"]):
        test = DriftTest(statistics=names, n_resamples=199, random_state=0).fit(old)
        found = test.test(NEW)
        assert found.drift
        test.save(tmp_path / "reference.npz")
        again = DriftTest.load(tmp_path / "reference.npz")
        assert again.statistics == names
        assert again.test(NEW).p_value == found.p_value
    assert DriftTest(statistics="kernel", n_resamples=199, random_state=0).fit(old).test(NEW).detectable_share < 1


def test_a_compression_has_no_statistics_of_columns():
    test = DriftTest(statistics="columns", random_state=0).fit(compress(OLD, size=40, rng=0))
    with pytest.raises(ValueError, match="statistics must hold one that this reference supports"):
        test.test(NEW)
