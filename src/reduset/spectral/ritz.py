"""Components of the atoms, turned towards those of all rows (Rayleigh & Ritz).

The p leading components of the atoms, or nearly these, span a space S of functions, orthonormal in the kernel's geometry. In it the
operator of all rows is the p×p covariance of the rows' coordinates, and its eigenvectors are the best components of the rows that S
has. What the quantisation did to the leading components by mixing them with each other and with the next ones is undone; with all m
this is Nyström's approximation followed by PCA, at O(n·m·p) instead of O(n·m²).

Two facts make it a certificate, whatever the atoms: its eigenvalues θ are never above the rows' own λ, and all λ sum to the trace
of the operator, which is known (κ; centred, κ − ‖μ‖², where ‖μ‖ is at least its part within S). So Σ(λᵢ − θᵢ) over the p is at most
what the trace has left, ``PrincipalComponents.left``.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from reduset._types import Array, Floats
from reduset.spectral.components import PrincipalComponents, above_rounding, inverse_roots
from reduset.spectral.eigen import signs
from reduset.spectral.extension import extend, extended_blocks
from reduset.spectral.reduction import WeightedAtoms

SPARE = 50  # functions looked at beyond those asked for: the error falls about tenfold with them
FLAT = 1e-10  # of κ: a mean within the span, but for rounding


def rayleigh_ritz(
    parts: PrincipalComponents, reduced: WeightedAtoms, X: Floats, shares: Array, count: int, centre: bool
) -> PrincipalComponents:
    """The ``count`` best components of the rows X within the span of the ``parts``.

    Parameters
    ----------
    parts : p components of the atoms, p ≥ count
    shares : (n,) of the mass, summing to 1
    """
    functions, known = _orthonormal(parts, reduced, centre)
    moments = np.zeros((len(known) + 1,) * 2)
    for a, b, values in extended_blocks(reduced.kernel, reduced.atoms, functions, X):
        at = np.column_stack([values - known, np.ones(b - a)])
        moments += at.T @ (shares[a:b, None] * at)
    means, second, trace = moments[-1, :-1], moments[:-1, :-1], reduced.peak
    offsets = np.zeros_like(known)
    if centre:
        offsets = known + means
        second = second - np.outer(means, means)
        trace -= min(float(offsets @ offsets), trace)
    values, vectors = eigh(second, check_finite=False)
    values = above_rounding(values[::-1] * reduced.mass, reduced.peak * reduced.mass)
    left = max(trace * reduced.mass - float(values.sum()), 0.0)
    vectors = vectors[:, ::-1][:, :count] * (values[:count] > 0)
    coefficients, offsets = functions @ vectors, offsets @ vectors
    at_atoms = extend(reduced.kernel, reduced.atoms, coefficients, reduced.atoms) - offsets
    upward = signs(at_atoms)
    return PrincipalComponents(
        eigenvalues=values[:count],
        eigenvectors=at_atoms * upward * inverse_roots(values[:count]),
        coefficients=coefficients * upward,
        offsets=offsets * upward,
        next_eigenvalue=float(np.pad(values, (0, 1))[count]),
        mean_norm=parts.mean_norm,
        left=left,
    )


def _orthonormal(parts: PrincipalComponents, reduced: WeightedAtoms, centre: bool) -> tuple[Array, Array]:
    """(m, p) coefficients of the functions to look at, and their inner products with μ̄, about which rows are counted."""
    if not centre:
        return parts.coefficients, np.zeros(len(parts.offsets))
    height = parts.mean_norm**2 - float(parts.offsets @ parts.offsets)
    if height < FLAT * reduced.peak:
        return parts.coefficients, parts.offsets
    # centred bumps do not span their own mean, which the components of the rows may lean to
    mean = (reduced.shares - parts.coefficients @ parts.offsets) / np.sqrt(height)
    return np.column_stack([parts.coefficients, mean]), np.append(parts.offsets, np.sqrt(height))
