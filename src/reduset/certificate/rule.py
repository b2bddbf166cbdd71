"""The exact probe, by pairs of rows, and the rule that selects a probe.

- `ExactProbe`, up to `EXACT_UP_TO` rows: Σᵢ wᵢ r(xᵢ) − Σ αₗ r(cₗ) with r = f − f_m. Exact up to rounding, O(n²). Errors below the
  rounding are measured by frequencies.
- `FrequencyProbe`, for more rows, if the kernel has a spectrum and angles have digits.
- `RowProbe`, otherwise, and if much of the mass is missing. It uses a sample of rows, O(n·s).

**Rounding of coordinates.** In one frame for all points, a coordinate z is rounded twice, as if its point had been moved by
ρ = 2ε|z|. With v the weights of all kernel functions of f − f_m, the square then changes by at most

    2·L·Σ|v|·Σ|v|ρ,    L the largest slope of g,      and by      2η√square + η²,    η = Σ|v|·‖φ(·, 0) − φ(·, ρ)‖

(each pair by itself; and by the triangle inequality). The smaller bound counts. For data of up to some thousand bandwidths across
it is below the rounding of the sums. One pass over the points, O(n·d).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reduset._engine import cached_property, row_blocks
from reduset._types import Array, Floats
from reduset.certificate.by_frequencies import FrequencyProbe
from reduset.certificate.by_scale import ExactScales, Scales
from reduset.certificate.probe import Measurement, Probe, RowProbe
from reduset.kernels import Kernel, Laplacian, RadialKernel
from reduset.mean import KernelMean
from reduset.mixture import ComponentPieces, Pieces, own_sums_of, sums_of

EXACT_UP_TO = 4096


class ExactProbe(Probe):
    """Exact up to rounding. Errors below the rounding are measured by frequencies, whose rounding is negligible."""

    def __init__(self, mean: KernelMean, finer: FrequencyProbe | None) -> None:
        self._mean, self._finer = mean, finer

    @cached_property
    def _values(self) -> Array:
        """The mean at its rows, computed on first use, because the first steps of a search over scales do not need it."""
        return self._mean.kernel.product_sums(self._mean.atoms, self._mean.weights, self._mean.atoms)

    def scales(self, size: int, rng: np.random.Generator) -> Scales | None:
        if self._finer is None:
            return None
        mean = self._mean  # copied, so that a result keeps no reference to the data of its caller
        copy = KernelMean.unchecked(np.array(mean.atoms), np.array(mean.weights), mean.kernel)
        return ExactScales(copy, self._finer.bandwidths(size))

    def glance(self, atoms: Pieces, weights: Array, kappa: Array) -> Measurement:
        mean = self._mean
        residual = self._values - sums_of(mean.kernel, atoms, weights, mean.atoms)
        at_atoms = kappa - own_sums_of(mean.kernel, atoms, weights)
        square = float(mean.weights @ residual - weights @ at_atoms)
        rounding = 4 * float(np.finfo(np.float64).eps) * float(mean.total + np.abs(weights).sum()) ** 2
        if not isinstance(atoms, ComponentPieces) and are_far(mean.kernel, mean.atoms):
            all_weights = np.concatenate([mean.weights, -weights])
            far = far_square(mean.kernel, np.concatenate([mean.atoms, atoms]), all_weights)
            if far.rounding > rounding:  # frequencies would not help, because their angles are rounded as much
                return replace(far, whole=max(float(mean.weights @ self._values), 0.0))
        # A Laplacian's spectrum has no variance. Drawn frequencies miss most of the error of rows much closer than its bandwidth.
        if self._finer is not None and square < 1e3 * rounding and not isinstance(mean.kernel, Laplacian):
            measurement = self._finer.measure(atoms, weights, kappa)
            self._finer.release()
            return measurement
        return Measurement(max(square, 0.0), max(square - rounding, 0.0), max(square, 0.0) + rounding, "exact")


def probe_for(mean: KernelMean, confidence: float, rng: np.random.Generator) -> Probe:
    """The probe for a mean: exact if it is small, otherwise by frequencies if the kernel has a spectrum, otherwise by rows."""
    finer = FrequencyProbe(mean, confidence, rng) if isinstance(mean.kernel, RadialKernel) else None
    if finer is not None and not finer.resolved:
        finer = None
    if mean.size <= EXACT_UP_TO:
        return ExactProbe(mean, finer)
    return finer or RowProbe(mean, confidence, rng)


def planned_method(mean: KernelMean) -> str:
    """The name in `METHODS` of how errors of approximations to a mean are usually measured."""
    if mean.size <= EXACT_UP_TO:
        return "exact"
    return "frequencies" if isinstance(mean.kernel, RadialKernel) else "rows"


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
