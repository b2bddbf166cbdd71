"""What a picture shows of a mean: its marginal densities, of columns and of pairs of columns, as numbers on grids.

    p_k(t) = Σᵢ wᵢ N(t; xᵢₖ, h_k²),   p_kl(s, t) = Σᵢ wᵢ N(s; xᵢₖ, h_k²) N(t; xᵢₗ, h_l²)

with h_k the kernel's bandwidth along column k, or the grid's step where that is wider. For a Gaussian kernel without correlations
these are the marginals of f itself; for others a picture of the weighted points at the kernel's scale. Of components, the laws
themselves are smoothed by the same bumps: N(t; cₖ, Sₖₖ + h_k²), and pairs likewise. All rows are counted. Pairs
of columns are products of matrices of factors, block by block, O(n·pairs·g²). Along a single column many points are first shared
out among the two nearest of 2¹³ places, which keeps their mean and changes a density by less than 10⁻⁴ of its peak: O(n).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine import blocks, run_all, single_threaded_blas
from reduset._types import Array, Floats
from reduset.kernels import Gaussian, RadialKernel
from reduset.mean import KernelMean
from reduset.mixture import ComponentMean, Mixture
from reduset.mixture.component_mean import SmallMean
from reduset.model.histograms import histograms

PLACES, PAIR_PLACES = 160, 40
MOST_COLUMNS, MOST_PAIRED = 40, 6
BLOCK, MOST_PARTS = 1 << 12, 16  # a block's factors stay in the cache
MANY, BINS, REACH = 50_000, 1 << 13, 8.0  # points, from which on they are shared out among bins; bandwidths beyond a grid
LOOKED_AT = 100_000  # rows, for where a column's bulk lies
TAIL = 0.001  # of the rows on either side, which may lie outside of the picture
APART = 0.4  # of the distance of few values: how wide their bars are
BEYOND = 3.0  # bandwidths that a grid reaches beyond the bulk


@dataclass(frozen=True)
class MarginalDensities:
    """Marginal densities of a mean.

    Attributes
    ----------
    grids : (c, G) places along each of the first c columns
    widths : (c,) of the bumps there
    marginals : (c, G) densities
    pair_grids : (b, g) places along the first b columns, for pairs
    pair_widths : (b,)
    pairs : (P, 2) columns
    joint : (P, g, g) densities, the first column of the pair along the first axis
    bars : (c, 3, b) histograms of the rows themselves, not smoothed: where bars begin and end, and the density in each; bars of
        no width at the end have no meaning. Without columns where it is not known: in older files, and for signed weights
    """

    grids: Array
    widths: Array
    marginals: Array
    pair_grids: Array
    pair_widths: Array
    pairs: NDArray[np.int64]
    joint: Array
    bars: Array = field(default_factory=lambda: np.empty((0, 3, 0)))

    @classmethod
    def of(cls, mean: KernelMean) -> MarginalDensities:
        """The portrait of a mean, on grids around the bulk of its points."""
        d = mean.dimension
        low, high, spread = _bulk(mean)
        own = _widths(mean, spread)
        grids, pair_grids = (
            np.linspace((low - BEYOND * own)[:most], (high + BEYOND * own)[:most], places, axis=1)
            for most, places in ((MOST_COLUMNS, PLACES), (MOST_PAIRED, PAIR_PLACES))
        )
        widths, pair_widths = (np.maximum(own[: len(each)], each[:, 1] - each[:, 0]) for each in (grids, pair_grids))
        pairs = np.array(list(combinations(range(min(d, MOST_PAIRED)), 2)), np.int64).reshape(-1, 2)
        blank = cls(grids, widths, np.empty(0), pair_grids, pair_widths, pairs, np.empty(0))
        return cls(
            grids, widths, blank.marginals_of(mean), pair_grids, pair_widths, pairs, blank.joint_of(mean), _bars(mean, len(grids))
        )

    def marginals_of(self, mean: SmallMean) -> Array:
        """(c, G) of another mean, on the same grids with the same bumps."""
        if isinstance(mean, ComponentMean):
            return np.stack([_seen(mean, [k], self.widths)(grid[:, None]) for k, grid in enumerate(self.grids)])
        return np.stack([_along(mean, k, grid, float(self.widths[k])) for k, grid in enumerate(self.grids)])

    def joint_of(self, mean: SmallMean) -> Array:
        """(P, g, g) of another mean, on the same grids with the same bumps."""
        columns, g = len(self.pair_grids), self.pair_grids.shape[1]
        if isinstance(mean, ComponentMean):
            return self._joint_of_laws(mean)
        weights = mean.weights
        equal = weights.min() == weights.max()  # then they are multiplied in the end, once

        def one(start: int, stop: int) -> Array:
            factors = [_factors(mean.atoms[start:stop, k], self.pair_grids[k], self.pair_widths[k]) for k in range(columns)]
            stacked = np.concatenate(factors)
            out = np.zeros((columns * g, columns * g))
            for k, own in enumerate(factors[:-1]):
                left = own if equal else own * weights[start:stop].astype(np.float32)
                out[k * g : (k + 1) * g, (k + 1) * g :] = left @ stacked[(k + 1) * g :].T
            return out

        if columns < 2:
            return np.empty((0, g, g))
        sums = _summed(mean.size, (columns * g, columns * g), one).reshape(columns, g, columns, g)
        scale = 2 * np.pi * np.prod(self.pair_widths[self.pairs], axis=1) / (float(weights[0]) if equal else 1.0)
        return np.stack([sums[k, :, j] for k, j in self.pairs]) / scale[:, None, None]

    def _joint_of_laws(self, mean: ComponentMean) -> Array:
        g = self.pair_grids.shape[1]
        out = np.empty((len(self.pairs), g, g))
        for values, pair in zip(out, self.pairs, strict=True):
            places = np.meshgrid(*self.pair_grids[pair], indexing="ij")
            values[:] = _seen(mean, pair, self.pair_widths)(np.stack(places, axis=-1).reshape(-1, 2)).reshape(g, g)
        return out


def _bars(mean: KernelMean, columns: int) -> Array:
    """(c, 3, b) the histograms of the first columns; of none if some weight is negative."""
    if mean.weights.min() < 0:
        return np.empty((0, 3, 0))
    found = histograms(mean.atoms, mean.weights, range(columns))
    out = np.zeros((columns, 3, max(bars.count for bars, _ in found)))
    for row, (bars, sums) in zip(out, found, strict=True):
        lengths = np.diff(bars.ends, axis=1)
        narrow = 0.0 if bars.values is None else (1 - APART) / 2 * lengths * [1, -1]  # few values stand apart, as high as before
        row[:2, : bars.count], row[2, : bars.count] = (bars.ends + narrow).T, sums[1 : bars.count + 1] / lengths[:, 0]
    return out


def _seen(mean: ComponentMean, columns: Sequence[int] | NDArray[np.int64], widths: Array) -> Mixture:
    """The laws of some columns, smoothed by bumps of these widths in place of the kernel's own."""
    laws = mean.pieces.spreads[:, columns][:, :, columns]
    return Mixture(mean.weights, mean.means[:, columns], laws + np.diag(np.square(widths[columns])))


def _along(mean: KernelMean, column: int, grid: Array, width: float) -> Array:
    """(G,) density of one column."""
    x, weights = mean.atoms[:, column : column + 1], mean.weights
    if mean.size > MANY:
        low, step = grid[0] - REACH * width, (grid[-1] - grid[0] + 2 * REACH * width) / (BINS - 1)
        weights = sum((shared_out((x[a:b, 0] - low) / step, weights[a:b]) for a, b in blocks(mean.size, MANY)), np.zeros(BINS))
        x = (low + step * np.arange(BINS))[:, None]
    return np.asarray(KernelMean(np.ascontiguousarray(x), weights, Gaussian(width, normalized=True))(grid[:, None], "single"))


def shared_out(places: Array, weights: Array) -> Array:
    """(BINS,) the weight at each of the places 0, 1, 2, …, where a point's is shared out among the two on either side of it."""
    first = np.floor(places)
    inside = (first >= 0) & (first < BINS - 1)
    if not inside.all():  # so far out that no bump reaches the grid
        places, first, weights = places[inside], first[inside], weights[inside]
    bins, upper = first.astype(np.int64), weights * (places - first)
    return np.asarray(np.bincount(bins, weights - upper, BINS) + np.bincount(bins + 1, upper, BINS), np.float64)


def _bulk(mean: KernelMean) -> tuple[Array, Array, Array]:
    """(d,) ends of the bulk of each column, and its standard deviation, from some rows that lie apart evenly."""
    some = mean.atoms[:: max(1, mean.size // LOOKED_AT)].astype(np.float64)
    low, high = np.quantile(some, [TAIL, 1 - TAIL], axis=0)
    return low, high, some.std(axis=0)


def _widths(mean: KernelMean, spread: Array) -> Array:
    """(d,) the kernel's bandwidth along each column; by Scott's rule for a kernel that has none."""
    kernel: Any = mean.kernel
    if isinstance(kernel, RadialKernel):
        units = kernel.column_units
        return kernel.width * (np.ones(mean.dimension) if units is None else units)
    return np.where(spread > 0, spread, 1.0) * mean.size ** (-1 / 5)


def _factors(x: Floats, grid: Array, width: float) -> NDArray[np.float32]:
    """(places, rows) of exp(−(place − x)²/2h²), in single precision: finer than any picture."""
    middle, scale = grid[len(grid) // 2], 1 / (np.sqrt(2.0) * width)
    steps = ((grid - middle) * scale).astype(np.float32)[:, None] - ((x - middle) * scale).astype(np.float32)
    np.square(steps, out=steps)
    np.negative(steps, out=steps)
    return np.exp(steps, out=steps)


def _summed(count: int, shape: tuple[int, ...], one: Callable[[int, int], Array]) -> Array:
    """Σ one(start, stop) over blocks of rows, in their order whichever thread was first."""
    cuts = blocks(count, BLOCK)
    ranges = blocks(len(cuts), -(-len(cuts) // MOST_PARTS))
    parts = np.zeros((len(ranges), *shape))

    def task(k: int, first: int, last: int) -> None:
        for start, stop in cuts[first:last]:
            parts[k] += one(start, stop)

    with single_threaded_blas():
        run_all([partial(task, k, first, last) for k, (first, last) in enumerate(ranges)])
    return np.asarray(parts.sum(axis=0))
