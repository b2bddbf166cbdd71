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
    indices : (m,) array
        Row numbers in order of selection. Each row is the farthest from all earlier ones, so every prefix is the cover of its size.
    distances : (m,) array
        Distance of each row to the earlier ones when it was selected. The first is infinite.
    radius : float
        Largest distance of any row to its nearest centre. Computed in double precision.
    assignments : (n,) array
        Nearest centre of each row, as a position in ``start`` followed by ``indices``. Values are −1 if not computed.
    assignment_distances : (n,) array
        Distance of each row to its nearest centre. Values are infinite if not computed.
    start : (s,) array
        Row numbers of the centres passed as ``start``. Points that are not rows have −1.
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
        """(s + m,) number of rows assigned to each centre, beginning with the centres of ``start``."""
        return np.bincount(self.assignments[self.assignments >= 0], minlength=len(self.start) + len(self.indices))

    def groups(self, radius: float | None = None) -> list[Indices]:
        """Groups of near-duplicates: for each centre the rows within a radius of it, if there are at least two.

        The default is the radius of the cover. Groups are sorted by size, largest first. Two rows of a group are at most twice the
        radius apart, four times for the cosine distance.
        """
        reach = self.radius if radius is None else radius
        rows = np.flatnonzero((self.assignments >= 0) & (self.assignment_distances <= np.float32(reach) * (1 + 1e-6)))
        order = rows[np.argsort(self.assignments[rows], kind="stable")]
        parts = np.split(order, np.flatnonzero(np.diff(self.assignments[order])) + 1) if len(order) else []
        return sorted((part for part in parts if len(part) > 1), key=len, reverse=True)

    def describe(self) -> Description:
        """Size, covering radius and spacing as rows of (label, value, explanation)."""
        n, distance = len(self.assignments), "cosine distance" if self.metric == "cosine" else "distance"
        added = f" added to {len(self.start):,} existing centres" if len(self.start) else ""
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
