"""Large bags made small before their density is looked at: points of a cell become one, at their mean, and the bumps grow by what
the cells took away.

Cells are boxes of some bandwidths' side. A point moved to the mean of its cell changes the density by the spread within cells, in
second order; with bumps of variance h² plus that spread, axis by axis, the mean and the variance of every column are kept. What
remains is the covariance of columns within cells, which mostly averages out, and terms of fourth order. With sides of 1.4
bandwidths, distances between bags of 10⁵ points in five dimensions change by less than 1 %. O(n log n) a bag, and its density then
costs O(cells·nodes) instead of O(n·nodes), in single precision: far finer than the cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset._types import Array, Floats, Precision
from reduset.kernels import Gaussian
from reduset.mean import KernelMean

SIDE, FINER, ROUNDS = 1.4, 1.4, 3
WORTHWHILE = 3  # points a cell, on average
PLACES = 64
MOST_CELLS = 2.0**62  # that can be numbered; so fine a grid would merge nothing


@dataclass(frozen=True)
class WeightedBag:
    """A weighted bag: points of the cube and their shares.

    Attributes
    ----------
    points : (n, d)
    shares : (n,), or None for equal ones
    spread : (d,) variance that the bumps have beyond the bandwidth's
    """

    points: Floats
    shares: Array | None = None
    spread: Array | None = None

    def __len__(self) -> int:
        return len(self.points)

    @property
    def is_positive(self) -> bool:
        """Whether no share is below 0."""
        return self.shares is None or bool(self.shares.min() >= 0)

    def widened(self, bandwidth: Array) -> Array:
        """The bandwidth of the bumps."""
        return bandwidth if self.spread is None else np.sqrt(bandwidth**2 + self.spread)

    def only(self, columns: slice) -> WeightedBag:
        """The bag in some of its columns."""
        return WeightedBag(self.points[:, columns], self.shares, None if self.spread is None else self.spread[columns])


def merged(bag: WeightedBag, bandwidth: Array, tol: float) -> WeightedBag:
    """The bag in cells as coarse as keep its density within ``tol``; the bag itself where that saves little.

    The error is measured: root mean square of the difference of densities at 64 of the bag's points, over that of the density.
    """
    n = len(bag.points)
    places = bag.points[:: max(n // PLACES, 1)][:PLACES]
    exact, side = None, SIDE
    for _ in range(ROUNDS):
        small = _cells(bag, side * bandwidth)
        if len(small.points) * WORTHWHILE > n:
            return bag
        exact = density_at(bag, bandwidth, places, "single") if exact is None else exact
        if np.linalg.norm(density_at(small, bandwidth, places, "single") - exact) <= tol * np.linalg.norm(exact):
            return small
        side /= FINER
    return bag


def density_at(bag: WeightedBag, bandwidth: Array, places: Floats, precision: Precision = "auto") -> Array:
    """Values of the bag's density estimate at some places, by kernel sums."""
    width = bag.widened(bandwidth)
    shares = np.broadcast_to(1 / len(bag.points), len(bag.points)) if bag.shares is None else bag.shares
    mean = KernelMean(bag.points / width, shares, Gaussian(1.0, normalized=True))
    return np.asarray(mean(places / width, precision)) / float(np.prod(width))


def _cells(bag: WeightedBag, sides: Array) -> WeightedBag:
    """One point a cell, at the mean of its points; points without a share have no part in it."""
    points, shares = bag.points, bag.shares
    if shares is not None and shares.min() == 0:
        points, shares = points[shares > 0], shares[shares > 0]
    counts = np.floor(1.0 / sides) + 1
    if np.prod(counts) > MOST_CELLS:
        return bag
    key = np.ravel_multi_index(np.minimum(points * (1 / sides), counts - 1).astype(np.int64).T, counts.astype(np.int64))
    _, owner = np.unique(key, return_inverse=True)
    masses: Array = np.bincount(owner, shares).astype(np.float64)
    means = np.stack([np.bincount(owner, x if shares is None else shares * x) for x in points.T], axis=1) / masses[:, None]
    # Σ w (x − mean)² by Σ w x² − Σ m mean²: coordinates lie in [0, 1] and cells are no finer than some thousandths of that
    squares = np.einsum("ij,ij->j", points, points) if shares is None else np.einsum("i,ij,ij->j", shares, points, points)
    spread = np.maximum(squares - masses @ means**2, 0.0)
    if shares is None:
        masses, spread = masses / len(points), spread / len(points)
    return WeightedBag(means, masses, spread if bag.spread is None else spread + bag.spread)
