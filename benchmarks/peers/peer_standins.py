"""Our estimators with the names and signatures of peers, for the peers' own tests (`peer_suites`).

Parameters that both have are passed on. Parameters without an effect on ours (threads, copies, iterations of an eigensolver) are
stored. Values without a counterpart raise ``NotOffered``. Defaults are ours, except for ``reduce``: the tests require exact values,
so every row is an atom.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset.density import SparseKernelDensity
from reduset.modes import SparseMeanShift
from reduset.spectral import Nystroem as OurNystroem
from reduset.spectral import ReducedKernelPCA, ReducedLaplacianEigenmap, ReducedSpectralClustering


class NotOffered(ValueError):
    """The test requires what ours does not offer."""


def reject(what: str, asked: bool) -> None:
    if asked:
        raise NotOffered(what)


class KernelPCA(ReducedKernelPCA):
    def __init__(
        self, n_components=None, *, kernel="rbf", gamma=None, degree=3, coef0=1, kernel_params=None, alpha=1.0,
        fit_inverse_transform=False, eigen_solver="auto", tol=0, max_iter=None, iterated_power="auto", remove_zero_eig=False,
        random_state=None, copy_X=True, n_jobs=None,
    ) -> None:  # fmt: skip
        super().__init__(
            n_components, kernel=kernel, gamma=gamma, alpha=alpha, fit_inverse_transform=fit_inverse_transform, reduce=None,
            eigen_solver=eigen_solver, remove_zero_eig=remove_zero_eig, kernel_params=kernel_params, random_state=random_state,
        )  # fmt: skip
        self.degree, self.coef0, self.copy_X, self.n_jobs = degree, coef0, copy_X, n_jobs
        self.tol, self.max_iter, self.iterated_power = tol, max_iter, iterated_power

    def fit(self, X: Any, y: Any = None) -> Any:
        gamma = self.gamma
        if self.kernel not in ("rbf", "laplacian"):
            self.gamma = None  # scikit-learn ignores it there
        try:
            return super().fit(X, y)
        finally:
            self.gamma = gamma


class SpectralEmbedding(ReducedLaplacianEigenmap):
    def __init__(
        self, n_components=2, *, affinity="rbf", gamma=None, random_state=None, eigen_solver="auto", eigen_tol="auto",
        n_neighbors=None, n_jobs=None,
    ) -> None:  # fmt: skip
        super().__init__(n_components, gamma=gamma, reduce=None, random_state=random_state)
        self.affinity, self.eigen_solver, self.eigen_tol = affinity, eigen_solver, eigen_tol
        self.n_neighbors, self.n_jobs = n_neighbors, n_jobs

    def fit(self, X: Any, y: Any = None) -> Any:
        asked, gamma, solver = self.affinity, self.gamma, self.eigen_solver
        reject(f"eigen_solver={solver}", solver in ("amg", "lobpcg"))
        self.kernel, self.eigen_solver = asked, "auto" if solver in (None, "arpack") else solver
        self.gamma = gamma if asked in ("rbf", "laplacian") else None
        try:
            return super().fit(X, y)
        finally:
            self.gamma, self.eigen_solver = gamma, solver


class SpectralClustering(ReducedSpectralClustering):
    def __init__(
        self, n_clusters=8, *, eigen_solver=None, n_components=None, random_state=None, n_init=10, gamma=1.0, affinity="rbf",
        n_neighbors=10, eigen_tol="auto", assign_labels="kmeans", degree=3, coef0=1, kernel_params=None, n_jobs=None, verbose=False,
    ) -> None:  # fmt: skip
        super().__init__(
            n_clusters, n_components=n_components, random_state=random_state, n_init=n_init, gamma=gamma, reduce=None,
            eigen_solver=eigen_solver, assign_labels=assign_labels, kernel_params=kernel_params, verbose=verbose,
        )  # fmt: skip
        self.affinity, self.n_neighbors, self.eigen_tol = affinity, n_neighbors, eigen_tol
        self.degree, self.coef0, self.n_jobs = degree, coef0, n_jobs

    def fit(self, X: Any, y: Any = None) -> Any:
        asked, gamma, solver, count = self.affinity, self.gamma, self.eigen_solver, self.n_components
        reject(f"eigen_solver={solver}", solver in ("amg", "lobpcg"))
        self.n_components = None if count is None else max(count - 1, 1)  # ours does not count the constant component
        self.kernel, self.eigen_solver = asked, "auto" if solver is None else solver
        self.gamma = gamma if asked in ("rbf", "laplacian") else None
        try:
            return super().fit(X, y)
        finally:
            self.gamma, self.eigen_solver, self.n_components = gamma, solver, count


class Nystroem(OurNystroem):
    def __init__(
        self, kernel="rbf", *, gamma=None, coef0=None, degree=None, kernel_params=None, n_components=100, random_state=None,
        n_jobs=None,
    ) -> None:  # fmt: skip
        super().__init__(kernel, gamma=gamma, n_components=n_components, kernel_params=kernel_params, random_state=random_state)
        self.coef0, self.degree, self.n_jobs = coef0, degree, n_jobs


class MeanShift(SparseMeanShift):
    def __init__(
        self, *, bandwidth=None, seeds=None, bin_seeding=False, min_bin_freq=1, cluster_all=True, n_jobs=None, max_iter=300
    ) -> None:
        super().__init__(bandwidth=bandwidth, cluster_all=cluster_all, max_iter=max_iter, random_state=0)
        self.seeds, self.bin_seeding, self.min_bin_freq, self.n_jobs = seeds, bin_seeding, min_bin_freq, n_jobs

    def fit(self, X: Any, y: Any = None) -> Any:
        reject("seeds", self.seeds is not None)
        radius = self.bandwidth
        # a flat kernel of this radius corresponds to a Gaussian with half of it
        self.bandwidth = radius / 2 if isinstance(radius, int | float) and radius > 0 else radius
        try:
            return super().fit(X, y)
        finally:
            self.bandwidth = radius


class KernelDensity(SparseKernelDensity):
    def __init__(
        self, *, bandwidth=1.0, algorithm="auto", kernel="gaussian", metric="euclidean", atol=0, rtol=0, breadth_first=True,
        leaf_size=40, metric_params=None,
    ) -> None:  # fmt: skip
        super().__init__(bandwidth=bandwidth, kernel=kernel, metric=metric, random_state=0)
        self.algorithm, self.atol, self.rtol, self.breadth_first = algorithm, atol, rtol, breadth_first
        self.leaf_size, self.metric_params = leaf_size, metric_params

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        reject(f"metric_params={self.metric_params}", bool(self.metric_params))
        self.size = len(X) if np.ndim(X) == 2 else None
        try:
            return super().fit(X, y, sample_weight=sample_weight)
        finally:
            self.size = None
