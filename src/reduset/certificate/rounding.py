"""What the rounding of coordinates does to ‖f − f_m‖²: of points that are far from a frame's centre few digits are left.

In one frame for all points a coordinate z is rounded twice, as if its point had been moved by ρ = 2ε|z|. With v the weights of all
bumps of f − f_m, the square then changes by at most

    2·L·Σ|v|·Σ|v|ρ,    L the steepest slope of g,      and by      2η√square + η²,    η = Σ|v|·‖φ(·, 0) − φ(·, ρ)‖

(each pair by itself; and by the triangle inequality): the lesser counts. For data of up to some thousand bandwidths across it is
below the rounding of the sums. One pass over the points, O(n·d).
"""

from __future__ import annotations

import numpy as np

from reduset._engine import row_blocks
from reduset._types import Array, Floats
from reduset.certificate.probe import Measurement
from reduset.kernels import Kernel, RadialKernel

FAR = 1e3  # bandwidths: nearer coordinates are rounded by less than the sums
STEEPEST = 1.0  # slope of g in the coordinates of its product, of every family
NEAR = 1e-4  # distance from which on 1 − g has digits; below, ‖φ(·, 0) − φ(·, ρ)‖ of a smooth g is a multiple of ρ
EPS = float(np.finfo(np.float64).eps)


def are_far(kernel: Kernel, points: Floats) -> bool:
    """Whether some points are so far from the others that coordinates are rounded by more than sums are."""
    return isinstance(kernel, RadialKernel) and bool(_lengths(kernel, points).max() > FAR)


def far_square(kernel: Kernel, places: Floats, weights: Array) -> Measurement:
    """‖Σ v φ(·, x)‖² of all bumps together, in one frame, with the width that rounding of the coordinates has."""
    if not isinstance(kernel, RadialKernel):
        raise TypeError("only kernels of a distance have coordinates that are rounded")
    square = float(weights @ kernel.product_sums(places, weights, places))
    magnitudes, moves = np.abs(weights), 2 * EPS * _lengths(kernel, places)
    width = _width(kernel, square, magnitudes, moves, places.shape[1])
    width += 4 * EPS * float(magnitudes.sum()) ** 2  # of the sums
    return Measurement(max(square, 0.0), max(square - width, 0.0), max(square, 0.0) + width, "exact", width)


def _lengths(kernel: RadialKernel, points: Floats) -> Array:
    frame = kernel.frame(points, kernel.product(points.shape[1]))
    with np.errstate(over="ignore"):
        return np.concatenate([np.abs(frame.apply(points[a:b])).sum(axis=1) for a, b in row_blocks(points, points.shape[1])])


def _width(kernel: Kernel, square: float, magnitudes: Array, moves: Array, dimension: int) -> float:
    """How far the square may be off, |v| of all bumps and how far each is moved being given."""
    moves = np.minimum(moves, 1.0)  # a bump that is moved further is another one
    gaps = np.sqrt(2 - 2 * kernel.product_at(np.maximum(moves, NEAR), dimension)) * np.minimum(moves / NEAR, 1.0)
    rough = moves < NEAR
    # a kernel with a corner changes by the root of ρ, which 1 − g shows down to rounding
    gaps[rough] = np.maximum(gaps[rough], np.sqrt(np.maximum(2 - 2 * kernel.product_at(moves[rough], dimension) - 8 * EPS, 0.0)))
    eta = float(magnitudes @ gaps)
    by_pairs = 2 * STEEPEST * float(magnitudes.sum()) * float(magnitudes @ moves)
    return min(by_pairs, 2 * eta * float(np.sqrt(max(square, 0.0)) + eta) + eta**2)
