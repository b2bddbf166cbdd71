"""The mixtures of Sutherland et al. 2016, Section 4.2, and kernel ridge regression on divergences between their samples.

It imports numpy alone, so that `component_kl` runs on a machine that has only numpy and torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

KL_CSV = Path(__file__).with_name("results") / "component_kl.csv"  # written by `component_kl`
POINTS, TRAINING, TEST, SEEDS = (200, 800), (4000, 8000, 16_000), 2000, 5
KL_BAGS, KL_TEST = {200: 1000, 800: 500}, 500  # compared on a processor too
KL_WIDTHS, KL_ALPHAS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0), np.geomspace(1e-6, 10.0, 8)


def draw(count: int, points: int, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    """The paper's mixtures on [−5, 5]²: 1 to 10 Gaussians of equal weight, truncated to the square (drawn again until inside)."""
    rng = np.random.default_rng(seed)
    y = rng.integers(1, 11, size=count)
    means = rng.uniform(-5, 5, size=(count, 10, 2))
    A = rng.uniform(-1, 1, size=(count, 10, 2, 2))
    covariances = rng.uniform(1, 4, size=(count, 10, 1, 1)) * A @ A.transpose(0, 1, 3, 2)
    covariances[..., [0, 1], [0, 1]] += rng.uniform(0, 1, size=(count, 10, 2))
    factors = np.linalg.cholesky(covariances)
    bag = np.repeat(np.arange(count), points)
    component = rng.integers(0, y[bag])
    X, missing = np.empty((count * points, 2)), np.arange(count * points)
    while len(missing):
        which = bag[missing], component[missing]
        z = rng.normal(size=(len(missing), 2))
        L = factors[which]
        found = means[which] + np.stack([L[:, 0, 0] * z[:, 0], L[:, 1, 0] * z[:, 0] + L[:, 1, 1] * z[:, 1]], axis=1)
        X[missing] = found
        missing = missing[(np.abs(found) > 5).any(axis=1)]
    return list(X.reshape(count, points, 2)), y.astype(np.float64)


def root_mean_square(error: Any) -> float:
    return float((error**2).mean() ** 0.5)


def kernel_ridge(xp: Any, D: Any, y: Any, new: Any, widths: Any, alphas: Any) -> dict[tuple[float, float], Any]:
    """Predictions by width and penalty, of numpy or torch: exp(−D/(2σ²)), without negative eigenvalues, as in "clip".

    One eigendecomposition a width: with K = U Λ Uᵀ and P on the eigenvectors above 0, k P (P K + αI)⁻¹ t = kU₊ (Λ₊ + α)⁻¹ U₊ᵀt.
    """
    level, found = y.mean(), {}
    for width in widths:
        values, vectors = xp.linalg.eigh(xp.exp(-D / (2 * width**2)))
        vectors, values = vectors[:, values > 0], values[values > 0]
        left, right = xp.exp(-new / (2 * width**2)) @ vectors, vectors.T @ (y - level)
        found |= {(width, alpha): level + left @ (right / (values + alpha)) for alpha in alphas}
    return found


def validated(xp: Any, D: Any, y: Any, new: Any, median: float) -> tuple[Any, float, float]:
    """Predictions for new bags, with the width (as a multiple of the median) and the penalty that are best on a tenth."""
    aside = xp.arange(len(y)) % 10 == 0
    known, widths = D[~aside], [median * factor for factor in KL_WIDTHS]
    guesses = kernel_ridge(xp, known[:, ~aside], y[~aside], D[aside][:, ~aside], widths, KL_ALPHAS)
    width, alpha = min(guesses, key=lambda each: root_mean_square(guesses[each] - y[aside]))
    return kernel_ridge(xp, D, y, new, [width], [alpha])[width, alpha], width / median, alpha
