"""The coordinates of rows and the kernel for explanations, which compares sets of columns and whole rows.

    k = ρ Πⱼ (1 + θ kⱼ) / (1 + θ) + (1 − ρ) (9 g_h + 3 g_{h/2} + g_{h/4}) / 13,     θ = 2 / d,     ρ = min(d/10, ½)

A column becomes two coordinates. Trees split by rank, so the first is the rank, (mass below + half of the ties) in [0, 1]. Linear
models and networks add values, so the second is the value in units of twice the interquartile range (`bandwidth.column_scales`).

The product over columns represents additive models. A pair of columns has less weight than a single column. Three columns have less
weight than two, and so on. The Gaussians g of whole rows represent dependence on many columns at once, such as tight clusters of
rows. Their columns are in standard deviations. The mean squared distance of two rows is then 2d = h². Smaller scales have less
weight.

With few columns the Gaussians have most weight. They are smooth, so a few rows can reduce their part of the error to almost zero.
The product has kinks, which a few rows cannot approximate. The loops are in `_engine.columnwise`. The ranks cost O(d·n log n).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reduset._engine import columnwise_gram
from reduset._types import Array, Floats
from reduset.bandwidth import column_scales
from reduset.kernels import FunctionKernel

ORDERS = 2.0  # θ = ORDERS / d
RHO_PER_COLUMN, MAX_RHO = 0.1, 0.5
SCALE_WEIGHTS = (9 / 13, 3 / 13, 1 / 13)  # of the Gaussians of whole rows at h, h/2 and h/4
INTERQUARTILE_RANGES = 2.0  # the unit of values
MAX_VALUE = 1e70  # in these units, so that sums of squares stay finite


@dataclass(frozen=True)
class ExplainingKernel:
    """k(x, y) for rows of coordinates.

    The parameters are θ, the (d,) rates of the squared differences of values in −log g_h, and ρ.
    """

    share: float
    rates: Array = field(repr=False)
    of_columns: float

    def __call__(self, points: Floats, others: Floats) -> Array:
        wide, middle, fine = ((1.0 - self.of_columns) * part for part in SCALE_WEIGHTS)
        return columnwise_gram(points, others, self.share, self.rates, (self.of_columns, wide, middle, fine))

    def __repr__(self) -> str:
        return f"columns and rows, share={self.share:.3g}"


def explaining_kernel(columns: Array, weights: Array) -> FunctionKernel:
    """The kernel for (n, 2d) rows of coordinates, with ranks in the first d columns."""
    d = columns.shape[1] // 2
    rates = 0.25 / (d * np.square(column_scales(columns[:, d:], weights, "standard")))  # 1 / 2h² in standard deviations
    return FunctionKernel(ExplainingKernel(ORDERS / d, rates, min(RHO_PER_COLUMN * d, MAX_RHO)))


def coordinates(points: Floats, weights: Array) -> Array:
    """(n, 2d) ranks and then values of the d columns that are not constant; of one column if all are constant."""
    present = points if weights.strides == (0,) else points[weights > 0]
    varying = np.flatnonzero(present.max(axis=0) != present.min(axis=0))
    varying = varying if len(varying) else np.zeros(1, np.int64)
    scales = column_scales(points, weights)[varying]
    middle = np.median(present[:, varying], axis=0)  # subtracted first, which keeps the digits of data far from 0
    columns = np.empty((len(points), 2 * len(varying)))
    for k, j in enumerate(varying):
        columns[:, k] = ranks(points[:, j], weights)
        values = (points[:, j] - middle[k]) / (INTERQUARTILE_RANGES * scales[k])
        columns[:, len(varying) + k] = np.clip(values, -MAX_VALUE, MAX_VALUE)
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
