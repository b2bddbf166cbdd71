"""Columns one by one: how far each looks from what it was, in the density of that column alone.

    max_t |p_k(t) − q_k(t)| / max_t p_k(t),   p_k(t) = Σᵢ wᵢ N(t; xᵢₖ, h_k²)

of all rows and of the few atoms (of components, N(t; c_k, S_kk + h_k²) each), h_k a tenth of the column's interquartile range (of
its standard deviation, where that is 0). The certificate is of all columns together at the kernel's bandwidth; this tells of one at
a scale that does not depend on it. Rows are shared out among the two nearest of up to 2¹³ places on a line, which are then smoothed
by a Fourier transform: O(n) a column.
"""

from __future__ import annotations

import numpy as np

from reduset._engine import blocks
from reduset._types import Array
from reduset.bandwidth import column_scales
from reduset.mean import KernelMean
from reduset.mixture.component_mean import ComponentMean, SmallMean
from reduset.model.marginals import BINS, MANY, REACH, shared_out

TENTH = 0.1  # of the spread
FINE, LEAST = 8, 3  # places a width, and where a line is too long for that
SOME = 64  # components at a time
TAIL = 1e-4  # of the rows on either side, which may lie beyond the line where it would be too coarse


def column_differences(full: KernelMean, small: SmallMean, scales: Array | None = None) -> Array:
    """(d,) the largest difference of each column's density in ``small`` to that in ``full``, as a share of its peak there.

    Parameters
    ----------
    full : KernelMean
    small : KernelMean or ComponentMean of the same columns
    scales : (d,) the spread of each column; found from ``full`` if not given

    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.model.columns import column_differences
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> f = KernelMean.from_samples(X, Gaussian(1.0))
    >>> moved = KernelMean.from_samples(X + [0.0, 0.1], Gaussian(1.0))
    >>> column_differences(f, moved).round(2)
    array([0. , 0.1])
    """
    spreads = column_scales(full.atoms, full.magnitudes) if scales is None else scales
    return np.array([_difference(full, small, k, TENTH * float(spread)) for k, spread in enumerate(spreads)])


def _difference(full: KernelMean, small: SmallMean, column: int, width: float) -> float:
    low, step = _line(full, small, column, width)
    width = max(width, LEAST * step)
    before = _smooth(_shared(full, column, low, step), width / step)
    if isinstance(small, KernelMean):
        after = _smooth(_shared(small, column, low, step), width / step)
    else:
        after = step * _of_components(small, column, low + step * np.arange(BINS, dtype=np.float64), width)
    peak = float(before.max())
    return float(np.abs(before - after).max()) / peak if peak > 0 else 0.0


def _line(full: KernelMean, small: SmallMean, column: int, width: float) -> tuple[float, float]:
    """Where the line of places begins, and the step from one to the next: around all rows, or the bulk of them."""
    ends = [(mean.atoms[:, column].min(), mean.atoms[:, column].max()) for mean in (full, small)]
    low, high = float(min(end[0] for end in ends)), float(max(end[1] for end in ends))
    if (high - low) / width * FINE > BINS - 2 * REACH * FINE:
        low, high = map(float, np.quantile(full.atoms[:, column], [TAIL, 1 - TAIL]))
    step = max(width / FINE, (high - low) / (BINS - 1 - 2 * REACH * FINE))
    return low - REACH * FINE * step, step


def _shared(mean: KernelMean, column: int, low: float, step: float) -> Array:
    """(BINS,) the weight at each place."""
    x = mean.atoms[:, column]
    places = ((a, b, np.subtract(x[a:b], low, dtype=np.float64) / step) for a, b in blocks(mean.size, MANY))
    return sum((shared_out(there, mean.weights[a:b]) for a, b, there in places), np.zeros(BINS))


def _smooth(weights: Array, width: float) -> Array:
    """(BINS,) sums of normal bumps of this width in places."""
    waves = np.fft.rfft(weights, 2 * BINS)
    turns = np.arange(len(waves)) * (np.pi / BINS)
    return np.asarray(np.fft.irfft(waves * np.exp(-0.5 * (width * turns) ** 2), 2 * BINS)[:BINS])


def _of_components(small: ComponentMean, column: int, places: Array, width: float) -> Array:
    """(BINS,) the density of one column of the laws themselves, without the kernel's bump, smoothed by this width."""
    laws = small.pieces
    spreads = np.sqrt(np.maximum(laws.spreads[:, column, column], 0.0) + width**2)
    centres, heights = laws.places[:, column], small.weights / (np.sqrt(2 * np.pi) * spreads)
    out = np.zeros(len(places))
    for a, b in blocks(len(centres), SOME):
        away = (places - centres[a:b, None]) / spreads[a:b, None]
        out += heights[a:b] @ np.exp(-0.5 * away**2)
    return out
