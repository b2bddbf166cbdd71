"""The kinds of weights, from the factor L of the atoms' Gram matrix K = L Lᵀ and y = L⁻¹κ.

=====================  ==================================================================================================
free                   K⁻¹κ (Cruz Cortés & Scott 2017, eq. 4)
sum_to_one             the best with the mass of f (2014, eq. 8)
clipped                the free ones, negative ones set to 0, rescaled to the mass of f (2014, α⁽¹⁾)
simplex_projection     the Euclidean projection of the free ones onto the simplex (2017, Section V-B)
simplex                the best on the simplex: a quadratic program
counts                 what the rows nearest to each atom weigh (`counts`): for proportions, not the best of the norm
own                    those that the selector itself gives: counts, equal shares, a line search; not the best of anything
=====================  ==================================================================================================
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from reduset._types import Array
from reduset.weights.simplex import project_onto_simplex, quadratic_program, require_mass

KINDS = ("free", "sum_to_one", "clipped", "simplex_projection", "simplex")
COUNTS = "counts"
OWN = "own"


def weights_from(L: Array, y: Array, kind: str, mass: float) -> Array:
    """Weights of a kind from the factor L of the atoms' Gram matrix and y = L⁻¹κ."""
    if kind == "simplex":
        return quadratic_program(L, y, mass)
    free = solve_triangular(L, y, lower=True, trans=1, check_finite=False)
    if kind == "sum_to_one":
        return with_mass(free, cho_solve((L, True), np.ones(len(y)), check_finite=False), mass)
    return constrained(kind, free, mass)


def with_mass(free: Array, ones: Array, mass: float) -> Array:
    """The best weights of that mass, from the free ones and K⁻¹1."""
    return free + ones * ((mass - free.sum()) / ones.sum())


def constrained(kind: str, free: Array, mass: float) -> Array:
    """Weights of the kinds that are made of the free ones."""
    if kind == "free":
        return free
    require_mass(kind, mass)
    if kind == "simplex_projection":
        return project_onto_simplex(free, mass)
    clipped = np.maximum(free, 0.0)
    return clipped * (mass / clipped.sum()) if clipped.any() else np.full(len(free), mass / len(free))
