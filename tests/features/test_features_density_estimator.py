"""DensityFeatures with scikit-learn: laws of transformers of bags, pipelines and searches, all forms of bags, bad input."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import bag_laws
from reduset import Gaussian, KernelMean, set_threads
from reduset.features import DensityFeatures, HistogramFeatures, MeanMapFeatures, NeighbourKLKernel, pairwise
from reduset.features.embedding import SAMPLED_BAGS, Embedding

SMALL = DensityFeatures(n_components=40, n_basis=5, n_frequencies=2, margin=0.2, random_state=0)


@pytest.mark.parametrize("options", [{}, {"output": "distance"}, {"distance": "hellinger", "marginals": True}], ids=str)
@pytest.mark.parametrize("law", [*bag_laws.LAWS, bag_laws.check_columns_have_names])
def test_it_keeps_the_laws_of_transformers_of_bags(law, options):
    law(clone(SMALL).set_params(**options))


@pytest.mark.parametrize("case", bag_laws.BAD)
def test_bad_bags_are_named(case):
    bag_laws.check_bad_bags_are_named(SMALL, case)
    value, message = bag_laws.BAD[case]
    fitted = clone(SMALL).fit(bag_laws.spread_bags()[0])
    with pytest.raises(ValueError, match=message.replace(r"like bags\[0\]", "like the bags that were fitted")):
        fitted.transform(value)
    if isinstance(value, list):
        by_name = dict(zip("abcde", value, strict=True))
        with pytest.raises(ValueError, match=r"bags\['c'\] must"):
            clone(SMALL).fit(by_name)


def test_progress_is_told():
    bag_laws.check_progress_is_told(SMALL, "features")
    heard = []
    clone(SMALL).set_params(progress=lambda *told: heard.append(told)).fit(bag_laws.spread_bags()[0])
    assert heard[-1] == ("kernel width", 24, 24)


def test_the_same_seed_gives_the_same_features_and_another_others():
    bags, _ = bag_laws.spread_bags()
    first = clone(SMALL).fit_transform(bags)
    np.testing.assert_array_equal(clone(SMALL).fit_transform(bags), first)
    assert not np.allclose(clone(SMALL).set_params(random_state=1).fit_transform(bags), first)
    random = clone(SMALL).set_params(frequencies="random", output="distance")
    assert not np.allclose(clone(random).fit_transform(bags), clone(random).set_params(random_state=1).fit_transform(bags))


@pytest.mark.parametrize("d", [1, 3, 4])
def test_jobs_and_threads_change_nothing(d):
    bags, _ = bag_laws.spread_bags(70, 60, d)
    fitted = clone(SMALL).set_params(n_nodes={1: None, 3: 12, 4: 256}[d]).fit(bags)
    wanted = fitted.transform(bags)
    try:
        for threads in (1, 2):
            set_threads(threads)
            for n_jobs in (None, -1, 1, 2, 5):
                again = clone(fitted).set_params(n_jobs=n_jobs).fit(bags)
                np.testing.assert_array_equal(again.transform(bags), wanted)
    finally:
        set_threads(None)


@pytest.mark.parametrize("value", [0, -2, 1.5, True, "all"])
def test_a_number_of_jobs_that_is_none_is_refused_before_anything_is_computed(value):
    for output in ("features", "distance"):
        with pytest.raises((ValueError, TypeError), match=r"n_jobs must be (at least 1|a whole number)"):
            clone(SMALL).set_params(n_jobs=value, output=output).fit(bag_laws.spread_bags()[0])


@pytest.mark.parametrize("form", [list, np.stack], ids=["list", "3-D"])
def test_models_are_validated_and_searched_on_bags(form):
    bags, spreads = bag_laws.spread_bags(60)
    bags = form([bag[:40] for bag in bags])
    model = make_pipeline(DensityFeatures(n_components=200, n_basis=6, margin=0.3, random_state=0), Ridge(0.01))
    assert cross_val_score(model, bags, spreads, cv=3).mean() > 0.7
    grid = {"densityfeatures__distance": ["js", "l2"], "densityfeatures__kernel_width": [1e-4, 1.0], "ridge__alpha": [0.01]}
    found = GridSearchCV(model, grid, cv=3).fit(bags, spreads)
    assert found.best_params_["densityfeatures__kernel_width"] == 1.0
    assert found.predict(bags[:4]).shape == (4,)


def test_a_linear_classifier_tells_bags_apart_that_have_one_mean_and_one_covariance():
    rng = np.random.default_rng(0)
    signs = rng.integers(2, size=120)
    edges = rng.choice([-1.0, 1.0], size=(120, 80, 1)) + rng.normal(0, 0.3, size=(120, 80, 1))
    normal = rng.normal(0, np.sqrt(1.09), size=(120, 80, 1))
    bags = np.where(signs[:, None, None] == 1, edges, normal)
    model = make_pipeline(DensityFeatures("tv", n_components=200, margin=0.3, random_state=0), LogisticRegression(C=100))
    assert model.fit(bags[:80], signs[:80]).score(bags[80:], signs[80:]) > 0.95


def test_bags_may_come_in_every_form():
    bags = [bag[:40] for bag in bag_laws.spread_bags()[0]]
    fitted = clone(SMALL).fit(bags)
    wanted = fitted.transform(bags)
    single = [bag.astype(np.float32) for bag in bags]
    table = np.concatenate(bags)
    labels = np.repeat(np.arange(24), 40)
    forms = {
        "mapping": {f"p{k}": bag for k, bag in enumerate(bags)},
        "3-D": np.stack(bags),
        "tuple": tuple(bags),
        "lists": [bag.tolist() for bag in bags],
        "frames": [pd.DataFrame(bag) for bag in bags],
        "arrow": pa.array([bag.tolist() for bag in bags]),
        "fortran": [np.asfortranarray(bag) for bag in bags],
    }
    for name, form in forms.items():
        np.testing.assert_allclose(clone(SMALL).fit(form).transform(form), wanted, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(fitted.transform(form), wanted, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(fitted.transform(single), wanted, atol=1e-5)
    mixed = np.random.default_rng(0).permutation(len(table))
    by_label = clone(SMALL).set_params(group=labels[mixed]).fit(table[mixed])
    order = list(dict.fromkeys(labels[mixed].tolist()))
    np.testing.assert_allclose(by_label.transform(table[mixed]), wanted[order], atol=1e-9)


def test_columns_of_frames_have_names_and_keep_their_order():
    frames = [pd.DataFrame(bag, columns=["x", "y"]) for bag in bag_laws.spread_bags()[0]]
    fitted = clone(SMALL).fit(frames)
    assert fitted.feature_names_in_.tolist() == ["x", "y"]
    with pytest.raises(ValueError, match=r"bags\[0\] must have the columns"):
        fitted.transform([frame[["y", "x"]] for frame in frames])
    assert not hasattr(fitted.fit(bag_laws.spread_bags()[0]), "feature_names_in_")


def test_a_table_without_its_groups_is_told_of_the_parameter():
    table = pd.DataFrame(np.ones((4, 2)), columns=["x", "y"])
    with pytest.raises(ValueError, match=r"group= the name of a column, or a label for each row"):
        clone(SMALL).fit(table)
    with pytest.raises(ValueError, match=r"group='bag' must be one of the columns \['x', 'y'\]"):
        clone(SMALL).set_params(group="bag").fit(table)


def test_points_outside_of_the_cube_are_counted_and_moved_to_its_faces():
    bags, _ = bag_laws.spread_bags()
    fitted = clone(SMALL).fit(bags)
    low, high = fitted.cube_.low, fitted.cube_.low + fitted.cube_.width
    far = [bags[0].copy(), bags[1].copy(), bags[2].copy()]
    far[0][:3, 0], far[2][7, 1], far[2][8] = 1e3, -1e3, [1e3, -1e3]
    with pytest.warns(UserWarning, match="5 points of 2 bags lie outside the fitted box") as told:
        found = fitted.transform(far)
    assert told[0].filename == __file__
    np.testing.assert_allclose(found, fitted.transform([np.clip(bag, low, high) for bag in far]), atol=1e-10)


def test_points_outside_of_the_cube_are_refused_where_that_is_asked_for_and_the_bag_is_named():
    bags, _ = bag_laws.spread_bags()
    fitted = clone(SMALL).set_params(outside="refuse").fit(bags)
    far = {"well": bags[0], "ill": np.concatenate([bags[1], [[1e3, 0.0]]])}
    with pytest.raises(ValueError, match=r"bags\['ill'\].*1.*42.*outside='clip'"):
        fitted.transform(far)
    fitted.transform(bags)


@pytest.mark.parametrize("margin", [0.0, 0.05, 1.0])
def test_no_point_that_was_fitted_lies_outside(margin):
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(20, 3)) * 10.0 ** rng.integers(-9, 9) + 10.0 ** rng.integers(-9, 9) for _ in range(50)]
    clone(SMALL).set_params(outside="refuse", margin=margin, n_basis=2, n_nodes=8).fit(bags).transform(bags)


def test_a_wider_margin_makes_a_wider_cube():
    bags, _ = bag_laws.spread_bags()
    span = np.ptp(np.concatenate(bags), axis=0)
    for margin in (0.0, 0.3):
        np.testing.assert_allclose(clone(SMALL).set_params(margin=margin).fit(bags).cube_.width, span * (1 + 2 * margin))


@pytest.mark.parametrize("where", ["within bags", "everywhere"])
def test_a_column_without_spread_does_no_harm(where):
    bags, spreads = bag_laws.spread_bags()
    constants = spreads if where == "within bags" else np.full(24, 0.1)
    wide = [np.column_stack([bag, np.full(len(bag), value)]) for bag, value in zip(bags, constants, strict=True)]
    found = clone(SMALL).set_params(output="distance").fit(wide)
    assert found.bandwidth_[2] > 0.01
    distances = pdist(found.transform(wide))
    assert (distances > 0).all()
    if where == "everywhere":
        alone = pdist(clone(SMALL).set_params(output="distance", bandwidth="scott").fit_transform(bags))
        assert np.corrcoef(alone, distances)[0, 1] > 0.98


def test_bags_that_are_all_alike_have_a_kernel_of_ones():
    bag = bag_laws.spread_bags()[0][0]
    rows = clone(SMALL).fit_transform([bag] * 4)
    np.testing.assert_allclose(rows @ rows.T, 1.0, atol=1e-9)
    one = clone(SMALL).fit([bag])
    assert one.kernel_width_ == 1.0
    assert np.ptp(clone(SMALL).set_params(marginals=True).fit_transform([np.ones((5, 2))] * 3), axis=0).max() < 1e-12


def test_a_bandwidth_finer_than_the_nodes_is_told_with_what_would_do():
    bags, _ = bag_laws.spread_bags()
    fine = clone(SMALL).set_params(output="distance", bandwidth=0.001)
    with pytest.warns(UserWarning, match=r"bandwidth=0\.001.*nodes.*n_nodes=1200.*marginals=True"):
        fine.fit(bags)
    fine.set_params(marginals=True).fit(bags)
    fine.set_params(marginals=False, bandwidth=0.01).fit(bags)


def test_scotts_rule_asks_for_nothing_finer_than_the_nodes():
    rng = np.random.default_rng(0)
    bags = [rng.uniform(size=2) + rng.normal(0, 1e-5, size=(50, 2)) for _ in range(30)]
    fitted = clone(SMALL).set_params(output="distance").fit(bags)
    assert fitted.bandwidth_.min() > 0.005
    near = [bags[0], bags[0] + 0.01, bags[0] + 0.1]
    distances = pdist(fitted.transform(near))
    assert 0 < distances[0] < 0.9 * distances[1]


@pytest.mark.parametrize("bandwidth", [0.02, 0.3])
def test_a_bandwidth_that_is_given_is_in_units_of_the_cube(bandwidth):
    np.testing.assert_array_equal(clone(SMALL).set_params(bandwidth=bandwidth).fit(bag_laws.spread_bags()[0]).bandwidth_, bandwidth)


def test_more_random_frequencies_than_memory_are_refused():
    bags = [np.random.default_rng(k).normal(size=(40, 3)) for k in range(3)]
    huge = DensityFeatures(n_components=2000, basis="values", bandwidth=0.03)
    with pytest.raises(ValueError, match=r"n_components=2000.*GiB.*maximum is 2.*output='distance'"):
        huge.fit(bags)


OPTIONS = {
    "distance": ({"distance": "kl"}, ValueError, "distance must be one of 'chi2', 'hellinger', 'js', 'l2', 'tv'"),
    "n_components": ({"n_components": 1}, ValueError, "n_components must be"),
    "odd": ({"n_components": 3}, ValueError, "n_components must be even, .* use 4"),
    "n_frequencies": ({"n_frequencies": 0}, ValueError, "n_frequencies must be"),
    "too many": ({"n_frequencies": 21}, ValueError, "n_frequencies must be at most 20, got 21; use frequencies='random'"),
    "n_basis": ({"n_basis": 0}, ValueError, "n_basis must be"),
    "bandwidth": ({"bandwidth": 0.0}, ValueError, "bandwidth must be above 0.*units of the cube"),
    "rule": ({"bandwidth": "silverman"}, ValueError, "bandwidth must be one of 'scott'"),
    "kernel_width": ({"kernel_width": -1.0}, ValueError, "kernel_width must be above 0"),
    "width rule": ({"kernel_width": "mean"}, ValueError, "kernel_width must be one of 'median'"),
    "output": ({"output": "kernel"}, ValueError, "output must be one of"),
    "marginals": ({"marginals": 1}, TypeError, "marginals must be True or False"),
    "frequencies": ({"frequencies": "drawn"}, ValueError, "frequencies must be one of"),
    "basis": ({"basis": "haar"}, ValueError, "basis must be one of"),
    "integration": ({"integration": "monte"}, ValueError, "integration must be one of"),
    "n_nodes": ({"n_nodes": 1}, ValueError, "n_nodes must be"),
    "fewer nodes": ({"n_nodes": 9, "n_basis": 10}, ValueError, "n_nodes must be at least n_basis=10 .*got 9"),
    "tol": ({"tol": 0.0}, ValueError, "tol must be above 0.*None never merges"),
    "orthogonal": ({"orthogonal": 1}, TypeError, "orthogonal must be True or False"),
    "margin": ({"margin": -0.1}, ValueError, "margin must be at least 0"),
    "outside": ({"outside": "drop"}, ValueError, "outside must be one of"),
    "random_state": ({"random_state": "luck"}, TypeError, "random_state must be"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_bad_options_are_named(case):
    options, error, message = OPTIONS[case]
    with pytest.raises(error, match=message):
        DensityFeatures(**options).fit(bag_laws.spread_bags()[0])


def test_a_grid_is_refused_above_three_columns():
    with pytest.raises(ValueError, match=r"integration='grid' .*got 4"):
        DensityFeatures(integration="grid").fit(bag_laws.spread_bags(d=4)[0])


def test_pairwise_names_what_is_wrong():
    bags, _ = bag_laws.spread_bags(3)
    with pytest.raises(ValueError, match=r"metric must .*'chi2'.*'hellinger'.*'js'.*'l2'.*'tv'"):
        pairwise(bags, "kl")
    with pytest.raises(ValueError, match=r"bags\[1\] must hold at least 2 points"):
        pairwise([bags[0], bags[1][:1]])
    assert pairwise(bags[:1]).tolist() == [[0.0]]


def test_weighted_bags_are_not_taken_for_points_by_a_kernel_that_knows_no_weights():
    mean = KernelMean.from_samples(bag_laws.spread_bags()[0][0], Gaussian(1.0))
    with pytest.raises((TypeError, ValueError), match=r"bags\[1\] must"):
        NeighbourKLKernel().fit([bag_laws.spread_bags()[0][0], mean])


@pytest.mark.parametrize("features", [DensityFeatures(), HistogramFeatures(), MeanMapFeatures(n_point_components=20)])
def test_a_kernel_width_that_is_a_number_asks_for_no_vectors(features, monkeypatch):
    bags, _ = bag_laws.spread_bags()
    asked = []
    kept = Embedding._vectors
    monkeypatch.setattr(Embedding, "_vectors", lambda self, bags, *rest: asked.append(len(bags)) or kept(self, bags, *rest))
    fitted = features.set_params(n_components=20, kernel_width=0.7, random_state=0).fit(bags)
    assert asked == []
    assert fitted.kernel_width_ == 0.7
    features.set_params(kernel_width="median").fit(bags)
    assert asked == [min(len(bags), SAMPLED_BAGS)]


@pytest.mark.parametrize(
    "option",
    [
        {"n_nodes": 12},
        {"basis": "fourier", "margin": 0.3},
        {"frequencies": "random"},
        {"orthogonal": False, "integration": "uniform"},
    ],
    ids=str,
)
def test_options_of_experts_mean_the_same_by_keyword_and_by_set_params(option):
    bags, _ = bag_laws.spread_bags()
    plain = {"n_components": 20, "n_basis": 4, "random_state": 0}
    by_keyword = DensityFeatures(**plain, **option)
    by_name = DensityFeatures(**plain).set_params(**option)
    assert by_keyword.get_params() == by_name.get_params()
    wanted = by_keyword.fit_transform(bags)
    for each in (by_name, clone(by_keyword)):
        np.testing.assert_array_equal(each.fit_transform(bags), wanted)
    assert not np.array_equal(DensityFeatures(**plain).fit_transform(bags), wanted)


def test_what_is_no_option_is_refused_by_its_name():
    with pytest.raises(TypeError, match=r"got an unexpected keyword argument 'nodes'"):
        DensityFeatures(nodes=9)
    with pytest.raises(ValueError, match="Invalid parameter 'nodes'"):
        DensityFeatures().set_params(nodes=9)


def test_a_search_sets_options_of_experts_by_their_names():
    bags, spreads = bag_laws.spread_bags(30)
    model = make_pipeline(DensityFeatures(n_components=40, margin=0.8, random_state=0), Ridge(0.01))
    found = GridSearchCV(model, {"densityfeatures__n_nodes": [16, 20]}, cv=2).fit(bags, spreads)
    assert found.best_estimator_[0].n_nodes in (16, 20)
    assert found.best_estimator_[0].margin == 0.8
