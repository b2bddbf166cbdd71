"""Weights for given atoms: weightings and their registry, the span of the atoms, and the mass of the rows nearest to each atom.

A new weighting is an entry of `WEIGHTINGS` (`weightings`).
May import: mean, mixture, kernels, `_engine`.
"""

from reduset.weights.atom_masses import assignments_to, isolated_groups, masses_of, with_masses_of_groups, with_nearest_atoms
from reduset.weights.span import CHOLESKY_UP_TO, FactoredSpan, IterativeSpan, Span, span_of
from reduset.weights.weightings import (
    HINTS,
    KINDS,
    OWN,
    WEIGHTINGS,
    Equations,
    Weighting,
    description_of,
    is_signed,
    project_onto_simplex,
    require_mass,
    simplex_by_exchange,
    solved,
    weights_from,
)

__all__ = ["KINDS", "WEIGHTINGS", "Equations", "Weighting", "project_onto_simplex"]
