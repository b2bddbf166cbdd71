"""Functions as sums of Gaussian bumps, each of its own width: g_p(x) = Σᵢ W_ip exp(−‖x − cᵢ‖² / 2hᵢ²) + b_p.

Several functions share the bumps and differ in weights and intercept: the decision functions of an SVM, large or compressed. The
bump matrix of a block of rows is one matrix product and one exponential; N rows cost O(N·m·(d + p)) time and O(block) memory.

From |x|² + |c|² − 2x·c a squared distance keeps the digits of |x|², not its own. So coordinates are taken from a centre among the
bumps, and where that is not enough (bumps far apart for their widths), the differences themselves are squared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.spatial.distance import cdist

from reduset._engine import blocks, run_all, single_threaded_blas
from reduset._types import Array, Floats

ENTRIES_A_BLOCK = 1 << 18  # of rows and of bumps: two megabytes, so that a block stays in cache
ROUNDING = 1e-9  # what cancellation may add to an exponent


class CentredPoints:
    """(m, d) places, centred, from which squared distances are taken as a matrix product where that is precise.

    Parameters
    ----------
    places : (m, d)
    least : the least squared width that distances will be divided by
    """

    def __init__(self, places: Array, least: float) -> None:
        self.centre = places.mean(axis=0)
        self.raw, self.coordinates = places, np.ascontiguousarray(places - self.centre)
        self.lengths = np.einsum("ij,ij->i", self.coordinates, self.coordinates)
        self._most = ROUNDING * least / np.finfo(np.float64).eps  # of squared lengths, so that they cancel harmlessly

    def squared_distances(self, rows: Floats) -> Array:
        """(N, m) squared distances of rows, in the original coordinates."""
        centred = rows - self.centre
        lengths = np.einsum("ij,ij->i", centred, centred)
        if max(float(lengths.max()), float(self.lengths.max())) > self._most:
            return cdist(rows, self.raw, "sqeuclidean")
        gaps = centred @ self.coordinates.T
        gaps *= -2.0
        gaps += lengths[:, None]
        gaps += self.lengths
        return np.maximum(gaps, 0.0, out=gaps)


@dataclass(frozen=True, eq=False)
class GaussianExpansion:
    """A Gaussian expansion: a few functions on shared bumps.

    Attributes
    ----------
    centres : (m, d)
    widths : (m,) h of each bump
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
    _places: CentredPoints = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("centres", "widths", "weights", "intercepts"):  # matrix products depend on the memory layout in the last bits
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name)))
        object.__setattr__(self, "_places", CentredPoints(self.centres, float(self.widths.min()) ** 2))

    @property
    def size(self) -> int:
        """The number of bumps."""
        return len(self.centres)

    @property
    def dimension(self) -> int:
        """The number of coordinates."""
        return int(self.centres.shape[1])

    def bumps(self, rows: Floats) -> Array:
        """(N, m) values of the bumps at some rows, few enough to hold."""
        depths = self._places.squared_distances(rows)
        depths *= -0.5 / self.widths**2
        return np.exp(depths, out=depths)

    def __call__(self, rows: Floats) -> Array:
        """(N, p) values."""
        values = np.empty((len(rows), len(self.intercepts)))

        def evaluate(a: int, b: int) -> None:
            values[a:b] = self.bumps(rows[a:b]) @ self.weights + self.intercepts

        with single_threaded_blas():
            run_all([partial(evaluate, a, b) for a, b in self._blocks(len(rows))])
        return values

    def _blocks(self, count: int) -> list[tuple[int, int]]:
        return blocks(count, max(64, ENTRIES_A_BLOCK // (self.size + self.dimension)))
