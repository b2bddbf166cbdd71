"""Kernels: the kernel function φ with bandwidth h, and the inner product g of two kernel functions. This file is their registry.

Each kernel has a file. To add one, add a file with its name and two lines here: the import for type checkers, and the name in
`__all__`. Errors, options of the command, names of estimators and `reduset` itself read the names from `FAMILIES`.

====================  =============================  ==================================  ==================================
kernel, r = |x−y|/h   φ                              g in L2 (in "rkhs" g = φ)           density constant for h = 1
====================  =============================  ==================================  ==================================
Gaussian              exp(−r²/2)                     a Gaussian of bandwidth √2·h        (2π)^(−d/2)
Laplacian             exp(−r)                        a Matérn of order d/2 + 1           Γ(d/2) / (2 π^(d/2) Γ(d))
… in "cityblock"      exp(−Σ|rⱼ|)                    Π (1 + |rⱼ|) exp(−|rⱼ|)             2^(−d)
Matern, s = √(2ν) r   ν = 3/2: (1 + s) exp(−s),      a Matérn of order 2ν + d/2          (ν/2π)^(d/2) Γ(ν) / Γ(ν + d/2)
                      5/2: (1 + s + s²/3) exp(−s)
Student               (1 + r²)^(−a)                  ₂F₁(a, 2a − d/2; a + ½; −r²/4), a   Γ(a) / (π^(d/2) Γ(a − d/2))
                                                     Student of 2h for a = (d + 1)/2
====================  =============================  ==================================  ==================================

(Cruz Cortés & Scott 2017, Section II-C.) Each name is imported on first use, so `reduset --help` reads `FAMILIES` without importing
NumPy. May import: `_engine`, `_validate`, `bandwidth`.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reduset.kernels.base import Kernel, RadialKernel, exponential
    from reduset.kernels.boxes import boxes_of, warn_if_imprecise
    from reduset.kernels.function import FunctionKernel
    from reduset.kernels.gaussian import Gaussian
    from reduset.kernels.laplacian import Laplacian
    from reduset.kernels.lookup import KERNELS, as_kernel, kernel_field, stored_kernel
    from reduset.kernels.matern import Matern
    from reduset.kernels.spectra import ProductSpectrum, Spectrum
    from reduset.kernels.student import Student

__all__ = ["Gaussian", "Laplacian", "Matern", "Student"]  # the registry: the file of each kernel has its name in lower case

FAMILIES = {name.lower(): name for name in __all__}  # name in files and options: name of the class

__all__ += ["FunctionKernel", "Kernel", "RadialKernel"]

_MODULES = {name: family for family, name in FAMILIES.items()} | {
    "FunctionKernel": "function",
    "Kernel": "base",
    "RadialKernel": "base",
    "exponential": "base",
    "KERNELS": "lookup",
    "as_kernel": "lookup",
    "kernel_field": "lookup",
    "stored_kernel": "lookup",
    "ProductSpectrum": "spectra",
    "Spectrum": "spectra",
    "boxes_of": "boxes",
    "warn_if_imprecise": "boxes",
}


def listed(words: Iterable[str], last: str = "or") -> str:
    """The words as a list in a sentence: a, b or c."""
    *others, final = words
    return f"{', '.join(others)} {last} {final}"


ANY_FAMILY = listed(FAMILIES.values())  # for the way out in error messages


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
