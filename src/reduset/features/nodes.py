"""Where densities are looked at: a tensor grid of Gauss–Legendre nodes up to three dimensions, Sobol points above, or drawn points.

On a grid the Gaussian separates: with the (G, n) factors E_k of the axes, a bag's density is E₁E₂ᵀ in two dimensions and
E₁(E₂ ⊙ E₃)ᵀ in three (⊙: products of all pairs of rows), one matrix product instead of n·Gᵈ exponentials. Projections on the
basis separate as well. O(n·Gᵈ) multiplications a bag, O(d·n·G) exponentials.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from reduset.features import basis
from reduset.kernels import Gaussian
from reduset.mean import KernelMean

Array = NDArray[np.float64]

INTEGRATION = ("auto", "grid", "sobol", "uniform")
MOST_AN_AXIS = {1: 1024, 2: 96, 3: 40}
LEAST_AN_AXIS = 16
SPACING = 1.2  # nodes an axis times bandwidth: neighbours in the middle are then 1.3 bandwidths apart
SCATTERED_LOG2 = 13


@dataclass(frozen=True)
class Nodes(ABC):
    """Nodes with weights, and the basis on them."""

    dimension: int
    n_basis: int
    kind: str

    @property
    @abstractmethod
    def count(self) -> int:
        """How many nodes."""

    @property
    @abstractmethod
    def roots(self) -> Array:
        """(count,) square roots of the nodes' weights, which sum to 1."""

    @abstractmethod
    def density(self, points: Array, weights: Array | None, bandwidth: Array) -> Array:
        """(count,) values of a Gaussian density estimate of mass 1 on the cube."""

    @abstractmethod
    def integrals(self, functions: Array) -> Array:
        """(…, |V|) integrals of functions, given as (…, count), times each of the basis; without one, values times √weight."""


@dataclass(frozen=True)
class Grid(Nodes):
    """A tensor grid."""

    an_axis: int

    @property
    def count(self) -> int:
        return int(self.an_axis**self.dimension)

    @cached_property
    def _axis(self) -> tuple[Array, Array]:
        places, weights = np.polynomial.legendre.leggauss(self.an_axis)
        return (places + 1) / 2, weights / 2

    @cached_property
    def _functions(self) -> Array:
        """(n_basis, G) times the weights of the nodes."""
        places, weights = self._axis
        return np.ascontiguousarray(basis.along_axis(places, self.n_basis, self.kind).T * weights)

    def density(self, points: Array, weights: Array | None, bandwidth: Array) -> Array:
        places, node_weights = self._axis
        shares = np.full(len(points), 1 / len(points)) if weights is None else weights
        factors = []
        for axis in range(self.dimension):
            # each bump with mass 1 along the axis, where it is within reach of nodes: nothing is lost through the faces
            bumps = _bumps(places, points[:, axis], float(bandwidth[axis]))
            bumps /= np.maximum(node_weights @ bumps, np.finfo(np.float64).tiny)
            factors.append(bumps)
        first = factors[0] * shares
        if self.dimension == 1:
            values = first.sum(axis=1)
        elif self.dimension == 2:
            values = (first @ factors[1].T).ravel()
        else:
            pairs = (factors[1][:, None, :] * factors[2][None, :, :]).reshape(-1, len(points))
            values = (first @ pairs.T).ravel()
        return _positive(values)

    @cached_property
    def roots(self) -> Array:
        weights = np.ones(1)
        for _ in range(self.dimension):
            weights = np.outer(weights, self._axis[1]).ravel()
        return np.sqrt(weights)

    def integrals(self, functions: Array) -> Array:
        if self.kind == basis.VALUES:
            return functions * self.roots
        shape = functions.shape[:-1]
        values = functions.reshape(-1, *(self.an_axis,) * self.dimension)
        for axis in range(self.dimension):
            values = np.moveaxis(np.tensordot(values, self._functions, axes=(axis + 1, 1)), -1, axis + 1)
        return values.reshape(*shape, -1)


@dataclass(frozen=True)
class Scattered(Nodes):
    """Points of equal weight."""

    points: Array

    @property
    def count(self) -> int:
        return len(self.points)

    @property
    def roots(self) -> Array:
        return np.full(self.count, self.count**-0.5)

    @cached_property
    def _functions(self) -> Array:
        return basis.at_points(self.points, self.n_basis, self.kind) / self.count

    def density(self, points: Array, weights: Array | None, bandwidth: Array) -> Array:
        shares = np.full(len(points), 1 / len(points)) if weights is None else weights
        mean = KernelMean(points / bandwidth, shares, Gaussian(1.0, normalized=True))
        values = _positive(np.asarray(mean(self.points / bandwidth)))
        mass = float(values.mean())
        return values / mass if mass > 0 else values

    def integrals(self, functions: Array) -> Array:
        if self.kind == basis.VALUES:
            return functions * self.roots
        return np.asarray(functions @ self._functions)


def nodes_for(
    dimension: int, n_basis: int, kind: str, integration: str, count: int | None, bandwidth: float, rng: np.random.Generator
) -> Nodes:
    """The nodes that the parameters ask for; ``count`` is the number an axis of a grid, and of all points elsewhere."""
    if integration == "auto":
        integration = "grid" if dimension <= basis.MOST_TENSOR else "sobol"
    if integration == "grid":
        if dimension > basis.MOST_TENSOR:
            raise ValueError(
                f"integration='grid' is for at most {basis.MOST_TENSOR} columns, got {dimension}; use 'sobol', or marginals=True"
            )
        wanted = int(np.clip(np.ceil(SPACING / bandwidth), max(LEAST_AN_AXIS, n_basis + 6), MOST_AN_AXIS[dimension]))
        return Grid(dimension, n_basis, kind, wanted if count is None else count)
    total = 1 << SCATTERED_LOG2 if count is None else count
    if integration == "uniform":
        return Scattered(dimension, n_basis, kind, rng.uniform(size=(total, dimension)))
    sobol = qmc.Sobol(dimension, scramble=True, rng=rng)
    power = int(np.ceil(np.log2(total)))
    return Scattered(dimension, n_basis, kind, sobol.random_base2(power)[:total])


def _bumps(places: Array, x: Array, bandwidth: float) -> Array:
    """(G, n) values exp(−(u − x)²/2h²)."""
    gaps = (places[:, None] - x[None, :]) / bandwidth
    np.multiply(gaps, gaps, out=gaps)
    gaps *= -0.5
    np.exp(gaps, out=gaps)
    return gaps


def _positive(values: Array) -> Array:
    """Signed weights may leave a trace below 0 where a density is nearly 0."""
    return np.maximum(values, 0.0, out=values)
