"""A stand-in: a mean of a few thousand atoms that takes the place of a large one where it is evaluated again and again.

Rows drawn by weight, the best weights for them, and how far that is from the original, measured. O(n·N + N³/3), once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset.mean import KernelMean
from reduset.probe import probe
from reduset.weigh import span

CONFIDENCE = 0.95


@dataclass(frozen=True)
class StandIn:
    """The smaller mean, and the upper end of the interval of ‖f − stand-in‖ / ‖f‖."""

    mean: KernelMean
    relative_error: float


def stand_in(mean: KernelMean, size: int, rng: np.random.Generator) -> StandIn:
    """A mean of at most ``size`` atoms close to the one given; the one given where it is that small."""
    if mean.size <= size:
        return StandIn(mean, 0.0)
    rows = np.unique(mean.draw_rows(size, rng))
    atoms = np.asarray(mean.atoms[rows], np.float64)
    found = span(mean.kernel, atoms, mean.kernel.product_sums(mean.atoms, mean.weights, atoms))
    weights = found.weights("free", mean.mass, found.size)
    rest = probe(mean, CONFIDENCE, rng).glance(found.atoms, weights, found.kappa)
    total = found.energy(found.size) + rest.square
    return StandIn(KernelMean(found.atoms, weights, mean.kernel), float(np.sqrt(rest.high / total)) if total > 0 else 0.0)
