"""Kernel thinning (Dwivedi & Mackey 2021) inside the recursion of Compress++ (Shetty, Dwivedi & Mackey 2022).

Halving keeps one point of each pair by a self-balancing walk. The kept half has nearly the mean of the whole. With equal weights
the error is of order 1/m, instead of 1/√m for a random draw. Halving costs the square of its input, so it begins with small parts.
Four parts are joined and halved, until one part of m·2^g points is left. This part is halved g more times. Each of the m remaining
points is then exchanged for a better one. By default this is done once, among the m·2^g points. On request it is repeated among all
rows while it lowers the error. The largest number of the form m·2^r of rows is used.

Rows of unequal weights are first drawn systematically by weight, so a row of twice the weight comes twice. If it is chosen twice,
its weight is doubled. The positive and the negative part of a signed mean are thinned separately. O(n·b) kernel evaluations per
level, with b points in the first parts, and O(n + m²) memory. Longer selections do not contain shorter ones.

**Exchange** (KT-SWAP of Dwivedi & Mackey 2021) changes one position after the other,

    min ‖f − Σₖ uₖ φ(·, x_{t(k)})‖   over the row t(k) of each position k, one position at a time.

All kernel functions have the same norm. The best row for a position therefore has the largest uₖ·(f − the sum of the others). The
paper visits each position once, with the thinned rows as candidates. Repeated sweeps over all candidates end when no exchange
lowers the error. Then a random subset of the positions gets random rows, a few times, and improvements are kept. For smooth
kernels, between a third and four fifths of the error remains. With q candidates each position needs O(q) kernel evaluations per
sweep, or per change if products are stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine import balance_lists, balance_products, blocks, held_rows, random_rows, run_all
from reduset._types import Array, Floats, Indices, Report
from reduset.kernels import Kernel, RadialKernel
from reduset.mean import KernelMean
from reduset.select.contract import Selector, Traversal
from reduset.select.greedy import candidates
from reduset.select.random import Clocks

MAX_SWEEPS = 100  # sweeps of an exchange that is repeated while it lowers the error
PERTURBATIONS, PERTURBED_PART = 2, 4  # number of perturbations; each gives one position in four a random row
MAX_STORED = 1 << 23  # products of the rows of all positions with all candidates, which are stored up to this number
MIN_GAIN = 1e-14  # relative to the squared norm of a kernel function: smaller gains are rounding


class Exchange:
    """Positions with weights, the points they hold, and the error of the weighted sum at every candidate point.

    Parameters
    ----------
    points : (q, d) array
        Candidate points.
    goal : (q,) array
        ⟨f, φ(·, x)⟩ at each candidate. The norm of every kernel function is 1.
    held : (m,) array
        The candidate at each position.
    weights : (m,) weights of the positions
    capacity : (q,) number of positions that may hold each point
    signs : (q,) array or None
        Sign of each point. Only positions with a weight of this sign may hold it. None if all weights are positive.
    """

    def __init__(
        self,
        kernel: Kernel,
        points: Array,
        goal: Array,
        held: Indices,
        weights: Array,
        capacity: NDArray[np.integer],
        signs: Array | None = None,
    ) -> None:
        self.held = held.copy()
        self._goal, self._weights, self._capacity, self._signs = goal, weights, capacity, signs
        self._row = kernel.product_rows(points)
        # Stored products save time, because few positions change in a sweep.
        self._columns = [self._row(int(point)) for point in held] if len(held) * len(points) <= MAX_STORED else None
        self._residual = kernel.product_sums(points[held], weights, points) - goal  # the sum − f at each candidate
        self._uses = np.bincount(held, minlength=len(points))
        full = self._uses >= capacity
        self._penalties = [np.where(full | (False if signs is None else signs != sign), np.inf, 0.0) for sign in (1, -1)]

    @property
    def error(self) -> float:
        """‖f − the sum‖² − ‖f‖²."""
        return float(self._weights @ (self._residual - self._goal)[self.held])

    def sweep(self, limit: int, report: Report | None = None) -> None:
        """Visit all positions at most ``limit`` times, until none changes."""
        for done in range(limit):
            before = self.held.copy()
            for k in range(len(self.held)):
                self._exchange(k)
            if report is not None:
                report(done + 1, limit)
            if np.array_equal(self.held, before):
                break

    def perturb(self, rng: np.random.Generator, limit: int) -> None:
        """Give some positions random points and sweep again. Undo this if the error is not lower."""
        columns = None if self._columns is None else self._columns.copy()
        penalties = [penalty.copy() for penalty in self._penalties]
        before, error = (self.held.copy(), self._residual.copy(), self._uses.copy(), columns, penalties), self.error
        for k in rng.choice(len(self.held), max(1, len(self.held) // PERTURBED_PART), replace=False):
            self._exchange(k, rng.random(len(self._goal)), -np.inf)
        self.sweep(limit)
        if self.error > error - MIN_GAIN:
            self.held, self._residual, self._uses, self._columns, self._penalties = before

    def _exchange(self, k: int, cost: Array | None = None, gain: float = MIN_GAIN) -> None:
        """Give a position the point of least ``cost``, by default from the error, if this lowers the cost by ``gain``."""
        old, weight = int(self.held[k]), self._weights[k]
        column = self._row(old) if self._columns is None else self._columns[k]
        self._use(old, -1)
        if cost is None:
            cost = self._residual - weight * column
            if weight < 0:
                np.negative(cost, out=cost)
        new = int(np.argmin(cost + self._penalties[int(weight < 0)]))
        if new != old and cost[new] < cost[old] - gain:
            self.held[k], new_column = new, self._row(new)
            self._residual += weight * (new_column - column)
            if self._columns is not None:
                self._columns[k] = new_column
        self._use(int(self.held[k]), 1)

    def _use(self, point: int, change: int) -> None:
        """Change the number of positions that hold a point. A full point, or one of the other sign, has an infinite penalty."""
        self._uses[point] += change
        full = self._uses[point] >= self._capacity[point]
        for penalty, sign in zip(self._penalties, (1, -1), strict=True):
            penalty[point] = np.inf if full or (self._signs is not None and self._signs[point] != sign) else 0.0


def swap(kernel: Kernel, points: NDArray[np.floating], pool: Indices, chosen: Indices) -> Indices:
    """Exchange each chosen row once for the row of the pool that brings the mean of the chosen rows closest to the pool's mean.

    A row is chosen at most as often as it occurs in the pool.
    """
    rows, counts = np.unique(pool, return_counts=True)
    distinct = np.asarray(points[rows], np.float64)
    goal = kernel.product_sums(distinct, counts / len(pool), distinct)
    weights = np.full(len(chosen), 1.0 / len(chosen))
    exchange = Exchange(kernel, distinct, goal, np.searchsorted(rows, chosen), weights, counts)
    exchange.sweep(1)
    return np.asarray(rows[exchange.held])


def swap_among_all(
    mean: KernelMean, chosen: Indices, weights: Array, sweeps: int, rng: np.random.Generator, report: Report | None = None
) -> Indices:
    """Exchange each chosen row, at most ``sweeps`` times, for the row that brings the weighted sum closest to the mean of all rows.

    The candidates are all rows, or thousands drawn by weight if there are more (`candidates`). In a uniform mean a row holds one
    position. Otherwise it holds at most its own weight divided by the smallest weight of a position, rounded up.
    """
    pool = candidates(mean, len(chosen), np.unique(chosen), rng)
    held = np.searchsorted(pool.rows, chosen)
    if mean.is_uniform:
        capacity, signs = np.ones(len(pool.rows), np.int64), None
    else:
        row_weights = mean.weights[pool.rows]
        capacity, signs = np.ceil(np.abs(row_weights) / np.abs(weights).min()).astype(np.int64), np.sign(row_weights)
    exchange = Exchange(mean.kernel, pool.points, pool.values, held, weights, capacity, signs)
    exchange.sweep(sweeps, report)
    for _ in range(PERTURBATIONS if sweeps > 1 else 0):
        exchange.perturb(rng, sweeps)
    return np.asarray(pool.rows[exchange.held])


MIN_FINAL_HALVINGS = 3  # g
MIN_PART = 8  # points in the first parts
POINTS_PER_TASK = 1 << 11  # points that a thread halves at a time
PAIRS_PER_MATRIX = 1 << 9  # pairs that are balanced together under a kernel without coordinates
SINGLE_RANGE = 1e3  # largest coordinate in bandwidths for which float32 suffices
DELTA = 0.5  # probability of failure δ, divided among all pairs


@dataclass(frozen=True)
class Thinning(Selector):
    """Rows with nearly the mean of all rows when they have equal weights.

    Parameters
    ----------
    rows : int or None
        Largest number of rows used, the first in a random order. None uses all rows.
    swaps : bool or int
        Exchange the selected rows further, among all rows, until no exchange brings their mean closer to the mean of all rows. A
        number sets the largest number of sweeps. This is useful for equal weights. For smooth kernels, between a third and four
        fifths of the error remains, and the selection takes several times longer. Optimal weights reduce the error more.

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
    >>> swapped = Thinning(swaps=True).select(f, 50, rng=0)
    >>> f.distance(KernelMean.from_samples(swapped.atoms, f.kernel)) < f.distance(KernelMean.from_samples(chosen.atoms, f.kernel))
    True
    """

    rows: int | None = None
    swaps: bool | int = False
    weighs = True

    def __post_init__(self) -> None:
        if self.rows is not None:
            object.__setattr__(self, "rows", _validate.whole(self.rows, "rows", 1, way_out="None uses all rows"))
        if not isinstance(self.swaps, bool | np.bool_):
            object.__setattr__(
                self, "swaps", _validate.whole(self.swaps, "swaps", 1, way_out="True continues while the error falls")
            )

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        sweeps = (MAX_SWEEPS if self.swaps else 0) if isinstance(self.swaps, bool | np.bool_) else self.swaps
        return _Thinned(mean, self.rows, sweeps, rng)


class _Thinned(Traversal):
    nested = False

    def __init__(self, mean: KernelMean, limit: int | None, sweeps: int, rng: np.random.Generator) -> None:
        self._mean, self._limit, self._sweeps, self._rng = mean, limit, sweeps, rng
        self._rows: Indices = np.empty(0, np.int64)
        self._weights: Array = np.empty(0)

    @property
    def indices(self) -> Indices:
        return self._rows

    def weights(self) -> Array:
        return self._weights

    def extend(self, size: int, report: Report | None = None) -> None:
        mean = self._mean
        size = min(size, mean.size if mean.is_uniform else int(np.count_nonzero(mean.weights)))
        parts = self._parts(size)
        thinned = np.concatenate([self._thin(count, rows, report) for rows, _, count in parts])
        equal = np.concatenate([np.full(count, mass / count) for _, mass, count in parts])
        if self._sweeps:
            thinned = swap_among_all(mean, thinned, equal, self._sweeps, self._rng, report)
        chosen, position = np.unique(thinned, return_inverse=True)
        weights = np.asarray(np.bincount(position, equal), np.float64)
        if len(chosen) < size:  # Rows of weight zero fill the selection if rows were chosen twice.
            more = Clocks(mean, np.where(np.isin(np.arange(mean.size), chosen), 0.0, mean.magnitudes), self._rng)
            more.extend(size - len(chosen))
            chosen = np.concatenate([chosen, more.indices])
            weights = np.concatenate([weights, np.zeros(len(more.indices))])
        self._rows, self._weights = chosen, weights

    def _parts(self, size: int) -> list[tuple[Indices | None, float, int]]:
        """For each sign the rows (None for all), their summed weight and the number of atoms. Signs without atoms are omitted."""
        mean = self._mean
        if mean.is_uniform:
            return [(None, mean.mass, size)]
        positive, negative = mean.weights > 0, mean.weights < 0
        proportional = size * float(mean.magnitudes[positive].sum()) / mean.total
        n_positive = int(np.clip(round(proportional), size - np.count_nonzero(negative), np.count_nonzero(positive)))
        return [
            (None if part.all() else np.flatnonzero(part), float(mean.weights[part].sum()), count)
            for part, count in ((positive, n_positive), (negative, size - n_positive))
            if count
        ]

    def _thin(self, size: int, subset: Indices | None, report: Report | None) -> Indices:
        """``size`` of these rows (None for all). If weights differ, a row may occur more than once."""
        drawn = self._draw(subset, self._mean.size if self._limit is None else max(self._limit, size))
        points, held = held_rows(self._mean.atoms, drawn)
        rows = held.astype(np.int64, copy=False)
        levels, part = _plan(len(rows), size)
        lists = rows[: part * 4**levels].reshape(-1, part)
        for level in range(levels):
            lists = self._halve(points, lists.reshape(len(lists) // 4, -1))
            if report is not None:
                report(level + 1, levels + 1)
        pool = chosen = lists[0]
        while len(chosen) > size:
            chosen = self._halve(points, chosen[None])[0]
        if report is not None:
            report(levels + 1, levels + 1)
        swapped = swap(self._mean.kernel, points, pool, chosen)
        return swapped if points is self._mean.atoms else np.unique(drawn)[swapped]

    def _draw(self, subset: Indices | None, limit: int) -> Indices:
        """The first rows of a random order. If weights differ, rows are drawn systematically by weight."""
        mean, rng = self._mean, self._rng
        if mean.is_uniform:
            return random_rows(mean.size, min(limit, mean.size), rng).astype(np.int64)
        rows = np.arange(mean.size) if subset is None else subset
        magnitudes = mean.magnitudes[rows]
        if magnitudes.min() == magnitudes.max():
            return np.asarray(rng.permutation(rows))[:limit]
        ends = np.cumsum(magnitudes)
        quantiles = (np.arange(len(rows)) + rng.random()) * (ends[-1] / len(rows))
        drawn = np.minimum(np.searchsorted(ends, quantiles, side="right"), len(rows) - 1)
        return np.asarray(rng.permutation(rows[drawn]))[:limit]

    def _halve(self, atoms: Floats, lists: Indices) -> Indices:
        """Half of each list of rows, (k, 2p) to (k, p). Threads process different lists."""
        uniform = self._rng.random((len(lists), lists.shape[1] // 2))
        halved = np.empty(uniform.shape, np.int64)

        def halve_block(a: int, b: int) -> None:
            points = np.asarray(atoms[lists[a:b].ravel()], np.float64)
            kept = halve(self._mean.kernel, points, uniform[a:b])
            halved[a:b] = np.take_along_axis(lists[a:b], kept, axis=1)

        tasks = [partial(halve_block, a, b) for a, b in blocks(len(lists), max(1, POINTS_PER_TASK // lists.shape[1]))]
        run_all(tasks, in_turn=not isinstance(self._mean.kernel, RadialKernel))
        return halved


def _plan(n: int, size: int) -> tuple[int, int]:
    """Number of levels, each of which turns four parts into one, and length of the first parts.

    The levels turn size·2^r rows into a pool of size·2^(r − levels). The number of levels is the largest for which at least
    `MIN_FINAL_HALVINGS` halvings follow and the first parts have integer lengths of at least `MIN_PART`.
    """
    doublings = int(np.log2(n / size))
    levels, part = 0, size << doublings
    while doublings - levels > MIN_FINAL_HALVINGS and part % 4 == 0 and part // 4 >= MIN_PART:
        levels, part = levels + 1, part // 4
    return levels, part


def halve(kernel: Kernel, points: Array, uniform: Array) -> Indices:
    """Positions (k, p) of half of the points of each of k lists, which keep one point of each pair (2i, 2i + 1).

    ``points`` holds the lists of equal length one after the other. ``uniform`` (k, p) has a uniform draw for each pair.
    """
    lists, pairs = uniform.shape
    confidence = float(np.sqrt(2 * np.log(2 * max(pairs, 1) / DELTA)))
    kept = np.empty(uniform.shape, np.int64)
    if isinstance(kernel, RadialKernel):
        shape = kernel.product(points.shape[1])
        # Single precision suffices for a random walk, if the compiled loops support it.
        z = kernel.frame(points, shape).apply(points)
        z = z.astype(np.float32) if shape.profile.in_single and float(np.abs(z).max()) < SINGLE_RANGE else z
        balance_lists(z, shape.profile, uniform, confidence, kept)
        return kept
    length = len(points) // lists
    signs = np.empty(pairs)
    for k in range(lists):
        for a, b in blocks(pairs, PAIRS_PER_MATRIX):  # Blocks of pairs keep the matrix small.
            block = points[k * length + 2 * a : k * length + 2 * b]
            balance_products(kernel.product_gram(block, block), uniform[k, a:b], confidence, signs[a:b])
        kept[k] = 2 * np.arange(pairs) + (signs < 0)
    return kept
