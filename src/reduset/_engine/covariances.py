"""Covariances of m components in d dimensions: (m,) spherical, (m, d) diagonal or (m, d, d) full, by the shape of the array."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array

LOG_2PI = float(np.log(2 * np.pi))


def is_shared(covariances: Array) -> bool:
    """Whether all covariances are one: stored once, or equal."""
    return covariances.strides[0] == 0 or len(covariances) == 1 or bool((covariances == covariances[0]).all())


def as_diagonal(covariances: Array, dimension: int) -> Array:
    """(m, d) variances of spherical or diagonal covariances."""
    return np.broadcast_to(covariances[:, None], (len(covariances), dimension)) if covariances.ndim == 1 else covariances


def as_full(covariances: Array, dimension: int) -> Array:
    """(m, d, d), whatever the kind."""
    if covariances.ndim == 3:
        return covariances
    return as_diagonal(covariances, dimension)[:, :, None] * np.eye(dimension)


@cache
def _lower(dimension: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Of the entries of a matrix: where the lower rows are, flat; and for each entry its place in them."""
    r, c = np.tril_indices(dimension)
    place = np.empty((dimension, dimension), np.intp)
    place[r, c] = place[c, r] = np.arange(len(r))
    return r * dimension + c, place.ravel()


def lower_rows(matrices: Array) -> Array:
    """(m, d(d+1)/2) the lower halves of (m, d, d), row by row."""
    m, d = matrices.shape[:2]
    return np.ascontiguousarray(matrices.reshape(m, d * d)[:, _lower(d)[0]])


def from_lower_rows(rows: Array, dimension: int) -> Array:
    """Symmetric (m, d, d) from lower rows (m, d(d+1)/2)."""
    return rows[:, _lower(dimension)[1]].reshape(len(rows), dimension, dimension)


def log_determinants(covariances: Array, dimension: int) -> Array:
    """(m,) log |A|."""
    if covariances.ndim == 1:
        return np.asarray(dimension * np.log(covariances))
    if covariances.ndim == 2:
        return np.asarray(np.log(covariances).sum(axis=1))
    return 2 * np.log(np.linalg.cholesky(covariances).diagonal(axis1=1, axis2=2)).sum(axis=1)


def factors(covariances: Array, dimension: int) -> Array:
    """What the loops take: (m, d, d) lower Cholesky factors, or (m, 1, d) roots, their diagonals as reciprocals."""
    if covariances.ndim < 3:
        return np.ascontiguousarray(1 / np.sqrt(as_diagonal(covariances, dimension)))[:, None, :]
    L = np.linalg.cholesky(covariances)
    k = np.arange(dimension)
    L[:, k, k] = 1 / L[:, k, k]
    return np.asarray(L, np.float64)


def log_peaks(covariances: Array, dimension: int) -> Array:
    """(m,) log N(0; 0, A)."""
    return -0.5 * (dimension * LOG_2PI + log_determinants(covariances, dimension))
