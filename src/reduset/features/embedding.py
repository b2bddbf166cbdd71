"""The base classes of features of bags: bags become vectors, and vectors become random features of a Gaussian kernel.

Subclasses define the vector of a bag. The kernel width is a number, or the median distance of a sample of the training vectors.
Random Fourier features (Rahimi & Recht 2007) have orthogonal frequencies by default (Yu et al. 2016):

    exp(−‖a − b‖²/(2σ²)) ≈ z(a)·z(b),   z(a) = √(2/D) (sin ω₁·a, …, cos ω₁·a, …),   ω ~ N(0, σ⁻² I), D/2 of them

Orthogonal frequencies have the same distribution of lengths, and their directions are orthogonal within blocks. The mean of the
estimate is the same, and its variance is smaller. A vector costs O(dim·D). Each thread holds one block of vectors: 2²¹ numbers, or
one vector if that is longer. Blocks depend on the bags only, so the number of threads does not change the result.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from reduset import _validate
from reduset._engine import get_threads, run_all, single_threaded_blas
from reduset._messages import warn
from reduset._progress import Progress
from reduset._types import Array, BagsLike, BandwidthLike, Floats, ProgressLike, Report, SeedLike
from reduset.compression import Compression
from reduset.features.merging import WeightedBag
from reduset.mean import KernelMean
from reduset.mixture import Mixture

OUTSIDE = ("clip", "refuse")
OUTPUTS = ("distance", "features")
SAMPLED_BAGS = 500  # Size of the sample for the median distance.
MAX_FREQUENCY_ENTRIES = 1 << 28  # 2 GiB
BAGS_PER_BLOCK, POINTS_PER_BLOCK, ENTRIES_PER_BLOCK = 64, 1 << 15, 1 << 21
TASKS_PER_REPORT = 8  # for each thread


def bag_blocks(sizes: Sequence[int], max_bags: int) -> list[tuple[int, int]]:
    """Blocks (first, last) of consecutive bags: at most ``max_bags`` bags and 2¹⁵ points, or a single bag."""
    cuts, first, n_points = [], 0, 0
    for k, size in enumerate(sizes):
        if k > first and (k - first == max_bags or n_points + size > POINTS_PER_BLOCK):
            cuts.append((first, k))
            first, n_points = k, 0
        n_points += size
    return [*cuts, (first, len(sizes))]


def run_in_rounds(
    tasks: Sequence[Callable[[], None]], done: Sequence[int], report: Report | None = None, threads: int | None = None
) -> None:
    """Run all tasks, and report ``done`` after every round of tasks."""
    step = TASKS_PER_REPORT * (get_threads() if threads is None else threads)
    for start in range(0, len(tasks), step):
        run_all(tasks[start : start + step], most=threads)
        if report is not None:
            report(done[min(start + step, len(tasks)) - 1], done[-1])


@dataclass(eq=False, repr=False, kw_only=True)
class BagTransformer(TransformerMixin, BaseEstimator):
    """Base class of transformers of bags: each sample is a bag of points.

    Bags are a list of (n, d) arrays or frames, or a mapping of names to arrays or frames. They may also be an (N, n, d) array, an
    Arrow column of lists of points, or one long table. For a table, ``group`` names the column of the bags. Fields are
    scikit-learn's parameters.
    """

    group: Any = None
    n_jobs: int | None = None
    progress: ProgressLike = False
    feature_names_in_: NDArray[Any] = field(init=False)

    def _validated(self, bags: BagsLike, *, reset: bool = False) -> tuple[list[Any], list[Floats]]:
        """The names and the points of the bags. Unless ``reset``, they are validated against the columns of the fitted bags."""
        if reset:
            names, parts, columns = _validate.bags(bags, self.group, by="group")
            self.n_features_in_ = parts[0].shape[1]
            self._columns = columns
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            if columns is not None and all(isinstance(column, str) for column in columns):
                self.feature_names_in_ = np.array(columns, dtype=object)
        else:
            check_is_fitted(self)
            names, parts, _ = _validate.bags(bags, self.group, dimension=self.n_features_in_, columns=self._columns, by="group")
        return names, parts

    def _threads(self) -> int | None:
        if self.n_jobs is None or self.n_jobs == -1:
            return None
        return _validate.whole(self.n_jobs, "n_jobs", 1, way_out="-1 or None uses all")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.no_validation = True
        return tags


def as_weighted(bags: BagsLike) -> tuple[Any, list[Array | None] | None]:
    """Replace every `Compression` or `KernelMean` by its atoms. Also returns the weights of the points, None for plain bags."""
    items = _items(bags)
    if not any(isinstance(item, Compression | KernelMean | Mixture) for item in items):
        return bags, None
    points, weights = [], []
    for name, item in zip(bags if isinstance(bags, Mapping) else range(len(items)), items, strict=True):
        mean = item.mean if isinstance(item, Compression) else item
        if isinstance(mean, Mixture):
            raise TypeError(
                f"bags[{name!r}] must be points or atoms, got a {type(mean).__name__}, which has components; compress the "
                "bag with pieces='atoms', or pass a sample: mean.sample(1000)"
            )
        weighted = isinstance(mean, KernelMean)
        if weighted and mean.mass <= 0:
            raise ValueError(f"bags[{name!r}] must have weights of positive sum, got {mean.mass:.3g}; omit the bag")
        points.append(mean.atoms if weighted else mean)
        weights.append(mean.weights / mean.mass if weighted else None)
    return (dict(zip(bags, points, strict=True)) if isinstance(bags, Mapping) else points), weights


def _items(bags: BagsLike) -> list[Any]:
    """The bags of a mapping or a list. The result is empty for tables and columns."""
    return list(bags.values()) if isinstance(bags, Mapping) else list(bags) if isinstance(bags, list | tuple) else []


class VectorLength(NamedTuple):
    """The length of a vector, the quantity that determines it, and how to reduce it, for error messages."""

    length: int
    description: str
    way_out: str


def embed(
    bags: Sequence[Any],
    vectors_of: Callable[[Any], Array],
    length: int,
    frequencies: Array | None,
    report: Report | None = None,
    threads: int | None = None,
) -> Array:
    """(N, length) vectors, or their (N, D) random Fourier features.

    Parameters
    ----------
    bags : (N,) sequence
        The sizes of bags determine the blocks.
    vectors_of : function of some bags
        Returns their vectors, (number of bags, length).
    length : int
        Length of a vector.
    frequencies : (length, D/2) or None
        Frequencies of the features. None returns the vectors.
    report : function, optional
    threads : int, optional
        Maximum number of threads.
    """
    out = np.empty((len(bags), length if frequencies is None else 2 * frequencies.shape[1]))

    def task(first: int, last: int) -> None:
        vectors = vectors_of(bags[first:last])
        out[first:last] = vectors if frequencies is None else fourier_features(vectors, frequencies)

    cuts = bag_blocks([len(bag) for bag in bags], max(1, min(BAGS_PER_BLOCK, ENTRIES_PER_BLOCK // length)))
    with single_threaded_blas():
        run_in_rounds([partial(task, *cut) for cut in cuts], [last for _, last in cuts], report, threads)
    return out


def unit_frequencies(dimension: int, count: int, orthogonal: bool, rng: np.random.Generator) -> Array:
    """(dimension, count) frequencies for σ = 1."""
    if not orthogonal:
        return rng.normal(size=(dimension, count))
    blocks = []
    for start in range(0, count, dimension):
        size = min(dimension, count - start)
        normal = np.asfortranarray(rng.normal(size=(dimension, size)))  # Column-major order allows factorising in place.
        basis = qr(normal, mode="economic", overwrite_a=True, check_finite=False)[0]
        # The factorisation fixes the signs. Random signs make the directions uniform.
        basis *= rng.choice([-1.0, 1.0], size)
        basis *= np.sqrt(rng.chisquare(dimension, size))
        blocks.append(basis)
    return np.hstack(blocks) if len(blocks) > 1 else blocks[0]


def fourier_features(vectors: Array, frequencies: Array) -> Array:
    """(N, D) features z of (N, dimension) vectors. D is twice the number of frequencies."""
    angles = vectors @ frequencies
    scale = np.sqrt(1.0 / frequencies.shape[1])
    return scale * np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


@dataclass(frozen=True)
class CubeScaler:
    """Min–max scaling of each column to the unit cube: x ↦ (x − low)/width."""

    low: Array
    width: Array

    @classmethod
    def around(cls, bags: list[Floats], margin: float) -> CubeScaler:
        """The box of all points, widened on every side by ``margin`` times its width. A constant column lies in the middle."""
        low = np.min([bag.min(axis=0) for bag in bags], axis=0).astype(np.float64)
        high = np.max([bag.max(axis=0) for bag in bags], axis=0).astype(np.float64)
        width = high - low
        flat = width <= 0
        width[flat] = 1.0
        low[flat] -= 0.5
        pad = np.where(flat, 0.0, margin * width)
        return cls(low - pad, width + 2 * pad)

    def coordinates(self, bags: list[Floats], outside: str, names: list[Any]) -> list[Array]:
        """The bags in the cube. Points outside are moved to its faces with a warning, or raise an error that names the bag."""
        mapped, n_outside, n_bags = [], 0, 0
        for name, bag in zip(names, bags, strict=True):
            unit = (bag - self.low) / self.width
            out = int(np.count_nonzero(((unit < 0) | (unit > 1)).any(axis=1)))
            if out and outside == "refuse":
                raise ValueError(
                    f"bags[{name!r}] has {out} of {len(bag)} points outside the fitted box; use outside='clip' to move "
                    "them to its faces, or fit with a larger margin"
                )
            if out:
                n_outside, n_bags = n_outside + out, n_bags + 1
                np.clip(unit, 0.0, 1.0, out=unit)
            mapped.append(np.ascontiguousarray(unit, np.float64))
        if n_outside:
            warn(
                f"{n_outside:,} points of {n_bags:,} bags lie outside the fitted box and were moved to its faces; fit "
                "with a larger margin, or use outside='refuse'",
            )
        return mapped


@dataclass(eq=False, repr=False, kw_only=True)
class Embedding(ClassNamePrefixFeaturesOutMixin, BagTransformer):
    """Bags as vectors (``output="distance"``) or as random Fourier features of the vectors (``output="features"``)."""

    n_components: int = 1000
    kernel_width: BandwidthLike = "median"
    output: str = "features"
    orthogonal: bool = True
    random_state: SeedLike = None

    @abstractmethod
    def _learn(self, bags: list[WeightedBag], counts: list[int], rng: np.random.Generator) -> VectorLength:
        """Learn the map from bags to vectors. ``counts`` are the numbers of points that the bags represent."""

    @abstractmethod
    def _vectors_of(self, bags: list[WeightedBag]) -> Array:
        """(N, length) vectors of bags in the coordinates of ``_in_coordinates``."""

    def _in_coordinates(self, names: list[Any], bags: list[WeightedBag]) -> list[WeightedBag]:
        """The bags in the coordinates of ``_vectors_of``."""
        return bags

    def fit(self, bags: BagsLike, y: Any = None) -> Self:
        """Learn the map from bags to vectors and the kernel width, and draw the features.

        Parameters
        ----------
        bags : list of (n, d) arrays, or another input of `BagTransformer`
            Training bags.
        y : ignored
        """
        _validate.one_of(self.output, "output", OUTPUTS)
        rng = _validate.generator(self.random_state, "random_state")
        self._threads()  # Raise for an invalid n_jobs before the computation.
        names, weighted = self._weighted(bags, reset=True)
        counts = [len(bag) for bag in weighted]
        for k, item in enumerate(_items(bags)):
            if isinstance(item, Compression):
                counts[k] = item.n_samples
        self._length, description, way_out = self._learn(weighted, counts, rng)
        if self.output == "features":
            self._require_memory(description, way_out)
        self._draw_features(names, weighted, rng)
        return self

    def _weighted(self, bags: BagsLike, *, reset: bool = False) -> tuple[list[Any], list[WeightedBag]]:
        """The names of the bags, and the bags with the weights of their points."""
        bags, weights = as_weighted(bags)
        names, parts = self._validated(bags, reset=reset)
        return names, [WeightedBag(*pair) for pair in zip(parts, weights or [None] * len(parts), strict=True)]

    def _draw_features(self, names: list[Any], bags: list[WeightedBag], rng: np.random.Generator) -> None:
        """Learn the kernel width, from a sample of the training bags if needed, and draw the frequencies."""
        self._feature_frequencies: Array | None = None
        self.kernel_width_ = float("nan")
        if self.output == "distance":
            return
        sample = np.sort(rng.choice(len(bags), min(SAMPLED_BAGS, len(bags)), replace=False))
        vectors = np.empty((0, self._length))
        if isinstance(self.kernel_width, str):  # A numeric width needs no vectors.
            sampled = self._in_coordinates([names[k] for k in sample], [bags[k] for k in sample])
            with closing(Progress(self.progress)) as progress:
                vectors = self._vectors(sampled, None, progress.stage("kernel width"))
        self.kernel_width_ = kernel_width_of(self.kernel_width, vectors, rng)
        with single_threaded_blas():  # The result must not depend on the number of threads.
            self._feature_frequencies = frequencies_of(self._length, self.n_components, self.orthogonal, self.kernel_width_, rng)

    def _require_memory(self, description: str, way_out: str) -> None:
        """Raise for too many random frequencies before the computation."""
        half = _validate.whole(self.n_components, "n_components", 2) // 2
        entries = self._length * half
        if entries > MAX_FREQUENCY_ENTRIES:
            raise ValueError(
                f"n_components={self.n_components} for vectors of {self._length:,} numbers ({description}) takes "
                f"{entries * 8 / 2**30:.1f} GiB of random frequencies, and the maximum is {MAX_FREQUENCY_ENTRIES * 8 / 2**30:.0f}; "
                f"use {way_out}, smaller n_components, or output='distance'"
            )

    def _vectors(self, bags: list[WeightedBag], frequencies: Array | None, report: Report) -> Array:
        return embed(bags, self._vectors_of, self._length, frequencies, report, self._threads())

    def transform(self, bags: BagsLike) -> Array:
        """(N, n_components) features. With ``output="distance"``, vectors with Euclidean distances that approximate d."""
        names, weighted = self._weighted(bags)
        with closing(Progress(self.progress)) as progress:
            return self._vectors(self._in_coordinates(names, weighted), self._feature_frequencies, progress.stage("features"))

    @property
    def _n_features_out(self) -> int:
        return self._length if self._feature_frequencies is None else 2 * self._feature_frequencies.shape[1]


@dataclass(eq=False, repr=False, kw_only=True)
class CubeEmbedding(Embedding):
    """Base class for bags in the unit cube. Vectors represent a homogeneous distance between densities or histograms."""

    distance: str = field(default="js", kw_only=False)
    n_frequencies: int = 5
    marginals: bool = False
    margin: float = 0.0
    outside: str = "clip"

    def _learn_cube(self, bags: list[WeightedBag]) -> None:
        _validate.one_of(self.outside, "outside", OUTSIDE)
        self.cube_ = CubeScaler.around([bag.points for bag in bags], _validate.at_least(self.margin, "margin", 0.0))

    def _in_coordinates(self, names: list[Any], bags: list[WeightedBag]) -> list[WeightedBag]:
        inside = self.cube_.coordinates([bag.points for bag in bags], self.outside, names)
        return [replace(bag, points=points) for bag, points in zip(bags, inside, strict=True)]


def kernel_width_of(value: Any, vectors: Array, rng: np.random.Generator) -> float:
    """The kernel width σ: a number, or the median distance of a sample of the training vectors."""
    if not isinstance(value, str):
        return _validate.positive(value, "kernel_width", "'median' uses the median distance of the bags")
    _validate.one_of(value, "kernel_width", ("median",))
    large = len(vectors) > SAMPLED_BAGS
    return median_of(pdist(vectors[np.sort(rng.choice(len(vectors), SAMPLED_BAGS, replace=False))] if large else vectors))


def median_of(distances: Array) -> float:
    """The median distance. It is the maximum if more than half are 0, and 1 if no distance is positive."""
    if not len(distances):
        return 1.0
    middle = float(np.median(distances))
    return middle if middle > 0 else float(distances.max()) or 1.0


def frequencies_of(dimension: int, n_components: Any, orthogonal: Any, width: float, rng: np.random.Generator) -> Array:
    """(dimension, n_components / 2) frequencies of the Gaussian kernel with this width."""
    count = even_count(n_components, "n_components")
    return unit_frequencies(dimension, count // 2, _validate.flag(orthogonal, "orthogonal"), rng) / width


def even_count(value: Any, name: str) -> int:
    """Validate a number of random Fourier features, which must be even."""
    count = _validate.whole(value, name, 2)
    if count % 2:
        raise ValueError(f"{name} must be even, a sine and a cosine per frequency, got {count}; use {count + 1}")
    return count
