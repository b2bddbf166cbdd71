"""k-means centres as atoms: close to the best places at small sizes and small bandwidths (Zhang, Tsang & Kwok 2008 on Nyström).

In the coordinates of the kernel, with bandwidth and covariance divided out: k-means++ seeds from some of the rows, then sweeps of
Lloyd's algorithm on the engine's nearest atoms, over a batch of rows that doubles until it is all of them or as many as were
asked for. Prefixes batches instead of fresh ones let the early sweeps be cheap and the late ones exact. The centres are new points,
so a selection has no indices, and no order of its own.

O(n·m·d) a sweep at worst, less where leaves can be skipped. The same seed gives the same centres whatever the
number of threads, which scikit-learn's own sweeps do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset import _validate
from reduset._engine import (
    SQUARED,
    Frame,
    Leaves,
    build_leaves,
    cluster_sums,
    costs,
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
ROWS, MOST_ENTRIES = 1 << 14, 1 << 23
SWEEPS, LAST_SWEEPS = 2, 5
BLIND = 1e-3  # g/C of a centre with the nearest of its points, below which it is not worth its place


@dataclass(frozen=True)
class KMeans(Selector):
    """Cluster centres; their own weights are the clusters' masses.

    Parameters
    ----------
    rows : int or None
        The rows that the centres are fitted to, at most (16 for every centre, at least): the first of a random order by weight.
        None for all. More rows bring the centres of 100,000 closer to the best by some per cent, in more time.

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
            object.__setattr__(self, "rows", _validate.whole(self.rows, "rows", 1, way_out="None looks at all"))

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _Clusters(mean, self.rows, rng)


class _Clusters(Traversal):
    nested = False
    indices = None

    def __init__(self, mean: KernelMean, most: int | None, rng: np.random.Generator) -> None:
        self._mean, self._most, self._rng = mean, most, rng
        self._points, rows = support(mean)
        self._weights = mean.weights if rows is None else mean.weights[rows]
        self._frame, self._unit = coordinates_of(mean)
        self._centres: Array = np.empty((0, mean.dimension))

    @property
    def points(self) -> Array:
        return self._centres

    def extend(self, size: int, report: Report | None = None) -> None:
        seeds, *batches = self._batches(size)
        centres = self._seed(size, *seeds)
        if len(centres) < size and len(seeds[0]) < len(self._points):  # few places among those rows: look at the others too
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
        centres = self._in_sight(points, centres, leaves)
        _, first = np.unique(centres, axis=0, return_index=True)
        self._centres = centres[np.sort(first)]

    def _in_sight(self, points: Floats, centres: Array, leaves: Leaves | None) -> Array:
        """Where the bandwidth is so small that a centre sees none of its points, the nearest of them is the better atom."""
        kernel = self._mean.kernel
        if not isinstance(kernel, RadialKernel):
            return centres
        owner, distance = nearest(points, centres, self._frame, SQUARED, leaves)
        order = np.lexsort((distance, owner))
        occupied, first = np.unique(owner[order], return_index=True)
        closest = order[first]
        apart = distance[closest] * self._unit
        blind = kernel.product_at(apart, self._mean.dimension) < BLIND
        moved = centres.copy()
        moved[occupied[blind]] = points[closest[blind]]
        return moved

    def _magnitudes(self) -> Array:
        """|w|, one number where they are one."""
        return self._mean.magnitudes if self._mean.is_uniform else np.abs(self._weights)

    def _batches(self, size: int) -> list[tuple[Floats, Array]]:
        """Rows to seed from, then ever larger batches of them, each within the next."""
        n = len(self._points)
        most = rows_looked_at(n, size, self._mean.dimension, self._most)
        lengths = [max(2 * size, min(SEED_ROWS, SEED_ENTRIES // self._mean.dimension)), min(most, max(FIRST_ROWS, 16 * size))]
        while lengths[-1] < most:
            lengths.append(min(most, 2 * lengths[-1]))
        if lengths[0] >= n:  # everything is one batch: no draw, so that the order of the rows hardly matters
            return [(self._points, self._magnitudes())] * 2
        magnitudes = self._magnitudes()
        if self._mean.is_uniform or magnitudes.min() == magnitudes.max():
            order = random_rows(n, max(lengths), self._rng)
        else:  # by weight, and then all alike: rows that carry the mass must not be missed
            order = rows_by_weight(magnitudes, self._rng.random(max(lengths)))
        drawn = rows_of(self._points, order)
        batches = [(rows_of(drawn, slice(length)), np.ones(min(length, len(order)))) for length in lengths]
        return [*batches[:-1], (self._points, magnitudes)] if lengths[-1] >= n else batches

    def _with_others(self, seen: Floats, places: Array) -> tuple[Floats, Array]:
        """Rows that were drawn, all at these places, and rows at other places: where they are many, as many drawn of them."""
        rows = rows_not_among(self._points, places)
        magnitudes = self._magnitudes()
        others, left = float(magnitudes[rows].sum()), float(magnitudes.sum())
        if len(rows) > len(seen):
            rows = rows[np.unique(rows_by_weight(magnitudes[rows], self._rng.random(len(seen))))]
        mine = magnitudes[rows]
        mine = mine * (others / mine.sum()) if len(rows) else mine
        points = np.concatenate([np.asarray(seen[:], np.float64), np.asarray(self._points[rows], np.float64)])
        return points, np.concatenate([np.full(len(seen), (left - others) / len(seen)), mine])

    def _seed(self, size: int, points: Floats, weights: Array) -> Array:
        """As many places to start from as there are, up to ``size``."""
        seeds = np.empty(min(size, len(points)), np.int64)
        found = draw_seeds(self._frame.apply(points[:]), np.ascontiguousarray(weights), self._rng.random(len(seeds)), seeds)
        return np.asarray(points[seeds[:found]], np.float64)

    def weights(self) -> Array:
        owner, _ = nearest(self._points, self._centres, self._frame, SQUARED, leaves_of(self._points, self._frame))
        return np.bincount(owner, self._weights, len(self._centres)).astype(np.float64)


def sweep(points: Floats, weights: Array, centres: Array, frame: Frame, leaves: Leaves | None) -> tuple[Array, Indices]:
    """Each centre to the mean of the points nearest to it; one without points stays. And which of them have points."""
    masses, pulls = cluster_sums(points, weights, centres, frame, leaves)
    occupied = np.flatnonzero(masses)
    moved = centres.copy()
    moved[occupied] += pulls[occupied] / masses[occupied, None]
    return moved, occupied


def rows_looked_at(n: int, size: int, dimension: int, most: int | None) -> int:
    """The rows of the largest batch: enough for every cluster, and otherwise as many as were asked for and can be held."""
    return n if most is None else min(n, max(16 * size, min(most, MOST_ENTRIES // dimension)))


def coordinates_of(mean: KernelMean) -> tuple[Frame, float]:
    """Coordinates in which the kernel is round, and the factor from their distances to the kernel's."""
    kernel = mean.kernel
    if isinstance(kernel, RadialKernel):
        frame = kernel.frame(mean.atoms, kernel.product(mean.dimension))
    else:
        frame = Frame.around(mean.atoms, 1.0)
    return frame.sized(mean.atoms)


def leaves_of(points: Floats, frame: Frame) -> Leaves | None:
    """The points in leaves; None in so many dimensions that matrix products are quicker, and of points outside of main memory."""
    return build_leaves(points, frame) if points.shape[1] < costs.MANY and in_memory(points) else None
