"""The threshold of a monitor, calibrated so that without drift the first alarm comes after ``ert`` rows on average.

Streams without drift are simulated: rows are drawn with replacement from the random sample of the reference, and watched
like real streams. Each stream has a random error of the reference's mean, with the covariance of the true error. Statistics of all
windows are transformed to one scale. Their mean becomes 0, and the level that one evaluation in ``ert`` exceeds becomes 1. The
threshold for the largest statistic is the level at which

    rows watched until the first crossing, or until the end    ÷    streams that crossed

equals ``ert``. This ratio estimates the expected run length if crossings are rare and therefore nearly memoryless (Siegmund 1985).
O(400·ert·p) time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reduset._engine import WindowSums, run_all
from reduset._types import Array, Indices, Report

CROSSINGS = 400  # expected crossings in simulated streams of ``ert`` rows, for a standard error of 5 % of the run length
MAX_SIMULATED = 20_000_000  # rows of all streams together
SCALE_ROWS = 100_000  # smallest number of rows that determine the scale of a window

Values = NDArray[np.float32]


@dataclass(frozen=True)
class Thresholds:
    """The threshold of an alarm.

    Attributes
    ----------
    centres, factors : (k,) centre and factor of each window, which transform its statistic to the common scale.
    level : Statistics of at least this level, on the common scale, raise an alarm.
    """

    centres: Array
    factors: Array
    level: float


def calibrated(
    rows: Array, root: Array, form: Array, windows: Indices, ert: float, rng: np.random.Generator, report: Report | None = None
) -> Thresholds:
    """Thresholds for an expected run length of ``ert`` rows.

    Parameters
    ----------
    rows : (s, p) coordinates of rows from the distribution of the reference, with mean 0.
    root : (p, r) factor A of the covariance A Aᵀ of the error of the reference's mean.
    form : (p,) coefficients of the statistic.
    windows : (k,) lengths of the windows.
    """
    values = rows.astype(np.float32)
    centres, factors = _common_scale(values, form, windows, ert, rng)
    length = int(max(2 * max(windows), ert))
    count = int(np.clip(np.ceil(CROSSINGS * ert / (length * (1 - np.exp(-length / ert)))), 8, max(MAX_SIMULATED // length, 8)))
    seeds = rng.integers(2**63, size=count)
    records: list[tuple[Indices, Array]] = [(np.empty(0, np.int64), np.empty(0))] * count
    done = [0]

    def watch(k: int) -> None:
        stream_rng = np.random.default_rng(seeds[k])
        offset = root @ stream_rng.standard_normal(root.shape[1])
        records[k] = _records(_statistics(values, offset, windows, (form, centres, factors), length, stream_rng))
        done[0] += 1
        if report is not None:
            report(done[0], count)

    run_all([partial(watch, k) for k in range(count)])
    return Thresholds(centres, factors, _level(records, length, ert))


def _common_scale(values: Values, form: Array, windows: Indices, ert: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """The centre and the factor of every window, each from one long stream."""
    centres, factors = np.zeros(len(windows)), np.ones(len(windows))
    zero = np.zeros(len(form))
    for k, window in enumerate(windows):
        count = max(SCALE_ROWS, 40 * window)
        statistics = _statistics(values, zero, windows[k : k + 1], (form, np.zeros(1), np.ones(1)), count, rng)
        evaluated = statistics[np.isfinite(statistics)]
        centres[k] = evaluated.mean()
        # The tail of a sum of squares decreases exponentially, so that it is extrapolated from two quantiles with enough values.
        body, tail = np.quantile(evaluated, [0.9, 0.99]) - centres[k]
        factors[k] = 1.0 / max(tail + (tail - body) * np.log10(max(ert / 100.0, 1.0)), 1e-300)
    return centres, factors


def _statistics(
    values: Values, offset: Array, windows: Indices, scaled: tuple[Array, Array, Array], count: int, rng: np.random.Generator
) -> Array:
    """(count,) the largest statistic after every row of a stream without drift; −∞ without an evaluation."""
    sums, order = WindowSums.empty(windows, len(offset)), rng.integers(len(values), size=count)
    return watched(sums, values, order, offset, scaled)[1]


def watched(
    sums: WindowSums, values: Values, order: Indices, offset: Array, scaled: tuple[Array, Array, Array], limit: float = np.inf
) -> tuple[int, Array, Indices]:
    """Add rows in an order until a statistic reaches the limit: their number, the largest statistic after each, and its window."""
    largest, which = np.empty(len(order)), np.empty(len(order), np.int64)
    return sums.advance(values, order, offset, *scaled, limit, largest, which), largest, which


def _records(statistics: Array) -> tuple[Indices, Array]:
    """The positions and values of the records of a stream, which determine its first crossing of any level."""
    maxima = np.maximum.accumulate(statistics)
    positions = np.flatnonzero(maxima > np.concatenate([[-np.inf], maxima[:-1]]))
    return positions, maxima[positions]


def _level(records: list[tuple[Indices, Array]], length: int, ert: float) -> float:
    """The lowest level with an average run length of at least ``ert`` rows."""
    levels = np.unique(np.concatenate([values for _, values in records]))
    low, high = 0, len(levels) - 1
    while low < high:  # run lengths rise with the level
        middle = (low + high) // 2
        if _run_length(records, length, float(levels[middle])) >= ert:
            high = middle
        else:
            low = middle + 1
    return float(levels[low])


def _run_length(records: list[tuple[Indices, Array]], length: int, level: float) -> float:
    """Rows watched until the first crossing or the end, divided by the number of streams that crossed."""
    watched, crossed = 0, 0
    for positions, levels in records:
        k = int(np.searchsorted(levels, level))
        crossed += k < len(positions)
        watched += int(positions[k]) + 1 if k < len(positions) else length
    return watched / crossed if crossed else np.inf
