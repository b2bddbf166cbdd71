"""A class with the interface of scipy.stats.gaussian_kde that uses a KernelMean, for SciPy's own tests (`peer_suites`).

As in SciPy, points are columns. Nothing is compressed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset import Gaussian, KernelMean, Mixture


class gaussian_kde:  # SciPy's name
    """SciPy's signature with arrays (d, n), and the sums of this library."""

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        self.dataset = np.atleast_2d(np.asarray(dataset))
        if self.dataset.size <= 1:
            raise ValueError("`dataset` input should have multiple elements.")
        self.d, self.n = self.dataset.shape
        if weights is not None:
            weights = np.atleast_1d(weights).astype(float)
            if weights.ndim != 1 or len(weights) != self.n:
                raise ValueError("`weights` input should be of length n")
            self._weights = weights / weights.sum()
        if self.d > self.n:
            raise ValueError("Number of dimensions is greater than number of samples; perhaps X.T was meant")
        self.set_bandwidth(bw_method)

    @property
    def weights(self) -> np.ndarray:
        if not hasattr(self, "_weights"):
            self._weights = np.full(self.n, 1 / self.n)
        return self._weights

    @property
    def neff(self) -> float:
        return float(1 / np.square(self.weights).sum())

    def scotts_factor(self) -> float:
        return float(self.neff ** (-1 / (self.d + 4)))

    def silverman_factor(self) -> float:
        return float((self.neff * (self.d + 2) / 4) ** (-1 / (self.d + 4)))

    covariance_factor = scotts_factor

    def set_bandwidth(self, bw_method: Any = None) -> None:
        if bw_method is None:
            pass
        elif isinstance(bw_method, str):
            if bw_method not in ("scott", "silverman"):
                raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar or a callable.")
            self.covariance_factor = self.scotts_factor if bw_method == "scott" else self.silverman_factor
        elif np.isscalar(bw_method):
            self.covariance_factor = lambda: bw_method
        elif callable(bw_method):
            self.covariance_factor = lambda: bw_method(self)
        else:
            raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar or a callable.")
        self._compute_covariance()

    def _compute_covariance(self) -> None:
        self.factor = float(self.covariance_factor())
        if not hasattr(self, "_data_covariance"):
            self._data_covariance = np.atleast_2d(np.cov(self.dataset, rowvar=True, bias=False, aweights=self.weights))
            try:
                np.linalg.cholesky(np.asarray(self._data_covariance, float))
            except np.linalg.LinAlgError as error:
                raise np.linalg.LinAlgError("The data appears to lie in a lower-dimensional subspace of its space.") from error
        self.covariance = self._data_covariance * self.factor**2

    @property
    def inv_cov(self) -> np.ndarray:
        return np.linalg.inv(self.covariance)

    @property
    def mean(self) -> KernelMean:
        kernel = Gaussian(1.0, covariance=np.asarray(self.covariance, float), normalized=True, space="l2")
        return KernelMean(self.dataset.T, self.weights, kernel)

    def _rows(self, points: Any) -> np.ndarray:
        points = np.atleast_2d(np.asarray(points))
        if points.shape[0] != self.d:
            if points.shape[0] == 1 and points.shape[1] == self.d:
                return points
            raise ValueError(f"points have dimension {points.shape[0]}, dataset has dimension {self.d}")
        return points.T

    def _typed(self, values: np.ndarray, points: Any) -> np.ndarray:
        return values.astype(np.result_type(np.asarray(self.covariance), np.asarray(points)), copy=False)

    def evaluate(self, points: Any) -> np.ndarray:
        return self._typed(self.mean(self._rows(points), "double"), points)

    __call__ = pdf = evaluate

    def logpdf(self, points: Any) -> np.ndarray:
        return self._typed(self.mean.log_density(self._rows(points), "double"), points)

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None, *, rng: Any = None) -> float:
        return float(self.mean.integrate_box(np.ravel(low_bounds), np.ravel(high_bounds)))

    def integrate_box_1d(self, low: float, high: float) -> float:
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        return float(self.mean.integrate_box(low, high))

    def integrate_kde(self, other: gaussian_kde) -> float:
        return Mixture.from_mean(self.mean).inner(Mixture.from_mean(other.mean))

    def integrate_gaussian(self, mean: Any, cov: Any) -> float:
        mean, cov = np.atleast_1d(np.squeeze(mean)), np.atleast_2d(cov)
        if mean.shape != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}")
        if cov.shape != (self.d, self.d):
            raise ValueError(f"covariance does not have dimension {self.d}")
        return Mixture.from_mean(self.mean).inner(Mixture([1.0], mean[None], cov[None]))

    def resample(self, size: int | None = None, seed: Any = None) -> np.ndarray:
        rng = np.random.default_rng(seed.randint(2**31) if isinstance(seed, np.random.RandomState) else seed)
        return self.mean.sample(int(self.neff) if size is None else int(size), rng).T

    def marginal(self, dimensions: Any) -> gaussian_kde:
        asked = np.atleast_1d(dimensions)
        if not np.issubdtype(asked.dtype, np.integer):
            raise ValueError("Elements of `dimensions` must be integers - the numbers of columns.")
        if len(np.unique(asked)) != len(asked):
            raise ValueError("All elements of `dimensions` must be unique.")
        bad = (asked < -self.d) | (asked >= self.d)
        if bad.any():
            raise ValueError(f"Dimensions {asked[bad]} are invalid for a distribution in {self.d} dimensions.")
        return gaussian_kde(self.dataset[asked % self.d], bw_method=self.covariance_factor(), weights=self.weights)
