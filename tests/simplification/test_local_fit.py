"""Local fits: no update explains less, where they settle is a stationary point, and both groupings follow their definitions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import reference_mixture as reference
from reduset import Mixture
from reduset._engine.components import Components, as_full
from reduset.mixture.covariances import log_squares
from reduset.simplification.local_fit import (
    ComponentArrays,
    LocalFit,
    matched_moments,
    regroup_by_distance,
    regroup_by_divergence,
)
from reference_mixture import SHAPES, covariances_of, mixture_of

EVERY_SHAPE = pytest.mark.parametrize("shape", SHAPES)
EVERY_OTHER = pytest.mark.parametrize("other", SHAPES)
SHARED = pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])


def arrays(f, shift=0.0):
    return ComponentArrays(f.weights, f.means + shift, f.covariances)


def begun(f, groups, shape):
    """A local fit, its start by moments, and the components laid out."""
    size = int(groups.max()) + 1
    many = Components(f.weights, f.means, f.covariances, shape == "full")
    start = matched_moments(arrays(f), groups, size, shape)
    return LocalFit(many, groups, start, shape), start, many


def explained(f, groups, few):
    """log p²/‖g‖² of each group, by all pairs."""
    out = []
    for i in range(few.size):
        rows = groups == i
        p = reference.products(few.means[i : i + 1], few.covariances[i : i + 1], f.means[rows], f.covariances[rows])[0]
        out.append(2 * np.log(p @ f.weights[rows]) - log_squares(few.covariances[i : i + 1], f.dimension)[0])
    return np.array(out)


def any_groups(rng, count, size):
    return rng.permutation(np.concatenate([np.arange(size), rng.integers(0, size, count - size)]))


# -- each update ------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 4),
    shape=st.sampled_from(SHAPES),
    other=st.sampled_from(SHAPES),
    shared=st.booleans(),
    spread=st.sampled_from([0.0, 0.1, 1.5, 20.0]),
    moved=st.booleans(),
)
def test_no_update_raises_the_local_error(seed, d, shape, other, shared, spread, moved):
    """Of any group: components that coincide (spread 0), of one, far apart, and from starts that are no moments."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    f = mixture_of(rng, n, d, shape, shared, spread=spread)
    groups = any_groups(rng, n, int(rng.integers(1, min(n, 3) + 1)))
    fit, start, many = begun(f, groups, other)
    if moved:
        start = replace(
            start, means=start.means + rng.normal(size=start.means.shape), covariances=start.covariances * rng.uniform(0.2, 5)
        )
    here = fit.begin(start)
    best = [reference.local_error(f, groups, i, *fitted(here, i, many)) for i in range(start.size)]
    scale = np.array([reference.local_error(f, groups, i, 0.0, start.means[i], start.covariances[i]) for i in range(start.size)])
    for _ in range(8):
        before, here = here, fit.step(here)
        assert (here.energy >= before.energy).all()
        errors = [reference.local_error(f, groups, i, *fitted(here, i, many)) for i in range(start.size)]
        assert (np.array(errors) <= np.array(best) + 1e-9 * scale).all()
        best = errors
        Mixture(np.ones(start.size), here.reduced.means, here.reduced.covariances)  # every one a covariance


def fitted(here, i, many):
    """The i-th component of a standing with its best weight."""
    few = here.reduced
    unit = np.exp(log_squares(few.covariances, many.dimension) - many.log_unit)
    return here.moments.total[i] / unit[i], few.means[i], few.covariances[i]


@pytest.mark.covering_cases
@EVERY_SHAPE
@EVERY_OTHER
@SHARED
def test_the_energies_are_what_the_pairs_explain(shape, other, shared):
    rng = np.random.default_rng(0)
    f = mixture_of(rng, 12, 2, shape, shared)
    groups = any_groups(rng, 12, 3)
    fit, start, many = begun(f, groups, other)
    here = fit.step(fit.begin(start))
    np.testing.assert_allclose(here.energy + 2 * many.log_unit, explained(f, groups, here.reduced), rtol=1e-9, atol=1e-9)


@pytest.mark.covering_cases
@pytest.mark.fast_cases(11)
@EVERY_SHAPE
@EVERY_OTHER
@SHARED
def test_where_the_updates_settle_no_small_change_explains_more(shape, other, shared):
    rng = np.random.default_rng(1)
    f = mixture_of(rng, 10, 2, shape, shared, spread=0.6)
    groups = np.zeros(10, np.int64)
    fit, start, _ = begun(f, groups, other)
    here = fit.begin(start)
    for _ in range(400):
        here = fit.step(here)

    def energy(u):
        return -explained(f, groups, moved(here.reduced, u, other))[0]

    count = 2 + {"spherical": 1, "diag": 2, "full": 3}[other]
    slopes = [(energy(1e-4 * e) - energy(-1e-4 * e)) / 2e-4 for e in np.eye(count)]
    np.testing.assert_allclose(slopes, 0, atol=2e-5)
    best = minimize(energy, np.zeros(count), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-12, "maxfev": 300})
    assert best.fun >= energy(np.zeros(count)) - 1e-7


def moved(few, u, shape):
    """The one component with its place and its covariance changed a little, of the same shape."""
    change = {"spherical": np.exp(u[2:3]), "diag": np.exp(u[2:])[None]}.get(shape)
    if shape == "full":
        T = np.array([[np.exp(u[2]), 0.0], [u[3], np.exp(u[4])]])
        root = np.linalg.cholesky(few.covariances[0]) @ T
        return replace(few, means=few.means + u[:2], covariances=(root @ root.T)[None])
    return replace(few, means=few.means + u[:2], covariances=few.covariances * change)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_spherical_step_is_the_closed_form_of_the_paper(d):
    """(29): h̃² = V + (h⁴ + V²)^½, with centre and V of the weights at the place where one stands."""
    rng = np.random.default_rng(2)
    h2 = 0.49
    f = Mixture(rng.uniform(0.5, 1, 9), rng.normal(size=(9, d)), np.full(9, h2))
    groups = np.zeros(9, np.int64)
    fit, start, _ = begun(f, groups, "spherical")
    here = fit.begin(start)
    for _ in range(3):
        before, here = here, fit.step(here)
        t, wide = before.reduced.means[0], before.reduced.covariances[0]
        q = f.weights * np.exp(-np.square(t - f.means).sum(axis=1) / (2 * (h2 + wide)))
        q /= q.sum()
        V = q @ np.square(f.means - q @ f.means).sum(axis=1) / d
        np.testing.assert_allclose(here.reduced.means[0], q @ f.means, rtol=1e-10, atol=1e-12)
        assert here.reduced.covariances[0] == pytest.approx(V + np.sqrt(h2**2 + V**2), rel=1e-11)


@EVERY_SHAPE
@EVERY_OTHER
def test_the_weight_of_a_fit_is_the_best_for_its_group(shape, other):
    """(17), against the minimum of the local error over the weight."""
    rng = np.random.default_rng(3)
    f = mixture_of(rng, 9, 2, shape)
    groups = any_groups(rng, 9, 2)
    fit, start, _ = begun(f, groups, other)
    found = fit.run(start)
    for i in range(2):
        of_weight = [reference.local_error(f, groups, i, w, found.means[i], found.covariances[i]) for w in (0.0, 1.0, 2.0)]
        c, a = of_weight[0], (of_weight[2] - 2 * of_weight[1] + of_weight[0]) / 2
        b = of_weight[1] - of_weight[0] - a
        assert found.weights[i] == pytest.approx(-b / (2 * a), rel=1e-8)
        assert reference.local_error(f, groups, i, found.weights[i], found.means[i], found.covariances[i]) <= c


@EVERY_SHAPE
def test_a_group_of_one_is_itself(shape):
    rng = np.random.default_rng(4)
    f = mixture_of(rng, 5, 3, shape)
    fit, start, _ = begun(f, np.arange(5), shape)
    found = fit.run(start)
    np.testing.assert_allclose(found.weights, f.weights, rtol=1e-9)
    np.testing.assert_allclose(found.means, f.means, rtol=1e-9)
    np.testing.assert_allclose(found.covariances, f.covariances, rtol=1e-9)


# -- moments ----------------------------------------------------------------------------------------------------------


@EVERY_SHAPE
@EVERY_OTHER
def test_matched_moments_are_mass_mean_and_covariance_of_the_group(shape, other):
    """(21), against the mixture of the group as a whole."""
    rng = np.random.default_rng(5)
    f = mixture_of(rng, 20, 3, shape)
    groups = any_groups(rng, 20, 4)
    few = matched_moments(arrays(f, 1e7), groups, 4, other)
    for i in range(4):
        rows = groups == i
        part = Mixture(f.weights[rows], f.means[rows], f.covariances[rows])
        whole = part.covariance()
        expected = {"full": whole, "diag": np.diagonal(whole), "spherical": np.trace(whole) / 3}[other]
        assert few.weights[i] == pytest.approx(part.mass, rel=1e-12)
        np.testing.assert_allclose(few.means[i] - 1e7, part.mean(), atol=1e-7)
        np.testing.assert_allclose(few.covariances[i], expected, rtol=1e-6, atol=1e-8)


@EVERY_SHAPE
def test_matched_moments_are_the_component_of_least_divergence_from_the_group(shape):
    rng = np.random.default_rng(6)
    f = mixture_of(rng, 6, 2)
    groups = np.zeros(6, np.int64)
    few = matched_moments(arrays(f), groups, 1, shape)

    def divergence(other):
        H = as_full(other.covariances, 2)[0]
        return sum(
            w * reference.kl_of_gaussians(t, C, other.means[0], H)
            for w, t, C in zip(f.weights, f.means, f.covariances, strict=True)
        )

    least = divergence(few)
    for _ in range(40):
        count = 2 + {"spherical": 1, "diag": 2, "full": 3}[shape]
        assert divergence(moved(few, 0.05 * rng.normal(size=count), shape)) >= least - 1e-12


# -- grouping ---------------------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@EVERY_SHAPE
@EVERY_OTHER
@SHARED
def test_components_join_the_closest_representative_in_l2(shape, other, shared):
    rng = np.random.default_rng(7)
    f = mixture_of(rng, 30, 2, shape, shared)
    many = Components(f.weights, f.means, f.covariances, other == "full")
    few = ComponentArrays(rng.uniform(0.1, 1, 4), 1.5 * rng.normal(size=(4, 2)), covariances_of(rng, 4, 2, other))
    masses = rng.uniform(0.1, 1, 4)
    groups, squares, kappa = regroup_by_distance(many, few, masses)
    unit = np.exp(many.log_unit)
    expected = np.empty((30, 4))
    facings = [Mixture(few.weights[i : i + 1] / masses[i], few.means[i : i + 1], few.covariances[i : i + 1]) for i in range(4)]
    for j in range(30):
        own = Mixture([1.0], f.means[j : j + 1], f.covariances[j : j + 1])
        for i, facing in enumerate(facings):
            expected[j, i] = reference.distance(own, facing) ** 2
    np.testing.assert_array_equal(groups, expected.argmin(axis=1))
    np.testing.assert_allclose(squares * unit, expected.min(axis=1), rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(kappa * unit, reference.products(few.means, few.covariances, f.means, f.covariances) @ f.weights)


@EVERY_SHAPE
@EVERY_OTHER
def test_components_join_the_one_of_least_divergence(shape, other):
    rng = np.random.default_rng(8)
    f = mixture_of(rng, 30, 2, shape)
    few = ComponentArrays(np.ones(4), 1.5 * rng.normal(size=(4, 2)) + 1e5, covariances_of(rng, 4, 2, other))
    groups, costs = regroup_by_divergence(arrays(f, 1e5), few)
    C, H = (reference.matrices(each, 2) for each in (f.covariances, few.covariances))
    expected = np.array(
        [[reference.kl_of_gaussians(f.means[j] + 1e5, C[j], few.means[i], H[i]) for i in range(4)] for j in range(30)]
    )
    np.testing.assert_array_equal(groups, expected.argmin(axis=1))
    own = np.array([np.linalg.slogdet(each)[1] for each in C])
    np.testing.assert_allclose((costs - own - 2) / 2, expected.min(axis=1), rtol=1e-7, atol=1e-8)


@EVERY_SHAPE
def test_the_best_of_a_group_over_its_mass_is_the_best_representative(shape):
    """Proposition 1: the R of least Σⱼ αⱼ‖R − φⱼ‖² is the local fit over the sum of the α."""
    rng = np.random.default_rng(9)
    f = mixture_of(rng, 8, 2, shape)
    groups = np.zeros(8, np.int64)
    fit, start, _ = begun(f, groups, shape)
    here = fit.begin(start)
    for _ in range(200):
        here = fit.step(here)
    found = fit.run(here.reduced)
    pieces = [Mixture([1.0], f.means[j : j + 1], f.covariances[j : j + 1]) for j in range(8)]

    def distortion(weight, few):
        one = Mixture([weight], few.means, few.covariances)
        return sum(a * reference.distance(one, piece) ** 2 for a, piece in zip(f.weights, pieces, strict=True))

    best = found.weights[0] / f.mass
    least = distortion(best, found)
    for factor in (0.98, 1.02):
        assert distortion(best * factor, found) > least
    count = 2 + {"spherical": 1, "diag": 2, "full": 3}[shape]
    for _ in range(20):
        assert distortion(best * np.exp(0.02 * rng.normal()), moved(found, 0.02 * rng.normal(size=count), shape)) >= least - 1e-9
