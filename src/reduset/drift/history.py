"""A statistic over time in a bounded number of points: of neighbours the larger is kept when there are too many."""

from __future__ import annotations

import numpy as np

from reduset._types import Array, Indices

MOST_POINTS = 2048


class History:
    """Rows, and the largest statistic after each."""

    def __init__(self, rows: Array | None = None, statistics: Array | None = None) -> None:
        self.rows = np.empty(0) if rows is None else rows
        self.statistics = np.empty(0) if statistics is None else statistics

    def add(self, rows: Indices, statistics: Array) -> None:
        """Statistics after these rows."""
        self.rows = np.concatenate([self.rows, rows])
        self.statistics = np.concatenate([self.statistics, statistics])
        while len(self.rows) > MOST_POINTS:
            even = len(self.rows) // 2 * 2
            pairs = self.statistics[:even].reshape(-1, 2)
            larger = 2 * np.arange(len(pairs)) + pairs.argmax(axis=1)
            kept = np.concatenate([larger, np.arange(even, len(self.rows))])
            self.rows, self.statistics = self.rows[kept], self.statistics[kept]

    def arrays(self) -> dict[str, Array]:
        """Rows and statistics."""
        return {"row": self.rows.copy(), "statistic": self.statistics.copy()}
