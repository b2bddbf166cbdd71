"""HistogramFeatures: homogeneous distances between histograms, embedded bin by bin (Vedaldi & Zisserman 2010; Vempati et al. 2010).

    d²(p, q) = Σ_b κ(p_b, q_b),   exp(−d²(p, q)/(2σ²)) ≈ z(A(p))·z(A(q))

A(p) is the feature map of the proportions p_b of the bins b. `homogeneous_distances` defines κ and its feature map. A bag costs
O(n·d + F·bins·D) for F = 2M functions and D components. Empty bins have no cost before the last step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset import _validate
from reduset._types import Array
from reduset._validate import seeded
from reduset.features.embedding import CubeEmbedding, VectorLength
from reduset.features.homogeneous_distances import DISTANCES, MAX_OPTIMAL_FREQUENCIES, feature_map, optimal_frequencies
from reduset.features.merging import WeightedBag

MAX_BINS = 10**6


@seeded
@dataclass(eq=False, repr=False, kw_only=True)
class HistogramFeatures(CubeEmbedding):
    """Features of bags for linear models. Their inner products approximate a Gaussian kernel of a distance between histograms.

    Parameters
    ----------
    distance : "js", "chi2", "hellinger", "tv" or "l2"
        Distance d between two histograms p and q. "js": d² is the Jensen–Shannon divergence. "chi2": ½ Σ (p − q)²/(p + q).
        "hellinger": the squared Hellinger distance. "tv": Σ |p − q|. "l2": Σ (p − q)².
    n_bins : int
        Bins along each axis of the box of the training points.
    n_frequencies : int
        Number M of frequencies in the feature map of "js", "chi2" and "tv". They minimise the approximation error.
    margin : float
        Distance from the training points to each face of the box, relative to their range.
    outside : "clip" or "refuse"
        "clip" moves later points outside the box to its faces. "refuse" raises `ValueError`.
    marginals : bool
        Use one histogram per column instead of a joint histogram. Then d² is the sum over columns. Use it for many columns.
    orthogonal : bool
        Whether the random Fourier features are orthogonal.
    n_components, kernel_width, output, group, n_jobs, progress, random_state
        As in `DensityFeatures`.

    Attributes
    ----------
    cube_ : CubeScaler
        ``low`` and ``width`` of the box that is mapped to [0, 1]ᵈ.
    n_bins_ : int
        Total number of bins.
    kernel_width_ : float
        Width of the Gaussian kernel. It is NaN for ``output="distance"``.
    frequencies_ : DistanceFrequencies or None
        Frequencies λ as ``values``, with their ``weights``.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from reduset.features import HistogramFeatures
    >>> rng = np.random.default_rng(0)
    >>> spread = rng.uniform(0.5, 2.0, size=200)
    >>> bags = [rng.normal(0, s, size=(100, 2)) for s in spread]
    >>> model = make_pipeline(HistogramFeatures("js", margin=0.1, n_components=200, random_state=0), Ridge(0.01))
    >>> bool(model.fit(bags[:150], spread[:150]).score(bags[150:], spread[150:]) > 0.8)
    True
    """

    n_bins: int = 10

    def _learn(self, bags: list[WeightedBag], counts: list[int], rng: np.random.Generator) -> VectorLength:
        distance = _validate.one_of(self.distance, "distance", DISTANCES)
        count = _validate.whole(self.n_frequencies, "n_frequencies", 1, MAX_OPTIMAL_FREQUENCIES)
        self.frequencies_ = None if distance == "l2" else optimal_frequencies(distance, count)
        self.n_bins_ = self._total_bins()
        self._functions = feature_map(np.zeros(1), self.distance, self.frequencies_).shape[1]
        self._learn_cube(bags)
        return VectorLength(self._functions * self.n_bins_, f"{self.n_bins_:,} bins", "marginals=True, smaller n_bins")

    def _total_bins(self) -> int:
        per_axis, d = _validate.whole(self.n_bins, "n_bins", 1), self.n_features_in_
        marginals = _validate.flag(self.marginals, "marginals")
        count = per_axis * d if marginals else per_axis**d
        if count > MAX_BINS:
            way_out = "use fewer" if marginals else "use marginals=True for one histogram per column, or fewer"
            raise ValueError(
                f"n_bins={per_axis} along each of {d} columns makes {count:,} bins, and the maximum is {MAX_BINS:,}; {way_out}"
            )
        return count

    def _vectors_of(self, bags: list[WeightedBag]) -> Array:
        vectors = np.zeros((len(bags), self.n_bins_, self._functions))
        for bag, vector in zip(bags, vectors, strict=True):
            proportions = histogram(bag, self.n_bins, self.marginals)
            occupied = np.flatnonzero(proportions)  # The feature map of an empty bin is 0.
            vector[occupied] = feature_map(proportions[occupied], self.distance, self.frequencies_)
        return vectors.reshape(len(bags), -1)


def histogram(bag: WeightedBag, n_bins: int, marginals: bool) -> Array:
    """The proportions of a bag's points in bins of the unit cube.

    The shape is (n_binsᵈ,), and the last axis varies fastest. With ``marginals`` it is (d·n_bins,).
    """
    n, d = bag.points.shape
    cells = np.minimum((bag.points * n_bins).astype(np.intp), n_bins - 1)
    if marginals:
        cells += n_bins * np.arange(d)
        sums = np.bincount(cells.ravel(), None if bag.weights is None else np.repeat(bag.weights, d), d * n_bins)
    else:
        sums = np.bincount(np.ravel_multi_index(tuple(cells.T), (n_bins,) * d), bag.weights, n_bins**d)
    return sums / n if bag.weights is None else np.maximum(sums, 0.0)  # Weights may be negative.
