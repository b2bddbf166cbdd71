"""Class proportions of hostile and awkward input: classes that cannot be separated, few atoms, frames, spaces, weights, memory."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from reduset import Gaussian
from reduset.compression import NotReachedWarning
from reduset.proportions import ClassProportions
from reduset.proportions.simplex_fit import SimplexFit

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(60, 2)), RNG.normal(size=(60, 2)) * 0.8 + 2
Q = RNG.normal(size=(50, 2)) + 0.5
X, Y = np.r_[A, B], np.repeat([0, 1], 60)


def fitted(X, y, **options):
    return ClassProportions(**{"kernel": Gaussian(1.0), "size": 30, "ridge": 1e-3, "random_state": 0} | options).fit(X, y)


def are_proportions(values):
    return np.isfinite(values).all() and values.min() >= 0 and values.sum() == pytest.approx(1)


# -- classes that cannot be separated ---------------------------------------------------------------------------------------

NORMS = {"whitened": {}, "kernel": {"norm": "kernel"}, "all": {"norm": "kernel", "size": "all"}}
NORM = pytest.mark.parametrize("norm", NORMS)
SOLVER = pytest.mark.parametrize("solver", ["simplex", "projection"])


@NORM
@SOLVER
def test_classes_of_the_same_rows_are_named_and_nothing_is_claimed_about_them(norm, solver):
    with pytest.warns(UserWarning, match="classes ill, well cannot be separated"):
        model = fitted(np.r_[A, A], np.repeat(["ill", "well"], 60), solver=solver, **NORMS[norm])
    found = model.estimate(A[:40])
    assert are_proportions(found.values)
    np.testing.assert_array_equal(found.interval, [[0, 1], [0, 1]])
    assert found.fits
    assert found.foreign < 0.2
    far = model.estimate(Q + 50.0)
    assert are_proportions(far.values)
    assert not far.fits


@NORM
@SOLVER
def test_beside_classes_that_are_alike_the_others_are_still_told(norm, solver):
    with pytest.warns(UserWarning, match="classes a, c cannot be separated"):
        model = fitted(np.r_[A, B + 1, A], np.repeat(["a", "b", "c"], 60), solver=solver, **NORMS[norm])
    for share in (0, 20, 60):
        found = model.estimate(np.r_[A[: 60 - share], B[:share] + 1])
        assert are_proportions(found.values)
        assert found.values[1] == pytest.approx(share / 60, abs=0.08)
        np.testing.assert_array_equal(found.interval[[0, 2]], [[0, 1], [0, 1]])
        assert np.diff(found.interval[1]) < 0.5
        assert found.fits


@NORM
def test_two_pairs_of_classes_that_are_alike_still_tell_strangers(norm):
    with pytest.warns(UserWarning, match="classes 0, 1, 2, 3 cannot be separated"):
        model = fitted(np.r_[A, A, B + 1, B + 1], np.repeat(np.arange(4), 60), **NORMS[norm])
    found = model.estimate(np.r_[A[:30], B[:10] + 1])
    assert are_proportions(found.values)
    assert found.values[:2].sum() == pytest.approx(0.75, abs=0.05)
    assert found.fits
    assert not model.estimate(Q + 50.0).fits


@pytest.mark.parametrize("scale", [1e-250, 1e-20, 1.0, 1e20])
@SOLVER
def test_means_that_are_mixtures_of_others_have_proportions_at_any_scale(scale, solver):
    rng = np.random.default_rng(0)
    F = rng.normal(size=(2, 6))
    F = np.vstack([F, 0.3 * F[0] + 0.7 * F[1], F[0]])
    fit = SimplexFit(scale * F @ F.T)
    for _ in range(50):
        assert are_proportions(fit.solve(scale * (F @ rng.normal(size=6))[None], solver)[0])
    assert fit.blurred.all()
    assert np.isfinite(fit.separation)


def test_means_of_nothing_have_equal_shares():
    fit = SimplexFit(np.zeros((3, 3)))
    np.testing.assert_allclose(fit.solve(np.zeros((1, 3)))[0], 1 / 3)
    assert fit.blurred.all()


def test_two_rows_of_two_classes_are_enough():
    model = ClassProportions(kernel=Gaussian(1.0), ridge=1e-3, random_state=0).fit([[0.0, 0.0], [3.0, 0.0]], ["a", "b"])
    assert len(model.atoms_) == 2
    assert are_proportions(model.estimate(Q).values)
    np.testing.assert_allclose(model.predict_proportions([[3.0, 0.0]]), [0, 1], atol=1e-6)


# -- how many atoms ----------------------------------------------------------------------------------------------------------


def five_classes(count, seed=0):
    codes = np.repeat(np.arange(5), count)
    return np.random.default_rng(seed).normal(size=(5 * count, 2)) * 0.5 + 2 * np.c_[np.cos(codes), np.sin(codes)], codes


def test_fewer_atoms_than_classes_are_refused():
    with pytest.raises(ValueError, match=r"size .*got 4"):
        fitted(*five_classes(40), size=4)


def test_as_many_atoms_as_classes_recover_a_mixture_of_the_training_rows():
    X, y = five_classes(40)
    rows = np.concatenate([np.tile(np.flatnonzero(y == code), times) for code, times in enumerate((4, 3, 1, 0, 2))])
    found = fitted(X, y, size=5, method="matching").estimate(X[rows])
    np.testing.assert_allclose(found.values, [0.4, 0.3, 0.1, 0, 0.2], atol=1e-6)
    assert found.fits


@pytest.mark.parametrize("options", [{}, {"tol": 0.9}])
def test_the_usual_number_of_atoms_is_at_least_that_of_the_classes(options):
    X, y = five_classes(1)
    model = ClassProportions(Gaussian(1.0), ridge=1e-3, random_state=0, **options).fit(X, y)
    assert len(model.atoms_) == 5


# -- data frames -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", [pd, pl])
def test_columns_in_another_order_are_refused(library):
    frame = library.DataFrame({"a": X[:, 0], "b": X[:, 1] * 3})
    model = fitted(frame, Y)
    assert list(model.feature_names_in_) == ["a", "b"]
    np.testing.assert_array_equal(model.predict_proportions(frame), fitted(X * [1, 3], Y).predict_proportions(X * [1, 3]))
    for method in (model.predict_proportions, model.estimate):
        with pytest.raises(ValueError, match="feature names should match"):
            method(frame[["b", "a"]])


def test_names_are_forgotten_by_a_fit_without_them():
    model = fitted(pd.DataFrame(X, columns=["a", "b"]), Y)
    assert not hasattr(model.fit(X, Y), "feature_names_in_")
    with pytest.warns(UserWarning, match="X has feature names, but ClassProportions was fitted without"):
        model.predict_proportions(pd.DataFrame(X, columns=["a", "b"]))


class ByName(LogisticRegression):
    """Wants a frame, and takes two of its columns."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X[["a", "b"]], y, sample_weight)

    def predict_proba(self, X):
        return super().predict_proba(X[["a", "b"]])


@pytest.mark.parametrize("library", [pd, pl])
def test_a_classifier_may_select_columns_by_name(library):
    frame = library.DataFrame({"noise": RNG.normal(size=120), "a": X[:, 0], "b": X[:, 1]})
    weights = np.r_[0.0, np.ones(119)]
    named = ClassProportions(classifier=ByName(), size=20, random_state=0).fit(frame, Y, weights)
    plain = ClassProportions(classifier=LogisticRegression(), size=20, random_state=0).fit(X[1:], Y[1:])
    np.testing.assert_allclose(named.predict_proportions(frame), plain.predict_proportions(X), atol=1e-9)


# -- the space ---------------------------------------------------------------------------------------------------------------


def test_the_kernels_own_space_is_kept():
    kernel = Gaussian(1.0, space="l2")
    model = fitted(X, Y, kernel=kernel)
    assert model.kernel_.space == "l2"
    assert fitted(X, Y).kernel_.space == "rkhs"


# -- weights and memory ------------------------------------------------------------------------------------------------------


@NORM
def test_only_the_ratios_of_weights_matter_however_large_they_are(norm):
    plain = fitted(X, Y, **NORMS[norm])
    for scale in (1e308, 1e-300):
        huge = fitted(X, Y, **NORMS[norm]).fit(X, Y, sample_weight=np.full(len(X), scale))
        np.testing.assert_allclose(huge.predict_proportions(Q), plain.predict_proportions(Q), atol=1e-12)


def test_a_classifier_gets_the_weights_as_they_are():
    """They are as good as rows to one that is regularised."""
    weights = np.full(len(X), 3.0)
    model = ClassProportions(classifier=LogisticRegression(C=0.01), size=10, random_state=0).fit(X, Y, weights)
    np.testing.assert_allclose(model.classifier_.coef_, LogisticRegression(C=0.01).fit(X, Y, weights).coef_)


def test_what_is_kept_is_not_the_users_memory():
    own, weights = X.copy(), np.ones(len(X))
    model = ClassProportions(Gaussian(1.0), size="all", norm="kernel").fit(own, Y, weights)
    before = model.estimate(Q)
    assert not np.shares_memory(model.atoms_, own)
    own[:], weights[:] = 7.0, 5.0
    after = model.estimate(Q)
    np.testing.assert_array_equal(before.values, after.values)
    np.testing.assert_array_equal(before.interval, after.interval)


def test_a_tolerance_takes_a_bounded_number_of_atoms():
    with pytest.warns(NotReachedWarning, match="tol=1e-06.*12"):
        model = ClassProportions(Gaussian(0.5), tol=1e-6, max_size=12, ridge=1e-3, random_state=0).fit(X, Y)
    assert len(model.atoms_) == 12


def test_bandwidths_in_groups_are_bandwidths_together(monkeypatch):
    options = {"size": 20, "random_state": 0}
    together = ClassProportions(**options).fit(X, Y)
    monkeypatch.setattr("reduset.proportions.bandwidth_search.ENTRIES", 2 * 20**2 + 1)
    groups = ClassProportions(**options).fit(X, Y)
    assert groups.search_.bandwidths == together.search_.bandwidths
    np.testing.assert_allclose(groups.search_.errors, together.search_.errors, atol=1e-6)
    assert (groups.kernel_, groups.ridge_) == (together.kernel_, together.ridge_)
    np.testing.assert_allclose(groups.predict_proportions(Q), together.predict_proportions(Q), atol=1e-6)


@pytest.mark.slow
def test_the_memory_of_a_search_does_not_grow_with_its_bandwidths(monkeypatch):
    size = 300
    monkeypatch.setattr("reduset.proportions.bandwidth_search.ENTRIES", size**2)
    rows = np.random.default_rng(0).normal(size=(700, 2))
    labels = (rows[:, 0] > 0).astype(int)
    ClassProportions(size=10, random_state=0).fit(rows, labels)  # what is compiled, and what the threads keep, is not counted
    peaks = []
    for ladder in ((1.0,), tuple(2.0 ** (j / 8) for j in range(-8, 9))):
        monkeypatch.setattr("reduset.proportions.bandwidth_search.LADDER", ladder)
        monkeypatch.setattr("reduset.proportions.bandwidth_search.MAX_EXTENSIONS", 0)
        tracemalloc.start()
        try:
            ClassProportions(size=size, random_state=0).fit(rows, labels)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < peaks[0] + 5 * 8 * size**2


def test_a_ridge_below_rounding_is_refused_by_name():
    rows, labels = np.r_[X, X + 0.3, X - 0.2], np.tile(Y, 3)
    with pytest.raises(ValueError, match=r"ridge .*got 1e-15 with 200 atoms"):
        fitted(rows, labels, kernel=Gaussian(2.0), size=200, ridge=1e-15)
