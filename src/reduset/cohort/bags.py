"""Many bags, in memory or elsewhere, and the projection of a bag onto the span of shared atoms.

A comparison requests a few rows of each bag, and has functions of the points of each bag evaluated. A projection needs κ, the inner
products of the bag's mean f with the atoms' kernel functions, and the residual ‖f − P f‖², measured once for all atoms. One pass
over the points for each: O(n·m), and that of the probe.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset._types import Array, Floats, Indices, Report
from reduset.certificate import Measurement, Probe, probe_for
from reduset.compression import Prefixes
from reduset.kernels import Kernel
from reduset.mean import KernelMean
from reduset.weights import Span


@dataclass(frozen=True)
class BagEvidence:
    """The projection of a bag.

    Attributes
    ----------
    kappa : (k,) inner products with the kernel functions of the atoms given
    residual : ‖f − P f‖²
    size : number of points
    mass, total : Σw and Σ|w|
    """

    kappa: Array
    residual: Measurement
    size: int
    mass: float
    total: float

    def prefixes(self, span: Span, kernel: Kernel, kind: str, confidence: float) -> Prefixes:
        """Weights and errors of the bag on every prefix of these atoms."""
        facing = span.facing(self.kappa)
        return Prefixes.of_new_points(kernel, facing, self.residual, kind, confidence, self.mass, self.total)


class BagProjector:
    """One bag with its points, its κ at the atoms so far, and its probe."""

    def __init__(self, mean: KernelMean, confidence: float, rng: np.random.Generator) -> None:
        self._mean, self._confidence, self._rng = mean, confidence, rng
        self._probe: Probe | None = None
        self._points: Array = np.empty((0, mean.dimension))
        self._kappa: Array = np.empty(0)

    def project(self, span: Span) -> BagEvidence:
        """Project onto these atoms; κ of a common beginning with the last ones is not computed again."""
        mean, known = self._mean, len(self._points)
        if not np.array_equal(span.given[:known], self._points):
            known = 0
        fresh = mean.kernel.product_sums(mean.atoms, mean.weights, span.given[known:]) if len(span.given) > known else np.empty(0)
        self._points = span.given
        self._kappa = np.concatenate([self._kappa[:known], fresh])[: len(span.given)]
        kappa = self._kappa.copy()
        facing = span.facing(kappa)
        if self._probe is None:
            self._probe = probe_for(mean, self._confidence, self._rng)
        residual = self._probe.measure(facing.atoms, facing.weights("free", mean.mass, facing.size), facing.kappa)
        return BagEvidence(kappa, residual, mean.size, mean.mass, mean.total)


class BagSource(ABC):
    """Many bags, in memory or elsewhere.

    Attributes
    ----------
    sizes : the number of points of each
    """

    sizes: list[int]

    @abstractmethod
    def pick(self, rows: Sequence[Indices | None]) -> list[Floats]:
        """Some rows of each bag, None for all."""

    @abstractmethod
    def each(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], report: Report) -> list[Any]:
        """``function(points, *arguments)`` of every bag."""

    @abstractmethod
    def project(
        self, spans: Sequence[Span], kernel: Kernel, confidence: float, rngs: Sequence[np.random.Generator], report: Report
    ) -> list[BagEvidence]:
        """Every bag projected onto the last of the spans; the bags were already projected onto the others, in this order."""

    @abstractmethod
    def means(self, kernel: Kernel) -> list[KernelMean]:
        """The kernel means of all points."""


class BagsInMemory(BagSource):
    """Bags in memory, one after the other."""

    def __init__(self, bags: Sequence[Floats]) -> None:
        self._bags = bags
        self._projectors: list[BagProjector] = []
        self.sizes = [len(bag) for bag in bags]

    def pick(self, rows: Sequence[Indices | None]) -> list[Floats]:
        return [bag[:] if some is None else bag[some] for bag, some in zip(self._bags, rows, strict=True)]

    def each(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], report: Report) -> list[Any]:
        results = []
        for k, (bag, its) in enumerate(zip(self._bags, arguments, strict=True)):
            report(k, len(self._bags))
            results.append(function(bag, *its))
        return results

    def project(
        self, spans: Sequence[Span], kernel: Kernel, confidence: float, rngs: Sequence[np.random.Generator], report: Report
    ) -> list[BagEvidence]:
        if len(spans) == 1:  # a projector keeps κ of the spans before
            means = [KernelMean.of_rows(bag, kernel) for bag in self._bags]
            self._projectors = [BagProjector(mean, confidence, rng) for mean, rng in zip(means, rngs, strict=True)]
        return self.each(lambda _, projector: projector.project(spans[-1]), [(each,) for each in self._projectors], report)

    def means(self, kernel: Kernel) -> list[KernelMean]:
        return [KernelMean.of_rows(bag.copy(), kernel) for bag in self._bags]  # copied, since the caller may change the data
