"""How large a statistic may become before it is an alarm: without drift the first one comes after ``ert`` rows on average.

Streams without drift are made of rows of the reference's fair sample, drawn with replacement, and watched as real ones are. Each
begins with an error of the reference's mean, as large as so many rows leave it. Windows are put on one scale (the mean to 0, the
level that one look in ``ert`` is above to 1), and of the largest statistic the level is sought at which

    rows watched until the first crossing, or until the end    ÷    streams that crossed

is ``ert``: the expected run length, where crossings are rare and so nearly without memory (Siegmund 1985). O(400·ert·p) time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reduset._engine import WindowSums, run_all
from reduset._types import Array, Indices, Report

CROSSINGS = 400  # of simulated streams: the run length is then known to 5 %
MOST_ROWS = 20_000_000
FIRST_ROWS = 100_000  # by which windows are put on one scale

Values = NDArray[np.float32]


@dataclass(frozen=True)
class Thresholds:
    """What is called an alarm.

    Attributes
    ----------
    centres, factors : (k,) which put the statistics of all windows on one scale
    level : from which on a statistic on that scale is an alarm
    """

    centres: Array
    factors: Array
    level: float


def calibrated(
    rows: Array, root: Array, form: Array, windows: Indices, ert: float, rng: np.random.Generator, report: Report | None = None
) -> Thresholds:
    """Thresholds for rows (s, p) of the reference's law, their mean 0.

    Parameters
    ----------
    root : (p, r) a factor of the covariance of the error of the reference's mean
    form : (p,) of the statistic; windows : (k,) lengths
    """
    values = rows.astype(np.float32)
    centres, factors = _one_scale(values, form, windows, ert, rng)
    length = int(max(2 * max(windows), ert))
    count = int(np.clip(np.ceil(CROSSINGS * ert / (length * (1 - np.exp(-length / ert)))), 8, max(MOST_ROWS // length, 8)))
    seeds = rng.integers(2**63, size=count)
    records: list[tuple[Indices, Array]] = [(np.empty(0, np.int64), np.empty(0))] * count
    done = [0]

    def watch(k: int) -> None:
        own = np.random.default_rng(seeds[k])
        offset = root @ own.standard_normal(root.shape[1])
        records[k] = _records(_statistics(values, offset, form, windows, centres, factors, length, own))
        done[0] += 1
        if report is not None:
            report(done[0], count)

    run_all([partial(watch, k) for k in range(count)])
    return Thresholds(centres, factors, _level(records, length, ert))


def _one_scale(values: Values, form: Array, windows: Indices, ert: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """The centre and the factor of every window, from one long stream."""
    centres, factors = np.zeros(len(windows)), np.ones(len(windows))
    still = np.zeros(len(form))
    for k, window in enumerate(windows):
        found = _statistics(values, still, form, windows[k : k + 1], np.zeros(1), np.ones(1), max(FIRST_ROWS, 40 * window), rng)
        seen = found[np.isfinite(found)]
        centres[k] = seen.mean()
        # the tail of a sum of squares falls exponentially: read where enough of it was seen, and taken on from there
        body, tail = np.quantile(seen, [0.9, 0.99]) - centres[k]
        factors[k] = 1.0 / max(tail + (tail - body) * np.log10(max(ert / 100.0, 1.0)), 1e-300)
    return centres, factors


def _statistics(
    values: Values,
    offset: Array,
    form: Array,
    windows: Indices,
    centres: Array,
    factors: Array,
    count: int,
    rng: np.random.Generator,
) -> Array:
    """(count,) the largest statistic after every row of a stream without drift."""
    sums = WindowSums.empty(windows, len(form))
    largest, which = np.empty(count), np.empty(count, np.int64)
    order = rng.integers(len(values), size=count)
    sums.advance(values, order, offset, form, centres, factors, np.inf, largest, which)
    return largest


def _records(statistics: Array) -> tuple[Indices, Array]:
    """Where a stream reached a height for the first time, and the heights: all that is needed for any level."""
    so_far = np.maximum.accumulate(statistics)
    at = np.flatnonzero(so_far > np.concatenate([[-np.inf], so_far[:-1]]))
    return at, so_far[at]


def _level(records: list[tuple[Indices, Array]], length: int, ert: float) -> float:
    """The level at which streams cross after ``ert`` rows on average."""
    heights = np.unique(np.concatenate([height for _, height in records]))
    low, high = 0, len(heights) - 1
    while low < high:  # run lengths rise with the level
        middle = (low + high) // 2
        if _run_length(records, length, float(heights[middle])) >= ert:
            high = middle
        else:
            low = middle + 1
    return float(heights[low])


def _run_length(records: list[tuple[Indices, Array]], length: int, level: float) -> float:
    watched, crossed = 0, 0
    for at, heights in records:
        k = int(np.searchsorted(heights, level))
        crossed += k < len(at)
        watched += int(at[k]) + 1 if k < len(at) else length
    return watched / crossed if crossed else np.inf
