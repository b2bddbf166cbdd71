"""partition: n points in at most m groups with a small sum of squared distances to the group means.

k-means finds a local optimum that depends on its seeds. Some groups then hold one outlier, and others two clusters. Exchanges
repair this. Merging groups i and j adds

    n_i n_j / (n_i + n_j) · ‖c_i − c_j‖²        (Ward 1963)

to the sum. Splitting a group at its mean along its first principal direction removes the same expression for its two halves. While
the best split removes more than the best merge adds, both are made, and the number of groups stays m. Sweeps of Lloyd's algorithm
over all points follow. No step raises the sum.

With ``smooth``, each point is first replaced by the mean of its k nearest points, `ROUNDS_OF_SMOOTHING` times with the same
neighbours. The averages are then grouped. This reduces noise and draws scattered points of a rare kind together. A kind with fewer
points than about three times k is blurred instead, unless it is isolated. A neighbour y of x counts only if the distance from x to
y is at most `REACH` times the distance from y to its k-th neighbour. Otherwise x replaces y. So a group of fewer than k points that
is far from all others does not move to the nearest cluster. Neighbours are searched in the group of a point and the nearest groups
of a first partition. At most `CANDIDATES` points are compared, spread evenly over these groups.

The points are sorted first. The groups therefore depend on the set of points and the seed, and not on the order of the points.
O(n·m·d) per sweep, O(m²·d) for the merges, O(n·candidates·d) for the neighbours. The memory holds two copies of the points and n·k
indices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reduset._engine import SQUARED, Frame, Leaves, blocks, nearest
from reduset._types import Array, Floats, Indices
from reduset.kernels import Gaussian
from reduset.mean import KernelMean
from reduset.select.kmeans import KMeans, coordinates_of, leaves_of, sweep

ROUNDS_OF_SMOOTHING = 2
REACH = 2.0  # times the distance of a point to its farthest neighbour
NEAR_GROUPS, MAX_GROUPS = 16, 64  # groups that neighbours are searched in; more than the first number only if these are small
CANDIDATES_PER_NEIGHBOUR = 10
CANDIDATES = 2048
ENTRIES = 1 << 22  # numbers in a block of rows or of pairs


def smoothed(points: Floats, groups: Indices, centres: Array, neighbours: int) -> NDArray[np.float32]:
    """(n, d) points after averaging with this number of neighbours, including the point itself.

    Parameters
    ----------
    points : (n, d); groups : (n,) the group of each point; centres : (m, d) the means of the groups
    """
    near = _in_reach(points, nearest_in_groups(points, groups, centres, neighbours))
    smooth = np.asarray(points, np.float32)
    for _ in range(ROUNDS_OF_SMOOTHING):
        averaged = np.empty_like(smooth)
        for a, b in blocks(len(smooth), max(1, ENTRIES // smooth.shape[1])):
            total = np.zeros((b - a, smooth.shape[1]))
            for column in near[a:b].T:
                total += smooth[column]
            averaged[a:b] = total / neighbours
        smooth = averaged
    return smooth


def nearest_in_groups(points: Floats, groups: Indices, centres: Array, count: int) -> Indices:
    """(n, count) the nearest candidates of each point. Its own index fills the row if there are too few."""
    m = len(centres)
    sizes = np.bincount(groups, minlength=m)
    order, ends = np.argsort(groups, kind="stable"), np.concatenate([[0], np.cumsum(sizes)])
    ranking = _nearest_groups(centres)
    neighbours = np.repeat(np.arange(len(points))[:, None], count, axis=1)
    for group in np.flatnonzero(sizes).tolist():
        near = ranking[group]
        enough = int(np.searchsorted(np.cumsum(sizes[near]), CANDIDATES_PER_NEIGHBOUR * count)) + 1
        chosen = near[: max(NEAR_GROUPS, enough)]
        candidates = np.concatenate([order[ends[k] : ends[k + 1]] for k in chosen])
        if len(candidates) > CANDIDATES:
            candidates = candidates[np.linspace(0, len(candidates) - 1, CANDIDATES).astype(np.int64)]
        offsets = points[candidates] - centres[group]  # offsets from the group's mean avoid cancellation
        squares, kept = np.einsum("nd,nd->n", offsets, offsets) / 2, min(count, len(candidates))
        for a, b in blocks(int(sizes[group]), max(1, ENTRIES // len(candidates))):
            rows = order[ends[group] + a : ends[group] + b]
            ranks = squares - (points[rows] - centres[group]) @ offsets.T
            best = np.argpartition(ranks, kept - 1, axis=1)[:, :kept]
            neighbours[rows, :kept] = candidates[best]
    return neighbours


def _in_reach(points: Floats, near: Indices) -> Indices:
    """Replace neighbours by the point's own index if they are far, relative to their distances to their own neighbours."""
    distances = np.empty(near.shape)
    for a, b in blocks(len(near), max(1, ENTRIES // points.shape[1])):
        for j, column in enumerate(near[a:b].T):
            offsets = points[a:b] - points[column]
            distances[a:b, j] = np.sqrt(np.einsum("nd,nd->n", offsets, offsets))
    return np.where(distances <= REACH * distances.max(axis=1)[near], near, np.arange(len(near))[:, None])


def _nearest_groups(centres: Array) -> Indices:
    """(m, k) the groups with the nearest means, nearest first, beginning with the group itself."""
    m = len(centres)
    kept = min(m, MAX_GROUPS)
    centred = centres - centres.mean(axis=0)
    squares, ranking = np.einsum("md,md->m", centred, centred), np.empty((m, kept), np.int64)
    for a, b in blocks(m, max(1, ENTRIES // m)):
        distances = squares - 2 * centred[a:b] @ centred.T  # squared, up to a constant per row
        distances[np.arange(b - a), np.arange(a, b)] = -np.inf
        best = np.argpartition(distances, kept - 1, axis=1)[:, :kept]
        ranking[a:b] = np.take_along_axis(best, np.argsort(np.take_along_axis(distances, best, 1), axis=1, kind="stable"), 1)
    return ranking


ROUNDS, SWEEPS, LAST_SWEEPS = 4, 2, 6
POWER_STEPS = 5
MAX_NEIGHBOURS, NEIGHBOURHOODS_PER_GROUP = 10, 5  # neighbours that are averaged, at most and relative to the size of a group


@dataclass(frozen=True)
class Partition:
    """Groups of points, in the lexicographic order of their first points.

    Attributes
    ----------
    assignments : (n,) the group of each point
    centres : (m, d) the means of the groups
    distances : (n,) the distance of each point to the mean of its group
    """

    assignments: Indices
    centres: Array
    distances: Array


def partition(points: Floats, size: int, rng: np.random.Generator, *, exchange: bool = True, smooth: bool = False) -> Partition:
    """Divide points into at most ``size`` groups, fewer only if fewer points are distinct.

    Parameters
    ----------
    points : (n, d)
    exchange : whether groups are merged and split. False is plain k-means.
    smooth : Whether points are first averaged with neighbours: 10, or a fifth of the points per group if that is less.
    """
    order = np.lexsort(np.asarray(points).T[::-1])
    sorted_points = np.ascontiguousarray(points[order])
    groups = _Groups.seeded(sorted_points, size, rng)
    neighbours = min(MAX_NEIGHBOURS, len(order) // (NEIGHBOURHOODS_PER_GROUP * size))
    if smooth and neighbours > 1:
        groups.settle(1)
        averages = smoothed(groups.points, groups.assignments, groups.centres, neighbours)
        groups = _Groups.seeded(averages, size, rng)
    for _ in range(ROUNDS if exchange else 0):
        groups.settle(SWEEPS)
        if not groups.exchange():
            break
    groups.settle(LAST_SWEEPS)
    _, first, codes = np.unique(groups.assignments, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    assignments = np.empty(len(order), np.int64)
    assignments[order] = rank[codes]
    centres = _means(sorted_points, rank[codes], len(first))
    distances = np.empty(len(order))
    for a, b in blocks(len(order), max(1, ENTRIES // points.shape[1])):
        distances[a:b] = np.linalg.norm(points[a:b] - centres[assignments[a:b]], axis=1)
    return Partition(assignments, centres, distances)


@dataclass
class _Groups:
    """Centres and the assignment of each point to its nearest centre."""

    points: Floats
    frame: Frame
    leaves: Leaves | None
    centres: Array
    assignments: Indices

    @classmethod
    def seeded(cls, points: Floats, size: int, rng: np.random.Generator) -> _Groups:
        coincide = bool((points == points[0]).all())  # points without a median distance
        mean = KernelMean.from_samples(points, Gaussian(1.0) if coincide else Gaussian())
        frame, _ = coordinates_of(mean)
        leaves = leaves_of(mean.atoms, frame)
        centres = KMeans().select(mean, size, rng=rng).atoms
        return cls(mean.atoms, frame, leaves, np.asarray(centres, np.float64), np.empty(0, np.int64))

    def settle(self, sweeps: int) -> None:
        """Run at most ``sweeps`` sweeps of Lloyd's algorithm, until no centre moves, and assign all points."""
        weights = np.ones(len(self.points))
        for _ in range(sweeps):
            moved, _ = sweep(self.points, weights, self.centres, self.frame, self.leaves)
            if np.array_equal(moved, self.centres):
                break
            self.centres = moved
        assignments, _ = nearest(self.points, self.centres, self.frame, SQUARED, self.leaves)
        self.assignments = assignments.astype(np.int64)

    def exchange(self) -> bool:
        """Merge pairs of groups and split others while this lowers the sum. Return True if any group changed."""
        m = len(self.centres)
        sizes = np.bincount(self.assignments, minlength=m)
        means = np.where(sizes[:, None] > 0, _means(self.points, self.assignments, m), self.centres)
        removed, halves = self._splits(sizes, means)
        added, partners = _merges(sizes, means)
        ranking, busy, changed = np.argsort(-removed, kind="stable").tolist(), np.zeros(m, bool), False
        moved = means.copy()
        for i in np.argsort(added, kind="stable").tolist():
            j = int(partners[i])
            if busy[i] or busy[j]:
                continue
            split = next((k for k in ranking if not busy[k] and k not in (i, j)), None)
            if split is None or removed[split] <= added[i]:
                break
            busy[[i, j, split]] = True
            moved[i] = (sizes[i] * means[i] + sizes[j] * means[j]) / max(sizes[i] + sizes[j], 1)
            moved[[j, split]] = halves[:, split]
            changed = True
        self.centres = moved
        return changed

    def _splits(self, sizes: Indices, means: Array) -> tuple[Array, Array]:
        """(m,) decrease of the sum by a split of each group, and (2, m, d) means of its halves."""
        m, d = means.shape
        removed, halves = np.zeros(m), np.stack([means, means])
        order = np.argsort(self.assignments, kind="stable")
        ends = np.concatenate([[0], np.cumsum(sizes)])
        for groups in _runs(sizes, max(1, ENTRIES // d)):
            rows = order[ends[groups[0]] : ends[groups[-1] + 1]]
            offsets = self.points[rows] - means[self.assignments[rows]]
            starts, codes = ends[groups] - ends[groups[0]], np.repeat(np.arange(len(groups)), sizes[groups])
            above = np.einsum("nd,nd->n", offsets, _directions(offsets, starts, codes)[codes]) > 0
            sums = np.add.reduceat(np.where(above[:, None], offsets, 0.0), starts)
            upper = np.add.reduceat(above, starts, dtype=np.int64)
            lower = sizes[groups] - upper
            able = (upper > 0) & (lower > 0)
            groups, sums, upper, lower = groups[able], sums[able], upper[able, None], lower[able, None]
            # The offsets of a group sum to 0, so the offsets below the mean sum to −sums.
            removed[groups] = (np.square(sums) * (1 / upper + 1 / lower)).sum(axis=1)
            halves[:, groups] += np.stack([sums / upper, -sums / lower])
        return removed, halves


def _directions(offsets: Array, starts: Indices, codes: Indices) -> Array:
    """(g, d) the first principal direction of the offsets of each group, by power iteration from its widest column."""
    directions = np.zeros((len(starts), offsets.shape[1]))
    directions[np.arange(len(starts)), np.add.reduceat(np.square(offsets), starts).argmax(axis=1)] = 1.0
    for _ in range(POWER_STEPS):
        projections = np.einsum("nd,nd->n", offsets, directions[codes])
        directions = np.add.reduceat(offsets * projections[:, None], starts)
        directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), np.finfo(float).tiny)
    return directions


def _merges(sizes: Indices, means: Array) -> tuple[Array, Indices]:
    """(m,) smallest increase of the sum by a merge of each group, and (m,) the other group of this merge."""
    m = len(means)
    added, partners = np.full(m, np.inf), np.zeros(m, np.int64)
    if m == 1:
        return added, partners
    centred = means - means.mean(axis=0)
    squares = np.einsum("md,md->m", centred, centred)
    for a, b in blocks(m, max(1, ENTRIES // m)):
        distances = np.maximum(squares[a:b, None] + squares - 2 * centred[a:b] @ centred.T, 0)  # squared
        costs = distances * (sizes[a:b, None] * sizes / np.maximum(sizes[a:b, None] + sizes, 1))
        costs[np.arange(b - a), np.arange(a, b)] = np.inf
        partners[a:b] = costs.argmin(axis=1)
        added[a:b] = costs[np.arange(b - a), partners[a:b]]
    return added, partners


def _means(points: Floats, groups: Indices, m: int) -> Array:
    """(m, d) the means of groups of points, 0 for a group without points."""
    counts = np.maximum(np.bincount(groups, minlength=m), 1)
    return np.stack([np.bincount(groups, column, m) / counts for column in np.asarray(points).T], axis=1)


def _runs(sizes: Indices, rows: int) -> list[Indices]:
    """Groups that have points, in runs of about ``rows`` points each."""
    occupied = np.flatnonzero(sizes)
    cuts = np.flatnonzero(np.diff((np.cumsum(sizes[occupied]) - 1) // rows)) + 1
    return np.split(occupied, cuts)
