"""Sums of products of Gaussian components with components or points, and the moments in their gradients.

With φⱼ = N(·; xⱼ, Cⱼ) and gᵢ = N(·; tᵢ, Aᵢ), ⟨gᵢ, φⱼ⟩ = N(tᵢ; xⱼ, S), S = Aᵢ + Cⱼ. For given weights of the φⱼ and all i,

    total  pᵢ = Σⱼ aᵢⱼ,                          aᵢⱼ = wⱼ ⟨gᵢ, φⱼ⟩
    pull   bᵢ = Σⱼ aᵢⱼ S⁻¹(xⱼ − tᵢ) = ∂pᵢ/∂tᵢ
    stiff  Mᵢ = Σⱼ aᵢⱼ S⁻¹
    square Vᵢ = Σⱼ aᵢⱼ S⁻¹(xⱼ − tᵢ)(xⱼ − tᵢ)ᵀS⁻¹,   ∂pᵢ/∂Aᵢ = ½(Vᵢ − Mᵢ)

in units of the highest peak of the φⱼ; its logarithm is stored. If all φⱼ share one covariance (a kernel density), S is factored
once for each i, otherwise once for each pair. O(n·m·d²), O(n·m·d³), or O(n·m·d) for diagonal covariances. Memory is O(n·d) and a
few tiles. See `covariances` for the kinds of covariances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from reduset._engine.cached import cached_property
from reduset._engine.compiled import for_loops
from reduset._engine.covariances import (
    LOG_2PI,
    as_diagonal,
    as_full,
    factors,
    from_lower_rows,
    is_shared,
    log_determinants,
    log_peaks,
    lower_rows,
)
from reduset._engine.ellipsoids import (
    closest_of_pairs,
    closest_of_points,
    log_sums_at,
    pair_moments,
    pair_products,
    point_moments,
    values_at,
)
from reduset._engine.threads import blocks, run_all
from reduset._types import Array, Labels

BLOCK = 4096  # columns per task, which stay in the second-level cache for all components
# dimensions, columns per task, and the largest ratio of squared lengths to variances
BLAS_FROM, BLAS_ROWS, MAX_RELATIVE_LENGTH = 32, 1024, 1e5
Spans = tuple[Labels, Labels]  # first and last (exclusive) of the components paired with each of the others
MIN_PARALLEL_PAIRS = 30_000  # fewer products are computed by one thread


@dataclass(frozen=True)
class Moments:
    """Sums over the components, one entry per facing component. M and V are full, (m, d, d), or diagonals, (m, d)."""

    total: Array
    pull: Array
    stiff: Array
    square: Array


class Components:
    """Many weighted components, prepared for sums against a few others.

    Parameters
    ----------
    weights : (n,)
    centres : (n, d)
    covariances : (n,), (n, d) or (n, d, d)
    full : whether the other components may have full covariances, so that S is full
    """

    def __init__(self, weights: Array, centres: Any, covariances: Array, full: bool) -> None:
        self.size, self.dimension = centres.shape
        self.full = full or covariances.ndim == 3
        self.shared = is_shared(covariances)
        peaks = log_peaks(covariances[:1] if self.shared else covariances, self.dimension)
        self.log_unit = float(np.max(peaks))
        self.peaks = np.broadcast_to(np.exp(peaks - self.log_unit), self.size)
        self.weights = np.ascontiguousarray(weights * self.peaks)
        # Relative to a point among the centres, so that differences of large numbers are taken once, before any squaring.
        self.centre = np.asarray(centres[: 1 + self.size // 2 : max(1, self.size // 64)], np.float64).mean(axis=0)
        self.columns = np.ascontiguousarray((np.asarray(centres, np.float64) - self.centre).T)
        self.covariances = covariances[:1] if self.shared else covariances

    @classmethod
    def from_factors(cls, centres: Array, entries: Array, factors: Array, like: Components) -> Components:
        """Full components of weight 1, relative to the centre of ``like`` and in its units.

        Covariances are given as lower rows (m, e), with their factors.
        """
        result = object.__new__(cls)
        result.size, result.dimension = centres.shape
        result.full, result.shared = True, False
        result.centre, result.log_unit = like.centre, like.log_unit
        result.columns, result._rows = np.ascontiguousarray(centres.T), np.ascontiguousarray(entries.T)
        result._pivots = for_loops(factors.diagonal(axis1=1, axis2=2).T)
        logs = np.log(result._pivots).sum(axis=0) + (0.5 * result.dimension * LOG_2PI + result.log_unit)
        result.peaks = result.weights = np.exp(np.minimum(-logs, 700.0))
        return result

    def weigh(self, weights: Array) -> None:
        """Replace the weights."""
        self.weights = np.ascontiguousarray(weights * self.peaks)

    def measure_in(self, log_unit: float) -> None:
        """Use another unit instead of the highest peak."""
        factor = np.exp(min(self.log_unit - log_unit, 700.0))
        self.weights, self.peaks, self.log_unit = self.weights * factor, self.peaks * factor, log_unit

    def reordered(self, order: Labels) -> Components:
        """The same components in another order."""
        other = object.__new__(Components)
        other.__dict__.update({k: v for k, v in self.__dict__.items() if k not in ("_rows", "_pivots", "_lengths")})
        other.weights, other.peaks = self.weights[order], self.peaks[order]
        other.columns = np.ascontiguousarray(self.columns[:, order])
        other.covariances = self.covariances if self.shared else self.covariances[order]
        return other

    @cached_property
    def _rows(self) -> Array:
        """The covariances by columns, (entries, n)."""
        return for_loops(self._entries(self.covariances).T)

    @cached_property
    def _pivots(self) -> Array:
        if not self.full:
            return np.empty((self.dimension, 0))
        L = np.linalg.cholesky(as_full(self.covariances, self.dimension))
        return for_loops(L.diagonal(axis1=1, axis2=2).T)

    def _entries(self, covariances: Array) -> Array:
        if self.full:
            return for_loops(lower_rows(as_full(covariances, self.dimension)))
        return for_loops(as_diagonal(covariances, self.dimension))

    def _joint(self, covariances: Array) -> tuple[Array, Array, Array]:
        """S, its factors for the loops, and sqrt(|C|/|S|), for a shared covariance C."""
        if self.full:
            S = as_full(covariances, self.dimension) + as_full(self.covariances, self.dimension)
        else:
            S = as_diagonal(covariances, self.dimension) + as_diagonal(self.covariances, self.dimension)
        own_logs = log_determinants(self.covariances, self.dimension)
        return S, factors(S, self.dimension), np.exp(0.5 * (own_logs - log_determinants(S, self.dimension)))

    # -- spherical components in many dimensions: distances by a matrix product ---------------------------------------------------

    @cached_property
    def _lengths(self) -> Array:
        return np.einsum("ij,ij->j", self.columns, self.columns)

    def _are_balls(self, offsets: Array, covariances: Array) -> bool:
        """Whether all are spherical, in many dimensions, and wide enough for the rounding error of products."""
        if not self.shared or covariances.ndim > 1 or self.covariances.ndim > 1 or self.dimension < BLAS_FROM:
            return False
        longest = max(float(self._lengths.max()), float(np.einsum("ij,ij->i", offsets, offsets).max()))
        return longest <= MAX_RELATIVE_LENGTH * float(covariances.min() + self.covariances[0])

    def _balls(self, offsets: Array, covariances: Array, use: Callable[[int, int, int, Array], None]) -> None:
        """Call ``use(block, start, stop, values)`` with exp(−½|x − t|²/S), (m, stop − start), from several threads."""
        steep = -0.5 / (covariances + self.covariances)
        lengths = np.einsum("ij,ij->i", offsets, offsets)

        def compute(k: int, a: int, b: int) -> None:
            squares = offsets @ self.columns[:, a:b]
            squares *= -2.0
            squares += lengths[:, None]
            squares += self._lengths[a:b]
            np.maximum(squares, 0.0, out=squares)
            squares *= steep[:, None]
            use(k, a, b, np.exp(squares, out=squares))

        self._lengths  # noqa: B018  # once, before the threads would all compute it
        run_all([partial(compute, k, a, b) for k, (a, b) in enumerate(blocks(self.size, BLAS_ROWS))], blas=True)

    # -- sums over the components -----------------------------------------------------------------------------------------------

    def totals(self, centres: Array, covariances: Array) -> Array:
        """(m,) Σⱼ wⱼ ⟨gᵢ, φⱼ⟩."""
        if self.shared:
            offsets = for_loops(centres - self.centre)
            if self._are_balls(offsets, covariances):
                parts = np.zeros((len(blocks(self.size, BLAS_ROWS)), len(offsets)))

                def add(k: int, a: int, b: int, values: Array) -> None:
                    parts[k] = values @ self.weights[a:b]

                self._balls(offsets, covariances, add)
                return np.asarray(self._joint(covariances)[2] * parts.sum(axis=0))
            _, L, ratio = self._joint(covariances)
            return ratio * self._sums(point_moments, (for_loops(centres - self.centre), L), 0, 1)[:, 0]
        return self._sums(pair_moments, (for_loops(centres - self.centre), self._entries(covariances)), 0, 1)[:, 0]

    def moments(self, centres: Array, covariances: Array, bounds: Labels | Spans | None = None) -> Moments:
        """The sums over all components, or for component i only over bounds[i] … bounds[i + 1], or first[i] … last[i]."""
        d = self.dimension
        entries = d * (d + 1) // 2 if self.full else d
        offsets = for_loops(centres - self.centre)
        spans = bounds if bounds is None or isinstance(bounds, tuple) else (bounds[:-1], bounds[1:])
        if not self.shared:
            sums = self.pair_sums(offsets, self._entries(covariances), spans)
            stiff, square = sums[:, 1 + d : 1 + d + entries], sums[:, 1 + d + entries :]
            if self.full:
                stiff, square = from_lower_rows(stiff, d), from_lower_rows(square, d)
            return Moments(sums[:, 0], sums[:, 1 : 1 + d], stiff, square)
        S, L, ratio = self._joint(covariances)
        sums = self._sums(point_moments, (offsets, L), 2, 1 + d + entries, spans) * ratio[:, None]
        total, along, spread = sums[:, 0], sums[:, 1 : 1 + d], sums[:, 1 + d :]
        if not self.full:
            root = L[:, 0, :]
            return Moments(total, along * root, total[:, None] * root**2, spread * root**2)
        back = np.linalg.solve(np.linalg.cholesky(S).transpose(0, 2, 1), np.broadcast_to(np.eye(d), S.shape))  # L⁻ᵀ
        forth = back.transpose(0, 2, 1)
        pull = np.einsum("irc,ic->ir", back, along)
        return Moments(total, pull, total[:, None, None] * (back @ forth), back @ from_lower_rows(spread, d) @ forth)

    def energy(self, weights: Array) -> float:
        """Σᵢⱼ wᵢwⱼ ⟨φᵢ, φⱼ⟩ for the current weights, each pair once; for separate covariances."""
        first, last = np.zeros(self.size, np.int64), np.arange(self.size)
        facing = np.ascontiguousarray(self.columns.T), np.ascontiguousarray(self._rows.T)
        before = self._sums(pair_moments, facing, 0, 1, (first, last))[:, 0]
        return float(weights @ (2 * before + 0.5 ** (self.dimension / 2) * self.weights))

    def pair_sums(self, centres: Array, entries: Array, spans: Spans | None = None) -> Array:
        """(m, 1 + d + 2e) total, pull, stiff and square. Centres are relative to ``centre``, covariances are lower rows or
        diagonals."""
        return self._sums(pair_moments, (centres, entries), 2, 1 + self.dimension + 2 * entries.shape[1], spans)

    def _sums(self, loop: Any, facing: tuple[Array, Array], order: int, width: int, spans: Spans | None = None) -> Array:
        """The sums over all components, or over a span of them for each facing component."""
        centres, shapes = facing
        m = len(centres)
        arrays = (self.columns, self.weights) if self.shared else (self.columns, self._rows, self._pivots, self.weights)
        if spans is not None:  # each facing component has separate output, so that blocks of them do not overlap
            first, last = spans
            out = np.zeros((m, width))
            step = max(1, m // 16) if int((last - first).sum()) > MIN_PARALLEL_PAIRS else m
            run_all(
                [
                    partial(loop, *arrays, first[a:b], last[a:b], centres[a:b], shapes[a:b], order, out[a:b])
                    for a, b in blocks(m, step)
                ]
            )
            return out
        parts = blocks(self.size, BLOCK) if self.size * m > MIN_PARALLEL_PAIRS else [(0, self.size)]
        partial_sums = np.zeros((len(parts), m, width))
        tasks = []
        for k, (a, b) in enumerate(parts):
            first, last = np.full(m, a), np.full(m, b)
            tasks.append(partial(loop, *arrays, first, last, centres, shapes, order, partial_sums[k]))
        run_all(tasks)
        return np.asarray(partial_sums.sum(axis=0))

    # -- least cost for each component ---------------------------------------------------------------------------------------------

    def closest(self, centres: Array, covariances: Array, base: Array, gain: Array) -> tuple[Labels, Array, Array]:
        """For each component j: the i of least baseᵢ − gainᵢ ⟨gᵢ, φⱼ⟩ and this least value. Also the totals over all j."""
        offsets = for_loops(centres - self.centre)
        m = len(offsets)
        best = np.full(self.size, np.inf)
        which = np.zeros(self.size, np.int64)
        parts = blocks(self.size, BLOCK)
        totals = np.zeros((len(parts), m))
        ratio: Any = 1.0
        if self._are_balls(offsets, covariances):
            ratio = self._joint(covariances)[2]
            rises = (gain * ratio * self.peaks[0])[:, None]
            totals = np.zeros((len(blocks(self.size, BLAS_ROWS)), m))

            def compare(k: int, a: int, b: int, values: Array) -> None:
                totals[k] = values @ self.weights[a:b]
                cost = base[:, None] - rises * values
                which[a:b] = cost.argmin(axis=0)
                best[a:b] = cost.min(axis=0)

            self._balls(offsets, covariances, compare)
            return which, best, ratio * totals.sum(axis=0)
        if self.shared:
            _, L, ratio = self._joint(covariances)
            fixed: Sequence[Any] = (offsets, L, base, gain * ratio * self.peaks[0])
            arrays: Sequence[Any] = (self.columns, self.weights)
            loop: Any = closest_of_points
        else:
            fixed = (offsets, self._entries(covariances), base, gain)
            arrays = (self.columns, self._rows, self._pivots, for_loops(self.peaks), self.weights)
            loop = closest_of_pairs
        run_all([partial(loop, *arrays, a, b, *fixed, best[a:b], which[a:b], totals[k]) for k, (a, b) in enumerate(parts)])
        return which, best, ratio * totals.sum(axis=0)

    def products(self, centres: Array, covariances: Array) -> Array:
        """(m, n) ⟨gᵢ, φⱼ⟩ without weights, for few components."""
        return self.pair_gram(for_loops(centres - self.centre), self._entries(covariances))

    def pair_gram(self, centres: Array, entries: Array) -> Array:
        """The same for centres relative to ``centre`` and covariances as lower rows or diagonals."""
        rows = self._rows if not self.shared else np.repeat(self._rows, self.size, axis=1)
        pivots = self._pivots if not self.shared else np.repeat(self._pivots, self.size, axis=1)
        out = np.empty((len(centres), self.size))
        parts = blocks(len(centres), 32) if out.size > MIN_PARALLEL_PAIRS else [(0, len(centres))]
        arrays = self.columns, rows, pivots
        run_all([partial(pair_products, *arrays, centres[a:b], entries[a:b], out[a:b]) for a, b in parts])
        return np.asarray(out * self.peaks)


# -- points -----------------------------------------------------------------------------------------------------------------


def component_sums(queries: Any, weights: Array, centres: Array, covariances: Array, order: int) -> tuple[Array, float]:
    """Σᵢ wᵢ gᵢ(q) at the queries, (rows, q), and the logarithm of the unit.

    ``order`` 1 adds rows with Σ w g S⁻¹(t − q). ``order`` 2 also adds Σ w g S⁻¹, as lower rows or a diagonal.
    """
    d = centres.shape[1]
    peaks = log_peaks(covariances, d)
    unit = float(peaks.max())
    scaled = weights * np.exp(peaks - unit)
    entries = d * (d + 1) // 2 if covariances.ndim == 3 else d
    rows = (1, 1 + d, 1 + d + entries)[order]
    out = np.zeros((rows, len(queries)))

    def add_values(columns: Array, part: Array, *facing: Array) -> None:
        values_at(columns, 0, columns.shape[1], *facing, scaled, order, part)

    _fill(out, queries, centres, covariances, add_values)
    return out, unit


def component_logs(queries: Any, weights: Array, centres: Array, covariances: Array) -> Array:
    """(q,) log Σᵢ wᵢ gᵢ(q), finite at any distance. It is −∞ if the sum is 0, and NaN if it is negative."""
    d = centres.shape[1]
    present = weights != 0  # components without weight must not set the scale
    weights, centres, covariances = weights[present], centres[present], covariances[present]
    logs = log_peaks(covariances, d)
    out = np.zeros((2, len(queries)))
    out[0] = np.inf

    def add_logs(columns: Array, part: Array, *facing: Array) -> None:
        log_sums_at(columns, 0, columns.shape[1], *facing, logs, weights, part)

    _fill(out, queries, centres, covariances, add_logs)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(out[1]) - out[0])


def _fill(out: Array, queries: Any, centres: Array, covariances: Array, loop: Callable[..., None]) -> None:
    """Let ``loop(columns, part, centres, factors)`` fill a copy of the columns of ``out`` (rows, q), one block of queries at a
    time."""
    centre, L = centres[0], factors(covariances, centres.shape[1])
    offsets = for_loops(centres - centre)

    def fill_block(a: int, b: int) -> None:
        part = out[:, a:b].copy()
        loop(for_loops((np.asarray(queries[a:b], np.float64) - centre).T), part, offsets, L)
        out[:, a:b] = part

    run_all([partial(fill_block, a, b) for a, b in blocks(len(queries), BLOCK)])
