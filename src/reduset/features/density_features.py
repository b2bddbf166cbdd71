"""DensityFeatures: bags in, rows for linear models out (Sutherland, Oliva, Póczos & Schneider 2016). Validates, calls, stores.

Ridge regression or a linear SVM on the rows learns with the kernel exp(−d²/(2σ²)) of a distance d between densities, in time linear
in the number of bags.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from reduset import _validate
from reduset._types import Array, Floats
from reduset.features import basis
from reduset.features.base import counts_of
from reduset.features.cube import OUTSIDE, CubeScaler
from reduset.features.embedding import OUTPUTS, Embedding
from reduset.features.homogeneous_distances import DISTANCES, MOST_PLACED, DistanceFrequencies, drawn, placed
from reduset.features.merging import WeightedBag
from reduset.features.nodes import INTEGRATION, SPACING, finest, nodes_for
from reduset.features.projection import DensityView, Projection

FREQUENCIES = ("placed", "random")
ROUNDING = 1e-12  # of the cube: what a constant column's spread may come out as


class DensityFeatures(Embedding):
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
    frequencies : "placed" or "random"
        Where they approximate the distance best; or drawn, as in the paper.
    basis : "cosine", "fourier" or "values"
        Of the functions on the cube; "values" has none, and takes the values at all nodes: longer vectors, nothing cut off.
    integration : "auto", "grid", "sobol" or "uniform"
        "auto" takes a tensor Gauss–Legendre grid up to three columns and Sobol points above; "uniform" draws, as in the paper.
    n_nodes : int, optional
        Nodes an axis of a grid, of all elsewhere; by the bandwidth, or 8192, if not given.
    tol : float or None
        What a bag of 10,000 points or more in over three columns may lose where its points are merged into cells first: the error
        of its density, relative and measured at some points. None never merges.
    orthogonal : bool
        Whether the random Fourier features are orthogonal.
    margin : float
        How much wider than the training points the cube is, on every side, as a share of their range.
    outside : "clip" or "refuse"
        What to do with later points that lie outside of the cube.
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

    def __init__(
        self,
        distance: str = "js",
        *,
        n_components: int = 1000,
        n_frequencies: int = 5,
        n_basis: int = 10,
        bandwidth: Any = "scott",
        kernel_width: Any = "median",
        output: str = "features",
        marginals: bool = False,
        frequencies: str = "placed",
        basis: str = "cosine",
        integration: str = "auto",
        n_nodes: int | None = None,
        tol: float | None = 0.05,
        orthogonal: bool = True,
        margin: float = 0.05,
        outside: str = "clip",
        group: Any = None,
        n_jobs: int | None = None,
        progress: Any = False,
        random_state: Any = None,
    ) -> None:
        self.distance = distance
        self.n_components = n_components
        self.n_frequencies = n_frequencies
        self.n_basis = n_basis
        self.bandwidth = bandwidth
        self.kernel_width = kernel_width
        self.output = output
        self.marginals = marginals
        self.frequencies = frequencies
        self.basis = basis
        self.integration = integration
        self.n_nodes = n_nodes
        self.tol = tol
        self.orthogonal = orthogonal
        self.margin = margin
        self.outside = outside
        self.group = group
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    def fit(self, bags: Any, y: Any = None) -> DensityFeatures:
        """Learn the cube, the bandwidth and the width of the kernel, and draw the features.

        Parameters
        ----------
        bags : list of (n, d) arrays, or what else `BagTransformer` says
        y : ignored
        """
        _validate.one_of(self.output, "output", OUTPUTS)
        _validate.one_of(self.outside, "outside", OUTSIDE)
        rng = _validate.generator(self.random_state, "random_state")
        self._threads()  # names a bad n_jobs before anything is computed
        names, parts, shares = self._weighted(bags, reset=True)
        self.cube_ = CubeScaler.around(parts, _validate.at_least(self.margin, "margin", 0.0))
        self.bandwidth_ = self._bandwidths(parts, shares, counts_of(bags, parts))
        self.frequencies_ = self._frequencies(rng)
        self.views_ = self._views(rng)
        tol = None if self.tol is None else _validate.positive(self.tol, "tol", "None never merges points")
        self._projection = Projection(self.views_, self.distance, self.frequencies_, tol)
        what, way_out = f"{self._projection.functions} functions, {self.basis!r} basis", "marginals=True, smaller n_basis"
        self._draw_kernel(names, parts, shares, rng, what, way_out)
        return self

    def _bandwidths(self, parts: list[Floats], shares: list[Array | None], counts: list[int]) -> Array:
        """(d,) in units of the cube: the mean spread within bags, times that power of their mean size that Scott's rule has."""
        together = 1 if _validate.flag(self.marginals, "marginals") else self.n_features_in_
        way = _validate.one_of(self.integration, "integration", INTEGRATION)
        least = finest(together, way, self._n_nodes())
        if not isinstance(self.bandwidth, str):
            width = _validate.positive(self.bandwidth, "bandwidth", "it is in units of the cube, 0.05 for a twentieth")
            if width < least:
                warnings.warn(
                    f"bandwidth={width:.3g} of the cube is finer than its nodes, so that distances are not those of densities; "
                    f"use {least:.2g} or more, n_nodes={int(np.ceil(SPACING / width))}, or marginals=True",
                    UserWarning,
                    stacklevel=3,
                )
            return np.full(self.n_features_in_, width)
        _validate.one_of(self.bandwidth, "bandwidth", ("scott",))
        variances = [variance_of(part, own) for part, own in zip(parts, shares, strict=True)]
        spread = np.sqrt(np.maximum(np.mean(variances, axis=0), 0.0)) / self.cube_.width
        rate = np.mean(counts) ** (-1 / (together + 4))
        spread[spread <= ROUNDING] = 0.1  # a column without spread within bags; any bandwidth tells as much
        return np.maximum(spread * rate, least)

    def _n_nodes(self) -> int | None:
        return None if self.n_nodes is None else _validate.whole(self.n_nodes, "n_nodes", 2)

    def _frequencies(self, rng: np.random.Generator) -> DistanceFrequencies | None:
        distance = _validate.one_of(self.distance, "distance", DISTANCES)
        way = _validate.one_of(self.frequencies, "frequencies", FREQUENCIES)
        count = _validate.whole(self.n_frequencies, "n_frequencies", 1)
        if distance == "l2":
            return None
        if way == "random":
            return drawn(distance, count, rng)
        if count > MOST_PLACED:
            raise ValueError(f"n_frequencies must be at most {MOST_PLACED}, got {count}; use frequencies='random' for more")
        return placed(distance, count)

    def _views(self, rng: np.random.Generator) -> tuple[DensityView, ...]:
        kind = _validate.one_of(self.basis, "basis", basis.BASES)
        way = _validate.one_of(self.integration, "integration", INTEGRATION)
        n_basis = _validate.whole(self.n_basis, "n_basis", 1)
        n_nodes = self._n_nodes()
        d, narrow = self.n_features_in_, self.bandwidth_
        if _validate.flag(self.marginals, "marginals"):
            return tuple(
                DensityView(slice(k, k + 1), nodes_for(1, n_basis, kind, way, n_nodes, float(narrow[k]), rng), narrow[k : k + 1])
                for k in range(d)
            )
        if d > basis.MOST_DIMENSION:
            raise ValueError(
                f"bags must have at most {basis.MOST_DIMENSION} columns for densities of all together, got {d}; use "
                "marginals=True, or choose columns"
            )
        return (DensityView(slice(0, d), nodes_for(d, n_basis, kind, way, n_nodes, float(narrow.min()), rng), narrow),)

    @property
    def _length(self) -> int:
        return self._projection.length

    def _ready(self, names: list[Any], parts: list[Floats], shares: list[Array | None]) -> list[WeightedBag]:
        inside = self.cube_.coordinates(parts, self.outside, names)
        return [WeightedBag(points, own) for points, own in zip(inside, shares, strict=True)]

    def _fill(self, bags: list[WeightedBag], first: int, last: int, out: Array) -> None:
        out[:] = self._projection.of(bags[first:last])


def variance_of(points: Floats, shares: Array | None) -> Array:
    """(d,) of the columns of a bag, whose points may have shares."""
    if shares is None:
        return points.var(axis=0, dtype=np.float64)
    return np.asarray(shares @ (points - shares @ points) ** 2)
