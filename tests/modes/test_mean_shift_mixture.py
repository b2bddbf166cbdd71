"""Mean shift on mixtures: each step by the definition and never down, and the same as on the kernel mean that a mixture is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import COVARIANCE
from reduset import Gaussian, KernelMean, Mixture
from reduset.modes import clustering_distance
from reduset.modes.mean_shift import MixtureAscent, find_modes, mean_shift, merge_modes

SHAPES = ["spherical", "diag", "full"]
SHAPE = pytest.mark.parametrize("shape", SHAPES)


def covariances_of(shape, m, d, rng, scale=1.0):
    if shape == "spherical":
        return scale**2 * rng.uniform(0.3, 3, size=m)
    if shape == "diag":
        return scale**2 * rng.uniform(0.3, 3, size=(m, d))
    A = rng.normal(size=(m, d, d))
    return scale**2 * (A @ A.transpose(0, 2, 1) / d + 0.2 * np.eye(d))


def mixture(shape, m=12, d=2, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    return Mixture(rng.uniform(0.1, 1, size=m), 3 * rng.normal(size=(m, d)), covariances_of(shape, m, d, rng, scale))


def plain_step(f, y):
    """(Σ a H⁻¹)⁻¹ Σ a H⁻¹ t by loops, a relative to the largest."""
    d = f.dimension
    logs, precisions = [], []
    for w, t, H in zip(f.weights, f.means, f.covariances, strict=True):
        H = H * np.eye(d) if np.ndim(H) < 2 else H
        P = np.linalg.inv(H)
        logs.append((np.log(w) if w > 0 else -np.inf) - 0.5 * (y - t) @ P @ (y - t) - 0.5 * np.linalg.slogdet(H)[1])
        precisions.append(P)
    a = np.exp(np.array(logs) - max(logs))
    return np.linalg.solve(np.tensordot(a, precisions, 1), sum(k * P @ t for k, P, t in zip(a, precisions, f.means, strict=True)))


# -- steps -------------------------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@SHAPE
@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("far", [1.0, 40.0, 1e4])
def test_a_step_is_the_definition_however_far(shape, d, far):
    f = mixture(shape, d=d)
    starts = far * np.random.default_rng(1).normal(size=(9, d))
    found = mean_shift(f, starts, max_steps=1, merge_distance=0)
    np.testing.assert_allclose(found.ends, [plain_step(f, y) for y in starts], rtol=1e-8, atol=1e-8 * far)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from(SHAPES),
    m=st.integers(1, 15),
    d=st.integers(1, 4),
    scale=st.sampled_from([0.02, 0.5, 5.0]),
    steps=st.integers(0, 6),
    far=st.sampled_from([1.0, 30.0, 1e5]),
)
def test_no_step_goes_down(seed, shape, m, d, scale, steps, far):
    f = mixture(shape, m, d, seed, scale)
    starts = far * np.random.default_rng(seed).normal(size=(8, d))
    before = mean_shift(f, starts, steps, merge_distance=0, min_step=0).ends
    after = mean_shift(f, starts, steps + 1, merge_distance=0, min_step=0).ends
    low, high = f.log_density(before), f.log_density(after)
    assert (high >= low - 1e-9 * np.maximum(1, np.abs(low))).all()


@SHAPE
def test_a_step_rises_by_what_the_convexity_of_the_exponential_says(shape):
    f = mixture(shape)
    here = 3 * np.random.default_rng(2).normal(size=(40, 2))
    there = mean_shift(f, here, 1, merge_distance=0).ends
    gain = np.empty(40)
    for k, (x, y) in enumerate(zip(there, here, strict=True)):
        stiff = sum(
            Mixture([w], t[None], H[None])(y[None])[0] * np.linalg.inv(H * np.eye(2) if np.ndim(H) < 2 else H)
            for w, t, H in zip(f.weights, f.means, f.covariances, strict=True)
        )
        gain[k] = 0.5 * (x - y) @ stiff @ (x - y)
    assert (f(there) - f(here) >= gain - 1e-12).all()
    assert gain.max() > 1e-3


@pytest.mark.parametrize("covariance", [None, COVARIANCE])
def test_a_kernel_mean_is_climbed_alike_as_the_mixture_that_it_is(covariance):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2)) + np.array([[0, 0], [6, 0], [2, 7]])[np.arange(120) % 3]
    mean = KernelMean.from_samples(X, Gaussian(0.8, covariance=covariance, normalized=True), rng.uniform(0.1, 1, size=120))
    f = Mixture.from_mean(mean)
    one, other = mean_shift(mean, X, merge_distance=0, min_step=1e-5), mean_shift(f, X, merge_distance=0, min_step=1e-5)
    np.testing.assert_allclose(other.ends, one.ends, atol=1e-3)
    assert abs(one.steps - other.steps) <= 3
    labels = [find_modes(g, c.limits, 1.0)[1][c.assignments] for g, c in ((mean, mean_shift(mean, X)), (f, mean_shift(f, X)))]
    assert clustering_distance(*labels) == 0
    ascent = MixtureAscent(f)
    a, b = ascent.frame.apply(X[:5]), mean.kernel.plain_frame(mean.atoms).apply(X[:5])
    np.testing.assert_allclose(np.linalg.norm(a[:, None] - a, axis=2), np.linalg.norm(b[:, None] - b, axis=2))  # one unit of length


@SHAPE
@pytest.mark.parametrize("meet", [0.0, 0.05])
def test_ends_are_stationary(shape, meet):
    f = mixture(shape)
    starts = 4 * np.random.default_rng(3).normal(size=(60, 2))
    ends = mean_shift(f, starts, 10_000, meet, min_step=1e-6).ends
    np.testing.assert_allclose(np.array([plain_step(f, y) for y in ends]), ends, atol=1e-5)
    assert np.abs(f.gradient(ends)).max() < 1e-4 * f(ends).max()


# -- modes -------------------------------------------------------------------------------------------------------------


@SHAPE
def test_components_far_apart_are_modes_and_starts_go_to_their_own(shape):
    rng = np.random.default_rng(0)
    means = 40.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1.0]])
    f = Mixture([1.0, 2.0, 3.0, 4.0], means, covariances_of(shape, 4, 2, rng))
    which = rng.integers(4, size=200)
    found = mean_shift(f, means[which] + rng.normal(size=(200, 2)))
    modes, mode_of = find_modes(f, found.limits, 1.0)
    np.testing.assert_allclose(modes[mode_of[found.assignments]], means[which], atol=1e-2)
    assert len(modes) == 4
    assert (np.diff(f.log_density(modes)) < 0).all()


def test_one_component_is_reached_in_one_step():
    f = Mixture([2.0], [[1.0, -1.0]], [[[2.0, 0.5], [0.5, 1.0]]])
    starts = np.array([[0.0, 0.0], [5.0, 5.0], [1e6, 1e6], [-1e150, 0.0]])
    found = mean_shift(f, starts, max_steps=1)
    np.testing.assert_allclose(found.ends[:3], [[1.0, -1.0]] * 3, atol=1e-9)
    assert np.isfinite(found.ends).all()


def test_components_that_coincide_are_as_one_of_their_weight():
    f = mixture("full")
    twice = Mixture(np.repeat(f.weights / 2, 2), np.repeat(f.means, 2, axis=0), np.repeat(f.covariances, 2, axis=0))
    starts = 3 * np.random.default_rng(1).normal(size=(30, 2))
    one, other = (mean_shift(mixture, starts, 20, merge_distance=0).ends for mixture in (twice, f))
    np.testing.assert_allclose(one, other, atol=1e-9)


@SHAPE
def test_components_without_weight_do_not_count(shape):
    f = mixture(shape)
    g = Mixture(
        np.append(f.weights, 0.0),
        np.append(f.means, [[1.0, 1.0]], axis=0),
        np.append(f.covariances, 1e-12 * f.covariances[:1], axis=0),
    )
    starts = 3 * np.random.default_rng(1).normal(size=(30, 2))
    np.testing.assert_allclose(mean_shift(g, starts).ends, mean_shift(f, starts).ends, atol=1e-9)


@SHAPE
def test_a_change_of_units_changes_the_ends_with_it(shape):
    f = mixture(shape)
    units = np.array([1e-3, 1e2]) if shape != "spherical" else np.array([1e-3, 1e-3])
    scale = {"spherical": 1e-6, "diag": units**2, "full": np.outer(units, units)}[shape]
    g = Mixture(f.weights, f.means * units + 3.0 * units, f.covariances * scale)
    starts = 3 * np.random.default_rng(1).normal(size=(50, 2))
    one, other = mean_shift(f, starts, merge_distance=0), mean_shift(g, starts * units + 3.0 * units, merge_distance=0)
    assert one.steps == other.steps
    np.testing.assert_allclose(other.ends / units - 3.0, one.ends, atol=1e-6)
    assert len(mean_shift(g, starts * units + 3.0 * units).limits) < 25  # trajectories meet, whatever the units


def test_trajectories_meet_within_a_part_of_the_narrowest_component():
    """A narrow component beside wide ones keeps the points in it apart from those around it."""
    f = Mixture([1.0, 1e-3], [[0.0, 0.0], [1.5, 0.0]], [1.0, 1e-6])
    around = np.array([1.5, 0.0]) + np.array([[0.0, 0.0], [5e-4, 0.0], [0.03, 0.0], [0.0, -0.03]])
    ends = mean_shift(f, around).ends
    np.testing.assert_allclose(ends[:2], [[1.5, 0.0]] * 2, atol=1e-4)
    np.testing.assert_allclose(ends[2:], 0.0, atol=0.1)
    assert MixtureAscent(f).frame.matrix == pytest.approx(1e3)
    assert MixtureAscent(f, width=0.5).frame.matrix == 2.0


def test_far_points_go_to_the_component_of_the_largest_contribution():
    """Not to the nearest one: the wide component reaches farther."""
    f = Mixture([1.0, 1.0], [[0.0], [10.0]], [100.0, 0.01])
    ends = mean_shift(f, [[60.0], [1e6], [-1e9]]).ends
    np.testing.assert_allclose(ends, 0.0, atol=1e-6)


def test_wide_components_are_climbed_where_narrow_ones_are_out_of_range():
    """In many dimensions the peak of a wide component is nothing beside that of a narrow one."""
    d = 60
    f = Mixture([1.0, 1.0], np.stack([np.zeros(d), np.full(d, 1e4)]), [1e-8, 100.0])
    starts = 1e4 + 5 * np.random.default_rng(0).normal(size=(5, d))
    np.testing.assert_allclose(mean_shift(f, starts, min_step=1e-9).ends, 1e4, atol=1e-6)


def test_weights_below_zero_are_refused():
    f = Mixture([1.0, -0.1], np.zeros((2, 2)), np.ones(2))
    for call in (lambda: mean_shift(f, [[0.0, 0.0]]), lambda: merge_modes(f, np.zeros((1, 2)), 1.0)):
        with pytest.raises(ValueError, match=r"weights .*got one of -0\.1"):
            call()


# -- saddles -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mean", "mixture"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_saddle_is_no_mode(kind, d):
    """From the middle of two bumps, where the gradient is zero, no step leads away."""
    ends = np.zeros((2, d))
    ends[:, 0] = -2.0, 2.0
    density = KernelMean(ends, np.array([0.4, 0.4]), Gaussian(1.0, normalized=True))
    density = density if kind == "mean" else Mixture.from_mean(density)
    places = mean_shift(density, np.concatenate([np.zeros((1, d)), ends]), merge_distance=0).limits
    assert np.abs(places[0]).max() < 1e-6
    assert len(merge_modes(density, places, 0.5)[0]) == 3
    modes, mode_of = find_modes(density, places, 0.5)
    assert len(modes) == 2
    assert sorted(mode_of[1:]) == [0, 1]
    assert np.abs(modes[:, 0]).min() > 1.8


def test_what_comes_back_stays_a_mode():
    f = Mixture([1.0, 0.2, 0.5], [[0.0], [4.0], [9.0]], [1.0, 0.5, 0.5])
    places = mean_shift(f, np.linspace(-3, 11, 50)[:, None]).limits
    one, other = merge_modes(f, places, 1.0), find_modes(f, places, 1.0)
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])
    assert len(one[0]) == 3
