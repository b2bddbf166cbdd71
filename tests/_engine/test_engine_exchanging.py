"""Rows exchanged within cells: never farther from the goal, and the same as trying every candidate of one cell after the other."""

import numpy as np
import pytest

from reduset._engine import Frame, exchange


def waves(rows, frequencies, rungs):
    """(n, s, rungs), by the definition."""
    angles = (rows @ frequencies.T)[:, :, None] * 2.0 ** np.arange(rungs)
    return np.exp(1j * angles)


@pytest.fixture
def problem():
    rng = np.random.default_rng(3)
    X, frequencies = rng.normal(size=(300, 3)), rng.normal(size=(17, 3))
    owner = rng.integers(40, size=300)
    candidates = np.full((40, 6), -1)
    for cell in range(40):
        mine = np.flatnonzero(owner == cell)[:6]
        candidates[cell, : len(mine)] = mine
    candidates[7, 1:] = -1  # a cell with one candidate
    weights = np.bincount(owner, minlength=40) / 300
    return X, frequencies, candidates, weights, waves(X, frequencies, 3).mean(axis=0)


def by_trying(X, frequencies, candidates, weights, goal):
    """One sweep: for each cell every candidate, all waves summed anew."""
    chosen = np.zeros(len(candidates), int)

    def distance():
        rows = candidates[np.arange(len(candidates)), chosen]
        return np.sum(np.abs(goal - np.tensordot(weights, waves(X[rows], frequencies, 3), 1)) ** 2)

    for cell in range(len(candidates)):
        values = []
        for place in np.flatnonzero(candidates[cell] >= 0):
            chosen[cell] = place
            values.append(distance())
        chosen[cell] = int(np.argmin(values))
    return chosen, distance()


def test_one_sweep_is_that_of_trying_everything(problem):
    X, frequencies, candidates, weights, goal = problem
    left = goal - np.tensordot(weights, waves(X[candidates[:, 0]], frequencies, 3), 1)
    found = exchange(X, candidates, weights, frequencies, Frame(np.zeros(3), 1.0), left, 1)
    expected, distance = by_trying(*problem)
    assert np.array_equal(found, expected)
    assert found[7] == 0
    assert distance < 0.3 * np.sum(np.abs(left) ** 2)


def test_more_sweeps_come_no_farther(problem):
    X, frequencies, candidates, weights, goal = problem
    left = goal - np.tensordot(weights, waves(X[candidates[:, 0]], frequencies, 3), 1)
    distances = []
    for sweeps in (1, 2, 5):
        chosen = exchange(X, candidates, weights, frequencies, Frame(np.zeros(3), 1.0), left, sweeps)
        rows = candidates[np.arange(40), chosen]
        assert (rows >= 0).all()
        distances.append(np.sum(np.abs(goal - np.tensordot(weights, waves(X[rows], frequencies, 3), 1)) ** 2))
    assert distances[0] >= distances[1] - 1e-12 >= distances[2] - 2e-12
