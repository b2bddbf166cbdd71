"""The joint descent: its gradient, that it never loses, and that the weights at any place are the best of all."""

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
from reduset.simplification import joint_fit as module
from reduset.simplification.joint_fit import JointFit
from reduset.simplification.local_fit import ComponentArrays
from reference_mixture import SHAPES, covariances_of, mixture_of

EVERY_SHAPE = pytest.mark.parametrize("shape", SHAPES)
EVERY_OTHER = pytest.mark.parametrize("other", SHAPES)
WEIGHTS = pytest.mark.parametrize("density", [False, True], ids=["free", "simplex"])


def fitting_of(f, shape, density):
    return JointFit(Components(f.weights, f.means, f.covariances, shape == "full"), f.mass if density else None)


def some_few(rng, count, d, shape):
    return ComponentArrays(
        rng.uniform(0.1, 1, count), rng.normal(size=(count, d)), covariances_of(rng, count, d, shape, widths=(0.8, 2.0))
    )


def squared_error(f, few):
    """‖f − g‖² in closed form."""
    g = Mixture(few.weights, few.means, few.covariances)
    return f.inner(f) - 2 * f.inner(g) + g.inner(g)


def objective(fitting, few, monkeypatch):
    """The function that the descent is given, at its variables."""
    caught = []
    monkeypatch.setattr(module, "minimize", lambda value, start, **options: caught.append((value, start)))
    fitting.descend(few, 1, lambda error: None)
    monkeypatch.undo()
    return caught[0]


def sizes(few):
    """Σ |w| ‖g‖: weights that cancel carry the rounding of their sizes."""
    return float(np.abs(few.weights) @ np.exp(0.5 * log_squares(few.covariances, few.means.shape[1])))


# -- the gradient -----------------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@EVERY_SHAPE
@EVERY_OTHER
@WEIGHTS
@pytest.mark.parametrize("d", [1, 3])
def test_the_gradient_is_the_slope_of_the_error(shape, other, density, d, monkeypatch):
    rng = np.random.default_rng(d)
    f = mixture_of(rng, 15, d, shape)
    fitting = fitting_of(f, other, density)
    value, start = objective(fitting, some_few(rng, 3, d, other), monkeypatch)
    value(start)  # sets the unit
    u = 0.2 * rng.normal(size=len(start))
    _, slope = value(u)
    step = 1e-5
    expected = [(value(u + step * e)[0] - value(u - step * e)[0]) / (2 * step) for e in np.eye(len(u))]
    np.testing.assert_allclose(slope, expected, rtol=2e-5, atol=2e-7)


@EVERY_SHAPE
@pytest.mark.parametrize("shared", [False, True])
def test_the_objective_is_the_exact_error_up_to_a_constant_and_a_unit(shape, shared, monkeypatch):
    rng = np.random.default_rng(3)
    f = mixture_of(rng, 15, 2, shape, shared)
    fitting = fitting_of(f, shape, False)
    few = some_few(rng, 3, 2, shape)
    value, start = objective(fitting, few, monkeypatch)
    assert value(start)[0] == pytest.approx(-1.0)
    explained = reference.inner(f, f) - squared_error(f, fitting.refit(few))
    roots = np.linalg.cholesky(as_full(few.covariances, 2))
    moved = replace(few, means=few.means + roots @ [0.1, 0.1])
    other = reference.inner(f, f) - squared_error(f, fitting.refit(moved))
    u = start.reshape(3, -1).copy()
    u[:, :2] = 0.1 / fitting._stretch(few)
    assert value(u.ravel())[0] == pytest.approx(-other / explained, rel=1e-9)


@WEIGHTS
@pytest.mark.parametrize("shape", ["full", "diag", "spherical"])
def test_pairs_give_what_matrices_give(shape, density):
    rng = np.random.default_rng(4)
    f = mixture_of(rng, 30, 3, shape)
    fitting = fitting_of(f, "full", density)
    variables = module._Variables(some_few(rng, 4, 3, "full"))
    u = 0.3 * rng.normal(size=variables.count)
    weights, error, slopes = fitting._pair_slopes(variables, u)
    here, expected, by_mean, by_covariance = fitting._slopes(variables.components(u))
    np.testing.assert_allclose(weights, here.weights, rtol=1e-9, atol=1e-12)
    assert error == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(slopes, variables.gradient(u, by_mean, by_covariance), rtol=1e-8, atol=1e-12)


def narrowed(gap):
    """A fit, its variables about a narrow component, and a place of them where that one is e²⁰ times narrower."""
    rng = np.random.default_rng(4)
    fitting = fitting_of(mixture_of(rng, 30, 2, "full"), "full", True)
    narrow = np.array([[1.0, 1.0 - gap], [1.0 - gap, 1.0]])
    variables = module._Variables(replace(some_few(rng, 2, 2, "full"), covariances=np.array([np.eye(2), narrow])))
    u = np.zeros((2, 5))
    u[1, 4] = -10.0  # its second pivot
    return fitting, variables, u.ravel()


@pytest.mark.parametrize("slopes", [JointFit._pair_slopes, JointFit._slopes_by_variables], ids=["pairs", "matrices"])
def test_what_is_singular_to_rounding_is_turned_back_from(slopes):
    with pytest.raises(np.linalg.LinAlgError, match="a covariance has collapsed"):
        slopes(*narrowed(1e-9))


def test_what_is_only_narrow_is_not_taken_for_singular():
    fitting, variables, u = narrowed(1e-2)
    assert fitting._pair_slopes(variables, u)[1] == pytest.approx(fitting._slopes_by_variables(variables, u)[1], rel=1e-9)


# -- the descent ------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 3),
    shape=st.sampled_from(SHAPES),
    other=st.sampled_from(SHAPES),
    shared=st.booleans(),
    density=st.booleans(),
    coincide=st.booleans(),
)
def test_the_exact_error_never_rises_along_the_descent(seed, d, shape, other, shared, density, coincide):
    rng = np.random.default_rng(seed)
    f = mixture_of(rng, int(rng.integers(2, 15)), d, shape, shared, spread=rng.choice([0.0, 1.0, 5.0]))
    few = some_few(rng, int(rng.integers(1, 4)), d, other)
    if coincide:
        few = replace(few, means=np.repeat(few.means[:1], few.size, axis=0), covariances=few.covariances[[0] * few.size])
    told, seen = [], [fitting_of(f, other, density).refit(few)]
    for steps in (1, 2, 4, 12):  # each begins with the steps of the one before
        told.clear()
        fitting = fitting_of(f, other, density)
        seen.append(fitting.descend(few, steps, told.append))
    errors = np.array([squared_error(f, each) for each in seen])
    rounding = np.array([1e-13 * sizes(each) ** 2 for each in seen]) + 1e-10 * f.inner(f)
    assert (np.diff(errors) <= rounding[1:] + rounding[:-1]).all()
    assert (np.diff(told) <= 0).all()
    found = seen[-1]
    if told:
        assert abs(told[-1] * np.exp(fitting.many.log_unit) + f.inner(f) - errors[-1]) <= rounding[-1]
    if density:
        assert found.weights.min() >= 0
        assert found.weights.sum() == pytest.approx(f.mass, rel=1e-9)


@EVERY_SHAPE
def test_the_descent_ends_where_no_small_change_helps(shape):
    rng = np.random.default_rng(5)
    f = mixture_of(rng, 12, 1, shape)
    fitting = fitting_of(f, shape, False)
    found = fitting.descend(some_few(rng, 2, 1, shape), 500, lambda error: None)
    least = squared_error(f, found)
    for _ in range(60):
        change = np.exp(0.01 * rng.normal(size=2)).reshape(-1, *[1] * (found.covariances.ndim - 1))
        other = replace(found, means=found.means + 0.01 * rng.normal(size=(2, 1)), covariances=found.covariances * change)
        assert squared_error(f, fitting.refit(other)) >= least * (1 - 1e-6) - 1e-12


def test_a_mixture_of_as_few_is_found_again():
    f = Mixture([0.3, 0.7], [[0.0, 0.0], [2.5, 1.0]], np.array([[[1.0, 0.3], [0.3, 0.5]], [[0.6, -0.2], [-0.2, 0.9]]]))
    start = ComponentArrays(np.array([0.5, 0.5]), f.means + 0.4, np.array([np.eye(2)] * 2))
    found = fitting_of(f, "full", True).descend(start, 300, lambda error: None)
    np.testing.assert_allclose(found.means, f.means, atol=1e-3)
    np.testing.assert_allclose(found.covariances, f.covariances, atol=1e-3)
    np.testing.assert_allclose(found.weights, f.weights, atol=1e-3)


def test_far_from_the_origin_the_descent_is_the_same():
    rng = np.random.default_rng(6)
    f = mixture_of(rng, 30, 2)
    few = some_few(rng, 3, 2, "full")
    far = Mixture(f.weights, f.means + 1e6, f.covariances)
    one = fitting_of(f, "full", True).descend(few, 10, lambda error: None)
    other = fitting_of(far, "full", True).descend(replace(few, means=few.means + 1e6), 10, lambda error: None)
    np.testing.assert_allclose(other.means - 1e6, one.means, atol=1e-4)
    np.testing.assert_allclose(other.weights, one.weights, atol=1e-5)


# -- all weights together ---------------------------------------------------------------------------------------------


@EVERY_SHAPE
@EVERY_OTHER
def test_free_weights_solve_the_normal_equations(shape, other):
    rng = np.random.default_rng(7)
    f = mixture_of(rng, 20, 2, shape, signed=True)
    few = some_few(rng, 4, 2, other)
    found = fitting_of(f, other, False).refit(few)
    G = reference.products(few.means, few.covariances, few.means, few.covariances)
    kappa = reference.products(few.means, few.covariances, f.means, f.covariances) @ f.weights
    np.testing.assert_allclose(G @ found.weights, kappa, rtol=1e-7, atol=1e-10)
    np.testing.assert_array_equal(found.means, few.means)


@EVERY_SHAPE
@pytest.mark.parametrize("scale", [1e-100, 1e-6, 1.0, 1e6, 1e100])
def test_the_weights_of_a_density_are_the_best_on_the_simplex(shape, scale):
    """Against a general solver; the far component and the twin press weights to zero."""
    rng = np.random.default_rng(8)
    f = mixture_of(rng, 20, 2, shape)
    few = some_few(rng, 5, 2, shape)
    few = replace(few, means=np.vstack([few.means[:3], few.means[2:3] + 1e-3, [[9.0, 9.0]]]))
    found = fitting_of(f * scale, shape, True).refit(few)
    assert found.weights.min() >= 0
    assert found.weights.sum() == pytest.approx(scale, rel=1e-9)
    G = reference.products(few.means, few.covariances, few.means, few.covariances)
    kappa = reference.products(few.means, few.covariances, f.means, f.covariances) @ f.weights
    peer = minimize(
        lambda w: w @ G @ w - 2 * w @ kappa,
        np.full(5, 0.2),
        jac=lambda w: 2 * (G @ w - kappa),
        bounds=[(0, None)] * 5,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(5)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    w = found.weights / scale
    assert w @ G @ w - 2 * w @ kappa <= peer.fun + 1e-9 * abs(peer.fun)


def test_weights_of_broad_components_in_many_dimensions_are_the_best_too():
    """Where each product is far below the highest peak of f."""
    rng = np.random.default_rng(9)
    f = Mixture(np.full(60, 1 / 60), rng.normal(size=(60, 30)), np.full(60, 0.02))
    few = ComponentArrays(np.ones(4), f.means[:4], np.full(4, 2.0))
    found = fitting_of(f, "spherical", True).refit(few)
    g = lambda w: Mixture(w, few.means, few.covariances)  # noqa: E731
    unit = g(np.ones(4)).inner(g(np.ones(4)))
    error = lambda w: (g(w).inner(g(w)) - 2 * f.inner(g(w))) / unit  # noqa: E731
    least = error(found.weights)
    for _ in range(200):
        other = np.maximum(found.weights + 0.01 * rng.normal(size=4), 0)
        assert error(other / other.sum()) >= least - 1e-12


def test_twins_share_a_finite_weight():
    f = mixture_of(np.random.default_rng(10), 10, 2)
    few = ComponentArrays(np.ones(3), np.zeros((3, 2)), np.ones(3))
    for density in (False, True):
        found = fitting_of(f, "spherical", density).refit(few)
        assert np.isfinite(found.weights).all()
        assert np.abs(found.weights).max() <= 2.0
        alone = fitting_of(f, "spherical", density).refit(ComponentArrays(np.ones(1), np.zeros((1, 2)), np.ones(1)))
        assert found.weights.sum() == pytest.approx(alone.weights[0], rel=1e-6)
