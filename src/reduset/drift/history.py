"""A statistic over time in a bounded number of points: of so many rows in a row, the largest."""

from __future__ import annotations

import numpy as np

from reduset._types import Array, Indices

MOST_POINTS = 2048


class History:
    """The largest statistic of every ``every`` rows, which doubles when there are too many of them."""

    def __init__(self, rows: Array | None = None, statistics: Array | None = None, every: int = 1) -> None:
        self.rows = np.empty(0) if rows is None else rows
        self.statistics = np.empty(0) if statistics is None else statistics
        self.every = every

    def add(self, rows: Indices, statistics: Array) -> None:
        """Statistics after these rows, which rise and come after all others."""
        self.rows = np.concatenate([self.rows, rows])
        self.statistics = np.concatenate([self.statistics, statistics])
        self._thin()
        while len(self.rows) > MOST_POINTS:
            self.every *= 2
            self._thin()

    def _thin(self) -> None:
        bucket = self.rows // self.every
        order = np.lexsort((-self.statistics, bucket))
        first = np.flatnonzero(np.diff(bucket[order], prepend=-1.0))
        self.rows, self.statistics = self.rows[order[first]], self.statistics[order[first]]

    def arrays(self) -> dict[str, Array]:
        """Rows and statistics."""
        return {"row": self.rows.copy(), "statistic": self.statistics.copy()}
