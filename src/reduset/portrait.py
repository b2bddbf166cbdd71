"""What a picture shows of a mean: its marginal densities, of columns and of pairs of columns, as numbers on grids.

    p_k(t) = Σᵢ wᵢ N(t; xᵢₖ, h_k²),   p_kl(s, t) = Σᵢ wᵢ N(s; xᵢₖ, h_k²) N(t; xᵢₗ, h_l²)

with h_k the kernel's bandwidth along column k, or the grid's step where that is wider. For a Gaussian kernel without correlations
these are the marginals of f itself; for others a picture of the weighted points at the kernel's scale. All rows are counted, block
by block: a pair of columns is one product of two matrices of factors. O(n·(d·G + pairs·g²)).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.profile import Floats
from reduset._engine.threads import blocks, run_all, single_threaded_blas
from reduset.kernels import Gaussian
from reduset.mean import KernelMean
from reduset.radial import Array, RadialKernel

PLACES, PAIR_PLACES = 160, 48
MOST_COLUMNS, MOST_PAIRED = 40, 6
BLOCK, MOST_BLOCKS = 1 << 12, 256  # a block's factors stay in the cache
LOOKED_AT = 100_000  # rows, for where a column's bulk lies
TAIL = 0.001  # of the rows on either side, which may lie outside of the picture
BEYOND = 3.0  # bandwidths that a grid reaches beyond the bulk


@dataclass(frozen=True)
class Portrait:
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
    """

    grids: Array
    widths: Array
    marginals: Array
    pair_grids: Array
    pair_widths: Array
    pairs: NDArray[np.int64]
    joint: Array

    @classmethod
    def of(cls, mean: KernelMean) -> Portrait:
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
        return cls(grids, widths, *[blank.marginals_of(mean), pair_grids, pair_widths, pairs, blank.joint_of(mean)])

    def marginals_of(self, mean: KernelMean) -> Array:
        """(c, G) of another mean, on the same grids with the same bumps."""
        columns = [
            KernelMean(np.ascontiguousarray(mean.atoms[:, k : k + 1]), mean.weights, Gaussian(float(width), normalized=True))
            for k, width in enumerate(self.widths)
        ]
        return np.stack([column(grid[:, None], "single") for column, grid in zip(columns, self.grids, strict=True)])

    def joint_of(self, mean: KernelMean) -> Array:
        """(P, g, g) of another mean, on the same grids with the same bumps."""

        def one(rows: Floats, weights: Floats) -> Array:
            factors = [_factors(rows[:, k], *each) for k, each in enumerate(zip(self.pair_grids, self.pair_widths, strict=True))]
            return np.stack([(factors[k] * weights) @ factors[j].T for k, j in self.pairs])

        if not len(self.pairs):
            return np.empty((0, PAIR_PLACES, PAIR_PLACES))
        return _summed(mean, (len(self.pairs), PAIR_PLACES, PAIR_PLACES), one)


def _bulk(mean: KernelMean) -> tuple[Array, Array, Array]:
    """(d,) ends of the bulk of each column, and its standard deviation, from some rows that lie apart evenly."""
    some = mean.atoms[:: max(1, mean.size // LOOKED_AT)].astype(np.float64)
    low, high = np.quantile(some, [TAIL, 1 - TAIL], axis=0)
    return low, high, some.std(axis=0)


def _widths(mean: KernelMean, spread: Array) -> Array:
    """(d,) the kernel's bandwidth along each column; by Scott's rule for a kernel that has none."""
    kernel: Any = mean.kernel
    if isinstance(kernel, RadialKernel):
        scale = np.ones(mean.dimension) if kernel.covariance is None else np.sqrt(np.diag(kernel.covariance))
        return kernel.width * scale
    return np.where(spread > 0, spread, 1.0) * mean.size ** (-1 / 5)


def _factors(x: Floats, grid: Array, width: float) -> NDArray[np.float32]:
    """(places, rows) of normal densities, in single precision: finer than any picture."""
    middle = grid[len(grid) // 2]
    steps = ((grid - middle) / width).astype(np.float32)[:, None] - ((x - middle) / width).astype(np.float32)
    np.multiply(steps, steps, out=steps)
    np.multiply(steps, np.float32(-0.5), out=steps)
    np.exp(steps, out=steps)
    return np.multiply(steps, np.float32(1 / (np.sqrt(2 * np.pi) * width)), out=steps)


def _summed(mean: KernelMean, shape: tuple[int, ...], one: Any) -> Array:
    """Σ over blocks of rows, in their order whichever thread was first."""
    n = mean.size
    cuts = blocks(n, BLOCK)
    ranges = blocks(len(cuts), -(-len(cuts) // MOST_BLOCKS))
    parts = np.zeros((len(ranges), *shape))

    def task(k: int, first: int, last: int) -> None:
        for start, stop in cuts[first:last]:
            parts[k] += one(mean.atoms[start:stop], np.asarray(mean.weights[start:stop], np.float32))

    with single_threaded_blas():
        run_all([partial(task, k, first, last) for k, (first, last) in enumerate(ranges)])
    return np.asarray(parts.sum(axis=0))
