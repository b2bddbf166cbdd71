"""Rows as coordinates that know no units, and how far the distribution functions of columns are from those of few rows.

A column becomes two: its rank, (mass below + half of the mass that ties) in [0, 1], by which trees split, and its value in units of
twice its interquartile range (`bandwidth.column_scales`), by which linear models and networks add.

O(d·n log n) for the ranks.
"""

from __future__ import annotations

import numpy as np

from reduset._types import Array, Floats
from reduset.bandwidth import column_scales

WIDE = 2.0  # interquartile ranges that a value is measured by
FARTHEST = 1e70  # of these: sums of squares stay finite


def coordinates(points: Floats, weights: Array) -> Array:
    """(n, 2d) ranks, then values, of the d columns that are not constant; of one column where all are."""
    present = points if weights.strides == (0,) else points[weights > 0]
    varying = np.flatnonzero(present.max(axis=0) != present.min(axis=0))
    varying = varying if len(varying) else np.zeros(1, np.int64)
    scales = column_scales(points, weights)[varying]
    middle = np.median(present[:, varying], axis=0)  # subtracted first, to keep the digits of data far from 0
    found = np.empty((len(points), 2 * len(varying)))
    for k, j in enumerate(varying):
        found[:, k] = ranks(points[:, j], weights)
        found[:, len(varying) + k] = np.clip((points[:, j] - middle[k]) / (WIDE * scales[k]), -FARTHEST, FARTHEST)
    return found


def ranks(values: Floats, weights: Array) -> Array:
    """(n,) the share of the weight below each value, and half of that which ties with it."""
    places, at = np.unique(values, return_inverse=True)
    mass = np.bincount(at.reshape(-1), weights, len(places))
    ends = np.cumsum(mass)
    return np.asarray(((ends - mass / 2) / ends[-1])[at.reshape(-1)], np.float64)


def distribution_gaps(points: Floats, weights: Array, rows: Floats, masses: Array) -> Array:
    """(d,) the largest difference of the distribution functions of each column: of the points, and of few weighted rows."""
    found = np.empty(points.shape[1])
    for j in range(points.shape[1]):
        both = np.concatenate([points[:, j], rows[:, j]])
        signed = np.concatenate([weights / weights.sum(), -masses / masses.sum()])
        places, at = np.unique(both, return_inverse=True)
        found[j] = np.abs(np.cumsum(np.bincount(at.reshape(-1), signed, len(places)))).max()
    return found
