"""Averages with neighbours: they are those of a loop, candidates come from near groups, and the spread of clusters falls."""

from __future__ import annotations

import numpy as np
import pytest

from reduset.select import clustering as smoothing
from reduset.select.clustering import nearest_in_groups, smoothed


def grouped(n, m, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    groups = rng.integers(0, m, n)
    groups[:m] = np.arange(m)
    centres = np.array([X[groups == k].mean(axis=0, dtype=np.float64) for k in range(m)])
    return X, groups, centres


@pytest.mark.parametrize(("n", "m", "d", "k"), [(200, 5, 3, 4), (300, 12, 20, 15), (60, 1, 2, 7)])
def test_neighbours_and_averages_are_those_of_a_loop(n, m, d, k, monkeypatch):
    X, groups, centres = grouped(n, m, d)
    apart = ((X[:, None].astype(float) - X[None]) ** 2).sum(axis=2)
    expected = np.argsort(apart, axis=1)[:, :k]  # all groups are near: there are fewer than `NEAR_GROUPS`
    found = nearest_in_groups(X, groups, centres, k)
    np.testing.assert_array_equal(np.sort(found), np.sort(expected))
    monkeypatch.setattr(smoothing, "ENTRIES", 500)  # several blocks
    np.testing.assert_array_equal(np.sort(nearest_in_groups(X, groups, centres, k)), np.sort(expected))
    value, reach = X.astype(float), 2 * np.sqrt(np.sort(apart, axis=1)[:, k - 1])
    expected = [[j if np.sqrt(apart[i, j]) <= reach[j] else i for j in own] for i, own in enumerate(expected)]
    for _ in range(smoothing.ROUNDS_OF_SMOOTHING):
        value = np.array([value[own].mean(axis=0) for own in expected])
    np.testing.assert_allclose(smoothed(X, groups, centres, k), value, atol=1e-5)


def test_candidates_are_the_points_of_the_nearest_groups(monkeypatch):
    monkeypatch.setattr(smoothing, "NEAR_GROUPS", 3)
    monkeypatch.setattr(smoothing, "CANDIDATES_PER_NEIGHBOUR", 1)
    X, groups, centres = grouped(400, 20, 4)
    near = np.argsort(((centres[:, None] - centres[None]) ** 2).sum(axis=2), axis=1)[:, :3]
    for i, own in enumerate(nearest_in_groups(X, groups, centres, 5)):
        allowed = np.flatnonzero(np.isin(groups, near[groups[i]]))
        best = allowed[np.argsort(((X[allowed] - X[i]) ** 2).sum(axis=1))[:5]]
        assert sorted(own.tolist()) == sorted(best.tolist())


def test_few_candidates_are_filled_with_the_point_itself_and_many_are_thinned(monkeypatch):
    X, groups, centres = grouped(10, 10, 2)
    monkeypatch.setattr(smoothing, "NEAR_GROUPS", 2)
    monkeypatch.setattr(smoothing, "MAX_GROUPS", 2)
    found = nearest_in_groups(X, groups, centres, 4)
    assert all((found[i] == i).sum() == 3 for i in range(10))
    monkeypatch.setattr(smoothing, "CANDIDATES", 50)
    X, groups, centres = grouped(500, 2, 2)
    found = nearest_in_groups(X, groups, centres, 5)
    assert all(len(np.unique(found[groups == k])) <= 50 for k in (0, 1))


def test_a_few_points_far_from_all_others_stay_there():
    X, groups, centres = grouped(400, 6, 5)
    X[:3] += 40
    found = smoothed(X, groups, centres, 10)
    assert np.linalg.norm(found[:3] - X[:3], axis=1).max() < 5
    assert np.linalg.norm(found[3:], axis=1).max() < np.linalg.norm(X[3:], axis=1).max()


def test_the_spread_within_clusters_falls_and_clusters_stay_apart():
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1], [900, 60])
    X = (rng.normal(size=(960, 30)) + 3 * kind[:, None] * (np.arange(30) < 6)).astype(np.float32)
    groups = rng.integers(0, 8, 960)
    centres = np.array([X[groups == k].mean(axis=0, dtype=np.float64) for k in range(8)])
    found = smoothed(X, groups, centres, 15)
    for k in (0, 1):
        assert found[kind == k].var(axis=0).sum() < 0.25 * X[kind == k].var(axis=0).sum()
    before, after = (np.linalg.norm(each[kind == 1].mean(axis=0) - each[kind == 0].mean(axis=0)) for each in (X, found))
    assert after > 0.8 * before
