"""Groups of components, each fitted by one: a faster form of Algorithm 1 of Zhang & Kwok 2010, and its rival.

Local approximation: group S of components αⱼφⱼ becomes w·g, g = N(·; t, H), of least ∫(w·g − Σ_{j∈S} αⱼφⱼ)². At the best w = p/‖g‖²
the group's energy that is explained is p²/‖g‖², p = Σ_{j∈S} αⱼ⟨g, φⱼ⟩, so the fit maximises

    log p² + ½ log|H| + const.

With the weights qⱼ = αⱼ⟨g, φⱼ⟩/p held fixed, Jensen's inequality bounds it from below, with equality where one stands: what raises
the bound raises the energy. Where all φⱼ have one covariance C, the bound is at its highest for t = Σ qⱼxⱼ and, with
V = Σ qⱼ(xⱼ − t)(xⱼ − t)ᵀ,

    H = V + (V² + C²)^½        spherical: (29) of the paper, with the mean of V's diagonal; diagonal: entry by entry; full: in the
                               coordinates in which C is the identity and V diagonal

so that steps need no search. Else they go along the paper's fixed points (19) and (20), which point uphill,

    t + M⁻¹b,        M⁻¹p − H + 2M⁻¹VH (made symmetric),        by half of it where a whole step would explain less.

Centre and covariance move together, at most `STEPS` times in a round, since the groups change after it. Algorithm 1 as printed fits
each group to convergence first (`converged_fit`).

Grouping: component j joins the i of least ‖(wᵢ/Zᵢ)gᵢ − φⱼ‖, Zᵢ = Σ_{j∈Sᵢ} αⱼ (Proposition 1 there). The rival (Goldberger & Roweis
2005) matches moments and joins j to the i of least KL(φⱼ ‖ gᵢ). A round costs a pass over the groups' own components for each step,
and one of O(n·m) for the grouping.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from reduset._engine import Components, Moments, as_diagonal, as_full, blocks, log_determinants
from reduset._types import Array, Labels
from reduset.mixture.covariances import NDIM, diagonals, inverses, log_squares, not_positive, projected, solved, symmetric, widened

STEPS, ENOUGH = 3, 1e-4  # of a local fit in a round: the most steps, and the relative gain of energy that ends it sooner
FAINTEST = 1e-200  # what a group must explain, beside the highest peak, for its moments to be a start


@dataclass(frozen=True)
class ComponentArrays:
    """Components as plain arrays that nobody has checked: the many of a mixture, or the few of its simplification."""

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
        """Some of them; not copied where that is all."""
        if len(rows) == self.size:
            return self
        return ComponentArrays(self.weights[rows], self.means[rows], self.covariances[rows])

    def positive(self) -> ComponentArrays:
        return replace(self, weights=np.abs(self.weights))

    def laid_out(self, shape: str) -> Components:
        """For sums against few components of a shape."""
        return Components(self.weights, self.means, self.covariances, shape == "full")

    @staticmethod
    def joined(parts: list[ComponentArrays]) -> ComponentArrays:
        if len(parts) == 1:
            return parts[0]
        names = [each.name for each in fields(ComponentArrays)]
        return ComponentArrays(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def matched_moments(many: ComponentArrays, groups: Labels, size: int, shape: str) -> ComponentArrays:
    """Each group's mass, mean and covariance, as one component (eq. 21); the weights are not negative, no group is empty."""
    d, means, covariances = many.dimension, many.means, many.covariances
    mass = np.asarray(np.bincount(groups, many.weights, size), np.float64)
    share = many.weights / mass[groups]
    anchor = means[np.unique(groups, return_index=True)[1]]  # one of each group: differences to it lose no digits
    away = means - anchor[groups]
    shift = np.stack([np.bincount(groups, share * away[:, r], size) for r in range(d)], axis=1)
    away = away - shift[groups]

    def over_groups(values: Array) -> Array:
        return np.asarray(np.bincount(groups, share * values, size), np.float64)

    if shape != "full":
        within = diagonals(covariances, d)
        spread = np.stack([over_groups(away[:, r] ** 2 + within[:, r]) for r in range(d)], axis=1)
    else:
        spread = np.empty((size, d, d))
        for r in range(d):
            for c in range(r + 1):
                own = covariances[:, r, c] if covariances.ndim == 3 else as_diagonal(covariances, d)[:, r] if r == c else 0.0
                spread[:, r, c] = spread[:, c, r] = over_groups(away[:, r] * away[:, c] + own)
    return ComponentArrays(mass, anchor + shift, projected(spread, shape))


T = TypeVar("T", ComponentArrays, Moments)


@dataclass(frozen=True)
class LocalFitState:
    """An ascent so far, one entry a group: what it explains (the log), and the share of the next step that it will take."""

    few: ComponentArrays
    moments: Moments
    energy: Array
    share: Array


class LocalFit:
    """The local approximations of one partition, in units of the components'.

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

    def begin(self, few: ComponentArrays) -> LocalFitState:
        """Where a fit starts; a group that explains nothing there, needles in many dimensions, with the heaviest of its own."""
        moments = self._many.moments(few.means, few.covariances, self._bounds)
        faint = ~(moments.total > FAINTEST)
        if faint.any():
            few = _mixed(faint, self._heaviest(few), few)
            moments = self._many.moments(few.means, few.covariances, self._bounds)
        return LocalFitState(few, moments, self._energies(few, moments), np.ones(few.size))

    def _heaviest(self, few: ComponentArrays) -> ComponentArrays:
        """The highest component of each group, in the shape asked for."""
        many = self._many
        rows = np.array([a + int(np.argmax(many.weights[a:b])) for a, b in pairwise(self._bounds)])
        own = many.covariances[np.zeros_like(rows) if many.shared else rows]
        covariances = projected(widened(own, 3 if many.full else 2, many.dimension), self._shape)
        return replace(few, means=many.columns[:, rows].T + many.centre, covariances=covariances)

    def _energies(self, few: ComponentArrays, moments: Moments) -> Array:
        with np.errstate(divide="ignore"):
            return 2 * np.log(moments.total) - log_squares(few.covariances, self._many.dimension)

    def run(self, few: ComponentArrays) -> ComponentArrays:
        """At most `STEPS` steps from a start, and the best weights then."""
        here = self.begin(few)
        for _ in range(STEPS):
            before, here = here, self.step(here)
            if np.all((here.energy - before.energy <= ENOUGH) & (here.share == 1)):
                break
        return self._with_weights(here.few, here.moments)

    def _with_weights(self, few: ComponentArrays, moments: Moments) -> ComponentArrays:
        """The weights of least local error, p/‖g‖² (17)."""
        unit = np.exp(log_squares(few.covariances, self._many.dimension) - self._many.log_unit)
        return replace(few, weights=moments.total / unit)

    def step(self, here: LocalFitState) -> LocalFitState:
        """One update of every group's centre and covariance; a group that would explain less stays, and tries half of it next."""
        few = here.few
        means, covariances = self._fixed_point(few, here.moments)
        trial = replace(
            few,
            means=few.means + here.share[:, None] * (means - few.means),
            covariances=few.covariances + as_wide(here.share, covariances) * (covariances - few.covariances),
        )
        failed = not_positive(trial.covariances)
        if failed.any():
            trial = _mixed(failed, few, trial)
        moments = self._many.moments(trial.means, trial.covariances, self._bounds)
        energy = self._energies(trial, moments)
        worse = ~(energy >= here.energy) | failed
        share = np.where(worse, here.share / 2, np.minimum(1.0, 2 * here.share))
        if not worse.any():
            return LocalFitState(trial, moments, energy, share)
        return LocalFitState(
            _mixed(worse, few, trial), _mixed(worse, here.moments, moments), np.where(worse, here.energy, energy), share
        )

    def _fixed_point(self, few: ComponentArrays, moments: Moments) -> tuple[Array, Array]:
        """Where a whole step leads: the centres t + M⁻¹b, and the covariances that maximise the bound, or go up to it."""
        move = solved(moments.stiff, moments.pull)
        if not self._closed:
            return few.means + move, self._uphill(few, moments)
        closed_form = self._closed_form_full if self._shape == "full" else self._closed_form_diagonal
        return few.means + move, closed_form(few, moments, move)

    def _uphill(self, few: ComponentArrays, moments: Moments) -> Array:
        """Where components have covariances of their own: H + M⁻¹SH along the bound's slope S = pH⁻¹ − 2M + 2V.

        M and V are the sums ``stiff`` and ``square`` of `_engine.components`. Full covariances take the symmetric part of it,
        diagonal ones the diagonals of S and M alone, spherical ones their traces.
        """
        H = widened(few.covariances, 3 if self._many.full else 2, self._many.dimension)
        stiff, total = moments.stiff, as_wide(moments.total, H)
        slope = (total * inverses(H) if self._many.full else total / H) - 2 * stiff + 2 * moments.square
        if self._shape == "full":
            return few.covariances + symmetric(np.asarray(np.linalg.solve(stiff, slope @ H), np.float64))
        slope, stiff = (diagonals(each, self._many.dimension) for each in (slope, stiff))
        if self._shape == "spherical":
            slope, stiff = slope.sum(axis=1), stiff.sum(axis=1)
        return few.covariances * (1 + slope / stiff)

    def _closed_form_diagonal(self, few: ComponentArrays, moments: Moments, move: Array) -> Array:
        """V + (V² + C²)^½ entry by entry; of V's mean where one variance is to serve all columns."""
        C = as_diagonal(self._many.covariances, self._many.dimension)
        joint = as_diagonal(few.covariances, self._many.dimension) + C
        V = np.maximum(moments.square * joint**2 / moments.total[:, None] - move**2, 0.0)
        if self._shape == "spherical":
            V, C = np.asarray(V.mean(axis=1)), self._many.covariances
        return V + np.sqrt(V**2 + C**2)

    def _closed_form_full(self, few: ComponentArrays, moments: Moments, move: Array) -> Array:
        """V + (V² + C²)^½ in the coordinates in which C is the identity."""
        C = as_full(self._many.covariances, self._many.dimension)[0]
        joint = few.covariances + C
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
    """The rows of one where ``first``, of the other elsewhere."""
    rows = {}
    for name in (field.name for field in fields(one)):
        here, there = getattr(one, name), getattr(other, name)
        rows[name] = np.where(as_wide(first, here), here, there)
    return replace(one, **rows)


def regroup_by_distance(many: Components, few: ComponentArrays, masses: Array) -> tuple[Labels, Array, Array]:
    """For each component the closest of (wᵢ/Zᵢ)gᵢ in L2 and the squared distance to it, and κ; in units of the components'."""
    d = many.dimension
    ratio = few.weights / masses
    own = np.exp(log_squares(few.covariances, d) - many.log_unit)
    groups, least, kappa = many.closest(few.means, few.covariances, ratio**2 * own, 2 * ratio)
    norms = np.exp(log_squares(many.covariances, d) - many.log_unit)
    return groups, np.maximum(least + norms, 0.0), kappa


def regroup_by_divergence(many: ComponentArrays, few: ComponentArrays) -> tuple[Labels, Array]:
    """For each component the gᵢ of least KL(φⱼ ‖ gᵢ), and twice that up to what j alone decides: tr H⁻¹C + log|H| + |x − t|²_H."""
    n, d = many.means.shape
    centre = many.means[0]
    targets = few.means - centre
    full = max(few.covariances.ndim, many.covariances.ndim) == 3
    H = widened(few.covariances, 3 if full else 2, d)
    precision = inverses(H)
    pulled = np.einsum("mij,mj->mi", precision, targets) if full else precision * targets
    constant = np.einsum("mi,mi->m", pulled, targets) + log_determinants(few.covariances, d)
    groups, least = np.empty(n, np.int64), np.empty(n)
    rows = max(1, (1 << 20) // (d * d if full else d))
    for a, b in blocks(n, min(rows, 4096)):
        here = many.means[a:b] - centre
        if full:
            second = (as_full(many.covariances[a:b], d) + here[:, :, None] * here[:, None, :]).reshape(b - a, -1)
            cost = second @ precision.reshape(len(H), -1).T
        else:
            cost = (as_diagonal(many.covariances[a:b], d) + here**2) @ precision.T
        cost += constant - 2 * here @ pulled.T
        groups[a:b] = cost.argmin(axis=1)
        least[a:b] = cost[np.arange(b - a), groups[a:b]]
    return groups, least
