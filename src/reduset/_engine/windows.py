"""Quadratic statistics of moving windows over a stream of rows: for the last w rows, with several w at once.

    z_w = (w·Σⱼ aⱼ (mean of the last w rows)ⱼ² − cᵤ)·sᵤ

A ring buffer stores running sums of the rows, so that the sum of a window is a difference of two of them. A window of w rows is
evaluated every w/8 rows, and all windows together cost little more than the shortest. O(p) a row, for a stream of any length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST
from reduset._engine.compiled import compiled
from reduset._types import Array, Indices

EVALUATIONS = 8  # evaluations of a window while its rows are replaced once


@dataclass
class WindowSums:
    """The state of a stream: running sums of its rows, and the number of rows.

    Attributes
    ----------
    windows : (k,) lengths, ascending
    ring : (rows back + 1, p) the running sums after each of the last rows
    position : rows so far
    """

    windows: Indices
    ring: Array
    position: int = 0

    @classmethod
    def empty(cls, windows: Indices, columns: int, memory: int = 0) -> WindowSums:
        """The state before the first row. The ring holds ``memory`` rows, or those of the longest window."""
        return cls(np.asarray(windows, np.int64), np.zeros((max(int(max(windows)), memory) + 1, columns)))

    def advance(
        self,
        rows: NDArray[np.float32],
        order: Indices,
        offset: Array,
        form: Array,
        centres: Array,
        factors: Array,
        threshold: float,
        largest: Array,
        which: Indices,
    ) -> int:
        """Process rows ``rows[order]``, each plus ``offset``, up to the first crossing of the threshold; return the number
        processed.

        Parameters
        ----------
        form : (p,) a
        centres, factors : (k,) c and s
        threshold : a statistic of at least this value ends the call
        largest, which : (len(order),) outputs, the largest statistic after each row (−∞ without an evaluation) and its window
        """
        intervals = np.maximum(self.windows // EVALUATIONS, 1)
        measures = offset, form, self.windows, intervals, centres, factors, threshold
        count = _advance(rows, order, *measures, self.ring, self.position, largest, which)
        self.position += count
        return int(count)

    def kept(self) -> Array:
        """(n + 1, p) the running sums after each of the last n stored rows, preceded by the sum before them."""
        count = min(self.position, len(self.ring) - 1)
        positions = np.arange(self.position - count, self.position + 1) % len(self.ring)
        return self.ring[positions]


@compiled(fastmath=FAST)
def _advance(rows, order, offset, form, windows, intervals, centres, factors, threshold, ring, position, largest, which):
    length, p = ring.shape
    for i in range(len(order)):
        row = rows[order[i]]
        before, now = ring[position % length], ring[(position + 1) % length]
        for j in range(p):
            now[j] = before[j] + row[j] + offset[j]
        position += 1
        best, window = -np.inf, -1
        for k in range(len(windows)):
            w = windows[k]
            if position < w or position % intervals[k] != 0:
                continue
            earlier = ring[(position - w) % length]
            total = 0.0
            for j in range(p):
                difference = now[j] - earlier[j]
                total += form[j] * difference * difference
            z = (total / w - centres[k]) * factors[k]
            if z > best:
                best, window = z, k
        largest[i], which[i] = best, window
        if best >= threshold:
            return i + 1
    return len(order)
