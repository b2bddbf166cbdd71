"""The laws of weights and prefixes that every selector, weighting and kernel obeys."""

import numpy as np
import pytest

from cases import KERNELS, MOVED, NESTED, SELECTORS, WAYS, WEIGHTINGS, Given, GivenPlaces, cloud, known, run, squeeze
from laws import EVERY, KERNEL, assert_same, pairs, with_selections
from reduset import Gaussian, KernelMean, compress

CONVEX = ["free", "sum_to_one", "simplex"]  # the best of a growing set: more atoms never hurt


@pytest.mark.covering_cases
@pairs(without=MOVED)
def test_a_freer_weighting_never_loses_more(select, kernel):
    X = cloud()
    full = KernelMean.from_samples(X, KERNELS[kernel])
    error = {weights: known(select, weights, kernel).certificate.relative_error for weights in WEIGHTINGS}
    atoms = known(select, "free", kernel).mean.atoms
    uniform = KernelMean.from_samples(atoms, KERNELS[kernel])
    slack = 1 + 1e-9
    assert error["free"] <= error["sum_to_one"] * slack
    assert error["sum_to_one"] <= error["simplex"] * slack
    assert error["simplex"] <= full.distance(uniform) / full.norm() * slack
    assert error["simplex"] <= min(error["clipped"], error["sum_to_one_clipped"], error["simplex_projection"]) * slack


@pytest.mark.covering_cases
@EVERY
def test_weights_keep_the_rules_of_their_kind(select, weights, kernel):
    alpha = known(select, weights, kernel).mean.weights
    assert np.isfinite(alpha).all()
    if weights != "free":
        assert alpha.sum() == pytest.approx(1.0, abs=1e-9)
    if weights not in ("free", "sum_to_one"):
        assert alpha.min() >= 0


@KERNEL
def test_clipped_and_projected_weights_follow_from_the_free_ones(kernel):
    free, clipped, projected = (
        known("random", w, kernel).with_all_selected().mean.weights for w in ("free", "clipped", "simplex_projection")
    )
    positive = np.maximum(free, 0)
    np.testing.assert_allclose(clipped, positive / positive.sum(), rtol=1e-9)
    # the nearest point of the simplex: one shift for all that stay, and no less for those that do not
    stays = projected > 0
    shift = (free - projected)[stays]
    np.testing.assert_allclose(shift, shift[0], atol=1e-9)
    assert np.all(free[~stays] <= shift[0] + 1e-9)


@pytest.mark.covering_cases
@pytest.mark.parametrize("weights", CONVEX)
@pairs()
def test_more_atoms_never_hurt_along_the_path(weights, select, kernel):
    path = known(select, weights, kernel, 40).path
    assert np.all(np.diff(path.sizes) > 0)
    assert (path.sizes[0], path.sizes[-1]) == (1, 40)
    assert np.all(np.diff(path.relative_errors) <= 1e-9)


@pytest.mark.parametrize("weights", ["free", "sum_to_one"])
@pytest.mark.parametrize("select", [name for name in WAYS if name not in NESTED])
def test_atoms_without_an_order_of_their_own_come_by_what_they_add(select, weights):
    """Backwards, the same atoms lose more on the way."""
    X = cloud()
    small = run(X, select, weights, size=20)
    reversed_ = compress(X, KERNELS["gaussian"], size=20, select=GivenPlaces(small.mean.atoms[::-1]), weights=weights, rng=0)
    assert small.path.relative_errors[-1] == pytest.approx(reversed_.path.relative_errors[-1], rel=1e-6)
    assert np.all(small.path.relative_errors[:-1] <= reversed_.path.relative_errors[:-1] + 1e-9)


@pytest.mark.covering_cases
@EVERY
def test_the_path_is_what_at_says(select, weights, kernel):
    small = known(select, weights, kernel, 12)
    errors = [small.at(int(size)).certificate.relative_error for size in small.path.sizes]
    np.testing.assert_allclose(small.path.relative_errors, errors, rtol=1e-9)
    assert small.path.relative_errors[-1] == pytest.approx(small.certificate.relative_error, rel=1e-9)


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize(
    ("kernel", "size", "method"),
    [("gaussian", 150, "frequencies"), ("laplacian l2", 150, "frequencies"), ("gaussian", 4, "rows"), ("function", 12, "rows")],
)
@pytest.mark.parametrize("weights", CONVEX)
def test_the_path_is_what_at_says_where_the_error_is_measured(kernel, size, method, weights):
    small = run(cloud(5000), weights=weights, kernel=kernel, size=size)
    assert small.certificate.method == method
    errors = [small.at(int(size)).certificate.relative_error for size in small.path.sizes]
    np.testing.assert_allclose(small.path.relative_errors, errors, rtol=1e-9)
    assert np.all(np.diff(errors) <= 1e-9)


@pytest.mark.covering_cases
@with_selections(among=NESTED)
def test_at_is_the_compression_of_that_size(select, weights, kernel):
    X = cloud()
    small = known(select, weights, kernel)
    for size in (1, 4, 11):
        nested, fresh = small.at(size), run(X, select, weights, kernel, size)
        np.testing.assert_array_equal(nested.indices, fresh.indices)
        np.testing.assert_array_equal(nested.mean.atoms, fresh.mean.atoms)
        np.testing.assert_allclose(nested.mean.weights, fresh.mean.weights, rtol=1e-6, atol=1e-9)
        assert nested.certificate.relative_error == pytest.approx(fresh.certificate.relative_error, rel=1e-6)
        assert nested.selected == size


@pytest.mark.covering_cases
@EVERY
def test_at_touches_no_data(select, weights, kernel):
    X = cloud()
    small = run(X, select, weights, kernel)
    before = small.at(5), small.path.relative_errors
    X[:] = np.nan
    after = small.at(5), small.path.relative_errors
    np.testing.assert_array_equal(before[0].mean.weights, after[0].mean.weights)
    np.testing.assert_array_equal(before[0].mean.atoms, after[0].mean.atoms)
    assert before[0].certificate == after[0].certificate
    np.testing.assert_array_equal(before[1], after[1])
    assert np.isfinite(small.mean(np.zeros((1, 2)))).all()


@pytest.mark.covering_cases
@KERNEL
@pytest.mark.parametrize("weights", WEIGHTINGS)
def test_all_points_with_their_own_weights_lose_nothing(kernel, weights):
    X, w = 4 * cloud(40), np.random.default_rng(0).uniform(0.5, 2, size=40)
    small = run(X, weights=weights, kernel=kernel, size=40, sample_weight=w)
    np.testing.assert_allclose(small.mean.weights, (w / w.sum())[small.indices], rtol=1e-6)
    assert small.certificate.relative_error <= 1e-7


@pytest.mark.covering_cases
@pytest.mark.fast_cases(32)
@EVERY
def test_reweigh_is_compressing_with_the_same_atoms_under_the_new_kernel(select, weights, kernel):
    X = cloud()
    small = squeeze(X, Gaussian(0.9), select, size=12, rng=0)
    again = small.reweigh(KernelMean.from_samples(X, Gaussian(0.9)), kernel=KERNELS[kernel], weights=weights, rng=0)
    atoms = GivenPlaces(small.mean.atoms) if small.indices is None else Given(small.indices)
    fresh = compress(X, KERNELS[kernel], size=12, select=atoms, weights=weights, rng=0)
    np.testing.assert_array_equal(again.with_all_selected().indices, small.indices)
    assert_same(again, fresh)
    assert again.mean.kernel == fresh.mean.kernel
    assert again.weighting == weights


def test_reweigh_with_nothing_new_changes_nothing():
    X = cloud()
    small = known()
    assert_same(small.reweigh(KernelMean.from_samples(X, KERNELS["gaussian"])), small)
    assert small.reweigh(KernelMean.from_samples(X, KERNELS["gaussian"])).at(3).size == 3


@pytest.mark.covering_cases
@EVERY
def test_the_error_of_every_prefix_is_its_distance(select, weights, kernel):
    X = cloud()
    small, full = known(select, weights, kernel), KernelMean.from_samples(X, KERNELS[kernel])
    for size in (1, 2, 7, 14):
        nested = small.at(size)
        atoms = small.with_all_selected().mean.atoms
        np.testing.assert_array_equal(nested.with_all_selected().mean.atoms, atoms[:size])
        distance = full.distance(nested.mean)
        assert nested.certificate.relative_error == pytest.approx(distance / full.norm(), rel=1e-5)
        assert nested.certificate.bound is None or distance <= nested.certificate.bound * (1 + 1e-9)


@pytest.mark.fast_cases(10)
@pytest.mark.parametrize("select", [name for name in NESTED if name != "shadow"])  # which does not take all the points
@pytest.mark.parametrize("bandwidth", [0.5, 2.0])
def test_all_the_points_lose_nothing_in_whatever_order_they_come(select, bandwidth):
    """A wide kernel makes most of them redundant, and an order that did not foresee it must not ruin the weights."""
    for seed in range(5):
        full = KernelMean.from_samples(cloud(60, 1, seed), Gaussian(bandwidth))
        small = compress(full, size=60, select=SELECTORS[select], rng=seed)
        assert small.certificate.relative_error < 1e-3
        assert np.abs(small.mean.weights).max() < 1e6
        two = small.at(2)
        assert two.certificate.relative_error == pytest.approx(full.distance(two.mean) / full.norm(), rel=1e-4)
