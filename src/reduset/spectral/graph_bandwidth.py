"""A bandwidth for neighbour graphs: wide enough to connect each cluster, narrow enough to keep clusters apart.

    h² = 3 · mean d₇²

d₇ is the distance of a row to its 7th different neighbour, as in self-tuning spectral clustering (Zelnik-Manor & Perona 2004), in a
sample of 1,000 rows: the neighbours of a larger sample come closer, while the clusters stay where they are. The root mean square
follows the sparse clusters, which the median of unequal densities leaves to their outliers. O(1,000² d).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from reduset import _validate
from reduset._types import Array, Floats

NEIGHBOUR = 7
ROWS = 1000
FACTOR = 3.0
OUTLIERS = 0.99  # quantile of the distances at which larger ones are cut


def graph_bandwidth(X: Floats, sample_weight: Any = None) -> float | None:
    """The bandwidth of rows (n, d) with weights (n,); None where fewer than two rows differ."""
    weights = np.ones(len(X)) if sample_weight is None else _validate.weights(sample_weight, len(X))
    rows, masses = _distinct(X, weights)
    if len(rows) < 2:
        return None
    centred = rows - rows.mean(axis=0)
    rank = min(NEIGHBOUR, len(rows) - 1)
    distances = np.partition(cdist(centred, centred), rank, axis=1)[:, rank]
    order = np.argsort(distances)
    place = int(np.searchsorted(np.cumsum(masses[order]), OUTLIERS * masses.sum()))
    distances = np.minimum(distances, distances[order[min(place, len(order) - 1)]])
    scale = float(distances.max())
    if not 0 < scale < np.inf:
        return None
    return float(scale * np.sqrt(FACTOR * np.average(np.square(distances / scale), weights=masses)))


def _distinct(X: Floats, weights: Array) -> tuple[Array, Array]:
    """The different rows of a sample, and the weight of each; the same sample for the same rows."""
    present = np.flatnonzero(weights > 0)
    if len(present) > ROWS:
        chances = weights[present] / weights[present].sum()
        present = np.sort(np.random.default_rng(0).choice(present, ROWS, replace=False, p=chances))
        weights = np.ones(len(weights))
    rows, which = np.unique(np.asarray(X[present], np.float64), axis=0, return_inverse=True)
    return rows, np.asarray(np.bincount(which.ravel(), weights[present]), np.float64)
