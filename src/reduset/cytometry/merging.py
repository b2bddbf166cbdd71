"""Groups of cells merged by mode: always the two neighbours between which the valley is shallowest.

What is left in the end are the modes of the cells' density, as far as lines show them (`valleys`). The merges are a tree: cut where
the dips fall below a share of the lower peak, or at a number of populations. Groups of too few cells to have a valley of their own
are merged first, with what is nearest. O(k·NEIGHBOURS) dips for k groups, some NEIGHBOURS more for each merge, and O(k²) memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reduset._types import Array, Indices, Report
from reduset.cytometry.groups_of_cells import CellGroup
from reduset.cytometry.valleys import Valleys

NEIGHBOURS = 8
FEWEST = 25  # cells of a group that may stand alone


class Merge(NamedTuple):
    """Group ``gone`` became part of group ``into``, across a dip of that depth (infinite where it was of too few cells)."""

    into: int
    gone: int
    dip: float


@dataclass(frozen=True)
class MergeTree:
    """All merges of k groups, from the shallowest dip on."""

    size: int
    merges: tuple[Merge, ...]

    def cut(self, dip: float | None = None, size: int | None = None) -> Indices:
        """(k,) which population each group belongs to, by the depth from which valleys count, or by their number."""
        root = np.arange(self.size)
        left = self.size
        for each in self.merges:
            if (size is not None and left <= size) or (dip is not None and each.dip < dip):
                break
            root[root == each.gone] = each.into
            left -= 1
        return np.unique(root, return_inverse=True)[1].astype(np.int64)


def merge_by_mode(groups: list[CellGroup], report: Report) -> MergeTree:
    """Merge until one group is left."""
    alive, valleys, near = dict(enumerate(groups)), Valleys.among(groups), _Neighbours(groups)
    dips = np.full((len(groups), len(groups)), np.nan)
    merges: list[Merge] = []
    while len(alive) > 1:
        report(len(merges), len(groups) - 1)
        found = _smallest(alive, near) or _shallowest(alive, near, valleys, dips)
        into, gone = sorted((found.into, found.gone), key=lambda each: -alive[each].count)
        alive[into] = alive[into].joined(alive.pop(gone))
        near.join(into, gone, alive[into].centre)
        dips[into], dips[:, into] = np.nan, np.nan
        merges.append(Merge(into, gone, found.dip))
    return MergeTree(len(groups), tuple(merges))


def _smallest(alive: dict[int, CellGroup], near: _Neighbours) -> Merge | None:
    """The smallest group and the one nearest to it, if it is too small to stand alone."""
    small = min(alive, key=lambda name: (len(alive[name].cells), alive[name].count))
    return Merge(near.nearest(small), small, np.inf) if len(alive[small].cells) < FEWEST else None


def _shallowest(alive: dict[int, CellGroup], near: _Neighbours, valleys: Valleys, dips: Array) -> Merge:
    """Of all neighbours the two with the shallowest valley between them."""
    low, high = near.pairs()
    for k in np.flatnonzero(np.isnan(dips[low, high])):
        dips[low[k], high[k]] = valleys.dip(alive[int(low[k])], alive[int(high[k])])
    best = int(np.argmax(dips[low, high]))
    return Merge(int(low[best]), int(high[best]), float(dips[low[best], high[best]]))


class _Neighbours:
    """Which groups are nearest to each, as they merge."""

    def __init__(self, groups: list[CellGroup]) -> None:
        self._centres = np.stack([group.centre for group in groups])
        self._alive = np.ones(len(groups), bool)
        self._gaps = np.square(self._centres[:, None] - self._centres).sum(axis=2)
        np.fill_diagonal(self._gaps, np.inf)
        self._near = np.empty((len(groups), 0), np.int64)

    def nearest(self, group: int) -> int:
        return int(np.argmin(self._gaps[group]))

    def join(self, into: int, gone: int, centre: Array) -> None:
        """Two groups are one, with its centre there."""
        self._alive[gone], self._centres[into] = False, centre
        new = np.where(self._alive, np.square(self._centres - centre).sum(axis=1), np.inf)
        new[into] = np.inf
        self._gaps[gone], self._gaps[:, gone] = np.inf, np.inf
        self._gaps[into], self._gaps[:, into] = new, new
        if self._near.size:
            farthest = np.take_along_axis(self._gaps, self._near, axis=1).max(axis=1)
            lost = ((self._near == into) | (self._near == gone)).any(axis=1) | (new < farthest)
            lost[into] = True
            self._look(np.flatnonzero(lost & self._alive))

    def pairs(self) -> tuple[Indices, Indices]:
        """(pairs,) each group with those nearest to it, every pair once, the lower number first."""
        names = np.flatnonzero(self._alive)
        if self._near.shape[1] != min(NEIGHBOURS, len(names) - 1):
            self._near = np.zeros((len(self._alive), min(NEIGHBOURS, len(names) - 1)), np.int64)
            self._look(names)
        one, other = np.repeat(names, self._near.shape[1]), self._near[names].ravel()
        codes = np.unique(np.minimum(one, other) * len(self._alive) + np.maximum(one, other))
        return codes // len(self._alive), codes % len(self._alive)

    def _look(self, names: Indices) -> None:
        few = self._near.shape[1]
        if few <= self._alive.sum() - 1:  # else all are looked at anew, when pairs are asked for
            self._near[names] = np.argpartition(self._gaps[names], few - 1, axis=1)[:, :few]
