"""reduset: replace n points by m weighted atoms, and say how much was lost.

Names are imported when they are first asked for, so that a command which only prints its help does not wait for the compiler.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reduset._engine.threads import get_threads, set_threads
    from reduset.certificate import Certificate
    from reduset.compression import Compression, NotReachedWarning, compress
    from reduset.function_kernel import FunctionKernel
    from reduset.kernels import Gaussian, Kernel, Laplacian, Student
    from reduset.mean import KernelMean
    from reduset.mixture import Mixture
    from reduset.model import Model
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
    "Model",
    "NotReachedWarning",
    "Simplification",
    "Student",
    "compress",
    "get_threads",
    "set_threads",
    "simplify",
]

_HOMES = {
    "Certificate": "certificate",
    "Compression": "compression",
    "FunctionKernel": "function_kernel",
    "Gaussian": "kernels",
    "Kernel": "kernels",
    "KernelMean": "mean",
    "Laplacian": "kernels",
    "Mixture": "mixture",
    "Model": "model",
    "NotReachedWarning": "compression",
    "Simplification": "simplification",
    "Student": "kernels",
    "compress": "compression",
    "get_threads": "_engine.threads",
    "set_threads": "_engine.threads",
    "simplify": "simplification",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"reduset.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if not name.startswith("_") and any(module.name == name for module in iter_modules(__path__)):
        return import_module(f"reduset.{name}")
    raise AttributeError(f"module 'reduset' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))})
