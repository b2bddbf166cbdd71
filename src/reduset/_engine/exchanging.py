"""Choice of one row per stratum by coordinate descent, so that the sums of the sample come nearest to their goals.

    min |F − Σⱼ wⱼ e(x_{j,t(j)})|²   over the choices t(j).

e(x) holds the Fourier features exp(i 2^r ω·x) on s ladders of frequencies. For each column it also holds the value, its square, and
whether it exceeds each of q limits. A change in one stratum changes the residual by wⱼ times a difference. A sweep over k strata
with t candidates costs O(k·t·s·(d + rungs)), and no matrix of all features is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST, turn
from reduset._engine.compiled import compiled
from reduset._engine.threads import blocks, single_threaded_blas
from reduset._types import Array, Floats, Indices

STRATA_PER_BLOCK, CANDIDATE_ENTRIES = 128, 1 << 17  # entries of a block of candidates
MOMENT_FACTOR = 3.0  # weight of a column's mean and square relative to a Fourier feature


@dataclass(frozen=True)
class ColumnGoals:
    """For c columns: weighted means and spreads, spreads of the squares, and limits (q, c) with the mass at or below each."""

    columns: Indices
    means: Array
    spreads: Array
    square_spreads: Array
    limits: Array
    below: Array

    def moments(self, rows: Floats) -> Array:
        """(…, 2c) standardised values and squares of rows (…, d). The goal of each is 0."""
        c = len(self.columns)
        result = np.empty((*rows.shape[:-1], 2 * c))  # in C order, as the compiled loop requires
        z, squares = result[..., :c], result[..., c:]
        np.subtract(np.take(rows, self.columns, axis=-1), self.means, out=z)
        z /= self.spreads
        np.multiply(z, z, out=squares)
        squares -= 1
        squares /= self.square_spreads
        result *= MOMENT_FACTOR
        return result

    def ranks(self, rows: Floats) -> NDArray[np.int8]:
        """(…, c) the number of limits that each value exceeds."""
        values = rows[..., self.columns]
        result = np.zeros(values.shape, np.int8)
        for limit in self.limits:
            result += values > limit
        return result

    def residuals(self, rows: Floats, weights: Array, total: float) -> tuple[Array, Array]:
        """Goals minus sums over rows (m, d) with these weights: for the moments (2c,), and for the masses at or below the limits
        (q, c)."""
        ranks = self.ranks(rows)
        reached = np.stack([weights @ (ranks <= k) for k in range(len(self.limits))]) if len(self.limits) else self.below
        return -(weights @ self.moments(rows)), np.ascontiguousarray(total * self.below - reached)


def exchange(
    points: Floats,
    candidates: Indices,
    weights: Array,
    angles_of: Callable[[Indices, Floats], Array],
    residual: NDArray[np.complex128],
    goals: ColumnGoals,
    fixed: tuple[Floats, Array],
    sweeps: int,
) -> Indices:
    """(k,) the position of the chosen candidate of each stratum. The search starts from the first candidates.

    Parameters
    ----------
    points : (n, d)
    candidates : (k, t) row numbers, −1 after the last one of a stratum
    weights : (k,)
    angles_of : function of row numbers (r,) and rows (r, d) that returns their angles at the lowest rungs over 2π, (r, s)
    residual : (s, rungs) the goal minus the Fourier sums of the first candidates and of the fixed rows
    goals : of columns, for a total weight of 1
    fixed : rows (f, d) that are always part of the sample, and their weights (f,)
    """
    k, t = candidates.shape
    counts = (candidates >= 0).sum(axis=1)
    chosen = np.zeros(k, np.int64)
    fourier_residual = np.ascontiguousarray(np.stack([residual.real.T, residual.imag.T], axis=1))  # (rungs, 2, s)
    first = np.concatenate([np.asarray(fixed[0], np.float64), np.asarray(points[candidates[:, 0]], np.float64)])
    moment_residual, rank_residual = goals.residuals(
        first, np.concatenate([fixed[1], weights]), float(fixed[1].sum() + weights.sum())
    )
    with single_threaded_blas():
        for _ in range(sweeps):
            before = chosen.copy()
            for a, b in blocks(k, min(STRATA_PER_BLOCK, max(1, CANDIDATE_ENTRIES // (t * points.shape[1])))):
                rows_at = np.maximum(candidates[a:b], 0).ravel()
                rows = np.asarray(points[rows_at], np.float64)
                angles = angles_of(rows_at, rows).reshape(b - a, t, -1)
                rows = rows.reshape(b - a, t, -1)
                features = angles, goals.moments(rows), goals.ranks(rows)
                _exchange(*features, counts[a:b], weights[a:b], chosen[a:b], fourier_residual, moment_residual, rank_residual)
            if np.array_equal(chosen, before):
                break
    return chosen


@compiled(fastmath=FAST)
def _exchange(angles, moments, ranks, counts, weights, chosen, fourier_residual, moment_residual, rank_residual):
    """One sweep over some strata, which updates ``chosen`` and the residuals."""
    rungs, _, s = fourier_residual.shape
    features = np.empty((angles.shape[1], rungs, 2, s))
    for cell in range(len(counts)):
        if counts[cell] < 2:
            continue
        for t in range(counts[cell]):
            for j in range(s):
                cosine, sine = turn(angles[cell, t, j])
                features[t, 0, 0, j] = cosine
                features[t, 0, 1, j] = sine
            for r in range(1, rungs):
                for j in range(s):
                    cosine = features[t, r - 1, 0, j]
                    sine = features[t, r - 1, 1, j]
                    features[t, r, 0, j] = cosine * cosine - sine * sine
                    features[t, r, 1, j] = 2.0 * cosine * sine
        w = weights[cell]
        current = chosen[cell]
        best = current
        least = 0.0
        for t in range(counts[cell]):
            if t == current:
                continue
            change = 0.0
            for r in range(rungs):
                for part in range(2):
                    for j in range(s):
                        step = w * (features[t, r, part, j] - features[current, r, part, j])
                        change += step * (step - 2.0 * fourier_residual[r, part, j])
            for j in range(moments.shape[2]):
                step = w * (moments[cell, t, j] - moments[cell, current, j])
                change += step * (step - 2.0 * moment_residual[j])
            for j in range(ranks.shape[2]):
                # the new value is below these limits, the current one above
                for limit in range(ranks[cell, t, j], ranks[cell, current, j]):
                    change += w * (w - 2.0 * rank_residual[limit, j])
                for limit in range(ranks[cell, current, j], ranks[cell, t, j]):
                    change += w * (w + 2.0 * rank_residual[limit, j])
            if change < least:
                least = change
                best = t
        if best != current:
            for r in range(rungs):
                for part in range(2):
                    for j in range(s):
                        fourier_residual[r, part, j] -= w * (features[best, r, part, j] - features[current, r, part, j])
            for j in range(moments.shape[2]):
                moment_residual[j] -= w * (moments[cell, best, j] - moments[cell, current, j])
            for j in range(ranks.shape[2]):
                for limit in range(ranks[cell, best, j], ranks[cell, current, j]):
                    rank_residual[limit, j] -= w
                for limit in range(ranks[cell, current, j], ranks[cell, best, j]):
                    rank_residual[limit, j] += w
            chosen[cell] = best
