"""Which of a few rows of each cell: exchanged one after the other for the one that brings the sum of waves nearest to its goal.

    min |F − Σⱼ wⱼ e(x_{j,t(j)})|²,   e(x) = exp(i 2^r ω·x) on s ladders of frequencies ω, 2ω, 4ω, …,   over the choices t(j)

by coordinates: a change in one cell changes the rest by wⱼ times a difference of two waves, so that a sweep over k cells of t rows
costs O(k·t·s·(d + rungs)), and no matrix of all waves is held.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST, turn
from reduset._engine.blas import single_threaded_blas
from reduset._engine.compiled import compiled
from reduset._engine.profile import Frame
from reduset._engine.threads import blocks
from reduset._types import Array, Floats

CELLS_A_TIME = 128


def exchange(
    points: Floats,
    candidates: NDArray[np.int64],
    weights: Array,
    frequencies: Array,
    frame: Frame,
    left: NDArray[np.complex128],
    sweeps: int,
) -> NDArray[np.int64]:
    """(k,) which of its candidates each cell ends with; the first of each is where it begins.

    Parameters
    ----------
    points : (n, d); candidates : (k, t) rows of them, −1 after the last of a cell; weights : (k,)
    frequencies : (s, d) the lowest rungs, in the frame's coordinates
    left : (s, rungs) the goal less the waves of the first candidates and of all else
    """
    k, t = candidates.shape
    counts = (candidates >= 0).sum(axis=1)
    chosen = np.zeros(k, np.int64)
    turns = frequencies.T / (2 * np.pi)
    rest = np.ascontiguousarray(np.stack([left.real.T, left.imag.T], axis=1))  # (rungs, 2, s)
    with single_threaded_blas():
        for _ in range(sweeps):
            before = chosen.copy()
            for a, b in blocks(k, CELLS_A_TIME):
                rows = np.maximum(candidates[a:b], 0).ravel()
                angles = (frame.apply(points[rows]) @ turns).reshape(b - a, t, -1)
                _exchange(angles, counts[a:b], weights[a:b], chosen[a:b], rest)
            if np.array_equal(chosen, before):
                break
    return chosen


@compiled(fastmath=FAST)
def _exchange(angles, counts, weights, chosen, rest):
    """One sweep over some cells; ``chosen`` and ``rest`` are changed."""
    rungs, _, s = rest.shape
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
                        change += step * (step - 2.0 * rest[r, part, j])
            if change < least:
                least = change
                best = t
        if best != now:
            for r in range(rungs):
                for part in range(2):
                    for j in range(s):
                        rest[r, part, j] -= w * (waves[best, r, part, j] - waves[now, r, part, j])
            chosen[cell] = best
