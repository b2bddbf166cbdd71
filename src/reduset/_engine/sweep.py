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
from reduset._engine.compiled import compiled
from reduset._engine.depths import to_depths
from reduset._engine.gaps import CITYBLOCK, SQUARED, gaps_at, to_gaps
from reduset._engine.precision import BLAS_REACH
from reduset._engine.profile import Frame, Profile
from reduset._engine.sums import BLAS_FROM
from reduset._engine.threads import blocks, run_all
from reduset._engine.tiles import gap_rows
from reduset._types import Floats

ENTRIES, MOST_ROWS, LEAST_ROWS, PART = 1 << 21, 1024, 64, 128

Matrix = NDArray[np.float64]
UseGram = Callable[[int, int, int, Matrix], None]  # (which bandwidth, first row, last row + 1, the matrix of these rows)


@compiled(fastmath=FAST)
def _gap_matrix(P, Z, gaps, out):
    n = Z.shape[1]
    for i in range(P.shape[0]):
        to_gaps(gaps, Z, 0, n, n, row(P, i), row(out, i))


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
    fill = [gap_filler(others, frame, profile, unit, max(stretches)) for unit in units]
    for a, b in blocks(len(points), rows):
        gap = np.empty((len(units), b - a, len(others)))
        values = np.empty((len(stretches), b - a, len(others)))
        parts = blocks(b - a, PART)
        with single_threaded_blas():
            run_all([partial(fill[u], points[a + c : a + e], gap[u, c:e]) for u in range(len(units)) for c, e in parts])
            tasks = []
            for s, stretch in enumerate(stretches):
                u, factor = (0, stretch**power) if shared else (s, 1.0)
                tasks += [partial(_value_matrix, gap[u, c:e], factor, *deepening, values[s, c:e]) for c, e in parts]
            run_all(tasks)
            run_all([partial(use, s, a, b, values[s]) for s in range(len(stretches))])


def gap_filler(others: Floats, frame: Frame, profile: Profile, unit: float, widest: float) -> Callable[[Floats, Matrix], None]:
    """A function that fills in the gaps of some points to the others, both in coordinates of the frame times ``unit``."""
    Y = frame.apply(others) * unit
    columns = np.ascontiguousarray(Y.T)
    squares = np.einsum("ij,ij->i", Y, Y)
    by_blas = profile.metric == SQUARED and Y.shape[1] >= BLAS_FROM

    def fill(points: Floats, out: Matrix) -> None:
        P = frame.apply(points) * unit
        lengths = np.einsum("ij,ij->i", P, P)
        # what |p|² + |y|² − 2 p·y cancels is magnified by the widest stretch
        reach = max(float(lengths.max()), float(squares.max())) * widest**2 * profile.slope
        if by_blas and reach <= BLAS_REACH[np.float64]:
            np.matmul(P, columns, out=out)
            gap_rows(out, Y, squares, P, lengths, profile.family)
        else:
            _gap_matrix(P, columns, gaps_at(profile.metric, np.float64), out)

    return fill
