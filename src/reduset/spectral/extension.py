"""From atoms to any point: Σⱼ k(x, cⱼ) Aⱼₖ for many x and all k at once. O(m) a point; blocks of the matrix are thrown away."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from reduset._engine import blocks, run_all, single_threaded_blas
from reduset._types import Array, Floats
from reduset.kernels import Kernel
from reduset.kernels.base import exponential

PAIRS_BLOCK = 1 << 22
ROWS_AT_ONCE = 512


def kernel_blocks(kernel: Kernel, atoms: Array, queries: Floats) -> Iterator[tuple[int, int, Array]]:
    """(start, stop, k/κ of the atoms with these queries, (m, stop − start)) for blocks of queries."""
    for a, b in blocks(len(queries), max(1, PAIRS_BLOCK // len(atoms))):
        yield a, b, kernel.product_gram(atoms, queries[a:b])


def extended_blocks(kernel: Kernel, atoms: Array, coefficients: Array, queries: Floats) -> Iterator[tuple[int, int, Array]]:
    """(start, stop, values of the functions Σⱼ Aⱼₖ k(·, cⱼ) at these queries, (stop − start, p)), A the (m, p) coefficients."""
    scaled = coefficients * exponential(kernel.log_energy(atoms.shape[1]))
    with single_threaded_blas():  # our own threads share the product, so the result is the same whatever their number
        for a, b, values in kernel_blocks(kernel, atoms, queries):
            out = np.empty((b - a, coefficients.shape[1]))

            def fill(c: int, d: int, out: Array = out, values: Array = values) -> None:
                np.matmul(values[:, c:d].T, scaled, out=out[c:d])

            run_all([partial(fill, c, d) for c, d in blocks(b - a, ROWS_AT_ONCE)])
            yield a, b, out


def extend(kernel: Kernel, atoms: Array, coefficients: Array, queries: Floats) -> Array:
    """(q, p) values at the queries of the functions Σⱼ Aⱼₖ k(·, cⱼ), A the (m, p) coefficients."""
    out = np.empty((len(queries), coefficients.shape[1]))
    for a, b, values in extended_blocks(kernel, atoms, coefficients, queries):
        out[a:b] = values
    return out
