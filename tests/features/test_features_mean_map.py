"""MeanMapFeatures: distances of mean vectors are maximum mean discrepancies, inner products of features their Gaussian kernel."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import bag_laws
from reduset import Gaussian, KernelMean, bandwidth
from reduset.features import MeanMapFeatures, mean_map

SMALL = MeanMapFeatures(40, 60, random_state=0)


def mmd(bags, h):
    """Of the samples as they are, by all pairs of points."""
    means = [KernelMean.from_samples(bag, Gaussian(h)) for bag in bags]
    return np.array([[one.distance(other) for other in means] for one in means])


@pytest.mark.covering_cases
@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("d", [1, 3, 30])
def test_distances_of_the_mean_vectors_are_those_of_all_pairs_of_points(d, orthogonal):
    bags, _ = bag_laws.spread_bags(12, 50, d)
    h = float(np.sqrt(d))
    vectors = MeanMapFeatures(
        n_point_components=20_000, bandwidth=h, output="distance", orthogonal=orthogonal, random_state=0
    ).fit_transform(bags)
    assert vectors.shape == (12, 20_000)
    np.testing.assert_allclose(cdist(vectors, vectors), mmd(bags, h), atol=0.02)


def test_distances_of_large_bags_are_those_of_gaussians_in_closed_form():
    rng = np.random.default_rng(0)
    s, t, shift, h = 1.0, 1.5, np.array([0.5, -1.0]), 0.8

    def product(a, b, gap):
        wide = h**2 + a**2 + b**2
        return h**2 / wide * np.exp(-(gap @ gap) / (2 * wide))

    square = product(s, s, 0 * shift) + product(t, t, 0 * shift) - 2 * product(s, t, shift)
    bags = [rng.normal(0, s, size=(50_000, 2)), shift + rng.normal(0, t, size=(50_000, 2))]
    vectors = MeanMapFeatures(n_point_components=10_000, bandwidth=h, output="distance", random_state=0).fit_transform(bags)
    assert pdist(vectors)[0] == pytest.approx(np.sqrt(square), rel=0.02)


def test_inner_products_of_the_features_are_the_gaussian_kernel_of_the_distances():
    bags, _ = bag_laws.spread_bags()
    options = {"n_point_components": 500, "bandwidth": 1.0, "random_state": 0}
    vectors = MeanMapFeatures(output="distance", **options).fit_transform(bags)
    features = MeanMapFeatures(20_000, kernel_width=0.3, **options).fit_transform(bags)
    assert features.shape == (24, 20_000)
    np.testing.assert_allclose(features @ features.T, np.exp(-(cdist(vectors, vectors) ** 2) / (2 * 0.3**2)), atol=0.03)


def test_the_usual_kernel_width_is_the_median_distance():
    bags, _ = bag_laws.spread_bags()
    fitted = MeanMapFeatures(100, 500, bandwidth=1.0, random_state=0).fit(bags)
    vectors = MeanMapFeatures(100, 500, bandwidth=1.0, output="distance", random_state=0).fit_transform(bags)
    assert fitted.kernel_width_ == pytest.approx(np.median(pdist(vectors)))


@pytest.mark.parametrize("rule", ["median", "scott", "iqr"])
def test_a_bandwidth_rule_sees_the_points_of_all_bags_each_bag_with_the_same_weight(rule):
    rng = np.random.default_rng(0)
    bags = [rng.normal(0, 1, size=(400, 2)), rng.normal(0, 10, size=(40, 2))]
    weights = np.concatenate([np.full(400, 1 / 800), np.full(40, 1 / 80)])
    found = MeanMapFeatures(20, 20, bandwidth=rule, random_state=0).fit(bags).bandwidth_
    assert found == pytest.approx(bandwidth.RULES[rule](np.concatenate(bags), weights))
    assert found > 1.3 * bandwidth.RULES[rule](np.concatenate(bags))


def test_a_bag_shared_by_all_threads_has_the_vector_of_one_thread(monkeypatch):
    bags, _ = bag_laws.spread_bags(3, 5000)
    fitted = MeanMapFeatures(20, 600, bandwidth=1.0, output="distance", random_state=0).fit(bags)
    alone = fitted.transform(bags)
    monkeypatch.setattr(mean_map, "LARGE_BAG", 100)
    np.testing.assert_array_equal(fitted.transform(bags), alone)


def test_a_shift_of_all_bags_changes_no_distance():
    bags, _ = bag_laws.spread_bags()
    options = {"n_point_components": 200, "output": "distance", "random_state": 0}
    near = pdist(MeanMapFeatures(**options).fit_transform(bags))
    far = pdist(MeanMapFeatures(**options).fit_transform([bag + 1e6 for bag in bags]))
    np.testing.assert_allclose(far, near, atol=1e-6)


def test_the_same_seed_gives_the_same_features_and_another_others():
    bags, _ = bag_laws.spread_bags()
    first = MeanMapFeatures(20, 20, random_state=1).fit_transform(bags)
    np.testing.assert_array_equal(MeanMapFeatures(20, 20, random_state=1).fit_transform(bags), first)
    assert not np.allclose(MeanMapFeatures(20, 20, random_state=2).fit_transform(bags), first)


@pytest.mark.slow
def test_models_are_validated_and_searched_on_lists_of_bags():
    bags, spreads = bag_laws.spread_bags(60)
    model = make_pipeline(MeanMapFeatures(200, 200, random_state=0), Ridge(0.01))
    assert cross_val_score(model, bags, spreads, cv=3).mean() > 0.7
    grid = {"meanmapfeatures__bandwidth": [1e-3, 1.0], "ridge__alpha": [0.01]}
    assert GridSearchCV(model, grid, cv=3).fit(bags, spreads).best_params_["meanmapfeatures__bandwidth"] == 1.0


@pytest.mark.parametrize("output", ["features", "distance"])
@pytest.mark.parametrize("law", [*bag_laws.LAWS, bag_laws.check_columns_have_names])
def test_it_keeps_the_laws_of_transformers_of_bags(law, output):
    law(SMALL.__class__(40, 60, output=output, random_state=0))


@pytest.mark.parametrize("case", bag_laws.BAD)
def test_bad_bags_are_named(case):
    bag_laws.check_bad_bags_are_named(SMALL, case)


def test_progress_is_told():
    bag_laws.check_progress_is_told(SMALL, "features")


OPTIONS = {
    "odd": ({"n_components": 3}, ValueError, "n_components must be even"),
    "odd of points": ({"n_point_components": 3}, ValueError, "n_point_components must be even, .* use 4"),
    "bandwidth": ({"bandwidth": -1.0}, ValueError, "bandwidth must be above 0"),
    "rule": ({"bandwidth": "mean"}, ValueError, "bandwidth must be one of"),
    "kernel_width": ({"kernel_width": "mean"}, ValueError, "kernel_width must be one of"),
    "output": ({"output": "kernel"}, ValueError, "output must be one of"),
    "orthogonal": ({"orthogonal": 1}, TypeError, "orthogonal must be True or False"),
    "random_state": ({"random_state": "a"}, TypeError, "random_state must be None, a seed"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_bad_options_are_named(case):
    options, error, message = OPTIONS[case]
    with pytest.raises(error, match=message):
        MeanMapFeatures(**options).fit(bag_laws.spread_bags()[0])


def test_bags_of_a_single_place_are_warned_of_and_alike():
    with pytest.warns(UserWarning, match="all points coincide"):
        features = MeanMapFeatures(20, 20, random_state=0).fit_transform([np.ones((3, 2)), np.ones((4, 2))])
    np.testing.assert_allclose(squareform(pdist(features)), 0.0, atol=1e-12)
