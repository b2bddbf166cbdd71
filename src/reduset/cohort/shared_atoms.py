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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reduset._engine import single_threaded_blas
from reduset._progress import Clock, Progress
from reduset._types import Floats, Indices
from reduset.cohort.bag_projection import BagEvidence, BagProjector
from reduset.cohort.bag_source import BagSource
from reduset.cohort.stopping import PrefixLosses, StoppingRule
from reduset.compression import Compression, Prefixes, Run, Target, assemble, begin, by_plateau, by_tolerance, grow
from reduset.kernels import Kernel
from reduset.mean import KernelMean
from reduset.select import Selector
from reduset.select.contract import Traversal
from reduset.weights import CHOLESKY_UP_TO, FactoredSpan, Span, span_of

POOL_ROWS = 1 << 15
AHEAD = 1.02  # of the size that the errors so far predict
FEWEST_MORE, MOST_MORE = 1.1, 2.0  # times as many atoms at the next look


def pool(bags: Sequence[Floats], kernel: Kernel, rng: np.random.Generator) -> KernelMean:
    """The mean of all bags, each with the same mass; of many rows as many are drawn from each bag.

    The kernel's bandwidth, where a rule is to find it, comes from these points.
    """
    drawn = rows_drawn([len(bag) for bag in bags], rng)
    return pooled([bag[:] if rows is None else bag[rows] for bag, rows in zip(bags, drawn, strict=True)], kernel)


def rows_drawn(sizes: Sequence[int], rng: np.random.Generator) -> list[Indices | None]:
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
class Plateau:
    """The ε rule of the 2017 paper, for the mean of all bags: stop at the first atom that adds at most ε of the energy so far."""

    epsilon: float


@dataclass(frozen=True)
class SharingOptions:
    """How atoms are to be shared.

    Attributes
    ----------
    goal : a number of atoms; or the rule by which they are enough, of which ``most`` are taken where it is not met before. With
        other weights than free ones it is a number, a plateau, or a tolerance for each bag
    kind : of weights
    """

    selector: Selector
    kind: str
    confidence: float
    goal: int | StoppingRule | Plateau
    most: int


@dataclass(frozen=True)
class SharedAtoms:
    """Atoms that any bag can be put on.

    Attributes
    ----------
    span : of the atoms; whose κ it holds does not matter
    options : by which they were found
    """

    kernel: Kernel
    span: Span
    options: SharingOptions

    def put(self, mean: KernelMean, rng: np.random.Generator) -> Compression:
        """A bag on these atoms: one pass over its points."""
        evidence = BagProjector(mean, self.options.confidence, rng).project(self.span)
        prefixes = evidence.prefixes(self.span, mean.kernel, self.options.kind, self.options.confidence)
        return _compression(prefixes, self.span.size, evidence, self.options)


class Sharing(NamedTuple):
    """The atoms, every bag on them, and whether the goal was reached."""

    atoms: SharedAtoms
    compressions: list[Compression]
    reached: bool


def share(source: BagSource, pooled: KernelMean, options: SharingOptions, rng: np.random.Generator, progress: Progress) -> Sharing:
    """Select atoms for the mean of all bags, ``pooled``, and put each bag on them: as many as are asked for, or as do."""
    pooled_rng, *bag_rngs = rng.spawn(1 + len(source.sizes))
    bags = _BagsOnAtoms(source, pooled.kernel, options, bag_rngs, progress)
    with single_threaded_blas():
        target = Run(pooled_rng, options.confidence, progress).target(pooled)
        traversal, most = begin(target, options.selector), min(options.most, CHOLESKY_UP_TO)
        if isinstance(options.goal, int):
            span = grow(target, traversal, options.goal).span
            bags.project(span)
            size, reached = span.size, True
        elif isinstance(options.goal, Plateau):
            found = by_plateau(target, traversal, options.goal.epsilon, "free", most)
            span, size, reached = found.weighed.span, found.size, found.reached
            bags.project(span)
        else:
            span, size, reached = _grow_until(options.goal, bags, target, traversal, most)
        if size < span.size:
            span = span_of(pooled.kernel, span.atoms[:size], span.kappa[:size])
        return Sharing(SharedAtoms(pooled.kernel, span, options), bags.compressions(size), reached)


class _BagsOnAtoms:
    """All bags on the same atoms, which may grow: what each loses with any number of the first of them."""

    def __init__(
        self, source: BagSource, kernel: Kernel, options: SharingOptions, rngs: list[np.random.Generator], progress: Progress
    ) -> None:
        self._source, self._kernel, self.options, self._rngs = source, kernel, options, rngs
        self._report = progress.stage("weighing bags")
        self._spans: list[Span] = []
        self._evidence: list[BagEvidence] = []
        self._prefixes: list[Prefixes] = []

    def project(self, span: Span) -> None:
        """Project every bag onto these atoms, instead of any before."""
        self._spans.append(span)
        confidence = self.options.confidence
        self._evidence = self._source.project(self._spans, self._kernel, confidence, self._rngs, self._report)
        self._prefixes = [each.prefixes(span, self._kernel, self.options.kind, confidence) for each in self._evidence]

    def losses(self) -> PrefixLosses:
        """What free weights lose, for every number of atoms at once."""
        spans = [each.span for each in self._prefixes]
        coordinates = np.stack(
            [span.y for span in spans if isinstance(span, FactoredSpan)]
        )  # there is a factor up to ``most`` atoms
        return PrefixLosses(coordinates, np.array([each.residual.high for each in self._prefixes]))

    def largest_error(self, size: int) -> float:
        """The upper end of the relative error of the worst bag, with weights of the kind asked for."""
        return max(each.error(size).interval[1] for each in self._prefixes)

    def compressions(self, size: int) -> list[Compression]:
        """Each bag on the first ``size`` atoms."""
        pairs = zip(self._prefixes, self._evidence, strict=True)
        return [_compression(prefixes, size, evidence, self.options) for prefixes, evidence in pairs]


def _compression(prefixes: Prefixes, size: int, evidence: BagEvidence, options: SharingOptions) -> Compression:
    return assemble(
        prefixes, size, evidence.size, str(options.selector), Clock(), remark="atoms shared with other bags", all_shown=True
    )


def _grow_until(rule: StoppingRule, bags: _BagsOnAtoms, target: Target, traversal: Traversal, most: int) -> tuple[Span, int, bool]:
    """Add atoms until the rule holds: their span, how many of them it takes, and whether it was reached.

    The mean of all bags says quickly where to begin, since it loses less than they do: their noise is their own. From there on the
    bags are asked, each time with more atoms.
    """
    free = bags.options.kind == "free"
    start = by_tolerance(target, traversal, rule.start, "free", most)
    asked, known = start.size, start.weighed.kappa
    while True:
        weighed = grow(target, traversal, asked, known)
        known = max(known, weighed.kappa, key=len)
        more, span = weighed.atoms.complete and asked < most, weighed.span
        bags.project(span)
        size = span.size  # without what is redundant
        losses = bags.losses()
        lack = rule.lack(losses, size)
        if lack <= 1 and not free:  # these weights lose more, and must be found anew for every size
            lack = bags.largest_error(size) / rule.start
        if lack <= 1:
            return span, rule.fewest(losses) if free else size, True  # of other weights no smaller size is tried
        if not more:
            return span, size, False
        factor = AHEAD * lack ** (1 / _steepness(rule, losses, size, lack))
        asked = min(most, max(asked + 1, int(asked * np.clip(factor, FEWEST_MORE, MOST_MORE))))


def _steepness(rule: StoppingRule, losses: PrefixLosses, size: int, lack: float) -> float:
    """The power s of the size by which the lack falls, lack ~ size⁻ˢ, seen over the last quarter of the atoms; at least ½."""
    if size <= 1:
        return 0.5
    earlier = max(1, 3 * size // 4)
    fall = np.log(rule.lack(losses, earlier) / lack)
    return max(float(fall / np.log((size + 1) / (earlier + 1))), 0.5)
