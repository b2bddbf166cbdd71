"""A group of cells as merging sees it: how many, their mean and covariance, and some of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reduset._types import Array, Floats, Indices

MOST = 1500  # cells of a group that are looked at


@dataclass(frozen=True)
class CellGroup:
    """A group of cells.

    Attributes
    ----------
    count : how much it weighs, in cells
    centre : (d,) their mean
    covariance : (d, d)
    cells : (s, d) some of them, all where they are few
    """

    count: float
    centre: Array
    covariance: Array = field(repr=False)
    cells: Floats = field(repr=False)

    @classmethod
    def of(cls, cells: Floats, rows: Indices, weights: Array, rng: np.random.Generator) -> CellGroup:
        """Those of these rows, each of a weight."""
        own = weights[rows]
        count = float(own.sum())
        if len(rows) > MOST:
            rows = np.sort(rng.choice(rows, MOST, replace=False, p=own / count))
            own = np.ones(MOST)
        some = np.asarray(cells[rows], np.float64)
        centre = np.average(some, axis=0, weights=own)
        off = some - centre
        return cls(count, centre, (off * (own / own.sum())[:, None]).T @ off, some)

    @property
    def cells_each(self) -> float:
        """How many cells each of those that are looked at stands for."""
        return self.count / len(self.cells)

    def joined(self, other: CellGroup, rng: np.random.Generator) -> CellGroup:
        """Both together."""
        count = self.count + other.count
        mine, apart = self.count / count, other.centre - self.centre
        covariance = mine * self.covariance + (1 - mine) * other.covariance + mine * (1 - mine) * np.outer(apart, apart)
        kept = [_some(each.cells, MOST * each.count / count, rng) for each in (self, other)]
        return CellGroup(count, self.centre + (1 - mine) * apart, covariance, np.concatenate(kept))


def _some(cells: Floats, most: float, rng: np.random.Generator) -> Floats:
    """Not more than so many of them, and one at least."""
    few = max(1, round(most))
    return cells if len(cells) <= few else cells[np.sort(rng.choice(len(cells), few, replace=False))]
