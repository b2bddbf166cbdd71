"""Atoms that get no weight are left out: every atom of a result counts for something."""

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, compress
from reduset.model import Model


def cloud(n=3000, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.covering_cases
@pytest.mark.parametrize("weights", ["simplex", "clipped", "sum_to_one_clipped", "simplex_projection"])
@pytest.mark.parametrize("select", ["kcenter", "auto"])
def test_every_atom_carries_weight(weights, select):
    X = cloud()
    small = compress(X, Gaussian(0.5), size=150, select=select, weights=weights, rng=0)
    assert (small.mean.weights > 0).all()
    assert small.size <= 150
    full = KernelMean.from_samples(X, small.mean.kernel)
    assert small.certificate.relative_error == pytest.approx(small.mean.distance(full) / full.norm(), rel=1e-4)
    if small.indices is not None:
        assert np.array_equal(X[small.indices], small.mean.atoms)


def test_those_left_out_are_told_and_change_nothing():
    X = cloud()
    small = compress(X, Gaussian("median"), size=150, select="kcenter", weights="simplex", rng=0)
    assert small.size < small.selected
    assert small.selected + len(small.dropped) == 150
    assert f"{small.selected - small.size} more atoms omitted with weight 0" in str(small)
    every = small.with_all_selected()
    assert every.size == small.selected == len(every.indices)
    here = np.isin(every.indices, small.indices)
    assert np.array_equal(every.mean.weights[here], small.mean.weights)
    assert not every.mean.weights[~here].any()


def test_prefixes_are_of_all_that_were_selected():
    X = cloud()
    small = compress(X, Gaussian("median"), size=100, select="kcenter", weights="simplex", rng=0)
    assert small.path.sizes[-1] == small.selected
    half, again = small.at(40), compress(X, Gaussian("median"), size=40, select="kcenter", weights="simplex", rng=0)
    assert half.selected == 40
    np.testing.assert_allclose(half.mean.weights, again.mean.weights, atol=1e-9)


def test_a_model_has_the_atoms_of_every_size():
    X = cloud()
    small = compress(X, Gaussian("median"), size=100, select="kcenter", weights="simplex", rng=0)
    model = Model.of(KernelMean.from_samples(X, small.mean.kernel), small)
    assert model.step_sizes[-1] == small.selected == model.size
    for step, size in enumerate(model.step_sizes):
        few = small.at(int(size)).mean
        np.testing.assert_allclose(model.at(step)(X[:50]), few(X[:50]), rtol=1e-10)


def test_rows_of_no_weight_are_nobodys_atoms():
    X = cloud(500)
    w = (np.arange(500) < 250).astype(float)
    small = compress(X, Gaussian("median"), size=300, select="kcenter", weights="simplex", sample_weight=w, rng=0)
    assert (small.mean.weights > 0).all()


@pytest.mark.parametrize("weights", ["simplex", "clipped", "sum_to_one_clipped", "simplex_projection"])
def test_the_radius_is_that_of_the_atoms_with_weight(weights):
    X = cloud(2000, seed=3)
    small = compress(X, Gaussian(0.3), size=200, select="kcenter", weights=weights, rng=0)
    radius = max(np.linalg.norm(small.mean.atoms - row, axis=1).min() for row in X)
    assert small.certificate.radius == pytest.approx(radius, rel=1e-6)


def test_a_tolerance_that_was_reached_stays_reached():
    for seed in range(5):
        small = compress(cloud(seed=seed), Gaussian("median"), tol=0.01, weights="simplex", rng=seed)
        assert small.reached
        assert small.certificate.interval[1] <= 0.01
