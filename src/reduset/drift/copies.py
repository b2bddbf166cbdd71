"""Rows that are copies of others: a table joined twice, a log sent again. Copies count as rows, and make chance look like drift.

Equal rows may well be equal by chance, where columns hold few values. So pairs of equal rows are counted in as many rows of either
sample, and only where one has many more of them than the other is that told. O(n log n).
"""

from __future__ import annotations

import numpy as np

from reduset._messages import warn
from reduset._types import Array, Floats

LOOKED_AT = 8192  # rows of either sample
FEWEST, TIMES = 10, 4  # pairs, and how many more than in the other sample


def warn_of_copies(name: str, rows: Floats, others: Floats) -> None:
    """One sentence where rows repeat each other, as those of another sample of the same law do not."""
    count, rng = min(len(rows), len(others), LOOKED_AT), np.random.default_rng(0)
    mine, theirs = (_pairs(each[rng.choice(len(each), count, replace=False)]) for each in (rows, others))
    if mine < FEWEST or mine <= TIMES * (theirs + 1):
        return
    repeated = len(rows) - len(np.unique(_marks(rows[:])))
    warn(
        f"{repeated:,} of the {len(rows):,} rows of {name} repeat others exactly, as rows of the other sample do not; where they "
        "are copies, leave them out (drop_duplicates): each counts as a row of its own, and chance then looks like drift"
    )


def _pairs(rows: Floats) -> int:
    """How many pairs of rows are equal."""
    counts = np.unique(_marks(rows), return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def _marks(rows: Floats) -> Array:
    """(n,) a number a row, the same for equal rows and for no others that one is likely to meet."""
    factors = np.random.default_rng(1).standard_normal(rows.shape[1])
    return np.asarray((rows * factors).sum(axis=1))
