"""Kernel PCA on weighted atoms, a replacement for `sklearn.decomposition.KernelPCA`.

Fitting costs the selection and O(m²) a component, or O(m³) for all components, instead of O(n³). It needs no n×n matrix. A new row
costs O(m).

**Refined components.** The components of the atoms are rotated towards the components of all rows (Rayleigh & Ritz). Let S be the
span of p functions of the atoms, orthonormal in the geometry of the kernel. Within S, the operator of all rows is the p×p
covariance of the rows' coordinates. Its eigenvectors are the best components of the rows in S. This reverses the mixing of
components by the quantisation. With all m functions, it is Nyström's approximation followed by PCA, at O(n·m·p) instead of O(n·m²).

The result has a certificate for any atoms. Its eigenvalues θ are never above the rows' eigenvalues λ. All λ sum to the trace of the
operator. The trace is κ, or κ − ‖μ‖² with centring, where ‖μ‖ is at least its part within S. So Σ(λᵢ − θᵢ) over the p functions is
at most the remainder of the trace, ``PrincipalComponents.residual_trace``.

Only the span of the functions matters. So for many more atoms than functions, the functions come from products with a block. The
span of a random block after one product approximates the leading directions. The error is of the order of the ratio between the
eigenvalue of order p and theirs (Halko, Martinsson & Tropp 2011). If p is above m/20, there are three products. The Gram matrix K
is unchanged, and the block is centred and weighted instead. The last product yields the values of the functions at the atoms. The
cost is O(m²·p).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh, qr
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from reduset import _validate
from reduset._engine import add, over_blocks, single_threaded_blas
from reduset._messages import warn
from reduset._types import Array, Floats, PointsLike, WeightsLike
from reduset._validate import seeded
from reduset.kernels import Kernel
from reduset.spectral.base import SpectralTransformer
from reduset.spectral.bounds import bounds_of
from reduset.spectral.components import (
    PAIR_FRACTION,
    SMALL,
    PrincipalComponents,
    clip_rounding,
    definite_eigenvalues,
    inverse_roots,
    latent_kernel,
    principal_components,
    ridge_coefficients,
    signs,
)
from reduset.spectral.extension import extend, extended_blocks, offers_single, products_of, tolerates_single
from reduset.spectral.reduction import WeightedAtoms, row_masses

EXTRA_FUNCTIONS = 50  # In addition to the requested components. They reduce the error about tenfold.
BLOCK_FRACTION = 5  # Up to m/5 functions, products with a block are several times faster than a decomposition.
EXTRA_PRODUCTS = 2  # For more than m/20 functions, because the remaining eigenvalues are closer to theirs.
MIN_MEAN = 1e-10  # Relative to κ. A smaller part of the mean outside the span is a rounding error.


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


@dataclass(frozen=True)
class AtomFunctions:
    """Orthonormal functions Σⱼ Aⱼₖ k(·, cⱼ), k = 1 … p.

    Attributes
    ----------
    coefficients : (m, p)
        Coefficients A.
    offsets : (p,)
        Inner products with the atoms' kernel mean μ̄. Moments are computed about these. They are 0 without centring.
    mean_norm : float
        Norm ‖μ̄‖.
    at_atoms : (m, p) or None
        Values at the atoms. None if they are unknown.
    """

    coefficients: Array
    offsets: Array
    mean_norm: float
    at_atoms: Array | None


def leading_functions(reduced: WeightedAtoms, count: int, centre: bool, solver: str = "auto") -> AtomFunctions:
    """Approximations of the ``count`` leading components of the atoms, and the remainder of their mean."""
    if solver == "auto" and reduced.size > SMALL and count <= reduced.size // BLOCK_FRACTION:
        return _approximate_functions(reduced, count, centre)
    components = principal_components(reduced, count, centre, solver)
    functions = AtomFunctions(components.coefficients, components.offsets, components.mean_norm, None)
    return _with_mean(functions, reduced, None) if centre else functions


def _approximate_functions(reduced: WeightedAtoms, count: int, centre: bool) -> AtomFunctions:
    """Functions from a random block. They have single precision if this is accurate enough."""
    dimension = reduced.atoms.shape[1]
    if offers_single(reduced.kernel, dimension):
        functions = _functions_of_block(reduced, count, centre, single=True)
        if tolerates_single(reduced.kernel, functions.coefficients, dimension):
            return functions
    return _functions_of_block(reduced, count, centre, single=False)


def _functions_of_block(reduced: WeightedAtoms, count: int, centre: bool, single: bool) -> AtomFunctions:
    matrix, p, roots = reduced.gram(single), reduced.proportions, np.sqrt(reduced.masses)[:, None]

    def weighted(block: Array) -> Array:
        """(I − p1ᵀ) W^½ times the block."""
        block = roots * block
        return block - np.outer(p, block.sum(axis=0)) if centre else block

    def directions(block: Array) -> Array:
        """A weighted orthonormal basis of the product of the weighted, centred matrix with a block.

        The argument is the product of K with this block.
        """
        with single_threaded_blas():  # For narrow matrices, synchronising threads takes longer.
            block = roots * (block - p @ block if centre else block)
            return weighted(qr(block, mode="economic", overwrite_a=True, check_finite=False)[0])

    start = weighted(np.random.default_rng(0).normal(size=(len(matrix), count + 1)))
    block = products_of(matrix, np.column_stack([start, p]))  # One pass over the matrix computes both products.
    block, means = directions(block[:, :-1]), block[:, -1]
    if count > len(matrix) // PAIR_FRACTION:
        for _ in range(EXTRA_PRODUCTS):
            block = directions(products_of(matrix, block))
    at_atoms = products_of(matrix, block)
    with single_threaded_blas():
        inner = block.T @ at_atoms
        values, rotation = eigh((inner + inner.T) / 2, check_finite=False)
        values = definite_eigenvalues(values[::-1], reduced)
        rotation = rotation[:, ::-1] * inverse_roots(values)
        block, at_atoms = block @ rotation, at_atoms @ rotation
    mean_norm = float(np.sqrt(max(float(p @ means), 0.0)))
    functions = AtomFunctions(block, means @ block if centre else np.zeros(len(values)), mean_norm, at_atoms)
    return _with_mean(functions, reduced, means) if centre else functions


def _with_mean(functions: AtomFunctions, reduced: WeightedAtoms, means: Array | None) -> AtomFunctions:
    """Add the part of μ̄ outside the span to the functions. Components of the rows may need it."""
    remainder = functions.mean_norm**2 - float(functions.offsets @ functions.offsets)
    if remainder < MIN_MEAN * reduced.peak:
        return functions
    root = np.sqrt(remainder)
    mean = (reduced.proportions - functions.coefficients @ functions.offsets) / root
    at_atoms = None
    if functions.at_atoms is not None and means is not None:
        at_atoms = np.column_stack([functions.at_atoms, (means - functions.at_atoms @ functions.offsets) / root])
    return AtomFunctions(
        np.column_stack([functions.coefficients, mean]), np.append(functions.offsets, root), functions.mean_norm, at_atoms
    )


def rayleigh_ritz(
    functions: AtomFunctions, reduced: WeightedAtoms, X: Floats, proportions: Array, count: int, centre: bool
) -> PrincipalComponents:
    """The ``count`` best components of the rows X within the span of p ≥ count functions of the atoms.

    ``proportions`` are the weights of the rows, (n,), with the sum 1.
    """
    with single_threaded_blas():  # For narrow matrices, synchronising threads takes longer.
        means, second = _moments(functions, reduced, X, proportions)
        trace, offsets = reduced.peak, np.zeros_like(means)
        if centre:
            offsets = functions.offsets + means
            second = second - np.outer(means, means)
            trace -= min(float(offsets @ offsets), trace)
        values, vectors = eigh(second, check_finite=False)
        values = clip_rounding(values[::-1] * reduced.mass, reduced.peak * reduced.mass)
        residual_trace = max(trace * reduced.mass - float(values.sum()), 0.0)
        vectors = vectors[:, ::-1][:, :count] * (values[:count] > 0)
        coefficients, offsets = functions.coefficients @ vectors, offsets @ vectors
        if functions.at_atoms is None:
            at_atoms = extend(reduced.kernel, reduced.atoms, coefficients, reduced.atoms)
        else:
            at_atoms = functions.at_atoms @ vectors
        at_atoms -= offsets
        column_signs = signs(at_atoms)
        return PrincipalComponents(
            eigenvalues=values[:count],
            eigenvectors=at_atoms * column_signs * inverse_roots(values[:count]),
            coefficients=coefficients * column_signs,
            offsets=offsets * column_signs,
            next_eigenvalue=float(np.pad(values, (0, 1))[count]),
            mean_norm=functions.mean_norm,
            residual_trace=residual_trace,
        )


def _moments(functions: AtomFunctions, reduced: WeightedAtoms, X: Floats, proportions: Array) -> tuple[Array, Array]:
    """Means, (p,), and second moments, (p, p), of the functions over the rows, about their offsets.

    Values at the atoms are reused if they are available.
    """
    moments = np.zeros((len(functions.offsets) + 1,) * 2)
    atoms = None if functions.at_atoms is None else reduced.rows_in(X)
    if functions.at_atoms is not None and atoms is not None:
        moments += _moments_of(functions.at_atoms - functions.offsets, proportions[atoms])
        proportions = proportions.copy()
        proportions[atoms] = 0.0
    single = tolerates_single(reduced.kernel, functions.coefficients, X.shape[1])
    moments += _row_moments(X, proportions, reduced.kernel, reduced.atoms, functions.coefficients, functions.offsets, single)
    return moments[-1, :-1], moments[:-1, :-1]


@over_blocks(add)
def _row_moments(
    X: Floats, proportions: Array, kernel: Kernel, atoms: Array, coefficients: Array, offsets: Array, single: bool
) -> Array:
    """The same for rows with positive proportions, as one matrix with a last row and column for the means."""
    moments = np.zeros((len(offsets) + 1,) * 2)
    rows = np.flatnonzero(proportions)
    for a, b, values in extended_blocks(kernel, atoms, coefficients, X, rows, single):
        moments += _moments_of(values - offsets, proportions[rows[a:b]])
    return moments


def _moments_of(values: Array, weights: Array) -> Array:
    block = np.column_stack([values, np.ones(len(values))])
    return np.asarray(block.T @ (weights[:, None] * block))
