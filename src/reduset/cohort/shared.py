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

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reduset import search, weigh
from reduset._engine.profile import Floats
from reduset._engine.threads import single_threaded_blas
from reduset._progress import Progress
from reduset.cohort.goals import Goal, Losses
from reduset.compression import Compression
from reduset.mean import Array, KernelMean
from reduset.nested import Nested
from reduset.probe import Probe, probe
from reduset.radial import Kernel
from reduset.run import Run
from reduset.select import Selector

POOL_ROWS = 1 << 15
AHEAD = 1.02  # of the size that the errors so far predict
UNSEEN = 1e-300  # least κ of the first atom: a mean that no atom sees projects to 0, which a KernelMean cannot be

Report = Callable[[int, int], None]


def pool(bags: Sequence[Floats], kernel: Kernel, rng: np.random.Generator) -> KernelMean:
    """The mean of all bags, each with the same mass; of many rows as many are drawn from each bag.

    The kernel's bandwidth, where a rule is to find it, comes from these points.
    """
    drawn = bags
    if sum(map(len, bags)) > POOL_ROWS:
        most = max(2, POOL_ROWS // len(bags))
        drawn = [bag if len(bag) <= most else bag[np.sort(rng.choice(len(bag), most, replace=False))] for bag in bags]
    weights = np.concatenate([np.full(len(rows), 1 / (len(bags) * len(rows))) for rows in drawn])
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
    span: weigh.Span
    kind: str
    confidence: float
    selection: str

    def put(self, mean: KernelMean, rng: np.random.Generator) -> Compression:
        """A bag on these atoms: one pass over its points."""
        return _OnAtoms(mean, self.confidence, rng).see(self.span).state(self.span.size, self.kind, self.selection)


class _OnAtoms:
    """One bag, its κ at the atoms so far, and its probe."""

    def __init__(self, mean: KernelMean, confidence: float, rng: np.random.Generator) -> None:
        self._mean, self._confidence, self._rng = mean, confidence, rng
        self._probe: Probe | None = None
        self._places: Array = np.empty((0, mean.dimension))
        self._kappa: Array = np.empty(0)
        self._begun = time.perf_counter()
        self._nested: Nested | None = None

    def see(self, span: weigh.Span) -> _OnAtoms:
        """Take these atoms instead of any before; what they begin with and was seen already is not summed again."""
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
            self._probe = probe(mean, self._confidence, self._rng)
        residual = self._probe.measure(mine.atoms, mine.weights("free", mean.mass, mine.size), mine.kappa)
        shares, total = np.zeros(len(mine.atoms)), float(mean.magnitudes.sum())
        self._nested = Nested(mean.kernel, mine, residual, "free", mean.mass, total, shares, None, self._confidence)
        return self

    @property
    def nested(self) -> Nested:
        if self._nested is None:
            raise RuntimeError("no atoms yet")
        return self._nested

    def error(self, size: int, kind: str) -> float:
        """The upper end of the relative error with weights of that kind."""
        return replace(self.nested, kind=kind).error(size).interval[1]

    @property
    def coordinates(self) -> Array:
        """y = L⁻¹κ."""
        span = self.nested.span
        if not isinstance(span, weigh.FactoredSpan):
            raise RuntimeError(f"coordinates need a factor, which there is up to {weigh.CHOLESKY_UP_TO} atoms")
        return span.y

    def state(self, size: int, kind: str, selection: str) -> Compression:
        """The compression onto the first ``size`` atoms, with weights of that kind."""
        nested = replace(self.nested, kind=kind)
        mean, certificate = nested.state(size)
        return Compression(
            mean=mean,
            indices=None,
            certificate=certificate,
            n_samples=self._mean.size,
            selection=selection,
            weighting=kind,
            dropped=np.empty(0, np.int64),
            reached=True,
            timings={"total": time.perf_counter() - self._begun},
            remark="atoms shared with other bags",
            _nested=nested,
        )


def share(
    means: Sequence[KernelMean],
    pooled: KernelMean,
    selector: Selector,
    kind: str,
    confidence: float,
    rng: np.random.Generator,
    progress: Progress,
    goal: int | Goal,
    most: int,
) -> tuple[SharedAtoms, list[Compression], bool]:
    """Select atoms for the mean of all bags, put each bag on them, and say whether the goal was reached.

    Parameters
    ----------
    goal : that many atoms; or the fewest that reach it, or ``most`` where these do not do. With other weights than free ones it is
        a tolerance for each bag
    """
    run_rng, *bag_rngs = rng.spawn(1 + len(means))
    bags = [_OnAtoms(mean, confidence, each) for mean, each in zip(means, bag_rngs, strict=True)]
    weighing = progress.stage("weighing bags")
    with single_threaded_blas():
        run = Run(pooled, run_rng, confidence, progress)
        run.open(selector)
        if isinstance(goal, int):
            run.grow(goal)
            _see(bags, run.span, weighing)
            size, reached = run.size, True
        else:
            size, reached = _grow(bags, run, goal, kind, min(most, weigh.CHOLESKY_UP_TO), weighing)
        span = run.span
        if size < span.size:
            span = weigh.span(pooled.kernel, span.atoms[:size], span.kappa[:size])
        atoms = SharedAtoms(pooled.kernel, span, kind, confidence, str(selector))
        return atoms, [bag.state(size, kind, str(selector)) for bag in bags], reached


def _see(bags: list[_OnAtoms], span: weigh.Span, report: Report) -> None:
    for k, bag in enumerate(bags):
        report(k, len(bags))
        bag.see(span)


def _grow(bags: list[_OnAtoms], run: Run, goal: Goal, kind: str, most: int, report: Report) -> tuple[int, bool]:
    """Grow the atoms until the goal is reached; how many of them it takes, and whether it was.

    The mean of all bags says quickly where to begin, since it loses less than they do: their noise is their own. From there the
    fall of the errors says how many more.
    """
    _, asked, _ = search.by_tolerance(run, goal.start, "free", most, None)
    while True:
        more = run.grow(asked) and asked < most
        _see(bags, run.span, report)
        size = run.size  # without what is redundant
        losses = Losses(np.stack([bag.coordinates for bag in bags]), np.array([bag.nested.residual.high for bag in bags]))
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
