"""From a bag to a vector A(p), so that Euclidean distances are distances of densities (Sutherland et al. 2016, (5) and (9)).

bag → cube → Gaussian density estimate at nodes → feature map of its values → integrals against an orthonormal basis. The result is
the coefficients of F functions (F = 2M for M frequencies) and |V| products of the basis: F·|V| numbers, functions first.

The basis functions are products of one function per axis:

    "cosine"   1, √2 cos πkx                 not periodic, so without a jump at the faces
    "fourier"  1, √2 cos 2πkx, √2 sin 2πkx   of the paper's theory, for periodic densities
    "values"   no basis: the values at the nodes, which are more numbers, without truncation

Up to three dimensions all products of the first n functions are used. Above three dimensions, only those of total degree below n
are used: C(n − 1 + d, d) instead of nᵈ.

The nodes are a tensor grid of Gauss–Legendre nodes up to three dimensions, and Sobol points above; random points are an option. On
a grid the Gaussian separates. With the (G, n) factors E_k of the axes, a bag's density is E₁E₂ᵀ in two dimensions and E₁(E₂ ⊙ E₃)ᵀ
in three, where ⊙ multiplies all pairs of rows. This is one matrix product instead of n·Gᵈ exponentials. Projections on the basis
separate as well. The density of a bag costs O(n·Gᵈ) multiplications and O(d·n·G) exponentials. The integrals cost O(F·|V|·nodes),
and less on a grid.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from reduset._engine import Frame, Profile, blocks, cached_property, gram
from reduset._types import Array, Floats, Precision
from reduset.features.homogeneous_distances import DistanceFrequencies, feature_map
from reduset.features.merging import WeightedBag, density_at, merged

VALUES = "values"
BASES = ("cosine", "fourier", VALUES)
MAX_GRID_DIMENSION, MAX_DIMENSION = 3, 6
INTEGRATION = ("auto", "grid", "sobol", "uniform")
MIN_PER_AXIS, MAX_PER_AXIS = 16, {1: 1024, 2: 96, 3: 40}  # nodes
SPACING = 1.2  # nodes per axis times bandwidth: in the middle, neighbours are 1.3 bandwidths apart
NODES_PER_FUNCTION = 1.5  # at least, per axis: fewer cannot distinguish basis functions
SCATTERED_LOG2 = 13
MIN_MASS = 1e-99  # of a kernel more than 21 bandwidths from all nodes; its third power is still positive
POINTS_PER_BLOCK, PRODUCT_POINTS_PER_BLOCK = {1: 4096, 2: 4096, 3: 512}, 64
MIN_MERGED = 10_000  # points; merging fewer does not pay
VALUES_PER_BLOCK = 1 << 19  # of functions at nodes


def along_axis(x: Array, count: int, kind: str) -> Array:
    """(len(x), count) values of the first functions of one axis."""
    orders = np.arange(count)
    if kind == "cosine":
        values = np.cos(np.pi * np.outer(x, orders))
    else:
        angles = 2 * np.pi * np.outer(x, (orders + 1) // 2)
        values = np.where(orders % 2 == 1, np.cos(angles), np.sin(angles))
        values[:, 0] = 1.0
    values[:, 1:] *= np.sqrt(2.0)
    return values


@cache
def indices(dimension: int, count: int) -> NDArray[np.int64]:
    """(|V|, d) the function of each axis in each product."""
    if dimension <= MAX_GRID_DIMENSION:
        return np.array(list(product(range(count), repeat=dimension)), dtype=np.int64)
    return _of_degree_below(dimension, count)


def _of_degree_below(dimension: int, count: int) -> NDArray[np.int64]:
    """All index vectors with a sum below ``count``."""
    if dimension == 1:
        return np.arange(count)[:, None]
    parts = []
    for first in range(count):
        rest = _of_degree_below(dimension - 1, count - first)
        parts.append(np.column_stack([np.full(len(rest), first), rest]))
    return np.concatenate(parts)


def at_points(points: Array, count: int, kind: str) -> Array:
    """(n, |V|) values of all products at points of the cube."""
    axes = [along_axis(column, count, kind) for column in points.T]
    steps = _product_steps(len(axes), count)
    out = np.empty((len(points), len(steps[-1][0])))
    for a in range(0, len(points), PRODUCT_POINTS_PER_BLOCK):
        rows = slice(a, a + PRODUCT_POINTS_PER_BLOCK)
        block = np.ones((len(out[rows]), 1))
        for values, (prefix, last) in zip(axes, steps, strict=True):
            block = block[:, prefix] * values[rows][:, last]
        out[rows] = block
    return out


@cache
def _product_steps(dimension: int, count: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Products, axis by axis: for each product over the first axes, the shorter one before it and the new function."""
    steps = []
    for axis in range(dimension):
        longer = np.unique(indices(dimension, count)[:, : axis + 1], axis=0)
        prefix = np.unique(longer[:, :-1], axis=0, return_inverse=True)[1] if axis else np.zeros(len(longer), np.int64)
        steps.append((prefix.ravel(), longer[:, -1]))
    return steps


@dataclass(frozen=True)
class Nodes(ABC):
    """Nodes with weights, and the basis on them."""

    dimension: int
    n_basis: int
    kind: str

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of nodes."""

    @property
    def products(self) -> int:
        """|V|, the number of integrals of a function."""
        return self.count if self.kind == VALUES else len(indices(self.dimension, self.n_basis))

    @property
    @abstractmethod
    def roots(self) -> Array:
        """(count,) square roots of the weights, which sum to 1."""

    @abstractmethod
    def density(self, points: Floats, weights: Array | None, bandwidth: Array) -> Array:
        """(count,) values of a Gaussian density estimate with mass 1 on the cube."""

    @abstractmethod
    def integrals(self, functions: Array) -> Array:
        """(…, |V|) integrals of functions (…, count) times each basis function; without a basis, values times √weight."""


@dataclass(frozen=True)
class Grid(Nodes):
    """A tensor grid."""

    per_axis: int

    @property
    def count(self) -> int:
        return int(self.per_axis**self.dimension)

    @cached_property
    def axis(self) -> tuple[Array, Array]:
        """(G,) nodes along an axis and their weights."""
        nodes, weights = np.polynomial.legendre.leggauss(self.per_axis)
        return (nodes + 1) / 2, weights / 2

    @cached_property
    def _functions(self) -> Array:
        """(n_basis, G) times the weights of the nodes."""
        nodes, weights = self.axis
        return np.ascontiguousarray(along_axis(nodes, self.n_basis, self.kind).T * weights)

    def density(self, points: Floats, weights: Array | None, bandwidth: Array) -> Array:
        weights = np.full(len(points), 1 / len(points)) if weights is None else weights
        values = np.zeros(self.count)
        for a, b in blocks(len(points), POINTS_PER_BLOCK[self.dimension]):
            values += self._sums(points[a:b], weights[a:b], bandwidth)
        return np.maximum(values, 0.0, out=values)  # signed weights may leave small negative values

    def _sums(self, points: Floats, weights: Array, bandwidth: Array) -> Array:
        """(count,) sums of separable kernels."""
        nodes, node_weights = self.axis
        factors, scale = [], weights
        for axis in range(self.dimension):
            frame = Frame(np.zeros(1), float(np.sqrt(0.5)) / float(bandwidth[axis]))
            values = gram(nodes[:, None], points[:, axis, None], frame, Profile())  # (G, n) exp(−(u − x)²/2h²)
            # each kernel has mass 1 along the axis, so that no mass is lost through the faces
            scale = scale / np.maximum(node_weights @ values, MIN_MASS)
            factors.append(values)
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
        if self.kind == VALUES:
            return functions * self.roots
        shape = functions.shape[:-1]
        values = functions.reshape(-1, *(self.per_axis,) * self.dimension)
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
        return at_points(self.points, self.n_basis, self.kind) / self.count

    def density(self, points: Floats, weights: Array | None, bandwidth: Array, precision: Precision = "auto") -> Array:
        values = np.maximum(density_at(WeightedBag(points, weights), bandwidth, self.points, precision), 0.0)
        mass = float(values.mean())
        return values / mass if mass > 0 else values

    def integrals(self, functions: Array) -> Array:
        if self.kind == VALUES:
            return functions * self.roots
        return np.asarray(functions @ self._functions)


def finest(dimension: int, integration: str, count: int | None) -> float:
    """The smallest bandwidth for a grid: below it, nodes are more than 2.6 bandwidths apart."""
    if integration in ("sobol", "uniform") or dimension > MAX_GRID_DIMENSION:
        return 0.0
    return 0.5 * SPACING / (MAX_PER_AXIS[dimension] if count is None else count)


def nodes_for(
    dimension: int, n_basis: int, kind: str, integration: str, count: int | None, bandwidth: float, rng: np.random.Generator
) -> Nodes:
    """The nodes for these parameters; ``count`` is the number per axis of a grid, and the total otherwise."""
    if integration == "auto":
        integration = "grid" if dimension <= MAX_GRID_DIMENSION else "sobol"
    if integration == "grid":
        if dimension > MAX_GRID_DIMENSION:
            raise ValueError(
                f"integration='grid' is for at most {MAX_GRID_DIMENSION} columns, got {dimension}; use 'sobol', or marginals=True"
            )
        if count is None:
            for_basis = 0 if kind == VALUES else int(np.ceil(NODES_PER_FUNCTION * n_basis)) + 1
            count = max(min(int(np.ceil(SPACING / bandwidth)), MAX_PER_AXIS[dimension]), MIN_PER_AXIS, for_basis)
        elif kind != VALUES and count < n_basis:
            raise ValueError(f"n_nodes must be at least n_basis={n_basis}, nodes per axis of a grid, got {count}")
        return Grid(dimension, n_basis, kind, count)
    total = 1 << SCATTERED_LOG2 if count is None else count
    if integration == "uniform":
        return Scattered(dimension, n_basis, kind, rng.uniform(size=(total, dimension)))
    sobol = qmc.Sobol(dimension, scramble=True, rng=rng)
    power = int(np.ceil(np.log2(total)))
    return Scattered(dimension, n_basis, kind, sobol.random_base2(power)[:total])


@dataclass(frozen=True)
class DensityView:
    """A density estimate of some columns.

    Attributes
    ----------
    columns : of the bags
    nodes : at which the density is evaluated
    bandwidth : (d,) for these columns, in units of the cube
    """

    columns: slice
    nodes: Nodes
    bandwidth: Array


@dataclass(frozen=True)
class Projection:
    """A(p): the concatenated coefficients of all views.

    The points of large bags are first merged into cells if the density is not separable, unless ``tol`` is None.
    """

    views: tuple[DensityView, ...]
    distance: str
    frequencies: DistanceFrequencies | None
    tol: float | None = None

    @property
    def functions(self) -> int:
        if self.frequencies is None:
            return 1
        return 2 * len(self.frequencies.values) if self.frequencies.values.any() else 1

    @property
    def length(self) -> int:
        """F·|V|, of all views."""
        return self.functions * sum(view.nodes.products for view in self.views)

    def of(self, bags: list[WeightedBag]) -> Array:
        """(N, length): the densities one by one, the integrals of several together."""
        out, start = np.empty((len(bags), self.length)), 0
        for view in self.views:
            stop = start + self.functions * view.nodes.products
            for a, b in blocks(len(bags), max(1, VALUES_PER_BLOCK // (self.functions * view.nodes.count))):
                functions = [feature_map(self._density(bag, view), self.distance, self.frequencies).T for bag in bags[a:b]]
                out[a:b, start:stop] = view.nodes.integrals(np.stack(functions)).reshape(b - a, -1)
            start = stop
        return out

    def _density(self, bag: WeightedBag, view: DensityView) -> Array:
        bag = bag.only(view.columns)
        if self.tol is not None and len(bag.points) >= MIN_MERGED and bag.is_positive and isinstance(view.nodes, Scattered):
            bag = merged(bag, view.bandwidth, self.tol)
            # the default precision would repeat small densities in double: most of the nodes in many dimensions
            return view.nodes.density(bag.points, bag.weights, bag.widened(view.bandwidth), "single")
        return view.nodes.density(bag.points, bag.weights, bag.widened(view.bandwidth))
