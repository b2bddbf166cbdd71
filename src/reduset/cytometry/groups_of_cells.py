"""A group of cells as merging sees it: how many, their mean and covariance, and some of them with what each stands for.

Of every small group a few hundred cells are looked at, of rare ones all. Where groups are joined, so are these: the thin parts of a
large group, which tell whether a valley lies before it, stay as well known as its middle.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reduset._types import Array, Floats, Indices

MOST = 300  # cells of a group that are looked at


@dataclass(frozen=True)
class CellGroup:
    """A group of cells.

    Attributes
    ----------
    count : how much it weighs, in cells
    centre : (d,) their mean
    covariance : (d, d)
    cells : (s, d) some of them, all where they are few
    stands_for : (s,) how many cells each of these stands for
    """

    count: float
    centre: Array
    covariance: Array = field(repr=False)
    cells: Floats = field(repr=False)
    stands_for: Array = field(repr=False)

    @classmethod
    def of(cls, cells: Floats, rows: Indices, weights: Array, rng: np.random.Generator, fences: Array | None = None) -> CellGroup:
        """Those of these rows, each of a weight; none beyond fences, (2, d), if there are any."""
        own = weights[rows]
        count = float(own.sum())
        if len(rows) > MOST:
            rows = np.sort(rng.choice(rows, MOST, replace=False, p=own / count))
            own = np.full(MOST, count / MOST)
        some = np.asarray(cells[rows], np.float64)
        if fences is not None:
            np.clip(some, *fences, out=some)
        centre = np.average(some, axis=0, weights=own)
        off = some - centre
        return cls(count, centre, (off * (own / count)[:, None]).T @ off, some, own)

    def joined(self, other: CellGroup) -> CellGroup:
        """Both together."""
        count = self.count + other.count
        mine, apart = self.count / count, other.centre - self.centre
        covariance = mine * self.covariance + (1 - mine) * other.covariance + mine * (1 - mine) * np.outer(apart, apart)
        stands_for = np.concatenate([self.stands_for, other.stands_for])
        return CellGroup(count, self.centre + (1 - mine) * apart, covariance, np.concatenate([self.cells, other.cells]), stands_for)
