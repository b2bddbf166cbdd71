"""A Cholesky factor in the given order that drops what is redundant.

K = L Lᵀ without pivoting, so that the leading block factors the first atoms and one factorisation serves every prefix. An
atom whose pivot (the squared distance of its bump to the span of those before it) vanishes to rounding carries no new
direction: it is dropped and named, where an ordinary Cholesky would stop or divide by noise. O(m³/3), most of it in BLAS.

A pivot just above the rounding is itself half noise, and many of them in a row let L⁻¹ grow without limit, and with it any weights.
So the norm of L⁻¹ is estimated, and where rounding times its square could reach the size of the result, a Cholesky with pivoting,
which reveals the rank, says which atoms to keep instead; these are then factored in the given order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpstrf, dtrcon

from reduset._engine.blas import single_threaded_blas
from reduset._engine.compiled import compiled

BLOCK = 64
GROWTH = 0.1
COARSEST = 1e-6  # no floor is raised beyond


def pivot_floor(size: int) -> float:
    """The pivot, relative to the diagonal, at which an atom counts as redundant: the rounding of the factorisation itself."""
    return 8.0 * max(size, 32) * float(np.finfo(np.float64).eps)


def cholesky_dropping(K: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Lower factor of the kept rows and columns of K, and the mask of those kept.

    Parameters
    ----------
    K : (m, m) symmetric positive semidefinite, with a unit diagonal.
    """
    m = len(K)
    floor = pivot_floor(m)
    with single_threaded_blas():  # a busy machine makes several threads slower, and results must not depend on them
        plain, failed = dpotrf(K, lower=1, clean=1)
        if failed == 0 and np.min(np.diagonal(plain)) ** 2 > floor and _growth(plain) <= GROWTH:
            return plain, np.ones(m, np.bool_)
        L, kept = _dropping(K, floor)
        failed = 0
        while (failed or _growth(L) > GROWTH) and floor < COARSEST:
            _, pivots, rank, _ = dpstrf(K, lower=1, tol=floor)
            kept = np.zeros(m, np.bool_)
            kept[pivots[:rank] - 1] = True
            L, failed = dpotrf(K[np.ix_(kept, kept)], lower=1, clean=1)
            floor *= 8
        return (L, kept) if failed <= 0 else _dropping(K, floor)


def _growth(L: NDArray[np.float64]) -> float:
    """ε‖L⁻¹‖², about: what rounding of K may do to the weights, relative to them."""
    reciprocal, _ = dtrcon(L, norm="1", uplo="L")
    norm = float(np.abs(L).sum(axis=0).max())
    return float(np.finfo(np.float64).eps) / len(L) / max(reciprocal * norm, 1e-150) ** 2


def _dropping(K: NDArray[np.float64], floor: float) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The factor with every row and column left out whose pivot is at most ``floor``."""
    m = len(K)
    L = np.zeros((m, m))
    kept = np.ones(m, np.bool_)
    for start in range(0, m, BLOCK):
        stop = min(m, start + BLOCK)
        panel = K[start:, start:stop] - L[start:, :start] @ L[start:stop, :start].T
        block = panel[: stop - start]
        keep = kept[start:stop]
        _factor_block(block, keep, floor)
        L[start:stop, start:stop] = np.tril(block)
        inside = np.flatnonzero(keep)
        if stop < m and len(inside):
            lower = block[np.ix_(inside, inside)]
            below = panel[stop - start :, inside]
            L[stop:, start + inside] = solve_triangular(lower, below.T, lower=True, check_finite=False).T
    if kept.all():
        return L, kept
    return np.ascontiguousarray(L[np.ix_(kept, kept)]), kept


@compiled()
def _factor_block(A, keep, floor):
    """Factor one diagonal block in place; a dropped row and column become zero."""
    for j in range(len(A)):
        pivot = A[j, j]
        for k in range(j):
            pivot -= A[j, k] * A[j, k]
        if not pivot > floor:
            keep[j] = False
            A[j, : j + 1] = 0.0
            A[j:, j] = 0.0
            continue
        root = np.sqrt(pivot)
        A[j, j] = root
        for i in range(j + 1, len(A)):
            value = A[i, j]
            for k in range(j):
                value -= A[i, k] * A[j, k]
            A[i, j] = value / root
