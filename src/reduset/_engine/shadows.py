"""Shadows: in the order of the rows, each point not yet covered becomes a centre and covers all points within a radius.

Points are in leaves, so that a centre visits only the boxes within its radius that still hold uncovered points. O(n·m·d) at worst,
with one float64 copy of the data.

In many dimensions boxes exclude little, and matrix products take their place. A row belongs to the first centre that covers it. So
a block of rows is compared with all centres of earlier blocks by products in single precision, z·c > (|z|² + |c|² − reach)/2. The
remaining rows are compared one by one with the centres of their own block. Where rounding could decide, squared differences are
added in double precision. O(n·m·d), with one copy of the data in the precision of the products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST
from reduset._engine.centre_distances import is_packable, packed_by_threads, varying_columns
from reduset._engine.compiled import compiled
from reduset._engine.distances import SQUARED, distances_at, to_distances
from reduset._engine.leaves import box_distance, build_leaves, copy_point
from reduset._engine.profile import Frame
from reduset._engine.sums import BLAS_FROM
from reduset._engine.threads import blocks, run_all
from reduset._types import Floats

ROWS_A_CALL = 1 << 12


def shadow_centres(
    points: Floats, frame: Frame, radius: float, metric: int, report: Callable[[int, int], None] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The rows of the centres in order, and for every row the number of the centre that covers it.

    A point is covered at a distance below ``radius`` in the frame's coordinates.
    """
    n = len(points)
    if metric == SQUARED and points.shape[1] >= BLAS_FROM and n > 1:
        found = shadows_by_products(points, frame, radius * radius, report)
        if found is not None:
            return found
    leaves = build_leaves(points, frame, np.float64)
    place = np.empty(n, np.int64)
    place[leaves.order] = np.arange(n)
    leaf_of = np.repeat(np.arange(len(leaves.low)), np.diff(leaves.starts))
    waiting = np.diff(leaves.starts)
    owner = np.full(n, -1, np.int32)  # by place
    centres = np.empty(n, np.int64)
    reach = radius * radius if metric == SQUARED else radius
    distances = distances_at(metric, np.float64)
    count = 0
    for start in range(0, n, ROWS_A_CALL):
        stop = min(n, start + ROWS_A_CALL)
        count = _cast(
            leaves.columns, leaves.starts, leaves.low, leaves.high, place, leaf_of, waiting, owner, centres, count, start, stop,
            metric, distances, reach,
        )  # fmt: skip
        if report is not None:
            report(stop, n)
    return centres[:count].copy(), owner[place]


@compiled(fastmath=FAST)
def _cast(columns, starts, low, high, place, leaf_of, waiting, owner, centres, count, first, last, metric, distances, reach):
    d = low.shape[1]
    centre = np.empty(d)
    t = np.empty(np.max(starts[1:] - starts[:-1]))
    for row in range(first, last):
        mine = place[row]
        if owner[mine] >= 0:
            continue
        home = leaf_of[mine]
        copy_point(columns, starts, home, mine, centre)
        centres[count] = row
        for leaf in range(len(low)):
            if waiting[leaf] == 0:
                continue
            if box_distance(metric, low[leaf], high[leaf], centre) >= reach:
                continue
            a = starts[leaf]
            here = starts[leaf + 1] - a
            to_distances(distances, columns, a * d, here, here, centre, t)
            for i in range(here):
                if t[i] < reach and owner[a + i] < 0:
                    owner[a + i] = count
                    waiting[leaf] -= 1
        if owner[mine] < 0:  # a radius below the rounding of zero: the point covers itself
            owner[mine] = count
            waiting[home] -= 1
        count += 1
    return count


ROWS_PER_BLOCK, ROWS_PER_TASK, CENTRES_PER_PRODUCT = 512, 256, 256
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
    for a, b in blocks(n, ROWS_PER_BLOCK):
        known = centres[:count]
        run_all(
            [partial(rows.cover, c, min(c + ROWS_PER_TASK, b), found, known, owner) for c in range(a, b, ROWS_PER_TASK)], blas=True
        )
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
    """Rows about their mean in the precision of the products, half their squared lengths, and what rounding may do to a
    distance."""

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
        for c, e in blocks(len(centres), CENTRES_PER_PRODUCT):
            G = self.values[left] @ centres[c:e].T
            _first(G, left, found[c:e], c, *self.exact, self.halves, self.slack, self.reach, owner)
            left = left[owner[left] < 0]
            if len(left) == 0:
                break


@compiled(fastmath=FAST)
def _is_covered(product, i, j, points, centre, scale, halves, slack, reach):
    """Whether row i is within reach of row j, whose products came close enough to ask."""
    distance = 2 * (halves[i] + halves[j] - product)
    if distance < reach - slack[i]:
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
