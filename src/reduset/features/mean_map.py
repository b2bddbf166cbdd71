"""MeanMapFeatures: the maximum mean discrepancy (MMD) of bags, by two sets of random Fourier features (Sutherland et al. 2016).

    z̄(p) = 1/n Σᵢ z(xᵢ),   ‖z̄(p) − z̄(q)‖ ≈ MMD(p, q),   exp(−MMD²(p, q)/(2σ²)) ≈ z'(z̄(p))·z'(z̄(q))

The kernel is due to Muandet et al. 2012. The features z approximate the Gaussian exp(−‖x − y‖²/(2h²)) between points. The features
z' approximate the Gaussian of width σ between the means z̄. A bag costs O(n·d·C + C·D) for C point components and D components. The
memory holds the result and one block per thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reduset import _validate
from reduset._engine import Frame, fourier_sums, single_threaded_blas
from reduset._types import Array, BandwidthLike
from reduset._validate import seeded
from reduset.cohort import pool
from reduset.features.embedding import Embedding, VectorLength, even_count, unit_frequencies
from reduset.features.merging import WeightedBag
from reduset.kernels import Gaussian

LARGE_BAG = 1 << 17  # Points. All threads work together on larger bags.


@seeded
@dataclass(eq=False, repr=False, kw_only=True)
class MeanMapFeatures(Embedding):
    """Features of bags for linear models. Their inner products approximate a Gaussian kernel of the maximum mean discrepancy.

    Parameters
    ----------
    n_point_components : int
        Number of random Fourier features of the points, an even number.
    bandwidth : float or name of a rule of `reduset.bandwidth`
        Bandwidth h of the Gaussian between points. A rule uses the points of all bags, or a sample of each bag. Each bag has the
        same weight.
    output : "features" or "distance"
        "distance" returns the mean vectors, (N, n_point_components). Their Euclidean distances approximate the MMD.
    orthogonal : bool
        Whether both sets of random Fourier features are orthogonal.
    n_components, kernel_width, group, n_jobs, progress, random_state
        As in `DensityFeatures`.

    Attributes
    ----------
    bandwidth_ : float
    kernel_width_ : float
        Width of the Gaussian kernel. It is NaN for ``output="distance"``.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from reduset.features import MeanMapFeatures
    >>> rng = np.random.default_rng(0)
    >>> spread = rng.uniform(0.5, 2.0, size=200)
    >>> bags = [rng.normal(0, s, size=(100, 2)) for s in spread]
    >>> model = make_pipeline(MeanMapFeatures(200, 200, random_state=0), Ridge(0.01)).fit(bags[:150], spread[:150])
    >>> bool(model.score(bags[150:], spread[150:]) > 0.9)
    True
    """

    n_components: int = field(default=1000, kw_only=False)
    n_point_components: int = field(default=1000, kw_only=False)
    bandwidth: BandwidthLike = "median"

    def _learn(self, bags: list[WeightedBag], counts: list[int], rng: np.random.Generator) -> VectorLength:
        kernel = Gaussian(self.bandwidth)
        count = even_count(self.n_point_components, "n_point_components")
        pooled = pool([bag.points for bag in bags], Gaussian(1.0), rng)
        self.bandwidth_ = kernel.resolve(pooled.atoms, pooled.weights).width
        self._frame = Frame.around(pooled.atoms, 1 / self.bandwidth_)
        orthogonal = _validate.flag(self.orthogonal, "orthogonal")
        with single_threaded_blas():  # Threads would slow down many small factorisations.
            self._point_frequencies = np.ascontiguousarray(unit_frequencies(self.n_features_in_, count // 2, orthogonal, rng).T)
        return VectorLength(count, f"{count} random features of points", "smaller n_point_components")

    def _vectors_of(self, bags: list[WeightedBag]) -> Array:
        return np.stack([mean_feature(bag, self._frame, self._point_frequencies) for bag in bags])


def mean_feature(bag: WeightedBag, frame: Frame, frequencies: Array) -> Array:
    """(2s,) mean random Fourier features, sines then cosines, for (s, d) frequencies in the frame's coordinates."""
    weights = np.broadcast_to(1 / len(bag), len(bag)) if bag.weights is None else bag.weights
    sums = fourier_sums(bag.points, weights, frequencies, frame, in_turn=len(bag) < LARGE_BAG)[:, 0]
    return np.concatenate([sums.imag, sums.real]) / np.sqrt(len(frequencies))
