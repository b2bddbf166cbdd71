"""Which mixture makes a sample most likely, from ratios of the classes' densities at its rows; and how sure that is.

Maximise Σ log(rᵢ·π) over the simplex, rᵢ = (r₁(x), …, r_k(x)) the densities of the classes at a row, up to a factor of the row's.
With ψ = r/(r·π) the gradient is its mean ψ̄, and the curvature that of its products: a concave problem of k numbers. Newton's step,
kept at or above 0 by non-negative least squares as for mixtures of fixed components (Kim, Carbonetto, Stephens & Anitescu 2020),
and a step of expectation maximisation where it does not rise. By concavity the best is above π by no more than max ψ̄ − 1 a row:
when that is nothing the search ends.

**Interval.** The ratios are estimates, and what is most likely by them may be off the truth by more than chance. So they are used
as an instrument alone: with M the means of ψ over rows of each class that were held out, ψ̄ = M π whatever the ratios are, and
π̃ = M⁻¹ψ̄ has only the noise of the two means: cov π̃ = M⁻¹ (C/n₀ + Σ πᵢ² Cᵢ/nᵢ) M⁻ᵀ, Cᵢ the covariance of ψ in class i and C that
in the mixture. Where the ratios are right, M is the curvature and π̃ a Newton step: nothing is lost. A class of which the sample
has no row would have no noise; so ψ and C are taken at proportions with z²/2 rows of every class added, and so is the middle
(Agresti & Coull 1998).

O(n₀ k²) a step, about ten steps; the interval O((n₀ + n)·k²) with n rows kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import nnls

from reduset._types import Array

FLOOR = 1e-9  # of a row's largest ratio: no row forbids a class
CLOSE = 1e-9  # logarithm of the likelihood, a row
MOST_STEPS = 500
SHORTEST = 2.0**-20


def most_likely(ratios: Array) -> Array:
    """π̂ (k,): the proportions that make rows with these ratios (n₀, k), the largest of each row 1, most likely."""
    k = ratios.shape[1]
    pi = np.full(k, 1.0 / k)
    mixed = ratios @ pi
    for _ in range(MOST_STEPS):
        psi = ratios / mixed[:, None]
        upward = psi.mean(axis=0)
        if upward.max() - 1.0 < CLOSE:
            break
        found = _newton(pi, psi, upward)
        length, height = 1.0, np.log(mixed).mean()
        while found is not None and length > SHORTEST:
            step = (1.0 - length) * pi + length * found
            if np.log(np.maximum(ratios @ step, 1e-300)).mean() > height:
                break
            length /= 4.0
        else:
            step = pi * upward  # expectation maximisation, which never falls
        pi = step / step.sum()
        mixed = ratios @ pi
    return pi


def _newton(pi: Array, psi: Array, upward: Array) -> Array | None:
    """Where the quadratic model of the likelihood, with −Σπ for the sum, is highest among π ≥ 0; None where it has no factor."""
    curvature = psi.T @ psi / len(psi)
    jitter = 1e-12 * float(np.trace(curvature))
    curvature[np.diag_indices(len(pi))] += jitter
    try:
        L = cholesky(curvature, lower=True, check_finite=False)
        right = solve_triangular(L, curvature @ pi + upward - 1.0, lower=True, check_finite=False)
        found = np.asarray(nnls(L.T, right)[0])
    except (LinAlgError, RuntimeError):
        return None
    total = float(found.sum())
    return found / total if total > 0 else None


@dataclass(frozen=True)
class HeldOutRatios:
    """Ratios of training rows, each by a model that has not seen the row: what the ratios do in each class."""

    ratios: Array  # (n, k)
    codes: NDArray[np.int64]
    shares: Array  # (n,) weights that sum to 1 in each class
    sizes: Array  # (k,) effective numbers of rows

    def interval(self, ratios: Array, pi: Array, blurred: NDArray[np.bool_], confidence: float) -> Array:
        """(k, 2) from and to, for a sample with these ratios (n₀, k) and proportions π̂."""
        count, k = ratios.shape
        z = float(special.ndtri(0.5 + confidence / 2))
        added = max(z**2 / 2, 0.5)
        smooth = (count * pi + added) / (count + k * added)
        psi, held = (each / (each @ smooth)[:, None] for each in (ratios, self.ratios))
        weighed = [np.where(self.codes == code, self.shares, 0.0) for code in range(k)]
        M = np.stack([share @ held for share in weighed], axis=1)
        within = np.stack([(held.T * share) @ held - np.outer(mean, mean) for share, mean in zip(weighed, M.T, strict=True)])
        across = M - (M @ smooth)[:, None]
        own = np.einsum("i,ijl->jl", smooth, within) + (across * smooth) @ across.T
        unbiased = self.sizes / np.maximum(self.sizes - 1.0, 0.5)
        spread = own / count + np.einsum("i,ijl->jl", smooth**2 * unbiased / self.sizes, within)
        D = np.linalg.pinv(M, rcond=1e-10)
        middle = (count * (D @ psi.mean(axis=0)) + added) / (count + 2 * added)
        reach = z * np.sqrt(np.maximum(np.einsum("ij,jl,il->i", D, spread, D), 0.0))
        low, high = np.clip(middle - reach, 0.0, 1.0), np.clip(middle + reach, 0.0, 1.0)
        low, high = np.where(blurred, 0.0, low), np.where(blurred, 1.0, high)
        return np.stack([np.minimum(low, pi), np.maximum(high, pi)], axis=1)
