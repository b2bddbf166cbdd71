"""A density of one bandwidth as a mixture of a small number of components, with its error.

Many rows in a small range, such as the pixels of an image, are binned on a grid first. This turns hundreds of thousands of
components into thousands. Let δᵢ be the vector from the mean of its cell to point i, in bandwidths. Let fₛ be the density with all
weight of a cell at its mean. For a Gaussian φ, it satisfies in L2

    ‖f − fₛ‖ ≤ (√3/4) Σᵢ wᵢ |δᵢ|² ‖φ‖

Σ wᵢδᵢ = 0 in each cell. So only the remainder of Taylor's formula is left: half the second derivative along δᵢ. The norm of this
derivative is (√3/2)|δᵢ|²‖φ‖. The bound widens the confidence interval of the error. Binning costs O(n·d).

Two equal kernels of bandwidth h have one mode up to a distance of 2h, and two modes at larger distances. So groups of radius 2h
preserve the modes, and much larger groups merge modes.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine import Frame, add, in_blocks, over_blocks
from reduset._messages import quietly
from reduset._types import Array, Floats, Labels
from reduset.certificate import Certificate
from reduset.density import merge_rows
from reduset.kernels import Gaussian, exponential
from reduset.mean import KernelMean
from reduset.mixture import Mixture
from reduset.simplification import Simplification, centres_within, simplify

MIN_BINNED_ROWS = 10_000
CELL_SIDE = 1 / 3  # Bandwidths. A tolerance makes cells smaller.
DEFAULT_RADIUS = 2.0  # Bandwidths. On photographs, the modes equal the modes of all rows.
DEFAULT_COMPONENTS = 100  # Number of components if this radius needs too many groups.
ROUNDS = 10  # Rounds of regrouping. Further rounds change the modes little.
CONFIDENCE = 0.95


def cells(z: Array, side: float) -> tuple[Labels, Labels]:
    """The first point of each occupied cell of a grid, and the cell number of every point."""
    _, first, inverse = np.unique(_cell_keys(np.floor(z / side)), return_index=True, return_inverse=True)
    return first, inverse


def _cell_keys(corners: Array) -> NDArray[np.uint64]:
    """A number for each cell, from the whole numbers of its corner."""
    whole = (corners + 0.0).view(np.uint64)  # Bits of integers of any size. Adding 0.0 turns -0 into 0.
    with np.errstate(over="ignore"):
        keys = whole[:, 0].copy()
        for column in whole.T[1:]:  # A 64-bit hash: the probability of a collision in a million cells is about 1e-8.
            keys = (keys ^ (keys >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15) + column
        mixed: NDArray[np.uint64] = (keys ^ (keys >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return mixed  # on the device of the corners


def binned(mean: KernelMean, width: float, side: float) -> tuple[KernelMean, float]:
    """The density with the points of each cell at their mean, and a bound on ‖f − fₛ‖/‖φ‖.

    The bound is for a Gaussian of this bandwidth. Points of weight 0 are omitted.

    Parameters
    ----------
    mean : KernelMean
        Density with non-negative weights.
    width : float
        Bandwidth of the Gaussian.
    side : float
        Side of the cells, in bandwidths.
    """
    merged = cast(KernelMean, merge_rows(mean, Gaussian(width), side))
    frame = Frame.around(mean.atoms, 1 / width)
    scatter = _sum_of_squares(mean.atoms, mean.weights, frame) - _sum_of_squares(merged.atoms, merged.weights, frame)
    return merged, float(np.sqrt(3) / 4 * max(scatter, 0.0))


@over_blocks(add)
def _sum_of_squares(points: Floats, weights: Array, frame: Frame) -> float:
    return float(weights @ np.square(frame.apply(points)).sum(axis=1))


def binned_if_large(full: KernelMean, width: float, side: float = CELL_SIDE) -> tuple[KernelMean, float]:
    """The density, `binned` if it has more than 10,000 rows, and a bound on the binning error."""
    if full.size > MIN_BINNED_ROWS:
        return binned(full, width, side)
    return (KernelMean(full.atoms[:], full.weights, full.kernel) if in_blocks(full.atoms) else full), 0.0


def simplified_density(
    full: KernelMean, kernel: Gaussian, max_components: int, **options: Any
) -> tuple[Simplification, Certificate]:
    """The mixture that approximates a density, and its error.

    The mixture has local fits and joint weights, but no joint descent. A descent would lower the L2 error. But it would take most
    of the time and change the modes little.

    Parameters
    ----------
    full : KernelMean
        Density of a normalized Gaussian without covariance. Its weights are non-negative.
    kernel : Gaussian
        Kernel of the density.
    max_components : int
        Limit for the default, groups with a radius of two bandwidths. If this needs more groups, there are 100 components.
    **options : options of `simplify`
        One of them may set a goal instead. If ``tol`` is not reached, ``reached`` is False and no warning is issued.
    """
    tol = options.get("tol", 1.0)
    # The binning error grows with the square of the side. So it is a small and fixed part of the tolerance.
    side = CELL_SIDE * float(np.sqrt(np.clip(_validate.positive(tol, "tol", "it is a ratio, 0.01 for one percent"), 1e-12, 1.0)))
    f, binning_error = binned_if_large(full, kernel.width, side)
    if not options.keys() & {"size", "tol", "radius"}:
        rows, radius = np.flatnonzero(f.weights), DEFAULT_RADIUS * kernel.width
        _, reached = centres_within(np.asarray(f.atoms[rows], np.float64), f.weights[rows], radius, max_components)
        options |= {"radius": radius} if reached <= radius else {"size": DEFAULT_COMPONENTS}
    for name in ("size", "max_size"):
        if name in options:
            options[name] = min(options[name], f.size)
    with quietly():
        simplification = simplify(f, rounds=ROUNDS, polish=False, **options)
    return simplification, _certificate(simplification, kernel, binning_error)


def _certificate(simplification: Simplification, kernel: Gaussian, binning_error: float) -> Certificate:
    """The measured error for the binned density. The bound on the binning error widens its interval."""
    g, h = simplification.mixture, kernel.width
    scaled = Mixture(g.weights, (g.means - g.means[0]) / h, g.covariances / h**2)
    norm = scaled.norm() * (4 * np.pi) ** (g.dimension / 4)  # ‖g‖/‖φ‖
    low, high = simplification.interval
    min_norm = norm / (1 + high)  # Lower bound on the norm of the binned density.
    exact = low == high and binning_error == 0
    if binning_error > 0:
        low = max((low * min_norm - binning_error) / (min_norm + binning_error), 0.0)
        high = (high * min_norm + binning_error) / (min_norm - binning_error) if binning_error < min_norm else float("inf")
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
