"""Fits of one component to each group: a faster form of Algorithm 1 of Zhang & Kwok 2010, and moment matching.

**Local approximation.** A component w·g with g = N(·; t, H) replaces a group S of components αⱼφⱼ and minimises
∫(w·g − Σ_{j∈S} αⱼφⱼ)². With p = Σ_{j∈S} αⱼ⟨g, φⱼ⟩ the best weight is w = p/‖g‖². It explains the energy p²/‖g‖² of the group, so
the fit maximises

    log p² + ½ log|H| + const.

With the weights qⱼ = αⱼ⟨g, φⱼ⟩/p held fixed, Jensen's inequality gives a lower bound that is tight at the current fit. So a step
that raises the bound raises the energy. If all φⱼ share one covariance C, the bound is largest for t = Σ qⱼxⱼ and, with
V = Σ qⱼ(xⱼ − t)(xⱼ − t)ᵀ,

    H = V + (V² + C²)^½        spherical: (29) of the paper, with the mean of V's diagonal; diagonal: entry by entry; full: in the
                               coordinates in which C is the identity and V diagonal

so that steps need no search. Otherwise steps go towards the fixed points (19) and (20) of the paper, which are ascent directions,

    t + M⁻¹b,        M⁻¹p − H + 2M⁻¹VH (made symmetric),

and are halved if a whole step would explain less. Centre and covariance move together, at most `MAX_STEPS` times in a round,
because the groups change after it.

**Fits to convergence.** In Algorithm 1 as printed (lines 6–18), centre and covariance of every group alternate until one update of
each moves it by at most ε = 0.01:

    repeat   t ← M⁻¹ Σ aⱼ(Hⱼ + H)⁻¹xⱼ                            until ‖Δt‖ ≤ ε        (19), p updates
             H ← M⁻¹ Σ aⱼ(Hⱼ + H)⁻¹(Hⱼ + 2vⱼvⱼᵀ(Hⱼ + H)⁻¹H)     until ‖ΔH‖_F ≤ ε      (20), q updates
    until p ≤ 1 and q ≤ 1,         aⱼ = αⱼ⟨g, φⱼ⟩,  vⱼ = xⱼ − t,  M = Σ aⱼ(Hⱼ + H)⁻¹

If all components share one spherical or diagonal covariance and the fit has that shape, the closed form (29) replaces (20). The
tolerances are absolute, in the units of the means, as in the paper. Three details are not in the text. (20) is symmetric only if
its matrices commute, so its symmetric part is used, which has the same fixed points. A step is halved if it leads to a matrix that
is not positive definite. A group that has not converged after `MAX_UPDATES` updates stops, and a warning reports it. All groups are
updated together. An update costs a pass over the components of the groups that have not converged.

**Grouping.** Component j joins the group i of least ‖(wᵢ/Zᵢ)gᵢ − φⱼ‖ with Zᵢ = Σ_{j∈Sᵢ} αⱼ (Proposition 1 there). The alternative
(Goldberger & Roweis 2005) matches moments, and j joins the i of least KL(φⱼ ‖ gᵢ). A round costs one pass over the components for
each step, and O(n·m) for the grouping.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from reduset._engine import Components, Moments, as_diagonal, as_full, blocks, log_determinants
from reduset._messages import NotReachedWarning, is_quiet, warn
from reduset._types import Array, Labels
from reduset.mixture import NDIM, diagonals, inverses, log_squares, not_positive, projected, solved, symmetric, widened

MAX_STEPS, MIN_GAIN = 3, 1e-4  # of a local fit in a round: it ends earlier at a smaller relative gain of energy
MIN_EXPLAINED = 1e-200  # relative to the highest peak: a group that explains less does not start from its moments
CENTRE_TOLERANCE = COVARIANCE_TOLERANCE = 0.01  # ε₁ and ε₂ of Algorithm 1
MAX_UPDATES = 2000  # of one group; the paper sets no limit


@dataclass(frozen=True)
class ComponentArrays:
    """Components as plain arrays without validation, of a mixture or of its simplification."""

    weights: Array
    means: Array
    covariances: Array

    @property
    def size(self) -> int:
        return len(self.weights)

    @property
    def dimension(self) -> int:
        return int(self.means.shape[1])

    def part(self, rows: Labels) -> ComponentArrays:
        """A subset of the components; not copied if it holds all."""
        if len(rows) == self.size:
            return self
        return ComponentArrays(self.weights[rows], self.means[rows], self.covariances[rows])

    def positive(self) -> ComponentArrays:
        return replace(self, weights=np.abs(self.weights))

    def laid_out(self, shape: str) -> Components:
        """The components laid out for sums against a few components of a shape."""
        return Components(self.weights, self.means, self.covariances, shape == "full")

    @staticmethod
    def joined(parts: list[ComponentArrays]) -> ComponentArrays:
        if len(parts) == 1:
            return parts[0]
        names = [column.name for column in fields(ComponentArrays)]
        return ComponentArrays(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def matched_moments(f: ComponentArrays, groups: Labels, size: int, shape: str) -> ComponentArrays:
    """A component for each group, with its mass, mean and covariance (eq. 21).

    Weights are not negative, and no group is empty.
    """
    d, means, covariances = f.dimension, f.means, f.covariances
    mass = np.asarray(np.bincount(groups, f.weights, size), np.float64)
    proportions = f.weights / mass[groups]
    anchor = means[np.unique(groups, return_index=True)[1]]  # differences to a member of the group lose no digits
    differences = means - anchor[groups]
    shift = np.stack([np.bincount(groups, proportions * differences[:, r], size) for r in range(d)], axis=1)
    differences = differences - shift[groups]

    def over_groups(values: Array) -> Array:
        return np.asarray(np.bincount(groups, proportions * values, size), np.float64)

    if shape != "full":
        within = diagonals(covariances, d)
        spread = np.stack([over_groups(differences[:, r] ** 2 + within[:, r]) for r in range(d)], axis=1)
    else:
        spread = np.empty((size, d, d))
        for r in range(d):
            for c in range(r + 1):
                within_rc = covariances[:, r, c] if covariances.ndim == 3 else as_diagonal(covariances, d)[:, r] if r == c else 0.0
                spread[:, r, c] = spread[:, c, r] = over_groups(differences[:, r] * differences[:, c] + within_rc)
    return ComponentArrays(mass, anchor + shift, projected(spread, shape))


T = TypeVar("T", ComponentArrays, Moments)


@dataclass(frozen=True)
class LocalFitState:
    """The state of an ascent, with an entry for each group: the explained energy (log), and the length of the next step."""

    reduced: ComponentArrays
    moments: Moments
    energy: Array
    step: Array


class LocalFit:
    """The local approximations of one partition, in the units of the components.

    Parameters
    ----------
    many : Components, weights not negative
    groups : (n,) labels 0 … size − 1, none empty
    """

    def __init__(self, many: Components, groups: Labels, start: ComponentArrays, shape: str) -> None:
        order = np.argsort(groups, kind="stable")
        self._many = many.reordered(order)
        self._bounds: Labels = np.searchsorted(groups[order], np.arange(start.size + 1)).astype(np.int64)
        self._shape = shape
        self._closed = self._many.shared and self._many.covariances.ndim <= NDIM[shape]

    def begin(self, reduced: ComponentArrays) -> LocalFitState:
        """The start of a fit.

        A group that explains nothing there, such as narrow components in many dimensions, starts from its highest component.
        """
        moments = self._many.moments(reduced.means, reduced.covariances, self._bounds)
        unexplained = ~(moments.total > MIN_EXPLAINED)
        if unexplained.any():
            reduced = _mixed(unexplained, self._heaviest(reduced), reduced)
            moments = self._many.moments(reduced.means, reduced.covariances, self._bounds)
        return LocalFitState(reduced, moments, self._energies(reduced, moments), np.ones(reduced.size))

    def _heaviest(self, reduced: ComponentArrays) -> ComponentArrays:
        """The highest component of each group, in the requested shape."""
        many = self._many
        rows = np.array([a + int(np.argmax(many.weights[a:b])) for a, b in pairwise(self._bounds)])
        selected = many.covariances[np.zeros_like(rows) if many.shared else rows]
        covariances = projected(widened(selected, 3 if many.full else 2, many.dimension), self._shape)
        return replace(reduced, means=many.columns[:, rows].T + many.centre, covariances=covariances)

    def _energies(self, reduced: ComponentArrays, moments: Moments) -> Array:
        with np.errstate(divide="ignore"):
            return 2 * np.log(moments.total) - log_squares(reduced.covariances, self._many.dimension)

    def run(self, reduced: ComponentArrays) -> ComponentArrays:
        """At most `MAX_STEPS` steps from a start, then the best weights."""
        state = self.begin(reduced)
        for _ in range(MAX_STEPS):
            before, state = state, self.step(state)
            if np.all((state.energy - before.energy <= MIN_GAIN) & (state.step == 1)):
                break
        return self._with_weights(state.reduced, state.moments)

    def _with_weights(self, reduced: ComponentArrays, moments: Moments) -> ComponentArrays:
        """The weights of least local error, p/‖g‖² (17)."""
        unit = np.exp(log_squares(reduced.covariances, self._many.dimension) - self._many.log_unit)
        return replace(reduced, weights=moments.total / unit)

    def step(self, state: LocalFitState) -> LocalFitState:
        """One update of the centre and covariance of every group; a group that would explain less stays and halves its step."""
        reduced = state.reduced
        means, covariances = self._fixed_point(reduced, state.moments)
        trial = replace(
            reduced,
            means=reduced.means + state.step[:, None] * (means - reduced.means),
            covariances=reduced.covariances + as_wide(state.step, covariances) * (covariances - reduced.covariances),
        )
        failed = not_positive(trial.covariances)
        if failed.any():
            trial = _mixed(failed, reduced, trial)
        moments = self._many.moments(trial.means, trial.covariances, self._bounds)
        energy = self._energies(trial, moments)
        worse = ~(energy >= state.energy) | failed
        step = np.where(worse, state.step / 2, np.minimum(1.0, 2 * state.step))
        if not worse.any():
            return LocalFitState(trial, moments, energy, step)
        return LocalFitState(
            _mixed(worse, reduced, trial), _mixed(worse, state.moments, moments), np.where(worse, state.energy, energy), step
        )

    def _fixed_point(self, reduced: ComponentArrays, moments: Moments) -> tuple[Array, Array]:
        """The end of a whole step: the centres t + M⁻¹b, and covariances that maximise or raise the bound."""
        move = solved(moments.stiff, moments.pull)
        if not self._closed:
            return reduced.means + move, self._uphill(reduced, moments)
        closed_form = self._closed_form_full if self._shape == "full" else self._closed_form_diagonal
        return reduced.means + move, closed_form(reduced, moments, move)

    def _uphill(self, reduced: ComponentArrays, moments: Moments) -> Array:
        """The step for components with different covariances: H + M⁻¹SH along the slope S = pH⁻¹ − 2M + 2V of the bound.

        M and V are the sums ``stiff`` and ``square`` of `_engine.components`. Full covariances use the symmetric part of the step,
        diagonal ones only the diagonals of S and M, and spherical ones their traces.
        """
        H = widened(reduced.covariances, 3 if self._many.full else 2, self._many.dimension)
        stiff, total = moments.stiff, as_wide(moments.total, H)
        slope = (total * inverses(H) if self._many.full else total / H) - 2 * stiff + 2 * moments.square
        if self._shape == "full":
            return reduced.covariances + symmetric(np.asarray(np.linalg.solve(stiff, slope @ H), np.float64))
        slope, stiff = (diagonals(sums, self._many.dimension) for sums in (slope, stiff))
        if self._shape == "spherical":
            slope, stiff = slope.sum(axis=1), stiff.sum(axis=1)
        return reduced.covariances * (1 + slope / stiff)

    def _closed_form_diagonal(self, reduced: ComponentArrays, moments: Moments, move: Array) -> Array:
        """V + (V² + C²)^½ entry by entry; for spherical covariances with the mean of V."""
        C = as_diagonal(self._many.covariances, self._many.dimension)
        joint = as_diagonal(reduced.covariances, self._many.dimension) + C
        V = np.maximum(moments.square * joint**2 / moments.total[:, None] - move**2, 0.0)
        if self._shape == "spherical":
            V, C = np.asarray(V.mean(axis=1)), self._many.covariances
        return V + np.sqrt(V**2 + C**2)

    def _closed_form_full(self, reduced: ComponentArrays, moments: Moments, move: Array) -> Array:
        """V + (V² + C²)^½ in the coordinates in which C is the identity."""
        C = as_full(self._many.covariances, self._many.dimension)[0]
        joint = reduced.covariances + C
        V = joint @ moments.square @ joint / moments.total[:, None, None] - move[:, :, None] * move[:, None, :]
        root = np.linalg.cholesky(C)
        inside = np.linalg.solve(root, np.linalg.solve(root, V).transpose(0, 2, 1))
        values, vectors = np.linalg.eigh(symmetric(inside))
        values = np.maximum(values, 0.0)
        wide = (vectors * (values + np.sqrt(values**2 + 1))[:, None, :]) @ vectors.transpose(0, 2, 1)
        return symmetric(root @ wide @ root.T)


def as_wide(values: NDArray[Any], like: Array) -> NDArray[Any]:
    """(m,) values in a shape that broadcasts with m covariances."""
    return values.reshape(-1, *[1] * (like.ndim - 1))


def _mixed(first: NDArray[np.bool_], one: T, other: T) -> T:
    """The rows of ``one`` where ``first`` is True, and of ``other`` elsewhere."""
    rows = {}
    for name in (field.name for field in fields(one)):
        here, there = getattr(one, name), getattr(other, name)
        rows[name] = np.where(as_wide(first, here), here, there)
    return replace(one, **rows)


def regroup_by_distance(many: Components, reduced: ComponentArrays, masses: Array) -> tuple[Labels, Array, Array]:
    """For each component the closest (wᵢ/Zᵢ)gᵢ in L2 and its squared distance, and κ, in the units of the components."""
    d = many.dimension
    ratio = reduced.weights / masses
    squares = np.exp(log_squares(reduced.covariances, d) - many.log_unit)
    groups, least, kappa = many.closest(reduced.means, reduced.covariances, ratio**2 * squares, 2 * ratio)
    norms = np.exp(log_squares(many.covariances, d) - many.log_unit)
    return groups, np.maximum(least + norms, 0.0), kappa


def regroup_by_divergence(many: ComponentArrays, reduced: ComponentArrays) -> tuple[Labels, Array]:
    """For each component the gᵢ of least KL(φⱼ ‖ gᵢ), and tr H⁻¹C + log|H| + |x − t|²_H, twice the KL up to a constant of j."""
    n, d = many.means.shape
    centre = many.means[0]
    targets = reduced.means - centre
    full = max(reduced.covariances.ndim, many.covariances.ndim) == 3
    H = widened(reduced.covariances, 3 if full else 2, d)
    precision = inverses(H)
    pulled = np.einsum("mij,mj->mi", precision, targets) if full else precision * targets
    constant = np.einsum("mi,mi->m", pulled, targets) + log_determinants(reduced.covariances, d)
    groups, least = np.empty(n, np.int64), np.empty(n)
    rows = max(1, (1 << 20) // (d * d if full else d))
    for a, b in blocks(n, min(rows, 4096)):
        differences = many.means[a:b] - centre
        if full:
            second = (as_full(many.covariances[a:b], d) + differences[:, :, None] * differences[:, None, :]).reshape(b - a, -1)
            cost = second @ precision.reshape(len(H), -1).T
        else:
            cost = (as_diagonal(many.covariances[a:b], d) + differences**2) @ precision.T
        cost += constant - 2 * differences @ pulled.T
        groups[a:b] = cost.argmin(axis=1)
        least[a:b] = cost[np.arange(b - a), groups[a:b]]
    return groups, least


class ConvergedFit(LocalFit):
    """The local approximations of one partition, each iterated to convergence."""

    def run(self, reduced: ComponentArrays) -> ComponentArrays:
        """Fit every group from a start, with the weights of least local error (17)."""
        fit = self.begin(reduced).reduced
        fit = replace(fit, means=fit.means.copy(), covariances=fit.covariances.copy())
        stages = _Alternation(fit.size)
        while len(active := stages.active):
            at_centre = stages.at_centre[active]
            for update, chosen in ((self._move_centres, at_centre), (self._change_covariances, ~at_centre)):
                if chosen.any():
                    stages.advance(active[chosen], update(fit, active[chosen]))
        if stages.unconverged and not is_quiet():
            warn(
                f"{stages.unconverged} local fits had not converged after {MAX_UPDATES} updates: they still change by more than "
                f"{CENTRE_TOLERANCE}; divide the means by a larger unit",
                NotReachedWarning,
            )
        return self._with_weights(fit, self._many.moments(fit.means, fit.covariances, self._bounds))

    def _spans(self, rows: Labels) -> tuple[Labels, Labels]:
        return self._bounds[rows], self._bounds[rows + 1]

    def _move_centres(self, fit: ComponentArrays, rows: Labels) -> Array:
        """Update some centres by (19); returns the (k,) lengths of their moves."""
        moments = self._many.moments(fit.means[rows], fit.covariances[rows], self._spans(rows))
        shift = solved(moments.stiff, moments.pull)
        fit.means[rows] += shift
        return np.asarray(np.linalg.norm(shift, axis=1))

    def _change_covariances(self, fit: ComponentArrays, rows: Labels) -> Array:
        """Update some covariances by (20) or (29); returns the (k,) Frobenius norms of the changes."""
        subset = ComponentArrays(fit.weights[rows], fit.means[rows], fit.covariances[rows])
        moments = self._many.moments(subset.means, subset.covariances, self._spans(rows))
        if self._closed and self._shape != "full":
            target = self._closed_form_diagonal(subset, moments, np.zeros_like(subset.means))
        else:
            target = self._uphill(subset, moments)
        step = target - subset.covariances
        while (failed := not_positive(subset.covariances + step)).any():
            step = step / as_wide(np.where(failed, 2.0, 1.0), step)
        fit.covariances[rows] += step
        repeated = self._many.dimension if step.ndim == 1 else 1  # a spherical covariance has its variance d times
        return np.asarray(np.sqrt(repeated * np.square(step).reshape(len(step), -1).sum(axis=1)))


class _Alternation:
    """Which groups have converged, and whether the others update their centre or their covariance (lines 6–18)."""

    def __init__(self, size: int) -> None:
        self._converged = np.zeros(size, np.bool_)
        self._updates = np.zeros((2, size), np.int64)  # p and q, of this alternation
        self._total = np.zeros(size, np.int64)
        self.at_centre = np.ones(size, np.bool_)

    @property
    def active(self) -> Labels:
        return np.flatnonzero(~self._converged & (self._total < MAX_UPDATES))

    @property
    def unconverged(self) -> int:
        return int((~self._converged).sum())

    def advance(self, rows: Labels, changes: Array) -> None:
        """Count an update of these groups with its changes; all of them update their centres, or all their covariances."""
        at_centre = bool(self.at_centre[rows[0]])
        self._total[rows] += 1
        self._updates[0 if at_centre else 1, rows] += 1
        done = rows[changes <= (CENTRE_TOLERANCE if at_centre else COVARIANCE_TOLERANCE)]
        self.at_centre[done] = not at_centre
        if not at_centre:
            self._converged[done] = (self._updates[:, done] <= 1).all(axis=0)
            self._updates[:, done] = 0
