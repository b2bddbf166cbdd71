"""Tuning: the same scores as a plain loop, every vector computed once, and errors that say what is wrong."""

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import ParameterGrid, train_test_split

import bag_laws
from reduset import Gaussian, compress
from reduset.features import DensityFeatures, HistogramFeatures, MeanMapFeatures, NeighbourKLKernel, tune
from reduset.features.tuning import ridge_predictions

FEATURES = DensityFeatures("js", n_components=60, n_basis=6, n_frequencies=2, margin=0.3)
WIDTHS = (0.5, 1.0, 2.0)


@pytest.fixture(scope="module")
def problem():
    return bag_laws.spread_bags(60, 50)


@pytest.mark.parametrize(("n", "d"), [(80, 12), (12, 80), (30, 30)])
@pytest.mark.parametrize("rank", [None, 4])
def test_ridge_predictions_are_scikit_learns(n, d, rank):
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(n, d)) + 3.0, rng.normal(size=(7, d)) + 3.0
    if rank is not None:
        plane = rng.normal(size=(d, rank)) @ rng.normal(size=(rank, d))
        X, queries = X @ plane, queries @ plane
    y = rng.normal(size=n) + 50.0
    alphas = [1e-3, 0.1, 10.0, 1e6]
    found = ridge_predictions(X, y, queries, alphas)
    before = X.copy(), y.copy(), queries.copy()
    for alpha, each in zip(alphas, found, strict=True):
        np.testing.assert_allclose(each, Ridge(alpha, solver="svd").fit(X, y).predict(queries), rtol=1e-6)
    for one, other in zip(before, (X, y, queries), strict=True):
        np.testing.assert_array_equal(one, other)


def plain_loop(found, features, model, bags, y, features_grid, model_grid, score):
    """Every combination from its own parameters: vectors, waves with random frequencies of σ = 1 scaled, a model fitted and scored.

    Which bags were set aside and the seed are read off what was found; nothing else is.
    """
    rng = np.random.default_rng(3)
    split_seed, seed = int(rng.integers(2**31)), int(rng.integers(2**31))
    by_class = y if hasattr(model, "predict_proba") else None
    kept, aside = train_test_split(np.arange(len(bags)), test_size=0.2, random_state=split_seed, stratify=by_class)
    assert found.pipeline["features"].random_state == seed
    tried = []
    for options in ParameterGrid(features_grid):
        vectors = clone(features).set_params(**options, output="distance", random_state=seed).fit([bags[i] for i in kept])
        A = vectors.transform(bags)
        median = np.median(pdist(A[kept]))
        draw = np.random.default_rng(seed)
        blocks = []
        half = features.n_components // 2
        for start in range(0, half, A.shape[1]):
            size = min(A.shape[1], half - start)
            Q, _ = np.linalg.qr(draw.normal(size=(A.shape[1], size)))
            blocks.append(Q * draw.choice([-1.0, 1.0], size) * np.sqrt(draw.chisquare(A.shape[1], size)))
        for width in WIDTHS:
            angles = A @ np.hstack(blocks) / (width * median)
            Z = np.hstack([np.sin(angles), np.cos(angles)]) / np.sqrt(half)
            for own in ParameterGrid(model_grid):
                fitted = clone(model).set_params(**own).fit(Z[kept], y[kept])
                tried.append(({**options, "kernel_width": width * median}, own, score(y[aside], fitted.predict(Z[aside]))))
    return tried


def check_tried(found, wanted):
    assert len(found.tried) == len(wanted)
    for (features, model, score), (features_wanted, model_wanted, score_wanted) in zip(found.tried, wanted, strict=True):
        assert features == pytest.approx(features_wanted, rel=1e-10)
        assert model == model_wanted
        assert score == pytest.approx(score_wanted, abs=1e-6)
    best = max(wanted, key=lambda each: each[2])
    assert found.score == pytest.approx(best[2], abs=1e-6)
    assert (found.features, found.model) == (pytest.approx(best[0], rel=1e-10), best[1])


GRIDS = {"features_grid": {"bandwidth": [0.03, 0.1], "n_frequencies": [2, 3]}, "model_grid": {"alpha": [1e-3, 0.1, 10.0]}}


@pytest.mark.parametrize("model", [Ridge(), Lasso(max_iter=50_000)], ids=["ridge", "lasso"])
def test_it_is_a_plain_loop_over_everything(problem, model):
    found = tune(FEATURES, model, *problem, **GRIDS, widths=WIDTHS, validation=0.2, random_state=3)
    check_tried(found, plain_loop(found, FEATURES, model, *problem, **GRIDS, score=r2_score))
    chosen = found.pipeline
    assert {**chosen["features"].get_params(), **found.features} == chosen["features"].get_params()
    assert chosen["features"].output == "features"
    assert chosen["model"].alpha == found.model["alpha"]
    assert chosen["features"].kernel_width_ == found.features["kernel_width"]
    assert chosen.score(*problem) > 0.9


def test_a_scorer_may_be_named_or_given(problem):
    options = {**GRIDS, "widths": WIDTHS, "validation": 0.2, "random_state": 3}
    found = tune(FEATURES, Ridge(), *problem, scoring="neg_mean_absolute_error", **options)
    check_tried(
        found,
        plain_loop(found, FEATURES, Ridge(), *problem, **GRIDS, score=lambda true, guess: -mean_absolute_error(true, guess)),
    )
    same = tune(FEATURES, Ridge(), *problem, scoring=lambda model, X, y: -mean_absolute_error(y, model.predict(X)), **options)
    assert [each[2] for each in same.tried] == pytest.approx([each[2] for each in found.tried])


def test_a_classifier_sees_every_class_on_both_sides(problem):
    bags, spreads = problem
    y = np.where(spreads > 1.8, "wide", "other")
    assert 3 <= (y == "wide").sum() < 15
    seen = []

    def scoring(model, X, truth):
        seen.append((set(model.classes_), dict(zip(*np.unique(truth, return_counts=True), strict=True))))
        return model.score(X, truth)

    found = tune(
        FEATURES, LogisticRegression(), bags, y, model_grid={"C": [1.0, 100.0]}, validation=1 / 3, scoring=scoring, random_state=0
    )
    assert len(seen) == 6
    share = int(np.round((y == "wide").sum() / 3))
    for classes, counts in seen:
        assert classes == {"wide", "other"}
        assert abs(counts["wide"] - share) <= 1
    assert set(found.pipeline.predict(bags)) == {"wide", "other"}


class Counted(DensityFeatures):
    """Counts the vectors that are computed."""

    computed = 0

    def _rows(self, bags, *rest):
        Counted.computed += len(bags)
        return super()._rows(bags, *rest)


@pytest.mark.parametrize(("widths", "alphas"), [([1.0], [0.1]), ([0.5, 1.0, 2.0, 4.0], [1e-3, 1e-2, 0.1])])
def test_every_vector_is_computed_once_for_each_entry_of_the_grid_of_features(problem, widths, alphas):
    bags, y = problem
    Counted.computed = 0
    grid = {"bandwidth": [0.03, 0.1, 0.2]}
    tune(
        Counted(n_components=60, n_basis=5, margin=0.5),
        Ridge(),
        bags,
        y,
        features_grid=grid,
        widths=widths,
        model_grid={"alpha": alphas},
        random_state=0,
    )
    assert Counted.computed == 3 * len(bags) + len(bags)  # and once more for the pipeline of all bags


def test_parameters_of_the_random_features_may_be_searched_too(problem):
    found = tune(FEATURES, Ridge(), *problem, features_grid={"n_components": [2, 60]}, widths=[1.0], random_state=0)
    assert found.tried[0][2] != found.tried[1][2]
    assert found.features["n_components"] == 60
    assert found.pipeline[:-1].transform(problem[0]).shape == (60, 60)


@pytest.mark.parametrize("features", [MeanMapFeatures(60, 40), HistogramFeatures(n_components=60, n_bins=5, margin=0.3)])
def test_the_rivals_are_tuned_alike(problem, features):
    found = tune(features, Ridge(), *problem, model_grid={"alpha": [1e-3, 0.1]}, random_state=0)
    assert found.score > 0.5
    assert found.pipeline["features"].kernel_width_ == found.features["kernel_width"]


def test_features_that_stop_at_distances_are_tuned_with_their_kernel(problem):
    found = tune(clone(FEATURES).set_params(output="distance"), Ridge(), *problem, random_state=0)
    assert found.pipeline["features"].output == "features"
    assert found.pipeline[:-1].transform(problem[0]).shape == (60, 60)


def test_bags_may_come_in_every_form(problem):
    bags, y = problem
    same = [bag[:50] for bag in bags]
    options = {"model_grid": {"alpha": [0.1]}, "random_state": 0}
    wanted = tune(FEATURES, Ridge(), same, y, **options)
    table = pd.DataFrame(np.concatenate(same), columns=["a", "b"]).assign(bag=np.repeat(np.arange(60), 50))
    frames = [pd.DataFrame(bag, columns=["a", "b"]) for bag in same]
    forms = {"3-D": np.stack(same), "mapping": dict(enumerate(same)), "tuple": tuple(same), "frames": frames}
    for name, form in forms.items():
        found = tune(FEATURES, Ridge(), form, pd.Series(y), **options)
        assert [each[2] for each in found.tried] == pytest.approx([each[2] for each in wanted.tried]), name
    assert found.pipeline["features"].feature_names_in_.tolist() == ["a", "b"]
    of_table = tune(clone(FEATURES).set_params(group="bag"), Ridge(), table, y, **options)
    assert of_table.score == pytest.approx(wanted.score)
    np.testing.assert_allclose(of_table.pipeline.predict(table), wanted.pipeline.predict(same))
    small = [compress(bag, Gaussian(0.5), size=20, select="kcenter", weights="simplex", rng=0) for bag in same]
    assert tune(FEATURES, Ridge(), small, y, **options).pipeline.predict(small[:3]).shape == (3,)


def test_the_same_seed_finds_the_same_and_progress_is_told(problem):
    heard = []
    options = {"features_grid": {"bandwidth": [0.05, 0.1]}, "random_state": 5}
    first = tune(FEATURES, Ridge(), *problem, progress=lambda *told: heard.append(told), **options)
    assert heard == [("validation", k, 6) for k in range(1, 7)]
    again = tune(FEATURES, Ridge(), *problem, **options)
    assert first.tried == again.tried
    np.testing.assert_array_equal(first.pipeline.predict(problem[0]), again.pipeline.predict(problem[0]))
    assert tune(FEATURES, Ridge(), *problem, **{**options, "random_state": 6}).tried != first.tried
    assert "bandwidth=" in str(first)
    assert "best of 6" in str(first)


def test_what_it_was_given_is_left_as_it_was(problem):
    features, model = clone(FEATURES), Ridge()
    before = features.get_params(), model.get_params()
    tune(features, model, *problem, random_state=0)
    assert (features.get_params(), model.get_params()) == before
    assert not hasattr(features, "cube_")
    assert not hasattr(model, "coef_")


BAD = {
    "features": ({"features": NeighbourKLKernel()}, TypeError, "features must be DensityFeatures.* got NeighbourKLKernel"),
    "no features": ({"features": Ridge()}, TypeError, "got Ridge"),
    "validation": ({"validation": 1.5}, ValueError, "validation must lie between 0 and 1, got 1.5"),
    "widths": ({"widths": [0.0]}, ValueError, "widths must be above 0"),
    "no widths": ({"widths": []}, ValueError, "widths must hold at least one"),
    "y": ({"y": np.zeros(59)}, ValueError, r"y must hold a value for each of the 60 bags, got shape \(59,\)"),
    "kernel_width": ({"features_grid": {"kernel_width": [1.0]}}, ValueError, "must not hold 'kernel_width'; give widths="),
    "output": ({"features_grid": {"output": ["distance"]}}, ValueError, "features_grid must not hold 'output'"),
    "unknown": ({"features_grid": {"bins": [3]}}, ValueError, "Invalid parameter 'bins'"),
    "unknown of the model": ({"model_grid": {"C": [3]}}, ValueError, "Invalid parameter 'C'"),
    "progress": ({"progress": "yes"}, TypeError, "progress must be True, False or a function"),
    "NaN": ({"scoring": lambda *_: float("nan")}, ValueError, "every score is NaN; set more aside"),
    "a bag": ({"bags": [np.ones((1, 2))] * 60}, ValueError, r"bags\[0\] must hold at least 2 points"),
    "one table": ({"bags": np.ones((60, 2))}, ValueError, "group= a column's name"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(problem, case):
    options, error, message = BAD[case]
    given = {"features": FEATURES, "model": Ridge(), "bags": problem[0], "y": problem[1], "random_state": 0, **options}
    with pytest.raises(error, match=message):
        tune(**given)


def test_a_score_that_is_not_a_number_never_wins(problem):
    scores = iter([float("nan"), 0.3, 0.2])
    found = tune(FEATURES, Ridge(), *problem, scoring=lambda *_: next(scores), random_state=0)
    assert found.score == 0.3
