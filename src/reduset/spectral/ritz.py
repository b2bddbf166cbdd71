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

from reduset._engine import single_threaded_blas
from reduset._types import Array, Floats
from reduset.spectral.components import PrincipalComponents, above_rounding, inverse_roots
from reduset.spectral.eigen import signs
from reduset.spectral.extension import bears_single, extend, extended_blocks
from reduset.spectral.functions import AtomFunctions
from reduset.spectral.reduction import WeightedAtoms

SPARE = 50  # functions looked at beyond those asked for: the error falls about tenfold with them


def rayleigh_ritz(
    functions: AtomFunctions, reduced: WeightedAtoms, X: Floats, shares: Array, count: int, centre: bool
) -> PrincipalComponents:
    """The ``count`` best components of the rows X within the span of p functions of the atoms, p ≥ count.

    ``shares`` are those of the rows of the mass, (n,), summing to 1.
    """
    with single_threaded_blas():  # of narrow matrices, where more threads wait for each other
        return _turned(functions, reduced, X, shares, count, centre)


def _turned(
    functions: AtomFunctions, reduced: WeightedAtoms, X: Floats, shares: Array, count: int, centre: bool
) -> PrincipalComponents:
    means, second, trace = *_moments(functions, reduced, X, shares), reduced.peak
    offsets = np.zeros_like(means)
    if centre:
        offsets = functions.heights + means
        second = second - np.outer(means, means)
        trace -= min(float(offsets @ offsets), trace)
    values, vectors = eigh(second, check_finite=False)
    values = above_rounding(values[::-1] * reduced.mass, reduced.peak * reduced.mass)
    left = max(trace * reduced.mass - float(values.sum()), 0.0)
    vectors = vectors[:, ::-1][:, :count] * (values[:count] > 0)
    coefficients, offsets = functions.coefficients @ vectors, offsets @ vectors
    if functions.at_atoms is None:
        at_atoms = extend(reduced.kernel, reduced.atoms, coefficients, reduced.atoms)
    else:
        at_atoms = functions.at_atoms @ vectors
    at_atoms -= offsets
    upward = signs(at_atoms)
    return PrincipalComponents(
        eigenvalues=values[:count],
        eigenvectors=at_atoms * upward * inverse_roots(values[:count]),
        coefficients=coefficients * upward,
        offsets=offsets * upward,
        next_eigenvalue=float(np.pad(values, (0, 1))[count]),
        mean_norm=functions.mean_norm,
        left=left,
    )


def _moments(functions: AtomFunctions, reduced: WeightedAtoms, X: Floats, shares: Array) -> tuple[Array, Array]:
    """Means, (p,), and products, (p, p), of the functions over the rows, about their heights; known values are not made again."""
    moments = np.zeros((len(functions.heights) + 1,) * 2)

    def add(values: Array, its: Array) -> None:
        at = np.column_stack([values - functions.heights, np.ones(len(values))])
        np.add(moments, at.T @ (its[:, None] * at), out=moments)

    atoms = None if functions.at_atoms is None else reduced.rows_in(X)
    rest = np.arange(len(X))
    if functions.at_atoms is not None and atoms is not None:
        add(functions.at_atoms, shares[atoms])
        rest = np.delete(rest, atoms)
    single = bears_single(reduced.kernel, functions.coefficients, X.shape[1])
    for a, b, values in extended_blocks(reduced.kernel, reduced.atoms, functions.coefficients, X, rest, single):
        add(values, shares[rest[a:b]])
    return moments[-1, :-1], moments[:-1, :-1]
