"""reduset: replace n points by m weighted atoms, and say how much was lost."""

from reduset._engine.threads import get_threads, set_threads
from reduset.certificate import Certificate
from reduset.compression import Compression, NotReachedWarning, compress
from reduset.function_kernel import FunctionKernel
from reduset.kernels import Gaussian, Kernel, Laplacian, Student
from reduset.mean import KernelMean

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "Compression",
    "FunctionKernel",
    "Gaussian",
    "Kernel",
    "KernelMean",
    "Laplacian",
    "NotReachedWarning",
    "Student",
    "compress",
    "get_threads",
    "set_threads",
]
