"""Mean shift: each step by the definition and uphill, ends where the gradient vanishes, trajectories that meet go on as one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_uses as oracle
from cases import COVARIANCE, cloud
from reduset import Gaussian, KernelMean, Laplacian
from reduset.modes import clustering_distance
from reduset.modes.mean_shift import mean_shift, merge_modes


def blobs(n=150, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) + np.array([[0, 0], [6, 0], [2, 7]])[np.arange(n) % 3]


def mean_of(X, h=0.8, w=None, covariance=None):
    return KernelMean.from_samples(X, Gaussian(h, covariance=covariance, normalized=True), w)


def labels_of(mean, X, **options):
    return labels_by(mean, mean_shift(mean, X, **options))


def labels_by(mean, found):
    modes, mode_of = merge_modes(mean, found.limits, 1.0)
    return mode_of[found.assignments], modes


@pytest.mark.parametrize("covariance", [None, COVARIANCE])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_step_is_the_definition(covariance, dtype):
    X = blobs().astype(dtype)
    w = np.random.default_rng(1).uniform(size=150)
    mean = mean_of(X, 0.8, w, covariance)
    starts = blobs(20, seed=3)
    found = mean_shift(mean, starts, max_steps=1, merge_distance=0)
    np.testing.assert_allclose(found.ends, oracle.plain_mean_shift(mean, starts, 1), rtol=1e-5, atol=1e-6)
    assert found.steps == 1


def test_five_steps_are_five_times_the_definition():
    mean, starts = mean_of(blobs()), blobs(20, seed=3)
    np.testing.assert_allclose(mean_shift(mean, starts, 5, 0, 0).ends, oracle.plain_mean_shift(mean, starts, 5), atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 30),
    d=st.integers(1, 4),
    h=st.sampled_from([0.05, 0.5, 3.0]),
    steps=st.integers(0, 6),
    far=st.sampled_from([1.0, 30.0]),
)
def test_each_step_goes_uphill(seed, n, d, h, steps, far):
    rng = np.random.default_rng(seed)
    mean = mean_of(rng.normal(size=(n, d)), h, rng.uniform(0.1, 1, size=n))
    starts = far * rng.normal(size=(8, d))
    before = mean_shift(mean, starts, steps, merge_distance=0, min_step=0).ends
    after = mean_shift(mean, starts, steps + 1, merge_distance=0, min_step=0).ends
    assert (mean.log_density(after) >= mean.log_density(before) - 1e-9).all()


@pytest.mark.parametrize("meet", [0.0, 0.03])
def test_ends_are_stationary(meet):
    """A step of at most 1e-3 bandwidths is left, and the gradient is the step times f/h²."""
    mean = mean_of(blobs())
    ends = mean_shift(mean, blobs(), 1000, meet).ends
    step = np.linalg.norm(mean.gradient(ends), axis=1) * 0.8**2 / mean(ends)
    assert step.max() <= 1e-3 * 0.8
    finer = mean_shift(mean, blobs(), 5000, meet, min_step=1e-5).ends
    assert (np.linalg.norm(mean.gradient(finer), axis=1) * 0.8**2 / mean(finer)).max() <= 1e-5 * 0.8 * 1.1


def test_no_more_steps_than_allowed():
    mean = mean_of(blobs())
    assert mean_shift(mean, blobs(), max_steps=3).steps == 3
    free = mean_shift(mean, blobs(), max_steps=10_000)
    assert free.steps < 10_000


def test_starts_are_not_changed_and_reports_are_made():
    mean, X, seen = mean_of(blobs()), blobs(), []
    before = X.copy()
    found = mean_shift(mean, X, 50, report=lambda done, total: seen.append((done, total)))
    np.testing.assert_array_equal(X, before)
    assert seen == [(k + 1, 50) for k in range(found.steps)]


def test_owners_are_numbers_of_distinct_places():
    found = mean_shift(mean_of(blobs()), blobs())
    assert sorted(set(found.assignments)) == list(range(len(found.limits)))
    np.testing.assert_array_equal(found.ends, found.limits[found.assignments])


@pytest.mark.parametrize("covariance", [None, COVARIANCE])
def test_going_on_as_one_changes_hardly_any_label(covariance):
    X = 2 * np.random.default_rng(0).normal(size=(1500, 2))  # one cloud, whose basins have long borders
    mean = mean_of(X, 0.35, covariance=covariance)
    found = mean_shift(mean, X)
    one, modes = labels_by(mean, found)
    apart, _ = labels_of(mean, X, merge_distance=0.0)
    assert len(modes) > 8
    assert clustering_distance(one, apart) <= 0.002
    assert clustering_distance(labels_of(mean, X, merge_distance=1.0)[0], apart) > 0.01  # where they meet too soon
    assert len(found.limits) < len(X) / 4


def test_points_far_away_end_at_the_mode_behind_the_nearest_atom():
    X = blobs()
    mean = mean_of(X)
    labels, modes = labels_of(mean, np.concatenate([X, [[1e3, 0.0], [2.0, 1e5], [-1e9, -1e9]]]))
    expected = [np.linalg.norm(modes - place, axis=1).argmin() for place in ([6, 0], [2, 7], [0, 0])]
    assert labels[-3:].tolist() == expected
    assert len(modes) == 3


def test_a_far_point_does_not_end_at_an_atom_without_weight():
    X = np.concatenate([blobs(), [[1e4, 0.0]]])
    mean = mean_of(X, w=np.repeat([1.0, 0.0], [150, 1]))
    found = mean_shift(mean, [[1e4, 0.0], [1e4, 3.0]])
    assert found.steps < 30
    assert np.linalg.norm(found.ends - [6, 0], axis=1).max() < 1


def test_an_atom_of_next_to_no_weight_is_an_end():
    mean = mean_of(np.array([[0.0], [1e4]]), 1.0, [1.0, 1e-60])
    found = mean_shift(mean, [[1e4 + 100.0], [50.0]])
    np.testing.assert_allclose(found.ends, [[1e4], [0.0]], atol=1e-9)
    assert found.steps <= 3


@pytest.mark.parametrize("h", [1e-20, 1e-150])
def test_bandwidths_below_any_distance_leave_every_point_where_it_is(h):
    X = blobs(40)
    np.testing.assert_array_equal(mean_shift(mean_of(X, h), X).ends, X)


def test_bandwidths_below_any_distance_lead_to_the_nearest_of_few_atoms():
    X = blobs(40)
    ends = mean_shift(mean_of(X[:5], 1e-20), X).ends
    np.testing.assert_array_equal(ends, X[:5][np.linalg.norm(X[:, None] - X[:5], axis=2).argmin(axis=1)])


def test_two_bumps_have_the_modes_that_calculus_says():
    """Two equal bumps h apart by 2a have one mode between them up to a = h, and two beyond, where x = a·tanh(a·x/h²)."""
    starts = np.linspace(-4, 4, 41)[:, None]
    one = mean_shift(mean_of(np.array([[-0.9], [0.9]]), 1.0), starts, 5000, min_step=1e-6).ends
    assert np.abs(one).max() < 1e-3
    ends = mean_shift(mean_of(np.array([[-2.0], [2.0]]), 1.0), starts[starts[:, 0] > 0.1], 5000, min_step=1e-8).ends
    np.testing.assert_allclose(2 * np.tanh(2 * ends), ends, atol=1e-6)
    assert ends.min() > 1.9


def test_a_shift_of_everything_shifts_the_ends():
    X = np.round(blobs(), 3)
    near, far = mean_shift(mean_of(X), X).ends, mean_shift(mean_of(X + 1e8), X + 1e8).ends
    np.testing.assert_allclose(far - 1e8, near, atol=2e-2)


def test_other_kernels_are_refused():
    with pytest.raises(TypeError, match=r"mean .*got Laplacian"):
        mean_shift(KernelMean.from_samples(cloud(5), Laplacian(1.0)), cloud(5))


# -- merging -----------------------------------------------------------------------------------------------------------


def test_modes_come_highest_first_and_are_the_highest_of_their_places():
    mean = mean_of(np.array([[0.0], [0.1], [5.0], [9.0]]), 0.5, [3.0, 3.0, 1.0, 2.0])
    places = np.array([[5.0], [0.05], [0.3], [9.0], [9.2]])
    modes, which = merge_modes(mean, places, 1.0)
    np.testing.assert_array_equal(modes, [[0.05], [9.0], [5.0]])
    assert which.tolist() == [2, 0, 0, 1, 1]
    assert (np.diff(mean.log_density(modes)) < 0).all()


def test_places_merge_by_chains_within_the_radius_in_bandwidths():
    mean = mean_of(np.zeros((1, 2)), 2.0, covariance=[1.0, 100.0])
    places = np.array([[0.0, 0.0], [1.9, 0.0], [3.8, 0.0], [0.0, 19.0], [0.0, 45.0]])
    _, which = merge_modes(mean, places, 1.0)
    assert which.tolist() == [0, 0, 0, 0, 1]
    assert merge_modes(mean, places, 0.9)[1].max() == 4


def test_a_single_place_is_the_mode():
    modes, which = merge_modes(mean_of(np.zeros((1, 2))), np.array([[0.5, 0.5]]), 1.0)
    np.testing.assert_array_equal(modes, [[0.5, 0.5]])
    assert which.tolist() == [0]
