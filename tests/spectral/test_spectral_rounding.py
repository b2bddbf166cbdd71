"""Clusters from eigenfunctions: the three ways of scikit-learn, by their definitions, with weights, and for rows never seen."""

import numpy as np
import pytest
from scipy.linalg import polar
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

import reference_spectral as dense
from cases import cloud
from reduset import Gaussian
from reduset.spectral import ReducedSpectralClustering, walks
from reduset.spectral.graph import random_walk
from reduset.spectral.reduction import reduce_rows

WAYS = ["kmeans", "discretize", "cluster_qr"]


def blobs(n=300, k=3, seed=0):
    return make_blobs(n, centers=np.array([[0, 0], [6, 0], [0, 6], [6, 6]])[:k], cluster_std=0.7, random_state=seed)


def walk_of(X, count, bandwidth=1.0, **options):
    few = reduce_rows(X, Gaussian(bandwidth), None, rng=np.random.default_rng(0), **options)
    return random_walk(few, count, 0.0), few


@pytest.mark.parametrize("way", WAYS)
def test_clusters_are_found_by_any_way_also_where_they_were_not_seen(way):
    X, y = blobs(600)
    cut = ReducedSpectralClustering(3, kernel=Gaussian(1.0), assign_labels=way, random_state=0).fit(X[:400])
    assert len(cut.atoms_) < 390
    assert adjusted_rand_score(cut.predict(X[400:]), y[400:]) > 0.98
    np.testing.assert_array_equal(cut.labels_, cut.predict(X[:400]))
    np.testing.assert_array_equal(cut.atom_labels_, cut.predict(cut.atoms_))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_with_every_row_an_atom_they_are_scikit_learns(way, k):
    X, _ = blobs(200, k)
    theirs = SpectralClustering(k, gamma=0.5, assign_labels=way, random_state=0).fit_predict(X)
    ours = ReducedSpectralClustering(k, kernel="rbf", gamma=0.5, reduce=None, assign_labels=way, random_state=0).fit_predict(X)
    assert adjusted_rand_score(ours, theirs) == 1.0


@pytest.mark.parametrize("way", WAYS)
def test_moons_are_told_apart(way):
    X, y = make_moons(800, noise=0.05, random_state=0)
    found = ReducedSpectralClustering(2, kernel=Gaussian(0.1), assign_labels=way, random_state=0).fit_predict(X)
    assert adjusted_rand_score(found, y) > 0.99


@pytest.mark.parametrize("way", WAYS)
def test_whole_weights_are_rows_repeated(way):
    X, _ = blobs(80)
    counts = np.random.default_rng(2).integers(1, 4, 80)
    options = {"kernel": Gaussian(1.5), "assign_labels": way, "random_state": 0}
    one = ReducedSpectralClustering(3, reduce=None, **options).fit(X, sample_weight=counts)
    other = ReducedSpectralClustering(3, ell=1e6, **options).fit(np.repeat(X, counts, axis=0))
    assert adjusted_rand_score(one.predict(X), other.predict(X)) == 1.0


@pytest.mark.parametrize("way", WAYS)
def test_one_cluster_has_all_rows(way):
    assert set(ReducedSpectralClustering(1, kernel=Gaussian(1.0), assign_labels=way, random_state=0).fit_predict(cloud(30))) == {0}


@pytest.mark.parametrize("way", ["discretize", "cluster_qr"])
def test_as_many_functions_as_clusters_without_the_constant_one(way):
    X, _ = blobs(90)
    alike = [
        ReducedSpectralClustering(3, n_components=count, kernel=Gaussian(1.0), assign_labels=way, random_state=0).fit_predict(X)
        for count in (None, 2)
    ]
    np.testing.assert_array_equal(*alike)
    with pytest.raises(ValueError, match=f"assign_labels='{way}' .*got 4"):
        ReducedSpectralClustering(3, n_components=4, assign_labels=way).fit(X)


# -- by definition ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 5])
def test_pivots_are_rows_far_from_the_span_of_the_others_and_the_turn_is_the_nearest(k):
    walk, _ = walk_of(cloud(60), k - 1)
    rows = np.column_stack([np.ones(60), walk.functions])
    turn = polar(rows[dense.pivots(rows)].T)[0]
    found = walks.pivot_rounding(walk, k)
    np.testing.assert_allclose(np.vstack([found.offsets, found.matrix]), turn, atol=1e-8)
    np.testing.assert_array_equal(found.labels(walk.functions), np.abs(rows @ turn).argmax(axis=1))


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("seed", range(4))
def test_indicators_hold_as_much_of_the_mass_as_any_turn_lets_them(seed):
    X = cloud(50, seed=seed)
    masses = np.random.default_rng(seed).uniform(0.5, 3.0, 50)
    walk, _ = walk_of(X, 1, sample_weight=masses)
    rows = np.column_stack([np.ones(50), walk.functions])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = walks.indicator_rounding(walk, masses, 2, 10, np.random.default_rng(0))
    turn = np.vstack([found.offsets, found.matrix])
    np.testing.assert_allclose(turn @ turn.T, np.eye(2), atol=1e-12)
    held = float(masses @ (rows @ turn).max(axis=1))
    assert held >= dense.held_by_indicators(rows, masses) * (1 - 1e-6)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_parts_that_nothing_connects_are_the_clusters_whatever_their_mass(k):
    X = np.concatenate([cloud(n) + 60.0 * j for j, n in enumerate((40, 12, 5, 25)[:k])])
    parts = np.repeat(np.arange(k), (40, 12, 5, 25)[:k])
    for way in WAYS:
        cut = ReducedSpectralClustering(k, kernel=Gaussian(1.5), assign_labels=way, random_state=0).fit(X)
        assert adjusted_rand_score(cut.labels_, parts) == 1.0


def test_pivots_draw_nothing_and_the_others_draw_by_the_seed():
    X = cloud(200)
    for way in WAYS:
        seeds = (0, 0) if way != "cluster_qr" else (0, 1)
        one, other = (
            ReducedSpectralClustering(4, kernel=Gaussian(0.5), assign_labels=way, random_state=seed).fit_predict(X)
            for seed in seeds
        )
        np.testing.assert_array_equal(one, other)


# -- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_it_says_what_it_does_where_that_is_asked_for(way, capsys):
    X, _ = blobs(60)
    for verbose in (False, 0, True, 1):
        ReducedSpectralClustering(3, kernel=Gaussian(1.0), assign_labels=way, verbose=verbose, random_state=0).fit(X)
        said = capsys.readouterr().out
        assert (f"Computing label assignment using {way}" in said) == bool(verbose)
        assert ("inertia" in said) == (bool(verbose) and way == "kmeans")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"assign_labels": "spin"}, ValueError, "assign_labels .*got 'spin'"),
        ({"verbose": -1}, ValueError, "verbose .*got -1"),
        ({"verbose": "yes"}, TypeError, "verbose .*got 'yes'"),
    ],
)
def test_bad_parameters_are_named(options, error, message):
    with pytest.raises(error, match=message):
        ReducedSpectralClustering(2, kernel=Gaussian(1.0), **options).fit(cloud(30))
