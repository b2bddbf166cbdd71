"""Fourier sums Σᵢ wᵢ exp(i ω·xᵢ) for many frequencies ω: the characteristic function of a weighted sample.

Frequencies form ladders ω, 2ω, 4ω, …. The first rung needs a sine and a cosine per point, each further rung doubles the angle.
O(n·s·(d + rungs)) time for s ladders, O(block) memory. All sums are float64, because the certificate subtracts two of them.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST, turn
from reduset._engine.compiled import compiled, inner
from reduset._engine.device import uses_gpu
from reduset._engine.passes import add, over_blocks
from reduset._engine.profile import Frame
from reduset._engine.threads import blocks, row_blocks, run_all
from reduset._types import Array, Floats

TILE = 512
BLAS_FROM = 24
BLAS_ROWS = 512


@over_blocks(add)
def fourier_sums(
    points: Floats,
    weights: Floats,
    frequencies: Array,
    frame: Frame,
    rungs: int = 1,
    late: Array | None = None,
    release: int = 0,
    in_turn: bool = False,
) -> NDArray[np.complex128]:
    """Σᵢ wᵢ exp(i (2^j ω + η_j)·zᵢ) for each frequency ω and rung j, (s, rungs), with zᵢ the coordinates of point i in the frame.

    Parameters
    ----------
    points : (n, d); weights : (n,); frequencies : (s, d) in the frame's coordinates
    late : (s, d) additional frequencies η_j = 2^max(0, j − release) η, which double only from the rung ``release``; none by default
    in_turn : use one thread, for callers that have several
    """
    if uses_gpu(points, frequencies):
        from reduset._engine.cuda.fourier import fourier_sums as on_gpu

        return on_gpu(points, weights, frequencies, frame, rungs, late, release)
    slow = np.zeros((len(frequencies), 0)) if late is None else late
    rows = row_blocks(points, points.shape[1])
    part = np.zeros((len(rows), len(frequencies), rungs, 2))
    by_blas = points.shape[1] >= BLAS_FROM
    task = _blas_task if by_blas else _tile_task
    tasks = [
        partial(task, points[a:b], weights[a:b], frequencies[c:e], slow[c:e], release, frame, part[k, c:e])
        for k, (a, b) in enumerate(rows)
        for c, e in blocks(len(frequencies), 256)
    ]
    run_all(tasks, in_turn, blas=by_blas)
    return np.ascontiguousarray(part.sum(axis=0)).view(np.complex128)[..., 0]


def _tile_task(points, w, frequencies, slow, release, frame, out):
    Z = np.ascontiguousarray(frame.apply(points).T)
    _fourier_tiles(Z, w.astype(np.float64), frequencies / (2 * np.pi), slow / (2 * np.pi), release, out)


def _blas_task(points, w, frequencies, slow, release, frame, out):
    w = w.astype(np.float64)
    for a, b in blocks(len(points), BLAS_ROWS):
        Z = frame.apply(points[a:b]).T
        late = _in_turns(slow, Z) if slow.shape[1] else np.empty((len(slow), 0))
        _fourier_rows(_in_turns(frequencies, Z), late, release, w[a:b], out)


def _in_turns(frequencies, Z):
    """(s, n) angles over 2π. The products are divided, because in many columns the frequencies are the larger array."""
    angles = frequencies @ Z
    angles /= 2 * np.pi
    return angles


@njit(inline="always")
def _angles(Z, start, stop, turns, t):
    """t[i] = the angle, in turns, of column start + i of Z (d, n)."""
    d = Z.shape[0]
    a = Z[0, start:stop]
    u = turns[0]
    for i in range(len(a)):
        t[i] = u * a[i]
    j = 1
    while j + 1 < d:
        a = Z[j, start:stop]
        b = Z[j + 1, start:stop]
        u = turns[j]
        v = turns[j + 1]
        for i in range(len(a)):
            t[i] += u * a[i] + v * b[i]
        j += 2
    if j < d:
        a = Z[j, start:stop]
        u = turns[j]
        for i in range(len(a)):
            t[i] += u * a[i]


@compiled(fastmath=FAST)
def _fourier_tiles(Z, w, turns, slow, release, out):
    n = Z.shape[1]
    t, sine, late, late_sine = np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    for start in range(0, n, TILE):
        stop = min(n, start + TILE)
        for k in range(len(turns)):
            _angles(Z, start, stop, turns[k], t)
            if slow.shape[1] > 0:
                _angles(Z, start, stop, slow[k], late)
                _add_delayed_rungs(t, sine, late, late_sine, release, w[start:stop], out[k])
            else:
                _add_rungs(t, sine, w[start:stop], out[k])


@compiled(fastmath=FAST)
def _fourier_rows(T, S, release, w, out):
    sine, late_sine = np.empty(T.shape[1]), np.empty(T.shape[1])
    for k in range(T.shape[0]):
        if S.shape[1] > 0:
            _add_delayed_rungs(T[k], sine, S[k], late_sine, release, w, out[k])
        else:
            _add_rungs(T[k], sine, w, out[k])


@inner(fastmath=FAST)
def _add_rungs(t, sine, w, out):
    """Add the Fourier features of the angles t (in turns) and of their doublings; t is overwritten."""
    real = 0.0
    imaginary = 0.0
    for i in range(len(w)):
        c, s = turn(t[i])
        t[i] = c
        sine[i] = s
        real += w[i] * c
        imaginary += w[i] * s
    out[0, 0] += real
    out[0, 1] += imaginary
    for j in range(1, len(out)):
        real = 0.0
        imaginary = 0.0
        for i in range(len(w)):
            c = t[i]
            s = sine[i]
            t[i] = c * c - s * s
            sine[i] = 2.0 * c * s
            real += w[i] * t[i]
            imaginary += w[i] * sine[i]
        out[j, 0] += real
        out[j, 1] += imaginary


@inner(fastmath=FAST)
def _add_delayed_rungs(t, sine, late, late_sine, release, w, out):
    """The same, with each feature rotated by a second angle that doubles only after the rung ``release``."""
    for i in range(len(w)):
        c, s = turn(late[i])
        late[i] = c
        late_sine[i] = s
        c, s = turn(t[i])
        t[i] = c
        sine[i] = s
    for j in range(len(out)):
        real = 0.0
        imaginary = 0.0
        for i in range(len(w)):
            c = t[i]
            s = sine[i]
            real += w[i] * (c * late[i] - s * late_sine[i])
            imaginary += w[i] * (c * late_sine[i] + s * late[i])
            t[i] = c * c - s * s
            sine[i] = 2.0 * c * s
        if j >= release:
            for i in range(len(w)):
                c = late[i]
                s = late_sine[i]
                late[i] = c * c - s * s
                late_sine[i] = 2.0 * c * s
        out[j, 0] += real
        out[j, 1] += imaginary
