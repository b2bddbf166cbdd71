"""Boxes and grids of mixtures: against SciPy's normal laws, draws and kernel means, and their own laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from reduset import Gaussian, KernelMean, Mixture, compress
from reduset.mixture import ComponentMean
from reference_mixture import SHAPES, matrices, mixture_of

EVERY_SHAPE = pytest.mark.parametrize("shape", SHAPES)


def by_scipy(f, low, high):
    laws = zip(f.weights, f.means, matrices(f.covariances, f.dimension), strict=True)
    return sum(w * stats.multivariate_normal.cdf(high, m, H, lower_limit=low, abseps=1e-8, maxpts=10**6) for w, m, H in laws)


@EVERY_SHAPE
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_box_holds_what_scipys_normal_laws_hold(shape, d):
    f = mixture_of(np.random.default_rng(d), 5, d, shape, signed=True)
    low, high = np.linspace(-1.0, 0.0, d), np.linspace(0.5, 2.0, d)
    assert f.integrate_box(low, high) == pytest.approx(by_scipy(f, low, high), abs=1e-8 if d < 3 or shape != "full" else 1e-4)


@EVERY_SHAPE
def test_a_box_holds_its_share_of_draws(shape):
    f = mixture_of(np.random.default_rng(0), 5, 4, shape)
    f = f / f.mass
    low, high = np.array([-1.0, -np.inf, -2.0, 0.0]), np.array([1.5, 1.0, 2.0, np.inf])
    draws = f.sample(200_000, rng=1)
    share = ((draws > low) & (draws < high)).all(axis=1).mean()
    assert f.integrate_box(low, high) == pytest.approx(share, abs=5 * 0.5 / np.sqrt(200_000))


@EVERY_SHAPE
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_whole_space_has_the_mass(shape, d):
    f = mixture_of(np.random.default_rng(d), 7, d, shape, signed=True)
    assert f.integrate_box([-np.inf] * d, [np.inf] * d) == pytest.approx(f.mass, abs=1e-12)
    assert f.cdf(np.full((1, d), np.inf))[0] == pytest.approx(f.mass, abs=1e-12)


@EVERY_SHAPE
@settings(max_examples=30, deadline=None)
@given(cuts=st.lists(st.floats(-6, 6), min_size=3, max_size=3))
def test_rectangles_add_and_distribution_functions_rise(shape, cuts):
    a, b, c = sorted(cuts)
    f = mixture_of(np.random.default_rng(0), 5, 2, shape)
    parts = f.integrate_box([[a, -1.0], [b, -1.0]], [[b, 2.0], [c, 2.0]])
    assert (parts >= 0).all()
    assert parts.sum() == pytest.approx(f.integrate_box([a, -1.0], [c, 2.0]), abs=1e-12 * f.mass)
    assert (np.diff(f.cdf([[a, 0.0], [b, 0.0], [c, 1.0]])) >= -1e-14).all()


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Gaussian(0.5, scales=[1, 3]), Gaussian(0.5, covariance=[[2, 0.6], [0.6, 0.5]])])
def test_a_mixture_of_a_mean_holds_what_the_mean_holds(kernel):
    rng = np.random.default_rng(0)
    mean = KernelMean(rng.normal(size=(50, 2)), rng.normal(size=50), Gaussian(**{**vars(kernel), "normalized": True}))
    low, high = [-1.0, -0.5], [0.7, np.inf]
    assert Mixture.from_mean(mean).integrate_box(low, high) == pytest.approx(mean.integrate_box(low, high), abs=1e-13)


@pytest.mark.parametrize("d", [2, 3])
def test_columns_without_limits_leave_the_marginal(d):
    f = mixture_of(np.random.default_rng(0), 4, d, "full")
    low, high = np.full(d, -np.inf), np.full(d, np.inf)
    low[0], high[0] = -0.5, 1.0
    assert f.integrate_box(low, high) == pytest.approx(f.marginal([0]).integrate_box(-0.5, 1.0), abs=1e-12 if d == 2 else 1e-4)


def test_components_hold_nearly_what_the_rows_hold():
    X = np.random.default_rng(0).normal(size=(4000, 2)) @ [[1.0, 0.6], [0.0, 0.5]]
    small = compress(X, Gaussian(0.3, normalized=True, space="l2"), size=6, pieces="components", rng=0).mean
    full = KernelMean.from_samples(X, small.kernel)
    assert isinstance(small, ComponentMean)
    assert small.integrate_box([-1, -1], [0.5, 0.3]) == pytest.approx(full.integrate_box([-1, -1], [0.5, 0.3]), abs=0.01)


@EVERY_SHAPE
def test_a_grid_holds_the_values_and_reaches_beyond_every_component(shape):
    f = mixture_of(np.random.default_rng(0), 5, 2, shape)
    grid = f.on_grid((40, 30))
    assert f(grid.points).reshape(40, 30) == pytest.approx(grid.values, rel=1e-12)
    wide = f.on_grid((400, 400), reach=6)
    cell = np.prod([axis[1] - axis[0] for axis in wide.axes])
    assert wide.values.sum() * cell == pytest.approx(f.mass, rel=1e-3)
