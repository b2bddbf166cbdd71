"""The error of a log density at rows that were not used to fit it: |log f_m − log f| at held-out rows.

There are two ways to hold rows out:

- `held_out_split` removes rows before a density is built from the rest. The exact and the approximate density of the rest are
  compared at the removed rows. It is used if a second fit costs little.
- `left_out_error` compares a finished compression at some rows with the exact density of all other rows. Each of these rows has
  only a weight of 1/n in the compression. Rows that are atoms themselves are not used.

Exact densities cost O(n) per row, so that fewer rows are used if n is large.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from reduset._engine import rows_of
from reduset._types import Array, Floats, Indices
from reduset.mean import KernelMean

MAX_ROWS, MIN_ROWS = 2000, 200  # held out
MAX_PAIRS = 10**9  # of rows and held-out rows, unless `MIN_ROWS` take more
MIN_ROWS_PER_HELD_OUT = 5  # at most a fifth of the rows is held out
MIN_REMAINDER = 1e-6  # of f(x): the smallest density of the other rows that subtracting the row's own kernel leaves accurate


class LogError(NamedTuple):
    """|log f_m − log f| at held-out rows: ``median``, 99 % quantile ``q99`` and ``maximum``; NaN if no rows were held out."""

    median: float
    q99: float
    maximum: float

    @classmethod
    def of(cls, approximate: Array, exact: Array) -> LogError:
        """The error of log densities (q,): 0 where both are equal, infinite where they differ and one is infinite or NaN."""
        if len(approximate) == 0:
            return cls(np.nan, np.nan, np.nan)
        with np.errstate(invalid="ignore"):
            error = np.where(approximate == exact, 0.0, np.abs(approximate - exact))
        error = np.nan_to_num(error, nan=np.inf, posinf=np.inf)
        ordered = np.sort(error)
        median, q99 = (float(ordered[int(np.ceil(level * (len(ordered) - 1)))]) for level in (0.5, 0.99))
        return cls(median, q99, float(ordered[-1]))


EXACT = LogError(0.0, 0.0, 0.0)


def held_out_count(n: int) -> int:
    """The number of held-out rows for n rows with weight; 0 for fewer than 5 rows."""
    return min(n // MIN_ROWS_PER_HELD_OUT, max(MIN_ROWS, min(MAX_ROWS, MAX_PAIRS // max(n, 1))))


def drawn_by_weight(weights: Array, count: int, rng: np.random.Generator) -> Indices:
    """``count`` different rows with weight, drawn one after the other with probabilities proportional to their weights."""
    rows = np.flatnonzero(weights)
    order = np.argsort(rng.exponential(size=len(rows)) / weights[rows], kind="stable")
    return np.sort(rows[order[: min(count, len(rows))]])


def held_out_split(full: KernelMean, rng: np.random.Generator) -> tuple[KernelMean, Floats]:
    """The mean of the training rows, its weights summing to 1, and the held-out rows, (k, d)."""
    held_out = drawn_by_weight(full.weights, held_out_count(int(np.count_nonzero(full.weights))), rng)
    is_training = np.ones(full.size, np.bool_)
    is_training[held_out] = False
    weights = full.weights[is_training]
    return KernelMean(rows_of(full.atoms, is_training), weights / weights.sum(), full.kernel), full.atoms[held_out]


def left_out_error(
    full: KernelMean, log_density: Callable[[Floats], Array], excluded: Indices | None, rng: np.random.Generator
) -> LogError:
    """The error of a log density at rows of ``full``, each compared with the exact density of all other rows.

    Rows in ``excluded``, such as the atoms, are not used.
    """
    candidates = np.array(full.weights)
    if excluded is not None:
        candidates[excluded] = 0.0
    rows = drawn_by_weight(candidates, held_out_count(full.size), rng)
    if len(rows) == 0 or np.count_nonzero(full.weights) < 2:
        return LogError.of(np.empty(0), np.empty(0))
    points = np.asarray(full.atoms[rows], np.float64)
    return LogError.of(log_density(points), _leave_one_out_logs(full, rows, points))


def _leave_one_out_logs(full: KernelMean, rows: Indices, points: Floats) -> Array:
    """(k,) the log density of all other rows at each of the rows, with coordinates ``points``."""
    peak = full.kernel.density_log_peak(full.dimension)
    self_term = np.log(full.weights[rows]) + peak
    logs = full.log_density(points, "double")
    remainder = -np.expm1(self_term - logs)  # the proportion of f(x) from the other rows
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = logs + np.log(remainder)
    for k in np.flatnonzero(~(remainder > MIN_REMAINDER)):  # isolated rows, which are rare
        others = np.ones(full.size, np.bool_)
        others[rows[k]] = False
        logs[k] = full.kernel.log_sums(rows_of(full.atoms, others), full.weights[others], points[k : k + 1])[0] + peak
    return np.asarray(logs - np.log1p(-full.weights[rows]))
