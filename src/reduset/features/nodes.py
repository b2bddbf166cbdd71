"""Where densities are looked at: a tensor grid of Gauss–Legendre nodes up to three dimensions, Sobol points above, or drawn points.

On a grid the Gaussian separates: with the (G, n) factors E_k of the axes, a bag's density is E₁E₂ᵀ in two dimensions and
E₁(E₂ ⊙ E₃)ᵀ in three (⊙: products of all pairs of rows), one matrix product instead of n·Gᵈ exponentials. Projections on the
basis separate as well. O(n·Gᵈ) multiplications a bag, O(d·n·G) exponentials.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.stats import qmc

from reduset._engine import Frame, Profile, blocks, cached_property, gram
from reduset._types import Array, Floats, Precision
from reduset.features import basis
from reduset.features.merging import WeightedBag, density_at

INTEGRATION = ("auto", "grid", "sobol", "uniform")
MOST_AN_AXIS = {1: 1024, 2: 96, 3: 40}
LEAST_AN_AXIS = 16
SPACING = 1.2  # nodes an axis times bandwidth: neighbours in the middle are then 1.3 bandwidths apart
A_FUNCTION = 1.5  # nodes an axis, at least, for each function of the basis: fewer take one for another
SCATTERED_LOG2 = 13
OUT_OF_REACH = 1e-99  # the mass of a bump that is over 21 bandwidths from all nodes; its cube can still be divided by
POINTS_AT_ONCE = {1: 4096, 2: 4096, 3: 512}


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
    def products(self) -> int:
        """|V|, how many integrals a function has."""
        return self.count if self.kind == basis.VALUES else len(basis.indices(self.dimension, self.n_basis))

    @property
    @abstractmethod
    def roots(self) -> Array:
        """(count,) square roots of the nodes' weights, which sum to 1."""

    @abstractmethod
    def density(self, points: Floats, weights: Array | None, bandwidth: Array) -> Array:
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
    def axis(self) -> tuple[Array, Array]:
        """(G,) nodes along an axis and their weights."""
        places, weights = np.polynomial.legendre.leggauss(self.an_axis)
        return (places + 1) / 2, weights / 2

    @cached_property
    def _functions(self) -> Array:
        """(n_basis, G) times the weights of the nodes."""
        places, weights = self.axis
        return np.ascontiguousarray(basis.along_axis(places, self.n_basis, self.kind).T * weights)

    def density(self, points: Floats, weights: Array | None, bandwidth: Array) -> Array:
        shares = np.full(len(points), 1 / len(points)) if weights is None else weights
        values = np.zeros(self.count)
        for a, b in blocks(len(points), POINTS_AT_ONCE[self.dimension]):
            values += self._sums(points[a:b], shares[a:b], bandwidth)
        return _positive(values)

    def _sums(self, points: Floats, shares: Array, bandwidth: Array) -> Array:
        """(count,) sums of separable bumps."""
        places, node_weights = self.axis
        factors, scale = [], shares
        for axis in range(self.dimension):
            bumps = _bumps(places, points[:, axis], float(bandwidth[axis]))
            # each bump with mass 1 along the axis, where it is within reach of nodes: nothing is lost through the faces
            scale = scale / np.maximum(node_weights @ bumps, OUT_OF_REACH)
            factors.append(bumps)
        first = factors[0] * scale
        if self.dimension == 1:
            return np.asarray(first.sum(axis=1))
        if self.dimension == 2:
            return (first @ factors[1].T).ravel()
        pairs = (factors[1][:, None, :] * factors[2][None, :, :]).reshape(-1, len(points))
        return (first @ pairs.T).ravel()

    @cached_property
    def roots(self) -> Array:
        weights = np.ones(1)
        for _ in range(self.dimension):
            weights = np.outer(weights, self.axis[1]).ravel()
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

    def density(self, points: Floats, weights: Array | None, bandwidth: Array, precision: Precision = "auto") -> Array:
        values = _positive(density_at(WeightedBag(points, weights), bandwidth, self.points, precision))
        mass = float(values.mean())
        return values / mass if mass > 0 else values

    def integrals(self, functions: Array) -> Array:
        if self.kind == basis.VALUES:
            return functions * self.roots
        return np.asarray(functions @ self._functions)


def finest(dimension: int, integration: str, count: int | None) -> float:
    """The bandwidth below which bumps fall between the nodes of a grid, which are then more than 2.6 bandwidths apart."""
    if integration in ("sobol", "uniform") or dimension > basis.MOST_TENSOR:
        return 0.0
    return 0.5 * SPACING / (MOST_AN_AXIS[dimension] if count is None else count)


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
        if count is None:
            waves = 0 if kind == basis.VALUES else int(np.ceil(A_FUNCTION * n_basis)) + 1
            count = max(min(int(np.ceil(SPACING / bandwidth)), MOST_AN_AXIS[dimension]), LEAST_AN_AXIS, waves)
        elif kind != basis.VALUES and count < n_basis:
            raise ValueError(f"n_nodes must be at least n_basis={n_basis}, nodes an axis of a grid, got {count}")
        return Grid(dimension, n_basis, kind, count)
    total = 1 << SCATTERED_LOG2 if count is None else count
    if integration == "uniform":
        return Scattered(dimension, n_basis, kind, rng.uniform(size=(total, dimension)))
    sobol = qmc.Sobol(dimension, scramble=True, rng=rng)
    power = int(np.ceil(np.log2(total)))
    return Scattered(dimension, n_basis, kind, sobol.random_base2(power)[:total])


def _bumps(places: Array, x: Floats, bandwidth: float) -> Array:
    """(G, n) values exp(−(u − x)²/2h²)."""
    return gram(places[:, None], x[:, None], Frame(np.zeros(1), float(np.sqrt(0.5)) / bandwidth), Profile())


def _positive(values: Array) -> Array:
    """Signed weights may leave a trace below 0 where a density is nearly 0."""
    return np.maximum(values, 0.0, out=values)
