"""reduset: replace n points by m weighted atoms, and say how much was lost."""

from reduset._engine.threads import get_threads, set_threads
from reduset.certificate import Certificate
from reduset.compression import Compression, NotReachedWarning, compress
from reduset.function_kernel import FunctionKernel
from reduset.kernels import Gaussian, Kernel, Laplacian, Student
from reduset.mean import KernelMean
from reduset.mixture import Mixture
from reduset.simplification import Simplification, simplify

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "Compression",
    "FunctionKernel",
    "Gaussian",
    "Kernel",
    "KernelMean",
    "Laplacian",
    "Mixture",
    "NotReachedWarning",
    "Simplification",
    "Student",
    "compress",
    "get_threads",
    "set_threads",
    "simplify",
]
