"""Calibrated weights: moved as little as possible, so that the weighted sketch has the columns' summaries of all rows.

Truncated linear calibration (Deville & Särndal 1992, J. Am. Stat. Assoc. 87, case 7): from starting weights w⁰,

    min Σᵢ (wᵢ − wᵢ⁰)² / wᵢ⁰    subject to    A w = b,    w⁰/BOUND ≤ w ≤ BOUND·w⁰,

whose solution is wᵢ = wᵢ⁰ · clip(1 + (Aᵀλ)ᵢ) with λ at the maximum of a concave, piecewise quadratic function. Newton steps with
step halving find it. The constraints, in the order in which they are given up when no weights within the bounds meet them all:

1. the total mass, and the mass of each group, which are never given up;
2. the mean of each column (for a column of 0 and 1, as categories become, its proportion), then its second moment;
3. the mass at or below the deciles; if these are too many for the size, or not feasible, the quartiles, then the median.

There are at most m / `ROWS_A_CONSTRAINT` constraints of the third kind together with the others: more would move the weights so
much that sums of other quantities get worse. O(m·p²) for p constraints and a few Newton steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset._types import Array, Indices
from reduset.sketching.summaries import Summary

BOUND = 3.0
ROWS_A_CONSTRAINT = 10
ROWS_A_MOMENT = 3
FEWEST_ROWS = 5  # of the sketch on either side of a quantile; ties can leave fewer, and then there is nothing to move
STEPS, HALVINGS = 60, 30
EXACT = 1e-10  # of a standardised constraint
RANK = 1e-10  # of the largest eigenvalue: combinations of constraints below it repeat others
LIMITS = (("deciles", np.arange(1, 10) / 10), ("quartiles", np.array([0.25, 0.5, 0.75])), ("medians", np.array([0.5])))
MEANS, SPREADS = "means", "standard deviations"
EVERY = (MEANS, SPREADS, LIMITS[0][0])


@dataclass(frozen=True)
class Calibration:
    """Calibrated weights.

    Attributes
    ----------
    weights : (m,)
    exact : the summaries of all columns that equal those of all rows, e.g. ("means", "standard deviations", "deciles")
    omitted : those that do not, because the rows are too few or no weights within the bounds give them
    """

    weights: Array
    exact: tuple[str, ...]
    omitted: tuple[str, ...]


def calibrate_weights(rows: Array, start: Array, summary: Summary, groups: Indices | None = None) -> Calibration:
    """Weights of the sketch's rows (m, d), from the masses of their strata, with the columns' summaries of all rows.

    Parameters
    ----------
    start : (m,) positive
    summary : of all rows
    groups : (m,) the group of each row, from 0 on, whose masses are kept; None for one group
    """
    masses = _masses(start, groups)
    moving = summary.spreads > 0
    z = (rows - summary.means)[:, moving] / summary.spreads[moving]
    means, squares = z.T, (np.square(z) - 1)[:, ~summary.binary[moving]].T
    plans: list[tuple[tuple[str, ...], list[Array]]] = []
    if moving.any():
        plans = [((MEANS, SPREADS, name), [means, squares, _at_limits(rows, summary, levels)]) for name, levels in LIMITS]
        plans += [((MEANS, SPREADS), [means, squares]), ((MEANS,), [means])]
    for names, parts in plans:
        features = np.concatenate(parts)
        allowed = len(start) / (ROWS_A_CONSTRAINT if len(names) > 2 else ROWS_A_MOMENT)
        if len(masses) + len(features) > allowed:
            continue
        weights = _solve(masses, features, start)
        if weights is not None:
            return Calibration(weights, names, tuple(name for name in EVERY if name not in names))
    return Calibration(start.copy(), (), EVERY if moving.any() else ())


def _masses(start: Array, groups: Indices | None) -> Array:
    """(g, m) the constraints that keep the mass of each group, as differences from it."""
    count = 1 if groups is None else int(groups.max()) + 1
    member = np.zeros((count, len(start)))
    member[np.zeros(len(start), np.int64) if groups is None else groups, np.arange(len(start))] = 1.0
    return member


def _at_limits(rows: Array, summary: Summary, levels: Array) -> Array:
    """Whether each value is at or below a quantile, less the proportion of all rows, of columns with more than two values."""
    features = []
    for limit, below in zip(summary.quantiles(levels), summary.below(levels), strict=True):
        lower = (rows <= limit).sum(axis=0)
        some = ~summary.binary & (np.minimum(lower, len(rows) - lower) >= FEWEST_ROWS)
        features.append(((rows[:, some] <= limit[some]) - below[some]).T)
    return np.concatenate(features)


def _solve(masses: Array, features: Array, start: Array) -> Array | None:
    """Weights within the bounds that keep the sums of ``masses`` (g, m) and bring those of ``features`` (p, m) to 0; or None."""
    constraints = np.concatenate([masses, features])
    goal = np.concatenate([masses @ start, np.zeros(len(features))])
    total = start.sum()
    size = np.sqrt(np.square(constraints) @ start / total)
    kept = size > 0
    A, b = constraints[kept] / size[kept, None], goal[kept] / size[kept]
    multipliers = np.zeros(len(A))

    def at(at_multipliers: Array) -> tuple[Array, Array, float]:
        stretch = A.T @ at_multipliers
        factor = np.clip(1 + stretch, 1 / BOUND, BOUND)
        weights = start * factor
        # the dual function: b·λ − Σ w⁰ max over g in the bounds of (g·s − (g − 1)²/2)
        value = b @ at_multipliers - start @ (factor * stretch - 0.5 * np.square(factor - 1))
        return weights, b - A @ weights, float(value)

    weights, lacking, value = at(multipliers)
    for _ in range(STEPS):
        if np.abs(lacking).max() <= EXACT * total:
            return _within(weights, start)
        inside = (weights > start / BOUND) & (weights < BOUND * start)
        step = _newton(A[:, inside] * start[inside] @ A[:, inside].T, lacking)
        length = 1.0
        for _ in range(HALVINGS):
            tried = at(multipliers + length * step)
            if tried[2] > value or np.abs(tried[1]).max() < 0.5 * np.abs(lacking).max():
                break
            length /= 2
        else:
            return None
        multipliers = multipliers + length * step
        weights, lacking, value = tried
    return None


def _within(weights: Array, start: Array) -> Array:
    return np.asarray(np.clip(weights, start / BOUND, BOUND * start))


def _newton(matrix: Array, lacking: Array) -> Array:
    """The Newton step; along combinations of constraints that repeat others there is none."""
    values, vectors = np.linalg.eigh(matrix)
    able = values > RANK * max(values[-1], np.finfo(float).tiny)
    return np.asarray(vectors[:, able] @ ((lacking @ vectors[:, able]) / values[able]))
