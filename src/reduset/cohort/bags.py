"""Many bags, in memory or elsewhere, and the projection of a bag onto the span of shared atoms.

A comparison requests sampled rows of each bag, and evaluates functions of the points of each bag. A projection needs two results.
The first is κ, the inner products of the bag's mean f with the atoms' kernel functions. The second is the residual ‖f − P f‖²,
measured once for all atoms. Each needs one pass over the points: O(n·m) for κ, and the cost of the probe for the residual.

Bags outside of memory are Dask collections, delayed arrays or frames, and files. A function of a bag is one Dask task, or runs
after the file was loaded, so this process holds at most one bag. Each bag has its own random numbers, so the results are the same
as for bags in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from reduset import _validate
from reduset._engine import in_blocks
from reduset._types import Array, BagsLike, Floats, Indices, Report
from reduset.certificate import Measurement, Probe, probe_for
from reduset.compression import Prefixes
from reduset.data import is_dask, is_elsewhere, on_each, open_tables
from reduset.kernels import Kernel
from reduset.mean import KernelMean
from reduset.weights import Span


@dataclass(frozen=True)
class BagEvidence:
    """The projection of a bag.

    Attributes
    ----------
    kappa : Inner products with the kernel functions of the given atoms, (k,).
    residual : Measured ‖f − P f‖².
    size : Number of points.
    mass, total : Sums Σw and Σ|w|.
    """

    kappa: Array
    residual: Measurement
    size: int
    mass: float
    total: float

    def prefixes(self, span: Span, kernel: Kernel, kind: str, confidence: float) -> Prefixes:
        """Weights and errors of the bag on every prefix of these atoms."""
        facing = span.facing(self.kappa)
        # the atoms are not rows of the bag, so that there are no covering radii
        return Prefixes(
            kernel, facing, self.residual, kind, self.mass, self.total, np.zeros(facing.size), covered=None, confidence=confidence
        )


class BagProjector:
    """One bag with its points, its κ at the previous atoms, and its probe."""

    def __init__(self, mean: KernelMean, confidence: float, rng: np.random.Generator) -> None:
        self._mean, self._confidence, self._rng = mean, confidence, rng
        self._probe: Probe | None = None
        self._points: Array = np.empty((0, mean.dimension))
        self._kappa: Array = np.empty(0)

    def project(self, span: Span) -> BagEvidence:
        """Project onto these atoms. Entries of κ are reused for the leading atoms that equal those of the previous span."""
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


class Bags:
    """Many bags, in memory or elsewhere. Functions of bags elsewhere are tasks, so they must be importable.

    Attributes
    ----------
    sizes : Number of points of each bag.
    """

    def __init__(self, bags: Sequence[Floats]) -> None:
        self._bags = bags
        self._in_memory = not any(map(in_blocks, bags))
        self._projectors: list[BagProjector] = []
        self.sizes = [len(bag) for bag in bags]

    def pick(self, rows: Sequence[Indices | None]) -> list[Floats]:
        """These rows of each bag, None for all."""
        return self.each(_picked, [(numbers,) for numbers in rows])

    def each(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], report: Report = lambda *_: None
    ) -> list[Any]:
        """``function(points, *arguments)`` of every bag."""
        results = []
        report(0, len(self._bags))
        for result in on_each(function, self._bags, arguments):
            results.append(result)
            report(len(results), len(self._bags))
        return results

    def project(
        self, spans: Sequence[Span], kernel: Kernel, confidence: float, rngs: Sequence[np.random.Generator], report: Report
    ) -> list[BagEvidence]:
        """Project every bag onto the last span. The bags were already projected onto the other spans, in this order."""
        if not self._in_memory:
            return self.each(partial(_projected, list(spans), kernel, confidence), [(rng,) for rng in rngs], report)
        if len(spans) == 1:  # a projector keeps κ of the previous spans
            means = [KernelMean.of_rows(bag, kernel) for bag in self._bags]
            self._projectors = [BagProjector(mean, confidence, rng) for mean, rng in zip(means, rngs, strict=True)]
        results = list[BagEvidence]()
        for projector in self._projectors:
            report(len(results), len(self._bags))
            results.append(projector.project(spans[-1]))
        return results

    def means(self, kernel: Kernel) -> list[KernelMean]:
        """The kernel means of all points."""
        if not self._in_memory:
            raise ValueError(
                "atoms='all' needs the points of all bags in memory, but some bags are Dask collections or files; use "
                "atoms='shared' or 'own', or load the bags"
            )
        return [KernelMean.of_rows(bag.copy(), kernel) for bag in self._bags]  # copied, since the caller may change the data


def opened_bags(bags: BagsLike, sample: Any) -> Any:
    """A list or mapping of bags with its Dask collections and files opened; other bags unchanged."""
    ndim = getattr(bags, "ndim", 2) if is_dask(bags) else 2
    if isinstance(ndim, int) and ndim == 3:  # an attribute of a Delayed is a Delayed
        bags = [bags[k] for k in range(len(bags))]
    if is_dask(bags):
        hint = "; sample= needs the table in memory" if sample is not None else ""
        raise TypeError(f"bags is one Dask collection; give a list or mapping of them, one for each bag{hint}")
    if isinstance(bags, Iterator):
        bags = list(bags)
    if sample is not None or not isinstance(bags, Mapping | list | tuple):
        return bags
    names, tables = (list(bags), list(bags.values())) if isinstance(bags, Mapping) else (range(len(bags)), list(bags))
    if not any(map(is_elsewhere, tables)):
        return bags
    rows = open_tables(tables, [f"bags[{name!r}]" for name in names])
    for name, table in zip(names, rows, strict=True):
        if in_blocks(table) and table.weights is not None:
            raise ValueError(f"bags[{name!r}] has weights, which bags do not have; open it without weight_column")
    return dict(zip(names, rows, strict=True)) if isinstance(bags, Mapping) else rows


def bag_points(bag: Any, name: str) -> Floats:
    """The checked points of a bag. Rows in blocks were checked before, and stay where they are."""
    return bag if in_blocks(bag) else _validate.rows.points(bag, name)


# functions of a bag, which other processes can import


def _picked(points: Floats, rows: Indices | None) -> Floats:
    return points[:] if rows is None else points[rows]


def _projected(spans: Sequence[Span], kernel: Kernel, confidence: float, points: Floats, rng: np.random.Generator) -> BagEvidence:
    """The projection onto the last span. A task keeps nothing, so the others are projected onto again for the same rounding."""
    projector = BagProjector(KernelMean.of_rows(points, kernel), confidence, rng)
    return [projector.project(span) for span in spans][-1]
