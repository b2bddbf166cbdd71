"""The factor that drops: what it keeps it factors, what it drops lies in the span, and its inverse stays within bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_triangular

from reduset import Gaussian, Laplacian, Student
from reduset._engine import factor
from reduset._engine.factor import cholesky_dropping


def assert_factor(K):
    L, kept = cholesky_dropping(K)
    assert kept[0]
    assert np.array_equal(L, np.tril(L))
    np.testing.assert_allclose(L @ L.T, K[np.ix_(kept, kept)], atol=1e-12)
    if not kept.all():
        inside = solve_triangular(L, K[np.ix_(kept, ~kept)], lower=True)
        assert np.abs(1 - (inside**2).sum(axis=0)).max() < 1e-3
    assert np.linalg.norm(np.linalg.inv(L), 2) ** 2 * np.finfo(float).eps < 100 * factor.GROWTH
    return kept


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 200),
    d=st.integers(1, 3),
    width=st.floats(0.3, 30.0),
    family=st.sampled_from([Gaussian, Student, Laplacian]),
    order=st.sampled_from(["any", "repeated", "from the middle"]),
)
def test_any_gram_matrix_has_a_factor_of_what_is_not_redundant(seed, n, d, width, family, order):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if order == "repeated":
        X = X[rng.integers(0, n, size=n)]
    elif order == "from the middle":  # each point near many before it
        X = X[np.argsort((X**2).sum(axis=1))]
    assert_factor(family(width).product_gram(X, X))


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 130])
def test_a_matrix_far_from_singular_keeps_every_row(n):
    X = np.arange(float(n)).reshape(-1, 1)
    assert assert_factor(Gaussian(0.7).product_gram(X, X)).all()


@pytest.mark.parametrize("rank", [1, 5, 64, 70])
def test_as_many_rows_stay_as_the_matrix_has_rank(rank):
    A = np.random.default_rng(0).normal(size=(150, rank))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    assert assert_factor(A @ A.T).sum() == rank


def test_an_order_that_crowds_first_loses_hardly_more_rows_than_one_that_spreads():
    """Where pivots in the order given cannot be trusted, the rank decides."""
    X = np.random.default_rng(0).normal(size=(200, 1))
    K = Gaussian(0.7).product_gram(X, X)
    crowded, spread = np.argsort(np.abs(X[:, 0])), np.random.default_rng(1).permutation(200)
    kept = [assert_factor(K[np.ix_(order, order)]).sum() for order in (crowded, spread)]
    assert max(kept) - min(kept) <= 3
