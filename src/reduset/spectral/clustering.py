"""Spectral clustering on few weighted atoms: the normalised cut (Shi & Malik 2000), with labels for any point.

The cut of least conductance is relaxed to the slowest eigenfunctions of the walk on the atoms, which `rounding` makes clusters of.
O(m²) an eigenfunction, O(m) a row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin

from reduset import _validate
from reduset._types import PointsLike, WeightsLike
from reduset._validate import seeded
from reduset.kernels import Gaussian, Kernel
from reduset.spectral.base import EigenEstimator
from reduset.spectral.graph import random_walk
from reduset.spectral.graph_bandwidth import graph_bandwidth
from reduset.spectral.reduction import WeightedAtoms
from reduset.spectral.rounding import Rounding, by_indicators, by_kmeans, by_pivots

DEFAULT = 8  # clusters, as in scikit-learn
MAX_ATOMS = 2000  # of the default kernel
ROUNDINGS = ("cluster_qr", "discretize", "kmeans")


@seeded
@dataclass(eq=False, repr=False, kw_only=True)
class ReducedSpectralClustering(ClusterMixin, EigenEstimator):
    """Clusters by the normalised cut of weighted atoms: in place of `sklearn.cluster.SpectralClustering`, with `predict`.

    Parameters
    ----------
    n_clusters : int, optional
        If not given as many as ``n_components``, or 8.
    n_components : int, optional
        Eigenfunctions to look at beside the constant one; n_clusters − 1 if not given.
    assign_labels : "kmeans", "discretize" or "cluster_qr"
        How eigenfunctions become clusters, as in scikit-learn: by k-means; by turning them onto indicators (Yu & Shi 2003); by QR
        with pivoting (Damle, Minden & Ying 2019), which draws nothing. The last two look at n_clusters − 1 functions.
    n_init : int
        Starts of "kmeans" and of "discretize", of which the best is taken.
    verbose : bool or int
        Whether to print what is being done, and what k-means does.
    kernel : Kernel, function, name or None
        None is a Gaussian whose bandwidth follows from the distances of rows to their 7th neighbours in a sample of 1,000 rows,
        and at most 2,000 atoms unless ``size`` is given.
    gamma, kernel_params, reduce, ell, size, weights, eigen_solver, random_state : as of `ReducedKernelPCA`

    Attributes
    ----------
    labels_ : (n,)
    atom_labels_ : (m,)
    eigenvalues_ : (k,)
        Of the walk, without the first, which is 1; a gap after the first n_clusters − 1 speaks for that number.
    parts_ : (m,)
        The part of the graph that each atom belongs to; a `DisconnectedWarning` tells where there are more than clusters.
    atoms_, weights_, indices_, kernel_ : as of `ReducedKernelPCA`

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from reduset.spectral import ReducedSpectralClustering
    >>> X, y = make_moons(2000, noise=0.05, random_state=0)
    >>> cut = ReducedSpectralClustering(2, random_state=0).fit(X)
    >>> bool(abs(np.mean(cut.predict(X) == y) - 0.5) > 0.49)
    True
    """

    n_clusters: int | None = field(default=None, kw_only=False)
    n_components: int | None = None
    assign_labels: str = "kmeans"
    n_init: int = 10
    verbose: bool | int = False

    def fit(self, X: PointsLike, y: Any = None, sample_weight: WeightsLike = None) -> Self:
        """Choose the atoms and cut them; a sample weight of 3 is a row three times."""
        X = self._rows(X, reset=True)
        wanted = DEFAULT if self.n_components is None else self.n_components
        wanted = _validate.whole(wanted if self.n_clusters is None else self.n_clusters, "n_clusters", 1)
        self._require_countable(wanted)
        found = self._weighted_atoms(X, sample_weight)
        self._count(found, "n_clusters", wanted)
        if wanted > found.size:
            raise ValueError(
                f"n_clusters must be at most the number of atoms, {found.size} for {found.n_samples} rows, got {wanted}; raise ell "
                "or size, or use reduce=None"
            )
        count = max(wanted - 1, 1)
        if self.n_components is not None:
            count = self._count(found, "n_components", self.n_components, spare=1)
        self._steps = random_walk(found, count, 0.0, self.eigen_solver)
        self.eigenvalues_, self.parts_ = self._steps.eigenvalues, self._steps.parts
        if wanted > 1:
            self._tell_of_parts(wanted, f"which of them share one of the {wanted} clusters is arbitrary")
        if self.n_components is not None:
            self._tell_of_zeros(self.eigenvalues_)
        self._rounding = self._rounded(found, wanted)
        self.atom_labels_ = self._rounding.labels(self._steps.functions)
        self.labels_ = self._labels(X)
        return self

    def _default_kernel(self, X: PointsLike, sample_weight: WeightsLike) -> Kernel:
        """A Gaussian of the bandwidth of `graph_bandwidth`; of the median bandwidth where all rows are equal."""
        width = graph_bandwidth(X, sample_weight)
        return super()._default_kernel(X, sample_weight) if width is None else Gaussian(width)

    def _weighted_atoms(self, X: PointsLike, sample_weight: WeightsLike = None) -> WeightedAtoms:
        """The atoms, at most ``MAX_ATOMS`` where neither kernel nor size is given: a narrow bandwidth would keep most rows."""
        size = self.size
        if self.kernel is None and size is None and isinstance(self.reduce, str) and self.reduce == "shadow":
            size = MAX_ATOMS
        return self._reduce(X, sample_weight, size, self.weights)

    def _require_countable(self, wanted: int) -> None:
        """Functions beside the constant one as many as a way to round them bears."""
        way = _validate.one_of(self.assign_labels, "assign_labels", ROUNDINGS)
        if way != "kmeans" and self.n_components is not None and self.n_components != wanted - 1:
            raise ValueError(
                f"assign_labels={way!r} makes {wanted} clusters from n_components={wanted - 1} functions beside the constant one, "
                f"got {self.n_components!r}; leave n_components out, or use assign_labels='kmeans'"
            )

    def _rounded(self, found: WeightedAtoms, wanted: int) -> Rounding:
        starts = _validate.whole(self.n_init, "n_init", 1)
        verbose = int(self.verbose) if isinstance(self.verbose, bool) else _validate.whole(self.verbose, "verbose", 0)
        rng = _validate.generator(self.random_state, "random_state")
        if verbose:
            print(f"Computing label assignment using {self.assign_labels}")  # in scikit-learn's words
        if self.assign_labels == "cluster_qr":
            return by_pivots(self._steps, wanted)
        if self.assign_labels == "discretize":
            return by_indicators(self._steps, found.masses, wanted, starts, rng)
        return by_kmeans(self._steps, wanted, starts, int(rng.integers(2**31)), verbose)

    def _labels(self, X: PointsLike) -> NDArray[np.int64]:
        return self._rounding.labels(self._steps.at(self._reduced, X))

    def predict(self, X: PointsLike) -> NDArray[np.int64]:
        """(q,) labels: what the eigenfunctions of each row are rounded to, as those of the atoms were."""
        X = self._rows(X)
        return self._labels(X)
