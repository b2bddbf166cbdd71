"""Random selectors: uniform (the baseline that every other selector must beat), by column norms, and KDE paring.

**Random.** Rows are drawn without replacement, with probabilities proportional to |w|. Rows are sorted by exponential times with
these rates (Efraimidis & Spirakis 2006). O(n), and nested: the first m of a longer draw are the draw of size m.

**ColumnNorm.** Row j is drawn with a probability proportional to |wⱼ| Σₖ |wₖ| g(xₖ, xⱼ)². This is the squared norm of a column of
the kernel matrix (Drineas & Mahoney 2005; the L2 of Cruz Cortés & Scott 2017). Points in dense regions come first, where atoms are
least needed. It serves for comparison. The sum runs over all rows up to `EXACT_UP_TO` rows, beyond over a sample of `SAMPLED`. The
cost is O(n).

**Paring** (Freedman & Kisilev 2010) replaces a density by a small number of independent draws from it. It draws m rows by |w|
*with* replacement. Each draw has the same weight. f_m is unbiased. Its expected squared error is ((Σ|w|)² κ − ‖f‖²)/m. With a
``blur`` b, b times a draw of the kernel's noise is added to each row. Without a blur, equal draws are one atom, weighted by their
number. The atoms of size m are the first m *distinct* rows of an endless sequence of draws. Rows that are first drawn after the
m-th draw have weight zero. They replace repeated draws. The rows have the same order as `Random`. A draw then selects an earlier
row by its weight, and otherwise the next row in order. Rows of small weight therefore need few draws. O(n + m log m), and nested.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine import blocks
from reduset._types import Array, Indices, Report
from reduset.mean import KernelMean
from reduset.select.contract import Selector, Traversal


@dataclass(frozen=True)
class Random(Selector):
    """Random atoms, drawn by weight without replacement.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.select import Random
    >>> f = KernelMean.from_samples(np.arange(10.0).reshape(-1, 1), kernel=Gaussian(1.0))
    >>> len(set(Random().select(f, 4, rng=0).indices.tolist()))
    4
    """

    weighs = True

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _ByWeight(mean, mean.magnitudes, rng)


class Clocks(Traversal):
    """Rows in the order of independent exponential times with the given rates."""

    def __init__(self, mean: KernelMean, rates: NDArray[np.float64], rng: np.random.Generator) -> None:
        self._mean = mean
        self._times = rng.standard_exponential(mean.size)
        with np.errstate(divide="ignore", over="ignore"):
            np.divide(self._times, rates, out=self._times)  # A rate of zero gives an infinite time, so the row is never drawn.
        self._able = int(np.count_nonzero(rates))
        self._order: Indices = np.empty(0, np.int64)

    def extend(self, size: int, report: Report | None = None) -> None:
        size = min(size, self._able)
        if size > len(self._order):
            first = np.argpartition(self._times, size - 1)[:size] if size < len(self._times) else np.arange(size)
            self._order = first[np.argsort(self._times[first], kind="stable")]
        if report is not None:
            report(len(self._order), size)

    @property
    def indices(self) -> Indices:
        return self._order


class _ByWeight(Clocks):
    def weights(self) -> NDArray[np.float64]:
        """w over the probability that the row's time is below the next row's: nearly equal for few rows, w itself for all."""
        mean, count = self._mean, len(self._order)
        weights = mean.weights[self._order]
        if 0 < count < self._able:
            next_time = float(np.partition(self._times, count)[count])
            weights = weights / -np.expm1(-np.abs(weights) * next_time)
        return np.asarray(weights * (mean.total / max(float(np.abs(weights).sum()), np.finfo(np.float64).tiny)))


def draw(mean: KernelMean, count: int, rng: np.random.Generator) -> Indices:
    """``count`` distinct rows drawn by weight, in the order of the data."""
    clocks = Clocks(mean, mean.magnitudes, rng)
    clocks.extend(count)
    return np.sort(clocks.indices)


EXACT_UP_TO, SAMPLED = 4096, 1024
ENTRIES = 1 << 21  # entries of the kernel matrix held at a time


@dataclass(frozen=True)
class ColumnNorm(Selector):
    """Random atoms, drawn with probabilities proportional to the squared norms of the columns of the kernel matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.select import ColumnNorm
    >>> crowd_and_hermit = np.append(np.linspace(0, 0.1, 999), 50.0).reshape(-1, 1)
    >>> f = KernelMean.from_samples(crowd_and_hermit, kernel=Gaussian(1.0))
    >>> 999 in ColumnNorm().select(f, 20, rng=0).indices
    False
    """

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return Clocks(mean, column_norms(mean, rng), rng)


def column_norms(mean: KernelMean, rng: np.random.Generator) -> NDArray[np.float64]:
    """|wⱼ| Σₖ |wₖ| g(xₖ, xⱼ)² for every row j, (n,), from a sample of the rows k if n is large."""
    magnitudes = mean.magnitudes
    total = float(magnitudes.sum())
    if mean.size <= EXACT_UP_TO:
        others, weights = mean.atoms, np.asarray(magnitudes)
    else:
        others, weights = mean.atoms[mean.draw_rows(SAMPLED, rng)], np.full(SAMPLED, 1.0 / SAMPLED)
    norms = np.empty(mean.size)
    for a, b in blocks(mean.size, max(1, ENTRIES // len(others))):
        norms[a:b] = np.square(mean.kernel.product_gram(mean.atoms[a:b], others)) @ weights
        if len(others) < mean.size:  # The sample rarely contains the row itself.
            norms[a:b] += magnitudes[a:b] / total
    return magnitudes * norms


BATCH = 512  # blurred draws per batch; the fixed number makes a short selection the beginning of a longer one


@dataclass(frozen=True)
class Paring(Selector):
    """Independent draws from the density. Their own weights are equal, and are added if a row is drawn twice.

    Parameters
    ----------
    blur : float
        The scale of the noise added to a row, relative to the kernel. The value 1 draws from the density f, as in the paper of
        paring, which narrows the bandwidth afterwards. The default 0 adds no noise, because the kernel is unchanged here and noise
        would smooth twice. Reduced kernel PCA also pares to a subsample (Kingravi, Vela & Gray 2013). Blurred atoms are new points,
        without indices.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.select import Paring
    >>> f = KernelMean(np.arange(3.0).reshape(-1, 1), [0.8, 0.1, 0.1], kernel=Gaussian(1.0))
    >>> chosen = Paring().select(f, 3, rng=0)
    >>> sorted(chosen.indices.tolist()), round(float(chosen.weights.sum()), 12)
    ([0, 1, 2], 1.0)
    """

    blur: float = 0.0
    weighs = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "blur", _validate.at_least(self.blur, "blur", 0.0))

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _Blurred(mean, self.blur, rng) if self.blur > 0 else _Met(mean, rng)


class _Met(Clocks):
    """Rows in the order of their first draw."""

    def __init__(self, mean: KernelMean, rng: np.random.Generator) -> None:
        super().__init__(mean, mean.magnitudes, rng)
        self._rng = rng
        self._uniform: Array = np.empty(0)  # one number per draw

    def extend(self, size: int, report: Report | None = None) -> None:
        if size > len(self._uniform):
            self._uniform = np.concatenate([self._uniform, self._rng.random(size - len(self._uniform))])
        super().extend(size, report)

    def weights(self) -> Array:
        """The proportion of draws of each row times Σ|w|, with the sign of its weight."""
        mean, total = self._mean, self._mean.total
        ends = np.cumsum(mean.magnitudes[self._order])
        positions = np.minimum(np.searchsorted(ends, self._uniform * total, side="right"), len(ends) - 1)
        counts, met = np.zeros(len(ends)), 0
        for position in positions.tolist():
            counts[min(position, met)] += 1  # A draw beyond the rows met so far is the first draw of the next row.
            met += position >= met
        return np.asarray(np.sign(mean.weights[self._order]) * counts * (total / len(positions)))


class _Blurred(Traversal):
    """Rows with noise, which are new points of equal weight."""

    indices = None

    def __init__(self, mean: KernelMean, blur: float, rng: np.random.Generator) -> None:
        self._mean, self._blur, self._rng = mean, blur, rng
        self._points: Array = np.empty((0, mean.dimension))
        self.points = self._points
        self._signs: Array = np.empty(0)
        self._size = 0

    def extend(self, size: int, report: Report | None = None) -> None:
        points, signs = [self._points], [self._signs]
        for done in range(len(self._points), size, BATCH):
            rows = self._mean.draw_rows(BATCH, self._rng)
            points.append(self._mean.atoms[rows] + self._blur * self._mean.kernel.noise(BATCH, self._mean.dimension, self._rng))
            signs.append(np.sign(self._mean.weights[rows]))
            if report is not None:
                report(min(done + BATCH, size), size)
        self._points, self._signs = np.concatenate(points), np.concatenate(signs)
        self._size = max(size, self._size)
        self.points = self._points[: self._size]

    def weights(self) -> Array:
        return self._signs[: self._size] * (self._mean.total / self._size)
