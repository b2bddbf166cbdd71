"""What compress_svm refuses, and in which words; and what it must not trip over."""

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_matrix
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM

from reduset.svm import CompressedSVC, compress_svm
from svm_cases import data, fitted

X, y = data("moons")
TWO = "SVC of two classes"


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (SVC(), NotFittedError, "fitted must be fitted, this SVC is not; call its fit"),
        (SVC, TypeError, "the class SVC; pass a fitted instance"),
        (SVC(kernel="linear").fit(X, y), ValueError, "kernel='rbf'.*got kernel='linear'.*coef_"),
        (SVC(kernel="poly").fit(X, y), ValueError, "got kernel='poly'"),
        (SVC(kernel="precomputed").fit(X @ X.T, y), ValueError, "got kernel='precomputed'"),
        (SVC(kernel=lambda a, b: a @ b.T).fit(X, y), ValueError, "got kernel=<function"),
        (LinearSVC().fit(X, y), TypeError, "LinearSVC, which is linear"),
        (make_pipeline(StandardScaler(), SVC()).fit(X, y), TypeError, r"Pipeline; compress its last step, fitted\[-1\]"),
        (GridSearchCV(SVC(), {"C": [1.0]}, cv=2).fit(X, y), TypeError, "GridSearchCV; pass its fitted.best_estimator_"),
        (GridSearchCV(SVC(), {"C": [1.0]}, cv=2), TypeError, "GridSearchCV; pass its fitted.best_estimator_"),
        (RandomForestClassifier(), TypeError, "got RandomForestClassifier"),
        (None, TypeError, "got NoneType"),
        (SVR(epsilon=100.0).fit(X, y), ValueError, "no support vectors: it predicts"),
        (SVC(break_ties=True, decision_function_shape="ovo").fit(X, y), ValueError, "break_ties must be False"),
    ],
)
def test_what_cannot_be_compressed_is_refused_with_the_way_out(model, error, message):
    with pytest.raises(error, match=message):
        compress_svm(model, size=2)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, ValueError, "exactly one of size .* got none"),
        ({"size": 3, "tol": 0.1}, ValueError, "got size and tol"),
        ({"size": 0}, ValueError, "size must be between 1 and"),
        ({"size": 10**6}, ValueError, "size must be between 1 and .* support vectors"),
        ({"size": 2.5}, TypeError, "size must be a whole number"),
        ({"fraction": 0.0}, ValueError, "fraction must be above 0"),
        ({"fraction": 1.5}, ValueError, "fraction must be at most 1.* use size"),
        ({"fraction": "half"}, TypeError, "fraction must be a number"),
        ({"tol": 0}, ValueError, "tol must be above 0"),
        ({"tol": np.nan}, ValueError, "tol must be finite"),
        ({"size": 3, "method": "magic"}, ValueError, "method must be one of"),
        ({"size": 3, "refit": 1}, TypeError, "refit must be True or False"),
        ({"size": 3, "polish": -1}, ValueError, "polish must be at least 0"),
        ({"size": 3, "polish": "much"}, TypeError, "polish must be a whole number"),
        ({"size": 3, "refit": False}, ValueError, "pass polish=False too"),
        ({"size": 3, "X": X[:, :1]}, ValueError, "X must have 2 columns"),
        ({"size": 3, "X": X[0]}, ValueError, "X must have two dimensions"),
        ({"size": 3, "X": np.full((3, 2), np.nan)}, ValueError, "X must be finite"),
        ({"size": 3, "y": y}, ValueError, "y needs X, got X=None"),
        ({"size": 3, "X": X, "y": y[:-1]}, ValueError, "y must have shape"),
        ({"size": 3, "rng": "seed"}, TypeError, "rng must be None"),
        ({"size": 3, "progress": 3}, TypeError, "progress must be"),
    ],
)
def test_options_that_make_no_sense_are_refused_with_the_way_out(options, error, message):
    with pytest.raises(error, match=message):
        compress_svm(fitted(TWO), **options)


def test_rows_to_predict_are_checked():
    small = compress_svm(fitted(TWO), size=5, rng=0)
    with pytest.raises(ValueError, match="features"):
        small.predict(X[:, :1])
    with pytest.raises(ValueError, match="NaN"):
        small.decision_function(np.full((2, 2), np.nan))
    with pytest.raises(NotFittedError):
        CompressedSVC().predict(X)


def test_rows_that_no_support_vector_sees_are_refused():
    """Rows as they are before the pipeline's scaler: any compression would look perfect there."""
    with pytest.raises(ValueError, match=r"no support vector is near any of these.* pipeline\[:-1\].transform"):
        compress_svm(fitted(TWO), size=5, X=X + 1e6, rng=0)


@pytest.mark.parametrize(
    "wrong", [np.array(["a", "b"])[y.astype(int) % 2], np.where(np.arange(len(y)) == 3, np.nan, y.astype(float))]
)
def test_labels_that_cannot_be_scored_are_said_before_the_work(wrong):
    def never(stage, done, total):
        raise AssertionError("the work has begun")

    with pytest.raises(ValueError, match="y must"):
        compress_svm(fitted(TWO), size=5, X=X, y=wrong, rng=0, progress=never)


def test_sparse_rows_are_taken_where_the_svm_took_them():
    small = compress_svm(fitted(TWO), size=5, X=csr_matrix(X), rng=0, polish=5)
    dense = compress_svm(fitted(TWO), size=5, X=X, rng=0, polish=5)
    np.testing.assert_array_equal(small.decision_function(X), dense.decision_function(X))
    for rows in (csr_matrix(X), csc_array(X)):
        np.testing.assert_allclose(small.decision_function(rows), small.decision_function(X), atol=1e-12)
        np.testing.assert_array_equal(small.predict(rows), small.predict(X))


def test_whole_and_single_precision_rows_are_taken():
    small = compress_svm(fitted(TWO), size=5, X=X.astype(np.float32), rng=0)
    np.testing.assert_allclose(small.decision_function(X.astype(np.float32)), small.decision_function(X), atol=1e-5)
    assert small.predict([[0, 1]]).shape == (1,)


def test_a_single_row_of_x_is_enough():
    small = compress_svm(OneClassSVM().fit(X), size=4, X=X[:1], rng=0)
    assert np.isfinite(small.loss_.relative)


def test_far_away_data_keep_their_digits():
    near, far = (SVC(gamma=1.0).fit(X + shift, y) for shift in (0.0, 1e4))
    one = compress_svm(near, size=10, X=X, rng=0).decision_function(X)
    other = compress_svm(far, size=10, X=X + 1e4, rng=0).decision_function(X + 1e4)
    assert np.abs(one - other).mean() < 0.1
