"""Probes by pairs of rows and by a sample of rows, and the rule that selects a probe.

- `ExactProbe`, up to `EXACT_UP_TO` rows: Σᵢ wᵢ r(xᵢ) − Σ αₗ r(cₗ) with r = f − f_m. Exact up to rounding, O(n²). Errors below the
  rounding are measured by frequencies.
- `FrequencyProbe`, for more rows, if the kernel has a spectrum and angles have digits.
- `RowProbe`, otherwise, and if much of the mass is missing (`EitherProbe`). It uses a sample of rows, O(n·s).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import special

from reduset._engine import cached_property
from reduset._types import Array, Floats, Indices
from reduset.certificate.by_frequencies import FrequencyProbe
from reduset.certificate.by_scale import ExactScales, Scales
from reduset.certificate.frequencies import MASS_MISSING, SAFETY
from reduset.certificate.probe import Measurement, Probe, are_far, far_square
from reduset.kernels import Kernel, Laplacian, RadialKernel
from reduset.mean import KernelMean
from reduset.mixture import ComponentPieces, Pieces, own_sums_of, sums_of

PROBE_ROWS = 384


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

    def mass_missing(self, weights: Array) -> float:
        """The absolute difference in mass to these weights, as a proportion of Σ|w|."""
        return abs(self._mean.mass - float(weights.sum())) / self._total

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


class ExactProbe(Probe):
    """Exact up to rounding. Errors below the rounding are measured by frequencies, whose rounding is negligible."""

    def __init__(self, mean: KernelMean, finer: FrequencyProbe | None) -> None:
        self._mean, self._finer = mean, finer

    @cached_property
    def _values(self) -> Array:
        """The mean at its rows, computed on first use, because the first steps of a search over scales do not need it."""
        return self._mean.kernel.product_sums(self._mean.atoms, self._mean.weights, self._mean.atoms)

    def scales(self, size: int, rng: np.random.Generator) -> Scales | None:
        return None if self._finer is None else ExactScales(self._copy, self._finer.bandwidths(size))

    @property
    def _copy(self) -> KernelMean:
        """A copy, so that a result keeps no reference to the data of its caller."""
        return KernelMean(np.array(self._mean.atoms), np.array(self._mean.weights), self._mean.kernel)

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


EXACT_UP_TO = 4096


def rows_needed(resolved: bool, missing: float) -> bool:
    """Whether to measure the error by rows: if angles have no digits, or if a large proportion of the mass is ``missing``.

    The energy of a difference in mass is concentrated near frequency 0. If the data lie on a lattice, it is also concentrated near
    the reciprocal lattice. Random frequencies miss such narrow regions. The values of the difference at the rows hardly vary, so
    that a small sample of rows estimates it well.
    """
    return not resolved or missing > MASS_MISSING


def probe_for(mean: KernelMean, confidence: float, rng: np.random.Generator) -> Probe:
    """The probe for a mean: exact if it is small, otherwise by frequencies if the kernel has a spectrum, otherwise by rows."""
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
    """The name in `METHODS` of how errors of approximations to a mean are usually measured."""
    if mean.size <= EXACT_UP_TO:
        return "exact"
    return "frequencies" if isinstance(mean.kernel, RadialKernel) else "rows"


class EitherProbe(Probe):
    """Frequencies, or a sample of rows if the small mean misses much of the mass of the large mean."""

    def __init__(self, frequencies: FrequencyProbe, rows: RowProbe) -> None:
        self._frequencies, self._rows = frequencies, rows

    def scales(self, size: int, rng: np.random.Generator) -> Scales:
        return self._frequencies.scales(size, rng)

    def glance(self, atoms: Pieces, weights: Array, kappa: Array) -> Measurement:
        return self._frequencies.glance(atoms, weights, kappa)

    def measure(self, atoms: Pieces, weights: Array, kappa: Array) -> Measurement:
        better = self._rows if rows_needed(True, self._rows.mass_missing(weights)) else self._frequencies
        return better.measure(atoms, weights, kappa)
