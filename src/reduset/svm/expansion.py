"""Gaussian expansions: sums of Gaussians with individual widths, g_p(x) = Σᵢ W_ip exp(−‖x − cᵢ‖² / 2hᵢ²) + b_p.

Several functions share the Gaussians and differ in weights and intercept. They are the decision functions of an SVM before or after
compression. The Gaussians of a block of rows need one matrix product and one exponential. N rows cost O(N·m·(d + p)) time and
O(block) memory.

A squared distance computed as |x|² + |c|² − 2x·c has a rounding error relative to |x|². So coordinates are relative to the mean of
the centres. If this is not precise enough (centres far apart relative to their widths), the differences themselves are squared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.spatial.distance import cdist

from reduset._engine import blocks, run_all, single_threaded_blas
from reduset._types import Array, Floats

BLOCK_ENTRIES = 1 << 18  # two megabytes, so that a block stays in cache
ROUNDING = 1e-9  # largest error of an exponent by cancellation


class CentredPoints:
    """(m, d) centred points, with squared distances by a matrix product if that is precise.

    Parameters
    ----------
    points : (m, d)
    min_square : the smallest squared width that distances are divided by
    """

    def __init__(self, points: Array, min_square: float) -> None:
        self.centre = points.mean(axis=0)
        self.raw, self.coordinates = points, np.ascontiguousarray(points - self.centre)
        self.lengths = np.einsum("ij,ij->i", self.coordinates, self.coordinates)
        self._max_length = ROUNDING * min_square / np.finfo(np.float64).eps  # squared lengths up to this cancel without harm

    def squared_distances(self, rows: Floats) -> Array:
        """(N, m) squared distances of rows, in the original coordinates."""
        centred = rows - self.centre
        lengths = np.einsum("ij,ij->i", centred, centred)
        if max(float(lengths.max()), float(self.lengths.max())) > self._max_length:
            return cdist(rows, self.raw, "sqeuclidean")
        squares = centred @ self.coordinates.T
        squares *= -2.0
        squares += lengths[:, None]
        squares += self.lengths
        return np.maximum(squares, 0.0, out=squares)


@dataclass(frozen=True, eq=False)
class GaussianExpansion:
    """A Gaussian expansion: functions that share Gaussians.

    Attributes
    ----------
    centres : (m, d)
    widths : (m,) h of each Gaussian
    weights : (m, p)
    intercepts : (p,)

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.svm.expansion import GaussianExpansion
    >>> g = GaussianExpansion(np.array([[0.0], [2.0]]), np.array([1.0, 0.5]), np.array([[1.0], [-1.0]]), np.array([0.25]))
    >>> g(np.array([[0.0]])).round(4)
    array([[1.2497]])
    """

    centres: Array
    widths: Array
    weights: Array
    intercepts: Array
    _points: CentredPoints = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("centres", "widths", "weights", "intercepts"):  # the memory layout changes the last bits of matrix products
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name)))
        object.__setattr__(self, "_points", CentredPoints(self.centres, float(self.widths.min()) ** 2))

    @property
    def size(self) -> int:
        """The number of Gaussians."""
        return len(self.centres)

    @property
    def dimension(self) -> int:
        """The number of coordinates."""
        return int(self.centres.shape[1])

    def bumps(self, rows: Floats) -> Array:
        """(N, m) values of the Gaussians at rows; N is small enough for memory."""
        exponents = self._points.squared_distances(rows)
        exponents *= -0.5 / self.widths**2
        return np.exp(exponents, out=exponents)

    def __call__(self, rows: Floats) -> Array:
        """(N, p) values."""
        values = np.empty((len(rows), len(self.intercepts)))

        def evaluate(a: int, b: int) -> None:
            values[a:b] = self.bumps(rows[a:b]) @ self.weights + self.intercepts

        with single_threaded_blas():
            run_all([partial(evaluate, a, b) for a, b in self._blocks(len(rows))])
        return values

    def _blocks(self, count: int) -> list[tuple[int, int]]:
        return blocks(count, max(64, BLOCK_ENTRIES // (self.size + self.dimension)))
