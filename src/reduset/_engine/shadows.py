"""Shadow selection: in row order, each point not yet covered becomes a centre and covers all points within a radius.

Points are in leaves. A centre visits only the boxes within its radius that still hold uncovered points. O(n·m·d) at worst, with one
float64 copy of the data.

In many dimensions boxes exclude little, and matrix products replace them. A row is assigned to the first centre that covers it. So
a block of rows is compared with all centres of earlier blocks by products in single precision, z·c > (|z|² + |c|² − reach)/2. The
remaining rows are compared one by one with the centres of their own block. If rounding could decide, squared differences are added
in double precision. O(n·m·d), with one copy of the data in the precision of the products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST
from reduset._engine.centre_distances import is_packable, packed, varying_columns
from reduset._engine.compiled import compiled
from reduset._engine.distances import SQUARED, distances_at, to_distances
from reduset._engine.leaves import box_distance, build_leaves, copy_point
from reduset._engine.profile import Frame
from reduset._engine.sums import BLAS_FROM
from reduset._engine.threads import blocks, run_all, single_threaded_blas
from reduset._types import Array, Floats, Indices

ROWS_A_CALL = 1 << 12


def shadow_centres(
    points: Floats, frame: Frame, radius: float, metric: int, report: Callable[[int, int], None] | None = None
) -> tuple[Indices, NDArray[np.int32]]:
    """The rows of the centres in order, and for every row the number of its covering centre.

    A point is covered at a distance below ``radius`` in the frame's coordinates.
    """
    n = len(points)
    if metric == SQUARED and points.shape[1] >= BLAS_FROM and n > 1:
        result = shadows_by_products(points, frame, radius * radius, report)
        if result is not None:
            return result
    leaves = build_leaves(points, frame, np.float64)
    position = np.empty(n, np.int64)
    position[leaves.order] = np.arange(n)
    leaf_of = np.repeat(np.arange(len(leaves.low)), np.diff(leaves.starts))
    waiting = np.diff(leaves.starts)
    assignments = np.full(n, -1, np.int32)  # by position in the leaves
    centres = np.empty(n, np.int64)
    reach = radius * radius if metric == SQUARED else radius
    distances = distances_at(metric, np.float64)
    count = 0
    for start in range(0, n, ROWS_A_CALL):
        stop = min(n, start + ROWS_A_CALL)
        count = _assign_shadows(
            leaves.columns, leaves.starts, leaves.low, leaves.high, position, leaf_of, waiting, assignments, centres,
            count, start, stop, metric, distances, reach,
        )  # fmt: skip
        if report is not None:
            report(stop, n)
    return centres[:count].copy(), assignments[position]


@compiled(fastmath=FAST)
def _assign_shadows(
    columns, starts, low, high, position, leaf_of, waiting, assignments, centres, count, first, last, metric, distances, reach
):
    d = low.shape[1]
    centre = np.empty(d)
    t = np.empty(np.max(starts[1:] - starts[:-1]))
    for row in range(first, last):
        p = position[row]
        if assignments[p] >= 0:
            continue
        own_leaf = leaf_of[p]
        copy_point(columns, starts, own_leaf, p, centre)
        centres[count] = row
        for leaf in range(len(low)):
            if waiting[leaf] == 0:
                continue
            if box_distance(metric, low[leaf], high[leaf], centre) >= reach:
                continue
            a = starts[leaf]
            size = starts[leaf + 1] - a
            to_distances(distances, columns, a * d, size, size, centre, t)
            for i in range(size):
                if t[i] < reach and assignments[a + i] < 0:
                    assignments[a + i] = count
                    waiting[leaf] -= 1
        if assignments[p] < 0:  # with a radius below the rounding of zero, the point covers itself
            assignments[p] = count
            waiting[own_leaf] -= 1
        count += 1
    return count


ROWS_PER_BLOCK, ROWS_PER_TASK, CENTRES_PER_PRODUCT = 512, 256, 256
UNITS: dict[Any, float] = {np.float32: 2.0**-24, np.float64: 2.0**-53}
MAX_OPEN = 0.25  # largest rounding error of products, relative to the squared radius


def shadows_by_products(
    points: Floats, frame: Frame, reach: float, report: Callable[[int, int], None] | None
) -> tuple[Indices, NDArray[np.int32]] | None:
    """The rows of the centres and the assignment of each row; None if products cancel too much. ``reach`` is a squared radius."""
    rows = _Rows.of(points, frame, reach)
    if rows is None:
        return None
    n = len(points)
    assignments = np.full(n, -1, np.int32)
    centre_rows = np.empty(n, np.int64)
    count = 0
    centres = np.empty((0, rows.values.shape[1]), rows.values.dtype)
    for a, b in blocks(n, ROWS_PER_BLOCK):
        earlier = centres[:count]
        run_all(
            [
                partial(rows.cover, c, min(c + ROWS_PER_TASK, b), centre_rows, earlier, assignments)
                for c in range(a, b, ROWS_PER_TASK)
            ],
            blas=True,
        )
        waiting = a + np.flatnonzero(assignments[a:b] < 0)
        with single_threaded_blas():
            open_rows = rows.values[waiting]
            G = open_rows @ open_rows.T  # one array and its transpose: half of the products
        before = count
        count = _choose_in_block(G, waiting, *rows.exact, rows.halves, rows.slack, reach, assignments, centre_rows, before)
        if count > len(centres):  # stored contiguously, so that products need not gather them again
            centres = np.concatenate([centres[:before], np.empty((2 * count - before, centres.shape[1]), centres.dtype)])
        centres[before:count] = rows.values[centre_rows[before:count]]
        if report is not None:
            report(b, n)
    return centre_rows[:count].copy(), assignments


@dataclass(frozen=True)
class _Rows:
    """Rows minus their mean in the precision of the products, half their squared lengths, and rounding errors of squared
    distances."""

    exact: tuple[Floats, Array, float]  # points, centre, scale: for coordinates in double precision, one by one
    values: Floats  # (n, k) without constant columns
    halves: Array
    slack: Array
    reach: float

    @staticmethod
    def of(points: Floats, frame: Frame, reach: float) -> _Rows | None:
        if not is_packable(points, frame):
            points, frame = frame.apply(points), Frame(np.zeros(points.shape[1]), 1.0)
        scale = float(frame.matrix)
        columns = varying_columns(points)
        middle = (points.mean(axis=0, dtype=np.float64) - frame.centre) * scale
        others = np.delete(np.arange(len(middle)), columns)
        middle[others] = ((points[0] - frame.centre) * scale)[others]  # the constant values, so that they add nothing to a length
        for dtype, unit in UNITS.items():
            values, squares = packed(points, frame, columns, middle, dtype, by_threads=True)
            largest = float(squares.max())
            # relative to |z|·|c|: rounding of both, of their products and of the sum
            rounding = 2.02 * (points.shape[1] + 6) * unit
            if largest < 1e30 and rounding * largest <= MAX_OPEN * reach:
                slack = rounding * np.sqrt(squares * largest) + 1e-30
                return _Rows((points, frame.centre, scale), values, squares / 2, slack, reach)
        return None

    def cover(self, a: int, b: int, centre_rows: Indices, centres: Floats, assignments: NDArray[np.int32]) -> None:
        """Assign the rows a to b to the first of the centres that covers them."""
        uncovered = np.arange(a, b)
        for c, e in blocks(len(centres), CENTRES_PER_PRODUCT):
            G = self.values[uncovered] @ centres[c:e].T
            _assign_first(G, uncovered, centre_rows[c:e], c, *self.exact, self.halves, self.slack, self.reach, assignments)
            uncovered = uncovered[assignments[uncovered] < 0]
            if len(uncovered) == 0:
                break


@compiled(fastmath=FAST)
def _is_covered(product, i, j, points, centre, scale, halves, slack, reach):
    """Whether row i is within reach of row j, for products close to the limit."""
    distance = 2 * (halves[i] + halves[j] - product)
    if distance < reach - slack[i]:
        return True
    t = 0.0
    for k in range(points.shape[1]):
        u = (points[i, k] - centre[k]) * scale - (points[j, k] - centre[k]) * scale
        t += u * u
    return t < reach


@compiled(fastmath=FAST)
def _assign_first(G, rows, centres, number, points, centre, scale, halves, slack, reach, assignments):
    for r in range(len(rows)):
        i = rows[r]
        least = halves[i] - (reach + slack[i]) / 2
        for c in range(len(centres)):
            j = centres[c]
            if G[r, c] >= least + halves[j] and _is_covered(G[r, c], i, j, points, centre, scale, halves, slack, reach):
                assignments[i] = number + c
                break


@compiled(fastmath=FAST)
def _choose_in_block(G, rows, points, centre, scale, halves, slack, reach, assignments, centre_rows, count):
    """In row order, uncovered rows become centres; return the new number of centres."""
    positions = np.empty(len(rows), np.int64)
    before = count
    for r in range(len(rows)):
        i = rows[r]
        least = halves[i] - (reach + slack[i]) / 2
        for c in range(count - before):
            j = centre_rows[before + c]
            product = G[r, positions[c]]
            if product >= least + halves[j] and _is_covered(product, i, j, points, centre, scale, halves, slack, reach):
                assignments[i] = before + c
                break
        if assignments[i] < 0:
            positions[count - before] = r
            centre_rows[count] = i
            assignments[i] = count
            count += 1
    return count
