"""Covariances of m components in d dimensions, and a parametrisation of components relative to given ones.

The shape of the array is the kind: (m,) spherical, (m, d) diagonal, (m, d, d) full. Changes use each component's whitened
coordinates,

    t = t⁰ + L⁰u,        H = LLᵀ,        L = L⁰T,        T lower triangular, exp(v) on its diagonal and v below it,

and the chain rule converts gradients. A component is one row: d numbers u, then the lower rows of v, which are limited to ±widest.
O(m·d³) for m components. With few components and separate covariances, function calls cost most. Everything between two sums over
pairs is therefore one loop.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from reduset._engine.compiled import compiled
from reduset._types import Array

LOG_2PI = float(np.log(2 * np.pi))


def is_shared(covariances: Array) -> bool:
    """Whether all covariances are equal or stored once."""
    return covariances.strides[0] == 0 or len(covariances) == 1 or bool((covariances == covariances[0]).all())


def as_diagonal(covariances: Array, dimension: int) -> Array:
    """(m, d) variances of spherical or diagonal covariances."""
    return np.broadcast_to(covariances[:, None], (len(covariances), dimension)) if covariances.ndim == 1 else covariances


def as_full(covariances: Array, dimension: int) -> Array:
    """(m, d, d), for any kind."""
    if covariances.ndim == 3:
        return covariances
    return as_diagonal(covariances, dimension)[:, :, None] * np.eye(dimension)


@cache
def _lower(dimension: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indices for lower rows: the flat positions of the lower entries, and for each matrix entry its position among these."""
    r, c = np.tril_indices(dimension)
    position = np.empty((dimension, dimension), np.intp)
    position[r, c] = position[c, r] = np.arange(len(r))
    return r * dimension + c, position.ravel()


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
    """Factors for the loops: lower Cholesky factors (m, d, d), or roots (m, 1, d). Diagonals hold reciprocals."""
    if covariances.ndim < 3:
        return np.ascontiguousarray(1 / np.sqrt(as_diagonal(covariances, dimension)))[:, None, :]
    L = np.linalg.cholesky(covariances)
    k = np.arange(dimension)
    L[:, k, k] = 1 / L[:, k, k]
    return np.asarray(L, np.float64)


def log_peaks(covariances: Array, dimension: int) -> Array:
    """(m,) log N(0; 0, A)."""
    return -0.5 * (dimension * LOG_2PI + log_determinants(covariances, dimension))


@compiled()
def from_whitened(variables, means, root, widest, centres, factors, entries, determinant_ratios):
    """Components from variables (m, d + e): centres (m, d), L (m, d, d) and H (m, e) in lower rows.

    ``determinant_ratios`` (m,) receives |H| / Π Hᵣᵣ, at most 1.
    """
    m, d = means.shape
    T = np.zeros((d, d))
    for i in range(m):
        k = d
        for r in range(d):
            total = means[i, r]
            for c in range(r + 1):
                total += root[i, r, c] * variables[i, c]
                value = min(max(variables[i, k], -widest), widest)
                T[r, c] = np.exp(value) if r == c else value
                k += 1
            centres[i, r] = total
        k = 0
        determinant_ratios[i] = 1.0
        for r in range(d):
            for c in range(r + 1):
                total = 0.0
                for s in range(c, r + 1):
                    total += root[i, r, s] * T[s, c]
                factors[i, r, c] = total
            for c in range(r + 1):
                total = 0.0
                for s in range(c + 1):
                    total += factors[i, r, s] * factors[i, c, s]
                entries[i, k] = total
                k += 1
            determinant_ratios[i] *= factors[i, r, r] ** 2 / total


@compiled()
def whitened_gradients(root, factors, by_mean, by_covariance, out):
    """The gradient for the variables, (m, d + e), from the gradients for the mean (m, d) and the covariance (m, e) in lower rows.

    ∂E/∂T = 2 L⁰ᵀ(∂E/∂H) L in its lower half. Its diagonal is multiplied by exp(v) = Lᵣᵣ/L⁰ᵣᵣ.
    """
    m, d = by_mean.shape
    product = np.empty((d, d))
    for i in range(m):
        for r in range(d):
            total = 0.0
            for s in range(r, d):
                total += root[i, s, r] * by_mean[i, s]
            out[i, r] = total
            for c in range(d):
                total = 0.0
                for s in range(c, d):
                    high, low = max(r, s), min(r, s)
                    total += by_covariance[i, high * (high + 1) // 2 + low] * factors[i, s, c]
                product[r, c] = total
        k = d
        for r in range(d):
            for c in range(r + 1):
                total = 0.0
                for s in range(r, d):
                    total += root[i, s, r] * product[s, c]
                out[i, k] = 2 * total
                k += 1
            out[i, k - 1] *= factors[i, r, r] / root[i, r, r]
