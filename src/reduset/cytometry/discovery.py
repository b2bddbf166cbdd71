"""What can be called found: p-values from all labellings, and the false discovery rate over all populations.

A population's own p-value is the share of labellings in which its statistic is at least as large as it is. Where there are few
labellings that share cannot be small enough to survive many populations. F statistics of all populations have nearly one law under
chance, so that what they are in all labellings is pooled: p = the share of all of them that is at least as large.
q-values are those of Benjamini & Hochberg (1995).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array

ROUNDING = 1e-9  # relative: labellings that mean the same differ by rounding


def own_p_values(statistics: Array) -> Array:
    """(k,) the share of labellings in which each statistic is at least what it is, from (B, k), the true ones first."""
    return np.asarray(np.mean(statistics >= statistics[0] * (1 - ROUNDING), axis=0))


def pooled_p_values(statistics: Array) -> Array:
    """(k,) the share of all statistics in all labellings that are at least as large."""
    ordered = np.sort(statistics, axis=None)
    below = np.searchsorted(ordered, statistics[0] * (1 - ROUNDING), side="left")
    return np.asarray((ordered.size - below) / ordered.size)


def largest_p_values(statistics: Array) -> Array:
    """(k,) the share of labellings in which any statistic is at least as large: the chance of one false finding (Westfall 1993)."""
    largest = np.sort(statistics.max(axis=1))
    below = np.searchsorted(largest, statistics[0] * (1 - ROUNDING), side="left")
    return np.asarray((len(largest) - below) / len(largest))


def q_values(p: Array) -> Array:
    """(k,) the smallest false discovery rate at which each is found."""
    k = len(p)
    order = np.argsort(p, kind="stable")
    raw = p[order] * (k / np.arange(1, k + 1))
    q = np.empty(k)
    q[order] = np.minimum(np.minimum.accumulate(raw[::-1])[::-1], 1.0)
    return q


def found_at(q: Array, rate: float) -> NDArray[np.bool_]:
    """(k,) which are found."""
    return np.asarray(q <= rate)
