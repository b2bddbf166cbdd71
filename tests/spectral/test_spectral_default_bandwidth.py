"""The bandwidth of spectral clustering by default: curved clusters are found, round ones as before."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from reduset.spectral import ReducedSpectralClustering
from reduset.spectral.graph import graph_bandwidth
from reduset.spectral.walks import MAX_ATOMS

SETS = {
    "two moons": (lambda: make_moons(1000, noise=0.05, random_state=0), 2, 0.99),
    "noisy moons": (lambda: make_moons(1000, noise=0.08, random_state=0), 2, 0.99),
    "many rows": (lambda: make_moons(20_000, noise=0.08, random_state=0), 2, 0.99),
    "two circles": (lambda: make_circles(1000, noise=0.05, factor=0.5, random_state=0), 2, 0.99),
    "blobs": (lambda: make_blobs(2000, centers=5, random_state=1), 5, 0.9),
    "unequal blobs": (
        lambda: make_blobs([1500, 300, 100], centers=[[0, 0], [6, 0], [0, 7]], cluster_std=[1.0, 0.5, 1.5], random_state=1),
        3,
        0.98,
    ),
    "iris": (lambda: load_iris(return_X_y=True), 3, 0.7),
}


@pytest.mark.parametrize("name", SETS)
def test_clusters_are_found_without_a_bandwidth(name):
    make, count, least = SETS[name]
    X, y = make()
    cut = ReducedSpectralClustering(count, random_state=0).fit(X)
    assert adjusted_rand_score(y, cut.labels_) >= least
    assert len(cut.atoms_) <= MAX_ATOMS


def test_the_bandwidth_does_not_shrink_with_the_number_of_rows():
    few, many = (graph_bandwidth(make_moons(n, noise=0.05, random_state=0)[0]) for n in (1000, 40_000))
    assert few == pytest.approx(many, rel=0.1)


def test_a_weight_of_three_is_a_row_three_times():
    X = np.random.default_rng(0).normal(size=(200, 2))
    weights = np.random.default_rng(1).integers(0, 4, 200)
    assert graph_bandwidth(X, weights) == pytest.approx(graph_bandwidth(np.repeat(X, weights, axis=0)))


def test_an_outlier_does_not_widen_the_bandwidth():
    X = np.random.default_rng(0).normal(size=(500, 2))
    assert graph_bandwidth(np.concatenate([X, [[1e9, 0.0]]])) == pytest.approx(graph_bandwidth(X), rel=0.05)


def test_equal_rows_have_no_bandwidth_of_a_graph():
    assert graph_bandwidth(np.ones((5, 2))) is None
