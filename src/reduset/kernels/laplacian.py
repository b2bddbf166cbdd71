"""Laplacian: φ = exp(−r), r = distance / h; in "cityblock" exp(−Σ|rⱼ|).

In L2 g is a Matérn of order d/2 + 1, in "cityblock" Π (1 + |rⱼ|) exp(−|rⱼ|) (Cruz Cortés & Scott 2017, Section II-C).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from reduset import _engine as engine
from reduset import _validate
from reduset._engine import Profile
from reduset._types import Array
from reduset.kernels.base import RadialKernel, Shape
from reduset.kernels.spectra import PowerSpectrum, ProductSpectrum, ScaleMixture, Spectrum, matern_table


@dataclass(frozen=True, eq=False, repr=False)
class Laplacian(RadialKernel):
    """exp(−r/h), with r the Euclidean distance, or the sum of absolute differences for ``metric="cityblock"``.

    >>> from reduset import Laplacian
    >>> Laplacian(2.0, metric="cityblock")
    Laplacian(2, metric='cityblock')
    """

    metric: str = "euclidean"

    name = "laplacian"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.one_of(self.metric, "metric", ("euclidean", "cityblock"))

    @property
    def _in_cityblock(self) -> bool:
        return self.metric == "cityblock"

    def bump(self, dimension: int) -> Shape:
        return Shape(Profile(metric=engine.CITYBLOCK) if self._in_cityblock else Profile(family=engine.ROOT), 1.0)

    def product(self, dimension: int) -> Shape:
        if self.space == "rkhs":
            return self.bump(dimension)
        return Shape(Profile(metric=engine.SOFT_CITYBLOCK) if self._in_cityblock else matern_table(dimension / 2 + 1), 1.0)

    def _log_density_constant(self, dimension: int) -> float:
        if self._in_cityblock:
            return float(-dimension * np.log(2.0))
        d = dimension
        return float(special.gammaln(d / 2) - np.log(2.0) - d / 2 * np.log(np.pi) - special.gammaln(d))

    def _log_square_integral(self, dimension: int) -> float:
        if self._in_cityblock:
            return 0.0
        return float(-self._log_density_constant(dimension) - dimension * np.log(2.0))

    def spectrum(self, dimension: int) -> Spectrum:
        if self._in_cityblock:
            return ProductSpectrum(dimension, 1.0 if self.space == "rkhs" else 3.0)
        return PowerSpectrum(dimension, 1.0 if self.space == "rkhs" else dimension + 2.0)

    def _tail(self, t: Array) -> Array:
        return 0.5 * np.exp(-t)

    def scale_mixture(self, dimension: int) -> ScaleMixture | None:
        return None if self._in_cityblock or dimension == 1 else ScaleMixture((dimension + 1) / 2, 0.5, float(np.sqrt(2.0)))

    def _noise(self, count: int, dimension: int, rng: np.random.Generator) -> Array:
        if self._in_cityblock:
            return rng.laplace(size=(count, dimension))
        return directions(count, dimension, rng) * rng.gamma(dimension, size=(count, 1))


def directions(count: int, dimension: int, rng: np.random.Generator) -> Array:
    """Unit vectors with a uniform distribution of directions."""
    normal = rng.standard_normal((count, dimension))
    return np.asarray(normal / np.linalg.norm(normal, axis=1, keepdims=True))
