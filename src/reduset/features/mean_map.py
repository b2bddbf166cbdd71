"""MeanMapFeatures: the maximum mean discrepancy (MMD) of bags, by random Fourier features twice (Sutherland et al. 2016).

    z̄(p) = 1/n Σᵢ z(xᵢ),   ‖z̄(p) − z̄(q)‖ ≈ MMD(p, q),   exp(−MMD²(p, q)/(2σ²)) ≈ z'(z̄(p))·z'(z̄(q))

The kernel is that of Muandet et al. 2012. z are the features of the Gaussian exp(−‖x − y‖²/(2h²)) between points, z' those of the
Gaussian of width σ between the means z̄. O(n·d·C + C·D) a bag for C point components and D components; memory is that of the
result and of one block a thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset import _validate
from reduset._engine import Frame, single_threaded_blas, wave_sums
from reduset._types import Array, Floats
from reduset.cohort.shared import pool
from reduset.features.embedding import OUTPUTS, Embedding
from reduset.features.merging import Bag
from reduset.features.waves import directions
from reduset.kernels import Gaussian

LARGE_BAG = 1 << 17  # points, from which on all threads share a bag


class MeanMapFeatures(Embedding):
    """Features of bags whose inner products are a Gaussian kernel of their maximum mean discrepancy.

    Parameters
    ----------
    n_components : int
        Columns of the result, an even number; of ``output="features"``.
    n_point_components : int
        Random Fourier features of the points, an even number.
    bandwidth : float or name of a rule of `reduset.bandwidth`
        h of the Gaussian between points. A rule is applied to the points of all bags together, each bag with the same weight;
        of many points, to some of each bag.
    kernel_width : float or "median"
        σ; "median" takes the median MMD of the training bags.
    output : "features" or "distance"
        "distance" stops at the mean vectors, (N, n_point_components), whose Euclidean distances approximate the MMD.
    orthogonal : bool
        Whether the random Fourier features are orthogonal, both times.
    group : column name or labels, optional
        For bags in one long table.
    n_jobs : int, optional
        Threads, at most; −1 or None for those of `reduset.set_threads`. The result does not depend on it.
    progress : bool, or a function of (stage, done, total)
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    bandwidth_ : float
    kernel_width_ : float, NaN for ``output="distance"``
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

    def __init__(
        self,
        n_components: int = 1000,
        n_point_components: int = 1000,
        *,
        bandwidth: Any = "median",
        kernel_width: Any = "median",
        output: str = "features",
        orthogonal: bool = True,
        group: Any = None,
        n_jobs: int | None = None,
        progress: Any = False,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_point_components = n_point_components
        self.bandwidth = bandwidth
        self.kernel_width = kernel_width
        self.output = output
        self.orthogonal = orthogonal
        self.group = group
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    def fit(self, bags: Any, y: Any = None) -> MeanMapFeatures:
        """Find the bandwidth and the width of the kernel, and draw the features.

        Parameters
        ----------
        bags : list of (n, d) arrays, or what else `OnBags` says
        y : ignored
        """
        _validate.one_of(self.output, "output", OUTPUTS)
        between_points = Gaussian(self.bandwidth)
        count = _validate.whole(self.n_point_components, "n_point_components", 2)
        if count % 2:
            raise ValueError(f"n_point_components must be even, a sine and a cosine each, got {count}; use {count + 1}")
        rng = _validate.generator(self.random_state, "random_state")
        self._threads()  # names a bad n_jobs before anything is computed
        names, parts, shares = self._weighted(bags, reset=True)
        pooled = pool(parts, Gaussian(1.0), rng)
        self.bandwidth_ = between_points.resolve(pooled.atoms, pooled.weights).width
        self._frame = Frame.around(pooled.atoms, 1 / self.bandwidth_)
        orthogonal = _validate.flag(self.orthogonal, "orthogonal")
        with single_threaded_blas():  # many small factors, which more threads only slow down
            self._point_waves = directions(self.n_features_in_, count // 2, orthogonal, rng).T.copy()
        self._draw_kernel(names, parts, shares, rng, f"{count} random features of points", "smaller n_point_components")
        return self

    @property
    def _length(self) -> int:
        return 2 * len(self._point_waves)

    def _ready(self, names: list[Any], parts: list[Floats], shares: list[Array | None]) -> list[Bag]:
        return [Bag(points, own) for points, own in zip(parts, shares, strict=True)]

    def _fill(self, bags: list[Bag], first: int, last: int, out: Array) -> None:
        for k in range(first, last):
            out[k - first] = mean_waves(bags[k], self._frame, self._point_waves)


def mean_waves(bag: Bag, frame: Frame, frequencies: Array) -> Array:
    """(2s,) sines, then cosines of the mean random Fourier feature, of (s, d) frequencies in the frame's coordinates."""
    shares = np.broadcast_to(1 / len(bag), len(bag)) if bag.shares is None else bag.shares
    found = wave_sums(bag.points, shares, frequencies, frame, in_turn=len(bag) < LARGE_BAG)[:, 0]
    return np.concatenate([found.imag, found.real]) / np.sqrt(len(frequencies))
