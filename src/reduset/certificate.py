"""Certificates: how much a compression lost, measured, and what was promised before measuring.

With P the projection onto the span of the atoms' bumps, C = ‖φ(·, x)‖² and dᵢ the distance of point i to its nearest atom,

    ‖f − Pf‖ ≤ Σᵢ |wᵢ| √(C − g(dᵢ)²/C)                            the summed bound, for any atoms
            ≤ (1 − Σ_{i chosen} |wᵢ|) √(C − ν²/C)                 Theorem 1 of Cruz Cortés & Scott 2017, ν = min g(dᵢ)

and the best weights of the mass of f lose at most Σᵢ |wᵢ| √(2(C − g(dᵢ))), since moving every point to its nearest atom is one
choice of such weights. Weights α other than the best add exactly ‖Pf − f_α‖² to the square. In an RKHS |f(x)| ≤ √C ‖f‖, which
makes a bound on the largest difference of any of these (Corollary 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset._engine.nearest import nearest
from reduset._engine.profile import CITYBLOCK, SQUARED
from reduset._engine.threads import blocks
from reduset.mean import KernelMean
from reduset.radial import Array, RadialKernel
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
    bound: float | None
    theorem_bound: float | None
    sup_bound: float | None
    incoherence: float | None
    log_density_change: float | None = None

    def __str__(self) -> str:
        low, high = self.interval
        text = f"error      {_percent(self.relative_error)} of ‖f‖"
        if self.method == "exact":
            text += " (exact)"
        else:
            text += f" ({self.confidence:.0%} interval {_percent(low)} to {_percent(high)}, by {self.method})"
        if self.relative_error > 1:
            text += "\n           WORSE THAN NOTHING: the zero function is closer to f"
        if self.bound is not None and self.norm > 0:
            text += f"\nbound      {_percent(self.bound / self.norm)} of ‖f‖ at most, before measuring"
            if self.incoherence is not None:
                text += f" (incoherence {self.incoherence:.3g})"
        if self.log_density_change is not None:
            factor = np.exp(self.log_density_change)
            text += f"\ndensity    changed by a factor of {factor:.3g} at most on {DENSITY_ROWS} sampled points"
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

    def best(self, excess: float, has_mass: bool) -> tuple[float | None, float | None]:
        """(bound, Theorem 1's) for weights that lose ``excess`` beyond the best; ``has_mass``: the best of their mass."""
        theorem = None if self.theorem is None else float(np.hypot(self.theorem, np.sqrt(excess)))
        candidates = [theorem, None if self.summed is None else float(np.hypot(self.summed, np.sqrt(excess)))]
        if has_mass:
            candidates.append(self.quantised)
        return min((c for c in candidates if c is not None), default=None), theorem


def promise(mean: KernelMean, atoms: Array, chosen: float, cover: Cover | None) -> Promise:
    """The bounds from each point's nearest atom, ``chosen`` the Σ|w| of the points that are atoms. One pass over the data."""
    summed = quantised = total = 0.0
    least = 1.0
    for a, b, g in _nearest_products(mean, atoms, cover):
        w = np.abs(mean.weights[a:b])
        summed += float(w @ np.sqrt(np.maximum(1 - g * g, 0.0)))
        quantised += float(w @ np.sqrt(np.maximum(2 - 2 * g, 0.0)))
        total += float(w.sum())
        present = g[w > 0]
        least = min(least, float(present.min()) if len(present) else 1.0)
    theorem = theorem_one(max(total - chosen, 0.0), least)
    return Promise(min(summed, theorem), theorem, quantised, least)


def theorem_one(rest: float, incoherence: float) -> float:
    """Theorem 1 in units where every bump has norm 1, ``rest`` the Σ|w| of the points that are not atoms."""
    return rest * float(np.sqrt(max(1 - incoherence**2, 0.0)))


def _nearest_products(mean: KernelMean, atoms: Array, cover: Cover | None):  # type: ignore[no-untyped-def]  # a generator of blocks
    """(start, stop, g/C of each point with its nearest atom), block by block."""
    kernel, d = mean.kernel, mean.dimension
    if isinstance(kernel, RadialKernel):
        if cover is None:
            shape = kernel.product(d)
            metric = SQUARED if shape.profile.metric == SQUARED else CITYBLOCK
            _, distance = nearest(mean.atoms, atoms, kernel.frame(mean.atoms, shape), metric)
            scale = 1.0
        else:
            _, distance = nearest(mean.atoms, atoms, cover.leaves.frame, cover.metric, cover.leaves)
            scale = cover.scale
        for a, b in blocks(mean.size, 1 << 16):
            yield a, b, kernel.product_at(scale * distance[a:b], d)
        return
    for a, b in blocks(mean.size, max(1, (1 << 22) // len(atoms))):
        yield a, b, np.clip(kernel.product_gram(mean.atoms[a:b], atoms).max(axis=1), 0.0, 1.0)


def log_density_change(full: KernelMean, small: KernelMean, rng: np.random.Generator) -> float | None:
    """The largest |log f_m − log f| on a sample of the data; None where f is no density."""
    if not getattr(full.kernel, "normalized", False) or full.weights.min() < 0:
        return None
    share = None if full.weights.strides == (0,) else full.weights / full.weights.sum()
    rows = rng.choice(full.size, size=min(DENSITY_ROWS, full.size), replace=True, p=share)
    queries = full.atoms[np.unique(rows)]
    change = np.abs(small.log_density(queries) - full.log_density(queries))
    return float(np.nan_to_num(change, nan=np.inf).max())
