"""Kernel values, one block of rows at a time: computed, used and discarded, in memory O(block).

**Many bandwidths at once.** The distances of a block of rows to the others are computed once and serve every bandwidth, because a
distance in other units is the distance times a factor. In many dimensions ten bandwidths cost little more than one. O(n·m·d) for
the distances, O(n·m) for each bandwidth. As functions Σⱼ Aⱼₖ φ(cⱼ, ·) for all k at once, O(n·m·p) for p functions.

**Histograms of distances.** A radial kernel depends on distances only. So Σᵢ wᵢ φ(|xᵢ − q|/h) for any number of bandwidths is a sum
over the histogram of the distances from q. Its bins follow the floating-point format, 2⁵ per octave, so that a shift of bits finds
a bin without a logarithm. A point's weight is split between the two ends of its bin. Every function that is linear within the bins
is therefore exact. The relative error of exp(−t) is at most (t/2⁵)²/8 up to t = 24, and its logarithm is off by at most 2⁻⁵
everywhere. O(n·q·d) time, O(q · bins) memory.

**A product over columns plus Gaussians over whole rows**, for explanations of models:

    k(x, y) = ρ₀ Πⱼ (1 + θ kⱼ(xⱼ, yⱼ)) / (1 + θ) + ρ₁ e + ρ₂ e⁴ + ρ₃ e¹⁶

    kⱼ = ½ (1 − |uⱼ − vⱼ|) + ½ / (1 + (sⱼ − tⱼ)²),     e = exp(−Σⱼ aⱼ (sⱼ − tⱼ)²)

Rows hold two coordinates per column: a rank u in [0, 1] and a scaled value s. Expanded, the product is a sum over all subsets of
columns. A subset of p columns contributes the product of its kernels with the factor θᵖ (an analysis-of-variance kernel: Stitson et
al. 1999). e, e⁴ and e¹⁶ are Gaussians of whole rows. Each has half the bandwidth of the one before, and all share one exponential.
O(n·m·d); k(x, x) = Σ ρ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST, exp_minus
from reduset._engine.cached import cached_property
from reduset._engine.centre_distances import Centres
from reduset._engine.compiled import compiled, for_loops, row
from reduset._engine.device import uses_gpu
from reduset._engine.distances import CITYBLOCK, SQUARED, distances_at, to_distances, to_exponents
from reduset._engine.passes import add, over_blocks
from reduset._engine.profile import MAX_REGISTER_COLUMNS, Frame, Profile
from reduset._engine.sums import gram
from reduset._engine.threads import blocks, run_all, single_threaded_blas
from reduset._types import Array, Floats, Indices

GRAM_ENTRIES, MAX_GRAM_ROWS, MIN_GRAM_ROWS, GRAM_ROWS_PER_TASK = 1 << 21, 1024, 64, 128

Matrix = Array
UseGram = Callable[[int, int, int, Matrix], None]  # (bandwidth index, first row, last row + 1, matrix of these rows)

ENTRIES, MAX_ROWS, MIN_ROWS = 1 << 19, 512, 32
MIN_TASKS, MIN_TASK_ROWS = 8, 128  # least number of tasks, to occupy the threads, unless tasks had fewer rows than this

BITS = 5  # of the mantissa, as part of the bin index
SHIFT = 23 - BITS
OCTAVES = 30  # on both sides of 1
FIRST_BIN = (127 - OCTAVES) << BITS  # bin of the least distance, from its bits as float32
BINS = (2 * OCTAVES) << BITS
POINTS_PER_BLOCK = 1 << 11  # points
QUERIES_TASK = 32

COLUMNWISE_ROWS = 64  # in a task


@compiled(fastmath=FAST)
def _value_matrix(distances, factor, exponents, exponent, table, step, out):
    """Values from distances times a factor; ``out`` may be ``distances``."""
    for i in range(distances.shape[0]):
        g = row(distances, i)
        t = row(out, i)
        for j in range(len(t)):
            t[j] = factor * g[j]
        to_exponents(exponents, exponent, table, step, t, len(t))
        for j in range(len(t)):
            t[j] = exp_minus(t[j])


def gram_blocks(points: Floats, others: Floats, frame: Frame, profile: Profile, stretches: Sequence[float], use: UseGram) -> None:
    """Pass φ(xᵢ, yⱼ), in coordinates stretched by each of ``stretches``, to ``use``, one block of points at a time."""
    rows = min(MAX_GRAM_ROWS, max(MIN_GRAM_ROWS, GRAM_ENTRIES // len(others)))
    shared = profile.metric in (SQUARED, CITYBLOCK)  # other metrics do not scale with the coordinates
    units = [1.0] if shared else list(stretches)
    power = 2 if profile.metric == SQUARED else 1
    arguments = profile.exponent_arguments(np.float64)
    centres = [Centres(others, frame, profile, unit, max(stretches)) for unit in units]
    for a, b in blocks(len(points), rows):
        distances = np.empty((len(units), b - a, len(others)))
        values = np.empty((len(stretches), b - a, len(others)))
        parts = blocks(b - a, GRAM_ROWS_PER_TASK)
        with single_threaded_blas():
            run_all(
                [
                    partial(_fill_distances, centres[u], points[a + c : a + e], distances[u, c:e])
                    for u in range(len(units))
                    for c, e in parts
                ]
            )
            tasks = []
            for s, stretch in enumerate(stretches):
                u, factor = (0, stretch**power) if shared else (s, 1.0)
                tasks += [partial(_value_matrix, distances[u, c:e], factor, *arguments, values[s, c:e]) for c, e in parts]
            run_all(tasks)
            run_all([partial(use, s, a, b, values[s]) for s in range(len(stretches))])


def _fill_distances(centres: Centres, points: Floats, out: Matrix) -> None:
    out[:] = centres.distances(points)


class KernelMaps:
    """The functions Σⱼ Aⱼₖ φ(cⱼ, ·), k = 1 … p, for successive blocks of points.

    ``coefficients`` are A, (m, p). ``single`` allows distances with errors of about 1e-7.
    """

    def __init__(self, centres: Floats, coefficients: Array, frame: Frame, profile: Profile, single: bool = False) -> None:
        self._centres, self._coefficients, self._frame, self._profile = centres, coefficients, frame, profile
        self._single = single

    @cached_property
    def _near(self) -> Centres:
        return Centres(self._centres, self._frame, self._profile, single=self._single)

    @cached_property
    def _rounded(self) -> _Rounded:
        return _Rounded(self._coefficients, self._near)

    def at(self, points: Floats, rows: Indices | None = None) -> Array:
        """(n, p) values at the points, or at these rows."""
        if uses_gpu(points, self._centres, points.shape[1] <= MAX_REGISTER_COLUMNS):
            selected = points if rows is None else points[rows]
            return np.asarray(gram(selected, self._centres, self._frame, self._profile) @ self._coefficients)
        near, count = self._near, len(points if rows is None else rows)
        out = np.empty((count, self._coefficients.shape[1]))

        def task(a: int, b: int) -> None:
            distances = near.distances(points[a:b] if rows is None else points[rows[a:b]])
            if distances.dtype == np.float32:
                self._rounded.map(distances, out[a:b])
            else:
                _value_matrix(distances, 1.0, *self._profile.exponent_arguments(np.float64), distances)
                np.matmul(distances, self._coefficients, out=out[a:b])

        run_all([partial(task, a, b) for a, b in _row_tasks(count, self._centres)], blas=True)
        return out


class _Rounded:
    """Coefficients in single precision for values φ − φ₀. Subtracting φ₀ makes the values and their rounding errors small."""

    def __init__(self, coefficients: Array, near: Centres) -> None:
        self._unit = float(np.abs(coefficients).max(initial=0.0)) or 1.0  # scaled to avoid the limited range of float32
        self._coefficients = (coefficients / self._unit).astype(np.float32)
        self._level = float(np.exp(-near.typical))
        self._sums = self._level * coefficients.sum(axis=0)

    def map(self, distances: NDArray[np.float32], out: Array) -> None:
        _to_rounded_values(distances, self._level)
        np.multiply(distances @ self._coefficients, self._unit, out=out)
        out += self._sums


def product_matrix(points: Floats, centres: Floats, frame: Frame, profile: Profile, single: bool = False) -> Array:
    """The matrix φ(xᵢ, cⱼ), (n, m). It equals `gram` up to rounding, since distances come from products in many dimensions.

    For points with themselves (the same array) half of it is computed. ``single`` allows distances with errors of about 1e-7.
    """
    if uses_gpu(points, centres, points.shape[1] <= MAX_REGISTER_COLUMNS):
        return gram(points, centres, frame, profile)
    out = np.empty((len(points), len(centres)))
    near = Centres(centres, frame, profile, single=single)
    symmetric = points is centres

    def task(a: int, b: int) -> None:
        first = a if symmetric else 0
        distances = near.distances(points[a:b], first)
        if distances.dtype == np.float32:
            _to_values_in_double(distances, out[a:b, first:])
        else:
            _value_matrix(distances, 1.0, *profile.exponent_arguments(np.float64), distances)
            out[a:b, first:] = distances
        if symmetric:
            out[b:, a:b] = out[a:b, b:].T

    run_all([partial(task, a, b) for a, b in _row_tasks(len(points), centres)], blas=True)
    return out


def _row_tasks(count: int, centres: Floats) -> list[tuple[int, int]]:
    max_rows = min(MAX_ROWS, max(MIN_ROWS, ENTRIES // len(centres)))
    return blocks(count, min(max_rows, max(MIN_TASK_ROWS, -(-count // MIN_TASKS))))


@compiled(fastmath=FAST)
def _to_rounded_values(distances, level):
    """For family LINEAR in single precision, in place: values minus ``level``, rounded once."""
    for i in range(distances.shape[0]):
        t = distances[i]
        for j in range(len(t)):
            t[j] = exp_minus(np.float64(t[j])) - level


@compiled(fastmath=FAST)
def _to_values_in_double(distances, out):
    """The same, stored in double precision."""
    for i in range(distances.shape[0]):
        for j in range(distances.shape[1]):
            out[i, j] = exp_minus(np.float64(distances[i, j]))


def distance_nodes() -> Array:
    """The distances at the ends of the bins, (BINS + 1,)."""
    return ((FIRST_BIN + np.arange(BINS + 1)) << SHIFT).astype(np.int32).view(np.float32).astype(np.float64)


@over_blocks(add)
def distance_histograms(points: Floats, weights: Floats, queries: Floats, frame: Frame, metric: int) -> Array:
    """The weight at each of the `distance_nodes` for each query, (q, BINS + 1). Distances out of range are clipped."""
    out = np.zeros((len(queries), BINS + 1))
    Q = frame.apply(queries)
    distances = distances_at(metric, np.float64)
    for a, b in blocks(len(points), 1 << 16):
        Z = np.ascontiguousarray(frame.apply(points[a:b]).T)
        w = for_loops(weights[a:b])
        run_all([partial(_count_distances, Z, w, Q[c:e], distances, out[c:e]) for c, e in blocks(len(Q), QUERIES_TASK)])
    return out


@compiled(fastmath=FAST)
def _count_distances(Z, weights, Q, distances, out):
    n = Z.shape[1]
    low = np.float32(2.0**-OCTAVES)
    high = np.float32(2.0**OCTAVES * (1 - 2.0**-20))
    unit = np.float64(1.0 / (1 << SHIFT))
    mask = (1 << SHIFT) - 1
    distance = np.empty(POINTS_PER_BLOCK)
    clipped = np.empty(POINTS_PER_BLOCK, np.float32)
    bits = clipped.view(np.int32)
    for a in range(0, n, POINTS_PER_BLOCK):
        b = min(n, a + POINTS_PER_BLOCK)
        for k in range(len(Q)):
            to_distances(distances, Z, a, n, b - a, row(Q, k), distance)
            for i in range(b - a):
                clipped[i] = min(max(np.float32(distance[i]), low), high)
            counts = row(out, k)
            for i in range(b - a):
                index = (bits[i] >> SHIFT) - FIRST_BIN
                upper = weights[a + i] * ((bits[i] & mask) * unit)
                counts[index] += weights[a + i] - upper
                counts[index + 1] += upper


def columnwise_gram(points: Floats, others: Floats, theta: float, rates: Floats, parts: tuple[float, float, float, float]) -> Array:
    """(n, m) k(xᵢ, yⱼ) of rows (n, 2d) and (m, 2d); the ranks of all columns come first.

    ``theta`` is θ, ``rates`` are the aⱼ, (d,), and ``parts`` the ρ.
    """
    rows, columns, rates = for_loops(points), for_loops(np.transpose(others)), for_loops(rates)
    out = np.empty((len(points), len(others)))
    tasks = blocks(len(rows), COLUMNWISE_ROWS)
    run_all([partial(_fill_columnwise, rows[a:b], columns, theta, rates, parts, out[a:b]) for a, b in tasks])
    return out


@compiled(fastmath=FAST)
def _fill_columnwise(rows, columns, theta, rates, parts, out):
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
