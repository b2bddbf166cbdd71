"""Bandwidths and points at the lower end of floating point: said what the rule is, and what to do."""

import numpy as np
import pytest

from reduset import Gaussian, Laplacian, bandwidth, compress

X = np.random.default_rng(0).normal(size=(300, 2))


@pytest.mark.parametrize("width", [5e-324, 1e-310, 9e-301])
def test_a_bandwidth_without_an_inverse_is_refused_with_a_way_out(width):
    with pytest.raises(ValueError, match=f"bandwidth .*got {width!r}"):
        Gaussian(width)


def test_points_out_of_reach_of_a_narrow_bandwidth_are_refused():
    with pytest.raises(ValueError, match=r"bandwidth .*got 1e-290"):
        compress(X * 1e20, Gaussian(1e-290), size=10)
    assert compress(X, Gaussian(1e-290), size=10, rng=0).size == 10


@pytest.mark.covering_cases
@pytest.mark.parametrize("scale", [1e-300, 1e-320, 1e-160])
@pytest.mark.parametrize("rule", sorted(bandwidth.RULES))
def test_points_whose_squares_are_lost_are_refused_with_a_way_out(rule, scale):
    with pytest.raises(ValueError, match=r"X must span at least 1e-140 for a bandwidth rule, .* got .*; rescale it"):
        compress(X * scale, Laplacian(rule), size=10)


def test_points_that_are_multiplied_with_their_bandwidth_are_compressed_alike():
    small, large = (compress(X * scale, Gaussian(scale), size=10, rng=0) for scale in (2.0**-600, 1.0))
    np.testing.assert_array_equal(small.mean.weights, large.mean.weights)
