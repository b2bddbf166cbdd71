"""The L2 distance of a few components g from f = Σⱼ αⱼφⱼ.

With r = f − g, ‖r‖² = ⟨f, r⟩ − ⟨g, r⟩. The second product is exact, by a pass of O(n·m) and an m × m matrix. The first is the sum
Σⱼ αⱼ⟨φⱼ, r⟩ over the components. It is exact if all pairs are affordable. Otherwise it is estimated from a sample of components,
drawn with probabilities proportional to |αⱼ|‖φⱼ‖. No draw then counts for more than ‖r‖ Σ|αⱼ|‖φⱼ‖, for any widths of the
components. Since r is small, so is the standard error. ⟨φⱼ, f⟩ of the drawn components is computed once. If all pairs are used and
each component has its own covariance, ‖f‖² is summed over each pair once, and the first product needs no separate pass.

`local_squares` computes the terms of the bound (6) of Zhang & Kwok 2010: for any groups S₁ … S_m of the components

    ‖f − g‖² ≤ m Σᵢ ‖wᵢgᵢ − Σ_{j∈Sᵢ} αⱼφⱼ‖²

by the Cauchy–Schwarz inequality. It sums all pairs within the groups, about n²/m.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from reduset._engine import Components, component_sums, log_peaks
from reduset._types import Array, Labels
from reduset.mixture import log_squares, widened
from reduset.simplification.joint_fit import JointFit
from reduset.simplification.local_fit import ComponentArrays

# seconds per inner product, and per cube of the dimension if each pair is factored
PAIR_SECONDS, CUBE_SECONDS = 2.5e-9, 0.5e-9
SECONDS = 2.5
MIN_DRAWS, LARGEST_EXACT = 512, 20_000
LARGEST_SIGNED = 50_000  # signed terms cancel, so ‖f‖ may be below the sampling error
CANCELLED = 1e-13  # ‖f‖² relative to (Σ |αⱼ|‖φⱼ‖)²: a smaller one consists of rounding errors


@dataclass(frozen=True)
class RelativeL2Error:
    """The relative L2 error ‖f − g‖/‖f‖, its standard error if components were drawn, and the exact value of ‖g‖² − 2⟨f, g⟩."""

    relative: float
    spread: float
    value: float


def _deviation(drawn: Array) -> float:
    """The standard error of the sum of independent draws."""
    return float(drawn.std(ddof=1) * np.sqrt(len(drawn)))


def local_squares(f: ComponentArrays, groups: Labels, reduced: ComponentArrays) -> tuple[Array, float]:
    """(m,) ‖wᵢgᵢ − Σ_{j∈Sᵢ} αⱼφⱼ‖² of every group, and the logarithm of the unit; labels are 0 … m − 1, or −1 for no group."""
    full = max(f.covariances.ndim, reduced.covariances.ndim) == 3
    log_unit = float(log_peaks(f.covariances, f.dimension).max())
    order = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[order], np.arange(reduced.size + 1))
    squares = np.exp(log_squares(reduced.covariances, f.dimension) - log_unit) * reduced.weights**2
    for i, (a, b) in enumerate(pairwise(bounds)):
        if a < b:
            part = f.part(order[a:b])
            components = Components(part.weights, part.means, part.covariances, full)
            components.measure_in(log_unit)
            if components.shared:
                energy = float(part.weights @ components.totals(part.means, part.covariances))
            else:
                energy = components.energy(part.weights)
            cross = components.totals(reduced.means[i : i + 1], reduced.covariances[i : i + 1])[0]
            squares[i] += energy - 2 * reduced.weights[i] * cross
    return np.maximum(squares, 0.0), log_unit


class L2ErrorEstimator:
    """The L2 error by importance sampling of the components of f, or exactly from all of them.

    Parameters
    ----------
    joint : f, laid out
    f : its components as arrays
    """

    def __init__(self, joint: JointFit, f: ComponentArrays, rng: np.random.Generator) -> None:
        n, d, weights = f.size, f.dimension, f.weights
        self._joint = joint
        sizes = np.abs(weights) * np.exp(0.5 * (log_squares(f.covariances, d) - joint.many.log_unit))  # |αⱼ|‖φⱼ‖
        seconds = PAIR_SECONDS if joint.many.shared else PAIR_SECONDS + CUBE_SECONDS * (d**3 if joint.many.full else d)
        affordable = int(SECONDS / (seconds * n))
        signed = bool(weights.min() < 0 < weights.max())
        self.exact = n <= (LARGEST_SIGNED if signed else MIN_DRAWS) or (affordable >= n and n <= LARGEST_EXACT)
        if self.exact:
            rows, self._factors = np.arange(n), weights
        else:
            count = max(MIN_DRAWS, min(affordable, n))
            rows = rng.choice(n, count, p=sizes / sizes.sum())
            self._factors = weights[rows] * (sizes.sum() / (sizes[rows] * count))
        self._closed = self.exact and not joint.many.shared
        if self._closed:
            self.energy = joint.many.energy(weights)
        else:
            self._means, self._covariances = f.means[rows], f.covariances[rows]
            self._of_f = joint.many.totals(self._means, self._covariances)
            self._parts = self._factors * self._of_f
            self.energy = float(self._parts.sum())
        noise = 0.0 if self.exact else _deviation(self._parts)
        if signed and not self.energy > max(CANCELLED * float(sizes.sum()) ** 2, 3 * noise):
            way_out = "" if self.exact else f", or simplify at most {LARGEST_SIGNED:,} components at a time"
            raise ValueError(
                "the mixture must not be zero as a function, but its components cancel up to rounding or sampling errors; "
                f"check the signs of its weights{way_out}"
            )

    def error(self, reduced: ComponentArrays) -> RelativeL2Error:
        """The L2 error of these components."""
        kappa = self._joint.kappa(reduced)
        components = self._joint.laid_out(reduced)
        of_g = components.totals(reduced.means, reduced.covariances)
        value = float(reduced.weights @ (of_g - 2 * kappa))
        if self._closed:
            return RelativeL2Error(float(np.sqrt(max(self.energy + value, 0.0) / self.energy)), 0.0, value)
        terms = self._factors * (self._of_f - self._of_g(reduced, components))
        square = float(terms.sum() - reduced.weights @ (kappa - of_g))
        relative = np.sqrt(max(square, 0.0) / self.energy)
        if self.exact:
            return RelativeL2Error(float(relative), 0.0, value)
        spread = _deviation(terms - relative**2 * self._parts) / self.energy  # for a ratio, since the energy is estimated too
        # linearised, unless the square is smaller than its standard error: then the root of their sum gives the upper end
        standard_error = np.sqrt(relative**2 + spread) - relative if relative**2 < spread else spread / (2 * relative)
        return RelativeL2Error(float(relative), float(standard_error), value)

    def _of_g(self, reduced: ComponentArrays, components: Components) -> Array:
        """⟨φⱼ, g⟩ of the drawn components; with a shared covariance C these are values of g widened by C."""
        many = self._joint.many
        if not many.shared:
            return components.totals(self._means, self._covariances)
        own, shared = (widened(part.covariances, 3 if many.full else 2, many.dimension) for part in (reduced, many))
        values, log_unit = component_sums(self._means, reduced.weights, reduced.means, own + shared, 0)
        return np.asarray(values[0] * np.exp(log_unit - many.log_unit))
