"""Kernel matrices of one block of rows after the other, for many bandwidths at once.

The distances of a block of rows to the others are found once and serve every bandwidth: a gap in other units is the gap times a
factor. In many dimensions, where the distances cost more than the exponentials, ten bandwidths then cost little more than one.

O(n·m·d) for the gaps and O(n·m) a bandwidth, O(block) memory. What is done with a matrix is the caller's ``use``: for one bandwidth
it is called in the order of the rows and never twice at a time, so that it may add up, and the number of threads changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reduset._engine.addresses import row
from reduset._engine.arithmetic import FAST, exp_minus
from reduset._engine.blas import single_threaded_blas
from reduset._engine.centre_gaps import Centres
from reduset._engine.compiled import compiled
from reduset._engine.depths import to_depths
from reduset._engine.gaps import CITYBLOCK, SQUARED
from reduset._engine.profile import Frame, Profile
from reduset._engine.threads import blocks, run_all
from reduset._types import Floats

ENTRIES, MOST_ROWS, LEAST_ROWS, PART = 1 << 21, 1024, 64, 128

Matrix = NDArray[np.float64]
UseGram = Callable[[int, int, int, Matrix], None]  # (which bandwidth, first row, last row + 1, the matrix of these rows)


@compiled(fastmath=FAST)
def _value_matrix(gap, factor, depths, exponent, table, step, out):
    for i in range(gap.shape[0]):
        g = row(gap, i)
        t = row(out, i)
        for j in range(len(t)):
            t[j] = factor * g[j]
        if depths != 0:
            to_depths(depths, exponent, table, step, t, len(t))
        for j in range(len(t)):
            t[j] = exp_minus(t[j])


def gram_blocks(points: Floats, others: Floats, frame: Frame, profile: Profile, stretches: Sequence[float], use: UseGram) -> None:
    """Hand the matrices φ(xᵢ, yⱼ) in coordinates stretched by each of ``stretches`` to ``use``, block by block of the points."""
    rows = min(MOST_ROWS, max(LEAST_ROWS, ENTRIES // len(others)))
    shared = profile.metric in (SQUARED, CITYBLOCK)  # in other units any other metric is no multiple of itself
    units = [1.0] if shared else list(stretches)
    power = 2 if profile.metric == SQUARED else 1
    deepening = profile.deepening(np.float64)
    centres = [Centres(others, frame, profile, unit, max(stretches)) for unit in units]
    for a, b in blocks(len(points), rows):
        gap = np.empty((len(units), b - a, len(others)))
        values = np.empty((len(stretches), b - a, len(others)))
        parts = blocks(b - a, PART)
        with single_threaded_blas():
            run_all([partial(_put, centres[u], points[a + c : a + e], gap[u, c:e]) for u in range(len(units)) for c, e in parts])
            tasks = []
            for s, stretch in enumerate(stretches):
                u, factor = (0, stretch**power) if shared else (s, 1.0)
                tasks += [partial(_value_matrix, gap[u, c:e], factor, *deepening, values[s, c:e]) for c, e in parts]
            run_all(tasks)
            run_all([partial(use, s, a, b, values[s]) for s in range(len(stretches))])


def _put(centres: Centres, points: Floats, out: Matrix) -> None:
    out[:] = centres.gaps(points)
