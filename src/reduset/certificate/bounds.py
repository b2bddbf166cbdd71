"""A-priori bounds: what a compression can lose at most, known before anything is measured.

With P the projection onto the span of the atoms' bumps, C = ‖φ(·, x)‖² and dᵢ the distance of point i to its nearest atom,

    ‖f − Pf‖ ≤ Σᵢ |wᵢ| √(C − g(dᵢ)²/C)                            the summed bound, for any atoms
            ≤ (1 − Σ_{i chosen} |wᵢ|) √(C − ν²/C)                 Theorem 1 of Cruz Cortés & Scott 2017, ν = min g(dᵢ)

and the best weights of the mass of f lose at most Σᵢ |wᵢ| √(2(C − g(dᵢ))), since moving every point to its nearest atom is one
choice of such weights (on the simplex only where no wᵢ is negative). Weights α other than the best add exactly ‖Pf − f_α‖² to the
square. In an RKHS |f(x)| ≤ √C ‖f‖, which makes a bound on the largest difference of any of these (Corollary 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset._engine import LeafCover, beside
from reduset._types import Array
from reduset.mean import KernelMean
from reduset.weights.counts import with_nearest_atoms


@dataclass(frozen=True)
class Bounds:
    """The a-priori bounds, in units where every bump has norm 1."""

    summed: float | None
    theorem: float | None
    quantised: float | None
    incoherence: float | None
    signed: bool = False  # some weight is negative: moving points to their atoms then leaves the simplex
    radius: float | None = None  # the largest distance of a point to its nearest atom, in the coordinates of the product

    @classmethod
    def from_sums(
        cls,
        summed: float,
        quantised: float,
        total: float,
        least: float,
        chosen: float = 0.0,
        signed: bool = False,
        radius: float | None = None,
    ) -> Bounds:
        """From `bound_terms` added over all points, the least of the last; ``chosen`` is the Σ|w| of the points that are atoms."""
        incoherence = max(least, 0.0)
        theorem = theorem_one(max(total - chosen, 0.0), incoherence)
        return cls(min(summed, theorem), theorem, quantised, incoherence, signed, radius)

    def best(self, excess: float, kind: str) -> tuple[float | None, float | None]:
        """(bound, Theorem 1's) for weights of a kind that lose ``excess`` beyond the best free ones."""
        theorem = None if self.theorem is None else float(np.hypot(self.theorem, np.sqrt(excess)))
        candidates = [theorem, None if self.summed is None else float(np.hypot(self.summed, np.sqrt(excess)))]
        if kind == "sum_to_one" or (kind == "simplex" and not self.signed):
            candidates.append(self.quantised)
        return min((c for c in candidates if c is not None), default=None), theorem


def bounds_of(mean: KernelMean, atoms: Array, chosen: float, cover: LeafCover | None) -> Bounds:
    """The bounds from each point's nearest atom, ``chosen`` the Σ|w| of the points that are atoms. One pass over the data."""
    parts: dict[int, tuple[float, float, float, float, float]] = {}

    def add(block: int, rows: Any, _: Any, g: Array, distance: Array) -> None:
        weights = beside(g, mean.magnitudes[rows])
        parts[block] = *bound_terms(g, weights), float(np.where(weights > 0, distance, 0.0).max())

    with_nearest_atoms(mean, atoms, cover, add, there=True)
    # added in the order of the blocks, whichever thread was first
    summed, quantised, total = np.sum([parts[k][:3] for k in sorted(parts)], axis=0).tolist()
    least, radius = min(part[3] for part in parts.values()), max(part[4] for part in parts.values())
    return Bounds.from_sums(summed, quantised, total, least, chosen, bool(mean.stored_weights.min() < 0), radius)


def bound_terms(g: Array, weights: Array) -> tuple[float, float, float, float]:
    """Σ|w|√(1 − g²), Σ|w|√(2 − 2g), Σ|w| and the least g over some points.

    Parameters
    ----------
    g : (n,) the product of each point's bump with its nearest atom's; weights : (n,) their |w|
    """
    least = float(np.where(weights > 0, g, 1.0).min()) if len(g) else 1.0  # which no product is above
    near = np.maximum(g, 0.0)  # a negative product helps no projection
    summed, quantised = np.sqrt(np.maximum(1 - near * near, 0.0)), np.sqrt(np.maximum(2 - 2 * g, 0.0))
    return float(weights @ summed), float(weights @ quantised), float(weights.sum()), least


def theorem_one(rest: float, incoherence: float) -> float:
    """Theorem 1 in units where every bump has norm 1, ``rest`` the Σ|w| of the points that are not atoms."""
    return rest * float(np.sqrt(max(1 - incoherence**2, 0.0)))
