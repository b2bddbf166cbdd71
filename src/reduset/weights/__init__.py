"""Weights for given atoms: the best in the span of their kernel functions (`span`), and on the simplex.

`counts` is the nearest-atom pass.

May import: mean, kernels, `_engine`.
"""

from reduset.weights.kinds import KINDS
from reduset.weights.simplex import project_onto_simplex

__all__ = ["KINDS", "project_onto_simplex"]
