"""Quadratic statistics of moving windows over a stream of rows: of the last w rows, for several w at once.

    z_w = (w·Σⱼ aⱼ (mean of the last w rows)ⱼ² − cᵤ)·sᵤ

Running sums of the rows are kept in a ring, so that the sum of a window is a difference of two of them; a window of w rows is
looked at every w/8 rows, and all windows together cost little more than the shortest. O(p) a row, whatever was before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST
from reduset._engine.compiled import compiled
from reduset._types import Array, Indices

LOOKS = 8  # at a window, while its rows change


@dataclass
class WindowSums:
    """The state of a stream: running sums of its rows, and how many there were.

    Attributes
    ----------
    windows : (k,) lengths, rising
    ring : (rows back + 1, p) the running sums after each of the last rows; position : rows so far
    """

    windows: Indices
    ring: Array
    position: int = 0

    @classmethod
    def empty(cls, windows: Indices, columns: int, memory: int = 0) -> WindowSums:
        """Before the first row; of so many rows back the sums are kept, or of the longest window."""
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
        """Go on by rows ``rows[order]``, each plus ``offset``, and return how many were taken in: it ends after a crossing.

        Parameters
        ----------
        form : (p,) a; centres, factors : (k,) c and s
        threshold : a statistic from here on ends it
        largest, which : (len(order),) to be filled: the largest statistic after each row (−∞ where none was looked at), its window
        """
        every = np.maximum(self.windows // LOOKS, 1)
        taken = _advance(
            rows, order, offset, form, self.windows, every, centres, factors, threshold, self.ring, self.position, largest, which
        )
        self.position += taken
        return int(taken)

    def kept(self) -> Array:
        """(n + 1, p) the running sums after each of the last n rows, as far back as they are kept, the one before them first."""
        count = min(self.position, len(self.ring) - 1)
        places = np.arange(self.position - count, self.position + 1) % len(self.ring)
        return self.ring[places]


@compiled(fastmath=FAST)
def _advance(rows, order, offset, form, windows, every, centres, factors, threshold, ring, position, largest, which):
    length, p = ring.shape
    for i in range(len(order)):
        row = rows[order[i]]
        before, now = ring[position % length], ring[(position + 1) % length]
        for j in range(p):
            now[j] = before[j] + row[j] + offset[j]
        position += 1
        best, at = -np.inf, -1
        for k in range(len(windows)):
            w = windows[k]
            if position < w or position % every[k] != 0:
                continue
            then = ring[(position - w) % length]
            total = 0.0
            for j in range(p):
                difference = now[j] - then[j]
                total += form[j] * difference * difference
            z = (total / w - centres[k]) * factors[k]
            if z > best:
                best, at = z, k
        largest[i], which[i] = best, at
        if best >= threshold:
            return i + 1
    return len(order)
