"""Products over columns: a kernel that sees single columns, pairs of them, and so on, each order less than the one before.

    k(x, y) = Πⱼ (1 + θ kⱼ(xⱼ, yⱼ)) / (1 + θ),     kⱼ = ½ (1 − |uⱼ − vⱼ|) + ½ / (1 + (sⱼ − tⱼ)²)

of rows that hold two coordinates a column: a rank u in [0, 1] and a value s in units of some length. Multiplied out it is a sum
over all sets of columns of products of their kernels, a set of p columns with the factor θᵖ (an analysis-of-variance kernel:
Stitson et al. 1999). O(n·m·d), in blocks; k(x, x) = 1.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from reduset._engine.arithmetic import FAST
from reduset._engine.compiled import compiled, for_loops
from reduset._engine.threads import blocks, run_all
from reduset._types import Array, Floats

ROWS_A_TASK = 64


def columnwise_gram(points: Floats, others: Floats, share: float) -> Array:
    """(n, m) k(xᵢ, yⱼ) of rows (n, 2d) and (m, 2d), the ranks of all columns first; ``share`` is θ."""
    rows, columns = for_loops(points), for_loops(np.transpose(others))
    found = np.empty((len(points), len(others)))
    run_all([partial(_fill, rows[a:b], columns, share, found[a:b]) for a, b in blocks(len(rows), ROWS_A_TASK)])
    return found


@compiled(fastmath=FAST)
def _fill(rows, columns, share, found):
    """k of some rows with all columns of the transposed others: a column at a time, so that the loop over the others vectorises."""
    d = rows.shape[1] // 2
    half, one = 0.5 * share / (1.0 + share), (1.0 + 0.5 * share) / (1.0 + share)
    for i in range(len(rows)):
        line = found[i]
        line[:] = 1.0
        for j in range(d):
            u, s = rows[i, j], rows[i, d + j]
            ranks, values = columns[j], columns[d + j]
            for k in range(len(line)):
                gap = s - values[k]
                line[k] *= one - half * abs(u - ranks[k]) + half / (1.0 + gap * gap)
