"""Class means projected onto shared atoms, in the norm of the kernel's space or in a norm that separates the classes.

All class means fᵢ are projected onto the span of the same m atoms, which are chosen once. Let K = L Lᵀ be the Gram matrix of the
atoms, and κᵢ the products of fᵢ with their kernel functions. Then fᵢ has the coordinates μᵢ = L⁻¹κᵢ, and a point x has
z(x) = L⁻¹k(x). A mixture of the classes is the same mixture of their coordinates. Matching coordinates is therefore consistent for
any projection error. Separate atoms for each class would leave an error of first order in the products of two classes.

In the norm of the space, as in the paper, the distance is ‖z̄₀ − Σ πᵢ μᵢ‖. "whitened" divides by the noise first. The distance is
‖R(z̄₀ − Σ πᵢ μᵢ)‖ with R'R = (C + ridge)⁻¹, where C is the covariance of z within classes. This is generalised least squares. It
weights a direction by how well it separates the classes and not by its length. A ridge far above C gives the norm of the space.

In both norms a point enters by k values, v(x) = A'k(x) with A (m, k). This costs n·m kernel evaluations. Without compression
(`FullClassMeans`) the atoms are all the points and A holds their weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from reduset._engine import UseGram, single_threaded_blas
from reduset._types import Array, Floats, Report
from reduset.kernels import Kernel
from reduset.mean import KernelMean
from reduset.proportions.kernel_blocks import product_blocks, product_matrices, product_values
from reduset.proportions.simplex_fit import ClassScatter, SimplexFit

JITTER = 2e-9  # times m on the diagonal of K: negligible in a mixture, but above the rounding errors of its inverse
LEVERAGE = 0.9
SCATTER_ROWS = 4096
COVARIANCE_ROWS, COVARIANCE_ROWS_PER_ATOM = 4096, 16


def ignore(done: int, total: int) -> None:
    """A report function that does nothing."""


@dataclass(frozen=True)
class LabelledPoints:
    """Points with the index of their class and a positive weight."""

    points: Floats
    codes: NDArray[np.int64]
    weights: Array
    classes: int

    def part(self, rows: NDArray[np.int64]) -> LabelledPoints:
        """A subset of the rows."""
        return LabelledPoints(self.points[rows], self.codes[rows], self.weights[rows], self.classes)

    @property
    def masses(self) -> Array:
        """(k,) the weight of each class."""
        return np.bincount(self.codes, self.weights, self.classes).astype(np.float64)

    @property
    def row_weights(self) -> Array:
        """(n,) weights that sum to 1 in each class."""
        return np.asarray(self.weights / self.masses[self.codes])

    @property
    def sizes(self) -> Array:
        """(k,) effective numbers of rows."""
        return np.asarray(1.0 / np.bincount(self.codes, self.row_weights**2, self.classes))

    def columns(self, weights: Array, a: int = 0, b: int | None = None) -> Array:
        """(rows, k) the weight of each row in the column of its class."""
        codes = self.codes[a:b]
        out = np.zeros((len(codes), self.classes))
        out[np.arange(len(codes)), codes] = weights[a:b]
        return out

    def sample(self, limit: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """The numbers of at most ``limit`` rows, balanced over the classes, or of all."""
        if len(self.codes) <= limit:
            return np.arange(len(self.codes))
        rank = np.empty(len(self.codes))
        order = rng.permutation(len(self.codes))
        by_class = order[np.argsort(self.codes[order], kind="stable")]
        starts = np.searchsorted(self.codes[by_class], np.arange(self.classes))
        rank[by_class] = np.arange(len(order)) - starts[self.codes[by_class]]  # position of each row in its class
        return np.sort(order[np.argsort(rank[order], kind="stable")[:limit]])


@dataclass(frozen=True)
class ClassMoments:
    """Class moments of the kernel values at the atoms: Σ w k(x) (m, k), masses (k,), and the covariance within classes."""

    sums: Array
    masses: Array
    within: Array | None
    rows: int  # number of rows of the covariance

    @property
    def kappa(self) -> Array:
        """(m, k) products of the class means with the kernel functions of the atoms."""
        return np.asarray(self.sums / self.masses)

    def merged_with(self, other: ClassMoments) -> ClassMoments:
        """The moments of both sets of points."""
        within = None
        if self.within is not None and other.within is not None:
            within = (self.rows * self.within + other.rows * other.within) / (self.rows + other.rows)
        return ClassMoments(self.sums + other.sums, self.masses + other.masses, within, self.rows + other.rows)


def class_moments(
    data: LabelledPoints,
    kernels: Sequence[Kernel],
    atoms: Array,
    scatter: bool,
    report: Report = ignore,
    also: UseGram | None = None,
) -> list[ClassMoments]:
    """The moments for each kernel, in one pass. ``also`` is called with every block."""
    m, n, weights = len(atoms), len(data.codes), data.weights
    # The covariance uses the first rows, because callers pass rows in random order.
    rows = min(n, max(COVARIANCE_ROWS, COVARIANCE_ROWS_PER_ATOM * m)) if scatter else 0
    sums, first_sums = np.zeros((2, len(kernels), m, data.classes))
    seconds = np.zeros((len(kernels), m, m)) if scatter else np.empty((len(kernels), 0, 0))

    def use(s: int, a: int, b: int, K: Array) -> None:
        if s == 0:
            report(b, n)
        block_sums = K.T @ data.columns(weights, a, b)
        sums[s] += block_sums
        end = min(b, rows)
        if end > a:
            block = K[: end - a]
            first_sums[s] += block_sums if end == b else block.T @ data.columns(weights, a, end)
            scaled = block * np.sqrt(weights[a:end])[:, None]
            seconds[s] += scaled.T @ scaled
        if also is not None:
            also(s, a, b, K)

    product_blocks(kernels, data.points, atoms, use)
    if not scatter:
        return [ClassMoments(total, data.masses, None, 0) for total in sums]
    masses = data.part(np.arange(rows)).masses
    present = masses > 0
    moments = []
    for total, first, second in zip(sums, first_sums, seconds, strict=True):
        centred = first[:, present] / np.sqrt(masses[present])
        moments.append(ClassMoments(total, data.masses, (second - centred @ centred.T) / masses.sum(), rows))
    return moments


def discriminants(products: Array, values: Array) -> Array:
    """(n₀, k) ⟨x, fᵢ⟩ − ‖fᵢ‖²/2 minus its mean over i, from the products of the means and the values ⟨x, fᵢ⟩."""
    nearer = values - np.diagonal(products) / 2
    return np.asarray(nearer - nearer.mean(axis=1, keepdims=True))


class ClassMeans(ABC):
    """Kernel means of the classes, prepared for the comparison with a sample."""

    kernel: Kernel
    atoms: Floats  # (m, d)
    directions: Array  # (m, k), A in the values v(x) = A'k(x) of a point x
    fit: SimplexFit  # from the products of the class means in the norm
    _plain: ClassMeans | None = None  # never the object itself, because a reference cycle would keep matrices in memory

    @property
    def plain(self) -> ClassMeans:
        """The same class means in the norm of the space, for the goodness-of-fit test."""
        return self if self._plain is None else self._plain

    def values(self, points: Floats) -> Array:
        """(n₀, k) the values of each point."""
        return product_values([self.kernel], points, self.atoms, [self.directions])[0]

    def discriminants(self, values: Array) -> Array:
        """(n₀, k) ⟨x, fᵢ⟩ − ‖fᵢ‖²/2 centred over i, which measures the proximity of a point to each mean."""
        return discriminants(self.fit.products, values)

    @abstractmethod
    def evaluate(self, points: Floats) -> tuple[Array, Array, float]:
        """Values of each point, (n₀, k), its values in the plain norm, and the squared plain norm of the points' mean.

        All are computed in one pass.
        """

    @abstractmethod
    def scatter(self, data: LabelledPoints, rng: np.random.Generator) -> ClassScatter:
        """The scatter of the training rows around their class means."""

    @abstractmethod
    def means(self) -> list[KernelMean]:
        """The class means, projected onto the atoms."""


@dataclass(frozen=True)
class AtomBasis:
    """An orthonormal basis of the span of the atoms: L of the Gram matrix, and the covariance within classes (m, m)."""

    L: Array
    within: Array | None
    rows: int  # number of rows of the covariance

    @staticmethod
    def of(gram: Array, moments: ClassMoments) -> AtomBasis:
        """Factor the Gram matrix, and transform the covariance of k(x) to the coordinates."""
        with single_threaded_blas():
            L = cholesky(gram + JITTER * len(gram) * np.eye(len(gram)), lower=True, check_finite=False)
            if moments.within is None:
                return AtomBasis(L, None, 0)
            half = solve_triangular(L, moments.within, lower=True, check_finite=False)
            C = solve_triangular(L, half.T, lower=True, check_finite=False)
            return AtomBasis(L, (C + C.T) / 2, moments.rows)


class ProjectedClassMeans(ClassMeans):
    """Class means projected onto the span of shared atoms. A ``ridge`` selects generalised least squares."""

    def __init__(self, kernel: Kernel, atoms: Array, basis: AtomBasis, kappa: Array, ridge: float | None) -> None:
        self.kernel, self.atoms, self._kappa, self._L = kernel, atoms, kappa, basis.L
        self._R: Array | None = None
        self._rows = basis.rows
        with single_threaded_blas():
            if ridge is not None and basis.within is not None:
                self._R = _root(basis.within, ridge)
            means = self._coordinates(kappa)
            self.directions = self._back(means)
        self.fit = SimplexFit(means.T @ means)
        self._plain = None if self._R is None else ProjectedClassMeans(kernel, atoms, basis, kappa, None)

    @staticmethod
    def of(kernel: Kernel, atoms: Array, gram: Array, moments: ClassMoments, ridge: float | None) -> ProjectedClassMeans:
        """From the Gram matrix of the atoms and the moments of the rows."""
        return ProjectedClassMeans(kernel, atoms, AtomBasis.of(gram, moments), moments.kappa, ridge)

    def _coordinates(self, kappa: Array) -> Array:
        """Transform (m, columns) products with the kernel functions of the atoms to the coordinates of the norm."""
        z = solve_triangular(self._L, kappa, lower=True, check_finite=False)
        return z if self._R is None else solve_triangular(self._R, z, lower=True, check_finite=False)

    def _back(self, z: Array) -> Array:
        if self._R is not None:
            z = solve_triangular(self._R, z, lower=True, trans=1, check_finite=False)
        return np.asarray(solve_triangular(self._L, z, lower=True, trans=1, check_finite=False))

    def evaluate(self, points: Floats) -> tuple[Array, Array, float]:
        k = self.directions.shape[1]
        both = self.directions if self.plain is self else np.hstack([self.directions, self.plain.directions])
        values = np.empty((len(points), both.shape[1]))
        kappa = np.zeros(len(self.atoms))

        def use(s: int, a: int, b: int, K: Array) -> None:
            np.matmul(K, both, out=values[a:b])
            kappa[:] += K.sum(axis=0)

        product_blocks([self.kernel], points, self.atoms, use)
        z = solve_triangular(self._L, kappa / len(points), lower=True, check_finite=False)
        return values[:, :k], values[:, -k:], float(z @ z)

    def scatter(self, data: LabelledPoints, rng: np.random.Generator) -> ClassScatter:
        """The scatter of a sample of rows around their class means, corrected for their influence on the norm.

        The whitened norm divides by a covariance C that is estimated from these rows, so each appears shorter than a new row. The
        leverage hᵢ of a row is its squared length times its weight in C. If C were estimated without the row, its squared length
        and its values would be larger by 1/(1 − hᵢ) (Sherman & Morrison). In the norm of the space nothing is estimated, and
        hᵢ = 0.
        """
        sample = data.part(data.sample(SCATTER_ROWS, rng))
        kernel_values = product_matrices([self.kernel], sample.points, self.atoms)[0].T
        with single_threaded_blas():
            z = self._coordinates(kernel_values).T
            weights = sample.row_weights
            z = z - (sample.columns(weights).T @ z)[sample.codes]
            lengths = np.einsum("ij,ij->i", z, z)
            leverage = np.zeros(len(z))
            if self._R is not None:
                leverage = lengths * sample.weights / (sample.weights.mean() * self._rows)
            factors = 1.0 / (1.0 - np.minimum(leverage, LEVERAGE))
            means = self._coordinates(self._kappa)
            values = z @ means
            z -= (values @ self.fit.inverse) @ means.T  # Q z, orthogonal to all differences of means
            across = np.einsum("ij,ij->i", z, z)
            scaled = z * (factors * np.sqrt(weights / data.classes))[:, None]
            square = float(np.square(scaled.T @ scaled).sum())
        return _scatter(sample, data.sizes, values * factors[:, None], across * factors, square)

    def means(self) -> list[KernelMean]:
        weights = solve_triangular(self._L, self._kappa, lower=True, check_finite=False)
        weights = solve_triangular(self._L, weights, lower=True, trans=1, check_finite=False)
        return [KernelMean(self.atoms, column.copy(), self.kernel) for column in weights.T]


def _root(within: Array, ridge: float) -> Array:
    """The Cholesky factor of C + ridge."""
    try:
        return np.asarray(cholesky(within + ridge * np.eye(len(within)), lower=True, check_finite=False))
    except np.linalg.LinAlgError as error:
        raise ValueError(
            f"ridge must exceed the rounding error of a variance, got {ridge:g} with {len(within)} atoms; use at least 1e-6, "
            "omit ridge to search for it, or use fewer atoms"
        ) from error


class FullClassMeans(ClassMeans):
    """Class means without compression: every row is an atom. O(n²), and O(n₀² + n₀·n) per sample."""

    def __init__(self, kernel: Kernel, data: LabelledPoints, report: Report = ignore) -> None:
        self.kernel, self.atoms, self._data = kernel, data.points, data
        self.directions = data.columns(data.row_weights)
        n = len(data.codes)
        self._values = np.empty((n, data.classes))
        self._squares = np.empty(n)  # Σ q k² of each row
        q = data.row_weights / data.classes

        def use(s: int, a: int, b: int, K: Array) -> None:
            report(b, n)
            np.matmul(K, self.directions, out=self._values[a:b])
            self._squares[a:b] = np.square(K) @ q

        product_blocks([kernel], data.points, self.atoms, use)
        products = self.directions.T @ self._values
        self.fit = SimplexFit((products + products.T) / 2)

    def evaluate(self, points: Floats) -> tuple[Array, Array, float]:
        values = self.values(points)
        weights = np.broadcast_to(1.0 / len(points), len(points))
        return values, values, float(weights @ self.kernel.product_sums(points, weights, points))

    def scatter(self, data: LabelledPoints, rng: np.random.Generator) -> ClassScatter:
        data, values, G = self._data, self._values, self.fit.products
        weights, codes = data.row_weights, data.codes
        q = weights / data.classes
        lengths = 1.0 - 2 * values[np.arange(len(codes)), codes] + np.diagonal(G)[codes]
        # tr C̄² = Σᵢⱼ (E k² − Eⱼ fᵢ² − Eᵢ fⱼ² + Gᵢⱼ²) / k² is the square of the kernel centred by class on both sides.
        seconds = data.columns(weights).T @ values**2
        square = float(q @ self._squares) + float((G**2 - seconds - seconds.T).mean())
        # With P the projection onto the differences of means, tr (QC̄)² = tr C̄² − 2 tr PC̄² + tr (PC̄)². Weighted values centre C̄.
        centred = values - G[codes]
        along = centred @ self.fit.inverse
        weighted = q[:, None] * centred
        turned = product_values([self.kernel], data.points, self.atoms, [weighted])[0]
        inside = weighted.T @ along
        square += float(np.einsum("ij,ji->", inside, inside)) - 2 * float(q @ np.einsum("ij,ij->i", along, turned))
        return _scatter(data, data.sizes, centred, np.maximum(lengths - np.einsum("ij,ij->i", along, centred), 0.0), square)

    def leave_one_out_values(self) -> Array:
        """(n, k) the values of each training row with means computed without it. Every class needs at least two rows."""
        labelled = (np.arange(len(self._data.codes)), self._data.codes)
        values, weights = self._values.copy(), self._data.row_weights
        values[labelled] = np.maximum(values[labelled] - weights, 0.0) / np.maximum(1.0 - weights, 1e-12)
        return values

    def means(self) -> list[KernelMean]:
        by_class = [np.flatnonzero(self._data.codes == code) for code in range(self._data.classes)]
        return [KernelMean(self.atoms[rows], self._data.row_weights[rows], self.kernel) for rows in by_class]


def _scatter(data: LabelledPoints, sizes: Array, values: Array, lengths: Array, square: float) -> ClassScatter:
    """The scatter from centred values (n, k), squared lengths of Qz (n,) of centred rows z, and tr (QC̄)² with pairs of equal rows.

    Covariances are made unbiased by n/(n − 1) in each class, and tr (QC̄)² by omitting the pairs of equal rows.
    """
    weights, counts = data.row_weights, data.sizes
    single = counts < 1.5  # The scatter of a class of one row is unknown and is replaced by the mean over the others.
    unbiased = np.where(single, 1.0, counts / np.maximum(counts - 1, 0.5))
    scatter = np.stack([(values.T * (weights * (data.codes == code))) @ values for code in range(data.classes)])
    across = np.bincount(data.codes, weights * lengths, data.classes).astype(np.float64)
    q = weights / data.classes
    diagonal = float(q @ q)
    if diagonal < 0.5:
        square = (square - float(q**2 @ lengths**2)) / (1.0 - diagonal)
    scatter, across = scatter * unbiased[:, None, None], across * unbiased
    if single.any() and not single.all():
        scatter[single], across[single] = scatter[~single].mean(axis=0), across[~single].mean()
    return ClassScatter(sizes, scatter, across, max(square, 0.0))


def grams(kernels: Sequence[Kernel], atoms: Array) -> list[Array]:
    """The Gram matrix of the atoms for each kernel."""
    return [(gram + gram.T) / 2 for gram in product_matrices(kernels, atoms, atoms)]
