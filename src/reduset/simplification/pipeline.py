"""The stages of a simplification: from first groups by local fits, regrouping and refitted weights to the joint descent.

Signed weights: the positive and the negative part are grouped separately. They meet when the weights are refitted.

Rounds end when the distortion changes by one part in a thousand. With method="zhang" it is Σⱼ ‖φⱼ − R‖² (line 26 of Algorithm 1),
for each sign by itself. Else the terms have the weights αⱼ, as in (10), which is the sum that the rounds lower.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from reduset._progress import Progress
from reduset._types import Array, Labels
from reduset.mixture import Mixture
from reduset.mixture.covariances import log_squares
from reduset.simplification import grouping
from reduset.simplification.converged_fit import ConvergedFit
from reduset.simplification.joint_fit import JointFit, affordable_steps
from reduset.simplification.l2_error import L2ErrorEstimator, RelativeL2Error
from reduset.simplification.local_fit import ComponentArrays, LocalFit, matched_moments, regroup_by_distance, regroup_by_divergence

ROUNDS = 30  # of grouping, at most
SETTLED, ROUGHLY = 1e-3, 1e-2  # the relative change of its distortion that ends them: the paper's, and where a descent follows
PART_ALONE, PART_APART = 0.25, 0.8  # Σ wᵢ²‖gᵢ‖² of the strongest over ‖f‖², and over ‖Σ wᵢgᵢ‖²: from there on no groups are tried
LOOK_BACK, WORTHWHILE = 5, 0.02  # steps of a descent left to itself, and the share by which they must lower the squared error

T = TypeVar("T")


class StageError(NamedTuple):
    """One step of a stage, and the relative L2 error after it."""

    stage: str
    error: float


@dataclass(frozen=True)
class PipelineOptions:
    """What is done in which way."""

    method: str  # "l2", "zhang" or "kl", of the local fits and the grouping
    shape: str  # of the result's covariances
    refit: bool  # whether all weights are fitted together
    steps: int | None  # of the joint descent; None for as many as can be afforded
    rounds: int  # of fits and regrouping, at most
    mass: float | None  # the sum that the weights keep, not negative; None where they are free
    mass_weights: bool  # whether each component has the mass of its group


class _Kept(NamedTuple):
    """A start of strong components: whom each stands for, what they leave of wᵀGw − 2wᵀκ, whether no groups need be tried."""

    few: ComponentArrays
    groups: Labels
    value: float
    stands_out: bool


@dataclass
class PipelineResult:
    """Where a run ended."""

    few: ComponentArrays
    groups: Labels  # of all components, −1 of those without weight
    error: RelativeL2Error
    history: list[StageError]
    reseeded: int
    log_norm: float | None  # log ‖f‖; None where no component was replaced


class SimplificationPipeline:
    """The pipeline for one mixture, laid out once for any number of runs; only components that have weight (``rows``) count."""

    def __init__(self, f: Mixture, rows: Labels, options: PipelineOptions, rng: np.random.Generator, shown: Progress) -> None:
        self._options, self._rng, self._shown = options, rng, shown
        self._given, self._rows, self.size = f.size, rows, len(rows)
        self._f = ComponentArrays(f.weights, f.means, f.covariances).part(rows)
        self._joint = JointFit(self._f.laid_out(options.shape), options.mass)
        self._l2_error = L2ErrorEstimator(self._joint, self._f, rng)
        signs = [np.flatnonzero(self._f.weights > 0), np.flatnonzero(self._f.weights < 0)]
        self._signs = [rows for rows in signs if len(rows)]

    # -- where to start -----------------------------------------------------------------------------------------------------

    def groups(self, size: int | None, radius: float | None = None) -> Labels:
        """(n,) labels 0, 1, … of the components that have weight; none holds both signs."""
        parts = [(rows, self._f.part(rows).positive()) for rows in self._signs]
        if radius is not None:
            return self._labels([(rows, grouping.by_radius(part.means, part.weights, radius)) for rows, part in parts])
        counts = zip(self._counts(size or 1), parts, strict=True)
        by_kmeans = partial(grouping.by_kmeans, shape=self._options.shape, rng=self._rng)
        return self._labels([(rows, by_kmeans(part, count)) for count, (rows, part) in counts if count])

    def _counts(self, size: int) -> list[int]:
        """How many components each sign gets: by their numbers; where there is but one, the heavier sign has it."""
        if len(self._signs) == 1:
            return [min(size, self.size)]
        counts = [len(rows) for rows in self._signs]
        if size == 1:
            masses = [np.abs(self._f.weights[rows]).sum() for rows in self._signs]
            heavy = int(masses[1] > masses[0])
            return [1 - heavy, heavy]
        first = int(np.clip(round(size * counts[0] / sum(counts)), 1, min(size - 1, counts[0])))
        second = min(size - first, counts[1])
        return [min(size - second, counts[0]), second]

    def _labels(self, parts: list[tuple[Labels, Labels]]) -> Labels:
        """(n,) labels from those of each part's own rows, which begin with 0 there; −1 in no part."""
        out, offset = np.full(self.size, -1), 0
        for rows, own in parts:
            out[rows] = own + offset
            offset += int(own.max()) + 1
        return out

    def given_groups(self, start: Any, size: int | None) -> Labels:
        """The same from a label for each component."""
        labels = np.asarray(start)
        if labels.shape != (self._given,):
            raise ValueError(f"start must be 'kmeans' or hold a label for each of the {self._given} components, got {labels.shape}")
        labels = labels[self._rows]
        if len(self._signs) > 1:  # one component cannot stand for both signs
            labels = np.unique(labels, return_inverse=True)[1] * 2 + (self._f.weights < 0)
        found = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        if size is not None and int(found.max()) + 1 != size:
            raise ValueError(
                f"start must have as many groups as size={size}, got {int(found.max()) + 1} (positive and negative apart)"
            )
        return found

    # -- the stages ---------------------------------------------------------------------------------------------------------

    def solve(self, size: int | None, radius: float | None) -> PipelineResult:
        """From groups, or without any where strong components alone are a start that no groups will beat."""
        kept = None if size is None else self._kept(size)
        if kept is not None and kept.stands_out and self._options.steps != 0:
            return self._end(kept.few, kept.groups, [("keep", kept.value)], 0)
        return self._run(self.groups(size, radius), kept)

    def run(self, groups: Labels) -> PipelineResult:
        """From a partition to the end."""
        return self._run(groups, None)

    def _run(self, groups: Labels, kept: _Kept | None) -> PipelineResult:
        steps: list[tuple[str, float]] = []  # each stage with what it leaves of wᵀGw − 2wᵀκ
        few, groups, reseeded = self._group(groups, steps)
        if self._options.refit or self._options.steps != 0:
            few = self._joint.refit(few)
            steps.append(("refit", self._joint.value(few)))
            if kept is None or kept.few.size != few.size:
                kept = self._kept(few.size)
            if kept is not None and kept.value < steps[-1][1]:
                few, groups = kept.few, kept.groups
                steps.append(("keep", kept.value))
        elif self._options.mass_weights:
            held = groups >= 0
            few = replace(few, weights=np.asarray(np.bincount(groups[held], self._f.weights[held], few.size), np.float64))
        elif self._options.mass is not None:
            few = replace(few, weights=few.weights * (self._options.mass / few.weights.sum()))
        return self._end(few, groups, steps, reseeded)

    def _end(self, few: ComponentArrays, groups: Labels, steps: list[tuple[str, float]], reseeded: int) -> PipelineResult:
        """From a start to the end."""
        if self._options.steps != 0:
            few = self._descend(few, steps)
        error = self._l2_error.error(few)
        # differences of the steps are exact, whatever has to be estimated of the error itself: it is read once, at the end
        squares = error.relative**2 + (np.array([value for _, value in steps]) - error.value) / self._l2_error.energy
        errors = np.sqrt(np.maximum(squares, 0.0)).tolist()
        history = [StageError(stage, value) for (stage, _), value in zip(steps, errors, strict=True)]
        labels = np.full(self._given, -1)
        labels[self._rows] = groups
        log_norm = 0.5 * (float(np.log(self._l2_error.energy)) + self._joint.many.log_unit)
        return PipelineResult(few, labels, error, history, reseeded, log_norm)

    def _kept(self, size: int) -> _Kept | None:
        """The components of largest norm as they are and one for all the rest, with their best weights; None where that cannot be.

        Where components differ in weight and width a few hold most of ‖f‖, and merging any of these loses more than leaving all
        the others to one. As a start of the descent it led to a lower end too, wherever it was lower. Where the strongest hold a
        good part of ‖f‖² each by itself and hardly overlap, so that none of them stand for the same place, it always was.
        """
        one_sign = len(self._signs) == 1  # or one component could not stand for the rest
        if not (1 < size < self.size and one_sign) or self._joint.many.shared:
            return None
        f = self._f.positive()
        norms = np.log(f.weights) + 0.5 * log_squares(f.covariances, f.dimension)
        strongest = np.argsort(-norms, kind="stable")[: size - 1]
        own = np.full(self.size, size - 1)
        own[strongest] = np.arange(size - 1)
        few = matched_moments(f, own, size, self._options.shape)
        gram, kappa = self._joint.system(few)
        weights = self._joint.best_weights(gram, kappa)
        as_they_are = f.covariances.ndim <= few.covariances.ndim
        stands_out = as_they_are and _apart(gram[:-1, :-1], few.weights[:-1], self._l2_error.energy)
        return _Kept(replace(few, weights=weights), own, float(weights @ (gram @ weights - 2 * kappa)), stands_out)

    def _group(self, groups: Labels, steps: list[tuple[str, float]]) -> tuple[ComponentArrays, Labels, int]:
        """Rounds of fits and regrouping; signs stay apart."""
        signs = [rows for rows in self._signs if (groups[rows] >= 0).any()]
        parts = [_SignPart(self._f.part(rows), groups[rows], self._options) for rows in signs]
        report = self._shown.stage("group")
        reseeded = 0
        # the paper's end is its last round; as a start the best one is better
        alone = not self._options.refit and self._options.steps == 0
        before, enough = np.inf, SETTLED if self._options.steps == 0 else ROUGHLY
        least = np.inf
        for done in range(self._options.rounds):
            few = ComponentArrays.joined([part.fit() for part in parts])
            distortion = sum(part.regroup() for part in parts)
            kappa = parts[0].kappa if len(self._signs) == 1 else None
            steps.append(("group", self._joint.value(few, kappa)))
            if alone or done == 0 or steps[-1][1] < least:
                least, best, chosen = steps[-1][1], few, [part.groups for part in parts]
            report(done + 1, self._options.rounds)
            together = self._options.method != "zhang" and abs(before - distortion) <= enough * abs(distortion)
            if together or all(part.settled for part in parts):
                break
            before = distortion
            reseeded += sum(part.reseed() for part in parts if not part.settled)
        return best, self._labels(list(zip(signs, chosen, strict=True))), reseeded

    def _descend(self, few: ComponentArrays, steps: list[tuple[str, float]]) -> ComponentArrays:
        most = affordable_steps(self._joint.many, few.size) if self._options.steps is None else self._options.steps
        report = self._shown.stage("polish")
        done = 0
        # ‖f‖² as it is drawn would drown a small error: what the start is known to lose sets the level
        level = self._l2_error.energy
        if self._options.steps is None and not self._l2_error.exact:
            level *= self._l2_error.error(few).relative ** 2
            level -= steps[-1][1]

        def step(value: float) -> None:
            nonlocal done
            done += 1
            steps.append(("polish", value))
            report(min(done, most), most)
            alone = self._options.steps is None and done > LOOK_BACK
            if alone and steps[-1 - LOOK_BACK][1] - value < WORTHWHILE * (value + level):
                raise StopIteration  # which ends the descent

        return self._joint.descend(few, most, step)


def _apart(gram: Array, weights: Array, energy: float) -> bool:
    """Whether these components hold a good part of ‖f‖² each by itself, and hardly overlap."""
    alone = float(weights**2 @ np.diagonal(gram))
    return alone >= PART_ALONE * energy and alone >= PART_APART * float(weights @ gram @ weights)


class _SignPart:
    """The components of one sign, in groups."""

    def __init__(self, some: ComponentArrays, groups: Labels, options: PipelineOptions) -> None:
        self.groups = np.unique(groups, return_inverse=True)[1]  # those of one sign count from 0
        self._method, self._shape = options.method, options.shape
        self._sign, self._f = np.sign(some.weights[0]), some.positive()
        self._many = self._f.laid_out(self._shape)
        self.size = int(self.groups.max()) + 1
        self.settled = False
        self.kappa: Array | None = None
        self._distortion = np.inf

    def fit(self) -> ComponentArrays:
        if not self.settled:
            few = matched_moments(self._f, self.groups, self.size, self._shape)
            self._masses = few.weights
            if self._method != "kl":
                fit = ConvergedFit if self._method == "zhang" else LocalFit
                few = fit(self._many, self.groups, few, self._shape).run(few)
            self._few = few
        return replace(self._few, weights=self._few.weights * self._sign)

    def regroup(self) -> float:
        """The next groups, and the distortion with them."""
        if self.settled:
            return self._distortion
        if self._method == "kl":
            groups, self._cost = regroup_by_divergence(self._f, self._few)
        else:
            groups, self._cost, self.kappa = regroup_by_distance(self._many, self._few, self._masses)
        self._next = groups
        before, weights = self._distortion, np.ones(self._f.size) if self._method == "zhang" else self._f.weights
        self._distortion = float(weights @ self._cost)
        still = self._method == "zhang" and abs(before - self._distortion) <= SETTLED * abs(self._distortion)
        self.settled = still or bool(np.array_equal(groups, self.groups))
        return self._distortion

    def reseed(self) -> int:
        """Take the next groups; those that emptied begin anew with the components that are fitted worst."""
        groups = self._next
        counts = np.bincount(groups, minlength=self.size)
        empty = np.flatnonzero(counts == 0)
        if len(empty):
            worst = np.argsort(-self._f.weights * self._cost, kind="stable")
            given = iter(worst)
            for group in empty:
                row = next(row for row in given if counts[groups[row]] > 1)
                counts[groups[row]] -= 1
                groups[row] = group
                counts[group] = 1
        self.groups = groups
        return len(empty)


def fewest(attempt: Callable[[int], T], enough: Callable[[T], bool], most: int, resolution: int) -> tuple[T, bool]:
    """What the smallest size gives that is good enough, by doubling and bisection, and True; that of ``most`` and False if none is.

    The size may be too large by one part in ``resolution``.
    """
    low, high = 0, 1
    found = attempt(high)
    while not enough(found):
        if high >= most:
            return found, False
        low, high = high, min(2 * high, most)
        found = attempt(high)
    while high - low > max(1, high // resolution):
        middle = (low + high) // 2
        tried = attempt(middle)
        if enough(tried):
            high, found = middle, tried
        else:
            low = middle
    return found, True
