"""Kernel values, one block of rows at a time: for many bandwidths at once, and as functions Σⱼ Aⱼₖ φ(cⱼ, ·) for all k at once.

The distances of a block of rows to the others are computed once and serve every bandwidth, because a distance in other units is the
distance times a factor. In many dimensions ten bandwidths cost little more than one. O(n·m·d) for the distances, O(n·m) for each
bandwidth and O(n·m·p) for p functions. Memory O(block): values are computed, used and discarded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST, exp_minus
from reduset._engine.cached import cached_property
from reduset._engine.centre_distances import Centres
from reduset._engine.compiled import compiled, row
from reduset._engine.device import uses_gpu
from reduset._engine.distances import CITYBLOCK, SQUARED, to_exponents
from reduset._engine.profile import MAX_REGISTER_COLUMNS, Frame, Profile
from reduset._engine.sums import gram
from reduset._engine.threads import blocks, run_all, single_threaded_blas
from reduset._types import Floats

GRAM_ENTRIES, MAX_GRAM_ROWS, MIN_GRAM_ROWS, GRAM_ROWS_PER_TASK = 1 << 21, 1024, 64, 128

Matrix = NDArray[np.float64]
UseGram = Callable[[int, int, int, Matrix], None]  # (bandwidth index, first row, last row + 1, matrix of these rows)


@compiled(fastmath=FAST)
def _value_matrix(distances, factor, exponents, exponent, table, step, out):
    for i in range(distances.shape[0]):
        g = row(distances, i)
        t = row(out, i)
        for j in range(len(t)):
            t[j] = factor * g[j]
        if exponents != 0:
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


ENTRIES, MAX_ROWS, MIN_ROWS = 1 << 19, 512, 32
MIN_TASKS, MIN_TASK_ROWS = 8, 128  # least number of tasks, to occupy the threads, unless tasks had fewer rows than this


class KernelMaps:
    """The functions Σⱼ Aⱼₖ φ(cⱼ, ·), k = 1 … p, for successive blocks of points.

    ``coefficients`` are A, (m, p). ``single`` allows distances with errors of about 1e-7.
    """

    def __init__(
        self, centres: Floats, coefficients: NDArray[np.float64], frame: Frame, profile: Profile, single: bool = False
    ) -> None:
        self._centres, self._coefficients, self._frame, self._profile = centres, coefficients, frame, profile
        self._single = single

    @cached_property
    def _near(self) -> Centres:
        return Centres(self._centres, self._frame, self._profile, single=self._single)

    @cached_property
    def _rounded(self) -> _Rounded:
        return _Rounded(self._coefficients, self._near)

    def at(self, points: Floats, rows: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
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
                _to_values(distances, *self._profile.exponent_arguments(np.float64))
                np.matmul(distances, self._coefficients, out=out[a:b])

        run_all([partial(task, a, b) for a, b in _row_tasks(count, self._centres)], blas=True)
        return out


class _Rounded:
    """Coefficients in single precision for values φ − φ₀. Subtracting φ₀ makes the values and their rounding errors small."""

    def __init__(self, coefficients: NDArray[np.float64], near: Centres) -> None:
        self._unit = float(np.abs(coefficients).max(initial=0.0)) or 1.0  # scaled to avoid the limited range of float32
        self._coefficients = (coefficients / self._unit).astype(np.float32)
        self._level = float(np.exp(-near.typical))
        self._sums = self._level * coefficients.sum(axis=0)

    def map(self, distances: NDArray[np.float32], out: NDArray[np.float64]) -> None:
        _to_rounded_values(distances, self._level)
        np.multiply(distances @ self._coefficients, self._unit, out=out)
        out += self._sums


def product_matrix(points: Floats, centres: Floats, frame: Frame, profile: Profile, single: bool = False) -> NDArray[np.float64]:
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
            _to_values(distances, *profile.exponent_arguments(np.float64))
            out[a:b, first:] = distances
        if symmetric:
            out[b:, a:b] = out[a:b, b:].T

    run_all([partial(task, a, b) for a, b in _row_tasks(len(points), centres)], blas=True)
    return out


def _row_tasks(count: int, centres: Floats) -> list[tuple[int, int]]:
    max_rows = min(MAX_ROWS, max(MIN_ROWS, ENTRIES // len(centres)))
    return blocks(count, min(max_rows, max(MIN_TASK_ROWS, -(-count // MIN_TASKS))))


@compiled(fastmath=FAST)
def _to_values(distances, exponents, exponent, table, step):
    """Convert distances to values, in place."""
    for i in range(distances.shape[0]):
        t = row(distances, i)
        if exponents != 0:
            to_exponents(exponents, exponent, table, step, t, len(t))
        for j in range(len(t)):
            t[j] = exp_minus(t[j])


@compiled(fastmath=FAST)
def _to_rounded_values(distances, level):
    """The same for family LINEAR in single precision: values minus ``level``, rounded once."""
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
