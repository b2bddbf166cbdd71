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

Operators are means, Σ pᵢ k(xᵢ, ·)⊗k(xᵢ, ·): eigenvalues here are ``eigenvalues_`` over the mass of the data. O(n).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset.kernels import Gaussian
from reduset.spectral.components import Components
from reduset.spectral.reduction import Reduced


@dataclass(frozen=True)
class SpectralBounds:
    """What is certain of the reduced eigenproblem, before measuring.

    Attributes
    ----------
    mmd : on ‖μ − μ̄‖, of the kernel means of the data and of the atoms
    hilbert_schmidt : on the norm of the difference of the operators
    eigenvalues : on √Σ(λᵢ − λ̄ᵢ)² over all eigenvalues of the operators; so on each |λᵢ − λ̄ᵢ| too
    projection : on the norm of the difference of the projections on the leading components; None where the gap after them is too
        small for anything to be certain
    """

    mmd: float
    hilbert_schmidt: float
    eigenvalues: float
    projection: float | None


def bounds_of(reduced: Reduced, components: Components, centre: bool) -> SpectralBounds | None:
    """The bounds; None where the masses are not those of points moved to their atoms."""
    if reduced.quantisation is None:
        return None
    peak, shares, g = reduced.peak, reduced.quantisation.shares, reduced.quantisation.products
    mmd = float(shares @ np.sqrt(np.maximum(2 - 2 * g, 0.0))) * np.sqrt(peak)
    operator = float(shares @ np.sqrt(np.maximum(2 - 2 * g * g, 0.0))) * peak
    if centre:
        norm = components.mean_norm
        operator += mmd * (norm + min(norm + mmd, np.sqrt(peak)))
    eigenvalues = operator
    if isinstance(reduced.kernel, Gaussian) and g.min() > 0:
        eigenvalues = min(operator, peak * float(np.sqrt(-8 / np.e * (shares @ np.log(np.minimum(g, 1.0))))))
    gap = float(components.eigenvalues[-1] - components.next_eigenvalue) / reduced.mass
    projection = float(np.sqrt(2) * operator / (gap - operator)) if operator < gap else None
    return SpectralBounds(float(mmd), float(operator), float(eigenvalues), projection)
