"""Cohorts: distances against a double loop, the laws of shared atoms, goals, maps and where later bags go on them."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, NotReachedWarning, Student
from reduset.cohort import CohortMap, distances, procrustes
from reduset.cohort.shared_atoms import POOL_ROWS, BagTolerance, DistanceTolerance, PrefixLosses, pool
from reduset.weights import IterativeSpan, span_of

KERNELS = [
    Gaussian(0.8),
    Gaussian(0.6, space="l2", normalized=True),
    Laplacian(1.0),
    Student(1.0),
    FunctionKernel("rbf", gamma=0.7),
]


def cohort(sizes=(300, 400, 350, 500, 260, 320), d=2, seed=0):
    """Bags of two kinds, shifted a little from one to the next."""
    rng = np.random.default_rng(seed)
    return [rng.normal(0.2 * k + 2.0 * (k % 2), 1.0, size=(n, d)) for k, n in enumerate(sizes)]


def full_means(bags, kernel):
    return [KernelMean.from_samples(bag, kernel) for bag in bags]


def double_loop(means):
    """‖f_i − f_j‖ for all pairs, from the matrix of all kernel values."""
    found = np.zeros((len(means), len(means)))
    for i, j in itertools.combinations(range(len(means)), 2):
        f, g = means[i], means[j]
        X, w = np.concatenate([f.atoms, g.atoms]), np.concatenate([f.weights, -g.weights])
        K = f.kernel.product_gram(X, X) * np.exp(f.kernel.log_energy(X.shape[1]))
        found[i, j] = found[j, i] = np.sqrt(w @ K @ w)
    return found


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_distances_are_those_of_the_double_loop(kernel):
    means = full_means(cohort((40, 60, 50)), kernel)
    np.testing.assert_allclose(distances(means), double_loop(means), rtol=1e-7)
    np.testing.assert_allclose(distances(means[:2], means), double_loop(means)[:2], rtol=1e-7, atol=1e-7)


def test_distances_of_means_on_the_same_atoms_are_those_of_the_double_loop_however_close():
    rng = np.random.default_rng(0)
    atoms, weights = rng.normal(size=(30, 2)), rng.normal(size=30)
    change = rng.normal(size=30)
    far, near = ([KernelMean(atoms, weights + s * change, Gaussian(0.5)) for s in (0.0, scale, 2 * scale)] for scale in (1.0, 1e-9))
    np.testing.assert_allclose(distances(far), double_loop(far), rtol=1e-9)
    np.testing.assert_allclose(distances(near), 1e-9 * distances(far), rtol=1e-5)  # nothing cancels


def test_distances_refuse_what_is_no_list_of_alike_means():
    f = KernelMean.from_samples(cohort()[0], Gaussian(1.0))
    with pytest.raises(TypeError, match=r"means\[1\] must be a KernelMean"):
        distances([f, cohort()[0]])
    with pytest.raises(ValueError, match="same kernel"):
        distances([f, KernelMean.from_samples(cohort()[0], Gaussian(2.0))])
    with pytest.raises(ValueError, match="at least one"):
        distances([])


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("size", [5, 40])
def test_shared_atoms_never_overstate_a_distance_and_keep_their_bound(kernel, size):
    bags = cohort()
    fitted = CohortMap(kernel=kernel, size=size, layout="mds", random_state=0).fit(bags)
    D = distances(full_means(bags, kernel))
    assert np.all(fitted.distances_ <= D + 1e-7)
    assert np.all(fitted.distances_ + fitted.errors_ >= D - 1e-7)
    off = ~np.eye(len(bags), dtype=bool)
    assert np.all(fitted.errors_[off] > 0)
    assert np.all(np.diag(fitted.errors_) == 0)
    assert np.all(np.diag(fitted.distances_) == 0)


def test_what_shared_atoms_lose_enters_a_distance_in_the_square():
    bags = cohort()
    kernel = Gaussian(0.8)
    D = distances(full_means(bags, kernel))
    fitted = CohortMap(kernel=kernel, size=30, layout="mds", random_state=0).fit(bags)
    norms = [each.certificate.norm for each in fitted.compressions_]
    lost = np.array([each.certificate.relative_error * norm for each, norm in zip(fitted.compressions_, norms, strict=True)])
    gap = D**2 - fitted.distances_**2
    assert np.all(gap <= np.add.outer(lost, lost) ** 2 + 1e-9)  # Pythagoras, up to the rounding of the measured losses
    same = [each.mean.atoms for each in fitted.compressions_]
    assert all(np.array_equal(atoms, same[0]) for atoms in same)


def test_distances_of_bags_too_large_to_look_at_every_pair_keep_their_bound():
    rng = np.random.default_rng(1)
    bags = [rng.normal(0.3 * k, 1.0, size=(6000, 3)) for k in range(3)]
    fitted = CohortMap(kernel=Gaussian(1.0), size=60, layout="mds", random_state=0).fit(bags)
    assert {each.certificate.method for each in fitted.compressions_} == {"frequencies"}
    D = distances(full_means(bags, Gaussian(1.0)))
    assert np.all(fitted.distances_ <= D)
    assert np.all(fitted.distances_ + fitted.errors_ >= D)


def test_own_atoms_keep_the_bound_of_the_triangle():
    bags = cohort()
    kernel = Gaussian(0.8)
    fitted = CohortMap(kernel=kernel, size=15, atoms="own", layout="mds", random_state=0).fit(bags)
    D = distances(full_means(bags, kernel))
    assert np.all(np.abs(D - fitted.distances_) <= fitted.errors_ + 1e-7)
    assert not np.array_equal(fitted.compressions_[0].mean.atoms, fitted.compressions_[1].mean.atoms)


def test_without_compression_the_distances_are_the_full_ones():
    bags = cohort()
    fitted = CohortMap(kernel=Gaussian(0.8), atoms="all").fit(bags)
    np.testing.assert_allclose(fitted.distances_, double_loop(full_means(bags, Gaussian(0.8))), rtol=1e-7)
    assert fitted.compressions_ is None
    assert not fitted.errors_.any()


def test_all_points_as_atoms_lose_nothing():
    bags = cohort((20, 30, 25))
    fitted = CohortMap(kernel=Gaussian(0.3), size=75, layout="mds", random_state=0).fit(bags)
    np.testing.assert_allclose(fitted.distances_, distances(full_means(bags, Gaussian(0.3))), rtol=1e-6)
    assert fitted.errors_.max() < 1e-6


@pytest.mark.parametrize("select", ["greedy", "kmeans"])
def test_tol_is_reached_by_every_bag_with_atoms_to_no_spare(select):
    bags = cohort()
    fitted = CohortMap(kernel=Gaussian(0.8), tol=0.05, select=select, layout="mds", random_state=0).fit(bags)
    upper = [each.certificate.interval[1] for each in fitted.compressions_]
    assert 0.035 < max(upper) <= 0.05 * (1 + 1e-9)
    assert all(each.reached for each in fitted.compressions_)
    full = full_means(bags, Gaussian(0.8))
    for each, f in zip(fitted.compressions_, full, strict=True):
        assert each.mean.distance(f) <= 0.05 * f.norm() * (1 + 1e-6)


def test_by_default_the_distances_are_certain_to_one_percent():
    fitted = CohortMap(kernel=Gaussian(0.8), layout="mds", random_state=0).fit(cohort())
    certain = np.linalg.norm(fitted.errors_) / np.linalg.norm(fitted.distances_)
    assert 0.005 < certain <= 0.01 * (1 + 1e-6)


def test_bags_that_hardly_differ_are_said_to_be_less_certain():
    bag = cohort()[0]
    with pytest.warns(NotReachedWarning, match="the bags are nearly equal: .* which is above 1%") as caught:
        fitted = CohortMap(kernel=Gaussian(0.8), layout="mds", random_state=0).fit([bag, bag + 1e-3, bag - 1e-3])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    norms = [each.certificate.norm for each in fitted.compressions_]
    assert np.linalg.norm(fitted.errors_) > 0.01 * np.linalg.norm(fitted.distances_)
    assert np.linalg.norm(fitted.errors_) <= 1e-4 * np.linalg.norm(np.tile(norms, (3, 1))) * 1.05  # 1 % of 1 %


def test_what_is_not_reached_is_said_with_the_bags_that_did_not():
    bags = dict(zip("abcdef", cohort(), strict=True))
    with pytest.warns(NotReachedWarning, match=r"tol=0.001 was not reached by 6 of 6 bags \('a', 'b', 'c', 'd', 'e', …") as caught:
        fitted = CohortMap(kernel=Gaussian(0.3), tol=1e-3, max_size=20, layout="mds", random_state=0).fit(bags)
    assert caught[0].filename == __file__
    assert not any(each.reached for each in fitted.compressions_)
    with pytest.warns(NotReachedWarning, match="certain to 1%"):
        CohortMap(kernel=Gaussian(0.1), max_size=20, layout="mds", random_state=0).fit(bags)
    with pytest.warns(NotReachedWarning, match="own|tol=0.001"):
        CohortMap(kernel=Gaussian(0.3), tol=1e-3, atoms="own", max_size=20, layout="mds", random_state=0).fit(bags)


@pytest.mark.parametrize("goal", [BagTolerance(0.3), DistanceTolerance(0.05)])
def test_the_fewest_atoms_of_a_goal_are_found_by_halving(goal):
    rng = np.random.default_rng(0)
    losses = PrefixLosses(rng.normal(size=(5, 40)) * np.geomspace(1, 0.01, 40), np.full(5, 1e-4))
    within = [goal.lack(losses, m) <= 1 for m in range(1, 41)]
    assert within[-1]
    assert not within[0]
    assert goal.fewest(losses) == within.index(True) + 1


def test_the_pool_gives_every_bag_the_same_mass():
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(n, 2)) for n in (10, 100)]
    pooled = pool(bags, Gaussian("median"), rng)
    assert pooled.weights[:10].sum() == pytest.approx(0.5)
    assert pooled.mass == pytest.approx(1)
    large = [np.full((n, 1), float(k)) for k, n in enumerate((100, POOL_ROWS, 3 * POOL_ROWS))]
    pooled = pool(large, Gaussian(1.0), rng)
    assert pooled.size <= POOL_ROWS
    for k in range(3):
        assert pooled.weights[pooled.atoms[:, 0] == k].sum() == pytest.approx(1 / 3)


def test_the_bandwidth_comes_from_all_bags():
    fitted = CohortMap(kernel=Gaussian("iqr"), layout="mds", random_state=0).fit(cohort((200, 200, 200)))
    together = np.concatenate(cohort((200, 200, 200)))
    assert fitted.kernel_ == Gaussian("iqr").resolve(together)


def test_a_span_faces_another_mean_as_if_made_for_it():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(12, 2)), np.zeros((2, 2))])  # the last is redundant
    kernel = Gaussian(1.0)
    one, other = rng.random(14), rng.random(14)
    span = span_of(kernel, X, one)
    facing, anew = span.facing(other), span_of(kernel, X, other)
    for kind in ("free", "simplex"):
        np.testing.assert_array_equal(facing.weights(kind, 1.0, span.size), anew.weights(kind, 1.0, span.size))
    assert facing.energy(5) == anew.energy(5)
    np.testing.assert_array_equal(span.kappa, one[span.kept])
    iterative = IterativeSpan(kernel, X[:12], one[:12]).facing(other[:12])
    assert iterative.energy(12) == pytest.approx(span_of(kernel, X[:12], other[:12]).energy(12), rel=1e-6)


def test_the_order_of_the_bags_only_orders_the_results():
    bags = cohort()
    order = np.random.default_rng(3).permutation(len(bags))
    options = {"kernel": Gaussian(0.8), "layout": "mds", "random_state": 0}
    for atoms, slack in (("all", 1e-9), ("shared", None)):
        one = CohortMap(atoms=atoms, **options).fit(bags)
        other = CohortMap(atoms=atoms, **options).fit([bags[k] for k in order])
        there = one.distances_[np.ix_(order, order)]
        # other atoms are selected from rows in another order: the distances agree within what both are certain to
        allowed = slack if slack is not None else np.maximum(one.errors_[np.ix_(order, order)], other.errors_)
        assert np.all(np.abs(there - other.distances_) <= allowed + 1e-12)
        assert procrustes(other.embedding_, one.embedding_[order]).correlation > 0.999


def test_the_same_seed_gives_the_same_map():
    one, other = (CohortMap(random_state=4, n_neighbors=3).fit(cohort()) for _ in range(2))
    np.testing.assert_array_equal(one.embedding_, other.embedding_)
    np.testing.assert_array_equal(one.errors_, other.errors_)


@pytest.mark.covering_cases
@pytest.mark.parametrize("layout", ["isomap", "mds"])
@pytest.mark.parametrize("atoms", ["shared", "all"])
def test_a_fitted_bag_lands_on_its_place(layout, atoms):
    bags = cohort()
    fitted = CohortMap(layout=layout, atoms=atoms, n_neighbors=3, random_state=0).fit(bags)
    again = fitted.transform(bags)
    np.testing.assert_allclose(again, fitted.embedding_, atol=1e-3 * np.abs(fitted.embedding_).max())
    D, errors = fitted.distances_to_fitted(bags)
    np.testing.assert_allclose(D, fitted.distances_, atol=1e-7)
    assert errors.shape == D.shape


@pytest.mark.parametrize("layout", ["isomap", "mds"])
def test_a_later_bag_lands_among_its_like(layout):
    bags = cohort((300,) * 8)
    fitted = CohortMap(layout=layout, n_neighbors=4, random_state=0).fit(bags[1:])
    left_out = fitted.transform([bags[0]])[0]
    nearest = np.argsort(np.linalg.norm(fitted.embedding_ - left_out, axis=1))[:2] + 1
    assert all(k % 2 == 0 for k in nearest)  # bags of the same kind


@pytest.mark.parametrize("shift", [5.0, 100.0])
@pytest.mark.parametrize("options", [{}, {"tol": 0.05}, {"size": 40}, {"size": 10, "atoms": "own"}], ids=str)
def test_a_later_bag_that_the_atoms_do_not_see_is_compared_in_full(shift, options):
    bags = cohort()
    far = bags[0] * 3 + shift  # wider too, which own atoms of the same number do not cover
    fitted = CohortMap(kernel=Gaussian(0.8), layout="mds", random_state=0, **options).fit(bags)
    with pytest.warns(NotReachedWarning, match=r"1 of the later bags \('far'\) have errors up to") as caught:
        D, errors = fitted.distances_to_fitted({"near": bags[1], "far": far})
    assert caught[0].filename == __file__
    truth = distances(full_means([bags[1], far], Gaussian(0.8)), full_means(bags, Gaussian(0.8)))
    assert np.all(np.abs(D - truth) <= errors + 1e-7)
    np.testing.assert_allclose(D[1], truth[1], rtol=0.02 if "atoms" not in options else 0.1)
    with pytest.warns(NotReachedWarning, match="later bags") as caught:
        assert np.isfinite(fitted.transform([far])).all()
    assert caught[0].filename == __file__


def test_a_fitted_bag_that_no_atom_sees_has_lost_all_of_its_norm():
    bags = [cohort()[0], cohort()[0], cohort()[0] + 1000]
    fitted = CohortMap(kernel=Gaussian(0.8), layout="mds", size=1, random_state=0).fit(bags)
    truth = distances(full_means(bags, Gaussian(0.8)))
    assert np.all(fitted.distances_ <= truth + 1e-7)
    assert np.all(truth <= fitted.distances_ + fitted.errors_ + 1e-7)


def test_the_points_of_the_caller_are_not_kept():
    bags = cohort()
    fitted = CohortMap(kernel=Gaussian(0.8), layout="mds", atoms="all").fit(bags)
    before = fitted.distances_to_fitted(cohort())[0]
    for bag in bags:
        bag += 1.0
    np.testing.assert_array_equal(fitted.distances_to_fitted(cohort())[0], before)


def test_mds_keeps_distances_that_fit_on_the_plane():
    rings = [np.array([[np.cos(a), np.sin(a)], [np.cos(a), np.sin(a)]]) * 0.01 for a in np.linspace(0, 5, 7)]
    fitted = CohortMap(kernel=Gaussian(1.0), layout="mds", atoms="all").fit(rings)  # far inside a bandwidth the geometry is flat
    gaps = np.linalg.norm(fitted.embedding_[:, None] - fitted.embedding_, axis=2)
    np.testing.assert_allclose(gaps, fitted.distances_, atol=1e-3 * fitted.distances_.max())


def test_bags_that_coincide_share_a_place():
    bag = cohort()[0]
    with pytest.warns(NotReachedWarning, match="nearly equal"):
        fitted = CohortMap(kernel=Gaussian(1.0), layout="mds", random_state=0).fit([bag, bag, bag])
    assert not fitted.distances_.any()
    assert not fitted.embedding_.any()


def test_procrustes_undoes_a_shift_a_turn_and_a_scale():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 2))
    turned = 3 * A @ np.array([[0.6, 0.8], [0.8, -0.6]]) + 5
    found = procrustes(turned, A)
    np.testing.assert_allclose(found.aligned, A, atol=1e-12)
    assert found.correlation == pytest.approx(1)
    assert found.residual == pytest.approx(0, abs=1e-7)
    noisy = procrustes(turned + rng.normal(0, 1, A.shape), A)
    assert noisy.residual == pytest.approx(np.sqrt(1 - noisy.correlation**2))
    assert 0.5 < noisy.correlation < 0.99
    for turn in np.linspace(0, 6, 60):  # no other turn does better
        R = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
        centred, goal = (turned - turned.mean(axis=0)) @ R, A - A.mean(axis=0)
        assert np.sum(centred * goal) / np.linalg.norm(centred) / np.linalg.norm(goal) <= found.correlation + 1e-12


def test_procrustes_refuses_maps_that_cannot_be_compared():
    with pytest.raises(ValueError, match="same shape"):
        procrustes(np.eye(3), np.eye(4))
    with pytest.raises(ValueError, match="embedding must have different rows"):
        procrustes(np.ones((3, 2)), np.eye(3)[:, :2])


def test_it_is_an_estimator():
    estimator = CohortMap(size=7, kernel=Gaussian(1.0), n_neighbors=4)
    assert clone(estimator).get_params() == estimator.get_params()
    with pytest.raises(NotFittedError):
        estimator.transform(cohort())
    with pytest.raises(NotFittedError):
        estimator.plot()
    embedding = estimator.fit_transform(cohort())
    np.testing.assert_array_equal(embedding, estimator.embedding_)
    assert estimator.compressions_[0].size == 7
    assert estimator.n_features_in_ == 2


def test_a_compression_of_a_bag_can_be_asked_like_any_other():
    bags = cohort()
    fitted = CohortMap(kernel=Gaussian(0.8), size=20, layout="mds", random_state=0).fit(bags)
    one = fitted.compressions_[0]
    assert "atoms shared" in one.details()
    assert one.at(10).certificate.relative_error > one.certificate.relative_error
    again = one.reweigh(KernelMean.from_samples(bags[0], Gaussian(0.8)), rng=0)
    np.testing.assert_allclose(again.mean.weights, one.mean.weights, rtol=1e-6)


def test_progress_is_told():
    stages = []
    CohortMap(layout="mds", random_state=0, progress=lambda stage, done, total: stages.append(stage)).fit(cohort())
    assert {"selecting", "weighing bags"} <= set(stages)


def test_groups_too_far_apart_to_be_neighbours_are_joined_with_a_warning():
    rng = np.random.default_rng(0)
    bags = [rng.normal(10 * (k // 4), 1, size=(100, 2)) for k in range(8)]
    with pytest.warns(UserWarning, match="connected components") as caught:
        fitted = CohortMap(kernel=Gaussian(1.0), n_neighbors=3, random_state=0).fit(bags)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitted.transform(bags).shape == (8, 2)
