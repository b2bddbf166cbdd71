"""Uniform (or weight-proportional) random selection: the baseline that every other selector must beat.

Rows are drawn without replacement, with chances proportional to |w| (Efraimidis & Spirakis 2006: the order of exponential clocks of
those rates). O(n), and nested: the first m of a longer draw are the draw of size m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reduset._types import Indices, Report
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
