"""The stages of a simplification: from first groups by local fits, regrouping and refitted weights to the joint descent.

Weights of both signs: the positive and the negative part are grouped apart, and meet when the weights are refitted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from reduset._engine import Components
from reduset._progress import Progress
from reduset._types import Array, Labels
from reduset.mixture.mixture import Mixture
from reduset.simplification import grouping
from reduset.simplification.joint_fit import Fitting, affordable_steps
from reduset.simplification.l2_error import Error, Gauge
from reduset.simplification.local_fit import Few, LocalFit, log_squares, matched_moments, regroup_by_distance, regroup_by_divergence

ROUNDS = 30  # of grouping, at most
SETTLED, ROUGHLY = 1e-3, 1e-2  # the relative change of its distortion that ends them: the paper's, and where a descent follows
LOOK_BACK, WORTHWHILE = 5, 0.02  # steps of a descent left to itself, and the share by which they must lower the squared error


class Step(NamedTuple):
    """One step on the way, and the relative L2 error after it."""

    stage: str
    error: float


@dataclass
class Found:
    """Where an attempt ended."""

    few: Few
    groups: Labels
    error: Error
    history: list[Step]
    reseeded: int


class Job:
    """f laid out once, for any number of attempts."""

    def __init__(
        self,
        f: Mixture,
        rows: Labels,
        mass: float | None,
        method: str,
        shape: str,
        refit: bool,
        steps: int | None,
        rng: np.random.Generator,
        shown: Progress,
    ) -> None:
        self.f, self._mass, self._method, self._shape, self._refit, self._steps = f, mass, method, shape, refit, steps
        self._rng, self.shown = rng, shown
        whole = len(rows) == f.size
        self.rows = rows
        self.weights, self.places = (f.weights, f.means) if whole else (f.weights[self.rows], f.means[self.rows])
        self.covariances = f.covariances if whole else f.covariances[self.rows]
        self.size = len(self.rows)
        full = shape == "full"
        many = Components(self.weights, self.places, self.covariances, full)
        self.fitting = Fitting(many, mass)
        self.gauge = Gauge(self.fitting, self.weights, self.places, self.covariances, rng)
        signs = [rows for rows in (np.flatnonzero(self.weights > 0), np.flatnonzero(self.weights < 0)) if len(rows)]
        self._parts = signs if len(signs) > 1 else [np.arange(self.size)]

    # -- where to start -----------------------------------------------------------------------------------------------------

    def groups(self, size: int | None, radius: float | None = None) -> Labels:
        """(n,) labels 0, 1, … of the components that have weight; none holds both signs."""
        if radius is not None:
            labels = [grouping.by_radius(self.places[rows], np.abs(self.weights[rows]), radius) for rows in self._parts]
        else:
            shares = self._shares(size or 1)
            labels = [self._by_kmeans(rows, count) for rows, count in zip(self._parts, shares, strict=True)]
        return self._joined(labels)

    def _by_kmeans(self, rows: Labels, count: int) -> Labels:
        if not count:
            return np.full(len(rows), -1)
        weights, places, covariances = np.abs(self.weights[rows]), self.places[rows], self.covariances[rows]
        scale = grouping.scale(weights, places, covariances, self._shape)
        return grouping.by_kmeans(places, weights, covariances, scale, count, self._rng)

    def _shares(self, size: int) -> list[int]:
        """How many components each sign gets: by their numbers; where there is but one, the heavier sign has it."""
        if len(self._parts) == 1:
            return [min(size, self.size)]
        counts = [len(rows) for rows in self._parts]
        if size == 1:
            heavy = int(np.abs(self.weights[self._parts[1]]).sum() > np.abs(self.weights[self._parts[0]]).sum())
            return [1 - heavy, heavy]
        first = int(np.clip(round(size * counts[0] / sum(counts)), 1, min(size - 1, counts[0])))
        second = min(size - first, counts[1])
        return [min(size - second, counts[0]), second]

    def _joined(self, labels: list[Labels]) -> Labels:
        out = np.full(self.size, -1)
        offset = 0
        for rows, own in zip(self._parts, labels, strict=True):
            out[rows] = np.where(own >= 0, own + offset, -1)
            offset += int(own.max()) + 1
        return out

    def given_groups(self, start: Any, size: int | None) -> Labels:
        """The same from a label for each component."""
        labels = np.asarray(start)
        if labels.shape != (self.f.size,):
            raise ValueError(f"start must be 'kmeans' or hold a label for each of the {self.f.size} components, got {labels.shape}")
        labels = labels[self.rows]
        if len(self._parts) > 1:  # one component cannot stand for both signs
            labels = np.unique(labels, return_inverse=True)[1] * 2 + (self.weights < 0)
        found = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        if size is not None and int(found.max()) + 1 != size:
            raise ValueError(
                f"start must have as many groups as size={size}, got {int(found.max()) + 1} (positive and negative apart)"
            )
        return found

    # -- the stages ---------------------------------------------------------------------------------------------------------

    def run(self, groups: Labels) -> Found:
        """From a partition to the end."""
        steps: list[tuple[str, float]] = []  # each stage with what it leaves of wᵀGw − 2wᵀκ
        few, groups, reseeded = self._group(groups, steps)
        if self._refit or self._steps != 0:
            few = self.fitting.refitted(few)
            steps.append(("refit", self.fitting.value(few)))
            if 1 < few.size < self.size and len(self._parts) == 1 and not self.fitting.many.shared:
                few, groups = self._unless_kept(few, groups, steps)
        elif self._mass is not None:
            few = replace(few, weights=few.weights * (self._mass / few.weights.sum()))
        if self._steps != 0:
            few = self._polish(few, steps)
        error = self.gauge.error(few)
        # differences of the steps are exact, whatever the gauge has to estimate: it is read once, at the end
        squares = error.relative**2 + (np.array([value for _, value in steps]) - self.fitting.value(few)) / self.gauge.energy
        errors = np.sqrt(np.maximum(squares, 0.0)).tolist()
        history = [Step(stage, value) for (stage, _), value in zip(steps, errors, strict=True)]
        return Found(few, groups, error, history, reseeded)

    def _unless_kept(self, few: Few, groups: Labels, steps: list[tuple[str, float]]) -> tuple[Few, Labels]:
        """The result of the groups, or where that loses less, the components of largest norm as they are and one for all the rest.

        Where components differ in weight and width a few hold most of ‖f‖, and merging any of these loses more than leaving all
        the others to one. As a start of the descent it led to a lower end too, wherever it was lower.
        """
        magnitudes = np.abs(self.weights)  # all of one sign, or one component could not stand for the rest
        norms = np.log(magnitudes) + 0.5 * log_squares(self.covariances, self.places.shape[1])
        strongest = np.argsort(-norms, kind="stable")[: few.size - 1]
        own = np.full(self.size, few.size - 1)
        own[strongest] = np.arange(few.size - 1)
        kept = matched_moments(magnitudes, self.places, self.covariances, own, few.size, self._shape)
        kept = self.fitting.refitted(kept)
        value = self.fitting.value(kept)
        if value >= steps[-1][1]:
            return few, groups
        steps.append(("keep", value))
        return kept, own

    def _group(self, groups: Labels, steps: list[tuple[str, float]]) -> tuple[Few, Labels, int]:
        """Rounds of fits and regrouping; signs stay apart."""
        parts = [_Part(self, rows, groups[rows]) for rows in self._parts if (groups[rows] >= 0).any()]
        report = self.shown.stage("group")
        reseeded = 0
        alone = not self._refit and self._steps == 0  # the paper's end is its last round; as a start the best one is better
        before, enough = np.inf, SETTLED if self._steps == 0 else ROUGHLY
        least = np.inf
        for done in range(ROUNDS):
            few = _joined([part.fit() for part in parts])
            distortion = sum(part.regroup() for part in parts)
            kappa = parts[0].kappa if len(self._parts) == 1 else None
            steps.append(("group", self.fitting.value(few, kappa)))
            if alone or done == 0 or steps[-1][1] < least:
                least, best, chosen = steps[-1][1], few, [part.groups for part in parts]
            report(done + 1, ROUNDS)
            if all(part.settled for part in parts) or abs(before - distortion) <= enough * abs(distortion):
                break
            before = distortion
            reseeded += sum(part.reseed() for part in parts)
        labels, offset = np.full(self.size, -1), 0
        for part, own in zip(parts, chosen, strict=True):
            labels[part.rows] = own + offset
            offset += part.size
        return best, labels, reseeded

    def _polish(self, few: Few, steps: list[tuple[str, float]]) -> Few:
        most = affordable_steps(self.fitting.many, few.size) if self._steps is None else self._steps
        report = self.shown.stage("polish")
        done = 0
        # ‖f‖² as the gauge draws it would drown a small error: what the start is known to lose sets the level
        level = self.gauge.energy
        if self._steps is None and not self.gauge.exact:
            level *= self.gauge.error(few).relative ** 2
            level -= steps[-1][1]

        def step(value: float) -> None:
            nonlocal done
            done += 1
            steps.append(("polish", value))
            report(min(done, most), most)
            alone = self._steps is None and done > LOOK_BACK
            if alone and steps[-1 - LOOK_BACK][1] - value < WORTHWHILE * (value + level):
                raise StopIteration  # which ends the descent

        return self.fitting.polished(few, most, step)


class _Part:
    """The components of one sign, in groups."""

    def __init__(self, job: Job, rows: Labels, groups: Labels) -> None:
        self.rows, self.groups = rows, np.unique(groups, return_inverse=True)[1]  # those of one sign count from 0
        self._method, self._shape = job._method, job._shape
        alone = len(rows) == job.size
        self.weights = np.abs(job.weights[rows])
        self._sign = np.sign(job.weights[rows[0]])
        self.places = job.places if alone else job.places[rows]
        self.covariances = job.covariances if alone else job.covariances[rows]
        self._many = Components(self.weights, self.places, self.covariances, self._shape == "full")
        self.size = int(self.groups.max()) + 1
        self.settled = False
        self.kappa: Array | None = None

    def fit(self) -> Few:
        few = matched_moments(self.weights, self.places, self.covariances, self.groups, self.size, self._shape)
        self._masses = few.weights
        if self._method == "l2":
            few = LocalFit(self._many, self.groups, few, self._shape).run(few)
        self._few = few
        return replace(few, weights=few.weights * self._sign)

    def regroup(self) -> float:
        """The next groups, and the distortion with them."""
        if self._method == "l2":
            groups, self._cost, self.kappa = regroup_by_distance(self._many, self._few, self._masses)
        else:
            groups, self._cost = regroup_by_divergence(self.places, self.covariances, self._few)
        self._next = groups
        self.settled = bool(np.array_equal(groups, self.groups))
        return float(self.weights @ self._cost)

    def reseed(self) -> int:
        """Take the next groups; those that emptied begin anew with the components that are fitted worst."""
        groups = self._next
        counts = np.bincount(groups, minlength=self.size)
        empty = np.flatnonzero(counts == 0)
        if len(empty):
            worst = np.argsort(-self.weights * self._cost, kind="stable")
            given = iter(worst)
            for group in empty:
                row = next(row for row in given if counts[groups[row]] > 1)
                counts[groups[row]] -= 1
                groups[row] = group
                counts[group] = 1
        self.groups = groups
        return len(empty)


def _joined(parts: list[Few]) -> Few:
    if len(parts) == 1:
        return parts[0]
    fields = ("weights", "places", "covariances")
    return Few(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))


def by_tolerance(job: Job, tol: float, most: int) -> tuple[Found, bool]:
    """The fewest components by doubling and bisection, to within a twentieth; the best at the largest size where none will do."""

    def at(size: int) -> Found:
        return job.run(job.groups(size))

    low, high = 0, 1
    found = at(high)
    while found.error.relative > tol and high < most:
        low, high = high, min(2 * high, most)
        found = at(high)
    if found.error.relative > tol:
        return found, False
    while high - low > max(1, high // 20):
        middle = (low + high) // 2
        tried = at(middle)
        if tried.error.relative <= tol:
            high, found = middle, tried
        else:
            low = middle
    return found, True
