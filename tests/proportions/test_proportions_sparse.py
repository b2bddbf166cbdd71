"""Sparse rows: taken as they are where only the posteriors of a classifier are needed, and refused with a way out elsewhere."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from reduset.proportions import ClassProportions

RNG = np.random.default_rng(0)
CODES = np.repeat([0, 1], 150)
ROWS = RNG.poisson(0.05 + 0.4 * (np.arange(40) % 2 == CODES[:, None])).astype(float)  # words, two topics
SAMPLE = ROWS[RNG.permutation(300)[:120]]


class Watchful(LogisticRegression):
    """A classifier that is given nothing but sparse rows."""

    def fit(self, X, y, sample_weight=None):
        assert sparse.issparse(X)
        return super().fit(X, y, sample_weight)

    def predict_proba(self, X):
        assert sparse.issparse(X)
        return super().predict_proba(X)


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_rows_go_to_the_classifier_as_they_are(make):
    weights = np.append(np.zeros(5), np.ones(295))
    one = ClassProportions(classifier=Watchful(), size=20, random_state=0).fit(make(ROWS), CODES, weights)
    other = ClassProportions(classifier=LogisticRegression(), size=20, random_state=0).fit(ROWS, CODES, weights)
    np.testing.assert_allclose(one.predict_proportions(make(SAMPLE)), other.predict_proportions(SAMPLE), atol=1e-3)
    assert one.estimate(make(SAMPLE)).n_samples == 120


def test_sparse_rows_are_checked_and_without_a_classifier_refused_with_a_way_out():
    rows = sparse.csr_matrix(ROWS)
    with pytest.raises(TypeError, match=r"X must be dense, .*toarray\(\) if it fits in memory, or .*TruncatedSVD"):
        ClassProportions().fit(rows, CODES)
    fitted = ClassProportions(classifier=LogisticRegression(), size=20, random_state=0).fit(rows, CODES)
    with pytest.raises(ValueError, match=r"X .*got shape \(300, 39\)"):
        fitted.predict_proportions(rows[:, :39])
    rows.data[rows.indptr[7]] = np.nan
    with pytest.raises(ValueError, match=r"X .*got nan in row 7"):
        fitted.predict_proportions(rows)
