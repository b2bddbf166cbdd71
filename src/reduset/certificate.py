"""Certificates: how much a compression lost, measured, and what was promised before measuring.

With P the projection onto the span of the atoms' bumps, C = ‖φ(·, x)‖² and dᵢ the distance of point i to its nearest atom,

    ‖f − Pf‖ ≤ Σᵢ |wᵢ| √(C − g(dᵢ)²/C)                            the summed bound, for any atoms
            ≤ (1 − Σ_{i chosen} |wᵢ|) √(C − ν²/C)                 Theorem 1 of Cruz Cortés & Scott 2017, ν = min g(dᵢ)

and the best weights of the mass of f lose at most Σᵢ |wᵢ| √(2(C − g(dᵢ))), since moving every point to its nearest atom is one
choice of such weights (on the simplex only where no wᵢ is negative). Weights α other than the best add exactly ‖Pf − f_α‖² to the
square. In an RKHS |f(x)| ≤ √C ‖f‖, which makes a bound on the largest difference of any of these (Corollary 2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset._engine.nearest import each_nearest
from reduset._engine.profile import CITYBLOCK, SQUARED
from reduset._engine.threads import blocks
from reduset.mean import KernelMean
from reduset.radial import Array, RadialKernel, exponential
from reduset.select.selection import Cover

DENSITY_ROWS = 256


@dataclass(frozen=True)
class Certificate:
    """What a compression lost.

    Attributes
    ----------
    relative_error : ‖f − f_m‖ / ‖f‖, measured (not squared)
    interval : its confidence interval, at ``confidence``
    method : how it was measured: "exact", "frequencies" or "rows"
    norm : ‖f‖ as measured along the way
    energy : C = ‖φ(·, x)‖², the unit of the incoherence
        In many dimensions a density's C may leave the range of floating point, and norm, bounds and incoherence with it: the
        relative error does not.
    bound : an upper bound on ‖f − f_m‖, certain before any measuring
    theorem_bound : the same by Theorem 1, never below ``bound``
    sup_bound : an upper bound on the largest |f(x) − f_m(x)|; None in "l2", whose norm bounds no single value
    incoherence : ν, the least over points of the largest inner product with an atom
    log_density_change : the largest |log f_m − log f| seen on a sample of the data, for densities; else None
    """

    relative_error: float
    interval: tuple[float, float]
    confidence: float
    method: str
    norm: float
    energy: float
    bound: float | None
    theorem_bound: float | None
    sup_bound: float | None
    incoherence: float | None
    log_density_change: float | None = None

    @classmethod
    def of_nothing_lost(cls, mean: KernelMean) -> Certificate:
        """For a mean that stands for itself; ‖f‖ is not computed, which would cost n²."""
        energy = exponential(mean.kernel.log_energy(mean.dimension))
        return cls(0.0, (0.0, 0.0), 1.0, "exact", float("nan"), energy, 0.0, 0.0, 0.0, energy, None)

    def __str__(self) -> str:
        low, high = self.interval
        text = f"error      {_percent(self.relative_error)} of ‖f‖"
        if self.method == "exact":
            text += " (exact)"
        else:
            text += f" ({self.confidence:.0%} interval {_percent(low)} to {_percent(high)}, by {self.method})"
        if self.relative_error > 1:
            text += "\n           WORSE THAN NOTHING: the zero function is closer to f"
        if self.bound is not None and 0 < self.norm < np.inf:
            if self.bound < self.norm:
                text += f"\nbound      {_percent(self.bound / self.norm)} of ‖f‖ at most, before measuring"
            else:
                text += f"\nbound      says nothing here: {_percent(self.bound / self.norm)} of ‖f‖"
            if self.incoherence is not None and 0 < self.energy < np.inf:
                text += f" (incoherence ν/C {self.incoherence / self.energy:.3g})"
        if self.log_density_change is not None:
            change = self.log_density_change
            amount = _percent(np.expm1(change)) if change < 1 else f"a factor of {exponential(change):.3g}"
            text += f"\ndensity    changed by {amount} at most on {DENSITY_ROWS} sampled points"
        return text


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


@dataclass(frozen=True)
class Promise:
    """The a-priori bounds, in units where every bump has norm 1."""

    summed: float | None
    theorem: float | None
    quantised: float | None
    incoherence: float | None
    signed: bool = False  # some weight is negative: moving points to their atoms then leaves the simplex

    def best(self, excess: float, kind: str) -> tuple[float | None, float | None]:
        """(bound, Theorem 1's) for weights of a kind that lose ``excess`` beyond the best free ones."""
        theorem = None if self.theorem is None else float(np.hypot(self.theorem, np.sqrt(excess)))
        candidates = [theorem, None if self.summed is None else float(np.hypot(self.summed, np.sqrt(excess)))]
        if kind == "sum_to_one" or (kind == "simplex" and not self.signed):
            candidates.append(self.quantised)
        return min((c for c in candidates if c is not None), default=None), theorem


def promise(mean: KernelMean, atoms: Array, chosen: float, cover: Cover | None) -> Promise:
    """The bounds from each point's nearest atom, ``chosen`` the Σ|w| of the points that are atoms. One pass over the data."""
    parts: dict[int, tuple[float, float, float, float]] = {}

    def add(block: int, rows: Any, g: Array) -> None:
        w = np.abs(mean.weights[rows])
        present = g[w > 0]
        least = float(present.min()) if len(present) else 1.0
        near = np.maximum(g, 0.0)  # a negative product helps no projection
        summed, quantised = np.sqrt(np.maximum(1 - near * near, 0.0)), np.sqrt(np.maximum(2 - 2 * g, 0.0))
        parts[block] = float(w @ summed), float(w @ quantised), float(w.sum()), least

    _with_nearest_products(mean, atoms, cover, add)
    # added in the order of the blocks, whichever thread was first
    summed, quantised, total = np.sum([parts[k][:3] for k in sorted(parts)], axis=0).tolist()
    least = max(min(part[3] for part in parts.values()), 0.0)
    theorem = theorem_one(max(total - chosen, 0.0), least)
    return Promise(min(summed, theorem), theorem, quantised, least, bool(mean.weights.min() < 0))


def theorem_one(rest: float, incoherence: float) -> float:
    """Theorem 1 in units where every bump has norm 1, ``rest`` the Σ|w| of the points that are not atoms."""
    return rest * float(np.sqrt(max(1 - incoherence**2, 0.0)))


def _with_nearest_products(mean: KernelMean, atoms: Array, cover: Cover | None, use: Callable[[int, Any, Array], None]) -> None:
    """Call use(block, rows, g/C of each of those points with its nearest atom) for all blocks of points."""
    kernel, d = mean.kernel, mean.dimension
    if isinstance(kernel, RadialKernel):
        shape = kernel.product(d)
        if cover is None:
            metric = SQUARED if shape.profile.metric == SQUARED else CITYBLOCK
            frame, scale = kernel.frame(mean.atoms, shape).sized(mean.atoms)
            leaves = None
        else:
            frame, leaves, scale, metric = cover.leaves.frame, cover.leaves, cover.scale, cover.metric
        each_nearest(
            mean.atoms,
            atoms,
            frame,
            metric,
            leaves,
            lambda k, rows, _, distance: use(k, rows, kernel.product_at(scale * distance, d)),
        )
        return
    for k, (a, b) in enumerate(blocks(mean.size, max(1, (1 << 20) // len(atoms)))):
        use(k, slice(a, b), np.clip(kernel.product_gram(mean.atoms[a:b], atoms).max(axis=1), -1.0, 1.0))


def log_density_change(full: KernelMean, small: KernelMean, rng: np.random.Generator) -> float | None:
    """The largest |log f_m − log f| on a sample of the data; None where f is no density."""
    if not getattr(full.kernel, "normalized", False) or full.weights.min() < 0:
        return None
    queries = full.atoms[np.unique(full.draw_rows(min(DENSITY_ROWS, full.size), rng))]
    change = np.abs(small.log_density(queries) - full.log_density(queries))
    return float(np.nan_to_num(change, nan=np.inf).max())
