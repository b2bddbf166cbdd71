"""Probes: the measured distance ‖f − f_m‖² of a large mean f to a small one f_m, with a confidence interval.

The difference ‖f‖² − αᵀκ of two nearly equal numbers loses all digits, and ‖f‖² costs n². Each probe avoids both. It is prepared
once for f and is then inexpensive for every f_m. A new probe is a class with `glance` (and `measure`, if it has a better estimate),
and a line in `reduset.certificate.rule`, which selects the probe. All kernel functions are scaled to norm 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from reduset._engine import cached_property
from reduset._types import Array, Floats, Indices
from reduset.kernels import Kernel
from reduset.mean import KernelMean
from reduset.mixture import Pieces, own_sums_of, sums_of

if TYPE_CHECKING:
    from reduset.certificate.by_scale import Scales

SAFETY = 1.1  # factor on normal intervals, because estimated variances of skewed terms are slightly too small
PROBE_ROWS = 384


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


class RowProbe(Probe):
    """By a sample of rows. The values of f at these rows take the only pass over the data."""

    def __init__(self, mean: KernelMean, confidence: float, rng: np.random.Generator) -> None:
        self._mean, self._rng = mean, rng
        self._total = mean.total
        # standard errors to either side
        self._quantile = float(special.stdtrit(PROBE_ROWS - 1, 0.5 + confidence / 2)) * SAFETY

    @cached_property
    def _drawn(self) -> tuple[Indices, Array]:
        """Rows drawn by weight, and f at each."""
        mean = self._mean
        rows = mean.draw_rows(PROBE_ROWS, self._rng)
        return rows, mean.kernel.product_sums(mean.atoms, mean.weights, mean.atoms[rows])

    def glance(self, atoms: Pieces, weights: Array, kappa: Array) -> Measurement:
        mean = self._mean
        rows, values = self._drawn
        signs = self._total * np.sign(mean.weights[rows])
        return by_rows(mean.kernel, mean.atoms[rows], values, signs, atoms, weights, kappa, self._quantile)


def by_rows(
    kernel: Kernel, points: Floats, values: Array, signs: Array, atoms: Pieces, weights: Array, kappa: Array, quantile: float
) -> Measurement:
    """‖f − f_m‖² from the values of f at points drawn by |w|. ``signs`` are the signs of their weights, times Σ|w|."""
    terms = signs * (values - sums_of(kernel, atoms, weights, points))
    at_atoms = float(weights @ (kappa - own_sums_of(kernel, atoms, weights)))
    square = float(terms.mean()) - at_atoms
    # By the rule of three, rows that were not drawn may make up a proportion of 3 / (number of drawn rows).
    width = np.hypot(quantile * float(terms.std(ddof=1)) / np.sqrt(len(terms)), 3 * float(np.abs(terms).max()) / len(terms))
    return Measurement.within(square, width, "rows")
