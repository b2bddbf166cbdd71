"""The scale of the sample's own noise: where n rows are off the law they were drawn from by as much as a tolerance.

    E ‖f − law‖² / ‖f‖² = Σ wᵢ² (1 − ‖f‖²) / ‖f‖²        in units where every bump has norm 1 and weights add up to 1

grows as the bandwidth falls. Where it is tol², finer detail is noise by more than tol, and coarser scales are better known than
that: as fine as rows with this tolerance deserve to be kept. The more rows, the finer. ‖f‖² comes from pairs of rows; O(1) in n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np

from reduset.certificate.by_scale import square_norms, sum_of_squares
from reduset.compression.builder import Builder
from reduset.compression.choice import bandwidth_where
from reduset.compression.prefixes import Prefixes
from reduset.compression.resolution import Resolved
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean

COARSER, FINER, STEPS = 6, 14, 4  # octaves from the median distance, and steps an octave
MORE = 1.25  # times as many pieces, where coarser scales need them

Fewest = Callable[
    [KernelMean], tuple[Builder, Prefixes, int, bool]
]  # pieces within the tolerance at a mean's bandwidth: the fewest


def noise_bandwidth(mean: KernelMean, tol: float, rng: np.random.Generator) -> float:
    """The bandwidth, between those that are looked at: from far beyond the spread of the rows down to where they stand alone."""
    kernel = cast(RadialKernel, mean.kernel)
    widths = kernel.width * 2.0 ** np.arange(COARSER, -FINER, -1 / STEPS)
    squares = sum_of_squares(mean.weights) / mean.mass**2
    whole = square_norms(mean, sum_of_squares(mean.weights), kernel, widths, rng)[:, 0] / mean.mass**2
    noise = np.sqrt(squares * np.clip(1 - whole, 0.0, None) / whole)
    found = bandwidth_where(widths, np.maximum.accumulate(noise), tol)  # it rises, but for rounding and for the pairs drawn
    return float(widths[0]) if found is None else found


def at_noise(mean: KernelMean, bandwidth: float, tol: float, fewest: Fewest, selection: str) -> Resolved:
    """The fewest pieces within the tolerance at a bandwidth and at every coarser scale; not reached where there are none."""
    kernel = cast(RadialKernel, mean.kernel)
    builder, prefixes, size, reached = fewest(KernelMean(mean.atoms, mean.weights, replace(kernel, bandwidth=bandwidth)))
    found = Resolved.looked_at(builder, prefixes, tol, kernel.width, selection, size)
    while reached and not found.reached and size < len(prefixes.atoms):
        size = min(int(MORE * size) + 1, len(prefixes.atoms))
        found = Resolved.looked_at(builder, prefixes, tol, kernel.width, selection, size)
    return replace(found, resolution=replace(found.resolution, by_noise=True))
