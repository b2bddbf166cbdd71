"""Greedy choice for weights that sum to one, against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from reduset import Gaussian, KernelMean
from reduset.explain.choosing import AffineGreedy


def nearest(K, values, energy, rows):
    """The squared distance of f to the flat through these rows, by the equations with a multiplier."""
    m = len(rows)
    system = np.ones((m + 1, m + 1))
    system[:m, :m], system[m, m] = K[np.ix_(rows, rows)], 0.0
    weights = np.linalg.solve(system, np.append(values[rows], 1.0))[:m]
    return weights @ K[np.ix_(rows, rows)] @ weights - 2 * weights @ values[rows] + energy


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).normal(size=(40, 3))


@pytest.mark.parametrize("weighted", [False, True])
def test_every_row_is_the_one_that_brings_the_flat_nearest_to_f(points, weighted):
    weights = np.random.default_rng(1).integers(0, 4, 40).astype(float) if weighted else np.ones(40)
    mean = KernelMean.from_samples(points, Gaussian(1.5), weights)
    share = weights / weights.sum()
    K = mean.kernel.product_gram(points, points)
    values, energy = K @ share, share @ K @ share
    able = np.flatnonzero(weights)
    chosen = AffineGreedy().select(mean, 8, rng=0).indices.tolist()
    for j, row in enumerate(chosen):
        errors = {i: nearest(K, values, energy, [*chosen[:j], i]) for i in able if i not in chosen[:j]}
        assert errors[row] == pytest.approx(min(errors.values()), rel=1e-9)


def test_a_longer_choice_begins_with_a_shorter_one(points):
    mean = KernelMean.from_samples(points, Gaussian(1.0))
    traversal = AffineGreedy().begin(mean, np.random.default_rng(0))
    traversal.extend(5)
    first = traversal.indices.tolist()
    traversal.extend(12)
    assert traversal.indices.tolist()[:5] == first
    assert traversal.indices.tolist() == AffineGreedy().select(mean, 12, rng=0).indices.tolist()


def test_all_rows_are_chosen_where_all_are_asked_for(points):
    mean = KernelMean.from_samples(points, Gaussian(1.0))  # seen from f the bumps add up to 0: the last is a sum of the others
    assert sorted(AffineGreedy().select(mean, 40, rng=0).indices) == list(range(40))
    one = KernelMean.from_samples(np.repeat(points[:1], 7, axis=0), Gaussian(1.0))
    assert len(AffineGreedy().select(one, 3, rng=0).indices) == 1
