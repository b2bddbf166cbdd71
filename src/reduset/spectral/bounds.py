"""How far the eigenproblem of the atoms can be from that of the points (Kingravi, Vela & Gray 2013, Section 5).

Every point xᵢ of share pᵢ was moved to an atom cᵢ, with gᵢ = k(xᵢ, cᵢ) and κ = k(x, x). Then, from each point's own distance,

    MMD          ‖μ − μ̄‖        ≤ Σ pᵢ √(2(κ − gᵢ)); Theorem 5.1 has the worst point in place of the mean
    operator     ‖K_n − K̄_n‖_HS ≤ Σ pᵢ √(2(κ² − gᵢ²)), the norm of x⊗x − c⊗c; Theorem 5.3 has 2√κ √(2(κ − g)), never less
    eigenvalues  √Σ(λ − λ̄)²     ≤ the same, by Hoffman & Wielandt; of a Gaussian also κ √(2C Σ pᵢ dᵢ²), Theorem 5.2
    projection   ‖P − P̄‖_HS     ≤ √2 B/(gap − B) where the operator's bound B is below the gap λ̄_D − λ̄_(D+1) (Davis & Kahan);
                                  Theorem 5.4 has 2B/gap, and speaks only of B < gap/4, where this is never more

A shadow's points are all within bandwidth/ℓ: g ≥ κ exp(−1/(2ℓ²)) of the library's Gaussian exp(−r²/2h²). The constant of (18) is
C = 2/(e·h²) there: |k(a, b) − k(c, d)| ≤ (‖a − c‖ + ‖b − d‖)/(h√e), by the steepest slope of the bump. (The 1/(2σ²) that the paper
quotes is too small in either convention, and the 2κ of its (23) is 2√κ, as in its (24).) Centring adds at most (‖μ‖ + ‖μ̄‖)·MMD to
the operator's bound and nothing to the Gaussian's, since it projects the matrices.

Components that were turned towards all rows (`ritz`) have eigenvalues θ, and ``left`` = t as the trace outside of their span. With
any atoms, √Σ(λ − θ)² ≤ Σ(λ − θ) ≤ t. Their residual is the block of the rows' operator between what was kept and what was left, of
norm at most √(θ₁ t), since the operator is positive. The rows' next eigenvalue is at most θ_(D+1) + t. So
‖P − P̄‖_HS ≤ √2 √(θ₁ t)/(θ_D − θ_(D+1) − t), where that gap is above 0.

Operators are means, Σ pᵢ k(xᵢ, ·)⊗k(xᵢ, ·): eigenvalues here are ``eigenvalues_`` over the mass of the data. O(n).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reduset.kernels import Gaussian
from reduset.spectral.components import PrincipalComponents
from reduset.spectral.reduction import WeightedAtoms

ROUNDING = 3e-8  # of κ: 1 − g and the trace are known to the last bit, and operators to the root of it


@dataclass(frozen=True)
class SpectralBounds:
    """What is certain of the reduced eigenproblem, before measuring.

    Attributes
    ----------
    mmd : on ‖μ − μ̄‖, of the kernel means of the data and of the atoms
    hilbert_schmidt : on the norm of the difference of the data's operator and the atoms'
    eigenvalues : on √Σ(λᵢ − λ̄ᵢ)² over the components; so on each |λᵢ − λ̄ᵢ| too
    projection : on the norm of the difference of the projections on the components

    They hold to rounding, 1e-7 of κ. Each is None where nothing is certain: the first two where the weights are not those of
    points moved to their atoms, the last where the gap after the components is too small for it to say anything.
    """

    mmd: float | None
    hilbert_schmidt: float | None
    eigenvalues: float | None
    projection: float | None


def bounds_of(reduced: WeightedAtoms, components: PrincipalComponents, centre: bool) -> SpectralBounds:
    """The bounds of components of the atoms, turned towards the rows or not."""
    mmd = operator = eigenvalues = None
    if reduced.quantisation is not None:
        peak, shares, g = reduced.peak, reduced.quantisation.shares, reduced.quantisation.products
        mmd = float(shares @ np.sqrt(np.maximum(2 - 2 * g, 0.0)) * np.sqrt(peak))
        operator = float(shares @ np.sqrt(np.maximum(2 - 2 * g * g, 0.0))) * peak
        if centre:
            norm = components.mean_norm
            operator += float(mmd * (norm + min(norm + mmd, np.sqrt(peak))))
        eigenvalues = operator
        if isinstance(reduced.kernel, Gaussian) and g.min() > 0:
            eigenvalues = min(operator, peak * float(np.sqrt(-8 / math.e * (shares @ np.log(np.minimum(g, 1.0))))))
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
    trivial = np.sqrt(2 * len(found))  # no two projections on so many components are farther apart
    return SpectralBounds(mmd, operator, eigenvalues, projection if projection < trivial else None)
