"""Divergences of densities: against closed forms and quadrature, their Monte-Carlo error, and maps by them."""

import warnings

import numpy as np
import pytest
from scipy.integrate import quad

from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, NotReachedWarning
from reduset.cohort import CohortMap, divergences
from reduset.cohort.divergences import log_densities, overlooked


def density(points, weights=None, kernel=None):
    points = np.asarray(points, float).reshape(len(points), -1)
    weights = np.full(len(points), 1 / len(points)) if weights is None else np.asarray(weights, float)
    return KernelMean(points, weights, kernel or Gaussian(0.5, normalized=True))


def by_quadrature(p, q):
    def integrand(x):
        a, b = (float(each.log_density(np.array([[x]]))[0]) for each in (p, q))
        return (np.exp(a) - np.exp(b)) * (a - b)

    return quad(integrand, -12, 12, limit=200, points=[-2, 0, 2])[0]


@pytest.mark.parametrize("kernel", [Gaussian(0.5, normalized=True), Laplacian(0.5), Gaussian(0.7, space="l2")], ids=repr)
def test_estimates_agree_with_quadrature_within_their_errors(kernel):
    means = [
        density([-1.0, 0.3], [0.4, 0.6], kernel),
        density([0.5], kernel=kernel),
        density([-1, 0, 1.5], [0.2, 0.5, 0.3], kernel),
    ]
    found = divergences(means, draws=20_000, rng=0)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        truth = by_quadrature(means[i], means[j])
        assert abs(found.values[i, j] - truth) < 4 * found.errors[i, j]
        assert found.errors[i, j] < 0.05 * truth


def test_two_gaussians_have_the_divergence_of_the_formula_in_any_dimension():
    step = np.array([0.3, -0.4, 1.2])
    p, q = density([np.zeros(3)], kernel=Gaussian(0.8)), density([step], kernel=Gaussian(0.8))
    found = divergences([p, q], draws=20_000, rng=1)
    assert abs(found.values[0, 1] - step @ step / 0.8**2) < 4 * found.errors[0, 1]


def test_the_error_covers_as_often_as_a_standard_error_should():
    p, q = density([0.0]), density([0.4])  # (0.4 / 0.5)² = 0.64
    misses = []
    for seed in range(200):
        found = divergences([p, q], draws=300, rng=seed)
        misses.append(abs(found.values[0, 1] - 0.64) / found.errors[0, 1])
    assert 0.9 < np.mean(np.array(misses) < 2) < 0.99


def test_divergences_are_symmetric_not_negative_and_zero_for_equals():
    rng = np.random.default_rng(0)
    means = [density(rng.normal(size=(5, 2))) for _ in range(4)]
    values, errors = divergences([*means, means[0]], draws=50, rng=0)
    np.testing.assert_array_equal(values, values.T)
    np.testing.assert_array_equal(errors, errors.T)
    assert np.all(values >= 0)
    assert np.all(np.diag(values) == 0)
    assert values[0, 4] == pytest.approx(0, abs=1e-20)
    assert errors[0, 4] == pytest.approx(0, abs=1e-20)


def test_only_the_shape_of_a_density_matters_not_its_mass():
    p, q = density([0.0, 1.0]), density([0.5, 2.0])
    np.testing.assert_allclose(divergences([3 * p, q], rng=0).values, divergences([p, q], rng=0).values, rtol=1e-12)


def test_log_densities_on_the_same_atoms_are_those_of_each_however_far():
    rng = np.random.default_rng(0)
    atoms = rng.normal(size=(20, 2))
    means = [KernelMean(atoms, w, Gaussian(0.05, normalized=True)) for w in rng.dirichlet(np.ones(20), 3)]
    means.append(KernelMean(atoms, np.eye(20)[0], Gaussian(0.05, normalized=True)))  # far from most of the others' draws
    Q = np.concatenate([atoms, atoms + 10.0])
    expected = np.stack([mean.log_density(Q) for mean in means], axis=1)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(log_densities(means, Q), expected, rtol=1e-10)


def test_others_are_compared_with_each():
    means = [density([x]) for x in (0.0, 0.5, 1.0)]
    found = divergences(means[:1], means, draws=4000, rng=0)
    assert found.values.shape == (1, 3)
    truth = np.array([0.0, 1.0, 4.0])
    assert np.all(np.abs(found.values[0] - truth) <= 4 * found.errors[0])


def test_what_is_no_density_is_refused():
    f = density([0.0, 1.0], [1.5, -0.5])
    with pytest.raises(ValueError, match=r"means\[1\] must have non-negative weights"):
        divergences([density([0.0, 1.0]), f])
    g = KernelMean(np.zeros((2, 1)), np.ones(2), FunctionKernel("rbf", gamma=1.0))
    with pytest.raises(TypeError, match="must be a density"):
        divergences([g, g])
    with pytest.raises(ValueError, match="draws must be at least 2"):
        divergences([density([0.0])], draws=1)


def bags(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(shift, 1.0, size=(n, 2)) for shift in (0.0, 0.3, 0.6, 2.0, 2.3, 2.6)]


@pytest.mark.parametrize("atoms", ["shared", "own"])
def test_compressed_densities_are_as_far_apart_as_the_full_ones(atoms):
    options = {"distance": "kl", "layout": "mds", "draws": 4000}
    full = CohortMap(atoms="all", random_state=1, **options).fit(bags())
    small = CohortMap(atoms=atoms, size=100, random_state=0, **options).fit(bags())
    assert all(each.mean.weights.min() >= 0 for each in small.compressions_)
    assert all(each.mean.mass == pytest.approx(1) for each in small.compressions_)
    slack = 4 * np.hypot(full.errors_, small.errors_) + 0.03 * full.distances_
    assert np.all(np.abs(full.distances_ - small.distances_) <= slack)


@pytest.mark.parametrize("layout", ["isomap", "mds"])
def test_a_fitted_bag_lands_on_its_place_up_to_chance(layout):
    fitted = CohortMap("kl", layout, n_neighbors=3, atoms="shared", draws=4000, random_state=0).fit(bags())
    again = fitted.transform(bags()[:2])
    assert np.abs(again - fitted.embedding_[:2]).max() < 0.1 * np.abs(fitted.embedding_).max()


@pytest.mark.parametrize("atoms", ["shared", "own"])
def test_a_later_density_that_the_atoms_do_not_see_is_compared_in_full(atoms):
    options = {"distance": "kl", "layout": "mds", "kernel": Gaussian(0.8, normalized=True), "random_state": 0}
    far = bags()[0] * 3 + 8
    full = CohortMap(atoms="all", **options).fit(bags())
    small = CohortMap(atoms=atoms, size=60 if atoms == "shared" else 10, **options).fit(bags())
    expected, _ = full.distances_to_fitted([far])
    with pytest.warns(NotReachedWarning, match=r"later bags \(0\) have errors up to"):
        found, _ = small.distances_to_fitted([far])
    # so far out the fitted densities are those of their outermost atoms
    assert np.all((found > expected / 2) & (found < 2 * expected))


def test_a_few_points_that_the_atoms_do_not_see_are_enough():
    options = {"distance": "kl", "layout": "mds", "kernel": Gaussian(0.8, normalized=True), "random_state": 0}
    later = bags(seed=1)[0]
    small, full = (CohortMap(atoms=atoms, size=60, **options).fit(bags()) for atoms in ("shared", "all"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small.distances_to_fitted([*bags(seed=1), *bags(seed=2)])
    later[:4] += 8.0  # 1 % of its points
    expected = full.distances_to_fitted([later])[0]
    with pytest.warns(NotReachedWarning, match="have errors up to"):
        found = small.distances_to_fitted([later])[0]
    assert np.all((found > expected / 2) & (found < 2 * expected))


def test_what_is_overlooked_is_a_share_of_the_divergence():
    small = density([0.0])
    assert overlooked(np.array([[0.0], [0.1], [-0.1]]), small, small.kernel) == 0
    # the point at 5 bandwidths has half the mass: log 0.5 + 25/2, of which a half
    assert overlooked(np.array([[0.0], [2.5]]), small, small.kernel) == pytest.approx((np.log(0.5) + 12.5) / 2)


@pytest.mark.parametrize("atoms", ["shared", "own", "all"])
def test_a_later_bag_does_not_depend_on_those_it_comes_with(atoms):
    fitted = CohortMap("kl", "mds", size=50, atoms=atoms, draws=200, random_state=0).fit(bags())
    later = [*bags(seed=1)[:3], bags()[0] + 9]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotReachedWarning)
        together = fitted.distances_to_fitted(later)[0]
        alone = np.concatenate([fitted.distances_to_fitted([bag])[0] for bag in later])
    np.testing.assert_allclose(together, alone, rtol=1e-9)


def test_tol_holds_for_the_weights_of_densities():
    fitted = CohortMap("kl", "mds", tol=0.1, atoms="shared", random_state=0).fit(bags())
    assert max(each.certificate.interval[1] for each in fitted.compressions_) <= 0.1
    assert fitted.compressions_[0].weighting == "simplex"


def test_a_kernel_without_a_density_is_refused():
    with pytest.raises(TypeError, match="compares densities"):
        CohortMap("kl", kernel=FunctionKernel("rbf", gamma=1.0)).fit(bags())
