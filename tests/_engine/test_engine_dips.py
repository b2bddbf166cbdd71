"""Dips between two groups on lines against their definition, by histograms and a matrix of smoothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reduset._engine import valley_depths
from reduset._engine.valleys import BINS, MARGIN, SILVERMAN, TAIL, TAIL_SAMPLE


def slow_dip(a, b, stands_a, stands_b, finest):
    """One line, by the words of the definition."""
    ends = [np.sort(each)[[int(TAIL * (len(each) - 1)), len(each) - 1 - int(TAIL * (len(each) - 1))]] for each in (a, b)]
    low, high = np.min(ends), np.max(ends)
    width = max(SILVERMAN * min(a.std(), b.std()) * min(len(a), len(b)) ** -0.2, finest)
    edges = np.linspace(low - MARGIN * width, high + MARGIN * width, BINS + 1)
    step = edges[1] - edges[0]
    both, stands = np.concatenate([a, b]), np.concatenate([stands_a, stands_b])
    inside = (both >= edges[0]) & (both < edges[-1])
    counts, squares = (np.histogram(both[inside], edges, weights=w[inside])[0] for w in (stands, stands**2))
    smoothing = max(width / step, 0.5)
    places = np.arange(BINS)
    bell = np.exp(-0.5 * ((places[:, None] - places) / smoothing) ** 2)
    bell /= np.exp(-0.5 * (np.arange(-10 * BINS, 10 * BINS + 1) / smoothing) ** 2).sum()
    window = max(2 * np.sqrt(np.pi) * width / step, 1.0)
    floor, error = window * bell @ counts, np.sqrt(window * bell @ squares)
    best = np.inf
    for t in range(BINS):
        peak = min(max(floor[: t + 1] - error[: t + 1]), max(floor[t:] - error[t:]))
        if peak > 0:
            best = min(best, (floor[t] + error[t] + min(stands_a.mean(), stands_b.mean())) / peak)
    return best


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 400), st.integers(2, 400), st.floats(0, 8), st.floats(0.1, 4), st.sampled_from([0.0, 0.3]), st.integers(0, 99)
)
def test_dips_are_those_of_their_definition(count_a, count_b, apart, spread, finest, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(3, count_a)), rng.normal(apart, spread, (3, count_b))
    stands = rng.exponential(size=count_a) + 0.1, rng.exponential(size=count_b) + 0.1
    found = valley_depths(a, b, *stands, np.full(3, finest))
    expected = [slow_dip(a[k], b[k], *stands, finest) for k in range(3)]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_the_order_of_the_groups_and_the_unit_of_a_line_mean_nothing():
    rng = np.random.default_rng(0)
    a, b, stands = rng.normal(size=(2, 300)), rng.normal(3, 1, (2, 500)), (np.ones(300), np.full(500, 2.0))
    found = valley_depths(a, b, *stands, np.full(2, 0.1))
    np.testing.assert_allclose(valley_depths(b, a, *stands[::-1], np.full(2, 0.1)), found, rtol=1e-9)
    np.testing.assert_allclose(valley_depths(64 * a, 64 * b, *stands, np.full(2, 6.4)), found, rtol=1e-9)


@pytest.mark.parametrize("many", [TAIL_SAMPLE - 1, 10 * TAIL_SAMPLE])
def test_ends_of_many_points_are_found_by_some(many):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(1, many)), rng.normal(4, 1, (1, many))
    expected = slow_dip(a[0], b[0], np.ones(many), np.ones(many), 0.0)
    np.testing.assert_allclose(valley_depths(a, b, np.ones(many), np.ones(many), np.zeros(1)), expected, rtol=0.02)


def test_a_group_in_one_place_is_told_from_those_that_do_not_hold_it():
    place, around = np.full((1, 30), 2.0), np.random.default_rng(2).normal(2, 1, (1, 300))
    ones = np.ones(30), np.ones(300)
    assert valley_depths(place, around, *ones, np.zeros(1)) == 1.0
    assert valley_depths(place + 9, around, *ones, np.zeros(1)) == 0.0
    assert valley_depths(around, place + 9, *ones[::-1], np.zeros(1)) == 0.0
