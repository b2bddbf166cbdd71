"""Nyström features, rivals of kernel PCA on atoms: K ≈ F Fᵀ from the kernel's values with m atoms alone.

`Nystroem` has F = K_nm K_mm^(−½) (Williams & Seeger 2001): m features, the atoms of any selector, scikit-learn's result for the
same rows. `WeightedNystroem` (Zhang & Kwok 2009) knows how many rows each atom stands for: with W^½ K_mm W^½ v = λv, F = K_nm W^½ v
λ^(−½), and few features are the leading eigenfunctions under the density of the data. With all m of them the weights cancel and
both approximate K alike. O(m³) and O(n·m) for the features.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from reduset import _validate
from reduset._messages import warn
from reduset._types import Array, KernelLike, PointsLike
from reduset.select import Shadow
from reduset.spectral.base import SpectralEstimator, SpectralTransformer, as_rows, keeping_single
from reduset.spectral.components import principal_components
from reduset.spectral.extension import extend
from reduset.spectral.reduction import is_given

LEAST = 1e-12  # eigenvalues below count as this, as in scikit-learn


@dataclass(eq=False, repr=False, kw_only=True)
class Nystroem(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SpectralEstimator):
    """Nyström features with the atoms of any selector: in place of `sklearn.kernel_approximation.Nystroem`.

    Parameters
    ----------
    kernel : as of `ReducedKernelPCA`; "rbf" by default, as in scikit-learn
    gamma : float, optional
        Of "rbf" and "laplacian"; 1/d if not given.
    kernel_params : dict, optional
        Further parameters of a kernel that is a function, or of one by its name.
    n_components : int
        The number of atoms, and of features; of "shadow" the most.
    reduce : "random", the name of a selector, a selector, None (every row), a Compression or a KernelMean
    ell : float
        Of "shadow".
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    components_ : (m, d)
        The atoms.
    component_indices_ : (m,) rows, or None where atoms are new points
    normalization_ : (m, m)
        K_mm^(−½).

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.spectral import Nystroem
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> Nystroem(n_components=50, reduce="kmeans", random_state=0).fit_transform(X).shape
    (1000, 50)
    """

    kernel: KernelLike | str = field(default="rbf", kw_only=False)
    n_components: int = 100
    reduce: Any = "random"

    def fit(self, X: PointsLike, y: Any = None) -> Self:
        """Choose the atoms and factor their kernel matrix."""
        X = self._rows(X, reset=True)
        asked = _validate.whole(self.n_components, "n_components", 1)
        chooses = self.reduce is not None and not is_given(self.reduce)
        found = self._reduce(X, None, asked if chooses else None, "auto")
        ends = self.reduce == "shadow" if isinstance(self.reduce, str) else isinstance(self.reduce, Shadow)
        if asked > len(X) and not ends and chooses:
            warn(f"n_components={asked} is more than the {len(X)} rows: every row becomes an atom; lower n_components")
        self.components_, self.component_indices_ = found.atoms, found.indices
        values, vectors = eigh(found.gram(), overwrite_a=True, check_finite=False)
        self.normalization_ = (vectors / np.sqrt(np.maximum(values, LEAST))) @ vectors.T
        return self

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: PointsLike) -> Array:
        """(q, m) features; 0 far from all atoms."""
        X = self._rows(X)
        return as_rows(extend(self.kernel_, self.components_, self.normalization_, X), X)

    def __sklearn_tags__(self) -> Any:
        return keeping_single(super().__sklearn_tags__())


@dataclass(eq=False, repr=False, kw_only=True)
class WeightedNystroem(SpectralTransformer):
    """Density-weighted Nyström features: the leading eigenfunctions of the kernel under the density of the data.

    Parameters
    ----------
    n_components : int
        The number of features.
    kernel, gamma, kernel_params, reduce, ell, size, weights, eigen_solver, random_state : as of `ReducedKernelPCA`
        By default ``size`` centres of k-means with the sizes of their clusters, as in the paper of Zhang & Kwok.

    Attributes
    ----------
    eigenvalues_ : (k,)
        Of the n×n matrix that the atoms stand for.
    eigenvectors_ : (m, k)
        Values at the atoms, with Σ weights_ · eigenvectors_² = 1.
    atoms_, weights_, indices_, kernel_ : as of `ReducedKernelPCA`

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.spectral import WeightedNystroem
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> WeightedNystroem(n_components=10, size=50, random_state=0).fit_transform(X).shape
    (1000, 10)
    """

    n_components: int = field(default=10, kw_only=False)
    kernel: KernelLike | str = "rbf"
    reduce: Any = "kmeans"
    size: int | None = 100

    def fit(self, X: PointsLike, y: Any = None) -> Self:
        """Choose the atoms and solve their weighted eigenproblem."""
        X = self._rows(X, reset=True)
        found = self._weighted_atoms(X)
        count = self._count(found, "n_components", self.n_components)
        self._functions = components = principal_components(found, count, False, self.eigen_solver)
        self.eigenvalues_, self.eigenvectors_ = components.eigenvalues, components.eigenvectors
        self._tell_of_zeros(self.eigenvalues_)
        return self

    def transform(self, X: PointsLike) -> Array:
        """(q, k) features; 0 far from all atoms."""
        return self._at(X)
