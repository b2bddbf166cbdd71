"""The coordinates and the kernel of rows for explanations: of sets of columns, and of whole rows.

    k = ρ Πⱼ (1 + θ kⱼ) / (1 + θ) + (1 − ρ) (9 g_h + 3 g_{h/2} + g_{h/4}) / 13,     θ = 2 / d,     ρ = min(d/10, ½)

A column becomes two coordinates: its rank, (mass below + half of the ties) in [0, 1], by which trees split, and its value in units
of twice its interquartile range (`bandwidth.column_scales`), by which linear models and networks add.

The product over columns represents additive models: a pair of columns has less weight than each of them, three less than two, and
so on. Dependence on many columns at once, such as rows in tight clusters, is represented by the Gaussians g of whole rows, with
columns in standard deviations. h² = 2d is then the mean squared distance of two rows, and finer scales have less weight.

With few columns the Gaussians have most weight. They are smooth, so few rows can reduce their part of the error to almost nothing.
The product has kinks, which few rows cannot follow. The loops are in `_engine.columnwise`. O(d·n log n) for the ranks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reduset._engine import columnwise_gram
from reduset._types import Array, Floats
from reduset.bandwidth import column_scales
from reduset.kernels import FunctionKernel

ORDERS = 2.0  # θ = ORDERS / d
SHARE_PER_COLUMN, LARGEST_SHARE = 0.1, 0.5  # ρ
SHARES_OF_SCALES = (9 / 13, 3 / 13, 1 / 13)  # of whole rows at h, h/2 and h/4
INTERQUARTILE_RANGES = 2.0  # the unit of values
FARTHEST = 1e70  # in these units, so that sums of squares stay finite


@dataclass(frozen=True)
class ExplainingKernel:
    """k(x, y) of rows of coordinates, with θ, the (d,) rates of the squared differences of values in −log g_h, and ρ."""

    share: float
    rates: Array = field(repr=False)
    of_columns: float

    def __call__(self, points: Floats, others: Floats) -> Array:
        wide, middle, fine = ((1.0 - self.of_columns) * part for part in SHARES_OF_SCALES)
        return columnwise_gram(points, others, self.share, self.rates, (self.of_columns, wide, middle, fine))

    def __repr__(self) -> str:
        return f"columns and rows, share={self.share:.3g}"


def explaining_kernel(columns: Array, weights: Array) -> FunctionKernel:
    """The kernel of rows of coordinates, (n, 2d), of which the first d are ranks."""
    d = columns.shape[1] // 2
    rates = 0.25 / (d * np.square(column_scales(columns[:, d:], weights, "standard")))  # 1 / 2h² in standard deviations
    return FunctionKernel(ExplainingKernel(ORDERS / d, rates, min(SHARE_PER_COLUMN * d, LARGEST_SHARE)))


def coordinates(points: Floats, weights: Array) -> Array:
    """(n, 2d) ranks, then values, of the d columns that are not constant; of one column if all are."""
    present = points if weights.strides == (0,) else points[weights > 0]
    varying = np.flatnonzero(present.max(axis=0) != present.min(axis=0))
    varying = varying if len(varying) else np.zeros(1, np.int64)
    scales = column_scales(points, weights)[varying]
    middle = np.median(present[:, varying], axis=0)  # subtracted first, to keep the digits of data far from 0
    columns = np.empty((len(points), 2 * len(varying)))
    for k, j in enumerate(varying):
        columns[:, k] = ranks(points[:, j], weights)
        columns[:, len(varying) + k] = np.clip((points[:, j] - middle[k]) / (INTERQUARTILE_RANGES * scales[k]), -FARTHEST, FARTHEST)
    return columns


def ranks(values: Floats, weights: Array) -> Array:
    """(n,) the proportion of the weight below each value, plus half of the ties."""
    distinct, at = np.unique(values, return_inverse=True)
    mass = np.bincount(at.reshape(-1), weights, len(distinct))
    ends = np.cumsum(mass)
    return np.asarray(((ends - mass / 2) / ends[-1])[at.reshape(-1)], np.float64)


def distribution_gaps(points: Floats, weights: Array, rows: Floats, masses: Array) -> Array:
    """(d,) the largest difference between the distribution functions of each column, of the points and of weighted rows."""
    gaps = np.empty(points.shape[1])
    for j in range(points.shape[1]):
        both = np.concatenate([points[:, j], rows[:, j]])
        signed = np.concatenate([weights / weights.sum(), -masses / masses.sum()])
        distinct, at = np.unique(both, return_inverse=True)
        gaps[j] = np.abs(np.cumsum(np.bincount(at.reshape(-1), signed, len(distinct)))).max()
    return gaps
