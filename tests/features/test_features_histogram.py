"""HistogramFeatures: Euclidean distances of its vectors are distances of histograms, and χ² is a homogeneous one."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.spatial.distance import cdist, pdist
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import bag_laws
from reduset.features import HistogramFeatures
from reduset.features.histogram import histogram
from reduset.features.homogeneous_distances import (
    TOTALS,
    correlation,
    feature_map,
    kappa,
    measure,
    optimal_frequencies,
    random_frequencies,
)
from reduset.features.merging import WeightedBag

SMALL = HistogramFeatures(n_bins=5, n_frequencies=3, margin=0.2, n_components=40, random_state=0)


@pytest.mark.parametrize(("a", "b"), [(1.0, 2.0), (0.3, 0.3), (1e-4, 5.0), (7.0, 0.0)])
def test_the_measure_of_chi_squared_gives_its_closed_form(a, b):
    def integrand(value):
        turned = [x ** (0.5 + 1j * value) if x > 0 else 0.0 for x in (a, b)]
        return abs(turned[0] - turned[1]) ** 2 * measure(value, "chi2")

    found = quad(integrand, 0, 12, epsabs=1e-12, limit=400)[0]
    assert found == pytest.approx(0.5 * (a - b) ** 2 / (a + b), abs=1e-10)
    assert kappa(a, b, "chi2") == pytest.approx(0.5 * (a - b) ** 2 / (a + b), rel=1e-14)


def test_the_correlation_of_chi_squared_is_the_transform_of_its_measure():
    assert quad(lambda value: measure(value, "chi2"), 0, 12)[0] == pytest.approx(TOTALS["chi2"], abs=1e-12)
    for t in (0.0, 0.7, -5.0, 12.0):
        wanted = quad(lambda value, t=t: np.cos(value * t) * measure(value, "chi2"), 0, 12, epsabs=1e-13, limit=400)[0]
        assert correlation(np.array(t), "chi2") == pytest.approx(wanted, abs=1e-11)


@pytest.mark.parametrize(("count", "error"), [(3, 3e-3), (5, 3e-4), (8, 3e-5)])
def test_placed_frequencies_approximate_chi_squared(count, error):
    rng = np.random.default_rng(0)
    p, q = rng.exponential(size=(2, 500)) ** 3
    turned = [feature_map(x, "chi2", optimal_frequencies("chi2", count)) for x in (p, q)]
    found = np.square(turned[0] - turned[1]).sum(axis=1)
    assert np.max(np.abs(found - kappa(p, q, "chi2")) / np.maximum(p, q)) < error


def test_drawn_frequencies_follow_the_measure_of_chi_squared():
    values = np.sort(random_frequencies("chi2", 20_000, np.random.default_rng(0)).values)
    below = np.array([quad(lambda value: measure(value, "chi2"), 0, end)[0] for end in values[::2000]]) / TOTALS["chi2"]
    np.testing.assert_allclose(below, np.arange(0, 1, 0.1), atol=0.02)


def test_shares_are_those_of_numpys_histogram():
    inside = np.random.default_rng(0).uniform(size=(300, 3))
    inside[0] = 1.0  # the upper face belongs to the last bin
    wanted = np.histogramdd(inside, bins=4, range=[(0, 1)] * 3)[0] / 300
    np.testing.assert_array_equal(histogram(WeightedBag(inside), 4, False), wanted.ravel())
    columns = [np.histogram(inside[:, j], bins=4, range=(0, 1))[0] / 300 for j in range(3)]
    np.testing.assert_array_equal(histogram(WeightedBag(inside), 4, True), np.concatenate(columns))


def two_bags():
    """On the line, in bins of a half: shares (½, ½) and (¼, ¾)."""
    return [np.array([[0.0], [1.0]]), np.array([[0.1], [0.9], [0.8], [0.7]])]


CLOSED = {
    "js": 0.5 * (0.5 * np.log(0.5 / 0.375) + 0.5 * np.log(0.5 / 0.625))
    + 0.5 * (0.25 * np.log(0.25 / 0.375) + 0.75 * np.log(0.75 / 0.625)),
    "chi2": 0.5 * (0.0625 / 0.75 + 0.0625 / 1.25),
    "hellinger": 0.5 * ((np.sqrt(0.5) - 0.5) ** 2 + (np.sqrt(0.75) - np.sqrt(0.5)) ** 2),
    "tv": 0.5,
    "l2": 0.125,
}


@pytest.mark.fast_cases(5)
@pytest.mark.parametrize("distance", CLOSED)
def test_squared_distances_of_known_histograms_are_those_in_closed_form(distance):
    count = 20 if distance == "tv" else 8
    vectors = HistogramFeatures(distance, n_bins=2, n_frequencies=count, output="distance").fit_transform(two_bags())
    assert pdist(vectors)[0] ** 2 == pytest.approx(CLOSED[distance], rel=0.15 if distance == "tv" else 1e-3)


@pytest.mark.parametrize("marginals", [False, True])
@pytest.mark.parametrize("distance", ["js", "chi2", "hellinger", "l2"])
def test_distances_of_the_vectors_are_sums_over_bins(distance, marginals):
    bags, _ = bag_laws.spread_bags()
    fitted = HistogramFeatures(distance, n_bins=6, n_frequencies=8, output="distance", marginals=marginals).fit(bags)
    shares = [histogram(WeightedBag(inside), 6, marginals) for inside in fitted.cube_.coordinates(bags, "refuse", list(range(24)))]
    wanted = [[kappa(p, q, distance).sum() for q in shares] for p in shares]
    vectors = fitted.transform(bags)
    assert fitted.n_bins_ == (12 if marginals else 36)
    np.testing.assert_allclose(cdist(vectors, vectors) ** 2, wanted, atol=2e-4)


def test_inner_products_of_the_features_are_the_gaussian_kernel_of_the_distances():
    bags, _ = bag_laws.spread_bags()
    vectors = HistogramFeatures("chi2", n_bins=5, output="distance").fit_transform(bags)
    fitted = HistogramFeatures("chi2", n_bins=5, n_components=20_000, random_state=0).fit(bags)
    features = fitted.transform(bags)
    assert fitted.kernel_width_ == pytest.approx(np.median(pdist(vectors)))
    np.testing.assert_allclose(
        features @ features.T, np.exp(-(cdist(vectors, vectors) ** 2) / (2 * fitted.kernel_width_**2)), atol=0.03
    )


def test_later_points_outside_of_the_box_are_moved_or_refused():
    bags, _ = bag_laws.spread_bags()
    far = [np.array([[0.0, 0.0], [1e3, 0.0], [0.0, -1e3]])]
    fitted = HistogramFeatures(n_components=20, random_state=0).fit(bags)
    with pytest.warns(UserWarning, match="2 points of 1 bags lie outside"):
        fitted.transform(far)
    with pytest.raises(ValueError, match=r"bags\[0\] has 2 of 3 points outside"):
        HistogramFeatures(n_components=20, outside="refuse", random_state=0).fit(bags).transform(far)


def test_too_many_bins_are_refused_with_a_way_out():
    bags = [np.random.default_rng(0).normal(size=(20, 7)) for _ in range(3)]
    with pytest.raises(ValueError, match=r"n_bins=10.*7.*10,000,000.*marginals=True"):
        HistogramFeatures().fit(bags)
    with pytest.raises(ValueError, match=r"n_components=1000 .* \(1,000,000 bins\) takes 37.3 GiB.*output='distance'"):
        HistogramFeatures().fit([bag[:, :6] for bag in bags])
    assert HistogramFeatures(marginals=True, n_components=20).fit(bags).n_bins_ == 70
    assert HistogramFeatures("hellinger", output="distance").fit_transform([bag[:, :6] for bag in bags]).shape == (3, 10**6)


def test_the_same_seed_gives_the_same_features_and_another_others():
    bags, _ = bag_laws.spread_bags()
    first = HistogramFeatures(n_components=20, random_state=1).fit_transform(bags)
    np.testing.assert_array_equal(HistogramFeatures(n_components=20, random_state=1).fit_transform(bags), first)
    assert not np.allclose(HistogramFeatures(n_components=20, random_state=2).fit_transform(bags), first)


def test_models_are_validated_and_searched_on_lists_of_bags():
    bags, spreads = bag_laws.spread_bags(60, 100)
    model = make_pipeline(HistogramFeatures(n_components=400, n_bins=6, margin=0.3, random_state=0), Ridge(0.01))
    assert cross_val_score(model, bags, spreads, cv=3).mean() > 0.7
    grid = {"histogramfeatures__n_bins": [1, 6], "histogramfeatures__distance": ["js", "chi2"]}
    assert GridSearchCV(model, grid, cv=3).fit(bags, spreads).best_params_["histogramfeatures__n_bins"] == 6


@pytest.mark.parametrize("output", ["features", "distance"])
@pytest.mark.parametrize("law", [*bag_laws.LAWS, bag_laws.check_columns_have_names])
def test_it_keeps_the_laws_of_transformers_of_bags(law, output):
    law(SMALL.__class__(**{**SMALL.get_params(), "output": output}))


@pytest.mark.parametrize("case", bag_laws.BAD)
def test_bad_bags_are_named(case):
    bag_laws.check_bad_bags_are_named(SMALL, case)


def test_progress_is_told():
    bag_laws.check_progress_is_told(SMALL, "features")


OPTIONS = {
    "distance": ({"distance": "kl"}, ValueError, "distance must be one of 'chi2', 'hellinger', 'js', 'l2', 'tv'"),
    "n_bins": ({"n_bins": 0}, ValueError, "n_bins must be at least 1"),
    "n_frequencies": ({"n_frequencies": 50}, ValueError, "n_frequencies must be between 1 and 20"),
    "odd": ({"n_components": 3}, ValueError, "n_components must be even"),
    "kernel_width": ({"kernel_width": 0.0}, ValueError, "kernel_width must be above 0"),
    "output": ({"output": "kernel"}, ValueError, "output must be one of"),
    "margin": ({"margin": -0.1}, ValueError, "margin must be at least 0"),
    "outside": ({"outside": "drop"}, ValueError, "outside must be one of"),
    "marginals": ({"marginals": 1}, TypeError, "marginals must be True or False"),
    "orthogonal": ({"orthogonal": 1}, TypeError, "orthogonal must be True or False"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_bad_options_are_named(case):
    options, error, message = OPTIONS[case]
    with pytest.raises(error, match=message):
        HistogramFeatures(**options).fit(bag_laws.spread_bags()[0])
