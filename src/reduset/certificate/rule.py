"""Probes by pairs of rows and by a sample of rows, and the rule that selects a probe.

======================  ==============================================================================================
`ExactProbe`            up to `EXACT_UP_TO` rows: Σᵢ wᵢ r(xᵢ) − Σ αₗ r(cₗ), r = f − f_m, exact up to rounding, O(n²);
                        below its rounding it hands over to the frequencies
`FrequencyProbe`        beyond, if the kernel has a spectrum and angles have digits
`RowProbe`              otherwise: a sample of rows, O(n·s); and if much of the mass is missing (`EitherProbe`)
======================  ==============================================================================================
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
from reduset.mixture.pieces import ComponentPieces, Pieces, own_sums_of, sums_of

PROBE_ROWS = 384


class RowProbe(Probe):
    """By a sample of rows, whose values of f are the only pass over the data."""

    def __init__(self, mean: KernelMean, confidence: float, rng: np.random.Generator) -> None:
        self._mean, self._rng = mean, rng
        self._total = mean.total
        self._quantile = rows_quantile(confidence)

    @cached_property
    def _drawn(self) -> tuple[Indices, Array]:
        """Rows drawn by weight, and f at each."""
        mean = self._mean
        rows = mean.draw_rows(PROBE_ROWS, self._rng)
        return rows, mean.kernel.product_sums(mean.atoms, mean.weights, mean.atoms[rows])

    def mass_missing(self, weights: Array) -> float:
        """The mass that weights lack or have too much, as a share of Σ|w|."""
        return abs(self._mean.mass - float(weights.sum())) / self._total

    def glance(self, atoms: Pieces, weights: Array, kappa: Array) -> Measurement:
        mean = self._mean
        rows, values = self._drawn
        signs = self._total * np.sign(mean.weights[rows])
        return by_rows(mean.kernel, mean.atoms[rows], values, signs, atoms, weights, kappa, self._quantile)


def by_rows(
    kernel: Kernel, places: Floats, values: Array, signs: Array, atoms: Pieces, weights: Array, kappa: Array, quantile: float
) -> Measurement:
    """‖f − f_m‖² from the values of f at places drawn by |w|; ``signs`` are those of their weights, times Σ|w|."""
    terms = signs * (values - sums_of(kernel, atoms, weights, places))
    at_atoms = float(weights @ (kappa - own_sums_of(kernel, atoms, weights)))
    square = float(terms.mean()) - at_atoms
    # and for what was not drawn at all, up to three rows in as many as were
    width = np.hypot(quantile * float(terms.std(ddof=1)) / np.sqrt(len(terms)), 3 * float(np.abs(terms).max()) / len(terms))
    return Measurement.within(square, width, "rows")


def rows_quantile(confidence: float) -> float:
    """How many standard errors the interval of `by_rows` reaches to either side."""
    return float(special.stdtrit(PROBE_ROWS - 1, 0.5 + confidence / 2)) * SAFETY


class ExactProbe(Probe):
    """Exact up to rounding; below the rounding it hands over to the frequencies, which have none to speak of."""

    def __init__(self, mean: KernelMean, finer: FrequencyProbe | None) -> None:
        self._mean, self._finer = mean, finer

    @cached_property
    def _values(self) -> Array:
        """Of the mean at its own rows, found when they are first asked for: a search over scales needs none at its first."""
        return self._mean.kernel.product_sums(self._mean.atoms, self._mean.weights, self._mean.atoms)

    def scales(self, size: int, rng: np.random.Generator) -> Scales | None:
        return None if self._finer is None else ExactScales(self._copy, self._finer.bandwidths(size))

    @property
    def _copy(self) -> KernelMean:
        """A result keeps no reference to the data of its caller."""
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
            if far.rounding > rounding:  # the angles of waves are rounded as much
                return replace(far, whole=max(float(mean.weights @ self._values), 0.0))
        # a Laplacian's spectrum has no variance: of rows much nearer than its bandwidth, drawn frequencies miss most of the error
        if self._finer is not None and square < 1e3 * rounding and not isinstance(mean.kernel, Laplacian):
            found = self._finer.measure(atoms, weights, kappa)
            self._finer.release()
            return found
        return Measurement(max(square, 0.0), max(square - rounding, 0.0), max(square, 0.0) + rounding, "exact")


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
