"""How far two clusterings are apart: the Hausdorff distance of families of sets, and the discrepancy index."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_uses as oracle
from reduset.modes import clustering_distance, discrepancy_index


def same_partition(one, other):
    return len(set(zip(one, other, strict=True))) == len(set(one)) == len(set(other))


three = st.integers(1, 25).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n)] * 3))


@settings(max_examples=200, deadline=None)
@given(three)
def test_it_is_the_distance_of_families_of_sets(clusterings):
    one, other, _ = clusterings
    assert clustering_distance(one, other) == pytest.approx(oracle.hausdorff(one, other), abs=1e-12)


@settings(max_examples=200, deadline=None)
@given(three)
def test_it_is_a_metric(clusterings):
    one, other, third = clusterings
    between = clustering_distance(one, other)
    assert between == pytest.approx(clustering_distance(other, one), abs=1e-12)
    assert between <= clustering_distance(one, third) + clustering_distance(third, other) + 1e-12
    assert (between == 0) == same_partition(one, other)
    assert 0 <= between <= 1


@settings(max_examples=100, deadline=None)
@given(three, st.data())
def test_weights_are_repetitions(clusterings, data):
    one, other, _ = clusterings
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(one), max_size=len(one)).filter(any))
    repeated = clustering_distance(np.repeat(one, weights), np.repeat(other, weights))
    assert clustering_distance(one, other, weights) == pytest.approx(repeated, abs=1e-12)


def test_names_do_not_matter():
    one = np.array([3, 3, -1, 7, 7, 7])
    names = np.array(["c", "c", "a", "b", "b", "b"])
    assert clustering_distance(one, names) == 0.0
    assert clustering_distance(one, [0.5, 0.5, 1.5, 2.5, 2.5, 2.5]) == 0.0
    assert clustering_distance(one, [True, True, False, False, False, False]) == pytest.approx(0.5)


def test_everything_together_and_everything_apart():
    n = 10
    assert clustering_distance(np.zeros(n), np.arange(n)) == pytest.approx((n - 1) / n)


def test_one_point_in_the_wrong_place_moves_it_by_its_share():
    one = np.repeat(np.arange(4), 25)
    other = one.copy()
    other[0] = 1
    assert clustering_distance(one, other) == pytest.approx(0.01)


def test_a_cluster_without_weight_is_none():
    assert clustering_distance([0, 0, 1], [0, 0, 0], [1.0, 1.0, 0.0]) == 0.0


def test_weights_of_any_size_are_ratios():
    assert clustering_distance([0, 0, 1, 1], [0, 0, 0, 1], np.full(4, 1e308)) == pytest.approx(0.25)


def test_many_clusters_take_little_memory():
    labels = np.arange(3000)
    assert clustering_distance(labels, labels[::-1]) == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0, 1]], [0, 1]), r"labels .*got an array of shape \(1, 2\)"),
        (([0, 1], []), r"others .*got an array of shape \(0,\)"),
        (([0, 1], [0, 1, 1]), "labels and others .*got 2 and 3"),
        (([0, 1], [0, 1], [1.0]), r"sample_weight must have shape \(2,\)"),
        (([0, 1], [0, 1], [1.0, -1.0]), "sample_weight must not be negative"),
        (([0, 1], [0, 1], [0.0, 0.0]), "sample_weight must not be all zero"),
    ],
)
def test_bad_clusterings_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        clustering_distance(*arguments)


# -- the discrepancy index ---------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 30), d=st.integers(1, 4), radius=st.floats(0.01, 5))
def test_the_index_counts_ends_farther_apart_than_the_radius(seed, n, d, radius):
    rng = np.random.default_rng(seed)
    one, other = rng.normal(size=(2, n, d))
    expected = sum(np.sqrt(sum((a - b) ** 2 for a, b in zip(x, y, strict=True))) > radius for x, y in zip(one, other, strict=True))
    assert discrepancy_index(one, other, radius) == expected / n
    assert discrepancy_index(other, one, radius) == expected / n


def test_ends_as_far_apart_as_the_radius_agree():
    assert discrepancy_index([[0.0], [0.0]], [[1.0], [1.5]], 1.0) == 0.5
    assert discrepancy_index(np.array([[1], [2]], np.uint8), np.array([[2], [1]], np.uint8), 0.5) == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((3, 2)), np.zeros((2, 2)), 1.0), "ends and others .*got 3 and 2"),
        ((np.zeros((3, 2)), np.zeros((3, 1)), 1.0), "others must have 2 columns"),
        ((np.zeros(3), np.zeros(3), 1.0), "ends must have two dimensions"),
        ((np.zeros((3, 2)), np.zeros((3, 2)), 0.0), "radius .*got 0.0"),
        ((np.full((3, 2), np.nan), np.zeros((3, 2)), 1.0), "ends must be finite"),
    ],
)
def test_bad_ends_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        discrepancy_index(*arguments)
