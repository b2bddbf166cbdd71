"""The result: which rows, how far any other is from them, and which of them is near each row."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array, Indices


@dataclass(frozen=True)
class Subset:
    """Rows of which one is near every row.

    Attributes
    ----------
    indices : (m,) rows, in the order in which they were chosen, each the farthest from all before; every prefix is the choice of
        its size
    distances : (m,) how far each was from those before it when it was chosen; infinite for the first of all
    radius : how far any row is from the nearest centre: exact, up to the rounding of double precision
    owners : (n,) the nearest centre of each row: first those of ``start``, then ``indices``; −1 everywhere if not asked for
    owner_distances : (n,) how far that is
    start : (s,) the rows that it went on from; where these were no rows, −1
    metric : "euclidean" or "cosine" (1 − cos)
    """

    indices: Indices
    distances: Array
    radius: float
    owners: Indices = field(repr=False)
    owner_distances: NDArray[np.float32] = field(repr=False)
    start: Indices = field(repr=False)
    metric: str

    @property
    def size(self) -> int:
        """How many rows."""
        return len(self.indices)

    @property
    def counts(self) -> Indices:
        """(s + m,) to how many rows each centre is the nearest, those of ``start`` first."""
        return np.bincount(self.owners[self.owners >= 0], minlength=len(self.start) + len(self.indices))

    def groups(self, radius: float | None = None) -> list[Indices]:
        """Rows that are nearly the same: for each centre the rows within a radius of it, where there are two and more.

        The radius is by default that of the cover. Largest groups first; two rows of a group are within twice the radius.
        """
        reach = self.radius if radius is None else radius
        rows = np.flatnonzero((self.owners >= 0) & (self.owner_distances <= np.float32(reach) * (1 + 1e-6)))
        order = rows[np.argsort(self.owners[rows], kind="stable")]
        parts = np.split(order, np.flatnonzero(np.diff(self.owners[order])) + 1) if len(order) else []
        return sorted((part for part in parts if len(part) > 1), key=len, reverse=True)

    def __str__(self) -> str:
        n, what = len(self.owners), "cosine distance" if self.metric == "cosine" else "distance"
        beside = f", beside {len(self.start):,} that were there" if len(self.start) else ""
        lines = [f"{self.size:,} of {n:,} rows{beside}: every row is within {what} {self.radius:.4g} of one of them"]
        if self.size > 1:
            lines.append(f"chosen     the last was {self.distances[-1]:.4g} away from those before it")
        return "\n  ".join(lines)
