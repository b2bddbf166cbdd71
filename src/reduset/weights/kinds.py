"""The kinds of weights, from the factor L of the atoms' Gram matrix K = L Lᵀ and y = L⁻¹κ.

=====================  ==================================================================================================
free                   K⁻¹κ (Cruz Cortés & Scott 2017, eq. 4)
sum_to_one             the best weights whose sum is that of f (2014, eq. 8)
clipped                the free weights, negative ones set to 0, rescaled to the sum of f (2014, α⁽¹⁾)
sum_to_one_clipped     the same from the "sum_to_one" weights (2014, α⁽²⁾)
simplex_projection     the Euclidean projection of the free weights onto the simplex (2017, Section V-B)
simplex                the best weights on the simplex: a quadratic program
own                    the weights that the selector itself gives: counts, equal weights, a line search
=====================  ==================================================================================================

`WEIGHTINGS` is the registry of the kinds that are solved for. An entry states the linear solution it starts from and the function
that makes the weights from it, so that a new kind is one entry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from reduset._messages import REAL_ROWS
from reduset._types import Array
from reduset.weights.simplex import project_onto_simplex, quadratic_program, require_mass

FREE, SUM_TO_ONE, PROGRAM = "free", "sum_to_one", "program"  # the solutions that weights start from


@dataclass(frozen=True)
class Weighting:
    """One kind of weights.

    Attributes
    ----------
    description : a few words, for printed results
    start : the solution it starts from: "free", "sum_to_one", or "program" (the quadratic program on the simplex)
    finish : makes the weights from that solution and the sum of f; None where the solution is the result
    """

    description: str
    start: str
    finish: Callable[[Array, float], Array] | None = None

    @property
    def signed(self) -> bool:
        """Whether weights may be negative; if not, f needs a positive sum."""
        return self.finish is None and self.start != PROGRAM


def clipped(weights: Array, mass: float) -> Array:
    """Negative weights set to 0, the others rescaled to ``mass``; equal weights where none is positive."""
    positive = np.maximum(weights, 0.0)
    return positive * (mass / positive.sum()) if positive.any() else np.full(len(weights), mass / len(weights))


WEIGHTINGS = {
    "free": Weighting("optimal", FREE),
    "sum_to_one": Weighting("optimal with the sum of the rows' weights", SUM_TO_ONE),
    "clipped": Weighting("optimal, then negative ones set to 0", FREE, clipped),
    "sum_to_one_clipped": Weighting("optimal with this sum, then negative ones set to 0", SUM_TO_ONE, clipped),
    "simplex_projection": Weighting("optimal, then projected onto the simplex", FREE, project_onto_simplex),
    "simplex": Weighting("optimal on the simplex", PROGRAM),
}
KINDS = tuple(WEIGHTINGS)
SIGNED = tuple(kind for kind, weighting in WEIGHTINGS.items() if weighting.signed)
OWN = "own"
DESCRIPTIONS = {kind: weighting.description for kind, weighting in WEIGHTINGS.items()} | {OWN: "from the selector"}
HINTS = {"counts": f"; {REAL_ROWS}"}


def weights_from(L: Array, y: Array, kind: str, mass: float) -> Array:
    """Weights of a kind from the factor L of the atoms' Gram matrix and y = L⁻¹κ."""

    def program() -> Array:
        return quadratic_program(L, y, mass)

    def free() -> Array:
        return solve_triangular(L, y, lower=True, trans=1, check_finite=False)

    def ones() -> Array:
        return cho_solve((L, True), np.ones(len(y)), check_finite=False)

    return made_from(kind, mass, free, ones, program)


def made_from(kind: str, mass: float, free: Callable[[], Array], ones: Callable[[], Array], program: Callable[[], Array]) -> Array:
    """Weights of a kind from functions for K⁻¹κ, K⁻¹1 and the quadratic program, of which only those needed are called."""
    weighting = WEIGHTINGS[kind]
    if not weighting.signed:
        require_mass(kind, mass)
    solutions = {FREE: free, SUM_TO_ONE: lambda: with_mass(free(), ones(), mass), PROGRAM: program}
    found = solutions[weighting.start]()
    return found if weighting.finish is None else weighting.finish(found, mass)


def with_mass(free: Array, ones: Array, mass: float) -> Array:
    """The best weights of that mass, from the free ones and K⁻¹1."""
    return free + ones * ((mass - free.sum()) / ones.sum())
