"""Kernel density estimation with fast queries and a measured error, in place of scikit-learn's KernelDensity.

May import: compression and what is below it, mixture.
"""

from reduset.density.estimator import SparseKernelDensity

__all__ = ["SparseKernelDensity"]
