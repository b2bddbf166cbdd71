"""The one rule that says which probe is used.

======================  ==============================================================================================
`ExactProbe`            up to `EXACT_UP_TO` rows; below its rounding it hands over to the frequencies
`FrequencyProbe`        beyond, where the kernel has a spectrum and angles have digits
`RowProbe`              where not, and where much of the mass is missed (`EitherProbe`)
======================  ==============================================================================================
"""

from __future__ import annotations

import numpy as np

from reduset._types import Array
from reduset.certificate.by_frequencies import FrequencyProbe
from reduset.certificate.by_rows import RowProbe
from reduset.certificate.by_scale import Scales
from reduset.certificate.exact import ExactProbe
from reduset.certificate.frequencies import MASS_MISSING
from reduset.certificate.probe import Measurement, Probe
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean
from reduset.mixture.pieces import Pieces

EXACT_UP_TO = 4096


def rows_needed(resolved: bool, missing: float) -> bool:
    """Whether rows are to measure the error: angles have no digits, or the small mean misses that share of the large one's mass.

    The energy of a difference of much mass is all near frequency 0 and, if the data lie on a lattice, near its reciprocal one: in
    spots so narrow that random frequencies miss them. Its values at the rows hardly vary, so that few rows tell it well.
    """
    return not resolved or missing > MASS_MISSING


def probe_for(mean: KernelMean, confidence: float, rng: np.random.Generator) -> Probe:
    """The right probe for the mean: exact where it is small, by frequencies where the kernel has them."""
    finer = None
    if isinstance(mean.kernel, RadialKernel):
        frequencies = FrequencyProbe(mean, confidence, rng)
        if frequencies.resolved:
            finer = frequencies
    if mean.size <= EXACT_UP_TO:
        return ExactProbe(mean, finer)
    rows = RowProbe(mean, confidence, rng)
    return EitherProbe(finer, rows) if finer else rows


def planned_method(mean: KernelMean) -> str:
    """How the error of most approximations to a mean is measured, a name in `METHODS`."""
    if mean.size <= EXACT_UP_TO:
        return "exact"
    return "frequencies" if isinstance(mean.kernel, RadialKernel) else "rows"


class EitherProbe(Probe):
    """Frequencies, except where the small mean misses much of the mass of the large one: then a sample of rows."""

    def __init__(self, frequencies: FrequencyProbe, rows: RowProbe) -> None:
        self._frequencies, self._rows = frequencies, rows

    def scales(self, size: int, rng: np.random.Generator) -> Scales:
        return self._frequencies.scales(size, rng)

    def glance(self, atoms: Pieces, weights: Array, kappa: Array) -> Measurement:
        return self._frequencies.glance(atoms, weights, kappa)

    def measure(self, atoms: Pieces, weights: Array, kappa: Array) -> Measurement:
        better = self._rows if rows_needed(True, self._rows.mass_missing(weights)) else self._frequencies
        return better.measure(atoms, weights, kappa)
