"""Rows that a greedy selector may choose from, and the mean's values there.

Greedy selection looks at every candidate at every step, and needs f at each: n² kernel evaluations over all of the data. Up to
`EVERY_UP_TO` rows that is cheap. Beyond, `SOME` rows drawn by weight stand for all (twice as many as atoms are asked for, where
that is more), and are drawn anew where they run out. f there is summed over the data as long as that is quick, then taken from a
larger compression (a surrogate) whose measured error is within `CLOSE`; where no such compression exists, because the bandwidth is
too small, it is summed all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reduset._types import Indices
from reduset.certificate.surrogate import close_surrogate
from reduset.mean import KernelMean
from reduset.select.random import draw

EVERY_UP_TO = 8192
SOME = 4096
PAIRS = 1 << 31  # kernel evaluations that a person would wait for
SURROGATE_ATOMS = 2048
CLOSE = 0.01  # relative error of a surrogate that may be believed


@dataclass(frozen=True)
class Candidates:
    """Rows to choose from.

    Attributes
    ----------
    rows : (q,) distinct rows of the mean
    points : (q, d)
    values : (q,) ⟨f, φ(·, x)⟩ at each, in units where every bump has norm 1
    every : whether these are all rows of non-zero weight
    """

    rows: Indices
    points: NDArray[np.float64]
    values: NDArray[np.float64]
    every: bool

    def suffice_for(self, size: int) -> bool:
        """Whether there is something to choose from for the last of ``size`` atoms."""
        return self.every or 2 * size <= len(self.rows)


def candidates(mean: KernelMean, size: int, chosen: Indices, rng: np.random.Generator) -> Candidates:
    """All rows of non-zero weight, or a draw of them for ``size`` atoms, with f at each; those already chosen are among them."""
    able = int(np.count_nonzero(mean.weights))
    every = able <= max(EVERY_UP_TO, 2 * size)
    rows = np.flatnonzero(mean.weights) if every else np.union1d(draw(mean, max(SOME, 2 * size), rng), chosen)
    points = np.asarray(mean.atoms[rows], np.float64)
    source = mean
    if mean.size * len(rows) > PAIRS:
        source = close_surrogate(mean, SURROGATE_ATOMS, CLOSE, rng)
    values = source.kernel.product_sums(source.atoms, source.weights, points, "double" if every else "auto")
    return Candidates(rows, points, values, every)
