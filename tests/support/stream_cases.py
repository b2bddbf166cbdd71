"""What the tests of streams share: data in three orders, true errors, and what it means for two results to be the same."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from reduset import Gaussian, KernelMean
from reduset.stream import StreamCompressor

ORDERS = ("shuffled", "sorted", "clustered")


def mixture(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 3 * rng.normal(size=(6, d))[rng.integers(0, 6, n)]


def ordered(X, order):
    """The rows in one of the orders; clusters by which of six far rows is nearest."""
    if order == "shuffled":
        return X[np.random.default_rng(9).permutation(len(X))]
    if order == "sorted":
        return X[np.argsort(X[:, 0], kind="stable")]
    far = X[np.random.default_rng(8).choice(len(X), 6, replace=False)]
    return X[np.argsort(np.argmin(((X[:, None] - far) ** 2).sum(axis=2), axis=1), kind="stable")]


def apart(kernel, X, Y):
    """Distances in the kernel's own coordinates."""
    frame = kernel.frame(X, kernel.product(X.shape[1]))
    return cdist(frame.apply(X), frame.apply(Y), getattr(kernel, "metric", "euclidean"))


def streamed(X, chunk=700, sample_weight=None, kernel=None, size=60, seed=0, **options):
    """A stream that has taken in the rows, chunk by chunk, with a buffer that holds a part of them."""
    stream = StreamCompressor(kernel or Gaussian(2.0), size, seed, **{"buffer": 500} | options)
    for start in range(0, len(X), chunk):
        some = None if sample_weight is None else sample_weight[start : start + chunk]
        stream.partial_fit(X[start : start + chunk], sample_weight=some)
    return stream


def error_of(X, small, weights=None):
    """‖f − f_m‖ / ‖f‖ by the definition."""
    f = KernelMean.from_samples(X, small.kernel, weights)
    return f.distance(small) / f.norm()


def assert_identical(one, other):
    """The same result to the last bit."""
    np.testing.assert_array_equal(one.mean.atoms, other.mean.atoms)
    np.testing.assert_array_equal(one.mean.weights, other.mean.weights)
    assert one.certificate == other.certificate
    assert one.n_samples == other.n_samples


def assert_within(X, result, weights=None, slack=1.25):
    """The certificate holds: the error is within its interval, widened a little for it may miss one time in twenty, and bounded."""
    truth = error_of(X, result.mean, weights)
    low, high = result.certificate.interval
    assert low / slack <= truth <= high * slack
    if result.certificate.bound is not None:
        assert truth * result.certificate.norm <= result.certificate.bound * (1 + 1e-9)
    assert result.certificate.relative_error == pytest.approx(truth, rel=0.5)
