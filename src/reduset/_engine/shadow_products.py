"""The shadows of long rows by matrix products: the same centres and owners as one centre after the other, some rows at a time.

A row belongs to the first centre that covers it, so a block of rows is first compared with all centres of the blocks before, by
products of single precision, z·c > (|z|² + |c|² − reach)/2; what is left of it row by row with its own centres. Where rounding
could decide, the squared differences are added in double precision instead. O(n·m·d), one copy of the data in each precision.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST
from reduset._engine.compiled import compiled
from reduset._engine.threads import blocks, run_all
from reduset._types import Floats

ROWS, TASK, CENTRES = 512, 128, 512
UNITS: dict[Any, float] = {np.float32: 2.0**-24, np.float64: 2.0**-53}
CLOSE = 0.25  # of the reach: the most that rounding may leave open


def shadows_by_products(
    Z: NDArray[np.float64], reach: float, report: Callable[[int, int], None] | None
) -> tuple[NDArray[np.int64], NDArray[np.int32]] | None:
    """The rows of the centres, and each row's owner; None where products would cancel too much. ``reach`` is a squared radius."""
    rows = _Rows.of(Z, reach)
    if rows is None:
        return None
    n = len(Z)
    owner = np.full(n, -1, np.int32)
    found = np.empty(n, np.int64)
    count = 0
    for a, b in blocks(n, ROWS):
        run_all([partial(rows.cover, c, min(c + TASK, b), found[:count], owner) for c in range(a, b, TASK)], blas=True)
        waiting = a + np.flatnonzero(owner[a:b] < 0)
        G = np.empty((0, 0), rows.values.dtype)
        if len(waiting):
            run = [partial(_products, rows.values[waiting], out := np.empty((len(waiting),) * 2, rows.values.dtype))]
            run_all(run, blas=True)
            G = out
        count = _among(G, waiting, Z, rows.halves, rows.slack, reach, owner, found, count)
        if report is not None:
            report(b, n)
    return found[:count].copy(), owner


def _products(values: Floats, out: Floats) -> None:
    np.matmul(values, values.T, out=out)


class _Rows:
    """Rows about their mean in the precision of the products, half their squared lengths, and what rounding may do to a gap."""

    def __init__(
        self, Z: NDArray[np.float64], values: Floats, halves: NDArray[np.float64], slack: NDArray[np.float64], reach: float
    ):
        self.exact, self.values, self.halves, self.slack, self.reach = Z, values, halves, slack, reach

    @staticmethod
    def of(Z: NDArray[np.float64], reach: float) -> _Rows | None:
        middle = Z.mean(axis=0)
        squares = np.empty(len(Z))
        for a, b in blocks(len(Z), ROWS):
            squares[a:b] = ((Z[a:b] - middle) ** 2).sum(axis=1)
        largest = float(squares.max())
        for dtype, unit in UNITS.items():
            share = 2.02 * (Z.shape[1] + 6) * unit  # of |z|·|c|: rounding of both, of their products and of the sum of these
            if largest < 1e30 and share * largest <= CLOSE * reach:
                values = np.empty(Z.shape, dtype)
                for a, b in blocks(len(Z), ROWS):
                    values[a:b] = Z[a:b] - middle
                return _Rows(Z, values, squares / 2, share * np.sqrt(squares * largest) + 1e-30, reach)
        return None

    def cover(self, a: int, b: int, centres: NDArray[np.int64], owner: NDArray[np.int32]) -> None:
        """Give the rows a to b to the first of the centres that covers each."""
        left = np.arange(a, b)
        for c, e in blocks(len(centres), CENTRES):
            some = centres[c:e]
            G = self.values[left] @ self.values[some].T
            _first(G, left, some, c, self.exact, self.halves, self.slack, self.reach, owner)
            left = left[owner[left] < 0]
            if len(left) == 0:
                break


@compiled(fastmath=FAST)
def _is_covered(product, i, j, Z, halves, slack, reach):
    """Whether row i is within reach of row j, whose products came close enough to ask."""
    gap = 2 * (halves[i] + halves[j] - product)
    if gap < reach - slack[i]:
        return True
    t = 0.0
    for k in range(Z.shape[1]):
        u = Z[i, k] - Z[j, k]
        t += u * u
    return t < reach


@compiled(fastmath=FAST)
def _first(G, rows, centres, number, Z, halves, slack, reach, owner):
    for r in range(len(rows)):
        i = rows[r]
        least = halves[i] - (reach + slack[i]) / 2
        for c in range(len(centres)):
            j = centres[c]
            if G[r, c] >= least + halves[j] and _is_covered(G[r, c], i, j, Z, halves, slack, reach):
                owner[i] = number + c
                break


@compiled(fastmath=FAST)
def _among(G, rows, Z, halves, slack, reach, owner, found, count):
    """Row after row, those not yet covered become centres; how many there are now."""
    places = np.empty(len(rows), np.int64)
    before = count
    for r in range(len(rows)):
        i = rows[r]
        least = halves[i] - (reach + slack[i]) / 2
        for c in range(count - before):
            j = found[before + c]
            product = G[r, places[c]]
            if product >= least + halves[j] and _is_covered(product, i, j, Z, halves, slack, reach):
                owner[i] = before + c
                break
        if owner[i] < 0:
            places[count - before] = r
            found[count] = i
            owner[i] = count
            count += 1
    return count
