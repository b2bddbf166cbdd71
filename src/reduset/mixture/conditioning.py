"""Marginal and conditional densities of a sum of Gaussian bumps: sums of Gaussian bumps again.

With Σ = h²·covariance (or h²·diag(scales²)) and the coordinates split into kept a and others b,

    ∫ f dx_b = Σᵢ wᵢ N(· ; cᵢₐ, Σₐₐ),        f(x_a | x_b = v) = Σᵢ ωᵢ N(· ; cᵢₐ + Σ_ab Σ_bb⁻¹ (v − cᵢ_b), Σₐₐ − Σ_ab Σ_bb⁻¹ Σ_ba),

ωᵢ ∝ wᵢ N(v ; cᵢ_b, Σ_bb), all with one covariance. f is read as `log_density` reads it, its bumps scaled to integrate to 1, and the
kernels of the results are normalized. O(m·d²) for m atoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve

from reduset import _validate
from reduset._types import Array
from reduset.kernels import Gaussian
from reduset.mean import KernelMean


def marginal(mean: KernelMean, columns: Sequence[int]) -> KernelMean:
    """The mean with every column but these integrated out, in the order given."""
    kernel = _gaussian(mean)
    kept = as_columns(columns, mean.dimension)
    covariance = kernel.covariance[np.ix_(kept, kept)] if np.ndim(kernel.covariance) == 2 else None
    return KernelMean(mean.atoms[:, kept], mean.weights, _density(kernel, covariance, kept))


def conditional(mean: KernelMean, columns: Sequence[int], values: ArrayLike) -> KernelMean:
    """The density of the other columns where these have the given values; its weights sum to 1."""
    kernel = _gaussian(mean)
    known, other, at = known_columns(columns, values, mean.dimension)
    atoms = np.asarray(mean.atoms[:, other], np.float64)
    away = (at - mean.atoms[:, known]) / kernel.width
    if np.ndim(kernel.covariance) < 2:  # columns are independent within a bump
        away = away if kernel.units is None else away / kernel.units[known]
        depth = 0.5 * np.einsum("ij,ij->i", away, away)
        return KernelMean(atoms, weights_where(mean.weights, depth), _density(kernel, None, other))
    covariance = np.asarray(kernel.covariance)
    solve = cho_factor(covariance[np.ix_(known, known)])
    slope = cho_solve(solve, covariance[np.ix_(known, other)])  # Σ_bb⁻¹ Σ_ba
    depth = 0.5 * np.einsum("ij,ji->i", away, cho_solve(solve, away.T))
    left = covariance[np.ix_(other, other)] - covariance[np.ix_(other, known)] @ slope
    atoms = atoms + (at - mean.atoms[:, known]) @ slope
    return KernelMean(atoms, weights_where(mean.weights, depth), _density(kernel, left, other))


def _gaussian(mean: KernelMean) -> Gaussian:
    if not isinstance(mean.kernel, Gaussian):
        raise TypeError(f"slices of a density have a closed form for the Gaussian kernel only, got {mean.kernel!r}")
    return mean.kernel


def _density(kernel: Gaussian, covariance: Any, columns: list[int]) -> Gaussian:
    """The kernel of a density of these columns, of this covariance where it has one; scales stay those of the columns."""
    scales = None if kernel.units is None else kernel.units[columns]
    return Gaussian(kernel.width, covariance=covariance, normalized=True, space=kernel.space, scales=scales)


def as_columns(columns: Sequence[int], dimension: int) -> list[int]:
    """Column numbers, checked, negative ones counted from the end."""
    found = [_validate.whole(j, "columns", -dimension, dimension - 1) % dimension for j in np.ravel(columns).tolist()]
    if not found or len(set(found)) < len(found):
        raise ValueError(f"columns must name at least one column, and none twice; got {np.ravel(columns).tolist()}")
    return found


def known_columns(columns: Sequence[int], values: ArrayLike, dimension: int) -> tuple[list[int], list[int], Array]:
    """The columns whose values are known, the others, and the values (1, known): checked."""
    known = as_columns(columns, dimension)
    other = [j for j in range(dimension) if j not in known]
    if not other:
        raise ValueError(f"columns must leave at least one out, got all {dimension}")
    at = np.asarray(_validate.points(np.reshape(values, (1, -1)), "values"), np.float64)
    if at.shape[1] != len(known):
        raise ValueError(f"values must be one number for each of the {len(known)} columns, got {at.shape[1]}")
    return known, other, at


def weights_where(weights: Array, depth: Array) -> Array:
    """ω ∝ w·exp(−depth), which sum to 1; depths count from the least of those with weight, so that not all underflow."""
    found = weights * np.exp(-np.clip(depth - depth[weights != 0].min(), 0.0, 1e3))
    total = float(found.sum())
    if not total > 0:
        raise ValueError(f"f must be positive at the given values to be divided by it, got a sum of weights of {total:.3g}")
    return np.asarray(found / total)
