"""Boxes, distribution functions and grids of kernel means: against quadrature, SciPy's densities, draws, and their own laws."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from reduset import (
    FunctionKernel,
    Gaussian,
    KernelMean,
    Laplacian,
    Matern,
    NotReachedWarning,
    Student,
    compress,
    set_threads,
)

FAMILIES = {
    "gaussian": Gaussian(0.6),
    "laplacian": Laplacian(0.6),
    "cityblock": Laplacian(0.6, metric="cityblock"),
    "matern": Matern(0.6),
    "smoother matern": Matern(0.6, smoothness=2.5),
    "cauchy": Student(0.6),
    "student": Student(0.6, exponent=2.2),
}
COVARIANCE = np.array([[2.0, 0.6], [0.6, 0.5]])
EVERY = pytest.mark.parametrize("kernel", FAMILIES.values(), ids=list(FAMILIES))


def mean_of(kernel, d=2, n=6, seed=0, signed=False):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=n) if signed else rng.dirichlet(np.ones(n))
    return KernelMean(rng.normal(size=(n, d)), weights, kernel)


def by_quadrature(mean, low, high, count=60):
    """In the plane: each atom's quadrants apart, with nodes that gather at the atom, where a bump may have a corner."""
    kernel = replace(mean.kernel, normalized=True)
    nodes, shares = np.polynomial.legendre.leggauss(count)
    u, shares = (nodes + 1) / 2, shares / 2
    total = 0.0
    for atom, weight in zip(mean.atoms, mean.weights, strict=True):
        bump = KernelMean(atom[None], [1.0], kernel)
        sides = [sorted({a, b, float(np.clip(c, a, b))}) for a, b, c in zip(low, high, atom, strict=True)]
        for (a, b), (c, e) in itertools.product(*(itertools.pairwise(side) for side in sides)):
            grids, factors = [], []
            for start, stop, at in ((a, b, atom[0]), (c, e, atom[1])):
                near, far = (start, stop) if abs(start - at) <= abs(stop - at) else (stop, start)
                grids.append(near + (far - near) * u**3)
                factors.append(abs(far - near) * 3 * u**2 * shares)
            places = np.stack([each.ravel() for each in np.meshgrid(*grids, indexing="ij")], axis=1)
            total += weight * float(factors[0] @ bump(places, "double").reshape(count, count) @ factors[1])
    return total


# -- against other ways ---------------------------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize(("low", "high"), [(-1.0, 2.0), (0.3, 0.4), (2.0, 4.0), (-5.0, -4.5)])
def test_an_interval_holds_what_quadrature_finds(kernel, low, high):
    mean = KernelMean(np.array([[0.1]]), [1.0], kernel)
    density = KernelMean(np.array([[0.1]]), [1.0], replace(kernel, normalized=True))
    found, _ = integrate.quad(lambda x: float(density([[x]], "double")[0]), low, high, points=[0.1], epsabs=0, epsrel=1e-10)
    assert mean.integrate_box(low, high) == pytest.approx(found, rel=1e-9)


@EVERY
@pytest.mark.parametrize("scales", [None, [0.5, 3.0]])
@pytest.mark.parametrize(("low", "high"), [([-1.0, -0.5], [0.7, 1.5]), ([0.2, 1.0], [0.3, 6.0]), ([2.0, -4.0], [5.0, -2.0])])
def test_a_rectangle_holds_what_quadrature_finds(kernel, scales, low, high):
    mean = mean_of(replace(kernel, scales=scales), signed=True)
    assert mean.integrate_box(low, high) == pytest.approx(by_quadrature(mean, low, high), rel=1e-7, abs=1e-11)


@pytest.mark.parametrize("kernel", [Gaussian(0.6), Laplacian(0.6), Matern(0.6), Student(0.6)], ids=lambda kernel: kernel.name)
def test_a_rectangle_of_oblique_bumps_holds_what_quadrature_finds(kernel):
    mean = mean_of(replace(kernel, covariance=COVARIANCE))
    low, high = [-1.0, -0.5], [0.7, 1.5]
    assert mean.integrate_box(low, high) == pytest.approx(
        by_quadrature(mean, low, high), abs=1e-9 if kernel.name == "gaussian" else 5e-5
    )


@EVERY
@pytest.mark.parametrize("d", [1, 3, 4])
def test_boxes_hold_their_share_of_draws(kernel, d):
    mean = mean_of(kernel, d)
    rng = np.random.default_rng(1)
    low = rng.uniform(-2, 0, size=(4, d))
    high = low + rng.uniform(1, 4, size=(4, d))
    high[0], low[1] = np.inf, -np.inf
    draws = mean.sample(100_000, rng=2)
    shares = [((draws >= a) & (draws <= b)).all(axis=1).mean() for a, b in zip(low, high, strict=True)]
    assert np.abs(mean.integrate_box(low, high) - shares).max() < 5 * 0.5 / np.sqrt(100_000)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_scipys_probability(d, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, d)) @ np.triu(np.full((d, d), 0.7))
    w = rng.uniform(size=200) if weighted else None
    theirs = stats.gaussian_kde(X.T, weights=w)
    covariance = np.atleast_2d(np.cov(X.T, aweights=w))
    ours = KernelMean.from_samples(X, Gaussian("scott", covariance=covariance, normalized=True), w)
    assert np.abs(ours(X, "double") - theirs(X.T)).max() < 1e-12
    for low, high in ((-0.5, 0.8), (-np.inf, 0.3), (1.0, np.inf)):
        box = np.full(d, low), np.full(d, high)
        expected = theirs.integrate_box_1d(low, high) if d == 1 else theirs.integrate_box(*box)
        assert ours.integrate_box(*box) == pytest.approx(expected, abs=1e-10)


def test_in_three_oblique_columns_it_is_scipys_within_both_errors():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) @ np.array([[1, 0.5, 0.2], [0, 0.7, 0.3], [0, 0, 1.0]])
    theirs = stats.gaussian_kde(X.T)
    ours = KernelMean.from_samples(X, Gaussian("scott", covariance=np.cov(X.T)))
    low, high = [-1.0, -1.0, -0.5], [1.0, 0.5, 2.0]
    assert ours.integrate_box(low, high, tol=2e-5) == pytest.approx(theirs.integrate_box(low, high), abs=1e-4)


def test_an_error_that_was_asked_for_is_kept_nineteen_times_in_twenty():
    rng = np.random.default_rng(5)
    roots = rng.normal(size=(12, 3, 3)) / 2
    misses = 0
    for root in roots:
        mean = KernelMean(rng.normal(size=(15, 3)), np.full(15, 1 / 15), Gaussian(1.0, covariance=root @ root.T + 0.1 * np.eye(3)))
        fine = mean.integrate_box([-1.0] * 3, [0.5] * 3, tol=1e-5)
        misses += abs(mean.integrate_box([-1.0] * 3, [0.5] * 3, tol=1e-3) - fine) > 2 * 1e-3
    assert misses <= 2


def test_an_error_that_is_not_reached_is_told(monkeypatch):

    monkeypatch.setattr("reduset._engine.boxes.MAX_POINTS", 1 << 14)
    mean = mean_of(Gaussian(0.6, covariance=np.eye(3) + 0.3), 3)
    with pytest.warns(NotReachedWarning, match="tol=1e-10"):
        mean.integrate_box([-1.0] * 3, [1.0] * 3, tol=1e-10)


@pytest.mark.parametrize("at", [5.0, 15.0, 30.0])
def test_a_box_far_out_keeps_its_digits(at):
    mean = KernelMean(np.zeros((1, 1)), [1.0], Gaussian(1.0))
    tail = np.exp(special.log_ndtr(-at))
    assert mean.integrate_box(at, np.inf) == pytest.approx(tail, rel=1e-12)
    assert mean.integrate_box(-np.inf, -at) == pytest.approx(tail, rel=1e-12)
    assert mean.integrate_box(-at - 9, -at) == pytest.approx(tail, rel=1e-12)
    corner = KernelMean(np.zeros((1, 2)), [1.0], Gaussian(1.0)).integrate_box([at, -1.0], [np.inf, 1.0])
    assert corner == pytest.approx(tail * special.erf(np.sqrt(0.5)), rel=1e-12)


def test_a_tail_of_a_student_is_a_power_however_far():
    mean = KernelMean(np.zeros((1, 1)), [1.0], Student(1.0))
    assert mean.integrate_box(1e12, np.inf) == pytest.approx(1e-12 / np.pi, rel=1e-9)
    plane = KernelMean(np.zeros((1, 2)), [1.0], Student(1.0))  # whose marginal is a Cauchy law
    assert plane.integrate_box([3.0, -np.inf], [np.inf, np.inf]) == pytest.approx(0.5 - np.arctan(3.0) / np.pi, rel=1e-11)


# -- laws -----------------------------------------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("normalized", [False, True])
def test_the_whole_space_has_the_sum_of_the_weights(kernel, d, normalized):
    mean = mean_of(replace(kernel, normalized=normalized), d, signed=True)
    assert mean.integrate_box([-np.inf] * d, [np.inf] * d) == pytest.approx(mean.mass, abs=1e-12)
    assert mean.integrate_box([np.inf] * d, [np.inf] * d) == 0.0 == mean.integrate_box([0.1] * d, [0.1] * d)


@pytest.mark.fast_cases(2)
@EVERY
@settings(max_examples=30, deadline=None)
@given(cuts=st.lists(st.floats(-6, 6), min_size=3, max_size=3), other=st.floats(-3, 3))
def test_boxes_add(kernel, cuts, other):
    a, b, c = sorted(cuts)
    mean = mean_of(kernel, signed=True)
    parts = mean.integrate_box([[a, -1.0], [b, -1.0]], [[b, other + 3], [c, other + 3]]) if other + 3 >= -1 else np.zeros(2)
    whole = mean.integrate_box([a, -1.0], [c, other + 3])
    assert parts.sum() == pytest.approx(whole, abs=1e-12)


@EVERY
@settings(max_examples=30, deadline=None)
@given(steps=st.lists(st.floats(0, 2), min_size=4, max_size=4))
def test_a_distribution_function_rises(kernel, steps):
    mean = mean_of(kernel)
    path = np.cumsum(np.array(steps).reshape(2, 2), axis=0) - 2
    values = mean.cdf(np.concatenate([path, [[np.inf, np.inf]]]))
    assert (np.diff(values) >= -1e-14).all()
    assert values[-1] == pytest.approx(1.0)


@EVERY
def test_a_distribution_function_is_the_box_below(kernel):
    mean = mean_of(kernel, signed=True)
    Q = np.array([[0.0, 0.5], [np.inf, -1.0], [-np.inf, 2.0]])
    assert mean.cdf(Q) == pytest.approx(mean.integrate_box([-np.inf, -np.inf], Q), abs=1e-14)
    line = mean_of(kernel, 1)
    step = 1e-5
    slope = (line.cdf([[0.3 + step]]) - line.cdf([[0.3 - step]])) / (2 * step)
    assert slope[0] == pytest.approx(float(np.exp(line.log_density([[0.3]], "double")[0])), rel=1e-6)


def test_a_column_without_limits_is_integrated_out():
    mean = mean_of(Gaussian(0.6, scales=[1.0, 2.0, 0.5]), 3)
    low, high = [-1.0, -np.inf, -0.5], [0.5, np.inf, 2.0]
    margin = KernelMean(mean.atoms[:, [0, 2]], mean.weights, Gaussian(0.6, scales=[1.0, 0.5]))
    assert mean.integrate_box(low, high) == pytest.approx(margin.integrate_box([-1.0, -0.5], [0.5, 2.0]), rel=1e-13)


def test_a_diagonal_covariance_is_scales():
    mean = mean_of(Gaussian(0.6, covariance=np.diag([4.0, 0.25])))
    same = KernelMean(mean.atoms, mean.weights, Gaussian(0.6, scales=[2.0, 0.5]))
    assert mean.cdf([[0.2, 0.4]]) == pytest.approx(same.cdf([[0.2, 0.4]]), rel=1e-13)


@pytest.mark.parametrize("rho", [-0.999, -0.3, 0.0, 0.9, 0.999999])
def test_two_columns_are_owens_whatever_the_limits(rho):
    mean = KernelMean(np.zeros((1, 2)), [1.0], Gaussian(1.0, covariance=[[1.0, rho], [rho, 1.0]]))
    law = stats.multivariate_normal(cov=[[1.0, rho], [rho, 1.0]])
    Q = np.array([[0.0, 0.0], [0.0, 1.2], [-0.7, 0.0], [1.0, 1.0], [-1.0, 0.5], [3.0, -2.0], [np.inf, 0.4], [0.1, -np.inf]])
    assert mean.cdf(Q) == pytest.approx([law.cdf(q) for q in Q], abs=1e-8)
    assert mean.cdf(Q[:1])[0] == pytest.approx(0.25 + np.arcsin(rho) / (2 * np.pi), abs=1e-14)


@pytest.mark.slow
def test_threads_and_blocks_change_nothing_and_much_is_taken_in_blocks():
    rng = np.random.default_rng(0)
    mean = KernelMean(rng.normal(size=(150_000, 2)), rng.normal(size=150_000), Gaussian(0.3))
    low = rng.normal(size=(70, 2))
    try:
        set_threads(1)
        one = mean.integrate_box(low, low + 1)
        set_threads(3)
        three = mean.integrate_box(low, low + 1)
    finally:
        set_threads(None)
    assert (one == three).all()
    parts = [KernelMean(mean.atoms[k::3], mean.weights[k::3], mean.kernel).integrate_box(low, low + 1) for k in range(3)]
    assert np.abs(np.sum(parts, axis=0) - one).max() < 1e-10 * mean.total


def test_a_compression_holds_nearly_the_same_within_its_l2_bound():
    rng = np.random.default_rng(0)
    full = KernelMean.from_samples(rng.normal(size=(3000, 2)), Gaussian(0.4, normalized=True, space="l2"))
    small = compress(full, size=60, rng=0)
    low, high = np.array([-1.0, -0.5]), np.array([0.5, 1.5])
    bound = small.certificate.interval[1] * small.certificate.norm * np.sqrt(np.prod(high - low))
    assert abs(small.mean.integrate_box(low, high) - full.integrate_box(low, high)) <= bound


# -- grids ----------------------------------------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_grid_holds_the_values_at_its_points(kernel, d):
    mean = mean_of(replace(kernel, normalized=True), d)
    grid = mean.on_grid(points=range(5, 5 + d))
    assert grid.values.shape == tuple(range(5, 5 + d)) == tuple(map(len, grid.axes))
    assert mean(grid.points).reshape(grid.values.shape) == pytest.approx(grid.values, rel=1e-12)
    assert grid.points[0] == pytest.approx(mean.atoms.min(axis=0) - 3 * 0.6)
    assert grid.points[-1] == pytest.approx(mean.atoms.max(axis=0) + 3 * 0.6)


def test_a_grid_of_a_density_adds_up_to_1():
    for kernel in (Gaussian(0.4, normalized=True), Gaussian(0.4, normalized=True, covariance=COVARIANCE)):
        grid = mean_of(kernel).on_grid(reach=5)
        cell = np.prod([axis[1] - axis[0] for axis in grid.axes])
        assert grid.values.shape == (128, 128)
        assert grid.values.sum() * cell == pytest.approx(1.0, abs=1e-4)


def test_atoms_without_weight_do_not_widen_a_grid():
    mean = KernelMean([[0.0], [1.0], [1e6]], [0.5, 0.5, 0.0], Gaussian(0.1))
    assert mean.on_grid(4).axes[0] == pytest.approx(np.linspace(-0.3, 1.3, 4))


# -- what is refused ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f.integrate_box([0.0], [1.0]), r"low .*got shape \(1,\)"),
        (lambda f: f.integrate_box([0.0, 1.0], [1.0, 0.5]), r"low .*got \[0.0, 1.0\]"),
        (lambda f: f.integrate_box([0.0, np.nan], [1.0, 1.0]), "low must hold numbers, or infinity .* NaN in row 0"),
        (lambda f: f.integrate_box(np.zeros((2, 2)), np.ones((3, 2))), "a row for every box, got 2 and 3 rows"),
        (lambda f: f.integrate_box([0.0, 0.0], [1.0, 1.0], tol=0), "tol must be"),
        (lambda f: f.cdf([[0.0, 1.0, 2.0]]), r"Q must be 2 limits"),
        (lambda f: f.on_grid(points=[4]), "points .*got 1"),
        (lambda f: f.on_grid(points=1), "points must be"),
        (lambda f: f.on_grid(points=100_000), "at most 16,777,216 nodes in all"),
    ],
)
def test_limits_that_are_none_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(mean_of(Gaussian(0.5)))


def test_limits_on_a_line_want_a_column():
    with pytest.raises(ValueError, match=r"use low.reshape\(-1, 1\) for one box for each number"):
        mean_of(Gaussian(0.5), 1).integrate_box([0.0, 1.0], [1.0, 2.0])


def test_many_columns_want_to_be_told_how_many_nodes():
    with pytest.raises(ValueError, match=r"points .*each of 4 columns"):
        mean_of(Gaussian(0.5), 4).on_grid()


def test_what_is_no_density_has_no_boxes_and_no_grid():
    mean = mean_of(FunctionKernel("rbf", gamma=1.0))
    with pytest.raises(TypeError, match="is not a density, so no box has a probability; use Gaussian"):
        mean.integrate_box([0, 0], [1, 1])
    with pytest.raises(TypeError, match="has no bandwidth, which sets the limits of a grid"):
        mean.on_grid()
    with pytest.raises(ValueError, match="exponent must be above d/2"):
        mean_of(Student(1.0, exponent=0.9)).integrate_box([0, 0], [1, 1])


def test_oblique_cityblock_boxes_are_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"whose axes are oblique; count draws"):
        mean_of(Laplacian(1.0, metric="cityblock", covariance=COVARIANCE)).integrate_box([0, 0], [1, 1])
