"""Manifold learning on few weighted atoms: diffusion maps (Coifman & Lafon 2006) and Laplacian eigenmaps (Belkin & Niyogi 2003).

Fitting costs the selection and O(m²) a component (O(m³) for all), a row to transform O(m); `graph` has the mathematics.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from reduset import _validate
from reduset._types import Array, PointsLike, WeightsLike
from reduset._validate import seeded
from reduset.spectral.base import SpectralTransformer, as_rows
from reduset.spectral.graph import RandomWalk, random_walk


@dataclass(eq=False, repr=False, kw_only=True)
class _WalkMap(SpectralTransformer):
    """A map whose coordinates are eigenfunctions of a random walk on atoms."""

    n_components: int = field(default=2, kw_only=False)
    embedding_: Array = field(init=False)

    def fit_transform(self, X: PointsLike, y: Any = None, sample_weight: WeightsLike = None) -> Array:
        """(n, k) coordinates of the rows that are fitted: ``embedding_``."""
        weighted = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self.fit(X, y, **weighted).embedding_

    def _walk(self, X: PointsLike, sample_weight: WeightsLike, alpha: float) -> RandomWalk:
        found = self._weighted_atoms(X, sample_weight)
        count = self._count(found, "n_components", self.n_components, spare=1)
        self._functions = walk = random_walk(found, count, alpha, self.eigen_solver)
        self.eigenvectors_, self.stationary_, self.parts_ = walk.functions, walk.stationary, walk.parts
        apart = min(int(self.parts_.max()), count)
        self._tell_of_parts(1, f"the first {apart} coordinates only tell these apart")
        self._tell_of_zeros(walk.eigenvalues)
        return walk


@seeded
@dataclass(eq=False, repr=False, kw_only=True)
class ReducedDiffusionMap(_WalkMap):
    """A diffusion map of weighted atoms, with coordinates for any point.

    Parameters
    ----------
    n_components : int
    alpha : float
        How much of the density is taken out of the walk: 1 leaves the shape of the data alone, 0 all of the density (a Laplacian
        eigenmap), ½ the Fokker–Planck operator.
    time : float
        Steps of the walk, at least 0; coordinates are λ^time ψ, and their distances those of the walk's chances after so many.
    kernel, gamma, kernel_params, reduce, ell, size, weights, eigen_solver, random_state : as of `ReducedKernelPCA`

    Attributes
    ----------
    eigenvalues_ : (k,)
        λ, descending, without the first, which is 1.
    embedding_ : (n, k)
        Coordinates of the rows that were fitted.
    eigenvectors_ : (m, k)
        ψ at the atoms, with Σ stationary_ · ψ² = 1.
    stationary_ : (m,)
        The shares of time that the walk spends at each atom.
    parts_ : (m,)
        The part of the graph that each atom belongs to; a `DisconnectedWarning` tells where there are several.
    atoms_, weights_, indices_, kernel_ : as of `ReducedKernelPCA`

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

    def fit(self, X: PointsLike, y: Any = None, sample_weight: WeightsLike = None) -> Self:
        """Choose the atoms and solve for the walk among them; a sample weight of 3 is a row three times."""
        X = self._rows(X, reset=True)
        self._time = _validate.at_least(self.time, "time", 0.0)
        self.eigenvalues_ = self._walk(X, sample_weight, _validate.finite(self.alpha, "alpha")).eigenvalues
        self.embedding_ = self._coordinates(X)
        return self

    def _coordinates(self, X: PointsLike) -> Array:
        return as_rows(self._functions.at(self._reduced, X) * self.eigenvalues_**self._time, X)

    def transform(self, X: PointsLike) -> Array:
        """(q, k) coordinates λ^time ψ. So far from all atoms that the kernel vanishes, a row is where its nearest atom leads."""
        return self._coordinates(self._rows(X))


@seeded
class ReducedLaplacianEigenmap(_WalkMap):
    """A Laplacian eigenmap of weighted atoms, with coordinates for any point.

    The coordinates solve L f = μ D f, D the degrees of the graph and L = D − K, with f of mean square 1 under the degrees. Every
    point is tied to itself, as the rows that an atom stands for are tied to each other.

    Parameters
    ----------
    n_components : int
    kernel, gamma, kernel_params, reduce, ell, size, weights, eigen_solver, random_state : as of `ReducedKernelPCA`

    Attributes
    ----------
    eigenvalues_ : (k,)
        μ, ascending, without the first, which is 0.
    embedding_, eigenvectors_, stationary_, parts_ : as of `ReducedDiffusionMap`
    atoms_, weights_, indices_, kernel_ : as of `ReducedKernelPCA`

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
        """Choose the atoms and solve for the eigenmap; a sample weight of 3 is a row three times."""
        X = self._rows(X, reset=True)
        self.eigenvalues_ = 1.0 - self._walk(X, sample_weight, 0.0).eigenvalues
        self.embedding_ = as_rows(self._functions.at(self._reduced, X), X)
        return self

    def transform(self, X: PointsLike) -> Array:
        """(q, k) coordinates. So far from all atoms that the kernel vanishes, a row is where its nearest atom leads."""
        return self._at(X)
