"""Diffusion maps, Laplacian eigenmaps and spectral clustering on weighted atoms.

Diffusion maps are by Coifman & Lafon 2006, Laplacian eigenmaps by Belkin & Niyogi 2003, and normalised cuts by Shi & Malik 2000.
`graph` has the random walk. Fitting costs the selection and O(m²) a component, or O(m³) for all components. A new row costs O(m).

**Clusters.** Let ψ be the slowest eigenfunctions and 1 the constant eigenfunction. In a graph of k disconnected clusters, (1, ψ)
has k orthogonal values, one per cluster. With weak connections, this holds approximately. There are three methods to find these
values:

- k-means ("kmeans"): The normalised cut is a weighted k-means (Shi & Malik 2000). So the stationary distribution weights the atoms.
- Pivots ("cluster_qr"): QR with pivoting selects k rows of (1, ψ), each far from the span of the others. Let U be the nearest
  orthogonal matrix to these rows. |(1, ψ) U| is largest in the cluster's column (Damle, Minden & Ying 2019). The result is
  deterministic.
- Indicators ("discretize"): An orthogonal matrix R rotates the rows of (1, ψ), scaled to unit length, towards 0/1 columns. The
  algorithm alternates between R and the indicators (Yu & Shi 2003). Atoms are weighted by their mass.

Pivots need no masses, because all rows of an atom have equal values. Each method labels any point by a linear map of its ψ. An
iteration costs O(m·k²).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, svd
from sklearn.base import ClusterMixin
from sklearn.cluster import KMeans

from reduset import _validate
from reduset._types import Array, PointsLike, WeightsLike
from reduset._validate import seeded
from reduset.kernels import Gaussian, Kernel
from reduset.spectral.base import EigenEstimator, SpectralTransformer, with_dtype_of
from reduset.spectral.graph import RandomWalk, graph_bandwidth, random_walk
from reduset.spectral.reduction import WeightedAtoms

DEFAULT_CLUSTERS = 8  # As in scikit-learn.
MAX_ATOMS = 2000  # Default maximum with the default kernel.
ROUNDINGS = ("cluster_qr", "discretize", "kmeans")
MAX_ROTATIONS = 100  # Iterations of "discretize".


@dataclass(eq=False, repr=False, kw_only=True)
class _WalkMap(SpectralTransformer):
    """Base of the maps to eigenfunctions of a random walk on atoms."""

    n_components: int = field(default=2, kw_only=False)
    embedding_: Array = field(init=False)

    def fit_transform(self, X: PointsLike, y: Any = None, sample_weight: WeightsLike = None) -> Array:
        """(n, k) coordinates of the fitted rows, the same as ``embedding_``."""
        weighted = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self.fit(X, y, **weighted).embedding_

    @abstractmethod
    def _alpha_and_time(self) -> tuple[float, float]:
        """The exponent of the density that is removed from the walk, and the number of steps."""

    def fit(self, X: PointsLike, y: Any = None, sample_weight: WeightsLike = None) -> Self:
        """Select the atoms and solve the eigenproblem of their walk. A sample weight of 3 equals three equal rows."""
        X = self._rows(X, reset=True)
        alpha, self._time = self._alpha_and_time()
        reduced = self._weighted_atoms(X, sample_weight)
        count = self._component_count(reduced, "n_components", self.n_components, extra=1)
        self._functions = walk = random_walk(reduced, count, alpha, self.eigen_solver)
        self.eigenvalues_, self.eigenvectors_ = walk.eigenvalues, walk.functions
        self.stationary_, self.parts_ = walk.stationary, walk.parts
        separating = min(int(self.parts_.max()), count)
        self._warn_of_parts(1, f"the first {separating} coordinates only separate these parts")
        self._warn_of_zeros(walk.eigenvalues)
        self.embedding_ = self._coordinates(X)
        return self

    def _coordinates(self, X: PointsLike) -> Array:
        walk = self._functions
        return with_dtype_of(X, walk.evaluate(self._reduced, X) * walk.eigenvalues**self._time)

    def transform(self, X: PointsLike) -> Array:
        """(q, k) coordinates λ^time ψ. If the kernel vanishes at all atoms, the walk steps to the nearest atom."""
        return self._coordinates(self._rows(X))


@seeded
@dataclass(eq=False, repr=False, kw_only=True)
class ReducedDiffusionMap(_WalkMap):
    """A diffusion map of weighted atoms, with coordinates for any point.

    Parameters
    ----------
    n_components : int
        Number of coordinates.
    alpha : float
        Exponent of the density that is removed from the walk. With ``alpha=1``, only the geometry of the data is left. With
        ``alpha=0``, the walk keeps the density, as a Laplacian eigenmap does. ``alpha=0.5`` is the Fokker–Planck operator.
    time : float
        Number of steps of the walk, at least 0. Coordinates are λ^time ψ. Their distances are distances between the walk's
        distributions.
    kernel, gamma, kernel_params, reduce, ell, size, weights, eigen_solver, random_state
        As in `ReducedKernelPCA`.

    Attributes
    ----------
    eigenvalues_ : (k,)
        Eigenvalues λ in descending order. The first eigenvalue, 1, is omitted.
    embedding_ : (n, k)
        Coordinates of the fitted rows.
    eigenvectors_ : (m, k)
        Eigenfunctions ψ at the atoms. They satisfy Σ stationary_ · ψ² = 1.
    stationary_ : (m,)
        Stationary distribution of the walk.
    parts_ : (m,)
        Connected component of each atom. More than one component causes a `DisconnectedWarning`.
    atoms_, weights_, indices_, kernel_
        As in `ReducedKernelPCA`.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian
    >>> from reduset.spectral import ReducedDiffusionMap
    >>> t = np.random.default_rng(0).uniform(0, 3, size=2000)
    >>> X = np.column_stack([np.cos(t), np.sin(t)])
    >>> first = ReducedDiffusionMap(n_components=1, kernel=Gaussian(0.3)).fit_transform(X)[:, 0]
    >>> bool(abs(np.corrcoef(first, np.cos(np.pi * t / 3))[0, 1]) > 0.99)
    True
    """

    alpha: float = 1.0
    time: float = 1.0

    def _alpha_and_time(self) -> tuple[float, float]:
        return _validate.finite(self.alpha, "alpha"), _validate.at_least(self.time, "time", 0.0)


@seeded
class ReducedLaplacianEigenmap(_WalkMap):
    """A Laplacian eigenmap of weighted atoms, with coordinates for any point.

    The coordinates solve L f = μ D f. D are the degrees of the graph, and L = D − K. f has mean square 1 under the degrees. Every
    point is connected to itself. The rows of an atom are connected to each other.

    Parameters
    ----------
    n_components : int
        Number of coordinates.
    kernel, gamma, kernel_params, reduce, ell, size, weights, eigen_solver, random_state
        As in `ReducedKernelPCA`.

    Attributes
    ----------
    eigenvalues_ : (k,)
        Eigenvalues μ in ascending order. The first eigenvalue, 0, is omitted.
    embedding_, eigenvectors_, stationary_, parts_
        As in `ReducedDiffusionMap`.
    atoms_, weights_, indices_, kernel_
        As in `ReducedKernelPCA`.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian
    >>> from reduset.spectral import ReducedLaplacianEigenmap
    >>> X = np.random.default_rng(0).uniform(0, [4, 1], size=(2000, 2))
    >>> first = ReducedLaplacianEigenmap(1, kernel=Gaussian(0.3)).fit_transform(X)[:, 0]
    >>> bool(abs(np.corrcoef(first, np.cos(np.pi * X[:, 0] / 4))[0, 1]) > 0.99)
    True
    """

    def fit(self, X: PointsLike, y: Any = None, sample_weight: WeightsLike = None) -> Self:
        """Select the atoms and solve the eigenproblem of the map. A sample weight of 3 equals three equal rows."""
        super().fit(X, y, sample_weight)
        self.eigenvalues_ = 1.0 - self.eigenvalues_
        return self

    def _alpha_and_time(self) -> tuple[float, float]:
        return 0.0, 0.0


@seeded
@dataclass(eq=False, repr=False, kw_only=True)
class ReducedSpectralClustering(ClusterMixin, EigenEstimator):
    """Spectral clustering of weighted atoms.

    It has the interface of `sklearn.cluster.SpectralClustering`, and `predict` for new rows.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters. The default is ``n_components``, or 8.
    n_components : int, optional
        Number of eigenfunctions, not counting the constant eigenfunction. The default is n_clusters − 1.
    assign_labels : "kmeans", "discretize" or "cluster_qr"
        Method to get clusters from eigenfunctions, as in scikit-learn. "kmeans" uses k-means. "discretize" uses a rotation onto
        indicators (Yu & Shi 2003). "cluster_qr" uses QR with pivoting (Damle, Minden & Ying 2019), which is deterministic. The last
        two use n_clusters − 1 functions.
    n_init : int
        Number of starts of "kmeans" and "discretize". The best result is used.
    verbose : bool or int
        Whether to print the steps, including the steps of k-means.
    kernel : Kernel, function, name or None
        Kernel, as in `ReducedKernelPCA`. None is a Gaussian, with at most 2,000 atoms unless ``size`` is given. Its bandwidth
        follows from the distances of rows to their 7th neighbours in a sample of 1,000 rows.
    gamma, kernel_params, reduce, ell, size, weights, eigen_solver, random_state
        As in `ReducedKernelPCA`.

    Attributes
    ----------
    labels_ : (n,)
        Cluster of each row.
    atom_labels_ : (m,)
        Cluster of each atom.
    eigenvalues_ : (k,)
        Eigenvalues of the walk. The first eigenvalue, 1, is omitted. A gap after the first n_clusters − 1 supports this number of
        clusters.
    parts_ : (m,)
        Connected component of each atom. More components than clusters cause a `DisconnectedWarning`.
    atoms_, weights_, indices_, kernel_
        As in `ReducedKernelPCA`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from reduset.spectral import ReducedSpectralClustering
    >>> X, y = make_moons(2000, noise=0.05, random_state=0)
    >>> cut = ReducedSpectralClustering(2, random_state=0).fit(X)
    >>> bool(abs(np.mean(cut.predict(X) == y) - 0.5) > 0.49)
    True
    """

    n_clusters: int | None = field(default=None, kw_only=False)
    n_components: int | None = None
    assign_labels: str = "kmeans"
    n_init: int = 10
    verbose: bool | int = False

    def fit(self, X: PointsLike, y: Any = None, sample_weight: WeightsLike = None) -> Self:
        """Select the atoms and cluster them. A sample weight of 3 equals three equal rows."""
        X = self._rows(X, reset=True)
        clusters = DEFAULT_CLUSTERS if self.n_components is None else self.n_components
        clusters = _validate.whole(clusters if self.n_clusters is None else self.n_clusters, "n_clusters", 1)
        method = _validate.one_of(self.assign_labels, "assign_labels", ROUNDINGS)
        if method != "kmeans" and self.n_components is not None and self.n_components != clusters - 1:
            raise ValueError(
                f"assign_labels={method!r} with {clusters} clusters needs n_components={clusters - 1}, "
                f"got {self.n_components!r}; omit n_components, or use assign_labels='kmeans'"
            )
        reduced = self._weighted_atoms(X, sample_weight)
        self._component_count(reduced, "n_clusters", clusters)
        if clusters > reduced.size:
            raise ValueError(
                f"n_clusters must be at most the number of atoms, {reduced.size} for {reduced.n_samples} rows, got {clusters}; "
                "raise ell or size, or use reduce=None"
            )
        count = max(clusters - 1, 1)
        if self.n_components is not None:
            count = self._component_count(reduced, "n_components", self.n_components, extra=1)
        self._walk = random_walk(reduced, count, 0.0, self.eigen_solver)
        self.eigenvalues_, self.parts_ = self._walk.eigenvalues, self._walk.parts
        if clusters > 1:
            self._warn_of_parts(clusters, f"their assignment to the {clusters} clusters is arbitrary")
        if self.n_components is not None:
            self._warn_of_zeros(self.eigenvalues_)
        self._rounding = self._fit_rounding(reduced, clusters)
        self.atom_labels_ = self._rounding.labels(self._walk.functions)
        self.labels_ = self._labels(X)
        return self

    def _default_kernel(self, X: PointsLike, sample_weight: WeightsLike) -> Kernel:
        """A Gaussian with the bandwidth of `graph_bandwidth`, or the median bandwidth if all rows are equal."""
        width = graph_bandwidth(X, sample_weight)
        return super()._default_kernel(X, sample_weight) if width is None else Gaussian(width)

    def _weighted_atoms(self, X: PointsLike, sample_weight: WeightsLike = None) -> WeightedAtoms:
        """At most ``MAX_ATOMS`` atoms by default, since a narrow bandwidth would keep most rows."""
        size = self.size
        if self.kernel is None and size is None and isinstance(self.reduce, str) and self.reduce == "shadow":
            size = MAX_ATOMS
        return self._reduce(X, sample_weight, size, self.weights)

    def _fit_rounding(self, reduced: WeightedAtoms, clusters: int) -> Rounding:
        starts = _validate.whole(self.n_init, "n_init", 1)
        verbose = int(self.verbose) if isinstance(self.verbose, bool) else _validate.whole(self.verbose, "verbose", 0)
        rng = _validate.generator(self.random_state, "random_state")
        if verbose:
            print(f"Computing label assignment using {self.assign_labels}")  # The same text as in scikit-learn.
        if self.assign_labels == "cluster_qr":
            return pivot_rounding(self._walk, clusters)
        if self.assign_labels == "discretize":
            return indicator_rounding(self._walk, reduced.masses, clusters, starts, rng)
        return kmeans_rounding(self._walk, clusters, starts, int(rng.integers(2**31)), verbose)

    def _labels(self, X: PointsLike) -> NDArray[np.int64]:
        return self._rounding.labels(self._walk.evaluate(self._reduced, X))

    def predict(self, X: PointsLike) -> NDArray[np.int64]:
        """(q,) labels of the rows of X, from the eigenfunctions at each row."""
        return self._labels(self._rows(X))


@dataclass(frozen=True)
class Rounding:
    """A linear map from eigenfunctions to clusters.

    A point belongs to the cluster c with the largest Σⱼ ψⱼ Mⱼ꜀ + h꜀. If ``unsigned``, the absolute values are compared.

    Attributes
    ----------
    matrix : (k, c)
        Matrix M. Only the first k functions are used.
    offsets : (c,)
        Offsets h.
    unsigned : bool
    """

    matrix: Array
    offsets: Array
    unsigned: bool = False

    def labels(self, functions: Array) -> NDArray[np.int64]:
        """(q,) clusters of points with the values ``functions``, (q, ≥ k)."""
        values = functions[:, : len(self.matrix)] @ self.matrix + self.offsets
        return np.argmax(np.abs(values) if self.unsigned else values, axis=1)


def kmeans_rounding(walk: RandomWalk, clusters: int, starts: int, seed: int, verbose: int = 0) -> Rounding:
    """Assign points to the nearest centre of k-means. The best of ``starts`` runs is used."""
    kmeans = KMeans(clusters, n_init=starts, random_state=seed, verbose=verbose)
    centres = kmeans.fit(walk.functions, sample_weight=walk.stationary * len(walk.stationary)).cluster_centers_
    centres = centres[np.lexsort(centres.T[::-1])]  # Labels do not depend on the order of k-means.
    return Rounding(centres.T, -(centres**2).sum(axis=1) / 2)


def pivot_rounding(walk: RandomWalk, clusters: int) -> Rounding:
    """Assign points to the largest coordinate after the rotation to the pivots."""
    values = _values(walk, clusters)
    pivots = qr(values.T, mode="r", pivoting=True, check_finite=False)[1][:clusters]
    left, _, right = svd(values[pivots].T, check_finite=False)
    return _rotation_rounding(left @ right, unsigned=True)


def indicator_rounding(walk: RandomWalk, masses: Array, clusters: int, starts: int, rng: np.random.Generator) -> Rounding:
    """Assign points to the largest coordinate after the rotation to indicators. The best of ``starts`` runs is used."""
    values = _values(walk, clusters)
    values = values / np.linalg.norm(values, axis=1, keepdims=True)
    trials = [_indicator_rotation(values, masses, _orthogonal_rows(values, masses, rng)) for _ in range(starts)]
    return _rotation_rounding(max(trials, key=lambda trial: trial[0])[1])


def _values(walk: RandomWalk, clusters: int) -> Array:
    """(m, clusters) values of the constant function and of the slowest eigenfunctions."""
    return np.column_stack([np.ones(len(walk.functions)), walk.functions[:, : clusters - 1]])


def _rotation_rounding(rotation: Array, unsigned: bool = False) -> Rounding:
    return Rounding(rotation[1:], rotation[0], unsigned)  # The constant function is 1 at every point.


def _orthogonal_rows(values: Array, masses: Array, rng: np.random.Generator) -> Array:
    """(k, k) rows as columns. The first is drawn by mass. Each next row is the most orthogonal to the previous rows."""
    k = values.shape[1]
    columns, overlap = np.empty((k, k)), np.zeros(len(values))
    columns[:, 0] = values[rng.choice(len(values), p=masses / masses.sum())]
    for j in range(1, k):
        overlap += np.abs(values @ columns[:, j - 1])
        columns[:, j] = values[np.argmin(overlap)]
    return columns


def _indicator_rotation(values: Array, masses: Array, rotation: Array) -> tuple[float, Array]:
    """The agreement of the nearest indicators with the rotated values, and the rotation."""
    labels, agreement = np.full(len(values), -1), 0.0
    for _ in range(MAX_ROTATIONS):
        before, labels = labels, np.argmax(values @ rotation, axis=1)
        if np.array_equal(labels, before):
            break
        indicators = np.zeros_like(values)
        indicators[np.arange(len(values)), labels] = masses
        left, singular, right = svd(indicators.T @ values, check_finite=False)
        agreement, rotation = float(singular.sum()), (left @ right).T
    return agreement, rotation
