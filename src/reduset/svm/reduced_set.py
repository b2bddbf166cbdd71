"""Reduced sets for the functions of an expansion: the start of the Gaussians, and their fit.

A start groups each part of the support vectors separately (a class, or a sign). The number of Gaussians for a part is proportional
to its weight. The two parts of an SVM have equal weight, so this is the even split of Zhang & Kwok (2010). Then all weights are
refitted together and the Gaussians polished (`expansion_fit`).

| method | start | polish |
| --- | --- | --- |
| "mixture" | groups in L2, each with its own width | centres and widths |
| "zhang" | groups by Algorithm 1 of the paper as printed, each local fit to convergence | centres and widths |
| "kl" | groups by divergence, each with its own width | centres and widths |
| "refine" | groups in L2, all of the original width | centres |
| "kcenter" | farthest-first among the support vectors | none |
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

MIN_STEPS, MAX_STEPS = 10, 200
MAX_ROWS = 8192
MAX_WORK = 4e11  # multiplications of the default number of steps, about ten seconds

HEAT_STEPS, HEAT_WORK = 25, 2e10  # above this work (about a second), methods are compared after this number of steps

Measure = Callable[[GaussianExpansion], float]


@dataclass(frozen=True)
class ReducedSet:
    """A reduced set: a few Gaussians, the method that found them, and their measured error."""

    expansion: GaussianExpansion
    method: str
    error: float


@dataclass(frozen=True)
class ReductionPlan:
    """The methods to try, whether weights are refitted, and the number of polish steps (None: by the work)."""

    methods: tuple[str, ...]
    refit: bool = True
    steps: int | None = None

    def steps_for(self, target: ExpansionTarget, size: int) -> int:
        """The number of steps for this number of Gaussians."""
        if self.steps is not None:
            return self.steps
        return int(np.clip(MAX_WORK / target.work(size), MIN_STEPS, MAX_STEPS))


def reduce_set(
    target: ExpansionTarget,
    parts: Labels,
    size: int,
    plan: ReductionPlan,
    seed: int,
    measure: Measure,
    report: Report | None = None,
) -> ReducedSet:
    """At most ``size`` Gaussians for the functions of the target, by the method of the plan with the least error.

    Parameters
    ----------
    parts : (n,) part of each Gaussian of the full expansion
    measure : the error of an expansion
    seed : the same seed gives the same result, for any sizes tried before
    """
    steps = plan.steps_for(target, size)
    results: list[ReducedSet] = []
    for method in plan.methods:
        rng = np.random.default_rng([seed, size])  # the same groups for each method
        with single_threaded_blas():  # so that groups do not depend on the number of threads
            started = _start(target.full, parts, size, method, rng)
        fitted = target.refit(started) if plan.refit else started
        results.append(ReducedSet(fitted, method, measure(fitted)))

    def polished(result: ReducedSet, count: int, done: int) -> ReducedSet:
        progress = None if report is None else lambda now, _: report(done + now, steps)
        fitted = target.polish(result.expansion, count, result.method != "refine", progress)
        return ReducedSet(fitted, result.method, measure(fitted))

    first = min(HEAT_STEPS, steps) if steps * target.work(size) > HEAT_WORK and len(_movable(results)) > 1 else steps
    if first:
        results = [polished(result, first, 0) if result.method != "kcenter" else result for result in results]
    if steps > first:  # methods end with similar errors, so only the best one continues
        best = min(_movable(results), key=lambda result: result.error)
        results = [polished(result, steps - first, first) if result is best else result for result in results]
    return min(results, key=lambda result: result.error)


def _movable(results: list[ReducedSet]) -> list[ReducedSet]:
    """The reduced sets that can be polished."""
    return [result for result in results if result.method != "kcenter"]


def allocate(masses: Array, counts: Labels, size: int) -> Labels:
    """Split ``size`` in proportion to the masses, with at least 1 and at most the count for each part.

    ``size`` lies between the sums of these limits.
    """
    sizes = np.ones(len(masses), np.int64)
    for _ in range(size - len(masses)):
        deficits = np.where(sizes < counts, masses / (sizes + 1.0), -1.0)  # the part that is farthest below its proportion
        sizes[int(deficits.argmax())] += 1
    return sizes


def _start(full: GaussianExpansion, parts: Labels, size: int, method: str, rng: np.random.Generator) -> GaussianExpansion:
    magnitudes = np.abs(full.weights).sum(axis=1)
    used = np.flatnonzero(magnitudes)
    labels = np.unique(parts[used], return_inverse=True)[1]
    if size < labels.max() + 1:  # fewer Gaussians than parts
        labels = np.zeros_like(labels)
    size = min(size, len(used))
    if method == "kcenter":
        mean = KernelMean(full.centres[used], magnitudes[used], Gaussian(float(full.widths[0])))
        rows = used[np.asarray(KCenter("mean", groups=labels).select(mean, size, rng).indices)]
        return GaussianExpansion(full.centres[rows], full.widths[rows], full.weights[rows], full.intercepts)
    masses, counts = np.asarray(np.bincount(labels, magnitudes[used]), np.float64), np.bincount(labels)
    centres, widths, weights = [], [], []
    for part, count in enumerate(allocate(masses, counts, size)):
        rows = used[labels == part]
        components, groups = _grouped(full.centres[rows], magnitudes[rows], float(full.widths[0]), int(count), method, rng)
        widths_of_part = np.sqrt(components.covariances)
        # weights of Gaussians with height 1 instead of densities
        heights = components.weights * np.exp(full.dimension * np.log(full.widths[0] / widths_of_part))
        centres.append(components.means)
        widths.append(np.full_like(widths_of_part, full.widths[0]) if method == "refine" else widths_of_part)
        weights.append(_split(heights, magnitudes[rows], full.weights[rows], groups))
    return GaussianExpansion(np.concatenate(centres), np.concatenate(widths), np.concatenate(weights), full.intercepts)


def _grouped(
    points: Array, weights: Array, width: float, size: int, method: str, rng: np.random.Generator
) -> tuple[Mixture, Labels]:
    """Spherical components for the Gaussians of one part, without a refit, and the group of each Gaussian."""
    mixture = Mixture(weights, points, np.broadcast_to(width**2, len(points)))
    rule = method if method in ("kl", "zhang") else "l2"
    simplification = simplify(mixture, size, method=rule, covariance="spherical", refit=False, polish=False, density=False, rng=rng)
    return simplification.mixture, simplification.groups


def _split(heights: Array, magnitudes: Array, weights: Array, labels: Labels) -> Array:
    """(m, p) weights: the heights for the magnitudes |α|, split in proportion to the weights of each function in a group."""
    masses = np.bincount(labels, magnitudes)
    weights_of_groups = np.stack([np.bincount(labels, column) for column in weights.T], axis=1)
    return heights[:, None] * weights_of_groups / masses[:, None]


def target_of(full: GaussianExpansion, rows: Array | None, rng: np.random.Generator) -> ExpansionTarget:
    """The target with its norm: over at most `MAX_ROWS` of the given rows, or over the centres of f.

    A fit to few rows can be poor elsewhere, so the norm in the space of the kernel also has a weight. It is 1 if there are at most
    as many rows as Gaussians of f, and decreases fast with more rows. On the test rows of 13 data sets, a weight of 0.01 was enough
    for three times as many.
    """
    if rows is None:
        return ExpansionTarget(full, full.centres, 1.0)
    if len(rows) > MAX_ROWS:
        rows = rows[rng.choice(len(rows), MAX_ROWS, replace=False)]
    return ExpansionTarget(full, rows, min(1.0, full.size / len(rows)) ** 4)
