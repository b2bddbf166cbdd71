"""Functions of few centres at many points: the matrix of kernel values times their coefficients, however it is cut."""

import numpy as np
import pytest

from cases import KERNELS
from reduset import set_threads
from reduset._engine import Frame, Profile, gram, kernel_maps, product_matrix
from reduset._engine.depths import LOGARITHM, ROOT

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
    np.testing.assert_allclose(kernel_maps(X, X[:40], A, frame, shape.profile), values @ A, atol=1e-11)
    np.testing.assert_allclose(product_matrix(X, X[:40], frame, shape.profile), values, atol=1e-13)


@pytest.mark.parametrize("profile", PROFILES, ids=["linear", "root", "logarithm"])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_in_many_dimensions_products_give_what_differences_give(profile, offset):
    X = long_rows(600, 80, offset=offset)
    frame = Frame.around(X[:90], 1.0)
    values = gram(X, X[:90], frame, profile)
    np.testing.assert_allclose(product_matrix(X, X[:90], frame, profile), values, atol=2e-11)
    A = np.random.default_rng(1).normal(size=(90, 4))
    np.testing.assert_allclose(kernel_maps(X, X[:90], A, frame, profile), values @ A, atol=2e-9)


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
            found.append(kernel_maps(X, X[:300], A, Frame.around(X, 1.0), Profile()))
        finally:
            set_threads(None)
    np.testing.assert_array_equal(*found)
