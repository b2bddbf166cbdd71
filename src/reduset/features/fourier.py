"""Random Fourier features of a Gaussian kernel between vectors (Rahimi & Recht 2007), orthogonal by default (Yu et al. 2016).

    exp(−‖a − b‖²/(2σ²)) ≈ z(a)·z(b),   z(a) = √(2/D) (sin ω₁·a, …, cos ω₁·a, …),   ω ~ N(0, σ⁻² I), D/2 of them

Orthogonal frequencies have the same lengths in directions that are orthogonal within blocks: the same mean, less variance.
O(dim·D) a vector.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr

from reduset._types import Array


def unit_frequencies(dimension: int, count: int, orthogonal: bool, rng: np.random.Generator) -> Array:
    """(dimension, count) frequencies for σ = 1."""
    if not orthogonal:
        return rng.normal(size=(dimension, count))
    blocks = []
    for start in range(0, count, dimension):
        size = min(dimension, count - start)
        normal = np.asfortranarray(rng.normal(size=(dimension, size)))  # which is then factorised in place
        basis = qr(normal, mode="economic", overwrite_a=True, check_finite=False)[0]
        # a normal matrix has uniform directions up to the signs that the factorisation fixes
        basis *= rng.choice([-1.0, 1.0], size)
        basis *= np.sqrt(rng.chisquare(dimension, size))
        blocks.append(basis)
    return np.hstack(blocks) if len(blocks) > 1 else blocks[0]


def fourier_features(vectors: Array, frequencies: Array) -> Array:
    """(N, D) features z of (N, dimension) vectors, D twice the number of frequencies."""
    angles = vectors @ frequencies
    scale = np.sqrt(1.0 / frequencies.shape[1])
    return scale * np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
