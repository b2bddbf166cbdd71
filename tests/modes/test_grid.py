"""Points binned in cells: weight and mean of each cell are kept, and the bound on what is lost holds."""

import numpy as np
import pytest

from reduset import Gaussian, KernelMean
from reduset.modes.component_density import binned, cells


def mean_of(X, h, w=None):
    return KernelMean.from_samples(X, Gaussian(h, normalized=True, space="l2"), w)


def test_points_of_one_cell_are_one():
    z = np.array([[0.1, 0.1], [0.9, 0.2], [-0.1, 0.1], [0.2, 0.3], [0.1, 1.1], [1e30, 0.0], [1e30, 0.5], [-0.0, 0.0]])
    first, joined = cells(z, 1.0)
    whole = [tuple(row) for row in np.floor(z)]
    assert len(first) == len(set(whole)) == 4
    for i in range(len(z)):
        assert whole[first[joined[i]]] == whole[i]


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_weight_and_mean_of_each_cell_are_kept(offset):
    rng = np.random.default_rng(0)
    X, w = np.round(rng.normal(size=(400, 2)), 4) + offset, rng.uniform(size=400)
    w[:5] = 0
    mean = mean_of(X, 0.5, w)
    small, _ = binned(mean, 0.5, 1.0)
    assert small.size < 150
    assert small.weights.sum() == pytest.approx(mean.weights.sum())
    np.testing.assert_allclose(small.weights @ (small.atoms - offset), mean.weights @ (X - offset), atol=1e-7)
    assert small.kernel == mean.kernel


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("side", [0.05, 0.3, 1.0, 2.0])
def test_the_bound_is_never_broken(d, side):
    rng = np.random.default_rng(d)
    X = np.concatenate([rng.normal(size=(300, d)), rng.uniform(3, 4, size=(100, d))])
    mean = mean_of(X, 0.6, rng.uniform(size=400))
    small, bound = binned(mean, 0.6, side)
    energy = np.exp(mean.kernel.log_energy(d))
    lost = mean.distance(small) / np.sqrt(energy)
    assert lost <= bound + 1e-7
    assert (
        bound <= np.sqrt(3) / 4 * d * side**2 / 4
    )  # no point is farther from the mean of its cell, on the average, than half a side


def test_two_points_in_a_cell_lose_nearly_what_the_bound_says():
    """δ and −δ: the second difference of the bump."""
    mean = mean_of(np.array([[0.0], [0.02], [1.0]]), 1.0, [1.0, 1.0, 0.0])
    small, bound = binned(mean, 1.0, 10.0)
    assert small.size == 1
    lost = mean.distance(small) / np.sqrt(np.exp(small.kernel.log_energy(1)))
    assert 0.9 * bound < lost <= 1.001 * bound


def test_points_that_coincide_lose_nothing():
    X = np.repeat(np.random.default_rng(0).normal(size=(50, 2)), 3, axis=0)
    small, bound = binned(mean_of(X, 1.0), 1.0, 1e-6)
    assert small.size == 50
    assert bound < 1e-14
