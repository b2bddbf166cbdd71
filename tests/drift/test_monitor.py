"""The monitor: run lengths, alarms, since when, the same in any parts, checkpoints, rows that depend on each other."""

import re
import warnings

import numpy as np
import pytest
from scipy.signal import lfilter

from archive_cases import parts, store
from reduset.drift import DriftMonitor, DriftTest
from reduset.drift.watch_rule import Dependence, History

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 2))


@pytest.fixture(scope="module")
def fresh():
    known = DriftTest(random_state=0).fit(X)
    return DriftMonitor(known, ert=300, random_state=0)


@pytest.fixture
def monitor(fresh):
    fresh.reset()
    return fresh


@pytest.mark.slow
def test_without_drift_the_first_alarm_comes_after_ert_rows_on_average(monitor):
    rng, found = np.random.default_rng(1), []
    for _ in range(80):
        monitor.reset()
        while not monitor.alarm_:
            monitor.update(rng.normal(size=(150, 2)))
        found.append(monitor.alarmed_at_ + 1)
    mean, error = np.mean(found), np.std(found) / np.sqrt(80)
    assert abs(mean - 300) < 3 * error + 30


def test_a_jump_is_found_soon_and_told_since_when(monitor):
    rng, delays, inside = np.random.default_rng(2), [], 0
    for _ in range(20):
        monitor.reset()
        monitor.update(rng.normal(size=(60, 2)))
        if monitor.alarm_:
            continue
        state = monitor.update(rng.normal(size=(300, 2)) + np.array([1.0, 0.0]))
        assert state.alarm
        delays.append(monitor.alarmed_at_ - 60)
        row, low, high = monitor.since_
        assert low <= row <= high <= monitor.alarmed_at_
        inside += low <= 60 <= high
    assert np.median(delays) < 30
    assert inside >= 0.7 * len(delays)


def test_a_slow_slide_is_found(monitor):
    rng = np.random.default_rng(3)
    slide = np.linspace(0, 1.5, 900)[:, None]
    monitor.update(rng.normal(size=(900, 2)) + slide)
    assert monitor.alarm_


@pytest.mark.parametrize("parts", [[500], [1] * 500, [3, 197, 300]])
def test_the_parts_in_which_rows_come_do_not_matter(monitor, parts):
    rows = np.random.default_rng(4).normal(size=(500, 2)) * 1.2
    begun = 0
    for count in parts:
        state = monitor.update(rows[begun : begun + count])
        begun += count
    once = np.random.default_rng(4).normal(size=(500, 2)) * 1.2
    alarm, since, history = monitor.alarmed_at_, monitor.since_, monitor.history_
    monitor.reset()
    assert state.n_seen == monitor.update(once).n_seen
    assert (alarm, since) == (monitor.alarmed_at_, monitor.since_)
    np.testing.assert_array_equal(history["statistic"], monitor.history_["statistic"])


def test_a_checkpoint_goes_on_as_if_nothing_had_happened(monitor, tmp_path):
    rng = np.random.default_rng(5)
    first, second = rng.normal(size=(130, 2)), rng.normal(size=(200, 2)) + 0.6
    monitor.update(first)
    monitor.checkpoint(tmp_path / "state.npz", {"told": [1]})
    other = DriftMonitor.resume(tmp_path / "state.npz")
    assert other.about_ == {"told": [1]}
    assert other.windows == monitor.windows
    one, two = monitor.update(second), other.update(second)
    assert one == two
    np.testing.assert_array_equal(monitor.history_["statistic"], other.history_["statistic"])
    other.checkpoint(tmp_path / "state.npz")
    third = DriftMonitor.resume(tmp_path / "state.npz")
    assert third.state_ == two
    assert third.alarm_


def test_a_checkpoint_that_was_changed_is_refused(monitor, tmp_path):
    path = tmp_path / "state.npz"
    monitor.checkpoint(path)
    content = bytearray(path.read_bytes())
    content[-3000] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"changed after|not a readable"):
        DriftMonitor.resume(path)


@pytest.mark.parametrize(("name", "value"), [("ring", 1e99), ("windows", 1e30), ("kept", -1e30), ("early", 1e20), ("form", 1e60)])
def test_a_checkpoint_with_numbers_out_of_range_names_them(monitor, tmp_path, name, value):
    path = tmp_path / "state.npz"
    monitor.update(X[:50])
    monitor.checkpoint(path)
    header, arrays = parts(path)
    changed = arrays[name].copy()
    changed.flat[changed.size // 2] = value
    store(path, header, arrays | {name: changed})
    with pytest.raises(ValueError, match=rf"{name} must .*{re.escape(f'{value:g}')}"):
        DriftMonitor.resume(path)


def dependent(rng, n, strength=0.9):
    noise = rng.normal(size=(n, 2)) * np.sqrt(1 - strength**2)
    return lfilter([1.0], [1.0, -strength], noise, axis=0)


def test_rows_that_depend_on_each_other_are_warned_of_in_one_sentence(monitor):
    rows = dependent(np.random.default_rng(6), 600, 0.4)
    with pytest.warns(UserWarning, match=r"them.*thin=\d+"):
        monitor.update(rows)


@pytest.mark.parametrize("changed", [600, 100, 250])
def test_rows_that_do_not_are_not_warned_of_even_where_their_law_changes(monitor, changed):
    rows = np.random.default_rng(7).normal(size=(600, 2))
    rows[changed:] += 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monitor.update(rows)


def test_dependence_says_how_many_rows_count_as_one():
    rng = np.random.default_rng(8)
    none, some = Dependence.of(rng.normal(size=(2000, 2))), Dependence.of(dependent(rng, 20_000))
    assert none.p_value > 1e-4
    assert none.rows <= 2
    assert some.p_value < 1e-12
    assert some.rows == pytest.approx((1 + 0.9) / (1 - 0.9), rel=0.3)
    assert Dependence.of(np.ones((100, 2))).rows == 1


def test_thinned_rows_are_taken_in_one_of_so_many():
    monitor = DriftMonitor(DriftTest(random_state=0).fit(X), ert=2000, thin=5, random_state=0)
    rows = np.random.default_rng(9).normal(size=(103, 2))
    rows[::5] += 3.0
    assert monitor.windows[0] == 40
    for part in np.array_split(rows, 7):
        monitor.update(part)
    assert monitor.alarm_
    assert monitor.alarmed_at_ % 5 == 0
    monitor.reset()
    rows[::5] -= 3.0
    rows[1::5] += 30.0
    assert not monitor.update(rows).alarm


def test_a_history_keeps_its_largest_values_in_bounded_room():
    history, rng = History(), np.random.default_rng(10)
    values = rng.random(50_000)
    values[[7, 30_000]] = 5.0, 6.0
    for part in np.array_split(np.arange(50_000), 23):
        history.add(part, values[part])
    found = history.arrays()
    assert len(found["row"]) <= 2048
    assert (np.diff(found["row"]) > 0).all()
    assert {7, 30_000} <= set(found["row"][found["statistic"] >= 5.0])


def test_a_reference_without_rows_can_be_watched_against():
    monitor = DriftMonitor(DriftTest(random_state=0, keep_rows=False).fit(X), ert=300, random_state=0)
    assert monitor.update(np.random.default_rng(11).normal(size=(200, 2)) + 1.5).alarm


def test_a_single_row_may_be_a_vector(monitor):
    assert monitor.update(np.zeros(2)).n_seen == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ert": 3}, "ert must be at least"),
        ({"windows": [8, 50_000]}, "at most as long as the reference"),
        ({"windows": []}, "windows must hold at least one length"),
        ({"windows": [1]}, "windows must be at least 2"),
        ({"thin": 0}, "thin must be at least 1"),
        ({"ert": 100, "thin": 50}, "ert must be at least the shortest window"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        DriftMonitor(X[:2000], random_state=0, **options)


def test_a_reference_of_few_rows_sets_no_threshold():
    with pytest.raises(ValueError, match="reference must have at least 50 rows"):
        DriftMonitor(X[:40])


def test_rows_of_other_columns_are_refused_and_nothing_is_lost(monitor):
    monitor.update(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="2 columns of the reference"):
        monitor.update(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="finite"):
        monitor.update(np.full((3, 2), np.nan))
    assert monitor.n_seen_ == 3
    assert "3 rows" in str(monitor.state_)
