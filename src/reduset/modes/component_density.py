"""A density of one bandwidth as a mixture of few components, for uses that read it often: binned, simplified, and what that lost.

Many rows in little space, such as the pixels of an image, are binned on a grid first, which makes thousands of components of
hundreds of thousands; the bound on what that moves widens the interval of the error (`grid`).

How many components: two equal bumps of bandwidth h have one mode between them up to a distance of two h, and two modes beyond. So
groups of that radius are about as fine as modes can be told apart, and much larger ones hide some.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset import _validate
from reduset._messages import quietly
from reduset.certificate import Certificate
from reduset.kernels import Gaussian
from reduset.kernels.base import exponential
from reduset.mean import KernelMean
from reduset.mixture import Mixture
from reduset.modes.grid import binned
from reduset.simplification import Simplification, simplify
from reduset.simplification.grouping import centres_within

MANY = 10_000  # rows, above which they are binned
SIDE = 1 / 3  # bandwidths, of the cells; less for a tolerance
RADIUS = 2.0  # bandwidths, of the groups where nothing is asked for; their modes are those of all rows on photographs
COMPONENTS = 100  # where that takes too many groups
ROUNDS = 10  # of regrouping: more move hardly a mode
CONFIDENCE = 0.95


def full_mixture(full: KernelMean) -> Mixture:
    """All of it, as a copy: the data are the caller's and may change."""
    return Mixture.from_mean(KernelMean(np.array(full.atoms), full.weights, full.kernel))


def gathered(full: KernelMean, width: float, side: float = SIDE) -> tuple[KernelMean, float]:
    """The density with its rows in cells, where they are many, and a bound on what that moved (`binned`)."""
    return binned(full, width, side) if full.size > MANY else (full, 0.0)


def simplified_density(full: KernelMean, kernel: Gaussian, most: int, **options: Any) -> tuple[Simplification, Certificate]:
    """The mixture that is a density's surrogate, and what it lost.

    The local fits and all weights together, without the joint descent: it lowers the L2 error, and takes longer than all else,
    but moves hardly a mode.

    Parameters
    ----------
    full : of a Gaussian without covariance, normalized, weights not negative
    kernel : its kernel
    most : components, where ``options`` have no goal: groups of a radius of two bandwidths, or 100 where these are more than that
    **options : as `simplify`; where ``tol`` is not reached, ``reached`` says so and no warning does
    """
    tol = options.get("tol", 1.0)
    # the loss grows with the square of the side, so that with a tolerance it is a small and fixed part of it
    side = SIDE * float(np.sqrt(np.clip(_validate.positive(tol, "tol", "it is a share, 0.01 for one percent"), 1e-12, 1.0)))
    f, moved = gathered(full, kernel.width, side)
    if not options.keys() & {"size", "tol", "radius"}:
        options |= _usual_goal(f, RADIUS * kernel.width, most)
    for name in ("size", "max_size"):
        if name in options:
            options[name] = min(options[name], f.size)
    with quietly():
        found = simplify(f, rounds=ROUNDS, polish=False, **options)
    return found, _certificate(found, kernel, moved)


def _usual_goal(f: KernelMean, radius: float, most: int) -> dict[str, Any]:
    rows = np.flatnonzero(f.weights)
    _, reach = centres_within(np.asarray(f.atoms[rows], np.float64), f.weights[rows], radius, most)
    return {"radius": radius} if reach <= radius else {"size": COMPONENTS}


def _certificate(found: Simplification, kernel: Gaussian, moved: float) -> Certificate:
    """The measured error is that of the binned density; to its interval comes what binning can have moved."""
    g, h = found.mixture, kernel.width
    round_ = Mixture(g.weights, (g.means - g.means[0]) / h, g.covariances / h**2)
    heaped = round_.norm() * (4 * np.pi) ** (g.dimension / 4)  # ‖g‖/‖φ‖
    low, high = found.interval
    least = heaped / (1 + high)  # of the binned density
    exact = low == high and moved == 0
    if moved > 0:
        low = max((low * least - moved) / (least + moved), 0.0)
        high = (high * least + moved) / (least - moved) if moved < least else float("inf")
    energy = exponential(kernel.log_energy(g.dimension))
    return Certificate(
        relative_error=found.error,
        interval=(low, high),
        confidence=1.0 if exact else CONFIDENCE,
        method="exact" if exact else "components",
        norm=heaped * float(np.sqrt(energy)),
        energy=energy,
        bound=None,
        theorem_bound=None,
        sup_bound=None,
        incoherence=None,
        bandwidth=h,
    )
