"""SparseMeanShift: what scikit-learn expects of mean shift, and how near few atoms come to the full density."""

import pickle
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import MeanShift
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

import reference_uses as oracle
from reduset import Gaussian, KernelMean, Mixture, NotReachedWarning, bandwidth
from reduset.modes import SparseMeanShift, clustering_distance, discrepancy_index

CENTRES = np.array([[0.0, 0.0], [6.0, 0.0], [2.0, 7.0]])
FEW = 100  # atoms, where a law does not ask how many: a fifth of the usual number
VIA = pytest.mark.parametrize("via", ["atoms", "mixture"])


def blobs(n=600, seed=0, d=2):
    centres = np.zeros((3, d))
    centres[:, :2] = CENTRES
    return make_blobs(n, centers=centres, cluster_std=1.0, random_state=seed)


def fitted(X=None, sample_weight=None, **options):
    X = blobs()[0] if X is None else X
    return SparseMeanShift(**{"bandwidth": 1.0, "random_state": 0} | options).fit(X, sample_weight=sample_weight)


@cache
def usual():
    """The usual blobs with the usual options, fitted once for all that only look at it."""
    return fitted()


@pytest.mark.filterwarnings("ignore::reduset.NotReachedWarning")
@VIA
def test_scikit_learn_finds_nothing_to_complain_of(via):
    results = check_estimator(SparseMeanShift(via=via), on_skip=None, on_fail=None)
    assert len(results) > 30
    assert [result["check_name"] for result in results if result["status"] == "failed"] == []


# -- clusters ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("rule", [1.0, None, "mode_clustering"])
def test_blobs_are_found(d, rule):
    X, y = blobs(d=d)
    shift = fitted(X, bandwidth=rule, size=FEW)
    assert len(shift.cluster_centers_) == 3
    assert adjusted_rand_score(y, shift.labels_) > 0.98
    nearest = np.linalg.norm(shift.cluster_centers_[:, None, :2] - CENTRES, axis=2).argmin(axis=1)
    assert sorted(nearest) == [0, 1, 2]
    assert np.linalg.norm(shift.cluster_centers_[:, :2] - CENTRES[nearest], axis=1).max() < 0.5


def test_scikit_learns_own_finds_the_same_blobs():
    X, _ = blobs()
    theirs = MeanShift(bandwidth=2.5, bin_seeding=True).fit(X)
    assert clustering_distance(usual().labels_, theirs.labels_) <= 0.02


def test_labels_are_those_of_predict_and_of_fit_predict():
    X, _ = blobs()
    shift = usual()
    np.testing.assert_array_equal(shift.predict(X), shift.labels_)
    np.testing.assert_array_equal(clone(shift).fit_predict(X), shift.labels_)
    alone = np.concatenate([shift.predict(X[k : k + 1]) for k in range(0, 600, 40)])
    np.testing.assert_array_equal(alone, shift.labels_[::40])


@pytest.mark.filterwarnings("ignore::reduset.NotReachedWarning")
@pytest.mark.parametrize("seed", range(6))
def test_predict_repeats_the_labels_where_modes_are_many(seed):
    rng = np.random.default_rng(seed)
    X = 3 * rng.normal(size=(250, 1 + seed % 3))
    shift = fitted(X, bandwidth=0.4, merge=[1.0, 0.3][seed % 2])
    assert len(shift.cluster_centers_) > 3
    np.testing.assert_array_equal(shift.predict(X), shift.labels_)


def test_new_points_go_to_the_basin_they_lie_in():
    shift = usual()
    Q = CENTRES + np.array([[0.5, -0.5]])
    nearest = np.linalg.norm(Q[:, None] - shift.cluster_centers_, axis=2).argmin(axis=1)
    np.testing.assert_array_equal(shift.predict(Q), nearest)
    np.testing.assert_array_equal(shift.predict([[1e9, -1e7], [-1e4, -1e4]]), nearest[[1, 0]])


def test_centres_are_modes_inside_the_data_the_highest_first():
    X, _ = blobs()
    shift = usual()
    centres = shift.cluster_centers_
    assert (centres >= X.min(axis=0)).all()
    assert (centres <= X.max(axis=0)).all()
    heights = shift.mean_.log_density(centres)
    assert (np.diff(heights) <= 0).all()
    around = centres[:, None] + 0.05 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    assert (shift.mean_.log_density(around.reshape(-1, 2)).reshape(-1, 4) < heights[:, None]).all()


def test_ends_are_near_the_centre_of_their_cluster():
    shift = usual()
    assert shift.ends_.shape == (600, 2)
    assert np.linalg.norm(shift.ends_ - shift.cluster_centers_[shift.labels_], axis=1).max() < 0.05


def test_a_huge_bandwidth_makes_one_cluster():
    shift = fitted(bandwidth=1e3, size=600)
    assert len(shift.cluster_centers_) == 1
    assert not shift.labels_.any()
    np.testing.assert_allclose(shift.cluster_centers_[0], blobs()[0].mean(axis=0), atol=0.01)


@pytest.mark.parametrize("width", [1e-5, 1e-20])
def test_a_tiny_bandwidth_makes_every_place_a_cluster(width):
    X = np.repeat(blobs(60)[0], 2, axis=0)
    shift = fitted(X, bandwidth=width)
    assert len(shift.cluster_centers_) == 60
    assert np.bincount(shift.labels_).tolist() == [2] * 60
    np.testing.assert_array_equal(shift.ends_, X)


def test_modes_closer_than_merge_are_one():
    X, _ = blobs()
    apart = fitted(X, size=FEW).cluster_centers_
    gaps = np.linalg.norm(apart[:, None] - apart, axis=2)
    widest, least = gaps.max(), gaps[gaps > 0].min()
    assert len(fitted(X, size=FEW, merge=float(least) * 1.05).cluster_centers_) < 3
    assert len(fitted(X, size=FEW, merge=float(widest) * 1.05).cluster_centers_) == 1


def test_orphans_are_labelled_minus_one():
    X = np.concatenate([blobs()[0], [[2.0, 30.0], [-40.0, 0.0]]])
    everyone, few = fitted(X, size=FEW), fitted(X, size=FEW, cluster_all=False)
    assert everyone.labels_.min() == 0
    assert few.predict([[-60.0, 60.0], [80.0, 0.0]]).tolist() == [-1, -1]
    distance = np.linalg.norm(X[:, None] - np.unique(few.ends_, axis=0), axis=2).min(axis=1)
    np.testing.assert_array_equal(few.labels_ == -1, distance > 3.0)
    np.testing.assert_array_equal(few.labels_[distance <= 3.0], everyone.labels_[distance <= 3.0])
    np.testing.assert_array_equal(few.predict(X), few.labels_)
    near = fitted(X, size=FEW, cluster_all=False, orphan=1.0)
    assert (near.labels_ == -1).sum() > (few.labels_ == -1).sum()


@pytest.mark.parametrize("size", [200, 1200])
def test_a_ridge_of_many_modes_is_predicted_as_it_was_fitted(size):
    """Modes around a ring are one by chains; the top of the chain is farther from most of them than the blob in the middle is."""
    rng = np.random.default_rng(0)
    angle = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    X = np.concatenate([10 * np.column_stack([np.cos(angle), np.sin(angle)]), rng.normal(0, 0.5, size=(200, 2))])
    shift = fitted(X, bandwidth=1.5, size=size)
    assert len(shift.cluster_centers_) == 2
    assert np.mean(shift.predict(X) == shift.labels_) > 0.999
    assert (fitted(X, bandwidth=1.5, size=size, cluster_all=False).labels_ == -1).sum() == 0


def test_data_that_change_later_change_nothing():
    X, _ = blobs()
    shift = fitted(X, size=len(X))
    before = shift.predict(X[:20].copy())
    rows = X[:20].copy()
    X[:] = 7.0
    np.testing.assert_array_equal(shift.predict(rows), before)


def test_steps_are_counted_and_limited():
    assert 1 < usual().n_iter_ < 300
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        assert fitted(size=FEW, max_iter=2).n_iter_ == 2
    assert fitted([[1.0, 2.0]]).n_iter_ == 1


# -- the density -------------------------------------------------------------------------------------------------------


def test_as_many_atoms_as_points_climb_the_full_density():
    X, _ = blobs(90)
    shift = fitted(X, size=90)
    full = KernelMean.from_samples(X, Gaussian(1.0, normalized=True))
    assert shift.compression_ is None
    assert shift.certificate_.relative_error == 0
    np.testing.assert_array_equal(shift.mean_.atoms, X)
    plain = oracle.plain_mean_shift(full, X, 60)
    assert np.linalg.norm(shift.ends_ - plain, axis=1).max() < 0.1
    assert clustering_distance(shift.labels_, np.round(plain).astype(int) @ [1000, 1]) == 0


def test_few_atoms_end_where_all_points_do():
    X, _ = blobs(2000)
    full, small = fitted(X, size=2000), fitted(X, tol=0.03)
    assert small.mean_.size < 60
    assert small.certificate_.relative_error <= 0.03
    assert discrepancy_index(full.ends_, small.ends_, 3.0) <= 0.01
    assert clustering_distance(full.labels_, small.labels_) <= 0.01


@pytest.mark.parametrize(("n", "atoms"), [(400, 400), (500, 500), (501, 500), (2000, 500)])
def test_five_hundred_atoms_are_usual_and_all_points_where_there_are_fewer(n, atoms):
    shift = fitted(blobs(n)[0])
    assert shift.mean_.size <= atoms  # without redundant ones
    assert (shift.compression_ is None) == (n == atoms)


def test_size_is_the_number_of_atoms():
    shift = fitted(size=25)
    assert shift.mean_.size == shift.compression_.size == 25
    assert shift.mean_.weights.min() >= 0
    assert shift.certificate_ == shift.compression_.certificate


def test_the_bandwidth_is_that_of_the_rule():
    X, _ = blobs()
    assert fitted(X, bandwidth=None, size=FEW).bandwidth_ == pytest.approx(bandwidth.mode_clustering(X))
    assert fitted(X, bandwidth="scott", size=FEW).bandwidth_ == pytest.approx(bandwidth.scott(X))
    assert fitted(X, bandwidth=0.9, size=FEW).bandwidth_ == 0.9


def test_a_tolerance_out_of_reach_is_said_and_the_atoms_climbed():
    with pytest.warns(NotReachedWarning, match="tol=0.03 .* 10 atoms; the error is .* larger tol or a larger max_size"):
        shift = fitted(tol=0.03, max_size=10)
    assert shift.mean_.size == 10
    assert not shift.compression_.reached


# -- mixtures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", [{"size": 20}, {"radius": 1.0}, {"tol": 0.02}, {}])
def test_few_components_end_where_all_points_do(goal):
    X, _ = blobs(2000)
    full, small = fitted(X, size=2000), fitted(X, via="mixture", **goal)
    assert small.mixture_.size <= 100
    assert small.mixture_.is_density
    assert small.mixture_.mass == pytest.approx(1.0)
    assert small.simplification_.mixture is small.mixture_
    assert small.certificate_.relative_error == small.simplification_.error < 0.05
    assert discrepancy_index(full.ends_, small.ends_, 3.0) <= 0.01
    assert clustering_distance(full.labels_, small.labels_) <= 0.01
    np.testing.assert_array_equal(small.predict(X), small.labels_)
    assert small.mean_ is None
    assert small.compression_ is None
    assert full.mixture_ is None
    assert full.simplification_ is None


def test_fewer_components_than_atoms_are_as_near():
    X, _ = blobs(3000)
    atoms, components = fitted(X, bandwidth=0.4, tol=0.05), fitted(X, bandwidth=0.4, tol=0.05, via="mixture")
    assert components.mixture_.size < atoms.mean_.size / 2


def test_as_many_components_as_points_climb_the_full_density():
    X, _ = blobs(90)
    full, mixed = fitted(X, size=90), fitted(X, size=200, via="mixture")
    assert mixed.simplification_ is None
    assert mixed.certificate_.relative_error == 0
    assert mixed.mixture_.size == 90
    np.testing.assert_allclose(mixed.ends_, full.ends_, atol=0.02)
    np.testing.assert_array_equal(mixed.labels_, full.labels_)
    X[:] = 7.0
    assert mixed.mixture_.means.std() > 1


def test_rows_in_great_numbers_are_gathered_and_the_interval_knows():
    X, y = blobs(12_000)
    shift = fitted(X, via="mixture", size=40)
    assert shift.simplification_.n_components < 3000
    assert shift.certificate_.method == "components"
    low, high = shift.certificate_.interval
    full = Mixture.from_mean(KernelMean.from_samples(X, Gaussian(1.0, normalized=True)))
    norm = full.norm()
    assert low <= full.distance(shift.mixture_) / norm <= high < 0.1
    assert shift.certificate_.norm == pytest.approx(norm, rel=0.02)
    assert adjusted_rand_score(y, shift.labels_) > 0.98


def test_fewer_places_than_rows_and_components_are_gathered_without_loss():
    X = np.repeat(blobs(60)[0], 200, axis=0)
    for options in ({"tol": 0.02}, {"size": 80}, {"radius": 1.0}):
        shift = fitted(X, via="mixture", **options)
        assert shift.mixture_.size <= shift.simplification_.n_components <= 60
        np.testing.assert_array_equal(shift.labels_, np.repeat(fitted(X[::200]).labels_, 200))


def test_with_a_tolerance_what_gathering_moves_is_a_small_part_of_it():
    shift = fitted(blobs(12_000)[0], via="mixture", tol=0.02)
    assert shift.certificate_.relative_error <= 0.02
    assert shift.certificate_.interval[1] <= 0.022


def test_a_tolerance_out_of_reach_of_components_is_said():
    with pytest.warns(NotReachedWarning, match="tol=0.01.*2.*max_size") as caught:
        shift = fitted(via="mixture", tol=0.01, max_size=2)
    assert caught[0].filename == __file__
    assert shift.mixture_.size == 2


@pytest.mark.parametrize("w", [None, "some"])
def test_weights_count_with_components_too(w):
    X, y = blobs(900)
    weights = (y != 2).astype(float) if w else None
    assert len(fitted(X, weights, via="mixture", size=30).cluster_centers_) == (2 if w else 3)


@pytest.mark.parametrize("width", [1e-5, 1e-20])
def test_tiny_bandwidths_are_climbed_with_components_too(width):
    X = np.repeat(blobs(60)[0], 2, axis=0)
    shift = fitted(X, bandwidth=width, via="mixture", size=120)
    assert len(shift.cluster_centers_) == 60
    np.testing.assert_allclose(shift.ends_, X, atol=1e-9)


def test_components_are_pickled_and_repeated():
    one, other = fitted(via="mixture", size=20), fitted(via="mixture", size=20)
    np.testing.assert_array_equal(one.ends_, other.ends_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(one)).predict(CENTRES), other.predict(CENTRES))
    far = one.predict([[1e9, -1e7], [-1e4, -1e4]])
    assert set(far) <= {0, 1, 2}


def ridge(n=3000, seed=0):
    """Five heaps in a row, so near that coarse components make other modes of them."""
    rng = np.random.default_rng(seed)
    return np.column_stack([1.3 * rng.integers(5, size=n), np.zeros(n)]) + 0.35 * rng.normal(size=(n, 2))


def test_components_are_two_bandwidths_wide_by_default_and_tell_near_heaps_apart():
    X = ridge()
    full = fitted(X, bandwidth=0.25, size=len(X))
    usual, wide = (fitted(X, bandwidth=0.25, via="mixture", **goal) for goal in ({}, {"size": 4}))
    asked = fitted(X, bandwidth=0.25, via="mixture", radius=0.5)
    np.testing.assert_array_equal(usual.mixture_.means, asked.mixture_.means)
    assert clustering_distance(usual.labels_, full.labels_) <= 0.02 < clustering_distance(wide.labels_, full.labels_)


def test_where_two_bandwidths_take_too_many_groups_there_are_a_hundred_components():
    X = np.random.default_rng(0).normal(size=(400, 8))
    assert fitted(X, bandwidth=0.3, via="mixture", max_size=150).mixture_.size == 100


@pytest.mark.covering_cases
@VIA
@pytest.mark.parametrize("n", [3000, 12_000])
def test_modes_are_those_of_all_rows_where_places_climb_on(via, n):
    X = ridge(n)
    f = KernelMean.from_samples(X, Gaussian(0.25, normalized=True))
    few = {"via": via, "size": 30, "bandwidth": 0.25}
    alone, finished = (fitted(X, finish=finish, **few) for finish in (False, True))

    def steepest(shift):
        modes = shift.cluster_centers_
        return float(np.linalg.norm(f.gradient(modes) / f(modes)[:, None], axis=1).max())

    assert steepest(finished) < 0.5 * steepest(alone)
    assert steepest(finished) < (0.01 if n <= 10_000 else 0.05)  # rows in cells of a third of a bandwidth move modes a little
    np.testing.assert_array_equal(finished.predict(X), finished.labels_)
    at = np.linalg.norm(finished.ends_ - finished.cluster_centers_[finished.labels_], axis=1)
    assert at.max() < 0.25
    assert finished.n_iter_ > alone.n_iter_


def test_places_climb_on_by_default_with_components_alone():
    X = ridge()
    for via, finish in (("mixture", True), ("atoms", False)):
        usual, same = fitted(X, via=via, size=20), fitted(X, via=via, size=20, finish=finish)
        np.testing.assert_array_equal(usual.ends_, same.ends_)
        assert not np.array_equal(usual.ends_, fitted(X, via=via, size=20, finish=not finish).ends_)


def test_modes_that_few_components_make_are_none():
    X = ridge()
    full = fitted(X, bandwidth=0.3, size=len(X))
    for seed in range(3):
        finished = fitted(X, bandwidth=0.3, via="mixture", size=60, random_state=seed)
        assert len(finished.cluster_centers_) <= len(full.cluster_centers_)


# -- input -------------------------------------------------------------------------------------------------------------


def test_single_precision_gives_the_same_labels():
    X, _ = blobs()
    np.testing.assert_array_equal(fitted(X.astype(np.float32)).labels_, usual().labels_)
    np.testing.assert_array_equal(fitted(np.round(X * 100).astype(int), bandwidth=100.0).labels_, usual().labels_)


@pytest.mark.parametrize("full", [True, False])
def test_weights_are_repetitions(full):
    X, _ = blobs(90)
    w = np.random.default_rng(0).integers(1, 4, size=90)
    rows = np.repeat(X, w, axis=0)
    sizes = {"size": 90}, {"size": len(rows)} if full else {"size": 90}
    weighed, repeated = fitted(X, w, **sizes[0]), fitted(rows, **sizes[1])
    np.testing.assert_allclose(weighed.cluster_centers_, repeated.cluster_centers_, atol=5e-3)
    np.testing.assert_array_equal(np.repeat(weighed.labels_, w), repeated.labels_)


@pytest.mark.parametrize("size", [600, 40])
def test_rows_without_weight_make_no_modes_and_are_labelled(size):
    X, y = blobs()
    shift = fitted(X, (y != 2).astype(float), size=size)
    assert len(shift.cluster_centers_) == 2
    assert shift.labels_.shape == (600,)
    assert np.linalg.norm(shift.cluster_centers_ - CENTRES[2], axis=1).min() > 3


def test_an_outlier_keeps_the_others_together():
    X = np.concatenate([blobs()[0], [[1e6, 0.0]]])
    shift = fitted(X, size=601)
    assert len(shift.cluster_centers_) == 4
    assert (shift.labels_ == shift.labels_[-1]).sum() == 1
    np.testing.assert_array_equal(shift.labels_[:-1], fitted(X[:-1], size=600).labels_)


def test_a_common_shift_changes_no_label():
    X = np.round(blobs()[0], 3)
    np.testing.assert_array_equal(fitted(X + 1e8, size=FEW).labels_, fitted(X, size=FEW).labels_)


def test_points_that_coincide_are_one_cluster():
    with pytest.warns(UserWarning, match="all points coincide"):
        shift = fitted(np.ones((20, 2)), bandwidth=None)
    np.testing.assert_array_equal(shift.cluster_centers_, [[1.0, 1.0]])
    assert not shift.labels_.any()


def test_the_same_seed_gives_the_same_clusters():
    one, other = fitted(size=FEW, random_state=3), fitted(size=FEW, random_state=3)
    np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
    np.testing.assert_array_equal(one.ends_, other.ends_)


def test_clones_are_not_fitted_and_pickles_are():
    shift = usual()
    with pytest.raises(NotFittedError):
        clone(shift).predict(CENTRES)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(shift)).predict(CENTRES), shift.predict(CENTRES))


def test_progress_is_reported():
    seen = []
    fitted(progress=lambda stage, done, total: seen.append(stage))
    assert "climb" in seen
    assert len(set(seen)) > 1


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"bandwidth": 0.0}, ValueError, "bandwidth .*got 0.0"),
        ({"bandwidth": "wide"}, ValueError, "bandwidth .*got 'wide'"),
        ({"size": 0}, ValueError, "size .*got 0"),
        ({"size": 5, "tol": 0.1}, ValueError, "give at most one of size, tol, plateau and radius, got size=5 and tol=0.1"),
        ({"via": "bins"}, ValueError, "via .*got 'bins'"),
        ({"radius": 1.0}, ValueError, "radius=1.0 needs via='mixture'"),
        ({"radius": 0.0, "via": "mixture"}, ValueError, "radius .*got 0.0"),
        (
            {"radius": 1.0, "size": 3, "via": "mixture"},
            ValueError,
            "at most one of size, tol, plateau and radius, got size=3 and radius=1.0",
        ),
        ({"size": 0, "via": "mixture"}, ValueError, "size .*got 0"),
        ({"tol": -1.0, "via": "mixture"}, ValueError, "tol .*got -1.0"),
        ({"tol": -1.0}, ValueError, "tol .*got -1.0"),
        ({"tol": 0.1, "max_size": 0}, ValueError, "max_size .*got 0"),
        ({"merge": 0.0}, ValueError, "merge .*got 0.0"),
        ({"max_iter": 0}, ValueError, "max_iter .*got 0"),
        ({"orphan": 0.0, "cluster_all": False}, ValueError, "orphan .*got 0.0"),
        ({"random_state": "luck"}, TypeError, "random_state .*got 'luck'"),
        ({"sample_weight": np.zeros(600)}, ValueError, "sample_weight must not be all zero"),
    ],
)
def test_bad_parameters_are_named(options, error, message):
    with pytest.raises(error, match=message):
        fitted(**options)
