"""The search for the resolution of m atoms.

    resolution = the finest bandwidth h such that at h, and at every coarser bandwidth, the best weights of the atoms have an error
                 of at most tol

1. Choose atoms that are good at all scales. By default these are the centres of k-means if their clusters are small, and thinned
   rows otherwise. In many dimensions clusters are as wide as the data. A centre then lies off the shell of its rows, where f is
   small. The errors of centres that are weighted by the mass of their clusters decide this without a solve. They are either well
   below the errors of random rows in equal number, or many times larger. Rows thinned near the resolution are better than random
   rows at every scale, even with equal weights (Dwivedi & Mackey 2021).
2. Measure their error as a function of the bandwidth, on the grid of the random frequencies. The first weights are the masses of
   the nearest rows, which are the same at every scale. Then compute the best weights at a few bandwidths around the tolerance.
   Between the last two, assume that the error is a power of the bandwidth. If the finest bandwidth is within the tolerance, add
   finer ones until distinct rows do not overlap.
3. Compute the weights and the certificate at that bandwidth. While the certificate or the profile of coarser scales exceeds the
   tolerance, widen the bandwidth.
4. The best weights at the resolution may be worse than random rows at finer scales. So blend them with scale-free weights. The
   error at the resolution increases with the square of the step. Errors at other scales decrease linearly with the step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from reduset._engine import to_numpy
from reduset._types import Array, Indices
from reduset.certificate import STEPS, ErrorProfile, Scales, bandwidth_where
from reduset.compression.plan import BY_SCALES, Plan
from reduset.compression.prefixes import Prefixes
from reduset.compression.refine import move
from reduset.compression.stages import (
    Atoms,
    Resolution,
    Run,
    SearchResult,
    Target,
    Weighed,
    certify,
    select_atoms,
    weigh_atoms,
)
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean, with_bandwidth
from reduset.mixture import mean_of
from reduset.select import KMEANS_ROWS, KMeans, Selector, Thinning
from reduset.weights import (
    CHOLESKY_UP_TO,
    OWN,
    isolated_groups,
    masses_of,
    simplex_by_exchange,
    with_masses_of_groups,
    with_nearest_atoms,
)

MARGIN = 1.02  # largest ratio of the error with "simplex" weights to the error with "sum_to_one" weights
TRIES, MOVED_TRIES = 16, 4
CENTRES = KMeans(rows=KMEANS_ROWS)
FINER = 0.8  # first bandwidth for moved atoms, as a multiple of the bandwidth for unmoved atoms
OVERESTIMATE = 1.01  # of errors, so that two tries are usually enough
MIN_WIDENING, MAX_WIDENING = 2**0.01, 2**0.5
SAME_NOISE = 1e-3  # relative change from one octave to the next: if it is smaller, distinct rows do not overlap
MEANINGFUL = 0.5  # of ‖f‖: random rows with a larger error are not a useful comparison
NO_OVERLAP = 1.01  # ratio of the noise at the finest scale to the noise at a scale without overlap, at most
THINNED_AT = 1.5  # of the tolerance: the error of random rows at the scale of thinning
THINNED_FROM = 64  # rows per atom: 64 m random rows have an eighth of the error of m random rows
MIN_GROUP_MASS = 0.5  # of the mass of an atom: smaller groups get no atom
FAR_BELOW, SAME_GROUP_ABOVE, MAX_FAR_ROWS = 0.2, 0.5, 2048  # normalised kernel values: to every atom, within a group; rows examined
BLENDING_STEPS = (0.25, 0.5, 1.0)  # from the best weights to scale-free weights
CLEARLY_BETTER = 0.95  # of the error of random rows, since errors at other scales have an uncertainty of some per cent


def begin_search(full: KernelMean, plan: Plan, run: Run) -> tuple[BandwidthSearch, float]:
    """The search for the atoms of a plan, and a guess of their resolution. The mean has the median distance as bandwidth.

    Selectors that depend on the bandwidth are used twice: at the median distance, and at the resolution of their first atoms.
    """
    target, size, tol = run.target(full), plan.size or plan.most, cast(float, plan.tol)
    scales = cast(Scales, target.scales(size, required=True))
    if plan.choice == BY_SCALES:
        candidates = _select_by_scales(target, scales, size, tol, plan.weighting == OWN)
    else:
        candidates = _select(target, plan.selector, size)
    signed_kind = "free" if plan.weighting == "free" else "sum_to_one"
    search = BandwidthSearch(full, candidates, scales, plan, run, size, tol, signed_kind)
    bandwidth = search.guess()
    if plan.choice != BY_SCALES and not plan.selector.scale_free:
        closer = _select(run.target(with_bandwidth(full, bandwidth)), plan.selector, size)
        again = BandwidthSearch(full, closer, scales, plan, run, size, tol, signed_kind)
        finer = again.guess()
        if finer < bandwidth:
            search, bandwidth = again, finer
    return search, bandwidth


def at_coarser_scales(
    result: SearchResult, tol: float, median: float, random_rows: int | None = None
) -> tuple[SearchResult, float]:
    """The result with its resolution, and the largest error at coarser scales, which must be within ``tol`` too.

    Parameters
    ----------
    median : Median distance of the rows.
    random_rows : Number of random rows in the comparison, by default the number of atoms.
    """
    target, prefixes, m = result.target, result.prefixes, result.size
    bandwidth = cast(RadialKernel, target.full.kernel).width
    scales, error = target.scales(result.weighed.span.size), prefixes.error(m)
    high, rows = error.interval[1], None
    if scales is not None:
        small = mean_of(prefixes.atoms[:m], error.weights, target.full.kernel)
        profile = scales.profile(small, scales.bandwidths, prefixes.confidence, random_rows or m)
        high = max(high, profile.coarser_error(bandwidth))
        rows = bandwidth_where(profile.bandwidths, profile.random_rows, tol)
    return replace(result, reached=high <= tol, resolution=Resolution(bandwidth, tol, median, rows)), high


# -- atoms for all scales --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchAtoms:
    """Atoms for a search over bandwidths.

    Attributes
    ----------
    points : (m, d) coordinates
    rows : (m,) rows of the data, or None for new points
    counts : (m,) weights of the rows nearest to each atom
    scale_free : (m,) weights that are equally good at every scale
        These are the counts, or the weights of the selector for thinned rows.
    own : (m,) weights of the selector, if it has any
    profile : Errors with scale-free weights, if known.
    """

    points: Array
    rows: Indices | None
    counts: Array
    scale_free: Array
    selection: str
    remark: str
    own: Array | None = None
    profile: ErrorProfile | None = None


def _select(target: Target, selector: Selector, size: int, own: bool = True) -> SearchAtoms:
    """The atoms of a selector for the kernel of the target. ``own`` weights may take another pass."""
    traversal = target.begin(selector)
    atoms = select_atoms(target, traversal, size)
    points = cast(Array, atoms.points)
    with target.run.clock.stage("weigh"):
        masses = masses_of(target.full, points)
    return SearchAtoms(points, atoms.rows, masses, masses, str(selector), atoms.remark, traversal.weights() if own else None)


def _select_by_scales(target: Target, scales: Scales, size: int, tol: float, own: bool) -> SearchAtoms:
    """Centres of k-means, or thinned rows if random ones would be better."""
    run, full = target.run, target.full
    centres = _select(target, CENTRES, size, own)
    with run.clock.stage("certify"):
        small = KernelMean.unchecked(centres.points, centres.scale_free, full.kernel)
        profile = meaningful_profile(scales, small, 0.95, size)
    width = bandwidth_where(profile.bandwidths, profile.random_rows, THINNED_AT * tol)
    if width is None or _worst_ratio(profile) <= 1:
        return replace(centres, profile=profile)
    near = run.target(with_bandwidth(full, width))
    rows = _select(near, Thinning(rows=THINNED_FROM * size), size)
    remark = "thinned rows, since random rows would be better than centres of k-means"
    rows = replace(rows, scale_free=rows.counts if rows.own is None else rows.own, remark=remark)
    with run.clock.stage("select"):
        return with_missing_groups(near.full, rows)


def with_missing_groups(full: KernelMean, thinned: SearchAtoms) -> SearchAtoms:
    """Add a row for each group of rows that is far from all atoms and has at least half the mass of an atom.

    Thinning keeps 0, 1 or 2 rows of a group with the mass of one atom. The added rows replace the atoms that are most similar to
    other atoms.
    """
    missing = _missing_groups(full, thinned.points)
    if thinned.rows is None or not missing:
        return thinned
    similarity = full.kernel.product_gram(thinned.points, thinned.points)
    np.fill_diagonal(similarity, 0.0)
    rows, replaced = thinned.rows.copy(), np.argsort(-similarity.max(axis=1), kind="stable")[: len(missing)]
    rows[replaced] = missing[: len(replaced)]
    points = np.asarray(full.atoms[rows], np.float64)
    return replace(thinned, points=points, rows=rows, counts=masses_of(full, points))


def _missing_groups(full: KernelMean, points: Array) -> list[int]:
    """A row of each group that is far from all points: the row with the largest mass around it, then without this group, again."""
    parts: list[Indices] = []

    def note(_: int, rows: Any, __: Any, product: Array, ___: Array) -> None:
        positions = to_numpy(np.flatnonzero(product < FAR_BELOW))
        parts.append(positions + rows.start if isinstance(rows, slice) else rows[positions])

    with_nearest_atoms(full, points, None, note, there=True)
    far = np.sort(np.concatenate(parts))
    far = far[full.weights[far] > 0]
    subset = far[:: max(1, -(-len(far) // MAX_FAR_ROWS))]
    if not len(subset):
        return []
    same_group = full.kernel.product_gram(full.atoms[subset], full.atoms[subset]) >= SAME_GROUP_ABOVE
    remaining = full.weights[subset] * (full.weights[far].sum() / full.weights[subset].sum())
    rows = []
    while (mass_around := same_group @ remaining).max() >= MIN_GROUP_MASS * full.mass / len(points):
        heaviest = np.argmax(mass_around)
        rows.append(int(subset[heaviest]))
        remaining[same_group[heaviest]] = 0.0
    return rows


# -- errors at all scales --------------------------------------------------------------------------------------------------


def meaningful_profile(
    scales: Scales, small: KernelMean, confidence: float, random_rows: int, at_least: float = np.inf
) -> ErrorProfile:
    """The profile from the coarsest scale to the scale at which random rows have an error of ½, and at least to ``at_least``.

    It also ends where kernel functions do not overlap, since a random sample of nearly all rows never has an error of ½.
    """
    grid = scales.bandwidths
    if not scales.certain:
        return scales.profile(small, grid, confidence, random_rows)
    no_overlap = float(scales.profile(small, grid[-1:], confidence, random_rows).noise[0]) / NO_OVERLAP
    parts = [scales.profile(small, grid[:1], confidence, random_rows)]
    for k in range(1, len(grid)):
        before, last = (float(part.random_rows[0]) for part in (parts[-2:] if k > 1 else parts * 2))
        # errors are nearly a power of the bandwidth
        if grid[k - 1] <= at_least and (last**2 >= MEANINGFUL * before > 0 or parts[-1].noise[0] >= no_overlap > 0):
            break
        parts.append(scales.profile(small, grid[k : k + 1], confidence, random_rows))
    return ErrorProfile.joined(parts)


def _worst_ratio(profile: ErrorProfile) -> float:
    """The largest ratio of the errors to the errors of random rows, at scales where random rows have an error below ½."""
    meaningful = (profile.random_rows < MEANINGFUL) & (profile.random_rows > 0)
    return float((profile.relative_errors[meaningful] / profile.random_rows[meaningful]).max(initial=0.0))


@dataclass
class BandwidthSearch:
    """The search for one mean and given atoms. The kernel of the mean has the median distance as bandwidth.

    Attributes
    ----------
    size, tol : The goal of the plan.
    signed_kind : Signed weights with the same sum: other kinds take longer to solve for, and have no smaller error.
    slope : The slope of the error at the tolerance, on logarithmic axes.
    alone : Whether distinct rows do not overlap at the guess.
    """

    full: KernelMean
    atoms: SearchAtoms
    scales: Scales
    plan: Plan
    run: Run
    size: int
    tol: float
    signed_kind: str
    slope: float = 2.0
    alone: bool = False

    def guess(self) -> float:
        """The finest bandwidth within the tolerance, estimated with signed weights."""
        level = self.tol / MARGIN
        # the best weights reach the tolerance close to the bandwidth at which scale-free weights do
        profile = self.atoms.profile or meaningful_profile(self.scales, self._with_scale_free_weights(), 0.95, self.size)
        within = int(np.cumprod(profile.relative_errors <= self.tol).sum())
        # a profile within the tolerance ends where rows do not overlap: errors at finer scales are equal
        k = len(self.scales.bandwidths) - 1 if within == len(profile.bandwidths) else max(within - 1, 0)
        while True:
            grid = self.scales.bandwidths
            highs = {k: self._high(k, *self._weighed_at(grid[k]))}
            step = 1 if highs[k] <= level else -1
            while 0 <= k + step < len(grid) and (highs[k] <= level) == (step > 0):
                k += step
                highs[k] = self._high(k, *self._weighed_at(grid[k]))
            finest = max((position for position, high in highs.items() if high <= level), default=-1)
            if finest < len(grid) - 1:
                k = max(finest, 0)
                if k + 1 not in highs or highs[k] >= self.tol or not highs[k] > 0:
                    return float(grid[k])
                # between two points of the grid, the error is about a power of the bandwidth
                slope = float(np.log(highs[k + 1] / highs[k]) / np.log(grid[k] / grid[k + 1]))
                self.slope = max(slope, 0.5)
                finer = np.log(level / highs[k]) / slope if slope > 0 else 0.0
                return float(max(grid[k] * np.exp(-max(finer, 0.0)), grid[k + 1]))
            bandwidth = self._where_rows_do_not_overlap()
            finer = None
            if bandwidth is None:
                finer = self.run.target(with_bandwidth(self.full, grid[-1])).scales(self.size)
            if finer is None or finer.bandwidths[-1] >= grid[-1]:
                self.alone = bandwidth is not None
                return float(grid[-1] if bandwidth is None else bandwidth)
            self.scales = finer
            k = int(np.argmin(finer.bandwidths >= grid[-1] * (1 - 1e-9)))

    def _with_scale_free_weights(self) -> KernelMean:
        return KernelMean.unchecked(self.atoms.points, self.atoms.scale_free, self.full.kernel)

    def _where_rows_do_not_overlap(self) -> float | None:
        """The coarsest bandwidth below which ‖f‖ is constant; None if it still decreases at the finest."""
        grid = self.scales.bandwidths[-6:]
        noise = self.scales.profile(self._with_scale_free_weights(), grid, 0.95, self.size).noise
        if noise[-1] > (1 + SAME_NOISE) * noise[-3]:
            return None
        return float(grid[np.argmax(noise >= noise[-1] / (1 + SAME_NOISE))])

    def _high(self, k: int, target: Target, weighed: Weighed) -> float:
        """The largest upper end of the error at a bandwidth of the grid and at octaves above it, with signed weights."""
        coarser = self.scales.bandwidths[k::-STEPS][::-1]
        weights = weighed.span.weights(self.signed_kind, self.full.mass, weighed.span.size)
        small = KernelMean.unchecked(weighed.span.atoms, weights, target.full.kernel)
        profile = self.scales.profile(small, coarser, 0.95, self.size)
        return max(profile.limit, float(profile.intervals[:, 1].max()))

    def _weighed_at(self, bandwidth: float) -> tuple[Target, Weighed]:
        """The atoms at another bandwidth, in their order."""
        target, atoms = self.run.target(with_bandwidth(self.full, bandwidth)), self.atoms
        order = np.arange(len(atoms.points))
        return target, weigh_atoms(target, Atoms(atoms.points, atoms.rows, order=order, remark=atoms.remark))

    def certified(self, bandwidth: float) -> SearchResult:
        """The result at this bandwidth, or at the next wider one with a certificate within the tolerance.

        It is not reached if there is none.
        """
        finer = FINER * bandwidth
        for _ in range(0 if self.plan.steps is None else MOVED_TRIES):
            moved, high = self._tried(*self._weighed_at(finer), finer)
            if moved.reached:
                return moved
            finer *= max((OVERESTIMATE * high / self.tol) ** (1 / self.slope), MIN_WIDENING)
            if finer >= bandwidth:
                break
        for k in range(TRIES):
            target, weighed = self._weighed_at(bandwidth)
            high = 0.0
            if self.plan.weighting != OWN and self.plan.steps is None and not self.scales.certain:  # else the guess is exact
                high = certify(target, weighed, self.signed_kind).error(weighed.span.size).interval[1]
            if high <= self.tol or k == TRIES - 1:
                tried, high = self._tried(target, weighed, bandwidth)
                if tried.reached:
                    break
            widening = (OVERESTIMATE * high / self.tol) ** (1 / self.slope)
            bandwidth *= min(max(widening, MIN_WIDENING ** (2**k)), MAX_WIDENING)
        return tried

    def _tried(self, target: Target, weighed: Weighed, bandwidth: float) -> tuple[SearchResult, float]:
        """The result at a bandwidth, and the largest upper end of its errors there and at coarser scales."""
        plan = self.plan
        weighed = weigh_atoms(target, replace(weighed.atoms, in_order=False), weighed.kappa)
        if plan.steps is not None:
            weighed, prefixes = move(target, weighed, self.plan.weighting, plan.steps)
        else:
            own = None if self.atoms.own is None or self.plan.weighting != OWN else self.atoms.own[weighed.atoms.order]
            prefixes = certify(target, weighed, self.plan.weighting, own)
            if self.plan.weighting == "simplex" and weighed.span.size <= CHOLESKY_UP_TO:
                # from "sum_to_one" weights, the best weights on the simplex take a few solves, if the exchange converges
                span, mass = weighed.span, self.full.mass
                positive = span.weights("sum_to_one", mass, span.size) > 0
                with self.run.clock.stage("weigh"):
                    gram = prefixes.kernel.product_gram(span.atoms, span.atoms)
                    weights = simplex_by_exchange(gram, span.kappa, mass, positive)
                prefixes = prefixes if weights is None else replace(prefixes, last=weights)
        scales = self.scales if self.scales.certain else target.scales(weighed.span.size)
        high, random_rows = 0.0, None
        if scales is not None:
            small = KernelMean.unchecked(prefixes.atoms, prefixes.error(len(prefixes.atoms)).weights, prefixes.kernel)
            if plan.scale_robust:
                prefixes, profile = self._made_robust(weighed, prefixes, small, scales, bandwidth)
            else:
                profile = meaningful_profile(scales, small, prefixes.confidence, self.size, bandwidth)
            high = profile.coarser_error(bandwidth)
            random_rows = bandwidth_where(profile.bandwidths, profile.random_rows, self.tol)
        size, median = len(prefixes.atoms), cast(RadialKernel, self.full.kernel).width
        high = max(high, prefixes.error(size).interval[1])
        resolution = Resolution(bandwidth, self.tol, median, random_rows, self.alone)
        selection, reached = self.atoms.selection, high <= self.tol
        return SearchResult(target, weighed, prefixes, size, reached, selection=selection, resolution=resolution), high

    def _made_robust(
        self, weighed: Weighed, prefixes: Prefixes, small: KernelMean, scales: Scales, bandwidth: float
    ) -> tuple[Prefixes, ErrorProfile]:
        """Weights that keep the mass of isolated groups and are as good as random rows at every scale, and their profile."""

        rest = prefixes.confidence, self.size, bandwidth
        positions = np.asarray(weighed.atoms.order)[weighed.span.kept]
        masses, scale_free = self.atoms.counts[positions], self.atoms.scale_free[positions]
        if (masses < 0).any() or not (masses.any() and scale_free.any()):
            return prefixes, meaningful_profile(scales, small, *rest)
        masses = masses * (self.full.mass / masses.sum())
        scale_free = scale_free * (self.full.mass / scale_free.sum())
        groups = isolated_groups(prefixes.kernel.product_gram(small.atoms, small.atoms), small.weights)
        best = start = with_masses_of_groups(small.weights, groups, masses)
        scale_free = with_masses_of_groups(scale_free, groups, masses)
        profile = meaningful_profile(scales, KernelMean.unchecked(small.atoms, start, small.kernel), *rest)
        ratio = _worst_ratio(profile)
        for k, step in enumerate(BLENDING_STEPS):
            if ratio <= (1.0 if k else CLEARLY_BETTER):
                break
            blended = (1 - step) * start + step * scale_free
            blended_profile = meaningful_profile(scales, KernelMean.unchecked(small.atoms, blended, small.kernel), *rest)
            if _worst_ratio(blended_profile) < ratio:
                best, profile, ratio = blended, blended_profile, _worst_ratio(blended_profile)
        return replace(prefixes, last=best), profile
