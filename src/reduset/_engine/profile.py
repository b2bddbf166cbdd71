"""What the loops know of a kernel: coordinates, a metric, a family of exponents, and the precision that suffices.

Every kernel here is φ = exp(−exponent), with an exponent ≥ 0 that increases from 0: r²/2 for the Gaussian, r for the Laplacian,
a·log(1 + r²) for the Student. One loop serves them all: the distance t of two points, the family's exponent of t, exp.

A `Frame` maps points to the coordinates of the loops, z = (x − centre) @ matrix. It divides by the bandwidth and whitens a
covariance. The centre keeps the numbers small, so that a shift of all data costs no digits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from reduset._types import Floats

SINGLE_REACH = 128.0  # float32 coordinates beyond this, over the steepness of the profile, no longer give 1e-5
BLAS_REACH: dict[Any, float] = {np.float32: 6.0, np.float64: 1e3}  # |z|² · slope beyond this cancels in |z|² + |q|² − 2 z·q
MIXED_REACH = 1.0  # |z|² · slope up to which products in single precision leave distances that are right to 1e-7
MIXED_FROM = 96  # columns: below, products cost no more than what is done with them
SINGLE_FLOOR = 1e-7  # of Σ|w|: below, the exponents are large and float32 rounds them too coarsely
FEW_COLUMNS = 64  # up to which a thread of a GPU holds a row
FEW_PAIRS = 1 << 22  # where double costs nothing that a person would notice


def extent(weights: Any) -> tuple[float, float]:
    """The least and the largest weight; of weights that are one number it is looked at once."""
    some = weights[:1] if weights.strides == (0,) else weights
    return float(some.min()), float(some.max())


def takes_single(points: Any, weights: Any, queries: Any, profile: Any) -> bool:
    """Whether a sum may be tried in single precision: of a profile that has it, of weights of one sign, and worth it."""
    low, high = extent(weights)
    return profile.in_single and len(points) * len(queries) > FEW_PAIRS and not low < 0 < high  # signed sums cancel


WIDE = 2.0**20  # half the box of the points, in a frame's units, beyond which their middle is no good centre


_NO_TABLE = np.zeros((1, 2))
_NO_TABLE.setflags(write=False)  # like a table: the loops are compiled for one kind of array, with a table or without


@dataclass(frozen=True)
class Profile:
    """A kernel's shape in its own coordinates, φ(0) = 1."""

    metric: int = SQUARED
    family: int = LINEAR
    exponent: float = 1.0
    table: NDArray[np.float64] = field(default_factory=lambda: _NO_TABLE)  # exponent and its slope at each knot
    step: float = 1.0

    def __reduce__(self) -> Any:
        return Profile._restored, (self.metric, self.family, self.exponent, self.table, self.step)

    @classmethod
    def _restored(cls, metric: int, family: int, exponent: float, table: NDArray[np.float64], step: float) -> Profile:
        table.setflags(write=False)  # see `_NO_TABLE`
        return cls(metric, family, exponent, table, step)

    @property
    def arguments(self) -> tuple[int, int, float, NDArray[np.float64], float]:
        """What the kernels of a GPU take: numbers of the metric and the family, and the parameters."""
        return self.metric, self.family, self.exponent, self.table, self.step

    def exponent_arguments(self, dtype: type) -> tuple[int, float, NDArray[np.float64], float]:
        """What the compiled loops take to turn distances of this type into exponents: an address and the parameters."""
        return exponents_at(self.family, dtype), self.exponent, self.table, self.step

    def value_arguments(self, dtype: type) -> tuple[int, int, float, NDArray[np.float64], float]:
        """What they take for values of the kernel: the address for distances, and all for exponents."""
        return distances_at(self.metric, dtype), *self.exponent_arguments(dtype)

    def slope_arguments(self, dtype: type) -> tuple[int, int, int, int, float, NDArray[np.float64], float]:
        """What they take for its gradients: the metric, the address for pulls, and all for values."""
        return self.metric, pulls_at(self.family, dtype), *self.value_arguments(dtype)

    @property
    def ranking(self) -> int:
        """The metric in which the nearest point is the one of the largest product."""
        return SQUARED if self.metric == SQUARED else CITYBLOCK

    @property
    def slope(self) -> float:
        """How the rounding of a distance enlarges in the exponent, for the choice of precision; a root's corner is treated
        apart."""
        return max(1.0, self.exponent / 4) if self.family == LOGARITHM else 1.0

    @property
    def steepness(self) -> float:
        """The largest slope of the exponent along a coordinate where the kernel is above 1e-7."""
        if self.family == LOGARITHM:
            return max(4.0, self.exponent)
        return 8.0 if self.family == LINEAR and self.metric == SQUARED else 4.0

    @property
    def in_single(self) -> bool:
        """Whether the loops have a float32 version of this profile."""
        return self.family != TABLE and self.metric != SOFT_CITYBLOCK

    def to_exponents(self, distances: NDArray[np.float64]) -> None:
        """Turn distances (t,) into exponents, in place, wherever they lie."""
        if on_device(distances):
            from reduset._engine.cuda import depths as on_card

            on_card.to_depths(distances, *self.arguments)
        elif self.family != LINEAR:
            _to_exponents(*self.exponent_arguments(np.float64), distances)


@dataclass(frozen=True)
class Frame:
    """The linear map into the loops' coordinates: z = (x − centre) @ matrix, or × a number, or one for each column."""

    centre: NDArray[np.float64]  # (d,)
    matrix: float | NDArray[np.float64]  # scalar, (d,) or (d, d)

    def apply(self, points: Floats) -> NDArray[np.float64]:
        """(n, d) points in the loops' coordinates, where they are; the differences are taken before anything is rounded."""
        if on_device(points) and hasattr(points, "get"):  # an array of CuPy; of rows that only lie there none are brought here
            from reduset._engine.cuda.chunks import placed

            return placed(points, self, np.float64)
        z = np.subtract(points, self.centre, dtype=np.float64, order="C")  # the loops are compiled for one order only
        if np.ndim(self.matrix) < 2:
            z *= self.matrix
            return z
        return z @ self.matrix

    def sized(self, points: Floats) -> tuple[Frame, float]:
        """This frame, or one scaled by a power of 2 to where float32 holds squares; and the factor from its distances to ours."""
        if isinstance(self.matrix, float):
            # one range for all columns: rough, but the squares have room for many powers of ten, and one flat pass is quick
            reach = (0.5 * float(points.max()) - 0.5 * float(points.min())) * abs(self.matrix)
        else:  # columns may be in units that are many powers of ten apart
            reach = _reach(points.min(axis=0), points.max(axis=0), self.matrix)
        if reach == 0 or 1e-9 < reach < 1e9:
            return self, 1.0
        unit = float(2.0 ** np.clip(-np.rint(np.log2(reach)), -1000, 1000))
        return Frame(self.centre, self.matrix * unit), 1.0 / unit

    @staticmethod
    def around(points: Floats, matrix: float | NDArray[np.float64]) -> Frame:
        """A frame centred among the points: in the middle of the box of some of them, which keeps the coordinates small.

        Where that box is so wide that a row far out would cost the others their precision, at the median.
        """
        some = points[:: max(1, len(points) // 4096)]
        low, high = some.min(axis=0), some.max(axis=0)
        middle = low * np.float64(0.5) + high * np.float64(0.5)
        if _reach(low, high, matrix) > WIDE:
            # the lower one where there are two: halfway between a point and one far out, both would lose their digits
            middle = np.partition(some, (len(some) - 1) // 2, axis=0)[(len(some) - 1) // 2].astype(np.float64)
        return Frame(middle, matrix)


@compiled()
def _to_exponents(exponents, exponent, table, step, t):
    to_exponents(exponents, exponent, table, step, t, len(t))


def _reach(low: Floats, high: Floats, matrix: float | NDArray[np.float64]) -> float:
    """How far the corners of a box are from its middle in any of the coordinates, at most."""
    half = high * np.float64(0.5) - low * np.float64(0.5)
    return float((half * np.abs(matrix) if np.ndim(matrix) < 2 else half @ np.abs(matrix)).max())


def sums_are_exact(points: Floats, frame: Frame, metric: int) -> bool:
    """Whether float32 holds every distance exactly: whole numbers with small enough squares, as in images."""
    if metric != SQUARED or not isinstance(frame.matrix, float) or frame.matrix != 1.0:
        return False
    # the first block of data that are not whole numbers says so, and costs nothing
    if points.dtype.kind not in "iu" and not all(
        bool(np.all(points[a:b] == np.rint(points[a:b]))) for a, b in row_blocks(points, points.shape[1])
    ):
        return False
    widths = points.max(axis=0).astype(np.float64) - points.min(axis=0).astype(np.float64)
    return float(widths @ widths) < 2**24
