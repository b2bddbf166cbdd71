"""A cohort compared: its bags made small, or left as they are, and every distance between two with the error it carries.

What the estimator holds between fit and transform. Pieces are atoms, in three ways by name, or for densities components
(`bag_components`), each bag's own.

"shared"  all bags on the same atoms (`shared`), 0 ≤ D − D₀ ≤ √(D₀² + (e_f + e_g)²) − D₀
"own"     each bag on atoms of its own, as in the paper, |D − D₀| ≤ e_f + e_g
"all"     no compression: the oracle for both

The atoms were chosen without later bags, and may not see one of these at all. One whose measured error is above `limit` is compared
in full, with |D − D₀| ≤ e_g, e_g of the fitted bag; O(n²) for its own norm. So is, for "kl", one with points that its
compression does not see (`overlooked`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray

from reduset._messages import warn
from reduset._progress import Progress
from reduset._types import Array, Floats
from reduset.cohort.bag_components import BagComponents, as_components, require_gaussian
from reduset.cohort.bag_source import BagsInMemory, BagSource
from reduset.cohort.distances import between
from reduset.cohort.divergences import Density, estimate, overlooked
from reduset.cohort.shared_atoms import Plateau, SharedAtoms, SharingOptions, pooled, rows_drawn, share
from reduset.cohort.stopping import BagTolerance, DistanceTolerance, StoppingRule
from reduset.compression import AtomRequest, Compression, NotReachedWarning
from reduset.kernels import Kernel
from reduset.mean import KernelMean
from reduset.select import as_selector

WAYS = ("shared", "own", "all")
PIECES = ("atoms", "components")
DISTANCE_TOL, OWN_TOL = 0.01, 0.02  # where neither tol nor size is given
LATER_TOL, LATER_FACTOR = 0.02, 1.5  # later bags may lose that much, or that many times what the worst of the fitted ones does
LATER_OVERLOOKED = 0.05  # nats of a divergence, or that many times what the worst of the fitted ones overlooks
ROUNDING = 1e-9


@dataclass(frozen=True)
class ComparisonOptions:
    """What was asked for, checked.

    Attributes
    ----------
    distance, kernel : "mmd" or "kl", between kernel means of this kernel
    atoms : "shared", "own" or "all"
    request : how many pieces of which kind, how they are chosen and weighed; without a goal where the distances decide
    draws : from each density, for "kl"
    """

    distance: str
    kernel: Kernel
    atoms: str
    request: AtomRequest
    draws: int

    @property
    def pieces(self) -> str:
        """What bags are made of."""
        return self.request.pieces

    @property
    def on_own_pieces(self) -> bool:
        """Whether each bag has pieces of its own."""
        return self.pieces == "components" or self.atoms == "own"

    @property
    def own_request(self) -> AtomRequest:
        """The request for a bag that has pieces of its own."""
        return self.request.or_else(tol=OWN_TOL)

    @property
    def each_within(self) -> float | None:
        """The relative error that every bag is to be within, where there is one."""
        return self.own_request.tol if self.on_own_pieces else self.request.tol


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


def own(points: Floats, options: ComparisonOptions, rng: np.random.Generator) -> Compression:
    """A bag on atoms of its own; bags that do not reach the goal are named in one warning for all."""
    return options.own_request.compress(KernelMean.of_rows(points, options.kernel), rng)


def own_components(points: Floats, options: ComparisonOptions, rng: np.random.Generator) -> BagComponents:
    """A bag on components of its own."""
    return as_components(points, require_gaussian(options.kernel), options.own_request, rng)


def overlooked_points(points: Floats, small: Density, kernel: Kernel) -> float:
    """What the compression of a bag does not see of it."""
    return overlooked(KernelMean.of_rows(points, kernel), small)


class Comparison:
    """Bags compared with each other, and later ones with them.

    Parameters
    ----------
    options : ComparisonOptions

    Attributes
    ----------
    kernel : with its bandwidth decided
    means : list of KernelMean or Mixture, which are compared
    compressions : list of Compression or BagComponents, or None where there was none
    distances, errors : (N, N)
    """

    def __init__(self, options: ComparisonOptions) -> None:
        self._options = options

    def fit(
        self, bags: Sequence[Floats] | BagSource, names: Sequence[object], rng: np.random.Generator, progress: Progress
    ) -> Self:
        """Make the bags small, as was asked for, and compare every two of them."""
        pool_rng, atoms_rng, draws_rng = rng.spawn(3)
        source = bags if isinstance(bags, BagSource) else BagsInMemory(bags)
        pool = pooled(source.pick(rows_drawn(source.sizes, pool_rng)), self._options.kernel)
        self.kernel = pool.kernel
        self._compress(source, pool, names, atoms_rng, progress)
        self.means: list[Density]
        if self.compressions is None:
            self.means = [*source.means(self.kernel)]
        else:
            self.means = [each.mean for each in self.compressions]
        self._lost = None if self.compressions is None or self._options.distance == "kl" else losses(self.compressions)
        self._overlooks = 0.0
        if self._options.distance == "kl" and self.compressions is not None:
            smalls = [(each.mean, self.kernel) for each in self.compressions]
            self._overlooks = max(source.each(overlooked_points, smalls, progress.stage("checking")))
        self.distances, self.errors = self._between(self.means, self._lost, None, draws_rng, progress)
        if self._atoms is not None and self._reached:
            self._warn_of_small_distances()
        return self

    def _compress(
        self, source: BagSource, pool: KernelMean, names: Sequence[object], rng: np.random.Generator, progress: Progress
    ) -> None:
        """Put the bags on shared atoms or on pieces of their own, and say which of them are not within the tolerance."""
        self._atoms: SharedAtoms | None = None
        self._reached = True
        self.compressions: Sequence[Compression | BagComponents] | None = None
        if self._options.on_own_pieces:
            self.compressions = self._own(source, rng.spawn(len(source.sizes)), progress)
        elif self._options.atoms == "shared":
            self._share(source, pool, rng, progress)
        self._warn_of_bags(names)

    def _own(self, source: BagSource, rngs: list[np.random.Generator], progress: Progress) -> Sequence[Compression | BagComponents]:
        options = replace(self._options, kernel=self.kernel)
        made = own_components if options.pieces == "components" else own
        return source.each(made, [(options, rng) for rng in rngs], progress.stage("compressing"))

    def _share(self, source: BagSource, pool: KernelMean, rng: np.random.Generator, progress: Progress) -> None:
        request = self._options.request
        goal: int | StoppingRule | Plateau
        if request.size is not None:
            goal = min(request.size, pool.size)
        elif request.plateau is not None:
            goal = Plateau(request.plateau)
        else:
            goal = DistanceTolerance(DISTANCE_TOL) if request.tol is None else BagTolerance(request.tol)
        # every bag is on all atoms, so that their number may be a function of all rows, and not only of those in the pool
        most = min(request.most(sum(source.sizes)), pool.size)
        sharing = SharingOptions(as_selector(request.select), request.weights, request.confidence, goal, most)
        self._atoms, found, self._reached = share(source, pool, sharing, rng, progress)
        if request.tol is None and not self._reached:
            goal_text = f"distances certain to {DISTANCE_TOL:.0%} were" if request.plateau is None else f"{request.goal} was"
            self._warn_of_size(f"{goal_text} not reached", found[0].size)
        limit = np.inf if request.tol is None else request.tol * (1 + ROUNDING)
        self.compressions = [each if each.certificate.interval[1] <= limit else replace(each, reached=False) for each in found]

    def _warn_of_bags(self, names: Sequence[object]) -> None:
        """Name the bags that did not reach the goal."""
        goal = (self._options.own_request if self._options.on_own_pieces else self._options.request).goal
        short = [(name, each) for name, each in zip(names, self.compressions or (), strict=False) if not each.reached]
        if goal and short:
            worst = max(each.certificate.interval[1] for _, each in short)
            listed = _listed([name for name, _ in short])
            what = f"{goal} was not reached by {len(short)} of {len(names)} bags ({listed}; errors up to {worst:.3g})"
            self._warn_of_size(what, max(each.size for _, each in short))

    def _warn_of_small_distances(self) -> None:
        """Say where the goal for the distances was reached only because these are small beside the bags' norms."""
        options = self._options
        if options.distance != "mmd" or options.request.has_goal:
            return
        lost, apart = float(np.linalg.norm(self.errors)), float(np.linalg.norm(self.distances))
        if lost > DISTANCE_TOL * apart * (1 + 1e-6):
            warn(
                f"the bags hardly differ: their distances, {apart:.2g} in the Frobenius norm, are certain to {lost:.2g}, "
                f"which is not within {DISTANCE_TOL:.0%} of them. Give a tol or a size for more atoms",
                NotReachedWarning,
            )

    def _warn_of_size(self, what: str, size: int) -> None:
        warn(
            f"{what} with {size} {self._options.pieces}. What that means for each distance is in errors_. Raise max_size, "
            "loosen the goal, give a size, or widen the bandwidth",
            NotReachedWarning,
        )

    @property
    def limit(self) -> float:
        """The relative error up to which a later bag is compared by its compression."""
        worst = max(each.certificate.relative_error for each in self.compressions or [])
        tol = self._options.each_within
        return max(LATER_TOL, LATER_FACTOR * worst) if tol is None else max(tol, worst)

    def later(self, bags: Sequence[Floats], rng: np.random.Generator, progress: Progress) -> LaterDistances:
        """Later bags beside the fitted ones, and which of them the atoms do not see.

        Chance numbers are the same for every bag, so that its distances do not depend on which others it came with.
        """
        full = [KernelMean.of_rows(bag, self.kernel) for bag in bags]
        seed = int(rng.integers(2**63))
        found = self._compress_later(full, seed, progress)
        if found is None:
            apart, certain = self._between(full, None, self.means, np.random.default_rng(seed), progress)
            return LaterDistances(apart, certain, np.zeros(len(full), np.bool_), np.zeros(len(full)))
        errors = np.array([each.certificate.relative_error for each in found])
        unseen = errors > self.limit * (1 + ROUNDING)
        if self._options.distance == "kl":
            missed = [overlooked(mean, small.mean) for mean, small in zip(full, found, strict=True)]
            unseen |= np.array(missed) > max(LATER_OVERLOOKED, LATER_FACTOR * self._overlooks)
        apart, certain = np.empty((len(full), len(self.means))), np.empty((len(full), len(self.means)))
        for compressed, mine in ((True, np.flatnonzero(~unseen).tolist()), (False, np.flatnonzero(unseen).tolist())):
            if len(mine):
                means: list[Density] = [found[k].mean if compressed else full[k] for k in mine]
                lost = losses([found[k] for k in mine]) if compressed and self._options.distance == "mmd" else None
                apart[mine], certain[mine] = self._between(means, lost, self.means, np.random.default_rng(seed), progress)
        return LaterDistances(apart, certain, unseen, errors)

    def _compress_later(
        self, full: list[KernelMean], seed: int, progress: Progress
    ) -> Sequence[Compression | BagComponents] | None:
        """Later bags, made small in the same way; None where the fitted ones were not."""
        source = BagsInMemory([mean.atoms for mean in full])
        rngs = [np.random.default_rng(seed) for _ in full]
        if self._atoms is not None:
            atoms = self._atoms
            return source.each(_put, [(atoms, *each) for each in zip(full, rngs, strict=True)], progress.stage("weighing bags"))
        return self._own(source, rngs, progress) if self._options.on_own_pieces else None

    def warn_of_later(self, later: LaterDistances, names: Sequence[object]) -> None:
        """Say which later bags had to be compared in full."""
        far = [name for name, one in zip(names, later.unseen, strict=True) if one]
        if far:
            warn(
                f"{len(far)} of the later bags ({_listed(far)}) lose too much on these {self._options.pieces}, up to "
                f"{later.lost.max():.2g} of their norm, and are compared in full, which takes longer. Fit again with such bags "
                f"among the others, or with more {self._options.pieces}",
                NotReachedWarning,
            )

    def _between(
        self,
        means: Sequence[Density],
        lost: Array | None,
        fitted: Sequence[Density] | None,
        rng: np.random.Generator,
        progress: Progress,
    ) -> tuple[Array, Array]:
        """Distances and errors of means to the fitted ones, or among themselves; ``lost`` by each of them, None by full ones."""
        if self._options.distance == "kl":
            return estimate(means, fitted, self._options.draws, rng, progress)
        apart = between(cast(list[KernelMean], means), cast(list[KernelMean] | None, fitted), progress)
        both = np.zeros_like(apart) if self._lost is None else np.tile(self._lost, (len(means), 1))
        if lost is None:
            return apart, both
        both += lost[:, None]
        errors = np.hypot(apart, both) - apart if self._options.atoms == "shared" else both
        if fitted is None:
            np.fill_diagonal(errors, 0.0)
        return apart, errors


def _put(_: Floats, atoms: SharedAtoms, mean: KernelMean, rng: np.random.Generator) -> Compression:
    return atoms.put(mean, rng)


def _listed(names: Sequence[object]) -> str:
    return ", ".join(map(repr, names[:5])) + (", …" if len(names) > 5 else "")


def losses(compressions: Sequence[Compression | BagComponents]) -> Array:
    """(N,) the upper ends of the intervals of ‖f − Pf‖ itself, which is what free weights of atoms lose."""
    return np.array([cast(Compression, each).residual_bound for each in compressions])
