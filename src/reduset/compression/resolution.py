"""The third unknown: how fine a look so many atoms bear, when the error is to stay within a tolerance.

    resolution = the finest bandwidth h at which the best weights of m atoms lose at most tol, there and at every coarser scale

Atoms are chosen at the scale of the data. Their error as a function of the bandwidth is then looked at where the waves of one pass
have a rung: first by how far the masses of the nearest rows go, which are the same at every scale and cost no solve, then with the
best weights at the few bandwidths around that. Between the last two the error is taken for a power of the bandwidth. What is found
so is compressed and certified like any other; where the certificate, or the profile of coarser scales, says no, it widens a little.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from reduset import _validate
from reduset._types import Array
from reduset.certificate.by_scale import ErrorProfile
from reduset.compression.builder import Builder
from reduset.compression.prefixes import Prefixes
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean
from reduset.mixture.component_mean import mean_of
from reduset.select import Selector
from reduset.weights.counts import counts

SIZE, TOL = 1000, 0.05  # of a call that says neither
MARGIN = 1.02  # of the tolerance: what weights of the simplex may lose beside those that only add up
FEW_TRIES, TRIES = 4, 16  # by an eighth of an octave, then by half of one
FINER = (0.75, 0.87)  # of the resolution of atoms that stay: where moved ones are tried

BuilderFor = Callable[[KernelMean], Builder]


@dataclass(frozen=True)
class Resolution:
    """How fine a result sees.

    Attributes
    ----------
    bandwidth : the finest at which the error is within ``tol``, there and at every coarser scale
    median : the bandwidth of the scale of the data, for comparison
    random_rows : the finest at which as many random rows are within ``tol``; None where they are at none
    by_noise : whether the bandwidth is that of the sample's own noise, and not the finest that so many atoms bear
    """

    bandwidth: float
    tol: float
    median: float
    random_rows: float | None
    by_noise: bool = False


@dataclass(frozen=True)
class Resolved:
    """A builder at the resolution, the weights there, and whether the tolerance is kept; by how many pieces, or by all."""

    builder: Builder
    prefixes: Prefixes
    resolution: Resolution
    reached: bool
    size: int | None = None

    @classmethod
    def looked_at(
        cls, builder: Builder, prefixes: Prefixes, tol: float, median: float, size: int | None = None, random: int | None = None
    ) -> Resolved:
        """What these pieces, the first ``size`` or all, lose at the builder's bandwidth and at coarser ones."""
        m, bandwidth = size or len(prefixes.atoms), cast(RadialKernel, builder.full.kernel).width
        scales, error = builder.scales(), prefixes.error(m)
        small = mean_of(prefixes.atoms[:m], error.weights, builder.full.kernel)
        profile = None if scales is None else scales.profile(small, scales.bandwidths, prefixes.confidence, random or m)
        reached = error.interval[1] <= tol and (profile is None or coarser_end(profile, bandwidth) <= tol)
        rows = None if profile is None else first_beyond(profile, tol)
        return cls(builder, prefixes, Resolution(bandwidth, tol, median, rows), reached, size)


def resolve(full: KernelMean, selector: Selector, size: int, tol: float, kind: str, steps: int | None, new: BuilderFor) -> Resolved:
    """The resolution of a mean whose kernel has the bandwidth of the scale of the data.

    Atoms of selectors that look through the kernel are chosen twice: at that scale, and at the resolution of the first ones.
    """
    found = ResolutionSearch(full, selector, size, tol, kind, steps if selector.scale_free else None, new).found()
    if selector.scale_free or not found.reached:
        return found
    again = ResolutionSearch(found.builder.full, selector, size, tol, kind, steps, new).found()
    if not again.reached or again.resolution.bandwidth > found.resolution.bandwidth:
        return found
    return replace(again, resolution=replace(again.resolution, median=found.resolution.median))


def with_bandwidth(mean: KernelMean, bandwidth: float) -> KernelMean:
    """The same with bumps of another bandwidth."""
    return KernelMean(mean.atoms, mean.weights, replace(cast(RadialKernel, mean.kernel), bandwidth=bandwidth))


def require_two_of_three(full: KernelMean, size: int | None, tol: float | None) -> None:
    """Refuse both of size and tol, or none, beside a bandwidth that is given."""
    if (size is None) == (tol is None):
        given = "give one of size and tol" if size is None else f"got size={size!r} and tol={tol!r} as well; leave one of them out"
        raise ValueError(
            "size (a number of atoms), tol (a relative error) and the kernel's bandwidth are three, of which two give the third: "
            f"this kernel, {full.kernel!r}, is one, so {given}, or give points and no kernel, for the finest bandwidth they bear"
        )


def by_default(full: KernelMean, size: int | None, tol: float | None) -> tuple[int, float]:
    """Size and tolerance of a search, checked, and what is not said."""
    most = min(SIZE, full.size)
    size = most if size is None else _validate.whole(size, "size", 1, full.size, "it is a number of the data's points")
    return size, TOL if tol is None else _validate.positive(tol, "tol", "it is a share, 0.01 for one percent")


class ResolutionSearch:
    """The search for one mean, whose kernel has the bandwidth of the scale of the data, and one selection."""

    def __init__(
        self, full: KernelMean, selector: Selector, size: int, tol: float, kind: str, steps: int | None, new: BuilderFor
    ) -> None:
        self._full, self._size, self._tol, self._kind, self._steps, self._new = full, size, tol, kind, steps, new
        self._first = new(full)
        self._first.open(selector)
        self._first.grow(size)
        scales = self._first.scales()
        if scales is None:
            raise ValueError(
                "kernel must be given for these points: they lie so far apart for their spread that no bandwidth between can be "
                "searched for; give one, such as Gaussian(1.0), with size or tol alone"
            )
        self._scales = scales

    def found(self) -> Resolved:
        """At the finest bandwidth within the tolerance; not reached where all that were tried are not."""
        grid = self._scales.bandwidths
        place = self._by_nearest_rows(grid)
        highs = {place: self._high(grid[place])}
        step = 1 if highs[place] <= self._tol / MARGIN else -1
        while 0 <= place + step < len(grid) and (highs[place] <= self._tol / MARGIN) == (step > 0):
            place += step
            highs[place] = self._high(grid[place])
        fine = max((k for k, high in highs.items() if high <= self._tol / MARGIN), default=0)
        bandwidth = self._between(grid, fine, highs)
        return self._certified(bandwidth)

    def _by_nearest_rows(self, grid: Array) -> int:
        """Where in the grid the masses of the nearest rows reach the tolerance: close to where the best weights do."""
        atoms = self._first.atoms.places
        small = KernelMean(atoms, counts(self._full, atoms), self._full.kernel)
        profile = self._scales.profile(small, grid, 0.95, self._size)
        return max(int(np.cumprod(profile.relative_errors <= self._tol).sum()) - 1, 0)

    def _high(self, bandwidth: float) -> float:
        """The largest upper end at this and at coarser bandwidths, of the best weights for it: those that add up, or any."""
        builder = self._at(bandwidth, ordered=True)
        kind = "free" if self._kind == "free" else "sum_to_one"
        weights = builder.span.weights(kind, self._full.mass, builder.size)
        small = KernelMean(builder.span.atoms, weights, builder.full.kernel)
        grid = self._scales.bandwidths
        return float(self._scales.profile(small, grid[grid >= bandwidth * (1 - 1e-9)], 0.95, self._size).intervals[:, 1].max())

    def _between(self, grid: Array, fine: int, highs: dict[int, float]) -> float:
        """Where the error, a power of the bandwidth between two of the grid, is the tolerance."""
        if fine + 1 not in highs or highs[fine] >= self._tol or not highs[fine] > 0:
            return float(grid[fine])
        slope = np.log(highs[fine + 1] / highs[fine]) / np.log(grid[fine] / grid[fine + 1])
        finer = np.log(self._tol / MARGIN / highs[fine]) / slope if slope > 0 else 0.0
        return float(max(grid[fine] * np.exp(-max(finer, 0.0)), grid[fine + 1]))

    def _at(self, bandwidth: float, ordered: bool = False) -> Builder:
        """The same atoms for another bandwidth."""
        atoms, builder = self._first.atoms, self._new(with_bandwidth(self._full, bandwidth))
        builder.place(atoms.places, atoms.rows, ordered=ordered)
        return builder

    def _certified(self, bandwidth: float) -> Resolved:
        if self._steps is not None:
            for factor in FINER:
                moved = self._tried(bandwidth * factor)
                if moved.reached:
                    return moved
        for k in range(TRIES):
            tried = self._tried(bandwidth)
            if tried.reached:
                break
            bandwidth *= 2**0.125 if k < FEW_TRIES else 2**0.5
        return tried

    def _tried(self, bandwidth: float) -> Resolved:
        builder = self._at(bandwidth)
        prefixes = builder.prefixes(self._kind) if self._steps is None else builder.refine(self._kind, self._steps)
        return Resolved.looked_at(builder, prefixes, self._tol, cast(RadialKernel, self._full.kernel).width, random=self._size)


def coarser_end(profile: ErrorProfile, bandwidth: float) -> float:
    """The largest upper end at coarser bandwidths."""
    return float(profile.intervals[profile.bandwidths > bandwidth * (1 + 1e-9), 1].max(initial=0.0))


def first_beyond(profile: ErrorProfile, tol: float) -> float | None:
    """The finest bandwidth at which random rows are within the tolerance, between those of the profile."""
    within = int(np.cumprod(profile.random_rows <= tol).sum())
    if within == 0:
        return None
    if within == len(profile.bandwidths) or profile.random_rows[within - 1] <= 0:
        return float(profile.bandwidths[within - 1])
    logs, widths = np.log(profile.random_rows), np.log(profile.bandwidths)
    share = (np.log(tol) - logs[within - 1]) / (logs[within] - logs[within - 1])
    return float(np.exp(widths[within - 1] + share * (widths[within] - widths[within - 1])))
