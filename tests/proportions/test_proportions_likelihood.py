"""Proportions by likelihood: the mixture found is the most likely one, the ratios are those of densities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from reduset import Gaussian
from reduset.proportions import ClassProportions
from reduset.proportions.class_means import FullClassMeans, LabelledPoints, ProjectedClassMeans, class_moments, grams
from reduset.proportions.cross_fit import FOLDS, cross_fitted, learn_ratios
from reduset.proportions.likelihood import TOLERANCE, HeldOutRatios, most_likely

RNG = np.random.default_rng(0)


def height(ratios, pi):
    return np.log(ratios @ pi).mean()


def by_em(ratios, steps=20000):
    """The oracle: expectation maximisation, slowly."""
    pi = np.full(ratios.shape[1], 1 / ratios.shape[1])
    for _ in range(steps):
        pi = pi * (ratios / (ratios @ pi)[:, None]).mean(axis=0)
    return pi


# -- the mixture ----------------------------------------------------------------------------------------------------------


@given(st.integers(1, 60), st.integers(2, 6), st.floats(0.1, 20), st.integers(0, 10**6))
def test_nothing_is_more_likely_than_what_is_found(n, k, sharpness, seed):
    """By concavity the best is above by at most max ψ̄ − 1: the optimum is known without knowing where it is."""
    logs = np.random.default_rng(seed).normal(size=(n, k)) * sharpness
    ratios = np.maximum(np.exp(logs - logs.max(axis=1, keepdims=True)), 1e-9)
    pi = most_likely(ratios)
    assert pi.min() >= 0
    assert pi.sum() == pytest.approx(1)
    assert (ratios / (ratios @ pi)[:, None]).mean(axis=0).max() - 1 < 10 * TOLERANCE


def test_it_is_where_expectation_maximisation_ends():
    truth = np.array([0.5, 0.3, 0.2, 0.0])
    codes = RNG.choice(4, 400, p=truth)
    ratios = norm.pdf(RNG.normal(codes * 2.0)[:, None], np.arange(4) * 2.0)
    found, slow = most_likely(ratios / ratios.max(axis=1, keepdims=True)), by_em(ratios)
    assert height(ratios, found) >= height(ratios, slow) - 1e-12
    np.testing.assert_allclose(found, slow, atol=1e-4)


def test_rows_that_are_certain_are_counted():
    ratios = np.full((10, 3), 1e-9)
    ratios[np.arange(10), [0] * 7 + [2] * 3] = 1.0
    np.testing.assert_allclose(most_likely(ratios), [0.7, 0, 0.3], atol=1e-6)


def test_rows_that_say_nothing_leave_all_classes_alike():
    np.testing.assert_allclose(most_likely(np.ones((5, 4))), np.full(4, 0.25))


# -- the interval ---------------------------------------------------------------------------------------------------------


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("slope", [1.0, 0.3, 3.0])
def test_intervals_hold_the_truth_even_by_ratios_that_are_wrong(slope):
    """Ratios flatter and steeper than the truth: what is most likely by them is biased, what rows held out say of them is not."""
    rng = np.random.default_rng(1)
    held = []
    for _ in range(400):
        truth = rng.dirichlet(np.ones(2))
        train, codes = rng.normal(np.repeat([0.0, 1.5], 400)), np.repeat([0, 1], 400)
        x = rng.normal(np.where(rng.random(300) < truth[1], 1.5, 0.0))

        def ratios(points):
            logs = slope * np.stack([-np.square(points) / 2, -np.square(points - 1.5) / 2], axis=1)
            return np.exp(logs - logs.max(axis=1, keepdims=True))

        kept = HeldOutRatios(ratios(train), codes, np.full(800, 1 / 400), np.full(2, 400.0))
        interval = kept.interval(ratios(x), most_likely(ratios(x)), np.zeros(2, np.bool_), 0.95)
        held.append((interval[:, 0] <= truth) & (truth <= interval[:, 1]))
    assert 0.93 <= np.mean(held) <= 0.99


def test_classes_that_no_row_of_a_small_sample_has_are_not_excluded():
    """None of 50 rows: up to about 3/50 of the population may be of that class all the same."""
    ratios = np.full((50, 2), 1e-9)
    ratios[:, 0] = 1.0
    both = np.where(np.eye(2)[np.repeat([0, 1], 100)] > 0, 1.0, 1e-9)
    kept = HeldOutRatios(both, np.repeat([0, 1], 100), np.full(200, 0.01), np.full(2, 100.0))
    low, high = kept.interval(ratios, most_likely(ratios), np.zeros(2, np.bool_), 0.95)[1]
    assert low == 0
    assert 0.05 < high < 0.12


# -- the ratios -----------------------------------------------------------------------------------------------------------


def test_ratios_are_those_of_the_densities_and_the_shares_of_training_do_not_enter():
    """Normal classes: the logarithm of the ratio is linear in x, so it is learnt, from classes of any size."""
    codes = np.repeat([0, 1], [6000, 1500])
    x = RNG.normal(1.5 * codes)[:, None]
    rows = LabelledPoints(x, codes, np.ones(len(codes)), 2)
    ratios = learn_ratios(rows, x, None, np.random.default_rng(0))(np.linspace(-1, 2.5, 20)[:, None], None)
    wanted = 1.5 * np.linspace(-1, 2.5, 20) - 1.5**2 / 2
    np.testing.assert_allclose(np.log(ratios[:, 1] / ratios[:, 0]), wanted, atol=0.2)


def test_the_regression_is_the_most_likely_one_under_its_prior():
    codes = RNG.integers(0, 3, 200)
    F = RNG.normal(size=(200, 2)) + codes[:, None]
    weights = RNG.uniform(0.5, 2, 200)
    found = learn_ratios(LabelledPoints(F, codes, weights, 3), F, None, np.random.default_rng(0))
    scaled = np.hstack([(F - found.centre) / found.scale, np.ones((200, 1))])

    def loss(flat):
        logs = log_softmax(found.log_proportions + scaled @ flat.reshape(3, 3), axis=1)
        return -(weights / weights.sum()) @ logs[np.arange(200), codes] + (flat @ flat) / 400

    assert loss(found.coefficients.ravel()) <= minimize(loss, np.zeros(9)).fun + 1e-6


def test_a_classifier_that_is_right_is_left_alone_and_one_that_is_wrong_is_put_right():
    codes = np.repeat([0, 1], 1000)
    x = RNG.normal(1.5 * codes)[:, None]
    rows = LabelledPoints(x, codes, np.ones(2000), 2)
    logs = np.hstack([np.zeros((2000, 1)), 1.5 * x - 1.5**2 / 2])
    right = learn_ratios(rows, logs, logs, np.random.default_rng(0))
    assert len(right.coefficients) == 0
    np.testing.assert_allclose(np.log(np.divide(*right(logs, logs).T)), -logs[:, 1], atol=1e-9)
    wrong = learn_ratios(rows, 4 * logs, 4 * logs, np.random.default_rng(0))
    slopes = np.log(np.divide(*wrong(4 * logs, 4 * logs).T))
    assert np.abs(slopes + logs[:, 1]).max() < 0.2 * np.abs(logs[:, 1]).max()


# -- rows that means have not seen ------------------------------------------------------------------------------------------


def three(count):
    codes = np.repeat([0, 1, 2], count)
    return LabelledPoints(RNG.normal(size=(3 * count, 2)) + codes[:, None], codes, np.ones(3 * count), 3)


def test_no_row_is_valued_by_means_that_it_is_in():
    """A row moved far away changes the values of other folds' rows and leaves its own fold's means as they were."""
    data, kernel = three(40), Gaussian(1.0)
    atoms = data.points[::6].copy()
    gram = grams([kernel], atoms)[0]

    def values(points):
        rows = LabelledPoints(points, data.codes, data.weights, 3)
        means = ProjectedClassMeans.of(kernel, atoms, gram, class_moments(rows, [kernel], atoms, True)[0], 1e-2)
        return cross_fitted(rows, means, 1e-2, np.random.default_rng(3))[2]

    moved = data.points.copy()
    moved[7] += 0.5
    same = np.isclose(values(data.points), values(moved), rtol=0, atol=1e-12).all(axis=1)
    assert same.sum() == len(same) // FOLDS - 1  # all of its fold but itself
    assert not same[7]


def test_without_compression_a_row_is_left_out_by_itself():
    data, kernel = three(12), Gaussian(1.0)
    found = FullClassMeans(kernel, data).leave_one_out_values()
    rest = data.part(np.delete(np.arange(36), 5))
    np.testing.assert_allclose(found[5], FullClassMeans(kernel, rest).values(data.points[5:6])[0], atol=1e-12)


# -- as a whole -------------------------------------------------------------------------------------------------------------


def blobs(counts, rng):
    codes = np.repeat(np.arange(3), counts)
    return np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])[codes] + rng.normal(size=(len(codes), 2)), codes


def test_it_errs_less_than_matching_on_samples_of_few_classes_and_of_all():
    """Forty samples of each kind; the truth has a corner of the simplex in it where likelihood gains most."""
    rng = np.random.default_rng(0)
    X, y = blobs([400, 400, 400], rng)
    errors = {}
    for method in ("likelihood", "matching"):
        model, draws = ClassProportions(method=method, size=60, random_state=0).fit(X, y), np.random.default_rng(1)
        errors[method] = []
        for t in range(80):
            counts = draws.multinomial(100, np.eye(3)[t % 3] if t % 2 else draws.dirichlet(np.ones(3)))
            found = model.predict_proportions(blobs(counts, draws)[0])
            errors[method].append(np.abs(found - counts / 100).mean())
    assert np.mean(errors["likelihood"]) < 0.9 * np.mean(errors["matching"])


def test_with_a_classifier_that_knows_the_classes_it_is_nearly_their_own_likelihood():
    rng = np.random.default_rng(0)
    X, y = blobs([1000, 1000, 1000], rng)
    model = ClassProportions(classifier=LogisticRegression(), size=40, random_state=0).fit(X, y)
    Q = blobs([120, 30, 50], rng)[0]
    centres = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    true = np.exp(-np.square(Q[:, None] - centres).sum(axis=2) / 2)
    np.testing.assert_allclose(model.predict_proportions(Q), by_em(true, 2000), atol=0.03)


def test_a_class_of_one_row_has_an_answer():
    X, y = blobs([30, 30, 1], np.random.default_rng(0))
    with pytest.warns(UserWarning, match="class 2 has a single row"):
        model = ClassProportions(size=10, random_state=0).fit(X, y)
    found = model.estimate(X)
    assert np.isfinite(found.interval).all()
    assert found.values.sum() == pytest.approx(1)


def test_method_is_one_of_two():
    with pytest.raises(ValueError, match=r"method must be .*likelihood.*matching.*'EM'"):
        ClassProportions(method="EM").fit(np.eye(4), [0, 0, 1, 1])
