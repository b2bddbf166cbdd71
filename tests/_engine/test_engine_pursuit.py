"""The pursuit in itself: what it does where rounding is all that is left to choose by."""

import numpy as np
import pytest

from reduset import Gaussian
from reduset._engine.factor import Pursuit


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
    assert np.abs(pursuit._residuals).max() <= 1
    assert np.abs(pursuit._basis[:500]).max() <= 1 + 1e-12


def test_no_bump_is_left_with_less_than_nothing():
    X = np.random.default_rng(1).normal(size=(300, 2))
    gram = Gaussian(2.0).product_gram(X, X)
    pursuit = Pursuit(gram.mean(axis=1), lambda k: gram[k])
    while pursuit.choose():
        assert pursuit._squares.min() >= -1e-12
    assert len(pursuit.chosen) < 300


def deflated(values, products, worth, floor):
    """The pursuit written out: after each choice all products are taken orthogonal to it."""
    left, rest, chosen = values.copy(), products.copy(), []
    while len(chosen) < len(values):
        room = np.diagonal(rest)
        gains = np.where(room > floor, np.square(left) / np.maximum(room, floor), 0.0)
        k = int(np.argmax(gains))
        if gains[k] <= worth:
            break
        direction = rest[k] / np.sqrt(room[k])
        left = left - left[k] / np.sqrt(room[k]) * direction
        rest = rest - np.outer(direction, direction)
        rest[k, k] = 0.0
        chosen.append(k)
    return chosen


@pytest.mark.covering_cases
@pytest.mark.parametrize("bandwidth", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_what_a_span_leaves_is_pursued_as_by_the_definition(bandwidth, share, seed):
    rng = np.random.default_rng(seed)
    X, kernel, floor = rng.normal(size=(400, 2)), Gaussian(bandwidth), 3e-13
    basis, some = X[:30], X[50:200]
    L = np.linalg.cholesky(kernel.product_gram(basis, basis) + 1e-12 * np.eye(30))
    inside = np.linalg.solve(L, kernel.product_gram(basis, some))
    rest = kernel.product_gram(some, some) - inside.T @ inside
    w = np.full(400, 1 / 400)
    left = kernel.product_sums(X, w, some) - np.linalg.solve(L, kernel.product_sums(X, w, basis)) @ inside
    worth = share * np.max(np.square(left) / np.maximum(np.diagonal(rest), floor))
    pursuit = Pursuit(left, lambda k: rest[k], np.diagonal(rest), floor)
    while len(pursuit.chosen) < len(some) and pursuit.choose(worth):
        pass
    expected = deflated(left, rest, worth, floor)
    sure = len(expected) if share else min(len(expected), 20)  # down to rounding, either order is right
    assert len(expected) > 0
    assert pursuit.chosen[:sure] == expected[:sure]
    assert share == 0.0 or len(pursuit.chosen) == len(expected)
