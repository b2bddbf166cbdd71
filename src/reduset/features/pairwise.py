"""All distances between bags by plain integration of their density estimates: what features approximate, at O(N²·nodes).

The densities are those of `DensityFeatures`, on its own nodes; nothing is projected and no frequency is chosen, κ is its closed
form. For tests, small N, and looking at a distance before learning with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset import _validate
from reduset._types import Array
from reduset.features.density_features import DensityFeatures
from reduset.features.homogeneous_distances import DISTANCES, kappa


def pairwise(bags: Any, metric: str = "js", **options: Any) -> Array:
    """(N, N) distances d between the density estimates of bags.

    Parameters
    ----------
    bags : list of (n, d) arrays, or what else `DensityFeatures` takes
    metric : "js", "hellinger", "tv", "chi2" or "l2"
        d² is the Jensen–Shannon divergence, the squared Hellinger distance, the total variation ∫|p − q|, ½ ∫(p − q)²/(p + q), or
        ∫(p − q)².
    options : of `DensityFeatures`
        ``bandwidth``, ``marginals``, ``integration``, ``n_nodes``, ``tol``, ``margin``, ``group``, ``random_state``.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.features import pairwise
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(shift, 1, size=(500, 1)) for shift in (0, 0, 3)]
    >>> d = pairwise(bags, "hellinger")
    >>> bool(d[0, 1] < 0.2 < d[0, 2])
    True
    """
    _validate.one_of(metric, "metric", DISTANCES)
    model = DensityFeatures("l2", output="distance", basis="values", **options)
    scaled = model.fit_transform(bags)  # densities at the nodes of every view, times the roots of the nodes' weights
    squares, start = np.zeros((len(scaled), len(scaled))), 0
    for view in model.views_:
        roots = view.nodes.roots
        values = scaled[:, start : start + len(roots)] / roots
        start += len(roots)
        for i in range(len(values) - 1):
            squares[i, i + 1 :] += kappa(values[i], values[i + 1 :], metric) @ roots**2
    return np.sqrt(squares + squares.T)
