"""Kernel matrices against the atoms, block by block, for one kernel or for many bandwidths of it in one pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reduset._engine import UseGram, blocks, gram_blocks
from reduset._types import Array, Floats
from reduset.kernels import Kernel, RadialKernel

ROWS = 64  # of a block, where a kernel is a function of the user's


def product_blocks(kernels: Sequence[Kernel], points: Floats, atoms: Floats, use: UseGram) -> None:
    """Hand g(xᵢ, cⱼ)/g(0) to ``use(which kernel, first row, last row + 1, matrix)``; kernels differ in their bandwidth alone."""
    first = kernels[0]
    if isinstance(first, RadialKernel):
        shape = first.product(points.shape[1])
        widths = [kernel.width for kernel in kernels if isinstance(kernel, RadialKernel)]
        frame = first.frame(atoms, shape)
        gram_blocks(points, atoms, frame, shape.profile, [first.width / width for width in widths], use)
        return
    for s, kernel in enumerate(kernels):
        for a, b in blocks(len(points), ROWS):
            use(s, a, b, kernel.product_gram(points[a:b], atoms))


def product_matrices(kernels: Sequence[Kernel], points: Floats, atoms: Floats) -> list[Array]:
    """g(xᵢ, cⱼ)/g(0), (n, m), for each kernel: for few points, since it is held."""
    out = [np.empty((len(points), len(atoms))) for _ in kernels]

    def use(s: int, a: int, b: int, K: Array) -> None:
        out[s][a:b] = K

    product_blocks(kernels, points, atoms, use)
    return out


def product_values(kernels: Sequence[Kernel], points: Floats, atoms: Floats, weights: Sequence[Array]) -> list[Array]:
    """Σⱼ g(x, cⱼ)/g(0) wⱼ at every point, (n, columns of w), for each kernel with its own weights (m, columns)."""
    out = [np.empty((len(points), w.shape[1])) for w in weights]

    def use(s: int, a: int, b: int, K: Array) -> None:
        np.matmul(K, weights[s], out=out[s][a:b])

    product_blocks(kernels, points, atoms, use)
    return out
