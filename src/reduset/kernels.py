"""Kernels: a bump φ of a bandwidth, and the inner product g of two bumps.

===========  ======================  ==========================================  =======================================
kernel       φ(r), r = distance / h  g in L2 (in "rkhs" g = φ)                   density constant (unit bandwidth)
===========  ======================  ==========================================  =======================================
Gaussian     exp(−r²/2)              a Gaussian of bandwidth √2·h                (2π)^(−d/2)
Laplacian    exp(−r)                 a Matérn of order d/2 + 1                   Γ(d/2) / (2 π^(d/2) Γ(d))
 cityblock   exp(−Σ|rⱼ|)             Π (1 + |rⱼ|) exp(−|rⱼ|)                     2^(−d)
Student      (1 + r²)^(−a)           ₂F₁(a, 2a − d/2; a + ½; −r²/4);             Γ(a) / (π^(d/2) Γ(a − d/2))
                                     for a = (d + 1)/2 a Student of 2h
===========  ======================  ==========================================  =======================================

(Cruz Cortés & Scott 2017, Section II-C. The Student product follows from writing the bump as a gamma mixture of Gaussians and
integrating the mixing scale out.) Products without a fast closed form are tabulated once: a spline with 1e-12 of relative error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from reduset import _validate
from reduset._engine import profile as engine
from reduset._engine.profile import Profile
from reduset._engine.threads import blocks
from reduset.radial import Array, Kernel, RadialKernel
from reduset.spectrum import (
    BesselSpectrum,
    NormalSpectrum,
    PowerSpectrum,
    ProductSpectrum,
    Spectrum,
    SquaredBesselSpectrum,
    log_bessel_k,
)

__all__ = ["Gaussian", "Kernel", "Laplacian", "RadialKernel", "Student"]

KNOTS = 1 << 15


class Gaussian(RadialKernel):
    """exp(−r²/2h²).

    >>> from reduset import Gaussian
    >>> Gaussian(0.5)
    Gaussian(0.5)
    >>> Gaussian("scott", normalized=True)
    Gaussian('scott', normalized=True)
    """

    name = "gaussian"

    def _bump(self, dimension: int) -> tuple[Profile, float]:
        return Profile(), np.sqrt(0.5)

    def _product(self, dimension: int) -> tuple[Profile, float]:
        return Profile(), 0.5

    def _log_density_constant(self, dimension: int) -> float:
        return float(-dimension / 2 * np.log(2 * np.pi))

    def _log_square_integral(self, dimension: int) -> float:
        return float(dimension / 2 * np.log(np.pi))

    def spectrum(self, dimension: int) -> Spectrum:
        return NormalSpectrum(dimension)

    def _noise(self, count: int, dimension: int, rng: np.random.Generator) -> Array:
        return rng.standard_normal((count, dimension))


@dataclass(frozen=True, eq=False, repr=False)
class Laplacian(RadialKernel):
    """exp(−r/h), r the Euclidean distance or, with ``metric="cityblock"``, the sum of the coordinates' distances.

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

    def _bump(self, dimension: int) -> tuple[Profile, float]:
        return Profile(metric=engine.CITYBLOCK) if self._in_cityblock else Profile(family=engine.ROOT), 1.0

    def _product(self, dimension: int) -> tuple[Profile, float]:
        return Profile(metric=engine.SOFT_CITYBLOCK) if self._in_cityblock else _matern_table(dimension / 2 + 1), 1.0

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

    def _noise(self, count: int, dimension: int, rng: np.random.Generator) -> Array:
        if self._in_cityblock:
            return rng.laplace(size=(count, dimension))
        return _directions(count, dimension, rng) * rng.gamma(dimension, size=(count, 1))

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"metric": self.metric}


@dataclass(frozen=True, eq=False, repr=False)
class Student(RadialKernel):
    """(1 + r²/h²)^−a, a the ``exponent``; None takes (d + 1)/2, the Cauchy kernel.

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

    def _bump(self, dimension: int) -> tuple[Profile, float]:
        return Profile(family=engine.LOGARITHM, exponent=self._power(dimension)), 1.0

    def _product(self, dimension: int) -> tuple[Profile, float]:
        a = self._power(dimension)
        self._require_square_integrable(dimension)
        if a == (dimension + 1) / 2:
            return Profile(family=engine.LOGARITHM, exponent=a), 0.5
        return _student_table(a, dimension), 1.0

    def _require_square_integrable(self, dimension: int) -> None:
        a = self._power(dimension)
        if a <= dimension / 4:
            raise ValueError(
                f"exponent must be above d/4 = {dimension / 4:g} for the bump to lie in L2, got {a:g}; "
                "use a larger exponent or space='rkhs'"
            )

    def _log_density_constant(self, dimension: int) -> float:
        a = self._power(dimension)
        if a <= dimension / 2:
            raise ValueError(
                f"exponent must be above d/2 = {dimension / 2:g} for the bump to be a density, got {a:g}; "
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
            return BesselSpectrum(dimension, a)  # the product is a Cauchy bump again, in its own stretched frame
        return SquaredBesselSpectrum(dimension, a)

    def _noise(self, count: int, dimension: int, rng: np.random.Generator) -> Array:
        self._log_density_constant(dimension)  # refuses what is not a density
        mixing = rng.gamma(self._power(dimension) - dimension / 2, size=(count, 1))
        return rng.standard_normal((count, dimension)) / np.sqrt(2 * mixing)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"exponent": self.exponent}


def _directions(count: int, dimension: int, rng: np.random.Generator) -> Array:
    normal = rng.standard_normal((count, dimension))
    return np.asarray(normal / np.linalg.norm(normal, axis=1, keepdims=True))


def _tabulate(depth: Array, top: float) -> Profile:
    """A spline of depth over log(1 + r), knots at equal steps up to ``top``."""
    from scipy.interpolate import CubicSpline  # only kernels that need a table pay for importing it

    knots = np.linspace(0.0, top, len(depth))
    slopes = CubicSpline(knots, depth)(knots, 1)
    table = np.ascontiguousarray(np.stack([depth, slopes], axis=1))
    table.setflags(write=False)
    return Profile(family=engine.TABLE, table=table, step=float(knots[1]))


@lru_cache(maxsize=32)
def _matern_table(order: float) -> Profile:
    """2^(1 − ν)/Γ(ν) · r^ν K_ν(r)."""
    top = np.log1p(760.0)  # beyond, exp underflows
    r = np.expm1(np.linspace(0.0, top, KNOTS))
    depth = np.zeros(KNOTS)
    depth[1:] = -((1 - order) * np.log(2.0) - special.gammaln(order) + order * np.log(r[1:]) + log_bessel_k(order, r[1:]))
    return _tabulate(depth, top)


@lru_cache(maxsize=32)
def _student_table(exponent: float, dimension: int) -> Profile:
    """₂F₁(a, 2a − d/2; a + ½; −r²/4) = ∫₀¹ v^(a − 1) (1 + r²v)^−(2a − d/2) du / B(a, a) with v = u(1 − u).

    Over s = log(u/(1 − u)) the integrand is analytic in a strip of half-width π and decays at both ends, so that the trapezoidal
    rule is exact to rounding with a step of ½, or less where large exponents make the peak narrow.
    """
    top = np.log1p(1e8)
    r = np.expm1(np.linspace(0.0, top, KNOTS))
    power = 2 * exponent - dimension / 2
    s = np.arange(0.0, 40.0 / min(exponent, 1.0) + 2 * top, 0.5 / np.sqrt(max(1.0, (exponent + power) / 4)))
    log_v = -2 * np.logaddexp(s / 2, -s / 2)
    share = exponent * log_v  # logarithms throughout: both factors leave the range of floating point
    share[0] -= np.log(2.0)
    share -= special.logsumexp(share)
    v = np.exp(log_v)
    depth = np.empty(KNOTS)
    for a, b in blocks(KNOTS, 1024):
        logs = share - power * np.log1p(np.outer(r[a:b] ** 2, v))
        largest = logs.max(axis=1)
        depth[a:b] = -largest - np.log(np.exp(logs - largest[:, None]).sum(axis=1))
    depth[0] = 0.0
    return _tabulate(depth, top)
