"""Points many bandwidths apart: the stated interval holds the error that long arithmetic finds, with few digits left or none."""

import numpy as np
import pytest

from reduset import FunctionKernel, Gaussian, Laplacian, compress
from reduset.certificate.rule import are_far


def products(X, Y, kernel):
    """g of all pairs from differences in long arithmetic."""
    r = np.sqrt((((X[:, None].astype(np.longdouble) - Y[None]) / kernel.width) ** 2).sum(axis=-1))
    return np.exp(-(r**2) / 2) if isinstance(kernel, Gaussian) else np.exp(-r)


def true_error(X, small):
    kernel, n = small.mean.kernel, len(X)
    places = np.concatenate([X, small.mean.atoms])
    v = np.concatenate([np.full(n, 1 / np.longdouble(n)), -small.mean.weights.astype(np.longdouble)])
    G = products(places, places, kernel)
    return float(np.sqrt(max(v @ (G @ v), 0) / (v[:n] @ (G[:n, :n] @ v[:n]))))


def assert_true(X, kernel, **options):
    small = compress(X, kernel, rng=0, **options)
    truth, certificate = true_error(X, small), small.certificate
    low, high = certificate.interval
    assert low * (1 - 1e-9) <= truth <= high * (1 + 1e-9)
    assert certificate.bound >= truth * certificate.norm * (1 - 1e-9)
    return certificate


@pytest.mark.fast_cases(12)
@pytest.mark.parametrize("apart", [1e6, 1e9, 1e12, 1e15])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(1.0)], ids=repr)
@pytest.mark.parametrize("select", ["kcenter", "kmeans"])
@pytest.mark.parametrize("d", [1, 2])
def test_two_clusters_far_apart(apart, kernel, select, d):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, d))
        X[::2, 0] += apart
        assert_true(X, kernel, size=20, select=select)


@pytest.mark.parametrize("size", [2, 3, 20])
@pytest.mark.parametrize("weights", ["free", "simplex"])
def test_beside_an_outlier_an_exact_error_is_exact(size, weights):
    X = np.append(np.random.default_rng(0).normal(size=(150, 2)), [[1e12, 0.0]], axis=0)
    small = compress(X, Gaussian(1.0), size=size, select="kcenter", weights=weights, rng=0)
    assert small.certificate.relative_error == pytest.approx(true_error(X, small), rel=1e-9)
    assert_true(X, Gaussian(1.0), size=size, select="kcenter", weights=weights)


def test_a_width_that_rounding_has_is_shown():
    X = np.random.default_rng(0).normal(size=(200, 1))
    X[::2] += 1e12
    assert "exact up to the rounding of coordinates" in str(
        compress(X, Gaussian(1.0), size=20, select="kcenter", rng=0).certificate
    )
    assert "rounding" not in str(compress(X[1::2], Gaussian(1.0), size=5, select="kcenter", rng=0).certificate)


def test_points_at_hand_are_not_far():
    X = np.random.default_rng(0).normal(size=(200, 3))
    assert not are_far(Gaussian(0.1), X)
    assert not are_far(Gaussian(0.1), X + 1e9)
    assert are_far(Gaussian(1e-9), X)
    assert not are_far(FunctionKernel("rbf"), X * 1e9)
