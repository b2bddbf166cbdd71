"""Nyström features: K ≈ F Fᵀ from the kernel values of n rows with m atoms.

`Nystroem` (Williams & Seeger 2001) computes the m features F = K_nm K_mm^(−½), with the atoms of any selector. For the same atoms,
the result equals scikit-learn's. `WeightedNystroem` (Zhang & Kwok 2009) weights each atom by the number of rows that it represents.
Let W^½ K_mm W^½ v = λv. Its features F = K_nm W^½ v λ^(−½) are the leading eigenfunctions under the density of the data. If all m
features are kept, the weights cancel and both F Fᵀ are equal. The cost is O(m³), and O(m) a row and feature.

With ``all_rows=True``, `WeightedNystroem` extends the eigenvectors to all rows once. U is K_nm W^½ v with columns of length 1. A
point has the features k(x, X) U λ^(−½). Kingravi, Vela & Gray 2013 compare with this form (Table 2). It stores the rows and U, with
O(n·(d + k)) memory, and costs O(n) a row and feature.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh

from reduset import _validate
from reduset._messages import warn
from reduset._types import Array, KernelLike, PointsLike
from reduset._validate import seeded
from reduset.select import Shadow
from reduset.spectral.base import FeatureTransformer, SpectralEstimator, SpectralTransformer, with_dtype_of
from reduset.spectral.components import extended_to_rows, principal_components
from reduset.spectral.extension import extend
from reduset.spectral.reduction import WeightedAtoms, is_reduced

MIN_EIGENVALUE = 1e-12  # Smaller eigenvalues are replaced by this, as in scikit-learn.


@seeded
@dataclass(eq=False, repr=False, kw_only=True)
class Nystroem(FeatureTransformer, SpectralEstimator):
    """Nyström features with the atoms of any selector.

    It has the interface of `sklearn.kernel_approximation.Nystroem`.

    Parameters
    ----------
    kernel : kernel object, function, name or None
        Kernel, as in `ReducedKernelPCA`. The default is "rbf", as in scikit-learn.
    gamma : float, optional
        Parameter γ of "rbf" and "laplacian". The default is 1/d.
    kernel_params : dict, optional
        Parameters of a kernel function or of a named kernel.
    n_components : int
        Number of atoms and of features. For "shadow", it is the maximum.
    reduce : "random", the name of a selector, a selector, None, a Compression or a KernelMean
        Selector of the atoms, or given atoms. None keeps every row.
    ell : float
        Parameter of "shadow". Every row is within bandwidth/ell of an atom.
    random_state : int, RandomState, Generator or None
        Seed of random selectors.

    Attributes
    ----------
    components_ : (m, d)
        Atoms.
    component_indices_ : (m,) or None
        Row numbers of the atoms. None if the atoms are new points.
    normalization_ : (m, m)
        Matrix K_mm^(−½).

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
        """Select the atoms and factor their kernel matrix."""
        X = self._rows(X, reset=True)
        count = _validate.whole(self.n_components, "n_components", 1)
        selects = self.reduce is not None and not is_reduced(self.reduce)
        reduced = self._reduce(X, None, count if selects else None, "auto")
        is_shadow = self.reduce == "shadow" if isinstance(self.reduce, str) else isinstance(self.reduce, Shadow)
        if selects and not is_shadow and count > len(X):
            warn(f"n_components={count} is more than the {len(X)} rows: every row becomes an atom; lower n_components")
        self.components_, self.component_indices_ = reduced.atoms, reduced.indices
        values, vectors = eigh(reduced.gram(), overwrite_a=True, check_finite=False)
        self.normalization_ = (vectors / np.sqrt(np.maximum(values, MIN_EIGENVALUE))) @ vectors.T
        return self

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: PointsLike) -> Array:
        """(q, m) features. They approach 0 far from all atoms."""
        X = self._rows(X)
        return with_dtype_of(X, extend(self.kernel_, self.components_, self.normalization_, X))


@seeded
@dataclass(eq=False, repr=False, kw_only=True)
class WeightedNystroem(SpectralTransformer):
    """Density-weighted Nyström features: the leading eigenfunctions of the kernel under the density of the data.

    Parameters
    ----------
    n_components : int
        Number of features.
    kernel, gamma, kernel_params, reduce, ell, size, weights, eigen_solver, random_state
        As in `ReducedKernelPCA`. By default, the atoms are ``size`` centres of k-means, weighted by the sizes of their clusters.
        This is the method of Zhang & Kwok.
    all_rows : bool
        False computes the features of a new row from its kernel values with the m atoms. True extends the eigenvectors to all n
        rows and uses the kernel values with these rows. Kingravi, Vela & Gray compare with this form. ``fit`` then keeps the rows,
        and a new row costs O(n) instead of O(m). With ``reduce="random"``, it is their unweighted Nyström method.

    Attributes
    ----------
    eigenvalues_ : (k,)
        Approximate eigenvalues of the n×n kernel matrix of all rows.
    eigenvectors_ : (m, k)
        Values at the atoms. They satisfy Σ weights_ · eigenvectors_² = 1.
    row_eigenvectors_ : (n, k) or None
        Approximate eigenvectors of the n×n kernel matrix with ``all_rows=True``. Columns have length 1, or 0 where the eigenvalue
        is 0.
    atoms_, weights_, indices_, kernel_
        As in `ReducedKernelPCA`.

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
    all_rows: bool = False
    row_eigenvectors_: Array | None = field(init=False)

    def fit(self, X: PointsLike, y: Any = None) -> Self:
        """Select the atoms and solve their weighted eigenproblem."""
        X = self._rows(X, reset=True)
        all_rows = _validate.flag(self.all_rows, "all_rows")
        reduced = self._weighted_atoms(X)
        count = self._component_count(reduced, "n_components", self.n_components)
        self._functions = components = principal_components(reduced, count, False, self.eigen_solver)
        self.eigenvalues_, self.eigenvectors_ = components.eigenvalues, components.eigenvectors
        self.row_eigenvectors_ = None
        if all_rows:
            self._functions = extended_to_rows(components, reduced, X)
            self.row_eigenvectors_ = self._functions.eigenvectors
            # transform evaluates the kernel with the rows. So the rows become the atoms.
            n = len(X)
            self._reduced = WeightedAtoms(np.array(X, np.float64), np.ones(n), reduced.kernel, np.arange(n), n, None)
        self._warn_of_zeros(self.eigenvalues_)
        return self
