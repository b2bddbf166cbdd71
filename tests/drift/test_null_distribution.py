"""What chance does: against all permutations, closed forms and simulation."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, expon, kstest

from reduset.drift.null_distribution import (
    joined,
    normal,
    permuted,
    quadratic_p_values,
    resampled,
    signed,
    square_root,
    upper_tail,
)


def test_permutations_are_drawn_from_all_of_them():
    rows = np.random.default_rng(0).normal(size=(6, 1))
    every = sorted(rows[list(some)].mean() - np.delete(rows, list(some), 0).mean() for some in combinations(range(6), 2))
    drawn = permuted(rows, 2, 4000, np.random.default_rng(1))[:, 0]
    nearest = np.abs(drawn[:, None] - np.asarray(every)).argmin(axis=1)
    np.testing.assert_allclose(drawn, np.asarray(every)[nearest], atol=1e-6)
    assert np.bincount(nearest, minlength=15).min() > 4000 / 15 * 0.75


@pytest.mark.parametrize("count", [3, 40, 500])  # looked up, counted, more than there are
def test_resampled_means_have_the_moments_of_a_sample(count):
    rows = np.random.default_rng(0).gamma(1.0, size=(200, 2)) @ np.array([[1.0, 0.5], [0.0, 1.0]])
    drawn = resampled(rows, np.full(count, 1 / count), 4000, np.random.default_rng(1))
    np.testing.assert_allclose(drawn.mean(axis=0), 0.0, atol=5 * np.sqrt(2 / count / 4000))
    np.testing.assert_allclose(np.cov(drawn.T) * count, np.cov(rows.T, bias=True), rtol=0.15, atol=0.05)


def test_resampled_sums_have_the_moments_of_a_weighted_sample():
    rows = np.random.default_rng(0).gamma(1.0, size=(200, 2))
    weights = np.array([0.7, 0.2, 0.05, 0.05])
    drawn = resampled(rows, weights, 4000, np.random.default_rng(1))
    np.testing.assert_allclose(drawn.mean(axis=0), 0.0, atol=0.06)
    np.testing.assert_allclose(np.cov(drawn.T) / (weights @ weights), np.cov(rows.T, bias=True), rtol=0.15, atol=0.1)


def test_normal_and_signed_draws_have_the_covariance_they_are_told():
    A = np.array([[1.0, 0.0], [0.5, 0.2]])
    drawn = normal(square_root(A @ A.T), 20_000, np.random.default_rng(0))
    np.testing.assert_allclose(np.cov(drawn.T), A @ A.T, atol=0.03)
    parts = np.random.default_rng(1).normal(size=(50, 2))
    np.testing.assert_allclose(np.cov(signed(parts, 20_000, np.random.default_rng(2)).T), parts.T @ parts, atol=1.5)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.floats(0.01, 0.99))
def test_equal_coefficients_are_a_chi_squared_law(count, share):
    value = float(chi2.isf(share, count))
    assert upper_tail(3.0 * value, np.full(count, 3.0)) == pytest.approx(share, rel=0.04, abs=0.002)


@pytest.mark.parametrize("power", [1e-2, 1e-6, 1e-12, 1e-40])
def test_the_tail_is_right_far_out(power):
    assert upper_tail(2 * expon.isf(power), np.ones(2)) == pytest.approx(power, rel=0.05)  # χ²₂ is exponential


def test_the_tail_falls_and_ends():
    values = np.linspace(0, 60, 121)
    tails = [upper_tail(float(v), np.array([3.0, 1.0, 0.2, 0.0])) for v in values]
    assert (np.diff(tails) <= 1e-9).all()
    assert tails[0] == 1.0
    assert upper_tail(1.0, np.zeros(3)) == 0.0


def test_the_tail_of_unequal_coefficients_is_that_of_simulation():
    coefficients = np.array([5.0, 2.0, 1.0, 0.5, 0.1])
    drawn = np.random.default_rng(0).chisquare(1, size=(200_000, 5)) @ coefficients
    for share in (0.5, 0.1, 0.01):
        assert upper_tail(float(np.quantile(drawn, 1 - share)), coefficients) == pytest.approx(share, rel=0.08)


def test_joined_p_values_are_uniform_under_chance_whatever_the_statistics():
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(3, 3))
    found = []
    for _ in range(400):
        values = np.square(rng.standard_normal((100, 3)) @ mixing)
        found.append(joined(values[:1], values[1:], np.array([0.5, 0.3, 0.2]))[0][0])
    assert kstest(found, "uniform").pvalue > 0.01


def test_joined_sees_what_any_statistic_sees():
    drawn = np.random.default_rng(0).random((199, 4))
    (p_value,), (each,) = joined(np.array([[0.5, 0.5, 0.5, 9.0]]), drawn, np.full(4, 0.25))
    assert each[3] == pytest.approx(1 / 200)
    assert p_value < 0.05


def test_ties_are_counted_against_the_verdict():
    (p_value,), _ = joined(np.zeros((1, 2)), np.zeros((99, 2)), np.full(2, 0.5))
    assert p_value == 1.0


def test_p_values_of_quadratic_forms_follow_their_chi_squared_tails():
    forms = np.array([[1.0, 0.0], [0.0, 2.0]])
    found = quadratic_p_values(np.array([30.0, 1.0]), forms, np.eye(2))
    assert found == pytest.approx([chi2.sf(30.0, 1), chi2.sf(0.5, 1)], rel=0.12)


@pytest.mark.parametrize("draws", [1, 60])
def test_p_values_are_the_proportions_of_observation_and_draws_that_are_as_large(draws):
    rng = np.random.default_rng(3)
    drawn, counts = np.round(rng.exponential(size=(draws, 3)), 1), np.array([0.5, 0.3, 0.2])  # with ties
    observed = np.concatenate([np.round(rng.exponential(size=(20, 3)), 1), drawn[:1], 9 * np.ones((1, 3)), np.zeros((1, 3))])
    p_values, each = joined(observed, drawn, counts)
    for values, p_value, alone in zip(observed, p_values, each, strict=True):
        every = np.concatenate([values[None], drawn])
        ranks = (every[None] >= every[:, None] * (1 - 1e-4)).mean(axis=1)
        evidence = (counts / ranks).sum(axis=1)
        np.testing.assert_allclose(alone, ranks[0])
        assert p_value == pytest.approx((evidence >= evidence[0] * (1 - 1e-12)).mean())


def test_draws_in_several_parts_are_those_of_one(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(30, 2))
    whole = permuted(rows, 10, 300, np.random.default_rng(1))
    monkeypatch.setattr("reduset.drift.null_distribution.BLOCKS_AT_ONCE", 2)
    np.testing.assert_array_equal(permuted(rows, 10, 300, np.random.default_rng(1)), whole)
