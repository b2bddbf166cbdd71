"""Valleys between groups of cells on lines, and the tree of merges."""

import numpy as np
import pytest

from reduset._engine import valley_depths
from reduset.cytometry.merging import MIN_CELLS, CellGroup, Merge, MergeTree, Valleys, merge_by_mode


def group(cells, weights=None, seed=0):
    cells = np.asarray(cells, float)
    weights = np.ones(len(cells)) if weights is None else weights
    return CellGroup.of(cells, np.arange(len(cells)), weights, np.random.default_rng(seed))


def dip_on_a_line(a, b):
    return float(valley_depths(a[None], b[None], np.ones(len(a)), np.ones(len(b)), np.zeros(1))[0])


def test_pieces_of_one_bell_have_no_valley_between_them_and_two_bells_have_one():
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    assert dip_on_a_line(x[x < 0.3], x[x >= 0.3]) > 0.9
    assert dip_on_a_line(x, rng.normal(8, 1, 4000)) < 0.05
    halfway = dip_on_a_line(rng.normal(0, 1, 20_000), rng.normal(3, 1, 20_000))
    expected = 2 * np.exp(-(1.5**2) / 2) / (1 + np.exp(-(3**2) / 2))  # f(1.5)/f(0) of two bells 3 apart
    assert expected - 0.02 < halfway < expected + 0.12  # smoothing and standard errors make it shallower, never deeper


def test_tails_of_a_heavy_law_are_no_populations():
    x = np.random.default_rng(1).standard_t(2, size=6000)
    for border in (-3, 0, 2, 6):
        assert dip_on_a_line(x[x < border], x[x >= border]) > 0.5


def test_few_cells_apart_may_be_chance():
    rng = np.random.default_rng(2)
    assert dip_on_a_line(rng.normal(size=1000), rng.normal(6, 0.3, 3)) > 0.6
    assert dip_on_a_line(rng.normal(size=1000), rng.normal(6, 0.3, 60)) < 0.3


def test_cells_that_stand_for_many_are_as_uncertain_as_few():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(1, 40)), rng.normal(3.5, 1, (1, 40))
    one, hundred = (float(valley_depths(a, b, np.full(40, w), np.full(40, w), np.zeros(1))[0]) for w in (1.0, 100.0))
    assert one == pytest.approx(hundred)


def test_groups_without_spread_have_a_valley_unless_one_holds_the_other():
    place = np.full(50, 3.0)
    assert dip_on_a_line(place, np.full(50, 4.0)) == 0.0
    around = np.random.default_rng(0).normal(3, 1, 500)
    assert dip_on_a_line(place, around) > 0.5


def test_joined_groups_have_the_mean_and_covariance_of_all_their_cells():
    rng = np.random.default_rng(4)
    x, y, w = rng.normal(size=(70, 3)), rng.normal(2, 1, (50, 3)), rng.random(120)
    both = group(x, w[:70]).joined(group(y, w[70:]))
    every = np.concatenate([x, y])
    np.testing.assert_allclose(both.centre, np.average(every, axis=0, weights=w))
    np.testing.assert_allclose(both.covariance, np.cov(every.T, aweights=w, ddof=0))
    np.testing.assert_allclose([both.count, both.represents.sum()], w.sum())


def test_covariances_of_all_cells_and_within_groups_are_those_of_the_cells():
    rng = np.random.default_rng(5)
    parts = [rng.normal(k, 1, (40 + k, 2)) for k in range(4)]
    found = Valleys.among([group(part) for part in parts])
    np.testing.assert_allclose(found.total, np.cov(np.concatenate(parts).T, ddof=0))


def test_the_tree_is_cut_by_depth_or_by_number():
    tree = MergeTree(4, (Merge(0, 1, np.inf), Merge(2, 3, 0.8), Merge(0, 2, 0.1)))
    np.testing.assert_array_equal(tree.cut(dip=0.5), [0, 0, 1, 1])
    np.testing.assert_array_equal(tree.cut(dip=0.9), [0, 0, 1, 2])
    np.testing.assert_array_equal(tree.cut(dip=0.05), [0, 0, 0, 0])
    for size, expected in ((1, [0, 0, 0, 0]), (2, [0, 0, 1, 1]), (3, [0, 0, 1, 2]), (4, [0, 1, 2, 3])):
        np.testing.assert_array_equal(tree.cut(size=size), expected)


def test_groups_merge_first_where_there_is_no_valley():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(900, 2)), rng.normal(9, 1, (900, 2))
    pieces = [x[x[:, 0] < 0], x[x[:, 0] >= 0], y[y[:, 1] < 9], y[y[:, 1] >= 9]]
    tree = merge_by_mode([group(piece) for piece in pieces], lambda done, total: None)
    assert {frozenset(each[:2]) for each in tree.merges[:2]} == {frozenset((0, 1)), frozenset((2, 3))}
    assert tree.merges[2].dip < 0.05 < 0.8 < tree.merges[1].dip


def test_groups_of_too_few_cells_go_to_the_nearest_first():
    rng = np.random.default_rng(7)
    tree = merge_by_mode(
        [group(rng.normal(0, 1, (100, 1))), group([[9.0]] * 3), group(rng.normal(8, 1, (100, 1)))], lambda *_: None
    )
    assert tree.merges[0] == (2, 1, np.inf)


@pytest.mark.parametrize("seed", range(4))
def test_merges_are_those_of_a_search_through_all_neighbours_at_each(seed):
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(1, 5)), int(rng.integers(2, 40))
    x = rng.normal(size=(3000, d)) + 5 * rng.integers(0, 3, (3000, 1))
    owner = np.argmin(np.square(x[:, None] - x[:k]).sum(axis=2), axis=1)
    groups = [group(x[owner == j]) for j in range(k)]
    alive, valleys = dict(enumerate(groups)), Valleys.among(groups)
    for merge in merge_by_mode(groups, lambda *_: None).merges:
        names = list(alive)
        gaps = np.square([[alive[a].centre - alive[b].centre for b in names] for a in names]).sum(axis=2)
        np.fill_diagonal(gaps, np.inf)
        if min(len(each.cells) for each in alive.values()) < MIN_CELLS:
            small = min(names, key=lambda name: (len(alive[name].cells), alive[name].count))
            pair, dip = {small, names[int(np.argmin(gaps[names.index(small)]))]}, np.inf
        else:
            near = {frozenset((a, names[j])) for i, a in enumerate(names) for j in np.argsort(gaps[i])[: min(8, len(names) - 1)]}
            dips = {each: valleys.dip(*(alive[name] for name in sorted(each))) for each in near}
            pair = max(near, key=dips.get)
            dip = dips[pair]
        assert ({merge.into, merge.gone}, merge.dip) == (pair, pytest.approx(dip))
        alive[merge.into] = alive[merge.into].joined(alive.pop(merge.gone))
