"""One of a few candidate rows of each stratum, exchanged in turn for the one that brings the sample's sums nearest to their goals.

    min |F − Σⱼ wⱼ e(x_{j,t(j)})|²   over the choices t(j),

where e(x) holds waves exp(i 2^r ω·x) on s ladders of frequencies, and for each column its value, its square and whether it exceeds
each of q limits. Coordinate descent: a change in one stratum changes the residual by wⱼ times a difference, so that a sweep over k
strata of t candidates costs O(k·t·s·(d + rungs)), and no matrix of all features is held.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST, turn
from reduset._engine.compiled import compiled
from reduset._engine.threads import blocks, single_threaded_blas
from reduset._types import Array, Floats

STRATA_AT_ONCE, ROOM = 128, 1 << 17  # numbers of a block of candidates
MOMENT_FACTOR = 3.0  # how much more a column's mean and square count than a wave


@dataclass(frozen=True)
class ColumnGoals:
    """Of c columns: the weighted mean and spread, the spread of the squares, and limits (q, c) with the mass at or below each."""

    columns: NDArray[np.int64]
    means: Array
    spreads: Array
    square_spreads: Array
    limits: Array
    below: Array

    def moments(self, rows: Floats) -> Array:
        """(…, 2c) standardised values and squares of rows (…, d), each with a goal of 0."""
        c = len(self.columns)
        found = np.empty((*rows.shape[:-1], 2 * c))  # in C order, for which the loop is compiled
        z, squares = found[..., :c], found[..., c:]
        np.subtract(np.take(rows, self.columns, axis=-1), self.means, out=z)
        z /= self.spreads
        np.multiply(z, z, out=squares)
        squares -= 1
        squares /= self.square_spreads
        found *= MOMENT_FACTOR
        return found

    def ranks(self, rows: Floats) -> NDArray[np.int8]:
        """(…, c) the number of limits that each value exceeds."""
        values = rows[..., self.columns]
        found = np.zeros(values.shape, np.int8)
        for limit in self.limits:
            found += values > limit
        return found

    def residuals(self, rows: Floats, weights: Array, total: float) -> tuple[Array, Array]:
        """What rows (m, d) of given weights lack: of the moments (2c,), and of the masses at or below the limits (q, c)."""
        ranks = self.ranks(rows)
        reached = np.stack([weights @ (ranks <= k) for k in range(len(self.limits))]) if len(self.limits) else self.below
        return -(weights @ self.moments(rows)), np.ascontiguousarray(total * self.below - reached)


def exchange(
    points: Floats,
    candidates: NDArray[np.int64],
    weights: Array,
    angles_of: Callable[[NDArray[np.int64], Floats], Array],
    left: NDArray[np.complex128],
    goals: ColumnGoals,
    fixed: tuple[Floats, Array],
    sweeps: int,
) -> NDArray[np.int64]:
    """(k,) which of its candidates each stratum ends with; the first of each is where it begins.

    Parameters
    ----------
    points : (n, d); candidates : (k, t) rows of them, −1 after the last of a stratum; weights : (k,)
    angles_of : of the numbers and the values of some rows, (r,) and (r, d), their angles at the lowest rungs over 2π, (r, s)
    left : (s, rungs) the goal less the waves of the first candidates and of the fixed rows
    goals : of columns, for a total weight of 1
    fixed : rows (f, d) that stay, and their weights (f,)
    """
    k, t = candidates.shape
    counts = (candidates >= 0).sum(axis=1)
    chosen = np.zeros(k, np.int64)
    waves_left = np.ascontiguousarray(np.stack([left.real.T, left.imag.T], axis=1))  # (rungs, 2, s)
    first = np.concatenate([np.asarray(fixed[0], np.float64), np.asarray(points[candidates[:, 0]], np.float64)])
    moments_left, ranks_left = goals.residuals(first, np.concatenate([fixed[1], weights]), float(fixed[1].sum() + weights.sum()))
    with single_threaded_blas():
        for _ in range(sweeps):
            before = chosen.copy()
            for a, b in blocks(k, min(STRATA_AT_ONCE, max(1, ROOM // (t * points.shape[1])))):
                at = np.maximum(candidates[a:b], 0).ravel()
                rows = np.asarray(points[at], np.float64)
                angles = angles_of(at, rows).reshape(b - a, t, -1)
                rows = rows.reshape(b - a, t, -1)
                features = angles, goals.moments(rows), goals.ranks(rows)
                _exchange(*features, counts[a:b], weights[a:b], chosen[a:b], waves_left, moments_left, ranks_left)
            if np.array_equal(chosen, before):
                break
    return chosen


@compiled(fastmath=FAST)
def _exchange(angles, moments, ranks, counts, weights, chosen, waves_left, moments_left, ranks_left):
    """One sweep over some strata; ``chosen`` and the residuals are changed."""
    rungs, _, s = waves_left.shape
    waves = np.empty((angles.shape[1], rungs, 2, s))
    for cell in range(len(counts)):
        if counts[cell] < 2:
            continue
        for t in range(counts[cell]):
            for j in range(s):
                cosine, sine = turn(angles[cell, t, j])
                waves[t, 0, 0, j] = cosine
                waves[t, 0, 1, j] = sine
            for r in range(1, rungs):
                for j in range(s):
                    cosine = waves[t, r - 1, 0, j]
                    sine = waves[t, r - 1, 1, j]
                    waves[t, r, 0, j] = cosine * cosine - sine * sine
                    waves[t, r, 1, j] = 2.0 * cosine * sine
        w = weights[cell]
        now = chosen[cell]
        best = now
        least = 0.0
        for t in range(counts[cell]):
            if t == now:
                continue
            change = 0.0
            for r in range(rungs):
                for part in range(2):
                    for j in range(s):
                        step = w * (waves[t, r, part, j] - waves[now, r, part, j])
                        change += step * (step - 2.0 * waves_left[r, part, j])
            for j in range(moments.shape[2]):
                step = w * (moments[cell, t, j] - moments[cell, now, j])
                change += step * (step - 2.0 * moments_left[j])
            for j in range(ranks.shape[2]):
                for limit in range(ranks[cell, t, j], ranks[cell, now, j]):  # the new value is below, the old one above
                    change += w * (w - 2.0 * ranks_left[limit, j])
                for limit in range(ranks[cell, now, j], ranks[cell, t, j]):
                    change += w * (w + 2.0 * ranks_left[limit, j])
            if change < least:
                least = change
                best = t
        if best != now:
            for r in range(rungs):
                for part in range(2):
                    for j in range(s):
                        waves_left[r, part, j] -= w * (waves[best, r, part, j] - waves[now, r, part, j])
            for j in range(moments.shape[2]):
                moments_left[j] -= w * (moments[cell, best, j] - moments[cell, now, j])
            for j in range(ranks.shape[2]):
                for limit in range(ranks[cell, best, j], ranks[cell, now, j]):
                    ranks_left[limit, j] -= w
                for limit in range(ranks[cell, now, j], ranks[cell, best, j]):
                    ranks_left[limit, j] += w
            chosen[cell] = best
