"""A bag as few Gaussian components with covariances of their own: its density at a given bandwidth, simplified.

    f = Σ w_i N(x_i, h²Σ)  →  g = Σ α_k N(t_k, H_k),  the same mass, no weight negative

Where bumps all have the width h, hundreds of them leave the shoulders and tails of a density out, on which a divergence hangs: they
are lost in every logarithm there. A component that is as wide as what it stands for has them. O(n·m·d²) a round of the fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset._messages import quietly
from reduset._types import Floats
from reduset.certificate import Certificate
from reduset.kernels import Gaussian
from reduset.kernels.base import exponential
from reduset.mean import KernelMean
from reduset.mixture import Mixture
from reduset.simplification import Simplification, simplify

STEPS = 5  # of the joint descent: more halve the L2 error again, and hardly change a divergence
CONFIDENCE = 0.95  # of a simplification's interval


@dataclass(frozen=True)
class BagComponents:
    """A bag's density on components of its own.

    Attributes
    ----------
    mean : Mixture of mass 1
    certificate : what it lost, in L2
    n_samples : how many points the bag has
    reached : whether ``tol`` was reached
    """

    mean: Mixture
    certificate: Certificate
    n_samples: int
    reached: bool

    @property
    def size(self) -> int:
        """The number of components."""
        return self.mean.size

    def __str__(self) -> str:
        kept = f"{self.n_samples:,} points as {self.size:,} Gaussian components in {self.mean.dimension}-D"
        return "\n  ".join([kept, *str(self.certificate).splitlines()])


def as_components(
    points: Floats, kernel: Gaussian, size: int | None, tol: float | None, max_size: int, rng: np.random.Generator
) -> BagComponents:
    """So many components for a bag, or about the fewest within ``tol``; as many as there are points at most."""
    full = KernelMean.from_samples(np.ascontiguousarray(points), kernel)  # products round by the order in memory
    goal = {"size": min(size, full.size)} if size is not None else {"tol": tol, "max_size": min(max_size, full.size)}
    with quietly():  # said once, of all the bags that did not reach it
        found = simplify(full, polish=STEPS, rng=rng, **goal)
    return BagComponents(found.mixture / found.mixture.mass, _certificate(found, kernel), full.size, found.reached)


def require_gaussian(kernel: object) -> Gaussian:
    """The kernel, whose means are mixtures."""
    if not isinstance(kernel, Gaussian):
        raise TypeError(f"pieces='components' are Gaussian, got kernel={kernel!r}; use a Gaussian kernel, or pieces='atoms'")
    return kernel


def _certificate(found: Simplification, kernel: Gaussian) -> Certificate:
    exact = found.interval[0] == found.interval[1]
    return Certificate(
        relative_error=found.error,
        interval=found.interval,
        confidence=1.0 if exact else CONFIDENCE,
        method="exact" if exact else "components",
        norm=found.mixture.norm(),
        energy=exponential(kernel.log_energy(found.mixture.dimension)),
        bound=None,
        theorem_bound=None,
        sup_bound=None,
        incoherence=None,
    )
