"""Spectral clustering on few weighted atoms: the normalised cut (Shi & Malik 2000), with labels for any point.

The cut of least conductance is relaxed to the slowest eigenfunctions of the walk on the atoms; k-means there, each atom with its
stationary share, rounds it to clusters (the normalised cut is a weighted k-means). O(m²) an eigenfunction, O(m) a row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin
from sklearn.cluster import KMeans

from reduset import _validate
from reduset._types import Array, PointsLike, WeightsLike
from reduset.spectral.base import EigenEstimator
from reduset.spectral.graph import random_walk

DEFAULT = 8  # clusters, as in scikit-learn


@dataclass(eq=False, repr=False, kw_only=True)
class ReducedSpectralClustering(ClusterMixin, EigenEstimator):
    """Clusters by the normalised cut of weighted atoms: in place of `sklearn.cluster.SpectralClustering`, with `predict`.

    Parameters
    ----------
    n_clusters : int, optional
        If not given as many as ``n_components``, or 8.
    n_components : int, optional
        Eigenfunctions to look at beside the constant one; n_clusters − 1 if not given.
    n_init : int
        Starts of k-means.
    kernel, gamma, reduce, ell, size, weights, eigen_solver, random_state : as of `ReducedKernelPCA`

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
    >>> from reduset import Gaussian
    >>> from reduset.spectral import ReducedSpectralClustering
    >>> X, y = make_moons(2000, noise=0.05, random_state=0)
    >>> cut = ReducedSpectralClustering(2, kernel=Gaussian(0.1), random_state=0).fit(X)
    >>> bool(abs(np.mean(cut.predict(X) == y) - 0.5) > 0.49)
    True
    """

    n_clusters: int | None = field(default=None, kw_only=False)
    n_components: int | None = None
    n_init: int = 10

    def fit(self, X: PointsLike, y: Any = None, sample_weight: WeightsLike = None) -> Self:
        """Choose the atoms and cut them; a sample weight of 3 is a row three times."""
        X = self._rows(X, reset=True)
        wanted = DEFAULT if self.n_components is None else self.n_components
        wanted = _validate.whole(wanted if self.n_clusters is None else self.n_clusters, "n_clusters", 1)
        starts = _validate.whole(self.n_init, "n_init", 1)
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
        seed = int(_validate.generator(self.random_state, "random_state").integers(2**31))
        rounded = KMeans(wanted, n_init=starts, random_state=seed)
        rounded.fit(self._steps.functions, sample_weight=self._steps.stationary * found.size)
        self.atom_labels_ = rounded.labels_
        self._centres: Array = rounded.cluster_centers_
        self.labels_ = self._labels(X)
        return self

    def _labels(self, X: PointsLike) -> NDArray[np.int64]:
        at = self._steps.at(self._reduced, X)
        gaps = (self._centres**2).sum(axis=1) - 2 * at @ self._centres.T
        return np.argmin(gaps, axis=1)

    def predict(self, X: PointsLike) -> NDArray[np.int64]:
        """(q,) labels: of the cluster whose centre is nearest among the eigenfunctions."""
        X = self._rows(X)
        return self._labels(X)
