"""A surrogate: a mean of a few thousand atoms that takes the place of a large one where it is evaluated again and again.

Rows drawn by weight and the best weights for them, up to a small ridge. O(n·N + N³/3), once, in single precision where that is
worth it: a surrogate need not be better than the ridge. How far it is from the original can be measured like any other distance.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from reduset._engine import single_threaded_blas
from reduset.certificate.rule import probe_for
from reduset.mean import KernelMean

CONFIDENCE = 0.95
RIDGE, FINE_RIDGE = 1e-7, 1e-11


def surrogate(mean: KernelMean, size: int, rng: np.random.Generator, fine: bool = False) -> KernelMean:
    """A mean of at most ``size`` atoms close to the one given; the one given where it is that small.

    ``fine`` sums in double precision and shrinks the ridge to match.
    """
    if mean.size <= size:
        return mean
    rows = np.unique(mean.draw_rows(size, rng))
    atoms = np.asarray(mean.atoms[rows], np.float64)
    kappa = mean.kernel.product_sums(mean.atoms, mean.weights, atoms, "double" if fine else "auto")
    gram = mean.kernel.product_gram(atoms, atoms)
    gram[np.diag_indices(len(gram))] += FINE_RIDGE if fine else RIDGE
    with single_threaded_blas():
        weights = cho_solve(cho_factor(gram, lower=True, overwrite_a=True, check_finite=False), kappa, check_finite=False)
    return KernelMean.unchecked(atoms, weights, mean.kernel)


def distance_from(mean: KernelMean, other: KernelMean, rng: np.random.Generator) -> float:
    """The upper end of the interval of ‖mean − other‖ / ‖other‖."""
    kappa = mean.kernel.product_sums(mean.atoms, mean.weights, other.atoms)
    gap = probe_for(mean, CONFIDENCE, rng).glance(np.asarray(other.atoms, np.float64), other.weights, kappa).high
    square = float(other.weights @ other.kernel.product_sums(other.atoms, other.weights, other.atoms))
    return float(np.sqrt(gap / square)) if square > 0 else np.inf


def close_surrogate(mean: KernelMean, size: int, within: float, rng: np.random.Generator) -> KernelMean:
    """A surrogate whose measured distance is within that share of its norm; the mean itself where that is not reached."""
    smaller = surrogate(mean, size, rng)
    return smaller if distance_from(mean, smaller, rng) <= within else mean
