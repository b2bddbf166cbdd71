"""Probes: the measured distance ‖f − f_m‖² of a large mean f to a small one f_m, with a confidence interval.

The difference ‖f‖² − αᵀκ of two nearly equal numbers loses all digits, and ‖f‖² costs n². Each probe is a way around both, prepared
once for f and then cheap for every f_m. A new one is a class with `glance` (and `measure`, if it has something better), and a line
in `reduset.certificate.rule`, which says where it is used.

All in units where every bump has norm 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reduset._types import Array
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
