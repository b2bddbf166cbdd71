"""Kernel thinning (Dwivedi & Mackey 2021) inside the recursion of Compress++ (Shetty, Dwivedi & Mackey 2022).

Halving keeps one of each pair of points by a self-balancing walk, so that the kept half has nearly the mean of the whole: an error
of order 1/m instead of the 1/√m of a random draw, with equal weights. It costs the square of its input, so it begins with small
parts. Four parts are put together and halved, until one part of m·2^g points is left. These are halved g times more. Each of the m
remaining points is then exchanged for a better one: once and among the m·2^g, or on request among all rows while it helps. m·2^r
rows go in, as many as there are.

Rows of unequal weights are drawn by weight first, systematically, so that a row of twice the weight comes twice. If it is chosen
twice, its weight is twice the others'. The positive and the negative part of a signed mean are thinned separately. O(n·b) kernel
evaluations a level, b the size of the first parts, and O(n + m²) memory. Longer selections do not contain shorter ones.

**Exchange** (KT-SWAP of Dwivedi & Mackey 2021) changes one position after the other,

    min ‖f − Σₖ uₖ φ(·, x_{t(k)})‖   over the row t(k) of each position k, one position at a time.

All kernel functions have the same norm, so the best row for a position is the one at which uₖ·(f − the sum of the others) is
largest. The paper goes over the positions once, among the rows that were thinned. Repeated sweeps over all candidates end where no
exchange helps. From there some positions are given to random rows, a few times over, and improvements are kept. For smooth kernels
a third to four fifths of the error remains. O(q) kernel evaluations for each position and sweep, or for each change if products are
stored, with q candidates.
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

MOST_SWEEPS = 100  # of an exchange that goes on while it helps
SHAKES, SHAKEN = 2, 4  # how often, and one place of how many, is given to a row at random
HELD = 1 << 23  # products of the places' rows with all that there are to choose from, which are kept where they are no more
NOTHING = 1e-14  # of a bump's squared norm: gains below are rounding


class Exchange:
    """Places, the rows that have them, and what their sum lacks.

    Parameters
    ----------
    points : (q, d) to choose from
    goal : (q,) ⟨f, φ(·, x)⟩ at each, in units where every bump has norm 1
    at : (m,) which of the points each place has
    shares : (m,) weights of the places
    room : (q,) how many places each point may have
    signs : (q,) of each point, which only places with a share of that sign take; None where all shares are positive
    """

    def __init__(
        self,
        kernel: Kernel,
        points: Array,
        goal: Array,
        at: Indices,
        shares: Array,
        room: NDArray[np.integer],
        signs: Array | None = None,
    ) -> None:
        self.at = at.copy()
        self._goal, self._shares, self._room, self._signs = goal, shares, room, signs
        self._row = kernel.product_rows(points)
        # most places keep their row in most sweeps
        self._held = [self._row(int(one)) for one in at] if len(at) * len(points) <= HELD else None
        self._rest = kernel.product_sums(points[at], shares, points) - goal  # what is there less what should be
        self._uses = np.bincount(at, minlength=len(points))
        full = self._uses >= room
        self._bars = [np.where(full | (False if signs is None else signs != sign), np.inf, 0.0) for sign in (1, -1)]

    @property
    def error(self) -> float:
        """‖f − the sum‖² − ‖f‖²."""
        return float(self._shares @ (self._rest - self._goal)[self.at])

    def sweep(self, most: int, report: Report | None = None) -> None:
        """Over all places, at most so often; it ends where nothing changes."""
        for done in range(most):
            before = self.at.copy()
            for k in range(len(self.at)):
                self._take(k)
            if report is not None:
                report(done + 1, most)
            if np.array_equal(self.at, before):
                break

    def shake(self, rng: np.random.Generator, most: int) -> None:
        """Give some places to rows at random and go on from there; back where that ends no better."""
        held = None if self._held is None else self._held.copy()
        bars = [bar.copy() for bar in self._bars]
        before, error = (self.at.copy(), self._rest.copy(), self._uses.copy(), held, bars), self.error
        for k in rng.choice(len(self.at), max(1, len(self.at) // SHAKEN), replace=False):
            self._take(k, rng.random(len(self._goal)), -np.inf)
        self.sweep(most)
        if self.error > error - NOTHING:
            self.at, self._rest, self._uses, self._held, self._bars = before

    def _take(self, k: int, cost: Array | None = None, gain: float = NOTHING) -> None:
        """The row of least cost for a place, if it is less by ``gain``: by default what is then lacking."""
        old, share = int(self.at[k]), self._shares[k]
        column = self._row(old) if self._held is None else self._held[k]
        self._use(old, -1)
        if cost is None:
            cost = self._rest - share * column
            if share < 0:
                np.negative(cost, out=cost)
        new = int(np.argmin(cost + self._bars[int(share < 0)]))
        if new != old and cost[new] < cost[old] - gain:
            self.at[k], other = new, self._row(new)
            self._rest += share * (other - column)
            if self._held is not None:
                self._held[k] = other
        self._use(int(self.at[k]), 1)

    def _use(self, point: int, times: int) -> None:
        """A point has so many places more: where it has no room, and for places of the other sign, it is barred."""
        self._uses[point] += times
        full = self._uses[point] >= self._room[point]
        for bar, sign in zip(self._bars, (1, -1), strict=True):
            bar[point] = np.inf if full or (self._signs is not None and self._signs[point] != sign) else 0.0


def swap(kernel: Kernel, points: NDArray[np.floating], pool: Indices, chosen: Indices) -> Indices:
    """Each chosen row once, for the row of the pool that brings the mean of the chosen closest to that of the pool.

    A row is chosen as often as the pool has it, at most.
    """
    rows, counts = np.unique(pool, return_counts=True)
    among = np.asarray(points[rows], np.float64)
    goal = kernel.product_sums(among, counts / len(pool), among)
    shares = np.full(len(chosen), 1.0 / len(chosen))
    places = Exchange(kernel, among, goal, np.searchsorted(rows, chosen), shares, counts)
    places.sweep(1)
    return np.asarray(rows[places.at])


def swap_among_all(
    mean: KernelMean, chosen: Indices, shares: Array, sweeps: int, rng: np.random.Generator, report: Report | None = None
) -> Indices:
    """Each chosen row, ``sweeps`` times over at most, for the row that brings their sum closest to the mean of all.

    To choose from are all rows or, of many, thousands drawn by weight (`candidates`). A row has one place, or as many as its own
    weight is worth.
    """
    found = candidates(mean, len(chosen), np.unique(chosen), rng)
    at = np.searchsorted(found.rows, chosen)
    if mean.is_uniform:
        room, signs = np.ones(len(found.rows), np.int64), None
    else:
        own = mean.weights[found.rows]
        room, signs = np.ceil(np.abs(own) / np.abs(shares).min()).astype(np.int64), np.sign(own)
    places = Exchange(mean.kernel, found.points, found.values, at, shares, room, signs)
    places.sweep(sweeps, report)
    for _ in range(SHAKES if sweeps > 1 else 0):
        places.shake(rng, sweeps)
    return np.asarray(found.rows[places.at])


ROUNDS = 3  # g: halvings after the levels, at least
SHORTEST = 8  # of the first parts
TOGETHER = 1 << 11  # points that a thread halves at a time
PIECE = 1 << 9  # pairs of points under a kernel without coordinates that are balanced together
FAR = 1e3  # bandwidths: float32 coordinates are good for less
FAILURE = 0.5  # δ, shared out over all pairs


@dataclass(frozen=True)
class Thinning(Selector):
    """Rows that, with equal weights, have nearly the mean of all.

    Parameters
    ----------
    rows : int or None
        The rows that go in, at most: the first of a random order. None for all.
    swaps : bool or int
        Exchange the rows further, for those of all rows that bring their mean closest to that of all, until no exchange helps; a
        number is how many times over, at most. For whoever needs equal weights: of smooth kernels their error is then a third to
        four fifths, in some times the time. Other weights, solved for, make up for more.

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
            object.__setattr__(self, "rows", _validate.whole(self.rows, "rows", 1, way_out="None looks at all"))
        if not isinstance(self.swaps, bool | np.bool_):
            object.__setattr__(self, "swaps", _validate.whole(self.swaps, "swaps", 1, way_out="True goes on while it helps"))

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        sweeps = (MOST_SWEEPS if self.swaps else 0) if isinstance(self.swaps, bool | np.bool_) else self.swaps
        return _Thinned(mean, self.rows, sweeps, rng)


class _Thinned(Traversal):
    nested = False

    def __init__(self, mean: KernelMean, most: int | None, sweeps: int, rng: np.random.Generator) -> None:
        self._mean, self._most, self._sweeps, self._rng = mean, most, sweeps, rng
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
        parts = self._places(size)
        thinned = np.concatenate([self._thin(places, among, report) for among, _, places in parts])
        shares = np.concatenate([np.full(places, mass / places) for _, mass, places in parts])
        if self._sweeps:
            thinned = swap_among_all(mean, thinned, shares, self._sweeps, self._rng, report)
        chosen, place = np.unique(thinned, return_inverse=True)
        weights = np.asarray(np.bincount(place, shares), np.float64)
        if len(chosen) < size:  # rows chosen twice leave places free: others take them, without a weight of their own
            more = Clocks(mean, np.where(np.isin(np.arange(mean.size), chosen), 0.0, mean.magnitudes), self._rng)
            more.extend(size - len(chosen))
            chosen = np.concatenate([chosen, more.indices])
            weights = np.concatenate([weights, np.zeros(len(more.indices))])
        self._rows, self._weights = chosen, weights

    def _places(self, size: int) -> list[tuple[Indices | None, float, int]]:
        """The rows of either sign (None for all), their mass, and how many places they get by it; those without are left out."""
        mean = self._mean
        if mean.is_uniform:
            return [(None, mean.mass, size)]
        up, down = mean.weights > 0, mean.weights < 0
        share = size * float(mean.magnitudes[up].sum()) / mean.total
        places = int(np.clip(round(share), size - np.count_nonzero(down), np.count_nonzero(up)))
        return [
            (None if part.all() else np.flatnonzero(part), float(mean.weights[part].sum()), count)
            for part, count in ((up, places), (down, size - places))
            if count
        ]

    def _thin(self, size: int, among: Indices | None, report: Report | None) -> Indices:
        """``size`` of these rows (None for all), some perhaps more than once where weights differ."""
        drawn = self._draw(among, self._mean.size if self._most is None else max(self._most, size))
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

    def _draw(self, among: Indices | None, most: int) -> Indices:
        """The first rows of a random order; where weights differ, as many drawn systematically by weight."""
        mean, rng = self._mean, self._rng
        if mean.is_uniform:
            return random_rows(mean.size, min(most, mean.size), rng).astype(np.int64)
        rows = np.arange(mean.size) if among is None else among
        magnitudes = mean.magnitudes[rows]
        if magnitudes.min() == magnitudes.max():
            return np.asarray(rng.permutation(rows))[:most]
        ends = np.cumsum(magnitudes)
        places = (np.arange(len(rows)) + rng.random()) * (ends[-1] / len(rows))
        drawn = np.minimum(np.searchsorted(ends, places, side="right"), len(rows) - 1)
        return np.asarray(rng.permutation(rows[drawn]))[:most]

    def _halve(self, atoms: Floats, lists: Indices) -> Indices:
        """Half of each list of rows, (k, 2p) to (k, p): the lists are shared out among threads."""
        luck = self._rng.random((len(lists), lists.shape[1] // 2))
        halved = np.empty(luck.shape, np.int64)

        def work(a: int, b: int) -> None:
            points = np.asarray(atoms[lists[a:b].ravel()], np.float64)
            kept = halve(self._mean.kernel, points, luck[a:b])
            halved[a:b] = np.take_along_axis(lists[a:b], kept, axis=1)

        tasks = [partial(work, a, b) for a, b in blocks(len(lists), max(1, TOGETHER // lists.shape[1]))]
        run_all(tasks, in_turn=not isinstance(self._mean.kernel, RadialKernel))
        return halved


def _plan(n: int, size: int) -> tuple[int, int]:
    """How many levels of four to one, and how long the first parts, so that size·2^r rows end as a pool of size·2^(r − levels).

    As many levels as leave at least `ROUNDS` halvings and parts that are whole and not too short.
    """
    doublings = int(np.log2(n / size))
    levels, part = 0, size << doublings
    while doublings - levels > ROUNDS and part % 4 == 0 and part // 4 >= SHORTEST:
        levels, part = levels + 1, part // 4
    return levels, part


def halve(kernel: Kernel, points: Array, luck: Array) -> Indices:
    """Positions (k, p) of half of the points of each of k equally long lists, one below the other: one of each pair (2i, 2i + 1).

    ``luck`` (k, p) has a uniform draw for each pair.
    """
    lists, pairs = luck.shape
    confidence = float(np.sqrt(2 * np.log(2 * max(pairs, 1) / FAILURE)))
    kept = np.empty(luck.shape, np.int64)
    if isinstance(kernel, RadialKernel):
        shape = kernel.product(points.shape[1])
        # a walk at random needs no more than single precision, where the loops have it
        z = kernel.frame(points, shape).apply(points)
        z = z.astype(np.float32) if shape.profile.in_single and float(np.abs(z).max()) < FAR else z
        balance_lists(z, shape.profile, luck, confidence, kept)
        return kept
    length = len(points) // lists
    signs = np.empty(pairs)
    for k in range(lists):
        for a, b in blocks(pairs, PIECE):  # in pieces, so that no large matrix is held
            piece = points[k * length + 2 * a : k * length + 2 * b]
            balance_products(kernel.product_gram(piece, piece), luck[k, a:b], confidence, signs[a:b])
        kept[k] = 2 * np.arange(pairs) + (signs < 0)
    return kept
