"""Bounds on the difference between the eigenproblems of the rows and of the atoms (Kingravi, Vela & Gray 2013, Section 5).

Row xᵢ has the proportion pᵢ of the mass. It is assigned to the atom cᵢ at the distance dᵢ. Let gᵢ = k(xᵢ, cᵢ) and κ = k(x, x).

- MMD: ‖μ − μ̄‖ ≤ Σ pᵢ √(2(κ − gᵢ)). Theorem 5.1 uses the largest distance instead of the mean.
- Operator: ‖K_n − K̄_n‖_HS ≤ Σ pᵢ √(2(κ² − gᵢ²)), the norm of x⊗x − c⊗c. Theorem 5.3 has 2√κ √(2(κ − g)), which is not less.
- Eigenvalues: √Σ(λ − λ̄)² has the same bound, by Hoffman & Wielandt. Gaussian and Laplacian kernels also have the bound
  κ·s·√(2 Σ pᵢ dᵢ²) of Theorem 5.2, where s is the steepest slope of k/κ.
- Projection: ‖P − P̄‖_HS ≤ √2 B/(gap − B) for the operator's bound B, if B is below the gap λ̄_D − λ̄_(D+1) of the atoms (Davis &
  Kahan). Theorem 5.4 has 2B/gap for B < gap/4. There, √2 B/(gap − B) is not more for the same gap.

**Theorem 5.2.** Let eᵢ = xᵢ − cᵢ. The distance of two rows changes by at most ‖eᵢ − eⱼ‖. So |k(xᵢ, xⱼ) − k(cᵢ, cⱼ)| is at most
κ·s·‖eᵢ − eⱼ‖. In Euclidean geometry Σ pᵢpⱼ ‖eᵢ − eⱼ‖² = 2 Σ pᵢ dᵢ² − 2 ‖Σ pᵢ eᵢ‖², which gives the bound. In city-block geometry
‖eᵢ − eⱼ‖ ≤ dᵢ + dⱼ gives 2 Σ pᵢ dᵢ² + 2 (Σ pᵢ dᵢ)² under the root. The slope s is 1/(h√e) for the Gaussian exp(−r²/2h²), and 1/h
for the Laplacian exp(−r/h). The constant is the smallest possible. For example, take two groups of rows at the distance of the
steepest slope, moved in opposite directions. They attain the bound in the limit of small dᵢ.

**Constants of the paper.** (18) holds with C = 2s². This is 4/(eσ²) for the Gaussian exp(−r²/σ²) of (19), and 2/σ² for the
Laplacian. The printed 1/(2σ²) and 1/σ² are too small. The printed constant 1/ℓ² of Theorem 5.2 fails for that Gaussian. The correct
constant is 4/(eℓ²). Its 2/ℓ² for the Laplacian is correct. In (23), 2κ must be 2√κ, as in (24).

**Shadows and centring.** All rows of a shadow are within bandwidth/ℓ of its atom. So g ≥ κ exp(−1/(2ℓ²)) for the Gaussian. Centring
adds at most (‖μ‖ + ‖μ̄‖)·MMD to the operator's bound. It adds nothing to Theorem 5.2, since it projects both matrices.

**Refined components** are rotated towards the rows (`kernel_pca`). Let θ be their eigenvalues, and t the trace outside their span.
With any atoms, √Σ(λ − θ)² ≤ Σ(λ − θ) ≤ t. Their residual is the block of the rows' operator between the span and its complement.
Its norm is at most √(θ₁ t), since the operator is positive. The rows' next eigenvalue is at most θ_(D+1) + t. So ‖P − P̄‖_HS is at
most √2 √(θ₁ t)/(θ_D − θ_(D+1) − t), if this gap is positive.

Operators are means, Σ pᵢ k(xᵢ, ·)⊗k(xᵢ, ·). Eigenvalues of operators are ``eigenvalues_`` divided by the mass of the data. The cost
is O(n).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reduset._types import Array
from reduset.kernels import Gaussian, Kernel, Laplacian
from reduset.spectral.components import PrincipalComponents
from reduset.spectral.reduction import WeightedAtoms

ROUNDING = 3e-8  # Rounding error of operators, relative to κ: the square root of the rounding of 1 − g and of the trace.


@dataclass(frozen=True)
class SpectralBounds:
    """Upper bounds on the error of the reduced eigenproblem, without solving the full one.

    Attributes
    ----------
    mmd : float or None
        Bound on ‖μ − μ̄‖. This is the distance between the kernel means of rows and atoms.
    hilbert_schmidt : float or None
        Bound on the difference between the operators of rows and atoms. The norm is the Hilbert–Schmidt norm.
    eigenvalues : float or None
        Bound on √Σ(λᵢ − λ̄ᵢ)² over the components. It also bounds each |λᵢ − λ̄ᵢ|.
    projection : float or None
        Bound on the difference between the projections on the components. The norm is the Hilbert–Schmidt norm.

    The bounds hold up to rounding, 1e-7 of κ. An unknown bound is None. The first two bounds need weights of rows assigned to
    atoms. The last bound needs a large enough gap after the components.
    """

    mmd: float | None
    hilbert_schmidt: float | None
    eigenvalues: float | None
    projection: float | None


def _slope_bound(kernel: Kernel, proportions: Array, g: Array) -> float:
    """Theorem 5.2: s √(2 Σ p d²), with distances from g/κ. It is infinite for kernels without a known slope."""
    if g.min() <= 0:
        return math.inf
    exponents = np.maximum(-np.log(g), 0.0)
    if isinstance(kernel, Gaussian):  # The exponents are d²/2h², in both spaces.
        return float(np.sqrt(4 / math.e * (proportions @ exponents)))
    if isinstance(kernel, Laplacian) and kernel.space == "rkhs":  # The exponents are d/h.
        squares, mean = proportions @ exponents**2, proportions @ exponents
        return float(np.sqrt(2 * squares + (2 * mean**2 if kernel.metric == "cityblock" else 0.0)))
    return math.inf


def bounds_of(reduced: WeightedAtoms, components: PrincipalComponents, centre: bool) -> SpectralBounds:
    """The bounds for components of the atoms, refined or not."""
    mmd = operator = eigenvalue_bound = None
    if reduced.quantisation is not None:
        peak, proportions, g = reduced.peak, reduced.quantisation.proportions, reduced.quantisation.products
        mmd = float(proportions @ np.sqrt(np.maximum(2 - 2 * g, 0.0)) * np.sqrt(peak))
        operator = float(proportions @ np.sqrt(np.maximum(2 - 2 * g * g, 0.0))) * peak
        if centre:
            norm = components.mean_norm
            operator += float(mmd * (norm + min(norm + mmd, np.sqrt(peak))))
        eigenvalue_bound = min(operator, peak * _slope_bound(reduced.kernel, proportions, g))
    trace = None if components.residual_trace is None else components.residual_trace / reduced.mass
    if trace is not None:
        eigenvalue_bound = trace
    values = components.eigenvalues / reduced.mass
    if len(values) == 0:
        return SpectralBounds(mmd, operator, eigenvalue_bound, None)
    gap = float(values[-1]) - components.next_eigenvalue / reduced.mass
    if trace is not None:
        residual, gap = float(np.sqrt(values[0] * trace)), gap - trace
    else:
        residual, gap = (np.inf, gap) if operator is None else (operator, gap - operator)
    residual, gap = residual + ROUNDING * reduced.peak, gap - ROUNDING * reduced.peak
    projection = float(np.sqrt(2) * residual / gap) if gap > 0 else np.inf
    largest_distance = np.sqrt(2 * len(values))  # The largest distance of two projections of this rank.
    return SpectralBounds(mmd, operator, eigenvalue_bound, projection if projection < largest_distance else None)
