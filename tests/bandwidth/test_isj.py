"""The improved Sheather–Jones rule: the best bandwidth where it is known, its fixed point by sums, and data that are hard on it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reduset import Gaussian, KernelMean, bandwidth
from reduset.bandwidth.isj import MARGIN


def normal(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 1))


def two_modes(n, gap=20.0, seed=0):
    return normal(n, seed) + np.where(np.arange(n) % 2, gap, 0.0)[:, None]


def fixed_point_by_sums(x, h):
    """What five steps from h give, the norms of derivatives by sums over rows and no cells (Botev et al. 2010, Section 5.3)."""
    low, high = x.min(), x.max()
    length = (high - low) * (1 + 2 * MARGIN)
    z = (x - low + MARGIN * (high - low)) / length
    k = np.arange(1, 400) * np.pi
    a = 2 * np.cos(np.outer(k, z)).mean(axis=1)

    def norm(order, t):
        return 0.5 * np.sum(k ** (2 * order) * a**2 * np.exp(-(k**2) * t))

    t = (h / length) ** 2
    for j in range(6, 1, -1):
        found = norm(j + 1, t)
        odd = np.prod(np.arange(1, 2 * j, 2.0))
        t = ((1 + 0.5 ** (j + 0.5)) / 3 * odd / (len(x) * np.sqrt(np.pi / 2) * found)) ** (2 / (3 + 2 * j))
    return (2 * len(x) * np.sqrt(np.pi) * norm(2, t)) ** (-1 / 5) * length


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_comes_back_as_itself(seed):
    X = two_modes(600, 6.0, seed)
    h = bandwidth.isj(X)
    assert fixed_point_by_sums(X[:, 0], h) == pytest.approx(h, rel=1e-3)  # cells are a few hundredths of a bandwidth wide


@pytest.mark.parametrize("n", [500, 5_000, 200_000])
def test_of_a_normal_law_it_is_near_the_best(n):
    found = np.mean([bandwidth.isj(normal(n, seed)) for seed in range(5)])
    assert found == pytest.approx((4 / (3 * n)) ** 0.2, rel=0.08)


def test_modes_far_apart_do_not_widen_it():
    n = 4000
    best = (4 / (3 * n / 2)) ** 0.2  # of one mode with half the rows, by how the error adds up: 2^(1/5) less than of all rows
    for gap in (20.0, 100.0, 1000.0):
        assert bandwidth.isj(two_modes(n, gap)) == pytest.approx(best, rel=0.1)
    assert bandwidth.scott(two_modes(n)) > 5 * best


def test_its_density_is_nearer_to_the_law_than_scotts():
    X, grid = two_modes(2000), np.linspace(-5, 25, 3001)[:, None]
    law = (np.exp(-0.5 * grid**2) + np.exp(-0.5 * (grid - 20) ** 2))[:, 0] / np.sqrt(8 * np.pi)
    errors = [np.square(KernelMean.from_samples(X, Gaussian(rule, normalized=True))(grid) - law).sum() for rule in ("isj", "scott")]
    assert errors[0] < errors[1] / 10


def test_it_is_taken_by_name_wherever_a_bandwidth_is():
    X = two_modes(500)
    assert Gaussian("isj").resolve(X).width == bandwidth.isj(X) == bandwidth.RULES["isj"](X)


@pytest.mark.parametrize("scale", [2.0**-20, 0.01, 8.0, 1e6])
def test_scaling_the_points_scales_it(scale):
    X = two_modes(400, 5.0)
    assert bandwidth.isj(X * scale) == pytest.approx(bandwidth.isj(X) * scale, rel=1e-6)


def test_shifts_and_the_order_change_nothing():
    X = two_modes(400, 5.0)
    assert bandwidth.isj(X + 1000) == pytest.approx(bandwidth.isj(X), rel=1e-6)
    assert bandwidth.isj(X[::-1]) == pytest.approx(bandwidth.isj(X), rel=1e-9)


def test_rows_without_weight_do_not_count_and_ratios_of_weights_do():
    X, w = two_modes(600), np.random.default_rng(1).uniform(0.5, 1, 600)
    w[:100] = 0
    assert bandwidth.isj(X, w) == pytest.approx(bandwidth.isj(X[100:], w[100:]), rel=1e-12)
    assert bandwidth.isj(X, 1e6 * w) == pytest.approx(bandwidth.isj(X, w), rel=1e-9)
    assert bandwidth.isj(X, np.ones(600)) == pytest.approx(bandwidth.isj(X), rel=1e-12)


@pytest.mark.parametrize("step", [0.1, 0.2])
def test_rounded_values_give_what_the_values_gave(step):
    X = normal(5000)
    assert bandwidth.isj(np.rint(X / step) * step) == pytest.approx(bandwidth.isj(X), rel=0.15)


def test_rows_that_are_there_twice_do_not_make_it_fine():
    X = normal(2000)
    again = X[np.random.default_rng(1).integers(0, 2000, 2000)]
    assert bandwidth.isj(again) == pytest.approx(bandwidth.isj(X), rel=0.2)


def test_a_row_far_out_changes_little():
    X = normal(1000)
    assert bandwidth.isj(np.append(X, [[1e6]], axis=0)) == pytest.approx(bandwidth.isj(X), rel=0.1)


def test_heavy_tails_leave_a_bandwidth_of_the_bulk():
    X = np.random.default_rng(0).standard_cauchy(size=(20_000, 1))
    assert 0.05 < bandwidth.isj(X) < 0.3 < bandwidth.scott(X)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=2, max_size=40).filter(lambda values: len(set(values)) > 1))
def test_few_and_tied_rows_give_a_number(values):
    X = np.array(values, float)[:, None]
    span = X.max() - X.min()
    assert 0 < bandwidth.isj(X) <= 2 * span


def test_several_columns_are_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"isj .*got 2.*scales="):
        bandwidth.isj(np.random.default_rng(0).normal(size=(50, 2)))


def test_two_values_and_one_value():
    X = np.repeat([[0.0], [1.0]], 50, axis=0)
    assert bandwidth.isj(X) > 0
    with pytest.raises(ValueError, match="coincide"):
        bandwidth.isj(np.ones((50, 1)))


def test_rows_of_almost_no_weight_do_not_count():
    x = np.random.default_rng(3).normal(size=(400, 1))
    half = np.repeat([1.0, 1e-9], 200)
    assert bandwidth.isj(x, half) == pytest.approx(bandwidth.isj(x[:200]), rel=0.01)
