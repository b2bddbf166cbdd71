"""Description of a kernel for the compiled loops: coordinates, a metric, a family of exponents, and sufficient precision.

Every kernel is φ = exp(−exponent), with an exponent ≥ 0 that increases from 0: r²/2 for the Gaussian, r for the Laplacian,
a·log(1 + r²) for the Student. One loop computes all of them: the distance t of two points, the family's exponent of t, and exp.

A `Frame` maps points to the coordinates of the loops, z = (x − centre) @ matrix. It divides by the bandwidth and whitens a
covariance. The centre keeps the numbers small, so that a shift of all data costs no digits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reduset._engine.compiled import compiled
from reduset._engine.cuda.arrays import on_device
from reduset._engine.distances import (
    CITYBLOCK,
    LINEAR,
    LOGARITHM,
    SOFT_CITYBLOCK,
    SQUARED,
    TABLE,
    distances_at,
    exponents_at,
    pulls_at,
    to_exponents,
)
from reduset._engine.threads import row_blocks
from reduset._types import Array, Floats

SINGLE_REACH = 128.0  # largest float32 coordinate times the steepness of the profile that gives an accuracy of 1e-5
# largest |z|² · slope before |z|² + |q|² − 2 z·q cancels too many digits
BLAS_REACH: dict[Any, float] = {np.float32: 6.0, np.float64: 1e3}
MIXED_REACH = 1.0  # largest |z|² · slope for products in single precision with an accuracy of 1e-7
MIXED_FROM = 96  # columns from which products in single precision are faster
SINGLE_FLOOR = 1e-7  # of Σ|w|; for smaller results the exponents are large and float32 rounds them too coarsely
MAX_REGISTER_COLUMNS = 64  # largest number of columns that a GPU thread holds in registers
MIN_SINGLE_PAIRS = 1 << 22  # pairs up to which double precision costs no noticeable time


def extent(weights: Any) -> tuple[float, float]:
    """The minimum and maximum weight; constant weights (stride 0) are read once."""
    values = weights[:1] if weights.strides == (0,) else weights
    return float(values.min()), float(values.max())


def takes_single(points: Any, weights: Any, queries: Any, profile: Any) -> bool:
    """Whether single precision may be tried: supported by the profile, weights of one sign, and enough pairs."""
    low, high = extent(weights)
    return profile.in_single and len(points) * len(queries) > MIN_SINGLE_PAIRS and not low < 0 < high  # signed sums cancel


MAX_CENTRED_WIDTH = 2.0**20  # largest half-width of the points' box, in units of the frame, with its middle as the centre


_NO_TABLE = np.zeros((1, 2))
_NO_TABLE.setflags(write=False)  # read-only like a real table, so that loops are compiled once for both


@dataclass(frozen=True)
class Profile:
    """A kernel's shape in its own coordinates, φ(0) = 1."""

    metric: int = SQUARED
    family: int = LINEAR
    exponent: float = 1.0
    table: Array = field(default_factory=lambda: _NO_TABLE)  # exponent and its slope at each knot
    step: float = 1.0

    def __reduce__(self) -> Any:
        return Profile._restored, (self.metric, self.family, self.exponent, self.table, self.step)

    @classmethod
    def _restored(cls, metric: int, family: int, exponent: float, table: Array, step: float) -> Profile:
        table.setflags(write=False)  # see `_NO_TABLE`
        return cls(metric, family, exponent, table, step)

    @property
    def arguments(self) -> tuple[int, int, float, Array, float]:
        """The arguments of GPU kernels: numbers of the metric and the family, and the parameters."""
        return self.metric, self.family, self.exponent, self.table, self.step

    def exponent_arguments(self, dtype: type) -> tuple[int, float, Array, float]:
        """The arguments of loops that convert distances of this type to exponents: an address and the parameters."""
        return exponents_at(self.family, dtype), self.exponent, self.table, self.step

    def value_arguments(self, dtype: type) -> tuple[int, int, float, Array, float]:
        """The arguments of loops for kernel values: the address for distances, then those for exponents."""
        return distances_at(self.metric, dtype), *self.exponent_arguments(dtype)

    def slope_arguments(self, dtype: type) -> tuple[int, int, int, int, float, Array, float]:
        """The arguments of loops for gradients: the metric, the address for pulls, then those for values."""
        return self.metric, pulls_at(self.family, dtype), *self.value_arguments(dtype)

    @property
    def ranking(self) -> int:
        """The metric in which the nearest point has the largest product."""
        return SQUARED if self.metric == SQUARED else CITYBLOCK

    @property
    def slope(self) -> float:
        """The factor from rounding errors of distances to those of exponents. The corner of a root is treated separately."""
        return max(1.0, self.exponent / 4) if self.family == LOGARITHM else 1.0

    @property
    def steepness(self) -> float:
        """The largest slope of the exponent along a coordinate for kernel values above 1e-7."""
        if self.family == LOGARITHM:
            return max(4.0, self.exponent)
        return 8.0 if self.family == LINEAR and self.metric == SQUARED else 4.0

    @property
    def in_single(self) -> bool:
        """Whether the loops have a float32 version of this profile."""
        return self.family != TABLE and self.metric != SOFT_CITYBLOCK

    def to_exponents(self, distances: Array) -> None:
        """Convert distances (t,) to exponents, in place, on any device."""
        if on_device(distances):
            from reduset._engine.cuda.chunks import to_exponents as on_gpu

            on_gpu(distances, *self.arguments)
        elif self.family != LINEAR:
            _to_exponents(*self.exponent_arguments(np.float64), distances)


@dataclass(frozen=True)
class Frame:
    """The linear map into the loops' coordinates: z = (x − centre) @ matrix, or times a number, or one number per column."""

    centre: Array  # (d,)
    matrix: float | Array  # scalar, (d,) or (d, d)

    def apply(self, points: Floats) -> Array:
        """(n, d) points in the loops' coordinates, on their device. Differences are taken before any rounding."""
        if on_device(points) and hasattr(points, "get"):  # a CuPy array; `DevicePoints` are not copied to main memory
            from reduset._engine.cuda.chunks import frame_coordinates

            return frame_coordinates(points, self, np.float64)
        z = np.subtract(points, self.centre, dtype=np.float64, order="C")  # the loops are compiled for C order only
        if np.ndim(self.matrix) < 2:
            z *= self.matrix
            return z
        return z @ self.matrix

    def sized(self, points: Floats) -> tuple[Frame, float]:
        """This frame, or one scaled by a power of 2 so that float32 holds squares, and the factor from its distances to ours."""
        if isinstance(self.matrix, float):
            # One range for all columns is rough, but squares have a wide range, and one pass over flat data is fast.
            reach = (0.5 * float(points.max()) - 0.5 * float(points.min())) * abs(self.matrix)
        else:  # units of columns may differ by many powers of ten
            reach = _reach(points.min(axis=0), points.max(axis=0), self.matrix)
        if reach == 0 or 1e-9 < reach < 1e9:
            return self, 1.0
        unit = float(2.0 ** np.clip(-np.rint(np.log2(reach)), -1000, 1000))
        return Frame(self.centre, self.matrix * unit), 1.0 / unit

    @staticmethod
    def around(points: Floats, matrix: float | Array) -> Frame:
        """A frame centred in the middle of the box of a sample of the points, which keeps the coordinates small.

        If that box is so wide that distant rows would cost the others precision, the centre is the median.
        """
        sample = points[:: max(1, len(points) // 4096)]
        low, high = sample.min(axis=0), sample.max(axis=0)
        middle = low * np.float64(0.5) + high * np.float64(0.5)
        if _reach(low, high, matrix) > MAX_CENTRED_WIDTH:
            # The lower median: a midpoint between two distant values would cost both their digits.
            middle = np.partition(sample, (len(sample) - 1) // 2, axis=0)[(len(sample) - 1) // 2].astype(np.float64)
        return Frame(middle, matrix)


@compiled()
def _to_exponents(exponents, exponent, table, step, t):
    to_exponents(exponents, exponent, table, step, t, len(t))


def _reach(low: Floats, high: Floats, matrix: float | Array) -> float:
    """The largest distance of a box's corners from its middle in any of the coordinates."""
    half = high * np.float64(0.5) - low * np.float64(0.5)
    return float((half * np.abs(matrix) if np.ndim(matrix) < 2 else half @ np.abs(matrix)).max())


def sums_are_exact(points: Floats, frame: Frame, metric: int) -> bool:
    """Whether float32 holds every distance exactly: integers with small enough squares, as in images."""
    if metric != SQUARED or not isinstance(frame.matrix, float) or frame.matrix != 1.0:
        return False
    # Data with other numbers than integers are usually detected in the first block.
    if points.dtype.kind not in "iu" and not all(
        bool(np.all(points[a:b] == np.rint(points[a:b]))) for a, b in row_blocks(points, points.shape[1])
    ):
        return False
    widths = points.max(axis=0).astype(np.float64) - points.min(axis=0).astype(np.float64)
    return float(widths @ widths) < 2**24
