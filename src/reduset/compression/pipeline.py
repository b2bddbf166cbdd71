"""The pipeline at the bandwidth of a plan, given or searched for: select → weigh → certify, in a loop until the goal is reached.

The bandwidth for ``tol`` alone is the scale of the sampling error, at which n rows are off their distribution by the tolerance:

    E ‖f − distribution‖² / ‖f‖² = Σ wᵢ² (1 − ‖f‖²) / ‖f‖²        in units where every kernel function has norm 1 and Σ w = 1

grows as the bandwidth falls. Where it is tol², finer detail is noise by more than tol, and coarser scales are better known than
that. The more rows, the finer. ‖f‖² comes from pairs of rows; O(1) in n.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from reduset.certificate.by_scale import bandwidth_where, square_norms, sum_of_squares
from reduset.compression.certifying import Found
from reduset.compression.components import find_component_bandwidth, find_components
from reduset.compression.plan import COMPONENTS, GIVEN, NOISE, Plan
from reduset.compression.resolution import at_coarser_scales, find_bandwidth
from reduset.compression.sizing import find_size
from reduset.compression.target import Run
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean, with_bandwidth
from reduset.mixture.component_mean import as_density

COARSER, FINER, STEPS = 6, 14, 4  # octaves from the median distance, and steps an octave
MORE = 1.25  # times as many pieces, if coarser scales need them


def find(full: KernelMean, plan: Plan, run: Run) -> Found:
    """What a plan asks for, at its bandwidth."""
    if plan.pieces == COMPONENTS:
        full = as_density(full)  # norms are then in the units of the result
    if plan.bandwidth == GIVEN:
        return _at_bandwidth(full, plan, run)
    if plan.bandwidth == NOISE:
        found = _at_noise(full, plan, run)
        if found.reached:
            return found
    found = (find_component_bandwidth if plan.pieces == COMPONENTS else find_bandwidth)(full, plan, run)
    way_out = f"it is beyond so few at any bandwidth tried: give more {plan.pieces}, or a larger tol"
    return replace(found, way_out=way_out, resolution=found.resolution if found.reached else None)


def bandwidth_of_plan(full: KernelMean, plan: Plan, run: Run) -> KernelMean:
    """The mean at the bandwidth of a plan."""
    if plan.bandwidth == GIVEN:
        return full
    if plan.bandwidth == NOISE:
        return with_bandwidth(full, noise_bandwidth(full, plan.tol or 0.0, run.rng))
    return find(full, plan, run).target.full


def _at_bandwidth(full: KernelMean, plan: Plan, run: Run) -> Found:
    return find_components(full, plan, run) if plan.pieces == COMPONENTS else find_size(run.target(full), plan)


def _at_noise(full: KernelMean, plan: Plan, run: Run) -> Found:
    """The fewest pieces within the tolerance at the scale of the sampling error and at coarser ones, if there are any."""
    tol, median = plan.tol or 0.0, cast(RadialKernel, full.kernel).width
    first = _at_bandwidth(with_bandwidth(full, noise_bandwidth(full, tol, run.rng)), plan, run)
    found, _ = at_coarser_scales(first, tol, median)
    while first.reached and not found.reached and found.size < len(found.prefixes.atoms):
        size = min(int(MORE * found.size) + 1, len(found.prefixes.atoms))
        found, _ = at_coarser_scales(replace(found, size=size), tol, median)
    return replace(found, resolution=None if found.resolution is None else replace(found.resolution, by_noise=True))


def noise_bandwidth(mean: KernelMean, tol: float, rng: np.random.Generator) -> float:
    """The bandwidth of the sampling error, between those from far beyond the spread of the rows to where they do not overlap."""
    kernel = cast(RadialKernel, mean.kernel)
    widths = kernel.width * 2.0 ** np.arange(COARSER, -FINER, -1 / STEPS)
    squares = sum_of_squares(mean.weights) / mean.mass**2
    whole = square_norms(mean, sum_of_squares(mean.weights), kernel, widths, rng)[:, 0] / mean.mass**2
    noise = np.sqrt(squares * np.clip(1 - whole, 0.0, None) / whole)
    found = bandwidth_where(widths, np.maximum.accumulate(noise), tol)  # it rises, up to rounding and the pairs drawn
    return float(widths[0]) if found is None else found
