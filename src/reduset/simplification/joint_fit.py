"""Joint descent of a simplification: centres, covariances and weights together, on the exact L2 error.

At fixed components the best weights are those of a linear problem (free, or on the simplex where f is a density), so they are
eliminated: with G = ⟨gᵢ, gₖ⟩ and κ = ⟨gᵢ, f⟩ the error is E = wᵀGw − 2wᵀκ + ‖f‖² at w = w(G, κ), and by the envelope theorem its
gradient is that at fixed w,

    ∂E/∂tᵢ = 2wᵢ (Σₖ wₖ bᵢₖ − bᵢ),        ∂E/∂Hᵢ = wᵢ (Σₖ wₖ(V − M)ᵢₖ − (V − M)ᵢ)        (moments of `_engine.components`)

The variables are tᵢ = tᵢ⁰ + Lᵢ⁰uᵢ and Hᵢ = LLᵀ, L = Lᵢ⁰T, T lower triangular with exp on its diagonal: all of order 1, and any
value of them is a covariance; those of light components are scaled up to where the error is as curved as along the others. L-BFGS;
the best place seen is kept, so the error never rises. A step costs two passes of O(n·m).
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
from reduset.mixture.covariances import FLATTEST, diagonals, log_squares, not_positive
from reduset.simplification.local_fit import ComponentArrays
from reduset.weights import simplex_by_exchange, weights_from

Objective = Callable[[Array], tuple[float, Array]]  # the value and its gradient

MEMORY = 20  # of L-BFGS, in steps
LIGHTEST = 0.05  # of the weightiest component's norm: what lighter ones count as when their variables are scaled
FIRST_STEP = 0.25  # the length of the first one, in those variables: L-BFGS makes it 1, which overshoots
WIDEST = 300.0  # |log| of a factor on a volume: in each direction a width changes by no more than its share
FEWEST_STEPS, MOST_STEPS, SECONDS = 20, 100, 10.0  # what is taken where no number of steps is given: as many as take so long
A_POINT, A_PAIR = 1.1e-10, 3.5e-10  # seconds a pair and power of the dimension: the second, and where pairs are factored the third


def affordable_steps(many: Components, size: int) -> int:
    """How many steps to take for so many components, where nobody says."""
    d = many.dimension
    power = A_PAIR * d ** (3 if many.full else 1) if not many.shared else A_POINT * d ** (2 if many.full else 1)
    return int(np.clip(SECONDS / (many.size * size * (1e-9 + power)), FEWEST_STEPS, MOST_STEPS))


def lbfgs(objective: Objective, start: Array, steps: int, after_each: Callable[[Array], None]) -> None:
    """At most ``steps`` steps of L-BFGS; the objective itself remembers the best that it has seen."""
    options = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": MEMORY, "ftol": 1e-12, "gtol": 0.0}
    minimize(objective, start, jac=True, method="L-BFGS-B", callback=after_each, options=options)


class JointFit:
    """Joint least squares in L2: f, and the rule for weights.

    Parameters
    ----------
    many : Components of f
    mass : the sum that the weights keep, not negative; None where they are free
    """

    def __init__(self, many: Components, mass: float | None) -> None:
        self.many, self._mass = many, mass
        self._inside = np.empty(0, np.bool_)

    def laid_out(self, few: ComponentArrays) -> Components:
        """The few laid out like the many, in their units."""
        side = Components(few.weights, few.means, few.covariances, self.many.full)
        side.measure_in(self.many.log_unit)
        return side

    def kappa(self, few: ComponentArrays) -> Array:
        return self.many.totals(few.means, few.covariances)

    def best_weights(self, gram: Array, kappa: Array) -> Array:
        """The weights of least error; those on the simplex are looked for from the ones above 0 that were found last."""
        scale = np.sqrt(np.diagonal(gram))
        ridged = gram.copy()
        ridged.flat[:: len(gram) + 1] += pivot_floor(len(gram)) * scale**2  # bumps of any norm: one ridge suits all
        if not (scale.min() > 0 and np.isfinite(ridged).all() and np.isfinite(kappa).all()):
            raise np.linalg.LinAlgError(
                "the components must not be so much broader than those of the mixture that their products underflow; "
                "use more of them, covariance='full' or method='l2'"
            )
        if self._mass is not None:
            inside = self._inside if len(self._inside) == len(gram) else np.ones(len(gram), np.bool_)
            found = simplex_by_exchange(ridged, kappa, self._mass, inside)
            if found is not None:
                self._inside = found > 0
                return found
        factor, failed = dpotrf(ridged / scale / scale[:, None], lower=1, clean=1)
        if failed:
            raise np.linalg.LinAlgError("the components are too alike for a Gram matrix that has a factor; use fewer of them")
        factor = scale[:, None] * factor
        y = solve_triangular(factor, kappa, lower=True, check_finite=False)
        return weights_from(factor, y, "free" if self._mass is None else "simplex", self._mass or 0.0)

    def value(self, few: ComponentArrays, kappa: Array | None = None) -> float:
        """wᵀGw − 2wᵀκ, which is ‖f − g‖² − ‖f‖²; ``kappa`` where it is known."""
        kappa = self.kappa(few) if kappa is None else kappa
        return float(few.weights @ (self.laid_out(few).totals(few.means, few.covariances) - 2 * kappa))

    def system(self, few: ComponentArrays) -> tuple[Array, Array]:
        """G and κ, the linear problem of their weights."""
        return self.laid_out(few).products(few.means, few.covariances), self.kappa(few)

    def refit(self, few: ComponentArrays) -> ComponentArrays:
        """All weights together, in closed form."""
        return replace(few, weights=self.best_weights(*self.system(few)))

    def _stretch(self, few: ComponentArrays) -> Array:
        """(m, 1) by how much more a component's variables may change than those of the one that weighs most.

        The curvature of the error along them is about w²‖g‖²: in these units it is about the same for all.
        """
        weight = np.abs(few.weights) * np.exp(0.5 * (log_squares(few.covariances, few.dimension) - self.many.log_unit))
        first = FIRST_STEP if self._in_pairs(few) else 1.0
        return np.asarray(first / np.maximum(weight / weight.max(), LIGHTEST)[:, None])

    def descend(self, few: ComponentArrays, steps: int, report: Callable[[float], None], floor: float = 0.0) -> ComponentArrays:
        """The best components seen in ``steps`` steps from these; ``report`` gets wᵀGw − 2wᵀκ after each.

        Full covariances stay above ``floor`` times the identity, for kernel densities: what is left when so much is taken away is a
        covariance again.
        """
        variables = _Variables(few, floor)
        in_pairs = floor == 0 and self._in_pairs(few)
        slopes = self._pair_slopes if in_pairs else self._slopes_by_variables
        best: tuple[Array, Array] | None = None  # variables and weights
        least, unit = np.inf, 0.0
        stretch = self._stretch(few) * (variables.evenness if in_pairs else 1.0)

        def objective(v: Array) -> tuple[float, Array]:
            nonlocal best, least, unit
            u = (v.reshape(few.size, -1) * stretch).ravel()
            try:
                weights, error, by_variables = slopes(variables, u)
            except (np.linalg.LinAlgError, RuntimeError):  # no factor, or no end of the quadratic program: turn back
                return 1.0 + (abs(least) * unit if unit else 0.0), np.zeros(len(v))
            if not unit:
                unit = 1 / abs(error)
            if error < least:
                best, least = (u, weights), error
            return error * unit, (unit * stretch * by_variables.reshape(few.size, -1)).ravel()

        lbfgs(objective, np.zeros(variables.count), steps, lambda _: report(least))
        return few if best is None else replace(variables.components(best[0]), weights=best[1])

    def _slopes_by_variables(self, variables: _Variables, u: Array) -> tuple[Array, float, Array]:
        """The best weights at these variables, E − ‖f‖² there, and its slopes."""
        here, error, by_mean, by_covariance = self._slopes(variables.components(u))
        return here.weights, error, variables.gradient(u, by_mean, by_covariance)

    def _in_pairs(self, few: ComponentArrays) -> bool:
        """Whether full covariances are factored for each pair of components: all between these sums is compiled too then."""
        return few.covariances.ndim == 3 and not self.many.shared

    def _pair_slopes(self, variables: _Variables, u: Array) -> tuple[Array, float, Array]:
        """The same where pairs are factored: no matrix of a component is made, nor factored once more."""
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
        """These components with their best weights, E − ‖f‖² there, and its slopes by mean and by covariance."""
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
    """The parametrisation: components as a vector of numbers about 0, relative to a start.

    With a floor, full covariances are LLᵀ + floor·I.
    """

    def __init__(self, start: ComponentArrays, floor: float = 0.0) -> None:
        self._start = start
        self._size, self._dimension = start.means.shape
        # ‖∂g‖²/‖g‖², less what a change of weight takes up, is ½ along moves and the diagonal of T and ¼ below it
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
        self._widest = min(WIDEST / self._dimension, 12.0)
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
        """Of full covariances, from an origin: the means, the factors, and the covariances in lower rows."""
        centres, factors = np.empty((self._size, self._dimension)), np.zeros_like(self._root)
        entries, even = np.empty((self._size, self._widths)), np.empty(self._size)
        start = self._start.means - origin
        from_whitened(u.reshape(self._size, -1), start, self._root, self._widest, centres, factors, entries, even)
        # of a correlation's eigenvalues the least is at least |R|/e and the largest at most d, so that most need no decomposition
        if not even.min() > np.e * self._dimension * FLATTEST and not_positive(from_lower_rows(entries, self._dimension)).any():
            raise np.linalg.LinAlgError("a covariance has collapsed")
        return centres, factors, entries

    def placed_gradient(self, factors: Array, by_mean: Array, by_covariance: Array) -> Array:
        """The gradient at the factors from those by mean (m, d) and covariance, in lower rows."""
        out = np.empty((self._size, self._dimension + self._widths))
        whitened_gradients(self._root, factors, by_mean, by_covariance, out)
        return out.ravel()

    def gradient(self, u: Array, by_mean: Array, by_covariance: Array) -> Array:
        """From those by mean (m, d) and covariance, full (m, d, d) or diagonal (m, d)."""
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
