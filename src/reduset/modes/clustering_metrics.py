"""Distances between two clusterings of the same points (Cruz Cortés & Scott 2017, Section VI-C).

The discrepancy index compares the limits of two mean shifts. It is the proportion of points with limits more than δ apart. The
Hausdorff distance compares clusters as sets (Chacón & Monfort 2013). Two clusters differ by a proportion ρ of the points:

    ρ(A, B) = |A Δ B| / n,    d_H = max { max_A min_B ρ(A, B), max_B min_A ρ(A, B) }

The cost is O(n + a·b) for a and b clusters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array

from reduset import _validate
from reduset._types import PointsLike, WeightsLike


def discrepancy_index(ends: PointsLike, others: PointsLike, radius: float) -> float:
    """The proportion of points with limits that differ by more than ``radius``.

    Parameters
    ----------
    ends, others : (n, d)
        Limits of the same points, from two methods.
    radius : float
        Limits at most this far apart count as equal. The paper uses three bandwidths.

    Examples
    --------
    >>> import numpy as np
    >>> discrepancy_index(np.zeros((4, 1)), np.array([[0.0], [0.5], [2.0], [0.1]]), radius=1.0)
    0.25
    """
    ends = _validate.points(ends, "ends")
    others = _validate.points(others, "others", ends.shape[1])
    if len(ends) != len(others):
        raise ValueError(f"ends and others must have the same number of rows, got {len(ends)} and {len(others)}")
    radius = _validate.positive(radius, "radius")
    return float(np.mean(np.linalg.norm(np.asarray(ends, np.float64) - others, axis=1) > radius))


def clustering_distance(labels: ArrayLike, others: ArrayLike, sample_weight: WeightsLike = None) -> float:
    """The Hausdorff distance of two clusterings, from 0 to 1. It does not depend on the cluster names.

    Parameters
    ----------
    labels, others : (n,)
        Labels of the same points, from two clusterings.
    sample_weight : (n,), optional
        Non-negative weights of the points.

    Examples
    --------
    >>> clustering_distance([0, 0, 1, 1], ["b", "b", "a", "a"])
    0.0
    >>> clustering_distance([0, 0, 1, 1], [0, 0, 0, 1])
    0.25
    """
    first, second = (_label_numbers(value, name) for value, name in ((labels, "labels"), (others, "others")))
    if len(second) != len(first):
        raise ValueError(f"labels and others must have the same length, got {len(first)} and {len(second)}")
    weights = np.ones(len(first)) if sample_weight is None else _validate.weights(sample_weight, len(first))
    present = weights > 0  # Clusters without weight do not count.
    rows, columns = (np.unique(numbers[present], return_inverse=True)[1] for numbers in (first, second))
    proportions = weights[present] / weights.max()  # Divide by the maximum first, so that the sum is finite.
    common = coo_array((proportions / proportions.sum(), (rows, columns))).tocsr()
    masses, other_masses = np.asarray(common.sum(axis=1)).ravel(), np.asarray(common.sum(axis=0)).ravel()
    forward = _directed_distance(common, masses, other_masses)
    backward = _directed_distance(common.T.tocsr(), other_masses, masses)
    return max(forward, backward, 0.0)


def _label_numbers(value: Any, name: str) -> Any:
    """Replace labels by numbers from 0."""
    array = np.asarray(value)
    if array.ndim != 1 or len(array) == 0:
        raise ValueError(f"{name} must have one label per point, (n,), got an array of shape {array.shape}")
    return np.unique(array, return_inverse=True)[1]


def _directed_distance(common: Any, masses: Any, others: Any) -> float:
    """The maximum over clusters of the smallest ρ to one of the others.

    It is computed row by row, because a matrix of all pairs of clusters may not fit in memory.
    """
    largest = 0.0
    for k in range(len(masses)):
        row = slice(common.indptr[k], common.indptr[k + 1])
        differences = masses[k] + others
        differences[common.indices[row]] -= 2 * common.data[row]
        largest = max(largest, float(differences.min()))
    return largest
