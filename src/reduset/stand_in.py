"""A stand-in: a mean of a few thousand atoms that takes the place of a large one where it is evaluated again and again.

Rows drawn by weight and the best weights for them. O(n·N + N³/3), once. How far it is from the original can be measured like any
other distance.
"""

from __future__ import annotations

import numpy as np

from reduset.mean import KernelMean
from reduset.probe import probe
from reduset.weigh import span

CONFIDENCE = 0.95


def stand_in(mean: KernelMean, size: int, rng: np.random.Generator) -> KernelMean:
    """A mean of at most ``size`` atoms close to the one given; the one given where it is that small."""
    if mean.size <= size:
        return mean
    rows = np.unique(mean.draw_rows(size, rng))
    atoms = np.asarray(mean.atoms[rows], np.float64)
    found = span(mean.kernel, atoms, mean.kernel.product_sums(mean.atoms, mean.weights, atoms))
    return KernelMean(found.atoms, found.weights("free", mean.mass, found.size), mean.kernel)


def distance_from(mean: KernelMean, other: KernelMean, rng: np.random.Generator) -> float:
    """The upper end of the interval of ‖mean − other‖ / ‖other‖."""
    kappa = mean.kernel.product_sums(mean.atoms, mean.weights, other.atoms)
    gap = probe(mean, CONFIDENCE, rng).glance(np.asarray(other.atoms, np.float64), other.weights, kappa).high
    square = float(other.weights @ other.kernel.product_sums(other.atoms, other.weights, other.atoms))
    return float(np.sqrt(gap / square)) if square > 0 else np.inf
