"""Calibrated weights: with them, summaries of the columns of the sketch equal those of all rows.

Truncated linear calibration (Deville & Särndal 1992, J. Am. Stat. Assoc. 87, case 7). From starting weights w⁰,

    min Σᵢ (wᵢ − wᵢ⁰)² / wᵢ⁰    subject to    A w = b,    w⁰/BOUND ≤ w ≤ BOUND·w⁰.

The solution is wᵢ = wᵢ⁰ · clip(1 + (Aᵀλ)ᵢ), with λ at the maximum of a concave, piecewise quadratic function. Newton steps with
step halving find λ. The constraints:

1. The total mass, and the mass of each group. These always hold.
2. The mean and the second moment of each column. The mean of a column of 0 and 1, such as an encoded category, is a proportion.
3. The mass at or below the deciles, and the 5 % and 95 % quantiles. If these are too many for the size, or not feasible, only the
   deciles, the quartiles, or the median.

With the third kind, there are at most m / `ROWS_PER_CONSTRAINT` constraints. More would change the weights too far, and sums of
other quantities would get worse. If no weights within the bounds meet all constraints, they are added by kind: means, second
moments, quantiles, and last second moments of columns with heavy tails, which depend on few rows. If a kind is not feasible, a
penalty on squared residuals replaces its constraints. The largest residuals then show which constraints to omit. A plan with more
than `MAX_OMITTED` of its constraints omitted is replaced by a plan with fewer. O(m·p²) for p constraints and a few Newton steps.
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
CATEGORY_BOUND = 2.0  # for the mass of a category, so that weights can still change for other constraints
HEAVY_TAILS = 10.0  # standard deviation of standardised squares, which is 1.4 for a normal column
ROWS_PER_CONSTRAINT = 10
ROWS_PER_MOMENT = 3
MIN_ROWS_PER_SIDE = 5  # of the sketch, on each side of a quantile. Ties can leave fewer, and then no mass can move across it
STEPS, HALVINGS = 60, 30
EXACT = 1e-10  # of a standardised constraint
MAX_OMITTED = 0.2  # of a plan's constraints
OMITTED_TOGETHER = 0.9  # of the largest residual: constraints with larger residuals are omitted in one step
SOFTNESS = 1e-3  # the allowed residual for a multiplier of 1
RANK = 1e-10  # of the largest eigenvalue: smaller ones belong to redundant combinations of constraints
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
    weights : (m,) calibrated weights
    exact : Summaries of columns that equal those of all rows, such as ("means", "standard deviations", "deciles").
    omitted : Summaries that are not constraints, because the rows are too few or no weights within the bounds preserve them.
    exceptions : Pairs (column, statistic) of omitted single constraints, which no weights within the bounds meet with the others.
    """

    weights: Array
    exact: tuple[str, ...]
    omitted: tuple[str, ...]
    exceptions: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class _Features:
    """Functions of the rows with a weighted sum of 0 as goal: values (p, m), and the kind, column and statistic of each.

    Kinds are 0 for means, 1 for second moments, 2 for quantiles and 3 for second moments of columns with heavy tails.
    """

    values: Array
    kinds: Indices
    labels: tuple[tuple[int, str], ...]

    @property
    def columns(self) -> Indices:
        """(p,) the column of each function."""
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
    """Calibrate the weights of the sketch's rows (m, d) to the columns' summaries of all rows.

    Parameters
    ----------
    start : (m,) positive starting weights, the masses of the strata
    summary : Summary of all rows.
    groups : (m,) the group of each row, numbered from 0; None for one group
        The mass of each group is kept.
    """
    masses, moving = _masses(start, groups), np.flatnonzero(summary.spreads > 0)
    start = _with_category_masses(rows, start, summary, masses)
    if not len(moving):
        return Calibration(start.copy(), (), ())
    if len(masses) + len(moving) > len(start) / ROWS_PER_MOMENT:  # too many constraints in every plan
        return Calibration(start.copy(), (), EVERY)
    for names, features in _plans(rows, summary, moving):
        allowed = len(start) / (ROWS_PER_CONSTRAINT if len(names) > 2 else ROWS_PER_MOMENT)
        if len(masses) + len(features.values) > allowed:
            continue
        limit = MAX_OMITTED if len(names) > 1 else 1.0
        weights, kept = _solve_feasible(masses, features, start, int(limit * len(features.values)))
        if weights is not None and kept.any():
            exceptions = tuple(label for label, is_kept in zip(features.labels, kept, strict=True) if not is_kept)
            return Calibration(weights, names, tuple(name for name in EVERY if name not in names), exceptions)
    return Calibration(start.copy(), (), EVERY)


def _with_category_masses(rows: Array, start: Array, summary: Summary, masses: Array) -> Array:
    """Starting weights. If no weights within the bounds give a category its mass, its rows start at this mass.

    The weights of the other rows are rescaled. For example, the only row of a category may represent a stratum of ten
    times its mass.
    """
    before, start = start, start.copy()
    for j in np.flatnonzero(summary.binary & (summary.spreads > 0)):
        proportion = (summary.means[j] - summary.minima[j]) / (summary.maxima[j] - summary.minima[j])
        member = rows[:, j] == (summary.maxima[j] if proportion < 0.5 else summary.minima[j])
        goal, mass, total = min(proportion, 1 - proportion), start[member].sum(), start.sum()
        if 0 < mass < total and not 1 / CATEGORY_BOUND <= goal * total / mass <= CATEGORY_BOUND:
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
    """(g, m) the constraints that keep the mass of each group: 1 for the rows of the group, otherwise 0."""
    count = 1 if groups is None else int(groups.max()) + 1
    member = np.zeros((count, len(start)))
    member[np.zeros(len(start), np.int64) if groups is None else groups, np.arange(len(start))] = 1.0
    return member


def _at_limits(rows: Array, summary: Summary, levels: Array) -> _Features:
    """Indicators of values at or below a quantile, minus the proportion in all rows, for columns with more than two values."""
    features, labels, before = [], [], np.full(rows.shape[1], np.nan)
    for level, limit, below in zip(levels, summary.quantiles(levels), summary.below(levels), strict=True):
        lower = (rows <= limit).sum(axis=0)
        used = ~summary.binary & (np.minimum(lower, len(rows) - lower) >= MIN_ROWS_PER_SIDE) & (limit != before)
        before = limit
        features.append(((rows[:, used] <= limit[used]) - below[used]).T)
        labels += [(int(j), f"{level:.0%} quantile") for j in np.flatnonzero(used)]
    return _Features.of(2, np.concatenate(features), labels)


def _solve_feasible(masses: Array, features: _Features, start: Array, limit: int) -> tuple[Array | None, NDArray[np.bool_]]:
    """Weights that meet the largest possible set of constraints, and this set; None if more than ``limit`` are omitted."""
    kept = _consistent(masses, features, start)
    weights, _ = _Constraints.of(masses, features.values[kept], start).solve()
    for kind in () if weights is not None else np.unique(features.kinds):
        considered = features.kinds <= kind
        while (~kept).sum() <= limit:
            active = considered & kept
            problem = _Constraints.of(masses, features.values[active], start)
            weights, _ = problem.solve()
            if weights is not None:
                break
            last = features.kinds[active] == kind  # constraints of earlier kinds are feasible
            _, multipliers = problem.solve(last)
            residuals = np.abs(multipliers) * last
            together = OMITTED_TOGETHER if kind > 0 else 1.0
            kept[np.flatnonzero(active)[residuals >= together * residuals.max()]] = False
            kept &= ~((features.kinds % 2 == 1) & np.isin(features.columns, features.columns[~kept & (features.kinds == 0)]))
    return (weights, kept) if (~kept).sum() <= limit else (None, kept)


def _consistent(masses: Array, features: _Features, start: Array) -> NDArray[np.bool_]:
    """The constraints that weights can meet. This excludes functions of one sign, and one of each contradictory set.

    If a category has no row in the sketch, the proportions of the other categories cannot all be exact, since they sum to 1. The
    constraint that depends most on the others is omitted. This is the largest category.
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
    """Standardised constraints A w = b, (p, m), on weights near their start (m,). The first ``masses`` of them keep masses."""

    A: Array
    b: Array
    start: Array
    masses: int

    @classmethod
    def of(cls, masses: Array, features: Array, start: Array) -> _Constraints:
        """Constraints that keep the sums of ``masses`` (g, m), and set the sums of ``features`` (p, m) to 0."""
        constraints = np.concatenate([masses, features])
        goal = np.concatenate([masses @ start, np.zeros(len(features))])
        size = np.sqrt(np.square(constraints) @ start / start.sum())
        size[size == 0] = 1.0
        return cls(constraints / size[:, None], goal / size, start, len(masses))

    def solve(self, soft_features: NDArray[np.bool_] | None = None) -> tuple[Array | None, Array]:
        """The weights, or None if the steps do not converge, and the multipliers λ of the features.

        ``soft_features`` (p,) may have residuals ρλ with ρ = `SOFTNESS`, which are minimised.
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
        # b·λ − Σ w⁰ max over g in the bounds of (g·s − (g − 1)²/2), minus half of ρλ²
        value = self.b @ multipliers - self.start @ (factor * stretch - 0.5 * np.square(factor - 1))
        value -= 0.5 * soft @ np.square(multipliers)
        return weights, self.b - self.A @ weights - soft * multipliers, float(value)


def _newton(matrix: Array, lacking: Array) -> Array:
    """The Newton step, which is 0 along redundant combinations of constraints."""
    values, vectors = np.linalg.eigh(matrix)
    independent = values > RANK * max(values[-1], np.finfo(float).tiny)
    return np.asarray(vectors[:, independent] @ ((lacking @ vectors[:, independent]) / values[independent]))
