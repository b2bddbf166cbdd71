"""Matern against scikit-learn's, far out and near its centre, and through every door of the library."""

import json
import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern as Reference

import reference
from cases import cloud
from reduset import KernelMean, Matern, compress
from reduset.cohort import CohortMap
from reduset.density import SparseKernelDensity
from reduset.kernels.lookup import kernel_from
from reduset.kernels.matern import MAX_DISTANCE
from reduset.spectral import ReducedKernelPCA
from stream_cases import assert_within, mixture, streamed

SMOOTHNESS = pytest.mark.parametrize("smoothness", [1.5, 2.5])
SPACES = pytest.mark.parametrize("space", ["rkhs", "l2"])


@SMOOTHNESS
@pytest.mark.parametrize("d", [1, 3])
def test_values_are_those_of_scikit_learn(smoothness, d):
    X, Q = cloud(60, d), cloud(20, d, seed=1)
    kernel, known = Matern(0.7, smoothness=smoothness), Reference(length_scale=0.7, nu=smoothness)
    np.testing.assert_allclose(kernel.product_gram(X, Q), known(X, Q), rtol=1e-11)
    np.testing.assert_allclose(KernelMean(X, np.ones(60), kernel)(Q, precision="double"), known(Q, X).sum(axis=1), rtol=1e-11)


@SMOOTHNESS
def test_the_table_is_the_closed_form_and_its_slope(smoothness):
    s = np.concatenate([[0.0], np.geomspace(1e-8, 600, 4001), np.random.default_rng(0).uniform(0, 30, 2000)])
    kernel = Matern(math.sqrt(2 * smoothness), smoothness=smoothness)  # so that distances are s
    origin, one = np.zeros((1, 1)), np.ones(1)
    shape = 1 + s if smoothness == 1.5 else 1 + s + s**2 / 3
    np.testing.assert_allclose(kernel.product_at(s, 1), shape * np.exp(-s), rtol=2e-12)
    slope = -(s if smoothness == 1.5 else s * (1 + s) / 3) * np.exp(-s)
    np.testing.assert_allclose(kernel.gradient_sums(origin, one, s[:, None])[:, 0], slope, rtol=0, atol=3e-11)


@SMOOTHNESS
def test_a_density_far_from_its_points_is_known_by_its_logarithm(smoothness):
    kernel = Matern(0.5, smoothness=smoothness)
    Q = np.array([[10.0], [1e3], [1e6], [0.1 * MAX_DISTANCE]])
    expected = reference.log_bump(kernel, Q, np.zeros((1, 1)))[:, 0]
    np.testing.assert_allclose(kernel.log_sums(np.zeros((1, 1)), np.ones(1), Q), expected, rtol=1e-12)
    beyond = kernel.log_sums(np.zeros((1, 1)), np.ones(1), np.array([[MAX_DISTANCE], [1e3 * MAX_DISTANCE]]))
    assert np.isfinite(beyond).all()
    assert expected[-1] > beyond[0] > beyond[1]


@pytest.mark.covering_cases
@SMOOTHNESS
@SPACES
@pytest.mark.parametrize("select", ["kcenter", "greedy", "kmeans"])
def test_the_certificate_is_the_true_error(smoothness, space, select):
    X = cloud(150, 3)
    kernel = Matern(0.9, smoothness=smoothness, space=space, normalized=space == "l2")
    result = compress(X, kernel, size=25, select=select, rng=0)
    w, atoms = np.full(150, 1 / 150), result.mean.atoms
    error = reference.squared_distance(kernel, X, w, atoms, result.mean.weights) / reference.squared_norm(kernel, X, w)
    assert result.certificate.relative_error == pytest.approx(math.sqrt(error), rel=1e-6)
    assert result.certificate.relative_error < 0.6


def test_moved_atoms_lose_less():
    at_rows, moved = (compress(cloud(), Matern(0.8), size=8, select="kcenter", refine=refine, rng=0) for refine in (False, 20))
    assert moved.certificate.relative_error < at_rows.certificate.relative_error


@SMOOTHNESS
@SPACES
def test_it_comes_back_from_its_description_and_from_a_file(smoothness, space, tmp_path):
    kernel = Matern(0.7, smoothness=smoothness, space=space, covariance=[1.0, 2.0])
    assert kernel_from(json.loads(json.dumps(kernel.to_dict()))) == kernel
    mean = compress(cloud(), kernel, size=9, rng=0).mean
    mean.save(tmp_path / "one.reduset")
    again = KernelMean.load(tmp_path / "one.reduset")
    assert again.kernel == kernel
    np.testing.assert_array_equal(again(cloud(5)), mean(cloud(5)))


@pytest.mark.fast_cases(1)
@SMOOTHNESS
def test_the_certificate_covers_a_stream(smoothness):
    X = mixture(4000, 2)
    assert_within(X, streamed(X, kernel=Matern(1.5, smoothness=smoothness)).result())


def test_a_cohort_compares_by_it():
    bags = [cloud(40, seed=seed) + shift for seed, shift in enumerate((0, 0, 4))]
    D = CohortMap(kernel=Matern(1.0), random_state=0).fit(bags).distances_
    assert D[0, 1] < D[0, 2]


def test_estimators_and_the_kernel_pca_know_its_name():
    X = cloud(200)
    density = SparseKernelDensity(kernel="matern", size=40, random_state=0).fit(X)
    assert isinstance(density.mean_.kernel, Matern)
    searched = SparseKernelDensity(kernel="matern", bandwidth=[0.01, 0.2, 3.0], size=200, random_state=0).fit(X)
    whole = KernelMean.from_samples(X, Matern(searched.bandwidth_, normalized=True))
    np.testing.assert_allclose(searched.score_samples(X[:5]), whole.log_density(X[:5]), rtol=1e-9)
    assert ReducedKernelPCA(n_components=2, kernel="matern").fit(X).kernel_ == Matern("median").resolve(X)
