"""Groups of components, each fitted by one: the alternation of Zhang & Kwok 2010 (Algorithm 1) and its rival.

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

from reduset._engine import LOG_2PI, Components, Moments, as_diagonal, as_full, blocks, log_determinants
from reduset._types import Array, Labels

STEPS, ENOUGH = 3, 1e-4  # of a local fit in a round: at most, and the share of its energy below which a step adds too little
NDIM = {"spherical": 1, "diag": 2, "full": 3}
FLATTEST, WIDENED = 2e-14, 1e-12  # of its largest eigenvalue: what a covariance's least must exceed, and is raised to at a start
FAINTEST = 1e-200  # what a group must explain, beside the highest peak, for its moments to be a start


@dataclass(frozen=True)
class Few:
    """The components of a simplification."""

    weights: Array
    places: Array
    covariances: Array

    @property
    def size(self) -> int:
        return len(self.weights)


def log_squares(covariances: Array, dimension: int) -> Array:
    """(m,) log ‖g‖² in L2."""
    return -0.5 * (dimension * (LOG_2PI + np.log(2.0)) + log_determinants(covariances, dimension))


def projected(matrices: Array, shape: str) -> Array:
    """Covariances, full or diagonal, in the shape asked for: the nearest by their traces."""
    if shape == "full":
        return _widened_where_flat(as_full(matrices, matrices.shape[1]))
    diagonals = matrices if matrices.ndim == 2 else np.diagonal(matrices, axis1=1, axis2=2)
    return np.array(diagonals) if shape == "diag" else np.asarray(diagonals.mean(axis=1))


def _widened_where_flat(matrices: Array) -> Array:
    """Those that are singular to rounding (components on a line, far narrower than it is long) made covariances again."""
    flat = not_positive(matrices)
    if not flat.any():
        return matrices
    inside, spreads = _as_correlations(matrices[flat])
    values, vectors = np.linalg.eigh(inside)
    values = np.maximum(values, WIDENED * values[:, -1:])
    found = np.array(matrices)
    found[flat] = (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1) * spreads
    return (found + found.transpose(0, 2, 1)) / 2


def matched_moments(weights: Array, places: Array, covariances: Array, groups: Labels, size: int, shape: str) -> Few:
    """Each group's mass, mean and covariance, as one component (eq. 21); the weights are not negative, no group is empty."""
    d = places.shape[1]
    mass = np.asarray(np.bincount(groups, weights, size), np.float64)
    share = weights / mass[groups]
    anchor = places[np.unique(groups, return_index=True)[1]]  # one of each group: differences to it lose no digits
    away = places - anchor[groups]
    shift = np.stack([np.bincount(groups, share * away[:, r], size) for r in range(d)], axis=1)
    away = away - shift[groups]

    def over_groups(values: Array) -> Array:
        return np.asarray(np.bincount(groups, share * values, size), np.float64)

    if shape != "full":
        within = as_diagonal(covariances, d) if covariances.ndim < 3 else np.diagonal(covariances, axis1=1, axis2=2)
        spread = np.stack([over_groups(away[:, r] ** 2 + within[:, r]) for r in range(d)], axis=1)
    else:
        spread = np.empty((size, d, d))
        for r in range(d):
            for c in range(r + 1):
                own = covariances[:, r, c] if covariances.ndim == 3 else as_diagonal(covariances, d)[:, r] if r == c else 0.0
                spread[:, r, c] = spread[:, c, r] = over_groups(away[:, r] * away[:, c] + own)
    return Few(mass, anchor + shift, projected(spread, shape))


T = TypeVar("T", Few, Moments)


@dataclass(frozen=True)
class Standing:
    """How far the local fits are: what each group explains (its log), and the share of the next step that it will take."""

    few: Few
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

    def __init__(self, many: Components, groups: Labels, start: Few, shape: str) -> None:
        order = np.argsort(groups, kind="stable")
        self._many = many.reordered(order)
        self._bounds: Labels = np.searchsorted(groups[order], np.arange(start.size + 1)).astype(np.int64)
        self._shape = shape
        self._closed = self._many.shared and self._many.covariances.ndim <= NDIM[shape]

    def begin(self, few: Few) -> Standing:
        """Where a fit starts; a group that explains nothing there, needles in many dimensions, with the heaviest of its own."""
        moments = self._many.moments(few.places, few.covariances, self._bounds)
        faint = ~(moments.total > FAINTEST)
        if faint.any():
            few = _mixed(faint, self._heaviest(few), few)
            moments = self._many.moments(few.places, few.covariances, self._bounds)
        return Standing(few, moments, self._energies(few, moments), np.ones(few.size))

    def _heaviest(self, few: Few) -> Few:
        """The highest component of each group, in the shape asked for."""
        many = self._many
        rows = np.array([a + int(np.argmax(many.weights[a:b])) for a, b in pairwise(self._bounds)])
        d = many.dimension
        own = many.covariances[np.zeros_like(rows) if many.shared else rows]
        full = as_full(own, d) if many.full else as_diagonal(own, d)
        return replace(few, places=many.columns[:, rows].T + many.centre, covariances=projected(full, self._shape))

    def _energies(self, few: Few, moments: Moments) -> Array:
        with np.errstate(divide="ignore"):
            return 2 * np.log(moments.total) - log_squares(few.covariances, self._many.dimension)

    def run(self, few: Few, steps: int = STEPS) -> Few:
        """At most ``steps`` steps from a start, and the best weights then."""
        here = self.begin(few)
        for _ in range(steps):
            before, here = here, self.step(here)
            if np.all((here.energy - before.energy <= ENOUGH) & (here.share == 1)):
                break
        unit = np.exp(log_squares(here.few.covariances, self._many.dimension) - self._many.log_unit)
        return replace(here.few, weights=here.moments.total / unit)

    def step(self, here: Standing) -> Standing:
        """One update of every group's centre and covariance; a group that would explain less stays, and tries half of it next."""
        few = here.few
        places, covariances = self._goal(few, here.moments)
        trial = replace(
            few,
            places=few.places + here.share[:, None] * (places - few.places),
            covariances=few.covariances + _as_wide(here.share, covariances) * (covariances - few.covariances),
        )
        failed = not_positive(trial.covariances)
        if failed.any():
            trial = _mixed(failed, few, trial)
        moments = self._many.moments(trial.places, trial.covariances, self._bounds)
        energy = self._energies(trial, moments)
        worse = ~(energy >= here.energy) | failed
        share = np.where(worse, here.share / 2, np.minimum(1.0, 2 * here.share))
        if not worse.any():
            return Standing(trial, moments, energy, share)
        return Standing(
            _mixed(worse, few, trial), _mixed(worse, here.moments, moments), np.where(worse, here.energy, energy), share
        )

    def _goal(self, few: Few, moments: Moments) -> tuple[Array, Array]:
        """Where a whole step leads."""
        d = self._many.dimension
        total = moments.total
        if not self._many.full:
            move = moments.pull / moments.stiff
            if self._closed:
                joint = as_diagonal(few.covariances, d) + as_diagonal(self._many.covariances, d)
                spread = np.maximum(moments.square * joint**2 / total[:, None] - move**2, 0.0)
                if self._shape == "spherical":
                    mean = np.asarray(spread.mean(axis=1))
                    return few.places + move, mean + np.sqrt(mean**2 + self._many.covariances**2)
                return few.places + move, spread + np.sqrt(spread**2 + as_diagonal(self._many.covariances, d) ** 2)
            H = as_diagonal(few.covariances, d)
            uphill = total[:, None] / H - 2 * moments.stiff + 2 * moments.square
            if self._shape == "spherical":
                return few.places + move, few.covariances * (1 + uphill.sum(axis=1) / moments.stiff.sum(axis=1))
            return few.places + move, H * (1 + uphill / moments.stiff)
        move = np.asarray(np.linalg.solve(moments.stiff, moments.pull[:, :, None])[:, :, 0], np.float64)
        if self._closed and self._shape == "full":
            return few.places + move, self._widened(few, moments, move)
        H = as_full(few.covariances, d)
        eye = np.broadcast_to(np.eye(d), H.shape)
        uphill = total[:, None, None] * np.linalg.solve(H, eye) - 2 * moments.stiff + 2 * moments.square
        if self._shape == "full":
            way = np.linalg.solve(moments.stiff, uphill @ H)
            return few.places + move, few.covariances + (way + way.transpose(0, 2, 1)) / 2
        slope, stiff = (np.diagonal(part, axis1=1, axis2=2) for part in (uphill, moments.stiff))
        if self._shape == "diag":
            return few.places + move, few.covariances * (1 + slope / stiff)
        return few.places + move, few.covariances * (1 + slope.sum(axis=1) / stiff.sum(axis=1))

    def _widened(self, few: Few, moments: Moments, move: Array) -> Array:
        """V + (V² + C²)^½ in the coordinates in which C is the identity."""
        d = self._many.dimension
        C = as_full(self._many.covariances, d)[0]
        joint = few.covariances + C
        spread = joint @ moments.square @ joint / moments.total[:, None, None] - move[:, :, None] * move[:, None, :]
        root = np.linalg.cholesky(C)
        inside = np.linalg.solve(root, np.linalg.solve(root, spread).transpose(0, 2, 1))
        values, vectors = np.linalg.eigh((inside + inside.transpose(0, 2, 1)) / 2)
        values = np.maximum(values, 0.0)
        wide = (vectors * (values + np.sqrt(values**2 + 1))[:, None, :]) @ vectors.transpose(0, 2, 1)
        found = root @ wide @ root.T
        return np.asarray((found + found.transpose(0, 2, 1)) / 2)


def _as_wide(values: NDArray[Any], like: Array) -> NDArray[Any]:
    return values.reshape(-1, *[1] * (like.ndim - 1))


def _mixed(first: NDArray[np.bool_], one: T, other: T) -> T:
    """The rows of one where ``first``, of the other elsewhere."""
    rows = {}
    for name in (field.name for field in fields(one)):
        here, there = getattr(one, name), getattr(other, name)
        rows[name] = np.where(_as_wide(first, here), here, there)
    return replace(one, **rows)


def not_positive(covariances: Array) -> NDArray[np.bool_]:
    """Which are no covariances, or singular to rounding, whatever the units of the columns."""
    if covariances.ndim < 3:
        return ~np.asarray((covariances.reshape(len(covariances), -1) > 0).all(axis=1))
    finite = np.asarray(np.isfinite(covariances).all(axis=(1, 2)))
    matrices, _ = _as_correlations(np.where(finite[:, None, None], covariances, 0.0))
    values = np.linalg.eigvalsh(matrices)  # pivots of a factor may hide a small one
    return ~np.asarray(values[:, 0] > FLATTEST * values[:, -1])


def _as_correlations(matrices: Array) -> tuple[Array, Array]:
    """Covariances divided by the spreads of the columns, and the products of these."""
    diagonal = np.diagonal(matrices, axis1=1, axis2=2)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    spreads = scale[:, :, None] * scale[:, None, :]
    return matrices / spreads, spreads


def regroup_by_distance(many: Components, few: Few, masses: Array) -> tuple[Labels, Array, Array]:
    """For each component the closest of (wᵢ/Zᵢ)gᵢ in L2 and the squared distance to it, and κ; in units of the components'."""
    d = many.dimension
    ratio = few.weights / masses
    own = np.exp(log_squares(few.covariances, d) - many.log_unit)
    groups, least, kappa = many.closest(few.places, few.covariances, ratio**2 * own, 2 * ratio)
    norms = np.exp(log_squares(many.covariances, d) - many.log_unit)
    return groups, np.maximum(least + norms, 0.0), kappa


def regroup_by_divergence(places: Array, covariances: Array, few: Few) -> tuple[Labels, Array]:
    """For each component the gᵢ of least KL(φⱼ ‖ gᵢ), and twice that up to what j alone decides: tr H⁻¹C + log|H| + |x − t|²_H."""
    n, d = places.shape
    centre = places[0]
    targets = few.places - centre
    full = max(few.covariances.ndim, covariances.ndim) == 3
    H = as_full(few.covariances, d) if full else as_diagonal(few.covariances, d)
    precision = np.linalg.solve(H, np.broadcast_to(np.eye(d), H.shape)) if full else 1 / H
    pulled = np.einsum("mij,mj->mi", precision, targets) if full else precision * targets
    constant = np.einsum("mi,mi->m", pulled, targets) + log_determinants(few.covariances, d)
    groups, least = np.empty(n, np.int64), np.empty(n)
    rows = max(1, (1 << 20) // (d * d if full else d))
    for a, b in blocks(n, min(rows, 4096)):
        here = places[a:b] - centre
        if full:
            second = (as_full(covariances[a:b], d) + here[:, :, None] * here[:, None, :]).reshape(b - a, -1)
            cost = second @ precision.reshape(len(H), -1).T
        else:
            cost = (as_diagonal(covariances[a:b], d) + here**2) @ precision.T
        cost += constant - 2 * here @ pulled.T
        groups[a:b] = cost.argmin(axis=1)
        least[a:b] = cost[np.arange(b - a), groups[a:b]]
    return groups, least
