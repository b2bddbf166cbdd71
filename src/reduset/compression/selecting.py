"""The stage "select": which atoms."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reduset._engine import LeafCover
from reduset._types import Array
from reduset.compression.target import Target
from reduset.mixture.pieces import Pieces
from reduset.select import Selector, with_own_weights
from reduset.select.contract import Traversal

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Atoms:
    """Selected atoms.

    Attributes
    ----------
    points : (m, d), or components
    rows : (m,) of the data, or None if they are new points
    in_order : whether their order stays; if not, they are put in the order of the energy that each adds
    traversal : where they come from, or None if they were given
    order : (m,) the position of each in the traversal, or None if they were moved since
    kappa : (m,) inner products of f with their kernel functions, if the selector computed them
    complete : whether they are as many as were asked for
    remark, moved : how the selector chose, and how they were moved, in words
    """

    points: Pieces
    rows: Rows | None = None
    in_order: bool = True
    traversal: Traversal | None = None
    order: Rows | None = None
    kappa: Array | None = None
    complete: bool = True
    remark: str = ""
    moved: str = ""

    def __len__(self) -> int:
        return len(self.points)

    def at(self, which: Rows) -> Atoms:
        """Some of them, or all in another order."""
        rows, order = (None if each is None else each[which] for each in (self.rows, self.order))
        return replace(self, points=self.points[which], rows=rows, order=order, kappa=None)

    def with_points(self, points: Array, moved: str) -> Atoms:
        """Atoms that were moved to new points, which are neither rows nor of the traversal any more."""
        return replace(self, points=points, rows=None, order=None, kappa=None, in_order=False, moved=moved)

    @property
    def words(self) -> str:
        """All remarks."""
        return "; ".join(each for each in (self.remark, self.moved) if each)

    @property
    def cover(self) -> LeafCover | None:
        """The points in leaves, if the selector has them."""
        return None if self.traversal is None else self.traversal.cover

    def radii(self) -> Array | None:
        """The covering radius after each atom, if the selector knows it."""
        return None if self.traversal is None or self.order is None else self.traversal.radii()

    def own_weights(self) -> Array:
        """The selector's own weights."""
        own = None if self.traversal is None or self.order is None else self.traversal.weights()
        if own is None or self.order is None:
            raise ValueError(
                f"weights='own' are those of a selector that has any ({with_own_weights()}), for atoms that were not moved; "
                "use weights='free'"
            )
        return own[self.order]


def begin(target: Target, selector: Selector) -> Traversal:
    """Begin a selection."""
    with target.run.clock.stage("select"):
        return selector.begin(target.full, target.select_rng)


def select(target: Target, traversal: Traversal, size: int) -> Atoms:
    """``size`` atoms, or fewer if the data have no more that are distinct."""
    with target.run.clock.stage("select"):
        traversal.extend(size, target.run.progress.stage("selecting"))
        rows = traversal.indices
        if rows is not None:
            rows = rows[:size]
        points = traversal.points[:size] if rows is None else np.asarray(target.full.atoms[rows], np.float64)
        kappa = None if traversal.nested else traversal.kappa
        order, complete = np.arange(len(points)), len(points) == size
        return Atoms(points, rows, traversal.nested, traversal, order, kappa, complete, traversal.remark())
