"""The kernel of rows that models are explained by: of sets of columns, and of whole rows.

    k = ρ Πⱼ (1 + θ kⱼ) / (1 + θ) + (1 − ρ) (9 g_h + 3 g_{h/2} + g_{h/4}) / 13,     θ = 2 / d,     ρ = min(d/10, ½)

The product over columns is what models that add up are made of: in it a pair of columns counts less than each of them, three less
than two, and so on. What depends on many columns at once, as where rows lie in tight clusters, is left to the Gaussians g of whole
rows, with columns in standard deviations: h² = 2d is then the mean squared distance of two rows, and what is finer counts less.

Of few columns the Gaussians count most. They are smooth, so that few rows can bring their part of the error to almost nothing, if
only the product, whose kinks no few rows follow, leaves them enough of a say. The loops are in `_engine.columnwise`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reduset._engine import columnwise_gram
from reduset._types import Array, Floats
from reduset.bandwidth import column_scales
from reduset.kernels import FunctionKernel

ORDERS = 2.0  # θ = ORDERS / d: how much all columns together count beside none of them
A_COLUMN, AT_MOST = 0.1, 0.5  # what ρ grows by with every column, and where that ends
BY_SCALE = (9 / 13, 3 / 13, 1 / 13)  # of whole rows at h, h/2 and h/4


@dataclass(frozen=True)
class ExplainingKernel:
    """k(x, y) of rows of coordinates, with θ, the (d,) rates of the squared differences of values in −log g_h, and ρ."""

    share: float
    rates: Array = field(repr=False)
    of_columns: float

    def __call__(self, points: Floats, others: Floats) -> Array:
        wide, middle, fine = ((1.0 - self.of_columns) * part for part in BY_SCALE)
        return columnwise_gram(points, others, self.share, self.rates, (self.of_columns, wide, middle, fine))

    def __repr__(self) -> str:
        return f"columns and rows, share={self.share:.3g}"


def explaining_kernel(places: Array, weights: Array) -> FunctionKernel:
    """The kernel of rows of coordinates, (n, 2d), of which the first d are ranks."""
    d = places.shape[1] // 2
    rates = 0.25 / (d * np.square(column_scales(places[:, d:], weights, "standard")))  # 1 / 2h² in standard deviations
    return FunctionKernel(ExplainingKernel(ORDERS / d, rates, min(A_COLUMN * d, AT_MOST)))
