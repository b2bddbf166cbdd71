"""simplify at its limits: groups that empty or collapse, errors that are estimated, progress and interruption, and its words."""

import threading

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, Mixture, simplify
from reduset.simplification import grouping, l2_error
from reference_mixture import SHAPES, covariances_of
from simplification_cases import identical, many, measured

EVERY_OTHER = pytest.mark.parametrize("other", SHAPES)
METHODS = pytest.mark.parametrize("method", ["l2", "zhang", "kl"])


# -- what goes wrong in groups ----------------------------------------------------------------------------------------


@METHODS
@EVERY_OTHER
def test_components_that_coincide_are_one(method, other):
    f = many(6, shape="spherical", spread=5.0)
    twice = Mixture(np.tile(f.weights, 5) / 5, np.tile(f.means, (5, 1)), np.tile(f.covariances, 5))
    found = simplify(twice, 6, method=method, covariance=other, rng=0)
    assert found.error < 1e-6
    assert simplify(twice, 30, method=method, covariance=other, rng=0, polish=5).error < 1e-6


@METHODS
def test_components_of_one_place_and_many_widths_are_given_the_size_that_is_asked_for(method):
    f = Mixture(np.full(10, 0.1), np.zeros((10, 2)), np.geomspace(0.01, 100, 10))
    found = simplify(f, 4, method=method, rng=0)
    assert found.size == 4
    assert found.error < 0.2
    assert simplify(f, tol=0.2, rng=0).size <= 5


def test_groups_that_empty_begin_anew_and_are_counted():
    """Two heaps far apart, one of them with three of the four first groups: regrouping empties some."""
    rng = np.random.default_rng(0)
    counted = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        f = Mixture(np.full(40, 1 / 40), rng.normal(size=(40, 1)) * 0.05, np.full(40, 1.0))
        found = simplify(f, 12, start=np.arange(40) % 12, rng=0, covariance="spherical", polish=False)
        assert found.size == 12
        assert set(found.groups) <= set(range(12))
        counted += found.reseeded
        if found.reseeded:
            assert f"{found.reseeded} empty groups were restarted" in str(found)
    assert counted > 0


@pytest.mark.covering_cases
@EVERY_OTHER
@METHODS
def test_needles_on_a_line_collapse_to_nothing_that_is_not_a_covariance(method, other):
    """A covariance of the group that is singular beside its length: what comes out is finite, and a mixture."""
    rng = np.random.default_rng(0)
    for variance in (1e-10, 1e-14, 1e-18):
        f = Mixture(np.full(30, 1 / 30), rng.normal(size=(30, 1)) * [1.0, 1.0], np.full(30, variance))
        found = simplify(f, 3, method=method, covariance=other, rng=0, polish=5)
        assert np.isfinite(found.error)
        assert found.error <= 1 + 1e-9


@pytest.mark.parametrize("seed", [3, 11])
def test_widths_of_any_size_leave_covariances_that_a_mixture_takes(seed):
    rng = np.random.default_rng(seed)
    f = Mixture(np.full(200, 0.005), rng.normal(size=(200, 6)), 10.0 ** rng.uniform(-8, 4, 200))
    found = simplify(f, 8, rng=0)
    assert found.error == pytest.approx(measured(f, found), rel=1e-6)


@EVERY_OTHER
def test_many_dimensions_and_small_widths_underflow_nowhere(other):
    rng = np.random.default_rng(1)
    f = Mixture(np.full(20, 1 / 20), rng.normal(size=(20, 60)), np.full(20, 1e-14))
    found = simplify(f, 4, covariance=other, rng=0, polish=3)
    assert np.isfinite(found.error)


# -- more components than can be paired -------------------------------------------------------------------------------


def test_the_interval_of_an_estimate_holds_the_exact_error(monkeypatch):
    f = many(800, 2, "spherical", shared=True)
    exact = simplify(f, 8, rng=0, polish=3)
    assert exact.interval[0] == exact.interval[1]
    monkeypatch.setattr(l2_error, "LARGEST_EXACT", 600)
    monkeypatch.setattr(l2_error, "SECONDS", 1e-9)
    inside, widths = 0, []
    for seed in range(40):
        found = simplify(f, 8, rng=seed, polish=3)
        low, high = found.interval
        assert low <= found.error <= high
        inside += low <= measured(f, found) <= high
        widths.append(high - low)
    assert inside >= 34
    assert 0 < np.median(widths) < exact.error
    assert all(type(number) is float for number in (found.error, *found.interval))
    assert "(95 %:" in str(found)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("gap", [2.0, 1.3])
def test_the_interval_holds_where_signs_cancel(gap, monkeypatch):
    """The norm of f is an estimate too, and the worse the more its components cancel."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    f = Mixture(np.repeat([1.0, -1.0], 400), np.vstack([X, X + gap * rng.normal(size=X.shape)]), np.full(800, 0.3))
    monkeypatch.setattr(l2_error, "LARGEST_SIGNED", 600)
    monkeypatch.setattr(l2_error, "SECONDS", 1e-9)
    inside = 0
    for seed in range(30):
        found = simplify(f, 8, covariance="spherical", rng=seed, polish=False)
        low, high = found.interval
        inside += low <= measured(f, found) <= high
    assert inside >= 25


def test_a_norm_that_no_sample_can_tell_from_zero_is_said(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(700, 2))
    f = Mixture(np.repeat([1.0, -1.0], 700), np.vstack([X, X + 1e-3]), np.full(1400, 0.3))
    assert simplify(f, 8, rng=0, polish=False).error < 1
    monkeypatch.setattr(l2_error, "LARGEST_SIGNED", 1000)
    monkeypatch.setattr(l2_error, "SECONDS", 1e-9)
    with pytest.raises(
        ValueError, match=r"cancel up to rounding or sampling errors; .* simplify at most 1,000 components at a time"
    ):
        simplify(f, 8, rng=0)


def test_more_than_twenty_thousand_components_are_estimated_from_some(monkeypatch):
    """A tenth of that many, with the limit at a tenth of its own."""
    assert l2_error.LARGEST_EXACT == 20_000
    monkeypatch.setattr(l2_error, "LARGEST_EXACT", 2000)
    f = many(2050, 1, "spherical", shared=True)
    found = simplify(f, 4, rng=0, polish=3)
    low, high = found.interval
    assert low < high
    slack = (high - low) / 2
    assert low - slack <= measured(f, found) <= high + slack


@pytest.mark.parametrize("n", [100, 500])
def test_where_all_pairs_are_fewer_than_the_draws_the_error_is_exact(n):
    rng = np.random.default_rng(2)
    f = Mixture(np.full(n, 1 / n), rng.normal(size=(n, 20)), covariances_of(rng, n, 20, "full", widths=(2.0, 3.0)))
    found = simplify(f, 2, rng=0, polish=False)
    assert found.interval[0] == found.interval[1]
    assert found.error == pytest.approx(measured(f, found), rel=1e-6)


# -- progress, input, words -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", [{"size": 6}, {"tol": 0.2}, {"radius": 1.0}])
def test_progress_is_told_as_it_happens(goal):
    told = []
    simplify(many(80), rng=0, progress=lambda *args: told.append(args), **goal)
    assert {stage for stage, _, _ in told} == {"group", "polish"}
    assert all(0 < done <= total for _, done, total in told)


@pytest.mark.parametrize("stage", ["group", "polish"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupt_passes_through_and_leaves_no_threads(stage, error):
    def stop(name, done, total):
        if name == stage:
            raise error

    before = set(threading.enumerate())
    with pytest.raises(error):
        simplify(many(5000, shape="diag"), 10, rng=0, progress=stop)
    assert set(threading.enumerate()) <= before
    assert simplify(many(80), 3, rng=0).size == 3


@pytest.mark.parametrize("normalized", [False, True])
def test_a_gaussian_kernel_mean_is_simplified_as_the_mixture_it_is(normalized):
    mean = KernelMean.from_samples(np.random.default_rng(0).normal(size=(80, 2)), Gaussian(0.5, normalized=normalized))
    one, two = simplify(mean, 5, rng=0), simplify(Mixture.from_mean(mean), 5, rng=0)
    assert identical(one, two)
    x = np.random.default_rng(1).normal(size=(50, 2))
    np.testing.assert_allclose(one.mixture(x), mean(x), atol=0.2 * mean(x).max())


def test_what_it_says():
    found = simplify(many(80), 5, rng=0)
    lines = str(found).splitlines()
    assert lines[0] == "Simplification of 80 components to 5 in 2-D, full covariances"
    assert lines[1].strip() == f"error      {found.error:.3g} of ‖f‖ in L2"
    assert lines[2].strip().startswith("steps      group ")
    assert "NOT REACHED" not in str(found)
    assert all(type(number) is float for number in (found.error, *found.interval, found.seconds))


def test_inputs_are_left_alone():
    f = many(30)
    kept = f.weights.copy(), f.means.copy(), f.covariances.copy()
    labels = np.arange(30) % 3
    simplify(f, 3, start=labels, rng=0)
    for mine, theirs in zip((f.weights, f.means, f.covariances, labels), (*kept, np.arange(30) % 3), strict=True):
        np.testing.assert_array_equal(mine, theirs)


# -- widths that differ ---------------------------------------------------------------------------------------------------


def test_the_interval_holds_where_widths_differ(monkeypatch):
    """Draws by weight alone would miss a narrow component that holds most of the norm."""
    rng = np.random.default_rng(2)
    n = 800
    f = Mixture(np.full(n, 1 / n), rng.normal(size=(n, 2)), np.exp(rng.normal(0, 2, size=n)))
    monkeypatch.setattr(l2_error, "LARGEST_EXACT", 600)
    monkeypatch.setattr(l2_error, "SECONDS", 1e-9)
    inside = 0
    for seed in range(30):
        found = simplify(f, 8, covariance="spherical", rng=seed, polish=False)
        low, high = found.interval
        assert low < high
        inside += low <= measured(f, found) <= high
    assert inside >= 25


def test_one_needle_that_holds_the_norm_is_not_missed(monkeypatch):
    rng = np.random.default_rng(0)
    widths = np.full(2000, 0.5)
    widths[0] = 1e-10
    f = Mixture(np.full(2000, 1 / 2000), rng.normal(size=(2000, 2)), widths)
    monkeypatch.setattr(l2_error, "LARGEST_EXACT", 1000)
    monkeypatch.setattr(l2_error, "SECONDS", 1e-9)
    found = simplify(f, 5, rng=0, polish=False, refit=False)
    assert found.error == pytest.approx(measured(f, found), rel=0.05)


def test_the_strongest_are_kept_where_merging_them_would_lose_more():
    rng = np.random.default_rng(0)
    f = Mixture(rng.dirichlet(np.ones(300)), rng.normal(size=(300, 4)), 10.0 ** rng.uniform(-4, 4, size=300))
    norms = f.weights * np.array([Mixture([1.0], f.means[k : k + 1], f.covariances[k : k + 1]).norm() for k in range(300)])
    rows = np.argsort(-norms)[:19]  # the twentieth carries the rest of the mass
    kept = Mixture(f.weights[rows], f.means[rows], f.covariances[rows])
    found = simplify(f, 20, rng=0)
    assert "keep" in [step.stage for step in found.history]
    assert found.error <= f.distance(kept) / f.norm()
    assert found.groups.min() == 0
    assert found.groups.max() == 19


def strong_and_apart(rng, n=60, d=3):
    """Weights and widths that differ, far apart."""
    return Mixture(rng.dirichlet(np.full(n, 0.5)), 8 * rng.normal(size=(n, d)), covariances_of(rng, n, d, "full"))


def test_strong_components_that_stand_apart_need_no_groups():
    for seed in range(5):
        f = strong_and_apart(np.random.default_rng(seed))
        found = simplify(f, 12, rng=0)
        assert {step.stage for step in found.history} == {"keep", "polish"}
        assert found.error == pytest.approx(measured(f, found), rel=1e-6)
        assert np.unique(found.groups).tolist() == list(range(12))
        grouped = simplify(f, rng=0, start=simplify(f, 12, rng=0, polish=False, refit=False).groups)
        assert found.error <= grouped.error * (1 + 1e-9)


def test_groups_are_tried_where_strong_components_overlap_or_no_descent_follows():
    f = strong_and_apart(np.random.default_rng(0))
    assert "group" in {step.stage for step in simplify(f, 12, rng=0, polish=False).history}
    assert "group" in {step.stage for step in simplify(f, 12, rng=0, covariance="diag").history}  # they cannot stay as they are
    few = strong_and_apart(np.random.default_rng(1), n=12)
    twice = Mixture(np.tile(few.weights / 2, 2), np.tile(few.means, (2, 1)) + 1e-3, np.tile(few.covariances, (2, 1, 1)))
    found = simplify(twice, 12, rng=0)
    assert "group" in {step.stage for step in found.history}
    assert found.error < 1e-6


def test_components_without_weight_are_told():
    rng = np.random.default_rng(0)
    means = np.concatenate([rng.normal(size=(40, 1)), [[0.0]]])
    f = Mixture(np.full(41, 1 / 41), means, np.full(41, 1.0))
    found = simplify(f, 12, rng=0)
    assert found.idle == (found.mixture.weights == 0).sum()
    assert (f"{found.idle} components have weight 0" in str(found)) == (found.idle > 0)


# -- far apart ------------------------------------------------------------------------------------------------------------


def test_a_radius_is_kept_however_far_the_means_lie_apart():
    rng = np.random.default_rng(0)
    near = rng.uniform(size=(200, 2))
    places = np.concatenate([near, near + 1e7])
    groups = grouping.by_radius(places, np.ones(400), 0.2)
    for k in range(groups.max() + 1):
        own = places[groups == k]
        assert np.linalg.norm(own[:, None] - own[None], axis=2).max() <= 0.4 + 1e-6


def test_clumps_far_apart_get_as_many_groups_as_asked_for():
    rng = np.random.default_rng(0)
    means = np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 1e9])
    assert simplify(Mixture(np.full(40, 1 / 40), means, np.full(40, 0.1)), 38, rng=0, polish=False).size == 38
