"""The base class of features of bags: bags become vectors, and vectors random features of a Gaussian kernel.

Subclasses define how a bag becomes a vector. The kernel width is a number, or the median distance of some training vectors. Random
Fourier features (Rahimi & Recht 2007) have orthogonal frequencies by default (Yu et al. 2016):

    exp(−‖a − b‖²/(2σ²)) ≈ z(a)·z(b),   z(a) = √(2/D) (sin ω₁·a, …, cos ω₁·a, …),   ω ~ N(0, σ⁻² I), D/2 of them

Orthogonal frequencies have the same lengths in directions that are orthogonal within blocks: the same mean, less variance.
O(dim·D) a vector. Each thread holds one block of vectors: 2²¹ numbers, or one vector if that is longer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.linalg import qr
from scipy.spatial.distance import pdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from reduset import _validate
from reduset._engine import single_threaded_blas
from reduset._messages import warn
from reduset._progress import Progress
from reduset._types import Array, BagsLike, BandwidthLike, Floats, Report, SeedLike
from reduset.features.base import BagTransformer, bag_blocks, counts_of, run_in_rounds, with_shares
from reduset.features.merging import WeightedBag

OUTSIDE = ("clip", "refuse")
OUTPUTS = ("distance", "features")
SOME_BAGS = 500  # whose distances say what is near
MOST_FREQUENCY_NUMBERS = 1 << 28  # 2 GiB
BLOCK_BAGS, BLOCK_NUMBERS = 64, 1 << 21


def embed(
    sizes: Sequence[int],
    length: int,
    fill: Callable[[int, int, Array], None],
    frequencies: Array | None,
    report: Report | None = None,
    threads: int | None = None,
) -> Array:
    """(N, length) vectors, or their (N, D) random Fourier features.

    Parameters
    ----------
    sizes : points of each bag, by which work is dealt
    fill : called with first, last and zeros of shape (last − first, length), which it is to fill for these bags
    frequencies : (length, D/2), or None to stop at the vectors
    threads : the most
    """
    out = np.zeros((len(sizes), length if frequencies is None else 2 * frequencies.shape[1]))

    def task(first: int, last: int) -> None:
        vectors = out[first:last] if frequencies is None else np.zeros((last - first, length))
        fill(first, last, vectors)
        if frequencies is not None:
            out[first:last] = fourier_features(vectors, frequencies)

    cuts = bag_blocks(sizes, max(1, min(BLOCK_BAGS, BLOCK_NUMBERS // length)))
    with single_threaded_blas():
        run_in_rounds([partial(task, first, last) for first, last in cuts], [last for _, last in cuts], report, threads)
    return out


def unit_frequencies(dimension: int, count: int, orthogonal: bool, rng: np.random.Generator) -> Array:
    """(dimension, count) frequencies for σ = 1."""
    if not orthogonal:
        return rng.normal(size=(dimension, count))
    blocks = []
    for start in range(0, count, dimension):
        size = min(dimension, count - start)
        normal = np.asfortranarray(rng.normal(size=(dimension, size)))  # which is then factorised in place
        basis = qr(normal, mode="economic", overwrite_a=True, check_finite=False)[0]
        # a normal matrix has uniform directions up to the signs that the factorisation fixes
        basis *= rng.choice([-1.0, 1.0], size)
        basis *= np.sqrt(rng.chisquare(dimension, size))
        blocks.append(basis)
    return np.hstack(blocks) if len(blocks) > 1 else blocks[0]


def fourier_features(vectors: Array, frequencies: Array) -> Array:
    """(N, D) features z of (N, dimension) vectors, D twice the number of frequencies."""
    angles = vectors @ frequencies
    scale = np.sqrt(1.0 / frequencies.shape[1])
    return scale * np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


@dataclass(frozen=True)
class CubeScaler:
    """Min–max scaling to the unit cube, column by column: x ↦ (x − low)/width."""

    low: Array
    width: Array

    @classmethod
    def around(cls, bags: list[Floats], margin: float) -> CubeScaler:
        """The box of all points, wider by ``margin`` of its width on every side; a column without spread lies in the middle."""
        low = np.min([bag.min(axis=0) for bag in bags], axis=0).astype(np.float64)
        high = np.max([bag.max(axis=0) for bag in bags], axis=0).astype(np.float64)
        width = high - low
        flat = width <= 0
        width[flat] = 1.0
        low[flat] -= 0.5
        pad = np.where(flat, 0.0, margin * width)
        return cls(low - pad, width + 2 * pad)

    def coordinates(self, bags: list[Floats], outside: str, names: list[Any]) -> list[Array]:
        """The bags in the cube. Points outside are moved to its faces, with a word on how many; or refused, with the bag's name."""
        mapped, moved, touched = [], 0, 0
        for name, bag in zip(names, bags, strict=True):
            unit = (bag - self.low) / self.width
            out = int(np.count_nonzero(((unit < 0) | (unit > 1)).any(axis=1)))
            if out and outside == "refuse":
                raise ValueError(
                    f"bags[{name!r}] has {out} of {len(bag)} points outside of the box that was fitted; use outside='clip' to move "
                    "them to its faces, or fit with a larger margin"
                )
            if out:
                moved, touched = moved + out, touched + 1
                np.clip(unit, 0.0, 1.0, out=unit)
            mapped.append(np.ascontiguousarray(unit, np.float64))
        if moved:
            warn(
                f"{moved:,} points of {touched:,} bags lie outside of the box that was fitted, and were moved to its faces; fit "
                "with a larger margin, or use outside='refuse'",
            )
        return mapped


@dataclass(eq=False, repr=False, kw_only=True)
class Embedding(ClassNamePrefixFeaturesOutMixin, BagTransformer):
    """Bags as vectors (``output="distance"``) or as random Fourier features of the vectors (``output="features"``)."""

    n_components: int = 1000
    kernel_width: BandwidthLike = "median"
    output: str = "features"
    random_state: SeedLike = None
    orthogonal: Any = field(init=False)

    @abstractmethod
    def _learn(self, bags: list[WeightedBag], counts: list[int], rng: np.random.Generator) -> None:
        """Find what turns bags into vectors; ``counts`` are how many points each stands for."""

    @property
    @abstractmethod
    def _length(self) -> int:
        """Numbers of a vector."""

    @property
    @abstractmethod
    def _length_told(self) -> tuple[str, str]:
        """What these numbers are, and what makes them fewer: for an error where they are too many."""

    @abstractmethod
    def _fill(self, bags: list[WeightedBag], first: int, last: int, out: Array) -> None:
        """Write the vectors of some of the bags, made ready by ``_ready``, over zeros."""

    def _ready(self, names: list[Any], bags: list[WeightedBag]) -> list[WeightedBag]:
        """Checked bags in the coordinates that ``_fill`` takes."""
        return bags

    def fit(self, bags: BagsLike, y: Any = None) -> Self:
        """Learn how bags become vectors, and the width of the kernel between these, and draw the features.

        Parameters
        ----------
        bags : list of (n, d) arrays, or what else `BagTransformer` says
        y : ignored
        """
        _validate.one_of(self.output, "output", OUTPUTS)
        rng = _validate.generator(self.random_state, "random_state")
        self._threads()  # names a bad n_jobs before anything is computed
        names, weighted = self._weighted(bags, reset=True)
        self._learn(weighted, counts_of(bags, [bag.points for bag in weighted]), rng)
        self._draw_kernel(names, weighted, rng)
        return self

    def _weighted(self, bags: BagsLike, *, reset: bool = False) -> tuple[list[Any], list[WeightedBag]]:
        """The names of the bags, and the bags with the shares of their points."""
        bags, shares = with_shares(bags)
        names, parts = self._checked(bags, reset=reset)
        return names, [WeightedBag(part, own) for part, own in zip(parts, shares or [None] * len(parts), strict=True)]

    def _draw_kernel(self, names: list[Any], bags: list[WeightedBag], rng: np.random.Generator) -> None:
        """Find the width of the kernel, from some of the training bags if need be, and draw the features."""
        self._waves: Array | None = None
        self.kernel_width_ = float("nan")
        if self.output == "distance":
            return
        room_for_waves(self.n_components, self._length, *self._length_told)
        some = np.sort(rng.choice(len(bags), min(SOME_BAGS, len(bags)), replace=False))
        vectors = np.empty((0, self._length))
        if isinstance(self.kernel_width, str):  # a number needs no vectors
            few = self._ready([names[k] for k in some], [bags[k] for k in some])
            with closing(Progress(self.progress)) as progress:
                vectors = self._rows(few, None, progress.stage("kernel width"))
        self.kernel_width_ = kernel_width_of(self.kernel_width, vectors, rng)
        with single_threaded_blas():  # the same frequencies whatever the number of threads
            self._waves = frequencies_of(self._length, self.n_components, self.orthogonal, self.kernel_width_, rng)

    def _rows(self, bags: list[WeightedBag], frequencies: Array | None, report: Report) -> Array:
        return embed([len(bag) for bag in bags], self._length, partial(self._fill, bags), frequencies, report, self._threads())

    def transform(self, bags: BagsLike) -> Array:
        """(N, n_components) features, or the vectors of ``output="distance"``, whose Euclidean distances approximate d."""
        names, weighted = self._weighted(bags)
        with closing(Progress(self.progress)) as progress:
            return self._rows(self._ready(names, weighted), self._waves, progress.stage("features"))

    @property
    def _n_features_out(self) -> int:
        return self._length if self._waves is None else 2 * self._waves.shape[1]


@dataclass(eq=False, repr=False, kw_only=True)
class CubeEmbedding(Embedding):
    """Bags in the unit cube, as vectors of a homogeneous distance between their densities or histograms there."""

    distance: str = field(default="js", kw_only=False)
    n_frequencies: int = 5
    marginals: bool = False
    margin: Any = field(init=False)
    outside: Any = field(init=False)

    def _learn_cube(self, bags: list[WeightedBag]) -> None:
        _validate.one_of(self.outside, "outside", OUTSIDE)
        self.cube_ = CubeScaler.around([bag.points for bag in bags], _validate.at_least(self.margin, "margin", 0.0))

    def _ready(self, names: list[Any], bags: list[WeightedBag]) -> list[WeightedBag]:
        inside = self.cube_.coordinates([bag.points for bag in bags], self.outside, names)
        return [replace(bag, points=points) for bag, points in zip(bags, inside, strict=True)]


def kernel_width_of(value: Any, vectors: Array, rng: np.random.Generator) -> float:
    """σ: a number, or the median distance of (some of) the training vectors."""
    if not isinstance(value, str):
        return _validate.positive(value, "kernel_width", "'median' takes the median distance of the bags")
    _validate.one_of(value, "kernel_width", ("median",))
    some = vectors if len(vectors) <= SOME_BAGS else vectors[np.sort(rng.choice(len(vectors), SOME_BAGS, replace=False))]
    return median_of(pdist(some))


def median_of(distances: Array) -> float:
    """Their median; the largest where more than half are 0; 1 where all are, or there are none, for any width is right then."""
    if not len(distances):
        return 1.0
    middle = float(np.median(distances))
    return middle if middle > 0 else float(distances.max()) or 1.0


def room_for_waves(n_components: Any, length: int, what: str, way_out: str) -> None:
    """Refuse more random frequencies than memory should be asked for, before anything is computed."""
    half = _validate.whole(n_components, "n_components", 2) // 2
    if length * half > MOST_FREQUENCY_NUMBERS:
        raise ValueError(
            f"n_components={n_components} for vectors of {length:,} numbers ({what}) takes {length * half * 8 / 2**30:.1f} GiB of "
            f"random frequencies, and {MOST_FREQUENCY_NUMBERS * 8 / 2**30:.0f} are the most; use {way_out}, smaller n_components, "
            "or output='distance'"
        )


def frequencies_of(dimension: int, n_components: Any, orthogonal: Any, width: float, rng: np.random.Generator) -> Array:
    """(dimension, n_components / 2) frequencies of the Gaussian kernel of that width."""
    count = even(n_components, "n_components")
    return unit_frequencies(dimension, count // 2, _validate.flag(orthogonal, "orthogonal"), rng) / width


def even(value: Any, name: str) -> int:
    """A number of random Fourier features."""
    count = _validate.whole(value, name, 2)
    if count % 2:
        raise ValueError(f"{name} must be even, a sine and a cosine each, got {count}; use {count + 1}")
    return count
