"""From bags to vectors, and from vectors to random features of a Gaussian kernel between them: what three estimators share.

Each says how a bag becomes a vector. The width of the kernel is a number, or the median distance of some training bags' vectors.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from reduset import _validate
from reduset._engine import single_threaded_blas
from reduset._progress import Progress
from reduset._types import Array, Floats, Report
from reduset.features.base import OnBags, with_shares
from reduset.features.rows import rows
from reduset.features.waves import directions

OUTPUTS = ("distance", "features")
SOME_BAGS = 500  # whose distances say what is near
MOST_NUMBERS = 1 << 28  # of the frequencies of random features: 2 GiB


class Embedding(ClassNamePrefixFeaturesOutMixin, OnBags):
    """Bags as vectors (``output="distance"``) or as random Fourier features of the vectors (``output="features"``)."""

    n_components: int
    kernel_width: Any
    output: str
    orthogonal: bool
    progress: Any

    @property
    @abstractmethod
    def _length(self) -> int:
        """Numbers of a vector."""

    @abstractmethod
    def _fill(self, bags: list[Any], first: int, last: int, out: Array) -> None:
        """Write the vectors of some of the bags, made ready by ``_ready``, over zeros."""

    @abstractmethod
    def _ready(self, names: list[Any], parts: list[Any], shares: list[Array | None]) -> list[Any]:
        """Checked bags in the coordinates that ``_fill`` takes; each has a length, its number of points."""

    def _weighted(self, bags: Any, *, reset: bool = False) -> tuple[list[Any], list[Floats], list[Array | None]]:
        """The names and points of the bags, and the shares of the points, None for equal ones."""
        bags, shares = with_shares(bags)
        names, parts = self._checked(bags, reset=reset)
        return names, parts, shares or [None] * len(parts)

    def _draw_kernel(
        self,
        names: list[Any],
        parts: list[Floats],
        shares: list[Array | None],
        rng: np.random.Generator,
        what: str,
        way_out: str,
    ) -> None:
        """Find the width of the kernel, from some of the training bags if need be, and draw the features.

        ``what`` and ``way_out`` are for the error where these would be too many numbers.
        """
        self._waves: Array | None = None
        self.kernel_width_ = float("nan")
        if self.output == "distance":
            return
        room_for_waves(self.n_components, self._length, what, way_out)
        some = np.sort(rng.choice(len(parts), min(SOME_BAGS, len(parts)), replace=False))
        vectors = np.empty((0, self._length))
        if isinstance(self.kernel_width, str):  # a number needs no vectors
            few = ([each[k] for k in some] for each in (names, parts, shares))
            progress = Progress(self.progress)
            try:
                vectors = self._rows(self._ready(*few), None, progress.stage("kernel width"))
            finally:
                progress.close()
        self.kernel_width_ = kernel_width_of(self.kernel_width, vectors, rng)
        with single_threaded_blas():  # the same frequencies whatever the number of threads
            self._waves = frequencies_of(self._length, self.n_components, self.orthogonal, self.kernel_width_, rng)

    def _rows(self, bags: list[Any], frequencies: Array | None, report: Report) -> Array:
        return rows([len(bag) for bag in bags], self._length, partial(self._fill, bags), frequencies, report, self._threads())

    def transform(self, bags: Any) -> Array:
        """(N, n_components) features, or the vectors of ``output="distance"``, whose Euclidean distances approximate d."""
        names, parts, shares = self._weighted(bags)
        progress = Progress(self.progress)
        try:
            return self._rows(self._ready(names, parts, shares), self._waves, progress.stage("features"))
        finally:
            progress.close()

    @property
    def _n_features_out(self) -> int:
        return self._length if self._waves is None else 2 * self._waves.shape[1]


def kernel_width_of(value: Any, vectors: Array, rng: np.random.Generator) -> float:
    """σ: a number, or the median distance of (some of) the training vectors."""
    if not isinstance(value, str):
        return _validate.positive(value, "kernel_width", "'median' takes the median distance of the bags")
    _validate.one_of(value, "kernel_width", ("median",))
    some = vectors if len(vectors) <= SOME_BAGS else vectors[np.sort(rng.choice(len(vectors), SOME_BAGS, replace=False))]
    if len(some) < 2:
        return 1.0
    distances = pdist(some)
    middle = float(np.median(distances))
    # more than half of the pairs may coincide; where all do, any width is right
    return middle if middle > 0 else float(distances.max()) or 1.0


def room_for_waves(n_components: Any, length: int, what: str, way_out: str) -> None:
    """Refuse more random frequencies than memory should be asked for, before anything is computed."""
    half = _validate.whole(n_components, "n_components", 2) // 2
    if length * half > MOST_NUMBERS:
        raise ValueError(
            f"n_components={n_components} for vectors of {length:,} numbers ({what}) takes {length * half * 8 / 2**30:.1f} GiB of "
            f"random frequencies, and {MOST_NUMBERS * 8 / 2**30:.0f} are the most; use {way_out}, smaller n_components, or "
            "output='distance'"
        )


def frequencies_of(dimension: int, n_components: Any, orthogonal: Any, width: float, rng: np.random.Generator) -> Array:
    """(dimension, n_components / 2) frequencies of the Gaussian kernel of that width."""
    count = _validate.whole(n_components, "n_components", 2)
    if count % 2:
        raise ValueError(f"n_components must be even, a sine and a cosine each, got {count}; use {count + 1}")
    return directions(dimension, count // 2, _validate.flag(orthogonal, "orthogonal"), rng) / width
