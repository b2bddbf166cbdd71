"""Sums of Gaussian components against every pair written out: shapes, blocks, threads, far and extreme data."""

import itertools

import numpy as np
import pytest

import reduset
import reference_mixture as reference
from reduset import Mixture
from reduset._engine import components as engine
from reduset._engine.components import Components, as_full, component_logs, component_sums
from reduset._engine.ellipsoids import TILE
from reference_mixture import SHAPES, covariances_of, mixture_of

EVERY_SHAPE = pytest.mark.parametrize("shape", SHAPES)
EVERY_OTHER = pytest.mark.parametrize("other", SHAPES)
SHARED = pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
LENGTHS = pytest.mark.parametrize("n", [1, 2, TILE - 1, TILE, TILE + 1, 2 * TILE + 3])


@pytest.fixture(autouse=True)
def _default_threads():
    yield
    reduset.set_threads(None)


def facing(rng, count, d, shape):
    return 1.5 * rng.normal(size=(count, d)), covariances_of(rng, count, d, shape)


def laid_out(f, other="full"):
    return Components(f.weights, f.means, f.covariances, other == "full")


def unit_of(side):
    return np.exp(side.log_unit)


def assert_moments(found, expected, unit, d, rtol=1e-10):
    total, pull, stiff, square = expected
    if found.stiff.ndim == 2:
        stiff, square = (np.diagonal(each, axis1=1, axis2=2) for each in (stiff, square))
    for mine, theirs in ((found.total, total), (found.pull, pull), (found.stiff, stiff), (found.square, square)):
        np.testing.assert_allclose(mine * unit, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max())


# -- against the oracle -----------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@EVERY_SHAPE
@EVERY_OTHER
@SHARED
@pytest.mark.parametrize("d", [1, 2, 3, 4, 6])
def test_moments_totals_and_products_are_the_sums_over_all_pairs(shape, other, shared, d):
    rng = np.random.default_rng(d)
    f = mixture_of(rng, 7, d, shape, shared, signed=True)
    places, covariances = facing(rng, 3, d, other)
    side = laid_out(f, other)
    expected = reference.moments(places, covariances, f)
    assert_moments(side.moments(places, covariances), expected, unit_of(side), d)
    np.testing.assert_allclose(side.totals(places, covariances) * unit_of(side), expected[0], rtol=1e-10, atol=1e-13)
    pairs = reference.products(places, covariances, f.means, f.covariances)
    np.testing.assert_allclose(side.products(places, covariances) * unit_of(side), pairs, rtol=1e-9, atol=1e-14)


@pytest.mark.covering_cases
@EVERY_SHAPE
@EVERY_OTHER
@SHARED
def test_the_closest_is_that_of_least_cost_and_totals_come_along(shape, other, shared):
    rng = np.random.default_rng(5)
    f = mixture_of(rng, 40, 3, shape, shared)
    places, covariances = facing(rng, 5, 3, other)
    base, gain = rng.uniform(0, 0.2, 5), rng.uniform(0.5, 2, 5)
    side = laid_out(f, other)
    which, least, totals = side.closest(places, covariances, base, gain)
    pairs = reference.products(places, covariances, f.means, f.covariances) / unit_of(side)
    costs = base[:, None] - gain[:, None] * pairs
    np.testing.assert_array_equal(which, costs.argmin(axis=0))
    np.testing.assert_allclose(least, costs.min(axis=0), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(totals, pairs @ f.weights, rtol=1e-10)


@EVERY_SHAPE
@pytest.mark.parametrize("d", [1, 2, 5])
def test_sums_at_points_are_values_slopes_and_precisions(shape, d):
    rng = np.random.default_rng(d)
    f = mixture_of(rng, 6, d, shape, signed=True)
    Q = rng.normal(size=(11, d))
    out, unit = component_sums(Q, f.weights, f.means, f.covariances, 2)
    out = out * np.exp(unit)
    np.testing.assert_allclose(out[0], reference.evaluate(f, Q), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(out[1 : 1 + d].T, reference.gradient(f, Q), rtol=1e-6, atol=1e-8)
    expected = np.zeros((11, d, d))
    for w, t, H in zip(f.weights, f.means, as_full(f.covariances, d), strict=True):
        expected += w * np.exp(np.reshape(reference.log_normal(Q, t, H), (-1, 1, 1))) * np.linalg.inv(H)
    if shape == "full":
        r, c = np.tril_indices(d)
        np.testing.assert_allclose(out[1 + d :].T, expected[:, r, c], rtol=1e-9, atol=1e-11)
    else:
        np.testing.assert_allclose(out[1 + d :].T, np.diagonal(expected, axis1=1, axis2=2), rtol=1e-9, atol=1e-11)


@EVERY_SHAPE
def test_lower_orders_are_the_first_rows_of_higher_ones(shape):
    rng = np.random.default_rng(1)
    f = mixture_of(rng, 6, 3, shape)
    Q = rng.normal(size=(300, 3))
    most, unit = component_sums(Q, f.weights, f.means, f.covariances, 2)
    for order, rows in ((0, 1), (1, 4)):
        found, same = component_sums(Q, f.weights, f.means, f.covariances, order)
        assert same == unit
        np.testing.assert_allclose(found, most[:rows], rtol=1e-13)


@EVERY_SHAPE
def test_logs_are_those_of_the_sum(shape):
    rng = np.random.default_rng(2)
    f = mixture_of(rng, 9, 3, shape)
    Q = 3 * rng.normal(size=(20, 3))
    np.testing.assert_allclose(component_logs(Q, f.weights, f.means, f.covariances), np.log(reference.evaluate(f, Q)), rtol=1e-11)


@EVERY_SHAPE
@SHARED
def test_moments_of_groups_are_those_of_their_members_alone(shape, shared):
    rng = np.random.default_rng(3)
    f = mixture_of(rng, 300, 2, shape, shared)
    bounds = np.array([0, 1, 1, 140, 300])  # of one, none and many
    places, covariances = facing(rng, 4, 2, shape)
    side = laid_out(f, shape)
    found = side.moments(places, covariances, bounds)
    for i, (a, b) in enumerate(itertools.pairwise(bounds)):
        if a == b:
            assert found.total[i] == 0
            continue
        part = Mixture(f.weights[a:b], f.means[a:b], f.covariances[a:b])
        expected = reference.moments(places[i : i + 1], covariances[i : i + 1], part)
        one = engine.Moments(*(getattr(found, name)[i : i + 1] for name in ("total", "pull", "stiff", "square")))
        assert_moments(one, expected, unit_of(side), 2)


# -- tiles, blocks, threads -------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@EVERY_SHAPE
@SHARED
@LENGTHS
def test_no_component_is_lost_or_counted_twice_at_the_edge_of_a_tile(shape, shared, n):
    rng = np.random.default_rng(n)
    f = mixture_of(rng, n, 2, shape, shared)
    places, covariances = facing(rng, 2, 2, shape)
    side = laid_out(f, shape)
    expected = side.products(places, covariances) @ f.weights
    np.testing.assert_allclose(side.totals(places, covariances), expected, rtol=1e-11)
    np.testing.assert_allclose(side.moments(places, covariances).total, expected, rtol=1e-11)
    np.testing.assert_allclose(side.closest(places, covariances, np.ones(2), np.ones(2))[2], expected, rtol=1e-11)
    one = np.random.default_rng(0).normal(size=(1, 2))
    kept = [np.asarray(component_sums(np.repeat(one, n, axis=0), f.weights, f.means, f.covariances, 2)[0])]
    np.testing.assert_array_equal(kept[0], np.repeat(kept[0][:, :1], n, axis=1))
    np.testing.assert_allclose(
        kept[0][0] * np.exp(component_sums(one, f.weights, f.means, f.covariances, 0)[1]), f(one)[0], rtol=1e-12
    )


@SHARED
@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_sums_across_blocks_are_those_of_one_block(shared, extra, monkeypatch):
    rng = np.random.default_rng(7)
    n = 2 * engine.BLOCK + extra
    f = mixture_of(rng, n, 2, "diag", shared)
    places, covariances = facing(rng, 9, 2, "diag")
    side = laid_out(f, "diag")
    base, gain = rng.uniform(0, 1e-3, 9), np.ones(9)
    found = side.moments(places, covariances), *side.closest(places, covariances, base, gain)
    monkeypatch.setattr(engine, "BLOCK", 10 * n)
    whole = side.moments(places, covariances), *side.closest(places, covariances, base, gain)
    for name in ("total", "pull", "stiff", "square"):
        mine, theirs = getattr(found[0], name), getattr(whole[0], name)
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-12 * np.abs(theirs).max())
    np.testing.assert_array_equal(found[1], whole[1])
    np.testing.assert_array_equal(found[2], whole[2])
    np.testing.assert_allclose(found[3], whole[3], rtol=1e-11)


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_points_across_blocks_are_those_of_one_block(extra, monkeypatch):
    rng = np.random.default_rng(8)
    f = mixture_of(rng, 5, 2)
    Q = rng.normal(size=(2 * engine.BLOCK + extra, 2))
    values, logs = component_sums(Q, f.weights, f.means, f.covariances, 1)[0], f.log_density(Q)
    monkeypatch.setattr(engine, "BLOCK", 10 * len(Q))
    np.testing.assert_array_equal(values, component_sums(Q, f.weights, f.means, f.covariances, 1)[0])
    np.testing.assert_array_equal(logs, f.log_density(Q))
    np.testing.assert_allclose(logs, np.log(values[0]) + component_sums(Q[:1], f.weights, f.means, f.covariances, 0)[1], atol=1e-9)


@EVERY_SHAPE
@SHARED
def test_the_number_of_threads_changes_no_bit(shape, shared):
    rng = np.random.default_rng(9)
    n = 3 * engine.BLOCK + 17
    f = mixture_of(rng, n, 3, shape, shared)
    places, covariances = facing(rng, 40, 3, shape)
    bounds = np.linspace(0, n, 41).astype(np.int64)
    side = laid_out(f, shape)

    def everything():
        whole, groups = side.moments(places, covariances), side.moments(places, covariances, bounds)
        closest = side.closest(places, covariances, np.ones(40), np.ones(40))
        return (
            *(getattr(each, name) for each in (whole, groups) for name in ("total", "pull", "stiff", "square")),
            *closest,
            side.products(places, covariances),
            f(places),
            f.log_density(places),
        )

    reduset.set_threads(1)
    alone = everything()
    for count in (2, 3):
        reduset.set_threads(count)
        for mine, theirs in zip(everything(), alone, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@EVERY_SHAPE
@SHARED
def test_another_order_of_the_components_is_the_same_sum(shape, shared):
    rng = np.random.default_rng(10)
    f = mixture_of(rng, 50, 2, shape, shared)
    places, covariances = facing(rng, 4, 2, shape)
    order = rng.permutation(50)
    side = laid_out(f, shape)
    assert side.moments(places, covariances).total.shape == (4,)  # what is cached must not be taken along
    other = side.reordered(order)
    np.testing.assert_allclose(other.totals(places, covariances), side.totals(places, covariances), rtol=1e-12)
    np.testing.assert_allclose(other.products(places, covariances), side.products(places, covariances)[:, order], rtol=1e-12)


def test_new_weights_and_another_unit_scale_the_sums():
    rng = np.random.default_rng(11)
    f = mixture_of(rng, 12, 2)
    places, covariances = facing(rng, 3, 2, "full")
    side = laid_out(f)
    pairs = side.products(places, covariances)
    new = rng.normal(size=12)
    side.weigh(new)
    np.testing.assert_allclose(side.totals(places, covariances), pairs @ new, rtol=1e-11)
    side.measure_in(side.log_unit + np.log(8.0))
    np.testing.assert_allclose(side.totals(places, covariances), pairs @ new / 8, rtol=1e-11)
    np.testing.assert_allclose(side.products(places, covariances), pairs / 8, rtol=1e-11)
    side.weigh(new)
    np.testing.assert_allclose(side.totals(places, covariances), pairs @ new / 8, rtol=1e-11)


# -- far, small, large, many dimensions -------------------------------------------------------------------------------


@EVERY_SHAPE
@SHARED
def test_a_shift_of_everything_by_a_million_changes_nothing(shape, shared):
    rng = np.random.default_rng(12)
    f = mixture_of(rng, 200, 3, shape, shared)
    places, covariances = facing(rng, 5, 3, shape)
    far = Mixture(f.weights, f.means + 1e6, f.covariances)
    one, other = laid_out(f, shape).moments(places, covariances), laid_out(far, shape).moments(places + 1e6, covariances)
    for name in ("total", "pull", "stiff", "square"):
        mine, theirs = getattr(other, name), getattr(one, name)
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8 * np.abs(theirs).max())
    np.testing.assert_allclose(far(places + 1e6), f(places), rtol=1e-8)
    np.testing.assert_allclose(far.log_density(places + 1e6), f.log_density(places), rtol=1e-8)


@EVERY_SHAPE
@pytest.mark.parametrize("scale", [1e-60, 1e-12, 1e12, 1e60])
def test_sums_in_other_units_of_length_are_the_same_numbers(shape, scale):
    rng = np.random.default_rng(13)
    f = mixture_of(rng, 30, 2, shape)
    places, covariances = facing(rng, 3, 2, shape)
    other = Mixture(f.weights, f.means * scale, f.covariances * scale**2)
    mine, theirs = (laid_out(g, shape) for g in (other, f))
    assert mine.log_unit == pytest.approx(theirs.log_unit - 2 * np.log(scale), rel=1e-12, abs=1e-10)
    np.testing.assert_allclose(mine.totals(places * scale, covariances * scale**2), theirs.totals(places, covariances), rtol=1e-9)
    np.testing.assert_allclose(other.log_density(places * scale) + 2 * np.log(scale), f.log_density(places), rtol=1e-9, atol=1e-9)


@EVERY_SHAPE
@SHARED
def test_widths_of_very_different_size_stand_side_by_side(shape, shared):
    """A needle among broad components: each pair is right to rounding."""
    widths = np.array([1e-9, 1e-3, 1.0, 1e4]) if not shared else np.full(4, 1e-3)
    covariances = {"spherical": widths**2, "diag": np.stack([widths**2] * 2, axis=1)}.get(shape)
    if shape == "full":
        covariances = widths[:, None, None] ** 2 * np.array([[1.0, 0.4], [0.4, 0.8]])
    f = Mixture([0.1, 0.2, 0.3, 0.4], [[0.0, 0.0], [1e-3, 0.0], [1.0, -1.0], [0.0, 5.0]], covariances)
    side = laid_out(f, shape)
    expected = reference.products(f.means, f.covariances, f.means, f.covariances) / unit_of(side)
    np.testing.assert_allclose(side.products(f.means, f.covariances), expected, rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose(side.totals(f.means, f.covariances), expected @ f.weights, rtol=1e-6)


@pytest.mark.covering_cases
@EVERY_SHAPE
@SHARED
@pytest.mark.parametrize("width", [1e-8, 1.0, 1e8])
def test_sixty_dimensions_overflow_nowhere(shape, shared, width):
    rng = np.random.default_rng(14)
    d = 60
    covariances = covariances_of(rng, 20, d, shape, shared, (0.7, 1.4)) * width**2
    f = Mixture(rng.uniform(0.5, 1, 20), width * 0.1 * rng.normal(size=(20, d)), covariances)
    side = laid_out(f, shape)
    moments = side.moments(f.means[:3], covariances[:3])
    expected = [
        [reference.log_normal(f.means[i], f.means[j], A + B) for j, B in enumerate(as_full(covariances, d))]
        for i, A in enumerate(as_full(covariances[:3], d))
    ]
    np.testing.assert_allclose(np.log(side.products(f.means[:3], covariances[:3])) + side.log_unit, expected, rtol=1e-9)
    for name in ("total", "pull", "stiff", "square"):
        assert np.isfinite(getattr(moments, name)).all()
    assert np.isfinite(f.log_density(f.means)).all()


def test_the_zero_weights_of_a_narrow_component_do_not_set_the_scale_of_logs():
    f = Mixture([1.0, 0.0], np.zeros((2, 60)), [1.0, 1e-30])
    assert f.log_density(np.zeros((1, 60)))[0] == pytest.approx(-30 * np.log(2 * np.pi))


# -- balls in many dimensions, by matrix products ---------------------------------------------------------------------


def balls(n, d=40, m=5, variance=2.0, seed=15):
    rng = np.random.default_rng(seed)
    f = Mixture(rng.normal(size=n), rng.normal(size=(n, d)), np.full(n, variance))
    return f, rng.normal(size=(m, d)), variance * rng.uniform(0.8, 1.5, m)


@pytest.mark.parametrize("n", [1, 30, engine.BLAS_ROWS, 2 * engine.BLAS_ROWS + 1])
def test_balls_in_many_dimensions_have_the_same_sums(n, monkeypatch):
    f, places, covariances = balls(n)
    side = laid_out(f, "spherical")
    base, gain = np.linspace(0, 1e-3, 5), np.ones(5)
    found = side.totals(places, covariances), *side.closest(places, covariances, base, gain)
    monkeypatch.setattr(engine, "BLAS_FROM", 1000)
    plain = side.totals(places, covariances), *side.closest(places, covariances, base, gain)
    np.testing.assert_array_equal(found[1], plain[1])
    for mine, theirs in zip((found[0], *found[2:]), (plain[0], *plain[2:]), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12 * np.abs(theirs).max())


def test_balls_in_another_order_have_the_same_sums():
    f, places, covariances = balls(60)
    side = laid_out(f, "spherical")
    expected = side.totals(places, covariances)
    other = side.reordered(np.random.default_rng(0).permutation(60))
    np.testing.assert_allclose(other.totals(places, covariances), expected, rtol=1e-10)
    np.testing.assert_allclose(other.closest(places, covariances, np.ones(5), np.ones(5))[2], expected, rtol=1e-10)


def test_balls_far_from_the_origin_or_small_lose_no_digits():
    f, places, covariances = balls(60)
    far = Mixture(f.weights, f.means + 1e7, f.covariances)
    mine = laid_out(far, "spherical").totals(places + 1e7, covariances)
    np.testing.assert_allclose(mine, laid_out(f, "spherical").totals(places, covariances), rtol=1e-6)
    for variance in (1e-2, 1e-4, 1e-6):
        g = Mixture(f.weights, f.means, np.full(60, variance))
        assert g.norm() == pytest.approx(np.sqrt(np.square(g.weights).sum()) * (4 * np.pi * variance) ** -10, rel=1e-6)
        copy = Mixture(g.weights, g.means.copy(), g.covariances)
        assert g.distance(copy) <= 1e-7 * g.norm()


def test_the_number_of_threads_changes_no_bit_of_balls():
    f, places, covariances = balls(5000)
    side = laid_out(f, "spherical")
    reduset.set_threads(1)
    alone = side.totals(places, covariances), *side.closest(places, covariances, np.ones(5), np.ones(5))
    reduset.set_threads(3)
    for mine, theirs in zip(
        (side.totals(places, covariances), *side.closest(places, covariances, np.ones(5), np.ones(5))), alone, strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)


# -- pairs, without matrices ------------------------------------------------------------------------------------------


@LENGTHS
@pytest.mark.parametrize("shape", ["full", "diag"])
def test_the_energy_is_the_sum_over_all_pairs(n, shape):
    f = mixture_of(np.random.default_rng(n), n, 2, shape, signed=True)
    side = laid_out(f, "diag")
    side.shared = False  # also of one alone
    apart = Mixture(np.abs(f.weights), f.means, f.covariances)  # what signs cancel is lost to rounding
    assert side.energy(f.weights) * unit_of(side) == pytest.approx(
        reference.inner(f, f), rel=0, abs=1e-12 * reference.inner(apart, apart)
    )


def test_the_energy_does_not_depend_on_blocks_or_threads(monkeypatch):
    f = mixture_of(np.random.default_rng(0), 300, 3, "full")
    whole = laid_out(f).energy(f.weights)
    monkeypatch.setattr(engine, "MIN_PARALLEL_PAIRS", 100)
    reduset.set_threads(3)
    assert laid_out(f).energy(f.weights) == whole


@pytest.mark.parametrize("d", [1, 3])
def test_components_by_their_factors_are_those_by_their_covariances(d):
    rng = np.random.default_rng(d)
    like = laid_out(mixture_of(rng, 9, d, "full"))
    f = mixture_of(rng, 5, d, "full")
    lower = np.tril_indices(d)
    entries = np.ascontiguousarray(f.covariances[:, *lower])
    centres = f.means - like.centre
    side = Components.from_factors(centres, entries, np.linalg.cholesky(f.covariances), like)
    side.weigh(f.weights)
    plain = laid_out(f)
    plain.measure_in(like.log_unit)
    np.testing.assert_allclose(side.pair_gram(centres, entries), plain.products(f.means, f.covariances), rtol=1e-11)
    total, pull = side.pair_sums(centres, entries)[:, 0], side.pair_sums(centres, entries)[:, 1 : 1 + d]
    moments = plain.moments(f.means, f.covariances)
    np.testing.assert_allclose(total, moments.total, rtol=1e-11)
    np.testing.assert_allclose(pull, moments.pull, rtol=1e-9, atol=1e-11)
