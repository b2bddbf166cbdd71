"""The third unknown: how fine a look so many atoms bear, when the error is to stay within a tolerance.

    resolution = the finest bandwidth h at which the best weights of m atoms lose at most tol, there and at every coarser scale

The error of given atoms as a function of the bandwidth is looked at where the waves of one pass have a rung: first by how far the
masses of the nearest rows go, which are the same at every scale and cost no solve, then with the best weights at the few bandwidths
around that. Between the last two the error is taken for a power of the bandwidth. What is found so is compressed and certified like
any other; where the certificate, or the profile of coarser scales, says no, it widens a little. Where the finest rung is within the
tolerance, finer ones are asked for, until the rows stand alone.

Which atoms, by default (`choice`): centres of k-means or thinned rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from reduset import _validate
from reduset._types import Array
from reduset.certificate.by_scale import STEPS, ErrorProfile, Scales
from reduset.compression.builder import Builder
from reduset.compression.choice import Chosen, bandwidth_where, chosen_by, chosen_by_default, not_worse, while_random_rows_tell
from reduset.compression.prefixes import Prefixes
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean
from reduset.mixture.component_mean import mean_of
from reduset.select import Auto, Selector
from reduset.weights.isolated import isolated_groups, with_masses_of_groups
from reduset.weights.kinds import OWN
from reduset.weights.simplex import simplex_by_exchange
from reduset.weights.span import CHOLESKY_UP_TO

SIZE, TOL = 1000, 0.05  # of a call that says neither
MARGIN = 1.02  # of the tolerance: what weights of the simplex may lose beside those that only add up
TRIES = 16
BEYOND = 1.01  # by which errors are taken for larger than they are, so that a second try is the last
LEAST, MOST = 2**0.01, 2**0.5  # that a bandwidth beyond the tolerance widens by
FINER, MOVED_TRIES = 0.8, 4  # of the resolution of atoms that stay: where moved ones are tried first, and how often
SAME = 1e-3  # of the noise, from one octave to the next: the rows stand alone

BuilderFor = Callable[[KernelMean], Builder]


@dataclass(frozen=True)
class Resolution:
    """How fine a result sees.

    Attributes
    ----------
    bandwidth : the finest at which the error is within ``tol``, there and at every coarser scale
    median : the bandwidth of the scale of the data, for comparison
    random_rows : the finest at which as many random rows are within ``tol``; None where they are at none
    alone : whether the rows stand alone there, so that a finer look would change nothing
    by_noise : whether the bandwidth is that of the sample's own noise, and not the finest that so many atoms bear
    """

    bandwidth: float
    tol: float
    median: float
    random_rows: float | None
    alone: bool = False
    by_noise: bool = False


@dataclass(frozen=True)
class Resolved:
    """A builder at the resolution, the weights there, the name of the selection, and whether the tolerance is kept.

    ``size`` is how many of the pieces it takes; None for all.
    """

    builder: Builder
    prefixes: Prefixes
    resolution: Resolution
    selection: str
    reached: bool
    size: int | None = None

    @classmethod
    def looked_at(
        cls,
        builder: Builder,
        prefixes: Prefixes,
        tol: float,
        median: float,
        selection: str,
        size: int | None = None,
        random: int | None = None,
    ) -> Resolved:
        """What these pieces, the first ``size`` or all, lose at the builder's bandwidth and at coarser ones."""
        m, bandwidth = size or len(prefixes.atoms), cast(RadialKernel, builder.full.kernel).width
        scales, error = builder.scales(), prefixes.error(m)
        high, rows = error.interval[1], None
        if scales is not None:
            small = mean_of(prefixes.atoms[:m], error.weights, builder.full.kernel)
            profile = scales.profile(small, scales.bandwidths, prefixes.confidence, random or m)
            high = max(high, profile.coarser_error(bandwidth))
            rows = bandwidth_where(profile.bandwidths, profile.random_rows, tol)
        return cls(builder, prefixes, Resolution(bandwidth, tol, median, rows), selection, high <= tol, size)


def resolve(
    full: KernelMean, selector: Selector, size: int, tol: float, kind: str, steps: int | None, new: BuilderFor, steady: bool
) -> Resolved:
    """The resolution of a mean whose kernel has the bandwidth of the scale of the data.

    Atoms of selectors that look through the kernel are chosen twice: at that scale, and at the resolution of the first ones.

    Parameters
    ----------
    steady : whether weights of the simplex are to give way where random rows would be better at a finer scale
    """
    first = new(full)
    scales = require_scales(first.scales(size))
    if isinstance(selector, Auto):
        chosen = chosen_by_default(first, scales, size, tol, kind == OWN, lambda width: new(with_bandwidth(full, width)))
    else:
        chosen = chosen_by(first, selector, size)

    def search_of(atoms: Chosen) -> ResolutionSearch:
        return ResolutionSearch(full, atoms, scales, size, tol, kind, steps, new, steady and kind == "simplex" and steps is None)

    search = search_of(chosen)
    bandwidth = search.guess()
    if not (selector.scale_free or isinstance(selector, Auto)):
        again = search_of(chosen_by(new(with_bandwidth(full, bandwidth)), selector, size))
        closer = again.guess()
        if closer < bandwidth:
            search, bandwidth = again, closer
    return search.certified(bandwidth)


def require_scales(scales: Scales | None) -> Scales:
    """What is known of the data at every scale, or an error where no waves tell anything."""
    if scales is None:
        raise ValueError(
            "kernel must be given for these points: they lie so far apart for their spread that no bandwidth between can be "
            "searched for; give one, such as Gaussian(1.0), with size or tol alone"
        )
    return scales


def with_bandwidth(mean: KernelMean, bandwidth: float) -> KernelMean:
    """The same with bumps of another bandwidth."""
    return KernelMean(mean.atoms, mean.weights, replace(cast(RadialKernel, mean.kernel), bandwidth=bandwidth))


def require_two_of_three(full: KernelMean, size: int | None, tol: float | None) -> None:
    """Refuse both of size and tol, or none, beside a bandwidth that is given."""
    if (size is None) == (tol is None):
        given = "give one of size and tol" if size is None else f"got size={size!r} and tol={tol!r} as well; leave one of them out"
        three = "size (a number of atoms), tol (a relative error) and the kernel's bandwidth are three, of which two give the third"
        if not isinstance(full.kernel, RadialKernel):
            raise ValueError(f"{three}: {full.kernel!r} has no bandwidth to search for, so {given}")
        raise ValueError(
            f"{three}: this kernel, {full.kernel!r}, is one, so {given}, or give points and no kernel, for the finest they bear"
        )


def by_default(full: KernelMean, size: int | None, tol: float | None) -> tuple[int, float]:
    """Size and tolerance of a search, checked, and what is not said."""
    most = min(SIZE, full.size)
    size = most if size is None else _validate.whole(size, "size", 1, full.size, "it is a number of the data's points")
    return size, TOL if tol is None else _validate.tolerance(tol)


class ResolutionSearch:
    """The search for one mean, whose kernel has the bandwidth of the scale of the data, and given atoms."""

    def __init__(
        self,
        full: KernelMean,
        atoms: Chosen,
        scales: Scales,
        size: int,
        tol: float,
        kind: str,
        steps: int | None,
        new: BuilderFor,
        steady: bool,
    ) -> None:
        self._full, self._atoms, self._scales, self._size, self._tol = full, atoms, scales, size, tol
        self._kind, self._steps, self._new, self._steady = kind, steps, new, steady
        self._slope, self._alone = 2.0, False  # of the error where it meets the tolerance, on logarithmic axes

    def guess(self) -> float:
        """The finest bandwidth within the tolerance, as far as weights that only add up tell it."""
        place = self._by_steady_weights()
        while True:
            grid = self._scales.bandwidths
            highs = {place: self._high(place)}
            step = 1 if self._within(highs[place]) else -1
            while 0 <= place + step < len(grid) and self._within(highs[place]) == (step > 0):
                place += step
                highs[place] = self._high(place)
            fine = max((k for k, high in highs.items() if self._within(high)), default=-1)
            if fine < len(grid) - 1:
                return self._between(grid, max(fine, 0), highs)
            stands = self._where_rows_stand_alone()
            finer = self._new(with_bandwidth(self._full, grid[-1])).scales(self._size) if stands is None else None
            if finer is None or finer.bandwidths[-1] >= grid[-1]:
                self._alone = stands is not None
                return float(grid[-1] if stands is None else stands)
            self._scales = finer
            place = int(np.argmin(finer.bandwidths >= grid[-1] * (1 - 1e-9)))

    def _within(self, high: float) -> bool:
        return high <= self._tol / MARGIN

    def _by_steady_weights(self) -> int:
        """Where in the grid weights that cost no solve reach the tolerance: close to where the best ones do."""
        profile = self._atoms.profile
        if profile is None:
            small = KernelMean(self._atoms.places, self._atoms.steady, self._full.kernel)
            profile = while_random_rows_tell(self._scales, small, 0.95, self._size)
        within = int(np.cumprod(profile.relative_errors <= self._tol).sum())
        if within == len(profile.bandwidths):  # to where rows stand alone: the error is the same at all finer ones
            return len(self._scales.bandwidths) - 1
        return max(within - 1, 0)

    def _where_rows_stand_alone(self) -> float | None:
        """The coarsest bandwidth from which on ‖f‖ is the same at all finer ones; None where it still falls at the last."""
        small, grid = KernelMean(self._atoms.places, self._atoms.steady, self._full.kernel), self._scales.bandwidths
        noise = self._scales.profile(small, grid[-6:], 0.95, self._size).noise
        if noise[-1] > (1 + SAME) * noise[-3]:
            return None
        return float(grid[-6:][np.argmax(noise >= noise[-1] / (1 + SAME))])

    def _high(self, place: int) -> float:
        """The largest upper end at a bandwidth of the grid and octaves above, of the best weights for it that add up, or of any."""
        coarser = self._scales.bandwidths[place::-STEPS][::-1]
        builder = self._at(coarser[-1])
        kind = "free" if self._kind == "free" else "sum_to_one"
        weights = builder.span.weights(kind, self._full.mass, builder.size)
        small = KernelMean(builder.span.atoms, weights, builder.full.kernel)
        profile = self._scales.profile(small, coarser, 0.95, self._size)
        return max(profile.limit, float(profile.intervals[:, 1].max()))

    def _between(self, grid: Array, fine: int, highs: dict[int, float]) -> float:
        """Where the error, a power of the bandwidth between two of the grid, is the tolerance."""
        if fine + 1 not in highs or highs[fine] >= self._tol or not highs[fine] > 0:
            return float(grid[fine])
        slope = np.log(highs[fine + 1] / highs[fine]) / np.log(grid[fine] / grid[fine + 1])
        self._slope = max(float(slope), 0.5)
        finer = np.log(self._tol / MARGIN / highs[fine]) / slope if slope > 0 else 0.0
        return float(max(grid[fine] * np.exp(-max(finer, 0.0)), grid[fine + 1]))

    def _at(self, bandwidth: float) -> Builder:
        """The same atoms for another bandwidth, in their order."""
        builder = self._new(with_bandwidth(self._full, bandwidth))
        builder.place(self._atoms.places, self._atoms.rows, ordered=True)
        builder.remark = self._atoms.remark
        return builder

    def _by_energy(self, builder: Builder) -> Builder:
        """The same with the atoms in the order of the energy that each adds."""
        builder.place(self._atoms.places, self._atoms.rows, builder.atoms.kappa)
        return builder

    def certified(self, bandwidth: float) -> Resolved:
        """At this bandwidth, or at the next wider one whose certificate is within the tolerance; not reached where none is."""
        finer = FINER * bandwidth
        for _ in range(0 if self._steps is None else MOVED_TRIES):
            moved, high = self._tried(self._by_energy(self._at(finer)), finer)
            if moved.reached:
                return moved
            finer *= max((BEYOND * high / self._tol) ** (1 / self._slope), LEAST)
            if finer >= bandwidth:
                break
        for k in range(TRIES):
            builder, high = self._at_best(bandwidth)
            if high <= self._tol or k == TRIES - 1:
                tried, high = self._tried(self._by_energy(builder), bandwidth)
                if tried.reached:
                    break
            bandwidth *= min(max((BEYOND * high / self._tol) ** (1 / self._slope), LEAST ** (2**k)), MOST)
        return tried

    def _at_best(self, bandwidth: float) -> tuple[Builder, float]:
        """The upper end of the error there of weights that only add up: the others, which take longer to find, lose no less."""
        builder = self._at(bandwidth)
        if self._kind == OWN or self._steps is not None or self._scales.certain:  # then the guess is as good
            return builder, 0.0
        prefixes = builder.prefixes("free" if self._kind == "free" else "sum_to_one")
        return builder, prefixes.error(builder.size).interval[1]

    def _tried(self, builder: Builder, bandwidth: float) -> tuple[Resolved, float]:
        """The result there, and the largest upper end of its errors there and at coarser scales."""
        if self._steps is not None:
            prefixes = builder.refine(self._kind, self._steps)
        else:
            own = None if self._atoms.own is None or self._kind != OWN else self._atoms.own[builder.atoms.order]
            prefixes = builder.prefixes(self._kind, own)
            if self._kind == "simplex" and builder.size <= CHOLESKY_UP_TO:
                prefixes = self._on_the_simplex(builder, prefixes)
        scales = self._scales if self._scales.certain else builder.scales()
        high, random, size = 0.0, None, self._size
        if scales is not None:
            small = KernelMean(prefixes.atoms, prefixes.error(len(prefixes.atoms)).weights, prefixes.kernel)

            def profile_of(mean: KernelMean) -> ErrorProfile:
                return while_random_rows_tell(scales, mean, prefixes.confidence, size, bandwidth)

            if self._steady:
                prefixes, profile = self._steadied(builder, prefixes, small, profile_of)
            else:
                profile = profile_of(small)
            high = profile.coarser_error(bandwidth)
            random = bandwidth_where(profile.bandwidths, profile.random_rows, self._tol)
        high = max(high, prefixes.error(len(prefixes.atoms)).interval[1])
        resolution = Resolution(bandwidth, self._tol, cast(RadialKernel, self._full.kernel).width, random, self._alone)
        return Resolved(builder, prefixes, resolution, self._atoms.selection, high <= self._tol), high

    def _on_the_simplex(self, builder: Builder, prefixes: Prefixes) -> Prefixes:
        """The same with the best weights of the simplex, from those that only add up: a few solves, where it settles."""
        span, mass = builder.span, self._full.mass
        positive = span.weights("sum_to_one", mass, span.size) > 0
        with builder.clock.stage("weigh"):
            weights = simplex_by_exchange(prefixes.kernel.product_gram(span.atoms, span.atoms), span.kappa, mass, positive)
        return prefixes if weights is None else replace(prefixes, last=weights)

    def _steadied(
        self, builder: Builder, prefixes: Prefixes, small: KernelMean, profile_of: Callable[[KernelMean], ErrorProfile]
    ) -> tuple[Prefixes, ErrorProfile]:
        """The same with weights that count groups apart right, and are worse than random rows at no scale if that can be had."""
        order, kept = builder.atoms.order, builder.span.kept
        masses, steady = (each[order][kept] for each in (self._atoms.counts, self._atoms.steady))
        if (masses < 0).any() or not (masses.any() and steady.any()):
            return prefixes, profile_of(small)
        masses, steady = (each * (self._full.mass / each.sum()) for each in (masses, steady))
        groups = isolated_groups(prefixes.kernel.product_gram(small.atoms, small.atoms), small.weights)
        counted = KernelMean(small.atoms, with_masses_of_groups(small.weights, groups, masses), small.kernel)
        weights, profile = not_worse(counted, with_masses_of_groups(steady, groups, masses), profile_of)
        return replace(prefixes, last=weights), profile
