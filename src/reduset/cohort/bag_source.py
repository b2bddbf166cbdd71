"""Bags as a comparison sees them: it asks for a few rows of each, and has functions of all their points computed where they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._types import Floats, Report
from reduset.cohort.shared_atoms import Look, in_turn
from reduset.kernels.base import Kernel
from reduset.mean import KernelMean


class BagSource(ABC):
    """Many bags.

    Attributes
    ----------
    sizes : how many points each has
    """

    sizes: list[int]

    @abstractmethod
    def pick(self, rows: Sequence[NDArray[np.int64] | None]) -> list[Floats]:
        """Some rows of each bag, None for all."""

    @abstractmethod
    def each(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], report: Report) -> list[Any]:
        """``function(points, *arguments)`` of every bag, with arguments of its own."""

    @abstractmethod
    def look(self, kernel: Kernel, confidence: float, rngs: list[np.random.Generator]) -> Look:
        """What shows the bags ever more atoms."""

    @abstractmethod
    def means(self, kernel: Kernel) -> list[KernelMean]:
        """All the bags in full."""


class BagsInMemory(BagSource):
    """Bags in memory."""

    def __init__(self, bags: Sequence[Floats]) -> None:
        self._bags = bags
        self.sizes = [len(bag) for bag in bags]

    def pick(self, rows: Sequence[NDArray[np.int64] | None]) -> list[Floats]:
        return [bag if some is None else bag[some] for bag, some in zip(self._bags, rows, strict=True)]

    def each(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], report: Report) -> list[Any]:
        found = []
        for k, (bag, its) in enumerate(zip(self._bags, arguments, strict=True)):
            report(k, len(self._bags))
            found.append(function(bag, *its))
        return found

    def look(self, kernel: Kernel, confidence: float, rngs: list[np.random.Generator]) -> Look:
        return in_turn([KernelMean.from_samples(bag, kernel) for bag in self._bags], confidence, rngs)

    def means(self, kernel: Kernel) -> list[KernelMean]:
        return [KernelMean.from_samples(bag.copy(), kernel) for bag in self._bags]  # what is kept must be our own
