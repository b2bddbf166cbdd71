"""k-means centres as atoms, which are nearly optimal at small sizes and small bandwidths (Zhang, Tsang & Kwok 2008 on Nyström).

Coordinates are scaled by the bandwidth and covariance of the kernel. k-means++ draws seeds from a subset of the rows.
Sweeps of Lloyd's algorithm follow. They use the engine's nearest atoms on a batch of rows, which doubles until it holds all rows or
the requested number. Each batch begins with the previous one, so early sweeps are fast and late sweeps exact. The centres are new
points, so a selection has no indices and no order.

O(n·m·d) per sweep at worst, less if leaves can be skipped. The same seed gives the same centres for any number of threads, unlike
the sweeps of scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset import _engine, _validate
from reduset._engine import (
    SQUARED,
    Frame,
    Leaves,
    build_leaves,
    cluster_sums,
    draw_seeds,
    in_memory,
    nearest,
    random_rows,
    rows_by_weight,
    rows_not_among,
    rows_of,
)
from reduset._types import Array, Floats, Indices, Report
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean
from reduset.select.contract import Selector, Traversal, support

SEED_ROWS, SEED_ENTRIES = 4096, 1 << 20
FIRST_ROWS = 8192
ROWS, MAX_ENTRIES = 1 << 14, 1 << 23
SWEEPS, LAST_SWEEPS = 2, 5
MIN_KERNEL_VALUE = 1e-3  # g/C between a centre and its nearest point, below which the point is the better atom


@dataclass(frozen=True)
class KMeans(Selector):
    """Cluster centres. Their own weights are the weights of the clusters.

    Parameters
    ----------
    rows : int or None
        Largest number of rows that the centres are fitted to, and at least 16 per centre. The rows are the first in a random order
        by weight. None uses all rows. With 100,000 rows, a larger number improves the centres by a few per cent and takes longer.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.select import KMeans
    >>> f = KernelMean.from_samples(np.array([[0.0], [0.2], [5.0], [5.0]]), kernel=Gaussian(1.0))
    >>> chosen = KMeans().select(f, 2, rng=0)
    >>> np.sort(chosen.atoms[:, 0]).round(6)
    array([0.1, 5. ])
    >>> chosen.indices is None
    True
    """

    rows: int | None = ROWS
    weighs = True
    scale_free = True

    def __post_init__(self) -> None:
        if self.rows is not None:
            object.__setattr__(self, "rows", _validate.whole(self.rows, "rows", 1, way_out="None uses all rows"))

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _Clusters(mean, self.rows, rng)


class _Clusters(Traversal):
    nested = False
    indices = None

    def __init__(self, mean: KernelMean, limit: int | None, rng: np.random.Generator) -> None:
        self._mean, self._limit, self._rng = mean, limit, rng
        self._data, rows = support(mean)
        self._weights = mean.weights if rows is None else mean.weights[rows]
        self._magnitudes = mean.magnitudes if rows is None else np.abs(self._weights)
        self._frame, self._unit = coordinates_of(mean)
        self.points: Array = np.empty((0, mean.dimension))

    def extend(self, size: int, report: Report | None = None) -> None:
        seeds, *batches = self._batches(size)
        centres = self._seed(size, *seeds)
        if len(centres) < size and len(seeds[0]) < len(self._data):  # too few distinct points among these rows
            centres = self._seed(size, *self._with_others(seeds[0], centres))
        total = SWEEPS * (len(batches) - 1) + LAST_SWEEPS
        done = 0
        for k, (points, weights) in enumerate(batches):
            leaves = leaves_of(points, self._frame)
            for _ in range(LAST_SWEEPS if k == len(batches) - 1 else SWEEPS):
                moved, _ = sweep(points, weights, centres, self._frame, leaves)
                done += 1
                if report is not None:
                    report(done, total)
                if np.array_equal(moved, centres):
                    break
                centres = moved
        centres = self._near_points(points, centres, leaves)
        _, first = np.unique(centres, axis=0, return_index=True)
        self.points = centres[np.sort(first)]

    def _near_points(self, points: Floats, centres: Array, leaves: Leaves | None) -> Array:
        """Replace a centre by its nearest point if the kernel function of the centre is close to 0 at all its points."""
        kernel = self._mean.kernel
        if not isinstance(kernel, RadialKernel):
            return centres
        assignments, distance = nearest(points, centres, self._frame, SQUARED, leaves)
        order = np.lexsort((distance, assignments))
        occupied, first = np.unique(assignments[order], return_index=True)
        closest = order[first]
        isolated = kernel.product_at(distance[closest] * self._unit, self._mean.dimension) < MIN_KERNEL_VALUE
        moved = centres.copy()
        moved[occupied[isolated]] = points[closest[isolated]]
        return moved

    def _batches(self, size: int) -> list[tuple[Floats, Array]]:
        """Rows for the seeds, then growing batches of rows, each of which begins with the previous one."""
        n = len(self._data)
        limit = largest_batch(n, size, self._mean.dimension, self._limit)
        lengths = [max(2 * size, min(SEED_ROWS, SEED_ENTRIES // self._mean.dimension)), min(limit, max(FIRST_ROWS, 16 * size))]
        while lengths[-1] < limit:
            lengths.append(min(limit, 2 * lengths[-1]))
        if lengths[0] >= n:  # One batch holds all rows. Without a draw, the order of the rows has little effect.
            return [(self._data, self._magnitudes)] * 2
        magnitudes = self._magnitudes
        if self._mean.is_uniform or magnitudes.min() == magnitudes.max():
            order = random_rows(n, max(lengths), self._rng)
        else:  # Rows are drawn by weight and then have equal weights, so that heavy rows are not missed.
            order = rows_by_weight(magnitudes, self._rng.random(max(lengths)))
        drawn = rows_of(self._data, order)
        batches = [(rows_of(drawn, slice(length)), np.ones(min(length, len(order)))) for length in lengths]
        return [*batches[:-1], (self._data, magnitudes)] if lengths[-1] >= n else batches

    def _with_others(self, drawn: Floats, distinct: Array) -> tuple[Floats, Array]:
        """The drawn rows, which all equal one of the distinct points, and a sample of the other rows of at most the same size."""
        rows = rows_not_among(self._data, distinct)
        magnitudes = self._magnitudes
        other_mass, mass = float(magnitudes[rows].sum()), float(magnitudes.sum())
        if len(rows) > len(drawn):
            rows = rows[np.unique(rows_by_weight(magnitudes[rows], self._rng.random(len(drawn))))]
        weights = magnitudes[rows]
        weights = weights * (other_mass / weights.sum()) if len(rows) else weights
        points = np.concatenate([np.asarray(drawn[:], np.float64), np.asarray(self._data[rows], np.float64)])
        return points, np.concatenate([np.full(len(drawn), (mass - other_mass) / len(drawn)), weights])

    def _seed(self, size: int, points: Floats, weights: Array) -> Array:
        """Up to ``size`` distinct starting points, fewer if there are fewer."""
        seeds = np.empty(min(size, len(points)), np.int64)
        count = draw_seeds(self._frame.apply(points[:]), np.ascontiguousarray(weights), self._rng.random(len(seeds)), seeds)
        return np.asarray(points[seeds[:count]], np.float64)

    def weights(self) -> Array:
        assignments, _ = nearest(self._data, self.points, self._frame, SQUARED, leaves_of(self._data, self._frame))
        return np.bincount(assignments, self._weights, len(self.points)).astype(np.float64)


def sweep(points: Floats, weights: Array, centres: Array, frame: Frame, leaves: Leaves | None) -> tuple[Array, Indices]:
    """Move each centre to the mean of its nearest points, and return the centres and the indices of centres with points."""
    masses, offsets = cluster_sums(points, weights, centres, frame, leaves)
    occupied = np.flatnonzero(masses)
    moved = centres.copy()
    moved[occupied] += offsets[occupied] / masses[occupied, None]
    return moved, occupied


def largest_batch(n: int, size: int, dimension: int, limit: int | None) -> int:
    """Number of rows in the largest batch: the limit or the memory limit if that is less, but at least 16 per cluster."""
    return n if limit is None else min(n, max(16 * size, min(limit, MAX_ENTRIES // dimension)))


def coordinates_of(mean: KernelMean) -> tuple[Frame, float]:
    """Coordinates in which the kernel is isotropic, and the factor from their distances to the distances of the kernel."""
    kernel = mean.kernel
    if isinstance(kernel, RadialKernel):
        frame = kernel.frame(mean.atoms, kernel.product(mean.dimension))
    else:
        frame = Frame.around(mean.atoms, 1.0)
    return frame.sized(mean.atoms)


def leaves_of(points: Floats, frame: Frame) -> Leaves | None:
    """The points in leaves. None for many dimensions, where matrix products are faster, and for points outside of main memory."""
    return build_leaves(points, frame) if points.shape[1] < _engine.costs.MANY and in_memory(points) else None
