"""The leading eigenpairs of a symmetric matrix: dense for few atoms or many pairs, iterative (Lanczos, ARPACK) for many atoms.

"randomized" multiplies a random block some times with the matrix (Halko, Martinsson & Tropp 2011): as good as the others where
eigenvalues fall, and by their ratio less where they do not. Dense O(m³), the others O(m²) a pair. Signs are fixed by whoever knows
what the entries of a vector stand for: `fix_signs`.
"""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
from scipy.linalg import eigh, qr
from scipy.sparse.linalg import ArpackError, eigsh

from reduset import _validate
from reduset._engine import single_threaded_blas
from reduset._types import Array

SOLVERS = ("auto", "dense", "arpack", "randomized")
FEW_ATOMS, DENSE_MOST = 500, 5000
FEW_PAIRS = 20  # of m/this many pairs, an iteration costs less than the reduction to a tridiagonal matrix
SPARE_PAIRS, TURNS = 10, 7  # of "randomized": pairs beyond those asked for, and products with the block
SOME_PAIRS = 10  # of m/this many, it costs several times more, at any m


def leading_pairs(matrix: Array, count: int, solver: str = "auto") -> tuple[Array, Array]:
    """The ``count`` largest eigenvalues, descending, and their unit eigenvectors, (m, count). The matrix is overwritten."""
    _validate.one_of(solver, "eigen_solver", SOLVERS)
    m = len(matrix)
    count = min(count, m)
    most = 0 if m <= FEW_ATOMS else m // (FEW_PAIRS if m <= DENSE_MOST else SOME_PAIRS)
    if solver == "randomized" and count + SPARE_PAIRS < m:
        return _randomized(matrix, count)
    iterates = solver == "arpack" or (solver == "auto" and count <= most)
    if iterates and count < m - 1:
        start = np.random.default_rng(0).uniform(-1.0, 1.0, m)  # the same each time, so that the result is
        try:
            values, vectors = eigsh(matrix, count, which="LA", v0=start, ncv=min(m, max(2 * count + 1, count + 20)))
        except ArpackError:  # no convergence: the dense way always ends
            values, vectors = _dense(matrix, count)
    else:
        values, vectors = _dense(matrix, count)
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def _randomized(matrix: Array, count: int) -> tuple[Array, Array]:
    """About the leading pairs, from a random block that is the same each time."""
    block = np.random.default_rng(0).normal(size=(len(matrix), count + SPARE_PAIRS))
    for _ in range(TURNS):
        block = qr(matrix @ block, mode="economic", overwrite_a=True, check_finite=False)[0]
    values, turns = eigh(block.T @ (matrix @ block), check_finite=False)
    return values[::-1][:count], np.asarray(block @ turns[:, ::-1][:, :count])


def padded(values: Array, vectors: Array, count: int) -> tuple[Array, Array]:
    """``count`` pairs, those that there are none of with zeros."""
    missing = max(count - len(values), 0)
    return np.pad(values, (0, missing)), np.pad(vectors, ((0, 0), (0, missing)))


def _dense(matrix: Array, count: int) -> tuple[Array, Array]:
    m = len(matrix)
    with single_threaded_blas() if m <= FEW_ATOMS else nullcontext():  # of small matrices, where more threads wait for each other
        # its transpose is the same matrix in the order of columns that LAPACK asks for: no copy
        values, vectors = eigh(matrix.T, subset_by_index=(m - count, m - 1), overwrite_a=True, check_finite=False)
    return values, vectors


def signs(vectors: Array) -> Array:
    """Of each column, the sign of its entry of largest size; 1 of a column of zeros."""
    largest = np.argmax(np.abs(vectors), axis=0)
    return np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def fix_signs(vectors: Array) -> Array:
    """Each column with its entry of largest size positive."""
    return np.asarray(vectors * signs(vectors))
