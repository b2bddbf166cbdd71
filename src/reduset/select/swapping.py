"""Chosen rows, exchanged one after the other for those that bring their sum closest to a goal (Dwivedi & Mackey 2021, KT-SWAP).

    min ‖f − Σₖ uₖ φ(·, x_{t(k)})‖   over the row t(k) of each place k, one place at a time

All bumps have the same norm, so the best row for a place is the one at which uₖ·(f − the sum of the others) is largest. The paper
goes over the places once, among the rows that were thinned. Again and again, among as many rows as f is known at, it ends where no
exchange helps; from there some places are given to rows at random, a few times over, and what is better then is kept: of smooth
kernels a third to four fifths of the error. O(q) kernel evaluations a place and sweep, or a change where these are kept, q the
number of rows to choose from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array, Indices, Report
from reduset.kernels import Kernel
from reduset.mean import KernelMean
from reduset.select.candidates import candidates

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
