"""The result of `cover`: row numbers, the exact covering radius, and the nearest chosen row of every row."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reduset._describe import Description, Row
from reduset._types import Array, Indices


@dataclass(frozen=True)
class Cover:
    """Rows such that every row of the data is near one of them.

    Attributes
    ----------
    indices : (m,) row numbers in order of selection; each is the row farthest from all earlier ones, so every prefix is the
        cover of its size
    distances : (m,) distance of each row to the earlier ones when it was selected; infinite for the first
    radius : largest distance of any row to its nearest centre, computed in double precision
    assignments : (n,) nearest centre of each row, as a position in ``start`` followed by ``indices``; −1 if not computed
    assignment_distances : (n,) distance to that centre
    start : (s,) row numbers of the centres that were given; −1 for points that are not rows
    metric : "euclidean" or "cosine" (1 − cos)
    """

    indices: Indices
    distances: Array
    radius: float
    assignments: Indices = field(repr=False)
    assignment_distances: NDArray[np.float32] = field(repr=False)
    start: Indices = field(repr=False)
    metric: str

    @property
    def size(self) -> int:
        """Number of rows chosen."""
        return len(self.indices)

    @property
    def counts(self) -> Indices:
        """(s + m,) number of rows assigned to each centre, those of ``start`` first."""
        return np.bincount(self.assignments[self.assignments >= 0], minlength=len(self.start) + len(self.indices))

    def groups(self, radius: float | None = None) -> list[Indices]:
        """Near-duplicates: for each centre the rows within a radius of it, if there are at least two.

        The default radius is that of the cover. Groups are sorted by size, largest first. Two rows of a group are within twice the
        radius of each other.
        """
        reach = self.radius if radius is None else radius
        rows = np.flatnonzero((self.assignments >= 0) & (self.assignment_distances <= np.float32(reach) * (1 + 1e-6)))
        order = rows[np.argsort(self.assignments[rows], kind="stable")]
        parts = np.split(order, np.flatnonzero(np.diff(self.assignments[order])) + 1) if len(order) else []
        return sorted((part for part in parts if len(part) > 1), key=len, reverse=True)

    def describe(self) -> Description:
        """Size, covering radius and spacing as rows of (label, value, explanation)."""
        n, distance = len(self.assignments), "cosine distance" if self.metric == "cosine" else "distance"
        added = f" added to {len(self.start):,} given ones" if len(self.start) else ""
        facts = {"n": n, "size": self.size, "start": len(self.start), "metric": self.metric, "radius": self.radius}
        apart = f"any two of the rows are at least {self.distances[-1]:.4g} apart" if self.size > 1 else ""
        return Description(
            f"Cover: {self.size:,} of {n:,} rows{added}",
            (
                Row(
                    "radius",
                    f"every row is within {distance} {self.radius:.4g} of its nearest centre",
                    "The largest distance of a row to its nearest centre.",
                    facts,
                ),
                Row("spacing", apart, "The smallest distance of two chosen rows."),
            ),
        )

    def __str__(self) -> str:
        return str(self.describe())
