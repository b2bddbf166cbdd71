"""Counts: what the rows nearest to each atom weigh, against the definition; handed down; and what they are for."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from reduset import Gaussian, KernelMean, Laplacian, Student, compress
from reduset.kernels import FunctionKernel
from reduset.select import KCenter
from reduset.weights.counts import counts, handed_down, heirs, owners

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
    assert np.array_equal(owners(mean, atoms), nearest)
    np.testing.assert_allclose(counts(mean, atoms), np.bincount(nearest, mean.weights, 25), rtol=1e-12)


@pytest.mark.parametrize(
    "select", ["auto", "kcenter", "kmeans", "random", "greedy", "herding", "thinning", "cholesky", "columnnorm"]
)
def test_they_go_with_every_selector_and_are_certified_like_others(select):
    X = cloud(800, 2)
    small = compress(X, Gaussian("median"), size=40, select=select, weights="counts", rng=0)
    full = KernelMean.from_samples(X, small.mean.kernel)
    np.testing.assert_allclose(small.mean.weights, counts(full, small.mean.atoms), atol=1e-12)
    assert small.mean.weights.min() > 0
    assert small.mean.mass == pytest.approx(1.0, abs=1e-12)
    truth = small.mean.distance(full) / full.norm()
    assert small.certificate.relative_error == pytest.approx(truth, rel=1e-6)
    assert small.certificate.negative_mass == 0


def test_redundant_atoms_count_too():
    """At a wide bandwidth most bumps are alike to rounding; the rows that they stand for are not."""
    X = cloud(3000, 2)
    small = compress(X, Gaussian(30.0), size=500, select="kcenter", weights="counts", rng=0)
    assert small.size == 500
    assert (small.mean.weights > 0).all()
    free = compress(X, Gaussian(30.0), size=500, select="kcenter", rng=0)
    assert free.size < 100


def test_what_later_atoms_weigh_is_handed_down_to_the_nearest_before():
    atoms = cloud(30, 2, 3)
    w = np.random.default_rng(4).uniform(size=30)
    to = heirs(Gaussian(1.0), atoms)
    apart = cdist(atoms, atoms)
    for k in range(1, 30):
        assert apart[k, to[k]] == apart[k, :k].min()
    for size in (30, 12, 1):
        found = handed_down(w, to, size)
        assert found.sum() == pytest.approx(w.sum())
        expected = w[:size].copy()
        for k in range(size, 30):
            home = k
            while home >= size:
                home = to[home]
            expected[home] += w[k]
        np.testing.assert_allclose(found, expected)


def test_a_prefix_has_all_of_the_weight_and_a_true_error():
    X = cloud(900, 2)
    small = compress(X, Gaussian("scott"), size=60, weights="counts", rng=0)
    full = KernelMean.from_samples(X, small.mean.kernel)
    fewer = small.at(20)
    assert fewer.mean.mass == pytest.approx(1.0, abs=1e-12)
    assert fewer.certificate.relative_error == pytest.approx(fewer.mean.distance(full) / full.norm(), rel=1e-6)


def test_a_tolerance_is_met_by_counts():
    X = cloud(2000, 2)
    small = compress(X, Gaussian("median"), tol=0.03, weights="counts", rng=0)
    full = KernelMean.from_samples(X, small.mean.kernel)
    assert small.reached
    assert small.mean.distance(full) <= 0.03 * full.norm()


def test_atoms_that_are_moved_are_counted_where_they_are():
    X = cloud(900, 2)
    small = compress(X, Gaussian("scott"), size=30, weights="counts", refine=5, rng=0)
    full = KernelMean.from_samples(X, small.mean.kernel)
    np.testing.assert_allclose(small.mean.weights, counts(full, small.mean.atoms), atol=1e-12)


def test_other_weights_can_be_given_later():
    X = cloud(900, 2)
    small = compress(X, Gaussian("scott"), size=30, rng=0)
    full = KernelMean.from_samples(X, small.mean.kernel)
    counted = small.reweigh(full, weights="counts", rng=0)
    np.testing.assert_allclose(counted.mean.weights, counts(full, counted.mean.atoms), atol=1e-12)


def test_proportions_of_clusters_are_those_of_the_rows():
    """Free weights have the least error of the norm, and sums over clusters that are far from the clusters' shares."""
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(6, 3))
    label = rng.choice(6, 20_000, p=[0.5, 0.25, 0.15, 0.06, 0.03, 0.01])
    X = centres[label] + rng.normal(size=(20_000, 3))
    truth = np.bincount(cdist(X, centres).argmin(axis=1), minlength=6) / len(X)

    def off(kind, seed):
        small = compress(X, Gaussian("median"), size=1000, weights=kind, rng=seed)
        own = cdist(small.mean.atoms, centres).argmin(axis=1)
        return np.abs(np.bincount(own, small.mean.weights, 6) - truth).sum(), small

    # how far free weights are off depends on the rounding of a nearly singular system: the mean of several tells
    found = {kind: [off(kind, seed) for seed in range(6)] for kind in ("counts", "free")}
    by_counts, free = (np.array([amount for amount, _ in found[kind]]) for kind in found)
    (_, counted), (_, best) = found["counts"][0], found["free"][0]
    assert by_counts.max() < 0.02
    assert by_counts.mean() < free.mean() / 10
    assert best.certificate.relative_error < counted.certificate.relative_error
    assert best.certificate.negative_mass > 0.01
    assert "negative" in str(best)
    assert "negative" not in str(counted)


def test_selection_by_groups_of_kcenter_is_counted_too():
    X = cloud(600, 2)
    small = compress(X, Gaussian("median"), size=30, select=KCenter(groups=np.arange(600) % 3), weights="counts", rng=0)
    assert small.mean.mass == pytest.approx(1.0)
