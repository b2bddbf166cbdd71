"""Functions of few centres at many points: the matrix of kernel values times their coefficients, however it is cut."""

import numpy as np
import pytest

from cases import KERNELS
from reduset import set_threads
from reduset._engine import CITYBLOCK, SQUARED, Frame, KernelMaps, Profile, assigned_distances, gram, product_matrix
from reduset._engine.centre_distances import varying_columns
from reduset._engine.distances import LOGARITHM, ROOT

RADIAL = [name for name in KERNELS if name != "function"]
PROFILES = [Profile(), Profile(family=ROOT), Profile(family=LOGARITHM, exponent=2.0)]


def long_rows(n, d, seed=0, offset=0.0):
    return np.random.default_rng(seed).normal(size=(n, d)) / np.sqrt(d) + offset


@pytest.mark.parametrize("name", RADIAL)
def test_they_are_the_matrix_of_values_times_the_coefficients(name):
    X, A = np.random.default_rng(0).normal(size=(700, 2)), np.random.default_rng(1).normal(size=(40, 3))
    kernel = KERNELS[name].resolve(X)
    shape = kernel.product(2)
    frame = kernel.frame(X, shape)
    values = gram(X, X[:40], frame, shape.profile)
    np.testing.assert_allclose(KernelMaps(X[:40], A, frame, shape.profile).at(X), values @ A, atol=1e-11)
    np.testing.assert_allclose(product_matrix(X, X[:40], frame, shape.profile), values, atol=1e-13)


@pytest.mark.parametrize("profile", PROFILES, ids=["linear", "root", "logarithm"])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_in_many_dimensions_products_give_what_differences_give(profile, offset):
    X = long_rows(600, 80, offset=offset)
    frame = Frame.around(X[:90], 1.0)
    values = gram(X, X[:90], frame, profile)
    np.testing.assert_allclose(product_matrix(X, X[:90], frame, profile), values, atol=2e-11)
    A = np.random.default_rng(1).normal(size=(90, 4))
    np.testing.assert_allclose(KernelMaps(X[:90], A, frame, profile).at(X), values @ A, atol=2e-9)


def test_rows_so_far_out_that_products_would_cancel_are_taken_by_differences():
    X = np.vstack([long_rows(50, 64), 1e6 + long_rows(50, 64, 1)])
    frame = Frame(np.zeros(64), 1.0)
    np.testing.assert_array_equal(product_matrix(X, X, frame, Profile()), gram(X, X, frame, Profile()))


def test_threads_change_no_bit():
    X, A = long_rows(2000, 64), np.random.default_rng(1).normal(size=(300, 5))
    found = []
    for count in (1, 3):
        set_threads(count)
        try:
            found.append(KernelMaps(X[:300], A, Frame.around(X, 1.0), Profile()).at(X))
        finally:
            set_threads(None)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("d", [3, 64])
@pytest.mark.parametrize("profile", PROFILES, ids=["linear", "root", "logarithm"])
def test_of_points_with_themselves_half_of_the_matrix_serves_for_both(d, profile):
    X = long_rows(700, d)
    frame = Frame.around(X, 1.0)
    half = product_matrix(X, X, frame, profile)
    np.testing.assert_allclose(half, product_matrix(X, X.copy(), frame, profile), atol=1e-12)
    np.testing.assert_allclose(half, half.T, atol=1e-12)


@pytest.mark.parametrize("d", [3, 64, 128])
def test_rows_of_the_points_are_looked_at_where_they_lie(d):
    X, A = long_rows(500, d), np.random.default_rng(1).normal(size=(40, 3))
    rows = np.random.default_rng(2).permutation(500)[:200]
    maps = KernelMaps(X[:40], A, Frame.around(X, 1.0), Profile())
    np.testing.assert_allclose(maps.at(X, rows), maps.at(X)[rows], rtol=1e-12)


# -- columns that add nothing ----------------------------------------------------------------------------------------


def test_columns_in_which_centres_agree_are_left_out_of_products_and_counted_in_lengths():
    X = long_rows(300, 160)
    X[:90, 40:] = X[0, 40:]  # the centres differ in 40 columns, the other points in all
    frame = Frame.around(X[:90], 1.0)
    np.testing.assert_allclose(product_matrix(X, X[:90], frame, Profile()), gram(X, X[:90], frame, Profile()), atol=1e-12)


def test_varying_columns_are_those_that_any_row_differs_in():
    X = np.zeros((5000, 50))
    X[:, 3], X[4999, 7], X[17, 49] = np.arange(5000), 1.0, -1e-300
    assert varying_columns(X).tolist() == [3, 7, 49]
    assert varying_columns(X[:1]).tolist() == []


# -- single precision ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("matrix", [0.5, np.linspace(0.3, 0.6, 128), np.diag(np.linspace(0.3, 0.6, 128))], ids=["1", "d", "dd"])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_products_in_single_precision_give_values_to_seven_digits(dtype, matrix, offset):
    X, A = long_rows(600, 128, offset=offset).astype(dtype), np.random.default_rng(1).normal(size=(90, 4))
    frame = Frame.around(X[:90], matrix)
    values = gram(X, X[:90], frame, Profile())
    centres = X[:90]
    single = product_matrix(X, centres, frame, Profile(), single=True)
    assert not np.array_equal(single, product_matrix(X, centres, frame, Profile()))
    np.testing.assert_allclose(single, values, atol=2e-7)
    np.testing.assert_allclose(KernelMaps(centres, A, frame, Profile(), single=True).at(X), values @ A, atol=2e-6)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_coefficients_of_any_size_are_borne_in_single_precision(size):
    X, A = long_rows(300, 128), size * np.random.default_rng(1).normal(size=(90, 4))
    frame = Frame.around(X, 0.5)
    one, other = (KernelMaps(X[:90], A, frame, Profile(), single=each).at(X) for each in (True, False))
    np.testing.assert_allclose(one, other, atol=2e-6 * size)


@pytest.mark.parametrize("profile", PROFILES[1:], ids=["root", "logarithm"])
def test_bumps_of_other_shapes_have_double_precision(profile):
    X = long_rows(300, 128)
    frame = Frame.around(X, 0.5)
    np.testing.assert_array_equal(*(product_matrix(X, X[:90], frame, profile, single=each) for each in (True, False)))


def test_rows_that_are_too_long_for_single_precision_have_double():
    X = long_rows(300, 128)
    X[:150] *= 4.0
    centres, frame = X[150:240], Frame(np.zeros(128), 0.7)
    one, other = (product_matrix(np.ascontiguousarray(X[:100]), centres, frame, Profile(), single=each) for each in (True, False))
    np.testing.assert_array_equal(one, other)


def test_threads_change_no_bit_in_single_precision():
    X, A = long_rows(2000, 128), np.random.default_rng(1).normal(size=(300, 5))
    found = []
    for count in (1, 3):
        set_threads(count)
        try:
            found.append(KernelMaps(X[:300], A, Frame.around(X, 0.5), Profile(), single=True).at(X))
        finally:
            set_threads(None)
    np.testing.assert_array_equal(*found)


# -- owners ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("metric", [SQUARED, CITYBLOCK])
@pytest.mark.parametrize("matrix", [-2.0, np.array([1.0, 2.0, 0.5]), np.diag([1.0, 2.0, 0.5]) + 0.1], ids=["1", "d", "dd"])
def test_gaps_to_owners_are_those_of_the_definition(dtype, metric, matrix):
    X = long_rows(400, 3).astype(dtype)
    owners = np.random.default_rng(0).integers(-1, 20, 400)
    frame = Frame.around(X, matrix)
    steps = frame.apply(X) - frame.apply(X[:20])[owners]
    wanted = (steps**2).sum(axis=1) if metric == SQUARED else np.abs(steps).sum(axis=1)
    np.testing.assert_allclose(assigned_distances(X, X[:20], owners, frame, metric), np.where(owners < 0, 0.0, wanted), atol=1e-13)
