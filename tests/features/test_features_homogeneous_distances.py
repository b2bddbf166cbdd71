"""Homogeneous distances by a feature map: κ is the integral of its measure, and few frequencies stand for all."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from reduset.features.homogeneous_distances import (
    DISTANCES,
    MAX_OPTIMAL_FREQUENCIES,
    TOTALS,
    correlation,
    feature_map,
    kappa,
    measure,
    optimal_frequencies,
    random_frequencies,
)

TURNING = ["js", "tv", "chi2"]
HOMOGENEOUS = [*TURNING, "hellinger"]
RATIOS = [0.0, 1e-300, 1e-12, 1e-5, 0.01, 0.1, 0.3, 0.7, 0.9, 0.99, 0.999999, 1.0]
CLOSED = {
    "js": lambda a, b: 0.5 * (a * np.log(2 * a / (a + b)) + (b * np.log(2 * b / (a + b)) if b else 0.0)),
    "tv": lambda a, b: abs(a - b),
    "hellinger": lambda a, b: 0.5 * (np.sqrt(a) - np.sqrt(b)) ** 2,
    "chi2": lambda a, b: 0.5 * (a - b) ** 2 / (a + b),
}


def by_quadrature(a, b, distance):
    """∫ |a^(½+iλ) − b^(½+iλ)|² dμ(λ) = Z(a + b) − 2 √(ab) ∫ cos(λ log a/b) dμ(λ), both by adaptive quadrature."""
    if distance == "hellinger":
        return 0.5 * abs(np.sqrt(a) - np.sqrt(b)) ** 2  # all of the measure is at 0
    end = np.inf if distance == "tv" else 14.0
    total = quad(measure, 0, end, args=(distance,), epsabs=1e-13)[0]
    if b == 0:
        return total * a
    turn = abs(np.log(a / b))
    if turn == 0:
        together = total
    else:
        near = 50.0 if distance == "tv" else end
        together = quad(measure, 0, near, args=(distance,), weight="cos", wvar=turn, epsabs=1e-13, limit=400)[0]
        if distance == "tv":  # a tail as of 1/λ²: Fourier quadrature on the half-line
            together += quad(measure, near, np.inf, args=(distance,), weight="cos", wvar=turn, epsabs=1e-9, limlst=200)[0]
    return total * (a + b) - 2 * np.sqrt(a) * np.sqrt(b) * together


@pytest.mark.covering_cases
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("scale", [1.0, 3e4])
@pytest.mark.parametrize("distance", HOMOGENEOUS)
def test_kappa_is_the_integral_of_its_measure_and_its_closed_form(distance, scale, ratio):
    a, b = scale, scale * ratio
    wanted = CLOSED[distance](a, b)
    assert by_quadrature(a, b, distance) == pytest.approx(wanted, abs=1e-6 * scale)
    for found in (kappa(a, b, distance), kappa(b, a, distance)):
        assert found == pytest.approx(wanted, abs=1e-14 * scale)


@pytest.mark.parametrize("distance", HOMOGENEOUS)
def test_what_the_other_density_lacks_counts_by_the_whole_measure(distance):
    x = np.array([0.0, 1e-150, 1e-9, 0.5, 7.0, 1e12])
    np.testing.assert_allclose(kappa(x, 0 * x, distance), TOTALS[distance] * x, rtol=1e-14)
    if distance != "hellinger":
        end = np.inf if distance == "tv" else 14.0
        assert quad(measure, 0, end, args=(distance,), epsabs=1e-13)[0] == pytest.approx(TOTALS[distance], abs=1e-12)


@pytest.mark.parametrize("distance", DISTANCES)
def test_kappa_is_finite_symmetric_and_zero_only_where_values_agree(distance):
    values = np.array([0.0, 1e-300, 1e-30, 1e-3, 1.0, 1.0 + 1e-9, 50.0, 1e30])
    a, b = np.meshgrid(values, values)
    found = kappa(a, b, distance)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(np.diag(found), 0, atol=1e-16 * values.max() if distance == "js" else 0)


@pytest.mark.covering_cases
@pytest.mark.parametrize("distance", TURNING)
@pytest.mark.parametrize("t", [0.0, 1e-8, 0.3, -2.0, 9.0, 80.0])
def test_the_correlation_is_what_kappa_leaves(distance, t):
    """κ(a, b) = Z(a + b) − 2 √(ab) Φ(log a/b); at √(ab) = 1, where that can be computed without loss."""
    found = correlation(np.array(t), distance)
    assert np.isfinite(found)
    if abs(t) < 10:
        a, b = np.exp(t / 2), np.exp(-t / 2)
        assert found == pytest.approx((TOTALS[distance] * (a + b) - kappa(a, b, distance)) / 2, abs=1e-12)
    else:
        assert 0 <= found < 1e-14


def worst(frequencies, distance):
    """The largest error of κ over the larger value, whatever the ratio."""
    p, q = np.ones(4001), np.exp(-np.linspace(0, 60, 4001))
    one, other = (feature_map(each, distance, frequencies) for each in (p, q))
    return float(np.abs(np.square(one - other).sum(axis=1) - kappa(p, q, distance)).max())


def mean_square(frequencies, distance):
    """What placing makes least, by plain summation on another ladder: the mean square error of Φ(t) e^(−t/2)."""
    t = np.linspace(0, 40, 10_001)
    gap = np.cos(np.outer(t, frequencies.values)) @ frequencies.weights - correlation(t, distance)
    return float(np.mean((gap * np.exp(-t / 2)) ** 2))


@pytest.mark.parametrize(("distance", "placed_error", "drawn_error"), [("js", 3e-5, 0.03), ("chi2", 3e-4, 0.06), ("tv", 0.09, 0.4)])
def test_five_placed_frequencies_leave_what_the_page_says(distance, placed_error, drawn_error):
    found = worst(optimal_frequencies(distance, 5), distance)
    assert placed_error / 2 < found <= placed_error
    luck = [worst(random_frequencies(distance, 5, np.random.default_rng(seed)), distance) for seed in range(40)]
    assert np.mean(luck) == pytest.approx(drawn_error, rel=0.2)
    assert found < min(luck)


@pytest.mark.slow
@pytest.mark.parametrize("distance", TURNING)
def test_every_further_placed_frequency_helps(distance):
    every = [optimal_frequencies(distance, count) for count in range(1, MAX_OPTIMAL_FREQUENCIES + 1)]
    for count, each in enumerate(every, start=1):
        assert len(each.values) == len(each.weights) == count
        assert each.weights.sum() == pytest.approx(TOTALS[distance], rel=1e-14)
        assert (each.weights > 0).all()
        assert (np.diff(each.values, prepend=0.0) > 0).all()
    for error in (worst, mean_square):
        assert (np.diff([error(each, distance) for each in every]) < 0).all()


@pytest.mark.covering_cases
@pytest.mark.parametrize("distance", TURNING)
@pytest.mark.parametrize("count", [1, 3, 5])
def test_placed_frequencies_cannot_be_moved_to_a_lower_error(distance, count):
    best = optimal_frequencies(distance, count)
    least = mean_square(best, distance)
    rng = np.random.default_rng(0)
    for size in (0.1, 0.01):
        for _ in range(20):
            weights = best.weights * np.exp(size * rng.normal(size=count))
            moved = type(best)(best.values * np.exp(size * rng.normal(size=count)), weights * TOTALS[distance] / weights.sum())
            assert mean_square(moved, distance) > least * (1 - 1e-3)


@pytest.mark.parametrize("distance", TURNING)
def test_drawn_frequencies_follow_the_measure(distance):
    found = random_frequencies(distance, 4000, np.random.default_rng(0))
    np.testing.assert_array_equal(found.weights, TOTALS[distance] / 4000)
    ladder = np.append(0.0, np.geomspace(1e-5, 1e5 if distance == "tv" else 14.0, 4000))
    pieces = [quad(measure, a, b, args=(distance,))[0] for a, b in pairwise(ladder)]
    below = np.append(0.0, np.cumsum(pieces)) / TOTALS[distance]
    assert kstest(found.values, lambda x: np.interp(x, ladder, below)).pvalue > 0.01


def test_hellinger_needs_one_frequency_and_no_luck():
    for found in (optimal_frequencies("hellinger", 7), random_frequencies("hellinger", 7, np.random.default_rng(0))):
        assert found.values.tolist() == [0.0]
        assert found.weights.tolist() == [0.5]


@pytest.mark.parametrize("distance", DISTANCES)
def test_squared_distances_of_mapped_values_are_kappa(distance):
    rng = np.random.default_rng(0)
    p, q = rng.exponential(size=(2, 60)) ** 4
    p[:3], q[2:5] = 0.0, 0.0
    count = 20_000 if distance in TURNING else 1
    frequencies = None if distance == "l2" else random_frequencies(distance, count, rng)
    one, other = (feature_map(each, distance, frequencies) for each in (p, q))
    assert one.shape == (60, 2 * count if distance in TURNING else 1)
    scale = np.maximum(np.maximum(p, q), 1e-100) ** (2 if distance == "l2" else 1)
    error = np.abs(np.square(one - other).sum(axis=-1) - kappa(p, q, distance)) / scale
    assert error.max() < (0.03 if distance in TURNING else 1e-12)


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_map_keeps_the_shape_of_what_it_is_given_and_bears_a_vanishing_density(distance):
    frequencies = None if distance == "l2" else optimal_frequencies(distance, 3)
    values = np.array([[0.0, 1e-320, 1e-300], [1e-30, 1.0, 1e6]])
    turned = feature_map(values, distance, frequencies)
    assert turned.shape[:2] == (2, 3)
    assert np.isfinite(turned).all()
    np.testing.assert_array_equal(turned[0, 0], 0.0)
    if distance != "l2":
        np.testing.assert_allclose(np.square(turned).sum(axis=-1), TOTALS[distance] * values, rtol=1e-12, atol=1e-322)
