"""What a kernel looks like to the inner loops: coordinates, a metric, and a depth.

Every kernel here is φ = exp(−depth), with a depth ≥ 0 that grows from 0: r²/2 for the Gaussian, r for the Laplacian,
a·log(1 + r²) for the Student. So one loop serves them all: a *gap* t between two points, the family's depth of that gap, exp.

A `Frame` takes points to the coordinates of the loops, z = (x − centre) @ matrix: the bandwidth is divided out, a covariance is
whitened away, and the centre keeps the numbers small, so that a shift of all the data costs no digits.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from reduset._engine.arithmetic import FAST, log_of
from reduset._engine.compiled import compiled
from reduset._engine.cuda.arrays import on_device
from reduset._engine.threads import row_blocks
from reduset._types import Floats

# The metrics: how coordinates give a gap t.
SQUARED = 0  # Σ (zⱼ − qⱼ)²
CITYBLOCK = 1  # Σ |zⱼ − qⱼ|
SOFT_CITYBLOCK = 2  # Σ |zⱼ − qⱼ| − log(1 + |zⱼ − qⱼ|): the L2 product of city-block Laplacians

# The families: how a gap gives a depth.
LINEAR = 0  # t: the Gaussian (its frame holds the factor √½), and the Laplacian in city-block distance
ROOT = 1  # √t: the Laplacian
LOGARITHM = 2  # a·log(1 + t): the Student
TABLE = 3  # a cubic spline of log(1 + √t): inner products without a fast closed form

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

    @property
    def arguments(self) -> tuple[int, int, float, NDArray[np.float64], float]:
        return self.metric, self.family, self.exponent, self.table, self.step

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
            from reduset._engine.cuda.depths import to_depths

            to_depths(gaps, *self.arguments)
            return
        depths(self.family, self.exponent, self.table, self.step, gaps)


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


# What no profile needs in single precision (`Profile.in_single`) is NaN there and not computed, for every loop would be compiled
# with it: who forgets to ask sees at once.


def _soft(u):
    """u − log(1 + u)."""


@overload(_soft, inline="always")
def _soft_of(u):
    if u == types.float32:
        return lambda u: np.float32(np.nan)
    return lambda u: u - log_of(1 + u)


def _tabulate(table, step, t):
    """Turn the gaps t into depths by the table, in place."""


@overload(_tabulate)
def _tabulate_of(table, step, t):
    if t.dtype == types.float32:

        def refused(table, step, t):
            for i in range(len(t)):
                t[i] = np.nan

        return refused

    def double(table, step, t):
        last = len(table) - 2
        for i in range(len(t)):
            x = log_of(1.0 + np.sqrt(t[i])) / step
            k = min(np.int64(x), last)
            x -= k
            if x > 1.0:  # beyond the table: the tail of its last knot, a power law
                t[i] = table[last + 1, 0] + (x - 1.0) * step * table[last + 1, 1]
            else:  # cubic Hermite between two knots
                y = 1.0 - x
                t[i] = (
                    y * y * (1.0 + 2.0 * x) * table[k, 0]
                    + x * x * (1.0 + 2.0 * y) * table[k + 1, 0]
                    + step * x * y * (y * table[k, 1] - x * table[k + 1, 1])
                )

    return double


def _pull_by_table(table, step, gap, t):
    """Turn weighted values t at squared distances ``gap`` into pulls by the table, in place."""


@overload(_pull_by_table)
def _pull_by_table_of(table, step, gap, t):
    if t.dtype == types.float32:

        def refused(table, step, gap, t):
            for i in range(len(t)):
                t[i] = np.nan

        return refused

    def double(table, step, gap, t):
        last = len(table) - 2
        for i in range(len(t)):
            r = np.sqrt(gap[i])
            if r == 0.0:
                t[i] *= 0
                continue
            x = log_of(1.0 + r) / step
            k = min(np.int64(x), last)
            x -= k
            if x > 1.0:
                slope = table[last + 1, 1]
            else:  # the derivative of the cubic Hermite
                rise = 6.0 * x * (1.0 - x) * (table[k + 1, 0] - table[k, 0]) / step
                slope = rise + (1.0 - x) * (1.0 - 3.0 * x) * table[k, 1] + x * (3.0 * x - 2.0) * table[k + 1, 1]
            t[i] *= slope / ((1.0 + r) * r)

    return double


@compiled(fastmath=FAST)
def gaps(metric, Z, start, stop, query, t):
    """t[i] = the gap of column start + i of Z (d, n) to ``query`` (d,)."""
    d = Z.shape[0]
    if metric == SQUARED:
        j = 0
        if d % 2 == 1:
            a = Z[0, start:stop]
            qa = query[0]
            for i in range(len(a)):
                u = a[i] - qa
                t[i] = u * u
            j = 1
        else:
            a = Z[0, start:stop]
            b = Z[1, start:stop]
            qa = query[0]
            qb = query[1]
            for i in range(len(a)):
                u = a[i] - qa
                v = b[i] - qb
                t[i] = u * u + v * v
            j = 2
        while j + 3 < d:
            a = Z[j, start:stop]
            b = Z[j + 1, start:stop]
            c = Z[j + 2, start:stop]
            e = Z[j + 3, start:stop]
            qa = query[j]
            qb = query[j + 1]
            qc = query[j + 2]
            qe = query[j + 3]
            for i in range(len(a)):
                u = a[i] - qa
                v = b[i] - qb
                x = c[i] - qc
                y = e[i] - qe
                t[i] += (u * u + v * v) + (x * x + y * y)
            j += 4
        while j < d:
            a = Z[j, start:stop]
            b = Z[j + 1, start:stop]
            qa = query[j]
            qb = query[j + 1]
            for i in range(len(a)):
                u = a[i] - qa
                v = b[i] - qb
                t[i] += u * u + v * v
            j += 2
    elif metric == CITYBLOCK:
        a = Z[0, start:stop]
        qa = query[0]
        for i in range(len(a)):
            t[i] = abs(a[i] - qa)
        for j in range(1, d):
            a = Z[j, start:stop]
            qa = query[j]
            for i in range(len(a)):
                t[i] += abs(a[i] - qa)
    else:
        for i in range(stop - start):
            t[i] = 0
        for j in range(d):
            a = Z[j, start:stop]
            qa = query[j]
            for i in range(len(a)):
                t[i] += _soft(abs(a[i] - qa))


@compiled(fastmath=FAST)
def depths(family, exponent, table, step, t):
    """Turn the gaps t into depths, in place."""
    if family == ROOT:
        for i in range(len(t)):
            t[i] = np.sqrt(t[i])
    elif family == LOGARITHM:
        a = t.dtype.type(exponent)
        one = t.dtype.type(1.0)
        for i in range(len(t)):
            t[i] = a * log_of(one + t[i])
    elif family == TABLE:
        _tabulate(table, step, t)


@compiled(fastmath=FAST)
def pulls(family, exponent, table, step, gap, t):
    """Turn weighted values t at squared distances ``gap`` into t·2·d(depth)/d(gap): how hard each point pulls along z − q."""
    if family == LINEAR:
        for i in range(len(t)):
            t[i] *= 2
    elif family == LOGARITHM:
        a = t.dtype.type(2 * exponent)
        one = t.dtype.type(1.0)
        for i in range(len(t)):
            t[i] *= a / (one + gap[i])
    elif family == ROOT:  # a Laplacian has a corner at its centre: its gradient there is taken as 0
        for i in range(len(t)):
            t[i] = t[i] / np.sqrt(gap[i]) if gap[i] > 0 else t[i] * 0
    else:
        _pull_by_table(table, step, gap, t)
