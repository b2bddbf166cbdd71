"""First groups of a mixture's components: weighted k-means on their means, or groups of about equal radius.

k-means uses different coordinates for each shape of covariances. For full covariances the mixture as a whole is whitened, and for
diagonal ones its columns are scaled to the same standard deviation, so the groups do not depend on units. For spherical covariances
the means are unchanged. O(n·m·d).
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

FIRST_CENTRES, MAX_CENTRES = 64, 10_000
RIDGE = 1e-12  # added to the diagonal of correlations, so that they have a Cholesky factor


def by_kmeans(f: ComponentArrays, size: int, shape: str, rng: np.random.Generator) -> Labels:
    """(n,) labels of at most ``size`` groups, and fewer only if components coincide. The weights are not negative.

    If there are fewer distinct means than groups (one mean with several widths), the logarithm of the width is another coordinate.
    """
    if size >= f.size:
        return np.arange(f.size)
    d, weights = f.dimension, f.weights
    differences = f.means - f.means[0]
    if shape == "diag":
        differences = differences / _column_spreads(f)
    elif shape == "full":
        differences = _whitened(differences, Mixture(weights, f.means, f.covariances).covariance())
    spread = float(np.abs(differences).max()) or 1.0
    groups = _clusters(differences / spread, weights, size, rng)
    if int(groups.max()) + 1 < size:
        widths = log_determinants(f.covariances, d) / (2 * d)
        points = np.column_stack([differences / spread, widths - widths[0]])
        groups = _clusters(points, weights, size, rng)
        if int(groups.max()) + 1 < size:  # clumps so far apart that rounding in k-means merges each of them
            groups = _assignments(points, points[_farthest(points, weights, size).indices])
    return groups


def _column_spreads(f: ComponentArrays) -> Array:
    """(d,) standard deviations of the columns of the mixture as a whole."""
    proportions = f.weights / f.weights.sum()
    variances = f.covariances.diagonal(axis1=1, axis2=2) if f.covariances.ndim == 3 else as_diagonal(f.covariances, f.dimension)
    return np.sqrt(proportions @ (np.square(f.means - proportions @ f.means) + variances))


def _whitened(differences: Array, covariance: Array) -> Array:
    """Differences of means in coordinates in which the covariance of the whole mixture is the identity."""
    widths = np.sqrt(np.diagonal(covariance))
    correlations = covariance / widths / widths[:, None] + RIDGE * np.eye(len(widths))  # means may lie on a line
    return np.asarray(np.linalg.solve(np.linalg.cholesky(correlations), (differences / widths).T).T)


def _clusters(points: Array, weights: Array, size: int, rng: np.random.Generator) -> Labels:
    centres = KMeans(rows=1 << 17).select(KernelMean(points, weights, Gaussian(1.0)), size, rng).atoms
    return _assignments(points, np.asarray(centres, np.float64))


def by_radius(means: Array, weights: Array, radius: float) -> Labels:
    """(n,) labels of the nearest centre, with farthest-first centres until every point is within the radius of one."""
    centres, reach = centres_within(means, weights, radius, MAX_CENTRES)
    if reach > radius:
        raise ValueError(f"radius must be large enough for {MAX_CENTRES:,} groups, {radius:g} is not: they reach {reach:.3g}")
    return _assignments(means, means[centres])


def centres_within(means: Array, weights: Array, radius: float, limit: int) -> tuple[Labels, float]:
    """The fewest farthest-first centres with all points within the radius, at most ``limit``, and their covering radius."""
    count = min(FIRST_CENTRES, limit)
    order = _farthest(means, weights, count)
    while True:
        order.extend(min(count, len(means)))
        radii = order.covering_radii()
        within = np.flatnonzero(radii <= radius)
        if len(within):
            return order.indices[: within[0] + 1], float(radii[within[0]])
        if len(order.indices) < count:  # every distinct point is a centre
            return order.indices, 0.0
        if count >= limit:
            return order.indices, float(radii[-1])
        count = min(4 * count, limit)


def _farthest(means: Array, weights: Array, count: int) -> FarthestFirst:
    """``count`` farthest-first points, starting with the point nearest to the mean."""
    middle = int(np.argmin(np.square(means - weights @ means / weights.sum()).sum(axis=1)))
    order = FarthestFirst(means, Frame.around(means, 1.0), middle)
    order.extend(min(count, len(means)))
    return order


def _assignments(means: Array, centres: Array) -> Labels:
    """The nearest centre of each point, renumbered without centres that have no points."""
    frame = Frame.around(means, 1.0)
    leaves = build_leaves(means, frame, np.float64) if means.shape[1] < 40 else None
    assignments, _ = nearest(means, centres, frame, SQUARED, leaves)
    return np.unique(assignments, return_inverse=True)[1].astype(np.int64)
