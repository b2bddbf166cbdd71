"""A product kernel over columns plus Gaussians over whole rows, for explanations of models.

    k(x, y) = ρ₀ Πⱼ (1 + θ kⱼ(xⱼ, yⱼ)) / (1 + θ) + ρ₁ e + ρ₂ e⁴ + ρ₃ e¹⁶

    kⱼ = ½ (1 − |uⱼ − vⱼ|) + ½ / (1 + (sⱼ − tⱼ)²),     e = exp(−Σⱼ aⱼ (sⱼ − tⱼ)²)

Rows hold two coordinates per column: a rank u in [0, 1] and a scaled value s. Expanded, the product is a sum over all subsets of
columns. A subset of p columns contributes the product of its kernels with the factor θᵖ (an analysis-of-variance kernel: Stitson et
al. 1999). e, e⁴ and e¹⁶ are Gaussians of whole rows. Each has half the bandwidth of the one before, and all share one exponential.
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


def columnwise_gram(points: Floats, others: Floats, theta: float, rates: Floats, parts: tuple[float, float, float, float]) -> Array:
    """(n, m) k(xᵢ, yⱼ) of rows (n, 2d) and (m, 2d); the ranks of all columns come first.

    ``theta`` is θ, ``rates`` are the aⱼ, (d,), and ``parts`` the ρ.
    """
    rows, columns, rates = for_loops(points), for_loops(np.transpose(others)), for_loops(rates)
    out = np.empty((len(points), len(others)))
    run_all([partial(_fill, rows[a:b], columns, theta, rates, parts, out[a:b]) for a, b in blocks(len(rows), ROWS_A_TASK)])
    return out


@compiled(fastmath=FAST)
def _fill(rows, columns, theta, rates, parts, out):
    """Compute k of some rows with all columns of the transposed others. The loop over the others vectorises."""
    d = rows.shape[1] // 2
    half, one = 0.5 * theta / (1.0 + theta), (1.0 + 0.5 * theta) / (1.0 + theta)
    squares = np.empty(out.shape[1])
    for i in range(len(rows)):
        line = out[i]
        line[:] = 1.0
        squares[:] = 0.0
        for j in range(d):
            u, s, rate = rows[i, j], rows[i, d + j], rates[j]
            ranks, values = columns[j], columns[d + j]
            for k in range(len(line)):
                square = (s - values[k]) * (s - values[k])
                line[k] *= one - half * abs(u - ranks[k]) + half / (1.0 + square)
                squares[k] += rate * square
        for k in range(len(line)):
            wide = exp_minus(squares[k])
            middle = wide * wide * wide * wide
            line[k] = parts[0] * line[k] + parts[1] * wide + parts[2] * middle + parts[3] * middle * middle * middle * middle
