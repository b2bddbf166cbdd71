"""Weights that are not negative and sum to a given mass: the nearest such point, and the best for a quadratic form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from reduset._types import Array

MOST_EXCHANGES, EXCHANGES_IN_VAIN = 60, 3


def require_mass(kind: str, mass: float) -> None:
    """Refuse a mass that no weights above 0 have."""
    if not mass > 0:
        raise ValueError(f"weights={kind!r} needs a mean whose weights sum to more than 0, got {mass:g}; use weights='free'")


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


def simplex_by_exchange(K: Array, kappa: Array, mass: float, inside: NDArray[np.bool_]) -> Array | None:
    """min αᵀKα − 2αᵀκ over α ≥ 0, Σα = mass, from a guess of which weights are above 0; None where that does not settle.

    Block principal pivoting (Júdice & Pires 1994): the equations are solved for those inside, then all that broke a sign change
    sides; once that stops helping, only the last of them does. From a good guess one or two factorisations of K suffice, where the
    general program begins anew. The bumps need not have norm 1.
    """
    scale = 1 / np.sqrt(np.diagonal(K))
    inside = inside.copy() if inside.any() else np.ones(len(K), np.bool_)
    unit, goal = K * scale * scale[:, None], kappa * scale
    fewest, chances = len(K) + 1, EXCHANGES_IN_VAIN
    for _ in range(MOST_EXCHANGES):
        rows = np.flatnonzero(inside)
        factor, failed = dpotrf(unit if len(rows) == len(K) else unit[rows[:, None], rows], lower=1, clean=0)
        if failed:
            return None
        solved, _ = dpotrs(factor, np.stack([goal[rows], scale[rows]], axis=1), lower=1)
        price = (mass - scale[rows] @ solved[:, 0]) / (scale[rows] @ solved[:, 1])
        value = solved[:, 0] + price * solved[:, 1]
        slack = unit[:, rows] @ value - goal - price * scale
        broken = slack < -1e-12 * max(np.abs(goal).max(), np.abs(value).max())
        broken[rows] = value < 0
        count = int(broken.sum())
        if not count:
            found = np.zeros(len(K))
            found[rows] = value * scale[rows]
            return found
        if count < fewest:
            fewest, chances = count, EXCHANGES_IN_VAIN
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
    direction: at the best length of any direction its value is an increasing function of ‖Bp‖ with 1ᵀp = 1.
    """
    from scipy.optimize import nnls  # a tenth of the time that importing this package takes, for one kind of weights

    require_mass("simplex", mass)
    size = len(y)
    gaps = mass * L.T - y[:, None]
    gaps /= np.abs(gaps).max() or 1.0  # beside the row of ones, whatever the units of f are
    system = np.vstack([gaps, np.ones(size)])
    goal = np.zeros(size + 1)
    goal[-1] = 1.0
    try:
        solution, _ = nnls(system, goal, maxiter=30 * size)
    except RuntimeError as error:
        raise RuntimeError(
            f"the quadratic program for weights='simplex' did not converge at {size} atoms; use 'clipped'"
        ) from error
    return solution * (mass / solution.sum())
