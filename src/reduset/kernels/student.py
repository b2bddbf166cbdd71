"""Student: φ = (1 + r²)^(−a), r = distance / h; density constant Γ(a) / (π^(d/2) Γ(a − d/2)).

In L2 g = ₂F₁(a, 2a − d/2; a + ½; −r²/4), which is a Student kernel of bandwidth 2h for a = (d + 1)/2. The formula follows from φ as
a gamma mixture of Gaussians, with the scale integrated out (Cruz Cortés & Scott 2017, Section II-C).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from reduset import _engine as engine
from reduset import _validate
from reduset._engine import Profile, blocks
from reduset._types import Array
from reduset.kernels.base import RadialKernel, Shape
from reduset.kernels.spectra import KNOTS, BesselSpectrum, ScaleMixture, Spectrum, SquaredBesselSpectrum, tabulate


@dataclass(frozen=True, eq=False, repr=False)
class Student(RadialKernel):
    """(1 + r²/h²)^−a with a the ``exponent``; None sets (d + 1)/2, the Cauchy kernel.

    It is a density only for a > d/2, and square-integrable only for a > d/4.

    >>> from reduset import Student
    >>> Student(1.0, exponent=2.5)
    Student(1, exponent=2.5)
    """

    exponent: float | None = None

    name = "student"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.exponent is not None:
            object.__setattr__(self, "exponent", _validate.positive(self.exponent, "exponent"))

    def _power(self, dimension: int) -> float:
        return (dimension + 1) / 2 if self.exponent is None else self.exponent

    def bump(self, dimension: int) -> Shape:
        return Shape(Profile(family=engine.LOGARITHM, exponent=self._power(dimension)), 1.0)

    def product(self, dimension: int) -> Shape:
        if self.space == "rkhs":
            return self.bump(dimension)
        a = self._power(dimension)
        self._require_square_integrable(dimension)
        if a == (dimension + 1) / 2:
            return Shape(Profile(family=engine.LOGARITHM, exponent=a), 0.5)
        return Shape(_student_table(a, dimension), 1.0)

    def _require_square_integrable(self, dimension: int) -> None:
        a = self._power(dimension)
        if a <= dimension / 4:
            raise ValueError(
                f"exponent must be above d/4 = {dimension / 4:g} for the kernel to lie in L2, got {a:g}; "
                "use a larger exponent or space='rkhs'"
            )

    def _log_density_constant(self, dimension: int) -> float:
        a = self._power(dimension)
        if a <= dimension / 2:
            raise ValueError(
                f"exponent must be above d/2 = {dimension / 2:g} for the kernel to be a density, got {a:g}; "
                "use a larger exponent, or normalized=False"
            )
        return float(special.gammaln(a) - dimension / 2 * np.log(np.pi) - special.gammaln(a - dimension / 2))

    def _log_square_integral(self, dimension: int) -> float:
        self._require_square_integrable(dimension)
        a = self._power(dimension)
        return float(dimension / 2 * np.log(np.pi) + special.gammaln(2 * a - dimension / 2) - special.gammaln(2 * a))

    def spectrum(self, dimension: int) -> Spectrum:
        a = self._power(dimension)
        if self.space == "rkhs":
            return BesselSpectrum(dimension, a)
        if a == (dimension + 1) / 2:
            return BesselSpectrum(dimension, a)  # the product is a Cauchy kernel again, with its own stretch
        return SquaredBesselSpectrum(dimension, a)

    def _tail(self, t: Array) -> Array:
        far = np.square(np.minimum(t, 1e150))
        return np.asarray(0.5 * special.betainc(self._power(1) - 0.5, 0.5, 1 / (1 + far)))

    def scale_mixture(self, dimension: int) -> ScaleMixture | None:
        return None if dimension == 1 else ScaleMixture(self._power(dimension) - dimension / 2, -0.5, float(np.sqrt(0.5)))

    def _noise(self, count: int, dimension: int, rng: np.random.Generator) -> Array:
        self._log_density_constant(dimension)  # raises `ValueError` if φ is not a density
        mixing = rng.gamma(self._power(dimension) - dimension / 2, size=(count, 1))
        return rng.standard_normal((count, dimension)) / np.sqrt(2 * mixing)


@lru_cache(maxsize=32)
def _student_table(exponent: float, dimension: int) -> Profile:
    """₂F₁(a, 2a − d/2; a + ½; −r²/4) = ∫₀¹ v^(a − 1) (1 + r²v)^−(2a − d/2) du / B(a, a) with v = u(1 − u).

    Over s = log(u/(1 − u)) the integrand is analytic in a strip of half-width π and decays at both ends. So the trapezoidal rule is
    exact to rounding with a step of ½, or a smaller one for large exponents, which make the peak narrow.
    """
    top = np.log1p(1e8)
    r = np.expm1(np.linspace(0.0, top, KNOTS))
    power = 2 * exponent - dimension / 2
    s = np.arange(0.0, 40.0 / min(exponent, 1.0) + 2 * top, 0.5 / np.sqrt(max(1.0, (exponent + power) / 4)))
    log_v = -2 * np.logaddexp(s / 2, -s / 2)
    log_weights = exponent * log_v  # as logarithms, because both factors overflow or underflow
    log_weights[0] -= np.log(2.0)
    log_weights -= special.logsumexp(log_weights)
    v = np.exp(log_v)
    exponents = np.empty(KNOTS)
    for a, b in blocks(KNOTS, 1024):
        logs = log_weights - power * np.log1p(np.outer(r[a:b] ** 2, v))
        largest = logs.max(axis=1)
        exponents[a:b] = -largest - np.log(np.exp(logs - largest[:, None]).sum(axis=1))
    exponents[0] = 0.0
    return tabulate(exponents, top)
