"""Rows made ready for products of matrices: in the precision of the products, without columns that add nothing, and their lengths.

A column in which all rows agree, as in the margins of images, is 0 in coordinates about it, and a product over the others costs by
so much less. Squared lengths are of all columns, in double precision and before rounding. O(n·d).
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST
from reduset._engine.compiled import compiled
from reduset._engine.profile import Frame
from reduset._engine.threads import row_blocks, run_all
from reduset._types import Floats

Columns = NDArray[np.int64]


def varying_columns(points: Floats) -> Columns:
    """The columns in which not all rows are as the first."""
    constant = np.arange(points.shape[1])
    for a, b in row_blocks(points, points.shape[1]):  # the first blocks leave few columns to look at in the others
        constant = constant[(points[a:b, constant] == points[0, constant]).all(axis=0)]
        if len(constant) == 0:
            break
    return np.delete(np.arange(points.shape[1]), constant)


def is_packable(points: Floats, frame: Frame) -> bool:
    """Whether coordinates can be taken from the points one by one, without a copy of all."""
    return isinstance(frame.matrix, float) and points.dtype.kind == "f" and points.flags.c_contiguous


def packed(
    points: Floats, frame: Frame, columns: Columns, middle: NDArray[np.float64], dtype: type
) -> tuple[Floats, NDArray[np.float64]]:
    """The columns of the frame's coordinates about ``middle``, (n, k), and squared lengths in all columns, (n,)."""
    values: Floats = np.empty((len(points), len(columns)), dtype)
    squares = np.empty(len(points))
    _fill(points, frame, columns, middle, values, squares)
    return values, squares


def packed_by_threads(
    points: Floats, frame: Frame, columns: Columns, middle: NDArray[np.float64], dtype: type
) -> tuple[Floats, NDArray[np.float64]]:
    """The same of many points."""
    values: Floats = np.empty((len(points), len(columns)), dtype)
    squares = np.empty(len(points))
    parts = row_blocks(points, points.shape[1])
    run_all([partial(_fill, points[a:b], frame, columns, middle, values[a:b], squares[a:b]) for a, b in parts])
    return values, squares


def _fill(
    points: Floats, frame: Frame, columns: Columns, middle: NDArray[np.float64], values: Floats, squares: NDArray[np.float64]
) -> None:
    if is_packable(points, frame):
        _pack(points, columns, frame.centre, frame.matrix, middle, values, squares)
    else:
        _pack(frame.apply(points), columns, np.zeros(len(middle)), 1.0, middle, values, squares)


@compiled(fastmath=FAST)
def _pack(points, columns, centre, scale, middle, values, squares):
    u = np.empty(len(middle))
    for i in range(points.shape[0]):
        x = points[i]
        for k in range(len(u)):
            u[k] = (x[k] - centre[k]) * scale - middle[k]
        total = 0.0
        for k in range(len(u)):
            total += u[k] * u[k]
        squares[i] = total
        z = values[i]
        for j in range(len(columns)):
            z[j] = u[columns[j]]
