"""A kernel density estimate with few atoms: scikit-learn's KernelDensity, certified.

May import: compression and what is below it, mixture.
"""

from reduset.density.estimator import SparseKernelDensity

__all__ = ["SparseKernelDensity"]
