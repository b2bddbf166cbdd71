"""DensityFeatures: bags in, rows for linear models out (Sutherland, Oliva, Póczos & Schneider 2016). Validates, calls, stores.

Ridge regression or a linear SVM on the rows learns with the kernel exp(−d²/(2σ²)) of a distance d between densities, in time linear
in the number of bags. `pairwise` integrates the same density estimates without basis and frequencies, at O(N²·nodes): for tests,
small N, and for viewing a distance before learning with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from reduset import _validate
from reduset._messages import warn
from reduset._types import Array, BandwidthLike, ProgressLike, SeedLike
from reduset._validate import seeded
from reduset.features.bound_terms import DensityClass
from reduset.features.embedding import CubeEmbedding
from reduset.features.error_bound import ErrorBound, error_bound
from reduset.features.homogeneous_distances import DISTANCES, MOST_PLACED, DistanceFrequencies, drawn, kappa, placed
from reduset.features.merging import WeightedBag
from reduset.features.projection import MOST_DIMENSION, SPACING, DensityView, Projection, finest, nodes_for
from reduset.features.quadrature import Quadrature, TakesQuadrature, options_unlisted

ROUNDING = 1e-12  # of the cube: what a constant column's spread may come out as


@seeded
class DensityFeatures(TakesQuadrature, CubeEmbedding):
    """Features of bags whose inner products are a kernel of a distance between the bags' densities.

    Parameters
    ----------
    distance : "js", "hellinger", "tv", "chi2" or "l2"
        d² is the Jensen–Shannon divergence, the squared Hellinger distance, the total variation ∫|p − q|, ½ ∫(p − q)²/(p + q), or
        ∫(p − q)² of densities p and q on the cube.
    n_components : int
        Columns of the result, an even number; of ``output="features"``.
    n_frequencies : int
        M, of the feature map of "js", "tv" and "chi2".
    n_basis : int
        Functions of the basis along each axis.
    bandwidth : float or "scott"
        Of the density estimates, in units of the cube, one for all columns; "scott" takes the spread within bags, column by column,
        and nothing finer than a grid has nodes for.
    kernel_width : float or "median"
        σ; "median" takes the median distance of the training bags.
    output : "features" or "distance"
        "distance" stops at A(p), whose Euclidean distances approximate d.
    marginals : bool
        One density a column instead of one of all columns together: d² is then the sum over columns. For many columns.
    quadrature : Quadrature, optional
        For experts: nodes, basis and frequencies of the integrals, margin of the cube, merging of large bags. Each of these is also
        taken by keyword, ``margin=0.1`` for ``quadrature=Quadrature(margin=0.1)``, and by ``set_params``.
    group : column name or labels, optional
        For bags in one long table.
    n_jobs : int, optional
        Threads, at most; −1 or None for those of `reduset.set_threads`. The result does not depend on it.
    progress : bool, or a function of (stage, done, total)
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    cube_ : CubeScaler
        ``low`` and ``width`` of the box that was mapped to [0, 1]ᵈ.
    bandwidth_ : (d,)
        In units of the cube.
    kernel_width_ : float
    frequencies_ : DistanceFrequencies or None
        Their ``values`` and ``weights``.
    views_ : tuple of DensityView
        The nodes and bandwidths of the densities: one, or one a column with ``marginals``.
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

    @options_unlisted
    def __init__(
        self,
        distance: str = "js",
        *,
        n_components: int = 1000,
        n_frequencies: int = 5,
        n_basis: int = 10,
        bandwidth: BandwidthLike = "scott",
        kernel_width: BandwidthLike = "median",
        output: str = "features",
        marginals: bool = False,
        quadrature: Quadrature | None = None,
        group: Any = None,
        n_jobs: int | None = None,
        progress: ProgressLike = False,
        random_state: SeedLike = None,
        **options: Any,
    ) -> None:
        self.distance = distance
        self.n_components = n_components
        self.n_frequencies = n_frequencies
        self.n_basis = n_basis
        self.bandwidth = bandwidth
        self.kernel_width = kernel_width
        self.output = output
        self.marginals = marginals
        self.quadrature = quadrature
        self.group = group
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state
        self._take(options)

    def _learn(self, bags: list[WeightedBag], counts: list[int], rng: np.random.Generator) -> None:
        self._check_quadrature()
        self._learn_cube(bags)
        self.bandwidth_ = self._bandwidths(bags, counts)
        self.frequencies_ = self._frequencies(rng)
        self.views_ = self._views(rng)
        self._projection = Projection(self.views_, self.distance, self.frequencies_, self.tol)

    def _bandwidths(self, bags: list[WeightedBag], counts: list[int]) -> Array:
        """(d,) in units of the cube: the mean spread within bags, times that power of their mean size that Scott's rule has."""
        together = 1 if _validate.flag(self.marginals, "marginals") else self.n_features_in_
        least = finest(together, self.integration, self.n_nodes)
        if not isinstance(self.bandwidth, str):
            width = _validate.positive(self.bandwidth, "bandwidth", "it is in units of the cube, 0.05 for a twentieth")
            if width < least:
                warn(
                    f"bandwidth={width:.3g} of the cube is finer than its nodes, so that distances are not those of densities; "
                    f"use {least:.2g} or more, n_nodes={int(np.ceil(SPACING / width))}, or marginals=True",
                )
            return np.full(self.n_features_in_, width)
        _validate.one_of(self.bandwidth, "bandwidth", ("scott",))
        variances = [variance_of(bag) for bag in bags]
        spread = np.sqrt(np.maximum(np.mean(variances, axis=0), 0.0)) / self.cube_.width
        rate = np.mean(counts) ** (-1 / (together + 4))
        spread[spread <= ROUNDING] = 0.1  # a column without spread within bags; any bandwidth tells as much
        return np.maximum(spread * rate, least)

    def _frequencies(self, rng: np.random.Generator) -> DistanceFrequencies | None:
        distance = _validate.one_of(self.distance, "distance", DISTANCES)
        count = _validate.whole(self.n_frequencies, "n_frequencies", 1)
        if distance == "l2":
            return None
        if self.frequencies == "random":
            return drawn(distance, count, rng)
        if count > MOST_PLACED:
            raise ValueError(f"n_frequencies must be at most {MOST_PLACED}, got {count}; use frequencies='random' for more")
        return placed(distance, count)

    def _views(self, rng: np.random.Generator) -> tuple[DensityView, ...]:
        d, narrow = self.n_features_in_, self.bandwidth_
        if self.marginals:
            return tuple(self._view(slice(k, k + 1), narrow[k : k + 1], rng) for k in range(d))
        if d > MOST_DIMENSION:
            raise ValueError(
                f"bags must have at most {MOST_DIMENSION} columns for densities of all together, got {d}; use marginals=True, or "
                "choose columns"
            )
        return (self._view(slice(0, d), narrow, rng),)

    def _view(self, columns: slice, bandwidth: Array, rng: np.random.Generator) -> DensityView:
        n_basis = _validate.whole(self.n_basis, "n_basis", 1)
        least = float(bandwidth.min())
        nodes = nodes_for(len(bandwidth), n_basis, self.basis, self.integration, self.n_nodes, least, rng)
        return DensityView(columns, nodes, bandwidth)

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

        For densities p and q that satisfy the assumptions, |exp(−d²(p, q)/(2σ²)) − z(p̂)·z(q̂)| is at most ``total`` with probability
        ``confidence`` or more, where z(p̂) and z(q̂) are the rows that ``transform`` returns for a bag drawn from each. The
        probability is over the points of the two bags and the random Fourier features.

        Assumptions: the two densities are positive on the cube and zero outside of it; they satisfy ``lower``, ``upper``,
        ``gradient`` and ``curvature``; the points of a bag are independent draws without weights; and the cube, the bandwidth and
        the kernel width do not depend on the two bags, so they are fitted to other bags or given. With ``basis="fourier"`` the
        densities must be periodic, and with ``curvature`` their gradient too.

        All bounds are in units of the cube: coordinates are (x − cube_.low)/cube_.width, and a density of x is multiplied by the
        volume of the box.

        Parameters
        ----------
        n_samples : int or (int, int)
            Points of the two bags.
        lower, upper : float
            lower ≤ p(x) ≤ upper everywhere on the cube; 0 < lower ≤ 1 ≤ upper.
        gradient : float
            Largest length of the gradient of p and q.
        curvature : float, optional
            Largest absolute eigenvalue of the second derivatives of p and q. Without it only ``gradient`` is used, and the bound is
            larger.
        confidence : float
            Probability of the bound, half of 1 − confidence for the density estimates and half for the random features.

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

    @property
    def _length(self) -> int:
        return self._projection.length

    @property
    def _length_told(self) -> tuple[str, str]:
        return f"{self._projection.functions} functions, {self.basis!r} basis", "marginals=True, smaller n_basis"

    def _fill(self, bags: list[WeightedBag], first: int, last: int, out: Array) -> None:
        out[:] = self._projection.of(bags[first:last])


def variance_of(bag: WeightedBag) -> Array:
    """(d,) of the columns of a bag, whose points may have shares."""
    points, shares = bag.points, bag.shares
    if shares is None:
        return points.var(axis=0, dtype=np.float64)
    return np.asarray(shares @ (points - shares @ points) ** 2)


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
