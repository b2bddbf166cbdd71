"""The local approximation of Algorithm 1 as printed (Zhang & Kwok 2010, lines 6–18): each group is fitted to convergence.

For every group, centre and covariance alternate until one update of each moves it by at most ε = 0.01:

    repeat   t ← M⁻¹ Σ aⱼ(Hⱼ + H)⁻¹xⱼ                            until ‖Δt‖ ≤ ε        (19), p updates
             H ← M⁻¹ Σ aⱼ(Hⱼ + H)⁻¹(Hⱼ + 2vⱼvⱼᵀ(Hⱼ + H)⁻¹H)     until ‖ΔH‖_F ≤ ε      (20), q updates
    until p ≤ 1 and q ≤ 1,         aⱼ = αⱼ⟨g, φⱼ⟩,  vⱼ = xⱼ − t,  M = Σ aⱼ(Hⱼ + H)⁻¹

If all components share one spherical or diagonal covariance and the fit has that shape, the closed form (29) replaces (20). The
tolerances are absolute, in the units of the means, as in the paper. Three details are not in the text. (20) is symmetric only if
its matrices commute, so its symmetric part is used, which has the same fixed points. A step is halved if it leads to a matrix that
is not positive definite. A group that has not converged after `MAX_UPDATES` updates stops, and a warning reports it.

All groups are updated together. An update costs a pass over the components of the groups that have not converged.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reduset._messages import NotReachedWarning, is_quiet, warn
from reduset._types import Array, Labels
from reduset.mixture.covariances import not_positive, solved
from reduset.simplification.local_fit import ComponentArrays, LocalFit, as_wide

CENTRE_TOLERANCE = COVARIANCE_TOLERANCE = 0.01  # ε₁ and ε₂ of Algorithm 1
MAX_UPDATES = 2000  # of one group; the paper sets no limit


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
