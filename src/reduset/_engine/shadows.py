"""Shadows: in the order of the rows, each point not yet covered becomes a centre and covers all within a radius of it.

Points are in leaves, so that a centre looks only into the boxes within its reach that still hold uncovered points. In many
dimensions boxes are of little use, and products of matrices take their place (`shadow_products`). O(n·m·d) at worst; one float64
copy of the data.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST
from reduset._engine.compiled import compiled
from reduset._engine.gaps import SQUARED, gaps_at, to_gaps
from reduset._engine.leaves import box_gap, build_leaves, copy_point
from reduset._engine.profile import Frame
from reduset._engine.shadow_products import shadows_by_products
from reduset._engine.sums import BLAS_FROM
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
    gaps = gaps_at(metric, np.float64)
    count = 0
    for start in range(0, n, ROWS_A_CALL):
        stop = min(n, start + ROWS_A_CALL)
        count = _cast(
            leaves.columns, leaves.starts, leaves.low, leaves.high, place, leaf_of, waiting, owner, centres, count, start, stop,
            metric, gaps, reach,
        )  # fmt: skip
        if report is not None:
            report(stop, n)
    return centres[:count].copy(), owner[place]


@compiled(fastmath=FAST)
def _cast(columns, starts, low, high, place, leaf_of, waiting, owner, centres, count, first, last, metric, gaps, reach):
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
            if box_gap(metric, low[leaf], high[leaf], centre) >= reach:
                continue
            a = starts[leaf]
            here = starts[leaf + 1] - a
            to_gaps(gaps, columns, a * d, here, here, centre, t)
            for i in range(here):
                if t[i] < reach and owner[a + i] < 0:
                    owner[a + i] = count
                    waiting[leaf] -= 1
        if owner[mine] < 0:  # a radius below the rounding of zero: the point covers itself
            owner[mine] = count
            waiting[home] -= 1
        count += 1
    return count
