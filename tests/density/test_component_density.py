"""SparseKernelDensity on components: the same laws as on atoms, with fewer pieces."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import integrate
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from reduset import ComponentMean, Gaussian, KernelMean, Mixture, NotReachedWarning
from reduset.density import SparseKernelDensity


def rows(n=1500, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(0, np.arange(1, d + 1), size=(n // 2, d)), rng.normal(4, 0.7, size=(n - n // 2, d))])


X = rows()


def fitted(data=X, **options):
    return SparseKernelDensity(**{"pieces": "components", "size": 6, "random_state": 0} | options).fit(data)


@pytest.mark.slow
def test_scikit_learn_finds_nothing_to_complain_of():
    results = check_estimator(SparseKernelDensity(pieces="components", size=2), on_skip=None, on_fail=None)
    assert len(results) > 30
    assert [result["check_name"] for result in results if result["status"] == "failed"] == []


def test_it_differs_from_the_exact_density_by_what_the_certificate_says():
    found = fitted()
    assert isinstance(found.mean_, ComponentMean)
    assert found.mean_.size <= 6
    full = KernelMean.from_samples(X, found.mean_.kernel)
    assert found.mean_.kernel.space == "l2"
    np.testing.assert_allclose(found.mean_.distance(full) / full.norm(), found.certificate_.relative_error, rtol=1e-6)
    np.testing.assert_allclose(full.norm(), found.certificate_.norm, rtol=1e-6)
    axes = np.meshgrid(np.linspace(-6, 10, 321), np.linspace(-10, 12, 441), indexing="ij")
    grid = np.stack(axes, axis=-1).reshape(-1, 2)
    apart = (np.exp(found.score_samples(grid)) - full(grid)).reshape(321, 441)
    square = integrate.trapezoid(integrate.trapezoid(apart**2, dx=0.05), dx=0.05)
    np.testing.assert_allclose(np.sqrt(square), found.certificate_.relative_error * full.norm(), rtol=1e-3)


def test_few_components_do_what_takes_many_atoms():
    assert 3 * fitted(size=None, tol=0.05).mean_.size < SparseKernelDensity(tol=0.05, random_state=0).fit(X).mean_.size


def test_a_tolerance_holds_or_the_density_is_exact():
    found = fitted(size=None, tol=0.1)
    assert found.certificate_.interval[1] <= 0.1
    with pytest.warns(NotReachedWarning, match=r"takes more than 1 components for 1,500 points"):
        exact = fitted(size=None, tol=1e-6, max_size=1)
    assert exact.compression_ is None
    assert isinstance(exact.mean_, KernelMean)


def test_slices_are_those_of_the_mixture():
    frame = pd.DataFrame(X, columns=["a", "b"])
    found = fitted(frame)
    line = np.linspace(-12, 14, 2601)[:, None]
    alone = found.marginal("b")
    assert isinstance(alone, Mixture)
    summed = np.exp(found.score_samples(pd.DataFrame({"a": np.linspace(-9, 12, 2101), "b": 1.0})))
    np.testing.assert_allclose(alone([[1.0]]), integrate.trapezoid(summed, dx=0.01), rtol=1e-6)
    given = found.conditional("a", [4.0])
    joint = np.exp(found.score_samples(pd.DataFrame({"a": 4.0, "b": line[:, 0]})))
    np.testing.assert_allclose(given(line), joint / integrate.trapezoid(joint, dx=0.01), rtol=1e-6, atol=1e-12)


def test_samples_have_the_moments_of_the_density():
    found = fitted()
    draws = found.sample(40_000, random_state=0)
    np.testing.assert_allclose(draws.mean(axis=0), found.mean_.mean(), atol=0.05)
    np.testing.assert_allclose(np.cov(draws.T), found.mean_.covariance(), rtol=0.05, atol=0.05)


def test_clones_pickles_and_seeds():
    found = fitted(bandwidth=0.4)
    assert clone(found).get_params() == found.get_params()
    again, same = pickle.loads(pickle.dumps(found)), fitted(bandwidth=0.4)
    for other in (again, same):
        np.testing.assert_array_equal(other.score_samples(X[:50]), found.score_samples(X[:50]))


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.5), Gaussian(0.5, scales="robust"), Gaussian(0.5, covariance=[[2.0, 0.6], [0.6, 1.0]])]
)
def test_units_and_covariances_of_the_kernel_are_seen(kernel):
    found = fitted(kernel=kernel)
    full = KernelMean.from_samples(X, found.mean_.kernel)
    np.testing.assert_allclose(found.mean_.distance(full) / full.norm(), found.certificate_.relative_error, rtol=1e-6)


def test_whitening_and_a_search_for_the_bandwidth_go_with_components():
    found = fitted(whiten=True, bandwidth=[0.02, 0.2, 2.0])
    assert found.bandwidth_ == SparseKernelDensity(whiten=True, bandwidth=[0.02, 0.2, 2.0], random_state=0).fit(X).bandwidth_
    assert found.mean_.kernel.covariance is not None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"pieces": "clusters"}, ValueError, "pieces must be one of"),
        ({"kernel": "exponential"}, TypeError, "pieces='components' needs a Gaussian kernel"),
        ({"select": "greedy"}, ValueError, "select is not supported"),
        ({"refine": True}, ValueError, "refine is not supported"),
    ],
)
def test_what_does_not_go_with_components_is_named(options, error, message):
    with pytest.raises(error, match=message):
        fitted(**options)
