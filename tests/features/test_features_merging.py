"""Large bags in cells: moments are kept, the tolerance holds where nobody looked, and weighted bags keep their weights."""

import tracemalloc

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from reduset import Gaussian, KernelMean, compress
from reduset.features import DensityFeatures, HistogramFeatures, MeanMapFeatures, pairwise, projection
from reduset.features.merging import WeightedBag, _cells, density_at, merge_points
from reduset.features.projection import POINTS_PER_BLOCK, Grid, Scattered


def clusters(n=20_000, d=5, seed=0, shift=0.0):
    """Points of the cube in three clumps."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).uniform(0.3, 0.6, size=(3, d)) + shift
    return np.clip(centres[rng.integers(3, size=n)] + rng.normal(0, 0.08, size=(n, d)), 0, 1)


def moments(points, shares, spread):
    mean = shares @ points
    covariance = (points - mean).T @ ((points - mean) * shares[:, None])
    return mean, covariance + np.diag(spread)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_cells_keep_mass_mean_and_the_variance_of_every_column(d, weighted):
    points = clusters(4000, d)
    shares = np.random.default_rng(1).dirichlet(np.ones(4000)) if weighted else None
    small = _cells(WeightedBag(points, shares), np.full(d, 0.11))
    assert len(small.points) < 4000
    assert small.weights.sum() == pytest.approx(1.0, rel=1e-12)
    assert (small.weights > 0).all()
    before = moments(points, np.full(4000, 1 / 4000) if shares is None else shares, np.zeros(d))
    after = moments(small.points, small.weights, small.spread)
    np.testing.assert_allclose(after[0], before[0], atol=1e-12)
    np.testing.assert_allclose(np.diag(after[1]), np.diag(before[1]), atol=1e-12)
    # bumps along the axes carry no covariance within cells; cells a fraction of a clump wide leave little of it
    np.testing.assert_allclose(after[1], before[1], atol=2e-4)


def test_cells_of_cells_remember_what_was_spread_before():
    points = clusters(4000, 2)
    twice = _cells(_cells(WeightedBag(points), np.full(2, 0.05)), np.full(2, 0.13))
    wanted = moments(points, np.full(4000, 1 / 4000), np.zeros(2))[1]
    np.testing.assert_allclose(np.diag(moments(twice.points, twice.weights, twice.spread)[1]), np.diag(wanted), atol=1e-12)


def test_each_point_of_a_cell_is_the_mean_of_the_points_that_fall_into_it():
    points = clusters(300, 2)
    small = _cells(WeightedBag(points), np.array([0.2, 0.3]))
    boxes, low = {}, points.min(axis=0)
    for point in points:
        boxes.setdefault(tuple(((point - low) / [0.2, 0.3]).astype(int)), []).append(point)
    wanted = sorted((*np.mean(members, axis=0), len(members) / 300) for members in boxes.values())
    np.testing.assert_allclose(
        sorted((*p, share) for p, share in zip(small.points, small.weights, strict=True)), wanted, atol=1e-12
    )


@pytest.mark.parametrize("tol", [0.1, 0.05, 0.01])
def test_the_tolerance_holds_at_other_places_than_those_it_was_measured_at(tol):
    """By a plain double loop over points; at points of the bag that were not among the 64."""
    points, h = clusters(10_000, 4), np.array([0.05, 0.06, 0.07, 0.05])
    small = merge_points(WeightedBag(points), h, tol)
    assert len(small.points) < 10_000

    def density(bag, width, places):
        shares = np.full(len(bag.points), 1 / len(bag.points)) if bag.weights is None else bag.weights
        gaps = (places[:, None] - bag.points[None]) / width
        return np.exp(-0.5 * np.square(gaps).sum(axis=-1)) @ shares / np.prod(np.sqrt(2 * np.pi) * width)

    places = points[77::157]
    exact = density(WeightedBag(points), h, places)
    np.testing.assert_allclose(density_at(WeightedBag(points), h, places), exact, rtol=1e-4)
    found = density(small, np.sqrt(h**2 + small.spread), places)
    assert np.linalg.norm(found - exact) <= 1.5 * tol * np.linalg.norm(exact)


def test_a_tighter_tolerance_leaves_more_cells_and_a_hopeless_one_the_bag():
    bag, h = WeightedBag(clusters()), np.full(5, 0.06)
    sizes = [len(merge_points(bag, h, tol).points) for tol in (0.2, 0.02, 1e-9)]
    assert sizes[0] <= sizes[1] <= sizes[2] == 20_000
    assert sizes[0] < 20_000 / 3
    assert merge_points(bag, h, 1e-9) is bag


def test_bags_that_are_thin_everywhere_are_left_alone():
    bag = WeightedBag(np.random.default_rng(0).uniform(size=(20_000, 6)))
    assert merge_points(bag, np.full(6, 0.05), 0.5) is bag


def test_cells_too_many_to_be_numbered_leave_the_bag_alone():
    bag = WeightedBag(clusters(10_000, 6))
    assert merge_points(bag, np.full(6, 1e-5), 0.5) is bag


def test_points_without_a_share_are_no_cells():
    points = clusters(10_000, 4)
    shares = np.where(points[:, 0] < 0.45, 0.0, 1.0)
    small = merge_points(WeightedBag(points, shares / shares.sum()), np.full(4, 0.08), 0.1)
    assert len(small.points) < 10_000
    assert np.isfinite(small.points).all()
    assert (small.points[:, 0] >= 0.45).all()


def five(bags, **options):
    return DensityFeatures("js", output="distance", n_basis=6, n_frequencies=3, bandwidth=0.08, random_state=0, **options).fit(bags)


def test_distances_of_bags_in_five_dimensions_change_by_less_than_a_percent():
    bags = [clusters(10_000, seed=k, shift=shift) for k, shift in enumerate((0.0, 0.02, 0.08))]
    exact, quick = (pdist(five(bags, tol=tol).transform(bags)) for tol in (None, 0.05))
    assert not np.array_equal(exact, quick)
    np.testing.assert_allclose(quick, exact, rtol=0.01)
    exact, quick = (pairwise(bags, "tv", bandwidth=0.08, tol=tol, random_state=0) for tol in (None, 0.05))
    np.testing.assert_allclose(quick, exact, rtol=0.01)


def test_single_precision_at_empty_nodes_does_not_show_where_nothing_is_merged():
    """In five dimensions most nodes are far from all points, and their densities close to 0."""
    bags = [clusters(10_000, 5, k, shift) for k, shift in enumerate((0.0, 0.1))]
    exact, quick = (five(bags, tol=tol).transform(bags) for tol in (None, 1e-9))
    assert not np.array_equal(exact, quick)
    np.testing.assert_allclose(quick, exact, atol=1e-5 * np.abs(exact).max())


def count_merges(monkeypatch):
    asked = []
    monkeypatch.setattr(projection, "merge_points", lambda bag, *_: asked.append(len(bag.points)) or bag)
    return asked


def test_only_large_bags_on_scattered_nodes_are_merged_and_none_without_a_tolerance(monkeypatch):
    large, small = [clusters(10_000, 4)], [clusters(9_999, 4)]
    asked = count_merges(monkeypatch)
    nodes = {"n_nodes": 64}
    five([*large, *small], **nodes).transform([*large, *small])
    assert asked == [10_000]
    five(large, tol=None, **nodes).transform(large)
    three = [bag[:, :3] for bag in large]
    five(three).transform(three)
    five(large, marginals=True).transform(large)
    assert asked == [10_000]


def test_signed_shares_are_never_merged(monkeypatch):
    points = clusters(10_000, 4)
    weights = np.where(np.arange(10_000) % 50 == 0, -1.0, 2.0)
    asked = count_merges(monkeypatch)
    mean = KernelMean(points, weights, Gaussian(0.1))
    assert np.isfinite(five([mean, points], n_nodes=64).transform([mean, points])).all()
    assert asked == [10_000]  # the plain bag alone


def test_columns_one_by_one_on_scattered_nodes_are_merged_one_by_one():
    bags = [clusters(10_000, 2), clusters(10_000, 2, 1, 0.1)]
    options = {"marginals": True, "integration": "sobol", "n_nodes": 256}
    exact, quick = (pdist(five(bags, tol=tol, **options).transform(bags)) for tol in (None, 0.05))
    np.testing.assert_allclose(quick, exact, rtol=0.01)


def repeated(points, times):
    return np.repeat(points, times, axis=0)


@pytest.mark.parametrize("d", [1, 3, 4])
def test_a_weighted_mean_is_the_bag_in_which_points_are_repeated(d):
    rng = np.random.default_rng(0)
    points, times = rng.uniform(size=(2, 60, d)), rng.integers(1, 5, size=60)
    mean = KernelMean(points[0], times.astype(float), Gaussian(0.3))
    fitted = five([points[0], points[1]])
    found = fitted.transform([mean, points[1]])
    np.testing.assert_allclose(found, fitted.transform([repeated(points[0], times), points[1]]), atol=1e-6)
    assert np.abs(found - fitted.transform([points[0], points[1]]))[0].max() > 1e-3
    by_name = fitted.transform({"weighted": mean, "plain": points[1]})
    np.testing.assert_array_equal(by_name, found)


def test_the_scott_bandwidth_of_weighted_bags_sees_their_weights():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(500, 2)) * np.where(np.arange(500) < 250, 1.0, 4.0)[:, None]
    narrow = KernelMean(points, np.where(np.arange(500) < 250, 1.0, 1e-9), Gaussian(1.0))
    bags = [points, points]
    wide = DensityFeatures("l2", output="distance").fit(bags)
    close = DensityFeatures("l2", output="distance").fit([narrow, narrow])
    np.testing.assert_allclose(close.cube_.width, wide.cube_.width)
    np.testing.assert_allclose(close.bandwidth_ * close.cube_.width, points[:250].std(axis=0) * 500 ** (-1 / 6), rtol=1e-6)


def test_a_compression_stands_for_its_bag():
    bags = [clusters(3000, 2, seed, shift) for seed, shift in enumerate((0.0, 0.05, 0.15))]
    small = [compress(bag, Gaussian(0.05), size=150, select="kcenter", weights="simplex", rng=0) for bag in bags]
    fitted = DensityFeatures("hellinger", output="distance", bandwidth=0.08).fit(bags)
    exact, found = pdist(fitted.transform(bags)), pdist(fitted.transform(small))
    np.testing.assert_allclose(found, exact, rtol=0.03)
    np.testing.assert_allclose(fitted.transform([bags[0], small[1]])[0], fitted.transform(bags)[0], atol=1e-12)


def test_a_mean_that_is_no_density_is_named():
    bag = clusters(50, 2)
    hollow = KernelMean(bag, np.where(np.arange(50) < 30, -1.0, 1.0), Gaussian(0.3))
    with pytest.raises(ValueError, match=r"bags\['ill'\] .*got -10"):
        DensityFeatures().fit({"well": bag, "ill": hollow})
    with pytest.raises(ValueError, match=r"bags\[1\] must have weights of positive sum"):
        DensityFeatures().fit([bag, bag]).transform([bag, hollow])


@pytest.mark.slow
def test_a_large_bag_on_a_grid_in_three_dimensions_needs_no_more_memory_than_a_block_of_it():
    """The factors of all points at once would take 40² · 10⁵ numbers, 1.2 GiB."""
    points = clusters(100_000, 3)
    nodes = Grid(3, 4, "cosine", 40)
    nodes.density(points[:1000], None, np.full(3, 0.05))
    tracemalloc.start()
    try:
        values = nodes.density(points, None, np.full(3, 0.05))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 4 * 8 * (POINTS_PER_BLOCK[3] * 40**2 + 40**3 + 100_000)
    assert values @ nodes.roots**2 == pytest.approx(1.0, abs=1e-10)


def test_a_large_bag_on_scattered_nodes_needs_no_matrix_of_points_and_nodes():
    points = clusters(100_000, 4)
    nodes = Scattered(4, 3, "cosine", np.random.default_rng(0).uniform(size=(2048, 4)))
    nodes.density(points[:1000], None, np.full(4, 0.1))
    tracemalloc.start()
    try:
        nodes.density(points, None, np.full(4, 0.1))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 10 * points.nbytes


@pytest.mark.parametrize(
    "features", [HistogramFeatures(), HistogramFeatures(marginals=True), MeanMapFeatures(n_point_components=60, bandwidth=0.2)]
)
def test_rivals_take_weighted_bags_too(features):
    rng = np.random.default_rng(0)
    points, times = rng.uniform(size=(2, 60, 2)), rng.integers(1, 5, size=60)
    mean = KernelMean(points[0], times.astype(float), Gaussian(0.3))
    fitted = features.set_params(output="distance", random_state=0).fit([points[0], points[1]])
    found = fitted.transform([mean, points[1]])
    np.testing.assert_allclose(found, fitted.transform([repeated(points[0], times), points[1]]), atol=1e-12)
    assert np.abs(found - fitted.transform([points[0], points[1]]))[0].max() > 1e-3


def test_bins_of_weights_below_0_count_as_empty():
    points = np.random.default_rng(0).uniform(size=(60, 1))
    hollow = KernelMean(points, np.where(points[:, 0] < 0.5, 1.0, -0.1), Gaussian(0.3))
    fitted = HistogramFeatures("hellinger", n_bins=2, output="distance").fit([points, points])
    left, right = fitted.transform([hollow])[0]
    assert np.isfinite(left)
    assert left > 0
    assert right == 0


def test_scotts_rule_counts_the_points_that_a_compression_stands_for():
    bag = clusters(3000, 2)
    small = compress(bag, Gaussian(0.05), size=150, select="kcenter", weights="simplex", rng=0)
    whole, reduced = (DensityFeatures("l2", output="distance").fit([each, each]) for each in (bag, small))
    width = [fitted.bandwidth_ * fitted.cube_.width for fitted in (reduced, whole)]
    np.testing.assert_allclose(*width, rtol=0.05)
