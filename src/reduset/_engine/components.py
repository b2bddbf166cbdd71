"""Gaussian components against components or points: sums of their products, and of the moments that gradients are made of.

With φⱼ = N(·; xⱼ, Cⱼ) and gᵢ = N(·; tᵢ, Aᵢ), ⟨gᵢ, φⱼ⟩ = N(tᵢ; xⱼ, S), S = Aᵢ + Cⱼ. For given weights of the φⱼ and all i,

    total  pᵢ = Σⱼ aᵢⱼ,                          aᵢⱼ = wⱼ ⟨gᵢ, φⱼ⟩
    pull   bᵢ = Σⱼ aᵢⱼ S⁻¹(xⱼ − tᵢ) = ∂pᵢ/∂tᵢ
    stiff  Mᵢ = Σⱼ aᵢⱼ S⁻¹
    square Vᵢ = Σⱼ aᵢⱼ S⁻¹(xⱼ − tᵢ)(xⱼ − tᵢ)ᵀS⁻¹,   ∂pᵢ/∂Aᵢ = ½(Vᵢ − Mᵢ)

in units of the highest peak of the φⱼ, whose logarithm is kept. Where all φⱼ have one covariance (a kernel density) S is factored
once for each i, else for each pair. O(n·m·d²), O(n·m·d³), diagonal O(n·m·d); memory O(n·d) and a few tiles. Covariances are
those of `covariances`.
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

BLOCK = 4096  # columns a task: they stay in the second cache while all components pass
BLAS_FROM, BLAS_ROWS, WIDE = 32, 1024, 1e5  # dimensions, columns a task, and squared lengths beside the covariances
Spans = tuple[Labels, Labels]  # first and last of the components that each of the others faces
MODEST = 30_000  # products that are not worth dealing to threads


@dataclass(frozen=True)
class Moments:
    """Sums over the components, one entry a facing component; M and V full (m, d, d), or diagonals (m, d)."""

    total: Array
    pull: Array
    stiff: Array
    square: Array


class Components:
    """Many weighted components, laid out for sums against few.

    Parameters
    ----------
    weights : (n,)
    places : (n, d)
    covariances : (n,), (n, d) or (n, d, d)
    full : whether what they face may be full, so that sums of covariances are
    """

    def __init__(self, weights: Array, places: Any, covariances: Array, full: bool) -> None:
        self.size, self.dimension = places.shape
        self.full = full or covariances.ndim == 3
        self.shared = is_shared(covariances)
        peaks = log_peaks(covariances[:1] if self.shared else covariances, self.dimension)
        self.log_unit = float(np.max(peaks))
        self.peaks = np.broadcast_to(np.exp(peaks - self.log_unit), self.size)
        self.weights = np.ascontiguousarray(weights * self.peaks)
        # about a point among them: differences of large numbers are taken once, before anything is squared
        self.centre = np.asarray(places[: 1 + self.size // 2 : max(1, self.size // 64)], np.float64).mean(axis=0)
        self.columns = np.ascontiguousarray((np.asarray(places, np.float64) - self.centre).T)
        self.covariances = covariances[:1] if self.shared else covariances

    @classmethod
    def from_factors(cls, centres: Array, entries: Array, factors: Array, like: Components) -> Components:
        """Full ones of weight 1, about the centre of others and in their units: covariances (m, e) in lower rows, their factors."""
        side = object.__new__(cls)
        side.size, side.dimension = centres.shape
        side.full, side.shared = True, False
        side.centre, side.log_unit = like.centre, like.log_unit
        side.columns, side._rows = np.ascontiguousarray(centres.T), np.ascontiguousarray(entries.T)
        side._pivots = for_loops(factors.diagonal(axis1=1, axis2=2).T)
        logs = np.log(side._pivots).sum(axis=0) + (0.5 * side.dimension * LOG_2PI + side.log_unit)
        side.peaks = side.weights = np.exp(np.minimum(-logs, 700.0))
        return side

    def weigh(self, weights: Array) -> None:
        """Give the components these weights."""
        self.weights = np.ascontiguousarray(weights * self.peaks)

    def measure_in(self, log_unit: float) -> None:
        """Use this unit instead of the highest peak."""
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
        """S, its factors for the loops, and sqrt(|C|/|S|), for the one C that all components have."""
        if self.full:
            S = as_full(covariances, self.dimension) + as_full(self.covariances, self.dimension)
        else:
            S = as_diagonal(covariances, self.dimension) + as_diagonal(self.covariances, self.dimension)
        own = log_determinants(self.covariances, self.dimension)
        return S, factors(S, self.dimension), np.exp(0.5 * (own - log_determinants(S, self.dimension)))

    # -- balls in many dimensions: distances are a matrix product ------------------------------------------------------------

    @cached_property
    def _lengths(self) -> Array:
        return np.einsum("ij,ij->j", self.columns, self.columns)

    def _are_balls(self, here: Array, covariances: Array) -> bool:
        """Whether all are spherical, many-dimensional, and so wide that the rounding of a product does not show."""
        if not self.shared or covariances.ndim > 1 or self.covariances.ndim > 1 or self.dimension < BLAS_FROM:
            return False
        longest = max(float(self._lengths.max()), float(np.einsum("ij,ij->i", here, here).max()))
        return longest <= WIDE * float(covariances.min() + self.covariances[0])

    def _balls(self, here: Array, covariances: Array, use: Callable[[int, int, int, Array], None]) -> None:
        """Call ``use(block, start, stop, values)`` with exp(−½|x − t|²/S), (m, stop − start), from several threads."""
        steep = -0.5 / (covariances + self.covariances)
        own = np.einsum("ij,ij->i", here, here)

        def some(k: int, a: int, b: int) -> None:
            squares = here @ self.columns[:, a:b]
            squares *= -2.0
            squares += own[:, None]
            squares += self._lengths[a:b]
            np.maximum(squares, 0.0, out=squares)
            squares *= steep[:, None]
            use(k, a, b, np.exp(squares, out=squares))

        self._lengths  # noqa: B018  # once, before the threads would all compute it
        run_all([partial(some, k, a, b) for k, (a, b) in enumerate(blocks(self.size, BLAS_ROWS))], blas=True)

    # -- sums over the components -----------------------------------------------------------------------------------------------

    def totals(self, places: Array, covariances: Array) -> Array:
        """(m,) Σⱼ wⱼ ⟨gᵢ, φⱼ⟩."""
        if self.shared:
            here = for_loops(places - self.centre)
            if self._are_balls(here, covariances):
                parts = np.zeros((len(blocks(self.size, BLAS_ROWS)), len(here)))

                def add(k: int, a: int, b: int, values: Array) -> None:
                    parts[k] = values @ self.weights[a:b]

                self._balls(here, covariances, add)
                return np.asarray(self._joint(covariances)[2] * parts.sum(axis=0))
            _, L, ratio = self._joint(covariances)
            return ratio * self._sums(point_moments, (for_loops(places - self.centre), L), 0, 1)[:, 0]
        return self._sums(pair_moments, (for_loops(places - self.centre), self._entries(covariances)), 0, 1)[:, 0]

    def moments(self, places: Array, covariances: Array, bounds: Labels | Spans | None = None) -> Moments:
        """The sums over all components, or for component i only over bounds[i] … bounds[i + 1], or first[i] … last[i]."""
        d = self.dimension
        entries = d * (d + 1) // 2 if self.full else d
        here = for_loops(places - self.centre)
        spans = bounds if bounds is None or isinstance(bounds, tuple) else (bounds[:-1], bounds[1:])
        if not self.shared:
            sums = self.pair_sums(here, self._entries(covariances), spans)
            stiff, square = sums[:, 1 + d : 1 + d + entries], sums[:, 1 + d + entries :]
            if self.full:
                stiff, square = from_lower_rows(stiff, d), from_lower_rows(square, d)
            return Moments(sums[:, 0], sums[:, 1 : 1 + d], stiff, square)
        S, L, ratio = self._joint(covariances)
        sums = self._sums(point_moments, (here, L), 2, 1 + d + entries, spans) * ratio[:, None]
        total, along, spread = sums[:, 0], sums[:, 1 : 1 + d], sums[:, 1 + d :]
        if not self.full:
            root = L[:, 0, :]
            return Moments(total, along * root, total[:, None] * root**2, spread * root**2)
        back = np.linalg.solve(np.linalg.cholesky(S).transpose(0, 2, 1), np.broadcast_to(np.eye(d), S.shape))  # L⁻ᵀ
        forth = back.transpose(0, 2, 1)
        pull = np.einsum("irc,ic->ir", back, along)
        return Moments(total, pull, total[:, None, None] * (back @ forth), back @ from_lower_rows(spread, d) @ forth)

    def energy(self, weights: Array) -> float:
        """Σᵢⱼ wᵢwⱼ ⟨φᵢ, φⱼ⟩ for the weights that they were given, each pair once; where covariances are their own."""
        first, last = np.zeros(self.size, np.int64), np.arange(self.size)
        facing = np.ascontiguousarray(self.columns.T), np.ascontiguousarray(self._rows.T)
        before = self._sums(pair_moments, facing, 0, 1, (first, last))[:, 0]
        return float(weights @ (2 * before + 0.5 ** (self.dimension / 2) * self.weights))

    def pair_sums(self, centres: Array, entries: Array, spans: Spans | None = None) -> Array:
        """(m, 1 + d + 2e) total, pull, stiff and square, for places from the centre and covariances by lower rows or diagonals."""
        return self._sums(pair_moments, (centres, entries), 2, 1 + self.dimension + 2 * entries.shape[1], spans)

    def _sums(self, loop: Any, facing: tuple[Array, Array], order: int, width: int, spans: Spans | None = None) -> Array:
        """Of all components, or for each that they face of those from its first to before its last."""
        centres, shapes = facing
        m = len(centres)
        own = (self.columns, self.weights) if self.shared else (self.columns, self._rows, self._pivots, self.weights)
        if spans is not None:  # each component has columns of its own, so that blocks of components do not meet
            first, last = spans
            out = np.zeros((m, width))
            step = max(1, m // 16) if int((last - first).sum()) > MODEST else m
            run_all(
                [partial(loop, *own, first[a:b], last[a:b], centres[a:b], shapes[a:b], order, out[a:b]) for a, b in blocks(m, step)]
            )
            return out
        parts = blocks(self.size, BLOCK) if self.size * m > MODEST else [(0, self.size)]
        found = np.zeros((len(parts), m, width))
        tasks = []
        for k, (a, b) in enumerate(parts):
            first, last = np.full(m, a), np.full(m, b)
            tasks.append(partial(loop, *own, first, last, centres, shapes, order, found[k]))
        run_all(tasks)
        return np.asarray(found.sum(axis=0))

    # -- which is closest -------------------------------------------------------------------------------------------------------

    def closest(self, places: Array, covariances: Array, base: Array, gain: Array) -> tuple[Labels, Array, Array]:
        """For each component j the i of least baseᵢ − gainᵢ ⟨gᵢ, φⱼ⟩, that least value, and the totals over all j."""
        here = for_loops(places - self.centre)
        m = len(here)
        best = np.full(self.size, np.inf)
        which = np.zeros(self.size, np.int64)
        parts = blocks(self.size, BLOCK)
        totals = np.zeros((len(parts), m))
        ratio: Any = 1.0
        if self._are_balls(here, covariances):
            ratio = self._joint(covariances)[2]
            rises = (gain * ratio * self.peaks[0])[:, None]
            totals = np.zeros((len(blocks(self.size, BLAS_ROWS)), m))

            def compare(k: int, a: int, b: int, values: Array) -> None:
                totals[k] = values @ self.weights[a:b]
                cost = base[:, None] - rises * values
                which[a:b] = cost.argmin(axis=0)
                best[a:b] = cost.min(axis=0)

            self._balls(here, covariances, compare)
            return which, best, ratio * totals.sum(axis=0)
        if self.shared:
            _, L, ratio = self._joint(covariances)
            fixed: Sequence[Any] = (here, L, base, gain * ratio * self.peaks[0])
            own: Sequence[Any] = (self.columns, self.weights)
            loop: Any = closest_of_points
        else:
            fixed = (here, self._entries(covariances), base, gain)
            own = (self.columns, self._rows, self._pivots, for_loops(self.peaks), self.weights)
            loop = closest_of_pairs
        run_all([partial(loop, *own, a, b, *fixed, best[a:b], which[a:b], totals[k]) for k, (a, b) in enumerate(parts)])
        return which, best, ratio * totals.sum(axis=0)

    def products(self, places: Array, covariances: Array) -> Array:
        """(m, n) ⟨gᵢ, φⱼ⟩, whatever the weights: for few components."""
        return self.pair_gram(for_loops(places - self.centre), self._entries(covariances))

    def pair_gram(self, centres: Array, entries: Array) -> Array:
        """The same for places from the centre and covariances by lower rows or diagonals."""
        rows = self._rows if not self.shared else np.repeat(self._rows, self.size, axis=1)
        pivots = self._pivots if not self.shared else np.repeat(self._pivots, self.size, axis=1)
        out = np.empty((len(centres), self.size))
        parts = blocks(len(centres), 32) if out.size > MODEST else [(0, len(centres))]
        own = self.columns, rows, pivots
        run_all([partial(pair_products, *own, centres[a:b], entries[a:b], out[a:b]) for a, b in parts])
        return np.asarray(out * self.peaks)


# -- points -----------------------------------------------------------------------------------------------------------------


def component_sums(queries: Any, weights: Array, places: Array, covariances: Array, order: int) -> tuple[Array, float]:
    """(rows, q) Σᵢ wᵢ gᵢ(q), below it with order 1 Σ w g S⁻¹(t − q), with 2 also Σ w g S⁻¹ (lower rows, or diagonal); log unit."""
    d = places.shape[1]
    peaks = log_peaks(covariances, d)
    unit = float(peaks.max())
    scaled = weights * np.exp(peaks - unit)
    entries = d * (d + 1) // 2 if covariances.ndim == 3 else d
    rows = (1, 1 + d, 1 + d + entries)[order]
    out = np.zeros((rows, len(queries)))

    def some(columns: Array, part: Array, *facing: Array) -> None:
        values_at(columns, 0, columns.shape[1], *facing, scaled, order, part)

    _fill(out, queries, places, covariances, some)
    return out, unit


def component_logs(queries: Any, weights: Array, places: Array, covariances: Array) -> Array:
    """(q,) log Σᵢ wᵢ gᵢ(q), finite however far; −inf where it is 0 and NaN where it is negative."""
    d = places.shape[1]
    present = weights != 0  # what has no weight must not set the scale
    weights, places, covariances = weights[present], places[present], covariances[present]
    logs = log_peaks(covariances, d)
    out = np.zeros((2, len(queries)))
    out[0] = np.inf

    def some(columns: Array, part: Array, *facing: Array) -> None:
        log_sums_at(columns, 0, columns.shape[1], *facing, logs, weights, part)

    _fill(out, queries, places, covariances, some)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(out[1]) - out[0])


def _fill(out: Array, queries: Any, places: Array, covariances: Array, loop: Callable[..., None]) -> None:
    """Let ``loop(columns, part, centres, factors)`` fill a copy of the columns of ``out`` (rows, q), block by block of queries."""
    centre, L = places[0], factors(covariances, places.shape[1])
    here = for_loops(places - centre)

    def some(a: int, b: int) -> None:
        part = out[:, a:b].copy()
        loop(for_loops((np.asarray(queries[a:b], np.float64) - centre).T), part, here, L)
        out[:, a:b] = part

    run_all([partial(some, a, b) for a, b in blocks(len(queries), BLOCK)])
