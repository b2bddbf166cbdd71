"""NeighbourKLKernel: divergences of samples from distances to neighbours, and a positive semidefinite kernel of them."""

import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.spatial.distance import cdist
from scipy.special import gamma
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import bag_laws
from reduset.features import NeighbourKLKernel
from reduset.features.neighbour import DivergenceEstimator, NeighbourIndex, clipping, correction

WIDE, SHIFT = 1.3, 0.5  # q is N(0.5, 1.3²) along each axis, p the standard normal


def affinity(alpha):
    """∫ pᵅ q¹⁻ᵅ along one axis."""

    def integrand(x):
        p = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
        q = np.exp(-(((x - SHIFT) / WIDE) ** 2) / 2) / np.sqrt(2 * np.pi) / WIDE
        return p**alpha * q ** (1 - alpha)

    return quad(integrand, -20, 20, epsabs=1e-12)[0]


def truth(divergence, alpha, d):
    if divergence == "kl":
        return d * (np.log(WIDE) + (1 + SHIFT**2) / (2 * WIDE**2) - 0.5)
    return 1 - affinity(0.5) ** d if divergence == "hellinger" else d * np.log(affinity(alpha)) / (alpha - 1)


def directed(estimate, X, Y):
    return estimate.directed([NeighbourIndex.of(X, estimate.k, "X")], [NeighbourIndex.of(Y, estimate.k, "Y")], lambda *_: None)[0][
        0, 0
    ]


CASES = [("kl", 0.5), ("renyi", 0.5), ("renyi", 0.9), ("renyi", 1.3), ("hellinger", 0.5)]


@pytest.mark.covering_cases
@pytest.mark.fast_cases(8)
@pytest.mark.parametrize(("divergence", "alpha"), CASES)
@pytest.mark.parametrize(("d", "k"), [(1, 2), (2, 4), (3, 4)])
def test_divergences_of_gaussians_are_those_in_closed_form(divergence, alpha, d, k):
    rng = np.random.default_rng(0)
    estimate = DivergenceEstimator(divergence, k, alpha)
    # of unequal sizes, so that a wrong count of points shows
    found = [directed(estimate, rng.normal(size=(6000, d)), rng.normal(SHIFT, WIDE, size=(9000, d))) for _ in range(6)]
    off = np.std(found) / np.sqrt(5) * 3 + 0.02 * d  # of which 0.02 a dimension for the bias of finite samples
    assert abs(np.mean(found) - truth(divergence, alpha, d)) < off
    assert off < 0.12


@pytest.mark.parametrize(("k", "alpha"), [(1, 0.5), (1, 0.9), (4, 0.5), (4, 1.7), (7, 3.0)])
def test_the_correction_is_that_of_powers_of_gamma_variables(k, alpha):
    def mean_power(power):
        return quad(lambda u: u ** (k - 1 + power) * np.exp(-u) / gamma(k), 0, np.inf, epsabs=1e-12, limit=200)[0]

    assert np.exp(-correction(k, alpha)) == pytest.approx(mean_power(1 - alpha) * mean_power(alpha - 1), rel=1e-6)


@pytest.mark.parametrize(("divergence", "alpha"), CASES)
def test_an_estimate_is_that_of_the_formula_by_all_pairs_of_points(divergence, alpha):
    rng = np.random.default_rng(1)
    X, Y, k, d = rng.normal(size=(30, 2)), rng.normal(size=(20, 2)), 3, 2
    rho = np.sort(cdist(X, X), axis=1)[:, k]
    nu = np.sort(cdist(X, Y), axis=1)[:, k - 1]
    if divergence == "kl":
        wanted = d * np.mean(np.log(nu / rho)) + np.log(20 / 29)
    else:
        B = gamma(k) ** 2 / (gamma(k - alpha + 1) * gamma(k + alpha - 1))
        mean = B * np.mean((29 * rho**d / (20 * nu**d)) ** (1 - alpha))
        wanted = 1 - mean if divergence == "hellinger" else np.log(mean) / (alpha - 1)
    assert directed(DivergenceEstimator(divergence, k, alpha), X, Y) == pytest.approx(wanted, rel=1e-12)


def test_divergences_are_the_mean_of_both_directions_and_not_negative():
    bags, _ = bag_laws.spread_bags()
    fitted = NeighbourKLKernel(kernel_width=0.7, psd=None).fit(bags)
    estimate = DivergenceEstimator("kl", 4)
    both = np.array([[(directed(estimate, p, q) + directed(estimate, q, p)) / 2 for q in bags] for p in bags])
    np.fill_diagonal(both, 0.0)
    assert (both < 0).any()
    np.testing.assert_allclose(fitted.divergences_, np.maximum(both, 0.0), atol=1e-12)
    np.testing.assert_allclose(fitted.transform(bags), np.exp(-fitted.divergences_ / (2 * 0.7**2)), atol=1e-12)
    np.testing.assert_array_equal(fitted.divergences_to_fitted(bags), fitted.divergences_)


def test_the_usual_kernel_width_is_the_median_root_of_the_divergences():
    fitted = NeighbourKLKernel().fit(bag_laws.spread_bags()[0])
    roots = np.sqrt(fitted.divergences_[np.triu_indices(24, 1)])
    assert fitted.kernel_width_ == pytest.approx(np.median(roots))


@pytest.mark.parametrize("divergence", ["kl", "renyi", "hellinger"])
def test_the_matrix_of_the_training_bags_is_positive_semidefinite_and_shown_again_they_have_its_rows(divergence):
    bags, _ = bag_laws.spread_bags()
    estimator = NeighbourKLKernel(divergence)
    matrix = estimator.fit_transform(bags)
    raw = clone(estimator).set_params(psd=None).fit_transform(bags)
    assert estimator.least_eigenvalue_ == pytest.approx(np.linalg.eigvalsh(raw)[0])
    assert estimator.least_eigenvalue_ < -1e-3
    assert np.linalg.eigvalsh(matrix)[0] > -1e-12
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_allclose(estimator.transform(bags), matrix, atol=1e-12)


def test_clipping_does_what_it_says_to_the_eigenvalues():
    bags, _ = bag_laws.spread_bags()
    before = np.linalg.eigvalsh(NeighbourKLKernel(psd=None).fit_transform(bags))
    after = np.linalg.eigvalsh(NeighbourKLKernel().fit_transform(bags))
    np.testing.assert_allclose(after, np.sort(np.maximum(before, 0.0)), atol=1e-12)


def test_a_new_bag_goes_through_the_linear_map_of_the_training_matrix():
    bags, _ = bag_laws.spread_bags(20)
    raw = NeighbourKLKernel(psd=None).fit(bags[:16])
    values, vectors = np.linalg.eigh(raw.transform(bags[:16]))
    clipped = vectors[:, values > 0] @ vectors[:, values > 0].T
    found = NeighbourKLKernel(psd="clip").fit(bags[:16]).transform(bags[16:])
    np.testing.assert_allclose(found, raw.transform(bags[16:]) @ clipped, atol=1e-12)


def test_a_matrix_that_is_positive_semidefinite_stays_as_it_is():
    points = np.random.default_rng(0).normal(size=(30, 2))
    K = np.exp(-(cdist(points, points) ** 2))
    assert clipping(K)[0] is None


def test_bags_with_the_same_points_in_any_order_have_divergence_zero():
    bags, _ = bag_laws.spread_bags(6)
    again = bags[2][::-1]
    fitted = NeighbourKLKernel(n_neighbors=1).fit([*bags, again])
    assert fitted.divergences_[2, 6] == 0
    assert fitted.divergences_to_fitted([again])[0, 2] == 0


def test_a_bag_has_divergence_zero_from_itself_even_where_the_estimate_has_not():
    turns = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    ring = np.column_stack([np.cos(turns), np.sin(turns)])  # both second neighbours are at the same distance, so ν = ρ
    assert directed(DivergenceEstimator("kl", 2), ring, ring) == pytest.approx(np.log(12 / 11))
    fitted = NeighbourKLKernel(n_neighbors=2, kernel_width=1.0).fit([ring, 2 * ring])
    assert fitted.divergences_[0, 0] == fitted.divergences_to_fitted([ring])[0, 0] == 0


def test_points_that_coincide_are_counted_and_give_no_infinities():
    bags, _ = bag_laws.spread_bags(6)
    bags[1] = np.concatenate([bags[1], np.repeat(bags[1][:1], 4, axis=0)])  # five at one place: the 4th neighbour is at 0
    for divergence in ("kl", "renyi", "hellinger"):
        with pytest.warns(UserWarning, match=r"^5 distances .* neighbour number 4 within their bag are 0, and 0 to neighbours in"):
            fitted = NeighbourKLKernel(divergence).fit(bags)
        assert np.isfinite(fitted.divergences_).all()
    bags[2][0] = bags[1][0]
    with pytest.warns(UserWarning, match=r"^5 distances .* within their bag are 0, and 1 to neighbours in another bag"):
        fitted = NeighbourKLKernel().fit(bags)
    with pytest.warns(UserWarning, match=r"^0 distances .* within their bag are 0, and 1 to neighbours in another bag"):
        found = fitted.divergences_to_fitted(bags[2:3])
    np.testing.assert_allclose(found[0], fitted.divergences_[2], atol=1e-12)


def test_a_bag_where_every_point_is_repeated_still_has_a_scale():
    bags, _ = bag_laws.spread_bags(4)
    bags[0] = np.repeat(bags[0], 5, axis=0)
    with pytest.warns(UserWarning, match=r"points coincide"):
        fitted = NeighbourKLKernel().fit(bags)
    assert np.isfinite(fitted.divergences_).all()


def test_a_bag_of_too_few_different_points_is_refused_by_name():
    bags, _ = bag_laws.spread_bags(4)
    few = np.repeat(bags[3][:4], 10, axis=0)
    with pytest.raises(ValueError, match=r"bags\[3\] .*got 4"):
        NeighbourKLKernel().fit([*bags[:3], few])
    fitted = NeighbourKLKernel().fit({"a": bags[0], "b": bags[1]})
    with pytest.raises(ValueError, match=r"bags\['c'\] must hold at least 5 different points"):
        fitted.transform({"c": few})


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("psd", ["clip", None])
def test_support_vector_machines_are_validated_on_lists_of_bags(psd):
    bags, spreads = bag_laws.spread_bags(60)
    model = make_pipeline(NeighbourKLKernel(psd=psd), SVC(kernel="precomputed"))
    assert cross_val_score(model, bags, spreads > 1.2, cv=3).mean() > 0.85


def test_kernel_ridge_regression_is_searched_on_lists_of_bags():
    bags, spreads = bag_laws.spread_bags(60)
    model = make_pipeline(NeighbourKLKernel(), KernelRidge(alpha=0.1, kernel="precomputed"))
    search = GridSearchCV(model, {"neighbourklkernel__kernel_width": [0.01, 2.0]}, cv=3).fit(bags, spreads)
    assert search.best_params_["neighbourklkernel__kernel_width"] == 2.0
    assert search.best_score_ > 0.8


@pytest.mark.parametrize("law", bag_laws.LAWS)
def test_it_keeps_the_laws_of_transformers_of_bags(law):
    law(NeighbourKLKernel())


@pytest.mark.parametrize("case", bag_laws.BAD)
def test_bad_bags_are_named(case):
    bag_laws.check_bad_bags_are_named(NeighbourKLKernel(), case)


def test_progress_is_told():
    bag_laws.check_progress_is_told(NeighbourKLKernel(), "and back")


def test_points_far_from_the_origin_and_of_any_scale_have_the_same_divergences():
    bags, _ = bag_laws.spread_bags(8)
    near = NeighbourKLKernel("renyi").fit(bags).divergences_
    np.testing.assert_allclose(NeighbourKLKernel("renyi").fit([bag * 1e-100 for bag in bags]).divergences_, near, atol=1e-9)
    np.testing.assert_allclose(NeighbourKLKernel("renyi").fit([bag + 1e6 for bag in bags]).divergences_, near, atol=1e-5)


def test_alike_bags_alone_give_a_kernel_of_ones():
    bag = bag_laws.spread_bags(1)[0][0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(NeighbourKLKernel().fit_transform([bag, bag]), 1.0)
        np.testing.assert_allclose(NeighbourKLKernel().fit_transform([bag]), 1.0)


OPTIONS = {
    "divergence": ({"divergence": "js"}, ValueError, "divergence must be one of 'hellinger', 'kl', 'renyi'"),
    "alpha": ({"alpha": 0.0}, ValueError, "alpha must lie between 0 and 5, got 0.0"),
    "large alpha": ({"alpha": 2.0, "n_neighbors": 1}, ValueError, "alpha must lie between 0 and 2"),
    "alpha of one": ({"divergence": "renyi", "alpha": 1.0}, ValueError, "alpha must not be 1, .* use divergence='kl'"),
    "n_neighbors": ({"n_neighbors": 0}, ValueError, "n_neighbors must be at least 1"),
    "kernel_width": ({"kernel_width": -1.0}, ValueError, "kernel_width must be above 0"),
    "rule": ({"kernel_width": "mean"}, ValueError, "kernel_width must be one of 'median'"),
    "psd": ({"psd": "drop"}, ValueError, "psd must be one of 'clip'"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_bad_options_are_named(case):
    options, error, message = OPTIONS[case]
    with pytest.raises(error, match=message):
        NeighbourKLKernel(**options).fit(bag_laws.spread_bags()[0])


def test_the_number_of_jobs_changes_nothing_and_a_bad_one_is_named():
    bags = [np.random.default_rng(seed).normal(seed % 3, 1.0, size=(30, 2)) for seed in range(8)]
    one, two = (NeighbourKLKernel(n_jobs=jobs).fit(bags).divergences_ for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)
    with pytest.raises(ValueError, match=r"n_jobs .*got 0"):
        NeighbourKLKernel(n_jobs=0).fit(bags)
