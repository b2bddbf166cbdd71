"""From a bag to a vector A(p) whose Euclidean distances are those of densities (Sutherland et al. 2016, (5) and (9)).

bag → cube → Gaussian density estimate at nodes → spirals of its values → integrals against an orthonormal basis. Coefficients of
F functions (F = 2M for M frequencies) and |V| products of the basis: F·|V| numbers, in the order of functions, then products.
O(n·nodes) a bag for the density, O(F·|V|·nodes) for the integrals, less by separation on a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reduset._engine.threads import blocks, run_all, single_threaded_blas
from reduset.features.merging import Bag, merged
from reduset.features.nodes import Nodes, Scattered
from reduset.features.spirals import Frequencies, spirals

Array = NDArray[np.float64]

BLOCK_NUMBERS = 1 << 21  # of the vectors that are held at once, at most, beside what is returned
BAGS_A_TASK, LEAST_TASKS = 8, 8
LARGE = 10_000  # points, from which merging pays


@dataclass(frozen=True)
class View:
    """How some columns of a bag become coefficients.

    Attributes
    ----------
    columns : which
    nodes : where the density is looked at
    bandwidth : one for each of these columns, in the cube's units
    """

    columns: slice
    nodes: Nodes
    bandwidth: Array


@dataclass(frozen=True)
class Projection:
    """A(p): the coefficients of all views, one after the other.

    Large bags are merged into cells first where the density is not separable, unless ``tol`` is None.
    """

    views: tuple[View, ...]
    distance: str
    frequencies: Frequencies | None
    tol: float | None = None

    @property
    def functions(self) -> int:
        if self.frequencies is None:
            return 1
        return 2 * len(self.frequencies.values) if self.frequencies.values.any() else 1

    @property
    def length(self) -> int:
        """F·|V|, of all views."""
        return self.functions * sum(view.nodes.products for view in self.views)

    def of(self, bags: list[Bag]) -> Array:
        """(N, length): the densities one by one, the integrals of all together."""
        parts = []
        for view in self.views:
            turned = np.stack([spirals(self._density(bag, view), self.distance, self.frequencies).T for bag in bags])
            parts.append(view.nodes.integrals(turned).reshape(len(bags), -1))
        return np.concatenate(parts, axis=1)

    def _density(self, bag: Bag, view: View) -> Array:
        if self.tol is not None and len(bag.points) >= LARGE and bag.is_positive and isinstance(view.nodes, Scattered):
            bag = merged(bag, view.bandwidth, self.tol)
        return view.nodes.density(bag.points[:, view.columns], bag.shares, bag.widened(view.bandwidth, view.columns))

    def vectors(
        self, bags: list[Bag], report: Callable[[int, int], None] | None = None, threads: int | None = None
    ) -> Iterator[tuple[int, int, Array]]:
        """(start, stop, (stop − start, length) vectors) of blocks of bags, by ``threads`` at most."""
        length = self.length
        for a, b in blocks(len(bags), max(BAGS_A_TASK, BLOCK_NUMBERS // length)):
            out = np.empty((b - a, length))

            def fill(first: int, last: int, out: Array = out, start: int = a) -> None:
                out[first:last] = self.of(bags[start + first : start + last])

            a_task = min(BAGS_A_TASK, -(-(b - a) // LEAST_TASKS))
            with single_threaded_blas():  # our own threads share the bags, so the result is the same whatever their number
                run_all([partial(fill, first, last) for first, last in blocks(b - a, a_task)], most=threads)
            if report is not None:
                report(b, len(bags))
            yield a, b, out
