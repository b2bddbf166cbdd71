"""Joint descent of a simplification: minimises the exact L2 error over centres, covariances and weights together.

For fixed components the best weights solve a linear problem (free, or on the simplex if f is a density), so they are eliminated.
With G = ⟨gᵢ, gₖ⟩ and κ = ⟨gᵢ, f⟩ the error is E = wᵀGw − 2wᵀκ + ‖f‖² at w = w(G, κ). By the envelope theorem its gradient is the
gradient at fixed w,

    ∂E/∂tᵢ = 2wᵢ (Σₖ wₖ bᵢₖ − bᵢ),        ∂E/∂Hᵢ = wᵢ (Σₖ wₖ(V − M)ᵢₖ − (V − M)ᵢ)        (moments of `_engine.components`)

The variables uᵢ and T define tᵢ = tᵢ⁰ + Lᵢ⁰uᵢ and Hᵢ = LLᵀ with L = Lᵢ⁰T, where T is lower triangular with exp on its diagonal.
They are of order 1, and every value gives a covariance. The variables of light components are scaled up, so that the error has a
similar curvature along all of them. The method is L-BFGS. The best point is kept, so the error never rises. A step costs two passes
of O(n·m).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf
from scipy.optimize import minimize

from reduset._engine import Components, as_diagonal, as_full, from_lower_rows, from_whitened, pivot_floor, whitened_gradients
from reduset._types import Array
from reduset.mixture import MIN_EIGENVALUE, diagonals, log_squares, not_positive
from reduset.simplification.local_fit import ComponentArrays
from reduset.weights import simplex_by_exchange, weights_from

Objective = Callable[[Array], tuple[float, Array]]  # the value and its gradient

MEMORY = 20  # of L-BFGS, in steps
MIN_NORM = 0.05  # relative to the largest norm of a component: lighter components are scaled as if they had this norm
FIRST_STEP = 0.25  # length of the first step in the scaled variables, because the 1 of L-BFGS overshoots
MAX_LOG_VOLUME = 300.0  # |log| of the factor on a component's volume, split evenly over the directions
MIN_STEPS, MAX_STEPS, SECONDS = 20, 100, 10.0  # without a given number, as many steps as take this time
# seconds per pair of components and power of the dimension: d² for shared covariances, d³ if each pair is factored
POINT_SECONDS, PAIR_SECONDS = 1.1e-10, 3.5e-10


def affordable_steps(f: Components, size: int) -> int:
    """The default number of steps for this number of components."""
    d = f.dimension
    power = PAIR_SECONDS * d ** (3 if f.full else 1) if not f.shared else POINT_SECONDS * d ** (2 if f.full else 1)
    return int(np.clip(SECONDS / (f.size * size * (1e-9 + power)), MIN_STEPS, MAX_STEPS))


def lbfgs(objective: Objective, start: Array, steps: int, callback: Callable[[Array], None]) -> None:
    """Run at most ``steps`` steps of L-BFGS; the objective itself stores its best point."""
    options = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": MEMORY, "ftol": 1e-12, "gtol": 0.0}
    minimize(objective, start, jac=True, method="L-BFGS-B", callback=callback, options=options)


class JointFit:
    """Joint least squares in L2 for f, with a rule for the weights.

    Parameters
    ----------
    many : Components of f
    mass : the sum of the weights, which are then not negative; None for free weights
    """

    def __init__(self, many: Components, mass: float | None) -> None:
        self.many, self._mass = many, mass
        self._inside = np.empty(0, np.bool_)

    def laid_out(self, reduced: ComponentArrays) -> Components:
        """The components of g laid out like those of f, in the same units."""
        components = Components(reduced.weights, reduced.means, reduced.covariances, self.many.full)
        components.measure_in(self.many.log_unit)
        return components

    def kappa(self, reduced: ComponentArrays) -> Array:
        return self.many.totals(reduced.means, reduced.covariances)

    def best_weights(self, gram: Array, kappa: Array) -> Array:
        """The weights of least error; on the simplex the search starts from the positive weights of the last call."""
        scale = np.sqrt(np.diagonal(gram))
        ridged = gram.copy()
        ridged.flat[:: len(gram) + 1] += pivot_floor(len(gram)) * scale**2  # a ridge relative to the norms
        if not (scale.min() > 0 and np.isfinite(ridged).all() and np.isfinite(kappa).all()):
            raise np.linalg.LinAlgError(
                "the components must not be so broad that their inner products with the mixture underflow; "
                "use more components, covariance='full' or method='l2'"
            )
        if self._mass is not None:
            inside = self._inside if len(self._inside) == len(gram) else np.ones(len(gram), np.bool_)
            weights = simplex_by_exchange(ridged, kappa, self._mass, inside)
            if weights is not None:
                self._inside = weights > 0
                return weights
        factor, failed = dpotrf(ridged / scale / scale[:, None], lower=1, clean=1)
        if failed:
            raise np.linalg.LinAlgError("the components must differ enough for a Gram matrix with a Cholesky factor; use fewer")
        factor = scale[:, None] * factor
        y = solve_triangular(factor, kappa, lower=True, check_finite=False)
        return weights_from(factor, y, "free" if self._mass is None else "simplex", self._mass or 0.0)

    def value(self, reduced: ComponentArrays, kappa: Array | None = None) -> float:
        """wᵀGw − 2wᵀκ = ‖f − g‖² − ‖f‖²; ``kappa`` may be given if it is known."""
        kappa = self.kappa(reduced) if kappa is None else kappa
        return float(reduced.weights @ (self.laid_out(reduced).totals(reduced.means, reduced.covariances) - 2 * kappa))

    def system(self, reduced: ComponentArrays) -> tuple[Array, Array]:
        """G and κ, the linear problem for the weights."""
        return self.laid_out(reduced).products(reduced.means, reduced.covariances), self.kappa(reduced)

    def refit(self, reduced: ComponentArrays) -> ComponentArrays:
        """The same components with the best weights, in closed form."""
        return replace(reduced, weights=self.best_weights(*self.system(reduced)))

    def _stretch(self, reduced: ComponentArrays) -> Array:
        """(m, 1) factor on the variables of each component, relative to the component of largest norm.

        The curvature of the error along the variables is about w²‖g‖², and about equal for all components after this scaling.
        """
        weight = np.abs(reduced.weights) * np.exp(0.5 * (log_squares(reduced.covariances, reduced.dimension) - self.many.log_unit))
        first = FIRST_STEP if self._in_pairs(reduced) else 1.0
        return np.asarray(first / np.maximum(weight / weight.max(), MIN_NORM)[:, None])

    def descend(self, reduced: ComponentArrays, steps: int, report: Callable[[float], None], floor: float = 0.0) -> ComponentArrays:
        """The best components of ``steps`` steps from these; ``report`` receives wᵀGw − 2wᵀκ after each step.

        Full covariances stay above ``floor`` times the identity. For kernel densities, the covariance of the kernel can then be
        subtracted.
        """
        variables = _Variables(reduced, floor)
        in_pairs = floor == 0 and self._in_pairs(reduced)
        slopes = self._pair_slopes if in_pairs else self._slopes_by_variables
        best: tuple[Array, Array] | None = None  # variables and weights
        least, unit = np.inf, 0.0
        stretch = self._stretch(reduced) * (variables.evenness if in_pairs else 1.0)

        def objective(v: Array) -> tuple[float, Array]:
            nonlocal best, least, unit
            u = (v.reshape(reduced.size, -1) * stretch).ravel()
            try:
                weights, error, by_variables = slopes(variables, u)
            except (np.linalg.LinAlgError, RuntimeError):  # no factor or no convergence: the line search turns back
                return 1.0 + (abs(least) * unit if unit else 0.0), np.zeros(len(v))
            if not unit:
                unit = 1 / abs(error)
            if error < least:
                best, least = (u, weights), error
            return error * unit, (unit * stretch * by_variables.reshape(reduced.size, -1)).ravel()

        lbfgs(objective, np.zeros(variables.count), steps, lambda _: report(least))
        return reduced if best is None else replace(variables.components(best[0]), weights=best[1])

    def _slopes_by_variables(self, variables: _Variables, u: Array) -> tuple[Array, float, Array]:
        """The best weights for these variables, E − ‖f‖² and its slopes."""
        here, error, by_mean, by_covariance = self._slopes(variables.components(u))
        return here.weights, error, variables.gradient(u, by_mean, by_covariance)

    def _in_pairs(self, reduced: ComponentArrays) -> bool:
        """True if full covariances are factored for each pair of components; compiled loops then do the rest too."""
        return reduced.covariances.ndim == 3 and not self.many.shared

    def _pair_slopes(self, variables: _Variables, u: Array) -> tuple[Array, float, Array]:
        """`_slopes_by_variables` for factored pairs: it forms no matrix of a component, and factors none again."""
        d = self.many.dimension
        centres, factors, entries = variables.placed(u, self.many.centre)
        side = Components.from_factors(centres, entries, factors, self.many)
        gram = side.pair_gram(centres, entries)
        from_f = self.many.pair_sums(centres, entries)
        weights = self.best_weights(gram, from_f[:, 0])
        error = float(weights @ (gram @ weights - 2 * from_f[:, 0]))
        side.weigh(weights)
        slope = (side.pair_sums(centres, entries) - from_f) * weights[:, None]
        stiff, square = slope[:, 1 + d : 1 + d + entries.shape[1]], slope[:, 1 + d + entries.shape[1] :]
        return weights, error, variables.placed_gradient(factors, 2 * slope[:, 1 : 1 + d], square - stiff)

    def _slopes(self, here: ComponentArrays) -> tuple[ComponentArrays, float, Array, Array]:
        """These components with their best weights, E − ‖f‖², and its slopes by mean and by covariance."""
        if not_positive(here.covariances).any():
            raise np.linalg.LinAlgError("a covariance has collapsed")
        side = self.laid_out(here)
        gram = side.products(here.means, here.covariances)
        from_f = self.many.moments(here.means, here.covariances)
        weights = self.best_weights(gram, from_f.total)
        side.weigh(weights)
        error = float(weights @ (gram @ weights - 2 * from_f.total))
        from_g = side.moments(here.means, here.covariances)
        by_mean = 2 * weights[:, None] * (from_g.pull - from_f.pull)
        slope = (from_g.square - from_g.stiff) - (from_f.square - from_f.stiff)
        by_covariance = slope * weights.reshape(-1, *[1] * (slope.ndim - 1))
        return replace(here, weights=weights), error, by_mean, by_covariance


class _Variables:
    """The parametrisation: components as a vector of variables, 0 at the start.

    With a floor, full covariances are LLᵀ + floor·I.
    """

    def __init__(self, start: ComponentArrays, floor: float = 0.0) -> None:
        self._start = start
        self._size, self._dimension = start.means.shape
        # ‖∂g‖²/‖g‖² after a change of weight is ½ along moves and the diagonal of T, and ¼ below the diagonal
        if start.covariances.ndim == 3:
            self._floor = floor * np.eye(self._dimension)
            self._lower = np.tril_indices(self._dimension)
            self._on_diagonal = self._lower[0] == self._lower[1]
            self._root = np.linalg.cholesky(start.covariances)
            self._shape = np.linalg.cholesky(start.covariances - self._floor) if floor > 0 else self._root
            self._widths = len(self._lower[0])
            evenness = np.where(self._on_diagonal, 1.0, np.sqrt(2.0))
        else:
            self._root = np.sqrt(as_diagonal(start.covariances, self._dimension))
            self._widths = 1 if start.covariances.ndim == 1 else self._dimension
            evenness = np.ones(self._widths)
        self._widest = min(MAX_LOG_VOLUME / self._dimension, 12.0)
        self.evenness = np.concatenate([np.ones(self._dimension), evenness])
        self.count = self._size * (self._dimension + self._widths)

    def _split(self, u: Array) -> tuple[Array, Array]:
        parts = u.reshape(self._size, -1)
        return parts[:, : self._dimension], np.clip(parts[:, self._dimension :], -self._widest, self._widest)

    def _triangle(self, widths: Array) -> Array:
        T = np.zeros((self._size, self._dimension, self._dimension))
        T[:, self._lower[0], self._lower[1]] = np.where(self._on_diagonal, np.exp(widths * self._on_diagonal), widths)
        return T

    def components(self, u: Array) -> ComponentArrays:
        moves, widths = self._split(u)
        if self._root.ndim == 3:
            L = self._shape @ self._triangle(widths)
            means = self._start.means + np.einsum("mij,mj->mi", self._root, moves)
            return replace(self._start, means=means, covariances=L @ L.transpose(0, 2, 1) + self._floor)
        spread = np.exp(2 * widths)
        covariances = self._start.covariances * (spread[:, 0] if self._start.covariances.ndim == 1 else spread)
        return replace(self._start, means=self._start.means + self._root * moves, covariances=covariances)

    def placed(self, u: Array, origin: Array) -> tuple[Array, Array, Array]:
        """Full covariances only: means from an origin, factors, and the lower rows of the covariances."""
        centres, factors = np.empty((self._size, self._dimension)), np.zeros_like(self._root)
        entries, determinants = np.empty((self._size, self._widths)), np.empty(self._size)
        start = self._start.means - origin
        from_whitened(u.reshape(self._size, -1), start, self._root, self._widest, centres, factors, entries, determinants)
        # a correlation matrix R has its eigenvalues between |R|/e and d, so most need no decomposition
        limit = np.e * self._dimension * MIN_EIGENVALUE
        if not determinants.min() > limit and not_positive(from_lower_rows(entries, self._dimension)).any():
            raise np.linalg.LinAlgError("a covariance has collapsed")
        return centres, factors, entries

    def placed_gradient(self, factors: Array, by_mean: Array, by_covariance: Array) -> Array:
        """The gradient by variables from the gradients by mean (m, d) and by covariance (lower rows), at these factors."""
        out = np.empty((self._size, self._dimension + self._widths))
        whitened_gradients(self._root, factors, by_mean, by_covariance, out)
        return out.ravel()

    def gradient(self, u: Array, by_mean: Array, by_covariance: Array) -> Array:
        """The gradient by variables from the gradients by mean (m, d) and by covariance, full (m, d, d) or diagonal (m, d)."""
        _, widths = self._split(u)
        if self._root.ndim == 3:
            T = self._triangle(widths)
            by_moves = np.einsum("mji,mj->mi", self._root, by_mean)
            by_factor = 2 * self._shape.transpose(0, 2, 1) @ as_full(by_covariance, self._dimension) @ self._shape @ T
            picked = by_factor[:, self._lower[0], self._lower[1]]
            by_widths = np.where(self._on_diagonal, picked * T[:, self._lower[0], self._lower[1]], picked)
        else:
            by_moves = self._root * by_mean
            by_widths = 2 * diagonals(by_covariance, self._dimension) * self._root**2
            if self._widths == 1:
                by_widths = by_widths.sum(axis=1, keepdims=True)
            by_widths = by_widths * np.exp(2 * widths)
        return np.concatenate([by_moves, by_widths], axis=1).ravel()
