"""Functions Σⱼ Aⱼₖ φ(cⱼ, ·) of few centres at many points, all k at once: kernel values are made, used and left by the block.

From `sums.BLAS_FROM` dimensions on the gaps come from a matrix product. O(n·m·(d + p)), O(block) memory.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from reduset._engine.addresses import row
from reduset._engine.arithmetic import FAST, exp_minus
from reduset._engine.compiled import compiled
from reduset._engine.depths import to_depths
from reduset._engine.device import goes_to_card
from reduset._engine.precision import FEW_COLUMNS
from reduset._engine.profile import Frame, Profile
from reduset._engine.sums import gram
from reduset._engine.sweep import gap_filler
from reduset._engine.threads import blocks, run_all
from reduset._types import Floats

ENTRIES, MOST_ROWS, LEAST_ROWS = 1 << 18, 512, 32


def kernel_maps(
    points: Floats, centres: Floats, coefficients: NDArray[np.float64], frame: Frame, profile: Profile
) -> NDArray[np.float64]:
    """Σⱼ φ(xᵢ, cⱼ) Aⱼₖ, (n, p); ``coefficients`` are A, (m, p)."""
    if goes_to_card(points, centres, points.shape[1] <= FEW_COLUMNS):
        return np.asarray(gram(points, centres, frame, profile) @ coefficients)
    out = np.empty((len(points), coefficients.shape[1]))
    fill = gap_filler(centres, frame, profile, 1.0, 1.0)

    def task(a: int, b: int) -> None:
        values = np.empty((b - a, len(centres)))
        fill(points[a:b], values)
        _to_values(values, *profile.deepening(np.float64))
        np.matmul(values, coefficients, out=out[a:b])

    run_all([partial(task, a, b) for a, b in _shares(points, centres)], blas=True)
    return out


def product_matrix(points: Floats, centres: Floats, frame: Frame, profile: Profile) -> NDArray[np.float64]:
    """The matrix φ(xᵢ, cⱼ), (n, m), as `gram` but for the rounding of its gaps, which come from products in many dimensions."""
    if goes_to_card(points, centres, points.shape[1] <= FEW_COLUMNS):
        return gram(points, centres, frame, profile)
    out = np.empty((len(points), len(centres)))
    fill = gap_filler(centres, frame, profile, 1.0, 1.0)

    def task(a: int, b: int) -> None:
        fill(points[a:b], out[a:b])
        _to_values(out[a:b], *profile.deepening(np.float64))

    run_all([partial(task, a, b) for a, b in _shares(points, centres)], blas=True)
    return out


def _shares(points: Floats, centres: Floats) -> list[tuple[int, int]]:
    return blocks(len(points), min(MOST_ROWS, max(LEAST_ROWS, ENTRIES // len(centres))))


@compiled(fastmath=FAST)
def _to_values(gap, depths, exponent, table, step):
    """Turn gaps into values, in place."""
    for i in range(gap.shape[0]):
        t = row(gap, i)
        if depths != 0:
            to_depths(depths, exponent, table, step, t, len(t))
        for j in range(len(t)):
            t[j] = exp_minus(t[j])
