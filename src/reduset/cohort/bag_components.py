"""A bag as few Gaussian components with covariances of their own: its density at a given bandwidth, simplified.

    f = Σ w_i N(x_i, h²Σ)  →  g = Σ α_k N(t_k, H_k),  the same mass, no weight negative

Where bumps all have the width h, hundreds of them leave the shoulders and tails of a density out, on which a divergence hangs: they
are lost in every logarithm there. A component that is as wide as what it stands for has them. O(n·m·d²) a round of the fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from reduset._types import Floats
from reduset.certificate import Certificate
from reduset.compression import AtomRequest
from reduset.kernels import Gaussian
from reduset.mean import KernelMean
from reduset.mixture import ComponentMean, Mixture


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


def as_components(points: Floats, kernel: Gaussian, request: AtomRequest, rng: np.random.Generator) -> BagComponents:
    """The components asked for, of one bag; as many as there are points at most."""
    as_density = replace(kernel, normalized=True, space="l2")
    full = KernelMean.of_rows(np.ascontiguousarray(points[:]), as_density)  # products round by the order in memory
    found = request.compress(full, rng)
    mean = cast(ComponentMean, found.mean)
    return BagComponents(mean / mean.mass, found.certificate, full.size, found.reached)


def require_gaussian(kernel: object) -> Gaussian:
    """The kernel, whose means are mixtures."""
    if not isinstance(kernel, Gaussian):
        raise TypeError(f"pieces='components' are Gaussian, got kernel={kernel!r}; use a Gaussian kernel, or pieces='atoms'")
    return kernel
