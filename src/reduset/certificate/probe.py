"""Probes: the measured distance ‖f − f_m‖² of a large mean f to a small one f_m, with a confidence interval.

The difference ‖f‖² − αᵀκ of two nearly equal numbers loses all digits, and ‖f‖² costs n². Each probe avoids both. It is prepared
once for f and is then inexpensive for every f_m. A new probe is a class with `glance` (and `measure`, if it has a better estimate),
and a line in `reduset.certificate.rule`, which selects the probe. All kernel functions are scaled to norm 1.

**Rounding of coordinates.** In one frame for all points, a coordinate z is rounded twice, as if its point had been moved by
ρ = 2ε|z|. With v the weights of all kernel functions of f − f_m, the square then changes by at most

    2·L·Σ|v|·Σ|v|ρ,    L the largest slope of g,      and by      2η√square + η²,    η = Σ|v|·‖φ(·, 0) − φ(·, ρ)‖

(each pair by itself; and by the triangle inequality). The smaller bound counts. For data of up to some thousand bandwidths across
it is below the rounding of the sums. One pass over the points, O(n·d).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reduset._engine import row_blocks
from reduset._types import Array, Floats
from reduset.kernels import Kernel, RadialKernel
from reduset.mixture import Pieces

if TYPE_CHECKING:
    from reduset.certificate.by_scale import Scales


@dataclass(frozen=True)
class Measurement:
    """A squared distance and the ends of its confidence interval.

    ``rounding`` and ``whole`` are set if points are so far apart that coordinates are rounded by more than sums are. ``rounding``
    then bounds the effect on the square and ``whole`` is ‖f‖². The weights are then not the best, so that energy and residual do
    not add up to ‖f‖².
    """

    square: float
    low: float
    high: float
    method: str
    rounding: float = 0.0
    whole: float | None = None

    @classmethod
    def within(cls, square: float, width: float, method: str) -> Measurement:
        """An estimate with a symmetric interval, cut off at 0."""
        return cls(max(square, 0.0), max(square - width, 0.0), max(square + width, 0.0), method)

    def plus(self, exact: float) -> Measurement:
        """The measurement after adding an exactly known amount."""
        return Measurement(self.square + exact, self.low + exact, self.high + exact, self.method, self.rounding, self.whole)


class Probe(ABC):
    """A way to measure the distance of one large mean to small means."""

    @abstractmethod
    def glance(self, atoms: Pieces, weights: Array, kappa: Array) -> Measurement:
        """A quick estimate, without another pass over the data."""

    def scales(self, size: int, rng: np.random.Generator) -> Scales | None:
        """The errors at every scale for compressions to ``size`` atoms; None if they cannot be measured."""
        return None

    def measure(self, atoms: Pieces, weights: Array, kappa: Array) -> Measurement:
        """The estimate that a certificate states; by default the quick estimate."""
        return self.glance(atoms, weights, kappa)


FAR_FROM_CENTRE = 1e3  # bandwidths; closer to the centre, coordinates are rounded by less than sums are
LARGEST_SLOPE = 1.0  # slope of g in the coordinates of its product, for every family
SMALLEST_DISTANCE = 1e-4  # below it 1 − g has no digits, and ‖φ(·, 0) − φ(·, ρ)‖ of a smooth g is proportional to ρ
EPS = float(np.finfo(np.float64).eps)


def are_far(kernel: Kernel, points: Floats) -> bool:
    """Whether some points are so far from the centre that coordinates are rounded by more than sums are."""
    return isinstance(kernel, RadialKernel) and bool(_lengths(kernel, points).max() > FAR_FROM_CENTRE)


def far_square(kernel: Kernel, points: Floats, weights: Array) -> Measurement:
    """‖Σ v φ(·, x)‖² of all kernel functions in one frame. The interval covers the rounding of the coordinates."""
    if not isinstance(kernel, RadialKernel):
        raise TypeError(f"the rounding of coordinates is only known for kernels of a distance, got {kernel!r}")
    square = float(weights @ kernel.product_sums(points, weights, points))
    magnitudes, moves = np.abs(weights), 2 * EPS * _lengths(kernel, points)
    width = _width(kernel, square, magnitudes, moves, points.shape[1])
    width += 4 * EPS * float(magnitudes.sum()) ** 2  # the rounding of the sums
    return Measurement(max(square, 0.0), max(square - width, 0.0), max(square, 0.0) + width, "exact", width)


def _lengths(kernel: RadialKernel, points: Floats) -> Array:
    frame = kernel.frame(points, kernel.product(points.shape[1]))
    with np.errstate(over="ignore"):
        return np.concatenate([np.abs(frame.apply(points[a:b])).sum(axis=1) for a, b in row_blocks(points, points.shape[1])])


def _width(kernel: Kernel, square: float, magnitudes: Array, moves: Array, dimension: int) -> float:
    """The largest change of the square, from |v| of all kernel functions and the distance by which each is moved."""
    moves = np.minimum(moves, 1.0)  # a kernel function that is moved further counts as a different one
    changes = np.sqrt(2 - 2 * kernel.product_at(np.maximum(moves, SMALLEST_DISTANCE), dimension))
    changes *= np.minimum(moves / SMALLEST_DISTANCE, 1.0)
    close = moves < SMALLEST_DISTANCE
    # A kernel with a corner changes by the root of ρ, which 1 − g shows down to rounding.
    rough = np.sqrt(np.maximum(2 - 2 * kernel.product_at(moves[close], dimension) - 8 * EPS, 0.0))
    changes[close] = np.maximum(changes[close], rough)
    eta = float(magnitudes @ changes)
    by_pairs = 2 * LARGEST_SLOPE * float(magnitudes.sum()) * float(magnitudes @ moves)
    return min(by_pairs, 2 * eta * float(np.sqrt(max(square, 0.0)) + eta) + eta**2)
