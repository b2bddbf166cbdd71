"""A fair sample of rows that come in parts: those of the least keys Exp(1)/w, so many as asked for (bottom-k, Cohen & Kaplan 2007).

Every row draws its key once, so that samples of two parts are merged by keeping the least keys of both, and a row's chance to stay
depends on its weight alone. Kept as logarithms: with forgetting, all earlier weights shrink alike and all keys shift alike.

Given the least key that was not kept, e^t, each row is in the sample with the chance p = 1 − exp(−w e^t), independently; 1/p is
what it stands for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reduset._types import Array, Floats
from reduset.certificate.frequencies import SAFETY
from reduset.kernels import Kernel
from reduset.mean import KernelMean

ROWS = 8192
PAIRED = 1024  # rows of which all pairs are looked at
LEAST = 1e-300  # for logarithms
FORGOTTEN = 1e-9  # of all weight: what has less is let go where a stream forgets


@dataclass(frozen=True)
class Reservoir:
    """A bottom-k sample: rows drawn by weight, without replacement.

    Attributes
    ----------
    points : (k, d), in the order of their keys
    weights : (k,)
    keys : (k,) logarithms, ascending
    limit : the least key that was not kept; infinite where every row was
    """

    points: Array
    weights: Array
    keys: Array
    limit: float = np.inf
    most: int = ROWS

    @classmethod
    def empty(cls, dimension: int, most: int = ROWS) -> Reservoir:
        return cls(np.empty((0, dimension)), np.empty(0), np.empty(0), np.inf, most)

    def absorb(self, points: Floats, weights: Array, rng: np.random.Generator) -> Reservoir:
        """After more rows."""
        with np.errstate(divide="ignore"):  # rows of no weight never stay
            keys = np.log(np.maximum(rng.standard_exponential(len(points)), LEAST)) - np.log(weights)
        able = np.flatnonzero(keys < self.limit)
        if len(able) > self.most:  # one more than can stay, whose key is the limit
            able = able[np.argpartition(keys[able], self.most)[: self.most + 1]]
        others = Reservoir(np.asarray(points[able], np.float64), np.asarray(weights[able], np.float64), keys[able])
        return self.merge(others)

    def merge(self, other: Reservoir) -> Reservoir:
        """The sample of both parts."""
        keys = np.concatenate([self.keys, other.keys])
        order = np.argsort(keys, kind="stable")
        limit = min(self.limit, other.limit)
        if len(order) > self.most:
            limit = min(limit, float(keys[order[self.most]]))
        kept = order[: self.most]
        kept = kept[keys[kept] < limit]
        points, weights = np.concatenate([self.points, other.points]), np.concatenate([self.weights, other.weights])
        return Reservoir(points[kept], weights[kept], keys[kept], limit, self.most)

    def first(self, most: int) -> Reservoir:
        """The sample of at most so many rows that this one begins with."""
        limit = float(self.keys[most]) if len(self.keys) > most else self.limit
        return Reservoir(self.points[:most], self.weights[:most], self.keys[:most], limit, min(most, self.most))

    def faded(self, factor: float) -> Reservoir:
        """After all weights shrank by a factor; rows of which nothing is left are let go."""
        shift, weights = -float(np.log(max(factor, LEAST))), self.weights * factor
        left = weights > 0
        return replace(
            self, points=self.points[left], weights=weights[left], keys=self.keys[left] + shift, limit=self.limit + shift
        )

    def remembered(self) -> Array:
        """The points of which enough is left to speak of."""
        return self.points[self.weights > FORGOTTEN * self.weights.max(initial=0.0)]

    @property
    def is_everything(self) -> bool:
        """Whether every row of any weight is in it."""
        return not np.isfinite(self.limit)

    @property
    def shares(self) -> Array:
        """(k,) what each row of the sample stands for, summing to 1."""
        share = self.weights
        if not self.is_everything:
            share = share / -np.expm1(-np.exp(np.minimum(np.log(share) + self.limit, 700.0)))
        return np.asarray(share / share.sum())

    def square_distance(self, small: KernelMean, own: float, quantile: float) -> tuple[float, float]:
        """‖f − f_m‖² for the mean f of all rows, and how far off it may be; in units where every bump has norm 1.

        It is the mean over pairs of rows of h(x, y) = ⟨φ(·, x) − f_m, φ(·, y) − f_m⟩, those of different rows weighed by what they
        stand for (a U-statistic); pairs of a row with itself count ``own`` = Σw²/(Σw)². Where f_m is close to f, every row sees
        about nothing.
        """
        kernel, points, shares = small.kernel, self.points, self.shares
        values = kernel.product_sums(small.atoms, small.weights, points)
        square = float(small.weights @ kernel.product_sums(small.atoms, small.weights, small.atoms))
        alone = 1.0 - 2 * values + square  # h(x, x)
        concentration = float(shares @ shares)  # one over the number of rows, where they count alike
        apart = 1.0 - concentration  # the share of pairs of different rows
        if apart <= 0:  # a single row
            return max(float(alone[0]), 0.0), 0.0
        others = kernel.product_sums(points, shares, points) - shares
        middle = float(shares @ values)
        seen = others - values * (1 - shares) - (middle - shares * values) + square * (1 - shares)  # Σ h(x, y) over y ≠ x
        between = float(shares @ seen) / apart
        doubly = shares * self.weights  # of Σw² a row stands for what it does of Σw, times its weight
        estimate = (1 - own) * between + own * float(doubly @ alone) / float(doubly.sum())
        if self.is_everything:
            return estimate, 0.0
        # Hoeffding's two parts of a U-statistic's variance: of the mean over partners, and of the pairs themselves
        of_rows = 2 * float(np.sqrt(concentration * (shares @ np.square(seen / apart - between))))
        of_pairs = concentration * float(np.sqrt(2 * np.mean(np.square(_pairs(kernel, points[:PAIRED], values, square)))))
        return estimate, SAFETY * quantile * float(np.hypot(of_rows, of_pairs))


def _pairs(kernel: Kernel, points: Array, values: Array, square: float) -> Array:
    """h(x, y) of `Reservoir.square_distance` for pairs of different points, from f_m at each and ‖f_m‖²."""
    at = values[: len(points)]
    pairs = kernel.product_gram(points, points) - at[:, None] - at + square
    np.fill_diagonal(pairs, 0.0)
    return np.asarray(pairs)
