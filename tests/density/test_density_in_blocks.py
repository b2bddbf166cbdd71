"""A density of rows in blocks equals that of the array."""

import numpy as np
import pytest

from reduset import Gaussian, KernelMean
from reduset.density import SparseKernelDensity
from reduset.density.leaf_density import merge_rows
from row_blocks import ListedRows

X = np.random.default_rng(0).standard_t(3, size=(6000, 2))
X[300:400] = X[0]
WEIGHTS = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)


@pytest.mark.parametrize("side", [0.0, 0.3])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_merged_rows(side, weights):
    kernel = Gaussian(0.5, normalized=True)
    one, other = (
        merge_rows(KernelMean.from_samples(some, kernel, weights), kernel, side) for some in (X, ListedRows(X, 350, 0, 4650, 1000))
    )
    np.testing.assert_allclose(other.atoms, one.atoms, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(other.weights, one.weights, rtol=1e-12)


def test_too_many_cells_are_given_up():
    full = KernelMean.from_samples(ListedRows(X, 3000, 3000), Gaussian(0.5))
    assert merge_rows(full, full.kernel, 0.3, 10) is None


@pytest.mark.parametrize("options", [{}, {"bandwidth": "likelihood"}, {"tol": 0.1}, {"size": 50, "kernel": "exponential"}], ids=str)
def test_a_density(options):
    Q = X[::400] + 0.01
    one, other = (
        SparseKernelDensity(random_state=0, **options).fit(some, sample_weight=WEIGHTS) for some in (X, ListedRows(X, 2500, 3500))
    )
    assert other.bandwidth_ == pytest.approx(one.bandwidth_, rel=1e-12)
    np.testing.assert_allclose(other.score_samples(Q), one.score_samples(Q), rtol=1e-5, atol=1e-5)
    assert other.certificate_.relative_error == pytest.approx(one.certificate_.relative_error, rel=1e-5)
    np.testing.assert_allclose(other.log_error_, one.log_error_, rtol=1e-3, atol=1e-5)
