"""Mixtures to simplify, and what it means for two results to be the same."""

import numpy as np
import pytest

from reference_mixture import mixture_of


def many(n=60, d=2, shape="full", shared=False, signed=False, seed=0, spread=1.5):
    return mixture_of(np.random.default_rng(seed), n, d, shape, shared, signed, spread)


def measured(f, found):
    return f.distance(found.mixture) / f.norm()


def assert_same(one, other, rtol=1e-6):
    for name in ("weights", "means", "covariances"):
        mine, theirs = getattr(one.mixture, name), getattr(other.mixture, name)
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max())
    assert one.error == pytest.approx(other.error, rel=rtol, abs=1e-8)


def identical(one, other):
    names = ("weights", "means", "covariances")
    return all(np.array_equal(getattr(one.mixture, name), getattr(other.mixture, name)) for name in names)
