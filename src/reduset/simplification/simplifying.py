"""simplify: reduce a mixture of many components to a few, each with its own covariance (Zhang & Kwok 2010).

The stages are first groups, rounds of local fits and regrouping, a fit of all weights together, and a joint descent. The history
holds the L2 error after each step. The first two stages are Algorithm 1 of the paper: as printed with method="zhang", and with at
most three steps of each local fit in a round with method="l2". The others go beyond it. With signed weights, the positive and the
negative part are grouped separately, as the paper does for SVMs, and combined when the weights are refitted.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reduset import _validate
from reduset._engine import single_threaded_blas
from reduset._messages import NotReachedWarning, is_quiet, warn
from reduset._progress import Progress
from reduset._types import Array, Labels, ProgressLike, SeedLike
from reduset._validate import seeded
from reduset.mean import KernelMean
from reduset.mixture import NDIM, Mixture, as_mixture, widened
from reduset.simplification.l2_error import RelativeL2Error, local_squares
from reduset.simplification.local_fit import ComponentArrays
from reduset.simplification.pipeline import ROUNDS, PipelineOptions, PipelineResult, SimplificationPipeline, StageError, fewest

MAX_COMPONENTS = 1000
MAX_COLUMNS = 2000
RESOLUTION = 20  # for a tolerance, the size may be too large by one part in 20
METHODS = ("l2", "zhang", "kl")


@dataclass(frozen=True)
class Simplification:
    """A mixture of few components and its approximation error.

    Attributes
    ----------
    mixture : Mixture of m components
    error : ‖f − g‖/‖f‖ in L2
    interval : (low, high) of the error at 95 %; both ends equal the error where it was computed exactly
    groups : (n,) the component of the result that each given component was grouped into; −1 for components of weight zero
    history : the steps, each a (stage, error)
        "group" is a round of local fits, with weights that do not keep the mass yet. "refit" fits all weights. "keep" starts again
        from the components of largest norm, unchanged, and one for the rest, if their error is lower. It is the first step if these
        components hardly overlap and a polish follows. "polish" is a step of the joint descent.
    n_components : the number of components given
    reseeded : the number of empty groups that were restarted with the component of largest error
    reached : True if ``tol`` was reached
    seconds : run time
    log_norm : log ‖f‖ in L2, the unit of the error; None if every component was kept
    """

    mixture: Mixture
    error: float
    interval: tuple[float, float]
    groups: Labels
    history: tuple[StageError, ...]
    n_components: int
    reseeded: int
    reached: bool
    seconds: float
    method: str = field(repr=False)
    log_norm: float | None = field(repr=False)

    def local_errors(self, mixture: Mixture | KernelMean) -> Array:
        """(m,) error of each component on its own group, ‖wᵢgᵢ − Σ_{j∈Sᵢ} αⱼφⱼ‖/‖f‖, for the mixture f that was simplified.

        All pairs of components within a group are summed, O(n²/m). Values below about 1e-8 are lost in rounding.
        """
        return self._local_errors(mixture)[: self.size]

    def bound(self, mixture: Mixture | KernelMean) -> float:
        """Upper bound on the error, (m Σᵢ eᵢ²)^½ with the local errors eᵢ (6 in Zhang & Kwok 2010), for the same mixture f.

        It holds for any groups. The error itself is usually far smaller, since local errors of different sign cancel.
        """
        errors = self._local_errors(mixture)
        return float(np.sqrt(len(errors) * np.square(errors).sum()))

    def _local_errors(self, mixture: Mixture | KernelMean) -> Array:
        """The local errors, followed by the norm of the components with weight that are in no group, if any."""
        f = as_mixture(mixture)
        if f.size != self.n_components or f.dimension != self.mixture.dimension:
            raise ValueError(
                f"mixture must be the one that was simplified, of {self.n_components:,} components in {self.mixture.dimension} "
                f"dimensions; got {f.size:,} in {f.dimension}"
            )
        if self.log_norm is None:  # every component was kept
            return np.zeros(self.size)
        g = self.mixture
        reduced = ComponentArrays(g.weights, g.means, g.covariances)
        groups, rest = self.groups, (self.groups < 0) & (f.weights != 0)
        if rest.any():
            groups = np.where(rest, g.size, groups)
            nothing = ComponentArrays(np.zeros(1), g.means[:1], g.covariances[:1])
            reduced = ComponentArrays.joined([reduced, nothing])
        squares, log_unit = local_squares(ComponentArrays(f.weights, f.means, f.covariances), groups, reduced)
        return np.sqrt(squares) * np.exp(0.5 * log_unit - self.log_norm)

    @property
    def size(self) -> int:
        """The number of components."""
        return self.mixture.size

    @property
    def idle(self) -> int:
        """The number of components of weight 0; a smaller size gives the same error."""
        return int((self.mixture.weights == 0).sum())

    def __str__(self) -> str:
        low, high = self.interval
        spread = "" if low == high else f" (95 %: {low:.3g} to {high:.3g})"
        last = {step.stage: step.error for step in self.history}
        lines = [
            f"Simplification of {self.n_components:,} components to {self.size:,} in {self.mixture.dimension}-D, "
            f"{self.mixture.shape} covariances",
            f"error      {self.error:.3g} of ‖f‖ in L2{spread}",
        ]
        if last:
            lines.append(f"steps      {', '.join(f'{stage} {error:.3g}' for stage, error in last.items())}")
        if self.reseeded:
            lines.append(f"           {self.reseeded} empty groups were restarted")
        if self.idle:
            lines.append(f"           {self.idle} components have weight 0: a smaller size suffices")
        if not self.reached:
            lines.append("NOT REACHED within the largest size allowed: see max_size")
        lines.append(f"time       {self.seconds:.3g} s")
        return "\n  ".join(lines)


@seeded
def simplify(
    mixture: Mixture | KernelMean,
    size: int | None = None,
    tol: float | None = None,
    radius: float | None = None,
    *,
    method: str = "l2",
    covariance: str = "full",
    start: str | ArrayLike = "kmeans",
    rounds: int = ROUNDS,
    refit: bool = True,
    polish: bool | int = True,
    density: bool = True,
    mass_weights: bool = False,
    max_size: int | None = None,
    rng: SeedLike = None,
    progress: ProgressLike = False,
) -> Simplification:
    """Replace a mixture by a smaller one, and compute the L2 error.

    Pass exactly one of ``size``, ``tol`` and ``radius``, or none if ``start`` holds labels.

    Parameters
    ----------
    mixture : Mixture, or Gaussian KernelMean
    size : int
        The number of components. The result has fewer if fewer given components are distinct.
    tol : float
        The largest relative error ‖f − g‖/‖f‖ in L2; the result has about the fewest components with this error.
    radius : float
        The largest distance of a component to the first of its group; it sets the number of groups.
    method : "l2", "zhang" or "kl"
        The local fits and the grouping. "l2" minimises the L2 error with at most three steps of each local fit in a round. "zhang"
        is Algorithm 1 of Zhang & Kwok (2010) as printed: each local fit iterates until a change is at most 0.01, in the units of
        the means. On the paper's toy mixtures the errors of the two differ by less than 3 %. "kl" matches moments and groups by KL
        divergence (Goldberger & Roweis 2005).
    covariance : "full", "diag" or "spherical"
        The shape of the covariances in the result.
    start : "kmeans", or (n,) labels
        Weighted k-means on the means, or a partition: a label for each component.
    rounds : int
        The maximum number of rounds of local fits and regrouping; they end earlier if they change little.
    refit : bool
        Fit all weights together after the grouping.
    polish : bool or int
        Minimise the error over centres, covariances and weights together; a number sets the maximum of steps. True continues
        while five steps lower the squared error by 2 %, for at most 100 steps and about 10 seconds. With ``refit=False,
        polish=False`` only ``method`` is used.
    density : bool
        Keep a density: weights are not negative and have the mass of the mixture. False leaves weights free, for a lower error.
    mass_weights : bool
        Give each component the mass of its group, Σα (Zhang & Kwok 2010, Section IV), instead of the weight of least local error.
        Needs ``refit=False`` and ``polish=False``. With method "kl" the weights are always these.
    max_size : int, default min(n, 1000), the maximum number of components for ``tol``
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
    started = time.perf_counter()
    f = as_mixture(mixture)
    goal = _goal(f, start, size, tol, radius)
    if max_size is not None and tol is None:
        raise ValueError("max_size needs tol; omit it with size or radius")
    limit = MAX_COMPONENTS if max_size is None else _validate.whole(max_size, "max_size", 1)
    _validate.one_of(method, "method", METHODS)
    _validate.one_of(covariance, "covariance", NDIM)
    total = float(np.abs(f.weights).sum())
    _validate.squares_summable(total, "the weights' magnitudes must sum to", f"got {total:g}; rescale: mixture / scale")
    _require_columns(f)
    mass = f.mass if _validate.flag(density, "density") and f.is_density else None
    rounds = _validate.whole(rounds, "rounds", 1)
    stages = fitting_stages(refit, polish)
    if _validate.flag(mass_weights, "mass_weights") and stages[0]:
        raise ValueError(
            "mass_weights=True sets the weights from the groups, and refit replaces them; pass refit=False, polish=False"
        )
    options = PipelineOptions(method, covariance, *stages, rounds, mass, mass_weights)
    rng = _validate.generator(rng)
    with closing(Progress(progress)) as shown, single_threaded_blas():
        outcome, reached = _run(f, start, goal, limit, options, rng, shown)
    result = _result(f, outcome, reached, method, time.perf_counter() - started)
    if not reached and not is_quiet():
        more = "" if covariance == "full" else ", or use covariance='full'"
        warn(
            f"tol={tol:g} was not reached with {result.size} components: the error is {result.error:.3g}. Raise max_size{more}",
            NotReachedWarning,
        )
    return result


def _require_columns(f: Mixture) -> None:
    """Raise `ValueError` if the L2 norm of a component underflows: its square is 2^(−d/2) of the peak of the density."""
    if f.dimension > MAX_COLUMNS:
        raise ValueError(
            f"mixture must have at most {MAX_COLUMNS:,} columns, beyond which densities underflow in L2, got {f.dimension:,}; "
            "reduce the columns first, such as by principal components"
        )


def _goal(f: Mixture, start: Any, size: Any, tol: Any, radius: Any) -> dict[str, Any]:
    """The given one of size, tol and radius by name, validated; empty if ``start`` holds labels instead."""
    partitioned = not isinstance(start, str)
    if not partitioned:
        _validate.one_of(start, "start", ("kmeans",))
    goals = {name: goal for name, goal in (("size", size), ("tol", tol), ("radius", radius)) if goal is not None}
    if len(goals) != 1 and not (partitioned and not goals):
        rule = "give exactly one of size (a number of components), tol (a relative error) and radius (of the groups)"
        raise ValueError(f"{rule}; got {' and '.join(goals) or 'none'}")
    if partitioned and (tol is not None or radius is not None):
        raise ValueError(f"start as labels excludes {next(iter(goals))}, which searches for groups; omit one of them")
    if size is not None:
        goals["size"] = _validate.whole(size, "size", 1, f.size, "it is a number of the mixture's components")
    if tol is not None:
        goals["tol"] = _validate.positive(tol, "tol", "it is a proportion, 0.01 for one percent")
    if radius is not None:
        goals["radius"] = _validate.positive(radius, "radius", "it is a distance in the units of the means")
    return goals


def fitting_stages(refit: Any, polish: Any) -> tuple[bool, int | None]:
    """The flag of the joint fit of weights, and the maximum of descent steps, None for the affordable number."""
    refit = _validate.flag(refit, "refit")
    if isinstance(polish, bool | np.bool_):
        steps = None if polish else 0
    else:
        steps = _validate.whole(polish, "polish", 0, None, "it is a number of steps, or True or False")
    if not refit and steps != 0:
        raise ValueError("refit=False keeps the weights of each group, and polish replaces them; pass polish=False too")
    return refit, steps


def _run(
    f: Mixture, start: Any, goal: dict[str, Any], limit: int, options: PipelineOptions, rng: np.random.Generator, shown: Progress
) -> tuple[PipelineResult, bool]:
    """The components, and True if the goal was reached."""
    rows = np.flatnonzero(f.weights)
    if isinstance(start, str) and goal.get("size", 0) >= len(rows) and f.covariances.ndim <= NDIM[options.shape]:
        return _unchanged(f, rows, options.shape), True
    pipeline = SimplificationPipeline(f, rows, options, rng, shown)
    if not isinstance(start, str):
        return pipeline.run(pipeline.given_groups(start, goal.get("size"))), True

    def attempt(size: int | None) -> PipelineResult:
        return pipeline.solve(size, goal.get("radius"))

    if "tol" not in goal:
        return attempt(goal.get("size")), True
    return fewest(attempt, lambda outcome: outcome.error.relative <= goal["tol"], min(limit, len(rows)), RESOLUTION)


def _unchanged(f: Mixture, rows: Labels, shape: str) -> PipelineResult:
    """All components unchanged, with covariances in the requested shape, which must contain their shape."""
    reduced = ComponentArrays(f.weights[rows], f.means[rows], widened(f.covariances[rows], NDIM[shape], f.dimension))
    groups = np.full(f.size, -1)
    groups[rows] = np.arange(len(rows))
    return PipelineResult(reduced, groups, RelativeL2Error(0.0, 0.0, 0.0), [], 0, None)


def _result(f: Mixture, outcome: PipelineResult, reached: bool, method: str, seconds: float) -> Simplification:
    reduced, error = outcome.reduced, outcome.error
    return Simplification(
        mixture=Mixture(reduced.weights, reduced.means, reduced.covariances),
        error=error.relative,
        interval=(max(error.relative - 1.96 * error.spread, 0.0), error.relative + 1.96 * error.spread),
        groups=outcome.groups,
        history=tuple(outcome.history),
        n_components=f.size,
        reseeded=outcome.reseeded,
        reached=reached,
        seconds=seconds,
        method=method,
        log_norm=outcome.log_norm,
    )
