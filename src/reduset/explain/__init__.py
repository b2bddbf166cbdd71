"""Weighted background rows for explanations of models.

May import: compression, select, weights, mean, kernels and their imports.
"""

from reduset.explain.choosing import background
from reduset.explain.explained import Background

__all__ = ["Background", "background"]
