"""The error bound of DensityFeatures holds, as a whole and term by term, on mixtures whose constants are known."""

from math import e

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.exceptions import NotFittedError

from reduset.features import DensityFeatures, ErrorBound
from reduset.features.embedding import fourier_features, unit_frequencies
from reduset.features.error_bound import (
    DensityClass,
    KernelMoments,
    PeanoConstants,
    Slopes,
    density_distance,
    frequency_error,
    orthogonal_covariance,
    projection_tail,
    random_feature_error,
    slope_total,
)
from reduset.features.homogeneous_distances import correlation, feature_map, kappa, optimal_frequencies, random_frequencies
from reference_densities import UniformAndNormals, constants_of, fine_grid, square_distance

HOMOGENEOUS = ["js", "hellinger", "tv", "chi2"]
PAIRS = {
    "line, smooth": (UniformAndNormals([[0.3]], 0.25), UniformAndNormals([[0.7]], 0.25)),
    "line, two modes": (UniformAndNormals([[0.2], [0.7]], 0.12), UniformAndNormals([[0.4]], 0.15)),
    "plane": (UniformAndNormals([[0.3, 0.4]], 0.3), UniformAndNormals([[0.7, 0.5]], 0.3)),
}
TERMS = ("density", "quadrature", "truncation", "frequencies", "random_features")


def corners(d):
    return [np.array([[0.0] * d, [1.0] * d])] * 2


def fitted(pair, distance, **options):
    """Features on the unit cube itself, whose kernel width is the true distance."""
    p, q = PAIRS[pair]
    width = np.sqrt(square_distance(p, q, distance))
    options = {"bandwidth": 0.06, "n_components": 2000, "margin": 0.0, "kernel_width": width, "random_state": 0} | options
    return DensityFeatures(distance, **options).fit(corners(p.dimension))


def bound_of(features, pair, n, **options):
    return features.error_bound(n, **(constants_of(*PAIRS[pair]) | options))


def kernel(square, features):
    return np.exp(-square / (2 * features.kernel_width_**2))


def node_points(nodes):
    u, _ = nodes.axis
    return np.stack(np.meshgrid(*[u] * nodes.dimension, indexing="ij"), axis=-1).reshape(-1, nodes.dimension)


def mapped(values, features):
    return feature_map(values, features.distance, features.frequencies_)


def too_often(violations, count, allowed):
    """More violations than a probability of ``allowed`` explains, at a level of 1e-4."""
    return violations > binom.ppf(1 - 1e-4, count, allowed)


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("distance", HOMOGENEOUS)
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("confidence", [0.3, 0.95])
def test_the_error_exceeds_the_total_no_more_often_than_it_may(pair, distance, confidence):
    p, q = PAIRS[pair]
    truth, rng, n, times = np.exp(-0.5), np.random.default_rng(1), 800, 20
    violations, errors = 0, []
    for seed in range(times):
        features = fitted(pair, distance, n_components=400, random_state=seed)
        total = bound_of(features, pair, (n, 2 * n), confidence=confidence).total
        z = features.transform([p.sample(n, rng), q.sample(2 * n, rng)])
        errors.append(abs(z[0] @ z[1] - truth))
        violations += errors[-1] > total
    assert not too_often(violations, times, 1 - confidence)
    assert max(errors) > 0


def test_the_bound_carries_information_for_large_bags():
    """Within 1 of kernel values between 0 and 1, and at most 40 times the largest error that is seen."""
    p, q = PAIRS["line, smooth"]
    rng, n = np.random.default_rng(0), 20_000
    features = fitted("line, smooth", "js", n_components=4000, n_nodes=100, bandwidth=0.05)
    bound = bound_of(features, "line, smooth", n)
    seen = []
    for seed in range(10):
        z = features.set_params(random_state=seed).fit(corners(1)).transform([p.sample(n, rng), q.sample(n, rng)])
        seen.append(abs(z[0] @ z[1] - np.exp(-0.5)))
    assert max(seen) < bound.total < min(0.5, 40 * max(seen))


@pytest.mark.covering_cases
@pytest.mark.fast_cases(24)
@pytest.mark.parametrize("frequencies", ["placed", "random"])
@pytest.mark.parametrize("distance", HOMOGENEOUS)
@pytest.mark.parametrize("pair", PAIRS)
def test_the_frequencies_change_the_kernel_by_less_than_their_term(pair, distance, frequencies):
    p, q = PAIRS[pair]
    points, weight = fine_grid(p.dimension)
    for count in (1, 3, 5):
        features = fitted(pair, distance, frequencies=frequencies, n_frequencies=count)
        few = np.sum((mapped(p(points), features) - mapped(q(points), features)) ** 2) * weight
        change = abs(kernel(few, features) - np.exp(-0.5))
        assert change <= bound_of(features, pair, 1000).frequencies + 1e-9


@pytest.mark.covering_cases
@pytest.mark.fast_cases(7)
@pytest.mark.parametrize("distance", HOMOGENEOUS)
@pytest.mark.parametrize("pair", PAIRS)
def test_nodes_and_basis_change_the_kernel_by_less_than_their_terms(pair, distance):
    p, q = PAIRS[pair]
    points, weight = fine_grid(p.dimension)
    any_of_them = fitted(pair, distance)
    exact = np.sum((mapped(p(points), any_of_them) - mapped(q(points), any_of_them)) ** 2) * weight
    for n_basis, n_nodes in ((1, 8), (3, 8), (6, 12), (10, 30)):
        for basis in ("cosine", "values"):
            features = fitted(pair, distance, n_basis=n_basis, n_nodes=n_nodes, basis=basis, bandwidth=0.2, n_components=20)
            nodes, bound = features.views_[0].nodes, bound_of(features, pair, 1000)
            at_nodes = (mapped(p(node_points(nodes)), features) - mapped(q(node_points(nodes)), features)).T
            on_nodes = np.sum(at_nodes**2 * nodes.roots**2)
            projected = np.sum(nodes.integrals(at_nodes) ** 2)
            assert abs(kernel(on_nodes, features) - kernel(exact, features)) <= bound.quadrature + 1e-6
            if basis == "values":
                assert bound.truncation == 0
                np.testing.assert_allclose(projected, on_nodes, rtol=1e-12)
            assert abs(kernel(projected, features) - kernel(on_nodes, features)) <= bound.quadrature + bound.truncation + 1e-12


def test_a_periodic_density_on_the_fourier_basis_stays_within_its_term():
    x, w = (np.polynomial.legendre.leggauss(40)[k] / 2 + (0.5, 0.0)[k] for k in (0, 1))
    p, q = 1 + 0.4 * np.cos(2 * np.pi * x), 1 + 0.4 * np.sin(4 * np.pi * x)
    densities = DensityClass(0.6, 1.4, 1.6 * np.pi, 6.4 * np.pi**2)
    for n_basis in (1, 2, 3, 6, 9):
        features = DensityFeatures("js", basis="fourier", n_basis=n_basis, n_nodes=40, bandwidth=0.1, margin=0.0).fit(corners(1))
        gap = (mapped(p, features) - mapped(q, features)).T
        lost = np.sum(gap**2 * w) - np.sum(features.views_[0].nodes.integrals(gap) ** 2)
        rule = PeanoConstants.of(x, w)
        assert lost <= projection_tail(Slopes.of(densities, features.frequencies_), n_basis, "fourier", rule.discrepancy) + 1e-9


@pytest.mark.covering_cases
@pytest.mark.parametrize("distance", HOMOGENEOUS)
@pytest.mark.parametrize("pair", PAIRS)
def test_density_estimates_change_the_kernel_by_less_than_their_term(pair, distance):
    p, q = PAIRS[pair]
    rng, n, confidence, times = np.random.default_rng(0), 2000, 0.2, 20
    features = fitted(pair, distance)
    nodes, term = features.views_[0].nodes, bound_of(features, pair, n, confidence=confidence).density
    exact = [nodes.integrals(mapped(each(node_points(nodes)), features).T) for each in (p, q)]
    truth = kernel(np.sum((exact[0] - exact[1]) ** 2), features)
    vectors = fitted(pair, distance, output="distance")
    found = [vectors.transform([p.sample(n, rng), q.sample(n, rng)]) for _ in range(times)]
    violations = sum(abs(kernel(np.sum((a - b) ** 2), features) - truth) > term for a, b in found)
    assert not too_often(violations, times, (1 - confidence) / 2)


@pytest.mark.covering_cases
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("chance", [0.5, 0.05])
def test_estimates_at_the_nodes_are_as_near_and_as_large_as_claimed(pair, chance):
    """√Σ (p̂ − p)²/p and min p̂/p over the nodes, against the estimates themselves; the first is not five times too large."""
    p, _ = PAIRS[pair]
    features = fitted(pair, "js", basis="values")
    nodes, rng, n, times = features.views_[0].nodes, np.random.default_rng(0), 1000, 40
    densities, rule = DensityClass(*p.constants), PeanoConstants.of(*nodes.axis)
    moments = KernelMoments(nodes, features.views_[0].bandwidth)
    mass = 1 + nodes.dimension * rule.error(densities.gradient, densities.curvature)
    root, floor = density_distance(moments, densities, n, chance, mass)
    true, weights = p(node_points(nodes)), nodes.roots**2
    estimates = [nodes.density(p.sample(n, rng), None, features.views_[0].bandwidth) for _ in range(times)]
    roots = [np.sqrt(weights @ ((found - true) ** 2 / true)) for found in estimates]
    assert not too_often(sum(each > root for each in roots), times, 0.9 * chance)
    assert not too_often(sum((found / true).min() < floor for found in estimates), times, 0.1 * chance)
    assert np.median(roots) < root < 5 * np.median(roots)


@pytest.mark.covering_cases
@pytest.mark.parametrize("orthogonal", [False, True])
@pytest.mark.parametrize(("length", "count"), [(3, 1), (3, 7), (40, 30), (40, 200)])
@pytest.mark.parametrize("distance", [0.3, 1.0, 4.0])
def test_random_features_exceed_their_term_no_more_often_than_they_may(length, count, orthogonal, distance):
    rng, times, chance = np.random.default_rng(0), 400, 0.1
    pair = np.zeros((2, length))
    pair[1, 0] = distance
    term, violations = random_feature_error(length, count, orthogonal, distance, chance), 0
    for _ in range(times):
        z = fourier_features(pair, unit_frequencies(length, count, orthogonal, rng))
        violations += abs(z[0] @ z[1] - np.exp(-(distance**2) / 2)) > term
    assert not too_often(violations, times, chance)


@pytest.mark.parametrize("length", [2, 3, 8])
@pytest.mark.parametrize("r", [0.3, 1.0, 2.5])
def test_the_covariance_of_orthogonal_features_is_that_of_simulated_ones(length, r):
    rng, times = np.random.default_rng(0), 40_000
    first, second = rng.normal(size=(2, times, length))
    first /= np.linalg.norm(first, axis=1)[:, None]
    second -= np.sum(first * second, axis=1)[:, None] * first
    second /= np.linalg.norm(second, axis=1)[:, None]
    cosines = [np.cos(r * each[:, 0] * np.sqrt(rng.chisquare(length, times))) for each in (first, second)]
    found = cosines[0] * cosines[1]
    wanted = float(orthogonal_covariance(length, np.array([r]))[0]) + np.exp(-(r**2))
    assert abs(found.mean() - wanted) < 4 * found.std() / np.sqrt(times)


def test_the_exponent_that_the_paper_prints_for_random_features_does_not_hold():
    """2 exp(−D ε²) is below the share of errors above ε; 2 exp(−D ε²/4), by Hoeffding, is above it."""
    rng, count, times = np.random.default_rng(0), 50, 20_000
    errors = np.abs(np.cos(8.0 * rng.normal(size=(times, count))).mean(axis=1) - np.exp(-32))
    level = 0.25
    share, D = np.mean(errors > level), 2 * count
    assert 2 * np.exp(-D * level**2) < share / 2 < share < 2 * np.exp(-D * level**2 / 4)


@pytest.mark.parametrize("distance", HOMOGENEOUS)
def test_the_map_is_no_steeper_than_its_constants(distance):
    rng = np.random.default_rng(0)
    a, b = np.exp(rng.uniform(-8, 8, size=(2, 2000)))
    for frequencies in (optimal_frequencies(distance, 5), random_frequencies(distance, 4, rng)):
        gap = np.sum((feature_map(a, distance, frequencies) - feature_map(b, distance, frequencies)) ** 2, axis=1)
        assert (gap <= 4 * slope_total(frequencies) * (np.sqrt(a) - np.sqrt(b)) ** 2 * (1 + 1e-9) + 1e-12).all()


@pytest.mark.parametrize("distance", HOMOGENEOUS)
@pytest.mark.parametrize("pair", ["line, smooth", "line, two modes"])
def test_derivatives_of_the_map_stay_below_their_bounds(pair, distance):
    p, q = PAIRS[pair]
    points, _ = fine_grid(1)
    step, frequencies = points[1, 0] - points[0, 0], optimal_frequencies(distance, 5)
    slopes = Slopes.of(DensityClass(*constants_of(p, q).values()), frequencies)
    f = feature_map(p(points), distance, frequencies) - feature_map(q(points), distance, frequencies)
    for order, limit in enumerate((slopes.value, slopes.first, slopes.second)):
        assert np.linalg.norm(np.diff(f, order, axis=0) / step**order, axis=1).max() <= limit


@pytest.mark.parametrize("distance", HOMOGENEOUS)
def test_no_pair_of_a_class_is_farther_apart_than_the_largest_distance(distance):
    rng = np.random.default_rng(0)
    densities = DensityClass(0.3, 2.5, 1.0, 1.0)
    upper_share = (1 - 0.3) / (2.5 - 0.3)
    extreme = np.where(np.arange(2200) < 2200 * upper_share, 2.5, 0.3)
    assert extreme.mean() == pytest.approx(1, abs=1e-3)
    largest = densities.largest_square(distance)
    assert kappa(extreme, extreme[::-1], distance).mean() == pytest.approx(largest, rel=2e-3)
    for _ in range(20):
        p, q = rng.beta(0.3, 0.3 / upper_share - 0.3, size=(2, 4000)) * 2.2 + 0.3
        assert kappa(p, q, distance).mean() <= largest * max(p.mean(), q.mean(), 1)


@pytest.mark.parametrize("distance", ["js", "tv", "chi2"])
@pytest.mark.parametrize("largest", [0.5, 3.0, np.inf])
def test_the_error_of_frequencies_is_the_largest_one(distance, largest):
    frequencies = optimal_frequencies(distance, 4)
    t = np.linspace(0, min(largest, 60.0), 150_001)
    off = 2 * np.exp(-t / 2) * (np.cos(np.outer(t, frequencies.values)) @ frequencies.weights - correlation(t, distance))
    found = frequency_error(distance, frequencies, largest)
    assert np.abs(off).max() <= found <= np.abs(off).max() + 1e-5


def test_peano_constants_of_the_midpoint_rule_are_the_known_ones():
    found = PeanoConstants.of(np.array([0.5]), np.array([1.0]))
    assert found.discrepancy == pytest.approx(1 / 2)
    assert found.first == pytest.approx(1 / 4)
    assert 1 / 24 <= found.second <= 1.35 / 24  # ∫|K₂|, and what Cauchy–Schwarz adds


@pytest.mark.parametrize("count", [2, 5, 24])
def test_quadrature_errors_stay_below_the_peano_constants(count):
    x, w = np.polynomial.legendre.leggauss(count)
    x, w = (x + 1) / 2, w / 2
    constants = PeanoConstants.of(x, w)
    rng = np.random.default_rng(0)
    for _ in range(30):
        order, phase = rng.uniform(0.5, 3.0 * count), rng.uniform(0, 6)
        exact = (np.sin(order + phase) - np.sin(phase)) / order
        error = abs(w @ np.cos(order * x + phase) - exact)
        assert error <= constants.error(order, order**2) + 1e-12
        variation = np.abs(np.diff(np.cos(order * np.linspace(0, 1, 10_001) + phase))).sum()
        assert error <= constants.discrepancy * variation * 1.001


def test_more_of_everything_makes_its_own_term_smaller():
    pair, base = "line, smooth", {"bandwidth": 0.06, "n_nodes": 60, "n_basis": 6, "n_components": 1000, "n_frequencies": 3}
    start = bound_of(fitted(pair, "tv", **base), pair, 10_000)
    assert bound_of(fitted(pair, "tv", **base), pair, 100_000).density < start.density
    for term, option in (
        ("quadrature", {"n_nodes": 120}),
        ("truncation", {"n_basis": 12}),
        ("frequencies", {"n_frequencies": 8}),
        ("random_features", {"n_components": 8000}),
    ):
        assert getattr(bound_of(fitted(pair, "tv", **(base | option)), pair, 10_000), term) < getattr(start, term)
    smoother = bound_of(fitted(pair, "tv", **base), pair, 10_000, curvature=None)
    assert smoother.total >= start.total
    assert bound_of(fitted(pair, "tv", **base), pair, 10_000, confidence=0.5).total < start.total


def test_the_bound_prints_its_terms_and_states_when_it_has_no_information():
    bound = ErrorBound(0.2, 0.001, 0.03, 0.0, 0.1, 0.95)
    assert bound.total == pytest.approx(0.331)
    lines = str(bound).splitlines()
    assert lines[0] == "ErrorBound: kernel values are within 0.33 of the truth with probability 0.95"
    assert [line.split("  ")[1] for line in lines[1:]] == [
        "density estimates",
        "random features",
        "basis truncation",
        "quadrature",
        "frequencies",
    ]
    assert "no information" in str(ErrorBound(1.0, 0.1, 0.1, 0.0, 0.1, 0.9))
    assert set(TERMS) < set(vars(bound))


def test_a_kernel_of_distance_one_width_is_the_steepest():
    """|e^(−a²/2σ²) − e^(−b²/2σ²)| ≤ |a − b|/(σ√e), which the terms are converted by."""
    a = np.linspace(0, 6, 3001)
    slope = np.abs(np.gradient(np.exp(-(a**2) / 2), a))
    assert slope.max() == pytest.approx(1 / np.sqrt(e), rel=1e-5)
    assert a[slope.argmax()] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({"distance": "l2"}, {}, "distance must be 'js', 'hellinger', 'tv' or 'chi2'"),
        ({"output": "distance"}, {}, "output must be 'features'"),
        ({"integration": "uniform"}, {}, "integration must be 'grid'"),
        ({"marginals": True}, {}, "marginals must be False"),
        ({}, {"lower": 0.0}, "lower must lie between 0 and 1"),
        ({}, {"upper": 0.9}, "upper must be at least 1"),
        ({}, {"gradient": -1.0}, "gradient must be at least 0"),
        ({}, {"curvature": -1.0}, "curvature must be at least 0"),
        ({}, {"confidence": 1.0}, "confidence must lie between 0 and 1"),
        ({}, {"n_samples": 1}, "n_samples must be at least 2"),
        ({}, {"n_samples": (10, 10, 10)}, "n_samples must be one or two numbers"),
    ],
)
def test_what_the_bound_does_not_cover_is_named(options, arguments, message):
    features = DensityFeatures(**({"bandwidth": 0.2, "n_components": 20} | options)).fit(corners(2))
    known = {"n_samples": 100, "lower": 0.5, "upper": 1.5, "gradient": 1.0}
    with pytest.raises(ValueError, match=message):
        features.error_bound(**(known | arguments))


def test_features_must_be_fitted():
    with pytest.raises(NotFittedError):
        DensityFeatures().error_bound(100, lower=0.5, upper=1.5, gradient=1.0)


def test_uniform_densities_have_only_the_errors_of_estimates_and_random_features():
    features = DensityFeatures("js", bandwidth=0.2, kernel_width=0.3, n_components=20, margin=0.0, random_state=0).fit(corners(1))
    bound = features.error_bound(1000, lower=1.0, upper=1.0, gradient=0.0, curvature=0.0)
    assert bound.quadrature < 1e-12
    assert bound.truncation == 0
    assert bound.density > 0
