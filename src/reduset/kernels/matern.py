"""Matérn: φ = (1 + s) exp(−s) of smoothness ν = 3/2, (1 + s + s²/3) exp(−s) of ν = 5/2; s = √(2ν)·distance / h.

Both are 2^(1 − ν)/Γ(ν) · s^ν K_ν(s), with a Fourier transform ∝ (1 + |ω|²)^−(ν + d/2). The value of the transform at 0 is the
integral of φ. Its square is the transform of a Matérn of order 2ν + d/2, the product in L2. As a density, φ is the distribution of
√(2G)·N, with N normal and G gamma distributed with shape ν + d/2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from reduset import _validate
from reduset._engine import Profile
from reduset._types import Array
from reduset.kernels.base import RadialKernel, Shape
from reduset.kernels.spectra import KNOTS, PowerSpectrum, ScaleMixture, Spectrum, matern_table, tabulate

SMOOTHNESSES = (1.5, 2.5)
MAX_DISTANCE = 1e12  # in the table of φ: far beyond the underflow of exp, because log-densities are evaluated there too


@dataclass(frozen=True, eq=False, repr=False)
class Matern(RadialKernel):
    """(1 + s) exp(−s), s = √3 r/h, or with ``smoothness=2.5`` (1 + s + s²/3) exp(−s), s = √5 r/h, as in scikit-learn.

    It is once or twice differentiable, between the Laplacian (with a corner at its centre) and the Gaussian.

    >>> from reduset import Matern
    >>> Matern(0.5)
    Matern(0.5)
    >>> Matern(0.5, smoothness=2.5)
    Matern(0.5, smoothness=2.5)
    """

    smoothness: float = 1.5

    name = "matern"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "smoothness", _validate.positive(self.smoothness, "smoothness"))
        if self.smoothness not in SMOOTHNESSES:
            raise ValueError(
                f"smoothness must be 1.5 or 2.5, got {self.smoothness:g}; use Laplacian for 0.5, or Gaussian for a large one"
            )

    @property
    def _stretch(self) -> float:
        return float(np.sqrt(2 * self.smoothness))

    def bump(self, dimension: int) -> Shape:
        return Shape(_bump_table(self.smoothness), self._stretch)

    def product(self, dimension: int) -> Shape:
        if self.space == "rkhs":
            return self.bump(dimension)
        return Shape(matern_table(2 * self.smoothness + dimension / 2), self._stretch)

    def _log_density_constant(self, dimension: int) -> float:
        nu, d = self.smoothness, dimension
        return float(d / 2 * np.log(nu / (2 * np.pi)) + special.gammaln(nu) - special.gammaln(nu + d / 2))

    def _log_square_integral(self, dimension: int) -> float:
        nu, d = self.smoothness, dimension
        overlap = special.gammaln(2 * nu + d / 2) - special.gammaln(2 * nu + d) + d / 2 * np.log(np.pi)
        return float(overlap + 2 * (special.gammaln(nu + d / 2) - special.gammaln(nu)) + d * np.log(2 / self._stretch))

    def spectrum(self, dimension: int) -> Spectrum:
        return PowerSpectrum(dimension, 2 * self.smoothness if self.space == "rkhs" else 4 * self.smoothness + dimension)

    def _tail(self, t: Array) -> Array:
        s = np.minimum(self._stretch * t, 1e3)  # exp underflows there
        return np.exp(-s) * ((2 + s) / 4 if self.smoothness == 1.5 else (8 + 5 * s + s**2) / 16)

    def scale_mixture(self, dimension: int) -> ScaleMixture | None:
        return None if dimension == 1 else ScaleMixture(self.smoothness + dimension / 2, 0.5, float(np.sqrt(2.0)) / self._stretch)

    def _noise(self, count: int, dimension: int, rng: np.random.Generator) -> Array:
        mixing = rng.gamma(self.smoothness + dimension / 2, size=(count, 1))
        return np.sqrt(2 * mixing) * rng.standard_normal((count, dimension)) / self._stretch


@lru_cache(maxsize=len(SMOOTHNESSES))
def _bump_table(smoothness: float) -> Profile:
    """−log φ and its slope, over log(1 + s)."""
    top = np.log1p(MAX_DISTANCE)
    s = np.expm1(np.linspace(0.0, top, KNOTS))
    if smoothness == 1.5:
        return tabulate(s - np.log1p(s), top, slopes=s)
    return tabulate(s - np.log1p(s + s**2 / 3), top, slopes=s * (1 + s) ** 2 / (3 + 3 * s + s**2))
