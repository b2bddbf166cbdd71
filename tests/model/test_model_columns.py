"""Columns one by one: how far the density of each is from what it was."""

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, compress
from reduset.bandwidth import column_scales
from reduset.model import column_differences


def mean(X, weights=None):
    return KernelMean.from_samples(X, Gaussian(1.0), weights)


def by_hand(full, small, column):
    """From sums over all points, on a grid finer than the bumps."""
    x, y = full.atoms[:, column], small.atoms[:, column]
    width = 0.1 * column_scales(full.atoms, full.weights)[column]
    grid = np.arange(min(x.min(), y.min()) - 4 * width, max(x.max(), y.max()) + 4 * width, width / 8)
    p, q = (w @ np.exp(-0.5 * ((at[:, None] - grid) / width) ** 2) for at, w in ((x, full.weights), (y, small.weights)))
    return np.abs(p - q).max() / p.max()


def test_differences_are_those_of_densities_by_hand():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(1e6, 3.0, 900), rng.lognormal(0, 0.7, 900), rng.random(900) < 0.1, rng.integers(0, 50, 900)])
    full = mean(X, rng.uniform(0.5, 2.0, 900))
    small = KernelMean(X[:60] + rng.normal(size=(60, 4)) * 0.01, rng.normal(1 / 60, 0.01, 60), Gaussian(1.0))
    found = column_differences(full, small)
    np.testing.assert_allclose(found, [by_hand(full, small, k) for k in range(4)], rtol=0.03)


def test_all_rows_differ_by_nothing_and_a_lost_share_by_that_share():
    X = np.repeat([[0.0], [1.0]], [700, 300], axis=0)
    full = mean(X)
    assert column_differences(full, full)[0] == 0.0
    small = KernelMean(np.array([[0.0], [1.0]]), np.array([0.77, 0.23]), Gaussian(1.0))
    assert column_differences(full, small)[0] == pytest.approx(0.1, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_rows_far_out_leave_the_bulk_as_fine_as_it_was(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20_000, 1))
    far = X.copy()
    far[0] = 1e9
    few, spread = mean(X[::20]), column_scales(X)
    assert column_differences(mean(far), few, spread)[0] == pytest.approx(column_differences(mean(X), few, spread)[0], rel=0.02)


def test_a_constant_column_and_many_rows():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.full(120_000, 5.0), rng.normal(size=120_000)]).astype(np.float32)
    found = column_differences(mean(X), mean(X[:400]))
    assert found[0] < 1e-6
    assert 0.02 < found[1] < 0.4


def test_components_are_looked_at_without_the_bump_of_the_kernel():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-2, 0.5, size=(3000, 2)), rng.normal(2, 1.0, size=(3000, 2))]) * [1.0, 1e4]
    kernel = Gaussian(0.3, scales="robust", normalized=True)
    few = compress(X, kernel, size=2, pieces="components", rng=0).mean
    found = column_differences(mean(X), few)
    drawn, laws = rng.integers(2, size=400_000), few.pieces
    places = rng.normal(laws.places[drawn], np.sqrt(laws.spreads[drawn][:, [0, 1], [0, 1]]))
    np.testing.assert_allclose(found, column_differences(mean(X), mean(places)), atol=0.02)
    assert (found < 0.15).all()  # of which most is the noise of so many rows
