"""Signed weights that add up to nothing are refused, those that nearly do are compressed."""

import numpy as np
import pytest

from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, compress


def difference(n, kernel, shift=0.0, d=2):
    X = np.random.default_rng(0).normal(size=(n, d))
    return KernelMean.from_samples(X, kernel) - KernelMean.from_samples(X[::-1] + shift, kernel)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(0.5), FunctionKernel("rbf"), Gaussian(1e-12)], ids=repr)
@pytest.mark.parametrize("goal", [{"size": 20}, {"tol": 0.1}], ids=str)
def test_weights_that_cancel_are_refused(kernel, goal):
    with pytest.raises(ValueError, match=r"weights .*got 200 signed weights"):
        compress(difference(100, kernel), rng=0, **goal)


def test_many_weights_that_cancel_are_refused():
    with pytest.raises(ValueError, match="weights must not cancel"):
        compress(difference(3000, Gaussian(1.0)), size=20, rng=0)


@pytest.mark.parametrize("shift", [1e-3, 1e-6])
def test_a_small_difference_is_compressed(shift):
    small = compress(difference(100, Gaussian(1.0), shift), size=60, rng=0)
    assert 0 < small.certificate.norm < 2 * shift
    assert small.certificate.relative_error < 1
