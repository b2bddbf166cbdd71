"""Sums by leaves: within the relative error that was asked for, at every query, near or far."""

import numpy as np
import pytest

import reference
from cases import COVARIANCE
from reduset import Gaussian, Laplacian, Matern, Student, set_threads
from reduset._engine import LeafSums
from reduset._engine.distances import SOFT_CITYBLOCK
from reduset._engine.profile import Frame, Profile

KERNELS = {
    "gaussian": Gaussian(0.4),
    "oblique": Gaussian(0.4, covariance=COVARIANCE),
    "laplacian": Laplacian(0.4),
    "cityblock": Laplacian(0.4, metric="cityblock"),
    "student": Student(0.4),
    "matern": Matern(0.4),
}
KERNEL = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def heavy(n=3000, d=2, seed=0):
    return np.random.default_rng(seed).standard_t(2, size=(n, d))


def queries(X):
    """Rows, points between rows, and points far from all of them."""
    rng = np.random.default_rng(5)
    return np.concatenate([X[:20], X[20:40] + 0.1, 3 * X[40:60], 40 * rng.normal(size=(20, X.shape[1]))])


def sums_of(kernel, X, w):
    shape = kernel.bump(X.shape[1])
    return LeafSums.of(X, w, kernel.frame(X, shape), shape.profile)


def shares(n, seed=1):
    return np.random.default_rng(seed).exponential(size=n)


@KERNEL
@pytest.mark.parametrize("ratio", [2.0, 0.1])
def test_the_logarithm_is_within_the_ratio_at_every_query(kernel, ratio):
    X = heavy()
    Q, w = queries(X), shares(len(X))
    error = sums_of(kernel, X, w).logs(Q, ratio) - reference.log_sums(kernel, X, w, Q)
    assert np.abs(error).max() <= np.log1p(ratio) + 1e-3


@KERNEL
def test_a_ratio_of_nearly_nothing_is_the_exact_sum(kernel):
    X = heavy()
    Q, w = queries(X), shares(len(X))
    exact = reference.log_sums(kernel, X, w, Q)
    np.testing.assert_allclose(sums_of(kernel, X, w).logs(Q, 1e-9), exact, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("d", [1, 3, 6])
def test_the_measured_error_is_far_below_the_bound(d):
    X, Q = heavy(6000, d), heavy(300, d, seed=9)
    kernel, w = Gaussian(0.5), np.full(6000, 1 / 6000)
    error = np.abs(sums_of(kernel, X, w).logs(Q, 1.0) - reference.log_sums(kernel, X, w, Q))
    assert np.median(error) < 0.05
    assert np.quantile(error, 0.99) < 0.25
    assert error.max() <= np.log(2) + 1e-3


def test_a_smaller_ratio_costs_no_accuracy():
    X, Q = heavy(6000, 4), heavy(300, 4, seed=9)
    kernel, w = Gaussian(0.5), np.ones(6000)
    sums, exact = sums_of(kernel, X, w), reference.log_sums(kernel, X, w, Q)
    errors = [np.abs(sums.logs(Q, ratio) - exact).mean() for ratio in (2.0, 0.5, 0.1, 0.01)]
    assert errors == sorted(errors, reverse=True)


def test_rows_ten_thousand_bandwidths_out_are_computed_in_double():
    X = np.concatenate([heavy(), [[1e5, 0.0], [1e5 + 0.3, 0.2]]])
    kernel, w = Gaussian(0.4), shares(len(X))
    sums = sums_of(kernel, X, w)
    assert sums.columns.dtype == np.float64
    Q = np.array([[1e5 + 0.1, 0.1], [9e4, 3.0], [0.0, 0.0]])
    np.testing.assert_allclose(sums.logs(Q, 1e-9), reference.log_sums(kernel, X, w, Q), rtol=1e-9)


def test_a_common_shift_changes_nothing():
    X = np.round(heavy(), 3)
    Q, w, kernel = X[:50] + 0.01, shares(len(X)), Gaussian(0.4)
    far = sums_of(kernel, X + 1e6, w).logs(Q + 1e6, 0.5)
    np.testing.assert_allclose(far, sums_of(kernel, X, w).logs(Q, 0.5), atol=1e-4)


def test_the_scale_of_the_weights_is_added():
    X, Q = heavy(), heavy(50, seed=2)
    small, large = (sums_of(Gaussian(0.4), X, scale * shares(len(X))).logs(Q, 0.5) for scale in (1e-200, 1e200))
    np.testing.assert_allclose(large - small, 400 * np.log(10), rtol=1e-12)


def test_threads_and_the_order_of_queries_change_no_bit():
    X, Q = heavy(), heavy(500, seed=2)
    sums = sums_of(Gaussian(0.4), X, shares(len(X)))
    found = sums.logs(Q, 0.5)
    try:
        set_threads(3)
        np.testing.assert_array_equal(sums.logs(Q[::-1], 0.5)[::-1], found)
    finally:
        set_threads(None)


def test_points_that_coincide_are_one_leaf_after_another():
    X = np.ones((1000, 3))
    found = sums_of(Gaussian(0.5), X, np.full(1000, 0.001)).logs(np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 2.0]]), 0.5)
    np.testing.assert_allclose(found, [0.0, -2.0], atol=1e-5)


def test_metrics_without_bounds_raise():
    with pytest.raises(ValueError, match="profile must have squared or city-block distances"):
        LeafSums.of(np.ones((3, 2)), np.ones(3), Frame(np.zeros(2), 1.0), Profile(metric=SOFT_CITYBLOCK))
