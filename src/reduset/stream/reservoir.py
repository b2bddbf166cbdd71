"""A uniform sample of rows that come in parts: the rows of the smallest keys Exp(1)/w (bottom-k, Cohen & Kaplan 2007).

Every row draws its key once. The samples of two parts are merged by keeping the smallest keys of both. The inclusion probability of
a row depends on its weight alone. Keys are kept as logarithms. With forgetting, all earlier weights shrink by one factor and all
keys shift by one amount.

Given the smallest key e^t that was not kept, each row is in the sample with probability p = 1 − exp(−w e^t), independently. It
represents 1/p rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reduset._types import Array, Floats
from reduset.certificate import SAFETY
from reduset.kernels import Kernel
from reduset.mean import KernelMean

ROWS = 8192
PAIRED_ROWS = 1024  # all pairs of these rows are evaluated
SMALLEST = 1e-300  # argument of a logarithm


@dataclass(frozen=True)
class Reservoir:
    """A bottom-k sample: rows drawn by weight, without replacement.

    Attributes
    ----------
    points : (k, d), in the order of their keys.
    weights : (k,)
    keys : (k,) logarithms, ascending.
    limit : The smallest key that was not kept; infinite if every row was kept.
    max_rows : The largest number of rows.
    """

    points: Array
    weights: Array
    keys: Array
    limit: float = np.inf
    max_rows: int = ROWS

    @classmethod
    def empty(cls, dimension: int, max_rows: int = ROWS) -> Reservoir:
        return cls(np.empty((0, dimension)), np.empty(0), np.empty(0), np.inf, max_rows)

    def absorb(self, points: Floats, weights: Array, rng: np.random.Generator) -> Reservoir:
        """After more rows."""
        with np.errstate(divide="ignore"):  # rows of weight 0 never stay
            keys = np.log(np.maximum(rng.standard_exponential(len(points)), SMALLEST)) - np.log(weights)
        kept = np.flatnonzero(keys < self.limit)
        if len(kept) > self.max_rows:  # one row more, because its key is the new limit
            kept = kept[np.argpartition(keys[kept], self.max_rows)[: self.max_rows + 1]]
        others = Reservoir(np.asarray(points[kept], np.float64), np.asarray(weights[kept], np.float64), keys[kept])
        return self.merge(others)

    def merge(self, other: Reservoir) -> Reservoir:
        """The sample of both parts."""
        keys = np.concatenate([self.keys, other.keys])
        order = np.argsort(keys, kind="stable")
        limit = min(self.limit, other.limit)
        if len(order) > self.max_rows:
            limit = min(limit, float(keys[order[self.max_rows]]))
        kept = order[: self.max_rows]
        kept = kept[keys[kept] < limit]
        points, weights = np.concatenate([self.points, other.points]), np.concatenate([self.weights, other.weights])
        return Reservoir(points[kept], weights[kept], keys[kept], limit, self.max_rows)

    def first(self, count: int) -> Reservoir:
        """The sample of at most ``count`` rows: the beginning of this one."""
        limit = float(self.keys[count]) if len(self.keys) > count else self.limit
        return Reservoir(self.points[:count], self.weights[:count], self.keys[:count], limit, min(count, self.max_rows))

    def faded(self, factor: float) -> Reservoir:
        """After all weights shrank by a factor. Rows are removed if their weight underflows."""
        shift, weights = -float(np.log(max(factor, SMALLEST))), self.weights * factor
        left = weights > 0
        return replace(
            self, points=self.points[left], weights=weights[left], keys=self.keys[left] + shift, limit=self.limit + shift
        )

    @property
    def is_everything(self) -> bool:
        """Whether every row with a weight is in the sample."""
        return not np.isfinite(self.limit)

    @property
    def shares(self) -> Array:
        """(k,) the proportion of the total weight that each row of the sample represents."""
        represented = self.weights
        if not self.is_everything:
            represented = represented / -np.expm1(-np.exp(np.minimum(np.log(represented) + self.limit, 700.0)))
        return np.asarray(represented / represented.sum())

    def square_distance(self, small: KernelMean, own: float, quantile: float) -> tuple[float, float]:
        """‖f − f_m‖² for the mean f of all rows, and half the width of its interval; all kernel functions have norm 1.

        It is the mean over pairs of rows of h(x, y) = ⟨φ(·, x) − f_m, φ(·, y) − f_m⟩. Pairs of different rows are weighted by the
        proportions that they represent (a U-statistic). Pairs of a row with itself have the weight ``own`` = Σw²/(Σw)².
        """
        kernel, points, shares = small.kernel, self.points, self.shares
        values = kernel.product_sums(small.atoms, small.weights, points)
        square = float(small.weights @ kernel.product_sums(small.atoms, small.weights, small.atoms))
        diagonal = 1.0 - 2 * values + square  # h(x, x)
        concentration = float(shares @ shares)  # for equal weights, one over the number of rows
        apart = 1.0 - concentration  # the proportion of pairs of different rows
        if apart <= 0:  # a single row
            return max(float(diagonal[0]), 0.0), 0.0
        others = kernel.product_sums(points, shares, points) - shares
        middle = float(shares @ values)
        row_sums = others - values * (1 - shares) - (middle - shares * values) + square * (1 - shares)  # Σ h(x, y) over y ≠ x
        between = float(shares @ row_sums) / apart
        doubly = shares * self.weights  # Σw² is estimated as Σw is, with each term times its weight
        estimate = (1 - own) * between + own * float(doubly @ diagonal) / float(doubly.sum())
        if self.is_everything:
            return estimate, 0.0
        # Hoeffding's two parts of the variance of a U-statistic: of the mean over partners, and of the pairs
        of_rows = 2 * float(np.sqrt(concentration * (shares @ np.square(row_sums / apart - between))))
        of_pairs = concentration * float(np.sqrt(2 * np.mean(np.square(_pairs(kernel, points[:PAIRED_ROWS], values, square)))))
        return estimate, SAFETY * quantile * float(np.hypot(of_rows, of_pairs))


def _pairs(kernel: Kernel, points: Array, values: Array, square: float) -> Array:
    """h(x, y) of `Reservoir.square_distance` for pairs of different points, from f_m at each and ‖f_m‖²."""
    at = values[: len(points)]
    pairs = kernel.product_gram(points, points) - at[:, None] - at + square
    np.fill_diagonal(pairs, 0.0)
    return np.asarray(pairs)
