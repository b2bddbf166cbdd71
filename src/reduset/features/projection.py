"""From a bag to a vector A(p), so that Euclidean distances are distances of densities (Sutherland et al. 2016, (5) and (9)).

    bag → cube → Gaussian density estimate at nodes → feature map of its values → integrals against an orthonormal basis

The result has the coefficients of F functions (F = 2M for M frequencies) in |V| products of the basis. These are F·|V| numbers,
functions first.

The basis functions are products of one function per axis:

    "cosine"   1, √2 cos πkx                 not periodic, so without a jump at the faces
    "fourier"  1, √2 cos 2πkx, √2 sin 2πkx   in the paper's theory, for periodic densities
    "values"   no basis but the values at the nodes: longer vectors, without truncation

Up to three dimensions, all products of the first n functions are used. Above three dimensions, the products have a total degree
below n. Their number is C(n − 1 + d, d) instead of nᵈ.

The nodes are a tensor grid of Gauss–Legendre nodes up to three dimensions, and Sobol points above. Random points are an option. On
a grid, the Gaussian separates. Let E_k be the (G, n) factors of the axes. A bag's density is E₁E₂ᵀ in two dimensions, and
E₁(E₂ ⊙ E₃)ᵀ in three, where ⊙ multiplies all pairs of rows. This is one matrix product instead of n·Gᵈ exponentials. Projections on
the basis separate as well. The density of a bag costs O(n·Gᵈ) multiplications and O(d·n·G) exponentials. The integrals cost
O(F·|V|·nodes), and less on a grid.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from reduset._engine import Frame, Profile, blocks, cached_property, gram
from reduset._types import Array, Floats, Precision
from reduset.features.homogeneous_distances import DistanceFrequencies, feature_map
from reduset.features.merging import WeightedBag, density_at, merge_points

VALUES = "values"
BASES = ("cosine", "fourier", VALUES)
MAX_GRID_DIMENSION, MAX_DIMENSION = 3, 6
INTEGRATION = ("auto", "grid", "sobol", "uniform")
MIN_PER_AXIS, MAX_PER_AXIS = 16, {1: 1024, 2: 96, 3: 40}  # Nodes per axis of a grid, by dimension.
NODES_TIMES_BANDWIDTH = 1.2  # Per axis. Nodes in the middle of the cube are then 1.3 bandwidths apart.
NODES_PER_FUNCTION = 1.5  # Minimum per axis. With fewer nodes, basis functions cannot be distinguished.
SCATTERED_LOG2 = 13
MIN_MASS = 1e-99  # Mass of a kernel more than 21 bandwidths from all nodes. Its third power is still positive.
POINTS_PER_BLOCK, PRODUCT_POINTS_PER_BLOCK = {1: 4096, 2: 4096, 3: 512}, 64
MIN_MERGED_POINTS = 10_000  # Merging smaller bags saves no time.
VALUES_PER_BLOCK = 1 << 19  # Values of functions at nodes.


def axis_functions(x: Array, count: int, kind: str) -> Array:
    """(len(x), count) values of the first ``count`` basis functions of one axis."""
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
    """(|V|, d) indices of the basis function of each axis in each product."""
    if dimension <= MAX_GRID_DIMENSION:
        return np.array(list(product(range(count), repeat=dimension)), dtype=np.int64)
    # The differences of increasing numbers, minus 1, are all index vectors with a sum below ``count``.
    bars = np.array(list(combinations(range(count - 1 + dimension), dimension)), dtype=np.int64)
    return np.diff(bars, axis=1, prepend=-1) - 1


def basis_values(points: Array, count: int, kind: str) -> Array:
    """(n, |V|) values of all products of the basis at points of the cube."""
    axes = [axis_functions(column, count, kind) for column in points.T]
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
    """Products, axis by axis. A step extends each product over the first axes by a function of the next axis."""
    steps = []
    for axis in range(dimension):
        longer = np.unique(indices(dimension, count)[:, : axis + 1], axis=0)
        prefix = np.unique(longer[:, :-1], axis=0, return_inverse=True)[1] if axis else np.zeros(len(longer), np.int64)
        steps.append((prefix.ravel(), longer[:, -1]))
    return steps


@dataclass(frozen=True)
class Nodes(ABC):
    """Nodes of the cube with their weights, and the values of the basis at the nodes."""

    dimension: int
    n_basis: int
    kind: str

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of nodes."""

    @property
    def products(self) -> int:
        """The number |V| of integrals of a function."""
        return self.count if self.kind == VALUES else len(indices(self.dimension, self.n_basis))

    @property
    @abstractmethod
    def roots(self) -> Array:
        """(count,) square roots of the weights. The weights sum to 1."""

    @abstractmethod
    def density(self, points: Floats, weights: Array | None, bandwidth: Array) -> Array:
        """(count,) values of a Gaussian density estimate with mass 1 on the cube."""

    @abstractmethod
    def integrals(self, functions: Array) -> Array:
        """(…, |V|) integrals of functions (…, count) times each basis function. Without a basis, values times √weight."""


@dataclass(frozen=True)
class Grid(Nodes):
    """A tensor grid of Gauss–Legendre nodes."""

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
        """(n_basis, G) basis functions times the weights of the nodes."""
        nodes, weights = self.axis
        return np.ascontiguousarray(axis_functions(nodes, self.n_basis, self.kind).T * weights)

    def density(self, points: Floats, weights: Array | None, bandwidth: Array) -> Array:
        weights = np.full(len(points), 1 / len(points)) if weights is None else weights
        values = np.zeros(self.count)
        for a, b in blocks(len(points), POINTS_PER_BLOCK[self.dimension]):
            values += self._sums(points[a:b], weights[a:b], bandwidth)
        return np.maximum(values, 0.0, out=values)  # Signed weights may leave small negative values.

    def _sums(self, points: Floats, weights: Array, bandwidth: Array) -> Array:
        """(count,) sums of separable kernels."""
        nodes, node_weights = self.axis
        factors, scale = [], weights
        for axis in range(self.dimension):
            frame = Frame(np.zeros(1), float(np.sqrt(0.5)) / float(bandwidth[axis]))
            values = gram(nodes[:, None], points[:, axis, None], frame, Profile())  # (G, n) exp(−(u − x)²/2h²)
            # Normalise each kernel to mass 1 along the axis. Mass that would fall outside the cube stays inside.
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
    """Scattered nodes of equal weight."""

    points: Array

    @property
    def count(self) -> int:
        return len(self.points)

    @property
    def roots(self) -> Array:
        return np.full(self.count, self.count**-0.5)

    @cached_property
    def _functions(self) -> Array:
        return basis_values(self.points, self.n_basis, self.kind) / self.count

    def density(self, points: Floats, weights: Array | None, bandwidth: Array, precision: Precision = "auto") -> Array:
        values = np.maximum(density_at(WeightedBag(points, weights), bandwidth, self.points, precision), 0.0)
        mass = float(values.mean())
        return values / mass if mass > 0 else values

    def integrals(self, functions: Array) -> Array:
        if self.kind == VALUES:
            return functions * self.roots
        return np.asarray(functions @ self._functions)


def smallest_bandwidth(dimension: int, integration: str, count: int | None) -> float:
    """The smallest bandwidth that a grid resolves. For smaller bandwidths, nodes are more than 2.6 bandwidths apart."""
    if integration in ("sobol", "uniform") or dimension > MAX_GRID_DIMENSION:
        return 0.0
    return 0.5 * NODES_TIMES_BANDWIDTH / (MAX_PER_AXIS[dimension] if count is None else count)


def nodes_for(
    dimension: int, n_basis: int, kind: str, integration: str, count: int | None, bandwidth: float, rng: np.random.Generator
) -> Nodes:
    """The nodes for these parameters. ``count`` is the number per axis of a grid, and the total otherwise."""
    if integration == "auto":
        integration = "grid" if dimension <= MAX_GRID_DIMENSION else "sobol"
    if integration == "grid":
        if dimension > MAX_GRID_DIMENSION:
            raise ValueError(
                f"integration='grid' is for at most {MAX_GRID_DIMENSION} columns, got {dimension}; use 'sobol', or marginals=True"
            )
        if count is None:
            for_basis = 0 if kind == VALUES else int(np.ceil(NODES_PER_FUNCTION * n_basis)) + 1
            count = max(min(int(np.ceil(NODES_TIMES_BANDWIDTH / bandwidth)), MAX_PER_AXIS[dimension]), MIN_PER_AXIS, for_basis)
        elif kind != VALUES and count < n_basis:
            raise ValueError(
                f"n_nodes must be at least n_basis={n_basis} per axis of a grid, got {count}; raise n_nodes or lower n_basis"
            )
        return Grid(dimension, n_basis, kind, count)
    total = 1 << SCATTERED_LOG2 if count is None else count
    if integration == "uniform":
        return Scattered(dimension, n_basis, kind, rng.uniform(size=(total, dimension)))
    sobol = qmc.Sobol(dimension, scramble=True, rng=rng)
    power = int(np.ceil(np.log2(total)))
    return Scattered(dimension, n_basis, kind, sobol.random_base2(power)[:total])


@dataclass(frozen=True)
class DensityView:
    """A density estimate of a range of columns.

    Attributes
    ----------
    columns : slice
        Columns of the bags.
    nodes : Nodes
        Nodes at which the density is evaluated.
    bandwidth : (d,)
        Bandwidth of these columns, in units of the cube.
    """

    columns: slice
    nodes: Nodes
    bandwidth: Array


@dataclass(frozen=True)
class Projection:
    """The map from a bag to A(p), the concatenated coefficients of all views.

    If the density is not separable, the points of large bags are first merged into cells. ``tol=None`` switches merging off.
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
        """F·|V|, summed over all views."""
        return self.functions * sum(view.nodes.products for view in self.views)

    def of(self, bags: list[WeightedBag]) -> Array:
        """(N, length) vectors. Densities are evaluated one by one, and integrals for several bags together."""
        out, start = np.empty((len(bags), self.length)), 0
        for view in self.views:
            stop = start + self.functions * view.nodes.products
            for a, b in blocks(len(bags), max(1, VALUES_PER_BLOCK // (self.functions * view.nodes.count))):
                functions = [feature_map(self._density(bag, view), self.distance, self.frequencies).T for bag in bags[a:b]]
                out[a:b, start:stop] = view.nodes.integrals(np.stack(functions)).reshape(b - a, -1)
            start = stop
        return out

    def _density(self, bag: WeightedBag, view: DensityView) -> Array:
        bag = WeightedBag(bag.points[:, view.columns], bag.weights)
        is_positive = bag.weights is None or bag.weights.min() >= 0
        if self.tol is not None and len(bag) >= MIN_MERGED_POINTS and is_positive and isinstance(view.nodes, Scattered):
            bag = merge_points(bag, view.bandwidth, self.tol)
            # The default precision would repeat small densities in double precision. In many dimensions, this would be most nodes.
            return view.nodes.density(bag.points, bag.weights, bag.kernel_bandwidth(view.bandwidth), "single")
        return view.nodes.density(bag.points, bag.weights, bag.kernel_bandwidth(view.bandwidth))
