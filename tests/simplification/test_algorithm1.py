"""Algorithm 1 as printed (method="zhang"), weights by mass, and the bound (6) of Zhang & Kwok (2010)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

import reference_mixture as reference
from reduset import Mixture, NotReachedWarning, simplify
from reduset._engine.components import Components
from reduset.simplification import local_fit
from reduset.simplification.local_fit import ComponentArrays, ConvergedFit, matched_moments
from reference_algorithm1 import simplify_plainly
from reference_mixture import SHAPES, mixture_of
from simplification_cases import many, measured

ALONE = {"refit": False, "polish": False, "density": False}
EVERY_SHAPE = pytest.mark.parametrize("shape", SHAPES)
EVERY_OTHER = pytest.mark.parametrize("other", SHAPES)


def labels_of(rng, n, m):
    return rng.permutation(np.concatenate([np.arange(m), rng.integers(0, m, n - m)]))


def clumps(rng, m, each, d, shape, shared):
    """Components in m clumps, and a partition that has some of them in a wrong group."""
    f = mixture_of(rng, m * each, d, shape, shared, spread=0.7)
    centres = 4.0 * rng.normal(size=(m, d))
    labels = np.repeat(np.arange(m), each)
    f = Mixture(f.weights, f.means + centres[labels], f.covariances)
    wrong = rng.choice(m * each, m, replace=False)
    labels[wrong] = (labels[wrong] + 1) % m
    return f, labels


# -- Algorithm 1 as printed -------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@pytest.mark.fast_cases(20)
@EVERY_SHAPE
@EVERY_OTHER
@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
@pytest.mark.parametrize("d", [1, 2, 4])
def test_zhang_is_algorithm_1_step_by_step(shape, other, shared, d):
    """Against loops over groups, components and updates: groups, rounds, weights, centres and covariances."""
    rng = np.random.default_rng([d, SHAPES.index(shape), SHAPES.index(other), shared])
    f, labels = clumps(rng, 3, 8, d, shape, shared)
    closed_form = shared and other != "full" and SHAPES.index(shape) <= SHAPES.index(other)
    full = np.array(reference.matrices(f.covariances, d))
    weights, means, covariances, groups, distortions = simplify_plainly(f.weights, f.means, full, labels, other, closed_form)
    found = simplify(f, start=labels, method="zhang", covariance=other, **ALONE)
    np.testing.assert_array_equal(found.groups, groups)
    assert len(found.history) == len(distortions)
    np.testing.assert_allclose(found.mixture.weights, weights, rtol=1e-9)
    np.testing.assert_allclose(found.mixture.means, means, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.array(reference.matrices(found.mixture.covariances, d)), covariances, rtol=1e-8, atol=1e-10)


@pytest.mark.slow
def test_several_rounds_regroup_as_algorithm_1_does():
    """A poor start: what is compared takes several rounds, and ends by line 28."""
    rounds = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        f = mixture_of(rng, 40, 2, "full", spread=3.0)
        labels = np.argmin(np.abs(f.means[:, :1] - np.quantile(f.means[:, 0], [0.2, 0.5, 0.8])), axis=1)
        weights, means, _, groups, distortions = simplify_plainly(f.weights, f.means, f.covariances, labels)
        found = simplify(f, start=labels, method="zhang", rounds=100, **ALONE)
        np.testing.assert_array_equal(found.groups, groups)
        assert len(found.history) == len(distortions)
        np.testing.assert_allclose(found.mixture.means, means, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(found.mixture.weights, weights, rtol=1e-8)
        rounds.append(len(distortions))
    assert max(rounds) >= 5


def test_signs_are_simplified_separately():
    """Section IV: the positive and the negative part, each with its own end."""
    f, labels = clumps(np.random.default_rng(0), 2, 10, 2, "spherical", True)
    g, others = clumps(np.random.default_rng(1), 2, 10, 2, "spherical", True)
    g = Mixture(g.weights, g.means, np.full(20, f.covariances[0]))
    both = simplify(f - g, start=np.concatenate([labels, others]), method="zhang", covariance="spherical", **ALONE)
    plus = simplify(f, start=labels, method="zhang", covariance="spherical", **ALONE)
    minus = simplify(g, start=others, method="zhang", covariance="spherical", **ALONE)
    order = np.argsort(both.mixture.weights < 0, kind="stable")
    expected = np.concatenate([plus.mixture.weights, -minus.mixture.weights])
    np.testing.assert_allclose(both.mixture.weights[order], expected, rtol=1e-10)
    np.testing.assert_allclose(
        both.mixture.means[order], np.concatenate([plus.mixture.means, minus.mixture.means]), rtol=1e-9, atol=1e-10
    )


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 4),
    shape=st.sampled_from(SHAPES),
    other=st.sampled_from(SHAPES),
    shared=st.booleans(),
    spread=st.sampled_from([0.0, 0.1, 1.5, 20.0]),
)
def test_a_converged_fit_is_stationary(seed, d, shape, other, shared, spread):
    """One more update of centre or covariance moves by at most the tolerance; every covariance is one."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    f = mixture_of(rng, n, d, shape, shared, spread=spread)
    groups = labels_of(rng, n, int(rng.integers(1, min(n, 3) + 1)))
    size = int(groups.max()) + 1
    laid_out = Components(f.weights, f.means, f.covariances, other == "full")
    start = matched_moments(ComponentArrays(f.weights, f.means, f.covariances), groups, size, other)
    fit = ConvergedFit(laid_out, groups, start, other)
    found = fit.run(start)
    Mixture(np.ones(size), found.means, found.covariances)
    again = ComponentArrays(found.weights, found.means.copy(), found.covariances.copy())
    assert (fit._move_centres(again, np.arange(size)) <= 0.011).all()
    again = ComponentArrays(found.weights, found.means.copy(), found.covariances.copy())
    assert (fit._change_covariances(again, np.arange(size)) <= 0.01).all()
    for i in range(size):
        best = reference.local_error(f, groups, i, found.weights[i], found.means[i], found.covariances[i])
        for factor in (0.99, 1.01):
            other_weight = reference.local_error(f, groups, i, factor * found.weights[i], found.means[i], found.covariances[i])
            assert other_weight >= best


@EVERY_SHAPE
@EVERY_OTHER
def test_in_fine_units_no_small_change_lowers_the_local_error(shape, other):
    """The tolerance is absolute: with means of the order of 1000 the fit is the minimum of (7), up to one part in 10⁵."""
    rng = np.random.default_rng(3)
    f = mixture_of(rng, 10, 2, shape, spread=0.6)
    f = Mixture(f.weights, 1e3 * f.means, 1e6 * f.covariances)
    groups = np.zeros(10, np.int64)
    g = simplify(f, start=groups, method="zhang", covariance=other, rounds=1, **ALONE).mixture
    least = reference.local_error(f, groups, 0, g.weights[0], g.means[0], g.covariances[0])
    for _ in range(60):
        factor = np.exp(0.01 * rng.normal(size={"spherical": (), "diag": (2,), "full": (2, 1)}[other]))
        wide = g.covariances[0] * factor * (factor.T if other == "full" else 1.0)
        t, w = g.means[0] + 10 * rng.normal(size=2), g.weights[0] * np.exp(0.01 * rng.normal())
        assert reference.local_error(f, groups, 0, w, t, wide) >= least


def test_a_fit_that_does_not_converge_is_reported(monkeypatch):
    monkeypatch.setattr(local_fit, "MAX_UPDATES", 2)
    with pytest.warns(NotReachedWarning, match="local fits had not converged after 2 updates"):
        found = simplify(many(40), 3, method="zhang", rng=0, rounds=1, **ALONE)
    assert np.isfinite(found.error)


def test_both_methods_lead_to_about_the_same_error():
    """The faster one stops each local fit after three steps: on average within 5 % of Algorithm 1 as printed."""
    ratios = []
    for seed in range(10):
        f = many(100, 2, "spherical", shared=True, seed=seed)
        ratios.append(simplify(f, 8, rng=0, **ALONE).error / simplify(f, 8, rng=0, method="zhang", **ALONE).error)
    assert 0.95 < np.mean(ratios) < 1.05


def test_later_stages_follow_algorithm_1_too():
    f = many(80)
    alone, refitted, polished = (
        simplify(f, 6, method="zhang", rng=0, **options) for options in (ALONE, {"polish": False}, {"polish": 20})
    )
    assert refitted.error <= alone.error * 1.2  # the refitted weights keep the mass
    assert polished.error < refitted.error
    assert polished.method == "zhang"
    assert polished.error == pytest.approx(measured(f, polished), rel=1e-7)


# -- weights by mass --------------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@EVERY_OTHER
@pytest.mark.parametrize("method", ["l2", "zhang", "kl"])
@pytest.mark.parametrize("signed", [False, True])
def test_mass_weights_are_the_sums_of_their_groups(method, other, signed):
    """Section IV: wᵢ = Σ αⱼ over the group, so that the zeroth moment stays; centres and covariances are those of the fit."""
    f = many(50, 2, "diag", signed=signed)
    found = simplify(f, 6, method=method, covariance=other, rng=0, mass_weights=True, **ALONE)
    np.testing.assert_allclose(found.mixture.weights, [f.weights[found.groups == i].sum() for i in range(6)], rtol=1e-12)
    assert found.mixture.mass == pytest.approx(f.mass, rel=1e-12)
    fitted = simplify(f, 6, method=method, covariance=other, rng=0, **ALONE)
    np.testing.assert_array_equal(found.mixture.means, fitted.mixture.means)
    np.testing.assert_array_equal(found.mixture.covariances, fitted.mixture.covariances)
    assert found.error == pytest.approx(measured(f, found), rel=1e-7)
    if method == "kl":
        np.testing.assert_allclose(found.mixture.weights, fitted.mixture.weights, rtol=1e-12)


def test_mass_weights_of_one_component_leave_the_other_sign_out():
    f = Mixture([1.0, 2.0, -0.5], [[0.0], [1.0], [9.0]], [1.0, 1.0, 1.0])
    found = simplify(f, 1, rng=0, mass_weights=True, **ALONE)
    assert found.mixture.weights.tolist() == [3.0]
    assert found.groups.tolist() == [0, 0, -1]


def test_mass_weights_need_weights_that_are_not_refitted():
    with pytest.raises(ValueError, match=r"mass_weights=True.*refit=False.*polish=False"):
        simplify(many(20), 3, mass_weights=True)


# -- the bound --------------------------------------------------------------------------------------------------------


def slow_bound(f, found):
    """(m Σᵢ ∫(wᵢgᵢ − Σ_{j∈Sᵢ} αⱼφⱼ)²)^½ / ‖f‖, all pairs of every group written out."""
    g = found.mixture
    local = [reference.local_error(f, found.groups, i, g.weights[i], g.means[i], g.covariances[i]) for i in range(found.size)]
    return np.sqrt(found.size * np.sum(local) / reference.inner(f, f)), np.sqrt(np.maximum(local, 0) / reference.inner(f, f))


@pytest.mark.covering_cases
@EVERY_SHAPE
@EVERY_OTHER
@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
def test_the_bound_is_the_sum_over_the_groups(shape, other, shared):
    f = many(40, 2, shape, shared)
    for stages in (ALONE, {"polish": False}, {"polish": 10}):
        found = simplify(f, 5, covariance=other, rng=0, **stages)
        bound, local = slow_bound(f, found)
        assert found.bound(f) == pytest.approx(bound, rel=1e-9)
        np.testing.assert_allclose(found.local_errors(f), local, rtol=1e-6, atol=1e-8)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 3),
    shape=st.sampled_from(SHAPES),
    other=st.sampled_from(SHAPES),
    method=st.sampled_from(["l2", "zhang", "kl"]),
    stages=st.sampled_from([ALONE, {"polish": False}, {"polish": 5}, {**ALONE, "mass_weights": True}]),
    signed=st.booleans(),
    spread=st.sampled_from([0.5, 2.0, 30.0]),
)
def test_the_error_never_exceeds_the_bound(seed, d, shape, other, method, stages, signed, spread):
    """(6), for any stage, signed weights, and components without weight."""
    rng = np.random.default_rng(seed)
    f = mixture_of(rng, int(rng.integers(2, 25)), d, shape, bool(rng.integers(2)), signed, spread)
    weights = np.array(f.weights)
    weights[rng.integers(len(weights))] = 0.0
    if not weights.any() or abs(reference.inner(f, f)) < 1e-9 * np.abs(weights).sum() ** 2:
        return
    f = Mixture(weights, f.means, f.covariances)
    found = simplify(f, int(rng.integers(1, f.size)), method=method, covariance=other, rng=0, **stages)
    carried = np.abs(found.mixture.weights).sum() / np.abs(f.weights).sum()
    assert measured(f, found) <= found.bound(f) * (1 + 1e-9) + 1e-6 * max(1.0, carried)


def test_one_component_has_the_bound_as_its_error():
    f = many(30)
    found = simplify(f, 1, rng=0)
    assert found.bound(f) == pytest.approx(found.error, rel=1e-9)
    assert found.local_errors(f).tolist() == [pytest.approx(found.error, rel=1e-9)]


def test_components_in_no_group_count_for_the_bound():
    """One component for a signed mixture represents one sign; the other is a term of its own."""
    f = Mixture([1.0, 2.0, -0.5], [[0.0], [1.0], [2.0]], [1.0, 1.0, 1.0])
    found = simplify(f, 1, rng=0, **ALONE)
    rest = Mixture([-0.5], [[2.0]], [1.0])
    first = Mixture([1.0, 2.0], [[0.0], [1.0]], [1.0, 1.0])
    expected = np.sqrt(2 * (first.distance(found.mixture) ** 2 + rest.norm() ** 2)) / f.norm()
    assert found.bound(f) == pytest.approx(expected, rel=1e-9)
    assert len(found.local_errors(f)) == 1
    assert found.error <= found.bound(f)


def test_all_components_kept_have_no_error_and_no_bound():
    f = many(12)
    found = simplify(f, 12, rng=0)
    assert found.bound(f) == 0.0
    assert found.local_errors(f).tolist() == [0.0] * 12


def test_the_bound_does_not_overflow():
    rng = np.random.default_rng(0)
    f = Mixture(np.full(20, 1 / 20), 1e-7 * rng.normal(size=(20, 60)), np.full(20, 1e-14))
    found = simplify(f, 4, rng=0, polish=3)
    assert found.error <= found.bound(f) < 10


def test_the_bound_needs_the_mixture_that_was_simplified():
    found = simplify(many(30), 3, rng=0)
    with pytest.raises(ValueError, match="simplified, of 30 components in 2 dimensions; got 20 in 2"):
        found.bound(many(20))


def test_equation_14_fails_for_the_negative_exponential():
    """(14) states k(r₁)·k(r₂) = k(r₁ + r₂); for k(r) = exp(−β√r) it is k((√r₁ + √r₂)²), and (15) fails too."""
    beta, first, second = 1.3, 0.7, 1.9
    product = np.exp(-beta * np.sqrt(first)) * np.exp(-beta * np.sqrt(second))
    assert product == pytest.approx(np.exp(-beta * (np.sqrt(first) + np.sqrt(second))), rel=1e-12)
    assert abs(product / np.exp(-beta * np.sqrt(first + second)) - 1) > 0.5
    # the inner product of two such components on a line, by quadrature and in closed form
    a, b, apart = beta / np.sqrt(0.5), beta / np.sqrt(1.2), 0.8
    value, _ = quad(lambda x: a * b / 4 * np.exp(-a * abs(x) - b * abs(x - apart)), -40, 40, points=[0, apart], limit=400)
    closed = a * b / 2 * (a * np.exp(-b * apart) - b * np.exp(-a * apart)) / (a**2 - b**2)
    assert value == pytest.approx(closed, rel=1e-8)
