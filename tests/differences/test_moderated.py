"""Moderated statistics against t tests, analysis of variance and plain least squares; the prior of variances against draws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import polygamma
from scipy.stats import f_oneway, ttest_ind, ttest_rel

from reduset.differences import design_of
from reduset.differences.moderated import COLUMNS, MOST_FREEDOM, fit, prior_of
from reduset.differences.relabelling import relabellings
from reference_differences import f_statistic


def fits(values, design, weights=None, known=1.0, most=50):
    return fit(values, weights, design, relabellings(design, np.random.default_rng(0), most), known)


def test_f_of_one_population_is_that_of_the_analysis_of_variance():
    y = np.random.default_rng(0).normal(size=12)
    labels = ["a"] * 3 + ["b"] * 5 + ["c"] * 4
    np.testing.assert_allclose(fits(y[:, None], design_of(labels)).statistics[0], f_oneway(y[:3], y[3:8], y[8:]).statistic)


def test_f_of_two_groups_is_the_square_of_students_t_and_of_the_paired_one_with_blocks():
    y = np.random.default_rng(1).normal(size=(14, 2)) + np.repeat(np.arange(7), 2)[:, None]
    labels, patients = ["a", "b"] * 7, np.repeat(np.arange(7), 2).tolist()
    plain, paired = fits(y, design_of(labels)), fits(y, design_of(labels, block=patients))
    np.testing.assert_allclose(plain.statistics[0], ttest_ind(y[1::2], y[::2]).statistic ** 2)
    np.testing.assert_allclose(paired.statistics[0], ttest_rel(y[1::2], y[::2]).statistic ** 2)
    for found, test in ((plain, ttest_ind), (paired, ttest_rel)):
        expected = test(y[1::2], y[::2]).confidence_interval(0.95)
        np.testing.assert_allclose(found.effects[0], (expected.low + expected.high) / 2)
        assert set(found.freedom) == {test(y[1::2], y[::2]).df[0]}


@pytest.mark.parametrize("groups", [2, 3, 4])
@pytest.mark.parametrize("blocked", [False, True])
def test_weighted_f_is_that_of_two_fits_by_least_squares_under_every_labelling(groups, blocked):
    rng = np.random.default_rng(groups)
    n = 16
    labels = [f"g{k % groups}" for k in range(n)]
    block = np.repeat(np.arange(4), [3, 4, 4, 5]).tolist() if blocked else None
    design = design_of(labels, block=block, covariates={"age": rng.normal(size=n), "sex": rng.choice(["f", "m"], n)})
    values, weights = rng.normal(size=(n, 2)), rng.exponential(size=(n, 2)) + 0.01
    labelled = relabellings(design, rng, 20)
    found = fit(values, weights, design, labelled).statistics
    for row, codes in enumerate(labelled.codes):
        for k in range(2):
            expected = f_statistic(values[:, k], codes, design.nuisance, weights[:, k])
            np.testing.assert_allclose(found[row, k], expected, rtol=1e-7)


def test_populations_of_equal_weights_share_their_work_and_nothing_else():
    rng = np.random.default_rng(0)
    values, design = rng.normal(size=(10, COLUMNS + 9)), design_of(["a", "b"] * 5)
    shared, single = fits(values, design), fits(values, design, np.ones_like(values))
    for name in ("statistics", "effects", "errors", "freedom"):
        np.testing.assert_allclose(getattr(shared, name), getattr(single, name), rtol=1e-9)


def test_variances_are_drawn_to_the_prior_by_its_freedom():
    rng = np.random.default_rng(3)
    values, design = rng.normal(size=(8, 40)) * np.exp(rng.normal(0, 0.5, 40)), design_of(["a"] * 4 + ["b"] * 4)
    found = fits(values, design)
    d = 6
    prior = prior_of(values.var(axis=0, ddof=1), d + 1)
    assert 0 < prior.freedom < MOST_FREEDOM
    between = 2 * (values[4:].mean(axis=0) - values[:4].mean(axis=0)) ** 2
    within = values[:4].var(axis=0) * 4 + values[4:].var(axis=0) * 4
    moderated = (prior.freedom * prior.variance + within) / (prior.freedom + d)
    np.testing.assert_allclose(found.statistics[0], between / moderated)
    np.testing.assert_allclose(found.errors[0], np.sqrt(moderated / 2))
    np.testing.assert_allclose(found.freedom, prior.freedom + d)


@pytest.mark.parametrize(("d0", "s0"), [(4.0, 1.0), (10.0, 0.3), (3.0, 5.0)])
def test_the_prior_is_found_in_draws_of_it(d0, s0):
    rng = np.random.default_rng(7)
    freedom = rng.choice([3.0, 8.0, 20.0], 40_000)
    truth = d0 * s0 / rng.chisquare(d0, 40_000)
    found = prior_of(truth * rng.chisquare(freedom) / freedom, freedom)
    np.testing.assert_allclose([found.freedom, found.variance], [d0, s0], rtol=0.08)


def test_equal_variances_have_a_prior_without_end_and_no_freedom_beyond_that_of_all():
    rng = np.random.default_rng(0)
    spread = prior_of(np.full(50, 2.0), 5)
    assert spread.freedom == MOST_FREEDOM
    design = design_of(["a", "b"] * 4)
    values = rng.normal(size=(8, 3))
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    np.testing.assert_allclose(fits(values, design).freedom, 3 * design.freedom)


def test_few_populations_have_no_prior_and_one_without_variance_does_not_spoil_it():
    assert prior_of(np.array([1.0, 2.0]), 5).freedom == 0
    assert prior_of(np.zeros(9), 5) == (0.0, 0.0)
    some = np.random.default_rng(0).chisquare(6, 200) / 6
    np.testing.assert_allclose(prior_of(np.append(some, 1e-300), 6).variance, prior_of(some, 6).variance, rtol=0.4)


@settings(max_examples=30, deadline=None)
@given(st.floats(1e-4, 1e3))
def test_the_inverse_of_trigamma_inverts_it(y):
    from reduset.differences import moderated

    np.testing.assert_allclose(moderated._trigamma_inverse(float(polygamma(1, y))), y, rtol=1e-6)


def test_values_that_are_all_the_same_differ_in_no_labelling():
    found = fits(np.full((8, 4), 0.1) + np.arange(4), design_of(["a", "b"] * 4))
    assert not found.statistics.any()
    assert not found.effects.any()
    assert not found.errors.any()


def test_values_that_only_the_group_tells_are_beyond_all_others():
    labels = ["a"] * 4 + ["b"] * 4
    found = fits((np.array(labels) == "b").astype(float)[:, None] / 3, design_of(labels), most=100)
    assert np.isinf(found.statistics[0, 0])
    assert np.isinf(found.statistics).sum() == 2  # the groups exchanged are the same


def test_less_known_samples_leave_less_freedom_and_larger_errors():
    values, design = np.random.default_rng(0).normal(size=(10, 2)), design_of(["a", "b"] * 5)
    full, half = fits(values, design), fits(values, design, known=np.array([0.5, 0.5]))
    np.testing.assert_allclose(half.freedom, full.freedom / 2)
    np.testing.assert_allclose(half.errors, full.errors * np.sqrt(2))
    np.testing.assert_allclose(half.effects, full.effects)
