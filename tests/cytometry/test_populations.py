"""Populations that were planted are found, laws of one mode stay one, and counts, shares and intervals are those of the cells."""

import warnings

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import adjusted_rand_score

from reduset.cytometry import find_populations


def planted(rng, d, shares, n, gap):
    """Bells at random places, no two nearer than the gap, of standard deviations between ½ and 1."""
    centres = [np.zeros(d)]
    while len(centres) < len(shares):
        new = rng.normal(size=d) * gap * (1.2 if d > 1 else 2.0)
        if min(np.linalg.norm(new - each) for each in centres) > gap:
            centres.append(new)
    kinds = rng.choice(len(shares), n, p=shares)
    return np.array(centres)[kinds] + rng.normal(size=(n, d)) * rng.uniform(0.5, 1, len(shares))[kinds, None], kinds


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("d", [1, 3, 8, 20])
def test_planted_populations_are_found_and_a_rare_one_among_them(d):
    shares = np.array([0.398, 0.3, 0.2, 0.1, 0.002])
    cells, kinds = planted(np.random.default_rng(d), d, shares, 20_000, 7.0)
    found = find_populations(np.array_split(cells, 4), n_atoms=150, rng=0)
    owners = found.assignments()
    assert adjusted_rand_score(kinds, owners) >= 0.98
    rare = kinds == 4
    own = np.bincount(owners[rare]).argmax()
    assert np.mean(owners[rare] == own) >= 0.9
    assert np.mean(rare[owners == own]) >= 0.9


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("law", ["bell", "cube", "t(3)", "exponential", "rounded", "floor"])
@pytest.mark.parametrize("d", [1, 2, 8])
def test_a_law_of_one_mode_is_one_population(law, d):
    rng = np.random.default_rng(3)
    shape = (2500, d)
    cells = {
        "bell": lambda: rng.normal(size=shape) @ rng.normal(size=(d, d)),
        "cube": lambda: rng.random(shape),
        "t(3)": lambda: rng.standard_t(3, size=shape),
        "exponential": lambda: rng.exponential(size=shape),
        "rounded": lambda: np.round(10 * rng.normal(size=shape)),
        "floor": lambda: np.maximum(rng.normal(size=shape), -0.524),  # 30 % at the limit of detection
    }[law]()
    assert len(find_populations(np.array_split(cells, 3), rng=0)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("step", [0.1, 0.25, 0.5])
def test_coarse_values_are_not_populations_of_their_own(step):
    rng = np.random.default_rng(0)
    laws = ((3000, [0, 0, 0, 0]), (1000, [4, 4, 0, 0]), (40, [0, 0, 5, 5]))
    cells = [np.concatenate([rng.normal(place, 1, (n, 4)) for n, place in laws]) for _ in range(6)]
    assert len(find_populations([np.round(each / step) * step for each in cells], rng=0)) == 3


def test_a_marker_that_is_there_or_not_tells_populations():
    rng = np.random.default_rng(1)
    there = rng.random((4, 1000)) < 0.2
    cells = [np.column_stack([rng.normal(size=1000), each]) for each in there]
    found = find_populations(cells, ["x", "marked"], rng=0)
    np.testing.assert_array_equal(
        np.sort(found.counts, axis=1), np.sort([[each.sum(), 1000 - each.sum()] for each in there], axis=1)
    )


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.001, 0.02])
@pytest.mark.parametrize("place", [20.0, 1e6])
def test_events_far_out_do_not_hide_populations(share, place):
    rng = np.random.default_rng(2)
    kinds = rng.choice(3, 12_000, p=[0.74, 0.25, 0.01])
    cells = np.array([[0, 0, 0, 0], [4.5, 4.5, 0, 0], [0, 0, 5, 5]])[kinds] + rng.normal(size=(12_000, 4))
    far = rng.random(12_000) < share
    cells[far, 0] = place
    owners = find_populations(np.array_split(cells, 6), rng=0).assignments()
    assert adjusted_rand_score(kinds[~far], owners[~far]) >= 0.97
    rare = np.bincount(owners[(kinds == 2) & ~far]).argmax()
    assert np.mean(kinds[owners == rare] == 2) >= 0.95


def test_one_event_far_out_takes_no_names_away():
    rng = np.random.default_rng(3)
    cells = np.concatenate([rng.normal(0, 1, (250, 2)), rng.normal([8, 0], 1, (150, 2)), [[1000.0, 0.0]]])
    found = find_populations([cells[::2], cells[1::2]], ["CD3", "CD4"], rng=0)
    assert len(found) == 2
    assert "CD3+" in found.names[1]


@pytest.mark.slow
def test_a_bell_in_twenty_dimensions_is_one_population():
    for seed in range(2):
        cells = np.random.default_rng(seed).normal(size=(2500, 20))
        assert len(find_populations(np.array_split(cells, 3), rng=seed)) == 1


@pytest.fixture(scope="module")
def three():
    """Three samples of unequal size and three populations, in two markers that tell them and one that does not."""
    rng = np.random.default_rng(0)
    places = np.array([[0, 0, 0], [8, 0, 0], [0, 8, 0]])
    kinds = [rng.choice(3, n, p=p) for n, p in ((3000, [0.7, 0.2, 0.1]), (1500, [0.4, 0.4, 0.2]), (600, [0.8, 0.1, 0.1]))]
    cells = [places[each] + rng.normal(size=(len(each), 3)) for each in kinds]
    return cells, kinds, find_populations(cells, ["CD3", "CD19", "HLA"], rng=0)


def test_counts_are_those_of_the_cells_and_add_up_to_all(three):
    cells, kinds, found = three
    np.testing.assert_array_equal(found.counts, [np.bincount(each, minlength=3) for each in kinds])
    np.testing.assert_array_equal(found.counts.sum(axis=1), found.sizes)
    np.testing.assert_array_equal(found.sizes, [len(each) for each in cells])
    np.testing.assert_array_equal(found.assignments(), np.concatenate(kinds))
    np.testing.assert_allclose(found.shares, found.counts / found.sizes[:, None])
    np.testing.assert_allclose(found.mean_shares, found.shares.mean(axis=0))
    assert (np.diff(found.mean_shares) <= 0).all()


def test_populations_are_told_by_their_markers(three):
    cells, kinds, found = three
    every, owners = np.concatenate(cells), np.concatenate(kinds)
    for k in range(3):
        np.testing.assert_allclose(found.medians[k], np.median(every[owners == k], axis=0))
    assert found.signs[:, :2].tolist() == [[-1, -1], [1, -1], [-1, 1]]
    assert "CD3+" in found.names[1]
    assert "CD19+" in found.names[2]
    assert found.marked(1)[0] == "CD3+"
    assert found.marked(2)[0] == "CD19+"
    assert not any(word.startswith("HLA") for word in found.marked(1))
    assert str(found).splitlines()[0] == f"3 populations of 5,100 cells in 3 samples, on {len(found.atoms)} atoms"


def test_intervals_are_those_of_clopper_and_pearson(three):
    found = three[2]
    for confidence in (0.95, 0.5):
        intervals = found.intervals(confidence)
        for i in range(3):
            for k in range(3):
                expected = binomtest(int(found.counts[i, k]), int(found.sizes[i])).proportion_ci(confidence, "exact")
                np.testing.assert_allclose(intervals[i, k], [expected.low, expected.high])


def test_intervals_of_none_and_of_all_reach_to_the_ends():
    found = find_populations([np.zeros((30, 1)), np.ones((40, 1))], rng=0)
    np.testing.assert_array_equal(np.sort(found.counts, axis=1), [[0, 30], [0, 40]])
    low, high = np.moveaxis(found.intervals(), -1, 0)
    assert low[found.counts == 0].tolist() == [0, 0]
    assert high[found.counts == found.sizes[:, None]].tolist() == [1, 1]
    np.testing.assert_allclose(high[found.counts == 0], 1 - 0.025 ** (1 / found.sizes))


@pytest.mark.slow
def test_the_order_of_samples_means_nothing_beyond_chance(three):
    cells, _, found = three
    turned = find_populations(cells[::-1], ["CD3", "CD19", "HLA"], rng=1)
    np.testing.assert_allclose(turned.counts, found.counts[::-1], atol=5)
    assert turned.names == found.names


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_as_many_populations_as_are_asked_for(three, size):
    found = find_populations(three[0], n_populations=size, rng=0)
    assert len(found) == len(set(found.names)) == size
    assert found.counts.sum() == 5100
    assert (found.counts.sum(axis=0) > 0).all()


def test_markers_that_do_not_define_are_described(three):
    cells = three[0]
    found = find_populations(cells, ["CD3", "CD19", "HLA"], defining=[0, 2], rng=0)
    assert len(found) == 2
    assert found.medians.shape == (2, 3)
    assert found.atoms.shape[1] == 3
    assert not any("CD19" in name for name in found.names)


def test_scales_are_what_columns_are_divided_by(three):
    scales = np.array([1000.0, 0.01, 3.0])
    found = find_populations([each * scales for each in three[0]], scales=scales, rng=0)
    np.testing.assert_array_equal(found.counts, three[2].counts)
    np.testing.assert_allclose(found.medians, three[2].medians * scales)


@pytest.mark.slow
def test_a_sample_of_fifty_cells_does_not_outweigh_one_of_many():
    rng = np.random.default_rng(0)
    sizes = (40_000, 4000, 4000, 50)
    kinds = [np.arange(n) % 25 == 0 for n in sizes]
    cells = [rng.normal(size=(n, 4)) + 5 * each[:, None] for n, each in zip(sizes, kinds, strict=True)]
    found = find_populations(cells, n_atoms=150, rng=0)
    np.testing.assert_allclose(found.counts[:, 1], [each.sum() for each in kinds], atol=3)
    assert len(found) == 2


DEGENERATE = {
    "two places": [np.repeat([[0.0, 0], [1, 1]], 50, axis=0)] * 2,
    "three places, far and near": [np.repeat([[0.0, 0], [1, 1], [500, 5]], 50, axis=0)] * 2,
    "each cell twenty times": [np.repeat(np.random.default_rng(0).normal(size=(30, 2)), 20, axis=0)] * 2,
    "a constant marker": [np.column_stack([np.random.default_rng(0).normal(size=600), np.ones(600)])] * 2,
    "one marker": [np.random.default_rng(0).normal(size=(500, 1))] * 2,
    "fewer cells than atoms": [np.random.default_rng(k).normal(size=(3, 2)) for k in range(4)],
    "one cell each": [np.zeros((1, 2)), np.ones((1, 2))],
    "one sample": [np.random.default_rng(0).normal(size=(300, 2))],
    "whole numbers": [np.random.default_rng(k).integers(0, 4, (300, 2)) for k in range(2)],
    "far from the origin": [1e6 + np.random.default_rng(k).normal(size=(300, 2)) for k in range(2)],
    "single precision": [np.random.default_rng(k).normal(size=(300, 2)).astype(np.float32) for k in range(2)],
}


@pytest.mark.parametrize("kind", DEGENERATE)
def test_whatever_the_cells_there_are_numbers_and_all_cells_are_counted(kind):
    cells = DEGENERATE[kind]
    found = find_populations(cells, rng=0)
    assert found.counts.sum(axis=1).tolist() == [len(each) for each in cells]
    assert len(set(found.names)) == len(found) >= 1
    for name in ("medians", "separations", "atoms", "mean_shares"):
        assert np.isfinite(getattr(found, name)).all()
    assert np.isfinite(found.intervals()).all()


def test_cells_that_all_coincide_are_one_population_whatever_is_asked_for():
    cells = [np.ones((60, 2))] * 2
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert find_populations(cells, rng=0).names == ("all cells",)
        assert len(find_populations(cells, n_populations=3, rng=0)) == 1
    assert any("only 1 cells are distinct" in str(each.message) for each in told)


@pytest.mark.parametrize(
    ("cells", "options", "message"),
    [
        ([], {}, "cells .*got none"),
        ([np.ones((5, 2)), np.empty((0, 2))], {}, r"cells\[1\] must hold at least one row and one column"),
        ([np.ones((5, 2)), np.ones((5, 3))], {}, r"cells\[1\] must have 2 columns"),
        ([np.full((5, 2), np.nan)], {}, r"cells\[0\] .*got nan in row 0, column 0"),
        ([np.ones((5, 2))], {"markers": ["CD3"]}, "markers .*got 1 names"),
        ([np.ones((5, 2))], {"defining": []}, "defining must hold one or more numbers of columns, from 0 to 1"),
        ([np.ones((5, 2))], {"defining": [0, 2]}, "defining must hold one or more numbers of columns, from 0 to 1"),
        ([np.ones((5, 2)), np.full((5, 2), 1e20)], {}, r"cells\[1\] .*got 1e\+20"),
        ([np.ones((5, 2001))], {}, "at most 2,000 markers may define populations, got 2,001"),
        ([np.ones((5, 2))], {"scales": [1.0]}, "scales must be 2 finite numbers above 0"),
        ([np.ones((5, 2))], {"scales": [1.0, 0.0]}, "scales must be 2 finite numbers above 0"),
        ([np.ones((5, 2))], {"dip": 2.0}, "dip must"),
        ([np.ones((5, 2))], {"n_atoms": 0}, "n_atoms must"),
        ([np.ones((5, 2))], {"n_populations": 0}, "n_populations must"),
    ],
)
def test_wrong_arguments_are_named(cells, options, message):
    with pytest.raises(ValueError, match=message):
        find_populations(cells, rng=0, **options)


def test_the_same_seed_gives_the_same(three):
    again = find_populations(three[0], ["CD3", "CD19", "HLA"], rng=0)
    np.testing.assert_array_equal(again.of_atom, three[2].of_atom)
    np.testing.assert_array_equal(again.atoms, three[2].atoms)
