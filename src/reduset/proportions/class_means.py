"""Class means as seen from shared atoms, in the norm of the kernel's space or in one that tells the classes apart.

All class means fᵢ are projected onto the span of the same m atoms, chosen once: with K the atoms' Gram matrix, L Lᵀ = K and κᵢ
the products of fᵢ with the atoms' bumps, fᵢ has the coordinates μᵢ = L⁻¹κᵢ and a point x has z(x) = L⁻¹k(x). A mixture of the
classes is the same mixture of their coordinates, so matching coordinates is consistent whatever the atoms miss; atoms of each
class's own would leave an error of first order in the products of two classes.

In the norm of the space (the paper's) the distance is ‖z̄₀ − Σ πᵢ μᵢ‖. "whitened" divides by the noise first, ‖R(z̄₀ − Σ πᵢ μᵢ)‖ with
R'R = (C + ridge)⁻¹, C the covariance of z within classes: generalised least squares, which counts a direction by how well it tells
classes apart and not by its length. A ridge far above C is the norm of the space again.

Either way a point enters by k values, v(x) = A'k(x) with A (m, k): n·m kernel evaluations and no more. Without compression
(`Everything`) the atoms are all the points and A holds their weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from reduset._engine import single_threaded_blas
from reduset._types import Array, Floats, Report
from reduset.kernels.base import Kernel
from reduset.mean import KernelMean
from reduset.proportions.kernel_blocks import product_blocks, product_values
from reduset.proportions.simplex_fit import Mixer, Noise

JITTER = 2e-9  # times m on the diagonal of K: far below what matters to a mixture, far above what rounding does to its inverse
LEVERAGE = 0.9
NOISE_ROWS = 4096
SCATTER_ROWS, SCATTER_PER_ATOM = 4096, 16


def ignore(done: int, total: int) -> None:
    """A report that nobody reads."""


@dataclass(frozen=True)
class Labelled:
    """Points with the number of their class and a weight above 0."""

    points: Floats
    codes: NDArray[np.int64]
    weights: Array
    classes: int

    def part(self, rows: NDArray[np.int64]) -> Labelled:
        """Some of the rows."""
        return Labelled(self.points[rows], self.codes[rows], self.weights[rows], self.classes)

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

    def some(self, most: int, rng: np.random.Generator) -> Labelled:
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
class Moments:
    """What the atoms see of labelled points: Σ w k(x) by class (m, k), the classes' masses (k,), and the covariance within."""

    sums: Array
    masses: Array
    within: Array | None
    rows: int  # that the covariance is of

    @property
    def kappa(self) -> Array:
        """(m, k) products of the class means with the atoms' bumps."""
        return np.asarray(self.sums / self.masses)

    def with_(self, other: Moments) -> Moments:
        """The moments of both sets of points."""
        within = None
        if self.within is not None and other.within is not None:
            within = (self.rows * self.within + other.rows * other.within) / (self.rows + other.rows)
        return Moments(self.sums + other.sums, self.masses + other.masses, within, self.rows + other.rows)


class Observer:
    """Accumulates moments from the blocks of one pass, for several kernels."""

    def __init__(self, data: Labelled, kernels: int, atoms: int, scatter: bool) -> None:
        self._data, self._scatter = data, scatter
        self._sums = np.zeros((kernels, atoms, data.classes))
        most = max(SCATTER_ROWS, SCATTER_PER_ATOM * atoms)
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

    def result(self) -> list[Moments]:
        """The moments for each kernel."""
        masses = self._data.masses
        if not self._scatter:
            return [Moments(sums, masses, None, 0) for sums in self._sums]
        present = self._masses > 0
        out = []
        for sums, some, seconds in zip(self._sums, self._some_sums, self._seconds, strict=True):
            centred = some[:, present] / np.sqrt(self._masses[present])
            out.append(Moments(sums, masses, (seconds - centred @ centred.T) / self._masses.sum(), self._rows))
        return out


def moments(data: Labelled, kernels: Sequence[Kernel], atoms: Array, scatter: bool, report: Report = ignore) -> list[Moments]:
    """The moments for each kernel, in one pass."""
    observer = Observer(data, len(kernels), len(atoms), scatter)

    def use(s: int, a: int, b: int, K: Array) -> None:
        if s == 0:
            report(b, len(data.codes))
        observer.use(s, a, b, K)

    product_blocks(kernels, data.points, atoms, use)
    return observer.result()


class Matcher(ABC):
    """Class means, ready to be compared with a sample.

    Attributes
    ----------
    kernel : Kernel
    atoms : (m, d)
    directions : (m, k): a point x enters by its values v(x) = A'k(x)
    mixer : the products of the class means, in the norm chosen
    """

    kernel: Kernel
    atoms: Floats
    directions: Array
    mixer: Mixer
    _plain: Matcher | None = None  # never itself: in a circle, matrices would outlive their use

    @property
    def plain(self) -> Matcher:
        """The same class means in the norm of the space, which says whether a sample is a mixture at all."""
        return self if self._plain is None else self._plain

    def values(self, points: Floats) -> Array:
        """(n₀, k) the values of each point."""
        return product_values([self.kernel], points, self.atoms, [self.directions])[0]

    @abstractmethod
    def look(self, points: Floats) -> tuple[Array, Array, float]:
        """The values of each point, (n₀, k), those in the plain norm, and the points' mean's squared plain norm, in one pass."""

    @abstractmethod
    def noise(self, data: Labelled, rng: np.random.Generator) -> Noise:
        """How the training rows scatter around their class means."""

    @abstractmethod
    def means(self) -> list[KernelMean]:
        """The class means, as far as they are seen."""


@dataclass(frozen=True)
class Basis:
    """Orthonormal coordinates of the atoms' span: L of the Gram matrix, and the covariance within classes (m, m) in them."""

    L: Array
    within: Array | None
    rows: int  # that the covariance is of

    @staticmethod
    def of(gram: Array, within: Array | None, rows: int) -> Basis:
        """Factor the Gram matrix, and bring the covariance of k(x) into coordinates."""
        with single_threaded_blas():
            L = cholesky(gram + JITTER * len(gram) * np.eye(len(gram)), lower=True, check_finite=False)
            if within is None:
                return Basis(L, None, 0)
            half = solve_triangular(L, within, lower=True, check_finite=False)
            C = solve_triangular(L, half.T, lower=True, check_finite=False)
            return Basis(L, (C + C.T) / 2, rows)


class Seen(Matcher):
    """Class means in the span of shared atoms; ``ridge`` None is the norm of the space."""

    def __init__(self, kernel: Kernel, atoms: Array, basis: Basis, kappa: Array, ridge: float | None) -> None:
        self.kernel, self.atoms, self._kappa, self._L = kernel, atoms, kappa, basis.L
        self._R: Array | None = None
        self._rows = basis.rows
        with single_threaded_blas():
            if ridge is not None and basis.within is not None:
                self._R = _root(basis.within, ridge)
            means = self._coordinates(kappa)
            self.directions = self._back(means)
        self.mixer = Mixer(means.T @ means)
        self._plain = None if self._R is None else Seen(kernel, atoms, basis, kappa, None)

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

    def noise(self, data: Labelled, rng: np.random.Generator) -> Noise:
        some = data.some(NOISE_ROWS, rng)
        seen = np.empty((len(self.atoms), len(some.codes)))

        def use(s: int, a: int, b: int, K: Array) -> None:
            seen[:, a:b] = K.T

        product_blocks([self.kernel], some.points, self.atoms, use)
        with single_threaded_blas():
            z = self._coordinates(seen).T
            shares = some.shares
            z = z - (some.columns(shares).T @ z)[some.codes]
            lengths = np.einsum("ij,ij->i", z, z)
            # what a row itself did to the covariance makes it look short, (C + ridge)⁻¹ without it is longer by 1/(1 − leverage)
            pulled = np.zeros(len(z)) if self._R is None else lengths * some.weights / (some.weights.mean() * self._rows)
            alone = 1.0 / (1.0 - np.minimum(pulled, LEVERAGE))
            values = (z @ self._coordinates(self._kappa)) * alone[:, None]
            q = shares / data.classes
            scaled = z * (alone * np.sqrt(q))[:, None]
            square = float(np.square(scaled.T @ scaled).sum())
        return _noise(some, data.sizes, values, lengths * alone, square)

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


class Everything(Matcher):
    """The uncompressed class means: every row is an atom. O(n²), and O(n₀² + n₀·n) a sample."""

    def __init__(self, kernel: Kernel, data: Labelled, report: Report = ignore) -> None:
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
        self.mixer = Mixer((products + products.T) / 2)

    def look(self, points: Floats) -> tuple[Array, Array, float]:
        values = self.values(points)
        weights = np.broadcast_to(1.0 / len(points), len(points))
        return values, values, float(weights @ self.kernel.product_sums(points, weights, points))

    def noise(self, data: Labelled, rng: np.random.Generator) -> Noise:
        data, values, G = self._data, self._values, self.mixer.products
        shares, codes = data.shares, data.codes
        q = shares / data.classes
        lengths = 1.0 - 2 * values[np.arange(len(codes)), codes] + np.diagonal(G)[codes]
        # tr C̄² = Σᵢⱼ (E k² − Eⱼ fᵢ² − Eᵢ fⱼ² + Gᵢⱼ²) / k²: the kernel centred by class on both sides, squared
        seconds = data.columns(shares).T @ values**2
        square = float(q @ self._squares) + float((G**2 - seconds - seconds.T).mean())
        return _noise(data, data.sizes, values - G[codes], lengths, square)

    def means(self) -> list[KernelMean]:
        rows = [np.flatnonzero(self._data.codes == code) for code in range(self._data.classes)]
        return [KernelMean(self.atoms[some], self._data.shares[some], self.kernel) for some in rows]


def _noise(data: Labelled, sizes: Array, values: Array, lengths: Array, square: float) -> Noise:
    """From centred values (n, k), the squared lengths of the centred rows (n,), and tr C̄² with the pairs of a row and itself."""
    shares, own = data.shares, data.sizes
    lonely = own < 1.5  # a class of one row shows no scatter: it has that of the others
    unbiased = np.where(lonely, 1.0, own / np.maximum(own - 1, 0.5))
    scatter = np.stack([(values.T * (shares * (data.codes == code))) @ values for code in range(data.classes)])
    traces = np.bincount(data.codes, shares * lengths, data.classes).astype(np.float64)
    q = shares / data.classes
    selves = float(q @ q)
    if selves < 0.5:
        square = (square - float(q**2 @ lengths**2)) / (1.0 - selves)
    scatter, traces = scatter * unbiased[:, None, None], traces * unbiased
    if lonely.any() and not lonely.all():
        scatter[lonely], traces[lonely] = scatter[~lonely].mean(axis=0), traces[~lonely].mean()
    return Noise(sizes, scatter, traces, max(square, 0.0))


def grams(kernels: Sequence[Kernel], atoms: Array) -> list[Array]:
    """The Gram matrix of the atoms for each kernel."""
    out = [np.empty((len(atoms), len(atoms))) for _ in kernels]

    def use(s: int, a: int, b: int, K: Array) -> None:
        out[s][a:b] = K

    product_blocks(kernels, atoms, atoms, use)
    return [(gram + gram.T) / 2 for gram in out]
