"""simplify: the laws of its error, its stages, what it keeps, and what does not change its result."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reduset import Mixture, NotReachedWarning, simplify
from reduset.simplification import grouping
from reference_mixture import SHAPES, mixture_of
from simplification_cases import assert_same, identical, many, measured

EVERY_SHAPE = pytest.mark.parametrize("shape", SHAPES)
EVERY_OTHER = pytest.mark.parametrize("other", SHAPES)
METHODS = pytest.mark.parametrize("method", ["l2", "zhang", "kl"])
SHARED = pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])


# -- the error --------------------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@EVERY_SHAPE
@EVERY_OTHER
@METHODS
@pytest.mark.parametrize("signed", [False, True])
def test_the_error_is_the_exact_distance_over_the_norm(shape, other, method, signed):
    f = many(40, 2, shape, signed=signed)
    found = simplify(f, 5, method=method, covariance=other, rng=0, polish=15)
    assert found.error == pytest.approx(measured(f, found), rel=1e-7, abs=1e-7)
    assert found.interval == (found.error, found.error)
    assert found.size == found.mixture.size == 5
    assert found.mixture.shape == other
    assert found.n_components == 40
    assert found.history[-1].error == pytest.approx(found.error, rel=1e-7, abs=1e-8)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 3),
    shape=st.sampled_from(SHAPES),
    other=st.sampled_from(SHAPES),
    options=st.fixed_dictionaries(
        {
            "method": st.sampled_from(["l2", "zhang", "kl"]),
            "density": st.booleans(),
        }
    ),
    stages=st.sampled_from([{"polish": 5}, {"polish": False}, {"refit": False, "polish": False}]),
    signed=st.booleans(),
    spread=st.sampled_from([0.0, 0.5, 30.0]),
)
def test_any_mixture_is_simplified_with_a_true_error(seed, d, shape, other, options, stages, signed, spread):
    """Components that coincide, that overlap, and that never meet."""
    rng = np.random.default_rng(seed)
    f = mixture_of(rng, int(rng.integers(1, 20)), d, shape, bool(rng.integers(2)), signed, spread)
    if np.abs(f.weights.sum()) < 1e-3 and spread == 0:
        return
    found = simplify(f, int(rng.integers(1, f.size + 1)), covariance=other, rng=0, **options, **stages)
    carried = np.abs(found.mixture.weights).sum() / np.abs(f.weights).sum()  # weights that cancel carry their rounding
    assert found.error == pytest.approx(measured(f, found), rel=1e-6, abs=1e-6 * max(1.0, carried))
    assert np.isfinite([step.error for step in found.history]).all()
    assert found.groups.shape == (f.size,)
    assert 1 <= found.size <= f.size


@EVERY_SHAPE
@SHARED
@pytest.mark.parametrize("signed", [False, True])
def test_as_many_components_as_there_are_lose_nothing(shape, shared, signed):
    f = many(12, 2, shape, shared, signed)
    assert simplify(f, 12, rng=0).error < 1e-6
    assert simplify(f, 12, covariance=shape, rng=0, refit=False, polish=False).error < 1e-6


@EVERY_OTHER
def test_more_components_lose_less(other):
    f = many(100)
    errors = [simplify(f, size, covariance=other, rng=0, polish=100).error for size in (1, 3, 10, 30)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.3 * errors[0]


def test_covariances_that_may_be_more_lose_no_more():
    f = many(150, 3, "diag", shared=True, seed=3)
    full, diag, round_ = (simplify(f, 6, covariance=shape, rng=0).error for shape in ("full", "diag", "spherical"))
    assert full <= 1.02 * diag <= 1.05 * round_


# -- the stages -------------------------------------------------------------------------------------------------------


@METHODS
@EVERY_OTHER
def test_the_stages_follow_each_other_and_the_descent_never_loses(method, other):
    f = many(80)
    found = simplify(f, 6, method=method, covariance=other, rng=0)
    stages = [step.stage for step in found.history]
    assert stages == sorted(stages, key=["group", "refit", "keep", "polish"].index)
    assert set(stages) - {"keep"} == {"group", "refit", "polish"}
    polish = [step.error for step in found.history if step.stage == "polish"]
    refit = next(step.error for step in found.history if step.stage == "refit")
    last_group = [step.error for step in found.history if step.stage == "group"][-1]
    assert all(later <= sooner * (1 + 1e-9) for sooner, later in zip([refit, *polish], polish, strict=False))
    assert polish[-1] < refit
    assert found.error < last_group


def test_each_stage_can_be_left_out():
    f = many(80, shared=True)
    alone = simplify(f, 6, rng=0, refit=False, polish=False)
    assert {step.stage for step in alone.history} == {"group"}
    refitted = simplify(f, 6, rng=0, polish=False)
    assert {step.stage for step in refitted.history} == {"group", "refit"}
    np.testing.assert_array_equal(refitted.mixture.means, alone.mixture.means)
    few = simplify(f, 6, rng=0, polish=3)
    assert len([step for step in few.history if step.stage == "polish"]) <= 3
    assert alone.error >= refitted.error >= few.error >= simplify(f, 6, rng=0).error


def test_a_descent_left_to_itself_ends_where_steps_gain_little():
    f = many(80, shared=True)
    alone, long = simplify(f, 6, rng=0), simplify(f, 6, rng=0, polish=300)
    steps, more = ([step.error for step in found.history if step.stage == "polish"] for found in (alone, long))
    assert 5 < len(steps) < len(more)
    assert steps == pytest.approx(more[: len(steps)], rel=1e-6)
    gains = [(sooner / later) ** 2 - 1 for sooner, later in zip(steps, steps[5:], strict=False)]
    assert all(gain >= 0.0199 for gain in gains[:-1])
    assert gains[-1] < 0.0201 or len(steps) == 100


def test_strong_components_are_kept_only_where_that_loses_less():
    kept = 0
    for seed in range(6):
        f = many(80, seed=seed)
        found = simplify(f, 6, rng=0, polish=False)
        errors = {step.stage: step.error for step in found.history}
        assert found.error == pytest.approx(min(errors.get("keep", np.inf), errors["refit"]), rel=1e-9)
        assert found.mixture.mass == pytest.approx(f.mass)
        kept += "keep" in errors
    assert kept > 0


def test_l2_loses_less_in_l2_than_its_rival():
    gains = []
    for seed in range(5):
        f = many(150, 2, "spherical", shared=True, seed=seed)
        l2, kl = (simplify(f, 5, method=method, rng=0, refit=False, polish=False).error for method in ("l2", "kl"))
        gains.append(l2 / kl)
    assert np.mean(gains) < 1


def test_the_rival_keeps_mean_and_covariance():
    f = many(60)
    found = simplify(f, 5, method="kl", rng=0, refit=False, polish=False)
    np.testing.assert_allclose(found.mixture.mean(), f.mean(), rtol=1e-9)
    np.testing.assert_allclose(found.mixture.covariance(), f.covariance(), rtol=1e-9)


# -- densities and signs ----------------------------------------------------------------------------------------------


@METHODS
@pytest.mark.parametrize("stages", [{}, {"polish": False}, {"refit": False, "polish": False}])
@pytest.mark.parametrize("mass", [1.0, 1e-60, 37.0])
def test_a_density_stays_one_with_its_mass(method, stages, mass):
    f = many(60) * mass
    found = simplify(f, 6, method=method, rng=0, **stages)
    assert found.mixture.is_density
    assert found.mixture.mass == pytest.approx(mass, rel=1e-9)


def test_free_weights_lose_no_more_and_need_not_keep_the_mass():
    f = many(60, 2, "spherical", shared=True)
    kept, free = (simplify(f, 3, rng=0, density=density, polish=False) for density in (True, False))
    assert free.error <= kept.error
    assert abs(free.mixture.mass - f.mass) > 1e-6


@METHODS
@pytest.mark.parametrize("size", [1, 2, 7])
def test_signs_are_grouped_apart(method, size):
    f = many(60, signed=True)
    found = simplify(f, size, method=method, rng=0, refit=False, polish=False)
    for i in range(found.size):
        signs = set(np.sign(f.weights[found.groups == i]))
        assert signs == {np.sign(found.mixture.weights[i])}
    assert found.size == size
    if size > 1:
        assert (found.groups >= 0).all()


def test_weights_that_sum_to_zero_are_simplified_like_any_signed_ones():
    weights = np.tile([1.0, -1.0], 20)
    f = Mixture(weights, np.random.default_rng(0).normal(size=(40, 2)), np.full(40, 0.2))
    found = simplify(f, 12, rng=0)
    assert found.error == pytest.approx(measured(f, found), rel=1e-6)
    assert found.error < simplify(f, 2, rng=0).error


def test_a_negative_mixture_is_the_mirror_of_the_positive_one():
    f = many(50)
    one, other = simplify(f, 5, rng=0, density=False), simplify(-f, 5, rng=0)
    assert other.error == pytest.approx(one.error, rel=1e-6)
    np.testing.assert_allclose(other.mixture.weights, -one.mixture.weights, rtol=1e-5)


def test_the_zero_function_is_refused_in_words():
    f = Mixture([1.0, -1.0], [[0.0], [0.0]], [1.0, 1.0])
    with pytest.raises(ValueError, match="zero"):
        simplify(f, 1)


@pytest.mark.parametrize("covariance", ["full", "diag", "spherical"])
def test_as_many_components_as_there_are_come_back_as_they_are(covariance):
    f = many(30, 2, "spherical")
    found = simplify(f, 30, covariance=covariance, rng=0)
    assert found.error == 0
    assert found.history == ()
    assert found.mixture.shape == covariance
    np.testing.assert_array_equal(found.mixture.means, f.means)
    np.testing.assert_array_equal(found.groups, np.arange(30))
    assert "error      0 of" in str(found)


def test_labels_alone_say_how_many_groups_there_are():
    f = many(60)
    labels = np.arange(60) % 7
    found = simplify(f, start=labels, rng=0, polish=False)
    assert found.size == 7
    np.testing.assert_allclose(found.mixture.means, simplify(f, 7, start=labels, rng=0, polish=False).mixture.means)


# -- how few ----------------------------------------------------------------------------------------------------------


def test_a_tolerance_is_reached_with_about_the_fewest():
    f = many(120)
    found = simplify(f, tol=0.05, rng=0)
    assert found.reached
    assert found.error <= 0.05
    assert simplify(f, max(1, int(0.75 * found.size) - 1), rng=0).error > 0.05


def test_a_tolerance_out_of_reach_is_said():
    f = many(120)
    with pytest.warns(NotReachedWarning, match="tol=0.001.*3.*max_size"):
        found = simplify(f, tol=0.001, max_size=3, rng=0)
    assert not found.reached
    assert found.size == 3
    assert "NOT REACHED" in str(found)


@pytest.mark.parametrize("radius", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("d", [1, 3])
def test_every_component_lies_within_the_radius_of_one_of_its_group(radius, d):
    rng = np.random.default_rng(d)
    places, weights = rng.normal(size=(500, d)), rng.uniform(0.1, 1, 500)
    groups = grouping.by_radius(places, weights, radius)
    assert set(groups) == set(range(groups.max() + 1))
    for i in range(groups.max() + 1):
        own = places[groups == i]
        reach = np.sqrt(np.square(own[:, None] - own).sum(axis=2)).max(axis=1)
        assert reach.min() <= radius * (1 + 1e-6)


def test_a_smaller_radius_has_more_groups_from_one_to_all():
    f = many(90)
    sizes = [simplify(f, radius=radius, rng=0, polish=False).size for radius in (1e6, 3.0, 1.0, 0.3, 1e-9)]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (1, 90)
    assert simplify(f, radius=1e-9, rng=0, polish=False).error < 1e-6


def test_a_radius_that_asks_for_too_many_groups_is_refused(monkeypatch):
    monkeypatch.setattr(grouping, "MAX_CENTRES", 100)
    f = many(300)
    assert grouping.by_radius(f.means, f.weights, 1.0).max() < 100
    with pytest.raises(ValueError, match="radius must be large enough for 100 groups, 1e-09 is not: they reach"):
        simplify(f, radius=1e-9)


def test_rounds_of_regrouping_are_no_more_than_allowed():
    f = many(200)
    for rounds in (1, 3):
        found = simplify(f, size=9, rounds=rounds, polish=False, rng=0)
        assert sum(step.stage == "group" for step in found.history) == rounds
    with pytest.raises(ValueError, match=r"rounds .*got 0"):
        simplify(f, size=9, rounds=0)


def test_given_labels_are_where_it_starts():
    f = many(40)
    labels = np.array(["a", "b", "c", "d"])[np.arange(40) % 4]
    found = simplify(f, 4, start=labels, rng=0, polish=5)
    assert found.size == 4
    by_hand = [simplify(f, 4, start=(np.arange(40) % 4)[::1], rng=seed, polish=5) for seed in (1, 2)]
    assert all(identical(found, each) for each in by_hand)
    assert simplify(f, 40, start=np.arange(40), rng=0).error < 1e-6


# -- what does not matter ---------------------------------------------------------------------------------------------


@METHODS
def test_the_same_seed_gives_the_same_result(method):
    f = many(100)
    assert identical(simplify(f, 6, method=method, rng=3), simplify(f, 6, method=method, rng=3))
    assert identical(simplify(f, 6, method=method, rng=3), simplify(f, 6, method=method, rng=np.random.default_rng(3)))


def test_the_order_of_the_components_does_not_matter_to_given_groups():
    f = many(60)
    order = np.random.default_rng(0).permutation(60)
    labels = np.arange(60) % 5
    other = Mixture(f.weights[order], f.means[order], f.covariances[order])
    one, two = simplify(f, 5, start=labels, polish=3), simplify(other, 5, start=labels[order], polish=3)
    assert_same(one, two, 1e-6)
    np.testing.assert_array_equal(one.groups[order], two.groups)


def test_the_order_of_the_components_hardly_matters_to_the_error():
    f = many(100)
    order = np.random.default_rng(0).permutation(100)
    other = Mixture(f.weights[order], f.means[order], f.covariances[order])
    assert simplify(other, 10, rng=0).error == pytest.approx(simplify(f, 10, rng=0).error, rel=0.3)


@EVERY_OTHER
def test_a_shift_moves_the_result_along(other):
    f = many(60, shape="diag")
    far = Mixture(f.weights, f.means + 1e5, f.covariances)
    one, two = (simplify(each, 5, covariance=other, rng=0, polish=3) for each in (f, far))
    np.testing.assert_allclose(two.mixture.means - 1e5, one.mixture.means, atol=1e-4)
    assert two.error == pytest.approx(one.error, rel=1e-5)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@EVERY_OTHER
def test_units_of_length_do_not_matter(other, scale):
    f = many(60, shape="diag")
    there = Mixture(f.weights, f.means * scale, f.covariances * scale**2)
    one, two = (simplify(each, 5, covariance=other, rng=0, polish=3) for each in (f, there))
    np.testing.assert_allclose(two.mixture.means / scale, one.mixture.means, atol=1e-5)
    assert two.error == pytest.approx(one.error, rel=1e-6)


def test_full_covariances_follow_any_change_of_coordinates():
    f = many(60)
    A = np.array([[3.0, 1.0], [-40.0, 25.0]])
    there = Mixture(f.weights, f.means @ A.T, A @ f.covariances @ A.T)
    one, two = (simplify(each, 5, rng=0, polish=False) for each in (f, there))
    np.testing.assert_allclose(two.mixture.means, one.mixture.means @ A.T, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(two.mixture.covariances, A @ one.mixture.covariances @ A.T, rtol=1e-6)
    np.testing.assert_array_equal(one.groups, two.groups)
    assert two.error == pytest.approx(one.error, rel=1e-9)
    assert simplify(there, 5, rng=0).error < two.error  # on the way down the coordinates choose the steps


@pytest.mark.parametrize("scale", [1e-120, 1e-9, 1e9, 1e120])
def test_the_scale_of_the_weights_does_not_matter(scale):
    f = many(60)
    one, two = simplify(f, 8, rng=0), simplify(f * scale, 8, rng=0)
    assert two.error == pytest.approx(one.error, rel=1e-3)
    np.testing.assert_allclose(two.mixture.weights / scale, one.mixture.weights, atol=1e-2)


def test_components_without_weight_are_in_no_group_and_change_nothing():
    f = many(60)
    weights = np.insert(f.weights, [0, 30, 60], 0.0)
    means = np.insert(f.means, [0, 30, 60], [[1e9, 1e9]], axis=0)
    other = Mixture(weights, means, np.insert(f.covariances, [0, 30, 60], [1e-9 * np.eye(2)], axis=0))
    one, two = simplify(f, 5, rng=0, polish=3), simplify(other, 5, rng=0, polish=3)
    assert_same(one, two, 1e-9)
    assert (np.flatnonzero(two.groups == -1) == [0, 31, 62]).all()
    assert two.n_components == 63
    assert simplify(other, 63, rng=0, polish=False).size == 60
