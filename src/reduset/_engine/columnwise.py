"""Products over columns, and whole rows beside them: a kernel for what models are made of.

    k(x, y) = ρ₀ Πⱼ (1 + θ kⱼ(xⱼ, yⱼ)) / (1 + θ) + ρ₁ e + ρ₂ e⁴ + ρ₃ e¹⁶

    kⱼ = ½ (1 − |uⱼ − vⱼ|) + ½ / (1 + (sⱼ − tⱼ)²),     e = exp(−Σⱼ aⱼ (sⱼ − tⱼ)²)

of rows that hold two coordinates a column: a rank u in [0, 1] and a value s in units of some length. Multiplied out the product is
a sum over all sets of columns of products of their kernels, a set of p columns with the factor θᵖ (an analysis-of-variance kernel:
Stitson et al. 1999). e, e⁴ and e¹⁶ are Gaussians of whole rows, each of half the bandwidth of the one before, for one exponential.
O(n·m·d), in blocks; k(x, x) = Σ ρ.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from reduset._engine.arithmetic import FAST, exp_minus
from reduset._engine.compiled import compiled, for_loops
from reduset._engine.threads import blocks, run_all
from reduset._types import Array, Floats

ROWS_A_TASK = 64


def columnwise_gram(points: Floats, others: Floats, share: float, rates: Floats, parts: tuple[float, float, float, float]) -> Array:
    """(n, m) k(xᵢ, yⱼ) of rows (n, 2d) and (m, 2d), the ranks of all columns first.

    ``share`` is θ, ``rates`` are the (d,) aⱼ, and ``parts`` the ρ.
    """
    rows, columns, rates = for_loops(points), for_loops(np.transpose(others)), for_loops(rates)
    found = np.empty((len(points), len(others)))
    run_all([partial(_fill, rows[a:b], columns, share, rates, parts, found[a:b]) for a, b in blocks(len(rows), ROWS_A_TASK)])
    return found


@compiled(fastmath=FAST)
def _fill(rows, columns, share, rates, parts, found):
    """k of some rows with all columns of the transposed others: a column at a time, so that the loop over the others vectorises."""
    d = rows.shape[1] // 2
    half, one = 0.5 * share / (1.0 + share), (1.0 + 0.5 * share) / (1.0 + share)
    apart = np.empty(found.shape[1])
    for i in range(len(rows)):
        line = found[i]
        line[:] = 1.0
        apart[:] = 0.0
        for j in range(d):
            u, s, rate = rows[i, j], rows[i, d + j], rates[j]
            ranks, values = columns[j], columns[d + j]
            for k in range(len(line)):
                square = (s - values[k]) * (s - values[k])
                line[k] *= one - half * abs(u - ranks[k]) + half / (1.0 + square)
                apart[k] += rate * square
        for k in range(len(line)):
            wide = exp_minus(apart[k])
            middle = wide * wide * wide * wide
            line[k] = parts[0] * line[k] + parts[1] * wide + parts[2] * middle + parts[3] * middle * middle * middle * middle
