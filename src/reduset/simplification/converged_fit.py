"""The local approximation of Algorithm 1 as printed (Zhang & Kwok 2010, lines 6–18): each group is fitted to convergence.

For every group, centre and covariance alternate until one update of each moves it by at most ε = 0.01:

    repeat   t ← M⁻¹ Σ aⱼ(Hⱼ + H)⁻¹xⱼ                            until ‖Δt‖ ≤ ε        (19), p updates
             H ← M⁻¹ Σ aⱼ(Hⱼ + H)⁻¹(Hⱼ + 2vⱼvⱼᵀ(Hⱼ + H)⁻¹H)     until ‖ΔH‖_F ≤ ε      (20), q updates
    until p ≤ 1 and q ≤ 1,         aⱼ = αⱼ⟨g, φⱼ⟩,  vⱼ = xⱼ − t,  M = Σ aⱼ(Hⱼ + H)⁻¹

Where all components have one spherical or diagonal covariance and the fit has that shape, (20) is replaced by its closed form (29).
The tolerances are absolute, in the units of the means, as in the paper. Three details are not in the text. (20) is symmetric only
where its matrices commute, so its symmetric part is taken; the fixed points are the same. A step to a matrix that is no covariance
is halved. A group that has not converged after `MAX_UPDATES` updates stops, and a warning reports it.

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

    def run(self, few: ComponentArrays) -> ComponentArrays:
        """Fit every group from a start; the weights are those of least local error (17)."""
        found = self.begin(few).few
        found = replace(found, means=found.means.copy(), covariances=found.covariances.copy())
        stages = _Alternation(found.size)
        while len(active := stages.active):
            at_centre = stages.at_centre[active]
            for update, chosen in ((self._move_centres, at_centre), (self._change_covariances, ~at_centre)):
                if chosen.any():
                    stages.advance(active[chosen], update(found, active[chosen]))
        if stages.unconverged and not is_quiet():
            warn(
                f"{stages.unconverged} local fits had not converged after {MAX_UPDATES} updates, to changes of {CENTRE_TOLERANCE}; "
                "divide the means by a larger unit",
                NotReachedWarning,
            )
        return self._with_weights(found, self._many.moments(found.means, found.covariances, self._bounds))

    def _spans(self, rows: Labels) -> tuple[Labels, Labels]:
        return self._bounds[rows], self._bounds[rows + 1]

    def _move_centres(self, found: ComponentArrays, rows: Labels) -> Array:
        """Update some centres by (19); returns (k,) how far they moved."""
        moments = self._many.moments(found.means[rows], found.covariances[rows], self._spans(rows))
        shift = solved(moments.stiff, moments.pull)
        found.means[rows] += shift
        return np.asarray(np.linalg.norm(shift, axis=1))

    def _change_covariances(self, found: ComponentArrays, rows: Labels) -> Array:
        """Update some covariances by (20) or (29); returns (k,) the Frobenius norms of the changes."""
        here = ComponentArrays(found.weights[rows], found.means[rows], found.covariances[rows])
        moments = self._many.moments(here.means, here.covariances, self._spans(rows))
        if self._closed and self._shape != "full":
            there = self._closed_form_diagonal(here, moments, np.zeros_like(here.means))
        else:
            there = self._uphill(here, moments)
        step = there - here.covariances
        while (failed := not_positive(here.covariances + step)).any():
            step = step / as_wide(np.where(failed, 2.0, 1.0), step)
        found.covariances[rows] += step
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
        """Count an update that changed these groups by so much; all of them are at their centre, or all at their covariance."""
        at_centre = bool(self.at_centre[rows[0]])
        self._total[rows] += 1
        self._updates[0 if at_centre else 1, rows] += 1
        done = rows[changes <= (CENTRE_TOLERANCE if at_centre else COVARIANCE_TOLERANCE)]
        self.at_centre[done] = not at_centre
        if not at_centre:
            self._converged[done] = (self._updates[:, done] <= 1).all(axis=0)
            self._updates[:, done] = 0
