"""Covariances of many components in one array: spherical (m,), diagonal (m, d) or full (m, d, d).

What depends on their shape is said here; sums over components are in `_engine.components`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reduset._engine import LOG_2PI, as_diagonal, as_full, log_determinants
from reduset._types import Array

NDIM = {"spherical": 1, "diag": 2, "full": 3}
FLATTEST, WIDENED = 2e-14, 1e-12  # of its largest eigenvalue: what a covariance's least must exceed, and is raised to at a start


def log_squares(covariances: Array, dimension: int) -> Array:
    """(m,) log ‖g‖² in L2."""
    return -0.5 * (dimension * (LOG_2PI + np.log(2.0)) + log_determinants(covariances, dimension))


def widened(covariances: Array, ndim: int, dimension: int) -> Array:
    """The same covariances as an array of so many dimensions, not fewer than they have."""
    if ndim == 1:
        return covariances
    return as_diagonal(covariances, dimension) if ndim == 2 else as_full(covariances, dimension)


def diagonals(covariances: Array, dimension: int) -> Array:
    """(m, d) variances, whatever the shape."""
    return as_diagonal(covariances, dimension) if covariances.ndim < 3 else np.diagonal(covariances, axis1=1, axis2=2)


def inverses(matrices: Array) -> Array:
    """Of full (m, d, d) or diagonal (m, d) ones."""
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
    """Covariances, full or diagonal, in the shape asked for: the nearest by their traces."""
    if shape == "full":
        return _widened_where_flat(as_full(matrices, matrices.shape[1]))
    variances = diagonals(matrices, matrices.shape[1])
    return np.array(variances) if shape == "diag" else np.asarray(variances.mean(axis=1))


def not_positive(covariances: Array) -> NDArray[np.bool_]:
    """Which are no covariances, or singular to rounding, whatever the units of the columns."""
    if covariances.ndim < 3:
        return ~np.asarray((covariances.reshape(len(covariances), -1) > 0).all(axis=1))
    finite = np.asarray(np.isfinite(covariances).all(axis=(1, 2)))
    matrices, _ = _as_correlations(np.where(finite[:, None, None], covariances, 0.0))
    values = np.linalg.eigvalsh(matrices)  # pivots of a factor may hide a small one
    return ~np.asarray(values[:, 0] > FLATTEST * values[:, -1])


def _widened_where_flat(matrices: Array) -> Array:
    """Those that are singular to rounding (components on a line, far narrower than it is long) made covariances again."""
    flat = not_positive(matrices)
    if not flat.any():
        return matrices
    inside, spreads = _as_correlations(matrices[flat])
    values, vectors = np.linalg.eigh(inside)
    values = np.maximum(values, WIDENED * values[:, -1:])
    found = np.array(matrices)
    found[flat] = (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1) * spreads
    return symmetric(found)


def _as_correlations(matrices: Array) -> tuple[Array, Array]:
    """Covariances divided by the spreads of the columns, and the products of these."""
    diagonal = np.diagonal(matrices, axis1=1, axis2=2)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    spreads = scale[:, :, None] * scale[:, None, :]
    return matrices / spreads, spreads
