"""Random selectors: uniform (the baseline that every other selector must beat), by column norms, and KDE paring.

**Random.** Rows are drawn without replacement, with probabilities proportional to |w|. The order is that of exponential clocks with
these rates (Efraimidis & Spirakis 2006). O(n), and nested: the first m of a longer draw are the draw of size m.

**ColumnNorm.** Row j is drawn with a probability proportional to |wⱼ| Σₖ |wₖ| g(xₖ, xⱼ)², the squared norm of a column of the
kernel matrix (Drineas & Mahoney 2005; the L2 of Cruz Cortés & Scott 2017). Points in dense regions come first, where atoms are
least needed. It serves for comparison. The sum runs over all rows up to `EXACT_UP_TO` of them, beyond over a sample of `SAMPLED`,
O(n) in all.

**Paring** (Freedman & Kisilev 2010) replaces a density by few independent draws from itself. m rows are drawn by |w| *with*
replacement, each with the same part of the weight. f_m is unbiased, with an expected squared error of ((Σ|w|)² κ − ‖f‖²)/m. With a
``blur`` b, b times a draw of the kernel's noise is added to each. Without a blur, equal draws are one atom, weighted by their
number. The atoms of size m are the first m *distinct* rows of an endless sequence of draws. Rows that were first drawn after the
m-th draw fill the places that repetitions leave, without a weight. Their order is that of `Random`; a draw then selects a row drawn
before by its weight, and otherwise the next in order, so that rows of tiny weight need no long wait. O(n + m log m), and nested.
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
    """Rows in the order in which independent exponential clocks of the given rates ring."""

    def __init__(self, mean: KernelMean, rates: NDArray[np.float64], rng: np.random.Generator) -> None:
        self._mean = mean
        self._ring = rng.standard_exponential(mean.size)
        with np.errstate(divide="ignore", over="ignore"):
            np.divide(self._ring, rates, out=self._ring)  # a rate of zero rings at infinity: never
        self._able = int(np.count_nonzero(rates))
        self._order: Indices = np.empty(0, np.int64)

    def extend(self, size: int, report: Report | None = None) -> None:
        size = min(size, self._able)
        if size > len(self._order):
            first = np.argpartition(self._ring, size - 1)[:size] if size < len(self._ring) else np.arange(size)
            self._order = first[np.argsort(self._ring[first], kind="stable")]
        if report is not None:
            report(len(self._order), size)

    @property
    def indices(self) -> Indices:
        return self._order


class _ByWeight(Clocks):
    def weights(self) -> NDArray[np.float64]:
        """w over the chance that a row's clock has rung by the time of the next: equal shares of few rows, w itself of all."""
        mean, count = self._mean, len(self._order)
        own = mean.weights[self._order]
        if 0 < count < self._able:
            until = float(np.partition(self._ring, count)[count])
            own = own / -np.expm1(-np.abs(own) * until)
        return np.asarray(own * (mean.total / max(float(np.abs(own).sum()), np.finfo(np.float64).tiny)))


def draw(mean: KernelMean, count: int, rng: np.random.Generator) -> Indices:
    """``count`` distinct rows drawn by weight, in the order of the data."""
    clocks = Clocks(mean, mean.magnitudes, rng)
    clocks.extend(count)
    return np.sort(clocks.indices)


EXACT_UP_TO, SAMPLED = 4096, 1024
ENTRIES = 1 << 21  # of the kernel matrix that are held at a time


@dataclass(frozen=True)
class ColumnNorm(Selector):
    """Random atoms, with chances proportional to the squared norms of the kernel matrix's columns.

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
    """|wⱼ| Σₖ |wₖ| g(xₖ, xⱼ)² for every row j, (n,); from a sample of the rows k where there are many."""
    magnitudes = mean.magnitudes
    total = float(magnitudes.sum())
    if mean.size <= EXACT_UP_TO:
        others, shares = mean.atoms, np.asarray(magnitudes)
    else:
        others, shares = mean.atoms[mean.draw_rows(SAMPLED, rng)], np.full(SAMPLED, 1.0 / SAMPLED)
    norms = np.empty(mean.size)
    for a, b in blocks(mean.size, max(1, ENTRIES // len(others))):
        norms[a:b] = np.square(mean.kernel.product_gram(mean.atoms[a:b], others)) @ shares
        if len(others) < mean.size:  # a sample seldom holds the row itself
            norms[a:b] += magnitudes[a:b] / total
    return magnitudes * norms


AT_ONCE = 512  # blurred draws: always so many, so that a short selection begins a longer one


@dataclass(frozen=True)
class Paring(Selector):
    """Independent draws from the density; their own weights are equal shares, added up where a row was drawn twice.

    Parameters
    ----------
    blur : float
        The noise added to a row, in units of the kernel's own: 1 draws from the density that f is, as in the paper of paring, which
        narrows the bandwidth afterwards. Here the kernel stays what it was, as in reduced kernel PCA (Kingravi, Vela & Gray 2013,
        who pare to a subsample), and a blur would smooth twice; so it is 0. Blurred atoms are new points, without indices.

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
    """Rows in the order in which draws meet them."""

    def __init__(self, mean: KernelMean, rng: np.random.Generator) -> None:
        super().__init__(mean, mean.magnitudes, rng)
        self._rng = rng
        self._chances: Array = np.empty(0)  # one a draw

    def extend(self, size: int, report: Report | None = None) -> None:
        if size > len(self._chances):
            self._chances = np.concatenate([self._chances, self._rng.random(size - len(self._chances))])
        super().extend(size, report)

    def weights(self) -> Array:
        """The share of draws that met each row, of Σ|w|, with the sign of its weight."""
        mean, total = self._mean, self._mean.total
        ends = np.cumsum(mean.magnitudes[self._order])
        places = np.minimum(np.searchsorted(ends, self._chances * total, side="right"), len(ends) - 1)
        counts, met = np.zeros(len(ends)), 0
        for place in places.tolist():
            counts[min(place, met)] += 1  # beyond those met lies the next of them
            met += place >= met
        return np.asarray(np.sign(mean.weights[self._order]) * counts * (total / len(places)))


class _Blurred(Traversal):
    """Rows with noise: new points, all of the same weight."""

    indices = None

    def __init__(self, mean: KernelMean, blur: float, rng: np.random.Generator) -> None:
        self._mean, self._blur, self._rng = mean, blur, rng
        self._points: Array = np.empty((0, mean.dimension))
        self._signs: Array = np.empty(0)
        self._size = 0

    @property
    def points(self) -> Array:
        return self._points[: self._size]

    def extend(self, size: int, report: Report | None = None) -> None:
        points, signs = [self._points], [self._signs]
        for begun in range(len(self._points), size, AT_ONCE):
            rows = self._mean.draw_rows(AT_ONCE, self._rng)
            points.append(self._mean.atoms[rows] + self._blur * self._mean.kernel.noise(AT_ONCE, self._mean.dimension, self._rng))
            signs.append(np.sign(self._mean.weights[rows]))
            if report is not None:
                report(min(begun + AT_ONCE, size), size)
        self._points, self._signs = np.concatenate(points), np.concatenate(signs)
        self._size = max(size, self._size)

    def weights(self) -> Array:
        return self._signs[: self._size] * (self._mean.total / self._size)
