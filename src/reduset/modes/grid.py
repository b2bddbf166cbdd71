"""Points in the cells of a grid: which share one, and a density whose points in a cell are one.

With δᵢ from the mean of its cell to point i, in bandwidths, the density fₛ that has all weight of a cell at its mean is near f:

    ‖f − fₛ‖ ≤ (√3/4) Σᵢ wᵢ |δᵢ|² ‖φ‖        in L2, for a Gaussian φ

since Σ wᵢδᵢ = 0 in each cell leaves the second derivative along δᵢ, whose norm is (√3/2)|δᵢ|²‖φ‖, in the remainder of Taylor's
formula with its factor ½. O(n·d).
"""

from __future__ import annotations

import numpy as np

from reduset._engine import Frame
from reduset._types import Array, Labels
from reduset.mean import KernelMean


def cells(z: Array, side: float) -> tuple[Labels, Labels]:
    """The first point of each occupied cell of a grid, and for every point the number of its cell."""
    whole = (np.floor(z / side) + 0.0).view(np.uint64)  # the bits of whole numbers, however large; + 0.0 has one zero of the two
    with np.errstate(over="ignore"):
        keys = whole[:, 0].copy()
        for column in whole.T[1:]:  # a hash of 64 bits: two cells out of a million share one with a chance of 1e-8
            keys = (keys ^ (keys >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15) + column
        keys = (keys ^ (keys >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    _, first, joined = np.unique(keys, return_index=True, return_inverse=True)
    return first, joined


def binned(mean: KernelMean, width: float, side: float) -> tuple[KernelMean, float]:
    """The density with the points of each cell at their mean, and a bound on ‖f − fₛ‖/‖φ‖ for a Gaussian of this bandwidth.

    Points without weight are left out.

    Parameters
    ----------
    mean : weights not negative
    side : of the cells, in bandwidths
    """
    rows = np.flatnonzero(mean.weights)
    frame = Frame.around(mean.atoms, 1 / width)
    z, weights = frame.apply(mean.atoms[rows]), mean.weights[rows]
    first, cell = cells(z, side)
    totals = np.bincount(cell, weights).astype(np.float64)
    z -= z[first][cell]  # within the cell, where no digits are lost in sums
    shift = np.stack([np.bincount(cell, weights * column) for column in z.T], axis=1) / totals[:, None]
    scatter = weights @ np.square(z - shift[cell]).sum(axis=1)
    places = np.asarray(mean.atoms[rows[first]], np.float64) + width * shift
    return KernelMean(places, totals, mean.kernel), float(np.sqrt(3) / 4 * scatter)
