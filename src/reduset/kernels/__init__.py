"""Kernels: a bump φ of a bandwidth, and the inner product g of two bumps. One a file, listed in `registry`.

A new kernel is a file beside these and a line in `registry.KERNELS`; what names kernels elsewhere reads it there.
May import: `_engine`, `_validate`, `bandwidth`.
"""

from reduset.kernels.base import Kernel, RadialKernel
from reduset.kernels.function import FunctionKernel
from reduset.kernels.gaussian import Gaussian
from reduset.kernels.laplacian import Laplacian
from reduset.kernels.student import Student

__all__ = ["FunctionKernel", "Gaussian", "Kernel", "Laplacian", "RadialKernel", "Student"]
