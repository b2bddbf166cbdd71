"""Class means as seen from shared atoms, in the norm of the kernel's space or in one that tells the classes apart.

All class means fᵢ are projected onto the span of the same m atoms, chosen once: with K the atoms' Gram matrix, L Lᵀ = K and κᵢ
the products of fᵢ with the atoms' bumps, fᵢ has the coordinates μᵢ = L⁻¹κᵢ and a point x has z(x) = L⁻¹k(x). A mixture of the
classes is the same mixture of their coordinates, so matching coordinates is consistent whatever the atoms miss; atoms of each
class's own would leave an error of first order in the products of two classes.

In the norm of the space (the paper's) the distance is ‖z̄₀ − Σ πᵢ μᵢ‖. "whitened" divides by the noise first, ‖R(z̄₀ − Σ πᵢ μᵢ)‖ with
R'R = (C + ridge)⁻¹, C the covariance of z within classes: generalised least squares, which counts a direction by how well it tells
classes apart and not by its length. A ridge far above C is the norm of the space again.

Either way a point enters by k values, v(x) = A'k(x) with A (m, k): n·m kernel evaluations and no more. Without compression
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

JITTER = 2e-9  # times m on the diagonal of K: far below what matters to a mixture, far above what rounding does to its inverse
LEVERAGE = 0.9
SCATTER_ROWS = 4096
COVARIANCE_ROWS, COVARIANCE_ROWS_PER_ATOM = 4096, 16


def ignore(done: int, total: int) -> None:
    """A report that nobody reads."""


@dataclass(frozen=True)
class LabelledPoints:
    """Points with the number of their class and a weight above 0."""

    points: Floats
    codes: NDArray[np.int64]
    weights: Array
    classes: int

    def part(self, rows: NDArray[np.int64]) -> LabelledPoints:
        """Some of the rows."""
        return LabelledPoints(self.points[rows], self.codes[rows], self.weights[rows], self.classes)

    @property
    def masses(self) -> Array:
        """(k,) the weight of each class."""
        return np.bincount(self.codes, self.weights, self.classes).astype(np.float64)

    @property
    def shares(self) -> Array:
        """(n,) weights that sum to 1 in each class."""
        return np.asarray(self.weights / self.masses[self.codes])

    @property
    def sizes(self) -> Array:
        """(k,) effective numbers of rows."""
        return np.asarray(1.0 / np.bincount(self.codes, self.shares**2, self.classes))

    def columns(self, weights: Array, a: int = 0, b: int | None = None) -> Array:
        """(rows, k) the weight of each row in the column of its class."""
        codes = self.codes[a:b]
        out = np.zeros((len(codes), self.classes))
        out[np.arange(len(codes)), codes] = weights[a:b]
        return out

    def some(self, most: int, rng: np.random.Generator) -> LabelledPoints:
        """At most about so many rows, as many of each class as can be, or all."""
        if len(self.codes) <= most:
            return self
        turn = np.empty(len(self.codes))
        order = rng.permutation(len(self.codes))
        by_class = order[np.argsort(self.codes[order], kind="stable")]
        starts = np.searchsorted(self.codes[by_class], np.arange(self.classes))
        turn[by_class] = np.arange(len(order)) - starts[self.codes[by_class]]  # the how-manieth of its class each row is
        return self.part(np.sort(order[np.argsort(turn[order], kind="stable")[:most]]))


@dataclass(frozen=True)
class ClassMoments:
    """First and second moments by class, as the atoms see them: Σ w k(x) (m, k), masses (k,), and the covariance within classes."""

    sums: Array
    masses: Array
    within: Array | None
    rows: int  # that the covariance is of

    @property
    def kappa(self) -> Array:
        """(m, k) products of the class means with the atoms' bumps."""
        return np.asarray(self.sums / self.masses)

    def with_(self, other: ClassMoments) -> ClassMoments:
        """The moments of both sets of points."""
        within = None
        if self.within is not None and other.within is not None:
            within = (self.rows * self.within + other.rows * other.within) / (self.rows + other.rows)
        return ClassMoments(self.sums + other.sums, self.masses + other.masses, within, self.rows + other.rows)


class _MomentAccumulator:
    """Accumulates class moments from the blocks of one pass, for several kernels."""

    def __init__(self, data: LabelledPoints, kernels: int, atoms: int, scatter: bool) -> None:
        self._data, self._scatter = data, scatter
        self._sums = np.zeros((kernels, atoms, data.classes))
        most = max(COVARIANCE_ROWS, COVARIANCE_ROWS_PER_ATOM * atoms)
        # the first rows: whoever calls has put them in random order
        self._rows = min(len(data.codes), most) if scatter else 0
        some = data.part(np.arange(self._rows))
        self._masses = some.masses if scatter else np.zeros(data.classes)
        self._seconds = np.zeros((kernels, atoms, atoms)) if scatter else np.empty((kernels, 0, 0))
        self._some_sums = np.zeros_like(self._sums) if scatter else self._sums[:, :0]

    def use(self, s: int, a: int, b: int, K: Array) -> None:
        """Take in a block of rows."""
        data = self._data
        sums = K.T @ data.columns(data.weights, a, b)
        self._sums[s] += sums
        end = min(b, self._rows)
        if end > a:
            block = K[: end - a]
            self._some_sums[s] += sums if end == b else block.T @ data.columns(data.weights, a, end)
            scaled = block * np.sqrt(data.weights[a:end])[:, None]
            self._seconds[s] += scaled.T @ scaled

    def result(self) -> list[ClassMoments]:
        """The moments for each kernel."""
        masses = self._data.masses
        if not self._scatter:
            return [ClassMoments(sums, masses, None, 0) for sums in self._sums]
        present = self._masses > 0
        out = []
        for sums, some, seconds in zip(self._sums, self._some_sums, self._seconds, strict=True):
            centred = some[:, present] / np.sqrt(self._masses[present])
            out.append(ClassMoments(sums, masses, (seconds - centred @ centred.T) / self._masses.sum(), self._rows))
        return out


def class_moments(
    data: LabelledPoints,
    kernels: Sequence[Kernel],
    atoms: Array,
    scatter: bool,
    report: Report = ignore,
    also: UseGram | None = None,
) -> list[ClassMoments]:
    """The moments for each kernel, in one pass; ``also`` gets every block of it too."""
    accumulator = _MomentAccumulator(data, len(kernels), len(atoms), scatter)

    def use(s: int, a: int, b: int, K: Array) -> None:
        if s == 0:
            report(b, len(data.codes))
        accumulator.use(s, a, b, K)
        if also is not None:
            also(s, a, b, K)

    product_blocks(kernels, data.points, atoms, use)
    return accumulator.result()


def discriminants(products: Array, values: Array) -> Array:
    """(n₀, k) ⟨x, fᵢ⟩ − ‖fᵢ‖²/2 less its mean over i, from the products of the means and the values ⟨x, fᵢ⟩."""
    nearer = values - np.diagonal(products) / 2
    return np.asarray(nearer - nearer.mean(axis=1, keepdims=True))


class ClassMeans(ABC):
    """Kernel means of the classes, ready to be compared with a sample."""

    kernel: Kernel
    atoms: Floats  # (m, d)
    directions: Array  # (m, k): a point x enters by its values v(x) = A'k(x)
    fit: SimplexFit  # by the products of the class means, in the norm chosen
    _plain: ClassMeans | None = None  # never itself: in a circle, matrices would outlive their use

    @property
    def plain(self) -> ClassMeans:
        """The same class means in the norm of the space, which says whether a sample is a mixture at all."""
        return self if self._plain is None else self._plain

    def values(self, points: Floats) -> Array:
        """(n₀, k) the values of each point."""
        return product_values([self.kernel], points, self.atoms, [self.directions])[0]

    def discriminants(self, values: Array) -> Array:
        """(n₀, k) values without what the means have in common: ⟨x, fᵢ⟩ − ‖fᵢ‖²/2, how much nearer a point is to each mean."""
        return discriminants(self.fit.products, values)

    @abstractmethod
    def look(self, points: Floats) -> tuple[Array, Array, float]:
        """The values of each point, (n₀, k), those in the plain norm, and the points' mean's squared plain norm, in one pass."""

    @abstractmethod
    def scatter(self, data: LabelledPoints, rng: np.random.Generator) -> ClassScatter:
        """How the training rows scatter around their class means."""

    @abstractmethod
    def means(self) -> list[KernelMean]:
        """The class means, as far as they are seen."""


@dataclass(frozen=True)
class AtomBasis:
    """An orthonormal basis of the atoms' span: L of the Gram matrix, and the covariance within classes (m, m) in it."""

    L: Array
    within: Array | None
    rows: int  # that the covariance is of

    @staticmethod
    def of(gram: Array, moments: ClassMoments) -> AtomBasis:
        """Factor the Gram matrix, and bring the covariance of k(x) into coordinates."""
        with single_threaded_blas():
            L = cholesky(gram + JITTER * len(gram) * np.eye(len(gram)), lower=True, check_finite=False)
            if moments.within is None:
                return AtomBasis(L, None, 0)
            half = solve_triangular(L, moments.within, lower=True, check_finite=False)
            C = solve_triangular(L, half.T, lower=True, check_finite=False)
            return AtomBasis(L, (C + C.T) / 2, moments.rows)


class ProjectedClassMeans(ClassMeans):
    """Class means projected onto the span of shared atoms; generalised least squares where a ``ridge`` is given."""

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
        """From what the atoms see of the rows."""
        return ProjectedClassMeans(kernel, atoms, AtomBasis.of(gram, moments), moments.kappa, ridge)

    def _coordinates(self, kappa: Array) -> Array:
        """(m, columns) products with the atoms' bumps, in the coordinates that are compared."""
        z = solve_triangular(self._L, kappa, lower=True, check_finite=False)
        return z if self._R is None else solve_triangular(self._R, z, lower=True, check_finite=False)

    def _back(self, z: Array) -> Array:
        if self._R is not None:
            z = solve_triangular(self._R, z, lower=True, trans=1, check_finite=False)
        return np.asarray(solve_triangular(self._L, z, lower=True, trans=1, check_finite=False))

    def look(self, points: Floats) -> tuple[Array, Array, float]:
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
        """The scatter of some rows around their class means, each seen as a row is that the norm was not estimated from.

        The whitened norm divides by a covariance C that these very rows are part of, so each looks shorter than a fresh one would.
        Its leverage hᵢ is its squared length times its share in C; with C estimated without it, its squared length is larger by
        1/(1 − hᵢ) (Sherman & Morrison), and so are its values. In the norm of the space nothing is estimated and hᵢ = 0.
        """
        some = data.some(SCATTER_ROWS, rng)
        seen = product_matrices([self.kernel], some.points, self.atoms)[0].T
        with single_threaded_blas():
            z = self._coordinates(seen).T
            shares = some.shares
            z = z - (some.columns(shares).T @ z)[some.codes]
            lengths = np.einsum("ij,ij->i", z, z)
            leverage = np.zeros(len(z))
            if self._R is not None:
                leverage = lengths * some.weights / (some.weights.mean() * self._rows)
            longer = 1.0 / (1.0 - np.minimum(leverage, LEVERAGE))
            means = self._coordinates(self._kappa)
            values = z @ means
            z -= (values @ self.fit.inverse) @ means.T  # Q z, which no difference of means has a part in
            across = np.einsum("ij,ij->i", z, z)
            scaled = z * (longer * np.sqrt(shares / data.classes))[:, None]
            square = float(np.square(scaled.T @ scaled).sum())
        return _scatter(some, data.sizes, values * longer[:, None], across * longer, square)

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
            f"ridge must be above what rounding leaves of a variance, got {ridge:g} with {len(within)} atoms; "
            "give at least 1e-6, leave ridge out to have it searched for, or take fewer atoms"
        ) from error


class FullClassMeans(ClassMeans):
    """Class means that are not compressed: every row is an atom. O(n²), and O(n₀² + n₀·n) a sample."""

    def __init__(self, kernel: Kernel, data: LabelledPoints, report: Report = ignore) -> None:
        self.kernel, self.atoms, self._data = kernel, data.points, data
        self.directions = data.columns(data.shares)
        n = len(data.codes)
        self._values = np.empty((n, data.classes))
        self._squares = np.empty(n)  # Σ q k² by row
        q = data.shares / data.classes

        def use(s: int, a: int, b: int, K: Array) -> None:
            report(b, n)
            np.matmul(K, self.directions, out=self._values[a:b])
            self._squares[a:b] = np.square(K) @ q

        product_blocks([kernel], data.points, self.atoms, use)
        products = self.directions.T @ self._values
        self.fit = SimplexFit((products + products.T) / 2)

    def look(self, points: Floats) -> tuple[Array, Array, float]:
        values = self.values(points)
        weights = np.broadcast_to(1.0 / len(points), len(points))
        return values, values, float(weights @ self.kernel.product_sums(points, weights, points))

    def scatter(self, data: LabelledPoints, rng: np.random.Generator) -> ClassScatter:
        data, values, G = self._data, self._values, self.fit.products
        shares, codes = data.shares, data.codes
        q = shares / data.classes
        lengths = 1.0 - 2 * values[np.arange(len(codes)), codes] + np.diagonal(G)[codes]
        # tr C̄² = Σᵢⱼ (E k² − Eⱼ fᵢ² − Eᵢ fⱼ² + Gᵢⱼ²) / k²: the kernel centred by class on both sides, squared
        seconds = data.columns(shares).T @ values**2
        square = float(q @ self._squares) + float((G**2 - seconds - seconds.T).mean())
        # with P on the differences of means, tr (QC̄)² = tr C̄² − 2 tr PC̄² + tr (PC̄)², and C̄ is centred by its weighted values
        centred = values - G[codes]
        along = centred @ self.fit.inverse
        weighted = q[:, None] * centred
        turned = product_values([self.kernel], data.points, self.atoms, [weighted])[0]
        inside = weighted.T @ along
        square += float(np.einsum("ij,ji->", inside, inside)) - 2 * float(q @ np.einsum("ij,ij->i", along, turned))
        return _scatter(data, data.sizes, centred, np.maximum(lengths - np.einsum("ij,ij->i", along, centred), 0.0), square)

    def left_out(self) -> Array:
        """(n, k) the values of each training row with means that it is not in; every class has two rows at least."""
        own = (np.arange(len(self._data.codes)), self._data.codes)
        values, shares = self._values.copy(), self._data.shares
        values[own] = np.maximum(values[own] - shares, 0.0) / np.maximum(1.0 - shares, 1e-12)
        return values

    def means(self) -> list[KernelMean]:
        rows = [np.flatnonzero(self._data.codes == code) for code in range(self._data.classes)]
        return [KernelMean(self.atoms[some], self._data.shares[some], self.kernel) for some in rows]


def _scatter(data: LabelledPoints, sizes: Array, values: Array, lengths: Array, square: float) -> ClassScatter:
    """From centred values (n, k), the squared lengths of Qz (n,) of centred rows z, and tr (QC̄)² with pairs of a row and itself.

    Made unbiased: covariances by n/(n − 1) in each class, and tr (QC̄)² by leaving those pairs out.
    """
    shares, own = data.shares, data.sizes
    lonely = own < 1.5  # a class of one row shows no scatter: it has that of the others
    unbiased = np.where(lonely, 1.0, own / np.maximum(own - 1, 0.5))
    scatter = np.stack([(values.T * (shares * (data.codes == code))) @ values for code in range(data.classes)])
    across = np.bincount(data.codes, shares * lengths, data.classes).astype(np.float64)
    q = shares / data.classes
    selves = float(q @ q)
    if selves < 0.5:
        square = (square - float(q**2 @ lengths**2)) / (1.0 - selves)
    scatter, across = scatter * unbiased[:, None, None], across * unbiased
    if lonely.any() and not lonely.all():
        scatter[lonely], across[lonely] = scatter[~lonely].mean(axis=0), across[~lonely].mean()
    return ClassScatter(sizes, scatter, across, max(square, 0.0))


def grams(kernels: Sequence[Kernel], atoms: Array) -> list[Array]:
    """The Gram matrix of the atoms for each kernel."""
    return [(gram + gram.T) / 2 for gram in product_matrices(kernels, atoms, atoms)]
