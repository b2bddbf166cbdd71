"""Functions of the atoms at any point: Σⱼ k(x, cⱼ) Aⱼₖ for many x and all k together.

The cost is O(m) a point, in blocks of bounded memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from reduset._engine import KernelMaps, blocks, has_single_products, product_matrix, run_all
from reduset._types import Array, Floats, Indices
from reduset.kernels import Kernel, RadialKernel, exponential

PAIRS_PER_BLOCK = 1 << 22
ROWS_PER_BLOCK = 512
SINGLE_ERROR = 2.0**-22  # Error of a kernel value in single precision, relative to κ.
MAX_NOISE = 1e-5  # Error of function values, relative to √κ. Its square does not change an eigenvalue.


def mapped_blocks(
    kernel: Kernel, atoms: Array, coefficients: Array, queries: Floats, rows: Indices | None = None, single: bool = False
) -> Iterator[tuple[int, int, Array]]:
    """Yield (start, stop, values) with the (stop − start, p) values of Σⱼ Aⱼₖ k(·, cⱼ)/κ at these queries.

    A are the (m, p) coefficients. With ``rows``, only these rows of the queries are evaluated and counted. ``single`` allows a
    precision of 1e-7 for k/κ.
    """
    evaluate = _functions(kernel, atoms, coefficients, single)
    for a, b in blocks(len(queries if rows is None else rows), max(1, PAIRS_PER_BLOCK // len(atoms))):
        yield a, b, evaluate(queries[a:b]) if rows is None else evaluate(queries, rows[a:b])


def _functions(kernel: Kernel, atoms: Array, coefficients: Array, single: bool) -> Callable[..., Array]:
    """A function of points, and optionally of their rows, that returns the values at these points."""
    if isinstance(kernel, RadialKernel):
        shape = kernel.product(atoms.shape[1])
        return KernelMaps(atoms, coefficients, kernel.frame(atoms, shape), shape.profile, single).at

    def evaluate(points: Floats, rows: Indices | None = None) -> Array:
        return products_of(kernel.product_gram(atoms, points if rows is None else points[rows]).T, coefficients)

    return evaluate


def extended_blocks(
    kernel: Kernel, atoms: Array, coefficients: Array, queries: Floats, rows: Indices | None = None, single: bool = False
) -> Iterator[tuple[int, int, Array]]:
    """As `mapped_blocks`, for the functions Σⱼ Aⱼₖ k(·, cⱼ)."""
    scaled = coefficients * exponential(kernel.log_energy(atoms.shape[1]))
    return mapped_blocks(kernel, atoms, scaled, queries, rows, single)


def extend(kernel: Kernel, atoms: Array, coefficients: Array, queries: Floats, single: bool = False) -> Array:
    """(q, p) values of the functions Σⱼ Aⱼₖ k(·, cⱼ) at the queries, with the (m, p) coefficients A."""
    out = np.empty((len(queries), coefficients.shape[1]))
    for a, b, values in extended_blocks(kernel, atoms, coefficients, queries, single=single):
        out[a:b] = values
    return out


def products_of(matrix: Array, block: Array) -> Array:
    """``matrix @ block`` in blocks of fixed size, so that the result does not depend on the number of threads."""
    out = np.empty((len(matrix), block.shape[1]))

    def fill(a: int, b: int) -> None:
        np.matmul(matrix[a:b], block, out=out[a:b])

    run_all([partial(fill, a, b) for a, b in blocks(len(matrix), ROWS_PER_BLOCK)], blas=True)
    return out


def atoms_matrix(kernel: Kernel, atoms: Array, single: bool = False) -> Array:
    """(m, m) k/κ of all pairs of atoms."""
    if not isinstance(kernel, RadialKernel):
        return kernel.product_gram(atoms, atoms)
    shape = kernel.product(atoms.shape[1])
    return product_matrix(atoms, atoms, kernel.frame(atoms, shape), shape.profile, single)


def offers_single(kernel: Kernel, dimension: int) -> bool:
    """Whether single precision is available for this kernel."""
    return isinstance(kernel, RadialKernel) and has_single_products(kernel.product(dimension).profile, dimension)


def tolerates_single(kernel: Kernel, coefficients: Array, dimension: int) -> bool:
    """Whether single precision suffices. The large coefficients of nearly constant functions amplify its rounding errors."""
    noise = SINGLE_ERROR * exponential(kernel.log_energy(dimension) / 2) * np.linalg.norm(coefficients, axis=0).max(initial=0.0)
    return offers_single(kernel, dimension) and bool(noise <= MAX_NOISE)
