"""First groups of a mixture's components: weighted k-means on their means, or groups of about equal radius.

For full covariances k-means goes in the coordinates in which the mixture as a whole is round, for diagonal ones in those in which
its columns have one spread, so that the groups follow a change of units; for spherical ones in the means' own. O(n·m·d).
"""

from __future__ import annotations

import numpy as np

from reduset._engine import SQUARED, FarthestFirst, Frame, grow, log_determinants, nearest
from reduset._types import Array, Labels
from reduset.kernels import Gaussian
from reduset.mean import KernelMean
from reduset.mixture.mixture import Mixture
from reduset.select.kmeans import KMeans

FIRST_CENTRES, MOST_CENTRES = 64, 10_000
NEARLY_FLAT = 1e-12  # what is added to correlations, so that they have a factor


def scale(weights: Array, places: Array, covariances: Array, shape: str) -> Array | None:
    """(d, d) the covariance to be rounded away, or None."""
    if shape == "spherical":
        return None
    whole = Mixture(np.abs(weights), places, covariances).covariance()
    return whole if shape == "full" else np.diag(np.diagonal(whole))


def by_kmeans(
    places: Array, weights: Array, covariances: Array, covariance: Array | None, size: int, rng: np.random.Generator
) -> Labels:
    """(n,) labels of at most ``size`` groups: fewer only where components coincide.

    Where fewer places are distinct (one mean with several widths), the logarithm of the width counts as a coordinate too.
    """
    if size >= len(places):
        return np.arange(len(places))
    away = places - places[0]
    if covariance is not None:
        widths = np.sqrt(np.diagonal(covariance))
        alike = covariance / widths / widths[:, None] + NEARLY_FLAT * np.eye(len(widths))  # places may lie on a line
        away = np.linalg.solve(np.linalg.cholesky(alike), (away / widths).T).T
    spread = float(np.abs(away).max()) or 1.0
    groups = _clusters(away / spread, weights, size, rng)
    if int(groups.max()) + 1 < size:
        widths = log_determinants(covariances, places.shape[1]) / (2 * places.shape[1])
        points = np.column_stack([away / spread, widths - widths[0]])
        groups = _clusters(points, weights, size, rng)
        if int(groups.max()) + 1 < size:  # clumps so far apart that k-means sees each as one place
            groups = _owners(points, points[_farthest(points, weights, size).indices])
    return groups


def _clusters(points: Array, weights: Array, size: int, rng: np.random.Generator) -> Labels:
    centres = KMeans(rows=1 << 17).select(KernelMean(points, weights, Gaussian(1.0)), size, rng).atoms
    return _owners(points, np.asarray(centres, np.float64))


def by_radius(places: Array, weights: Array, radius: float) -> Labels:
    """(n,) labels: farthest-first centres until every place is within the radius of one, and the nearest of them."""
    count = FIRST_CENTRES
    order = _farthest(places, weights, count)
    while True:
        order.extend(min(count, len(places)))
        radii = order.covering_radii()
        within = np.flatnonzero(radii <= radius)
        if len(within):
            return _owners(places, places[order.indices[: within[0] + 1]])
        if len(order.indices) < count:  # every distinct place is a centre
            return _owners(places, places[order.indices])
        if count >= MOST_CENTRES:
            raise ValueError(
                f"radius must be large enough for {MOST_CENTRES:,} groups, {radius:g} is not: they reach {radii[-1]:.3g}"
            )
        count = min(4 * count, MOST_CENTRES)


def _farthest(places: Array, weights: Array, count: int) -> FarthestFirst:
    """Farthest-first from the place nearest to the mean, so many of them."""
    middle = int(np.argmin(np.square(places - weights @ places / weights.sum()).sum(axis=1)))
    order = FarthestFirst(places, Frame.around(places, 1.0), middle)
    order.extend(min(count, len(places)))
    return order


def _owners(places: Array, centres: Array) -> Labels:
    """The nearest centre of each place; numbered so that none is without."""
    frame = Frame.around(places, 1.0)
    owner, _ = nearest(places, centres, frame, SQUARED, grow(places, frame, np.float64) if places.shape[1] < 40 else None)
    return np.unique(owner, return_inverse=True)[1].astype(np.int64)
