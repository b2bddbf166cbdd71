"""Kernel thinning (Dwivedi & Mackey 2021) inside the recursion of Compress++ (Shetty, Dwivedi & Mackey 2022).

Halving keeps one of each pair of points by a self-balancing walk, so that the kept half has nearly the mean of the whole: an error
of order 1/m instead of the 1/√m of a random draw, with equal weights. It costs the square of its input, so it is applied to small
parts: four compressed quarters are put together and halved, up the recursion, until `m·2^g` points are left; these are halved g
times more, and each of the m that remain is then swapped for the best point in its place.

m·2^r rows go in, as many as there are (drawn by weight where weights differ, systematically, so that a row of twice the weight
comes twice). O(n·m) kernel evaluations and less, O(n + m²) memory. No order of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reduset._engine.balance import balance
from reduset.mean import KernelMean
from reduset.radial import Kernel
from reduset.select.selection import Indices, Report, Selector, Traversal

PAIRS_A_BLOCK = 64
ROUNDS = 4  # halvings after the recursion, at least
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
        doublings = int(np.log2(self._mean.size / size))
        rows = self._draw(size << doublings)
        rounds = min(doublings, max(ROUNDS, -(-doublings // 2)))
        self._report, self._done, self._total = report, 0, len(rows)
        pool = self._compress(rows, size << (2 * rounds - doublings))
        chosen = pool
        while len(chosen) > size:
            chosen = self._halve(chosen)
        self._rows = swap(self._mean.kernel, self._mean.atoms, pool, chosen)

    def _draw(self, count: int) -> Indices:
        """``count`` rows in random order: distinct ones where weights are equal, else systematically by weight."""
        mean, rng = self._mean, self._rng
        if mean.is_uniform:
            return np.asarray(rng.permutation(mean.size)[:count])
        ends = np.cumsum(mean.magnitudes)
        places = (np.arange(count) + rng.random()) * (ends[-1] / count)
        return np.asarray(rng.permutation(np.minimum(np.searchsorted(ends, places, side="right"), mean.size - 1)))

    def _compress(self, rows: Indices, part: int) -> Indices:
        """Halve what four compressed quarters leave, down to parts that stay as they are."""
        if len(rows) <= part:
            self._done += len(rows)
            if self._report is not None:
                self._report(self._done, self._total)
            return rows
        quarter = len(rows) // 4
        return self._halve(np.concatenate([self._compress(rows[k * quarter : (k + 1) * quarter], part) for k in range(4)]))

    def _halve(self, rows: Indices) -> Indices:
        return rows[halve(self._mean.kernel, np.asarray(self._mean.atoms[rows], np.float64), self._rng)]


def halve(kernel: Kernel, points: Array, rng: np.random.Generator) -> Indices:
    """Positions of half of the points, one of each pair (2i, 2i + 1)."""
    pairs = len(points) // 2
    luck = rng.random(pairs)
    confidence = float(np.sqrt(2 * np.log(2 * max(pairs, 1) / FAILURE)))
    along = np.zeros(pairs)  # products of ψ with each pair's difference
    signs = np.empty(pairs)
    spread = 0.0
    for start in range(0, pairs, PAIRS_A_BLOCK):
        stop = min(pairs, start + PAIRS_A_BLOCK)
        K = kernel.product_gram(points[2 * start : 2 * stop], points[2 * start : 2 * pairs])
        mine = signs[start:stop]
        spread = balance(K, along[start:stop], luck[start:stop], confidence, spread, mine)
        rest = K[:, 2 * (stop - start) :]
        pull = mine @ rest[0::2] - mine @ rest[1::2]
        along[stop:] += pull[0::2] - pull[1::2]
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
    for k in range(size):
        column = kernel.product_gram(candidates[at[k] : at[k] + 1], candidates)[0]
        now -= column / size
        uses[at[k]] -= 1
        best = int(np.argmin(np.where(uses > 0, np.inf, now - goal)))  # the first of all where all are in use
        if best != at[k]:
            column = kernel.product_gram(candidates[best : best + 1], candidates)[0]
        now += column / size
        uses[best] += 1
        at[k] = best
    return np.asarray(rows[np.unique(at)])
