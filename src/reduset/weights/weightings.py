"""The weightings, such as free weights, a fixed sum, or the simplex: rules that compute the weights of given atoms.

`WEIGHTINGS` is their registry.

Let K be the Gram matrix of the atoms, κ their inner products with f, and the mass Σw the sum of the weights of f.

=====================  ==================================================================================================
free                   K⁻¹κ (Cruz Cortés & Scott 2017, eq. 4)
sum_to_one             the best weights with the same sum as f (2014, eq. 8)
clipped                the free weights with negative ones set to 0, rescaled to the sum of f (2014, α⁽¹⁾)
sum_to_one_clipped     the "sum_to_one" weights, clipped and rescaled likewise (2014, α⁽²⁾)
simplex_projection     the Euclidean projection of the free weights onto the simplex (2017, Section V-B)
simplex                the best weights on the simplex: a quadratic program
own                    weights that the selector computes: counts, equal weights, a line search
=====================  ==================================================================================================

A new weighting is an entry of `WEIGHTINGS`. Errors, printed results and the command use its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotrs

from reduset._messages import REAL_ROWS
from reduset._types import Array

OWN = "own"
HINTS = {"counts": f"; {REAL_ROWS}"}
MAX_EXCHANGES, MAX_FAILED_EXCHANGES = 60, 3


@dataclass(frozen=True)
class Equations:
    """The equations K α = κ of some atoms, from the Cholesky factor of K = L Lᵀ and y = L⁻¹κ."""

    L: Array
    y: Array

    def free(self) -> Array:
        """K⁻¹κ."""
        return solve_triangular(self.L, self.y, lower=True, trans=1, check_finite=False)

    def ones(self) -> Array:
        """K⁻¹1."""
        return cho_solve((self.L, True), np.ones(len(self.y)), check_finite=False)

    def with_sum(self, mass: float) -> Array:
        """The best weights of this sum."""
        free, ones = self.free(), self.ones()
        return free + ones * ((mass - free.sum()) / ones.sum())

    def on_simplex(self, mass: float) -> Array:
        """The best non-negative weights of this sum."""
        return quadratic_program(self.L, self.y, mass)


@dataclass(frozen=True)
class Weighting:
    """A rule for the weights of given atoms.

    Attributes
    ----------
    description : a short text for printed results
    weights : function of the equations and the sum of the weights of f, which returns the (m,) weights
    signed : whether weights may be negative; if not, the weights of f need a positive sum
    optimal : whether no other weights under the same constraints have a smaller error
    """

    description: str
    weights: Callable[[Equations, float], Array]
    signed: bool = False
    optimal: bool = False


def clipped(weights: Array, mass: float) -> Array:
    """Negative weights set to 0, the others rescaled to ``mass``; equal weights if none is positive."""
    positive = np.maximum(weights, 0.0)
    return positive * (mass / positive.sum()) if positive.any() else np.full(len(weights), mass / len(weights))


def project_onto_simplex(vector: Array, mass: float = 1.0) -> Array:
    """The nearest point with non-negative entries that sum to ``mass`` (sorting, O(m log m)).

    >>> import numpy as np
    >>> from reduset.weights import project_onto_simplex
    >>> project_onto_simplex(np.array([0.9, 0.5, -0.2]))
    array([0.7, 0.3, 0. ])
    """
    falling = np.sort(vector)[::-1]
    shift = (np.cumsum(falling) - mass) / np.arange(1, len(vector) + 1)
    last = int(np.flatnonzero(falling > shift)[-1])
    return np.maximum(vector - shift[last], 0.0)


WEIGHTINGS = {
    "free": Weighting("optimal", lambda equations, _: equations.free(), signed=True, optimal=True),
    "sum_to_one": Weighting("optimal with the sum of the rows' weights", Equations.with_sum, signed=True, optimal=True),
    "clipped": Weighting("optimal, then negative ones set to 0", lambda equations, mass: clipped(equations.free(), mass)),
    "sum_to_one_clipped": Weighting(
        "optimal with this sum, then negative ones set to 0", lambda equations, mass: clipped(equations.with_sum(mass), mass)
    ),
    "simplex_projection": Weighting(
        "optimal, then projected onto the simplex", lambda equations, mass: project_onto_simplex(equations.free(), mass)
    ),
    "simplex": Weighting("optimal on the simplex", lambda equations, mass: equations.on_simplex(mass), optimal=True),
}
KINDS = tuple(WEIGHTINGS)


def is_signed(kind: str) -> bool:
    """True if weights of this name may be negative, so that they need no positive sum; False for weights of the selector."""
    return kind in WEIGHTINGS and WEIGHTINGS[kind].signed


def description_of(kind: str) -> str:
    """A short description of a weighting, for printed results."""
    return "from the selector" if kind == OWN else WEIGHTINGS[kind].description


def solved(kind: str, equations: Equations, mass: float) -> Array:
    """The weights of a registered name; raises `ValueError` if they need a positive sum and f has none."""
    weighting = WEIGHTINGS[kind]
    if not weighting.signed:
        require_mass(kind, mass)
    return weighting.weights(equations, mass)


def weights_from(L: Array, y: Array, kind: str, mass: float) -> Array:
    """The weights of a registered name from the factor L of the atoms' Gram matrix and y = L⁻¹κ."""
    return solved(kind, Equations(L, y), mass)


def require_mass(kind: str, mass: float) -> None:
    """Raise `ValueError` if no non-negative weights have this sum."""
    if not mass > 0:
        raise ValueError(f"weights={kind!r} needs a mean whose weights sum to more than 0, got {mass:g}; use weights='free'")


def simplex_by_exchange(K: Array, kappa: Array, mass: float, inside: NDArray[np.bool_]) -> Array | None:
    """min αᵀKα − 2αᵀκ over α ≥ 0, Σα = mass, from a guess of the weights above 0; None if it does not converge.

    Block principal pivoting (Júdice & Pires 1994). The equations are solved for the positive weights. Then all weights or
    multipliers with the wrong sign are exchanged, or only the last of them if this does not reduce their number. From a good guess,
    one or two factorisations of K suffice. The kernel functions need not have norm 1.
    """
    scale = 1 / np.sqrt(np.diagonal(K))
    inside = inside.copy() if inside.any() else np.ones(len(K), np.bool_)
    unit, goal = K * scale * scale[:, None], kappa * scale
    fewest, chances = len(K) + 1, MAX_FAILED_EXCHANGES
    for _ in range(MAX_EXCHANGES):
        rows = np.flatnonzero(inside)
        factor, failed = dpotrf(unit if len(rows) == len(K) else unit[rows[:, None], rows], lower=1, clean=0)
        if failed:
            return None
        solution, _ = dpotrs(factor, np.stack([goal[rows], scale[rows]], axis=1), lower=1)
        price = (mass - scale[rows] @ solution[:, 0]) / (scale[rows] @ solution[:, 1])
        value = solution[:, 0] + price * solution[:, 1]
        slack = unit[:, rows] @ value - goal - price * scale
        broken = slack < -1e-12 * max(np.abs(goal).max(), np.abs(value).max())
        broken[rows] = value < 0
        count = int(broken.sum())
        if not count:
            weights = np.zeros(len(K))
            weights[rows] = value * scale[rows]
            return weights
        if count < fewest:
            fewest, chances = count, MAX_FAILED_EXCHANGES
        elif chances:
            chances -= 1
        else:
            broken[: np.flatnonzero(broken)[-1]] = False
        inside ^= broken
        if not inside.any():
            return None
    return None


def quadratic_program(L: Array, y: Array, mass: float) -> Array:
    """min ‖Lᵀα − y‖ over α ≥ 0, Σα = mass, as one non-negative least-squares problem.

    On the simplex Lᵀα − y = Bp with B = mass·Lᵀ − y1ᵀ and p = α/mass. Minimising ‖Bp‖² + (1ᵀp − 1)² over p ≥ 0 finds the same
    direction. At the best length of any direction, its value is an increasing function of ‖Bp‖ with 1ᵀp = 1.
    """
    from scipy.optimize import nnls  # a tenth of the import time of the package, and only one weighting needs it

    size = len(y)
    rows = mass * L.T - y[:, None]
    rows /= np.abs(rows).max() or 1.0  # comparable with the row of ones, for any units of f
    system = np.vstack([rows, np.ones(size)])
    goal = np.zeros(size + 1)
    goal[-1] = 1.0
    try:
        solution, _ = nnls(system, goal, maxiter=30 * size)
    except RuntimeError as error:
        raise RuntimeError(
            f"the quadratic program for weights='simplex' did not converge at {size} atoms; use 'clipped'"
        ) from error
    return solution * (mass / solution.sum())
