"""How the shared laws are said: the sample they run over, and what it means for two results to be the same."""

import numpy as np
import pytest

from cases import KERNELS, MOVED, PAIRS, SAMPLE

EVERY = pytest.mark.parametrize(("select", "weights", "kernel"), SAMPLE)
PAIR = pytest.mark.parametrize(("select", "kernel"), PAIRS)
KERNEL = pytest.mark.parametrize("kernel", KERNELS)


def with_selections(*, among, without=()):
    """The sample with these selections alone, where a law does not hold for all."""
    chosen = [case for case in SAMPLE if case[0] in among and case[0] not in without]
    return pytest.mark.parametrize(("select", "weights", "kernel"), chosen)


def rounding_of(select):
    """How far the atoms may differ: steps of a descent carry rounding along."""
    return 1e-4 if select in MOVED else 1e-12


def assert_same(one, other, rtol=1e-6, atoms=1e-12):
    """The same atoms in the same order, with the same weights and the same certificate."""
    rtol = max(rtol, 10 * atoms)
    np.testing.assert_allclose(one.mean.atoms, other.mean.atoms, rtol=atoms, atol=atoms)
    np.testing.assert_allclose(one.mean.weights, other.mean.weights, rtol=rtol, atol=rtol * np.abs(other.mean.weights).max())
    assert one.certificate.relative_error == pytest.approx(other.certificate.relative_error, rel=rtol)
    assert one.certificate.norm == pytest.approx(other.certificate.norm, rel=rtol)
    assert one.certificate.bound == pytest.approx(other.certificate.bound, rel=max(rtol, 1e-4))


def assert_identical(one, other):
    """The same result to the last bit."""
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_array_equal(one.mean.atoms, other.mean.atoms)
    np.testing.assert_array_equal(one.mean.weights, other.mean.weights)
    assert one.certificate == other.certificate
