"""Calibrated weights: moved as little as possible, so that the weighted sketch has the columns' summaries of all rows.

Truncated linear calibration (Deville & Särndal 1992, J. Am. Stat. Assoc. 87, case 7): from starting weights w⁰,

    min Σᵢ (wᵢ − wᵢ⁰)² / wᵢ⁰    subject to    A w = b,    w⁰/BOUND ≤ w ≤ BOUND·w⁰,

whose solution is wᵢ = wᵢ⁰ · clip(1 + (Aᵀλ)ᵢ) with λ at the maximum of a concave, piecewise quadratic function. Newton steps with
step halving find it. The constraints:

1. the total mass, and the mass of each group, which always hold;
2. the mean of each column (for a column of 0 and 1, as categories become, its proportion), and its second moment;
3. the mass at or below the deciles, and the 5 % and 95 % quantiles; if these are too many for the size, or not feasible, at the
   deciles, the quartiles, or the median.

There are at most m / `ROWS_A_CONSTRAINT` constraints of the third kind together with the others: more would move the weights so
much that sums of other quantities get worse. If no weights within the bounds meet all constraints, they are added by kind: means,
then second moments, then quantiles, then second moments of columns with heavy tails, which few rows decide. Where those of a kind
are not feasible, a penalty on their squared residuals takes their place; the largest residuals show which constraints to omit. A
plan that loses more than `MOST_OMITTED` of its constraints is replaced by one with fewer. O(m·p²) for p constraints and a few
Newton steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array, Indices
from reduset.sketching.columns import MEAN, PROPORTION, SPREAD
from reduset.sketching.summaries import Summary

BOUND = 3.0
SOME_BOUND = 2.0  # for the mass of a category, so that weights can still change for other constraints
HEAVY_TAILS = 10.0  # standard deviation of standardised squares, 1.4 for a normal column
ROWS_A_CONSTRAINT = 10
ROWS_A_MOMENT = 3
FEWEST_ROWS = 5  # of the sketch on either side of a quantile; ties can leave fewer, and then there is nothing to move
STEPS, HALVINGS = 60, 30
EXACT = 1e-10  # of a standardised constraint
MOST_OMITTED = 0.2  # of a plan's constraints
OMITTED_TOGETHER = 0.9  # of the largest such residual
SOFTNESS = 1e-3  # of a residual that is allowed, for a multiplier of 1
RANK = 1e-10  # of the largest eigenvalue: combinations of constraints below it repeat others
DECILES = np.arange(1, 10) / 10
LIMITS = (
    ("deciles", np.array([0.05, *DECILES, 0.95])),
    ("deciles", DECILES),
    ("quartiles", np.array([0.25, 0.5, 0.75])),
    ("medians", np.array([0.5])),
)
MEANS, SPREADS = "means", "standard deviations"
EVERY = (MEANS, SPREADS, LIMITS[0][0])


@dataclass(frozen=True)
class Calibration:
    """Calibrated weights.

    Attributes
    ----------
    weights : (m,)
    exact : the summaries of columns that equal those of all rows, e.g. ("means", "standard deviations", "deciles")
    omitted : those that are not constraints, because the rows are too few or no weights within the bounds give them
    exceptions : (column, statistic) for each single constraint that no weights within the bounds meet together with the others
    """

    weights: Array
    exact: tuple[str, ...]
    omitted: tuple[str, ...]
    exceptions: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class _Features:
    """Functions of the rows whose weighted sums are to be 0: values (p, m), and of each its kind, column and statistic.

    Kinds are 0 for means, 1 for second moments, 2 for quantiles and 3 for second moments of columns with heavy tails.
    """

    values: Array
    kinds: Indices
    labels: tuple[tuple[int, str], ...]

    @property
    def columns(self) -> Indices:
        """(p,) the column of each."""
        return np.array([column for column, _ in self.labels], np.int64)

    @classmethod
    def of(cls, kind: int, values: Array, labels: list[tuple[int, str]]) -> _Features:
        return cls(values, np.full(len(values), kind), tuple(labels))

    def __add__(self, other: _Features) -> _Features:
        return _Features(
            np.concatenate([self.values, other.values]),
            np.concatenate([self.kinds, other.kinds]),
            self.labels + other.labels,
        )


def calibrate_weights(rows: Array, start: Array, summary: Summary, groups: Indices | None = None) -> Calibration:
    """Weights of the sketch's rows (m, d), from the masses of their strata, with the columns' summaries of all rows.

    Parameters
    ----------
    start : (m,) positive
    summary : of all rows
    groups : (m,) the group of each row, from 0 on, whose masses are kept; None for one group
    """
    masses, moving = _masses(start, groups), np.flatnonzero(summary.spreads > 0)
    start = _with_category_masses(rows, start, summary, masses)
    if not len(moving):
        return Calibration(start.copy(), (), ())
    if len(masses) + len(moving) > len(start) / ROWS_A_MOMENT:  # no plan has fewer constraints
        return Calibration(start.copy(), (), EVERY)
    for names, features in _plans(rows, summary, moving):
        allowed = len(start) / (ROWS_A_CONSTRAINT if len(names) > 2 else ROWS_A_MOMENT)
        if len(masses) + len(features.values) > allowed:
            continue
        most = MOST_OMITTED if len(names) > 1 else 1.0
        weights, kept = _solve_feasible(masses, features, start, int(most * len(features.values)))
        if weights is not None and kept.any():
            exceptions = tuple(label for label, able in zip(features.labels, kept, strict=True) if not able)
            return Calibration(weights, names, tuple(name for name in EVERY if name not in names), exceptions)
    return Calibration(start.copy(), (), EVERY)


def _with_category_masses(rows: Array, start: Array, summary: Summary, masses: Array) -> Array:
    """Starting weights; those of a category without weights within the bounds start at its mass, which other rows make up for.

    A category with a single row in the sketch may have been drawn for a stratum of ten times its mass.
    """
    before, start = start, start.copy()
    for j in np.flatnonzero(summary.binary & (summary.spreads > 0)):
        proportion = (summary.means[j] - summary.minima[j]) / (summary.maxima[j] - summary.minima[j])
        member = rows[:, j] == (summary.maxima[j] if proportion < 0.5 else summary.minima[j])
        goal, mass, total = min(proportion, 1 - proportion), start[member].sum(), start.sum()
        if 0 < mass < total and not 1 / SOME_BOUND <= goal * total / mass <= SOME_BOUND:
            start[member] *= goal * total / mass
            start[~member] *= (1 - goal) * total / (total - mass)
    return np.asarray(start * (masses.T @ ((masses @ before) / (masses @ start))))


def _plans(rows: Array, summary: Summary, moving: Indices) -> Iterator[tuple[tuple[str, ...], _Features]]:
    """Names of summaries and their features, from the most constraints to the fewest."""
    z = (rows - summary.means)[:, moving] / summary.spreads[moving]
    many = ~summary.binary[moving]
    means = _Features.of(0, z.T, [(int(j), PROPORTION if summary.binary[j] else MEAN) for j in moving])
    squares = _Features.of(1, (np.square(z) - 1)[:, many].T, [(int(j), SPREAD) for j in moving[many]])
    squares.kinds[summary.square_spreads[moving[many]] > HEAVY_TAILS] = 3
    for name, levels in LIMITS:
        yield (MEANS, SPREADS, name), means + squares + _at_limits(rows, summary, levels)
    yield (MEANS, SPREADS), means + squares
    yield (MEANS,), means


def _masses(start: Array, groups: Indices | None) -> Array:
    """(g, m) the constraints that keep the mass of each group, as differences from it."""
    count = 1 if groups is None else int(groups.max()) + 1
    member = np.zeros((count, len(start)))
    member[np.zeros(len(start), np.int64) if groups is None else groups, np.arange(len(start))] = 1.0
    return member


def _at_limits(rows: Array, summary: Summary, levels: Array) -> _Features:
    """Whether each value is at or below a quantile, less the proportion of all rows, of columns with more than two values."""
    features, labels, before = [], [], np.full(rows.shape[1], np.nan)
    for level, limit, below in zip(levels, summary.quantiles(levels), summary.below(levels), strict=True):
        lower = (rows <= limit).sum(axis=0)
        some = ~summary.binary & (np.minimum(lower, len(rows) - lower) >= FEWEST_ROWS) & (limit != before)
        before = limit
        features.append(((rows[:, some] <= limit[some]) - below[some]).T)
        labels += [(int(j), f"{level:.0%} quantile") for j in np.flatnonzero(some)]
    return _Features.of(2, np.concatenate(features), labels)


def _solve_feasible(masses: Array, features: _Features, start: Array, most: int) -> tuple[Array | None, NDArray[np.bool_]]:
    """Weights for as many of the constraints as possible, and which of them hold; None if more than ``most`` are omitted."""
    kept = _consistent(masses, features, start)
    weights, _ = _Constraints.of(masses, features.values[kept], start).solve()
    for kind in () if weights is not None else np.unique(features.kinds):
        considered = features.kinds <= kind
        while (~kept).sum() <= most:
            able = considered & kept
            problem = _Constraints.of(masses, features.values[able], start)
            weights, _ = problem.solve()
            if weights is not None:
                break
            last = features.kinds[able] == kind  # those before are known to be feasible
            _, multipliers = problem.solve(last)
            residuals = np.abs(multipliers) * last
            together = OMITTED_TOGETHER if kind > 0 else 1.0
            kept[np.flatnonzero(able)[residuals >= together * residuals.max()]] = False
            kept &= ~((features.kinds % 2 == 1) & np.isin(features.columns, features.columns[~kept & (features.kinds == 0)]))
    return (weights, kept) if (~kept).sum() <= most else (None, kept)


def _consistent(masses: Array, features: _Features, start: Array) -> NDArray[np.bool_]:
    """Constraints without those that no weights meet: functions of one sign, and one of each set that contradicts itself.

    If a category has no row in the sketch, the proportions of the other categories cannot all be right, since they sum to 1. The
    one that depends most on the others is omitted, which is the largest category.
    """
    kept = (features.values.min(axis=1) <= 0) & (features.values.max(axis=1) >= 0)
    while kept.any():
        problem = _Constraints.of(masses, features.values[kept], start)
        values, vectors = np.linalg.eigh(problem.A * start @ problem.A.T)
        null = vectors[:, values <= RANK * values[-1]]
        wrong = null.T @ problem.b
        if not len(wrong) or np.abs(wrong).max() <= EXACT * start.sum():
            break
        contradiction = np.abs(null @ wrong)[problem.masses :]
        kept[np.flatnonzero(kept)[np.argmax(contradiction)]] = False
    return kept


@dataclass(frozen=True)
class _Constraints:
    """Constraints A w = b, (p, m), standardised, on weights near their start (m,); the first ones keep masses."""

    A: Array
    b: Array
    start: Array
    masses: int

    @classmethod
    def of(cls, masses: Array, features: Array, start: Array) -> _Constraints:
        """To keep the sums of ``masses`` (g, m), and to bring those of ``features`` (p, m) to 0."""
        constraints = np.concatenate([masses, features])
        goal = np.concatenate([masses @ start, np.zeros(len(features))])
        size = np.sqrt(np.square(constraints) @ start / start.sum())
        size[size == 0] = 1.0
        return cls(constraints / size[:, None], goal / size, start, len(masses))

    def solve(self, soft_features: NDArray[np.bool_] | None = None) -> tuple[Array | None, Array]:
        """The weights, or None if the steps do not end at any; and the multipliers λ of the features.

        ``soft_features`` (p,) may keep residuals ρλ, as small as possible, with ρ = `SOFTNESS`.
        """
        soft = np.zeros(len(self.A))
        if soft_features is not None:
            soft[self.masses :] = SOFTNESS * self.start.sum() * soft_features
        multipliers = np.zeros(len(self.A))
        weights, lacking, value = self._at(multipliers, soft)
        for _ in range(STEPS):
            if np.abs(lacking).max() <= EXACT * self.start.sum():
                return np.clip(weights, self.start / BOUND, BOUND * self.start), multipliers[self.masses :]
            inside = (weights > self.start / BOUND) & (weights < BOUND * self.start)
            step = _newton(self.A[:, inside] * self.start[inside] @ self.A[:, inside].T + np.diag(soft), lacking)
            length = 1.0
            for _ in range(HALVINGS):
                tried = self._at(multipliers + length * step, soft)
                if tried[2] > value or np.abs(tried[1]).max() < 0.5 * np.abs(lacking).max():
                    break
                length /= 2
            else:
                break
            multipliers = multipliers + length * step
            weights, lacking, value = tried
        return None, multipliers[self.masses :]

    def _at(self, multipliers: Array, soft: Array) -> tuple[Array, Array, float]:
        """The weights of given multipliers, the gradient of the dual function, and its value."""
        stretch = self.A.T @ multipliers
        factor = np.clip(1 + stretch, 1 / BOUND, BOUND)
        weights = self.start * factor
        # b·λ − Σ w⁰ max over g in the bounds of (g·s − (g − 1)²/2), less half of ρλ²
        value = self.b @ multipliers - self.start @ (factor * stretch - 0.5 * np.square(factor - 1))
        value -= 0.5 * soft @ np.square(multipliers)
        return weights, self.b - self.A @ weights - soft * multipliers, float(value)


def _newton(matrix: Array, lacking: Array) -> Array:
    """The Newton step; along combinations of constraints that repeat others there is none."""
    values, vectors = np.linalg.eigh(matrix)
    able = values > RANK * max(values[-1], np.finfo(float).tiny)
    return np.asarray(vectors[:, able] @ ((lacking @ vectors[:, able]) / values[able]))
