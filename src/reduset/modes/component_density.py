"""A density of one bandwidth as a mixture of few components, with its error.

Many rows in a small range, such as the pixels of an image, are binned on a grid first. This turns hundreds of thousands of
components into thousands. Let δᵢ be the vector from the mean of its cell to point i, in bandwidths. The density fₛ that has all
weight of a cell at its mean satisfies, for a Gaussian φ,

    ‖f − fₛ‖ ≤ (√3/4) Σᵢ wᵢ |δᵢ|² ‖φ‖        in L2

Σ wᵢδᵢ = 0 in each cell. So only the remainder of Taylor's formula is left: the second derivative along δᵢ with the factor ½, whose
norm is (√3/2)|δᵢ|²‖φ‖. This bound widens the interval of the error. O(n·d).

Two equal kernels of bandwidth h have one mode up to a distance of 2h, and two modes beyond. So groups of this radius preserve the
modes, and much larger ones hide some.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset import _validate
from reduset._engine import Frame
from reduset._messages import quietly
from reduset._types import Array, Labels
from reduset.certificate import Certificate
from reduset.kernels import Gaussian, exponential
from reduset.mean import KernelMean
from reduset.mixture import Mixture
from reduset.simplification import Simplification, centres_within, simplify

MIN_BINNED_ROWS = 10_000
CELL_SIDE = 1 / 3  # bandwidths; less with a tolerance
DEFAULT_RADIUS = 2.0  # bandwidths; on photographs, the modes equal those of all rows
DEFAULT_COMPONENTS = 100  # if this radius needs too many groups
ROUNDS = 10  # of regrouping; further ones hardly move a mode
CONFIDENCE = 0.95


def cells(z: Array, side: float) -> tuple[Labels, Labels]:
    """The first point of each occupied cell of a grid, and the cell number of every point."""
    whole = (np.floor(z / side) + 0.0).view(np.uint64)  # the bits of whole numbers of any size; + 0.0 turns -0 into 0
    with np.errstate(over="ignore"):
        keys = whole[:, 0].copy()
        for column in whole.T[1:]:  # a 64-bit hash: two of a million cells collide with a probability of 1e-8
            keys = (keys ^ (keys >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15) + column
        keys = (keys ^ (keys >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first, inverse


def binned(mean: KernelMean, width: float, side: float) -> tuple[KernelMean, float]:
    """The density with the points of each cell at their mean, and a bound on ‖f − fₛ‖/‖φ‖ for a Gaussian of this bandwidth.

    Points of weight 0 are omitted.

    Parameters
    ----------
    mean : with non-negative weights
    side : of the cells, in bandwidths
    """
    rows = np.flatnonzero(mean.weights)
    frame = Frame.around(mean.atoms, 1 / width)
    z, weights = frame.apply(mean.atoms[rows]), mean.weights[rows]
    first, cell = cells(z, side)
    totals = np.bincount(cell, weights).astype(np.float64)
    z -= z[first][cell]  # relative to the cell, which keeps all digits in sums
    shift = np.stack([np.bincount(cell, weights * column) for column in z.T], axis=1) / totals[:, None]
    scatter = weights @ np.square(z - shift[cell]).sum(axis=1)
    atoms = np.asarray(mean.atoms[rows[first]], np.float64) + width * shift
    return KernelMean(atoms, totals, mean.kernel), float(np.sqrt(3) / 4 * scatter)


def binned_if_large(full: KernelMean, width: float, side: float = CELL_SIDE) -> tuple[KernelMean, float]:
    """The density with its rows in cells if there are many, and a bound on the error (`binned`)."""
    return binned(full, width, side) if full.size > MIN_BINNED_ROWS else (full, 0.0)


def simplified_density(
    full: KernelMean, kernel: Gaussian, max_components: int, **options: Any
) -> tuple[Simplification, Certificate]:
    """The mixture that approximates a density, and its error.

    It has local fits and joint weights, without the joint descent. The descent would lower the L2 error, take most of the time, and
    hardly move a mode.

    Parameters
    ----------
    full : of a Gaussian without covariance, normalized, with non-negative weights
    kernel : its kernel
    max_components : without a goal in ``options``: groups with a radius of two bandwidths, or 100 if there would be more than this
    **options : as `simplify`; a missed ``tol`` sets ``reached`` and does not warn
    """
    tol = options.get("tol", 1.0)
    # the binning error grows with the square of the side, so it is a small and fixed part of the tolerance
    side = CELL_SIDE * float(np.sqrt(np.clip(_validate.positive(tol, "tol", "it is a ratio, 0.01 for one percent"), 1e-12, 1.0)))
    f, moved = binned_if_large(full, kernel.width, side)
    if not options.keys() & {"size", "tol", "radius"}:
        rows, radius = np.flatnonzero(f.weights), DEFAULT_RADIUS * kernel.width
        _, reached = centres_within(np.asarray(f.atoms[rows], np.float64), f.weights[rows], radius, max_components)
        options |= {"radius": radius} if reached <= radius else {"size": DEFAULT_COMPONENTS}
    for name in ("size", "max_size"):
        if name in options:
            options[name] = min(options[name], f.size)
    with quietly():
        simplification = simplify(f, rounds=ROUNDS, polish=False, **options)
    return simplification, _certificate(simplification, kernel, moved)


def _certificate(simplification: Simplification, kernel: Gaussian, moved: float) -> Certificate:
    """The measured error of the binned density, with an interval widened by the bound on the binning error."""
    g, h = simplification.mixture, kernel.width
    scaled = Mixture(g.weights, (g.means - g.means[0]) / h, g.covariances / h**2)
    norm = scaled.norm() * (4 * np.pi) ** (g.dimension / 4)  # ‖g‖/‖φ‖
    low, high = simplification.interval
    min_norm = norm / (1 + high)  # of the binned density
    exact = low == high and moved == 0
    if moved > 0:
        low = max((low * min_norm - moved) / (min_norm + moved), 0.0)
        high = (high * min_norm + moved) / (min_norm - moved) if moved < min_norm else float("inf")
    energy = exponential(kernel.log_energy(g.dimension))
    return Certificate(
        relative_error=simplification.error,
        interval=(low, high),
        confidence=1.0 if exact else CONFIDENCE,
        method="exact" if exact else "components",
        norm=norm * float(np.sqrt(energy)),
        energy=energy,
        bound=None,
        theorem_bound=None,
        sup_bound=None,
        incoherence=None,
        bandwidth=h,
    )
