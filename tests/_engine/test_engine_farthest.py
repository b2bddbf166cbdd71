"""Farthest-first is the definition's, index by index, whatever the data; leaves partition the points; nearest is nearest."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reference
from reduset._engine.distances import CITYBLOCK, SQUARED
from reduset._engine.farthest import FarthestFirst
from reduset._engine.leaves import LEAF, build_leaves
from reduset._engine.neighbours import nearest
from reduset._engine.profile import Frame

METRICS = {"euclidean": SQUARED, "cityblock": CITYBLOCK}
metrics = pytest.mark.parametrize("metric", METRICS)


def cloud(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def frames(X):
    """The data's own coordinates, and centred and scaled ones."""
    return [Frame(np.zeros(X.shape[1]), 1.0), Frame.around(X, 1.0), Frame.around(X, 0.37)]


def traverse(X, size, first=0, metric="euclidean", frame=None):
    order = FarthestFirst(X, frame or Frame(np.zeros(X.shape[1]), 1.0), first, METRICS[metric])
    order.extend(size)
    return order


def assert_is_the_definition(X, size, first=0, metric="euclidean"):
    for frame in frames(X):
        # ties fall as they do in the data's own coordinates, whatever the frame
        indices, radii = reference.farthest_first(np.asarray(X, np.float64), first, size, metric)
        radii = radii * frame.matrix
        order = traverse(X, size, first, metric, frame)
        assert order.indices.tolist() == indices.tolist()
        got = order.covering_radii()
        assert got.shape == radii.shape
        # coordinates of a frame with a centre are rounded differences: the distance of two of them is off by as much
        moved = np.abs(np.asarray(X, np.float64) - frame.centre).max() * frame.matrix if np.any(frame.centre) else 0.0
        assert np.all(got >= radii * (1 - 1e-15) - 2 * X.shape[1] * np.finfo(float).eps * moved)


# -- the definition -------------------------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@metrics
@pytest.mark.parametrize("d", [1, 2, 3, 5, 16, 17, 20, 64, 65, 100])
def test_a_normal_cloud(metric, d):
    assert_is_the_definition(cloud(1200, d), 100, metric=metric)


@pytest.mark.parametrize("n", [63, 64, 65, 127, 129, 257, 1023])
def test_any_number_of_points_chosen_to_the_last(n):
    assert_is_the_definition(cloud(n, 2), n)


@pytest.mark.parametrize("first", [0, 1, 511, 998, 999])
def test_any_first_index(first):
    X = cloud(1000, 3)
    assert_is_the_definition(X, 60, first)
    assert traverse(X, 1, first).indices.tolist() == [first]


@metrics
@pytest.mark.parametrize("d", [1, 3, 20])
def test_duplicates_are_never_chosen_twice(metric, d):
    X = cloud(60, d)[np.random.default_rng(1).integers(0, 60, 900)]
    distinct = len(np.unique(X, axis=0))
    assert_is_the_definition(X, 200, metric=metric)
    order = traverse(X, 200, metric=metric)
    assert len(order.indices) == distinct
    assert len(np.unique(X[order.indices], axis=0)) == distinct
    assert order.covering_radii()[-1] == 0


@pytest.mark.covering_cases
@pytest.mark.fast_cases(24)
@metrics
@pytest.mark.parametrize(("side", "d"), [(1000, 1), (31, 2), (10, 3), (4, 5)])
@pytest.mark.parametrize("scale", [1.0, 0.1, 1 / 3, 1e-3, 1e7])
def test_grids_where_most_distances_are_tied(metric, side, d, scale):
    X = np.stack(np.meshgrid(*[np.arange(side)] * d), axis=-1).reshape(-1, d) * scale
    X = X[np.random.default_rng(0).permutation(len(X))]
    assert_is_the_definition(X, 130, first=5, metric=metric)


@metrics
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.float32])
def test_whole_numbers_of_any_type(metric, dtype):
    X = np.random.default_rng(0).integers(0, 12, (900, 3)).astype(dtype)
    assert_is_the_definition(X, 150, metric=metric)


def test_whole_numbers_far_from_zero():
    X = np.random.default_rng(0).integers(0, 50, (700, 2))
    expected = traverse(X, 80).indices
    for shift in (10**6, -(10**12), 2**50):
        assert traverse(X + shift, 80).indices.tolist() == expected.tolist()
        assert traverse((X + shift).astype(np.float64), 80).indices.tolist() == expected.tolist()


@metrics
def test_whole_numbers_too_large_for_single_precision(metric):
    X = np.random.default_rng(0).integers(-(2**26), 2**26, (800, 2)) // 7 * 7
    assert_is_the_definition(X, 200, metric=metric)


@metrics
@pytest.mark.parametrize("d", [1, 2, 5, 30])
def test_points_on_a_line(metric, d):
    t = np.concatenate([np.linspace(0, 1, 400), np.random.default_rng(0).uniform(size=300)])
    assert_is_the_definition(t[:, None] * np.arange(1, d + 1)[None] + 3.0, 150, metric=metric)


@metrics
@pytest.mark.parametrize("d", [1, 2, 20])
def test_fine_structure_in_clusters_a_trillion_times_farther_apart(metric, d):
    """Single precision sees each cluster as one point; the traversal must go on inside them, in double."""
    rng = np.random.default_rng(0)
    X = (rng.uniform(-1e6, 1e6, (8, 1, d)) + 1e-6 * rng.normal(size=(8, 60, d))).reshape(-1, d)
    assert_is_the_definition(X, 120, metric=metric)
    order = traverse(X, 120, metric=metric)
    assert len(order.indices) == 120
    assert order.leaves.columns.dtype == np.float64


@pytest.mark.covering_cases
@metrics
@pytest.mark.parametrize("value", [0.0, 0.1, -7.0, 1e-300, 1e15])
@pytest.mark.parametrize("n", [1, 2, 3, 65, 300])
def test_points_all_equal_give_one_atom(metric, value, n):
    X = np.full((n, 2), value)
    assert_is_the_definition(X, n, first=n - 1, metric=metric)
    order = traverse(X, n, first=n - 1, metric=metric, frame=Frame.around(X, 0.3))
    assert order.indices.tolist() == [n - 1]
    assert order.covering_radii().tolist() == [0.0]


@pytest.mark.parametrize("value", [0.5, 3.0])
def test_asking_for_more_than_there_is_gives_what_there_is(value):
    assert traverse(np.array([[value]]), 2).indices.tolist() == [0]
    assert traverse(np.array([[value]]), 2, frame=Frame.around(np.array([[value]]), 0.3)).indices.tolist() == [0]
    assert sorted(traverse(np.array([[value], [0.25], [value]]), 9).indices.tolist()) == [0, 1]


def test_two_points():
    assert_is_the_definition(np.array([[0.1, 0.2], [0.3, -4.0]]), 2, first=0)
    assert_is_the_definition(np.array([[0.1, 0.2], [0.3, -4.0]]), 2, first=1)


@pytest.mark.parametrize("scale", [1e-160, 1e-30, 1e-19, 1e18, 1e19, 1e30, 1e100])
def test_the_scale_of_the_data_does_not_matter(scale):
    X = cloud(300, 3)
    power = 2.0 ** round(math.log2(scale))  # exact
    assert traverse(X * power, 80).indices.tolist() == reference.farthest_first(X, 0, 80)[0].tolist()


def test_one_outlier_does_not_blind_the_rest():
    X = np.concatenate([cloud(500, 2), [[1e9, 0.0]]])
    assert_is_the_definition(X, 100)


def test_the_smallest_numbers_there_are():
    X = np.array([[0.0, 0.0], [1.1e-308, 0.0], [5e-324, 3e-308]])
    assert_is_the_definition(X, 1)
    assert len(traverse(X, 3).indices) >= 1


@pytest.mark.parametrize("d", [5, 20])
def test_many_leaves_and_many_steps(d):
    """Enough points that leaves form groups and are refreshed in parallel ahead of their turn."""
    X = cloud(300_000 // d, d)
    indices, radii = reference.farthest_first(X, 3, 280)
    order = traverse(X, 280, first=3)
    assert order.indices.tolist() == indices.tolist()
    assert np.all(order.covering_radii() >= radii)


def test_a_linear_map_is_followed():
    X, matrix = cloud(800, 3), np.array([[1.0, 0.5, 0.0], [0.0, 2.0, -1.0], [0.0, 0.0, 0.1]])
    frame = Frame.around(X, matrix)
    assert traverse(X, 100, frame=frame).indices.tolist() == reference.farthest_first(frame.apply(X), 0, 100)[0].tolist()


@given(
    hnp.arrays(np.int64, st.tuples(st.integers(1, 80), st.integers(1, 4)), elements=st.integers(-3, 3)),
    st.sampled_from([1.0, 0.1, 0.7]),
    st.sampled_from(sorted(METRICS)),
)
@settings(max_examples=40, deadline=None)
def test_any_small_cloud_of_whole_numbers(X, scale, metric):
    assert_is_the_definition(X * scale, len(X), first=len(X) - 1, metric=metric)


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 40), st.integers(1, 3)), elements=st.floats(-1e6, 1e6)),
    st.sampled_from(sorted(METRICS)),
)
@settings(max_examples=40, deadline=None)
def test_any_small_cloud_of_floats(X, metric):
    X = np.where(np.abs(X) < 1e-150, 0.0, X)  # the square of less is 0, and rows so close are one place
    assert_is_the_definition(X, len(X), metric=metric)


# -- continuing, reporting ------------------------------------------------------------------------------------------------------


@metrics
@pytest.mark.parametrize("make", [lambda: cloud(900, 3), lambda: np.rint(cloud(900, 2) * 3), lambda: cloud(900, 2) * 1e-7 + 1.0])
def test_continuing_is_the_same_as_going_on_at_once(metric, make):
    X = make()
    at_once = traverse(X, 150, metric=metric)
    by_steps = FarthestFirst(X, Frame(np.zeros(X.shape[1]), 1.0), 0, METRICS[metric])
    for size in (1, 2, 3, 64, 65, 130, 20, 150):
        by_steps.extend(size)
        by_steps.covering_radii()  # looking changes nothing
    assert by_steps.indices.tolist() == at_once.indices.tolist()
    assert by_steps.covering_radii().tolist() == at_once.covering_radii().tolist()


def test_prefixes_nest():
    X = cloud(500, 4)
    assert traverse(X, 90).indices[:30].tolist() == traverse(X, 30).indices.tolist()


def test_progress_is_reported_to_the_end():
    seen = []
    order = FarthestFirst(cloud(500, 2), Frame(np.zeros(2), 1.0), 0)
    order.extend(200, lambda done, size: seen.append((done, size)))
    assert [size for _, size in seen] == [200] * len(seen)
    assert sorted(seen) == seen
    assert seen[-1] == (200, 200)


def test_the_points_are_not_written_to():
    X = cloud(500, 3)
    X.setflags(write=False)
    assert len(traverse(X, 50).indices) == 50


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda X: np.repeat(X, 2, axis=0)[::2]])
@pytest.mark.parametrize("d", [3, 20])
def test_memory_layout_changes_nothing(layout, d):
    X = cloud(400, d)
    assert traverse(layout(X), 60).indices.tolist() == traverse(X, 60).indices.tolist()


# -- radii ----------------------------------------------------------------------------------------------------------------------


@metrics
@pytest.mark.parametrize("d", [1, 2, 3, 5, 16, 20, 50])
def test_covering_radii_are_tight_from_above(metric, d):
    X = cloud(1500, d)
    radii = reference.farthest_first(X, 0, 60, metric)[1]
    got = traverse(X, 60, metric=metric).covering_radii()
    assert np.all(got >= radii)
    assert np.all(got <= radii * (1 + 1e-5))


@metrics
@pytest.mark.parametrize(
    "X",
    [
        cloud(800, 100),
        cloud(800, 2) * 1e-5 + 1.0,
        np.concatenate([cloud(400, 2), 1e4 + cloud(400, 2)]),
        np.concatenate([cloud(400, 2) * 1e-4, 1e2 + cloud(400, 2) * 1e-4]),
    ],
    ids=["many dimensions", "far from zero", "two clusters", "two tight clusters"],
)
def test_covering_radii_stay_tight_where_single_precision_is_short_of_digits(metric, X):
    frame = Frame.around(X, 1.0)
    order = traverse(X, 100, metric=metric, frame=frame)
    radii = reference.farthest_first(np.asarray(X), 0, 100, metric)[1]
    got = order.covering_radii()
    assert np.all(got >= radii * (1 - 1e-15))
    # rounded up by what float32 may have lost: in the sum, and in the coordinates of what is far away
    d, widest = X.shape[1], float(np.ptp(X, axis=0).max())
    assert np.all(got <= radii * (1 + 3e-7 * (d + 4)) + 3e-7 * d * widest)


def test_covering_radii_never_grow():
    got = traverse(cloud(900, 3), 200).covering_radii()
    assert np.all(np.diff(got) <= 0)


# -- leaves ---------------------------------------------------------------------------------------------------------------------


CLOUDS = {
    "normal": lambda d: cloud(3000, d),
    "duplicates": lambda d: cloud(9, d)[np.random.default_rng(1).integers(0, 9, 3000)],
    "equal": lambda d: np.ones((500, d)),
    "one": lambda d: np.ones((1, d)),
    "rare": lambda d: np.concatenate([np.zeros((2000, d)), np.ones((1, d)), np.zeros((2000, d))]),
    "skewed": lambda d: np.random.default_rng(0).lognormal(sigma=6, size=(3000, d)),
}


@pytest.mark.parametrize("kind", CLOUDS)
@pytest.mark.parametrize("d", [1, 2, 16, 17, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_leaves_hold_each_point_once_in_their_boxes(kind, d, dtype):
    X = CLOUDS[kind](d)
    frame = Frame.around(X, 0.8)
    leaves = build_leaves(X, frame, dtype)
    assert sorted(leaves.order.tolist()) == list(range(len(X)))
    assert leaves.starts[0] == 0
    assert leaves.starts[-1] == len(X)
    assert leaves.dimension == d
    lengths = np.diff(leaves.starts)
    assert lengths.min() >= 1
    assert lengths.max() <= LEAF
    Z = frame.apply(X)
    for leaf, (a, b) in enumerate(zip(leaves.starts[:-1], leaves.starts[1:], strict=True)):
        held = leaves.columns[a * d : b * d].reshape(d, b - a).T
        assert np.array_equal(held, Z[leaves.order[a:b]].astype(dtype))
        assert np.array_equal(leaves.low[leaf], held.min(axis=0))
        assert np.array_equal(leaves.high[leaf], held.max(axis=0))
        assert np.abs(held - Z[leaves.order[a:b]]).max() <= leaves.slack


# -- nearest --------------------------------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@metrics
@pytest.mark.parametrize("d", [1, 2, 3, 5, 16, 20, 39, 40, 100])
@pytest.mark.parametrize("m", [1, 2, 50])
def test_nearest_is_that_of_brute_force(metric, d, m):
    X = cloud(1100, d)
    atoms = X[np.random.default_rng(1).choice(1100, m, replace=False)] + 1e-3
    frame = Frame.around(X, 0.6)
    index, distance = nearest(X, atoms, frame, METRICS[metric])
    _, expected = reference.nearest(frame.apply(X), frame.apply(atoms), metric)
    assert np.allclose(distance, expected, rtol=1e-6, atol=0)
    own = reference.distances(frame.apply(X), frame.apply(atoms), metric)[np.arange(1100), index]
    assert np.allclose(distance, own, rtol=1e-13, atol=1e-300)


def test_nearest_with_given_leaves_is_the_same():
    X, atoms = cloud(2000, 3), cloud(40, 3, 1)
    frame = Frame.around(X, 1.0)
    for dtype in (np.float32, np.float64):
        _, distance = nearest(X, atoms, frame, leaves=build_leaves(X, frame, dtype))
        assert np.allclose(distance, reference.nearest(X, atoms)[1], rtol=1e-6)


@metrics
@pytest.mark.parametrize("d", [2, 41])
def test_an_atom_is_its_own_nearest(metric, d):
    X = cloud(700, d)
    frame = Frame.around(X, 1.0)
    index, distance = nearest(X, X[100:150], frame, METRICS[metric])
    assert index[100:150].tolist() == list(range(50))
    assert np.all(distance[100:150] == 0)


@pytest.mark.parametrize("d", [2, 41])
def test_nearest_of_a_grid_has_the_tied_distance(d):
    X = np.random.default_rng(0).integers(0, 4, (600, d))
    atoms = np.unique(X, axis=0)[::3]
    frame = Frame.around(X, 1.0)
    assert np.allclose(nearest(X, atoms, frame)[1], reference.nearest(X, atoms)[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [1, 63, 65, 8191, 8193, 16_385])
@pytest.mark.parametrize("d", [2, 40])
def test_blocks_do_not_show_in_nearest(n, d):
    X, atoms = cloud(n, d), cloud(7, d, 1)
    assert np.allclose(nearest(X, atoms, Frame.around(X, 1.0))[1], reference.nearest(X, atoms)[1], rtol=1e-6)


@pytest.mark.parametrize("d", [1, 3, 41])
def test_nearest_distances_are_right_to_the_resolution_of_single_precision(d):
    """Clusters far apart: a rounded coordinate may pick another atom, never one that is farther by more than the rounding."""
    rng = np.random.default_rng(0)
    X = (rng.uniform(-1e3, 1e3, (8, 1, d)) + rng.normal(size=(8, 100, d))).reshape(-1, d)
    atoms = X[::7]
    _, distance = nearest(X, atoms, Frame.around(X, 1.0))
    expected = reference.nearest(X, atoms)[1]
    slack = 2e3 * math.sqrt(d) * float(np.finfo(np.float32).eps)
    assert np.all(distance >= expected - 1e-9)
    assert np.all(distance <= expected + 2 * slack)
