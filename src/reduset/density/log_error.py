"""The error of a log density at rows that it was not fitted to: |log f_m − log f| at held-out rows.

Two ways to hold rows out:

- `held_out_split` takes rows away before a density is built from the rest. The exact and the approximate density of the rest are
  compared at the rows taken away. It is used where building twice costs little.
- `left_out_error` compares a finished compression at some rows with the exact density of all other rows. The compression has seen
  each row with a weight of 1/n only. Rows that are atoms themselves are not used.

Exact densities cost O(n) a row, so that fewer rows are used where n is large.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from reduset._engine import rows_of
from reduset._types import Array, Floats, Indices
from reduset.mean import KernelMean

MOST_ROWS, FEWEST_ROWS = 2000, 200
PAIRS = 10**9  # of rows and held-out rows, where all `MOST_ROWS` are too many
HELD_OUT_SHARE = 5  # one row in so many at most
CANCELLED = 1e-6  # of f(x): below, what other rows add cannot be found by subtracting the row's own kernel


class LogError(NamedTuple):
    """|log f_m − log f| at held-out rows: ``median``, 99 % quantile ``q99`` and ``maximum``; NaN if no rows were held out."""

    median: float
    q99: float
    maximum: float

    @classmethod
    def of(cls, found: Array, exact: Array) -> LogError:
        """The error of log densities (q,); infinite where only one of the two is, or is not a number."""
        if len(found) == 0:
            return cls(np.nan, np.nan, np.nan)
        with np.errstate(invalid="ignore"):
            error = np.where(found == exact, 0.0, np.abs(found - exact))
        error = np.nan_to_num(error, nan=np.inf, posinf=np.inf)
        ordered = np.sort(error)
        median, q99 = (float(ordered[int(np.ceil(share * (len(ordered) - 1)))]) for share in (0.5, 0.99))
        return cls(median, q99, float(ordered[-1]))


EXACT = LogError(0.0, 0.0, 0.0)


def held_out_count(n: int) -> int:
    """How many of n rows with weight are held out; none of fewer than 5."""
    return min(n // HELD_OUT_SHARE, max(FEWEST_ROWS, min(MOST_ROWS, PAIRS // max(n, 1))))


def drawn_by_weight(weights: Array, count: int, rng: np.random.Generator) -> Indices:
    """``count`` different rows, each the likelier among them the larger its weight; none without weight."""
    rows = np.flatnonzero(weights)
    order = np.argsort(rng.exponential(size=len(rows)) / weights[rows], kind="stable")
    return np.sort(rows[order[: min(count, len(rows))]])


def held_out_split(full: KernelMean, rng: np.random.Generator) -> tuple[KernelMean, Floats]:
    """The mean of most rows, its weights summing to 1, and the other rows, (k, d)."""
    out = drawn_by_weight(full.weights, held_out_count(int(np.count_nonzero(full.weights))), rng)
    kept = np.ones(full.size, np.bool_)
    kept[out] = False
    weights = full.weights[kept]
    return KernelMean(rows_of(full.atoms, kept), weights / weights.sum(), full.kernel), full.atoms[out]


def left_out_error(
    full: KernelMean, log_density: Callable[[Floats], Array], not_these: Indices | None, rng: np.random.Generator
) -> LogError:
    """The error of a log density at rows of ``full``, each compared with the exact density of all other rows."""
    candidates = np.array(full.weights)
    if not_these is not None:
        candidates[not_these] = 0.0
    rows = drawn_by_weight(candidates, held_out_count(full.size), rng)
    if len(rows) == 0 or np.count_nonzero(full.weights) < 2:
        return LogError.of(np.empty(0), np.empty(0))
    places = np.asarray(full.atoms[rows], np.float64)
    return LogError.of(log_density(places), _without_own(full, rows, places))


def _without_own(full: KernelMean, rows: Indices, places: Floats) -> Array:
    """The log density of all other rows at each of these, (k,)."""
    peak = full.kernel.density_log_peak(full.dimension)
    own = np.log(full.weights[rows]) + peak
    logs = full.log_density(places, "double")
    share = -np.expm1(own - logs)  # of f(x), what other rows add
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = logs + np.log(share)
    for k in np.flatnonzero(~(share > CANCELLED)):  # few rows, alone within many bandwidths
        kept = np.ones(full.size, np.bool_)
        kept[rows[k]] = False
        logs[k] = full.kernel.log_sums(rows_of(full.atoms, kept), full.weights[kept], places[k : k + 1])[0] + peak
    return np.asarray(logs - np.log1p(-full.weights[rows]))
