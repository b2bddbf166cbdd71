"""A-priori bounds: an upper limit on the error of a compression that is known before anything is measured.

Let P be the projection onto the span of the atoms' kernel functions and C = ‖φ(·, x)‖². Let gᵢ be the largest inner product of
point i with an atom. For any single atom c, ‖Pφ(·, xᵢ)‖ ≥ |⟨φ(·, xᵢ), φ(·, c)⟩| / √C. Therefore

    ‖f − Pf‖ ≤ Σᵢ |wᵢ| √(C − gᵢ²/C)                               the summed bound, for any atoms and any sign of gᵢ
            ≤ (1 − Σ_{i chosen} |wᵢ|) √(C − minᵢ gᵢ²/C)

With the incoherence ν = minᵢ gᵢ ≥ 0 the second line is Theorem 1 of Cruz Cortés & Scott 2017. Its proof squares the inequality
‖Pφ(·, xᵢ)‖ ≥ ν/√C, which needs ν ≥ 0. ν can be negative for kernels with negative inner products. Theorem 1 then gives no bound,
and the two lines above still hold.

The best weights with the mass of f have an error of at most Σᵢ |wᵢ| √(2(C − gᵢ)). The reason is that moving every point to its
nearest atom is one choice of such weights (on the simplex only if no wᵢ is negative). Weights α other than the best add exactly
‖Pf − f_α‖² to the square. In an RKHS |f(x)| ≤ √C ‖f‖, so each of these bounds also bounds the largest difference (Corollary 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset._engine import LeafCover, to_device_of
from reduset._types import Array
from reduset.mean import KernelMean
from reduset.weights import with_nearest_atoms

ROUNDING = 1e-14  # of a product of kernel functions of norm 1


@dataclass(frozen=True)
class Bounds:
    """The a-priori bounds, in units where every kernel function has norm 1.

    Attributes
    ----------
    summed : The smallest known bound on ‖f − Pf‖.
    theorem : The bound of Theorem 1; None if ν is negative or unknown.
    quantised : The bound for weights with the mass of f.
    incoherence : ν as the paper defines it, negative if some point has a negative inner product with every atom.
    signed : True if some weight of f is negative. Moving points to their atoms then leaves the simplex.
    radius : The largest distance of a point to its nearest atom, in the coordinates of the product.
    """

    summed: float | None
    theorem: float | None
    quantised: float | None
    incoherence: float | None
    signed: bool = False
    radius: float | None = None

    @classmethod
    def from_incoherence(cls, rest: float, incoherence: float | None) -> Bounds:
        """The bounds from ν alone. ``rest`` is Σ|w| over the points that are not atoms. If ν < 0, only ‖f − Pf‖ ≤ rest is known."""
        if incoherence is None:
            return cls(None, None, None, None)
        theorem = theorem_one(rest, incoherence)
        return cls(rest if theorem is None else theorem, theorem, None, incoherence)

    def best(self, excess: float, kind: str) -> tuple[float | None, float | None]:
        """(best bound, bound of Theorem 1) for a kind of weights. ``excess`` is their squared error above that of free weights."""
        theorem, summed = (
            None if bound is None else float(np.hypot(bound, np.sqrt(excess))) for bound in (self.theorem, self.summed)
        )
        candidates = [theorem, summed]
        if kind == "sum_to_one" or (kind == "simplex" and not self.signed):
            candidates.append(self.quantised)
        return min((bound for bound in candidates if bound is not None), default=None), theorem


def bounds_of(mean: KernelMean, atoms: Array, chosen: float, cover: LeafCover | None) -> Bounds:
    """The bounds from the nearest atom of each point. ``chosen`` is Σ|w| over the points that are atoms. One pass over the data."""
    sums: dict[int, tuple[float, float, float]] = {}  # Σ|w|√(1 − g²), Σ|w|√(2 − 2g) and Σ|w| by block
    ends: dict[int, tuple[float, float, float]] = {}  # the smallest g and g², and the largest distance, of points with weight

    def add(block: int, rows: Any, _: Any, g: Array, distance: Array) -> None:
        weights, squares = to_device_of(g, mean.magnitudes[rows]), g * g
        summed, quantised = np.sqrt(np.maximum(1 - squares, 0.0)), np.sqrt(np.maximum(2 - 2 * g, 0.0))
        sums[block] = float(weights @ summed), float(weights @ quantised), float(weights.sum())
        has_weight = weights > 0
        least, least_square = (float(np.where(has_weight, values, 1.0).min()) for values in (g, squares))
        ends[block] = least, least_square, float(np.where(has_weight, distance, 0.0).max())

    with_nearest_atoms(mean, atoms, cover, add, there=True)
    # added in the order of the blocks, so that the result does not depend on the threads
    summed, quantised, total = np.sum([sums[k] for k in sorted(sums)], axis=0).tolist()
    least, least_square, radius = zip(*ends.values(), strict=True)
    rest = max(total - chosen, 0.0)
    nu = 0.0 if -ROUNDING <= min(least) < 0 else min(least)  # orthogonal kernel functions, up to rounding
    summed = min(summed, rest * float(np.sqrt(max(1 - min(least_square), 0.0))))
    return Bounds(summed, theorem_one(rest, nu), quantised, nu, bool(mean.stored_weights.min() < 0), max(radius))


def theorem_one(rest: float, incoherence: float) -> float | None:
    """The bound of Theorem 1 in units where every kernel function has norm 1. ``rest`` is Σ|w| over the points that are not atoms.

    None if ν is negative, because the theorem then does not hold.
    """
    return rest * float(np.sqrt(max(1 - incoherence**2, 0.0))) if incoherence >= 0 else None
