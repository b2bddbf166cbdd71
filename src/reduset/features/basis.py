"""Orthonormal functions on the cube: products of cosines, or of sines and cosines, one an axis.

    "cosine"   1, √2 cos πkx          the natural one without a period: no jump at the faces
    "fourier"  1, √2 cos 2πkx, √2 sin 2πkx   of the paper's theory, for periodic densities

    "values"   none: the values at the nodes themselves, of which there are more, and nothing is cut off

All products of the first n an axis up to three dimensions, those of total degree below n above: C(n − 1 + d, d) instead of nᵈ.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array

VALUES = "values"
BASES = ("cosine", "fourier", VALUES)
MOST_TENSOR, MOST_DIMENSION = 3, 6
POINTS_AT_ONCE = 64  # whose products a processor has at hand while they grow


def along_axis(x: Array, count: int, kind: str) -> Array:
    """(len(x), count) values of the first functions of one axis."""
    orders = np.arange(count)
    if kind == "cosine":
        values = np.cos(np.pi * np.outer(x, orders))
    else:
        angles = 2 * np.pi * np.outer(x, (orders + 1) // 2)
        values = np.where(orders % 2 == 1, np.cos(angles), np.sin(angles))
        values[:, 0] = 1.0
    values[:, 1:] *= np.sqrt(2.0)
    return values


@cache
def indices(dimension: int, count: int) -> NDArray[np.int64]:
    """(|V|, d) which function of each axis enters each product."""
    every = product(range(count), repeat=dimension)
    if dimension <= MOST_TENSOR:
        return np.array(list(every), dtype=np.int64)
    return _below(dimension, count)


def _below(dimension: int, count: int) -> NDArray[np.int64]:
    """All index vectors of sum below ``count``."""
    if dimension == 1:
        return np.arange(count)[:, None]
    parts = []
    for first in range(count):
        rest = _below(dimension - 1, count - first)
        parts.append(np.column_stack([np.full(len(rest), first), rest]))
    return np.concatenate(parts)


def at_points(points: Array, count: int, kind: str) -> Array:
    """(n, |V|) values of all products at points of the cube."""
    axes = [along_axis(column, count, kind) for column in points.T]
    steps = _growing(len(axes), count)
    out = np.empty((len(points), len(steps[-1][0])))
    for a in range(0, len(points), POINTS_AT_ONCE):
        rows = slice(a, a + POINTS_AT_ONCE)
        block = np.ones((len(out[rows]), 1))
        for values, (begun, last) in zip(axes, steps, strict=True):
            block = block[:, begun] * values[rows][:, last]
        out[rows] = block
    return out


@cache
def _growing(dimension: int, count: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """How products grow by an axis at a time: for each over the first axes the shorter one it begins with, and the new function."""
    steps = []
    for axis in range(dimension):
        longer = np.unique(indices(dimension, count)[:, : axis + 1], axis=0)
        begun = np.unique(longer[:, :-1], axis=0, return_inverse=True)[1] if axis else np.zeros(len(longer), np.int64)
        steps.append((begun.ravel(), longer[:, -1]))
    return steps
