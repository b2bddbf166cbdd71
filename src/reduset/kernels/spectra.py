"""Representations of kernels: spectra, scale mixtures of normal distributions, and tables.

**Spectra.** g(x − y) = g(0)·E cos(ω·(x − y)), ω drawn from the kernel's spectrum (Bochner). The squared distance of two kernel
means is then an average of squares, ‖f − f'‖² = g(0)·E|f̂(ω) − f̂'(ω)|². No term is negative and nothing cancels, so the
certificate measures with it. Frequencies are in the coordinates of the kernel's frame, without the bandwidth.

**Scale mixtures.** φ ∝ E N(·; 0, τ²), τ = factor·G^power, with G gamma distributed. Every exp(−r), Matérn or Student kernel
function is one (Andrews & Mallows 1974). An integral with a closed form for the normal distribution then becomes an integral over τ
alone. Over log G the integrand is analytic and decays at both ends. So the trapezoidal rule has an error of 1e-12 with about a
hundred nodes.

**Tables.** Products without a fast closed form are tabulated once, as a spline with a relative error of 1e-12.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import ClassVar

import numpy as np
from numpy.polynomial import Polynomial
from scipy import special

from reduset import _engine as engine
from reduset._engine import Profile
from reduset._types import Array


class Spectrum(ABC):
    """The distribution of ω, and a proposal distribution that is at least as wide."""

    dimension: int
    rotates: ClassVar[bool] = True  # True if the distribution is the same in all directions
    heavy: ClassVar[bool] = False  # True if the density falls like a power
    octaves: ClassVar[float]  # above its scale, beyond which the weight of the spectrum is negligible

    @abstractmethod
    def log_density(self, frequencies: Array) -> Array:
        """Log-density of the spectrum at (s, d) frequencies."""

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """(count, d) frequencies from the proposal."""

    @abstractmethod
    def proposal_log_density(self, frequencies: Array) -> Array:
        """Log-density of the proposal, which is `log_density` if frequencies are drawn from the spectrum itself."""


@dataclass(frozen=True)
class NormalSpectrum(Spectrum):
    """The spectrum of exp(−|z|²): normal with variance 2."""

    dimension: int
    octaves: ClassVar[float] = 2

    def log_density(self, frequencies: Array) -> Array:
        squares = np.einsum("ij,ij->i", frequencies, frequencies)
        return -squares / 4 - self.dimension / 2 * np.log(4 * np.pi)

    proposal_log_density = log_density

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        drawn = rng.standard_normal((count, self.dimension))
        drawn *= np.sqrt(2.0)
        return drawn


@dataclass(frozen=True)
class PowerSpectrum(Spectrum):
    """∝ (1 + |ω|²)^−(ν + d)/2: ν = 1 for the Laplacian, ν = d + 2 for its L2 product (a Matérn of order d/2 + 1)."""

    dimension: int
    freedom: float
    octaves: ClassVar[float] = 20
    heavy: ClassVar[bool] = True

    def log_density(self, frequencies: Array) -> Array:
        d, nu = self.dimension, self.freedom
        constant = special.gammaln((nu + d) / 2) - special.gammaln(nu / 2) - d / 2 * np.log(np.pi)
        return constant - (nu + d) / 2 * np.log1p(_squares(frequencies))

    proposal_log_density = log_density

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        normal = rng.standard_normal((count, self.dimension))
        normal /= np.sqrt(rng.chisquare(self.freedom, size=(count, 1)))
        return normal


@dataclass(frozen=True)
class ProductSpectrum(Spectrum):
    """The one-dimensional `PowerSpectrum` in each coordinate: ν = 1 for the city-block Laplacian, 3 for its L2 product."""

    rotates: ClassVar[bool] = False

    dimension: int
    freedom: float
    octaves: ClassVar[float] = 20
    heavy: ClassVar[bool] = True

    def log_density(self, frequencies: Array) -> Array:
        return self.log_densities(frequencies).sum(axis=1)

    proposal_log_density = log_density

    def log_densities(self, frequencies: Array) -> Array:
        """The log-density of each coordinate."""
        nu = self.freedom
        constant = special.gammaln((nu + 1) / 2) - special.gammaln(nu / 2) - np.log(np.pi) / 2
        return constant - (nu + 1) / 2 * np.log1p(frequencies**2)

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        shape = (count, self.dimension)
        return rng.standard_normal(shape) / np.sqrt(rng.chisquare(self.freedom, size=shape))


@dataclass(frozen=True)
class BesselSpectrum(Spectrum):
    """The spectrum of the Student kernel (1 + |z|²)^−a: ∝ |ω|^(a − d/2) K_(a − d/2)(|ω|), a gamma mixture of normals."""

    dimension: int
    exponent: float
    octaves: ClassVar[float] = 4

    def log_density(self, frequencies: Array) -> Array:
        return _log_student_transform(frequencies, self.exponent) - self.dimension * np.log(2 * np.pi)

    proposal_log_density = log_density

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        mixing = rng.gamma(self.exponent, size=(count, 1))
        return np.sqrt(2 * mixing) * rng.standard_normal((count, self.dimension))


@dataclass(frozen=True)
class SquaredBesselSpectrum(Spectrum):
    """The spectrum of the L2 product of the Student kernel: the square of its transform.

    The proposal is the spectrum of exponent 2a − d/2 at half the scale, which has the same pole at 0 and the same decay.
    """

    dimension: int
    exponent: float
    octaves: ClassVar[float] = 4

    def log_density(self, frequencies: Array) -> Array:
        d, a = self.dimension, self.exponent
        log_energy = d / 2 * np.log(np.pi) + special.gammaln(2 * a - d / 2) - special.gammaln(2 * a)
        return 2 * _log_student_transform(frequencies, a) - d * np.log(2 * np.pi) - log_energy

    @property
    def _proposal(self) -> BesselSpectrum:
        return BesselSpectrum(self.dimension, 2 * self.exponent - self.dimension / 2)

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        return self._proposal.draw(count, rng) / 2

    def proposal_log_density(self, frequencies: Array) -> Array:
        return self._proposal.log_density(2 * frequencies) + self.dimension * np.log(2.0)


def _squares(frequencies: Array) -> Array:
    return np.einsum("ij,ij->i", frequencies, frequencies)


def _log_student_transform(frequencies: Array, exponent: float) -> Array:
    """log ∫ exp(iω·z) (1 + |z|²)^−a dz = log[2 π^(d/2) / Γ(a) · (|ω|/2)^(a − d/2) K_(a − d/2)(|ω|)]."""
    d = frequencies.shape[1]
    order = exponent - d / 2
    length = np.maximum(np.sqrt(_squares(frequencies)), 1e-300)
    constant = np.log(2.0) + d / 2 * np.log(np.pi) - special.gammaln(exponent)
    return constant + order * np.log(length / 2) + log_bessel_k(abs(order), length)


@cache
def _corrections() -> list[Polynomial]:
    """The polynomials of the uniform expansion, by recursion (DLMF 10.41.9)."""
    p = Polynomial([0.0, 1.0])
    u = [Polynomial([1.0])]
    for _ in range(9):
        u.append(0.5 * p**2 * (1 - p**2) * u[-1].deriv() + ((1 - 5 * p**2) * u[-1]).integ() / 8)
    return u


def log_bessel_k(order: float, x: Array) -> Array:
    """log K_order(x), without overflow or underflow.

    From order 40 on it uses the uniform expansion (DLMF 10.41.4), with a relative error below 1e-12.
    """
    if order < 40:
        with np.errstate(over="ignore", divide="ignore"):
            value = np.log(special.kve(order, x)) - x
        small = ~np.isfinite(value)  # K overflows at small x, where its leading term is exact
        if order > 0 and small.any():
            value[small] = special.gammaln(order) + (order - 1) * np.log(2.0) - order * np.log(x[small])
        return value
    z = x / order
    root = np.sqrt(1 + z * z)
    eta = root + np.log(z / (1 + root))
    p = 1 / root
    correction = sum((u(p) * (-1 / order) ** k for k, u in enumerate(_corrections())), np.zeros_like(p))
    return 0.5 * np.log(np.pi / (2 * order)) - order * eta - 0.5 * np.log(root) + np.log(correction)


NEGLIGIBLE_EXPONENT = 34.0  # the density at the ends of the rule is about exp(−34) of its peak
STEP = 0.25  # of log G, for a shape of at most 1


@dataclass(frozen=True)
class ScaleMixture:
    """The distribution of the width τ in the scale mixture of a kernel function with bandwidth 1."""

    shape: float
    power: float
    factor: float

    def nodes(self) -> tuple[Array, Array]:
        """Widths and their weights, which sum to 1."""
        a = self.shape
        top = np.log(a + NEGLIGIBLE_EXPONENT + 2 * np.sqrt(NEGLIGIBLE_EXPONENT * a))
        s = np.arange(np.log(a) - NEGLIGIBLE_EXPONENT / a - 2 * np.sqrt(NEGLIGIBLE_EXPONENT / a), top, STEP / np.sqrt(max(1.0, a)))
        logs = a * s - np.exp(s)
        weights = np.exp(logs - logs.max())
        return self.factor * np.exp(self.power * s), np.asarray(weights / weights.sum())

    def at(self, probability: Array) -> Array:
        """The quantile of the width at a probability."""
        gamma = special.gammaincinv(self.shape, np.clip(probability, 1e-300, 1 - 1e-16) if self.power > 0 else 1 - probability)
        return np.asarray(self.factor * np.maximum(gamma, 1e-300) ** self.power)


KNOTS = 1 << 15


def tabulate(exponents: Array, top: float, slopes: Array | None = None) -> Profile:
    """A spline of exponents over log(1 + r), with equally spaced knots up to ``top``; slopes are estimated if not given."""
    knots = np.linspace(0.0, top, len(exponents))
    if slopes is None:
        from scipy.interpolate import CubicSpline  # imported only by kernels that need it

        slopes = CubicSpline(knots, exponents)(knots, 1)
    table = np.ascontiguousarray(np.stack([exponents, slopes], axis=1))
    table.setflags(write=False)
    return Profile(family=engine.TABLE, table=table, step=float(knots[1]))


@lru_cache(maxsize=32)
def matern_table(order: float) -> Profile:
    """2^(1 − ν)/Γ(ν) · r^ν K_ν(r)."""
    top = np.log1p(760.0)  # exp underflows beyond
    r = np.expm1(np.linspace(0.0, top, KNOTS))
    exponents = np.zeros(KNOTS)
    exponents[1:] = -((1 - order) * np.log(2.0) - special.gammaln(order) + order * np.log(r[1:]) + log_bessel_k(order, r[1:]))
    return tabulate(exponents, top)
