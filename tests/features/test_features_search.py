"""A grid search of scikit-learn over features of bags, which computes the vectors of the training bags once."""

import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.pipeline import Pipeline

import bag_laws
from reduset.features import DensityFeatures, HistogramFeatures, MeanMapFeatures

SPLIT = ShuffleSplit(1, test_size=0.2, random_state=0)
GRID = {"kernel__gamma": [0.1, 1.0, 10.0], "model__alpha": [1e-3, 0.1]}


@pytest.fixture(scope="module")
def problem():
    bags, y = bag_laws.spread_bags(60, 50)
    return np.stack([bag[:50] for bag in bags]), y


class Counted(DensityFeatures):
    """Counts the bags that it was fitted to."""

    fitted = 0

    def fit(self, bags, y=None):
        Counted.fitted += len(bags)
        return super().fit(bags, y)


def search(vectors, grid, memory):
    steps = [("vectors", vectors), ("kernel", RBFSampler(n_components=60, random_state=0)), ("model", Ridge())]
    return GridSearchCV(Pipeline(steps, memory=memory), {**GRID, **grid}, cv=SPLIT)


def test_vectors_of_training_bags_are_computed_once_a_bandwidth(problem, tmp_path):
    Counted.fitted = 0
    vectors = Counted(output="distance", n_basis=6, margin=0.5)
    found = search(vectors, {"vectors__bandwidth": [0.03, 0.1]}, str(tmp_path)).fit(*problem)
    assert len(found.cv_results_["params"]) == 12
    assert Counted.fitted == 2 * 48 + 60  # and once more to refit the best to all bags
    assert found.score(*problem) > 0.9
    again = search(vectors, {"vectors__bandwidth": [0.03, 0.1]}, None).fit(*problem)
    np.testing.assert_array_equal(again.predict(problem[0]), found.predict(problem[0]))


@pytest.mark.parametrize(
    ("vectors", "grid"),
    [
        (MeanMapFeatures(n_point_components=40, output="distance", random_state=0), {"vectors__bandwidth": [0.5, 1.0]}),
        (HistogramFeatures(output="distance", margin=0.3), {"vectors__n_bins": [4, 6]}),
    ],
    ids=["mean maps", "histograms"],
)
def test_all_features_are_searched_the_same_way(problem, vectors, grid):
    assert search(vectors, grid, None).fit(*problem).best_score_ > 0.5


def test_features_and_kernel_are_searched_in_one_step_too(problem):
    steps = [("features", DensityFeatures(n_components=60, n_basis=6, margin=0.5, random_state=0)), ("model", Ridge(0.01))]
    found = GridSearchCV(Pipeline(steps), {"features__kernel_width": [0.1, 0.5, "median"]}, cv=SPLIT).fit(*problem)
    assert found.best_score_ > 0.5
