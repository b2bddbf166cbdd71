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
from reduset.features.nodes import Nodes
from reduset.features.spirals import Frequencies, spirals

Array = NDArray[np.float64]

BLOCK_NUMBERS = 1 << 21  # of the vectors that are held at once, at most, beside what is returned
BAGS_A_TASK = 4


@dataclass(frozen=True)
class Bag:
    """Points of the cube and their shares; None for equal ones."""

    points: Array
    shares: Array | None = None


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
    """A(p): the coefficients of all views, one after the other."""

    views: tuple[View, ...]
    distance: str
    frequencies: Frequencies | None

    @property
    def functions(self) -> int:
        if self.frequencies is None:
            return 1
        return 2 * len(self.frequencies.values) if self.frequencies.values.any() else 1

    @property
    def length(self) -> int:
        """F·|V|, of all views."""
        products = [view.nodes.integrals(np.zeros((1, view.nodes.count))).shape[-1] for view in self.views]
        return self.functions * sum(products)

    def of(self, bag: Bag) -> Array:
        """(length,)."""
        parts = []
        for view in self.views:
            density = view.nodes.density(bag.points[:, view.columns], bag.shares, view.bandwidth)
            turned = spirals(density, self.distance, self.frequencies)
            parts.append(view.nodes.integrals(turned.T).ravel())
        return np.concatenate(parts)

    def vectors(self, bags: list[Bag], report: Callable[[int, int], None] | None = None) -> Iterator[tuple[int, int, Array]]:
        """(start, stop, (stop − start, length) vectors) of blocks of bags, by all threads."""
        length = self.length
        for a, b in blocks(len(bags), max(BAGS_A_TASK, BLOCK_NUMBERS // length)):
            out = np.empty((b - a, length))

            def fill(first: int, last: int, out: Array = out, start: int = a) -> None:
                for k in range(first, last):
                    out[k] = self.of(bags[start + k])

            with single_threaded_blas():  # our own threads take a bag each, so the result is the same whatever their number
                run_all([partial(fill, first, last) for first, last in blocks(b - a, BAGS_A_TASK)])
            if report is not None:
                report(b, len(bags))
            yield a, b, out
