"""Histograms of distances: sums over them are the kernel sums, to the precision stated, whatever the bandwidth."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from cases import KERNELS, cloud
from reduset import set_threads
from reduset._engine.distances import CITYBLOCK, SOFT_CITYBLOCK, SQUARED
from reduset._engine.kernel_blocks import BINS, OCTAVES, distance_histograms, distance_nodes
from reduset._engine.profile import Frame
from reduset.kernels import RadialKernel

RADIAL = {name: kernel for name, kernel in KERNELS.items() if isinstance(kernel, RadialKernel)}
UNIT = Frame(np.zeros(1), 1.0)
BIN = 2.0**-5  # the width of a bin, as a share of its gap


def exponents_at(profile, gaps):
    t = np.array(gaps, np.float64)
    profile.to_exponents(t)
    return t


def at_gap(gap):
    """The histogram of one point at a distance."""
    return distance_histograms(np.array([[gap]]), np.ones(1), np.zeros((1, 1)), UNIT, CITYBLOCK)[0]


@pytest.mark.covering_cases
@pytest.mark.parametrize("ratio", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("part", ["bump", "product"])
@pytest.mark.parametrize("kernel", RADIAL)
def test_sums_over_one_histogram_are_the_kernel_sums_for_every_bandwidth(kernel, part, ratio):
    X, Q = cloud(200), cloud(11, seed=1)
    w = np.random.default_rng(2).integers(0, 4, size=200).astype(float)
    narrow = RADIAL[kernel]
    shape = getattr(narrow, part)(2)
    metric = shape.profile.metric
    if metric == SOFT_CITYBLOCK:
        ratio = 1.0  # a gap that does not scale
    counts = distance_histograms(X, w, Q, narrow.frame(X, shape), metric)
    depths = exponents_at(shape.profile, distance_nodes() / ratio ** (2 if metric == SQUARED else 1))
    found = counts @ np.exp(-depths)
    wide = replace(narrow, bandwidth=narrow.width * ratio)
    values = (reference.bump if part == "bump" else reference.product_shape)(wide, Q, X)
    depth = -np.log(np.maximum(values, 1e-300))
    # all these functions are convex in the gap: chords lie above, by (bin)²/8 of the second derivative while that is small
    above = np.where(depth < 24, values * (1 + 1.05 * (1 + depth) ** 2 * BIN**2 / 8), np.exp(-depth * (1 - BIN)))
    assert (found >= values @ w * (1 - 1e-6)).all()
    assert (found <= above @ w).all()


@settings(max_examples=300, deadline=None)
@given(depth=st.floats(1e-6, 24))
def test_an_exponential_is_off_by_the_square_of_its_bin_over_8(depth):
    found = at_gap(depth) @ np.exp(-distance_nodes())
    error = found / np.exp(-depth) - 1
    rounding = 1e-7 * (1 + depth)  # of a gap in single precision
    assert -rounding <= error <= (depth * BIN) ** 2 / 8 + rounding


@settings(max_examples=200, deadline=None)
@given(depth=st.floats(1e-6, 700))
def test_its_logarithm_is_off_by_a_bin_at_most_however_deep(depth):
    found = np.log(at_gap(depth) @ np.exp(-distance_nodes()))
    assert -depth * (1 + 1e-6) <= found <= -depth * (1 - BIN)


@pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
@pytest.mark.parametrize("dimension", [1, 2, 3, 5, 8])
def test_weights_and_mean_gaps_are_kept(metric, dimension):
    X, Q = cloud(300, dimension), cloud(4, dimension, seed=1)
    w = np.random.default_rng(0).uniform(size=300)
    frame = Frame.around(X, 0.7)
    counts = distance_histograms(X, w, Q, frame, CITYBLOCK if metric == "cityblock" else SQUARED)
    gaps = np.stack([reference.gaps(X * 0.7, q * 0.7, metric) for q in Q])
    np.testing.assert_allclose(counts.sum(axis=1), w.sum(), rtol=1e-12)
    np.testing.assert_allclose(counts @ distance_nodes(), gaps @ w, rtol=1e-6)


def test_more_points_than_a_block_are_all_counted():
    X = np.random.default_rng(0).normal(size=(70_000, 1))
    counts = distance_histograms(X, np.full(70_000, 0.5), np.zeros((1, 1)), UNIT, SQUARED)
    assert counts.sum() == pytest.approx(35_000, rel=1e-12)
    assert counts[0] @ distance_nodes() == pytest.approx(0.5 * np.square(X).sum(), rel=1e-6)


def test_the_nodes_are_32_to_an_octave():
    ends = distance_nodes()
    assert len(ends) == BINS + 1
    assert (ends[0], ends[-1]) == (2.0**-OCTAVES, 2.0**OCTAVES)
    np.testing.assert_array_equal(ends[32:] / ends[:-32], 2.0)
    assert (np.diff(ends) / ends[:-1]).max() == BIN


@pytest.mark.parametrize("gap", [0.0, 1e-300, 1e-12])
def test_gaps_below_the_least_count_as_the_least(gap):
    np.testing.assert_array_equal(np.flatnonzero(at_gap(gap)), [0])


@pytest.mark.parametrize("gap", [2.0**30, 1e12, 1e40, 1e300])
def test_gaps_beyond_the_largest_count_as_the_largest(gap):
    found = at_gap(gap)
    assert found.sum() == 1
    assert found @ distance_nodes() == pytest.approx(2.0**OCTAVES, rel=1e-5)


def test_a_gap_whose_square_overflows_counts_as_the_largest():
    found = distance_histograms(np.array([[1e200]]), np.ones(1), np.zeros((1, 1)), UNIT, SQUARED)
    assert found[0] @ distance_nodes() == pytest.approx(2.0**OCTAVES, rel=1e-5)


def test_threads_do_not_change_a_bit():
    X, Q = cloud(5000, 3), cloud(150, 3, seed=1)
    w = np.random.default_rng(0).uniform(size=5000)
    found = []
    for threads in (1, 2, 3):
        set_threads(threads)
        try:
            found.append(distance_histograms(X, w, Q, Frame.around(X, 2.0), SQUARED))
        finally:
            set_threads(None)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_a_common_shift_changes_hardly_anything():
    X, Q = np.round(cloud(200), 4), np.round(cloud(5, seed=1), 4)
    w = np.ones(200)
    near = distance_histograms(X, w, Q, Frame.around(X, 2.0), SQUARED) @ np.exp(-distance_nodes())
    far = distance_histograms(X + 1e8, w, Q + 1e8, Frame.around(X + 1e8, 2.0), SQUARED) @ np.exp(-distance_nodes())
    np.testing.assert_allclose(far, near, rtol=1e-5)
