"""How far two clusterings of the same points are apart (Cruz Cortés & Scott 2017, Section VI-C).

The discrepancy index is the share of points that two mean shifts leave more than δ apart. The Hausdorff distance compares the
clusters as sets, by the share of points in which they differ:

    ρ(A, B) = |A Δ B| / n,    d_H = max { max_A min_B ρ(A, B), max_B min_A ρ(A, B) }        (Chacón & Monfort 2013)

O(n + a·b) for a and b clusters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array

from reduset import _validate
from reduset._types import PointsLike, WeightsLike


def discrepancy_index(ends: PointsLike, others: PointsLike, radius: float) -> float:
    """The share of points whose ends differ by more than ``radius`` (the paper: three bandwidths).

    Parameters
    ----------
    ends, others : (n, d) where the same points ended, in two ways

    Examples
    --------
    >>> import numpy as np
    >>> discrepancy_index(np.zeros((4, 1)), np.array([[0.0], [0.5], [2.0], [0.1]]), radius=1.0)
    0.25
    """
    ends = _validate.points(ends, "ends")
    others = _validate.points(others, "others", ends.shape[1])
    if len(ends) != len(others):
        raise ValueError(f"ends and others must be of the same points, got {len(ends)} and {len(others)} rows")
    radius = _validate.positive(radius, "radius")
    return float(np.mean(np.linalg.norm(np.asarray(ends, np.float64) - others, axis=1) > radius))


def clustering_distance(labels: ArrayLike, others: ArrayLike, sample_weight: WeightsLike = None) -> float:
    """The Hausdorff distance of two clusterings, from 0 to 1; names of clusters do not matter.

    Parameters
    ----------
    labels, others : (n,) labels of the same points
    sample_weight : (n,) non-negative, optional

    Examples
    --------
    >>> clustering_distance([0, 0, 1, 1], ["b", "b", "a", "a"])
    0.0
    >>> clustering_distance([0, 0, 1, 1], [0, 0, 0, 1])
    0.25
    """
    one, other = (np.unique(_labels(each, name), return_inverse=True) for each, name in ((labels, "labels"), (others, "others")))
    count = len(one[1])
    if len(other[1]) != count:
        raise ValueError(f"labels and others must be of the same points, got {count} and {len(other[1])}")
    weights = np.ones(count) if sample_weight is None else _validate.weights(sample_weight, count)
    present = weights > 0  # a cluster of points without weight is none
    one, other = (np.unique(each[1][present], return_inverse=True) for each in (one, other))
    shares = weights[present] / weights.max()  # first, so that the sum is finite
    common = coo_array((shares / shares.sum(), (one[1], other[1])), shape=(len(one[0]), len(other[0]))).tocsr()
    masses, other_masses = np.asarray(common.sum(axis=1)).ravel(), np.asarray(common.sum(axis=0)).ravel()
    return max(_farthest(common, masses, other_masses), _farthest(common.T.tocsr(), other_masses, masses), 0.0)


def _labels(value: Any, name: str) -> Any:
    array = np.asarray(value)
    if array.ndim != 1 or len(array) == 0:
        raise ValueError(f"{name} must be one label a point, (n,); got an array of shape {array.shape}")
    return array


def _farthest(common: Any, masses: Any, others: Any) -> float:
    """max over clusters of the least ρ to one of the others, a row at a time: there may be many of both."""
    worst = 0.0
    for k in range(len(masses)):
        row = slice(common.indptr[k], common.indptr[k + 1])
        apart = masses[k] + others
        apart[common.indices[row]] -= 2 * common.data[row]
        worst = max(worst, float(apart.min()))
    return worst
