"""Integers that float64 merges are found at both ends of the range."""

import numpy as np
import pytest

from reduset._validate import merged_integers


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dtype", [np.int64, object])
def test_large_integers_of_either_sign_that_float64_merges_are_found(sign, dtype):
    large = sign * 2**53
    assert merged_integers(np.array([0, large, large + sign], dtype)) == tuple(sorted((large, large + sign)))
    assert merged_integers(np.array([0, large, large + 2 * sign], dtype)) is None


def test_integers_up_to_the_limit_are_exact():
    assert merged_integers(np.array([-(2**53), 2**53 - 1, 2**53])) is None
