"""Kernels with negative inner products: ν as defined, no bound by Theorem 1 where it is negative, and one that holds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reduset import FunctionKernel, Gaussian, KernelMean, compress
from reduset.certificate.bounds import bounds_of, theorem_one
from reduset.model import Model
from reduset.select import KCenter

COSINE = FunctionKernel("cosine")


def on_a_circle(n=60, half=False, seed=0):
    angle = np.random.default_rng(seed).uniform(0, np.pi / 3 if half else 2 * np.pi, n)
    return np.stack([np.cos(angle), np.sin(angle), np.full(n, 0.3)], axis=1)


def incoherence(X, atoms):
    """min over the rows that are no atoms of the largest product with an atom, by two loops."""
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    return min(max(float(unit[j] @ unit[i]) for i in atoms) for j in range(len(X)) if j not in set(atoms))


@pytest.mark.parametrize("half", [True, False])
def test_nu_is_reported_as_defined(half):
    X = on_a_circle(half=half)
    small = compress(X, COSINE, size=1, select=KCenter(first=0), rng=0)
    nu = incoherence(X, small.indices.tolist())
    assert (nu < 0) == (not half)
    assert small.certificate.incoherence == pytest.approx(nu, rel=1e-9)


def test_theorem_one_gives_no_bound_where_nu_is_negative_and_that_is_stated():
    small = compress(on_a_circle(), COSINE, size=1, select=KCenter(first=0), rng=0)
    certificate = small.certificate
    assert certificate.incoherence < 0
    assert certificate.theorem_bound is None
    assert certificate.bound >= certificate.relative_error * certificate.norm
    assert "Theorem 1 does not apply, since ν is negative" in small.details()


def test_theorem_one_is_false_for_a_negative_nu():
    """Two opposite directions and one across: squaring ν = −0.9 would promise an error that is not kept."""
    across = np.array([-0.9, np.sqrt(0.19)])
    X = np.array([[1.0, 0.0], across, across * [1, -1]])
    small = compress(X, FunctionKernel(lambda A, B: A @ B.T), size=1, select=KCenter(first=1), rng=0)
    nu = incoherence(X, [1])
    assert nu < 0
    error = small.certificate.relative_error * small.certificate.norm
    assert error <= small.certificate.bound * (1 + 1e-12)
    assert theorem_one(2 / 3, nu) is None


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 12))
def test_the_bound_holds_whatever_the_sign(seed, d, size):
    X = np.random.default_rng(seed).normal(size=(25, d))
    small = compress(X, COSINE, size=size, select=KCenter(first=0), rng=0)
    f = (X / np.linalg.norm(X, axis=1, keepdims=True)).mean(axis=0)
    unit = small.mean.atoms / np.linalg.norm(small.mean.atoms, axis=1, keepdims=True)
    error = np.linalg.norm(f - small.mean.weights @ unit)
    for each in (small, small.at(1)):
        nu = each.certificate.incoherence  # not known of a prefix where atoms were dropped
        assert (each.certificate.theorem_bound is None) == (nu is None or nu < 0)
    assert error <= small.certificate.bound * (1 + 1e-9) + 1e-9


def test_the_summed_bound_squares_products_of_either_sign():
    g, w = np.array([1.0, -0.5, 0.25]), np.array([0.5, 0.25, 0.25])
    X = np.stack([g, np.sqrt(1 - g**2)], axis=1)
    full = KernelMean(X, w, FunctionKernel(lambda A, B: A @ B.T))
    bounds = bounds_of(full, np.array([[1.0, 0.0]]), 0.5, None)
    by_hand = sum(weight * np.sqrt(1 - product**2) for weight, product in zip(w, g, strict=True))
    assert bounds.incoherence == -0.5
    assert bounds.theorem is None
    assert bounds.summed == pytest.approx(min(by_hand, 0.5 * np.sqrt(1 - 0.25**2)))
    assert bounds_of(full, np.array([[1.0, 0.0]]), 0.0, None).summed == pytest.approx(by_hand)


def test_a_negative_nu_is_kept_in_a_file(tmp_path):
    X = on_a_circle()
    small = compress(X, COSINE, size=1, select=KCenter(first=0), rng=0)
    path = tmp_path / "small.npz"
    Model.of(KernelMean.from_samples(X, COSINE), small).save(path)
    assert Model.load(path).certificate.incoherence == pytest.approx(small.certificate.incoherence)


def test_a_gaussian_keeps_the_theorem():
    small = compress(on_a_circle(), Gaussian(0.5), size=5, select=KCenter(first=0), rng=0)
    assert small.certificate.incoherence > 0
    assert small.certificate.bound <= small.certificate.theorem_bound * (1 + 1e-12)
