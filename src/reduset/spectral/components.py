"""Kernel PCA of weighted atoms (Kingravi, Vela & Gray 2013, (13) and Algorithm 1), and the eigenpairs that it needs.

Let w be the masses, W = diag w, p = w/Σw, and K the Gram matrix of the atoms. K̃ = (I − 1pᵀ) K (I − p1ᵀ) is K centred on the
weighted mean. The paper's form uses K itself. The eigenproblem is W^½ K̃ W^½ v = λv. An eigenvector has the values e = W^(−½) v at
the atoms, with Σ w e² = 1. Algorithm 1 prints W^(−¼) with W = diag √w. The coordinate of a point is Σⱼ wⱼ eⱼ λ^(−½) k̃(cⱼ, x). If
masses count equal rows, the result is kernel PCA of all rows, eigenvalues included. The cost is O(m³), or O(m²) a component by
iteration.

The pre-image of coordinates t is kernel ridge regression from coordinates to atoms, Σ w ‖c − f(t)‖² + α‖f‖², as in scikit-learn.

LAPACK computes the eigenpairs for up to 500 atoms or a large fraction of the pairs. ARPACK computes them for more atoms.
"randomized" multiplies a random block with the matrix several times (Halko, Martinsson & Tropp 2011). It is as accurate as the
others if eigenvalues decay, and less accurate if they do not. LAPACK costs O(m³), the others O(m²) a pair.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, qr
from scipy.sparse.linalg import ArpackError, eigsh

from reduset import _validate
from reduset._engine import single_threaded_blas
from reduset._types import Array, Floats
from reduset.kernels import ANY_FAMILY, Kernel, RadialKernel
from reduset.spectral.extension import extend, tolerates_single
from reduset.spectral.reduction import WeightedAtoms

RELATIVE_ROUNDING = 2e-12  # Smaller eigenvalues, relative to the largest, are rounding errors (as in scikit-learn).
MAX_NEGATIVE = 1e-5  # A more negative eigenvalue, relative to the trace, shows an indefinite kernel.

SOLVERS = ("auto", "dense", "arpack", "randomized")
SMALL, LARGE = 500, 5000  # Numbers of atoms.
# "auto" iterates for at most m/20 pairs of up to 5,000 atoms, and for at most m/10 pairs of more atoms. LAPACK is faster for more
# pairs.
PAIR_FRACTION, PAIR_FRACTION_LARGE = 20, 10
EXTRA_PAIRS, BLOCK_PRODUCTS = 10, 7  # Options of "randomized".


@dataclass(frozen=True)
class PrincipalComponents:
    """Principal components as functions of a point.

    Attributes
    ----------
    eigenvalues : (k,)
        Eigenvalues in descending order. Rounding errors are replaced by 0.
    eigenvectors : (m, k)
        Values at the atoms. They satisfy Σ w e² = 1.
    coefficients : (m, k)
        Coefficients of the coordinates. A point has the coordinates k(x, atoms) @ coefficients − offsets.
    offsets : (k,)
    next_eigenvalue : float
        Largest omitted eigenvalue.
    mean_norm : float
        Norm ‖μ̄‖ of the atoms' kernel mean. Its weights sum to 1.
    residual_trace : float or None
        Bound on the sum of the rows' eigenvalues minus the sum of these. It is None if the rows were not evaluated.
    """

    eigenvalues: Array
    eigenvectors: Array
    coefficients: Array
    offsets: Array
    next_eigenvalue: float
    mean_norm: float
    residual_trace: float | None = None

    @property
    def coordinates(self) -> Array:
        """(m, k) coordinates of the atoms."""
        return self.eigenvectors * np.sqrt(self.eigenvalues)

    def evaluate(self, reduced: WeightedAtoms, queries: Floats) -> Array:
        """(q, k) coordinates of the queries."""
        # The error of components fitted to the rows is far above the rounding error of single precision.
        single = self.residual_trace is not None and tolerates_single(reduced.kernel, self.coefficients, queries.shape[1])
        return extend(reduced.kernel, reduced.atoms, self.coefficients, queries, single) - self.offsets

    def first(self, count: int) -> PrincipalComponents:
        """The first ``count`` components. All later eigenvalues must be 0."""
        return replace(
            self,
            eigenvalues=self.eigenvalues[:count],
            eigenvectors=self.eigenvectors[:, :count],
            coefficients=self.coefficients[:, :count],
            offsets=self.offsets[:count],
            next_eigenvalue=0.0,
        )


def principal_components(reduced: WeightedAtoms, count: int, centre: bool = True, solver: str = "auto") -> PrincipalComponents:
    """The ``count`` leading components of weighted atoms. If there are fewer, the rest have an eigenvalue of 0."""
    matrix = reduced.gram()
    p, roots = reduced.proportions, np.sqrt(reduced.masses)
    means = matrix @ p
    grand_mean = float(p @ means)
    if centre:
        matrix -= means[:, None]
        matrix -= means[None, :] - grand_mean
    matrix *= roots[:, None]
    matrix *= roots[None, :]
    values, vectors = pad_pairs(*leading_pairs(matrix, count + 1, solver), count + 1)
    values = definite_eigenvalues(values, reduced)
    vectors = fix_signs(vectors / roots[:, None])
    kept, following, vectors = values[:count], float(values[count]), vectors[:, :count]
    coefficients = reduced.masses[:, None] * vectors * inverse_roots(kept)
    if centre:  # Their sum is 0 up to rounding. At a distant point, the rounding error would matter.
        coefficients -= np.outer(p, coefficients.sum(axis=0))
    offsets = means @ coefficients if centre else np.zeros(len(kept))
    return PrincipalComponents(kept, vectors, coefficients, offsets, following, float(np.sqrt(max(grand_mean, 0.0))))


def extended_to_rows(components: PrincipalComponents, reduced: WeightedAtoms, X: Floats) -> PrincipalComponents:
    """Uncentred components of the atoms, with their eigenvectors extended to the rows of X.

    Let U be K_nm W^½ v with columns of length 1. It approximates the eigenvectors of the n×n kernel matrix (Zhang & Kwok 2009). A
    point then has the coordinates k(x, X) U λ^(−½), as in kernel PCA of all rows. K_nm is computed in blocks that are not kept, so
    the memory is O(n·k).
    """
    at_rows = extend(reduced.kernel, reduced.atoms, components.coefficients, X)
    norms = np.linalg.norm(at_rows, axis=0)
    at_rows /= np.where(norms > 0, norms, 1.0)
    return replace(components, eigenvectors=at_rows, coefficients=at_rows * inverse_roots(components.eigenvalues))


def definite_eigenvalues(values: Array, reduced: WeightedAtoms) -> Array:
    """Eigenvalues of the atoms, without rounding errors. An indefinite kernel raises ValueError.

    The eigenvalues are in descending order.
    """
    scale = reduced.peak * reduced.mass
    if values.min() < -MAX_NEGATIVE * scale:
        raise ValueError(
            f"the kernel must be positive definite, got a matrix with the eigenvalue {values.min():.3g}; use {ANY_FAMILY}"
        )
    return clip_rounding(values, scale)


def clip_rounding(values: Array, scale: float) -> Array:
    """Replace rounding errors in descending eigenvalues by 0. Centring subtracts matrices of this scale."""
    return np.where(values > max(RELATIVE_ROUNDING * values[0], 4 * np.finfo(np.float64).eps * scale), values, 0.0)


def inverse_roots(values: Array) -> Array:
    """λ^(−½), and 0 where λ is 0."""
    out = np.zeros_like(values)
    out[values > 0] = values[values > 0] ** -0.5
    return out


def latent_kernel(reduced: WeightedAtoms) -> Kernel:
    """The kernel between coordinates. Their unit is √κ, so scales and covariances of the points do not apply."""
    kernel = reduced.kernel
    if isinstance(kernel, RadialKernel):
        width = kernel.width * np.sqrt(reduced.peak)
        return replace(kernel, bandwidth=width, covariance=None, scales=None, normalized=False, space="rkhs")
    return kernel


def ridge_coefficients(kernel: Kernel, coordinates: Array, reduced: WeightedAtoms, alpha: float) -> Array:
    """(m, d) coefficients of the map from coordinates to points: (K + α W⁻¹)⁻¹ C."""
    roots = np.sqrt(reduced.masses)
    matrix = kernel.product_gram(coordinates, coordinates)
    matrix *= roots[:, None]
    matrix *= roots[None, :]
    matrix[np.diag_indices_from(matrix)] += alpha
    factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
    return np.asarray(roots[:, None] * cho_solve(factor, roots[:, None] * reduced.atoms, check_finite=False))


def leading_pairs(matrix: Array, count: int, solver: str = "auto") -> tuple[Array, Array]:
    """The ``count`` largest eigenvalues in descending order, and unit eigenvectors, (m, count). Overwrites the matrix."""
    _validate.one_of(solver, "eigen_solver", SOLVERS)
    m = len(matrix)
    count = min(count, m)
    max_iterated = 0 if m <= SMALL else m // (PAIR_FRACTION if m <= LARGE else PAIR_FRACTION_LARGE)
    if solver == "randomized" and count + EXTRA_PAIRS < m:
        return _randomized(matrix, count)
    iterates = solver == "arpack" or (solver == "auto" and count <= max_iterated)
    if iterates and count < m - 1:
        start = np.random.default_rng(0).uniform(-1.0, 1.0, m)  # A fixed seed makes the result reproducible.
        try:
            values, vectors = eigsh(matrix, count, which="LA", v0=start, ncv=min(m, max(2 * count + 1, count + 20)))
        except ArpackError:  # ARPACK has not converged.
            values, vectors = _dense(matrix, count)
    else:
        values, vectors = _dense(matrix, count)
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def _randomized(matrix: Array, count: int) -> tuple[Array, Array]:
    block = np.random.default_rng(0).normal(size=(len(matrix), count + EXTRA_PAIRS))
    for _ in range(BLOCK_PRODUCTS):
        block = qr(matrix @ block, mode="economic", overwrite_a=True, check_finite=False)[0]
    values, rotation = eigh(block.T @ (matrix @ block), check_finite=False)
    return values[::-1][:count], np.asarray(block @ rotation[:, ::-1][:, :count])


def _dense(matrix: Array, count: int) -> tuple[Array, Array]:
    m = len(matrix)
    with single_threaded_blas() if m <= SMALL else nullcontext():  # For small matrices, synchronising threads takes longer.
        # The transpose has the column order of LAPACK, and needs no copy.
        values, vectors = eigh(matrix.T, subset_by_index=(m - count, m - 1), overwrite_a=True, check_finite=False)
    return values, vectors


def pad_pairs(values: Array, vectors: Array, count: int) -> tuple[Array, Array]:
    """Pad eigenpairs with zeros to ``count`` pairs."""
    missing = max(count - len(values), 0)
    return np.pad(values, (0, missing)), np.pad(vectors, ((0, 0), (0, missing)))


def signs(vectors: Array) -> Array:
    """The sign of the largest entry of each column. It is 1 for a column of zeros."""
    largest = np.argmax(np.abs(vectors), axis=0)
    return np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def fix_signs(vectors: Array) -> Array:
    """The columns with their largest entry positive."""
    return np.asarray(vectors * signs(vectors))
