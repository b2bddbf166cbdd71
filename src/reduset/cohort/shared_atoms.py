"""Shared atoms: many bags compressed onto the same atoms, each with the best weights of its own.

The atoms are selected for the mean of all bags, each bag with the same mass. Let P be the projection onto their span, f and g two
bags, D = ‖f − g‖ and D₀ = ‖Pf − Pg‖. Both are projected onto one span, so by Pythagoras

    D² − D₀² = ‖(I − P)(f − g)‖² ≤ (e_f + e_g)²,    e_f = ‖f − Pf‖,
    0 ≤ D − D₀ ≤ √(D₀² + (e_f + e_g)²) − D₀:

what the compression loses enters a distance to second order. With atoms of their own (Cruz Cortés & Scott 2017, Section VI-A) the
two projections differ, and all that holds is |D − D₀| ≤ e_f + e_g.

What a bag loses is in part its sampling noise, of energy about (1 − ‖Pφ‖²)/n, which no other bag shares: of small bags no few atoms
are within a small tolerance, theirs or shared.

Cost: the selection, on at most `POOL_ROWS` rows; Σn·m kernel values for all weights; Σn·192 waves for all certificates; and one
factor, O(m³/3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reduset._engine import single_threaded_blas
from reduset._progress import Progress
from reduset._types import Array, Floats, Report
from reduset.certificate.probe import Measurement, Probe
from reduset.certificate.rule import probe_for
from reduset.cohort.stopping import PrefixLosses, StoppingRule
from reduset.compression import sizing
from reduset.compression.builder import Builder
from reduset.compression.clock import Clock
from reduset.compression.prefixes import Prefixes
from reduset.compression.result import Compression, assemble
from reduset.kernels.base import Kernel
from reduset.mean import KernelMean
from reduset.select import Selector
from reduset.weights.span import CHOLESKY_UP_TO, FactoredSpan, Span, span_of

POOL_ROWS = 1 << 15
AHEAD = 1.02  # of the size that the errors so far predict
UNSEEN = 1e-300  # least κ of the first atom: a mean that no atom sees projects to 0, which a KernelMean cannot be


def pool(bags: Sequence[Floats], kernel: Kernel, rng: np.random.Generator) -> KernelMean:
    """The mean of all bags, each with the same mass; of many rows as many are drawn from each bag.

    The kernel's bandwidth, where a rule is to find it, comes from these points.
    """
    drawn = rows_drawn([len(bag) for bag in bags], rng)
    return pooled([bag if rows is None else bag[rows] for bag, rows in zip(bags, drawn, strict=True)], kernel)


def rows_drawn(sizes: Sequence[int], rng: np.random.Generator) -> list[NDArray[np.int64] | None]:
    """Which rows of each bag are pooled, None for all of them."""
    if sum(sizes) <= POOL_ROWS:
        return [None] * len(sizes)
    most = max(2, POOL_ROWS // len(sizes))
    return [None if size <= most else np.sort(rng.choice(size, most, replace=False)) for size in sizes]


def pooled(drawn: Sequence[Floats], kernel: Kernel) -> KernelMean:
    """The mean of the rows drawn from all bags, each bag with the same mass."""
    weights = np.concatenate([np.full(len(rows), 1 / (len(drawn) * len(rows))) for rows in drawn])
    return KernelMean(np.concatenate(drawn), weights, kernel)


@dataclass(frozen=True)
class SharedAtoms:
    """Atoms that any bag can be put on.

    Attributes
    ----------
    span : of the atoms; whose κ it holds does not matter
    kind : of weights
    selection : who selected the atoms
    """

    kernel: Kernel
    span: Span
    kind: str
    confidence: float
    selection: str

    def put(self, mean: KernelMean, rng: np.random.Generator) -> Compression:
        """A bag on these atoms: one pass over its points."""
        seen = BagProjector(mean, self.confidence, rng).see(self.span)
        return _OnAtoms(mean.kernel, self.confidence).take(self.span, seen).state(self.span.size, self.kind, self.selection)


@dataclass(frozen=True)
class BagEvidence:
    """What the atoms see of a bag.

    Attributes
    ----------
    kappa : (k,) its products with the bumps of the atoms given; residual : ‖f − Pf‖²
    size : of its points; mass, total : Σw and Σ|w|
    """

    kappa: Array
    residual: Measurement
    size: int
    mass: float
    total: float


class BagProjector:
    """One bag with its points, its κ at the atoms so far, and its probe."""

    def __init__(self, mean: KernelMean, confidence: float, rng: np.random.Generator) -> None:
        self._mean, self._confidence, self._rng = mean, confidence, rng
        self._probe: Probe | None = None
        self._places: Array = np.empty((0, mean.dimension))
        self._kappa: Array = np.empty(0)

    def see(self, span: Span) -> BagEvidence:
        """Look at these atoms; what they begin with and was seen already is not summed again."""
        mean, known = self._mean, len(self._places)
        if not np.array_equal(span.given[:known], self._places):
            known = 0
        fresh = mean.kernel.product_sums(mean.atoms, mean.weights, span.given[known:]) if len(span.given) > known else np.empty(0)
        self._places = span.given
        self._kappa = np.concatenate([self._kappa[:known], fresh])[: len(span.given)]
        kappa = self._kappa.copy()
        if abs(kappa[0]) < UNSEEN:
            kappa[0] = UNSEEN
        mine = span.facing(kappa)
        if self._probe is None:
            self._probe = probe_for(mean, self._confidence, self._rng)
        residual = self._probe.measure(mine.atoms, mine.weights("free", mean.mass, mine.size), mine.kappa)
        return BagEvidence(kappa, residual, mean.size, mean.mass, float(mean.magnitudes.sum()))


Look = Callable[[Span, Report], list[BagEvidence]]  # all bags at these atoms


class _OnAtoms:
    """One bag as the atoms see it, without its points."""

    def __init__(self, kernel: Kernel, confidence: float) -> None:
        self._kernel, self._confidence = kernel, confidence
        self._clock = Clock()
        self._prefixes: Prefixes | None = None
        self._size = 0

    def take(self, span: Span, seen: BagEvidence) -> _OnAtoms:
        """Take these atoms instead of any before."""
        mine = span.facing(seen.kappa)
        shares = np.zeros(len(mine.atoms))
        self._size = seen.size
        self._prefixes = Prefixes(self._kernel, mine, seen.residual, "free", seen.mass, seen.total, shares, None, self._confidence)
        return self

    @property
    def prefixes(self) -> Prefixes:
        if self._prefixes is None:
            raise RuntimeError("no atoms yet")
        return self._prefixes

    def error(self, size: int, kind: str) -> float:
        """The upper end of the relative error with weights of that kind."""
        return replace(self.prefixes, kind=kind).error(size).interval[1]

    @property
    def coordinates(self) -> Array:
        """y = L⁻¹κ."""
        span = self.prefixes.span
        if not isinstance(span, FactoredSpan):
            raise RuntimeError(f"coordinates need a factor, which there is up to {CHOLESKY_UP_TO} atoms")
        return span.y

    def state(self, size: int, kind: str, selection: str) -> Compression:
        """The compression onto the first ``size`` atoms, with weights of that kind."""
        prefixes = replace(self.prefixes, kind=kind)
        return assemble(prefixes, size, self._size, selection, self._clock, remark="atoms shared with other bags")


def share(
    look: Callable[[float, list[np.random.Generator]], Look],
    count: int,
    pooled: KernelMean,
    selector: Selector,
    kind: str,
    confidence: float,
    rng: np.random.Generator,
    progress: Progress,
    goal: int | StoppingRule,
    most: int,
) -> tuple[SharedAtoms, list[Compression], bool]:
    """Select atoms for the mean of all bags, put each bag on them, and say whether the goal was reached.

    Parameters
    ----------
    look : makes, of a confidence and chance numbers for each bag, what looks at atoms
    count : of bags
    goal : that many atoms; or the fewest that reach it, or ``most`` where these do not do. With other weights than free ones it is
        a tolerance for each bag
    """
    run_rng, *bag_rngs = rng.spawn(1 + count)
    bags = _Gallery([_OnAtoms(pooled.kernel, confidence) for _ in range(count)], look(confidence, bag_rngs), progress)
    with single_threaded_blas():
        run = Builder(pooled, run_rng, confidence, progress)
        run.open(selector)
        if isinstance(goal, int):
            run.grow(goal)
            bags.see(run.span)
            size, reached = run.size, True
        else:
            size, reached = _grow(bags, run, goal, kind, min(most, CHOLESKY_UP_TO))
        span = run.span
        if size < span.size:
            span = span_of(pooled.kernel, span.atoms[:size], span.kappa[:size])
        atoms = SharedAtoms(pooled.kernel, span, kind, confidence, str(selector))
        return atoms, [bag.state(size, kind, str(selector)) for bag in bags.bags], reached


class _Gallery:
    """All bags before the same atoms."""

    def __init__(self, bags: list[_OnAtoms], look: Look, progress: Progress) -> None:
        self.bags, self._look, self._report = bags, look, progress.stage("weighing bags")

    def see(self, span: Span) -> None:
        """Show these atoms to every bag."""
        for bag, seen in zip(self.bags, self._look(span, self._report), strict=True):
            bag.take(span, seen)


def in_turn(means: Sequence[KernelMean], confidence: float, rngs: list[np.random.Generator]) -> Look:
    """Bags in memory, one after the other; each remembers what it has seen."""
    onlookers = [BagProjector(mean, confidence, rng) for mean, rng in zip(means, rngs, strict=True)]

    def look(span: Span, report: Report) -> list[BagEvidence]:
        found = []
        for k, onlooker in enumerate(onlookers):
            report(k, len(onlookers))
            found.append(onlooker.see(span))
        return found

    return look


def _grow(gallery: _Gallery, run: Builder, goal: StoppingRule, kind: str, most: int) -> tuple[int, bool]:
    """Grow the atoms until the goal is reached; how many of them it takes, and whether it was.

    The mean of all bags says quickly where to begin, since it loses less than they do: their noise is their own. From there the
    fall of the errors says how many more.
    """
    bags = gallery.bags
    _, asked, _ = sizing.by_tolerance(run, goal.start, "free", most, None)
    while True:
        more = run.grow(asked) and asked < most
        gallery.see(run.span)
        size = run.size  # without what is redundant
        losses = PrefixLosses(np.stack([bag.coordinates for bag in bags]), np.array([bag.prefixes.residual.high for bag in bags]))
        lack = goal.lack(losses, size)
        if lack <= 1 and kind == "free":
            return goal.fewest(losses), True
        if lack <= 1:
            # weights of another kind must be found anew for every size that is tried, so no smaller ones are
            lack = max(bag.error(size, kind) for bag in bags) / goal.start
            if lack <= 1:
                return size, True
        if not more:
            return size, False
        earlier = max(1, 3 * size // 4)
        fall = np.log(goal.lack(losses, earlier) / lack)
        steepness = max(float(fall / np.log((size + 1) / (earlier + 1))), 0.5) if size > 1 else 0.5
        asked = min(most, max(asked + 1, int(asked * np.clip(AHEAD * lack ** (1 / steepness), 1.1, 2.0))))
