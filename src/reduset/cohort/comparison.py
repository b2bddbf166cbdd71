"""A cohort compared: its bags made small, or left as they are, and every distance between two with the error it carries.

What the estimator holds between fit and transform; three ways by name.

"shared"  all bags on the same atoms (`shared`), 0 ≤ D − D₀ ≤ √(D₀² + (e_f + e_g)²) − D₀
"own"     each bag on atoms of its own, as in the paper, |D − D₀| ≤ e_f + e_g
"all"     no compression: the oracle for both
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reduset._engine.profile import Floats
from reduset._progress import Progress
from reduset.cohort.distances import between
from reduset.cohort.divergences import estimate
from reduset.cohort.goals import AllDistances, EachBag, Goal
from reduset.cohort.shared import SharedAtoms, pool, share
from reduset.compression import Compression, NotReachedWarning, compress
from reduset.mean import Array, KernelMean
from reduset.radial import Kernel
from reduset.select import Selector

WAYS = ("shared", "own", "all")
DISTANCE_TOL, OWN_TOL = 0.01, 0.02  # where neither tol nor size is given
ROUNDING = 1e-9


@dataclass(frozen=True)
class Request:
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


class Comparison:
    """Bags ready to be compared.

    Attributes
    ----------
    kernel : with its bandwidth decided
    means : list of KernelMean, which are compared
    compressions : list of Compression, or None where there was none
    """

    def __init__(
        self, request: Request, bags: Sequence[Floats], names: Sequence[object], rng: np.random.Generator, progress: Progress
    ) -> None:
        self._request = request
        pool_rng, self._rng, draws_rng = rng.spawn(3)
        pooled = pool(bags, request.kernel, pool_rng)
        self.kernel = pooled.kernel
        full = self._full(bags)
        self.compressions: list[Compression] | None = None
        self._atoms: SharedAtoms | None = None
        if request.atoms == "shared":
            self._atoms, self.compressions = self._shared(full, pooled, progress)
        elif request.atoms == "own":
            self.compressions = self._own(full, self._rng, progress)
        self._warn_of(names)
        self.means = full if self.compressions is None else [each.mean for each in self.compressions]
        self.distances, self.errors = self._between(self.means, self.compressions, None, draws_rng, progress)

    def _full(self, bags: Sequence[Floats]) -> list[KernelMean]:
        return [KernelMean.from_samples(bag, self.kernel) for bag in bags]

    def _shared(self, full: list[KernelMean], pooled: KernelMean, progress: Progress) -> tuple[SharedAtoms, list[Compression]]:
        asked = self._request
        goal: int | Goal
        if asked.size is not None:
            goal = min(asked.size, pooled.size)
        else:
            goal = AllDistances(DISTANCE_TOL) if asked.tol is None else EachBag(asked.tol)
        most = min(asked.max_size, pooled.size)
        atoms, found, reached = share(
            full, pooled, asked.selector, asked.weights, asked.confidence, self._rng, progress, goal, most
        )
        short = [] if asked.tol is None else [each.certificate.interval[1] > asked.tol * (1 + ROUNDING) for each in found]
        if not reached and asked.tol is None:
            self._warn(f"distances certain to {DISTANCE_TOL:.0%} were not reached", found[0].size)
        return atoms, [replace(each, reached=not late) for each, late in zip(found, short, strict=True)] if any(short) else found

    def _own(self, full: list[KernelMean], rng: np.random.Generator, progress: Progress) -> list[Compression]:
        asked, found = self._request, []
        tol = OWN_TOL if asked.tol is None and asked.size is None else asked.tol
        report = progress.stage("compressing")
        for k, mean in enumerate(full):
            report(k, len(full))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotReachedWarning)  # said once, of all the bags that did not
                found.append(
                    compress(
                        mean,
                        size=None if asked.size is None else min(asked.size, mean.size),
                        tol=tol,
                        max_size=None if tol is None else min(asked.max_size, mean.size),
                        select=asked.selector,
                        weights=asked.weights,
                        confidence=asked.confidence,
                        rng=rng,
                    )
                )
        return found

    def _warn_of(self, names: Sequence[object]) -> None:
        """Say which bags are not within tol."""
        found, tol = self.compressions, self._request.tol
        if found is None or tol is None:
            return
        short = [(name, each) for name, each in zip(names, found, strict=True) if not each.reached]
        if short:
            some = ", ".join(repr(name) for name, _ in short[:5]) + (", …" if len(short) > 5 else "")
            worst = max(each.certificate.interval[1] for _, each in short)
            what = f"tol={tol} was not reached by {len(short)} of {len(names)} bags ({some}; errors up to {worst:.3g})"
            self._warn(what, max(each.size for _, each in short))

    def _warn(self, what: str, size: int) -> None:
        warnings.warn(
            f"{what} with {size} atoms. What that means for each distance is in errors_. Raise max_size or tol, give a size, or "
            "widen the bandwidth",
            NotReachedWarning,
            stacklevel=5,
        )

    def others(
        self, bags: Sequence[Floats], rng: np.random.Generator, progress: Progress
    ) -> tuple[list[KernelMean], list[Compression] | None]:
        """Later bags, made small in the same way."""
        full = self._full(bags)
        if self._atoms is not None:
            report = progress.stage("weighing bags")
            compressions = []
            for k, mean in enumerate(full):
                report(k, len(full))
                compressions.append(self._atoms.put(mean, rng))
        elif self._request.atoms == "own":
            compressions = self._own(full, rng, progress)
        else:
            return full, None
        return [each.mean for each in compressions], compressions

    def to_fitted(self, bags: Sequence[Floats], rng: np.random.Generator, progress: Progress) -> tuple[Array, Array]:
        """The distances of later bags to the fitted ones, and their errors, (M, N) each."""
        means, compressions = self.others(bags, rng, progress)
        return self._between(means, compressions, self.means, rng, progress)

    def _between(
        self,
        means: list[KernelMean],
        compressions: list[Compression] | None,
        fitted: list[KernelMean] | None,
        rng: np.random.Generator,
        progress: Progress,
    ) -> tuple[Array, Array]:
        """Distances and errors of means to the fitted ones, or among themselves."""
        if self._request.distance == "kl":
            return estimate(means, fitted, self._request.draws, rng, progress)
        apart = between(means, fitted, progress)
        if compressions is None or self.compressions is None:
            return apart, np.zeros_like(apart)
        lost = np.array([largest_loss(each) for each in compressions])
        columns = lost if fitted is None else np.array([largest_loss(each) for each in self.compressions])
        both = lost[:, None] + columns
        errors = np.hypot(apart, both) - apart if self._request.atoms == "shared" else both
        if fitted is None:
            np.fill_diagonal(errors, 0.0)
        return apart, errors


def largest_loss(compression: Compression) -> float:
    """The upper end of the interval of ‖f − f_m‖ itself, for free weights.

    The relative error is r/(E + r) in the square, E what the atoms explain and r what is measured, larger at the upper end.
    """
    certificate = compression.certificate
    explained = certificate.norm**2 * max(1 - certificate.relative_error**2, 0.0)
    upper = certificate.interval[1] ** 2
    return float(np.sqrt(explained * upper / (1 - upper))) if upper < 1 else np.inf
