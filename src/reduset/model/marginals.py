"""Marginal densities of a mean, for columns and pairs of columns, on grids; and the differences of columns between two means.

    p_k(t) = Σᵢ wᵢ N(t; xᵢₖ, h_k²),   p_kl(s, t) = Σᵢ wᵢ N(s; xᵢₖ, h_k²) N(t; xᵢₗ, h_l²)

Here h_k is the kernel's bandwidth along column k, or the step of the grid if that is wider. For a Gaussian kernel without
correlations these are the marginals of f. Components are smoothed in the same way: N(t; cₖ, Sₖₖ + h_k²). Pairs of columns are
products of matrices of factors, block by block, in O(n·pairs·g²). Along one column, many points are first binned linearly on 2¹³
points. Binning keeps their mean and changes a density by less than 10⁻⁴ of its peak. It costs O(n).

The difference of a column is max_t |p_k(t) − q_k(t)| / max_t p_k(t), where p is the density of all rows and q the density of the
atoms. The bandwidth h_k is a tenth of the column's interquartile range, or of its standard deviation if that range is 0. It is
computed by linear binning and a Fourier transform, in O(n) per column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine import blocks, run_all, single_threaded_blas
from reduset._types import Array, Floats
from reduset.bandwidth import column_scales
from reduset.kernels import Gaussian, RadialKernel
from reduset.mean import KernelMean
from reduset.mixture import ComponentMean, Mixture, SmallMean
from reduset.model.column_histograms import histograms

GRID, PAIR_GRID = 160, 40  # points
MAX_COLUMNS, MAX_PAIRED = 40, 6
BLOCK, MAX_PARTS = 1 << 12, 16  # the factors of a block fit in the cache
BINNED_ROWS, BINS, REACH = 50_000, 1 << 13, 8.0  # more rows are binned; bandwidths that bins extend beyond a grid
SAMPLED_ROWS = 100_000
TAIL = 0.001  # proportion of the rows at each end that may lie outside a grid
BAR_WIDTH = 0.4  # of bars of few values, relative to their distance
BEYOND = 3.0  # bandwidths that a grid extends beyond the bulk
WIDTH = 0.1  # bandwidth for differences, relative to the spread of a column
WIDTH_BINS, MIN_WIDTH_BINS = 8, 3  # bins per bandwidth, and the minimum for columns with a wide range
COLUMN_TAIL = 1e-4  # proportion of the rows at each end that may lie outside the bins of a column with a wide range


@dataclass(frozen=True)
class MarginalDensities:
    """Marginal densities of a mean.

    Attributes
    ----------
    grids : (c, G) points along each of the first c columns
    widths : (c,) bandwidths
    marginals : (c, G) densities
    pair_grids : (b, g) points along the first b columns, for pairs
    pair_widths : (b,) bandwidths for pairs
    pairs : (P, 2) columns
    joint : (P, g, g) densities, the first column of the pair along the first axis
    bars : (c, 3, b) histograms of the rows
        The start and end of each bar, and the density in it. Bars of width 0 are padding. The shape is (0, 3, 0) if histograms are
        unknown, which is the case in older files and for signed weights.
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
        """The densities of a mean, on grids around the bulk of its points."""
        sample = mean.atoms[:: max(1, mean.size // SAMPLED_ROWS)].astype(np.float64)
        low, high = np.quantile(sample, [TAIL, 1 - TAIL], axis=0)
        bandwidths = _bandwidths(mean, sample.std(axis=0))
        grids, pair_grids = (
            np.linspace((low - BEYOND * bandwidths)[:columns], (high + BEYOND * bandwidths)[:columns], points, axis=1)
            for columns, points in ((MAX_COLUMNS, GRID), (MAX_PAIRED, PAIR_GRID))
        )
        widths, pair_widths = (np.maximum(bandwidths[: len(grid)], grid[:, 1] - grid[:, 0]) for grid in (grids, pair_grids))
        pairs = np.array(list(combinations(range(len(pair_grids)), 2)), np.int64).reshape(-1, 2)
        blank = cls(grids, widths, np.empty(0), pair_grids, pair_widths, pairs, np.empty(0))
        marginals, joint = blank.marginals_of(mean), blank.joint_of(mean)
        return cls(grids, widths, marginals, pair_grids, pair_widths, pairs, joint, _bars(mean, len(grids)))

    def marginals_of(self, mean: SmallMean) -> Array:
        """(c, G) densities of another mean, on the same grids with the same bandwidths."""
        if isinstance(mean, ComponentMean):
            return np.stack([_smoothed(mean, [k], self.widths[[k]])(grid[:, None]) for k, grid in enumerate(self.grids)])
        return np.stack([_along(mean, k, grid, float(self.widths[k])) for k, grid in enumerate(self.grids)])

    def joint_of(self, mean: SmallMean) -> Array:
        """(P, g, g) densities of another mean, on the same grids with the same bandwidths."""
        columns, g = len(self.pair_grids), self.pair_grids.shape[1]
        if isinstance(mean, ComponentMean):
            out = np.empty((len(self.pairs), g, g))
            for values, pair in zip(out, self.pairs, strict=True):
                points = np.stack(np.meshgrid(*self.pair_grids[pair], indexing="ij"), axis=-1).reshape(-1, 2)
                values[:] = _smoothed(mean, pair, self.pair_widths[pair])(points).reshape(g, g)
            return out
        if columns < 2:
            return np.empty((0, g, g))
        weights = mean.weights
        equal = weights.min() == weights.max()  # equal weights multiply the sums once, at the end
        cuts = blocks(mean.size, BLOCK)
        ranges = blocks(len(cuts), -(-len(cuts) // MAX_PARTS))
        parts = np.zeros((len(ranges), columns * g, columns * g))  # added in order, so that results do not depend on threads

        def add(part: Array, first: int, last: int) -> None:
            for start, stop in cuts[first:last]:
                factors = [_factors(mean.atoms[start:stop, k], self.pair_grids[k], self.pair_widths[k]) for k in range(columns)]
                stacked = np.concatenate(factors)
                for k, factor in enumerate(factors[:-1]):
                    left = factor if equal else factor * weights[start:stop].astype(np.float32)
                    part[k * g : (k + 1) * g, (k + 1) * g :] += left @ stacked[(k + 1) * g :].T

        with single_threaded_blas():
            run_all([partial(add, part, first, last) for part, (first, last) in zip(parts, ranges, strict=True)])
        sums = parts.sum(axis=0).reshape(columns, g, columns, g)
        scale = 2 * np.pi * np.prod(self.pair_widths[self.pairs], axis=1) / (float(weights[0]) if equal else 1.0)
        return np.stack([sums[k, :, j] for k, j in self.pairs]) / scale[:, None, None]


def _bars(mean: KernelMean, columns: int) -> Array:
    """(c, 3, b) the histograms of the first columns; (0, 3, 0) if any weight is negative."""
    if mean.weights.min() < 0:
        return np.empty((0, 3, 0))
    counted = histograms(mean.atoms, mean.weights, range(columns))
    out = np.zeros((columns, 3, max(len(sums) for _, sums in counted) - 2))
    for row, (bars, sums) in zip(out, counted, strict=True):
        ends = bars.ends
        lengths = np.diff(ends, axis=1)
        narrower = 0.0 if bars.values is None else (1 - BAR_WIDTH) / 2 * lengths * [1, -1]  # bars of few values are separate
        row[:2, : len(ends)], row[2, : len(ends)] = (ends + narrower).T, sums[1:-1] / lengths[:, 0]
    return out


def _smoothed(mean: ComponentMean, columns: Sequence[int] | NDArray[np.int64], widths: Array) -> Mixture:
    """The components in some columns, smoothed with these bandwidths instead of the kernel."""
    covariances = mean.pieces.spreads[:, columns][:, :, columns]
    return Mixture(mean.weights, mean.means[:, columns], covariances + np.diag(np.square(widths)))


def _along(mean: KernelMean, column: int, grid: Array, width: float) -> Array:
    """(G,) density of one column."""
    x, weights = mean.atoms[:, column : column + 1], mean.weights
    if mean.size > BINNED_ROWS:
        low, step = grid[0] - REACH * width, (grid[-1] - grid[0] + 2 * REACH * width) / (BINS - 1)
        weights = sum((_binned((x[a:b, 0] - low) / step, weights[a:b]) for a, b in blocks(mean.size, BINNED_ROWS)), np.zeros(BINS))
        x = (low + step * np.arange(BINS))[:, None]
    return np.asarray(KernelMean(np.ascontiguousarray(x), weights, Gaussian(width, normalized=True))(grid[:, None], "single"))


def _binned(positions: Array, weights: Array) -> Array:
    """(BINS,) linear binning: the weight at a position is divided between the two nearest integers."""
    first = np.floor(positions)
    inside = (first >= 0) & (first < BINS - 1)
    if not inside.all():
        positions, first, weights = positions[inside], first[inside], weights[inside]
    bins, upper = first.astype(np.int64), weights * (positions - first)
    return np.asarray(np.bincount(bins, weights - upper, BINS) + np.bincount(bins + 1, upper, BINS), np.float64)


def _bandwidths(mean: KernelMean, spread: Array) -> Array:
    """(d,) the kernel's bandwidth along each column, or Scott's rule for a kernel without a bandwidth."""
    kernel: Any = mean.kernel
    if isinstance(kernel, RadialKernel):
        units = kernel.column_units
        return kernel.width * (np.ones(mean.dimension) if units is None else units)
    return np.where(spread > 0, spread, 1.0) * mean.size ** (-1 / 5)


def _factors(x: Floats, grid: Array, width: float) -> NDArray[np.float32]:
    """(points, rows) of exp(−(point − x)²/2h²), in single precision."""
    middle, scale = grid[len(grid) // 2], 1 / (np.sqrt(2.0) * width)
    steps = ((grid - middle) * scale).astype(np.float32)[:, None] - ((x - middle) * scale).astype(np.float32)
    np.square(steps, out=steps)
    np.negative(steps, out=steps)
    return np.exp(steps, out=steps)


def column_differences(full: KernelMean, small: SmallMean, scales: Array | None = None) -> Array:
    """(d,) the largest difference between the densities of each column in ``small`` and ``full``, relative to the peak in ``full``.

    Parameters
    ----------
    full : KernelMean
    small : KernelMean or ComponentMean of the same columns
    scales : (d,) the spread of each column, by default from ``full``

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.model import column_differences
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> f = KernelMean.from_samples(X, Gaussian(1.0))
    >>> moved = KernelMean.from_samples(X + [0.0, 0.1], Gaussian(1.0))
    >>> column_differences(f, moved).round(2)
    array([0. , 0.1])
    """
    spreads = column_scales(full.atoms, full.magnitudes) if scales is None else scales
    return np.array([_difference(full, small, k, WIDTH * float(spread)) for k, spread in enumerate(spreads)])


def _difference(full: KernelMean, small: SmallMean, column: int, width: float) -> float:
    low, step = _bins(full, small, column, width)
    width = max(width, MIN_WIDTH_BINS * step)
    before = _convolved(_column_bins(full, column, low, step), width / step)
    if isinstance(small, KernelMean):
        after = _convolved(_column_bins(small, column, low, step), width / step)
    else:
        points = low + step * np.arange(BINS, dtype=np.float64)
        after = step * _smoothed(small, [column], np.array([width]))(points[:, None])
    peak = float(before.max())
    return float(np.abs(before - after).max()) / peak if peak > 0 else 0.0


def _bins(full: KernelMean, small: SmallMean, column: int, width: float) -> tuple[float, float]:
    """The first bin and the step between bins, around all rows or their bulk."""
    ends = [(mean.atoms[:, column].min(), mean.atoms[:, column].max()) for mean in (full, small)]
    low, high = float(min(end[0] for end in ends)), float(max(end[1] for end in ends))
    if (high - low) / width * WIDTH_BINS > BINS - 2 * REACH * WIDTH_BINS:
        low, high = map(float, np.quantile(full.atoms[:, column], [COLUMN_TAIL, 1 - COLUMN_TAIL]))
    step = max(width / WIDTH_BINS, (high - low) / (BINS - 1 - 2 * REACH * WIDTH_BINS))
    return low - REACH * WIDTH_BINS * step, step


def _column_bins(mean: KernelMean, column: int, low: float, step: float) -> Array:
    """(BINS,) the weight in each bin."""
    x, sums = mean.atoms[:, column], np.zeros(BINS)
    for a, b in blocks(mean.size, BINNED_ROWS):
        sums += _binned(np.subtract(x[a:b], low, dtype=np.float64) / step, mean.weights[a:b])
    return sums


def _convolved(weights: Array, width: float) -> Array:
    """(BINS,) convolution with a normal density of this width in bins."""
    frequencies = np.fft.rfft(weights, 2 * BINS)
    angles = np.arange(len(frequencies)) * (np.pi / BINS)
    return np.asarray(np.fft.irfft(frequencies * np.exp(-0.5 * (width * angles) ** 2), 2 * BINS)[:BINS])
