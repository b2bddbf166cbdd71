"""From atoms to any point: Σⱼ k(x, cⱼ) Aⱼₖ for many x and all k at once. O(m) a point; blocks of the matrix are thrown away."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from reduset._engine import blocks, kernel_maps, product_matrix, run_all
from reduset._types import Array, Floats, Indices
from reduset.kernels import Kernel, RadialKernel
from reduset.kernels.base import exponential

PAIRS_BLOCK = 1 << 22
ROWS_AT_ONCE = 512


def mapped_blocks(
    kernel: Kernel, atoms: Array, coefficients: Array, queries: Floats, rows: Indices | None = None
) -> Iterator[tuple[int, int, Array]]:
    """(start, stop, values of the functions Σⱼ Aⱼₖ k(·, cⱼ)/κ at these queries, (stop − start, p)), A the (m, p) coefficients.

    Where ``rows`` are given, only these of the queries are looked at, and counted.
    """
    for a, b in blocks(len(queries if rows is None else rows), max(1, PAIRS_BLOCK // len(atoms))):
        here = queries[a:b] if rows is None else queries[rows[a:b]]
        if isinstance(kernel, RadialKernel):
            shape = kernel.product(atoms.shape[1])
            yield a, b, kernel_maps(here, atoms, coefficients, kernel.frame(atoms, shape), shape.profile)
        else:
            yield a, b, products_of(kernel.product_gram(atoms, here).T, coefficients)


def extended_blocks(
    kernel: Kernel, atoms: Array, coefficients: Array, queries: Floats, rows: Indices | None = None
) -> Iterator[tuple[int, int, Array]]:
    """The same of the functions Σⱼ Aⱼₖ k(·, cⱼ)."""
    return mapped_blocks(kernel, atoms, coefficients * exponential(kernel.log_energy(atoms.shape[1])), queries, rows)


def extend(kernel: Kernel, atoms: Array, coefficients: Array, queries: Floats) -> Array:
    """(q, p) values at the queries of the functions Σⱼ Aⱼₖ k(·, cⱼ), A the (m, p) coefficients."""
    out = np.empty((len(queries), coefficients.shape[1]))
    for a, b, values in extended_blocks(kernel, atoms, coefficients, queries):
        out[a:b] = values
    return out


def products_of(matrix: Array, block: Array) -> Array:
    """``matrix @ block`` by our own threads, so that the result is the same whatever their number."""
    out = np.empty((len(matrix), block.shape[1]))

    def fill(a: int, b: int) -> None:
        np.matmul(matrix[a:b], block, out=out[a:b])

    run_all([partial(fill, a, b) for a, b in blocks(len(matrix), ROWS_AT_ONCE)], blas=True)
    return out


def atoms_matrix(kernel: Kernel, atoms: Array) -> Array:
    """(m, m) k/κ of all pairs of atoms."""
    if not isinstance(kernel, RadialKernel):
        return kernel.product_gram(atoms, atoms)
    shape = kernel.product(atoms.shape[1])
    return product_matrix(atoms, atoms, kernel.frame(atoms, shape), shape.profile)
