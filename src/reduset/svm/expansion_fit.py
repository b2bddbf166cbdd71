"""Fitting bumps to functions: all weights together in closed form, then centres and widths by L-BFGS.

Given f_p = Σⱼ A_jp exp(−‖x − xⱼ‖²/2h²), bumps γᵢ with centres cᵢ and widths hᵢ are to carry g_p = Σᵢ W_ip γᵢ. Two norms are mixed:

- that of the space of f's own kernel. Since the transform of γᵢ is hᵢ^d exp(−hᵢ²ω²/2) and the norm divides by that of the kernel,

      ⟨γᵢ, γ_k⟩ = (hᵢ² h_k² / h² s)^(d/2) exp(−‖cᵢ − c_k‖² / 2s),   s = hᵢ² + h_k² − h²,

  finite for hᵢ² > h²/2, and ⟨γᵢ, φ(·, x)⟩ = γᵢ(x). It bounds the change of f everywhere: |f − g| ≤ ‖f − g‖;
- the mean square over given places, which is what a user of f sees.

E(W) = Σ_p share·‖f_p − g_p‖²/‖f‖² + Σ_p mean (f_p − g_p)²/mean f² is quadratic in W: E = 1 + share + tr WᵀGW − 2 tr Wᵀκ, so
W = G⁻¹κ, one Cholesky factor for all functions. With W eliminated, the slopes of E in centres and widths are those at fixed W (the
envelope theorem). A step costs O((n + N)·m·(d + p) + m³), and memory is bounded: large bump
matrices are made anew, block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from reduset._engine import blocks, single_threaded_blas
from reduset._types import Array, Floats, Report
from reduset.simplification.joint_fit import lbfgs
from reduset.svm.expansion import CentredPoints, GaussianExpansion

LEAST_SQUARE = 0.55  # of h², for the square of a width: at ½ the norm is infinite
RIDGE = 1e-8  # of the diagonal, so that bumps may meet, and weights stay of the size of the original ones
ENTRIES = 1 << 20  # of a bump matrix that is made at once
KEPT = 1 << 22  # of bump matrices that are kept from the weights to the slopes: 64 megabytes with their distances
SINGLE_WORK = 1e10  # multiplications of all steps, about half a second, from which on steps are taken in single precision
SINGLE_ROUNDING = 1e-5  # what cancellation may add to an exponent then
FAR = 1e6  # above any error worth a step, so that the line search turns back


@dataclass(frozen=True)
class _Solution:
    """The best weights of given bumps."""

    weights: Array  # (m, p) of bumps in units of `ExpansionTarget._units`
    error: float  # E


@dataclass(frozen=True)
class _SinglePoints:
    """Points about an origin, in single precision: where steps are expensive, half the time of a step."""

    origin: Array  # (d,)
    coordinates: NDArray[np.float32]  # (N, d)
    lengths: NDArray[np.float32]  # (N,) squared

    @classmethod
    def of(cls, points: Array, origin: Array) -> _SinglePoints:
        coordinates = (points - origin).astype(np.float32)
        return cls(origin, coordinates, np.einsum("ij,ij->i", coordinates, coordinates))

    def is_precise(self, least: float) -> bool:
        """Whether exponents of bumps of that least squared width keep enough digits."""
        return bool(float(self.lengths.max()) * np.finfo(np.float32).eps <= SINGLE_ROUNDING * least)

    def bumps(self, centres: Array, squares: Array, rows: slice) -> tuple[Floats, Floats]:
        """(rows, m) squared distances and values of bumps."""
        near = (centres - self.origin).astype(np.float32)
        gaps = self.coordinates[rows] @ (-2.0 * near).T
        gaps += self.lengths[rows, None]
        gaps += np.einsum("ij,ij->i", near, near)
        np.maximum(gaps, 0.0, out=gaps)
        return gaps, np.exp(gaps * (-0.5 / squares).astype(np.float32))


class _BumpBlocks:
    """The bump matrix at some points, block by block: kept where they are few, made anew each time where not."""

    def __init__(self, centres: Array, squares: Array, points: Array | _SinglePoints) -> None:
        count, self._made = _maker(centres, squares, points)
        self._blocks = _steps(count, len(centres))
        self._kept: dict[int, tuple[Floats, Floats]] | None = {} if count * len(centres) <= KEPT else None

    def __iter__(self) -> Iterator[tuple[slice, Floats, Floats]]:
        """Rows of the points, their squared distances and the values of the bumps there, (rows, m) each."""
        for a, b in self._blocks:
            known = None if self._kept is None else self._kept.get(a)
            if known is None:
                known = self._made(slice(a, b))
                if self._kept is not None:
                    self._kept[a] = known
            yield slice(a, b), *known


class ExpansionTarget:
    """The least-squares target: what is to be fitted, and by which norm.

    Parameters
    ----------
    full : GaussianExpansion whose bumps have one width
    places : (N, d) where values are compared
    share : of the kernel's own norm, beside the mean square at the places
    """

    def __init__(self, full: GaussianExpansion, places: Array, share: float) -> None:
        self.full, self.share = full, share
        self.square = float(full.widths[0]) ** 2
        self._places = places
        with single_threaded_blas():
            values = np.concatenate([full.bumps(places[a:b]) @ full.weights for a, b in _steps(len(places), full.size)])
            self.energies = self._energies()
        self._scale_of_values = float((values**2).sum()) or 1.0
        self._scale_of_norm = float(self.energies.sum()) or 1.0
        self._values = values / self._scale_of_values

    def work(self, size: int) -> float:
        """Multiplications of a step of `polish`, about."""
        d, p = self.full.dimension, len(self.energies)
        rows = len(self._places) + (self.full.size if self.share else 0)
        return 2.0 * (rows * size * (2 * d + p + 50) + size**3)

    def _energies(self) -> Array:
        """(p,) ‖f_p‖²."""
        full = self.full
        total = np.zeros(full.weights.shape[1])
        for a, b in _steps(full.size, full.size):
            total += np.einsum("ip,ip->p", full.weights[a:b], full.bumps(full.centres[a:b]) @ full.weights)
        return np.maximum(total, 0.0)

    def refit(self, found: GaussianExpansion) -> GaussianExpansion:
        """The same bumps with the best weights; the same weights where rounding leaves nothing to gain."""
        with single_threaded_blas():
            best = self._solve(found.centres, found.widths**2)
        weights = best.weights * self._units(found.widths**2, found.dimension)[:, None]
        return replace(found, weights=weights) if best.error <= self.error(found) else found

    def error(self, found: GaussianExpansion) -> float:
        """E of an expansion, at least 0; ∞ where it is beyond floating point."""
        squares = found.widths**2
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            weights = _over(found.weights, self._units(squares, found.dimension))
            error = self._error(*self._system(found.centres, squares, self._bump_blocks(found.centres, squares)), weights)
        return max(error, 0.0) if np.isfinite(error) else np.inf

    def bounds(self, found: GaussianExpansion) -> Array:
        """(p,) ‖f_p − g_p‖ in the kernel's own space, which no change of f_p exceeds anywhere; ∞ where a width is too small."""
        if found is self.full:
            return np.zeros(len(self.energies))
        squares = found.widths**2
        if (squares <= self.square / 2).any():
            return np.full(len(self.energies), np.inf)
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            inner = np.zeros_like(found.weights)
            for a, b in _steps(self.full.size, found.size):
                inner += found.bumps(self.full.centres[a:b]).T @ self.full.weights[a:b]
            scaled = _over(found.weights, np.exp(-_log_norms(squares, self.square, found.dimension)))
            explained = np.einsum("ip,ip->p", scaled, self._products(found.centres, squares)[0] @ scaled)
        explained[np.isnan(explained)] = np.inf
        left = self.energies + explained - 2.0 * np.einsum("ip,ip->p", found.weights, inner)
        rounding = self.full.size * np.finfo(np.float64).eps * self.energies  # of a difference of sums of so many terms
        return np.sqrt(np.maximum(left, 0.0) + rounding)

    def polish(self, found: GaussianExpansion, steps: int, widths: bool = True, report: Report | None = None) -> GaussianExpansion:
        """Move centres, and widths unless these are to stay, by at most ``steps`` steps of L-BFGS; never to where E is larger."""
        m, d = found.centres.shape
        unit, least = np.sqrt(self.square), LEAST_SQUARE * self.square
        free = np.maximum(found.widths**2 - least, 1e-3 * self.square)
        best, lowest, done = found, np.inf, 0
        single = self._single_points(least) if steps * self.work(m) > SINGLE_WORK else None

        def placed(u: Array) -> tuple[Array, Array]:
            moves = u.reshape(m, -1)
            squares = least + free * np.exp(np.clip(moves[:, d], -30.0, 30.0)) if widths else found.widths**2
            return found.centres + unit * moves[:, :d], squares

        def objective(u: Array) -> tuple[float, Array]:
            nonlocal best, lowest
            centres, squares = placed(u)
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                solution, by_centre, by_square = self._slopes(centres, squares, single)
            if not np.isfinite(solution.error):
                return FAR, np.zeros_like(u)
            if solution.error < lowest:
                lowest, weights = solution.error, solution.weights * self._units(squares, d)[:, None]
                best = replace(found, centres=centres, widths=np.sqrt(squares), weights=weights)
            slopes = unit * by_centre
            if widths:
                slopes = np.column_stack([slopes, (squares - least) * by_square])
            return solution.error, slopes.ravel()

        def count(_: Array) -> None:
            nonlocal done
            done += 1
            if report is not None:
                report(done, steps)

        with single_threaded_blas():
            lbfgs(objective, np.zeros(m * (d + widths)), steps, count)
        best = best if single is None else self.refit(best)
        return best if self.error(best) <= self.error(found) else found

    def _single_points(self, least: float) -> tuple[_SinglePoints, _SinglePoints] | None:
        """The places and the bumps of f in single precision; None where that is too coarse for the least squared width."""
        origin = self.full.centres.mean(axis=0)
        places, centres = _SinglePoints.of(self._places, origin), _SinglePoints.of(self.full.centres, origin)
        return (places, centres) if places.is_precise(least) and centres.is_precise(least) else None

    def _bump_blocks(
        self, centres: Array, squares: Array, single: tuple[_SinglePoints, _SinglePoints] | None = None
    ) -> tuple[_BumpBlocks, _BumpBlocks]:
        """From the places, and from the bumps of f."""
        places, own = (self._places, self.full.centres) if single is None else single
        return _BumpBlocks(centres, squares, places), _BumpBlocks(centres, squares, own)

    def _solve(self, centres: Array, squares: Array, seen_from: tuple[_BumpBlocks, _BumpBlocks] | None = None) -> _Solution:
        gram, kappa = self._system(centres, squares, seen_from or self._bump_blocks(centres, squares))
        scales = np.sqrt(np.maximum(np.diag(gram), np.finfo(np.float64).tiny))
        normed = gram / scales[:, None] / scales
        normed[np.diag_indices(len(normed))] += RIDGE
        try:
            factor = cho_factor(normed, lower=True, check_finite=False)
        except LinAlgError:
            return _Solution(np.zeros_like(kappa), np.inf)
        weights = cho_solve(factor, kappa / scales[:, None], check_finite=False) / scales[:, None]
        return _Solution(weights, self._error(gram, kappa, weights))

    def _error(self, gram: Array, kappa: Array, weights: Array) -> float:
        return float(1.0 + self.share + np.einsum("ip,ip->", weights, gram @ weights - 2.0 * kappa))

    def _units(self, squares: Array, dimension: int) -> Array:
        """(m,) heights of the bumps that G and κ speak of: of norm 1 where the norm counts, else 1."""
        return np.exp(-_log_norms(squares, self.square, dimension)) if self.share else np.ones(len(squares))

    def _system(self, centres: Array, squares: Array, seen_from: tuple[_BumpBlocks, _BumpBlocks]) -> tuple[Array, Array]:
        """G (m, m) and κ (m, p)."""
        m, units = len(centres), self._units(squares, centres.shape[1])
        gram, kappa = np.zeros((m, m)), np.zeros((m, self.full.weights.shape[1]))
        at_places, at_bumps = seen_from
        for rows, _, found in at_places:
            bumps = found.astype(np.float64, copy=False)  # the system may be close to singular
            gram += bumps.T @ bumps
            kappa += bumps.T @ self._values[rows]
        gram *= units[:, None] * units / self._scale_of_values
        if self.share:
            factor = self.share / self._scale_of_norm
            gram += factor * self._products(centres, squares)[0]
            for rows, _, found in at_bumps:
                kappa += factor * (found.astype(np.float64, copy=False).T @ self.full.weights[rows])
        return gram, units[:, None] * kappa

    def _products(self, centres: Array, squares: Array) -> tuple[Array, Array, Array]:
        """(m, m) inner products of bumps of norm 1 in the kernel's space, their s, and the squared distances."""
        sums = squares[:, None] + squares - self.square
        gaps = CentredPoints(centres, float(squares.min())).squared_distances(centres)
        own = 2.0 * squares - self.square
        ratio = np.sqrt(own[:, None] * own) / sums
        return np.exp(0.5 * centres.shape[1] * np.log(ratio) - 0.5 * gaps / sums), sums, gaps

    def _slopes(
        self, centres: Array, squares: Array, single: tuple[_SinglePoints, _SinglePoints] | None = None
    ) -> tuple[_Solution, Array, Array]:
        """The best weights W, and the slopes of E at W in centres (m, d) and squared widths (m,).

        E depends on the bumps by their values at the places, by those at the bumps of f, and by their own inner products: the three
        sums below. ``single`` takes bumps and slopes in single precision, the weights still in double.
        """
        seen_from = self._bump_blocks(centres, squares, single)
        solution = self._solve(centres, squares, seen_from)
        places, own = (self._places, self.full.centres) if single is None else (each.coordinates for each in single)
        slopes = _Slopes(centres if single is None else centres - single[0].origin, squares)  # those of moved points are the same
        if not np.isfinite(solution.error):
            return solution, slopes.by_centre, slopes.by_square
        W = solution.weights * self._units(squares, centres.shape[1])[:, None]
        for rows, gaps, bumps in seen_from[0]:
            excess = bumps @ (W / self._scale_of_values) - self._values[rows]
            slopes.add_from_points(places[rows], gaps, ((2.0 * excess) @ W.T).astype(bumps.dtype, copy=False) * bumps)
        if self.share:
            factor = 2.0 * self.share / self._scale_of_norm
            for rows, gaps, bumps in seen_from[1]:
                by_log = (-factor * self.full.weights[rows]) @ W.T
                slopes.add_from_points(own[rows], gaps, by_log.astype(bumps.dtype, copy=False) * bumps)
            products, sums, gaps = self._products(centres, squares)
            slopes.add_from_pairs(sums, gaps, factor * (solution.weights @ solution.weights.T) * products)
        return solution, slopes.by_centre, slopes.by_square


class _Slopes:
    """Slopes of E in the centres (m, d) and squared widths (m,) of bumps, from those in logarithms of what it is made of."""

    def __init__(self, centres: Array, squares: Array) -> None:
        self._centres, self._squares = centres, squares
        self.by_centre, self.by_square = np.zeros_like(centres), np.zeros_like(squares)

    def add_from_points(self, points: Floats, gaps: Floats, by_log: Floats) -> None:
        """From those in log γᵢ(x) = −‖x − cᵢ‖²/2hᵢ², (N, m): its slopes are (x − cᵢ)/hᵢ² and ‖x − cᵢ‖²/2hᵢ⁴."""
        self.by_centre += (by_log.T @ points - by_log.sum(axis=0)[:, None] * self._centres) / self._squares[:, None]
        self.by_square += 0.5 * np.einsum("ji,ji->i", by_log, gaps) / self._squares**2

    def add_from_pairs(self, sums: Array, gaps: Array, by_log: Array) -> None:
        """From those in log⟨γᵢ, γ_k⟩, (m, m), weights held: its slopes are (c_k − cᵢ)/s and d/2hᵢ² − d/2s + ‖cᵢ − c_k‖²/2s²."""
        d, centres = self._centres.shape[1], self._centres
        self.by_centre += (by_log / sums) @ centres - (by_log / sums).sum(axis=1)[:, None] * centres
        self.by_square += (by_log * (0.5 * d * (1.0 / self._squares[:, None] - 1.0 / sums) + 0.5 * gaps / sums**2)).sum(axis=1)


def _maker(centres: Array, squares: Array, points: Array | _SinglePoints) -> tuple[int, Callable[[slice], tuple[Floats, Floats]]]:
    """The number of points, and what gives squared distances and values of bumps at some of them."""
    if isinstance(points, _SinglePoints):
        return len(points.coordinates), partial(points.bumps, centres, squares)
    return len(points), partial(_bumps_at, CentredPoints(centres, float(squares.min())), squares, points)


def _bumps_at(centres: CentredPoints, squares: Array, points: Array, rows: slice) -> tuple[Floats, Floats]:
    """(rows, m) squared distances and values of bumps."""
    gaps = centres.squared_distances(points[rows])
    return gaps, np.exp(gaps * (-0.5 / squares))


def _log_norms(squares: Array, square: float, dimension: int) -> Array:
    """(m,) log ‖γ‖ of bumps in the space of a kernel of width h: ‖γ‖² = (hᵢ⁴ / h²(2hᵢ² − h²))^(d/2)."""
    return 0.25 * dimension * np.log(squares**2 / (square * (2.0 * squares - square)))


def _over(weights: Array, units: Array) -> Array:
    """(m, p) weights of bumps in other units; no weight stays none, however small the unit."""
    return np.divide(weights, units[:, None], out=np.zeros_like(weights), where=weights != 0)


def _steps(rows: int, columns: int) -> list[tuple[int, int]]:
    """Blocks of rows whose matrix of that many columns is held at once."""
    return blocks(rows, max(64, ENTRIES // max(columns, 1)))
