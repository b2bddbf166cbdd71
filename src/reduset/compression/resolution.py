"""The search for the bandwidth: the finest at which so many atoms stay within a tolerance.

    resolution = the finest bandwidth h at which, and above which, the best weights of m atoms have an error of at most tol

The error of given atoms as a function of the bandwidth is measured where the frequencies of one pass have a rung: first with the
masses of the nearest rows as weights, which are the same at every scale and cost no solve, then with the best weights at the few
bandwidths around that. Between the last two the error is taken for a power of the bandwidth. The bandwidth found so is weighed and
certified like any other; if the certificate, or the profile of coarser scales, is above the tolerance, it widens a little. If the
finest rung is within the tolerance, finer ones are added, until distinct rows do not overlap.

Which atoms, by default: `scale_choice`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from reduset._types import Array
from reduset.certificate.by_scale import STEPS, ErrorProfile, Scales, bandwidth_where
from reduset.compression.certifying import Found, Resolution, certify
from reduset.compression.plan import BY_SCALES, Plan
from reduset.compression.prefixes import Prefixes
from reduset.compression.refine import move
from reduset.compression.scale_choice import Chosen, chosen_by, chosen_by_scales, meaningful_profile, scale_robust
from reduset.compression.selecting import Atoms
from reduset.compression.target import Run, Target
from reduset.compression.weighing import Weighed, weigh
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean, with_bandwidth
from reduset.mixture.component_mean import mean_of
from reduset.weights import CHOLESKY_UP_TO, OWN, isolated_groups, simplex_by_exchange, with_masses_of_groups

MARGIN = 1.02  # of the tolerance: by how much the error with weights of the simplex may exceed that with "sum_to_one"
TRIES = 16
BEYOND = 1.01  # by which errors are overestimated, so that a second try is the last
LEAST, MOST = 2**0.01, 2**0.5  # by which a bandwidth beyond the tolerance widens
FINER, MOVED_TRIES = 0.8, 4  # of the resolution of atoms that stay: where moved ones are tried first, and how often
SAME = 1e-3  # of the noise, from one octave to the next: distinct rows do not overlap


def at_coarser_scales(found: Found, tol: float, median: float, random: int | None = None) -> tuple[Found, float]:
    """The same with its resolution, reached only if coarser scales are within ``tol`` too, and the largest error there.

    Parameters
    ----------
    median : the median distance of the rows
    random : the number of random rows to compare with, by default as many as atoms
    """
    target, prefixes, m = found.target, found.prefixes, found.size
    bandwidth = cast(RadialKernel, target.full.kernel).width
    scales, error = target.scales(found.weighed.span.size), prefixes.error(m)
    high, rows = error.interval[1], None
    if scales is not None:
        small = mean_of(prefixes.atoms[:m], error.weights, target.full.kernel)
        profile = scales.profile(small, scales.bandwidths, prefixes.confidence, random or m)
        high = max(high, profile.coarser_error(bandwidth))
        rows = bandwidth_where(profile.bandwidths, profile.random_rows, tol)
    return replace(found, reached=high <= tol, resolution=Resolution(bandwidth, tol, median, rows)), high


def find_bandwidth(full: KernelMean, plan: Plan, run: Run) -> Found:
    """The atoms of a plan at the finest bandwidth, for a mean whose kernel has the median distance as bandwidth.

    Selectors that depend on the bandwidth are used twice: at that scale, and at the resolution of their first atoms.
    """
    target, size, tol = run.target(full), plan.size or plan.most, cast(float, plan.tol)
    scales = require_scales(target.scales(size))
    if plan.choice == BY_SCALES:
        chosen = chosen_by_scales(target, scales, size, tol, plan.weighting == OWN)
    else:
        chosen = chosen_by(target, plan.selector, size)
    search = BandwidthSearch(full, chosen, scales, plan, run)
    bandwidth = search.guess()
    if plan.choice != BY_SCALES and not plan.selector.scale_free:
        closer = chosen_by(run.target(with_bandwidth(full, bandwidth)), plan.selector, size)
        again = BandwidthSearch(full, closer, scales, plan, run)
        finer = again.guess()
        if finer < bandwidth:
            search, bandwidth = again, finer
    return search.certified(bandwidth)


def require_scales(scales: Scales | None) -> Scales:
    """The scales, or an error if random Fourier features measure nothing."""
    if scales is None:
        raise ValueError(
            "kernel must be given for these points: they lie so far apart for their spread that no bandwidth between can be "
            "searched for; give one, such as Gaussian(1.0), with size or tol alone"
        )
    return scales


class BandwidthSearch:
    """The search for one mean, whose kernel has the median distance as bandwidth, and given atoms."""

    def __init__(self, full: KernelMean, atoms: Chosen, scales: Scales, plan: Plan, run: Run) -> None:
        self._full, self._atoms, self._scales, self._plan, self._run = full, atoms, scales, plan, run
        self._size, self._tol, self._kind = plan.size or plan.most, cast(float, plan.tol), plan.weighting
        self._slope, self._alone = 2.0, False  # of the error where it meets the tolerance, on logarithmic axes

    def guess(self) -> float:
        """The finest bandwidth within the tolerance, estimated with weights that may be negative."""
        place = self._by_scale_free_weights()
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
            stands = self._where_rows_do_not_overlap()
            finer = self._run.target(with_bandwidth(self._full, grid[-1])).scales(self._size) if stands is None else None
            if finer is None or finer.bandwidths[-1] >= grid[-1]:
                self._alone = stands is not None
                return float(grid[-1] if stands is None else stands)
            self._scales = finer
            place = int(np.argmin(finer.bandwidths >= grid[-1] * (1 - 1e-9)))

    def _within(self, high: float) -> bool:
        return high <= self._tol / MARGIN

    def _by_scale_free_weights(self) -> int:
        """Where in the grid weights that cost no solve reach the tolerance: close to where the best ones do."""
        profile = self._atoms.profile
        if profile is None:
            small = KernelMean.unchecked(self._atoms.points, self._atoms.scale_free, self._full.kernel)
            profile = meaningful_profile(self._scales, small, 0.95, self._size)
        within = int(np.cumprod(profile.relative_errors <= self._tol).sum())
        if within == len(profile.bandwidths):  # to where rows stand alone: the error is the same at all finer ones
            return len(self._scales.bandwidths) - 1
        return max(within - 1, 0)

    def _where_rows_do_not_overlap(self) -> float | None:
        """The coarsest bandwidth from which on ‖f‖ is the same at all finer ones; None where it still falls at the last."""
        small, grid = KernelMean.unchecked(self._atoms.points, self._atoms.scale_free, self._full.kernel), self._scales.bandwidths
        noise = self._scales.profile(small, grid[-6:], 0.95, self._size).noise
        if noise[-1] > (1 + SAME) * noise[-3]:
            return None
        return float(grid[-6:][np.argmax(noise >= noise[-1] / (1 + SAME))])

    def _high(self, place: int) -> float:
        """The largest upper end at a bandwidth of the grid and octaves above, of the best weights for it that add up, or of any."""
        coarser = self._scales.bandwidths[place::-STEPS][::-1]
        target, weighed = self._at(coarser[-1])
        weights = weighed.span.weights(self._signed_kind, self._full.mass, weighed.span.size)
        small = KernelMean.unchecked(weighed.span.atoms, weights, target.full.kernel)
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

    @property
    def _signed_kind(self) -> str:
        """Weights that may be negative, of the sum asked for: other kinds take longer to solve for, and have no smaller error."""
        return "free" if self._kind == "free" else "sum_to_one"

    def _at(self, bandwidth: float) -> tuple[Target, Weighed]:
        """The same atoms at another bandwidth, in their order."""
        target, chosen = self._run.target(with_bandwidth(self._full, bandwidth)), self._atoms
        order = np.arange(len(chosen.points))
        return target, weigh(target, Atoms(chosen.points, chosen.rows, order=order, remark=chosen.remark))

    def _by_energy(self, target: Target, weighed: Weighed) -> Weighed:
        """The same with the atoms in the order of the energy that each adds."""
        return weigh(target, replace(weighed.atoms, in_order=False), weighed.kappa)

    def certified(self, bandwidth: float) -> Found:
        """At this bandwidth, or at the next wider one whose certificate is within the tolerance; not reached if there is none."""
        finer = FINER * bandwidth
        for _ in range(0 if self._plan.steps is None else MOVED_TRIES):
            moved, high = self._tried(*self._at(finer), finer)
            if moved.reached:
                return moved
            finer *= max((BEYOND * high / self._tol) ** (1 / self._slope), LEAST)
            if finer >= bandwidth:
                break
        for k in range(TRIES):
            target, weighed, high = self._at_best(bandwidth)
            if high <= self._tol or k == TRIES - 1:
                tried, high = self._tried(target, weighed, bandwidth)
                if tried.reached:
                    break
            bandwidth *= min(max((BEYOND * high / self._tol) ** (1 / self._slope), LEAST ** (2**k)), MOST)
        return tried

    def _at_best(self, bandwidth: float) -> tuple[Target, Weighed, float]:
        """The upper end of the error there with weights that may be negative."""
        target, weighed = self._at(bandwidth)
        if self._kind == OWN or self._plan.steps is not None or self._scales.certain:  # then the guess is as good
            return target, weighed, 0.0
        prefixes = certify(target, weighed, self._signed_kind)
        return target, weighed, prefixes.error(weighed.span.size).interval[1]

    def _tried(self, target: Target, weighed: Weighed, bandwidth: float) -> tuple[Found, float]:
        """The result there, and the largest upper end of its errors there and at coarser scales."""
        plan, weighed = self._plan, self._by_energy(target, weighed)
        if plan.steps is not None:
            weighed, prefixes = move(target, weighed, self._kind, plan.steps)
        else:
            own = None if self._atoms.own is None or self._kind != OWN else self._atoms.own[weighed.atoms.order]
            prefixes = certify(target, weighed, self._kind, own)
            if self._kind == "simplex" and weighed.span.size <= CHOLESKY_UP_TO:
                prefixes = self._on_the_simplex(weighed, prefixes)
        scales = self._scales if self._scales.certain else target.scales(weighed.span.size)
        high, random = 0.0, None
        if scales is not None:
            small = KernelMean.unchecked(prefixes.atoms, prefixes.error(len(prefixes.atoms)).weights, prefixes.kernel)
            if plan.scale_robust:
                prefixes, profile = self._made_robust(weighed, prefixes, small, scales, bandwidth)
            else:
                profile = meaningful_profile(scales, small, prefixes.confidence, self._size, bandwidth)
            high = profile.coarser_error(bandwidth)
            random = bandwidth_where(profile.bandwidths, profile.random_rows, self._tol)
        high = max(high, prefixes.error(len(prefixes.atoms)).interval[1])
        median = cast(RadialKernel, self._full.kernel).width
        resolution = Resolution(bandwidth, self._tol, median, random, self._alone)
        reached, name = high <= self._tol, self._atoms.selection
        found = Found(target, weighed, prefixes, len(prefixes.atoms), reached, selection=name, resolution=resolution)
        return found, high

    def _on_the_simplex(self, weighed: Weighed, prefixes: Prefixes) -> Prefixes:
        """The same with the best weights of the simplex, from "sum_to_one" ones: a few solves, if the exchange settles."""
        span, mass = weighed.span, self._full.mass
        positive = span.weights("sum_to_one", mass, span.size) > 0
        with self._run.clock.stage("weigh"):
            weights = simplex_by_exchange(prefixes.kernel.product_gram(span.atoms, span.atoms), span.kappa, mass, positive)
        return prefixes if weights is None else replace(prefixes, last=weights)

    def _made_robust(
        self, weighed: Weighed, prefixes: Prefixes, small: KernelMean, scales: Scales, bandwidth: float
    ) -> tuple[Prefixes, ErrorProfile]:
        """The same with weights that give isolated groups their mass, and with which random rows are better at no scale."""
        order, kept, how = weighed.atoms.order, weighed.span.kept, (prefixes.confidence, self._size, bandwidth)
        masses, scale_free = (each[order][kept] for each in (self._atoms.counts, self._atoms.scale_free))
        if (masses < 0).any() or not (masses.any() and scale_free.any()):
            return prefixes, meaningful_profile(scales, small, *how)
        masses, scale_free = (each * (self._full.mass / each.sum()) for each in (masses, scale_free))
        groups = isolated_groups(prefixes.kernel.product_gram(small.atoms, small.atoms), small.weights)
        counted = KernelMean.unchecked(small.atoms, with_masses_of_groups(small.weights, groups, masses), small.kernel)
        weights, profile = scale_robust(scales, counted, with_masses_of_groups(scale_free, groups, masses), *how)
        return replace(prefixes, last=weights), profile
