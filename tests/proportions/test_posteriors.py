"""Posteriors of a classifier: which classifier sees which row, of training and of a sample."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from reduset import Gaussian
from reduset.proportions import ClassProportions
from reduset.proportions.cross_fit import FOLDS, CrossFittedClassifier, cross_fit_classifier

CODES = np.arange(60) % 3
NUMBERS = np.arange(60.0)[:, None]  # a row is its number, so that who has seen it can be told


class Remembering(ClassifierMixin, BaseEstimator):
    """A classifier that is sure of class 0 for the rows that it was fitted to, and of class 2 for all others."""

    def fit(self, X, y):
        self.classes_, self.seen_ = np.unique(y), set(X[:, 0])
        return self

    def predict_proba(self, X):
        return np.eye(3)[[0 if number in self.seen_ else 2 for number in X[:, 0]]]


def crossed(classifier, X, y):
    return cross_fit_classifier(classifier, X, y, None, np.random.default_rng(0), lambda done, total: None)


def test_training_rows_are_seen_by_classifiers_that_have_not_seen_them():
    classifiers, posteriors = crossed(Remembering(), NUMBERS, CODES)
    np.testing.assert_array_equal(posteriors, np.eye(3)[np.full(60, 2)])
    assert [len(each.seen_) for each in classifiers.by_fold] == [48] * FOLDS
    assert len(classifiers.whole.seen_) == 60


class Constant(ClassifierMixin, BaseEstimator):
    """A classifier that says its own number."""

    def __init__(self, number=0.0):
        self.number = number

    def predict_proba(self, X):
        return np.full((len(X), 3), self.number)


def test_the_folds_take_turns_whatever_the_order_of_the_rows():
    rng = np.random.default_rng(0)
    rows, posteriors = rng.normal(size=(23, 2)), rng.dirichlet(np.ones(3), size=23)
    classifiers = CrossFittedClassifier(None, [Constant(float(f)) for f in range(FOLDS)])
    found = classifiers.posteriors_in_turn(rows, posteriors)[:, 0]
    np.testing.assert_array_equal(found[np.lexsort(posteriors.T)], np.arange(23) % FOLDS)
    mixed = rng.permutation(23)
    np.testing.assert_array_equal(classifiers.posteriors_in_turn(rows[mixed], posteriors[mixed])[:, 0], found[mixed])


def test_fewer_rows_than_folds_are_seen():
    classifiers = CrossFittedClassifier(None, [Constant(float(f)) for f in range(FOLDS)])
    assert classifiers.posteriors_in_turn(np.zeros((1, 2)), np.ones((1, 3))).tolist() == [[0.0, 0.0, 0.0]]


def blobs(counts, rng):
    codes = np.repeat(np.arange(3), counts)
    return np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])[codes] + rng.normal(size=(len(codes), 2)), codes


@pytest.mark.parametrize("method", ["likelihood", "matching"])
def test_the_order_of_a_samples_rows_does_not_matter(method):
    rng = np.random.default_rng(0)
    Q = blobs([30, 10, 20], rng)[0]
    model = ClassProportions(classifier=LogisticRegression(), method=method, size=20, random_state=0)
    model.fit(*blobs([60, 60, 60], rng))
    first, again = model.estimate(Q), model.estimate(Q[rng.permutation(60)])
    np.testing.assert_allclose(first.values, again.values, atol=1e-9)
    np.testing.assert_allclose(first.interval, again.interval, atol=1e-9)
    assert first.p_value == pytest.approx(again.p_value)
    np.testing.assert_allclose(model.predict_proportions(Q), first.values, atol=1e-12)


@pytest.mark.slow
def test_matching_errs_less_where_a_classifier_is_strongly_regularised():
    """Forty fits to 300 rows, against the same with the classifier of all rows in the place of each fold's."""
    rng = np.random.default_rng(0)
    in_turn, whole = [], []
    for _ in range(40):
        model = ClassProportions(Gaussian(1.0), classifier=LogisticRegression(C=1e-3), method="matching", size=40, ridge=1e-3)
        model.set_params(random_state=0).fit(*blobs([100, 100, 100], rng))
        counts = rng.multinomial(200, rng.dirichlet(np.ones(3)))
        Q = blobs(counts, rng)[0]
        in_turn.append(np.abs(model.predict_proportions(Q) - counts / 200).mean())
        model._crossed.by_fold[:] = [model.classifier_] * FOLDS
        whole.append(np.abs(model.predict_proportions(Q) - counts / 200).mean())
    assert np.mean(in_turn) < 0.85 * np.mean(whole)
