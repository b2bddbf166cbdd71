"""Rows exchanged within strata: never farther from the goal, and the same as trying every candidate of one after the other."""

import numpy as np
import pytest

from reduset._engine import ColumnGoals, Frame, exchange
from reduset._engine.exchanging import MOMENT_FACTOR

LIMITS = np.array([[-0.5, -1.0, 0.0], [0.8, 0.2, 1.0]])


def waves(rows, frequencies, rungs):
    """(n, s, rungs), by the definition."""
    angles = (rows @ frequencies.T)[:, :, None] * 2.0 ** np.arange(rungs)
    return np.exp(1j * angles)


def features(rows, X, frequencies):
    """(n, features): waves, standardised values and squares, and whether limits are exceeded, by the definitions."""
    z = (rows - X.mean(axis=0)) / X.std(axis=0)
    squares = (z**2 - 1) / np.std(((X - X.mean(axis=0)) / X.std(axis=0)) ** 2, axis=0)
    found = waves(rows, frequencies, 3).reshape(len(rows), -1)
    below = [rows <= limit for limit in LIMITS]
    return np.concatenate([found.real, found.imag, MOMENT_FACTOR * z, MOMENT_FACTOR * squares, *below], axis=1)


@pytest.fixture
def problem():
    rng = np.random.default_rng(3)
    X, frequencies = rng.normal(size=(300, 3)), rng.normal(size=(17, 3))
    stratum = rng.integers(40, size=300)
    candidates = np.full((40, 6), -1)
    for cell in range(40):
        mine = np.flatnonzero(stratum == cell)[:6]
        candidates[cell, : len(mine)] = mine
    candidates[7, 1:] = -1  # a stratum with one candidate
    fixed, fixed_weights = 3 * rng.normal(size=(2, 3)), np.array([0.01, 0.02])
    weights = 0.97 * np.bincount(stratum, minlength=40) / 300
    return X, frequencies, candidates, weights, fixed, fixed_weights


def distance(X, frequencies, rows, weights, fixed, fixed_weights):
    lacking = features(X, X, frequencies).mean(axis=0) - weights @ features(X[rows], X, frequencies)
    return np.sum(np.square(lacking - fixed_weights @ features(fixed, X, frequencies)))


def exchanged(problem, sweeps):
    X, frequencies, candidates, weights, fixed, fixed_weights = problem
    scaled = ((X - X.mean(axis=0)) / X.std(axis=0)) ** 2
    below = np.stack([(limit >= X).mean(axis=0) for limit in LIMITS])
    goals = ColumnGoals(np.arange(3), X.mean(axis=0), X.std(axis=0), scaled.std(axis=0), LIMITS, below)
    goal = waves(X, frequencies, 3).mean(axis=0)
    left = goal - np.tensordot(weights, waves(X[candidates[:, 0]], frequencies, 3), 1)
    left = left - np.tensordot(fixed_weights, waves(fixed, frequencies, 3), 1)
    frame = Frame(np.zeros(3), 1.0)
    return exchange(
        X,
        candidates,
        weights,
        lambda _, rows: frame.apply(rows) @ (frequencies / (2 * np.pi)).T,
        left,
        goals,
        (fixed, fixed_weights),
        sweeps,
    )


def test_one_sweep_is_that_of_trying_everything(problem):
    X, frequencies, candidates, weights, *fixed = problem
    chosen = np.zeros(len(candidates), int)
    first = distance(X, frequencies, candidates[:, 0], weights, *fixed)
    for cell in range(len(candidates)):
        values = []
        for place in np.flatnonzero(candidates[cell] >= 0):
            chosen[cell] = place
            values.append(distance(X, frequencies, candidates[np.arange(40), chosen], weights, *fixed))
        chosen[cell] = int(np.argmin(values))
    found = exchanged(problem, 1)
    assert np.array_equal(found, chosen)
    assert found[7] == 0
    assert min(values) < 0.3 * first


def test_more_sweeps_come_no_farther(problem):
    X, frequencies, candidates, weights, *fixed = problem
    rows = [candidates[np.arange(40), exchanged(problem, sweeps)] for sweeps in (1, 2, 5)]
    assert all((each >= 0).all() for each in rows)
    distances = [distance(X, frequencies, each, weights, *fixed) for each in rows]
    assert distances[0] >= distances[1] - 1e-12 >= distances[2] - 2e-12


def test_rows_below_limits_decide_where_nothing_else_differs():
    """Moments in units of 10⁹ and waves of frequency 0 are equal for all candidates; each change is the best by trying all."""
    rng = np.random.default_rng(5)
    X, candidates, weights = rng.normal(size=(60, 1)), np.arange(60).reshape(12, 5), rng.uniform(0.5, 1.5, 12) / 12
    limits, wide = np.array([[-0.7], [0.1], [0.9]]), np.array([1e9])
    below = np.array([[0.2], [0.5], [0.9]])
    goals = ColumnGoals(np.arange(1), np.zeros(1), wide, wide, limits, below)
    nothing = np.zeros((0, 1)), np.zeros(0)
    found = exchange(X, candidates, weights, lambda _, rows: 0 * rows, np.zeros((1, 1), complex), goals, nothing, 1)

    def off(chosen):
        rows = X[candidates[np.arange(12), chosen]]
        return np.sum(np.square(weights.sum() * below[:, 0] - [weights @ (rows[:, 0] <= limit) for limit in limits]))

    expected = np.zeros(12, int)
    for cell in range(12):
        tried = [off(np.where(np.arange(12) == cell, t, expected)) for t in range(5)]
        if min(tried) < tried[expected[cell]] - 1e-12:
            expected[cell] = int(np.argmin(tried))
    assert off(found) == pytest.approx(off(expected), rel=1e-9)
    assert off(found) < off(np.zeros(12, int))
