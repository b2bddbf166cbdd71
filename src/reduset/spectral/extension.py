"""From atoms to any point: Σⱼ k(x, cⱼ) Aⱼₖ for many x and all k at once. O(m) a point; blocks of the matrix are thrown away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from reduset._engine import KernelMaps, blocks, has_single_products, product_matrix, run_all
from reduset._types import Array, Floats, Indices
from reduset.kernels import Kernel, RadialKernel
from reduset.kernels.base import exponential

PAIRS_BLOCK = 1 << 22
ROWS_AT_ONCE = 512
SINGLE = 2.0**-22  # of κ: what single precision leaves open of a kernel value
QUIET = 1e-5  # of √κ: noise of a function's values whose square no eigenvalue shows


def mapped_blocks(
    kernel: Kernel, atoms: Array, coefficients: Array, queries: Floats, rows: Indices | None = None, single: bool = False
) -> Iterator[tuple[int, int, Array]]:
    """(start, stop, values of the functions Σⱼ Aⱼₖ k(·, cⱼ)/κ at these queries, (stop − start, p)), A the (m, p) coefficients.

    Where ``rows`` are given, only these of the queries are looked at, and counted. ``single`` where k/κ to 1e-7 will do.
    """
    at = _functions(kernel, atoms, coefficients, single)
    for a, b in blocks(len(queries if rows is None else rows), max(1, PAIRS_BLOCK // len(atoms))):
        yield a, b, at(queries[a:b]) if rows is None else at(queries, rows[a:b])


def _functions(kernel: Kernel, atoms: Array, coefficients: Array, single: bool) -> Callable[..., Array]:
    """A function of points, and rows of them, that gives the values there."""
    if isinstance(kernel, RadialKernel):
        shape = kernel.product(atoms.shape[1])
        return KernelMaps(atoms, coefficients, kernel.frame(atoms, shape), shape.profile, single).at

    def at(points: Floats, rows: Indices | None = None) -> Array:
        return products_of(kernel.product_gram(atoms, points if rows is None else points[rows]).T, coefficients)

    return at


def extended_blocks(
    kernel: Kernel, atoms: Array, coefficients: Array, queries: Floats, rows: Indices | None = None, single: bool = False
) -> Iterator[tuple[int, int, Array]]:
    """The same of the functions Σⱼ Aⱼₖ k(·, cⱼ)."""
    scaled = coefficients * exponential(kernel.log_energy(atoms.shape[1]))
    return mapped_blocks(kernel, atoms, scaled, queries, rows, single)


def extend(kernel: Kernel, atoms: Array, coefficients: Array, queries: Floats, single: bool = False) -> Array:
    """(q, p) values at the queries of the functions Σⱼ Aⱼₖ k(·, cⱼ), A the (m, p) coefficients."""
    out = np.empty((len(queries), coefficients.shape[1]))
    for a, b, values in extended_blocks(kernel, atoms, coefficients, queries, single=single):
        out[a:b] = values
    return out


def products_of(matrix: Array, block: Array) -> Array:
    """``matrix @ block`` by our own threads, so that the result is the same whatever their number."""
    out = np.empty((len(matrix), block.shape[1]))

    def fill(a: int, b: int) -> None:
        np.matmul(matrix[a:b], block, out=out[a:b])

    run_all([partial(fill, a, b) for a, b in blocks(len(matrix), ROWS_AT_ONCE)], blas=True)
    return out


def atoms_matrix(kernel: Kernel, atoms: Array, single: bool = False) -> Array:
    """(m, m) k/κ of all pairs of atoms."""
    if not isinstance(kernel, RadialKernel):
        return kernel.product_gram(atoms, atoms)
    shape = kernel.product(atoms.shape[1])
    return product_matrix(atoms, atoms, kernel.frame(atoms, shape), shape.profile, single)


def offers_single(kernel: Kernel, dimension: int) -> bool:
    """Whether ``single`` makes a difference."""
    return isinstance(kernel, RadialKernel) and has_single_products(kernel.product(dimension).profile, dimension)


def bears_single(kernel: Kernel, coefficients: Array, dimension: int) -> bool:
    """Whether functions may be looked at in single precision, whose roundings their coefficients magnify.

    Of functions that hardly vary they do so the most: these would seem to vary by more than they do.
    """
    noise = SINGLE * exponential(kernel.log_energy(dimension) / 2) * np.linalg.norm(coefficients, axis=0).max(initial=0.0)
    return offers_single(kernel, dimension) and bool(noise <= QUIET)
