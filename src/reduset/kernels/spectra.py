"""The Fourier side of a kernel: g(x − y) = g(0)·E cos(ω·(x − y)), ω drawn from the kernel's spectrum (Bochner).

The squared distance of two kernel means is then an average of squares, ‖f − f'‖² = g(0)·E|f̂(ω) − f̂'(ω)|²: no term is
negative and nothing cancels, which is why the certificate measures with it.

Everything is in the coordinates of the kernel's frame, where the bandwidth is gone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from numpy.polynomial import Polynomial
from scipy import special

from reduset._types import Array


class Spectrum(ABC):
    """The law of ω, and one to draw from that is as wide as it."""

    dimension: int
    rotates: ClassVar[bool] = True  # whether the law is the same in every direction
    heavy: ClassVar[bool] = False  # whether it falls like a power
    octaves: ClassVar[float]  # above its own scale, beyond which the spectrum has no weight that could matter

    @abstractmethod
    def log_density(self, frequencies: Array) -> Array:
        """Log-density of the spectrum at (s, d) frequencies."""

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """(count, d) frequencies from the proposal."""

    def proposal_log_density(self, frequencies: Array) -> Array:
        """Log-density of the proposal; the spectrum itself unless a class says otherwise."""
        return self.log_density(frequencies)


@dataclass(frozen=True)
class NormalSpectrum(Spectrum):
    """Of exp(−|z|²): normal, of variance 2."""

    dimension: int
    octaves: ClassVar[float] = 2

    def log_density(self, frequencies: Array) -> Array:
        return -_squares(frequencies) / 4 - self.dimension / 2 * np.log(4 * np.pi)

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

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        normal = rng.standard_normal((count, self.dimension))
        normal /= np.sqrt(rng.chisquare(self.freedom, size=(count, 1)))
        return normal


@dataclass(frozen=True)
class ProductSpectrum(Spectrum):
    """The one-dimensional power law in each coordinate: ν = 1 for the city-block Laplacian, 3 for its L2 product."""

    rotates: ClassVar[bool] = False

    dimension: int
    freedom: float
    octaves: ClassVar[float] = 20
    heavy: ClassVar[bool] = True

    def log_density(self, frequencies: Array) -> Array:
        return self.log_densities(frequencies).sum(axis=1)

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
    """Of the Student kernel (1 + |z|²)^−a: ∝ |ω|^(a − d/2) K_(a − d/2)(|ω|), a gamma mixture of normals."""

    dimension: int
    exponent: float
    octaves: ClassVar[float] = 4

    def log_density(self, frequencies: Array) -> Array:
        return _log_student_transform(frequencies, self.exponent) - self.dimension * np.log(2 * np.pi)

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        mixing = rng.gamma(self.exponent, size=(count, 1))
        return np.sqrt(2 * mixing) * rng.standard_normal((count, self.dimension))


@dataclass(frozen=True)
class SquaredBesselSpectrum(Spectrum):
    """Of the Student kernel's L2 product: its transform squared.

    Drawn from the spectrum of exponent 2a − d/2 at half the scale, which has the same pole at 0 and the same decay.
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
    """The polynomials of the uniform expansion, by their recursion (DLMF 10.41.9)."""
    p = Polynomial([0.0, 1.0])
    u = [Polynomial([1.0])]
    for _ in range(9):
        u.append(0.5 * p**2 * (1 - p**2) * u[-1].deriv() + ((1 - 5 * p**2) * u[-1]).integ() / 8)
    return u


def log_bessel_k(order: float, x: Array) -> Array:
    """log K_order(x), also where K itself overflows or underflows.

    Large orders take the uniform expansion (DLMF 10.41.4), relative error below 1e-12 from order 40 on.
    """
    if order < 40:
        with np.errstate(over="ignore", divide="ignore"):
            value = np.log(special.kve(order, x)) - x
        small = ~np.isfinite(value)  # x so small that K overflows: its leading term is exact there
        if order > 0 and small.any():
            value[small] = special.gammaln(order) + (order - 1) * np.log(2.0) - order * np.log(x[small])
        return value
    z = x / order
    root = np.sqrt(1 + z * z)
    eta = root + np.log(z / (1 + root))
    p = 1 / root
    correction = sum((u(p) * (-1 / order) ** k for k, u in enumerate(_corrections())), np.zeros_like(p))
    return 0.5 * np.log(np.pi / (2 * order)) - order * eta - 0.5 * np.log(root) + np.log(correction)
