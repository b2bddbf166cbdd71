"""Partitions: means and distances are those of the groups, exchanges lower the sum of squares, the order of rows is irrelevant."""

from __future__ import annotations

import numpy as np
import pytest

from reduset import set_threads
from reduset.select import clustering as module
from reduset.select.clustering import partition
from reference_metacells import within

CASES = [(1, 400, 12), (2, 600, 40), (7, 500, 30), (50, 400, 25)]  # columns, rows, groups


def rows(d, n, seed=0):
    rng = np.random.default_rng(seed)
    centres = 4 * rng.normal(size=(9, d))
    points = centres[rng.choice(9, n, p=rng.dirichlet(np.full(9, 0.7)))] + rng.normal(size=(n, d))
    points[:3] += 60.0  # outliers, which k-means gives groups of their own
    return points.astype(np.float32)


@pytest.mark.parametrize(("d", "n", "m"), CASES)
def test_centres_are_means_and_distances_are_to_them(d, n, m):
    X = rows(d, n)
    found = partition(X, m, np.random.default_rng(0))
    assert sorted(set(found.assignments.tolist())) == list(range(len(found.centres)))
    assert len(found.centres) == m
    for k in range(m):
        np.testing.assert_allclose(found.centres[k], X[found.assignments == k].mean(axis=0, dtype=np.float64), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.distances, np.linalg.norm(X - found.centres[found.assignments], axis=1))
    assert (found.distances**2).sum() == pytest.approx(within(X.astype(float), found.assignments), rel=1e-6)


@pytest.mark.covering_cases
@pytest.mark.parametrize(("d", "n", "m"), CASES)
@pytest.mark.parametrize("seed", range(4))
def test_exchanges_do_not_raise_the_sum_of_squares(d, n, m, seed):
    X = rows(d, n, seed)
    plain, better = ((partition(X, m, np.random.default_rng(seed), exchange=each).distances ** 2).sum() for each in (False, True))
    assert better <= plain * (1 + 1e-3)  # both are local optima, reached by different numbers of sweeps


@pytest.mark.parametrize(("d", "n", "m"), CASES)
def test_one_exchange_lowers_the_sum_by_what_it_computes(d, n, m):
    groups = module._Groups.seeded(rows(d, n), m, np.random.default_rng(0))
    groups.settle(1)
    X = groups.points.astype(float)
    before, old = within(X, groups.assignments), groups.assignments.copy()
    sizes = np.bincount(old, minlength=m)
    means = module._means(groups.points, old, m)
    removed, halves = groups._splits(sizes, means)
    added, partners = module._merges(sizes, means)
    for k in np.flatnonzero(removed > 0)[:5]:  # a split, made by hand
        own = np.flatnonzero(old == k)
        upper = own[np.linalg.norm(X[own] - halves[0, k], axis=1) < np.linalg.norm(X[own] - halves[1, k], axis=1)]
        split = old.copy()
        split[upper] = m
        assert before - within(X, split) >= removed[k] * (1 - 1e-6)  # the halves cut at the bisector are at least as good
    for i in range(min(5, m)):  # a merge, made by hand
        merged = np.where(old == partners[i], i, old)
        assert within(X, merged) - before == pytest.approx(added[i], rel=1e-5, abs=1e-6 * before)
    if groups.exchange():
        groups.settle(0)
        assert within(X, groups.assignments) < before


def test_the_cheapest_merge_is_that_of_all_pairs(monkeypatch):
    monkeypatch.setattr(module, "ENTRIES", 100)  # several blocks
    rng = np.random.default_rng(0)
    means, sizes = rng.normal(size=(30, 4)), rng.integers(0, 50, 30)
    added, partners = module._merges(sizes, means)
    for i in range(30):
        costs = [
            np.inf if i == j else sizes[i] * sizes[j] / max(sizes[i] + sizes[j], 1) * ((means[i] - means[j]) ** 2).sum()
            for j in range(30)
        ]
        assert added[i] == pytest.approx(min(costs), abs=1e-9)
        assert costs[partners[i]] == pytest.approx(min(costs), abs=1e-9)


def test_blocks_of_groups_change_nothing(monkeypatch):
    X = rows(7, 500)
    first = partition(X, 30, np.random.default_rng(0))
    monkeypatch.setattr(module, "ENTRIES", 350)
    second = partition(X, 30, np.random.default_rng(0))
    np.testing.assert_array_equal(first.assignments, second.assignments)


@pytest.mark.covering_cases
@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize(("d", "n", "m"), CASES)
def test_permuted_rows_have_permuted_assignments(d, n, m, smooth):
    X, order = rows(d, n), np.random.default_rng(5).permutation(n)
    first, second = (partition(each, m, np.random.default_rng(0), smooth=smooth) for each in (X, X[order]))
    np.testing.assert_array_equal(first.assignments[order], second.assignments)
    np.testing.assert_array_equal(first.centres, second.centres)


def test_the_number_of_threads_changes_nothing():
    X, found = rows(7, 3000), []
    for threads in (1, 2):
        set_threads(threads)
        found.append(partition(X, 60, np.random.default_rng(0), smooth=True).assignments)
    set_threads(1)
    np.testing.assert_array_equal(*found)


def test_separate_clusters_are_found():
    rng = np.random.default_rng(0)
    of = rng.choice(40, 4000, p=rng.dirichlet(np.full(40, 1.0)) * 0.8 + 0.2 / 40)
    X = (30 * rng.normal(size=(40, 6)))[of] + rng.normal(size=(4000, 6))
    found = partition(X.astype(np.float32), 40, np.random.default_rng(1)).assignments
    pairs = set(zip(of.tolist(), found.tolist(), strict=True))
    assert len(pairs) == 40  # each cluster is one group, which plain k-means rarely finds


def test_averages_make_groups_of_curves_purer():
    """Two kinds along parallel curves, with noise in other columns: averages follow the curves."""
    rng = np.random.default_rng(0)
    kind, along = rng.integers(0, 2, 2000), rng.uniform(0, 3, 2000)
    X = rng.normal(size=(2000, 30))
    X[:, 0], X[:, 1] = 4 * along, 3 * np.sin(2 * along) + 5 * kind
    groups = [partition(X.astype(np.float32), 40, np.random.default_rng(0), smooth=each).assignments for each in (False, True)]
    plain, smooth = (np.mean([max(np.mean(kind[own == k]), 1 - np.mean(kind[own == k])) for k in own]) for own in groups)
    assert plain < smooth
    assert smooth > 0.95


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_and_equal_rows(n):
    X = np.repeat(rows(3, 5)[:n], 4, axis=0)
    found = partition(X, 4 * n, np.random.default_rng(0))
    assert len(found.centres) == n
    np.testing.assert_allclose(found.distances, 0, atol=1e-5)
