"""Gaussian: φ = exp(−r²/2), r = distance / h; density constant (2π)^(−d/2). In L2 g is a Gaussian of bandwidth √2·h.

(Cruz Cortés & Scott 2017, Section II-C.)
"""

from __future__ import annotations

import numpy as np

from reduset._engine import Profile, normal_tail
from reduset._types import Array
from reduset.kernels.base import RadialKernel, Shape
from reduset.kernels.spectra import NormalSpectrum, Spectrum


class Gaussian(RadialKernel):
    """exp(−r²/2h²).

    >>> from reduset import Gaussian
    >>> Gaussian(0.5)
    Gaussian(0.5)
    >>> Gaussian("scott", normalized=True)
    Gaussian('scott', normalized=True)
    """

    name = "gaussian"

    def bump(self, dimension: int) -> Shape:
        return Shape(Profile(), np.sqrt(0.5))

    def product(self, dimension: int) -> Shape:
        return Shape(Profile(), np.sqrt(0.5) if self.space == "rkhs" else 0.5)

    def _log_density_constant(self, dimension: int) -> float:
        return float(-dimension / 2 * np.log(2 * np.pi))

    def _log_square_integral(self, dimension: int) -> float:
        return float(dimension / 2 * np.log(np.pi))

    def spectrum(self, dimension: int) -> Spectrum:
        return NormalSpectrum(dimension)

    def _tail(self, t: Array) -> Array:
        return normal_tail(t)

    tail = _tail  # `normal_tail` takes any sign

    def _noise(self, count: int, dimension: int, rng: np.random.Generator) -> Array:
        return rng.standard_normal((count, dimension))
