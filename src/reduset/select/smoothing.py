"""Points averaged with their neighbours, so that noise shrinks and small clusters draw together.

    x ← mean of the k nearest points of x,    `ROUNDS` times, with neighbours found once.

A neighbour counts only if its distance is at most `REACH` times the neighbour's distance to its own k-th neighbour; x itself takes
its place otherwise. A few points far from all others, fewer than k, are therefore not drawn to the nearest cluster.

Neighbours are sought in the group of a point and the groups nearest to it, given a partition of the points: at most `CANDIDATES`
points, evenly taken from these groups if they have more. O(n·candidates·d) for the neighbours, O(n·k·d) a round; n·k indices and a
copy of the points are held.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reduset._engine import blocks
from reduset._types import Array, Floats, Indices

ROUNDS = 2
REACH = 2.0  # times the distance of a point to its farthest neighbour
NEAR_GROUPS, MOST_GROUPS = 16, 64  # groups that neighbours are sought in: more than the first number only if these are small
FEWEST = 10  # candidates for every neighbour
CANDIDATES = 2048
ENTRIES = 1 << 22  # numbers in a block of pairs


def smoothed(points: Floats, groups: Indices, centres: Array, neighbours: int) -> NDArray[np.float32]:
    """(n, d) points after averaging with so many neighbours, each point among its own.

    Parameters
    ----------
    points : (n, d); groups : (n,) the group of each point; centres : (m, d) the means of the groups
    """
    near = _in_reach(points, nearest_in_groups(points, groups, centres, neighbours))
    found = np.asarray(points, np.float32)
    for _ in range(ROUNDS):
        averaged = np.empty_like(found)
        for a, b in blocks(len(found), max(1, ENTRIES // found.shape[1])):
            total = np.zeros((b - a, found.shape[1]))
            for column in near[a:b].T:
                total += found[column]
            averaged[a:b] = total / neighbours
        found = averaged
    return found


def nearest_in_groups(points: Floats, groups: Indices, centres: Array, count: int) -> Indices:
    """(n, count) the nearest points of each among the candidates; its own number where there are too few of them."""
    m = len(centres)
    sizes = np.bincount(groups, minlength=m)
    order, ends = np.argsort(groups, kind="stable"), np.concatenate([[0], np.cumsum(sizes)])
    ranking = _nearest_groups(centres)
    found = np.repeat(np.arange(len(points))[:, None], count, axis=1)
    for group in np.flatnonzero(sizes).tolist():
        near = ranking[group]
        enough = int(np.searchsorted(np.cumsum(sizes[near]), FEWEST * count)) + 1
        chosen = near[: max(NEAR_GROUPS, enough)]
        candidates = np.concatenate([order[ends[each] : ends[each + 1]] for each in chosen])
        if len(candidates) > CANDIDATES:
            candidates = candidates[np.linspace(0, len(candidates) - 1, CANDIDATES).astype(np.int64)]
        offsets = points[candidates] - centres[group]  # from the group's mean, so that no digits cancel
        squares, kept = np.einsum("nd,nd->n", offsets, offsets) / 2, min(count, len(candidates))
        for a, b in blocks(int(sizes[group]), max(1, ENTRIES // len(candidates))):
            rows = order[ends[group] + a : ends[group] + b]
            ranks = squares - (points[rows] - centres[group]) @ offsets.T
            best = np.argpartition(ranks, kept - 1, axis=1)[:, :kept]
            found[rows, :kept] = candidates[best]
    return found


def _in_reach(points: Floats, near: Indices) -> Indices:
    """The same with a point's own number in place of neighbours that it is far from, by their own distances to neighbours."""
    apart = np.empty(near.shape)
    for a, b in blocks(len(near), max(1, ENTRIES // points.shape[1])):
        for j, column in enumerate(near[a:b].T):
            offsets = points[a:b] - points[column]
            apart[a:b, j] = np.sqrt(np.einsum("nd,nd->n", offsets, offsets))
    return np.where(apart <= REACH * apart.max(axis=1)[near], near, np.arange(len(near))[:, None])


def _nearest_groups(centres: Array) -> Indices:
    """(m, k) the groups with the nearest means, from near to far, each group its own first."""
    m = len(centres)
    kept = min(m, MOST_GROUPS)
    centred = centres - centres.mean(axis=0)
    squares, found = np.einsum("md,md->m", centred, centred), np.empty((m, kept), np.int64)
    for a, b in blocks(m, max(1, ENTRIES // m)):
        apart = squares - 2 * centred[a:b] @ centred.T
        apart[np.arange(b - a), np.arange(a, b)] = -np.inf
        best = np.argpartition(apart, kept - 1, axis=1)[:, :kept]
        found[a:b] = np.take_along_axis(best, np.argsort(np.take_along_axis(apart, best, 1), axis=1, kind="stable"), 1)
    return found
