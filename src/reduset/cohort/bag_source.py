"""Where bags are, as a comparison sees them: it asks for a few rows of each, and has functions of their points computed there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reduset._types import Floats, Indices, Report
from reduset.cohort.bag_projection import BagEvidence, BagProjector
from reduset.kernels import Kernel
from reduset.mean import KernelMean
from reduset.weights import Span


class BagSource(ABC):
    """Many bags, in memory or elsewhere.

    Attributes
    ----------
    sizes : how many points each has
    """

    sizes: list[int]

    @abstractmethod
    def pick(self, rows: Sequence[Indices | None]) -> list[Floats]:
        """Some rows of each bag, None for all."""

    @abstractmethod
    def each(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], report: Report) -> list[Any]:
        """``function(points, *arguments)`` of every bag, with arguments of its own."""

    @abstractmethod
    def project(
        self, spans: Sequence[Span], kernel: Kernel, confidence: float, rngs: Sequence[np.random.Generator], report: Report
    ) -> list[BagEvidence]:
        """Every bag on the last of the spans; those before it are what the bags were projected on already, in that order."""

    @abstractmethod
    def means(self, kernel: Kernel) -> list[KernelMean]:
        """All the bags in full."""


class BagsInMemory(BagSource):
    """Bags in memory, worked on one after the other."""

    def __init__(self, bags: Sequence[Floats]) -> None:
        self._bags = bags
        self._projectors: list[BagProjector] = []
        self.sizes = [len(bag) for bag in bags]

    def pick(self, rows: Sequence[Indices | None]) -> list[Floats]:
        return [bag[:] if some is None else bag[some] for bag, some in zip(self._bags, rows, strict=True)]

    def each(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], report: Report) -> list[Any]:
        found = []
        for k, (bag, its) in enumerate(zip(self._bags, arguments, strict=True)):
            report(k, len(self._bags))
            found.append(function(bag, *its))
        return found

    def project(
        self, spans: Sequence[Span], kernel: Kernel, confidence: float, rngs: Sequence[np.random.Generator], report: Report
    ) -> list[BagEvidence]:
        if len(spans) == 1:  # a projector remembers the spans before, so that it need not be shown them again
            means = [KernelMean.of_rows(bag, kernel) for bag in self._bags]
            self._projectors = [BagProjector(mean, confidence, rng) for mean, rng in zip(means, rngs, strict=True)]
        return self.each(_project, [(projector, spans[-1]) for projector in self._projectors], report)

    def means(self, kernel: Kernel) -> list[KernelMean]:
        return [KernelMean.of_rows(bag.copy(), kernel) for bag in self._bags]  # what is kept must be our own


def _project(_: Floats, projector: BagProjector, span: Span) -> BagEvidence:
    return projector.project(span)
