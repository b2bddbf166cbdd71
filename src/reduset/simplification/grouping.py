"""First groups of a mixture's components: weighted k-means on their means, or groups of about equal radius.

For full covariances k-means goes in the coordinates in which the mixture as a whole is round, for diagonal ones in those in which
its columns have one spread, so that the groups follow a change of units; for spherical ones in the means' own. O(n·m·d).
"""

from __future__ import annotations

import numpy as np

from reduset._engine import SQUARED, FarthestFirst, Frame, as_diagonal, build_leaves, log_determinants, nearest
from reduset._types import Array, Labels
from reduset.kernels import Gaussian
from reduset.mean import KernelMean
from reduset.mixture import Mixture
from reduset.select import KMeans
from reduset.simplification.local_fit import ComponentArrays

FIRST_CENTRES, MOST_CENTRES = 64, 10_000
NEARLY_FLAT = 1e-12  # what is added to correlations, so that they have a factor


def by_kmeans(many: ComponentArrays, size: int, shape: str, rng: np.random.Generator) -> Labels:
    """(n,) labels of at most ``size`` groups: fewer only where components coincide. The weights are not negative.

    Where fewer means are distinct (one mean with several widths), the logarithm of the width counts as a coordinate too.
    """
    if size >= many.size:
        return np.arange(many.size)
    d, weights = many.dimension, many.weights
    away = many.means - many.means[0]
    if shape == "diag":
        away = away / _column_spreads(many)
    elif shape == "full":
        away = _rounded(away, Mixture(weights, many.means, many.covariances).covariance())
    spread = float(np.abs(away).max()) or 1.0
    groups = _clusters(away / spread, weights, size, rng)
    if int(groups.max()) + 1 < size:
        widths = log_determinants(many.covariances, d) / (2 * d)
        points = np.column_stack([away / spread, widths - widths[0]])
        groups = _clusters(points, weights, size, rng)
        if int(groups.max()) + 1 < size:  # clumps so far apart that k-means sees each as one place
            groups = _owners(points, points[_farthest(points, weights, size).indices])
    return groups


def _column_spreads(many: ComponentArrays) -> Array:
    """(d,) standard deviations of the columns of the mixture as a whole."""
    share = many.weights / many.weights.sum()
    own = (
        many.covariances.diagonal(axis1=1, axis2=2) if many.covariances.ndim == 3 else as_diagonal(many.covariances, many.dimension)
    )
    return np.sqrt(share @ (np.square(many.means - share @ many.means) + own))


def _rounded(away: Array, covariance: Array) -> Array:
    """Differences of means in coordinates in which the mixture as a whole is round."""
    widths = np.sqrt(np.diagonal(covariance))
    alike = covariance / widths / widths[:, None] + NEARLY_FLAT * np.eye(len(widths))  # means may lie on a line
    return np.asarray(np.linalg.solve(np.linalg.cholesky(alike), (away / widths).T).T)


def _clusters(points: Array, weights: Array, size: int, rng: np.random.Generator) -> Labels:
    centres = KMeans(rows=1 << 17).select(KernelMean(points, weights, Gaussian(1.0)), size, rng).atoms
    return _owners(points, np.asarray(centres, np.float64))


def by_radius(means: Array, weights: Array, radius: float) -> Labels:
    """(n,) labels: farthest-first centres until every place is within the radius of one, and the nearest of them."""
    centres, reach = centres_within(means, weights, radius, MOST_CENTRES)
    if reach > radius:
        raise ValueError(f"radius must be large enough for {MOST_CENTRES:,} groups, {radius:g} is not: they reach {reach:.3g}")
    return _owners(means, means[centres])


def centres_within(means: Array, weights: Array, radius: float, most: int) -> tuple[Labels, float]:
    """The first farthest-first centres that have every place within the radius, or ``most`` of them; and how far they reach."""
    count = min(FIRST_CENTRES, most)
    order = _farthest(means, weights, count)
    while True:
        order.extend(min(count, len(means)))
        radii = order.covering_radii()
        within = np.flatnonzero(radii <= radius)
        if len(within):
            return order.indices[: within[0] + 1], float(radii[within[0]])
        if len(order.indices) < count:  # every distinct place is a centre
            return order.indices, 0.0
        if count >= most:
            return order.indices, float(radii[-1])
        count = min(4 * count, most)


def _farthest(means: Array, weights: Array, count: int) -> FarthestFirst:
    """Farthest-first from the place nearest to the mean, so many of them."""
    middle = int(np.argmin(np.square(means - weights @ means / weights.sum()).sum(axis=1)))
    order = FarthestFirst(means, Frame.around(means, 1.0), middle)
    order.extend(min(count, len(means)))
    return order


def _owners(means: Array, centres: Array) -> Labels:
    """The nearest centre of each place; numbered so that none is without."""
    frame = Frame.around(means, 1.0)
    owner, _ = nearest(means, centres, frame, SQUARED, build_leaves(means, frame, np.float64) if means.shape[1] < 40 else None)
    return np.unique(owner, return_inverse=True)[1].astype(np.int64)
