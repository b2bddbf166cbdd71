"""Kernel PCA on weighted atoms, a replacement for `sklearn.decomposition.KernelPCA`.

Fitting costs the selection and O(m²) a component, or O(m³) for all components, instead of O(n³). It needs no n×n matrix. A new row
costs O(m).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from reduset import _validate
from reduset._messages import warn
from reduset._types import Array, PointsLike, WeightsLike
from reduset._validate import seeded
from reduset.spectral.base import SpectralTransformer
from reduset.spectral.bounds import bounds_of
from reduset.spectral.components import PrincipalComponents, latent_kernel, principal_components, ridge_coefficients
from reduset.spectral.extension import extend
from reduset.spectral.reduction import row_masses
from reduset.spectral.ritz import EXTRA_FUNCTIONS, leading_functions, rayleigh_ritz


@seeded
@dataclass(eq=False, repr=False, kw_only=True)
class ReducedKernelPCA(SpectralTransformer):
    """Kernel PCA on weighted atoms.

    It has the interface of `sklearn.decomposition.KernelPCA`.

    Parameters
    ----------
    n_components : int, optional
        Number of components. None keeps all components with a positive eigenvalue. If all rows are equal, there is no such
        component.
    kernel : kernel object, function, name or None
        Kernel of the rows. A function k(X, Y) returns the matrix of kernel values. A function k(x, y) of two single rows is
        slower. Names are "rbf", "laplacian" and "cosine" (as in scikit-learn), and the kernels of reduset, such as "gaussian" or
        "student". None is a Gaussian with the median bandwidth, or the kernel of a Compression.
    gamma : float, optional
        Parameter γ of "rbf" and "laplacian". The default is 1/d, as in scikit-learn.
    kernel_params : dict, optional
        Parameters of a kernel function or of a named kernel. An example is ``{"bandwidth": 2.0}`` for "gaussian".
    reduce : "shadow", None, the name of a selector, a selector, a Compression or a KernelMean
        Selector of the atoms, or given atoms. None keeps every row and gives the result of scikit-learn.
    ell : float
        Parameter of "shadow": every row is within bandwidth/ell of an atom. A larger value keeps more atoms. Usual values are 3 to
        5.
    size : int, optional
        Number of atoms. For "shadow", it is the maximum.
    weights : "auto" or "nearest"
        "auto" uses the selector's weights if it computes weights. "nearest" uses the mass of the rows nearest to each atom.
    refine : bool
        Whether to rotate the atoms' components towards the components of all rows. This makes the error several times smaller. It
        costs O(n·m) a component. Eigenvalues never exceed the eigenvalues of the rows. The paper uses False.
    centre : bool
        Whether kernel functions are centred on their weighted mean. The paper uses False.
    fit_inverse_transform : bool
        Whether to fit the inverse map, by ridge regression from coordinates to atoms.
    alpha : float
        Ridge parameter of the inverse map.
    eigen_solver : "auto", "dense", "arpack" or "randomized"
        Solver of the eigenproblem. "auto" uses an iterative solver above 500 atoms, if the components are at most 1/20 of the
        atoms. Above 5,000 atoms, the limit is 1/10.
    remove_zero_eig : bool
        Whether to omit components with an eigenvalue of 0 if ``n_components`` is given. Otherwise, their coordinates are 0.
    random_state : int, RandomState, Generator or None
        Seed of random selectors.

    Attributes
    ----------
    eigenvalues_ : (k,)
        Eigenvalues of the n×n kernel matrix that the atoms represent. They have the scale of scikit-learn.
    eigenvectors_ : (m, k)
        Values at the atoms: coordinates divided by √eigenvalue. With ``refine=False``, Σ weights_ · eigenvectors_² = 1.
    atoms_ : (m, d)
    weights_ : (m,)
        Number of rows that each atom represents.
    indices_ : (m,) or None
        Row numbers of the atoms. None if the atoms are new points.
    kernel_ : Kernel
        Kernel with its bandwidth.
    gamma_ : float or None
        Parameter γ of "rbf" and "laplacian".
    bounds_ : SpectralBounds
        Certified bounds on the error.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian
    >>> from reduset.spectral import ReducedKernelPCA
    >>> X = np.random.default_rng(0).normal(size=(5000, 2))
    >>> pca = ReducedKernelPCA(n_components=3, kernel=Gaussian(1.0)).fit(X)
    >>> len(pca.atoms_) < 400, pca.transform(X[:10]).shape
    (True, (10, 3))
    """

    n_components: int | None = field(default=None, kw_only=False)
    refine: bool = True
    centre: bool = True
    fit_inverse_transform: bool = False
    alpha: float = 1.0
    remove_zero_eig: bool = False

    def fit(self, X: PointsLike, y: Any = None, sample_weight: WeightsLike = None) -> Self:
        """Select the atoms and solve their eigenproblem.

        Parameters
        ----------
        X : (n, d) array, frame, files or Dask collection
        y : ignored
        sample_weight : (n,) array, optional
            Non-negative weights of the rows. A weight of 3 equals three equal rows.
        """
        X = self._rows(X, reset=True)
        centre = _validate.flag(self.centre, "centre")
        inverts = _validate.flag(self.fit_inverse_transform, "fit_inverse_transform")
        alpha = _validate.positive(self.alpha, "alpha") if inverts else None
        reduced = self._weighted_atoms(X, sample_weight)
        count = self._component_count(reduced, "n_components", self.n_components)
        if _validate.flag(self.refine, "refine") and not reduced.is_exact:
            functions_count = max(count, min(count + EXTRA_FUNCTIONS, reduced.size))
            functions = leading_functions(reduced, functions_count, centre, self.eigen_solver)
            masses = row_masses(X, sample_weight)
            components = rayleigh_ritz(functions, reduced, X, masses / masses.sum(), count, centre)
        else:
            components = principal_components(reduced, count, centre, self.eigen_solver)
        self._functions = components = self._without_zeros(components)
        self.eigenvalues_, self.eigenvectors_ = components.eigenvalues, components.eigenvectors
        self.bounds_ = bounds_of(reduced, components, centre)
        self._inverse: tuple[Array, Array] | None = None
        if alpha is not None and len(components.eigenvalues):
            coordinates = components.coordinates
            self._inverse = coordinates, ridge_coefficients(latent_kernel(reduced), coordinates, reduced, alpha)
        return self

    def _without_zeros(self, components: PrincipalComponents) -> PrincipalComponents:
        """The components with positive eigenvalues if requested. Otherwise all components, with a warning for eigenvalues of 0."""
        if _validate.flag(self.remove_zero_eig, "remove_zero_eig") or self.n_components is None:
            positive = int(np.count_nonzero(components.eigenvalues))
            if positive == 0:
                warn(
                    "no component has a positive eigenvalue, because all rows are equal under the kernel: there are no coordinates"
                )
            return components.first(positive) if positive < len(components.eigenvalues) else components
        self._warn_of_zeros(components.eigenvalues)
        return components

    def inverse_transform(self, X: PointsLike) -> Array:
        """(q, d) points with approximately these (q, k) coordinates."""
        check_is_fitted(self)
        if self._inverse is None:
            raise NotFittedError("the inverse map was not fitted; use fit_inverse_transform=True and rows that are not all equal")
        coordinates, coefficients = self._inverse
        queries = np.asarray(_validate.points(X, "X"), np.float64)
        if queries.shape[1] != coordinates.shape[1]:
            raise ValueError(f"X must have {coordinates.shape[1]} columns, one per component, got shape {queries.shape}")
        return extend(latent_kernel(self._reduced), coordinates, coefficients, queries)
