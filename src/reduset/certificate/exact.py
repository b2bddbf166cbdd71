"""The error with every row: Σᵢ wᵢ r(xᵢ) − Σ αₗ r(cₗ), r = f − f_m. Exact up to rounding; O(n²), for small n."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reduset._engine import cached_property
from reduset._types import Array
from reduset.certificate.by_frequencies import FrequencyProbe
from reduset.certificate.by_scale import ExactScales, Scales
from reduset.certificate.probe import Measurement, Probe
from reduset.certificate.rounding import are_far, far_square
from reduset.kernels import Laplacian
from reduset.mean import KernelMean
from reduset.mixture.pieces import ComponentPieces, Pieces, own_sums_of, sums_of


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
