"""Chosen rows, exchanged one after the other for those that bring their sum closest to a goal (Dwivedi & Mackey 2021, KT-SWAP).

    min ‖f − Σₖ uₖ φ(·, x_{t(k)})‖   over the row t(k) of each place k, one place at a time

All bumps have the same norm, so the best row for a place is the one at which uₖ·(f − the sum of the others) is largest. The paper
goes over the places once, among the rows that were thinned; again and again, among as many rows as f is known at, it ends where no
exchange helps: of smooth kernels at a third to four fifths of the error. O(q) kernel evaluations a place and sweep, O(q) memory, q
the number of rows to choose from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array, Indices, Report
from reduset.kernels import Kernel
from reduset.mean import KernelMean
from reduset.select.candidates import candidates

MOST_SWEEPS = 100  # of an exchange that goes on while it helps
NOTHING = 1e-14  # of a bump's squared norm: gains below are rounding


def exchange(
    kernel: Kernel,
    points: Array,
    goal: Array,
    at: Indices,
    shares: Array,
    room: NDArray[np.integer],
    sweeps: int = 1,
    signs: Array | None = None,
    report: Report | None = None,
) -> Indices:
    """(m,) which of the points each place ends with, from ``at``.

    Parameters
    ----------
    points : (q, d) to choose from
    goal : (q,) ⟨f, φ(·, x)⟩ at each, in units where every bump has norm 1
    shares : (m,) weights of the places
    room : (q,) how many places each point may have
    sweeps : at most, over all places; it ends where one changes nothing
    signs : (q,) of each point, which only places with a share of that sign take; None where all shares are positive
    """
    at = at.copy()
    rest = kernel.product_sums(points[at], shares, points) - goal  # what is there less what should be
    uses = np.bincount(at, minlength=len(points))
    row = kernel.product_rows(points)
    for sweep in range(sweeps):
        before = at.copy()
        for k, share in enumerate(shares):
            old = int(at[k])
            column = row(old)
            rest -= share * column
            uses[old] -= 1
            cost = rest if share > 0 else -rest
            barred = uses >= room if signs is None else (uses >= room) | (signs != np.sign(share))
            new = int(np.argmin(np.where(barred, np.inf, cost)))
            if cost[new] < cost[old] - NOTHING and new != old:
                at[k], column = new, row(new)
            rest += share * column
            uses[at[k]] += 1
        if report is not None:
            report(sweep + 1, sweeps)
        if np.array_equal(at, before):
            break
    return at


def swap(kernel: Kernel, points: NDArray[np.floating], pool: Indices, chosen: Indices) -> Indices:
    """Each chosen row once, for the row of the pool that brings the mean of the chosen closest to that of the pool.

    A row is chosen as often as the pool has it, at most.
    """
    rows, counts = np.unique(pool, return_counts=True)
    among = np.asarray(points[rows], np.float64)
    goal = kernel.product_sums(among, counts / len(pool), among)
    shares = np.full(len(chosen), 1.0 / len(chosen))
    return np.asarray(rows[exchange(kernel, among, goal, np.searchsorted(rows, chosen), shares, counts)])


def swap_among_all(
    mean: KernelMean, chosen: Indices, shares: Array, sweeps: int, rng: np.random.Generator, report: Report | None = None
) -> Indices:
    """Each chosen row, ``sweeps`` times at most, for the row that brings their sum closest to the mean of all.

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
    return np.asarray(found.rows[exchange(mean.kernel, found.points, found.values, at, shares, room, sweeps, signs, report)])
