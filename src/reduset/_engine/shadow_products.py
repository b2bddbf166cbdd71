"""The shadows of long rows by matrix products: the same centres and owners as one centre after the other, some rows at a time.

A row belongs to the first centre that covers it, so a block of rows is first compared with all centres of the blocks before, by
products of single precision, z·c > (|z|² + |c|² − reach)/2; what is left of it row by row with its own centres. Where rounding
could decide, the squared differences are added in double precision instead. O(n·m·d), one copy of the data in that of the products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST
from reduset._engine.compiled import compiled
from reduset._engine.packed import is_packable, packed_by_threads, varying_columns
from reduset._engine.profile import Frame
from reduset._engine.threads import blocks, run_all
from reduset._types import Floats

ROWS, TASK, CENTRES = 512, 256, 256
UNITS: dict[Any, float] = {np.float32: 2.0**-24, np.float64: 2.0**-53}
CLOSE = 0.25  # of the reach: the most that rounding may leave open


def shadows_by_products(
    points: Floats, frame: Frame, reach: float, report: Callable[[int, int], None] | None
) -> tuple[NDArray[np.int64], NDArray[np.int32]] | None:
    """The rows of the centres, and each row's owner; None where products would cancel too much. ``reach`` is a squared radius."""
    rows = _Rows.of(points, frame, reach)
    if rows is None:
        return None
    n = len(points)
    owner = np.full(n, -1, np.int32)
    found = np.empty(n, np.int64)
    count = 0
    centres = np.empty((0, rows.values.shape[1]), rows.values.dtype)
    for a, b in blocks(n, ROWS):
        known = centres[:count]
        run_all([partial(rows.cover, c, min(c + TASK, b), found, known, owner) for c in range(a, b, TASK)], blas=True)
        waiting = a + np.flatnonzero(owner[a:b] < 0)
        G = np.empty((0, 0), rows.values.dtype)
        if len(waiting):
            run = [partial(_products, rows.values[waiting], out := np.empty((len(waiting),) * 2, rows.values.dtype))]
            run_all(run, blas=True)
            G = out
        before, count = count, _among(G, waiting, *rows.exact, rows.halves, rows.slack, reach, owner, found, count)
        if count > len(centres):  # together, so that a product need not gather them again
            centres = np.concatenate([centres[:before], np.empty((2 * count - before, centres.shape[1]), centres.dtype)])
        centres[before:count] = rows.values[found[before:count]]
        if report is not None:
            report(b, n)
    return found[:count].copy(), owner


def _products(values: Floats, out: Floats) -> None:
    np.matmul(values, values.T, out=out)


@dataclass(frozen=True)
class _Rows:
    """Rows about their mean in the precision of the products, half their squared lengths, and what rounding may do to a gap."""

    exact: tuple[Floats, NDArray[np.float64], float]  # points, centre, scale: coordinates in double precision, one by one
    values: Floats  # (n, k) without columns in which no row differs
    halves: NDArray[np.float64]
    slack: NDArray[np.float64]
    reach: float

    @staticmethod
    def of(points: Floats, frame: Frame, reach: float) -> _Rows | None:
        if not is_packable(points, frame):
            points, frame = frame.apply(points), Frame(np.zeros(points.shape[1]), 1.0)
        scale = float(frame.matrix)
        columns = varying_columns(points)
        middle = (points.mean(axis=0, dtype=np.float64) - frame.centre) * scale
        others = np.delete(np.arange(len(middle)), columns)
        middle[others] = ((points[0] - frame.centre) * scale)[others]  # as they are, so that they add nothing to a length
        for dtype, unit in UNITS.items():
            values, squares = packed_by_threads(points, frame, columns, middle, dtype)
            largest = float(squares.max())
            share = 2.02 * (points.shape[1] + 6) * unit  # of |z|·|c|: rounding of both, of their products and of the sum of these
            if largest < 1e30 and share * largest <= CLOSE * reach:
                slack = share * np.sqrt(squares * largest) + 1e-30
                return _Rows((points, frame.centre, scale), values, squares / 2, slack, reach)
        return None

    def cover(self, a: int, b: int, found: NDArray[np.int64], centres: Floats, owner: NDArray[np.int32]) -> None:
        """Give the rows a to b to the first of the centres, the rows ``found`` with these values, that covers each."""
        left = np.arange(a, b)
        for c, e in blocks(len(centres), CENTRES):
            G = self.values[left] @ centres[c:e].T
            _first(G, left, found[c:e], c, *self.exact, self.halves, self.slack, self.reach, owner)
            left = left[owner[left] < 0]
            if len(left) == 0:
                break


@compiled(fastmath=FAST)
def _is_covered(product, i, j, points, centre, scale, halves, slack, reach):
    """Whether row i is within reach of row j, whose products came close enough to ask."""
    gap = 2 * (halves[i] + halves[j] - product)
    if gap < reach - slack[i]:
        return True
    t = 0.0
    for k in range(points.shape[1]):
        u = (points[i, k] - centre[k]) * scale - (points[j, k] - centre[k]) * scale
        t += u * u
    return t < reach


@compiled(fastmath=FAST)
def _first(G, rows, centres, number, points, centre, scale, halves, slack, reach, owner):
    for r in range(len(rows)):
        i = rows[r]
        least = halves[i] - (reach + slack[i]) / 2
        for c in range(len(centres)):
            j = centres[c]
            if G[r, c] >= least + halves[j] and _is_covered(G[r, c], i, j, points, centre, scale, halves, slack, reach):
                owner[i] = number + c
                break


@compiled(fastmath=FAST)
def _among(G, rows, points, centre, scale, halves, slack, reach, owner, found, count):
    """Row after row, those not yet covered become centres; how many there are now."""
    places = np.empty(len(rows), np.int64)
    before = count
    for r in range(len(rows)):
        i = rows[r]
        least = halves[i] - (reach + slack[i]) / 2
        for c in range(count - before):
            j = found[before + c]
            product = G[r, places[c]]
            if product >= least + halves[j] and _is_covered(product, i, j, points, centre, scale, halves, slack, reach):
                owner[i] = before + c
                break
        if owner[i] < 0:
            places[count - before] = r
            found[count] = i
            owner[i] = count
            count += 1
    return count
