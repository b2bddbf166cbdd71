"""The pursuit in itself: what it does where rounding is all that is left to choose by."""

import numpy as np
import pytest

from reduset import Gaussian
from reduset._engine.pursuit import Pursuit


@pytest.mark.parametrize("width", [1.1, 3.0, 30.0])
def test_rounding_does_not_grow_where_redundant_bumps_are_taken(width):
    """Wide bumps in the plane span some hundred directions, and a selection that is continued takes all it had before."""
    rng = np.random.default_rng(0)
    X = np.array([[0, 0], [5, 1], [2, 6]])[rng.integers(3, size=1000)] + rng.normal(size=(1000, 2))
    gram = Gaussian(width).product_gram(X, X)
    pursuit = Pursuit(gram.mean(axis=1), lambda k: gram[k])
    with np.errstate(all="raise"):
        for k in range(500):
            pursuit.take(k)
    assert np.abs(pursuit._left).max() <= 1
    assert np.abs(pursuit._basis[:500]).max() <= 1 + 1e-12


def test_no_bump_is_left_with_less_than_nothing():
    X = np.random.default_rng(1).normal(size=(300, 2))
    gram = Gaussian(2.0).product_gram(X, X)
    pursuit = Pursuit(gram.mean(axis=1), lambda k: gram[k])
    while pursuit.choose():
        assert pursuit._room.min() >= -1e-12
    assert len(pursuit.chosen) < 300
