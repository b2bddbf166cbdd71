"""Logarithms of weighted kernel sums with a bounded relative error. Leaves near the query are summed exactly, others by moments.

The points are sorted into the boxes of a k-d tree (`leaves`). For a query q and leaf l of weight m_l, the kernel at the nearest
corner of the box gives the upper bound u_l = m_l·φ(nearest corner) of the leaf's sum. The leaves of largest bound are summed point
by point, until the bounds of the others add up to at most ρ times the sum found so far:

    Σ_{l not summed} u_l ≤ ρ·S,   S = Σ_{l summed} Σ_{i in l} wᵢ φ(xᵢ, q).

Each of the others adds an estimate e_l ≤ u_l. For the Gaussian, this is the integral over a normal distribution with the leaf's
mean and column variances, which is exact up to third moments. It is 0 if it would depend on a tail of that distribution with few
points of the leaf. For other kernels it is the kernel at the root mean square distance. So the result lies between S and (1 + ρ)·S,
as the true sum does. The error of the logarithm is at most log(1 + ρ) at every query, near or far. The measured error is at least
ten times smaller. Sums are relative to the least exponent, so that nothing underflows far from all points.

Coordinates are relative to the middle of their leaf, so that single precision loses no digits in long tails of the data. Memory:
one copy of the points. Time: O(d·n / leaf) a query for the bounds, and O(d) for each point of a leaf that is summed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from reduset._engine.arithmetic import FAST, exp_minus
from reduset._engine.compiled import compiled, inner, row, strip
from reduset._engine.distances import CITYBLOCK, LINEAR, SQUARED, to_distances, to_exponents
from reduset._engine.leaves import build_leaves
from reduset._engine.profile import Frame, Profile
from reduset._engine.threads import blocks, run_all
from reduset._types import Array, Floats, Indices

SINGLE_REACH = 8192.0  # largest distance from the centre, in kernel units, at which float32 exponents are accurate to 1e-5
QUERIES_TASK = 64
LANES = 16  # points per vector operation; leaves are padded to a multiple
BUCKETS, BUCKETS_PER_UNIT = 64, 2.0  # histogram of the bounds by their logarithm
MAX_EXPONENT = 80.0  # largest exponent with a kernel value in the range of float32
TINY = 1e-300
# limit on z²/2, where z is the number of standard deviations between a leaf's mean and the region that dominates its estimate
MAX_STRAIN = 2.0


@dataclass(frozen=True)
class LeafSums:
    """Weighted points in leaves, prepared for queries.

    Attributes
    ----------
    columns : (n·d,) coordinates relative to the middle of their leaf, leaf by leaf, by columns
    weights : (n,) in units of ``unit``
    starts : (leaves + 1,) first point of each leaf, and the end
    middles : (leaves, d)
    low, high, means, narrowing : (d, leaves) boxes, means of the points, and factors of squared distances to the mean
    log_masses, inside, outside : (leaves,) logarithm of the weight, and additions to the distance and the exponent of the estimate
    """

    columns: Floats
    weights: Floats
    starts: Indices
    middles: Array
    low: Floats
    high: Floats
    means: Floats
    narrowing: Floats
    log_masses: Floats
    inside: Floats
    outside: Floats
    unit: float
    frame: Frame
    profile: Profile

    @classmethod
    def of(cls, points: Floats, weights: Floats, frame: Frame, profile: Profile, length: int = 128) -> LeafSums:
        """Sort (n, d) points with positive weights (n,) into leaves of at most ``length`` points.

        ``profile`` must have squared or city-block distances.
        """
        if profile.metric not in (SQUARED, CITYBLOCK):
            raise ValueError("profile must have squared or city-block distances, since leaves have bounds for these only")
        d = points.shape[1]
        leaves = build_leaves(points, frame, np.float64, length=length)
        reach = max(float(np.abs(leaves.low).max()), float(np.abs(leaves.high).max()))
        dtype: type = np.float32 if profile.in_single and reach <= SINGLE_REACH else np.float64
        unit = float(np.max(weights))
        ordered = np.asarray(weights, np.float64)[leaves.order] / unit
        mass, means, variances = _moments(leaves.columns, leaves.starts, ordered, d)
        middles = np.asarray(0.5 * leaves.low + 0.5 * leaves.high, np.float64)
        starts, columns, w = _padded(leaves.columns, leaves.starts, ordered, middles, dtype)
        gaussian = profile.family == LINEAR and profile.metric == SQUARED
        spread = 2 * variances if gaussian else np.zeros_like(variances)  # the kernel's variance is ½ in these coordinates
        log_masses = np.log(mass)
        inside = variances.sum(axis=1) if profile.metric == SQUARED and not gaussian else np.zeros(len(mass))

        def by_columns(values: Floats) -> Floats:
            return np.ascontiguousarray(values.T, dtype)

        return cls(
            columns,
            w,
            starts,
            middles,
            by_columns(leaves.low),
            by_columns(leaves.high),
            by_columns(means),
            by_columns(1 / (1 + spread)),
            log_masses.astype(dtype),
            inside.astype(dtype),
            (0.5 * np.log1p(spread).sum(axis=1) - log_masses).astype(dtype),
            unit,
            frame,
            profile,
        )

    def logs(self, queries: Floats, ratio: float) -> Array:
        """log Σᵢ wᵢ φ(xᵢ, q) for each query, (q,), with an error of at most log(1 + ratio)."""
        Q = self.frame.apply(queries)
        out = np.empty(len(Q))
        arrays = (self.low, self.high, self.means, self.narrowing, self.log_masses, self.inside, self.outside)
        loops = self.profile.value_arguments(self.columns.dtype.type)
        arguments: tuple[Any, ...] = (self.profile.metric, *loops, float(ratio))
        points = (self.columns, self.weights, self.starts, self.middles)
        run_all([partial(_near_logs, *points, *arrays, Q[a:b], *arguments, out[a:b]) for a, b in blocks(len(Q), QUERIES_TASK)])
        out += np.log(self.unit)
        return out


@compiled()
def _moments(columns, starts, weights, d):
    """The weight of each leaf, (leaves,), and the mean and variance of each column, (leaves, d)."""
    count = len(starts) - 1
    mass = np.zeros(count)
    means = np.zeros((count, d))
    variances = np.zeros((count, d))
    for leaf in range(count):
        a = starts[leaf]
        size = starts[leaf + 1] - a
        for i in range(size):
            mass[leaf] += weights[a + i]
        for j in range(d):
            z = strip(columns, a * d + j * size, size)
            total = 0.0
            for i in range(size):
                total += weights[a + i] * (z[i] - z[0])
            shift = total / mass[leaf]
            squares = 0.0
            for i in range(size):
                squares += weights[a + i] * (z[i] - z[0] - shift) ** 2
            means[leaf, j] = z[0] + shift
            variances[leaf, j] = squares / mass[leaf]
    return mass, means, variances


def _padded(columns: Floats, starts: Indices, weights: Array, middles: Array, dtype: type) -> tuple[Indices, Floats, Floats]:
    """Coordinates relative to the middles of the leaves, padded to whole vectors with points of weight 0."""
    d = middles.shape[1]
    lengths = np.diff(starts)
    ends = np.concatenate([[0], np.cumsum(-(-lengths // LANES) * LANES)])
    out, w = np.empty(ends[-1] * d, dtype), np.zeros(ends[-1], dtype)
    _fill(columns, starts, weights, middles, ends, out, w)
    return ends, out, w


@compiled()
def _fill(columns, starts, weights, middles, ends, out, w):
    d = middles.shape[1]
    for leaf in range(len(starts) - 1):
        a, size = starts[leaf], starts[leaf + 1] - starts[leaf]
        to, length = ends[leaf], ends[leaf + 1] - ends[leaf]
        for i in range(size):
            w[to + i] = weights[a + i]
        for j in range(d):
            for i in range(length):
                out[to * d + j * length + i] = columns[a * d + j * size + min(i, size - 1)] - middles[leaf, j]


@inner(fastmath=FAST)
def _exponents(
    low, high, means, narrowing, log_masses, inside, outside, q, metric, exponents, exponent, table, step, bounds, estimates, strain
):
    """The exponents of the bounds u and of the estimates e of every leaf: u = exp(−bound). ``strain`` is overwritten."""
    d, count = low.shape
    dtype = low.dtype.type
    zero = dtype(0)
    for k in range(count):
        bounds[k] = zero
        estimates[k] = inside[k]
        strain[k] = zero
    for j in range(d):
        x = dtype(q[j])
        lower, upper, mean, narrow = row(low, j), row(high, j), row(means, j), row(narrowing, j)
        if metric == SQUARED:
            for k in range(count):
                u = max(max(lower[k] - x, x - upper[k]), zero)
                v = mean[k] - x
                bounds[k] += u * u
                y = v * v * narrow[k]
                estimates[k] += y
                strain[k] += y * (dtype(1) - narrow[k])
        else:
            for k in range(count):
                bounds[k] += max(max(lower[k] - x, x - upper[k]), zero)
                estimates[k] += abs(mean[k] - x)
    to_exponents(exponents, exponent, table, step, bounds, count)
    to_exponents(exponents, exponent, table, step, estimates, count)
    for k in range(count):
        bounds[k] -= log_masses[k]
        estimates[k] = max(estimates[k] + outside[k], bounds[k]) if strain[k] < dtype(MAX_STRAIN) else dtype(np.inf)


@inner(fastmath=FAST)
def _histogram(bounds, base, sums):
    """Σ exp(base − bound) over the leaves in each bucket of bounds. Distant leaves count as more than they are, never as 0."""
    dtype = bounds.dtype.type
    for b in range(BUCKETS):
        sums[b] = 0.0
    for k in range(len(bounds)):
        u = bounds[k] - base
        if u < dtype(np.inf):
            b = np.int64(min(u * dtype(BUCKETS_PER_UNIT), dtype(BUCKETS - 1)))
            sums[b] += np.float64(exp_minus(min(u, dtype(MAX_EXPONENT))))


@inner(fastmath=FAST)
def _leaf_sum(t, weights, start, size, scale):
    """Σ w exp(scale − exponent) of the points of a leaf."""
    w = strip(weights, start, size)
    total = t.dtype.type(0)
    for i in range(size):
        total += w[i] * exp_minus(t[i] - scale)
    return np.float64(total)


@inner(fastmath=FAST)
def _estimate(estimates, base):
    """Σ exp(base − estimate) over the leaves that were not summed."""
    total = 0.0
    for k in range(len(estimates)):
        total += np.float64(exp_minus(estimates[k] - base))
    return total


@compiled(fastmath=FAST)
def _near_logs(
    columns, weights, starts, middles, low, high, means, narrowing, log_masses, inside, outside,
    Q, metric, distances, exponents, exponent, table, step, ratio, out,
):  # fmt: skip
    d, count = low.shape
    dtype = low.dtype.type
    bounds = np.empty(count, low.dtype)
    estimates = np.empty(count, low.dtype)
    strain = np.empty(count, low.dtype)
    sums = np.empty(BUCKETS)
    longest = np.int64(1)
    for leaf in range(count):
        longest = max(longest, starts[leaf + 1] - starts[leaf])
    t = np.empty(longest, low.dtype)
    offset = np.empty(d, low.dtype)
    for q in range(Q.shape[0]):
        _exponents(
            low, high, means, narrowing, log_masses, inside, outside,
            row(Q, q), metric, exponents, exponent, table, step, bounds, estimates, strain,
        )  # fmt: skip
        least = np.inf  # the exponent of the nearest point so far
        total = 0.0  # Σ w exp(least − exponent) over the leaves that were summed
        first = BUCKETS  # the first bucket with leaves that are not summed yet
        base = dtype(0)
        rest = np.inf
        # In units of exp(−base), log ρS is log(ratio·total) − least + base.
        while rest > 0.0 and (total == 0.0 or np.log(rest) > np.log(ratio * total) - least + base):
            if first >= BUCKETS - 1:  # the leaves of the last bucket get a new histogram
                base = dtype(np.inf)
                for k in range(count):
                    base = min(base, bounds[k])
                if base == dtype(np.inf):
                    rest = 0.0
                    continue
                _histogram(bounds, base, sums)
                first = 0
            last = first
            # take as many buckets as the current sum requires; since the sum grows, this may be too many but not too few
            if total > 0.0:
                after = 0.0
                for b in range(first + 1, BUCKETS):
                    after += sums[b]
                while last < min(first + 1, BUCKETS - 2) and np.log(max(after, TINY)) > np.log(ratio * total) - least + base:
                    last += 1
                    after -= sums[last]
            limit = dtype((last + 1) / BUCKETS_PER_UNIT)
            for k in range(count):
                if bounds[k] - base < limit:
                    bounds[k] = dtype(np.inf)
                    estimates[k] = dtype(np.inf)
                    a = starts[k]
                    size = starts[k + 1] - a
                    for j in range(d):
                        offset[j] = dtype(Q[q, j] - middles[k, j])
                    to_distances(distances, columns, a * d, size, size, offset, t)
                    to_exponents(exponents, exponent, table, step, t, size)
                    closest = t[0]
                    for i in range(1, size):
                        closest = min(closest, t[i])
                    if closest < least:
                        if total > 0.0:
                            total *= np.exp(closest - least)
                        least = np.float64(closest)
                    total += _leaf_sum(t, weights, a, size, dtype(least))
            first = last + 1
            rest = 0.0
            for b in range(first, BUCKETS):
                rest += sums[b]
        estimated = 0.0 if rest == 0.0 else _estimate(estimates, base)
        if estimated > 0.0:
            total += estimated * np.exp(least - base)
        out[q] = np.log(total) - least
