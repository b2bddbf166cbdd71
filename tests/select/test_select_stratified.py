"""Strata: a partition of the rows, a row of each, and weights that are what the rows of each weigh."""

import numpy as np
import pytest

from reduset import FunctionKernel, Gaussian, KernelMean
from reduset.select import KCenter, covering, stratified
from reduset.select.stratified import Stratified


def mixture(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.7, 0.28, 0.02])
    return np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 6.0]])[y] + 0.6 * rng.normal(size=(n, 2)), y


def test_every_row_belongs_to_one_and_weights_are_the_masses():
    X, _ = mixture()
    w = np.random.default_rng(1).exponential(size=len(X))
    found = Stratified().select(KernelMean(X, w, Gaussian(1.0)), 60, rng=0)
    assert len(set(found.indices.tolist())) == 60
    assert np.allclose(found.weights, np.bincount(found.owners, w, 60))
    assert np.array_equal(found.owners[found.indices], np.arange(60))  # each stands for itself


def test_no_row_is_farther_than_the_radius():
    X, _ = mixture()
    f = KernelMean.from_samples(X, Gaussian(1.0))
    found = Stratified().select(f, 60, rng=0)
    gaps = np.linalg.norm(X[:, None] - found.atoms, axis=2).min(axis=1)
    assert gaps.max() <= f.kernel.length(found.radius, 2) * (1 + 1e-6)


def test_shares_are_nearer_than_those_of_random_rows():
    X, y = mixture(20_000)
    true = np.bincount(y) / len(y)
    f = KernelMean.from_samples(X, Gaussian(1.0))
    ours, random = [], []
    for seed in range(5):
        found = Stratified().select(f, 100, rng=seed)
        ours.append(np.abs(np.bincount(y[found.indices], found.weights, 3) - true).max())
        rows = np.random.default_rng(seed).choice(len(X), 100, replace=False)
        random.append(np.abs(np.bincount(y[rows], minlength=3) / 100 - true).max())
    assert np.mean(ours) < np.mean(random) / 5


def test_rows_piled_up_on_an_edge_are_counted_right():
    """Half of the rows lie exactly at a limit, beside others: the row nearest to a cell's middle would never be one of them."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.where(rng.random(20_000) < 0.5, 0.0, rng.exponential(size=20_000)), *rng.normal(size=(3, 20_000))])
    at_limit = X[:, 0] == 0
    off = []
    for seed in range(6):
        found = Stratified().select(KernelMean.from_samples(X, Gaussian(1.0)), 150, rng=seed)
        off.append(found.weights[at_limit[found.indices]].sum() - at_limit.mean())
    assert abs(np.mean(off)) < 0.04


def test_exchanging_rows_brings_the_sketch_nearer(monkeypatch):
    X, _ = mixture(8000)
    f = KernelMean.from_samples(X, Gaussian(1.0))

    def distance():
        found = Stratified().select(f, 80, rng=0)
        return f.distance(KernelMean(found.atoms, found.weights, f.kernel))

    exchanged = distance()
    monkeypatch.setattr(stratified, "EXCHANGES", 0)
    assert exchanged < 0.5 * distance()


def test_rows_without_weight_are_nobodys_and_nobody():
    X, _ = mixture(500)
    w = np.ones(500)
    w[::3] = 0
    found = Stratified().select(KernelMean(X, w, Gaussian(1.0)), 30, rng=0)
    assert (found.owners[::3] == -1).all()
    assert (w[found.indices] > 0).all()
    alone = Stratified().select(KernelMean(X[w > 0], w[w > 0], Gaussian(1.0)), 30, rng=0)
    assert np.array_equal(alone.atoms, found.atoms)


def test_cells_that_stay_empty_are_filled_from_the_heaviest(monkeypatch):
    monkeypatch.setattr(stratified, "centres_beside", lambda mean, cover, count, rng: np.full((count, 2), 1e6) + np.arange(2))
    X, _ = mixture(400)
    found = Stratified(coverage=0.5).select(KernelMean.from_samples(X, Gaussian(1.0)), 20, rng=0)
    assert len(set(found.indices.tolist())) == 20
    assert found.weights.sum() == pytest.approx(1.0)
    assert np.array_equal(found.owners[found.indices], np.arange(20))


def test_a_function_as_a_kernel():
    X, _ = mixture(300)
    kernel = FunctionKernel(lambda A, B: np.exp(-0.5 * ((A[:, None] - B) ** 2).sum(axis=2)))
    found = Stratified().select(KernelMean.from_samples(X, kernel), 20, rng=0)
    assert len(set(found.indices.tolist())) == 20
    assert found.weights.sum() == pytest.approx(1.0)


def test_rows_of_a_covered_sample_cover_all_rows(monkeypatch):
    monkeypatch.setattr(covering, "LEAST_SAMPLED", 400)
    monkeypatch.setattr(covering, "SAMPLED", 4)
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(3000, 41)), 40 + 5 * rng.normal(size=(9, 41))])
    f = KernelMean.from_samples(X, Gaussian(3.0))

    def radius(atoms):
        return max(np.linalg.norm(atoms - row, axis=1).min() for row in X)

    cover = covering.Covering(f, None, np.random.default_rng(0))
    rows = cover.rows(60)
    assert len(set(rows.tolist())) == len(rows) <= 60
    assert radius(X[rows]) <= f.kernel.length(cover.reach(len(rows)), 41) * (1 + 1e-6)
    found = Stratified().select(f, 60, rng=0)
    assert len(found.indices) == 60
    assert radius(found.atoms) <= f.kernel.length(found.radius, 41) * (1 + 1e-6)
    assert radius(found.atoms) <= 1.45 * radius(KCenter(first=0).select(f, 60).atoms)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_fewer_distinct_rows_than_atoms(size):
    X = np.repeat([[0.0, 0.0], [5.0, 0.0]], 50, axis=0)
    found = Stratified().select(KernelMean.from_samples(X, Gaussian(1.0)), size, rng=0)
    assert len(np.unique(found.atoms, axis=0)) == len(found.atoms) == min(size, 2)
    assert found.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("wrong", [-0.1, 1.5, "half"])
def test_a_coverage_that_is_no_proportion(wrong):
    with pytest.raises((ValueError, TypeError), match="coverage"):
        Stratified(coverage=wrong)
