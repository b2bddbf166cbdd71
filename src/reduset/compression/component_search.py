"""How many components, how wrong, how fine: the searches of `sizing` and `resolution` for pieces that are fitted and not chosen.

Laws do not depend on the bandwidth with which they are looked at, but on the one they were fitted for. So the resolution is found
by fitting twice: for the scale at which the moments of groups of rows are near the tolerance, then for the one at which these first
components are. Where the certificate says no, the same components are looked at with a wider kernel.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from reduset._progress import Progress
from reduset.certificate.by_scale import ErrorProfile
from reduset.compression.builder import Builder
from reduset.compression.choice import bandwidth_where
from reduset.compression.component_fit import fit_components, fit_moments
from reduset.compression.prefixes import Prefixes
from reduset.compression.resolution import BuilderFor, Resolved, require_scales, with_bandwidth
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean
from reduset.mixture.component_mean import mean_of
from reduset.mixture.pieces import ComponentPieces
from reduset.simplification.pipeline import fewest

ONE_PART_IN = 10  # of the size found for a tolerance
LOOSE = 3.0  # times the tolerance that moments of groups are allowed: a descent makes so much good
FITTED = "fitted"  # where other pieces have the name of their selector
TRIES, WIDER = 24, 2**0.125


class ComponentSearch:
    """Components of one mean, by chance of one generator."""

    def __init__(self, full: KernelMean, kind: str, new: BuilderFor, rng: np.random.Generator, progress: Progress) -> None:
        self._full, self._kind, self._new, self._rng, self._progress = full, kind, new, rng, progress

    def by_size(self, size: int) -> tuple[Builder, Prefixes]:
        """So many, at the bandwidth of the mean."""
        builder = self._new(self._full)
        return builder, self._placed(builder, self._fitted(builder, size))

    def by_tolerance(self, tol: float, most: int) -> tuple[Builder, Prefixes, bool]:
        """About the fewest within the tolerance, and whether it was reached."""
        (builder, prefixes), reached = fewest(
            self.by_size,
            lambda found: found[1].error(len(found[1].atoms)).interval[1] <= tol,
            most,
            ONE_PART_IN,
        )
        return builder, prefixes, reached

    def by_resolution(self, size: int, tol: float) -> Resolved:
        """So many at the finest bandwidth at which they are within the tolerance, there and at every coarser scale."""
        first = self._new(self._full)
        rough = self._profile(first, fit_moments(self._full, size, self._rng))
        bandwidth = _finest(rough, LOOSE * tol)
        for _ in range(2):
            builder = self._new(with_bandwidth(self._full, bandwidth))
            pieces = self._fitted(builder, size)
            bandwidth = _finest(self._profile(builder, pieces), tol)
        for _ in range(TRIES):
            builder = self._new(with_bandwidth(self._full, bandwidth))
            prefixes = self._placed(builder, pieces)
            median = cast(RadialKernel, self._full.kernel).width
            found = Resolved.looked_at(builder, prefixes, tol, median, FITTED, random=size)
            if found.reached:
                break
            bandwidth *= WIDER
        return found

    def _fitted(self, builder: Builder, size: int) -> ComponentPieces:
        with builder.clock.stage("fit"):
            return fit_components(builder.full, size, self._rng, self._progress.stage("fitting"))

    def _placed(self, builder: Builder, pieces: ComponentPieces) -> Prefixes:
        builder.place(pieces, None, moved=True)
        return builder.prefixes(self._kind)

    def _profile(self, builder: Builder, pieces: ComponentPieces) -> ErrorProfile:
        """What these lose at every scale, with the best weights at that of the builder."""
        builder.place(pieces, None, moved=True)
        scales = require_scales(builder.scales())
        weights = builder.span.weights(self._kind, self._full.mass, builder.size)
        small = mean_of(builder.span.atoms, weights, builder.full.kernel)
        return scales.profile(small, scales.bandwidths, 0.95, len(pieces))


def _finest(profile: ErrorProfile, tol: float) -> float:
    """The finest bandwidth within the tolerance, or the coarsest there is."""
    found = bandwidth_where(profile.bandwidths, profile.intervals[:, 1], tol)
    return float(profile.bandwidths[0]) if found is None else found
