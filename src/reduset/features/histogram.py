"""HistogramFeatures: homogeneous distances between histograms, embedded bin by bin (Vedaldi & Zisserman 2010; Vempati et al. 2010).

    d²(p, q) = Σ_b κ(p_b, q_b),   exp(−d²(p, q)/(2σ²)) ≈ z(A(p))·z(A(q)),   A(p) the spirals of the shares p_b of bins b

with κ and its spirals as in `spirals`; that of densities which are constant on bins. O(n·d + F·bins·D) a bag for F = 2M functions
and D components; bins of a bag without points cost nothing before the last step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from reduset import _validate
from reduset._engine.profile import Floats
from reduset._engine.threads import single_threaded_blas
from reduset._progress import Progress
from reduset.features.cube import OUTSIDE, Cube
from reduset.features.rows import Report, rows
from reduset.features.shell import SOME_BAGS, Array, OnBags, frequencies_of, kernel_width_of, room_for_waves
from reduset.features.spirals import DISTANCES, MOST_PLACED, Frequencies, placed, spirals

OUTPUTS = ("distance", "features")
MOST_BINS = 10**6


class HistogramFeatures(ClassNamePrefixFeaturesOutMixin, OnBags):
    """Features of bags whose inner products are a Gaussian kernel of a distance between the bags' histograms.

    Parameters
    ----------
    distance : "js", "chi2", "hellinger", "tv" or "l2"
        d² is the Jensen–Shannon divergence, ½ Σ (p − q)²/(p + q), the squared Hellinger distance, Σ |p − q| or Σ (p − q)².
    n_bins : int
        Bins along each axis of the box of the training points.
    n_frequencies : int
        M, of the spirals of "js", "chi2" and "tv", placed where they approximate the distance best.
    n_components : int
        Columns of the result, an even number; of ``output="features"``.
    kernel_width : float or "median"
        σ; "median" takes the median distance of the training bags.
    output : "features" or "distance"
        "distance" stops at A(p), whose Euclidean distances approximate d.
    margin : float
        How much wider than the training points the box is, on every side, as a share of their range.
    outside : "clip" or "refuse"
        What to do with later points that lie outside of the box.
    marginals : bool
        One histogram a column instead of one of all columns together: d² is then the sum over columns. For many columns.
    orthogonal : bool
        Whether the random Fourier features are orthogonal.
    group : column name or labels, optional
        For bags in one long table.
    n_jobs : int, optional
        Threads, at most; −1 or None for those of `reduset.set_threads`. The result does not depend on it.
    progress : bool, or a function of (stage, done, total)
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    cube_ : Cube
        ``low`` and ``width`` of the box that was mapped to [0, 1]ᵈ.
    n_bins_ : int, in all
    kernel_width_ : float, NaN for ``output="distance"``
    frequencies_ : Frequencies or None
        Their ``values`` and ``weights``.
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

    def __init__(
        self,
        distance: str = "js",
        *,
        n_bins: int = 10,
        n_frequencies: int = 5,
        n_components: int = 1000,
        kernel_width: Any = "median",
        output: str = "features",
        margin: float = 0.0,
        outside: str = "clip",
        marginals: bool = False,
        orthogonal: bool = True,
        group: Any = None,
        n_jobs: int | None = None,
        progress: Any = False,
        random_state: Any = None,
    ) -> None:
        self.distance = distance
        self.n_bins = n_bins
        self.n_frequencies = n_frequencies
        self.n_components = n_components
        self.kernel_width = kernel_width
        self.output = output
        self.margin = margin
        self.outside = outside
        self.marginals = marginals
        self.orthogonal = orthogonal
        self.group = group
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    def fit(self, bags: Any, y: Any = None) -> HistogramFeatures:
        """Learn the box and the width of the kernel, and draw the features.

        Parameters
        ----------
        bags : list of (n, d) arrays, or what else `OnBags` says
        y : ignored
        """
        output = _validate.one_of(self.output, "output", OUTPUTS)
        _validate.one_of(self.outside, "outside", OUTSIDE)
        margin = _validate.at_least(self.margin, "margin", 0.0)
        rng = _validate.generator(self.random_state, "random_state")
        progress = Progress(self.progress)
        names, parts = self._checked(bags, reset=True)
        self.frequencies_ = self._frequencies()
        self.n_bins_ = self._all_bins()
        self._functions = spirals(np.zeros(1), self.distance, self.frequencies_).shape[1]
        self.cube_ = Cube.around(parts, margin)
        self._waves: Array | None = None
        self.kernel_width_ = float("nan")
        if output == "features":
            length = self._functions * self.n_bins_
            room_for_waves(self.n_components, length, f"{self.n_bins_:,} bins", "marginals=True, smaller n_bins")
            some = np.sort(rng.choice(len(parts), min(SOME_BAGS, len(parts)), replace=False))
            inside = self.cube_.coordinates([parts[k] for k in some], self.outside, [names[k] for k in some])
            try:
                vectors = self._rows(inside, None, progress.stage("kernel width"))
            finally:
                progress.close()
            self.kernel_width_ = kernel_width_of(self.kernel_width, vectors, rng)
            with single_threaded_blas():  # the same frequencies whatever the number of threads
                self._waves = frequencies_of(length, self.n_components, self.orthogonal, self.kernel_width_, rng)
        return self

    def _frequencies(self) -> Frequencies | None:
        distance = _validate.one_of(self.distance, "distance", DISTANCES)
        count = _validate.whole(self.n_frequencies, "n_frequencies", 1, MOST_PLACED)
        return None if distance == "l2" else placed(distance, count)

    def _all_bins(self) -> int:
        each, d = _validate.whole(self.n_bins, "n_bins", 1), self.n_features_in_
        marginals = _validate.flag(self.marginals, "marginals")
        count = each * d if marginals else each**d
        if count > MOST_BINS:
            way_out = "use fewer" if marginals else "use marginals=True for one histogram a column, or fewer"
            raise ValueError(
                f"n_bins={each} along each of {d} columns makes {count:,} bins, and {MOST_BINS:,} are the most; {way_out}"
            )
        return count

    @property
    def _n_features_out(self) -> int:
        return self._functions * self.n_bins_ if self._waves is None else 2 * self._waves.shape[1]

    def _rows(self, inside: list[Array], frequencies: Array | None, report: Report) -> Array:
        def fill(first: int, last: int, out: Array) -> None:
            for k in range(first, last):
                shares = histogram(inside[k], self.n_bins, self.marginals)
                filled = np.flatnonzero(shares)  # the spirals of empty bins are 0
                turned = spirals(shares[filled], self.distance, self.frequencies_)
                out[k - first].reshape(self.n_bins_, self._functions)[filled] = turned

        length = self._functions * self.n_bins_
        return rows([len(part) for part in inside], length, fill, frequencies, report, self._threads())

    def transform(self, bags: Any) -> Array:
        """(N, n_components) features, or the (N, F·bins) vectors A(p) of ``output="distance"``."""
        names, parts = self._checked(bags)
        inside = self.cube_.coordinates(parts, self.outside, names)
        progress = Progress(self.progress)
        try:
            return self._rows(inside, self._waves, progress.stage("features"))
        finally:
            progress.close()


def histogram(inside: Floats, n_bins: int, marginals: bool) -> Array:
    """The shares of (n, d) points of the unit cube in its bins: (n_binsᵈ,), in the order of the last axis first; or (d·n_bins,)."""
    n, d = inside.shape
    cells = np.minimum((inside * n_bins).astype(np.intp), n_bins - 1)
    if marginals:
        return np.bincount((cells + n_bins * np.arange(d)).ravel(), minlength=d * n_bins) / n
    return np.bincount(np.ravel_multi_index(tuple(cells.T), (n_bins,) * d), minlength=n_bins**d) / n
