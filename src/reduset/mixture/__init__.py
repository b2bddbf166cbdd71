"""Gaussian mixtures whose components have covariances of their own.

May import: mean, kernels, `_engine`.
"""

from reduset.mixture.mixture import Mixture

__all__ = ["Mixture"]
