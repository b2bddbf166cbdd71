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
from reduset.mixture.pieces import Pieces

if TYPE_CHECKING:
    from reduset.certificate.by_scale import Scales


@dataclass(frozen=True)
class Measurement:
    """A squared distance and the ends of its confidence interval.

    Where points are so far apart that their coordinates are rounded by more than sums are, ``rounding`` is what that may do to the
    square, and ``whole`` is ‖f‖²: the weights are then not the best, and energy and residual do not add up to it.
    """

    square: float
    low: float
    high: float
    method: str
    rounding: float = 0.0
    whole: float | None = None

    @classmethod
    def within(cls, square: float, width: float, method: str) -> Measurement:
        """An estimate with as much on either side; squares are not negative."""
        return cls(max(square, 0.0), max(square - width, 0.0), max(square + width, 0.0), method)

    def plus(self, exact: float) -> Measurement:
        """After adding an amount that is known exactly."""
        return Measurement(self.square + exact, self.low + exact, self.high + exact, self.method, self.rounding, self.whole)


class Probe(ABC):
    """Prepared for one mean."""

    @abstractmethod
    def glance(self, atoms: Pieces, weights: Array, kappa: Array) -> Measurement:
        """A quick estimate, without another pass over the data."""

    def scales(self, size: int, rng: np.random.Generator) -> Scales | None:
        """What is known of the mean at every scale, for compressions to ``size`` atoms; None where nothing is."""
        return None

    def measure(self, atoms: Pieces, weights: Array, kappa: Array) -> Measurement:
        """The estimate that a certificate states; by default the quick one is all there is."""
        return self.glance(atoms, weights, kappa)


FAR_FROM_CENTRE = 1e3  # bandwidths: nearer coordinates are rounded by less than the sums
LARGEST_SLOPE = 1.0  # slope of g in the coordinates of its product, of every family
SMOOTH_UP_TO = 1e-4  # distance from which on 1 − g has digits; below, ‖φ(·, 0) − φ(·, ρ)‖ of a smooth g is a multiple of ρ
EPS = float(np.finfo(np.float64).eps)


def are_far(kernel: Kernel, points: Floats) -> bool:
    """Whether some points are so far from the others that coordinates are rounded by more than sums are."""
    return isinstance(kernel, RadialKernel) and bool(_lengths(kernel, points).max() > FAR_FROM_CENTRE)


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
    gaps = np.sqrt(2 - 2 * kernel.product_at(np.maximum(moves, SMOOTH_UP_TO), dimension)) * np.minimum(moves / SMOOTH_UP_TO, 1.0)
    rough = moves < SMOOTH_UP_TO
    # a kernel with a corner changes by the root of ρ, which 1 − g shows down to rounding
    gaps[rough] = np.maximum(gaps[rough], np.sqrt(np.maximum(2 - 2 * kernel.product_at(moves[rough], dimension) - 8 * EPS, 0.0)))
    eta = float(magnitudes @ gaps)
    by_pairs = 2 * LARGEST_SLOPE * float(magnitudes.sum()) * float(magnitudes @ moves)
    return min(by_pairs, 2 * eta * float(np.sqrt(max(square, 0.0)) + eta) + eta**2)
