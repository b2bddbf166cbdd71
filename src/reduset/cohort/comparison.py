"""A cohort compared: its bags made small, or left as they are, and every distance between two with the error it carries.

What the estimator holds between fit and transform; three ways by name.

"shared"  all bags on the same atoms (`shared`), 0 ≤ D − D₀ ≤ √(D₀² + (e_f + e_g)²) − D₀
"own"     each bag on atoms of its own, as in the paper, |D − D₀| ≤ e_f + e_g
"all"     no compression: the oracle for both

The atoms were chosen without later bags, and may not see one of these at all. One whose measured error is above `limit` is compared
in full, with |D − D₀| ≤ e_g, e_g of the fitted bag; O(n²) for its own norm. So is, for "kl", one with points that its
compression does not see (`overlooked`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reduset._progress import Progress
from reduset._types import Array, Floats
from reduset.cohort.bag_source import BagsInMemory, BagSource
from reduset.cohort.distances import between
from reduset.cohort.divergences import estimate, overlooked
from reduset.cohort.shared_atoms import SharedAtoms, pooled, rows_drawn, share
from reduset.cohort.stopping import BagTolerance, DistanceTolerance, StoppingRule
from reduset.compression.compressing import NotReachedWarning, compress, quietly
from reduset.compression.result import Compression
from reduset.kernels.base import Kernel, exponential
from reduset.mean import KernelMean
from reduset.select import Selector

WAYS = ("shared", "own", "all")
DISTANCE_TOL, OWN_TOL = 0.01, 0.02  # where neither tol nor size is given
LATER_TOL, LATER_FACTOR = 0.02, 1.5  # later bags may lose that much, or that many times what the worst of the fitted ones does
LATER_OVERLOOKED = 0.05  # nats of a divergence, or that many times what the worst of the fitted ones overlooks
ROUNDING = 1e-9


@dataclass(frozen=True)
class ComparisonOptions:
    """What was asked for; at most one of ``size`` and ``tol`` is given."""

    distance: str
    kernel: Kernel
    atoms: str
    size: int | None
    tol: float | None
    max_size: int
    selector: Selector
    confidence: float
    draws: int

    @property
    def weights(self) -> str:
        """A divergence needs true densities; for a distance the best weights may have any sign."""
        return "simplex" if self.distance == "kl" else "free"

    @property
    def each_within(self) -> float | None:
        """The relative error that every bag is to be within, where there is one."""
        return OWN_TOL if self.atoms == "own" and self.tol is None and self.size is None else self.tol


@dataclass(frozen=True)
class LaterDistances:
    """Later bags beside the fitted ones.

    Attributes
    ----------
    distances, errors : (M, N)
    unseen : (M,) which were compared in full; lost : (M,) the relative error of each on the atoms
    """

    distances: Array
    errors: Array
    unseen: NDArray[np.bool_]
    lost: Array


def own(points: Floats, asked: ComparisonOptions, rng: np.random.Generator) -> Compression:
    """A bag on atoms of its own."""
    mean, tol = KernelMean.from_samples(points, asked.kernel), asked.each_within
    with quietly():  # said once, of all the bags that did not reach it
        return compress(
            mean,
            size=None if asked.size is None else min(asked.size, mean.size),
            tol=tol,
            max_size=None if tol is None else min(asked.max_size, mean.size),
            select=asked.selector,
            weights=asked.weights,
            confidence=asked.confidence,
            rng=rng,
        )


def overlooked_points(points: Floats, small: KernelMean) -> float:
    """What the compression of a bag does not see of it."""
    return overlooked(KernelMean.from_samples(points, small.kernel), small)


class Comparison:
    """Bags ready to be compared.

    Attributes
    ----------
    kernel : with its bandwidth decided
    means : list of KernelMean, which are compared
    compressions : list of Compression, or None where there was none
    """

    def __init__(
        self,
        request: ComparisonOptions,
        bags: Sequence[Floats] | BagSource,
        names: Sequence[object],
        rng: np.random.Generator,
        progress: Progress,
    ) -> None:
        self._request = request
        pool_rng, self._rng, draws_rng = rng.spawn(3)
        held = bags if isinstance(bags, BagSource) else BagsInMemory(bags)
        drawn = pooled(held.pick(rows_drawn(held.sizes, pool_rng)), request.kernel)
        self.kernel = drawn.kernel
        self.compressions: list[Compression] | None = None
        self._atoms: SharedAtoms | None = None
        if request.atoms == "shared":
            self._atoms, self.compressions = self._shared(held, drawn, progress)
        elif request.atoms == "own":
            asked = replace(request, kernel=self.kernel)
            self.compressions = held.each(
                own, [(asked, each) for each in self._rng.spawn(len(held.sizes))], progress.stage("compressing")
            )
        self._warn_of(names)
        self.means = held.means(self.kernel) if self.compressions is None else [each.mean for each in self.compressions]
        self._lost = None if self.compressions is None else losses(self.compressions)
        self._overlooks = 0.0
        if request.distance == "kl" and self.compressions is not None:
            smalls = [(each.mean,) for each in self.compressions]
            self._overlooks = max(held.each(overlooked_points, smalls, progress.stage("checking")))
        self.distances, self.errors = self._between(self.means, self._lost, None, draws_rng, progress)
        self._warn_of_small_distances()

    def _full(self, bags: Sequence[Floats]) -> list[KernelMean]:
        return [KernelMean.from_samples(bag, self.kernel) for bag in bags]

    def _shared(self, bags: BagSource, pooled: KernelMean, progress: Progress) -> tuple[SharedAtoms, list[Compression]]:
        asked = self._request
        goal: int | StoppingRule
        if asked.size is not None:
            goal = min(asked.size, pooled.size)
        else:
            goal = DistanceTolerance(DISTANCE_TOL) if asked.tol is None else BagTolerance(asked.tol)
        most = min(asked.max_size, pooled.size)
        atoms, found, reached = share(
            partial(bags.look, self.kernel),
            len(bags.sizes),
            pooled,
            asked.selector,
            asked.weights,
            asked.confidence,
            self._rng,
            progress,
            goal,
            most,
        )
        short = [] if asked.tol is None else [each.certificate.interval[1] > asked.tol * (1 + ROUNDING) for each in found]
        self._short = not reached
        if not reached and asked.tol is None:
            self._warn(f"distances certain to {DISTANCE_TOL:.0%} were not reached", found[0].size)
        return atoms, [replace(each, reached=not late) for each, late in zip(found, short, strict=True)] if any(short) else found

    def _warn_of(self, names: Sequence[object]) -> None:
        """Say which bags are not within tol."""
        found, tol = self.compressions, self._request.each_within
        if found is None or tol is None:
            return
        short = [(name, each) for name, each in zip(names, found, strict=True) if not each.reached]
        if short:
            worst = max(each.certificate.interval[1] for _, each in short)
            listed = _listed([name for name, _ in short])
            what = f"tol={tol} was not reached by {len(short)} of {len(names)} bags ({listed}; errors up to {worst:.3g})"
            self._warn(what, max(each.size for _, each in short))

    def _warn_of_small_distances(self) -> None:
        """Say where the goal for the distances was reached only because these are small beside the bags' norms."""
        asked = self._request
        if self._atoms is None or asked.distance != "mmd" or asked.size is not None or asked.tol is not None or self._short:
            return
        lost, apart = float(np.linalg.norm(self.errors)), float(np.linalg.norm(self.distances))
        if lost > DISTANCE_TOL * apart * (1 + 1e-6):
            warnings.warn(
                f"the bags hardly differ: their distances, {apart:.2g} in the Frobenius norm, are certain to {lost:.2g}, "
                f"which is not within {DISTANCE_TOL:.0%} of them. Give a tol or a size for more atoms",
                NotReachedWarning,
                stacklevel=5,
            )

    def _warn(self, what: str, size: int) -> None:
        warnings.warn(
            f"{what} with {size} atoms. What that means for each distance is in errors_. Raise max_size or tol, give a size, or "
            "widen the bandwidth",
            NotReachedWarning,
            stacklevel=6,
        )

    @property
    def limit(self) -> float:
        """The relative error up to which a later bag is compared by its compression."""
        worst = max(each.certificate.relative_error for each in self.compressions or [])
        tol = self._request.each_within
        return max(LATER_TOL, LATER_FACTOR * worst) if tol is None else max(tol, worst)

    def to_fitted(
        self, bags: Sequence[Floats], names: Sequence[object], rng: np.random.Generator, progress: Progress, stacklevel: int
    ) -> tuple[Array, Array]:
        """The distances of later bags to the fitted ones, and their errors, (M, N) each."""
        later = self.later(bags, rng, progress)
        self.warn_of_later(later, names, stacklevel)
        return later.distances, later.errors

    def later(self, bags: Sequence[Floats], rng: np.random.Generator, progress: Progress) -> LaterDistances:
        """The same, and which of the bags the atoms do not see; for a bag the same whichever others it came with."""
        full, seed = self._full(bags), int(rng.integers(2**63))
        found = self._others(full, seed, progress)
        if found is None:
            apart, certain = self._between(full, None, self.means, np.random.default_rng(seed), progress)
            return LaterDistances(apart, certain, np.zeros(len(full), np.bool_), np.zeros(len(full)))
        errors = np.array([each.certificate.relative_error for each in found])
        unseen = errors > self.limit * (1 + ROUNDING)
        if self._request.distance == "kl":
            unseen |= np.array(self._overlooked(full, found)) > max(LATER_OVERLOOKED, LATER_FACTOR * self._overlooks)
        apart, certain = np.empty((len(full), len(self.means))), np.empty((len(full), len(self.means)))
        for compressed, mine in ((True, np.flatnonzero(~unseen)), (False, np.flatnonzero(unseen))):
            if len(mine):
                means = [found[k].mean if compressed else full[k] for k in mine]
                lost = losses([found[k] for k in mine]) if compressed else None
                rng = np.random.default_rng(seed)  # for a bag the same whichever others it came with
                apart[mine], certain[mine] = self._between(means, lost, self.means, rng, progress)
        return LaterDistances(apart, certain, unseen, errors)

    def _overlooked(self, full: list[KernelMean], found: list[Compression]) -> list[float]:
        """By how much the divergence of each bag from its compression shows that points are not seen."""
        return [overlooked(mean, small.mean) for mean, small in zip(full, found, strict=True)]

    def _others(self, full: list[KernelMean], seed: int, progress: Progress) -> list[Compression] | None:
        """Later bags, made small in the same way; each with the same chance numbers."""
        rngs = [np.random.default_rng(seed) for _ in full]
        if self._atoms is None:
            if self._request.atoms != "own":
                return None
            asked = replace(self._request, kernel=self.kernel)
            bags = BagsInMemory([mean.atoms for mean in full])
            return bags.each(own, [(asked, rng) for rng in rngs], progress.stage("compressing"))
        report, found = progress.stage("weighing bags"), []
        for k, (mean, rng) in enumerate(zip(full, rngs, strict=True)):
            report(k, len(full))
            found.append(self._atoms.put(mean, rng))
        return found

    def warn_of_later(self, later: LaterDistances, names: Sequence[object], stacklevel: int) -> None:
        """Say which later bags had to be compared in full."""
        if not later.unseen.any():
            return
        far = [name for name, one in zip(names, later.unseen, strict=True) if one]
        warnings.warn(
            f"{len(far)} of the later bags ({_listed(far)}) lose too much on these atoms, up to {later.lost.max():.2g} of their "
            "norm, and are compared in full, which takes longer. Fit again with such bags among the others, or with more atoms",
            NotReachedWarning,
            stacklevel=stacklevel,
        )

    def _between(
        self,
        means: list[KernelMean],
        lost: Array | None,
        fitted: list[KernelMean] | None,
        rng: np.random.Generator,
        progress: Progress,
    ) -> tuple[Array, Array]:
        """Distances and errors of means to the fitted ones, or among themselves; ``lost`` by each of them, None by full ones."""
        if self._request.distance == "kl":
            return estimate(means, fitted, self._request.draws, rng, progress)
        apart = between(means, fitted, progress)
        both = np.zeros_like(apart) if self._lost is None else np.tile(self._lost, (len(means), 1))
        if lost is None:
            return apart, both
        both += lost[:, None]
        errors = np.hypot(apart, both) - apart if self._request.atoms == "shared" else both
        if fitted is None:
            np.fill_diagonal(errors, 0.0)
        return apart, errors


def _listed(names: Sequence[object]) -> str:
    return ", ".join(map(repr, names[:5])) + (", …" if len(names) > 5 else "")


def losses(compressions: Sequence[Compression]) -> Array:
    """(N,) the upper ends of the intervals of ‖f − Pf‖ itself, which is what free weights lose."""
    return np.array([_loss(each) for each in compressions])


def _loss(compression: Compression) -> float:
    mean, prefixes = compression.mean, compression._prefixes
    square = prefixes.residual.plus(prefixes.span.energy_after(mean.size)).high
    return float(np.sqrt(square)) * exponential(mean.kernel.log_energy(mean.dimension) / 2)
