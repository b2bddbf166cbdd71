"""reduset: replace n points by m weighted atoms, with a measured approximation error.

Names are imported on first access, so that a command that only prints its help does not wait for the compiler.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reduset.kernels import FAMILIES

if TYPE_CHECKING:
    from reduset._engine import get_device, get_threads, set_device, set_threads
    from reduset.certificate import Certificate
    from reduset.compression import Compression, NotReachedWarning, compress, weigh
    from reduset.covers import Cover, cover
    from reduset.kernels import *  # noqa: F403 - every kernel of its registry
    from reduset.mean import KernelMean
    from reduset.mixture import ComponentMean, Mixture
    from reduset.model import Model
    from reduset.simplification import Simplification, simplify
    from reduset.sketching import Sketch, sketch

__version__ = "0.2.0"

__all__ = [
    "Certificate",
    "ComponentMean",
    "Compression",
    "Cover",
    "KernelMean",
    "Mixture",
    "Model",
    "NotReachedWarning",
    "Simplification",
    "Sketch",
    "compress",
    "cover",
    "get_device",
    "get_threads",
    "set_device",
    "set_threads",
    "simplify",
    "sketch",
    "weigh",
]

_MODULES = {
    "_engine": ("get_device", "get_threads", "set_device", "set_threads"),
    "certificate": ("Certificate",),
    "compression": ("Compression", "NotReachedWarning", "compress", "weigh"),
    "covers": ("Cover", "cover"),
    "kernels": ("FunctionKernel", "Kernel", *FAMILIES.values()),
    "mean": ("KernelMean",),
    "mixture": ("ComponentMean", "Mixture"),
    "model": ("Model",),
    "simplification": ("Simplification", "simplify"),
    "sketching": ("Sketch", "sketch"),
}
__all__ += _MODULES["kernels"]
__all__.sort()
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
_SUBPACKAGES = [
    "anndata",
    "bandwidth",
    "certificate",
    "cohort",
    "compression",
    "covers",
    "cytometry",
    "data",
    "density",
    "drift",
    "explain",
    "features",
    "io",
    "kernels",
    "mean",
    "mixture",
    "model",
    "modes",
    "proportions",
    "report",
    "select",
    "simplification",
    "sketching",
    "spectral",
    "stream",
    "svm",
    "weights",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = getattr(import_module(f"reduset.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value
    if name in _SUBPACKAGES:
        return import_module(f"reduset.{name}")
    raise AttributeError(f"module 'reduset' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBPACKAGES, "__version__"])
