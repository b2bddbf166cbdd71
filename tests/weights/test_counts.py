"""The nearest-atom pass against its definition, and the proportions that its counts give."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from reduset import Gaussian, KernelMean, Laplacian, Student, compress
from reduset.kernels import FunctionKernel
from reduset.weights import assignments_to, masses_of

COVARIANCE = np.array([[4.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.25]])
METRICS = {
    "gaussian": (Gaussian(1.0), lambda X, A: cdist(X, A)),
    "city block": (Laplacian(1.0, metric="cityblock"), lambda X, A: cdist(X, A, "cityblock")),
    "student": (Student(2.0), lambda X, A: cdist(X, A)),
    "whitened": (Gaussian(1.0, covariance=COVARIANCE), lambda X, A: cdist(X, A, "mahalanobis", VI=np.linalg.inv(COVARIANCE))),
    "function": (FunctionKernel("rbf", gamma=0.5), lambda X, A: cdist(X, A)),
}


def cloud(n=400, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("name", METRICS)
def test_each_row_counts_for_its_nearest_atom(name):
    kernel, distances = METRICS[name]
    X, w = cloud(), np.random.default_rng(1).uniform(0.1, 2, 400)
    mean = KernelMean.from_samples(X, kernel, w)
    atoms = cloud(25, 3, 2)
    nearest = distances(X, atoms).argmin(axis=1)
    assert np.array_equal(assignments_to(mean, atoms), nearest)
    np.testing.assert_allclose(masses_of(mean, atoms), np.bincount(nearest, mean.weights, 25), rtol=1e-12)


@pytest.mark.slow
def test_proportions_of_clusters_are_those_of_the_rows():
    """Free weights have the least error in the norm, and sums over clusters that are far from the clusters' proportions."""
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(6, 3))
    label = rng.choice(6, 20_000, p=[0.5, 0.25, 0.15, 0.06, 0.03, 0.01])
    X = centres[label] + rng.normal(size=(20_000, 3))
    truth = np.bincount(cdist(X, centres).argmin(axis=1), minlength=6) / len(X)
    full = KernelMean.from_samples(X, Gaussian("median"))

    def errors(seed):
        small = compress(full, size=1000, select="thinning", rng=seed)
        atoms = small.mean.atoms
        own = cdist(atoms, centres).argmin(axis=1)
        return [np.abs(np.bincount(own, w, 6) - truth).sum() for w in (masses_of(full, atoms), small.mean.weights)]

    # the error of free weights depends on the rounding of a nearly singular system, so seeds are averaged
    by_counts, free = np.array([errors(seed) for seed in range(3)]).T
    assert by_counts.max() < 0.1
    assert by_counts.mean() < free.mean() / 3
