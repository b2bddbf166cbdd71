"""Integrals of a kernel mean over boxes with sides along the axes, with the kernel as a density.

In one column every kernel has a tail in closed form. In several columns the Gaussian and the city-block Laplacian are products over
columns. The other kernels are scale mixtures of normal distributions (`scale_mixture`), and each of these is a product. With a full
covariance there is no product. Two columns are then integrated by Owen's function and more columns by lattice rules, with an
estimated error (`_engine.boxes`).
"""

from __future__ import annotations

import numpy as np

from reduset._engine import box_sums, normal_tail, oblique_box_sums
from reduset._messages import NotReachedWarning, warn
from reduset._types import Array, Floats
from reduset.kernels import ANY_FAMILY
from reduset.kernels.base import Kernel, RadialKernel


def boxes_of(kernel: Kernel, points: Floats, weights: Array, low: Array, high: Array, tol: float) -> Array:
    """(q,) Σᵢ wᵢ ∫ φ(x, xᵢ) dx over each box between ``low`` and ``high``, (q, d), φ scaled to integrate to 1."""
    if not isinstance(kernel, RadialKernel):
        raise TypeError(f"{kernel!r} is not a density, so no box has a probability; use {ANY_FAMILY}")
    d = points.shape[1]
    kernel.density_log_peak(d)  # raises `ValueError` if φ is not a density
    shape, scales = kernel.covariance, kernel.column_units
    is_oblique = np.ndim(shape) == 2 and np.count_nonzero(shape) > np.count_nonzero(np.diagonal(shape))
    mixture = kernel.scale_mixture(d)
    if not is_oblique:
        units = kernel.width if scales is None else kernel.width * scales
        if mixture is None:
            return box_sums(points, weights, low, high, units, kernel.tail)
        return box_sums(points, weights, low, high, units, normal_tail, mixture.nodes())
    if mixture is None and kernel.name != "gaussian":
        raise ValueError(
            f"boxes along the axes have no closed form for {kernel!r}, whose axes are oblique; count draws: "
            "((x > low) & (x < high)).all(axis=1).mean() of x = mean.sample(100_000)"
        )
    covariances = (kernel.width**2 * np.asarray(shape, np.float64))[None]
    sums, errors = oblique_box_sums(points, weights, low, high, covariances, tol, None if mixture is None else mixture.at)
    warn_if_imprecise(errors, tol, weights)
    return sums


def warn_if_imprecise(errors: Array, tol: float, weights: Array) -> None:
    """Warn if the error of lattice rules exceeds ``tol``."""
    worst = float(np.max(errors)) / float(np.abs(weights).sum())
    if worst > tol:
        warn(f"tol={tol:g} was not reached: a box has a standard error of {worst:.2g}; use a larger tol", NotReachedWarning)
