"""What a kernel looks like to the inner loops: coordinates, a metric, and a depth.

Every kernel here is φ = exp(−depth), with a depth ≥ 0 that grows from 0: r²/2 for the Gaussian, r for the Laplacian,
a·log(1 + r²) for the Student. So one loop serves them all: a *gap* t between two points, the family's depth of that gap, exp.

A `Frame` takes points to the coordinates of the loops, z = (x − centre) @ matrix: the bandwidth is divided out, a covariance is
whitened away, and the centre keeps the numbers small, so that a shift of all the data costs no digits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.compiled import compiled
from reduset._engine.cuda.arrays import on_device
from reduset._engine.depths import LINEAR, LOGARITHM, TABLE, depths_at, pulls_at, to_depths
from reduset._engine.gaps import CITYBLOCK, SOFT_CITYBLOCK, SQUARED, gaps_at
from reduset._engine.threads import row_blocks
from reduset._types import Floats

WIDE = 2.0**20  # half the box of the points, in a frame's units, beyond which their middle is no good centre


_NO_TABLE = np.zeros((1, 2))
_NO_TABLE.setflags(write=False)  # like a table: the loops are compiled for one kind of array, with a table or without


@dataclass(frozen=True)
class Profile:
    """A kernel's shape in its own coordinates, φ(0) = 1."""

    metric: int = SQUARED
    family: int = LINEAR
    exponent: float = 1.0
    table: NDArray[np.float64] = field(default_factory=lambda: _NO_TABLE)  # depth and its slope at each knot
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

    def deepening(self, dtype: type) -> tuple[int, float, NDArray[np.float64], float]:
        """What the compiled loops take to turn gaps of this type into depths: an address and the parameters."""
        return depths_at(self.family, dtype), self.exponent, self.table, self.step

    def values(self, dtype: type) -> tuple[int, int, float, NDArray[np.float64], float]:
        """What they take for values of the kernel: the address for gaps, and all for depths."""
        return gaps_at(self.metric, dtype), *self.deepening(dtype)

    def slopes(self, dtype: type) -> tuple[int, int, int, int, float, NDArray[np.float64], float]:
        """What they take for its gradients: the metric, the address for pulls, and all for values."""
        return self.metric, pulls_at(self.family, dtype), *self.values(dtype)

    @property
    def ranking(self) -> int:
        """The metric in which the nearest point is the one of the largest product."""
        return SQUARED if self.metric == SQUARED else CITYBLOCK

    @property
    def slope(self) -> float:
        """How fast rounding of a gap shows in the depth, for the choice of precision (a root's corner is treated apart)."""
        return max(1.0, self.exponent / 4) if self.family == LOGARITHM else 1.0

    @property
    def steepness(self) -> float:
        """The most that the depth grows with a coordinate, where the kernel is above 1e-7."""
        if self.family == LOGARITHM:
            return max(4.0, self.exponent)
        return 8.0 if self.family == LINEAR and self.metric == SQUARED else 4.0

    @property
    def in_single(self) -> bool:
        """Whether the loops have a float32 version of this profile."""
        return self.family != TABLE and self.metric != SOFT_CITYBLOCK

    def to_depths(self, gaps: NDArray[np.float64]) -> None:
        """Turn gaps (t,) into depths, in place, wherever they lie."""
        if on_device(gaps):
            from reduset._engine.cuda import depths as on_card

            on_card.to_depths(gaps, *self.arguments)
        elif self.family != LINEAR:
            _to_depths(*self.deepening(np.float64), gaps)


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
def _to_depths(depths, exponent, table, step, t):
    to_depths(depths, exponent, table, step, t, len(t))


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
