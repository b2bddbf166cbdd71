"""Strata of equal mass, and the rows drawn from them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reduset import Gaussian, KernelMean, get_threads, set_threads
from reduset._engine import Frame, equal_mass_strata
from reduset.sketching.strata import checked_coverage, draw_rows
from reduset.sketching.summaries import summarise


def strata_of(X, weights, size):
    """The stratum of each row, and the masses of the strata."""
    order, starts = equal_mass_strata(X, weights, size, Frame.around(X, 1.0))
    assert np.array_equal(np.sort(order), np.arange(len(X)))
    label = np.empty(len(X), np.int64)
    label[order] = np.repeat(np.arange(size), np.diff(starts))
    return label, np.bincount(label, weights, size)


def drawn(X, size, seed=0, coverage=None, weights=None):
    mean = KernelMean.from_samples(X, Gaussian(), weights)
    return draw_rows(mean, summarise(X, None if weights is None else mean.magnitudes), size, coverage, np.random.default_rng(seed))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 200), st.integers(1, 4), st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_strata_part_all_rows_into_equal_masses(n, d, seed, weighted, rounded):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X = X.round() if rounded else X
    size = int(rng.integers(1, n + 1))
    weights = rng.uniform(0.5, 1.0, n) if weighted else np.ones(n)
    label, masses = strata_of(X, weights, size)
    assert (np.bincount(label, minlength=size) >= 1).all()
    if weights.max() <= weights.sum() / size / 4:  # else a stratum has so few rows that a row more or less changes it much
        assert np.abs(masses - weights.sum() / size).max() <= weights.max() * (1 + 1e-9)
    if not weighted and n % size == 0:
        assert np.ptp(np.bincount(label)) == 0


def test_a_line_is_cut_into_consecutive_runs():
    x = np.random.default_rng(0).normal(size=300)
    label, _ = strata_of(x[:, None], np.ones(300), 7)
    assert (np.diff(label[np.argsort(x)]) != 0).sum() == 6


def test_cuts_follow_the_gaps_between_clusters():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(300, 2)), np.array([40, 0]) + rng.normal(size=(100, 2))])
    label, _ = strata_of(X, np.ones(400), 8)  # the gap lies at 6 of 8 strata, not in the middle
    assert not set(label[:300]) & set(label[300:])


def test_strata_do_not_depend_on_units_shift_or_threads():
    X = np.random.default_rng(1).normal(size=(5000, 5)) * [1, 2, 3, 4, 5]
    first, _ = strata_of(X, np.ones(5000), 300)
    assert np.mean(strata_of(8 * X, np.ones(5000), 300)[0] == first) == 1.0  # a power of 2: no rounding
    assert np.mean(strata_of(X + 1000, np.ones(5000), 300)[0] == first) > 0.98
    before = get_threads()
    try:
        set_threads(3)
        assert np.array_equal(strata_of(X, np.ones(5000), 300)[0], first)
    finally:
        set_threads(before)


def test_equal_rows_and_constant_columns():
    X = np.zeros((1000, 3))
    X[:100, 1] = 1.0
    label, masses = strata_of(X, np.ones(1000), 50)
    assert (masses == 20).all()
    assert not set(label[:100]) & set(label[100:])
    small = drawn(X, 50)
    assert (X[small.rows, 1] == 1).sum() == 5  # rows that repeat keep their proportion without weights
    assert strata_of(np.ones((40, 2)), np.ones(40), 8)[1].tolist() == [5.0] * 8


@pytest.mark.slow
def test_each_row_is_drawn_with_a_probability_proportional_to_its_weight():
    X = np.arange(12.0)[:, None]
    weights = np.tile([1.0, 2.0, 3.0], 4)
    times = np.zeros(12)
    for seed in range(600):
        times[drawn(X, 4, seed, 0.0, weights).rows] += 1
    within = times.reshape(4, 3) / 600
    assert np.abs(within.sum(axis=1) - 1).max() < 1e-12  # one of each stratum
    assert within[:, 0].mean() < within[:, 1].mean() < within[:, 2].mean()


def test_a_row_heavier_than_a_stratum_is_kept_with_its_own_weight():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(500, 2)), np.ones(500)
    weights[[3, 7]] = 200.0, 90.0
    small = drawn(X, 20, weights=weights)
    kept = dict(zip(small.rows.tolist(), small.weights, strict=True))
    assert kept[3] == pytest.approx(200 / weights.sum())
    assert kept[7] == pytest.approx(90 / weights.sum())
    others = [w for row, w in kept.items() if row not in (3, 7)]
    assert np.ptp(others) < 0.3 * np.mean(others)


@pytest.mark.parametrize("coverage", [None, 0.0, 0.2, 1.0])
def test_weights_sum_to_the_mass_and_rows_ascend(coverage):
    X = np.random.default_rng(0).standard_t(3, size=(3000, 4))
    small = drawn(X, 200, coverage=coverage)
    assert len(small.rows) == 200
    assert (np.diff(small.rows) > 0).all()
    assert small.weights.sum() == pytest.approx(1.0)
    assert (small.weights > 0).all()
    if coverage is not None:
        assert small.covering.sum() == min(round(coverage * 200), 199)


def test_covering_rows_take_the_mass_of_a_group_that_no_stratum_represents():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(9990, 3)), rng.normal(size=(10, 3)) * 0.1 + 30])
    small = drawn(X, 100, coverage=0.02)
    rare = small.rows >= 9990
    assert rare.sum() == 1
    assert small.weights[rare].sum() == pytest.approx(0.001)


def test_without_weights_columns_are_right_also_with_covering_rows():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=50_000), rng.gamma(2.0, size=50_000), rng.standard_t(6, size=50_000), rng.random(50_000)])
    means, spreads, deciles = [], [], []
    levels = np.arange(1, 10) / 10
    for seed in range(3):
        rows = X[drawn(X, 1000, seed).rows]
        random = X[rng.choice(len(X), 1000, replace=False)]
        each = [
            (
                np.abs(some.mean(axis=0) - X.mean(axis=0)) / X.std(axis=0),
                np.abs(some.std(axis=0) / X.std(axis=0) - 1),
                np.abs(np.stack([(some[:, j, None] <= np.quantile(X[:, j], levels)).mean(axis=0) for j in range(4)]) - levels),
            )
            for some in (rows, random)
        ]
        for list_, a, b in zip((means, spreads, deciles), *each, strict=True):
            list_.append((a.mean(), b.mean()))
    for found, most in ((means, 0.3), (spreads, 0.5), (deciles, 0.5)):
        ours, theirs = np.mean(found, axis=0)
        assert ours <= most * theirs


def test_all_rows_when_there_are_no_more():
    X = np.random.default_rng(0).normal(size=(30, 2))
    weights = np.ones(30)
    weights[5:15] = 0
    small = drawn(X, 25, weights=weights)
    assert np.array_equal(small.rows, np.flatnonzero(weights))
    assert np.allclose(small.weights, 1 / 20)


@pytest.mark.parametrize("coverage", [-0.1, 1.5, np.nan])
def test_coverage_is_a_proportion(coverage):
    with pytest.raises(ValueError, match="coverage must be"):
        checked_coverage(coverage)


@pytest.mark.slow
@pytest.mark.parametrize("d", [3, 20, 50])
def test_isolated_groups_as_large_as_a_stratum_have_rows(d):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(40_000, d))
    labels = np.zeros(40_000, int)
    for k in range(10):  # 40 rows each, one in a thousand: a stratum
        direction = rng.normal(size=d)
        labels[40 * k : 40 * k + 40] = k + 1
        X[40 * k : 40 * k + 40] = 8 * direction / np.linalg.norm(direction) + rng.normal(size=(40, d)) * 0.5
    found = [len(np.unique(labels[drawn(X, 1000, seed, 0.0).rows])) - 1 for seed in range(3)]
    assert np.mean(found) >= 9  # random rows have 6.3
