"""The most likely mixture for a sample, from ratios of the class densities at its rows, with confidence intervals.

Maximise Σ log(rᵢ·π) over the simplex, where rᵢ = (r₁(x), …, r_k(x)) are the densities of the classes at a row, up to a factor. With
ψ = r/(r·π), the gradient is the mean ψ̄ and the curvature the mean of the products of ψ. The problem is concave in k numbers. Each
Newton step is constrained to π ≥ 0 by non-negative least squares, as for mixtures of fixed components (Kim, Carbonetto, Stephens &
Anitescu 2020). If the likelihood does not rise, a step of expectation maximisation is used. By concavity the maximum exceeds the
value at π by at most max ψ̄ − 1 per row. The search ends when this is negligible.

**Interval.** The ratios are estimates. The proportions that maximise their likelihood may therefore be biased. The interval uses
the ratios only as an instrument. Let M be the means of ψ over held-out rows of each class. Then ψ̄ = M π for any ratios. π̃ = M⁻¹ψ̄
has only the noise of the two means: cov π̃ = M⁻¹ (C/n₀ + Σ πᵢ² Cᵢ/nᵢ) M⁻ᵀ. Cᵢ is the covariance of ψ in class i, and C is the
covariance in the mixture. For correct ratios M is the curvature and π̃ a Newton step, without loss of precision. A class without
rows in the sample would have no noise. So ψ, C and the centre of the interval use z²/2 added rows of every class (Agresti & Coull
1998).

O(n₀ k²) per step, about ten steps. The interval costs O((n₀ + n)·k²) with n held-out rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import nnls

from reduset._types import Array

FLOOR = 1e-9  # relative to a row's largest ratio: no row excludes a class
TOLERANCE = 1e-9  # of the log-likelihood per row
MAX_STEPS = 500
MIN_LENGTH = 2.0**-20


def most_likely(ratios: Array) -> Array:
    """π̂ (k,): the most likely proportions for rows with these ratios (n₀, k), with maximum 1 in each row."""
    k = ratios.shape[1]
    pi = np.full(k, 1.0 / k)
    mixed = ratios @ pi
    for _ in range(MAX_STEPS):
        psi = ratios / mixed[:, None]
        gradient = psi.mean(axis=0)
        if gradient.max() - 1.0 < TOLERANCE:
            break
        target = _newton(pi, psi, gradient)
        length, height = 1.0, np.log(mixed).mean()
        while target is not None and length > MIN_LENGTH:
            step = (1.0 - length) * pi + length * target
            if np.log(np.maximum(ratios @ step, 1e-300)).mean() > height:
                break
            length /= 4.0
        else:
            step = pi * gradient  # Expectation maximisation never lowers the likelihood.
        pi = step / step.sum()
        mixed = ratios @ pi
    return pi


def _newton(pi: Array, psi: Array, gradient: Array) -> Array | None:
    """The maximum over π ≥ 0 of the quadratic model of the likelihood with a −Σπ term. None if the curvature has no factor."""
    curvature = psi.T @ psi / len(psi)
    jitter = 1e-12 * float(np.trace(curvature))
    curvature[np.diag_indices(len(pi))] += jitter
    try:
        L = cholesky(curvature, lower=True, check_finite=False)
        right = solve_triangular(L, curvature @ pi + gradient - 1.0, lower=True, check_finite=False)
        solution = np.asarray(nnls(L.T, right)[0])
    except (LinAlgError, RuntimeError):
        return None
    total = float(solution.sum())
    return solution / total if total > 0 else None


@dataclass(frozen=True)
class HeldOutRatios:
    """Ratios of training rows, each from a model that was fitted without the row."""

    ratios: Array  # (n, k)
    codes: NDArray[np.int64]
    row_weights: Array  # (n,) weights that sum to 1 in each class
    sizes: Array  # (k,) effective numbers of rows

    def interval(self, ratios: Array, pi: Array, blurred: NDArray[np.bool_], confidence: float) -> Array:
        """(k, 2) confidence intervals for a sample with these ratios (n₀, k) and proportions π̂."""
        count, k = ratios.shape
        z = float(special.ndtri(0.5 + confidence / 2))
        added = max(z**2 / 2, 0.5)
        smooth = (count * pi + added) / (count + k * added)
        psi, held = (r / (r @ smooth)[:, None] for r in (ratios, self.ratios))
        by_class = [np.where(self.codes == code, self.row_weights, 0.0) for code in range(k)]
        M = np.stack([weights @ held for weights in by_class], axis=1)
        within = np.stack([(held.T * weights) @ held - np.outer(mean, mean) for weights, mean in zip(by_class, M.T, strict=True)])
        across = M - (M @ smooth)[:, None]
        mixture = np.einsum("i,ijl->jl", smooth, within) + (across * smooth) @ across.T
        unbiased = self.sizes / np.maximum(self.sizes - 1.0, 0.5)
        spread = mixture / count + np.einsum("i,ijl->jl", smooth**2 * unbiased / self.sizes, within)
        D = np.linalg.pinv(M, rcond=1e-10)
        centre = (count * (D @ psi.mean(axis=0)) + added) / (count + 2 * added)
        half_width = z * np.sqrt(np.maximum(np.einsum("ij,jl,il->i", D, spread, D), 0.0))
        low, high = np.clip(centre - half_width, 0.0, 1.0), np.clip(centre + half_width, 0.0, 1.0)
        low, high = np.where(blurred, 0.0, low), np.where(blurred, 1.0, high)
        return np.stack([np.minimum(low, pi), np.maximum(high, pi)], axis=1)
