"""Bounds on the difference between the eigenproblems of the rows and of the atoms (Kingravi, Vela & Gray 2013, Section 5).

Row xᵢ has the proportion pᵢ of the mass and was moved to the atom cᵢ, by the distance dᵢ. Let gᵢ = k(xᵢ, cᵢ) and κ = k(x, x). Then

    MMD          ‖μ − μ̄‖        ≤ Σ pᵢ √(2(κ − gᵢ)); Theorem 5.1 takes the largest distance instead of the mean
    operator     ‖K_n − K̄_n‖_HS ≤ Σ pᵢ √(2(κ² − gᵢ²)), the norm of x⊗x − c⊗c; Theorem 5.3 has 2√κ √(2(κ − g)), which is not less
    eigenvalues  √Σ(λ − λ̄)²     ≤ the same, by Hoffman & Wielandt; for Gaussian and Laplacian kernels also κ·s·√(2 Σ pᵢ dᵢ²),
                                  Theorem 5.2, where s is the steepest slope of k/κ
    projection   ‖P − P̄‖_HS     ≤ √2 B/(gap − B) where the operator's bound B is below the gap λ̄_D − λ̄_(D+1) of the atoms (Davis &
                                  Kahan); Theorem 5.4 has 2B/gap for B < gap/4, where √2 B/(gap − B) is not more for the same gap

Theorem 5.2, derived anew: |k(xᵢ, xⱼ) − k(cᵢ, cⱼ)| ≤ κ·s·‖eᵢ − eⱼ‖ with eᵢ = xᵢ − cᵢ, because the distance of two rows changes by at
most ‖eᵢ − eⱼ‖. In Euclidean geometry Σ pᵢpⱼ ‖eᵢ − eⱼ‖² = 2 Σ pᵢ dᵢ² − 2 ‖Σ pᵢ eᵢ‖², which gives the bound. In city-block geometry
‖eᵢ − eⱼ‖ ≤ dᵢ + dⱼ gives 2 Σ pᵢ dᵢ² + 2 (Σ pᵢ dᵢ)² under the root. The slope s is 1/(h√e) for the Gaussian exp(−r²/2h²) and 1/h for
the Laplacian exp(−r/h). The constant is the least possible: two groups of rows at the distance of the steepest slope, moved in
opposite directions, attain the bound in the limit of small dᵢ.

The paper's constants: (18) holds with C = 2s², which is 4/(eσ²) for the Gaussian exp(−r²/σ²) of (19) and 2/σ² for the Laplacian.
The printed 1/(2σ²) and 1/σ² are too small. Theorem 5.2 as printed, 1/ℓ², fails for that Gaussian; 4/(eℓ²) is right. Its 2/ℓ² for
the Laplacian is right. In (23), 2κ must be 2√κ, as in (24).

All rows of a shadow are within bandwidth/ℓ: g ≥ κ exp(−1/(2ℓ²)) for the Gaussian. Centring adds at most (‖μ‖ + ‖μ̄‖)·MMD to the
operator's bound, and nothing to the last bound on eigenvalues, since it projects both matrices.

Components that were turned towards all rows (`ritz`) have eigenvalues θ, and ``left`` = t is the trace outside of their span. With
any atoms, √Σ(λ − θ)² ≤ Σ(λ − θ) ≤ t. Their residual is the block of the rows' operator between the span and its complement, of
norm at most √(θ₁ t), since the operator is positive. The rows' next eigenvalue is at most θ_(D+1) + t. So
‖P − P̄‖_HS ≤ √2 √(θ₁ t)/(θ_D − θ_(D+1) − t), where that gap is above 0.

Operators are means, Σ pᵢ k(xᵢ, ·)⊗k(xᵢ, ·): eigenvalues here are ``eigenvalues_`` over the mass of the data. O(n).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reduset._types import Array
from reduset.kernels import Gaussian, Kernel, Laplacian
from reduset.spectral.components import PrincipalComponents
from reduset.spectral.reduction import WeightedAtoms

ROUNDING = 3e-8  # relative to κ: 1 − g and the trace are exact to the last bit, operators to its square root


@dataclass(frozen=True)
class SpectralBounds:
    """Upper bounds on the error of the reduced eigenproblem, known without solving that of all rows.

    Attributes
    ----------
    mmd : on ‖μ − μ̄‖, the distance between the kernel means of the rows and of the atoms
    hilbert_schmidt : on the Hilbert–Schmidt norm of the difference between the operators of the rows and of the atoms
    eigenvalues : on √Σ(λᵢ − λ̄ᵢ)² over the components, and so on each |λᵢ − λ̄ᵢ|
    projection : on the Hilbert–Schmidt norm of the difference between the projections on the components

    They hold to rounding, 1e-7 of κ. A bound that is not known is None: the first two where the weights are not those of rows moved
    to their atoms, the last where the gap after the components is too small.
    """

    mmd: float | None
    hilbert_schmidt: float | None
    eigenvalues: float | None
    projection: float | None


def _slope_bound(kernel: Kernel, shares: Array, g: Array) -> float:
    """Theorem 5.2: s √(2 Σ p d²) from the slope of k/κ, the distances being known from g/κ; infinite where it is not known."""
    if g.min() <= 0:
        return math.inf
    exponents = np.maximum(-np.log(g), 0.0)
    if isinstance(kernel, Gaussian):  # d²/2h², in either space
        return float(np.sqrt(4 / math.e * (shares @ exponents)))
    if isinstance(kernel, Laplacian) and kernel.space == "rkhs":  # d/h
        squares, mean = shares @ exponents**2, shares @ exponents
        return float(np.sqrt(2 * squares + (2 * mean**2 if kernel.metric == "cityblock" else 0.0)))
    return math.inf


def bounds_of(reduced: WeightedAtoms, components: PrincipalComponents, centre: bool) -> SpectralBounds:
    """The bounds for components of the atoms, whether turned towards the rows or not."""
    mmd = operator = eigenvalues = None
    if reduced.quantisation is not None:
        peak, shares, g = reduced.peak, reduced.quantisation.shares, reduced.quantisation.products
        mmd = float(shares @ np.sqrt(np.maximum(2 - 2 * g, 0.0)) * np.sqrt(peak))
        operator = float(shares @ np.sqrt(np.maximum(2 - 2 * g * g, 0.0))) * peak
        if centre:
            norm = components.mean_norm
            operator += float(mmd * (norm + min(norm + mmd, np.sqrt(peak))))
        eigenvalues = min(operator, peak * _slope_bound(reduced.kernel, shares, g))
    found = components.eigenvalues / reduced.mass
    if len(found) == 0:
        return SpectralBounds(mmd, operator, eigenvalues if components.left is None else components.left / reduced.mass, None)
    gap = float(found[-1]) - components.next_eigenvalue / reduced.mass
    if components.left is not None:
        left = components.left / reduced.mass
        eigenvalues, residual, gap = left, float(np.sqrt(found[0] * left)), gap - left
    else:
        residual, gap = (np.inf, gap) if operator is None else (operator, gap - operator)
    residual, gap = residual + ROUNDING * reduced.peak, gap - ROUNDING * reduced.peak
    projection = float(np.sqrt(2) * residual / gap) if gap > 0 else np.inf
    trivial = np.sqrt(2 * len(found))  # the largest distance of any two projections of this rank
    return SpectralBounds(mmd, operator, eigenvalues, projection if projection < trivial else None)
