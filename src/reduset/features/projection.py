"""From a bag to a vector A(p) whose Euclidean distances are those of densities (Sutherland et al. 2016, (5) and (9)).

bag → cube → Gaussian density estimate at nodes → feature map of its values → integrals against an orthonormal basis. These are the
coefficients of F functions (F = 2M for M frequencies) and |V| products of the basis: F·|V| numbers, functions first.
O(n·nodes) a bag for the density, O(F·|V|·nodes) for the integrals, less by separation on a grid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset._engine import blocks
from reduset._types import Array
from reduset.features.homogeneous_distances import DistanceFrequencies, feature_map
from reduset.features.merging import WeightedBag, merged
from reduset.features.nodes import Nodes, Scattered

LARGE = 10_000  # points, from which merging pays
AT_ONCE = 1 << 19  # values of functions at nodes that are held


@dataclass(frozen=True)
class DensityView:
    """A density estimate of some columns: where it is evaluated, and how wide its bumps are.

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

    views: tuple[DensityView, ...]
    distance: str
    frequencies: DistanceFrequencies | None
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

    def of(self, bags: list[WeightedBag]) -> Array:
        """(N, length): the densities one by one, the integrals of several together."""
        out, start = np.empty((len(bags), self.length)), 0
        for view in self.views:
            stop = start + self.functions * view.nodes.products
            for a, b in blocks(len(bags), max(1, AT_ONCE // (self.functions * view.nodes.count))):
                turned = [feature_map(self._density(bag, view), self.distance, self.frequencies).T for bag in bags[a:b]]
                out[a:b, start:stop] = view.nodes.integrals(np.stack(turned)).reshape(b - a, -1)
            start = stop
        return out

    def _density(self, bag: WeightedBag, view: DensityView) -> Array:
        bag = bag.only(view.columns)
        if self.tol is not None and len(bag.points) >= LARGE and bag.is_positive and isinstance(view.nodes, Scattered):
            bag = merged(bag, view.bandwidth, self.tol)
            # the default precision repeats in double where a density is nearly 0, as at most nodes in many dimensions
            return view.nodes.density(bag.points, bag.shares, bag.widened(view.bandwidth), "single")
        return view.nodes.density(bag.points, bag.shares, bag.widened(view.bandwidth))
