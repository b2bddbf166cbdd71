"""Kernel thinning (Dwivedi & Mackey 2021) inside the recursion of Compress++ (Shetty, Dwivedi & Mackey 2022).

Halving keeps one of each pair of points by a self-balancing walk, so that the kept half has nearly the mean of the whole: an error
of order 1/m instead of the 1/√m of a random draw, with equal weights. It costs the square of its input, so it begins with small
parts: always four parts are put together and halved, until one is left of at least m·2^g points; that many of these are halved g
times more, and each of the m that remain is then swapped for the best point in its place.

Rows of a mean of unequal weights are drawn by weight first, systematically, so that a row of twice the weight comes twice. O(n·b)
kernel evaluations a level, b the size of the first parts, and O(n + m²) memory. No order of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reduset._engine.balance import balance_points, balance_products
from reduset._engine.threads import blocks, run_all
from reduset.mean import KernelMean
from reduset.radial import Kernel, RadialKernel
from reduset.select.selection import Indices, Report, Selector, Traversal

ROUNDS = 3  # g: halvings after the levels, at least
SHORTEST = 8  # of the first parts
TOGETHER = 1 << 11  # points that a thread halves at a time
FAR = 1e3  # bandwidths: float32 coordinates are good for less
FAILURE = 0.5  # δ, shared out over all pairs

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Thinning(Selector):
    """Rows that, with equal weights, have nearly the mean of all.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.select import Thinning
    >>> f = KernelMean.from_samples(np.random.default_rng(0).normal(size=(2000, 2)), kernel=Gaussian(1.0))
    >>> chosen = Thinning().select(f, 50, rng=0)
    >>> random = KernelMean.from_samples(f.atoms[:50], kernel=Gaussian(1.0))
    >>> f.distance(KernelMean(chosen.atoms, chosen.weights, f.kernel)) < f.distance(random) / 3
    True
    """

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _Thinned(mean, rng)


class _Thinned(Traversal):
    nested = False

    def __init__(self, mean: KernelMean, rng: np.random.Generator) -> None:
        self._mean, self._rng = mean, rng
        self._rows: Indices = np.empty(0, np.int64)

    @property
    def indices(self) -> Indices:
        return self._rows

    def weights(self) -> Array:
        total = float(self._mean.magnitudes.sum())
        return np.asarray(np.sign(self._mean.weights[self._rows]) * (total / max(len(self._rows), 1)))

    def extend(self, size: int, report: Report | None = None) -> None:
        size = min(size, int(np.count_nonzero(self._mean.weights)))
        rows = self._draw(self._mean.size)
        levels, part = _plan(len(rows), size)
        lists = rows[: part * 4**levels].reshape(-1, part)
        for level in range(levels):
            lists = self._halve(lists.reshape(len(lists) // 4, -1))
            if report is not None:
                report(level + 1, levels + 1)
        pool = self._rng.permutation(lists[0])
        pool = pool[: size << int(np.log2(len(pool) / size))]
        chosen = pool
        while len(chosen) > size:
            chosen = self._halve(chosen[None])[0]
        self._rows = swap(self._mean.kernel, self._mean.atoms, pool, chosen)
        if report is not None:
            report(levels + 1, levels + 1)

    def _draw(self, count: int) -> Indices:
        """``count`` rows in random order: distinct ones where weights are equal, else systematically by weight."""
        mean, rng = self._mean, self._rng
        if mean.is_uniform:
            return np.asarray(rng.permutation(mean.size)[:count])
        ends = np.cumsum(mean.magnitudes)
        places = (np.arange(count) + rng.random()) * (ends[-1] / count)
        return np.asarray(rng.permutation(np.minimum(np.searchsorted(ends, places, side="right"), mean.size - 1)))

    def _halve(self, lists: Indices) -> Indices:
        """Half of each list of rows, (k, 2p) to (k, p): the lists are shared out among threads."""
        luck = self._rng.random((len(lists), lists.shape[1] // 2))
        halved = np.empty(luck.shape, np.int64)

        def work(a: int, b: int) -> None:
            for k in range(a, b):
                points = np.asarray(self._mean.atoms[lists[k]], np.float64)
                halved[k] = lists[k][halve(self._mean.kernel, points, luck[k])]

        run_all([partial(work, a, b) for a, b in blocks(len(lists), max(1, TOGETHER // lists.shape[1]))])
        return halved


def _plan(n: int, size: int) -> tuple[int, int]:
    """How many levels of four to one, and how long the first parts: as many as leave size·2^ROUNDS points or more."""
    levels = 0
    while (part := n // 4 ** (levels + 1)) >= SHORTEST and part << (levels + 1) >= size << ROUNDS:
        levels += 1
    return levels, n // 4**levels


def halve(kernel: Kernel, points: Array, luck: Array) -> Indices:
    """Positions of half of the points, one of each pair (2i, 2i + 1), by the uniform draws ``luck``, one a pair."""
    pairs = len(luck)
    confidence = float(np.sqrt(2 * np.log(2 * max(pairs, 1) / FAILURE)))
    signs = np.empty(pairs)
    if isinstance(kernel, RadialKernel):
        shape = kernel.product(points.shape[1])
        # a walk at random needs no more than single precision, where the loops have it
        z = kernel.frame(points, shape).apply(points)
        z = z.astype(np.float32) if shape.profile.in_single and float(np.abs(z).max()) < FAR else z
        balance_points(z[0 : 2 * pairs : 2], z[1 : 2 * pairs : 2], *shape.profile.arguments, luck, confidence, signs)
    else:
        balance_products(kernel.product_gram(points, points), luck, confidence, signs)
    return 2 * np.arange(pairs) + (signs < 0)


def swap(kernel: Kernel, points: NDArray[np.floating], pool: Indices, chosen: Indices) -> Indices:
    """Exchange each chosen row for the row of the pool that brings the mean of the chosen closest to that of the pool.

    Rows chosen already are not chosen twice, as long as there are others.
    """
    rows, counts = np.unique(pool, return_counts=True)
    candidates = np.asarray(points[rows], np.float64)
    at, size = np.searchsorted(rows, chosen), len(chosen)
    goal = kernel.product_sums(candidates, counts / len(pool), candidates)
    now = kernel.product_sums(candidates[at], np.full(size, 1.0 / size), candidates)
    uses = np.bincount(at, minlength=len(rows))
    row = kernel.product_rows(candidates)
    for k in range(size):
        column = row(int(at[k]))
        now -= column / size
        uses[at[k]] -= 1
        best = int(np.argmin(np.where(uses > 0, np.inf, now - goal)))  # the first of all where all are in use
        if best != at[k]:
            column = row(best)
        now += column / size
        uses[best] += 1
        at[k] = best
    return np.asarray(rows[np.unique(at)])
