"""Sums with their gradients: the inner products that atoms are moved along."""

import math

import numpy as np
import pytest
from numba import njit

import reduset
import reference
from reduset import Gaussian, Laplacian, Student
from reduset._engine import sums
from reduset._engine.distances import LINEAR, LOGARITHM, ROOT, TABLE, pulls_at, to_pulls
from reduset._engine.profile import Profile

# the product in L2 of a Student needs a > d/4; a table stands for those without a closed form
PRODUCTS = {
    "gaussian": lambda h, d: Gaussian(h),
    "gaussian l2": lambda h, d: Gaussian(h, space="l2", normalized=True),
    "oblique": lambda h, d: Gaussian(h, covariance=np.eye(d) + 0.3 * np.ones((d, d))),
    "laplacian": lambda h, d: Laplacian(h),
    "laplacian l2": lambda h, d: Laplacian(h, space="l2"),
    "cityblock": lambda h, d: Laplacian(h * math.sqrt(d), metric="cityblock"),
    "cityblock l2": lambda h, d: Laplacian(h * math.sqrt(d), metric="cityblock", space="l2"),
    "cauchy l2": lambda h, d: Student(h, space="l2"),
    "student": lambda h, d: Student(h, exponent=2.5),
    "student l2": lambda h, d: Student(h, exponent=d / 4 + 1.2, space="l2"),
}
product = pytest.mark.parametrize("family", PRODUCTS)
dimension = pytest.mark.parametrize("d", [1, 3, 39, 45])  # tiles below 40, matrix products from there on


def cloud(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def typical(family, d):
    return PRODUCTS[family](2 * math.sqrt(d), d)


@pytest.fixture(autouse=True)
def _default_threads():
    yield
    reduset.set_threads(None)


def differences(kernel, X, w, Q, step=1e-6):
    """Central differences of the sums, so small that no corner lies between."""
    out = np.empty(Q.shape)
    for j in range(Q.shape[1]):
        side = step * np.eye(Q.shape[1])[j]
        out[:, j] = (kernel.product_sums(X, w, Q + side) - kernel.product_sums(X, w, Q - side)) / (2 * step)
    return out


@pytest.mark.covering_cases
@pytest.mark.fast_cases(27)
@product
@dimension
def test_slopes_carry_the_sums(family, d):
    X, Q, kernel = cloud(700, d), cloud(23, d, 1), typical(family, d)
    w = np.random.default_rng(2).normal(size=700)
    values, _ = kernel.product_slopes(X, w, Q)
    np.testing.assert_allclose(values, kernel.product_sums(X, w, Q), rtol=1e-11, atol=1e-12 * np.abs(w).sum())
    np.testing.assert_allclose(values, reference.product_sums(kernel, X, w, Q), rtol=0, atol=1e-10 * np.abs(w).sum())


@pytest.mark.covering_cases
@product
@dimension
def test_slopes_are_the_limits_of_differences(family, d):
    X, Q, kernel = cloud(300, d), cloud(5, d, 1), typical(family, d)
    w = np.random.default_rng(2).normal(size=300)
    expected = differences(kernel, X, w, Q)
    np.testing.assert_allclose(kernel.product_slopes(X, w, Q)[1], expected, rtol=0, atol=1e-9 * np.abs(w).sum())


@pytest.mark.covering_cases
@product
@pytest.mark.parametrize("d", [3, 45])
@pytest.mark.parametrize(("precision", "accuracy"), [("single", 2e-6), ("auto", 1e-5)])
def test_single_precision_is_close(family, d, precision, accuracy):
    X, Q, kernel = cloud(700, d), cloud(23, d, 1), typical(family, d)
    w = np.random.default_rng(2).uniform(size=700)
    values, slopes = kernel.product_slopes(X, w, Q)
    got = kernel.product_slopes(X, w, Q, precision)
    np.testing.assert_allclose(got[0], values, rtol=accuracy)
    np.testing.assert_allclose(got[1], slopes, rtol=0, atol=accuracy * np.abs(w).sum() / kernel.width * 8)


@pytest.mark.covering_cases
@product
@pytest.mark.parametrize("d", [3, 45])
@pytest.mark.parametrize("precision", ["double", "single"])
def test_at_a_point_the_slopes_are_those_of_the_other_points(family, d, precision):
    """A corner counts as 0, a smooth top is flat: a point does not pull at itself."""
    X, kernel = cloud(60, d), typical(family, d)
    w = np.random.default_rng(2).uniform(size=60)
    got = kernel.product_slopes(X, w, X[:3], precision)[1]
    for k in range(3):
        others = np.arange(60) != k
        expected = kernel.product_slopes(X[others], w[others], X[k : k + 1], precision)[1][0]
        np.testing.assert_allclose(
            got[k], expected, rtol=0, atol=(1e-11 if precision == "double" else 2e-3) * np.abs(expected).max()
        )


@product
def test_the_slope_at_a_lone_atom_is_zero(family):
    for d in (1, 2, 45):
        x = cloud(1, d)
        assert np.array_equal(typical(family, d).product_slopes(x, np.ones(1), x)[1], np.zeros((1, d)))


@product
@pytest.mark.parametrize("d", [3, 45])
def test_a_shift_changes_no_slope(family, d):
    X, Q = (np.rint(cloud(n, d, seed) * 1024) / 1024 for n, seed in ((200, 0), (9, 1)))  # a whole shift is exact
    kernel, w = typical(family, d), np.ones(200)
    one, other = kernel.product_slopes(X, w, Q), kernel.product_slopes(X + 2.0**20, w, Q + 2.0**20)
    np.testing.assert_allclose(other[0], one[0], rtol=1e-9)
    np.testing.assert_allclose(other[1], one[1], rtol=0, atol=1e-9 * 200 / kernel.width)


@pytest.mark.covering_cases
@pytest.mark.parametrize("family", ["gaussian", "laplacian", "laplacian l2", "student", "student l2"])
@pytest.mark.parametrize("d", [40, 50])
@pytest.mark.parametrize(("precision", "accuracy"), [("double", 1e-11), ("single", 1e-4)])
def test_matrix_products_and_tiles_agree(monkeypatch, family, d, precision, accuracy):
    X, kernel = cloud(900, d), typical(family, d)
    Q = np.concatenate([cloud(20, d, 1), X[:5], X[:5] + 1e-4])  # some queries at points, where a difference of squares cancels
    w = np.random.default_rng(2).uniform(size=900)
    by_blas = kernel.product_slopes(X, w, Q, precision)
    monkeypatch.setattr(sums, "BLAS_FROM", 10**9)
    by_tiles = kernel.product_slopes(X, w, Q, precision)
    np.testing.assert_allclose(by_blas[0], by_tiles[0], rtol=accuracy)
    np.testing.assert_allclose(by_blas[1], by_tiles[1], rtol=0, atol=accuracy * np.abs(by_tiles[1]).max())


@pytest.mark.parametrize("d", [3, 45])
def test_the_number_of_threads_does_not_change_a_slope(d):
    X, Q, kernel = cloud(40_000, d), cloud(600, d, 1), typical("laplacian", d)
    X, Q = (X[:3000], Q[:50]) if d == 45 else (X, Q[:20])
    w = np.random.default_rng(2).uniform(size=len(X))
    results = []
    for count in (1, 3):
        reduset.set_threads(count)
        results.append(kernel.product_slopes(X, w, Q))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


@pytest.mark.parametrize("scale", [1e-200, 1e-45, 1e30])
@pytest.mark.parametrize("precision", ["single", "auto", "double"])
def test_the_scale_of_the_weights_comes_out_of_the_slopes(precision, scale):
    X, Q, kernel = cloud(300, 2), cloud(10, 2, 1), Gaussian(1.0)
    w = np.random.default_rng(2).uniform(size=300)
    values, slopes = kernel.product_slopes(X, w, Q)
    got = kernel.product_slopes(X, w * scale, Q, precision)
    np.testing.assert_allclose(got[0] / scale, values, rtol=1e-5)
    np.testing.assert_allclose(got[1] / scale, slopes, rtol=0, atol=1e-5 * np.abs(w).sum())


@pytest.mark.covering_cases
@product
@pytest.mark.parametrize("d", [1, 3, 45])
def test_a_matrix_row_by_row_is_the_matrix(family, d):
    X, kernel = cloud(30, d), typical(family, d)
    row, K = kernel.product_rows(X), kernel.product_gram(X, X)
    for k in (0, 7, 29):
        np.testing.assert_array_equal(row(k), K[k])


@njit
def _pulls_of(pulls, exponent, table, step, gap, t):
    to_pulls(pulls, exponent, table, step, gap, t, len(t))


def _pulls(profile, gap, t):
    _pulls_of(pulls_at(profile.family, np.float64), profile.exponent, profile.table, profile.step, gap, t)


@pytest.mark.parametrize(("family", "exponent"), [(LINEAR, 1.0), (ROOT, 1.0), (LOGARITHM, 2.5), (TABLE, 1.0)])
def test_pulls_are_the_derivative_of_the_depth(family, exponent):
    knots = np.linspace(0, 3, 301)
    profile = Profile(family=family, exponent=exponent, table=np.stack([knots**2, 2 * knots], axis=1), step=0.01)
    gap = np.concatenate([np.geomspace(1e-4, 300, 60), [2000.0, 1e5]])  # the last beyond the table

    def depth(t):
        t = t.copy()
        profile.to_exponents(t)
        return t

    pull = np.ones_like(gap)
    _pulls(profile, gap, pull)
    expected = (depth(gap * (1 + 1e-6)) - depth(gap * (1 - 1e-6))) / (gap * 1e-6)  # 2·d(depth)/d(gap)
    np.testing.assert_allclose(pull, expected, rtol=1e-6)


@pytest.mark.parametrize("family", [ROOT, TABLE])
def test_nothing_pulls_at_a_corner(family):
    pull = np.ones(1)
    _pulls(Profile(family=family, table=np.ones((2, 2))), np.zeros(1), pull)
    assert pull[0] == 0
