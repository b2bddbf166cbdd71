"""simplify: a mixture of many components becomes one of few, each with a covariance of its own (Zhang & Kwok 2010).

start (which groups) → rounds of local fits and regrouping → all weights together → joint descent, each with the L2 error it leaves.
The first two stages are the paper's Algorithm 1; the others go beyond it. Weights of both signs: the positive and the negative part
are grouped apart, as the paper does for SVMs, and meet when the weights are refitted.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from reduset import _validate, partition
from reduset._engine.components import Array, Components, Labels
from reduset._engine.threads import single_threaded_blas
from reduset._progress import Progress
from reduset.compression import NotReachedWarning
from reduset.gauge import Error, Gauge
from reduset.local_fit import (
    NDIM,
    Few,
    LocalFit,
    matched_moments,
    regroup_by_distance,
    regroup_by_divergence,
)
from reduset.mixture import Mixture, as_mixture
from reduset.polish import Fitting, affordable_steps

ROUNDS = 30  # of grouping, at most
SETTLED, ROUGHLY = 1e-3, 1e-2  # the relative change of its distortion that ends them: the paper's, and where a descent follows
MOST_COMPONENTS = 1000


class Step(NamedTuple):
    """One step on the way, and the relative L2 error after it."""

    stage: str
    error: float


@dataclass(frozen=True)
class Simplification:
    """A mixture of few components and what it lost.

    Attributes
    ----------
    mixture : Mixture of m components
    error : ‖f − g‖/‖f‖ in L2
    interval : (low, high) of the error at 95 %: both ends are the error itself where it was computed and not estimated
    groups : (n,) which component of the result each of the given ones was grouped into; −1 for those without weight
    history : the steps, each a (stage, error)
    n_components : how many there were
    reseeded : how often a group had emptied, and was begun anew with the component that was fitted worst
    reached : whether ``tol`` was reached
    seconds : what it took
    """

    mixture: Mixture
    error: float
    interval: tuple[float, float]
    groups: Labels
    history: tuple[Step, ...]
    n_components: int
    reseeded: int
    reached: bool
    seconds: float
    method: str = field(repr=False)

    @property
    def size(self) -> int:
        """The number of components."""
        return self.mixture.size

    def __str__(self) -> str:
        low, high = self.interval
        spread = "" if low == high else f" (95 %: {low:.3g} to {high:.3g})"
        stages = list(dict.fromkeys(step.stage for step in self.history))
        last = {step.stage: step.error for step in self.history}
        lines = [
            f"Simplification of {self.n_components:,} components to {self.size:,} in {self.mixture.dimension}-D, "
            f"{self.mixture.shape} covariances",
            f"error      {self.error:.3g} of ‖f‖ in L2{spread}",
            f"steps      {', '.join(f'{stage} {last[stage]:.3g}' for stage in stages)}",
        ]
        if self.reseeded:
            lines.append(f"           {self.reseeded} groups emptied and were begun anew")
        if not self.reached:
            lines.append("NOT REACHED within the largest size allowed: see max_size")
        lines.append(f"time       {self.seconds:.3g} s")
        return "\n  ".join(lines)


def simplify(
    mixture: Any,
    size: int | None = None,
    tol: float | None = None,
    radius: float | None = None,
    *,
    method: str = "l2",
    covariance: str = "full",
    start: Any = "kmeans",
    refit: bool = True,
    polish: bool | int = True,
    density: bool = True,
    max_size: int | None = None,
    rng: Any = None,
    progress: bool | Callable[[str, int, int], None] = False,
) -> Simplification:
    """Replace a mixture by one of few components, and say how much was lost.

    Exactly one of ``size``, ``tol`` and ``radius`` says how few.

    Parameters
    ----------
    mixture : Mixture, or Gaussian KernelMean
    size : int
        That many components (fewer where fewer of the given ones are distinct).
    tol : float
        About the fewest components whose error ‖f − g‖/‖f‖ in L2 is at most this.
    radius : float
        As many groups as it takes for every component to lie within this distance of the first of its group.
    method : "l2" or "kl"
        The local fits and the grouping: of least L2 error (Zhang & Kwok 2010), or by moments and KL divergence (Goldberger & Roweis
        2005).
    covariance : "full", "diag" or "spherical"
        Of the result's components.
    start : "kmeans", or (n,) labels
        Weighted k-means on the means, or a partition: a label for each component.
    refit : bool
        Whether all weights are fitted together after the grouping.
    polish : bool or int
        Whether centres, covariances and weights then descend together; a number is the most steps, True as many as take some
        seconds (100 at most). Both False is the method alone.
    density : bool
        Whether a density stays one: weights not negative, with the mixture's mass. False leaves weights free, for the least error.
    max_size : int, default min(n, 1000), the most components for ``tol``
    rng : None, seed or Generator
    progress : bool, or a function of (stage, done, total)

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Mixture, simplify
    >>> rng = np.random.default_rng(0)
    >>> f = Mixture(np.full(200, 1 / 200), rng.normal(size=(200, 2)), np.full(200, 0.3))
    >>> found = simplify(f, size=5, rng=0)
    >>> found.mixture
    Mixture(5 components in 2 dimensions, full covariances)
    >>> found.error < 0.05, round(found.mixture.mass, 12)
    (True, 1.0)
    """
    begun = time.perf_counter()
    f = as_mixture(mixture)
    goals = {name: goal for name, goal in (("size", size), ("tol", tol), ("radius", radius)) if goal is not None}
    if len(goals) != 1:
        rule = "give exactly one of size (a number of components), tol (a relative error) and radius (of the groups)"
        raise ValueError(f"{rule}; got {' and '.join(goals) or 'none'}")
    if max_size is not None and tol is None:
        raise ValueError("max_size goes with tol; with size or radius it has no meaning, leave it out")
    _validate.one_of(method, "method", ("l2", "kl"))
    _validate.one_of(covariance, "covariance", NDIM)
    _require_weights(f)
    mass = f.mass if _validate.flag(density, "density") and f.is_density else None
    stages = _validate.flag(refit, "refit"), _steps(polish)
    job = _Job(f, mass, method, covariance, *stages, _validate.generator(rng), Progress(progress))
    try:
        with single_threaded_blas():
            if tol is not None:
                _validate.positive(tol, "tol", "it is a share, 0.01 for one percent")
                most = MOST_COMPONENTS if max_size is None else _validate.whole(max_size, "max_size", 1, f.size)
                if not isinstance(start, str):
                    raise ValueError("start as labels has a size of its own, tol looks for one; leave one of them out")
                _validate.one_of(start, "start", ("kmeans",))
                found, reached = _by_tolerance(job, float(tol), min(most, job.size))
            else:
                found, reached = job.run(job.groups(size, radius, start)), True
    finally:
        job.shown.close()
    few, groups, error = found.few, np.full(f.size, -1), found.error
    groups[job.rows] = found.groups
    result = Simplification(
        mixture=Mixture(few.weights, few.places, few.covariances),
        error=error.relative,
        interval=(max(error.relative - 1.96 * error.spread, 0.0), error.relative + 1.96 * error.spread),
        groups=groups,
        history=tuple(found.history),
        n_components=f.size,
        reseeded=found.reseeded,
        reached=reached,
        seconds=time.perf_counter() - begun,
        method=method,
    )
    if not reached:
        warnings.warn(
            f"tol={tol} was not reached with {result.size} components: the error is {result.error:.3g}. "
            "Raise max_size, or use covariance='full'",
            NotReachedWarning,
            stacklevel=2,
        )
    return result


def _steps(polish: Any) -> int | None:
    """The most steps of the joint descent, None for as many as can be afforded."""
    if isinstance(polish, bool | np.bool_):
        return None if polish else 0
    return _validate.whole(polish, "polish", 0, None, "it is a number of steps, or True or False")


def _require_weights(f: Mixture) -> None:
    total = float(np.abs(f.weights).sum())
    if not 1e-140 < total < 1e140:
        raise ValueError(f"the weights' magnitudes must sum to between 1e-140 and 1e140, got {total:g}; rescale: mixture / scale")


@dataclass
class _Found:
    few: Few
    groups: Labels
    error: Error
    history: list[Step]
    reseeded: int


class _Job:
    """f laid out once, for any number of attempts."""

    def __init__(
        self,
        f: Mixture,
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
        self.rows = np.flatnonzero(f.weights)
        whole = len(self.rows) == f.size
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

    def groups(self, size: int | None, radius: float | None, start: Any) -> Labels:
        """(n,) labels 0, 1, … of the components that have weight; none holds both signs."""
        if not isinstance(start, str):
            if radius is not None:
                raise ValueError("start as labels has groups of its own, radius looks for them; leave one of them out")
            return self._given(start, size)
        _validate.one_of(start, "start", ("kmeans",))
        if radius is not None:
            length = _validate.positive(radius, "radius", "it is a distance in the units of the means")
            labels = [partition.by_radius(self.places[rows], np.abs(self.weights[rows]), length) for rows in self._parts]
        else:
            size = _validate.whole(size, "size", 1, self.f.size, "it is a number of the mixture's components")
            labels = [self._by_kmeans(rows, count) for rows, count in zip(self._parts, self._shares(size), strict=True)]
        return self._joined(labels)

    def _by_kmeans(self, rows: Labels, count: int) -> Labels:
        if not count:
            return np.full(len(rows), -1)
        weights, places, covariances = np.abs(self.weights[rows]), self.places[rows], self.covariances[rows]
        scale = partition.scale(weights, places, covariances, self._shape)
        return partition.by_kmeans(places, weights, covariances, scale, count, self._rng)

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

    def _given(self, start: Any, size: int | None) -> Labels:
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

    def run(self, groups: Labels) -> _Found:
        """From a partition to the end."""
        history: list[Step] = []
        few, groups, reseeded = self._group(groups, history)
        if self._refit or self._steps != 0:
            few = self.fitting.refitted(few)
            history.append(Step("refit", self.gauge.error(few).relative))
        elif self._mass is not None:
            few = replace(few, weights=few.weights * (self._mass / few.weights.sum()))
        if self._steps != 0:
            few = self._polish(few, history)
        return _Found(few, groups, self.gauge.error(few), history, reseeded)

    def _group(self, groups: Labels, history: list[Step]) -> tuple[Few, Labels, int]:
        """Rounds of fits and regrouping; signs stay apart."""
        parts = [_Part(self, rows, groups[rows]) for rows in self._parts if (groups[rows] >= 0).any()]
        report = self.shown.stage("group")
        reseeded = 0
        before, enough = np.inf, SETTLED if self._steps == 0 else ROUGHLY
        for done in range(ROUNDS):
            few = _joined([part.fit() for part in parts])
            distortion = sum(part.regroup() for part in parts)
            kappa = parts[0].kappa if len(parts) == 1 and len(self._parts) == 1 else None
            history.append(Step("group", self.gauge.error(few, kappa).relative))
            report(done + 1, ROUNDS)
            if all(part.settled for part in parts) or abs(before - distortion) <= enough * abs(distortion):
                break
            before = distortion
            reseeded += sum(part.reseed() for part in parts)
        labels, offset = np.full(self.size, -1), 0
        for part in parts:
            labels[part.rows] = part.groups + offset
            offset += part.size
        return few, labels, reseeded

    def _polish(self, few: Few, history: list[Step]) -> Few:
        steps = affordable_steps(self.fitting.many, few.size) if self._steps is None else self._steps
        report = self.shown.stage("polish")
        errors: list[float] = []

        def step(error: float) -> None:
            errors.append(error)
            report(min(len(errors), steps), steps)

        few = self.fitting.polished(few, steps, step)
        # differences of the steps are exact, whatever the gauge has to estimate: it is read once, at the end
        last = self.gauge.error(few).relative ** 2
        squares = last + (np.array(errors) - min(errors, default=0.0)) / self.gauge.energy
        history.extend(Step("polish", float(np.sqrt(square))) for square in squares)
        return few


class _Part:
    """The components of one sign, in groups."""

    def __init__(self, job: _Job, rows: Labels, groups: Labels) -> None:
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


def _by_tolerance(job: _Job, tol: float, most: int) -> tuple[_Found, bool]:
    """The fewest components by doubling and bisection, to within a twentieth; the best at the largest size where none will do."""

    def at(size: int) -> _Found:
        return job.run(job.groups(size, None, "kmeans"))

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
