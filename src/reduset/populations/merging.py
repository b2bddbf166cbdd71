"""Groups of cells merged by mode: always the two neighbours between which the valley is shallowest.

What is left in the end are the modes of the cells' density, as far as lines show them (`valleys`). The merges are a tree: cut where
the dips fall below a share of the lower peak, or at a number of populations. Groups of too few cells to have a valley of their own
are merged first, with what is nearest. O(k·NEIGHBOURS) dips for k groups, and as many again for each merge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reduset._types import Array, Indices, Report
from reduset.populations.groups_of_cells import CellGroup
from reduset.populations.valleys import Valleys

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
    alive, valleys = dict(enumerate(groups)), Valleys.among(groups)
    dips: dict[tuple[int, int], float] = {}
    merges: list[Merge] = []
    while len(alive) > 1:
        report(len(merges), len(groups) - 1)
        found = _smallest(alive) or _shallowest(alive, valleys, dips)
        into, gone = sorted((found.into, found.gone), key=lambda each: -alive[each].count)
        alive[into] = alive[into].joined(alive.pop(gone))
        dips = {pair: dip for pair, dip in dips.items() if into not in pair and gone not in pair}
        merges.append(Merge(into, gone, found.dip))
    return MergeTree(len(groups), tuple(merges))


def _smallest(alive: dict[int, CellGroup]) -> Merge | None:
    """The smallest group and the one nearest to it, if it is too small to stand alone."""
    names = list(alive)
    small = min(names, key=lambda name: (len(alive[name].cells), alive[name].count))
    if len(alive[small].cells) >= FEWEST:
        return None
    others = [name for name in names if name != small]
    gaps = [float(np.sum((alive[name].centre - alive[small].centre) ** 2)) for name in others]
    return Merge(others[int(np.argmin(gaps))], small, np.inf)


def _shallowest(alive: dict[int, CellGroup], valleys: Valleys, dips: dict[tuple[int, int], float]) -> Merge:
    """Of all neighbours the two with the shallowest valley between them."""
    pairs = _neighbours(np.array(list(alive)), np.stack([group.centre for group in alive.values()]))
    for pair in pairs:
        if pair not in dips:
            dips[pair] = valleys.dip(alive[pair[0]], alive[pair[1]])
    best = max(pairs, key=lambda pair: dips[pair])
    return Merge(*best, dips[best])


def _neighbours(names: Indices, centres: Array) -> list[tuple[int, int]]:
    """Each group with those nearest to it, every pair once."""
    gaps = np.square(centres[:, None] - centres).sum(axis=2)
    np.fill_diagonal(gaps, np.inf)
    few = min(NEIGHBOURS, len(names) - 1)
    near = np.argpartition(gaps, few - 1, axis=1)[:, :few]
    return sorted({(int(min(a, b)), int(max(a, b))) for a, row in zip(names, names[near], strict=True) for b in row})
