"""The comparison of a cohort: its bags compressed or in full, and the distance of every pair with its error.

The estimator keeps it between fit and transform. Bags are compressed to atoms in one of three ways. Densities can also be
compressed to Gaussian components of each bag.

- "shared": all bags on the same atoms (`shared_atoms`), 0 ≤ D − D₀ ≤ √(D₀² + (e_f + e_g)²) − D₀.
- "own": different atoms for each bag, as in the paper, |D − D₀| ≤ e_f + e_g.
- "all": no compression, the reference for both.

Components:  f = Σ w_i N(x_i, h²Σ)  →  g = Σ α_k N(t_k, H_k),  with the same mass and non-negative weights. Hundreds of kernel
functions of one width h miss the shoulders and tails of a density, and with them large parts of a divergence. Wider components
approximate these. O(n·m·d²) a round of the fit.

The atoms were selected without later bags. A later bag with a measured error above `limit` is compared in full, which costs O(n²)
for its norm. Then |D − D₀| ≤ e_g, where e_g is the error of the fitted bag. For "kl", a bag with points that its compression misses
(`overlooked`) is also compared in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from reduset._engine import in_blocks
from reduset._messages import warn
from reduset._progress import Progress
from reduset._types import Array, Floats
from reduset.cohort.bags import Bags
from reduset.cohort.distances import between
from reduset.cohort.divergences import Density, estimate, overlooked
from reduset.cohort.shared_atoms import DISTANCE_TOL, SharedAtoms, pooled, rows_drawn, share
from reduset.compression import AtomRequest, Compression, NotReachedWarning
from reduset.kernels import Gaussian, Kernel
from reduset.mean import KernelMean

WAYS = ("shared", "own", "all")
PIECES = ("atoms", "components")
OWN_TOL = 0.02  # without tol and size
LATER_TOL, LATER_FACTOR = 0.02, 1.5  # the limit for later bags: an error, and a multiple of the largest error of a fitted bag
LATER_OVERLOOKED = 0.05  # the limit for the missing part of a divergence, in nats
ROUNDING = 1e-9


@dataclass(frozen=True)
class ComparisonOptions:
    """Checked parameters.

    Attributes
    ----------
    distance : "mmd" or "kl".
    kernel : Kernel of the kernel means.
    atoms : "shared", "own" or "all".
    request : Number and kind of pieces, their selection and weights. It has no goal if the distances determine the number.
    draws : Number of draws from each density, for "kl".
    """

    distance: str
    kernel: Kernel
    atoms: str
    request: AtomRequest
    draws: int

    @property
    def pieces(self) -> str:
        """ "atoms" or "components"."""
        return self.request.pieces

    @property
    def on_own_pieces(self) -> bool:
        """Whether each bag has its own pieces."""
        return self.pieces == "components" or self.atoms == "own"

    @property
    def bag_request(self) -> AtomRequest:
        """The request that applies to a bag."""
        return self.request.or_else(tol=OWN_TOL) if self.on_own_pieces else self.request


class LaterDistances(NamedTuple):
    """Distances of later bags to the fitted ones.

    Attributes
    ----------
    distances, errors : Arrays of shape (M, N).
    in_full : Whether a bag was compared in full, (M,).
    relative_errors : Relative error of each bag on the atoms, (M,).
    """

    distances: Array
    errors: Array
    in_full: NDArray[np.bool_]
    relative_errors: Array


def own_pieces(points: Floats, options: ComparisonOptions, rng: np.random.Generator) -> Compression:
    """A bag on its own atoms or components. One warning names all bags that do not reach the goal."""
    kernel = options.kernel
    if options.pieces == "components":
        kernel = replace(cast(Gaussian, kernel), normalized=True, space="l2")
        points = np.ascontiguousarray(points[:])  # the rounding of products depends on the order in memory
    return options.bag_request.compress(KernelMean.of_rows(points, kernel), rng)


class Comparison:
    """Bags compared with each other, and later ones with them.

    Parameters
    ----------
    options : ComparisonOptions

    Attributes
    ----------
    kernel : Kernel with a resolved bandwidth.
    means : List of KernelMean or Mixture, which are compared.
    compressions : List of Compression, or None for bags in full.
    distances, errors : Arrays of shape (N, N).
    """

    def __init__(self, options: ComparisonOptions) -> None:
        self._options = options

    def fit(self, bags: Sequence[Floats], names: Sequence[object], rng: np.random.Generator, progress: Progress) -> Self:
        """Compress the bags and compare all pairs."""
        pool_rng, atoms_rng, draws_rng = rng.spawn(3)
        source = Bags(bags)
        pool = pooled(source.pick(rows_drawn(source.sizes, pool_rng)), self._options.kernel)
        self.kernel = pool.kernel
        self._atoms: SharedAtoms | None = None
        self._reached = True
        self.compressions: Sequence[Compression] | None = None
        if self._options.on_own_pieces:
            self.compressions = self._own(source, atoms_rng.spawn(len(source.sizes)), progress)
        elif self._options.atoms == "shared":
            self._share(source, pool, atoms_rng, progress)
        self._warn_of_bags(names)
        self.means: list[Density]
        self._losses: Array | None = None
        self._overlooked = 0.0
        if self.compressions is None:
            self.means = [*source.means(self.kernel)]
        else:
            self.means = [compression.mean for compression in self.compressions]
            if self._options.distance == "kl":
                smalls = [(mean, self.kernel) for mean in self.means]
                self._overlooked = max(source.each(overlooked, smalls, progress.stage("checking")))
            else:
                self._losses = losses(self.compressions)
        self.distances, self.errors = self._between(self.means, self._losses, None, draws_rng, progress)
        if self._atoms is not None and self._reached:
            self._warn_of_small_distances()
        return self

    def _own(self, source: Bags, rngs: list[np.random.Generator], progress: Progress) -> Sequence[Compression]:
        options = replace(self._options, kernel=self.kernel)
        return source.each(own_pieces, [(options, rng) for rng in rngs], progress.stage("compressing"))

    def _share(self, source: Bags, pool: KernelMean, rng: np.random.Generator, progress: Progress) -> None:
        request = self._options.request
        self._atoms, compressions, self._reached = share(source, pool, request, rng, progress)
        if request.tol is None and not self._reached:
            goal_text = f"distances certain to {DISTANCE_TOL:.0%} were" if request.plateau is None else f"{request.goal} was"
            self._warn_of_size(f"{goal_text} not reached", compressions[0].size)
        limit = np.inf if request.tol is None else request.tol * (1 + ROUNDING)
        self.compressions = [
            replace(result, reached=result.reached and result.certificate.interval[1] <= limit) for result in compressions
        ]

    def _warn_of_bags(self, names: Sequence[object]) -> None:
        """Name the bags that did not reach the goal."""
        goal = self._options.bag_request.goal
        failed = [(name, result) for name, result in zip(names, self.compressions or (), strict=False) if not result.reached]
        if goal and failed:
            worst = max(result.certificate.interval[1] for _, result in failed)
            listed = _listed([name for name, _ in failed])
            what = f"{goal} was not reached by {len(failed)} of {len(names)} bags ({listed}; errors up to {worst:.3g})"
            self._warn_of_size(what, max(result.size for _, result in failed))

    def _warn_of_small_distances(self) -> None:
        """Warn if the goal for the distances was reached only because they are small compared with the bags' norms."""
        options = self._options
        if options.distance != "mmd" or options.request.has_goal:
            return
        error, distance = float(np.linalg.norm(self.errors)), float(np.linalg.norm(self.distances))
        if error > DISTANCE_TOL * distance * (1 + 1e-6):
            warn(
                f"the bags are nearly equal: their distances are {distance:.2g} and the errors up to {error:.2g} in the Frobenius "
                f"norm, which is above {DISTANCE_TOL:.0%}. Give a tol or a size for more atoms",
                NotReachedWarning,
            )

    def _warn_of_size(self, what: str, size: int) -> None:
        warn(
            f"{what} with {size} {self._options.pieces}. errors_ has the error of each distance. Raise max_size, loosen the goal, "
            "give a size, or widen the bandwidth",
            NotReachedWarning,
        )

    @property
    def limit(self) -> float:
        """The relative error up to which a later bag is compared by its compression."""
        worst = max(result.certificate.relative_error for result in self.compressions or [])
        tol = self._options.bag_request.tol
        return max(LATER_TOL, LATER_FACTOR * worst) if tol is None else max(tol, worst)

    def later(self, bags: Sequence[Floats], rng: np.random.Generator, progress: Progress) -> LaterDistances:
        """Distances of later bags to the fitted ones, in full for bags with a large error.

        Random numbers are the same for every bag, so that its distances do not depend on the other later bags.
        """
        if any(map(in_blocks, bags)):
            tasks = [(rng,) for _ in bags]
            parts = Bags(bags).each(partial(_later_bag, self), tasks, progress.stage("weighing bags"))
            return LaterDistances(*map(np.concatenate, zip(*parts, strict=True)))
        full = [KernelMean.of_rows(bag, self.kernel) for bag in bags]
        seed = int(rng.integers(2**63))
        compressions = self._compress_later(full, seed, progress)
        if compressions is None:
            distances, bounds = self._between(full, None, self.means, np.random.default_rng(seed), progress)
            return LaterDistances(distances, bounds, np.zeros(len(full), np.bool_), np.zeros(len(full)))
        errors = np.array([result.certificate.relative_error for result in compressions])
        in_full = errors > self.limit * (1 + ROUNDING)
        if self._options.distance == "kl":
            missed = [overlooked(bag, small.mean, self.kernel) for bag, small in zip(bags, compressions, strict=True)]
            in_full |= np.array(missed) > max(LATER_OVERLOOKED, LATER_FACTOR * self._overlooked)
        distances, bounds = np.empty((len(full), len(self.means))), np.empty((len(full), len(self.means)))
        for compressed, chosen in ((True, np.flatnonzero(~in_full).tolist()), (False, np.flatnonzero(in_full).tolist())):
            if len(chosen):
                means: list[Density] = [compressions[k].mean if compressed else full[k] for k in chosen]
                residuals = losses([compressions[k] for k in chosen]) if compressed and self._options.distance == "mmd" else None
                bag_rng = np.random.default_rng(seed)
                distances[chosen], bounds[chosen] = self._between(means, residuals, self.means, bag_rng, progress)
        return LaterDistances(distances, bounds, in_full, errors)

    def _compress_later(self, full: list[KernelMean], seed: int, progress: Progress) -> Sequence[Compression] | None:
        """Later bags, compressed like the fitted bags; None if the fitted bags are in full."""
        rngs = [np.random.default_rng(seed) for _ in full]
        if self._atoms is not None:
            progress.stage("weighing bags")(0, len(full))
            return [self._atoms.put(mean, rng) for mean, rng in zip(full, rngs, strict=True)]
        return self._own(Bags([mean.atoms for mean in full]), rngs, progress) if self._options.on_own_pieces else None

    def warn_of_later(self, later: LaterDistances, names: Sequence[object]) -> None:
        """Name the later bags that were compared in full."""
        affected = [name for name, in_full in zip(names, later.in_full, strict=True) if in_full]
        if affected:
            warn(
                f"{len(affected)} of the later bags ({_listed(affected)}) have errors up to {later.relative_errors.max():.2g} of "
                f"their norm on these {self._options.pieces}. They are compared in full, which takes longer. Fit again with such "
                f"bags included, or with more {self._options.pieces}",
                NotReachedWarning,
            )

    def _between(
        self,
        means: Sequence[Density],
        residuals: Array | None,
        fitted: Sequence[Density] | None,
        rng: np.random.Generator,
        progress: Progress,
    ) -> tuple[Array, Array]:
        """Distances and errors of means to the fitted means, or to each other; ``residuals`` has their errors, None for 0."""
        if self._options.distance == "kl":
            return estimate(means, fitted, self._options.draws, rng, progress)
        distances = between(cast(list[KernelMean], means), cast(list[KernelMean] | None, fitted), progress)
        both = np.zeros_like(distances) if self._losses is None else np.tile(self._losses, (len(means), 1))
        if residuals is None:
            return distances, both
        both += residuals[:, None]
        errors = np.hypot(distances, both) - distances if self._options.atoms == "shared" else both
        if fitted is None:
            np.fill_diagonal(errors, 0.0)
        return distances, errors


def _later_bag(comparison: Comparison, points: Floats, rng: np.random.Generator) -> LaterDistances:
    """One later bag, in a task."""
    return comparison.later([points], rng, Progress())


def _listed(names: Sequence[object]) -> str:
    return ", ".join(map(repr, names[:5])) + (", …" if len(names) > 5 else "")


def losses(compressions: Sequence[Compression]) -> Array:
    """(N,) the upper ends of the intervals of ‖f − P f‖, the error of free weights."""
    return np.array([result.residual_bound for result in compressions])
