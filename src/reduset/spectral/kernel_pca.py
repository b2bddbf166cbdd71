"""Kernel PCA on weighted atoms, in place of `sklearn.decomposition.KernelPCA`.

Fitting costs the selection and O(m²) a component (O(m³) for all of them) instead of O(n³), without an n×n matrix. A new row costs
O(m).
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
    """Kernel PCA, reduced: in place of `sklearn.decomposition.KernelPCA`.

    Parameters
    ----------
    n_components : int, optional
        None keeps all components with a positive eigenvalue; there are none if all rows are equal.
    kernel : kernel object, function k(X, Y), or a name: "rbf", "laplacian", "cosine" (scikit-learn's), "gaussian", "student", …
        A function of two single rows, k(x, y) → number, as in scikit-learn, also works; it is slow. None is a Gaussian with the
        median bandwidth, or the kernel of a Compression.
    gamma : float, optional
        Of "rbf" and "laplacian". Default: 1/d, as in scikit-learn.
    kernel_params : dict, optional
        Parameters of a kernel function or of a named kernel, such as ``{"bandwidth": 2.0}`` of "gaussian".
    reduce : "shadow", None, the name of a selector, a selector, a Compression or a KernelMean
        How atoms are selected. None keeps every row and gives the result of scikit-learn.
    ell : float
        Of "shadow": every row is within bandwidth/ell of an atom. A larger value keeps more atoms; 3 to 5 is usual.
    size : int, optional
        The number of atoms; for "shadow" the maximum.
    weights : "auto" or "nearest"
        The selector's own weights if it has any, or the mass of the rows nearest to each atom.
    refine : bool
        Whether to rotate the atoms' components towards the components of all rows. This makes the error several times smaller and
        costs O(n·m) a component; eigenvalues are never above those of the rows. False is the form of the paper.
    centre : bool
        Whether kernel functions are centred on their weighted mean. False is the form of the paper.
    fit_inverse_transform : bool
        Whether to learn the inverse map, by ridge regression from coordinates to atoms.
    alpha : float
        Ridge of the inverse map.
    eigen_solver : "auto", "dense", "arpack" or "randomized"
        "auto" iterates from 500 atoms on for up to a twentieth of the atoms as components, and from 5,000 for up to a tenth.
    remove_zero_eig : bool
        Whether to omit components with an eigenvalue of 0 if ``n_components`` is given. Otherwise their coordinates are 0.
    random_state : int, RandomState, Generator or None
        Of random selectors.

    Attributes
    ----------
    eigenvalues_ : (k,)
        Of the n×n kernel matrix that the atoms represent, as in scikit-learn.
    eigenvectors_ : (m, k)
        Values at the atoms, coordinates over √eigenvalue. With ``refine=False``, Σ weights_ · eigenvectors_² = 1.
    atoms_, weights_, indices_ : (m, d), (m,), (m,) or None
        The atoms, the number of rows that each represents, and their row numbers.
    kernel_, gamma_ : Kernel, float or None
        The kernel with its bandwidth; γ of "rbf" and "laplacian".
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
        X : (n, d)
        y : ignored
        sample_weight : (n,) array, optional
            Non-negative; a weight of 3 equals three equal rows.
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
        """The components with positive eigenvalues if requested; otherwise all, with a warning if some are 0."""
        if _validate.flag(self.remove_zero_eig, "remove_zero_eig") or self.n_components is None:
            positive = int(np.count_nonzero(components.eigenvalues))
            if positive == 0:
                warn("no component has a positive eigenvalue, since all rows are equal under the kernel: there are no coordinates")
            return components.first(positive) if positive < len(components.eigenvalues) else components
        self._warn_of_zeros(components.eigenvalues)
        return components

    def inverse_transform(self, X: PointsLike) -> Array:
        """(q, d) points with approximately these (q, k) coordinates."""
        check_is_fitted(self)
        if self._inverse is None:
            raise NotFittedError("the inverse map was not fitted; use fit_inverse_transform=True and fit again to rows that differ")
        coordinates, coefficients = self._inverse
        queries = np.asarray(_validate.points(X, "X"), np.float64)
        if queries.shape[1] != coordinates.shape[1]:
            raise ValueError(f"X must have {coordinates.shape[1]} columns, one per component; got shape {queries.shape}")
        return extend(latent_kernel(self._reduced), coordinates, coefficients, queries)
