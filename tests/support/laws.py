"""The cases of the shared laws, and what it means for two results to be the same.

Laws run over every selector, weighting and kernel. Only a covering set of the cases belongs to `make test`; the others are slow.
"""

import numpy as np
import pytest

from cases import ALL, COVERING, COVERING_PAIRS, KERNELS, MOVED, PAIRS


def _with_marks(cases, covering):
    return [pytest.param(*case, marks=() if case in covering else pytest.mark.slow) for case in cases]


def pairs(*, without=()):
    """Selectors with kernels."""
    return pytest.mark.parametrize(("select", "kernel"), _with_marks([p for p in PAIRS if p[0] not in without], COVERING_PAIRS))


def with_selections(*, among, without=(), without_cases=()):
    """The cases of these selectors, if a law does not hold for all."""
    chosen = [case for case in ALL if case[0] in among and case[0] not in without and case not in without_cases]
    return pytest.mark.parametrize(("select", "weights", "kernel"), _with_marks(chosen, COVERING))


EVERY = pytest.mark.parametrize(("select", "weights", "kernel"), _with_marks(ALL, COVERING))
KERNEL = pytest.mark.parametrize("kernel", KERNELS)


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
