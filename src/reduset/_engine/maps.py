"""Functions Σⱼ Aⱼₖ φ(cⱼ, ·) of few centres at many points, all k at once: kernel values are made, used and left by the block.

From `sums.BLAS_FROM` dimensions on the gaps come from a matrix product. O(n·m·(d + p)), O(block) memory.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from reduset._engine.addresses import row
from reduset._engine.arithmetic import FAST, exp_minus
from reduset._engine.cached import cached_property
from reduset._engine.centre_gaps import Centres
from reduset._engine.compiled import compiled
from reduset._engine.depths import to_depths
from reduset._engine.device import goes_to_card
from reduset._engine.precision import FEW_COLUMNS
from reduset._engine.profile import Frame, Profile
from reduset._engine.sums import gram
from reduset._engine.threads import blocks, run_all
from reduset._types import Floats

ENTRIES, MOST_ROWS, LEAST_ROWS = 1 << 19, 512, 32
PARTS, SHORT = 8, 128  # into at least so many, unless these had fewer rows, so that threads have something to share


class KernelMaps:
    """The functions Σⱼ Aⱼₖ φ(cⱼ, ·), k = 1 … p, for one block of points after the other.

    ``coefficients`` are A, (m, p). ``single`` where gaps that are right to 1e-7 will do.
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
        """(n, p) values at the points, or at these rows of them."""
        if goes_to_card(points, self._centres, points.shape[1] <= FEW_COLUMNS):
            some = points if rows is None else points[rows]
            return np.asarray(gram(some, self._centres, self._frame, self._profile) @ self._coefficients)
        near, count = self._near, len(points if rows is None else rows)
        out = np.empty((count, self._coefficients.shape[1]))

        def task(a: int, b: int) -> None:
            gap = near.gaps(points[a:b] if rows is None else points[rows[a:b]])
            if gap.dtype == np.float32:
                self._rounded.map(gap, out[a:b])
            else:
                _to_values(gap, *self._profile.deepening(np.float64))
                np.matmul(gap, self._coefficients, out=out[a:b])

        run_all([partial(task, a, b) for a, b in _shares(count, self._centres)], blas=True)
        return out


class _Rounded:
    """Coefficients in single precision, for values φ − φ₀: what is rounded of them is as small as they are."""

    def __init__(self, coefficients: NDArray[np.float64], near: Centres) -> None:
        self._unit = float(np.abs(coefficients).max(initial=0.0)) or 1.0  # float32 has few powers of ten
        self._coefficients = (coefficients / self._unit).astype(np.float32)
        self._level = float(np.exp(-near.typical))
        self._sums = self._level * coefficients.sum(axis=0)

    def map(self, gap: NDArray[np.float32], out: NDArray[np.float64]) -> None:
        _to_rounded_values(gap, self._level)
        np.multiply(gap @ self._coefficients, self._unit, out=out)
        out += self._sums


def product_matrix(points: Floats, centres: Floats, frame: Frame, profile: Profile, single: bool = False) -> NDArray[np.float64]:
    """The matrix φ(xᵢ, cⱼ), (n, m), as `gram` but for the rounding of its gaps, which come from products in many dimensions.

    Of points with themselves (the same array) half of it is computed. ``single`` where gaps that are right to 1e-7 will do.
    """
    if goes_to_card(points, centres, points.shape[1] <= FEW_COLUMNS):
        return gram(points, centres, frame, profile)
    out = np.empty((len(points), len(centres)))
    near = Centres(centres, frame, profile, single=single)
    symmetric = points is centres

    def task(a: int, b: int) -> None:
        first = a if symmetric else 0
        gap = near.gaps(points[a:b], first)
        if gap.dtype == np.float32:
            _to_values_in_double(gap, out[a:b, first:])
        else:
            _to_values(gap, *profile.deepening(np.float64))
            out[a:b, first:] = gap
        if symmetric:
            out[b:, a:b] = out[a:b, b:].T

    run_all([partial(task, a, b) for a, b in _shares(len(points), centres)], blas=True)
    return out


def _shares(count: int, centres: Floats) -> list[tuple[int, int]]:
    most = min(MOST_ROWS, max(LEAST_ROWS, ENTRIES // len(centres)))
    return blocks(count, min(most, max(SHORT, -(-count // PARTS))))


@compiled(fastmath=FAST)
def _to_values(gap, depths, exponent, table, step):
    """Turn gaps into values, in place."""
    for i in range(gap.shape[0]):
        t = row(gap, i)
        if depths != 0:
            to_depths(depths, exponent, table, step, t, len(t))
        for j in range(len(t)):
            t[j] = exp_minus(t[j])


@compiled(fastmath=FAST)
def _to_rounded_values(gap, level):
    """The same of gaps of the family LINEAR in single precision, about a level and rounded once."""
    for i in range(gap.shape[0]):
        t = gap[i]
        for j in range(len(t)):
            t[j] = exp_minus(np.float64(t[j])) - level


@compiled(fastmath=FAST)
def _to_values_in_double(gap, out):
    """The same, not rounded again."""
    for i in range(gap.shape[0]):
        for j in range(gap.shape[1]):
            out[i, j] = exp_minus(np.float64(gap[i, j]))
