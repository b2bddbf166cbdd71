"""Kernel PCA on few weighted atoms: in place of `sklearn.decomposition.KernelPCA`, in training and in prediction.

Fitting costs the selection and O(m²) a component (O(m³) for all of them) instead of O(n³), and no n×n matrix; a row O(m).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from reduset import _validate
from reduset._messages import warn
from reduset._types import Array, PointsLike, WeightsLike
from reduset._validate import seeded
from reduset.spectral.base import SpectralTransformer
from reduset.spectral.bounds import bounds_of
from reduset.spectral.components import PrincipalComponents, latent_kernel, principal_components, ridge_coefficients
from reduset.spectral.extension import extend
from reduset.spectral.functions import leading_functions
from reduset.spectral.reduction import WeightedAtoms
from reduset.spectral.ritz import SPARE, rayleigh_ritz


@seeded
@dataclass(eq=False, repr=False, kw_only=True)
class ReducedKernelPCA(SpectralTransformer):
    """Kernel PCA, reduced: in place of `sklearn.decomposition.KernelPCA`.

    Parameters
    ----------
    n_components : int, optional
        None keeps all with an eigenvalue above 0, none where all rows coincide.
    kernel : kernel object, function k(X, Y), or a name: "rbf", "laplacian", "cosine" (scikit-learn's), "gaussian", "student", …
        A function may also be one of two single rows, k(x, y) → number, as scikit-learn's are; it is slow. None is a Gaussian of
        the median bandwidth, or the kernel of a Compression.
    gamma : float, optional
        Of "rbf" and "laplacian"; 1/d if not given, as in scikit-learn.
    kernel_params : dict, optional
        Further parameters of a kernel that is a function, or of one by its name, as ``{"bandwidth": 2.0}`` of "gaussian".
    reduce : "shadow", None, the name of a selector, a selector, a Compression or a KernelMean
        Which atoms stand for the data; None keeps every row, and the result is scikit-learn's.
    ell : float
        Of "shadow": atoms cover all within bandwidth/ell of them. More keeps more atoms; 3 to 5 is advised.
    size : int, optional
        The number of atoms of a selector; of "shadow" the most.
    weights : "auto" or "nearest"
        The selector's own weights where it has any, or the mass of the points nearest to each atom.
    refine : bool
        Whether the atoms' components are turned towards those of all rows, by one look at every row: an error several times
        smaller, and eigenvalues never above the rows' own, for O(n·m) a component. False is the form of the paper, which never
        looks at the rows again.
    centre : bool
        Whether bumps are centred on their weighted mean; False is the form of the paper.
    fit_inverse_transform : bool
        Whether to learn the way back, by ridge regression from coordinates to atoms.
    alpha : float
        Ridge of the way back.
    eigen_solver : "auto", "dense", "arpack" or "randomized"
        "auto" iterates beyond 5,000 atoms unless many components are wanted (a tenth of the atoms), and beyond 500 where few are.
    remove_zero_eig : bool
        Whether components with an eigenvalue of 0 are left out where ``n_components`` is given, too, instead of coordinates of 0.
    random_state : int, RandomState, Generator or None
        For selectors that draw.

    Attributes
    ----------
    eigenvalues_ : (k,)
        Of the n×n matrix that the atoms stand for, as scikit-learn's.
    eigenvectors_ : (m, k)
        Values at the atoms, coordinates over √eigenvalue; Σ weights_ · eigenvectors_² = 1 where not refined.
    atoms_, weights_, indices_ : (m, d), (m,), (m,) or None
        The atoms, how many rows each stands for, and which rows they are.
    kernel_, gamma_ : Kernel, float or None
        With its bandwidth; γ of "rbf" and "laplacian".
    bounds_ : SpectralBounds
        What is certain of the error.

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
        """Choose the atoms and solve their eigenproblem.

        Parameters
        ----------
        X : (n, d)
        y : ignored
        sample_weight : (n,) array, optional
            Non-negative; a weight of 3 is a row three times.
        """
        X = self._rows(X, reset=True)
        centre = _validate.flag(self.centre, "centre")
        back = _validate.flag(self.fit_inverse_transform, "fit_inverse_transform")
        alpha = _validate.positive(self.alpha, "alpha") if back else None
        found = self._weighted_atoms(X, sample_weight)
        count = self._count(found, "n_components", self.n_components)
        parts = self._parts(X, sample_weight, found, count, centre)
        self._functions = components = self._without_zeros(parts)
        self.eigenvalues_, self.eigenvectors_ = components.eigenvalues, components.eigenvectors
        self.bounds_ = bounds_of(found, components, centre)
        self._back: tuple[Array, Array] | None = None
        if alpha is not None and len(components.eigenvalues):
            coordinates = components.coordinates
            self._back = coordinates, ridge_coefficients(latent_kernel(found), coordinates, found, alpha)
        return self

    def _parts(
        self, X: PointsLike, sample_weight: WeightsLike, found: WeightedAtoms, count: int, centre: bool
    ) -> PrincipalComponents:
        refine = _validate.flag(self.refine, "refine") and not found.is_exact
        if not refine:
            return principal_components(found, count, centre, self.eigen_solver)
        looked_at = max(count, min(count + SPARE, found.size))
        functions = leading_functions(found, looked_at, centre, self.eigen_solver)
        rows = np.ones(len(X)) if sample_weight is None else _validate.weights(sample_weight, len(X))
        return rayleigh_ritz(functions, found, X, rows / rows.sum(), count, centre)

    def _without_zeros(self, parts: PrincipalComponents) -> PrincipalComponents:
        """All components above 0 where that is asked for; otherwise as many as were, and a word where some are 0."""
        if _validate.flag(self.remove_zero_eig, "remove_zero_eig") or self.n_components is None:
            above = int(np.count_nonzero(parts.eigenvalues))
            if above == 0:
                warn("no component has an eigenvalue above 0, all rows are alike to the kernel: there are no coordinates")
            return parts.first(above) if above < len(parts.eigenvalues) else parts
        self._tell_of_zeros(parts.eigenvalues)
        return parts

    def transform(self, X: PointsLike) -> Array:
        """(q, k) coordinates of the rows of X. Far from all atoms the bumps vanish: those of every such row are the same."""
        return self._at(X)

    def inverse_transform(self, X: PointsLike) -> Array:
        """(q, d) points that have about these (q, k) coordinates."""
        if not hasattr(self, "_back"):
            raise NotFittedError("This ReducedKernelPCA is not fitted yet; call fit first")
        if self._back is None:
            raise NotFittedError("the way back was not fitted; use fit_inverse_transform=True and fit again, to rows that differ")
        coordinates, coefficients = self._back
        queries = np.asarray(_validate.points(X, "X"), np.float64)
        if queries.shape[1] != coordinates.shape[1]:
            raise ValueError(f"X must have {coordinates.shape[1]} columns, one a component; got shape {queries.shape}")
        return extend(latent_kernel(self._reduced), coordinates, coefficients, queries)
