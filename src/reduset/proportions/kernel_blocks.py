"""Kernel matrices between points and atoms, block by block, for one kernel or for many of its bandwidths in one pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reduset._engine import UseGram, blocks, gram_blocks
from reduset._types import Array, Floats
from reduset.kernels import Kernel, RadialKernel

ROWS = 64  # rows of a block if the kernel is a user's function


def product_blocks(kernels: Sequence[Kernel], points: Floats, atoms: Floats, use: UseGram) -> None:
    """Pass g(xᵢ, cⱼ)/g(0) to ``use(index of the kernel, first row, last row + 1, matrix)``. Kernels differ only in bandwidth."""
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
    """g(xᵢ, cⱼ)/g(0), (n, m), for each kernel. All matrices are held in memory."""
    out = [np.empty((len(points), len(atoms))) for _ in kernels]

    def use(s: int, a: int, b: int, K: Array) -> None:
        out[s][a:b] = K

    product_blocks(kernels, points, atoms, use)
    return out


def product_values(kernels: Sequence[Kernel], points: Floats, atoms: Floats, weights: Sequence[Array]) -> list[Array]:
    """Σⱼ g(x, cⱼ)/g(0) wⱼ at every point, (n, columns of w), for each kernel and its weights (m, columns)."""
    out = [np.empty((len(points), w.shape[1])) for w in weights]

    def use(s: int, a: int, b: int, K: Array) -> None:
        np.matmul(K, weights[s], out=out[s][a:b])

    product_blocks(kernels, points, atoms, use)
    return out
