"""DensityFeatures: densities on nodes are those of a plain loop, and distances of the vectors are distances of known densities."""

from functools import cache
from math import comb

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.special import ndtr
from scipy.stats import norm, qmc, truncnorm

from reduset.features import DensityFeatures, pairwise
from reduset.features.homogeneous_distances import kappa
from reduset.features.merging import WeightedBag
from reduset.features.projection import Grid, Scattered, axis_functions, basis_values, indices, nodes_for

METRICS = ["js", "tv", "hellinger", "chi2", "l2"]


def legendre(count):
    x, w = np.polynomial.legendre.leggauss(count)
    return (x + 1) / 2, w / 2


@pytest.mark.parametrize("kind", ["cosine", "fourier"])
@pytest.mark.parametrize("count", [1, 2, 9, 10])
def test_functions_along_per_axis_are_orthonormal(kind, count):
    x, w = legendre(80)
    values = axis_functions(x, count, kind)
    assert values.shape == (80, count)
    np.testing.assert_allclose(values.T @ (values * w[:, None]), np.eye(count), atol=1e-12)


@pytest.mark.parametrize("kind", ["cosine", "fourier"])
def test_products_in_four_dimensions_are_orthonormal(kind):
    x, w = legendre(14)
    points = np.stack(np.meshgrid(x, x, x, x, indexing="ij"), axis=-1).reshape(-1, 4)
    weights = np.einsum("i,j,k,l->ijkl", w, w, w, w).ravel()
    values = basis_values(points, 4, kind)
    assert values.shape[1] == comb(3 + 4, 4)
    np.testing.assert_allclose(values.T @ (values * weights[:, None]), np.eye(values.shape[1]), atol=1e-8)


@pytest.mark.parametrize("d", range(1, 7))
@pytest.mark.parametrize("count", [1, 4])
def test_indices_are_all_products_up_to_three_columns_and_those_of_small_degree_above(d, count):
    found = indices(d, count)
    assert len({tuple(row) for row in found}) == len(found) == (count**d if d <= 3 else comb(count - 1 + d, d))
    assert found.min() == 0
    assert found.max() == count - 1
    if d > 3:
        assert found.sum(axis=1).max() == count - 1


def bump(u, x, h):
    """A Gaussian along one axis, with mass 1 on [0, 1]."""
    height = np.exp(-0.5 * ((u - x) / h) ** 2) / (h * np.sqrt(2 * np.pi))
    return height / (ndtr((1 - x) / h) - ndtr((0 - x) / h))


def test_a_bump_is_a_truncated_normal_density():
    for x, h in ((0.4, 0.12), (0.0, 0.2), (0.5, 50.0)):
        u = np.linspace(0, 1, 11)
        np.testing.assert_allclose(bump(u, x, h), truncnorm.pdf(u, -x / h, (1 - x) / h, x, h), rtol=1e-12)


@pytest.mark.covering_cases
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_density_on_a_grid_is_that_of_a_plain_double_loop(d, weighted):
    rng = np.random.default_rng(0)
    points, h = rng.uniform(size=(30, d)), np.array([0.11, 0.15, 0.2])[:d]
    points[0], points[1] = 0.0, 1.0
    shares = rng.dirichlet(np.ones(30)) if weighted else None
    nodes = Grid(d, 4, "cosine", 24)
    x, _ = legendre(24)
    places = np.stack(np.meshgrid(*[x] * d, indexing="ij"), axis=-1).reshape(-1, d)
    wanted = [
        sum(
            (1 / 30 if shares is None else shares[i]) * np.prod([bump(place[k], points[i, k], h[k]) for k in range(d)])
            for i in range(30)
        )
        for place in places[::97]
    ]
    found = nodes.density(points, shares, h)
    np.testing.assert_allclose(found[::97], wanted, rtol=1e-4)
    assert found @ nodes.roots**2 == pytest.approx(1.0, abs=1e-12)


def test_the_density_of_many_points_is_the_sum_of_its_blocks():
    points = np.random.default_rng(0).uniform(size=(9001, 2))
    nodes = Grid(2, 4, "cosine", 20)
    parts = [nodes.density(points[a:b], None, np.full(2, 0.1)) * (b - a) / 9001 for a, b in ((0, 5000), (5000, 9001))]
    np.testing.assert_allclose(nodes.density(points, None, np.full(2, 0.1)), sum(parts), rtol=1e-12)


def test_the_density_on_scattered_nodes_is_that_of_a_plain_double_loop_with_mass_one():
    rng = np.random.default_rng(0)
    points, places, h = rng.uniform(size=(40, 4)), rng.uniform(size=(300, 4)), np.array([0.2, 0.25, 0.3, 0.2])
    shares = rng.dirichlet(np.ones(40))
    wanted = np.array([sum(shares[i] * np.prod(norm.pdf(place, points[i], h)) for i in range(40)) for place in places])
    found = Scattered(4, 3, "cosine", places).density(points, shares, h)
    np.testing.assert_allclose(found, wanted / wanted.mean(), rtol=1e-4)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_integrals_on_a_grid_are_those_with_every_product_of_the_basis(d):
    nodes = Grid(d, 3, "fourier", 12)
    x, _ = legendre(12)
    places = np.stack(np.meshgrid(*[x] * d, indexing="ij"), axis=-1).reshape(-1, d)
    functions = np.random.default_rng(0).normal(size=(2, 5, 12**d))
    wanted = (functions * nodes.roots**2) @ basis_values(places, 3, "fourier")
    np.testing.assert_allclose(nodes.integrals(functions), wanted, atol=1e-10)
    assert nodes.products == 3**d


@pytest.mark.parametrize("n_basis", [10, 24, 40])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_grid_has_nodes_enough_for_its_basis(d, n_basis):
    """Of a function of its own span, a basis returns the coefficients."""
    nodes = nodes_for(d, n_basis, "cosine", "auto", None, 0.2, np.random.default_rng(0))
    x, w = legendre(nodes.per_axis)
    values = axis_functions(x, n_basis, "cosine")
    low = n_basis // 2  # what a density that the basis is long enough for is made of
    np.testing.assert_allclose((values.T * w) @ values[:, :low], np.eye(n_basis)[:, :low], atol=0.02)


# Densities on the unit cube, in one or two dimensions, as mixtures of truncated Gaussians: (share, centre, deviation) each.
KNOWN = {
    "one": [(1.0, 0.4, 0.12)],
    "other": [(1.0, 0.55, 0.15)],
    "two": [(0.3, 0.3, 0.08), (0.7, 0.65, 0.1)],
    "flat": [(1.0, 0.5, 50.0)],
}


def known(name, x):
    return sum(share * bump(x, centre, deviation) for share, centre, deviation in KNOWN[name])


def draw(name, n, d, rng):
    """Independent columns: the first of the named density, the second of "one".

    Of Sobol points, which leave less to chance than as many independent ones: fewer stand for the density.
    """
    luck = qmc.Sobol(2 * d, rng=rng).random(n).T
    columns = []
    for which, choice, place in zip((name, "one")[:d], luck[:d], luck[d:], strict=True):
        part = np.searchsorted(np.cumsum([share for share, *_ in KNOWN[which]])[:-1], choice, side="right")
        centre, deviation = np.array([each[1:] for each in KNOWN[which]]).T[:, part]
        low, high = norm.cdf(0, centre, deviation), norm.cdf(1, centre, deviation)
        columns.append(centre + deviation * norm.ppf(low + place * (high - low)))
    return np.column_stack(columns)


@cache
def integral_along_the_first(a, b, metric):
    return quad(lambda x: kappa(known(a, x), known(b, x), metric), 0, 1, limit=200, epsabs=1e-6)[0]


def true_distance(a, b, d, metric):
    """By adaptive quadrature; in two dimensions the second column is the same, and only of L2 it matters."""
    inner = integral_along_the_first(a, b, metric)
    second = quad(lambda x: known("one", x) ** 2, 0, 1)[0] if d == 2 and metric == "l2" else 1.0
    return np.sqrt(inner * second)


def test_in_two_dimensions_with_one_column_the_same_the_distance_is_that_of_the_other():
    def values(x, y):
        return kappa(known("one", x) * known("one", y), known("two", x) * known("one", y), "js")

    found = dblquad(values, 0, 1, 0, 1, epsabs=1e-6)[0]
    assert np.sqrt(found) == pytest.approx(true_distance("one", "two", 2, "js"), rel=1e-4)


@pytest.fixture(scope="module")
def large_bags():
    rng = np.random.default_rng(0)
    return {d: [draw(name, 1 << (10 + 2 * d), d, rng) for name in KNOWN] for d in (1, 2)}


def in_unit_cube(metric, bags, d, **options):
    """Vectors of bags whose cube is the unit cube, to rounding: "flat" fills it."""
    width = {1: 0.008, 2: 0.015}[d]
    fitted = DensityFeatures(metric, output="distance", bandwidth=width, margin=0.0, **options)
    return fitted.fit([*bags, np.array([[0.0] * d, [1.0] * d])]).transform(bags)


# what the basis, smoothing, chance and the frequencies leave
LEFT = {"js": 0.03, "hellinger": 0.03, "chi2": 0.03, "l2": 0.03, "tv": 0.05}


@pytest.mark.covering_cases
@pytest.mark.fast_cases(10)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [1, 2])
def test_distances_of_the_vectors_are_those_of_the_densities_that_were_drawn_from(large_bags, metric, d):
    options = {"n_basis": {1: 60, 2: 36}[d], "n_frequencies": 12 if metric == "tv" else 6}
    found = squareform(pdist(in_unit_cube(metric, large_bags[d], d, **options)))
    names = list(KNOWN)
    for i in range(4):
        for j in range(i):
            wanted = true_distance(names[i], names[j], d, metric)
            assert found[i, j] == pytest.approx(wanted, rel=LEFT[metric]), (names[i], names[j])


@pytest.mark.covering_cases
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [1, 2])
def test_pairwise_distances_are_those_of_the_densities_that_were_drawn_from(large_bags, metric, d):
    box = np.array([[0.0] * d, [1.0] * d])
    found = pairwise([*large_bags[d], box], metric, bandwidth={1: 0.008, 2: 0.015}[d], margin=0.0)
    names = list(KNOWN)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diag(found), 0)
    for i in range(4):
        for j in range(i):
            assert found[i, j] == pytest.approx(true_distance(names[i], names[j], d, metric), rel=0.03), (names[i], names[j])


def shifted_bags(d, count=6, n=150, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(0.3 * k / count, 0.5 + 0.1 * k, size=(n + k, d)) for k in range(count)]


@pytest.mark.covering_cases
@pytest.mark.parametrize(("metric", "error"), [("js", 3e-5), ("chi2", 3e-4), ("tv", 0.09), ("hellinger", 1e-12), ("l2", 1e-12)])
@pytest.mark.parametrize("d", [1, 2, 4])
def test_values_at_nodes_have_the_pairwise_distances_up_to_the_error_of_the_frequencies(metric, error, d):
    """That is a share of the larger density, everywhere, and of ∫max(p, q) in all."""
    bags = shifted_bags(d)
    found = squareform(pdist(DensityFeatures(metric, output="distance", basis="values", random_state=0).fit_transform(bags)))
    wanted = pairwise(bags, metric, random_state=0)
    larger = 1 + 0.5 * pairwise(bags, "tv", random_state=0) ** 2
    gap = np.abs(found**2 - wanted**2)
    assert (gap <= error * (wanted.max() ** 2 if metric == "l2" else larger)).all()
    assert metric in ("hellinger", "l2") or gap.max() > error / 100  # the bound says something


@pytest.mark.covering_cases
@pytest.mark.parametrize("basis", ["cosine", "fourier"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_longer_basis_comes_nearer_to_the_pairwise_distances_and_not_above(d, basis):
    bags = shifted_bags(d)
    wanted = pdist(DensityFeatures("js", output="distance", basis="values").fit_transform(bags))
    gaps = []
    for n_basis in (3, 6, 12):
        found = pdist(DensityFeatures("js", output="distance", basis=basis, n_basis=n_basis).fit_transform(bags))
        assert (found <= wanted * 1.002).all()
        gaps.append(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.1


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(("d", "error"), [(4, 0.15), (5, 0.2), (6, 0.25)])
def test_the_basis_of_small_degree_keeps_distances_on_scattered_nodes(d, error):
    rng = np.random.default_rng(0)
    bags = [rng.normal(shift, 1.0, size=(400, d)) for shift in (0.0, 0.5, 1.0, 2.0)]
    wanted = pairwise(bags, "hellinger", random_state=0)
    found = squareform(pdist(DensityFeatures("hellinger", output="distance", random_state=0).fit_transform(bags)))
    assert np.linalg.norm(found - wanted) / np.linalg.norm(wanted) < error


def test_columns_one_by_one_are_the_problems_of_one_column_side_by_side():
    bags = shifted_bags(3)
    options = {"output": "distance", "n_basis": 5}
    found = DensityFeatures("js", marginals=True, **options).fit_transform(bags)
    alone = [DensityFeatures("js", **options).fit_transform([bag[:, k : k + 1] for bag in bags]) for k in range(3)]
    np.testing.assert_allclose(found, np.hstack(alone), atol=1e-12)
    squares = sum(pairwise([bag[:, k : k + 1] for bag in bags], "tv") ** 2 for k in range(3))
    np.testing.assert_allclose(pairwise(bags, "tv", marginals=True), np.sqrt(squares), atol=1e-12)


@pytest.mark.parametrize("d", range(1, 7))
def test_one_to_six_columns_work_together(d):
    bags = shifted_bags(d, 4)
    rows = DensityFeatures(n_basis=4, n_components=30, random_state=0).fit_transform(bags)
    assert rows.shape == (4, 30)
    assert np.isfinite(rows).all()
    vectors = DensityFeatures(n_basis=4, output="distance", random_state=0).fit_transform(bags)
    assert vectors.shape == (4, 10 * len(indices(d, 4)))
    assert (pdist(vectors) > 0).all()


def test_seven_columns_are_refused_with_a_way_out():
    with pytest.raises(ValueError, match=r"at most 6 columns .* got 7; use marginals=True, or choose columns"):
        DensityFeatures().fit(shifted_bags(7))
    assert DensityFeatures(marginals=True, n_components=30).fit_transform(shifted_bags(7)).shape == (6, 30)
    assert DensityFeatures(marginals=True, n_components=30).fit_transform(shifted_bags(60)).shape == (6, 30)


def test_inner_products_of_the_features_are_the_gaussian_kernel_of_the_distances():
    bags = shifted_bags(2, 20)
    vectors = DensityFeatures("tv", output="distance").fit_transform(bags)
    fitted = DensityFeatures("tv", n_components=20_000, random_state=0).fit(bags)
    features = fitted.transform(bags)
    assert fitted.kernel_width_ == pytest.approx(np.median(pdist(vectors)))
    kernel = np.exp(-(cdist(vectors, vectors) ** 2) / (2 * fitted.kernel_width_**2))
    np.testing.assert_allclose(features @ features.T, kernel, atol=0.03)


def test_orthogonal_frequencies_leave_a_smaller_error():
    bags = shifted_bags(2, 20)
    vectors = DensityFeatures("js", output="distance", n_basis=5).fit_transform(bags)
    sigma = 2 * np.median(pdist(vectors))
    kernel = np.exp(-(cdist(vectors, vectors) ** 2) / (2 * sigma**2))
    errors = {}
    for orthogonal in (True, False):
        options = {"n_components": 400, "n_basis": 5, "kernel_width": sigma, "orthogonal": orthogonal}
        rows = [DensityFeatures("js", **options, random_state=seed).fit_transform(bags) for seed in range(20)]
        errors[orthogonal] = np.mean([np.square(row @ row.T - kernel).mean() for row in rows])
    assert errors[True] < 0.8 * errors[False]


def test_a_bag_moved_and_stretched_with_its_cube_has_the_same_vector():
    bags = shifted_bags(2)
    other = [bag * np.array([1e4, 1e-4]) + np.array([5e6, -3.0]) for bag in bags]
    one, two = (DensityFeatures("js", output="distance").fit_transform(each) for each in (bags, other))
    np.testing.assert_allclose(one, two, atol=1e-6)


@pytest.mark.covering_cases
@pytest.mark.parametrize("way", ["uniform", "sobol"])
@pytest.mark.parametrize("d", [2, 4])
def test_scattered_nodes_find_the_distances_of_other_nodes(way, d):
    bags = shifted_bags(d, n=400)
    wanted = pairwise(bags, "js", integration="auto" if d == 2 else "sobol", n_nodes=None if d == 2 else 1 << 15, random_state=1)
    found = pairwise(bags, "js", integration=way, n_nodes=20_000, random_state=0)
    assert np.linalg.norm(found - wanted) / np.linalg.norm(wanted) < (0.02 if way == "sobol" else 0.05)


def test_bumps_that_were_widened_are_wider():
    bag = WeightedBag(np.full((3, 2), 0.5), spread=np.array([0.03, 0.0]))
    np.testing.assert_allclose(bag.kernel_bandwidth(np.array([0.1, 0.1])), [0.2, 0.1])


@pytest.mark.parametrize("d", [1, 2, 3])
def test_bumps_out_of_reach_of_all_nodes_leave_a_finite_density(d):
    """A bandwidth far finer than the nodes: the masses of bumps along the axes are 0, and so is their product."""
    points = np.random.default_rng(0).uniform(size=(50, d))
    values = Grid(d, 4, "cosine", 16).density(points, None, np.full(d, 1e-6))
    assert np.isfinite(values).all()
    assert (values >= 0).all()


@pytest.mark.parametrize("d", [1, 2])
def test_the_basis_and_not_the_frequencies_limits_total_variation(d):
    """At the default settings distances are a fifth too small, whatever the number of frequencies; without a basis they are not."""
    rng = np.random.default_rng(d)
    bags = [rng.normal(rng.uniform(-1, 1, d), rng.uniform(0.5, 1.5, d), size=(400, d)) for _ in range(16)]
    exact = pairwise(bags, "tv")[np.triu_indices(16, 1)]

    def relative(**options):
        found = pdist(DensityFeatures("tv", output="distance", **options).fit_transform(bags))
        return np.linalg.norm(found - exact) / np.linalg.norm(exact)

    default = relative()
    assert 0.12 < default < 0.3
    assert relative(n_frequencies=3) > 0.85 * default
    assert relative(n_frequencies=10) > 0.85 * default
    assert relative(n_basis=20) < 0.6 * default
    assert relative(basis="values") < 0.3 * default
