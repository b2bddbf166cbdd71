"""How far a few components are from f = Σⱼ αⱼφⱼ, in L2.

With r = f − g, ‖r‖² = ⟨f, r⟩ − ⟨g, r⟩. The second product is exact, a pass of O(n·m) and an m × m matrix; the first is
Σⱼ αⱼ⟨φⱼ, r⟩, a sum over the components, exact where all pairs of them can be afforded and else estimated from some of them, drawn
with chances proportional to |αⱼ|‖φⱼ‖: then no draw counts for more than ‖r‖ Σ|αⱼ|‖φⱼ‖, however much the components differ in width.
Since r is small, so is the standard error. ⟨φⱼ, f⟩ of the drawn ones is computed once. Where all pairs are taken and covariances
are their own, ‖f‖² is summed over each pair once, and the first product needs no pass of its own.

`local_squares` are the terms of the bound (6) of Zhang & Kwok 2010: for any groups S₁ … S_m of the components

    ‖f − g‖² ≤ m Σᵢ ‖wᵢgᵢ − Σ_{j∈Sᵢ} αⱼφⱼ‖²

by the Cauchy–Schwarz inequality. All pairs within a group are summed: about n²/m of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from reduset._engine import Components, component_sums, log_peaks
from reduset._types import Array, Labels
from reduset.mixture.covariances import log_squares, widened
from reduset.simplification.joint_fit import JointFit
from reduset.simplification.local_fit import ComponentArrays

A_PAIR, A_CUBE = 2.5e-9, 0.5e-9  # seconds for a product, and for the cube of the dimension where each pair is factored
SECONDS = 2.5
FEWEST, LARGEST_EXACT = 512, 20_000
LARGEST_SIGNED = 50_000  # signs cancel, and what is left of ‖f‖ may be less than draws can tell
CANCELLED = 1e-13  # ‖f‖² beside the square of what its components' norms sum to, below which rounding is all that is left


@dataclass(frozen=True)
class RelativeL2Error:
    """The relative L2 error ‖f − g‖/‖f‖, its standard error where components were drawn, and ‖g‖² − 2⟨f, g⟩, which is exact."""

    relative: float
    spread: float
    value: float


def _deviation(drawn: Array) -> float:
    """The standard error of the sum of independent draws."""
    return float(drawn.std(ddof=1) * np.sqrt(len(drawn)))


def local_squares(f: ComponentArrays, groups: Labels, few: ComponentArrays) -> tuple[Array, float]:
    """(m,) ‖wᵢgᵢ − Σ_{j∈Sᵢ} αⱼφⱼ‖² of every group, and the logarithm of their unit; groups are labels 0 … m − 1, −1 for none."""
    full = max(f.covariances.ndim, few.covariances.ndim) == 3
    log_unit = float(log_peaks(f.covariances, f.dimension).max())
    order = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[order], np.arange(few.size + 1))
    squares = np.exp(log_squares(few.covariances, f.dimension) - log_unit) * few.weights**2
    for i, (a, b) in enumerate(pairwise(bounds)):
        if a < b:
            part = f.part(order[a:b])
            side = Components(part.weights, part.means, part.covariances, full)
            side.measure_in(log_unit)
            own = part.weights @ side.totals(part.means, part.covariances) if side.shared else side.energy(part.weights)
            squares[i] += own - 2 * few.weights[i] * side.totals(few.means[i : i + 1], few.covariances[i : i + 1])[0]
    return np.maximum(squares, 0.0), log_unit


class L2ErrorEstimator:
    """The L2 error by importance sampling: f as seen from some of its components, or all.

    Parameters
    ----------
    joint : f, laid out
    f : its components, as given
    """

    def __init__(self, joint: JointFit, f: ComponentArrays, rng: np.random.Generator) -> None:
        n, d, weights = f.size, f.dimension, f.weights
        self._joint = joint
        sizes = np.abs(weights) * np.exp(0.5 * (log_squares(f.covariances, d) - joint.many.log_unit))  # |αⱼ|‖φⱼ‖
        price = A_PAIR if joint.many.shared else A_PAIR + A_CUBE * (d**3 if joint.many.full else d)
        affordable = int(SECONDS / (price * n))
        signed = bool(weights.min() < 0 < weights.max())
        self.exact = n <= (LARGEST_SIGNED if signed else FEWEST) or (affordable >= n and n <= LARGEST_EXACT)
        if self.exact:
            rows, self._share = np.arange(n), weights
        else:
            count = max(FEWEST, min(affordable, n))
            rows = rng.choice(n, count, p=sizes / sizes.sum())
            self._share = weights[rows] * (sizes.sum() / (sizes[rows] * count))
        self._closed = self.exact and not joint.many.shared
        if self._closed:
            self.energy = joint.many.energy(weights)
        else:
            self._means, self._covariances = f.means[rows], f.covariances[rows]
            self._of_f = joint.many.totals(self._means, self._covariances)
            self._parts = self._share * self._of_f
            self.energy = float(self._parts.sum())
        noise = 0.0 if self.exact else _deviation(self._parts)
        if signed and not self.energy > max(CANCELLED * float(sizes.sum()) ** 2, 3 * noise):
            way_out = "" if self.exact else f", or simplify at most {LARGEST_SIGNED:,} components at a time"
            raise ValueError(
                "the mixture must not be zero as a function, its components cancel to what rounding or sampling leaves; "
                f"check the signs of its weights{way_out}"
            )

    def error(self, few: ComponentArrays) -> RelativeL2Error:
        """Of these components."""
        kappa = self._joint.kappa(few)
        side = self._joint.laid_out(few)
        of_g = side.totals(few.means, few.covariances)
        value = float(few.weights @ (of_g - 2 * kappa))
        if self._closed:
            return RelativeL2Error(float(np.sqrt(max(self.energy + value, 0.0) / self.energy)), 0.0, value)
        here = self._share * (self._of_f - self._of_g(few, side))
        square = float(here.sum() - few.weights @ (kappa - of_g))
        relative = np.sqrt(max(square, 0.0) / self.energy)
        if self.exact:
            return RelativeL2Error(float(relative), 0.0, value)
        spread = _deviation(here - relative**2 * self._parts) / self.energy  # of a ratio: the energy is an estimate too
        # where the square is smaller than its own error, how far the root of their sum lies above
        above = np.sqrt(relative**2 + spread) - relative if relative**2 < spread else spread / (2 * relative)
        return RelativeL2Error(float(relative), float(above), value)

    def _of_g(self, few: ComponentArrays, side: Components) -> Array:
        """⟨φⱼ, g⟩ of those drawn; where all have one covariance C, the values of g widened by it: no pair is factored."""
        many = self._joint.many
        if not many.shared:
            return side.totals(self._means, self._covariances)
        own, shared = (widened(each.covariances, 3 if many.full else 2, many.dimension) for each in (few, many))
        values, log_unit = component_sums(self._means, few.weights, few.means, own + shared, 0)
        return np.asarray(values[0] * np.exp(log_unit - many.log_unit))
