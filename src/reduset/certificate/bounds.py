"""A-priori bounds: an upper limit on the error of a compression that is known before anything is measured.

Let P be the projection onto the span of the atoms' kernel functions, C = ‖φ(·, x)‖², and gᵢ the largest inner product of point i
with an atom. For any single atom c, ‖Pφ(·, xᵢ)‖ ≥ |⟨φ(·, xᵢ), φ(·, c)⟩| / √C, so that

    ‖f − Pf‖ ≤ Σᵢ |wᵢ| √(C − gᵢ²/C)                               the summed bound, for any atoms and any sign of gᵢ
            ≤ (1 − Σ_{i chosen} |wᵢ|) √(C − minᵢ gᵢ²/C)

With the incoherence ν = minᵢ gᵢ ≥ 0 the second line is Theorem 1 of Cruz Cortés & Scott 2017. Its proof squares the inequality
‖Pφ(·, xᵢ)‖ ≥ ν/√C, which needs ν ≥ 0. Where ν is negative, as it can be for kernels with negative inner products, Theorem 1 gives
no bound, and the two lines above still hold.

The best weights of the mass of f lose at most Σᵢ |wᵢ| √(2(C − gᵢ)), since moving every point to its nearest atom is one
choice of such weights (on the simplex only where no wᵢ is negative). Weights α other than the best add exactly ‖Pf − f_α‖² to the
square. In an RKHS |f(x)| ≤ √C ‖f‖, which makes a bound on the largest difference of any of these (Corollary 2).
"""

from __future__ import annotations

from collections.abc import Sequence
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
    summed : the smallest bound on ‖f − Pf‖ that is known
    theorem : that of Theorem 1; None where ν is negative or not known
    quantised : the bound for weights of the mass of f
    incoherence : ν as the paper defines it, negative where some point has a negative inner product with every atom
    signed : True where some weight of f is negative: moving points to their atoms then leaves the simplex
    radius : the largest distance of a point to its nearest atom, in the coordinates of the product
    """

    summed: float | None
    theorem: float | None
    quantised: float | None
    incoherence: float | None
    signed: bool = False
    radius: float | None = None

    @classmethod
    def from_terms(cls, terms: BoundTerms, chosen: float = 0.0, signed: bool = False, radius: float | None = None) -> Bounds:
        """From the terms of all points; ``chosen`` is the Σ|w| of the points that are atoms."""
        rest, least = max(terms.total - chosen, 0.0), _rounded(terms.least)
        summed = min(terms.summed, rest * _distance_to_span(terms.least_square))
        return cls(summed, theorem_one(rest, least), terms.quantised, least, signed, radius)

    @classmethod
    def from_incoherence(cls, rest: float, incoherence: float | None) -> Bounds:
        """From ν alone, ``rest`` the Σ|w| of the points that are not atoms; for a negative ν only ‖f − Pf‖ ≤ rest is known."""
        if incoherence is None:
            return cls(None, None, None, None)
        incoherence = _rounded(incoherence)
        theorem = theorem_one(rest, incoherence)
        return cls(rest if theorem is None else theorem, theorem, None, incoherence)

    def best(self, excess: float, kind: str) -> tuple[float | None, float | None]:
        """(bound, Theorem 1's) for weights of a kind that lose ``excess`` beyond the best free ones."""
        theorem, summed = (None if each is None else float(np.hypot(each, np.sqrt(excess))) for each in (self.theorem, self.summed))
        candidates = [theorem, summed]
        if kind == "sum_to_one" or (kind == "simplex" and not self.signed):
            candidates.append(self.quantised)
        return min((c for c in candidates if c is not None), default=None), theorem


@dataclass(frozen=True)
class BoundTerms:
    """Sums over some points, from the largest inner product g of each with an atom; the terms of several parts add up.

    Attributes
    ----------
    summed, quantised, total : Σ|w|√(1 − g²), Σ|w|√(2 − 2g) and Σ|w|
    least, least_square : the smallest g and the smallest g² of the points of some weight; 1 where there are none
    """

    summed: float
    quantised: float
    total: float
    least: float
    least_square: float

    @classmethod
    def of(cls, g: Array, weights: Array) -> BoundTerms:
        """Of points with these largest inner products (n,) and |w| (n,), on the device where these are."""
        squares = g * g
        some = weights > 0
        least, least_square = (float(np.where(some, each, 1.0).min()) if len(g) else 1.0 for each in (g, squares))
        summed, quantised = np.sqrt(np.maximum(1 - squares, 0.0)), np.sqrt(np.maximum(2 - 2 * g, 0.0))
        return cls(float(weights @ summed), float(weights @ quantised), float(weights.sum()), least, least_square)

    @classmethod
    def joined(cls, parts: Sequence[BoundTerms]) -> BoundTerms:
        """Of all points of several parts, added in their order."""
        summed, quantised, total = np.sum([(part.summed, part.quantised, part.total) for part in parts], axis=0).tolist()
        return cls(summed, quantised, total, min(part.least for part in parts), min(part.least_square for part in parts))


def bounds_of(mean: KernelMean, atoms: Array, chosen: float, cover: LeafCover | None) -> Bounds:
    """The bounds from each point's nearest atom, ``chosen`` the Σ|w| of the points that are atoms. One pass over the data."""
    parts: dict[int, tuple[BoundTerms, float]] = {}

    def add(block: int, rows: Any, _: Any, g: Array, distance: Array) -> None:
        weights = to_device_of(g, mean.magnitudes[rows])
        parts[block] = BoundTerms.of(g, weights), float(np.where(weights > 0, distance, 0.0).max())

    with_nearest_atoms(mean, atoms, cover, add, there=True)
    # added in the order of the blocks, whichever thread was first
    terms = BoundTerms.joined([parts[k][0] for k in sorted(parts)])
    radius = max(part[1] for part in parts.values())
    return Bounds.from_terms(terms, chosen, bool(mean.stored_weights.min() < 0), radius)


def theorem_one(rest: float, incoherence: float) -> float | None:
    """Theorem 1 in units where every kernel function has norm 1, ``rest`` the Σ|w| of the points that are not atoms.

    None where ν is negative, for which the theorem does not hold.
    """
    return rest * _distance_to_span(incoherence**2) if incoherence >= 0 else None


def _rounded(product: float) -> float:
    """A product of orthogonal kernel functions, which rounding leaves just below 0, is 0."""
    return 0.0 if -ROUNDING <= product < 0 else product


def _distance_to_span(square: float) -> float:
    """√(1 − g²): the largest distance of a kernel function to the span of another with which it has the squared product g²."""
    return float(np.sqrt(max(1 - square, 0.0)))
