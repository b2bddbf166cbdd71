"""Kernel PCA of weighted atoms (Kingravi, Vela & Gray 2013, (13) and Algorithm 1).

With masses w (W = diag w), the Gram matrix K of the atoms and K̃ = (I − 1pᵀ) K (I − p1ᵀ), p = w/Σw, centred on the weighted mean (K
itself for the paper's form), W^½ K̃ W^½ v = λv. An eigenvector has the value e = W^(−½) v at the atoms (not W^(−¼), as Algorithm 1
prints with W = diag √w), with Σ w e² = 1, and a point has the coordinate Σⱼ wⱼ eⱼ λ^(−½) k̃(cⱼ, x). With masses that count equal
rows that is kernel PCA of all rows, eigenvalues included. O(m³), or O(m²) a component by iteration.

The pre-image of coordinates t is kernel ridge regression from coordinates to atoms, Σ w ‖c − f(t)‖² + α‖f‖², as in scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from reduset._types import Array, Floats
from reduset.kernels import ANY_FAMILY, Kernel, RadialKernel
from reduset.spectral.eigen import fix_signs, leading_pairs, padded
from reduset.spectral.extension import bears_single, extend
from reduset.spectral.reduction import WeightedAtoms

ROUNDING = 2e-12  # of the largest eigenvalue: below, there is only rounding (as in scikit-learn)
INDEFINITE = 1e-5


@dataclass(frozen=True)
class PrincipalComponents:
    """Principal components as functions on the points.

    Attributes
    ----------
    eigenvalues : (k,) descending, 0 where there is nothing but rounding
    eigenvectors : (m, k) values at the atoms, Σ w e² = 1
    coefficients : (m, k); a point has the coordinates k(x, atoms) @ coefficients − offsets
    offsets : (k,)
    next_eigenvalue : the largest one left out
    mean_norm : ‖μ̄‖ of the atoms' kernel mean, of shares that sum to 1
    left : how much more than the eigenvalues found those of all rows can sum to; None where the rows were not looked at
    """

    eigenvalues: Array
    eigenvectors: Array
    coefficients: Array
    offsets: Array
    next_eigenvalue: float
    mean_norm: float
    left: float | None = None

    @property
    def coordinates(self) -> Array:
        """(m, k) of the atoms."""
        return self.eigenvectors * np.sqrt(self.eigenvalues)

    def at(self, reduced: WeightedAtoms, queries: Floats) -> Array:
        """(q, k) coordinates."""
        # those that were turned towards the rows are off by far more than single precision is
        single = self.left is not None and bears_single(reduced.kernel, self.coefficients, queries.shape[1])
        return extend(reduced.kernel, reduced.atoms, self.coefficients, queries, single) - self.offsets

    def first(self, count: int) -> PrincipalComponents:
        """Without the last ones, whose eigenvalues are 0."""
        return replace(
            self,
            eigenvalues=self.eigenvalues[:count],
            eigenvectors=self.eigenvectors[:, :count],
            coefficients=self.coefficients[:, :count],
            offsets=self.offsets[:count],
            next_eigenvalue=0.0,
        )


def principal_components(reduced: WeightedAtoms, count: int, centre: bool = True, solver: str = "auto") -> PrincipalComponents:
    """The ``count`` leading components of weighted atoms; eigenvalues of 0 where there are fewer."""
    matrix = reduced.gram()
    shares, roots = reduced.shares, np.sqrt(reduced.masses)
    means = matrix @ shares
    grand = float(shares @ means)
    if centre:
        matrix -= means[:, None]
        matrix -= means[None, :] - grand
    matrix *= roots[:, None]
    matrix *= roots[None, :]
    values, vectors = padded(*leading_pairs(matrix, count + 1, solver), count + 1)
    values = definite(values, reduced)
    vectors = fix_signs(vectors / roots[:, None])
    kept, following, vectors = values[:count], float(values[count]), vectors[:, :count]
    coefficients = reduced.masses[:, None] * vectors * inverse_roots(kept)
    if centre:  # they sum to 0 but for rounding, which a far point would show
        coefficients -= np.outer(shares, coefficients.sum(axis=0))
    offsets = means @ coefficients if centre else np.zeros(len(kept))
    return PrincipalComponents(kept, vectors, coefficients, offsets, following, float(np.sqrt(max(grand, 0.0))))


def extended_to_rows(components: PrincipalComponents, reduced: WeightedAtoms, X: Floats) -> PrincipalComponents:
    """Uncentred components of the atoms, with their eigenvectors extended to the rows of X.

    U = K_nm W^½ v, its columns scaled to length 1, approximates the eigenvectors of the n×n kernel matrix (Zhang & Kwok 2009). A
    point then has the coordinates k(x, X) U λ^(−½), as in kernel PCA of all rows. Blocks of K_nm are discarded: O(n·k) memory.
    """
    at_rows = extend(reduced.kernel, reduced.atoms, components.coefficients, X)
    norms = np.linalg.norm(at_rows, axis=0)
    at_rows /= np.where(norms > 0, norms, 1.0)
    return replace(components, eigenvectors=at_rows, coefficients=at_rows * inverse_roots(components.eigenvalues))


def definite(values: Array, reduced: WeightedAtoms) -> Array:
    """Eigenvalues of the atoms, descending, above rounding; of a kernel that is no kernel they are refused."""
    scale = reduced.peak * reduced.mass
    if values.min() < -INDEFINITE * scale:
        raise ValueError(
            f"the kernel must be positive definite, its matrix has the eigenvalue {values.min():.3g}; use {ANY_FAMILY}"
        )
    return above_rounding(values, scale)


def above_rounding(values: Array, scale: float) -> Array:
    """Eigenvalues, descending, with 0 for those that are rounding: centring takes the difference of matrices of that scale."""
    return np.where(values > max(ROUNDING * values[0], 4 * np.finfo(np.float64).eps * scale), values, 0.0)


def inverse_roots(values: Array) -> Array:
    """λ^(−½), 0 of 0."""
    out = np.zeros_like(values)
    out[values > 0] = values[values > 0] ** -0.5
    return out


def latent_kernel(reduced: WeightedAtoms) -> Kernel:
    """The kernel between coordinates, whose unit is √κ, and where the units of the points' columns have no meaning."""
    kernel = reduced.kernel
    if isinstance(kernel, RadialKernel):
        width = kernel.width * np.sqrt(reduced.peak)
        return replace(kernel, bandwidth=width, covariance=None, scales=None, normalized=False, space="rkhs")
    return kernel


def ridge_coefficients(kernel: Kernel, coordinates: Array, reduced: WeightedAtoms, alpha: float) -> Array:
    """(m, d) coefficients of the map from coordinates back to points: (K + α W⁻¹)⁻¹ C."""
    roots = np.sqrt(reduced.masses)
    matrix = kernel.product_gram(coordinates, coordinates)
    matrix *= roots[:, None]
    matrix *= roots[None, :]
    matrix[np.diag_indices_from(matrix)] += alpha
    factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
    return np.asarray(roots[:, None] * cho_solve(factor, roots[:, None] * reduced.atoms, check_finite=False))
