"""Fitting Gaussians to functions: all weights together in closed form, then centres and widths by L-BFGS.

Given f_p = Σⱼ A_jp exp(−‖x − xⱼ‖²/2h²), Gaussians γᵢ with centres cᵢ and widths hᵢ form the approximation g_p = Σᵢ W_ip γᵢ. The
error combines two norms:

- The norm in the space of the kernel of f. The transform of γᵢ is ∝ hᵢ^d exp(−hᵢ²ω²/2), and the norm divides by the transform of
  the kernel, so

      ⟨γᵢ, γ_k⟩ = (hᵢ² h_k² / h² s)^(d/2) exp(−‖cᵢ − c_k‖² / 2s),   s = hᵢ² + h_k² − h²,

  which is finite for hᵢ² > h²/2, and ⟨γᵢ, φ(·, x)⟩ = γᵢ(x). It bounds the change of f everywhere: |f − g| ≤ ‖f − g‖.
- The mean square over given points, which measures the change of predictions.

E(W) = Σ_p a·‖f_p − g_p‖²/‖f‖² + Σ_p mean (f_p − g_p)²/mean f², with the weight a of the first norm, is quadratic in W:
E = 1 + a + tr WᵀGW − 2 tr Wᵀκ. So W = G⁻¹κ, with one Cholesky factor for all functions. With W eliminated, the slopes of E in
centres and widths are the slopes at fixed W (the envelope theorem). A step costs O((n + N)·m·(d + p) + m³). Memory is bounded,
because large matrices of values are computed again by blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from reduset._engine import blocks, cached_property, single_threaded_blas
from reduset._types import Array, Floats, Report
from reduset.simplification import lbfgs
from reduset.svm.expansion import CentredPoints, GaussianExpansion

MIN_SQUARE = 0.55  # of h², for the square of a width: at ½ the norm is infinite
RIDGE = 1e-8  # relative to the diagonal, so that centres may coincide and weights stay of the size of the original ones
ENTRIES = 1 << 20  # of the matrix of values in a block
KEPT = 1 << 22  # entries of matrices that are kept from the weights to the slopes, 64 megabytes with their distances
SINGLE_WORK = 1e10  # multiplications of all steps, about half a second, above which steps use single precision
SINGLE_ROUNDING = 1e-5  # largest error of an exponent by cancellation in single precision
REJECTED = 1e6  # error returned for invalid points, so that the line search turns back


@dataclass(frozen=True)
class _Solution:
    """The best weights of given Gaussians."""

    weights: Array  # (m, p) of Gaussians in units of `ExpansionTarget._units`
    error: float  # E


@dataclass(frozen=True)
class _Points:
    """Points at which Gaussians are evaluated."""

    coordinates: Floats  # (N, d)
    origin: Array | float = 0.0  # subtracted from the points

    def bumps(self, centres: Array, squares: Array, rows: slice) -> tuple[Floats, Floats]:
        """(rows, m) squared distances and values of Gaussians."""
        squared = CentredPoints(centres, float(squares.min())).squared_distances(self.coordinates[rows])
        return squared, np.exp(squared * (-0.5 / squares))


@dataclass(frozen=True)
class _SinglePoints(_Points):
    """Points relative to an origin in single precision, which halves the time of expensive steps."""

    @classmethod
    def of(cls, points: Floats, origin: Array) -> _SinglePoints:
        return cls((points - origin).astype(np.float32), origin)

    @cached_property
    def lengths(self) -> NDArray[np.float32]:
        """(N,) squared lengths."""
        return np.asarray(np.einsum("ij,ij->i", self.coordinates, self.coordinates), np.float32)

    def is_precise(self, min_square: float) -> bool:
        """True if exponents are precise enough for this smallest squared width."""
        return bool(float(self.lengths.max()) * np.finfo(np.float32).eps <= SINGLE_ROUNDING * min_square)

    def bumps(self, centres: Array, squares: Array, rows: slice) -> tuple[Floats, Floats]:
        centred = (centres - self.origin).astype(np.float32)
        squared = self.coordinates[rows] @ (-2.0 * centred).T
        squared += self.lengths[rows, None]
        squared += np.einsum("ij,ij->i", centred, centred)
        np.maximum(squared, 0.0, out=squared)
        return squared, np.exp(squared * (-0.5 / squares).astype(np.float32))


class _BumpBlocks:
    """The matrix of values at some points by blocks, kept if it is small and computed again each time otherwise."""

    def __init__(self, points: _Points, centres: Array, squares: Array) -> None:
        count = len(points.coordinates)
        self.points, self._compute = points, partial(points.bumps, centres, squares)
        self._blocks = _steps(count, len(centres))
        self._kept: dict[int, tuple[Floats, Floats]] | None = {} if count * len(centres) <= KEPT else None

    def __iter__(self) -> Iterator[tuple[slice, Floats, Floats]]:
        """Rows of the points, with (rows, m) squared distances and values of the Gaussians."""
        for a, b in self._blocks:
            known = None if self._kept is None else self._kept.get(a)
            if known is None:
                known = self._compute(slice(a, b))
                if self._kept is not None:
                    self._kept[a] = known
            yield slice(a, b), *known


class ExpansionTarget:
    """The least-squares problem: the functions to approximate, and the norm.

    Parameters
    ----------
    full : GaussianExpansion with Gaussians of one width
    points : (N, d) where values are compared
    norm_weight : weight of the norm in the space of the kernel, relative to the mean square at the points
    """

    def __init__(self, full: GaussianExpansion, points: Array, norm_weight: float) -> None:
        self.full, self.norm_weight = full, norm_weight
        self.square = float(full.widths[0]) ** 2
        self._points = _Points(points), _Points(full.centres)  # of the two norms
        with single_threaded_blas():
            values = np.concatenate([full.bumps(points[a:b]) @ full.weights for a, b in _steps(len(points), full.size)])
            self.energies = self._energies()
        self._scale_of_values = float((values**2).sum()) or 1.0
        self._scale_of_norm = float(self.energies.sum()) or 1.0
        self._values = values / self._scale_of_values

    def work(self, size: int) -> float:
        """The approximate number of multiplications in a step of `polish`."""
        d, p = self.full.dimension, len(self.energies)
        rows = len(self._points[0].coordinates) + (self.full.size if self.norm_weight else 0)
        return 2.0 * (rows * size * (2 * d + p + 50) + size**3)

    def _energies(self) -> Array:
        """(p,) ‖f_p‖²."""
        full = self.full
        total = np.zeros(full.weights.shape[1])
        for a, b in _steps(full.size, full.size):
            total += np.einsum("ip,ip->p", full.weights[a:b], full.bumps(full.centres[a:b]) @ full.weights)
        return np.maximum(total, 0.0)

    def refit(self, expansion: GaussianExpansion) -> GaussianExpansion:
        """The same Gaussians with the best weights; unchanged if rounding prevents a lower error."""
        with single_threaded_blas():
            best = self._solve(expansion.centres, expansion.widths**2)
        weights = best.weights * self._units(expansion.widths**2, expansion.dimension)[:, None]
        return replace(expansion, weights=weights) if best.error <= self.error(expansion) else expansion

    def error(self, expansion: GaussianExpansion) -> float:
        """E of an expansion, at least 0; ∞ on overflow."""
        squares = expansion.widths**2
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            weights = _over(expansion.weights, self._units(squares, expansion.dimension))
            error = self._error(*self._system(expansion.centres, squares, self._bump_blocks(expansion.centres, squares)), weights)
        return max(error, 0.0) if np.isfinite(error) else np.inf

    def bounds(self, expansion: GaussianExpansion) -> Array:
        """(p,) ‖f_p − g_p‖ in the space of the kernel, the largest possible change of f_p anywhere; ∞ if a width is too small."""
        if expansion is self.full:
            return np.zeros(len(self.energies))
        squares = expansion.widths**2
        if (squares <= self.square / 2).any():
            return np.full(len(self.energies), np.inf)
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            inner = np.zeros_like(expansion.weights)
            for a, b in _steps(self.full.size, expansion.size):
                inner += expansion.bumps(self.full.centres[a:b]).T @ self.full.weights[a:b]
            scaled = _over(expansion.weights, np.exp(-_log_norms(squares, self.square, expansion.dimension)))
            explained = np.einsum("ip,ip->p", scaled, self._products(expansion.centres, squares)[0] @ scaled)
        explained[np.isnan(explained)] = np.inf
        squared = self.energies + explained - 2.0 * np.einsum("ip,ip->p", expansion.weights, inner)
        rounding = self.full.size * np.finfo(np.float64).eps * self.energies  # of the difference of sums with this number of terms
        return np.sqrt(np.maximum(squared, 0.0) + rounding)

    def polish(
        self, expansion: GaussianExpansion, steps: int, widths: bool = True, report: Report | None = None
    ) -> GaussianExpansion:
        """Move centres, and widths if ``widths`` is True, by at most ``steps`` steps of L-BFGS; E never increases."""
        m, d = expansion.centres.shape
        unit, min_square = np.sqrt(self.square), MIN_SQUARE * self.square
        free = np.maximum(expansion.widths**2 - min_square, 1e-3 * self.square)
        best, lowest, done = expansion, np.inf, 0
        single = self._single_points(min_square) if steps * self.work(m) > SINGLE_WORK else None

        def placed(u: Array) -> tuple[Array, Array]:
            moves = u.reshape(m, -1)
            squares = min_square + free * np.exp(np.clip(moves[:, d], -30.0, 30.0)) if widths else expansion.widths**2
            return expansion.centres + unit * moves[:, :d], squares

        def objective(u: Array) -> tuple[float, Array]:
            nonlocal best, lowest
            centres, squares = placed(u)
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                solution, by_centre, by_square = self._slopes(centres, squares, single)
            if not np.isfinite(solution.error):
                return REJECTED, np.zeros_like(u)
            if solution.error < lowest:
                lowest, weights = solution.error, solution.weights * self._units(squares, d)[:, None]
                best = replace(expansion, centres=centres, widths=np.sqrt(squares), weights=weights)
            slopes = unit * by_centre
            if widths:
                slopes = np.column_stack([slopes, (squares - min_square) * by_square])
            return solution.error, slopes.ravel()

        def count(_: Array) -> None:
            nonlocal done
            done += 1
            if report is not None:
                report(done, steps)

        with single_threaded_blas():
            lbfgs(objective, np.zeros(m * (d + widths)), steps, count)
        best = best if single is None else self.refit(best)
        return best if self.error(best) <= self.error(expansion) else expansion

    def _single_points(self, min_square: float) -> tuple[_SinglePoints, _SinglePoints] | None:
        """The points and the centres of f in single precision; None if that is too imprecise for the smallest squared width."""
        origin = self.full.centres.mean(axis=0)
        points, centres = (_SinglePoints.of(part.coordinates, origin) for part in self._points)
        return (points, centres) if points.is_precise(min_square) and centres.is_precise(min_square) else None

    def _bump_blocks(
        self, centres: Array, squares: Array, single: tuple[_SinglePoints, _SinglePoints] | None = None
    ) -> tuple[_BumpBlocks, _BumpBlocks]:
        """Values of the Gaussians at the points, and at the centres of f."""
        points, centres_of_f = single or self._points
        return _BumpBlocks(points, centres, squares), _BumpBlocks(centres_of_f, centres, squares)

    def _solve(self, centres: Array, squares: Array, blocks_of: tuple[_BumpBlocks, _BumpBlocks] | None = None) -> _Solution:
        gram, kappa = self._system(centres, squares, blocks_of or self._bump_blocks(centres, squares))
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
        return float(1.0 + self.norm_weight + np.einsum("ip,ip->", weights, gram @ weights - 2.0 * kappa))

    def _units(self, squares: Array, dimension: int) -> Array:
        """(m,) heights of the Gaussians in G and κ: with norm 1 if the norm has weight, otherwise 1."""
        return np.exp(-_log_norms(squares, self.square, dimension)) if self.norm_weight else np.ones(len(squares))

    def _system(self, centres: Array, squares: Array, blocks_of: tuple[_BumpBlocks, _BumpBlocks]) -> tuple[Array, Array]:
        """G (m, m) and κ (m, p)."""
        m, units = len(centres), self._units(squares, centres.shape[1])
        gram, kappa = np.zeros((m, m)), np.zeros((m, self.full.weights.shape[1]))
        at_points, at_centres = blocks_of
        for rows, _, values in at_points:
            bumps = values.astype(np.float64, copy=False)  # double precision, because the system may be nearly singular
            gram += bumps.T @ bumps
            kappa += bumps.T @ self._values[rows]
        gram *= units[:, None] * units / self._scale_of_values
        if self.norm_weight:
            factor = self.norm_weight / self._scale_of_norm
            gram += factor * self._products(centres, squares)[0]
            for rows, _, values in at_centres:
                kappa += factor * (values.astype(np.float64, copy=False).T @ self.full.weights[rows])
        return gram, units[:, None] * kappa

    def _products(self, centres: Array, squares: Array) -> tuple[Array, Array, Array]:
        """(m, m) inner products of Gaussians of norm 1 in the space of the kernel, their s, and the squared distances."""
        sums = squares[:, None] + squares - self.square
        squared = CentredPoints(centres, float(squares.min())).squared_distances(centres)
        norms = 2.0 * squares - self.square
        ratio = np.sqrt(norms[:, None] * norms) / sums
        return np.exp(0.5 * centres.shape[1] * np.log(ratio) - 0.5 * squared / sums), sums, squared

    def _slopes(
        self, centres: Array, squares: Array, single: tuple[_SinglePoints, _SinglePoints] | None = None
    ) -> tuple[_Solution, Array, Array]:
        """The best weights W, and the slopes of E at W in centres (m, d) and squared widths (m,).

        E depends on the values of the Gaussians at the points and at the centres of f, and on their inner products. These are the
        three sums below. ``single`` computes Gaussians and slopes in single precision, and the weights in double precision.
        """
        blocks_of = self._bump_blocks(centres, squares, single)
        solution = self._solve(centres, squares, blocks_of)
        points, centres_of_f = (part.points.coordinates for part in blocks_of)
        slopes = _Slopes(centres - blocks_of[0].points.origin, squares)  # a shift does not change slopes
        if not np.isfinite(solution.error):
            return solution, slopes.by_centre, slopes.by_square
        W = solution.weights * self._units(squares, centres.shape[1])[:, None]
        for rows, squared, bumps in blocks_of[0]:
            excess = bumps @ (W / self._scale_of_values) - self._values[rows]
            slopes.add_from_points(points[rows], squared, ((2.0 * excess) @ W.T).astype(bumps.dtype, copy=False) * bumps)
        if self.norm_weight:
            factor = 2.0 * self.norm_weight / self._scale_of_norm
            for rows, squared, bumps in blocks_of[1]:
                by_log = (-factor * self.full.weights[rows]) @ W.T
                slopes.add_from_points(centres_of_f[rows], squared, by_log.astype(bumps.dtype, copy=False) * bumps)
            products, sums, squared = self._products(centres, squares)
            slopes.add_from_pairs(sums, squared, factor * (solution.weights @ solution.weights.T) * products)
        return solution, slopes.by_centre, slopes.by_square


class _Slopes:
    """Slopes of E in centres (m, d) and squared widths (m,), by the chain rule from slopes in logarithms of its terms."""

    def __init__(self, centres: Array, squares: Array) -> None:
        self._centres, self._squares = centres, squares
        self.by_centre, self.by_square = np.zeros_like(centres), np.zeros_like(squares)

    def add_from_points(self, points: Floats, squared: Floats, by_log: Floats) -> None:
        """Add terms from (N, m) slopes in log γᵢ(x) = −‖x − cᵢ‖²/2hᵢ², which has the slopes (x − cᵢ)/hᵢ² and ‖x − cᵢ‖²/2hᵢ⁴."""
        self.by_centre += (by_log.T @ points - by_log.sum(axis=0)[:, None] * self._centres) / self._squares[:, None]
        self.by_square += 0.5 * np.einsum("ji,ji->i", by_log, squared) / self._squares**2

    def add_from_pairs(self, sums: Array, squared: Array, by_log: Array) -> None:
        """Add terms from (m, m) slopes in log⟨γᵢ, γ_k⟩ at fixed weights.

        The slopes of the logarithm are (c_k − cᵢ)/s and d/2hᵢ² − d/2s + ‖cᵢ − c_k‖²/2s².
        """
        d, centres = self._centres.shape[1], self._centres
        self.by_centre += (by_log / sums) @ centres - (by_log / sums).sum(axis=1)[:, None] * centres
        self.by_square += (by_log * (0.5 * d * (1.0 / self._squares[:, None] - 1.0 / sums) + 0.5 * squared / sums**2)).sum(axis=1)


def _log_norms(squares: Array, square: float, dimension: int) -> Array:
    """(m,) log ‖γ‖ of Gaussians in the space of a kernel of width h: ‖γ‖² = (hᵢ⁴ / h²(2hᵢ² − h²))^(d/2)."""
    return 0.25 * dimension * np.log(squares**2 / (square * (2.0 * squares - square)))


def _over(weights: Array, units: Array) -> Array:
    """(m, p) weights of Gaussians in other units; a weight of 0 stays 0, for any unit."""
    return np.divide(weights, units[:, None], out=np.zeros_like(weights), where=weights != 0)


def _steps(rows: int, columns: int) -> list[tuple[int, int]]:
    """Blocks of rows for a matrix with this number of columns."""
    return blocks(rows, max(64, ENTRIES // max(columns, 1)))
