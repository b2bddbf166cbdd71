"""Covariances of many components in one array: spherical (m,), diagonal (m, d) or full (m, d, d).

Functions that depend on this shape are here. Sums over components are in `_engine.components`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reduset._engine import LOG_2PI, as_diagonal, as_full, log_determinants
from reduset._types import Array

NDIM = {"spherical": 1, "diag": 2, "full": 3}
# smallest eigenvalue relative to the largest: the limit for a covariance, and the value that singular ones are raised to
MIN_EIGENVALUE, RAISED_EIGENVALUE = 2e-14, 1e-12


def log_squares(covariances: Array, dimension: int) -> Array:
    """(m,) log ‖g‖² in L2."""
    return -0.5 * (dimension * (LOG_2PI + np.log(2.0)) + log_determinants(covariances, dimension))


def widened(covariances: Array, ndim: int, dimension: int) -> Array:
    """The same covariances as an array of ``ndim`` dimensions, which must not be fewer than theirs."""
    if ndim == 1:
        return covariances
    return as_diagonal(covariances, dimension) if ndim == 2 else as_full(covariances, dimension)


def diagonals(covariances: Array, dimension: int) -> Array:
    """(m, d) variances, from any shape."""
    return as_diagonal(covariances, dimension) if covariances.ndim < 3 else np.diagonal(covariances, axis1=1, axis2=2)


def inverses(matrices: Array) -> Array:
    """Inverses of full (m, d, d) or diagonal (m, d) matrices."""
    if matrices.ndim < 3:
        return 1 / matrices
    return np.asarray(np.linalg.solve(matrices, np.broadcast_to(np.eye(matrices.shape[1]), matrices.shape)), np.float64)


def solved(matrices: Array, vectors: Array) -> Array:
    """M⁻¹b for each row b, M full (m, d, d) or diagonal (m, d)."""
    if matrices.ndim < 3:
        return vectors / matrices
    return np.asarray(np.linalg.solve(matrices, vectors[:, :, None])[:, :, 0], np.float64)


def symmetric(matrices: Array) -> Array:
    """The symmetric parts of (m, d, d)."""
    return np.asarray((matrices + matrices.transpose(0, 2, 1)) / 2)


def projected(matrices: Array, shape: str) -> Array:
    """Full or diagonal covariances in another shape; a spherical one has the mean variance, so traces are kept."""
    if shape == "full":
        return _made_positive(as_full(matrices, matrices.shape[1]))
    variances = diagonals(matrices, matrices.shape[1])
    return np.array(variances) if shape == "diag" else np.asarray(variances.mean(axis=1))


def not_positive(covariances: Array) -> NDArray[np.bool_]:
    """(m,) mask of the matrices that are not positive definite up to rounding, in any units of the columns."""
    if covariances.ndim < 3:
        return ~np.asarray((covariances.reshape(len(covariances), -1) > 0).all(axis=1))
    finite = np.asarray(np.isfinite(covariances).all(axis=(1, 2)))
    matrices, _ = _as_correlations(np.where(finite[:, None, None], covariances, 0.0))
    values = np.linalg.eigvalsh(matrices)  # pivots of a Cholesky factor may hide a small eigenvalue
    return ~np.asarray(values[:, 0] > MIN_EIGENVALUE * values[:, -1])


def _made_positive(matrices: Array) -> Array:
    """Make singular matrices positive definite: narrow components far apart on a line have such a covariance."""
    singular = not_positive(matrices)
    if not singular.any():
        return matrices
    correlations, spreads = _as_correlations(matrices[singular])
    values, vectors = np.linalg.eigh(correlations)
    values = np.maximum(values, RAISED_EIGENVALUE * values[:, -1:])
    result = np.array(matrices)
    result[singular] = (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1) * spreads
    return symmetric(result)


def _as_correlations(matrices: Array) -> tuple[Array, Array]:
    """Correlation matrices, and the products of standard deviations that they were divided by."""
    diagonal = np.diagonal(matrices, axis1=1, axis2=2)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    spreads = scale[:, :, None] * scale[:, None, :]
    return matrices / spreads, spreads
