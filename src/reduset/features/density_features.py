"""DensityFeatures: features of bags for linear models (Sutherland, Oliva, Póczos & Schneider 2016).

Ridge regression or a linear SVM on the features learns with the kernel exp(−d²/(2σ²)), where d is a distance between densities. The
time is linear in the number of bags. `pairwise` integrates the same density estimates without basis and frequencies, at
O(N²·nodes). Use it for tests, for small N, and to inspect a distance before learning with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from reduset import _validate
from reduset._messages import warn
from reduset._types import Array, BandwidthLike
from reduset._validate import seeded
from reduset.features.embedding import CubeEmbedding, VectorLength
from reduset.features.error_bound import DensityClass, ErrorBound, error_bound
from reduset.features.homogeneous_distances import (
    DISTANCES,
    MAX_OPTIMAL_FREQUENCIES,
    DistanceFrequencies,
    kappa,
    optimal_frequencies,
    random_frequencies,
)
from reduset.features.merging import WeightedBag
from reduset.features.projection import (
    BASES,
    INTEGRATION,
    MAX_DIMENSION,
    NODES_TIMES_BANDWIDTH,
    DensityView,
    Projection,
    nodes_for,
    smallest_bandwidth,
)

ROUNDING = 1e-12  # Rounding error of the spread of a constant column, relative to the cube.
FREQUENCIES = ("placed", "random")


@seeded
@dataclass(eq=False, repr=False, kw_only=True)
class DensityFeatures(CubeEmbedding):
    """Features of bags for linear models. Their inner products approximate a Gaussian kernel of a distance between densities.

    Parameters
    ----------
    distance : "js", "hellinger", "tv", "chi2" or "l2"
        Distance d between two densities p and q on the cube. "js": d² is the Jensen–Shannon divergence. "hellinger": the squared
        Hellinger distance. "tv": the total variation ∫|p − q|. "chi2": ½ ∫(p − q)²/(p + q). "l2": ∫(p − q)².
    n_components : int
        Number of random Fourier features, an even number. They are the columns of the result with ``output="features"``.
    n_frequencies : int
        Number M of frequencies in the feature map of "js", "tv" and "chi2".
    n_basis : int
        Basis functions along each axis.
    bandwidth : float or "scott"
        Bandwidth of the density estimates, one for all columns, in units of the cube. "scott" follows the spread within bags for
        each column. It is at least the smallest bandwidth that the grid resolves.
    kernel_width : float or "median"
        Width σ of the Gaussian kernel. "median" uses the median distance of the training bags.
    output : "features" or "distance"
        "features" returns random Fourier features of the kernel. "distance" returns A(p), with Euclidean distances that
        approximate d.
    marginals : bool
        Estimate one density per column instead of a joint density. Then d² is the sum over columns. Use it for many columns.
    frequencies : "placed" or "random"
        "placed" minimises the error of the distance. "random" draws the frequencies as in the paper.
    basis : "cosine", "fourier" or "values"
        Basis of the functions on the cube. "values" uses the values at all nodes: longer vectors, but no truncation.
    integration : "auto", "grid", "sobol" or "uniform"
        "auto" uses a tensor Gauss–Legendre grid for up to three columns. It uses Sobol points for more columns. "uniform" draws
        nodes as in the paper.
    n_nodes : int, optional
        Nodes per axis of a grid, otherwise the total. By default, the bandwidth sets the nodes of a grid. Other rules use 8192.
    tol : float or None
        Largest relative error of the density from merging points into cells. It is measured at 64 points of the bag. Bags of 10,000
        points or more in over three columns are merged. None never merges.
    orthogonal : bool
        Whether the random Fourier features are orthogonal.
    margin : float
        Distance from the training points to each face of the cube, relative to their range.
    outside : "clip" or "refuse"
        "clip" moves later points outside the cube to its faces. "refuse" raises `ValueError`.
    group : column name or labels, optional
        Labels of the bags, if they are in one long table. A column name selects the labels from the table.
    n_jobs : int, optional
        Maximum number of threads. −1 or None uses `reduset.set_threads`. The result does not depend on it.
    progress : bool, or a function of (stage, done, total)
        Whether to show the progress. A function receives it instead.
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    cube_ : CubeScaler
        ``low`` and ``width`` of the box that is mapped to [0, 1]ᵈ.
    bandwidth_ : (d,)
        Bandwidth of each column. It is in units of the cube.
    kernel_width_ : float
    frequencies_ : DistanceFrequencies or None
        Frequencies λ as ``values``, with their ``weights``.
    views_ : tuple of DensityView
        Nodes and bandwidths of the joint density. With ``marginals``, there is one view per column.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from reduset.features import DensityFeatures
    >>> rng = np.random.default_rng(0)
    >>> spread = rng.uniform(0.5, 2.0, size=200)
    >>> bags = [rng.normal(0, s, size=(100, 2)) for s in spread]
    >>> model = make_pipeline(DensityFeatures("js", n_components=200, margin=0.2, random_state=0), Ridge(0.01))
    >>> bool(model.fit(bags[:150], spread[:150]).score(bags[150:], spread[150:]) > 0.9)
    True
    """

    n_basis: int = 10
    bandwidth: BandwidthLike = "scott"
    frequencies: str = "placed"
    basis: str = "cosine"
    integration: str = "auto"
    n_nodes: int | None = None
    tol: float | None = 0.05
    margin: float = 0.05

    def _learn(self, bags: list[WeightedBag], counts: list[int], rng: np.random.Generator) -> VectorLength:
        _validate.one_of(self.frequencies, "frequencies", FREQUENCIES)
        _validate.one_of(self.basis, "basis", BASES)
        _validate.one_of(self.integration, "integration", INTEGRATION)
        if self.n_nodes is not None:
            _validate.whole(self.n_nodes, "n_nodes", 2)
        if self.tol is not None:
            _validate.positive(self.tol, "tol", "None never merges points")
        self._learn_cube(bags)
        self.bandwidth_ = self._bandwidths(bags, counts)
        self.frequencies_ = self._frequencies(rng)
        self.views_ = self._views(rng)
        self._projection = Projection(self.views_, self.distance, self.frequencies_, self.tol)
        description = f"{self._projection.functions} functions, {self.basis!r} basis"
        return VectorLength(self._projection.length, description, "marginals=True, smaller n_basis")

    def _bandwidths(self, bags: list[WeightedBag], counts: list[int]) -> Array:
        """(d,) bandwidths in units of the cube: the mean spread within bags times Scott's factor for the mean bag size."""
        joint = 1 if _validate.flag(self.marginals, "marginals") else self.n_features_in_
        minimum = smallest_bandwidth(joint, self.integration, self.n_nodes)
        if not isinstance(self.bandwidth, str):
            width = _validate.positive(self.bandwidth, "bandwidth", "it is in units of the cube, such as 0.05")
            if width < minimum:
                warn(
                    f"bandwidth={width:.3g} is too small for the spacing of the nodes, and the distances are wrong; "
                    f"use {minimum:.2g} or more, n_nodes={int(np.ceil(NODES_TIMES_BANDWIDTH / width))}, or marginals=True",
                )
            return np.full(self.n_features_in_, width)
        _validate.one_of(self.bandwidth, "bandwidth", ("scott",))
        variances = [column_variances(bag) for bag in bags]
        spread = np.sqrt(np.maximum(np.mean(variances, axis=0), 0.0)) / self.cube_.width
        spread[spread <= ROUNDING] = 0.1  # The column is constant within bags, so any bandwidth gives the same result.
        return np.maximum(spread * np.mean(counts) ** (-1 / (joint + 4)), minimum)

    def _frequencies(self, rng: np.random.Generator) -> DistanceFrequencies | None:
        distance = _validate.one_of(self.distance, "distance", DISTANCES)
        count = _validate.whole(self.n_frequencies, "n_frequencies", 1)
        if distance == "l2":
            return None
        if self.frequencies == "random":
            return random_frequencies(distance, count, rng)
        if count > MAX_OPTIMAL_FREQUENCIES:
            raise ValueError(
                f"n_frequencies must be at most {MAX_OPTIMAL_FREQUENCIES}, got {count}; use frequencies='random' for more"
            )
        return optimal_frequencies(distance, count)

    def _views(self, rng: np.random.Generator) -> tuple[DensityView, ...]:
        d = self.n_features_in_
        if not self.marginals and d > MAX_DIMENSION:
            raise ValueError(
                f"bags must have at most {MAX_DIMENSION} columns for a joint density, got {d}; use marginals=True, or "
                "choose columns"
            )
        n_basis = _validate.whole(self.n_basis, "n_basis", 1)
        views = []
        for columns in [slice(k, k + 1) for k in range(d)] if self.marginals else [slice(0, d)]:
            bandwidth = self.bandwidth_[columns]
            smallest = float(bandwidth.min())
            nodes = nodes_for(len(bandwidth), n_basis, self.basis, self.integration, self.n_nodes, smallest, rng)
            views.append(DensityView(columns, nodes, bandwidth))
        return tuple(views)

    def error_bound(
        self,
        n_samples: int | tuple[int, int],
        *,
        lower: float,
        upper: float,
        gradient: float,
        curvature: float | None = None,
        confidence: float = 0.95,
    ) -> ErrorBound:
        """A probability bound on the error of the estimated kernel between two bags.

        Let z(p̂) and z(q̂) be the rows that ``transform`` returns for bags drawn from p and q. With probability ``confidence`` or
        more, |exp(−d²(p, q)/(2σ²)) − z(p̂)·z(q̂)| is at most ``total``. The probability is over the points of the two bags and the
        random Fourier features.

        The bound makes these assumptions:

        - The two densities are positive on the cube and zero outside. They satisfy ``lower``, ``upper``, ``gradient`` and
          ``curvature``.
        - The points of a bag are independent draws without weights.
        - The cube, the bandwidth and the kernel width do not depend on the two bags. They are fitted to other bags, or given.
        - With ``basis="fourier"``, the densities are periodic. With ``curvature``, their gradient is periodic too.

        All bounds are in units of the cube. Coordinates are (x − cube_.low)/cube_.width. A density of x is multiplied by the volume
        of the box.

        Parameters
        ----------
        n_samples : int or (int, int)
            Points of the two bags.
        lower, upper : float
            Bounds of both densities on the cube, with 0 < lower ≤ 1 ≤ upper. They satisfy lower ≤ p(x) ≤ upper everywhere.
        gradient : float
            Largest length of the gradient of p and q.
        curvature : float, optional
            Largest absolute eigenvalue of the second derivatives of p and q. Without it, the bound is larger.
        confidence : float
            Probability of the bound. The density estimates and the random features get half of 1 − confidence each.

        Examples
        --------
        >>> import numpy as np
        >>> from reduset.features import DensityFeatures
        >>> rng = np.random.default_rng(0)
        >>> bags = [rng.beta(2, 2 + k, size=(500, 1)) for k in range(6)]
        >>> features = DensityFeatures("hellinger", n_components=4000, bandwidth=0.1, kernel_width=0.5, random_state=0).fit(bags)
        >>> bound = features.error_bound(20_000, lower=0.5, upper=1.5, gradient=2.0, curvature=6.0)
        >>> 0 < bound.density < bound.total < 1
        True
        """
        check_is_fitted(self)
        low = _validate.between(lower, "lower", 0.0, 1.0) if lower != 1 else 1.0
        densities = DensityClass(
            low,
            _validate.at_least(upper, "upper", 1.0),
            _validate.at_least(gradient, "gradient", 0.0),
            np.inf if curvature is None else _validate.at_least(curvature, "curvature", 0.0),
        )
        return error_bound(self, n_samples, densities, _validate.confidence(confidence))

    def _vectors_of(self, bags: list[WeightedBag]) -> Array:
        return self._projection.of(bags)


def column_variances(bag: WeightedBag) -> Array:
    """(d,) variances of the columns of a bag."""
    points, weights = bag.points, bag.weights
    if weights is None:
        return points.var(axis=0, dtype=np.float64)
    return np.asarray(weights @ (points - weights @ points) ** 2)


def pairwise(bags: Any, metric: str = "js", **options: Any) -> Array:
    """(N, N) distances d between the density estimates of bags.

    Parameters
    ----------
    bags : list of (n, d) arrays, or another input of `DensityFeatures`
    metric : "js", "hellinger", "tv", "chi2" or "l2"
        Distance d, as in `DensityFeatures`. d² is the Jensen–Shannon divergence, the squared Hellinger distance, the total
        variation ∫|p − q|, ½ ∫(p − q)²/(p + q), or ∫(p − q)².
    options : parameters of `DensityFeatures`
        These are ``bandwidth``, ``marginals``, ``integration``, ``n_nodes``, ``tol``, ``margin``, ``group``, ``random_state``.

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
    scaled = model.fit_transform(bags)  # Densities at the nodes of every view, times √weight.
    squares, start = np.zeros((len(scaled), len(scaled))), 0
    for view in model.views_:
        roots = view.nodes.roots
        values = scaled[:, start : start + len(roots)] / roots
        start += len(roots)
        for i in range(len(values) - 1):
            squares[i, i + 1 :] += kappa(values[i], values[i + 1 :], metric) @ roots**2
    return np.sqrt(squares + squares.T)
