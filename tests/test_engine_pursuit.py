"""The pursuit in itself: what it does where rounding is all that is left to choose by."""

import numpy as np
import pytest

from reduset import Gaussian
from reduset._engine.pursuit import Pursuit, order_by_energy


@pytest.mark.parametrize("width", [0.8, 3.0, 30.0])
def test_rounding_does_not_grow_where_the_bumps_hardly_differ(width):
    """Five hundred wide bumps in the plane span some dozens of directions."""
    X = np.random.default_rng(0).normal(size=(500, 2))
    gram = Gaussian(width).product_gram(X, X)
    values = gram.mean(axis=1)
    with np.errstate(all="raise"):
        order = order_by_energy(gram, values)
    np.testing.assert_array_equal(np.sort(order), np.arange(500))


def test_no_bump_is_left_with_less_than_nothing():
    X = np.random.default_rng(1).normal(size=(300, 2))
    gram = Gaussian(2.0).product_gram(X, X)
    pursuit = Pursuit(gram.mean(axis=1), lambda k: gram[k])
    while pursuit.choose():
        assert pursuit._room.min() >= -1e-12
    assert len(pursuit.chosen) < 300
