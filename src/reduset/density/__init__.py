"""Kernel density estimation with fast queries and a measured error: an alternative to scikit-learn's KernelDensity.

May import: compression, the packages below it, and mixture.
"""

from reduset.density.estimator import SparseKernelDensity
from reduset.density.leaf_density import merge_rows

__all__ = ["SparseKernelDensity"]
