"""weigh: atoms that somebody else chose get the best weights, or keep their own, and either way the error is the true one."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, compress, weigh
from reduset.weights import KINDS

X = np.random.default_rng(0).normal(size=(600, 3)) + np.random.default_rng(1).choice([-2.0, 2.0], size=(600, 1))
ROWS = np.random.default_rng(2).permutation(600)[:25]
KERNELS = [Gaussian(1.0), Gaussian(0.7, normalized=True, space="l2"), Laplacian(1.5), FunctionKernel("rbf", gamma=0.5)]


def true_error(small, full):
    return full.distance(small.mean) / full.norm()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_free_weights_solve_the_normal_equations(kernel):
    small = weigh(X, ROWS, kernel, rng=0)
    full = KernelMean.from_samples(X, kernel)
    K = full.kernel.product_gram(X[ROWS], X[ROWS])
    kappa = full.kernel.product_gram(X[ROWS], X).mean(axis=1)
    best = dict(zip(ROWS.tolist(), np.linalg.solve(K, kappa), strict=True))
    np.testing.assert_allclose(small.mean.weights, [best[row] for row in small.indices.tolist()], rtol=1e-6)
    np.testing.assert_array_equal(small.mean.atoms, X[small.indices])


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_the_certificate_is_true_whatever_the_weights(kernel, kind):
    small = weigh(X, ROWS, kernel, kind, rng=0)
    error, (low, high) = true_error(small, KernelMean.from_samples(X, kernel)), small.certificate.interval
    assert low * (1 - 1e-9) <= error <= high * (1 + 1e-9)
    assert small.weighting == kind
    assert small.selection == "given"


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), m=st.integers(1, 30), signed=st.booleans())
def test_weights_of_ones_own_are_kept_and_certified(seed, m, signed):
    rng = np.random.default_rng(seed)
    own = rng.normal(size=m) / (4 * m) + 1 / m if signed else rng.dirichlet(np.ones(m))
    own /= own.sum()
    rows = rng.permutation(600)[:m]
    small = weigh(X, rows, Gaussian(1.0), own, rng=0)
    kept = dict(zip(rows.tolist(), own, strict=True))
    np.testing.assert_array_equal(small.mean.weights, [kept[row] for row in small.indices.tolist()])
    error = true_error(small, KernelMean.from_samples(X, Gaussian(1.0)))
    assert small.certificate.relative_error == pytest.approx(error, rel=0.05)


def test_rows_and_their_places_get_the_same_weights():
    by_rows, by_places = weigh(X, ROWS, Gaussian(1.0), rng=0), weigh(X, X[ROWS], Gaussian(1.0), rng=0)
    np.testing.assert_array_equal(by_rows.mean.weights, by_places.mean.weights)
    assert by_places.indices is None
    assert by_rows.certificate.relative_error == by_places.certificate.relative_error


@pytest.mark.parametrize("as_given", [list, tuple, pd.Series, np.uint16], ids=["list", "tuple", "series", "uint16"])
def test_rows_come_in_any_kind_of_sequence(as_given):
    rows = ROWS.astype(np.uint16) if as_given is np.uint16 else as_given(ROWS.tolist())
    np.testing.assert_array_equal(weigh(X, rows, Gaussian(1.0), rng=0).indices, weigh(X, ROWS, Gaussian(1.0), rng=0).indices)


def test_atoms_of_a_compression_get_its_weights_again():
    small = compress(X, Gaussian(1.0), size=20, select="kcenter", rng=0)
    again = weigh(X, small.indices, Gaussian(1.0), rng=0)
    order = np.argsort(again.indices)
    np.testing.assert_allclose(again.mean.weights[order], small.mean.weights[np.argsort(small.indices)], rtol=1e-8)


def test_without_a_bandwidth_the_atoms_are_as_fine_as_they_are():
    small = weigh(X, ROWS, rng=0)
    assert small.resolution is not None
    profile = small.profile()
    coarser = profile.bandwidths >= small.resolution
    assert profile.relative_errors[coarser].max() <= 0.05
    assert true_error(small, KernelMean.from_samples(X, small.mean.kernel)) <= 0.05
    assert weigh(X, ROWS, tol=0.2, rng=0).resolution < small.resolution
    equal = weigh(X, ROWS, weights=np.full(25, 1 / 25), tol=0.2, rng=0)
    assert equal.resolution > weigh(X, ROWS, tol=0.2, rng=0).resolution


def test_weighted_rows_and_means_are_weighed_alike():
    weight = np.random.default_rng(3).random(600)
    full = KernelMean.from_samples(X, Gaussian(1.0), weight)
    one, other = weigh(X, ROWS, Gaussian(1.0), sample_weight=weight, rng=0), weigh(full, ROWS, rng=0)
    np.testing.assert_array_equal(one.mean.weights, other.mean.weights)
    assert true_error(one, full) < true_error(weigh(X, ROWS, Gaussian(1.0), rng=0), full)


def test_a_signed_mean_takes_signed_weights_of_any_sum():
    signs = np.sign(X[:, 0])
    full = KernelMean(X, signs / 600, Gaussian(1.0))
    small = weigh(full, ROWS, weights=signs[ROWS] / 25, rng=0)
    assert small.certificate.relative_error == pytest.approx(true_error(small, full), rel=0.05)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"atoms": [1, 1, 2]}, ValueError, "row 1 more than once"),
        ({"atoms": [600]}, ValueError, "0 to 599, got 600"),
        ({"atoms": [-1]}, ValueError, "got -1"),
        ({"atoms": []}, ValueError, "atoms must"),
        ({"atoms": np.array([], int)}, ValueError, "at least one"),
        ({"atoms": np.ones(600, bool)}, TypeError, "flatnonzero"),
        ({"atoms": ["a"]}, TypeError, "whole numbers"),
        ({"atoms": np.zeros((3, 2))}, ValueError, "3 columns like the data"),
        ({"atoms": np.full((3, 3), np.nan)}, ValueError, "atoms must be finite"),
        ({"atoms": np.zeros((601, 3))}, ValueError, "at most as many as the data's points, 600"),
        ({"atoms": ROWS, "weights": np.ones(25)}, ValueError, "weights.sum"),
        ({"atoms": ROWS, "weights": np.ones(24) / 24}, ValueError, r"shape \(25,\)"),
        ({"atoms": ROWS, "weights": "best"}, ValueError, "weights must be one of"),
        ({"atoms": ROWS, "weights": "own"}, ValueError, "weights='own'"),
        ({"atoms": ROWS, "kernel": Gaussian(1.0), "tol": 0.1}, ValueError, "tol .*got tol=0.1"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else None,
)
def test_what_is_not_meant_is_refused(given, error, words):
    with pytest.raises(error, match=words):
        weigh(X, **given)
