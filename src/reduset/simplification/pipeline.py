"""The stages of a simplification: first groups, local fits, regrouping, refitted weights and the joint descent.

With signed weights, the positive and the negative part are grouped separately and combined when the weights are refitted.

Rounds end when the relative change of the distortion is at most 0.001. With method="zhang" the distortion is Σⱼ ‖φⱼ − R‖² (line 26
of Algorithm 1), separately for each sign. Otherwise the terms have the weights αⱼ, as in (10), since the rounds reduce this sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from reduset._progress import Progress
from reduset._types import Array, Labels
from reduset.mixture import Mixture, log_squares
from reduset.simplification import grouping
from reduset.simplification.joint_fit import JointFit, affordable_steps
from reduset.simplification.l2_error import L2ErrorEstimator, RelativeL2Error
from reduset.simplification.local_fit import (
    ComponentArrays,
    ConvergedFit,
    LocalFit,
    matched_moments,
    regroup_by_distance,
    regroup_by_divergence,
)

ROUNDS = 30  # of grouping, at most
TOLERANCE, DESCENT_TOLERANCE = 1e-3, 1e-2  # relative change of the distortion that ends rounds: in the paper, and before a descent
MIN_ENERGY, MIN_SEPARATION = 0.25, 0.8  # Σ wᵢ²‖gᵢ‖² of the strongest components over ‖f‖² and ‖Σ wᵢgᵢ‖², to omit the grouping
STOP_STEPS, STOP_GAIN = 5, 0.02  # a descent ends if this number of steps lowers the squared error by a smaller proportion

T = TypeVar("T")


class StageError(NamedTuple):
    """One step of a stage, and the relative L2 error after it."""

    stage: str
    error: float


@dataclass(frozen=True)
class PipelineOptions:
    """The options of a simplification."""

    method: str  # of the local fits and the grouping: "l2", "zhang" or "kl"
    shape: str  # of the covariances of the result
    refit: bool  # True to fit all weights together
    steps: int | None  # of the joint descent; None for the affordable number
    rounds: int  # maximum number of fits and regroupings
    mass: float | None  # sum of the weights, which are then not negative; None for free weights
    mass_weights: bool  # True to give each component the mass of its group


class _StrongestStart(NamedTuple):
    """A start from the strongest components, with the group of each given component and the value wᵀGw − 2wᵀκ.

    ``stands_out`` is True if the grouping can be omitted.
    """

    reduced: ComponentArrays
    groups: Labels
    value: float
    stands_out: bool


@dataclass
class PipelineResult:
    """The result of a run."""

    reduced: ComponentArrays
    groups: Labels  # of all given components, −1 for components without weight
    error: RelativeL2Error
    history: list[StageError]
    reseeded: int
    log_norm: float | None  # log ‖f‖; None if no component was replaced


class SimplificationPipeline:
    """The pipeline for one mixture, prepared once for any number of runs, with the components that have weight (``rows``)."""

    def __init__(self, f: Mixture, rows: Labels, options: PipelineOptions, rng: np.random.Generator, shown: Progress) -> None:
        self._options, self._rng, self._shown = options, rng, shown
        self._given, self._rows, self.size = f.size, rows, len(rows)
        self._f = ComponentArrays(f.weights, f.means, f.covariances).part(rows)
        self._joint = JointFit(self._f.laid_out(options.shape), options.mass)
        self._l2_error = L2ErrorEstimator(self._joint, self._f, rng)
        signs = [np.flatnonzero(self._f.weights > 0), np.flatnonzero(self._f.weights < 0)]
        self._signs = [rows for rows in signs if len(rows)]

    # -- start --------------------------------------------------------------------------------------------------------------

    def groups(self, size: int | None, radius: float | None = None) -> Labels:
        """(n,) labels 0, 1, … of the components that have weight; no group contains both signs."""
        parts = [(rows, self._f.part(rows).positive()) for rows in self._signs]
        if radius is not None:
            return self._labels([(rows, grouping.by_radius(part.means, part.weights, radius)) for rows, part in parts])
        counts = zip(self._counts(size or 1), parts, strict=True)
        by_kmeans = partial(grouping.by_kmeans, shape=self._options.shape, rng=self._rng)
        return self._labels([(rows, by_kmeans(part, count)) for count, (rows, part) in counts if count])

    def _counts(self, size: int) -> list[int]:
        """The number of components for each sign, in proportion to the given ones; a single one goes to the heavier sign."""
        if len(self._signs) == 1:
            return [min(size, self.size)]
        counts = [len(rows) for rows in self._signs]
        if size == 1:
            masses = [np.abs(self._f.weights[rows]).sum() for rows in self._signs]
            heavier = int(masses[1] > masses[0])
            return [1 - heavier, heavier]
        first = int(np.clip(round(size * counts[0] / sum(counts)), 1, min(size - 1, counts[0])))
        second = min(size - first, counts[1])
        return [min(size - second, counts[0]), second]

    def _labels(self, parts: list[tuple[Labels, Labels]]) -> Labels:
        """(n,) labels from the labels of each part, which start at 0; −1 for rows in no part."""
        out, offset = np.full(self.size, -1), 0
        for rows, labels in parts:
            out[rows] = labels + offset
            offset += int(labels.max()) + 1
        return out

    def given_groups(self, start: Any, size: int | None) -> Labels:
        """(n,) labels 0, 1, … from given labels for all components."""
        labels = np.asarray(start)
        if labels.shape != (self._given,):
            raise ValueError(f"start must be 'kmeans' or hold a label for each of the {self._given} components, got {labels.shape}")
        labels = labels[self._rows]
        if len(self._signs) > 1:  # one component cannot represent both signs
            labels = np.unique(labels, return_inverse=True)[1] * 2 + (self._f.weights < 0)
        groups = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        if size is not None and int(groups.max()) + 1 != size:
            raise ValueError(f"start must have size={size} groups, got {int(groups.max()) + 1} (positive and negative apart)")
        return groups

    # -- the stages ---------------------------------------------------------------------------------------------------------

    def solve(self, size: int | None, radius: float | None) -> PipelineResult:
        """A run from groups, or from the strongest components alone if no grouping is expected to improve on them."""
        kept = None if size is None else self._strongest(size)
        if kept is not None and kept.stands_out and self._options.steps != 0:
            return self._end(kept.reduced, kept.groups, [("keep", kept.value)], 0)
        return self._run(self.groups(size, radius), kept)

    def run(self, groups: Labels) -> PipelineResult:
        """A run from a partition."""
        return self._run(groups, None)

    def _run(self, groups: Labels, kept: _StrongestStart | None) -> PipelineResult:
        steps: list[tuple[str, float]] = []  # stages with the value wᵀGw − 2wᵀκ after each
        reduced, groups, reseeded = self._group(groups, steps)
        if self._options.refit or self._options.steps != 0:
            reduced = self._joint.refit(reduced)
            steps.append(("refit", self._joint.value(reduced)))
            if kept is None or kept.reduced.size != reduced.size:
                kept = self._strongest(reduced.size)
            if kept is not None and kept.value < steps[-1][1]:
                reduced, groups = kept.reduced, kept.groups
                steps.append(("keep", kept.value))
        elif self._options.mass_weights:
            grouped = groups >= 0
            reduced = replace(
                reduced, weights=np.asarray(np.bincount(groups[grouped], self._f.weights[grouped], reduced.size), np.float64)
            )
        elif self._options.mass is not None:
            reduced = replace(reduced, weights=reduced.weights * (self._options.mass / reduced.weights.sum()))
        return self._end(reduced, groups, steps, reseeded)

    def _end(self, reduced: ComponentArrays, groups: Labels, steps: list[tuple[str, float]], reseeded: int) -> PipelineResult:
        """The joint descent and the error of the result."""
        if self._options.steps != 0:
            reduced = self._descend(reduced, steps)
        error = self._l2_error.error(reduced)
        # differences between steps are exact, so the error is evaluated once, at the end, even if it has to be estimated
        squares = error.relative**2 + (np.array([value for _, value in steps]) - error.value) / self._l2_error.energy
        errors = np.sqrt(np.maximum(squares, 0.0)).tolist()
        history = [StageError(stage, value) for (stage, _), value in zip(steps, errors, strict=True)]
        labels = np.full(self._given, -1)
        labels[self._rows] = groups
        log_norm = 0.5 * (float(np.log(self._l2_error.energy)) + self._joint.many.log_unit)
        return PipelineResult(reduced, labels, error, history, reseeded, log_norm)

    def _strongest(self, size: int) -> _StrongestStart | None:
        """The components of largest norm unchanged and one for all others, with their best weights; None if this is not possible.

        If components differ in weight and width, a few hold most of ‖f‖. Merging any of these increases the error more than
        representing all others by one component. In tests, whenever this start had a lower error than the groups, the descent from
        it also ended lower. It always had a lower error if the strongest components hold much of ‖f‖² and hardly overlap.
        """
        one_sign = len(self._signs) == 1  # one component cannot represent a rest of both signs
        if not (1 < size < self.size and one_sign) or self._joint.many.shared:
            return None
        f = self._f.positive()
        norms = np.log(f.weights) + 0.5 * log_squares(f.covariances, f.dimension)
        strongest = np.argsort(-norms, kind="stable")[: size - 1]
        groups = np.full(self.size, size - 1)
        groups[strongest] = np.arange(size - 1)
        reduced = matched_moments(f, groups, size, self._options.shape)
        gram, kappa = self._joint.system(reduced)
        weights = self._joint.best_weights(gram, kappa)
        stands_out = f.covariances.ndim <= reduced.covariances.ndim  # so that the strongest components are unchanged
        if stands_out:
            own, between = reduced.weights[:-1], gram[:-1, :-1]
            separate = float(own**2 @ np.diagonal(between))
            stands_out = separate >= MIN_ENERGY * self._l2_error.energy and separate >= MIN_SEPARATION * float(own @ between @ own)
        return _StrongestStart(replace(reduced, weights=weights), groups, float(weights @ (gram @ weights - 2 * kappa)), stands_out)

    def _group(self, groups: Labels, steps: list[tuple[str, float]]) -> tuple[ComponentArrays, Labels, int]:
        """Rounds of fits and regrouping, separately for each sign."""
        signs = [rows for rows in self._signs if (groups[rows] >= 0).any()]
        parts = [_SignPart(self._f.part(rows), groups[rows], self._options) for rows in signs]
        report = self._shown.stage("group")
        reseeded = 0
        # the paper ends with its last round, but the best round is a better start of a descent
        without_refit = not self._options.refit and self._options.steps == 0
        before, tolerance = np.inf, TOLERANCE if self._options.steps == 0 else DESCENT_TOLERANCE
        lowest = np.inf
        for done in range(self._options.rounds):
            reduced = ComponentArrays.joined([part.fit() for part in parts])
            distortion = sum(part.regroup() for part in parts)
            kappa = parts[0].kappa if len(self._signs) == 1 else None
            steps.append(("group", self._joint.value(reduced, kappa)))
            if without_refit or done == 0 or steps[-1][1] < lowest:
                lowest, best, chosen = steps[-1][1], reduced, [part.groups for part in parts]
            report(done + 1, self._options.rounds)
            converged = self._options.method != "zhang" and abs(before - distortion) <= tolerance * abs(distortion)
            if converged or all(part.settled for part in parts):
                break
            before = distortion
            reseeded += sum(part.reseed() for part in parts if not part.settled)
        return best, self._labels(list(zip(signs, chosen, strict=True))), reseeded

    def _descend(self, reduced: ComponentArrays, steps: list[tuple[str, float]]) -> ComponentArrays:
        limit = affordable_steps(self._joint.many, reduced.size) if self._options.steps is None else self._options.steps
        report = self._shown.stage("polish")
        done = 0
        # a sampled ‖f‖² is too imprecise for a small error, so the error of the start sets the level
        level = self._l2_error.energy
        if self._options.steps is None and not self._l2_error.exact:
            level *= self._l2_error.error(reduced).relative ** 2
            level -= steps[-1][1]

        def step(value: float) -> None:
            nonlocal done
            done += 1
            steps.append(("polish", value))
            report(min(done, limit), limit)
            may_stop = self._options.steps is None and done > STOP_STEPS
            if may_stop and steps[-1 - STOP_STEPS][1] - value < STOP_GAIN * (value + level):
                raise StopIteration  # SciPy then ends the descent

        return self._joint.descend(reduced, limit, step)


class _SignPart:
    """The components of one sign, in groups."""

    def __init__(self, components: ComponentArrays, groups: Labels, options: PipelineOptions) -> None:
        self.groups = np.unique(groups, return_inverse=True)[1]  # labels within one sign start at 0
        self._method, self._shape = options.method, options.shape
        self._sign, self._f = np.sign(components.weights[0]), components.positive()
        self._many = self._f.laid_out(self._shape)
        self.size = int(self.groups.max()) + 1
        self.settled = False
        self.kappa: Array | None = None
        self._distortion = np.inf

    def fit(self) -> ComponentArrays:
        if not self.settled:
            reduced = matched_moments(self._f, self.groups, self.size, self._shape)
            self._masses = reduced.weights
            if self._method != "kl":
                fit = ConvergedFit if self._method == "zhang" else LocalFit
                reduced = fit(self._many, self.groups, reduced, self._shape).run(reduced)
            self._few = reduced
        return replace(self._few, weights=self._few.weights * self._sign)

    def regroup(self) -> float:
        """Compute the next groups; returns their distortion."""
        if self.settled:
            return self._distortion
        if self._method == "kl":
            groups, self._cost = regroup_by_divergence(self._f, self._few)
        else:
            groups, self._cost, self.kappa = regroup_by_distance(self._many, self._few, self._masses)
        self._next = groups
        before, weights = self._distortion, np.ones(self._f.size) if self._method == "zhang" else self._f.weights
        self._distortion = float(weights @ self._cost)
        converged = self._method == "zhang" and abs(before - self._distortion) <= TOLERANCE * abs(self._distortion)
        self.settled = converged or bool(np.array_equal(groups, self.groups))
        return self._distortion

    def reseed(self) -> int:
        """Use the next groups; empty groups restart with the components of largest error."""
        groups = self._next
        counts = np.bincount(groups, minlength=self.size)
        empty = np.flatnonzero(counts == 0)
        if len(empty):
            worst = np.argsort(-self._f.weights * self._cost, kind="stable")
            candidates = iter(worst)
            for group in empty:
                row = next(row for row in candidates if counts[groups[row]] > 1)
                counts[groups[row]] -= 1
                groups[row] = group
                counts[group] = 1
        self.groups = groups
        return len(empty)


def fewest(attempt: Callable[[int], T], suffices: Callable[[T], bool], most: int, resolution: int) -> tuple[T, bool]:
    """The result of the smallest size that is good enough, by doubling and bisection, and True.

    If no size up to ``most`` is good enough, returns the result of ``most`` and False. The size may be too large by one part in
    ``resolution``.
    """
    low, high = 0, 1
    result = attempt(high)
    while not suffices(result):
        if high >= most:
            return result, False
        low, high = high, min(2 * high, most)
        result = attempt(high)
    while high - low > max(1, high // resolution):
        middle = (low + high) // 2
        attempted = attempt(middle)
        if suffices(attempted):
            high, result = middle, attempted
        else:
            low = middle
    return result, True
