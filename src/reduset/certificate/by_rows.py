"""The error by a sample of rows: Σᵢ wᵢ r(xᵢ) − Σ αₗ r(cₗ) with r = f − f_m, the first sum from rows drawn by |w|. O(n·s).

For function kernels, for bandwidths too small for angles, and where much of the mass is missed.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from reduset._engine import cached_property
from reduset._types import Array, Floats, Indices
from reduset.certificate.frequencies import SAFETY
from reduset.certificate.probe import Measurement, Probe
from reduset.kernels import Kernel
from reduset.mean import KernelMean
from reduset.mixture.pieces import Pieces, own_sums_of, sums_of

ROWS = 384


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
        rows = mean.draw_rows(ROWS, self._rng)
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
    return float(special.stdtrit(ROWS - 1, 0.5 + confidence / 2)) * SAFETY
