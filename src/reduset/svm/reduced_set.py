"""Fewer bumps for the functions of an expansion: where they start, how they are fitted, how many there must be.

A start takes each part of the bumps apart (support vectors of one class, or of one sign), with a number of its own in proportion
to the part's weight: the two halves of an SVM weigh the same, so this is the even split of Zhang & Kwok (2010). Then all weights
are refitted together and the bumps polished (`expansion_fit`).

| method | start | polish |
| --- | --- | --- |
| "mixture" | groups in L2, each with its own width | centres and widths |
| "zhang" | the same by Algorithm 1 of the paper as printed: each local fit to convergence | centres and widths |
| "kl" | groups by divergence, each with its own width | centres and widths |
| "refine" | groups in L2, all of the original width | centres |
| "kcenter" | farthest-first among the bumps themselves | none: they stay where they are |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reduset._engine import single_threaded_blas
from reduset._types import Array, Labels, Report
from reduset.kernels import Gaussian
from reduset.mean import KernelMean
from reduset.mixture import Mixture
from reduset.select import KCenter
from reduset.simplification import simplify
from reduset.svm.expansion import GaussianExpansion
from reduset.svm.expansion_fit import ExpansionTarget

METHODS = ("mixture", "zhang", "refine", "kcenter", "kl")
TRIED = ("mixture", "refine", "kcenter")  # by "auto"

MOST_STEPS, FEWEST_STEPS = 200, 10
MOST_ROWS = 8192
WORK = 4e11  # multiplications that the steps may take where their number is not given: some ten seconds

HEAT_STEPS, HEAT_WORK = 25, 2e10  # beyond so much work (about a second), methods are compared after so many steps

Measure = Callable[[GaussianExpansion], float]


@dataclass(frozen=True)
class ReducedSet:
    """A reduced set: few bumps, by which method they were found, and what they lose, measured."""

    expansion: GaussianExpansion
    method: str
    lost: float


@dataclass(frozen=True)
class ReductionPlan:
    """How to find a reduced set: the methods tried, whether weights are refitted, and steps that move bumps (None: by the work)."""

    methods: tuple[str, ...]
    refit: bool = True
    steps: int | None = None

    def steps_for(self, target: ExpansionTarget, size: int) -> int:
        """The number of steps for so many bumps."""
        if self.steps is not None:
            return self.steps
        return int(np.clip(WORK / target.work(size), FEWEST_STEPS, MOST_STEPS))


def reduce_set(
    target: ExpansionTarget,
    parts: Labels,
    size: int,
    plan: ReductionPlan,
    seed: int,
    measure: Measure,
    report: Report | None = None,
) -> ReducedSet:
    """At most ``size`` bumps for the functions of the target, by the method of the plan that loses least.

    Parameters
    ----------
    parts : (n,) which part of the full expansion each bump belongs to
    measure : what an expansion loses
    seed : the same gives the same result, whichever sizes were tried before
    """
    steps = plan.steps_for(target, size)
    found: list[ReducedSet] = []
    for method in plan.methods:
        rng = np.random.default_rng([seed, size])  # each method from the same groups
        with single_threaded_blas():  # for groups that do not depend on the number of threads
            started = _start(target.full, parts, size, method, rng)
        fitted = target.refit(started) if plan.refit else started
        found.append(ReducedSet(fitted, method, measure(fitted)))

    def polished(each: ReducedSet, count: int, done: int) -> ReducedSet:
        told = None if report is None else lambda now, _: report(done + now, steps)
        fitted = target.polish(each.expansion, count, each.method != "refine", told)
        return ReducedSet(fitted, each.method, measure(fitted))

    first = min(HEAT_STEPS, steps) if steps * target.work(size) > HEAT_WORK and len(_moving(found)) > 1 else steps
    if first:
        found = [polished(each, first, 0) if each.method != "kcenter" else each for each in found]
    if steps > first:  # the methods lead to similar errors in the end, and only the one ahead is followed there
        ahead = min(_moving(found), key=lambda each: each.lost)
        found = [polished(each, steps - first, first) if each is ahead else each for each in found]
    return min(found, key=lambda each: each.lost)


def _moving(found: list[ReducedSet]) -> list[ReducedSet]:
    """Those whose bumps may be moved."""
    return [each for each in found if each.method != "kcenter"]


def allocate(masses: Array, counts: Labels, size: int) -> Labels:
    """Split ``size`` in proportion to the masses, at least 1 and at most the count to each; ``size`` is between these sums."""
    given = np.ones(len(masses), np.int64)
    for _ in range(size - len(masses)):
        wanting = np.where(given < counts, masses / (given + 1.0), -1.0)  # the part that is farthest below its share
        given[int(wanting.argmax())] += 1
    return given


def _start(full: GaussianExpansion, parts: Labels, size: int, method: str, rng: np.random.Generator) -> GaussianExpansion:
    magnitudes = np.abs(full.weights).sum(axis=1)
    used = np.flatnonzero(magnitudes)
    labels = np.unique(parts[used], return_inverse=True)[1]
    if size < labels.max() + 1:  # not one for each part
        labels = np.zeros_like(labels)
    size = min(size, len(used))
    if method == "kcenter":
        mean = KernelMean(full.centres[used], magnitudes[used], Gaussian(float(full.widths[0])))
        rows = used[np.asarray(KCenter("mean", groups=labels).select(mean, size, rng).indices)]
        return GaussianExpansion(full.centres[rows], full.widths[rows], full.weights[rows], full.intercepts)
    masses, counts = np.asarray(np.bincount(labels, magnitudes[used]), np.float64), np.bincount(labels)
    centres, widths, weights = [], [], []
    for part, most in enumerate(allocate(masses, counts, size)):
        rows = used[labels == part]
        few, groups = _grouped(full.centres[rows], magnitudes[rows], float(full.widths[0]), int(most), method, rng)
        own = np.sqrt(few.covariances)
        heights = few.weights * np.exp(full.dimension * np.log(full.widths[0] / own))  # of bumps of height 1, not of densities
        centres.append(few.means)
        widths.append(np.full_like(own, full.widths[0]) if method == "refine" else own)
        weights.append(_split(heights, magnitudes[rows], full.weights[rows], groups))
    return GaussianExpansion(np.concatenate(centres), np.concatenate(widths), np.concatenate(weights), full.intercepts)


def _grouped(
    points: Array, weights: Array, width: float, size: int, method: str, rng: np.random.Generator
) -> tuple[Mixture, Labels]:
    """Spherical components for the bumps of one part, without a refit, and the group of each bump."""
    bumps = Mixture(weights, points, np.broadcast_to(width**2, len(points)))
    rule = method if method in ("kl", "zhang") else "l2"
    found = simplify(bumps, size, method=rule, covariance="spherical", refit=False, polish=False, density=False, rng=rng)
    return found.mixture, found.groups


def _split(heights: Array, magnitudes: Array, weights: Array, labels: Labels) -> Array:
    """(m, p) a representative's height, found for the magnitudes |α|, dealt to the functions by what they have of these."""
    masses = np.bincount(labels, magnitudes)
    shares = np.stack([np.bincount(labels, column) for column in weights.T], axis=1)
    return heights[:, None] * shares / masses[:, None]


def target_of(full: GaussianExpansion, rows: Array | None, rng: np.random.Generator) -> ExpansionTarget:
    """The norm to fit by: over given rows, at most `MOST_ROWS` of them; or over the bumps' own places, and the kernel's own.

    Few places can be fitted at the expense of all others, so the kernel's own norm has a share, 1 where there are no more rows than
    bumps of f. With more it falls fast: by the test rows of 13 data sets a hundredth is enough at three times as many.
    """
    if rows is None:
        return ExpansionTarget(full, full.centres, 1.0)
    if len(rows) > MOST_ROWS:
        rows = rows[rng.choice(len(rows), MOST_ROWS, replace=False)]
    return ExpansionTarget(full, rows, min(1.0, full.size / len(rows)) ** 4)
