"""Marginal and conditional densities of a sum of Gaussians. Both are sums of Gaussians again.

With Σ = h²·covariance (or h²·diag(scales²)) and the coordinates split into a (kept) and b (the others),

    ∫ f dx_b = Σᵢ wᵢ N(· ; cᵢₐ, Σₐₐ),        f(x_a | x_b = v) = Σᵢ ωᵢ N(· ; cᵢₐ + Σ_ab Σ_bb⁻¹ (v − cᵢ_b), Σₐₐ − Σ_ab Σ_bb⁻¹ Σ_ba),

with ωᵢ ∝ wᵢ N(v ; cᵢ_b, Σ_bb). All components share one covariance. As in `log_density`, the kernel is scaled to integrate to 1.
The kernels of the results are normalized. O(m·d²) for m atoms.
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
    """The marginal mean of these columns, in the order given; the others are integrated out."""
    kernel = _gaussian(mean)
    kept = as_columns(columns, mean.dimension)
    covariance = kernel.covariance[np.ix_(kept, kept)] if np.ndim(kernel.covariance) == 2 else None
    return KernelMean(mean.atoms[:, kept], mean.weights, _density(kernel, covariance, kept))


def conditional(mean: KernelMean, columns: Sequence[int], values: ArrayLike) -> KernelMean:
    """The conditional density of the other columns, given the values of these; its weights sum to 1."""
    kernel = _gaussian(mean)
    known, other, point = known_columns(columns, values, mean.dimension)
    atoms = np.asarray(mean.atoms[:, other], np.float64)
    differences = (point - mean.atoms[:, known]) / kernel.width
    if np.ndim(kernel.covariance) < 2:  # columns are independent within a component
        differences = differences if kernel.units is None else differences / kernel.units[known]
        exponents = 0.5 * np.einsum("ij,ij->i", differences, differences)
        return KernelMean(atoms, weights_where(mean.weights, exponents), _density(kernel, None, other))
    covariance = np.asarray(kernel.covariance)
    solve = cho_factor(covariance[np.ix_(known, known)])
    slope = cho_solve(solve, covariance[np.ix_(known, other)])  # Σ_bb⁻¹ Σ_ba
    exponents = 0.5 * np.einsum("ij,ji->i", differences, cho_solve(solve, differences.T))
    remaining = covariance[np.ix_(other, other)] - covariance[np.ix_(other, known)] @ slope
    atoms = atoms + (point - mean.atoms[:, known]) @ slope
    return KernelMean(atoms, weights_where(mean.weights, exponents), _density(kernel, remaining, other))


def _gaussian(mean: KernelMean) -> Gaussian:
    if not isinstance(mean.kernel, Gaussian):
        raise TypeError(f"marginals and conditionals have a closed form for the Gaussian kernel only, got {mean.kernel!r}")
    return mean.kernel


def _density(kernel: Gaussian, covariance: Any, columns: list[int]) -> Gaussian:
    """The kernel of a density of these columns, with this covariance or with the scales of the columns."""
    scales = None if kernel.units is None else kernel.units[columns]
    return Gaussian(kernel.width, covariance=covariance, normalized=True, space=kernel.space, scales=scales)


def as_columns(columns: Sequence[int], dimension: int) -> list[int]:
    """Validated column numbers; negative ones count from the end."""
    numbers = [_validate.whole(j, "columns", -dimension, dimension - 1) % dimension for j in np.ravel(columns).tolist()]
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"columns must name at least one column, and none twice; got {np.ravel(columns).tolist()}")
    return numbers


def known_columns(columns: Sequence[int], values: ArrayLike, dimension: int) -> tuple[list[int], list[int], Array]:
    """The columns with known values, the other columns, and the values (1, known), all validated."""
    known = as_columns(columns, dimension)
    other = [j for j in range(dimension) if j not in known]
    if not other:
        raise ValueError(f"columns must not be all columns, got all {dimension}; omit at least one")
    point = np.asarray(_validate.points(np.reshape(values, (1, -1)), "values"), np.float64)
    if point.shape[1] != len(known):
        raise ValueError(f"values must be one number for each of the {len(known)} columns, got {point.shape[1]}")
    return known, other, point


def weights_where(weights: Array, exponents: Array) -> Array:
    """ω ∝ w·exp(−exponent), scaled to sum to 1.

    The smallest exponent of an atom with weight is subtracted first, so that not all terms underflow.
    """
    scaled = weights * np.exp(-np.clip(exponents - exponents[weights != 0].min(), 0.0, 1e3))
    total = float(scaled.sum())
    if not total > 0:
        raise ValueError(f"f must be positive at the given values to be divided by it, got a sum of weights of {total:.3g}")
    return np.asarray(scaled / total)
