"""Expansions, groups and their fit: by the plain definitions, and by the laws that each step obeys."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

import reduset
from reduset.simplification.pipeline import fewest
from reduset.svm import expansion_fit
from reduset.svm.compressing import _start, allocate, reduce_set, target_of
from reduset.svm.expansion import CentredPoints, GaussianExpansion
from reduset.svm.expansion_fit import ExpansionTarget


def expansion(seed=0, n=30, d=3, p=2, width=1.1):
    rng = np.random.default_rng(seed)
    return GaussianExpansion(rng.normal(size=(n, d)), np.full(n, width), rng.normal(size=(n, p)), rng.normal(size=p))


def few(full, seed=1, m=4):
    rng = np.random.default_rng(seed)
    rows = rng.choice(full.size, m, replace=False)
    widths = full.widths[0] * rng.uniform(0.9, 1.6, size=m)
    weights = rng.normal(size=(m, len(full.intercepts)))
    return GaussianExpansion(full.centres[rows] + 0.1 * rng.normal(size=(m, full.dimension)), widths, weights, full.intercepts)


def plain(g, Q):
    """Values by the definition."""
    out = np.tile(g.intercepts, (len(Q), 1))
    for centre, width, weights in zip(g.centres, g.widths, g.weights, strict=True):
        out += np.exp(-((Q - centre) ** 2).sum(axis=1) / (2 * width**2))[:, None] * weights
    return out


def objective(full, places, share, g):
    """E by its definition, the norm by a kernel expansion of g on a fine line: for d = 1 only where share > 0."""
    f, h = plain(full, places) - full.intercepts, plain(g, places) - g.intercepts
    return ((f - h) ** 2).sum() / (f**2).sum() + share


@pytest.mark.parametrize(("shift", "spread"), [(0.0, 1.0), (1e6, 1.0), (0.0, 1e7)])
def test_values_are_those_of_the_definition_wherever_the_bumps_are(shift, spread):
    g = few(expansion())
    g = GaussianExpansion(spread * g.centres + shift, g.widths, g.weights, g.intercepts)
    Q = np.concatenate([g.centres, g.centres + 0.5, np.full((1, 3), shift)])
    np.testing.assert_allclose(g(Q), plain(g, Q), rtol=1e-7, atol=1e-8)


def test_many_rows_in_blocks_are_as_few():
    g, Q = few(expansion()), np.random.default_rng(0).normal(size=(150_000, 3))
    np.testing.assert_allclose(g(Q)[::9999], plain(g, Q[::9999]), rtol=1e-12, atol=1e-12)


def test_places_take_differences_where_a_product_would_cancel():
    rows = 1e8 * np.array([[1.0, 0.0], [0.0, 1.0]]) + np.array([[0.1, 0.2], [0.3, 0.4]])
    near = rows + 0.5
    np.testing.assert_allclose(np.diag(CentredPoints(rows, 1.0).squared_distances(near)), 0.5, rtol=1e-6)


def norms_on_a_line(a, b, gap, h):
    """⟨γ_a, γ_b⟩ in the space of a Gaussian kernel of width h, by its spectral integral."""

    def integrand(w):
        return np.cos(w * gap) * np.exp(-(a**2 + b**2 - h**2) * w**2 / 2) * a * b / h / np.sqrt(2 * np.pi)

    return quad(integrand, -np.inf, np.inf)[0]


@pytest.mark.parametrize(("a", "b", "gap"), [(1.0, 1.0, 0.7), (1.5, 0.9, 0.3), (0.8, 2.0, 1.1)])
def test_the_norm_of_the_kernels_space_is_its_spectral_integral(a, b, gap):
    h = 1.0
    full = GaussianExpansion(np.zeros((1, 1)), np.array([h]), np.zeros((1, 1)), np.zeros(1))
    g = GaussianExpansion(np.array([[0.0], [gap]]), np.array([a, b]), np.array([[1.0], [0.5]]), np.zeros(1))
    square = norms_on_a_line(a, a, 0, h) + 0.25 * norms_on_a_line(b, b, 0, h) + norms_on_a_line(a, b, gap, h)
    assert ExpansionTarget(full, np.zeros((1, 1)), 1.0).bounds(g)[0] ** 2 == pytest.approx(square, rel=1e-8)


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_no_value_changes_by_more_than_the_bound(share):
    full = expansion()
    target = ExpansionTarget(full, full.centres, share)
    found = target.polish(target.refit(few(full)), 20)
    Q = np.concatenate([full.centres, 3 * np.random.default_rng(0).normal(size=(2000, 3))])
    assert (np.abs(full(Q) - found(Q)).max(axis=0) <= target.bounds(found)).all()


def test_the_bound_is_infinite_where_a_bump_is_too_narrow():
    full = expansion()
    g = few(full)
    assert np.isinf(
        ExpansionTarget(full, full.centres, 0.0).bounds(GaussianExpansion(g.centres, 0.1 * g.widths, g.weights, g.intercepts))
    ).all()


def test_the_error_at_places_is_that_of_the_definition():
    full, places = expansion(), np.random.default_rng(5).normal(size=(50, 3))
    g = few(full)
    assert ExpansionTarget(full, places, 0.0).error(g) == pytest.approx(objective(full, places, 0.0, g), rel=1e-10)


def test_the_error_in_the_kernels_space_is_that_of_the_bounds():
    full, g = expansion(), few(expansion())
    only_norm = ExpansionTarget(full, np.full((1, 3), 1e3), 1.0)  # at a place where nothing is seen
    assert only_norm.error(g) - 1.0 == pytest.approx((only_norm.bounds(g) ** 2).sum() / only_norm.energies.sum(), rel=1e-9)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_slopes_are_those_of_finite_differences(share):
    full = expansion()
    target, g = ExpansionTarget(full, full.centres[:20] + 0.1, share), few(full)
    squares = g.widths**2
    _, by_centre, by_square = target._slopes(g.centres, squares)
    step = 1e-5
    for i in range(g.size):
        for k in range(g.dimension):
            move = np.zeros_like(g.centres)
            move[i, k] = step
            rise = target._solve(g.centres + move, squares).error - target._solve(g.centres - move, squares).error
            assert by_centre[i, k] == pytest.approx(rise / (2 * step), rel=1e-4, abs=1e-7)
        more = step * np.eye(g.size)[i]
        rise = target._solve(g.centres, squares + more).error - target._solve(g.centres, squares - more).error
        assert by_square[i] == pytest.approx(rise / (2 * step), rel=1e-4, abs=1e-7)


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 6),
    p=st.integers(1, 3),
    m=st.integers(1, 6),
    share=st.sampled_from([0.0, 0.1, 1.0]),
    widths=st.booleans(),
)
def test_refit_and_polish_never_raise_the_error(seed, d, p, m, share, widths):
    full = expansion(seed, 20, d, p)
    target, g = ExpansionTarget(full, full.centres, share), few(full, seed + 1, m)
    refitted = target.refit(g)
    polished = target.polish(refitted, 8, widths)
    assert target.error(refitted) <= target.error(g) * (1 + 1e-9) + 1e-12
    assert target.error(polished) <= target.error(refitted)
    assert np.isfinite(polished.centres).all()
    assert (polished.widths > 0).all()
    if not widths:
        np.testing.assert_array_equal(polished.widths, g.widths)


def test_refit_finds_what_least_squares_finds():
    full = expansion()
    places = np.random.default_rng(2).normal(size=(60, 3))
    g = few(full)
    wanted = np.linalg.lstsq(g.bumps(places), plain(full, places) - full.intercepts, rcond=None)[0]
    np.testing.assert_allclose(ExpansionTarget(full, places, 0.0).refit(g).weights, wanted, rtol=1e-5, atol=1e-6)


def test_bumps_that_coincide_are_fitted_all_the_same():
    full = expansion()
    target, g = target_of(full, None, np.random.default_rng(0)), few(full)
    twice = GaussianExpansion(
        np.repeat(g.centres, 2, axis=0), np.repeat(g.widths, 2), np.repeat(g.weights, 2, axis=0), g.intercepts
    )
    assert target.error(target.refit(twice)) == pytest.approx(target.error(target.refit(g)), rel=1e-5)


def test_a_thousand_dimensions_overflow_nothing():
    rng = np.random.default_rng(0)
    full = GaussianExpansion(rng.normal(size=(40, 3000)), np.full(40, 20.0), rng.normal(size=(40, 1)), np.zeros(1))
    target = target_of(full, None, rng)
    wide = GaussianExpansion(full.centres[:3], np.array([20.0, 40.0, 2000.0]), np.ones((3, 1)), full.intercepts)
    refitted = target.refit(wide)
    assert np.isfinite(refitted.weights).all()
    assert target.error(refitted) < 2.0


# groups


def positive(seed=0, n=40, d=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.uniform(0.1, 2.0, size=n)


def distance_in_l2(points, weights, h, centre, width, height):
    """‖Σ aⱼφⱼ − w g‖² up to the constant (πh²)^(d/2), by closed forms of pairs."""
    d = points.shape[1]

    def product(x, y, a, b):
        return (2 * a**2 * b**2 / (h**2 * (a**2 + b**2))) ** (d / 2) * np.exp(-((x - y) ** 2).sum() / (2 * (a**2 + b**2)))

    total = height**2 * product(centre, centre, width, width)
    for x, a in zip(points, weights, strict=True):
        total -= 2 * a * height * product(x, centre, h, width)
        total += sum(a * b * product(x, y, h, h) for y, b in zip(points, weights, strict=True))
    return total


def grouped(points, weights, h, size, method):
    """Bumps that stand for groups of equal ones, as an expansion, before any refit."""
    full = GaussianExpansion(points, np.full(len(points), h), weights[:, None], np.zeros(1))
    return _start(full, np.zeros(len(points), np.int64), size, method, np.random.default_rng(0))


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 4), h=st.floats(0.3, 3.0))
def test_the_nearest_bump_is_nearer_in_l2_than_that_of_the_moments(seed, d, h):
    points, weights = positive(seed, 8, d)
    nearest, matched = (grouped(points, weights, h, 1, method) for method in ("mixture", "kl"))
    one, other = (distance_in_l2(points, weights, h, g.centres[0], g.widths[0], g.weights[0, 0]) for g in (nearest, matched))
    assert one <= other * (1 + 1e-9)


def test_the_nearest_bump_is_a_stationary_point_in_its_height():
    points, weights = positive()
    found = grouped(points, weights, 0.8, 1, "mixture")
    at = (found.centres[0], found.widths[0], found.weights[0, 0])
    least = distance_in_l2(points, weights, 0.8, *at)
    for factor in (0.98, 1.02):
        assert distance_in_l2(points, weights, 0.8, at[0], at[1], at[2] * factor) > least
        assert distance_in_l2(points, weights, 0.8, at[0], at[1] * factor**3, at[2]) > least
        assert distance_in_l2(points, weights, 0.8, at[0] + 0.1, at[1], at[2]) > least


def test_zhang_is_section_iv_of_the_paper():
    """(28) to (30): centre, width by (29) and height by (30) repeat themselves, up to the paper's tolerance 0.01."""
    points, weights = positive()
    h2, d = 0.8**2, points.shape[1]
    found = grouped(points, weights, 0.8, 1, "zhang")
    t, wide, height = found.centres[0], found.widths[0] ** 2, found.weights[0, 0]
    values = weights * np.exp(-np.square(points - t).sum(axis=1) / (2 * (h2 + wide)))
    assert np.linalg.norm(values @ points / values.sum() - t) <= 0.011
    V = values @ np.square(points - t).sum(axis=1) / values.sum() / d
    assert np.sqrt(d) * abs(V + np.sqrt(h2**2 + V**2) - wide) <= 0.01
    assert height == pytest.approx(h2 ** (d / 2) * (2 / (h2 + wide)) ** (d / 2) * values.sum(), rel=1e-12)


def test_the_rival_keeps_mass_mean_and_variance():
    points, weights = positive()
    found = grouped(points, weights, 0.8, 1, "kl")
    mean = np.average(points, axis=0, weights=weights)
    variance = np.average(((points - mean) ** 2).sum(axis=1), weights=weights) / 2
    np.testing.assert_allclose(found.centres[0], mean)
    assert found.widths[0] ** 2 == pytest.approx(0.8**2 + variance)
    assert found.weights[0, 0] * found.widths[0] ** 2 == pytest.approx(weights.sum() * 0.8**2)


@pytest.mark.parametrize("method", ["mixture", "zhang", "kl"])
def test_as_many_groups_as_bumps_are_the_bumps(method):
    points, weights = positive(n=6)
    found = grouped(points, weights, 0.5, 6, method)
    order, same = np.lexsort(found.centres.T), np.lexsort(points.T)
    np.testing.assert_allclose(found.centres[order], points[same])
    np.testing.assert_allclose(found.widths, 0.5)
    np.testing.assert_allclose(found.weights[order, 0], weights[same])


@pytest.mark.parametrize("method", ["mixture", "zhang", "kl"])
def test_bumps_that_coincide_are_one(method):
    points = np.repeat([[0.0, 0.0], [5.0, 5.0]], 10, axis=0)
    found = grouped(points, np.ones(20), 1.0, 6, method)
    assert found.size == 2
    np.testing.assert_allclose(found.weights, 10.0)


# how many


@given(masses=st.lists(st.floats(0.1, 10.0), min_size=1, max_size=6), extra=st.integers(0, 30), data=st.data())
@settings(deadline=None, max_examples=60)
def test_sizes_are_dealt_in_proportion(masses, extra, data):
    counts = np.array([data.draw(st.integers(1, 20)) for _ in masses])
    size = min(len(masses) + extra, int(counts.sum()))
    dealt = allocate(np.array(masses), counts, size)
    assert dealt.sum() == size
    assert ((dealt >= 1) & (dealt <= counts)).all()


def test_two_halves_of_equal_weight_get_as_many_each():
    np.testing.assert_array_equal(allocate(np.array([3.0, 3.0]), np.array([50, 80]), 14), [7, 7])


def test_the_fewest_that_reach_a_tolerance_are_found():
    class Fake:
        def __init__(self, size):
            self.size, self.lost = size, 1.0 / size

    for tol in (0.9, 0.5, 0.11, 0.1, 0.034):
        found, reached = fewest(Fake, lambda each, tol=tol: each.lost <= tol, 100, 100)
        assert found.size == np.ceil(1 / tol)
        assert reached
    found, reached = fewest(Fake, lambda each: each.lost <= 1e-4, 100, 100)
    assert (found.size, reached) == (100, False)


@pytest.mark.parametrize("method", ["mixture", "zhang", "kl", "refine", "kcenter"])
def test_the_same_seed_gives_the_same_bumps(method):
    full = expansion()
    parts = (full.weights[:, 0] > 0).astype(int)
    target = target_of(full, None, np.random.default_rng(0))
    one, other = (reduce_set(target, parts, 6, (method,), True, 5, 7, target.error) for _ in range(2))
    np.testing.assert_array_equal(one.expansion.centres, other.expansion.centres)
    np.testing.assert_array_equal(one.expansion.weights, other.expansion.weights)


def test_the_order_of_the_bumps_does_not_matter():
    full = expansion()
    order = np.random.default_rng(3).permutation(full.size)
    shuffled = GaussianExpansion(full.centres[order], full.widths, full.weights[order], full.intercepts)
    found = []
    for each in (full, shuffled):
        target = target_of(each, None, np.random.default_rng(0))
        parts = (each.weights[:, 0] > 0).astype(int)
        found.append(reduce_set(target, parts, 8, ("kcenter",), True, None, 0, target.error).expansion)
    Q = np.random.default_rng(1).normal(size=(50, 3))
    np.testing.assert_allclose(found[0](Q), found[1](Q), atol=1e-6)


def test_the_number_of_threads_does_not_change_the_bumps():
    full = expansion(n=200, d=40)
    parts = (full.weights[:, 0] > 0).astype(int)
    found = []
    for threads in (1, 2):
        reduset.set_threads(threads)
        target = target_of(full, full.centres, np.random.default_rng(0))
        found.append(reduce_set(target, parts, 12, ("mixture",), True, 5, 0, target.error).expansion)
    reduset.set_threads(None)
    np.testing.assert_array_equal(found[0].centres, found[1].centres)
    np.testing.assert_array_equal(found[0].weights, found[1].weights)


def test_large_bump_matrices_are_made_anew_and_say_the_same(monkeypatch):
    full = expansion(n=150)
    target, g = ExpansionTarget(full, full.centres, 0.5), few(full)
    kept = target._slopes(g.centres, g.widths**2)
    monkeypatch.setattr(expansion_fit, "KEPT", 0)
    monkeypatch.setattr(expansion_fit, "ENTRIES", 1)
    anew = ExpansionTarget(full, full.centres, 0.5)._slopes(g.centres, g.widths**2)
    for one, other in zip(kept[1:], anew[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-12)
