"""F statistics against t tests, analysis of variance and plain least squares; the variance that counting leaves."""

import numpy as np
import pytest
from scipy.stats import f_oneway, ttest_ind, ttest_rel

from reduset.cytometry import design_of
from reduset.cytometry.comparing import COLUMNS, fit
from reduset.cytometry.design import relabellings
from reference_differences import f_statistic


def fits(values, design, weights=None, known=1.0, most=50, variance=0.0):
    return fit(values, weights, design, relabellings(design, np.random.default_rng(0), most), known, variance)


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


def test_no_variance_is_less_than_what_counting_leaves_and_larger_ones_are_their_own():
    values, design = np.random.default_rng(3).normal(size=(8, 3)) * [1e-3, 1.0, 1.0], design_of(["a"] * 4 + ["b"] * 4)
    plain, held = fits(values, design), fits(values, design, variance=np.full((8, 3), [0.04, 0.04, 0.0]))
    between = 2 * (values[4:].mean(axis=0) - values[:4].mean(axis=0)) ** 2
    within = (values[:4].var(axis=0) * 4 + values[4:].var(axis=0) * 4) / 6
    np.testing.assert_allclose(plain.statistics[0], between / within)
    np.testing.assert_allclose(held.statistics[0], between / [0.04, *within[1:]])
    np.testing.assert_allclose(held.errors[0], np.sqrt(np.array([0.04, *within[1:]]) / 2))
    np.testing.assert_array_equal(held.effects, plain.effects)


def test_counting_is_weighted_as_values_are_and_counts_for_more_where_less_is_known():
    values, design = np.zeros((6, 1)), design_of(["a"] * 3 + ["b"] * 3)
    values[3:] = 0.1
    weights, variance = np.array([[0.5], [1.0], [1.5]] * 2), np.array([[0.3], [0.2], [0.1]] * 2)
    found = fits(values, design, weights, np.array([0.5]), variance=variance)
    np.testing.assert_allclose(found.statistics[0], 0.1**2 * 1.5 / ((0.15 + 0.2 + 0.15) / 3 / 0.5))


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
